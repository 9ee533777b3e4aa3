"""Verdicts: findings, oracle and judge put together, and which of them decided."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One criterion's score, 0 to 1, with the judge's reason."""

    score: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Keep or drop, and why."""

    keep: bool
    reward: float | None
    scores: Mapping[str, Score] = field(default_factory=dict)
    reason: str
    rule: str
    """What decided: ``check:<name>``, ``oracle:<what>``, ``judge``, or ``unopposed``."""
    judge: str | None = None
    """Model and prompt digest of the judge that read it, None when nobody did."""
