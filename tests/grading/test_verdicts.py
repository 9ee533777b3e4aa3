"""Findings first, then the oracle, then the judge; and what each makes of keep and reward."""

from __future__ import annotations

import pytest

from whilesim.grading.checks.findings import Finding
from whilesim.grading.judge import Judgement
from whilesim.grading.outcome import Violation
from whilesim.grading.rubric import Score, read_rubric
from whilesim.grading.verdicts import decide, oppose
from whilesim.world.oracle import Oracle

RUBRIC = read_rubric({"weights": {"policy": 0.6, "ux": 0.4}, "hard_fail_on_policy_violation": True})
DROP = Finding(check="policy_leak", message_index=2, quote="q", reason="it leaked")
WARN = Finding(check="text_with_tool_call", message_index=2, quote="q", reason="both", severity="warn")
WRONG = Violation(rule="end", reason="wrong end", message_index=4)
CLOSED, OPEN = Oracle(), Oracle(open=("Was it polite?",))


def judged(policy: float = 1.0, ux: float = 0.5, *, keep: bool = True, seen: str = "whole") -> Judgement:
    scores = {"policy": Score(score=policy, reason="p"), "ux": Score(score=ux, reason="u")}
    return Judgement(keep=keep, reason="fine", scores=scores, judge="m@1", policy_seen=seen)


@pytest.mark.parametrize(
    ("findings", "wrong", "judgement", "oracle", "keep", "reward", "rule"),
    [
        ([DROP], [WRONG], judged(), CLOSED, False, 0.0, "check:policy_leak"),
        ([WARN], [WRONG], judged(), CLOSED, False, 0.0, "oracle:end"),
        ([WARN], [], judged(), CLOSED, True, 0.8, "judge"),
        ([], [], judged(keep=False), OPEN, False, 0.8, "judge"),
        ([], [], judged(policy=0.49), OPEN, False, 0.0, "judge"),
        ([], [], judged(policy=0.49, keep=False), OPEN, False, 0.0, "judge"),
        ([], [], judged(policy=0.5, ux=0.0), OPEN, True, 0.3, "judge"),
        ([], [], None, CLOSED, True, 1.0, "unopposed"),
        ([WARN], [], None, OPEN, True, None, "unopposed"),
        ([], [], None, None, True, None, "unopposed"),
        ([DROP], [], None, None, False, 0.0, "check:policy_leak"),
    ],
)  # fmt: skip
def test_what_decides(
    findings: list[Finding], wrong: list[Violation], judgement: Judgement | None, oracle: Oracle | None,
    keep: bool, reward: float | None, rule: str,
) -> None:  # fmt: skip
    verdict = decide(findings, wrong, judgement, oracle, RUBRIC)
    assert (verdict.keep, verdict.rule) == (keep, rule)
    assert verdict.reward == (None if reward is None else pytest.approx(reward))
    assert verdict.judge == (None if judgement is None else "m@1")
    assert set(verdict.scores) == (set() if judgement is None else {"policy", "ux"})
    assert verdict.reason


def test_weights_never_make_the_keep() -> None:
    low = judged(policy=0.5, ux=0.0)
    assert decide([], [], low, OPEN, RUBRIC).keep
    assert not decide([], [], judged(1.0, 1.0, keep=False), OPEN, RUBRIC).keep


def test_a_hard_fail_says_which_criterion_and_why() -> None:
    assert decide([], [], judged(policy=0.2), OPEN, RUBRIC).reason == "Hard fail on policy (0.2): p"


def test_a_reader_of_the_verdict_learns_that_the_policy_was_not_shown_whole() -> None:
    verdict = decide([], [], judged(seen="only the policy's section 'Refunds'"), OPEN, RUBRIC)
    assert verdict.reason == "fine [The judge saw only the policy's section 'Refunds'.]"


def test_what_is_opposed_needs_no_judge() -> None:
    assert oppose([WARN], []) is None
    found = oppose([WARN, DROP], [WRONG])
    assert found is not None
    assert (found.keep, found.rule, found.reason) == (False, "check:policy_leak", "it leaked")
