"""Tau2: every file's counts are those of a hand count; what is no single run is refused."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from whilesim.cli import main
from whilesim.core.errors import InputError
from whilesim.evals.tau2 import compare_tau2, floors_tau2, read_splits, read_tasks, read_tau2, scrub

INFO = {
    "num_trials": 1, "max_steps": 200, "max_errors": 10, "seed": 300,
    "agent_info": {"implementation": "llm_agent", "llm": "openai/a", "llm_args": {"temperature": 0.0}},
    "user_info": {"implementation": "user_simulator", "llm": "openai/u", "llm_args": {}},
    "environment_info": {"domain_name": "shop", "policy": "Be kind."},
}  # fmt: skip


def sim(task: str, reward: Any = 1.0, trial: int = 0, **more: Any) -> dict[str, Any]:
    ended = "user_stop" if reward is not None else "infrastructure_error"
    told = None if reward is None else {"reward": reward}
    return {
        "task_id": task,
        "trial": trial,
        "seed": 7 + trial,
        "termination_reason": ended,
        "reward_info": told,
        "messages": [],
        **more,
    }


def results(path: Path, *sims: dict[str, Any], **info: Any) -> Path:
    tasks = [{"id": i, "evaluation_criteria": {"actions": []}} for i in dict.fromkeys(s["task_id"] for s in sims)]
    path.write_text(json.dumps({"info": {**INFO, **info}, "tasks": tasks, "simulations": sims}))
    return path


@pytest.mark.corpus
def test_each_file_is_counted_as_by_hand(shared: Path) -> None:
    files = sorted((shared / "tau2" / "results_examples").glob("*.json"))
    assert len(files) == 8
    for file in files:
        whole = json.loads(file.read_text())["simulations"]
        rewards = [(s["reward_info"] or {}).get("reward") for s in whole]
        found = read_tau2(file)
        assert found.passes == rewards.count(1.0), file
        assert found.terminations == Counter(s["termination_reason"] for s in whole)
        assert sum(len(t) for t in found.tries.values()) == sum(r is not None for r in rewards)


@pytest.mark.corpus
def test_always_transfer_is_12_of_40_and_so_says_the_floor(shared: Path) -> None:
    file = shared / "tau2" / "results_examples" / "telecom_test40_always_transfer.json"
    found = read_tau2(file)
    told = found.summary()
    assert (told["passes"], told["tasks"], told["split"]) == (12, 40, "test (all 40 tasks)")
    assert told["tags"]["hand-off wanted"] == "12 of 12"
    floors = floors_tau2(read_tasks(file))
    passed = {s["task_id"] for s in found.simulations if s["reward_info"]["reward"] == 1.0}
    assert set(floors["always_handoff"].passed) == passed
    assert floors["do_nothing"].passed == ()
    assert compare_tau2(found, found).p == 1.0


@pytest.mark.corpus
@pytest.mark.parametrize(
    ("domain", "split", "name", "count"),
    [("telecom", "test", "always_handoff", 12), ("telecom", "base", "always_handoff", 20),
     ("airline", "test", "do_nothing", 7), ("retail", "test", "do_nothing", 4)],
)  # fmt: skip
def test_floors_counted_from_the_tasks_are_those_that_were_measured(
    shared: Path, domain: str, split: str, name: str, count: int
) -> None:
    lines = (shared / "tau2" / domain / "tasks_text.jsonl").read_text().splitlines()
    tasks = [{"id": t["id"], "evaluation_criteria": t} for t in map(json.loads, lines) if split in t["splits"]]
    assert len(floors_tau2(tasks)[name].passed) == count


def test_infrastructure_errors_are_counted_three_ways(tmp_path: Path) -> None:
    found = read_tau2(
        results(tmp_path / "r.json", sim("a"), sim("b", 0.0), sim("c", None), sim("d", 0.0, skipped=True))
    )
    assert [round(e.value or 0, 3) for e in found.three_ways.values()] == [0.5, 0.25, 0.75]
    assert list(found.tries) == ["a", "b"]
    skipped = read_tau2(results(tmp_path / "s.json", sim("a", skipped=True)))
    assert (skipped.passes, skipped.tries, skipped.three_ways["as passes"].value) == (0, {}, 1.0)


def test_a_folder_of_the_newer_form_and_parts_of_one_run_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    (folder / "simulations").mkdir(parents=True)
    results(folder / "results.json")
    for name in ("a", "b"):
        (folder / "simulations" / f"{name}.json").write_text(json.dumps(sim(name)))
    assert len(read_tau2(folder).simulations) == 2
    parts = results(tmp_path / "1.json", sim("a")), results(tmp_path / "2.json", sim("b", 0.0))
    assert read_tau2(*parts).passes == 1


@pytest.mark.parametrize(
    ("sims", "match"),
    [
        ([sim("a", policy="x"), sim("b", policy="y")], "more than one configuration: the policy"),
        ([sim("a"), sim("b", seed=99)], "the seed of trial 0 is"),
        (
            [sim("a", messages=[{"role": "assistant", "raw_data": {"model": m}} for m in ("x", "y")])],
            r"the assistant's model is \['x', 'y'\]",
        ),
        ([sim("a"), sim("a")], "holds trial 0 of task 'a' more than once"),
        ([{"task_id": "a"}], r"'simulations\.0\.termination_reason' is not there"),
    ],
)
def test_what_is_no_single_run_is_refused(tmp_path: Path, sims: list[Any], match: str) -> None:
    with pytest.raises(InputError, match=match):
        read_tau2(results(tmp_path / "r.json", *sims))


def test_files_of_two_configurations_are_not_one_run(tmp_path: Path) -> None:
    one = results(tmp_path / "1.json", sim("a"))
    two = results(tmp_path / "2.json", sim("b"), agent_info={**INFO["agent_info"], "llm": "openai/b"})  # type: ignore[dict-item]
    with pytest.raises(InputError, match=r"has another configuration than .*\(agent\)"):
        read_tau2(one, two)
    other = results(tmp_path / "3.json", sim("a"), environment_info={"domain_name": "bank"})
    with pytest.raises(InputError, match="one run is of 'shop' and the other of 'bank'"):
        compare_tau2(read_tau2(one), read_tau2(other))


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ('{"info": {"a', r"is no whole JSON file \(.*line 1.*It may be cut off"),
        ("[]", "is no file of results"),
        ("{}", "is no file of results: 'info' is not there"),
        ('{"info": 3, "tasks": [], "simulations": []}', "'info' is 3"),
        ('{"info": {"agent_info": {}}, "tasks": [], "simulations": []}', r"'info\.user_info' is not there"),
        (
            '{"info": {"agent_info": {}, "user_info": {}, "environment_info": {}}, "tasks": [{}], "simulations": []}',
            r"'tasks\.0\.id' is not there",
        ),
        (json.dumps({"info": INFO, "tasks": [], "simulations": [3]}), r"'simulations\.0' is 3"),
        (json.dumps({"info": INFO, "tasks": [], "simulations": [sim("a", "1")]}), r"reward_info\.reward' is '1'"),
        (json.dumps({"info": INFO, "tasks": [], "simulations": [sim("a", messages=[3])]}), r"messages\.0' is 3"),
        ("[" * 100_000, "is no whole JSON file"),
    ],
)
def test_a_file_cut_in_half_is_refused(tmp_path: Path, text: str, match: str) -> None:
    path = tmp_path / "r.json"
    path.write_text(text)
    with pytest.raises(InputError, match=match):
        read_tau2(path)
    with pytest.raises(InputError, match="no file of results was given"):
        read_tau2()
    with pytest.raises(InputError, match=r"cannot be read: .*No such file"):
        read_tau2(tmp_path / "nowhere.json")
    if '"tasks": []' in text or text == "{}":
        with pytest.raises(InputError, match="holds no tasks of tau2-bench"):
            read_tasks(path)


def test_a_resumed_run_is_noted(tmp_path: Path) -> None:
    found = read_tau2(results(tmp_path / "r.json", sim("a"), sim("a", trial=1)))
    assert found.notes == ("the file says 1 trial(s) and holds 2: the run was resumed",)


def test_keys_are_taken_out(tmp_path: Path) -> None:
    agent = {**INFO["agent_info"], "llm_args": {"api_key": "sk-abcdefghijkl", "temperature": 0.0}}  # type: ignore[dict-item]
    path = results(
        tmp_path / "r.json",
        sim("a", messages=[{"role": "user", "content": "my key is hf_abcdefghijk"}]),
        agent_info=agent,
    )
    assert "a key stood in the file" in read_tau2(path).notes[0]
    done = CliRunner().invoke(main, ["tau2", "read", str(path), "--out", str(tmp_path / "clean.json"), "--json"])
    assert done.exit_code == 0, done.output
    clean = (tmp_path / "clean.json").read_text()
    assert "sk-" not in clean
    assert "hf_" not in clean
    assert json.loads(clean)["info"]["agent_info"]["llm_args"] == {"api_key": "***", "temperature": 0.0}
    agent["llm_args"]["api_key"] = "dummy_key"  # type: ignore[index]  # which the benchmark itself writes
    assert read_tau2(results(tmp_path / "d.json", sim("a"), agent_info=agent)).notes == ()
    assert scrub({"tokens": "5", "max_tokens": 7}) == {"tokens": "5", "max_tokens": 7}


def test_the_split_of_a_part_is_named_by_the_ids_given(tmp_path: Path) -> None:
    path = results(tmp_path / "r.json", sim("a"), sim("b"))
    (tmp_path / "splits.json").write_text('{"test": ["a", "b", "c"], "base": ["a", "b", "c", "d"]}')
    for command in (
        ["read", str(path), "--splits", str(tmp_path / "splits.json")],
        ["compare", str(path), str(path)],
        ["floors", str(path)],
    ):
        done = CliRunner().invoke(main, ["tau2", *command])
        assert done.exit_code == 0, done.output
        if command[0] == "read":
            assert "test (2 of 3 tasks)" in done.output
    path.write_text("{")
    assert CliRunner().invoke(main, ["tau2", "read", str(path)]).exit_code == 2


@pytest.mark.parametrize("content", ["[]", "3", '{"a": 3}', '{"a": [{}]}', '{"splits": {"a": [1]}}'])
def test_a_file_that_holds_no_splits_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "splits.json").write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match="holds no splits"):
        read_splits(tmp_path / "splits.json")
