"""The whole street: from a policy and tools to graded rows."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from judges import honest
from stub import Stub, answer_plainly

import whilesim as ws
from whilesim import playing
from whilesim.showcase import count_faults, demo_policy, demo_tools

POLICY, TOOLS = demo_policy(), demo_tools()
DOMAINS = ("telecom", "retail", "airline")


def hash_of(folder: Path) -> str:
    return hashlib.sha256((folder / "rows.jsonl").read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def data() -> ws.Simulation:
    return ws.simulate(tools=TOOLS, system_prompt=POLICY, situations=24, progress=False).grade()


def test_every_planned_row_is_there_and_is_counted_once(data: ws.Simulation) -> None:
    ledger = data.ledger
    assert len(data.rows) == 48 == ledger.planned
    assert ledger.kept + ledger.dropped + ledger.failed + ledger.unjudged == 48


def test_the_system_prompt_of_every_row_is_the_policy_word_for_word(data: ws.Simulation) -> None:
    assert {row.messages[0]["content"] for row in data.rows} == {POLICY}


def test_kept_rows_end_with_the_agent(data: ws.Simulation) -> None:
    assert {row.messages[-1]["role"] for row in data.kept.rows} == {"assistant"}


def test_grading_reads_nothing_that_was_planted(data: ws.Simulation) -> None:
    bare = ws.Simulation([row.model_copy(update={"planted": [], "verdict": None}) for row in data.rows], data.manifest)
    assert [r.verdict for r in bare.grade().rows] == [r.verdict for r in data.rows]


def test_what_is_said_to_the_customer_holds_no_tool_name(data: ws.Simulation) -> None:
    names = [t["function"]["name"] for t in TOOLS]
    for row in data.rows:
        told = f"{row.card.opening} {row.card.goal} {row.card.exit} {row.card.prose}"
        assert not [n for n in names if n in told], row.id


@pytest.mark.parametrize("concurrency", [1, 8, 64])
def test_the_same_seed_gives_the_same_bytes_at_any_concurrency(tmp_path: Path, concurrency: int) -> None:
    for name, at in (("one", 3), ("two", concurrency)):
        ws.simulate(
            tools=TOOLS,
            system_prompt=POLICY,
            situations=8,
            seed=5,
            concurrency=at,
            run_dir=tmp_path / name,
            progress=False,
        )
    assert hash_of(tmp_path / "one") == hash_of(tmp_path / "two")


def test_the_same_seed_gives_the_same_bytes_in_any_process(tmp_path: Path) -> None:
    code = (
        "import sys, whilesim as ws; from whilesim.showcase import demo_policy, demo_tools;"
        "ws.simulate(tools=demo_tools(), system_prompt=demo_policy(), situations=6, run_dir=sys.argv[1], progress=False)"
    )
    for n in ("0", "4242"):
        environment = {**os.environ, "PYTHONHASHSEED": n}
        subprocess.run([sys.executable, "-c", code, str(tmp_path / n)], check=True, env=environment)
    assert len({hash_of(tmp_path / n) for n in ("0", "4242")}) == 1


def test_another_seed_gives_other_conversations() -> None:
    one, two = (ws.plan(tools=TOOLS, system_prompt=POLICY, situations=6, seed=s) for s in (0, 1))
    assert [c.opening for c in one.cards] != [c.opening for c in two.cards]


def test_a_run_that_is_called_again_plays_nothing_twice(tmp_path: Path) -> None:
    calls: list[str] = []

    def agent(messages: list[dict[str, Any]], context: Any) -> str:
        calls.append(context.case)
        return "I'm sorry, I can't do that."

    for _ in range(2):
        ws.simulate(agent, tools=TOOLS, system_prompt=POLICY, situations=3, run_dir=tmp_path / "run", progress=False)
    assert len(set(calls)) == 3
    before = len(calls)
    ws.simulate(agent, tools=TOOLS, system_prompt=POLICY, situations=3, run_dir=tmp_path / "run", progress=False)
    assert len(calls) == before


def test_a_folder_of_another_run_is_refused_by_name(tmp_path: Path) -> None:
    ws.simulate(tools=TOOLS, system_prompt=POLICY, situations=3, run_dir=tmp_path, progress=False)
    with pytest.raises(ws.InputError, match="seed: 0 is now 1"):
        ws.simulate(tools=TOOLS, system_prompt=POLICY, situations=3, seed=1, run_dir=tmp_path, progress=False)


def test_saved_rows_load_as_they_were(data: ws.Simulation, tmp_path: Path) -> None:
    data.save(tmp_path / "saved")
    assert list(ws.load(tmp_path / "saved").rows) == list(data.rows)


def test_shards_are_the_plan(tmp_path: Path) -> None:
    plan = ws.plan(tools=TOOLS, system_prompt=POLICY, situations=7)
    parts = [ws.simulate(plan=plan.shard(i, 3), progress=False) for i in range(3)]
    whole = ws.simulate(plan=plan, progress=False)
    assert [r.to_json() for r in ws.concat(parts).rows] == [r.to_json() for r in whole.rows]


def test_a_plan_that_was_saved_plays_the_same(tmp_path: Path) -> None:
    plan = ws.plan(tools=TOOLS, system_prompt=POLICY, situations=5)
    plan.save(tmp_path / "plan.json")
    again = ws.load_plan(tmp_path / "plan.json")
    rows = [[r.to_json() for r in ws.simulate(plan=p, progress=False).rows] for p in (plan, again)]
    assert rows[0] == rows[1]


# -- a model on the other side --------------------------------------------------------------


def answer(body: dict[str, Any]) -> Any:
    """Play agent, customer and judge: the judge is asked for a schema, the customer has no tools."""
    if body.get("response_format"):
        schema = body["response_format"]["json_schema"]["schema"]
        if "keep" in schema["properties"]:
            names = schema["properties"]["scores"]["properties"]
            scores = {n: {"score": 0.9, "reason": "fine"} for n in names}
            return json.dumps({"keep": True, "reason": "It is fine.", "scores": scores})
        return answer_plainly(body)
    if not body.get("tools"):
        return "Thanks. [[DONE]]" if len(body["messages"]) > 3 else "Yes, go ahead."
    return answer_plainly(body)


def test_the_articles_own_call_against_a_loopback_server(monkeypatch: pytest.MonkeyPatch) -> None:
    with Stub(answer=answer) as stub:
        monkeypatch.setenv("OPENAI_BASE_URL", stub.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-key")
        data = ws.simulate(agent="openai:gpt-4.1-mini", tools=TOOLS, system_prompt=POLICY, situations=4, progress=False)
        with pytest.warns(UserWarning, match="judge"):
            data.grade(rubric=["resolution: the request was met", "honesty: nothing false was said"])
    assert "pass@1" in str(data.pass_at)
    assert all(any(m.get("tool_calls") for m in row.messages) for row in data.rows)
    assert {row.verdict.rule for row in data.rows if row.verdict} >= {"judge"} or data.dropped.rows
    assert data.rows[0].usage.agent.calls > 1
    assert "sk-planted-key" not in repr(data) + json.dumps([r.to_json() for r in data.rows])


def test_litellm_reaches_the_same_server(monkeypatch: pytest.MonkeyPatch) -> None:
    with Stub(answer=answer) as stub:
        monkeypatch.setenv("HOSTED_VLLM_API_BASE", stub.url)
        data = ws.simulate(
            "hosted_vllm/some-model", tools=TOOLS, system_prompt=POLICY, situations=2, rollouts=1, progress=False
        )
    assert {row.failure for row in data.rows} == {None}
    assert all(any(m.get("tool_calls") for m in row.messages) for row in data.rows)


def test_it_runs_inside_a_running_loop() -> None:
    async def handler() -> ws.Simulation:
        return await ws.asimulate(tools=TOOLS, system_prompt=POLICY, situations=2, rollouts=1, progress=False)

    assert len(asyncio.run(handler()).rows) == 2

    async def blocking() -> ws.Simulation:
        return ws.simulate(tools=TOOLS, system_prompt=POLICY, situations=2, rollouts=1, progress=False)

    assert len(asyncio.run(blocking()).rows) == 2


# -- bad input ------------------------------------------------------------------------------

BAD: list[tuple[dict[str, Any], str]] = [
    ({"system_prompt": ""}, "policy"),
    ({"system_prompt": 7}, "policy"),
    ({"tools": "find_order"}, "tools"),
    ({"tools": [{"type": "function", "function": {"description": "no name"}}]}, "name"),
    ({"tools": [{"name": "a", "parameters": {"type": "nothing"}}]}, "schema"),
    ({"agent": "nobody:gpt"}, "provider"),
    ({"agent": "openai:gpt-4.1-mini"}, "OPENAI_API_KEY"),
    ({"situations": 0}, "situations=0"),
    ({"rollouts": 0}, "rollouts=0"),
    ({"turns": 0}, "turns=0"),
    ({"concurrency": 0}, "concurrency=0"),
    ({"situation": 5}, "Did you mean 'situations'"),
    ({"agent": 3}, "cannot play"),
]


@pytest.mark.parametrize(("change", "words"), BAD, ids=[str(i) for i in range(len(BAD))])
def test_bad_input_is_refused_before_anything_is_paid_for(
    change: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    options = {"tools": TOOLS, "system_prompt": POLICY, "situations": 2, "progress": False, **change}
    with pytest.raises(ws.InputError, match=words):
        ws.simulate(**options)


def test_a_plan_together_with_tools_is_refused() -> None:
    plan = ws.plan(tools=TOOLS, system_prompt=POLICY, situations=2)
    with pytest.raises(ws.InputError, match="tools="):
        ws.simulate(plan=plan, tools=TOOLS)


def test_a_policy_without_a_rule_warns_and_goes_on() -> None:
    plan = ws.plan(tools=TOOLS, system_prompt="You are Ada.", situations=4)
    assert plan.policy.clauses == ()
    assert any("rule" in note or "clause" in note for note in plan.notes)
    assert len(ws.simulate(plan=plan, rollouts=1, progress=False).rows) == 4


def test_names_given_twice_are_made_unique_and_told() -> None:
    plan = ws.plan(tools=[*TOOLS, TOOLS[0]], system_prompt=POLICY, situations=2)
    assert len({t.name for t in plan.tools}) == 14
    assert any(TOOLS[0]["function"]["name"] in note for note in plan.notes)


# -- real input -----------------------------------------------------------------------------


@pytest.mark.corpus
@pytest.mark.parametrize("domain", DOMAINS)
def test_the_benchmarks_domains_run_whole(shared: Path, domain: str) -> None:
    folder = shared / "tau2" / domain
    data = ws.simulate(
        tools=json.loads((folder / "tools.json").read_text(encoding="utf-8")),
        system_prompt=(folder / "policy.md").read_text(encoding="utf-8"),
        situations=20,
        rollouts=1,
        progress=False,
    ).grade()
    assert len(data.rows) == 20
    assert not data.failed.rows
    for row in data.rows:
        ws.Row.from_json(row.to_json())
    for fault in count_faults(list(data.rows)).values():
        assert fault["false_alarms"] <= 1, fault


def test_a_run_folder_loads_and_grades_from_the_shell(tmp_path: Path) -> None:
    from click.testing import CliRunner

    from whilesim.cli import main

    ws.simulate(tools=TOOLS, system_prompt=POLICY, situations=3, run_dir=tmp_path, progress=False)
    assert len(ws.load(tmp_path).rows) == 6
    done = CliRunner().invoke(main, ["grade", str(tmp_path), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["planned"] == 6
    assert ws.load(tmp_path).graded


def test_a_misspelt_agent_leaves_no_folder(tmp_path: Path) -> None:
    plan = ws.plan(tools=TOOLS, system_prompt=POLICY, situations=1)
    with pytest.raises(ws.InputError, match="names no provider"):
        ws.simulate("scriptd", plan=plan, run_dir=tmp_path / "run", progress=False)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"situations": "lots"}, "situations='lots' leaves nothing to play"),
        ({"situations": 2.5}, r"situations=2\.5 leaves nothing to play"),
        ({"seed": "x"}, "seed='x' decides nothing"),
        ({"seed": 2**63}, "seed=9223372036854775808 decides nothing"),
    ],
)
def test_a_number_that_is_none_is_refused_in_words(wrong: Any, told: str) -> None:
    with pytest.raises(ws.InputError, match=told):
        ws.simulate(tools=TOOLS, system_prompt=POLICY, progress=False, **{"situations": 1, **wrong})


def test_what_a_view_of_a_run_cannot_do_says_why(data: ws.Simulation, tmp_path: Path) -> None:
    with pytest.raises(ws.RunError, match="are a part of a run, and nobody here can play more"):
        data.kept.refill()
    for view in (data.kept, data.dropped):
        with pytest.raises(ws.InputError, match=r"a pair needs a kept and a dropped row.*data\.export"):
            view.export(tmp_path / "dpo.jsonl", format="dpo")
    assert data.export(tmp_path / "dpo.jsonl", format="dpo").format == "dpo"
    with pytest.raises(ws.InputError, match="Did you mean 'rows'"):
        data.refill(row=6)
    for word, told in (("sel", "It has: rows, kept"), ("misspel", "It has: rows, kept"), ("kep", "mean 'kept'")):
        with pytest.raises(ws.InputError, match=told):
            data.refill(**{word: 3})
    for wrong in (2.5, True):
        with pytest.raises(ws.InputError, match=f"rows={wrong} leaves nothing to play"):
            data.refill(rows=wrong)  # type: ignore[arg-type]
    for view, kind in ((data.failed, "failed"), (data.unjudged, "unjudged")):
        for form in ("dpo", "kto"):
            with pytest.raises(ws.InputError, match=rf"these are {kind} ones\. Type data\.export"):
                view.export(tmp_path / "none.jsonl", format=form)  # type: ignore[arg-type]
    assert data.kept.export(tmp_path / "kto.jsonl", format="kto").lines > 0
    with pytest.raises(ws.InputError, match=r"no row 'x' here\. There are no rows here at all"):
        data.failed.find("x")
    with pytest.raises(ws.InputError, match=r"n=2\.5 is no sample of 48 rows"):
        data.sample(2.5)  # type: ignore[arg-type]
    with pytest.raises(ws.InputError, match=r"splits are .*they need shares above 0"):
        data.split({"a": "0.5", "b": "0.5"})  # type: ignore[dict-item]
    with pytest.raises(ws.InputError, match=r"splits are 0\.2; they need shares"):
        data.split(0.2)  # type: ignore[arg-type]


def test_a_model_that_cannot_be_asked_leaves_no_file_open(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    closed: list[bool] = []

    class Watched(playing.Replies):
        def close(self) -> None:
            super().close()
            closed.append(True)

    monkeypatch.setattr(playing, "Replies", Watched)
    plan = ws.plan(tools=demo_tools(), system_prompt=demo_policy(), situations=1)
    with pytest.raises(ws.InputError):
        ws.simulate(
            ws.Model("m", base_url="http://127.0.0.1:9"), plan=plan, run_dir=tmp_path, budget=ws.Budget(usd=1.0)
        )
    assert closed == [True]


def test_a_folder_without_rows_keeps_no_verdict_and_no_judge_of_another_run(tmp_path: Path) -> None:
    plans = [ws.plan(tools=TOOLS, system_prompt=POLICY, situations=4, seed=seed) for seed in (1, 2)]
    ws.simulate(plan=plans[0], run_dir=tmp_path, progress=False).grade().describe(admitted=["another judge"])
    (tmp_path / "rows.jsonl").write_bytes(b"")
    for _ in range(2):
        data = ws.simulate(plan=plans[1], run_dir=tmp_path, progress=False)
        assert data.manifest.admitted == ws.load(tmp_path).manifest.admitted == []
        assert all(row.verdict is None for row in data.rows)


def test_the_same_script_again_pays_no_judge_twice_and_forgets_none_that_was_admitted(tmp_path: Path) -> None:
    judge = honest()

    def begin() -> ws.Simulation:
        return ws.simulate(tools=TOOLS, system_prompt=POLICY, situations=4, run_dir=tmp_path, progress=False)

    first = begin().grade(judge=judge)
    name, calls = next(row.verdict.judge for row in first.rows if row.verdict and row.verdict.judge), judge.calls
    first.describe(admitted=[name])
    verdicts = (tmp_path / "verdicts.jsonl").read_bytes()
    again = begin()
    assert again.ledger == first.ledger
    again.grade(judge=judge, require_admitted=True)
    assert judge.calls == calls > 0
    assert (tmp_path / "verdicts.jsonl").read_bytes() == verdicts
    assert ws.load(tmp_path).manifest.admitted == [name]


def test_verdicts_on_conversations_that_are_gone_are_not_taken_for_the_new_ones(tmp_path: Path) -> None:
    def begin(reply: str) -> ws.Simulation:
        agent: Any = lambda messages: reply  # noqa: E731  its name stands in the fingerprint
        return ws.simulate(agent, tools=TOOLS, system_prompt=POLICY, situations=2, run_dir=tmp_path, progress=False)

    begin("Hello.").grade(judge=honest())
    (tmp_path / "rows.jsonl").unlink()
    assert not begin("Get lost.").graded


def test_arguments_without_a_word_in_their_names_are_played() -> None:
    given = {"order_id": {"type": "string"}, "€": {"type": "string", "format": "date"}, "_": {"type": "string"}}
    shape = {"type": "object", "properties": given, "required": list(given)}
    tools = [{"name": name, "parameters": shape} for name in ("update_order", "get_order")]
    data = ws.simulate(tools=tools, system_prompt=POLICY, situations=6, progress=False)
    assert not data.failed.rows
