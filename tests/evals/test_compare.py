"""Compare: paired where it can be, and honest about few tickets."""

from __future__ import annotations

from typing import Any

import pytest
from shop import shop_agent, ticket

import whilesim as ws
from whilesim.core.errors import InputError
from whilesim.evals.compare import compare_tries, tell_history


def tries(passes: int, n: int, each: int = 1) -> dict[str, list[bool]]:
    return {f"t{i}": [i < passes] * each for i in range(n)}


@pytest.mark.parametrize(("a", "b", "p"), [(12, 2, 0.0064), (12, 7, 0.293), (7, 2, 0.154)])
def test_single_trials_are_told_by_fisher(a: int, b: int, p: float) -> None:
    change = compare_tries(tries(a, 40), tries(b, 40))
    assert change.p == pytest.approx(p, abs=5e-4)
    assert change.test.startswith("Fisher")
    assert change.paired.n == a - b
    assert len(change.regressions) == a - b


def test_several_trials_are_paired_by_task() -> None:
    before = {f"t{i}": [True, i % 2 == 0] for i in range(8)}
    change = compare_tries(before, {i: [True, True] for i in before})
    assert change.test == "permutation of tasks, exact"
    assert change.p == pytest.approx(2 / 2**4)
    assert change.improvements == ("t7", "t5", "t3", "t1")


def test_few_tickets_are_said_first_to_be_too_few() -> None:
    change = compare_tries(tries(3, 10), tries(2, 10))
    assert change.underpowered
    assert str(change).startswith("underpowered: 10 tasks cannot tell these two apart")
    assert "0.30 and 0.20 take 294 per arm" in str(change)
    assert not compare_tries(tries(40, 40), tries(2, 40)).underpowered


def test_two_runs_list_regressions_by_ticket_and_tag() -> None:
    def worse(user_message: str, context: Any, trace: Any) -> Any:
        return {"final_state": {}} if trace.case_id == "CS-002" else shop_agent(user_message, context, trace)

    suite = [ticket(1, tags=["a"]), ticket(2, tags=["b"]), ticket(3, tags=["b"], handoff=False)]
    quiet = ws.EvalOptions(floors=False, progress=False)
    before, after = (ws.evaluate(agent, suite, options=quiet) for agent in (shop_agent, worse))
    change = ws.compare(before, after)
    assert change.regressions == ("CS-002",)
    assert change.tags["b"].after == 0.5
    assert (change.tags["hand-off open"].tasks, change.tags["hand-off not wanted"].tasks) == (2, 1)
    assert change.notes == ()
    other = ws.evaluate(shop_agent, suite, rubric={"policy": 1.0}, options=quiet)
    assert ws.compare(before, other).notes == ("rubric",)
    assert "not the same: rubric" in str(ws.compare(before, other))
    with pytest.raises(InputError, match="no task in common"):
        ws.compare(before, ws.evaluate(shop_agent, [ticket(9)], options=quiet))


def test_runs_over_time_are_a_table() -> None:
    run = {
        "date": "2026-03-02T03:00:00",
        "run_id": "abc",
        "commit": "0123456789",
        "agent": "mine",
        "passed": {"value": 0.5},
    }
    table = tell_history([{**run, "scores": {"policy": {"value": 1.0}}}, {**run, "scores": {"ux": {"value": None}}}])
    assert [line.split()[-2:] for line in table.splitlines()] == [["policy", "ux"], ["1.00", "n/a"], ["n/a", "n/a"]]
