"""Gate: red for a policy regression, in Python, in pytest and from the shell."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from shop import STARTER, careless_agent, shop_agent, ticket

import whilesim as ws
from whilesim.cli import main
from whilesim.core.errors import GateFailed, InputError
from whilesim.evals.gate import hold, write_junit, write_summary
from whilesim.evals.plugin import _play

QUIET = ws.EvalOptions(floors=False, progress=False)
UNVERIFIED = {"order_id": "84920", "verified": False}
TOOLS = STARTER / "tools.json"


def result(agent: Any = shop_agent, count: int = 3, **changes: Any) -> Any:
    return ws.evaluate(agent, [ticket(n + 1, **changes) for n in range(count)], options=QUIET)


def calls_and_speaks(user_message: str, context: Any, trace: Any) -> str:
    for name in ("lookup_order", "cancel_order"):
        context.call(name, {"order_id": "84920"})
    return "Your order is cancelled."


def test_a_good_run_passes_and_prints_the_resolution() -> None:
    report = ws.gate(result())
    assert report.passed
    assert "resolution" in str(report)


def test_a_gate_that_asks_no_resolution_names_the_one_found_beside_the_best_floor_s(tmp_path: Path) -> None:
    told = [ticket(1), ticket(2, expected_tools=["transfer_to_human"], expected_final_state={}, handoff=True)]
    with pytest.warns(UserWarning, match="always_handoff passes 1 of 2"):
        lazy = ws.evaluate("do_nothing", told, options=ws.EvalOptions(progress=False, run_dir=tmp_path))
    line = "resolution   0.00 [0.00..0.66], not asked; always_handoff 0.50"
    assert ws.gate(lazy).lines[1] == line
    with pytest.raises(GateFailed, match=r"policy       1\.00 .*, not asked\n.*resolution   0\.00 .* against 0\.5"):
        ws.gate(lazy, policy=None, resolution=0.5)
    done = shell("gate", str(tmp_path))
    assert done.exit_code == 0
    assert f"gate passed\n  policy       1.00 [0.34..1.00] against 1: holds for every ticket\n  {line}\n" in done.output
    found = json.loads(shell("gate", str(tmp_path), "--json").output)
    assert (found["passed"], found["lines"][1]) == (True, line)
    run = found["run"]
    assert (run["scores"]["resolution"]["value"], run["floors"]["always_handoff"]["resolution"]) == (0, 0.5)
    careless = result(careless_agent, customer_context=UNVERIFIED)  # without floors
    with pytest.raises(GateFailed, match=r"gate failed\n.*\n  resolution   1\.00 .*, not asked\n"):
        ws.gate(careless)


def test_one_violation_fails_and_names_ticket_and_reason() -> None:
    with pytest.raises(
        GateFailed,
        match=r"CS-001 .*policy 0: refund_without_verification: issue_refund was called, and verified is not True",
    ):
        ws.gate(result(careless_agent, customer_context=UNVERIFIED))


def sometimes(user_message: str, context: Any, trace: Any) -> Any:
    solved = int(trace.case_id[-1]) % 2
    return shop_agent(user_message, context, trace) if solved else {"final_state": {}, "reply": "No."}


@pytest.mark.parametrize(("undecided", "passes"), [("estimate", False), ("fail", False), ("pass", True)])
def test_a_threshold_inside_the_interval_is_undecided(undecided: Any, passes: bool) -> None:
    report = hold(result(sometimes, 4), resolution=0.8, undecided=undecided)
    assert report.passed is passes
    assert "undecided, the interval holds it" in str(report)
    assert ("CS-002" in report.reasons) is not passes


def test_a_threshold_that_cannot_be_missed_needs_no_interval() -> None:
    alone = ws.evaluate(shop_agent, [ticket(1)], trials=3, options=QUIET)
    assert hold(alone, policy=None, passed=0.0, undecided="fail").passed
    assert not hold(alone, policy=None, passed=0.5, undecided="fail").passed


def test_a_threshold_outside_the_interval_is_decided() -> None:
    assert not hold(result(sometimes, 2, expected_final_state={"x": 1}), resolution=0.9).passed
    assert hold(result(shop_agent, 9), resolution=0.5).passed
    assert not hold(result(sometimes, 4), resolution=1.0).passed
    assert hold(result(expected_final_state={}), resolution=1.0).passed
    assert not hold(result(expected_final_state={}), resolution=0.5).passed


@pytest.mark.parametrize(
    ("more", "match"),
    [({"policy": 2}, "policy=2 is no threshold"), ({"undecided": "maybe"}, "undecided='maybe' is no way to decide")],
)
def test_a_threshold_that_is_none_is_refused(more: Any, match: str) -> None:
    with pytest.raises(InputError, match=match):
        ws.gate(result(count=1), **more)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"expected_final_state": {"ordre": {"84920": {"status": "cancelled"}}}}, "the final state holds no 'ordre'"),
        (
            {"expected_final_state": {}, "expected_tools": [], "must_not_do": []},
            "the ticket expects no tools, no final state and no hand-off, and names no rule",
        ),
    ],
)
def test_a_ticket_that_decides_nothing_fails_the_gate(changes: dict[str, Any], why: str) -> None:
    called = ws.evaluate(calls_and_speaks, [ticket(1, **changes), ticket(2)], tools=TOOLS, options=QUIET)
    report = hold(called)
    assert not report.passed
    assert {i: reason.split(". ")[0] for i, reason in report.reasons.items()} == {
        "CS-001": f"could not be decided: {why}"
    }


def test_a_share_of_tickets_to_pass_can_be_asked_and_a_trivial_agent_that_reaches_it_is_named(tmp_path: Path) -> None:
    told = [ticket(1), ticket(2, expected_tools=["transfer_to_human"], expected_final_state={}, handoff=True)]
    with pytest.warns(UserWarning, match="always_handoff passes 1 of 2"):
        lazy = ws.evaluate("do_nothing", told, options=ws.EvalOptions(progress=False, run_dir=tmp_path))
    lines = ws.gate(lazy, resolution=0.0).lines
    assert lines[1].endswith("against 0: above it; always_handoff reaches it too, with 0.50")
    assert lines[2] == "passed       0.00 [0.00..0.66], not asked; no ticket passed; always_handoff 0.50"
    report = hold(lazy, passed=1.0)
    assert report.lines[2].endswith("against 1: 2 trials are below it; no ticket passed")
    alone = hold(ws.evaluate("do_nothing", told[:1], options=ws.EvalOptions(progress=False)), passed=1.0)
    assert alone.lines[2].endswith("against 1: 1 trial is below it; no ticket passed")
    assert report.reasons["CS-001"].startswith("resolution 0: order_status is ")
    assert report.reasons["CS-001"].endswith("; tool_accuracy 0: lookup_order, cancel_order not called")
    assert hold(result(), passed=1.0).passed
    assert "reaches" not in str(hold(lazy, resolution=0.9))
    assert shell("gate", str(tmp_path), "--min-passed", "0.4").exit_code == 1
    assert "1.5 is not in the range 0<=x<=1" in shell("gate", str(tmp_path), "--min-passed", "1.5").output


def test_a_runs_folder_is_held_as_it_was_played_and_whole(tmp_path: Path) -> None:
    ws.evaluate(
        shop_agent, [ticket(1), ticket(2)], options=ws.EvalOptions(floors=False, progress=False, run_dir=tmp_path)
    )
    refused = shell("gate", str(tmp_path), "--agent", "do_nothing", "--trials", "3", "--min-policy", "1")
    assert refused.exit_code == 2
    assert "played already, so nothing would read --agent, --trials." in refused.output
    traces = tmp_path / "traces.jsonl"
    traces.write_text(traces.read_text().splitlines()[0] + "\n")
    cut = shell("gate", str(tmp_path))
    assert cut.exit_code == 2
    assert "are not those that its scores.json counts: it was cut, or changed. Evaluate again" in cut.output


def test_ci_gets_junit_and_a_summary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = result(careless_agent, user_message="hi \x00 <b>|</b>", customer_context=UNVERIFIED)
    report = hold(found)
    write_junit(found, report, tmp_path / "junit.xml")
    suite = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert suite.attrib["failures"] == "3"
    assert [c.attrib["name"] for c in suite] == ["CS-001", "CS-002", "CS-003"]
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    write_summary(found, report)
    assert "| CS-002 | policy 0: refund_without_verification" in (tmp_path / "summary.md").read_text(encoding="utf-8")


def test_what_xml_and_tables_cannot_hold_is_left_out_of_an_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = ws.evaluate(careless_agent, [ticket(ticket_id="a|\x01b", customer_context=UNVERIFIED)], options=QUIET)
    write_junit(found, hold(found), tmp_path / "junit.xml")
    assert ElementTree.parse(tmp_path / "junit.xml").getroot()[0].attrib["name"] == "a|b"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    write_summary(found, hold(found))
    assert "| a\\|\x01b |" in (tmp_path / "summary.md").read_text(encoding="utf-8")


SCRIPT = "from shop import {name} as agent\n"


def shell(*arguments: str) -> Any:
    return CliRunner().invoke(main, list(arguments))


def test_the_workflows_command_ends_with_1_on_a_regression(tmp_path: Path, suite: Path) -> None:
    script = tmp_path / "my_agent.py"
    script.write_text(SCRIPT.format(name="shop_agent"))
    good = shell(
        "gate", str(suite), "--agent", f"{script}:agent", "--no-floors", "--run-dir", str(tmp_path / "results")
    )
    assert good.exit_code == 0, good.output
    assert {p.name for p in (tmp_path / "results").iterdir()} == {"traces.jsonl", "scores.json"}
    suite.write_text(suite.read_text().replace('"verified": true', '"verified": false'))
    script.write_text(SCRIPT.format(name="careless_agent"))
    bad = shell("gate", str(suite), "--agent", f"{script}:agent", "--junit", str(tmp_path / "new" / "j.xml"), "--json")
    assert bad.exit_code == 1, bad.output
    assert '"passed": false' in bad.output
    assert (tmp_path / "new" / "j.xml").is_file()
    assert shell("gate", str(tmp_path / "results")).exit_code == 0
    assert shell("gate", str(tmp_path / "nowhere.jsonl")).exit_code == 2
    assert shell("eval").exit_code == 2
    assert shell("compare", str(tmp_path / "results")).exit_code == 2
    told = shell("compare", str(tmp_path / "results"), str(tmp_path / "results"), "--json")
    assert json.loads(told.output)["p"] == 1.0


def run_pytest(folder: Path, *arguments: str) -> int:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # nothing but ours, and a third of the time
        given = ["-p", "whilesim.evals.plugin", "-p", "no:cacheprovider", f"--rootdir={folder}", "-v"]
        return int(pytest.main([*given, *arguments]))


def test_pytest_has_one_test_per_ticket_and_goes_red(
    tmp_path: Path, suite: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [json.loads(line) for line in suite.read_text().splitlines()]
    lines[1]["customer_context"]["verified"] = False
    suite.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "my_agent.py").write_text("from shop import careless_agent as agent\n")
    given = ["--whilesim-suite", str(suite), "--whilesim-agent", "my_agent.py:agent"]
    assert run_pytest(tmp_path, *given) == 1
    told = capsys.readouterr().out
    assert "2 passed" in told
    assert "CS-002 FAILED" in told
    assert "refund_without_verification: issue_refund was called" in told
    assert run_pytest(tmp_path, *given, "-k", "CS-001", "-m", "whilesim", "--whilesim-resolution", "0.5") == 0
    assert "1 passed, 2 deselected" in capsys.readouterr().out


def test_what_spoils_every_ticket_is_told_without_a_traceback_and_tried_once(
    tmp_path: Path, suite: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "none.py").write_text("open('loaded', 'a').write('x')\n")
    assert run_pytest(tmp_path, "--whilesim-suite", str(suite), "--whilesim-agent", "none.py:agent") == 1
    told = capsys.readouterr().out
    assert "3 failed" in told
    assert "the agent 'none.py:agent' cannot be loaded: none.py holds no 'agent'" in told
    assert "Traceback" not in told
    assert "load_agent" not in told
    assert (tmp_path / "loaded").read_text() == "x"


def test_pytest_can_ask_that_each_ticket_is_passed(
    tmp_path: Path, suite: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    given = ["--whilesim-suite", str(suite), "--whilesim-agent", "do_nothing"]
    assert run_pytest(tmp_path, *given) == 0
    assert run_pytest(tmp_path, *given, "--whilesim-passed") == 1
    assert "tool_accuracy 0: lookup_order, cancel_order not called" in capsys.readouterr().out


def test_what_an_agent_prints_does_not_spoil_the_json(tmp_path: Path, suite: Path) -> None:
    script = tmp_path / "loud.py"
    script.write_text(
        "print('LOADED')\nfrom shop import shop_agent\ndef agent(user_message, context, trace):\n"
        "    print('ASKED')\n    return shop_agent(user_message, context, trace)\n"
    )
    told = shell("gate", str(suite), "--agent", f"{script}:agent", "--no-floors", "--json")
    assert json.loads(told.stdout)["passed"] is True
    assert "LOADED\nASKED\n" in told.stderr


GRAPH = """
class Graph:  # it runs tools of its own, so nobody here sees what became of the order
    def invoke(self, given):
        call = {"id": "t", "type": "function", "function": {"name": "lookup_order", "arguments": "{}"}}
        new = [{"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "t", "content": "{}"}]
        return {"messages": [*given["messages"], *new, {"role": "assistant", "content": "Done."}]}
"""


def test_a_resolution_that_nobody_can_tell_does_not_pass_as_one(tmp_path: Path) -> None:
    (tmp_path / "graph.py").write_text(GRAPH + "graph = Graph()\n")
    given = {"policy": None, "tools": None, "rubric": None, "judge": None, "trials": 1}
    given["agent"] = f"{tmp_path / 'graph.py'}:graph"
    suite = [ticket(1), ticket(2, expected_final_state={})]
    asked = SimpleNamespace(
        **{f"whilesim_{n}": v for n, v in {**given, "suite": suite, "resolution": 0.5, "passed": False}.items()}
    )
    assert _play(asked) == {"CS-001": "resolution could not be scored: nobody reported a final state"}


def test_retries_are_refused_unless_asked_for(
    tmp_path: Path, suite: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "retrying.py").write_text("def pytest_addoption(parser):\n    parser.addoption('--reruns', type=int)\n")
    given = ["-p", "retrying", "--reruns", "2", "--whilesim-suite", str(suite), "--collect-only"]
    assert run_pytest(tmp_path, *given) == 4
    assert "--reruns tries failed tickets again" in capsys.readouterr().err
    assert run_pytest(tmp_path, *given, "--whilesim-allow-retries") == 0
    assert run_pytest(tmp_path, "--whilesim-suite", "nowhere.jsonl") == 4
    assert "there is no file 'nowhere.jsonl'" in capsys.readouterr().err


def test_more_trials_of_the_same_tickets_do_not_narrow_what_is_known_of_others() -> None:
    def moody(user_message: str, context: Any, trace: Any) -> Any:
        return (
            sometimes(user_message, context, trace)
            if trace.case_id == "CS-002"
            else shop_agent(user_message, context, trace)
        )

    told = [ticket(n + 1) for n in range(10)]
    once, often = (ws.evaluate(moody, told, trials=trials, options=QUIET) for trials in (1, 20))
    assert (once.passed.value, often.passed.value) == (0.9, 0.9)
    assert often.passed.low is not None
    assert often.passed.low <= 0.7
    for run in (once, often):
        assert not hold(run, passed=0.8, undecided="fail").passed
    alone = ws.evaluate(shop_agent, told[:1], trials=20, options=QUIET)
    assert "no interval holds it: fail decides, fail" in str(hold(alone, passed=0.9, undecided="fail"))


def test_a_weak_suite_is_named_once_in_a_shell(tmp_path: Path) -> None:
    path = tmp_path / "tickets.jsonl"
    held = ticket(1, expected_tools=[], expected_final_state={}, handoff=False)
    path.write_text(json.dumps(held if isinstance(held, dict) else held.to_json()), encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        told = shell("eval", str(path))
    assert told.exit_code == 0, told.output
    assert told.output.count("so they tell little: CS-001") == told.output.count("weak suite") > 0
    for command in ("eval", "floors"):
        with pytest.warns(UserWarning, match="so they tell little: CS-001"):  # JSON holds numbers, and no word of it
            shell(command, str(path), "--json")


@pytest.mark.parametrize(
    ("option", "held"), [("--rubric", b"\xff\xfe\x00"), ("--policy", b"\xff\xfe"), ("--policy", b" \n")]
)
def test_a_file_that_holds_no_text_is_named(option: str, held: bytes, tmp_path: Path, suite: Path) -> None:
    path = tmp_path / "given"
    path.write_bytes(held)
    told = shell("eval", str(suite), option, str(path))
    assert (told.exit_code, str(path) in told.output) == (2, True), told.output
