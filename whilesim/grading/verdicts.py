"""Verdicts: findings, oracle and judge put together, and which of them decided.

The order is fixed: what a rule found, then what the oracle forbids, then the judge. Weights
make the reward, never the keep.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from whilesim.grading.checks.findings import Finding
from whilesim.grading.judge import Judgement
from whilesim.grading.outcome import Violation
from whilesim.grading.rubric import Rubric, Score
from whilesim.world.oracle import Oracle


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Keep or drop, and why."""

    keep: bool
    reward: float | None
    """0 to 1; None where nobody read the row and its oracle leaves something open."""
    scores: Mapping[str, Score] = field(default_factory=dict)
    reason: str
    rule: str
    """What decided: ``check:<name>``, ``oracle:<what>``, ``judge``, or ``unopposed``."""
    judge: str | None = None
    """Model and prompt digest of the judge that read it, None when nobody did."""


def oppose(findings: Sequence[Finding], violations: Sequence[Violation]) -> Verdict | None:
    """Return the verdict that findings or oracle force, or None where the judge may still speak.

    A finding of severity ``warn`` opposes nothing. The first of several decides.
    """
    against = [(f"check:{f.check}", f.reason) for f in findings if f.severity == "drop"]
    against += [(f"oracle:{v.rule}", v.reason) for v in violations]
    return Verdict(keep=False, reward=0.0, reason=against[0][1], rule=against[0][0]) if against else None


def decide(
    findings: Sequence[Finding],
    violations: Sequence[Violation],
    judgement: Judgement | None,
    oracle: Oracle | None,
    rubric: Rubric,
) -> Verdict:
    """Decide on one conversation that was played to its end.

    Args:
        findings: As the checks gave them, severities already as the user wants them.
        violations: As :func:`whilesim.grading.outcome.violations` gave them.
        judgement: The judge's reading; None when no judge was asked for. A row whose judge
            could not be read is unjudged: do not call this for it.
        oracle: Of the situation; None where there is none, and then nothing is known to be closed.
        rubric: The one the judge was asked.

    Returns:
        The verdict. Its reward is 0.0 for a drop finding, a violation or a hard fail; else the
        weighted mean of the criteria; without a judge 1.0 when the oracle leaves nothing open,
        else None.
    """
    opposed = oppose(findings, violations)
    if judgement is None:
        closed = oracle is not None and not oracle.open
        reason = "Nothing was found against it, and nobody read it."
        return opposed or Verdict(keep=True, reward=1.0 if closed else None, reason=reason, rule="unopposed")
    scores, reason = judgement.scores, judgement.reason
    if opposed is not None:
        return replace(opposed, scores=scores, judge=judgement.judge)
    failed = rubric.hard_fails(scores)
    if failed and judgement.keep:
        reason = f"Hard fail on {failed[0]} ({scores[failed[0]].score:g}): {scores[failed[0]].reason}"
    if judgement.policy_seen != "whole":
        reason += f" [The judge saw {judgement.policy_seen}.]"
    reward = 0.0 if failed else rubric.reward(scores)
    keep = judgement.keep and not failed
    return Verdict(keep=keep, reward=reward, scores=scores, reason=reason, rule="judge", judge=judgement.judge)
