"""Ledger: what became of every planned conversation, and what it cost.

planned = kept + dropped + failed + unjudged, always: a row that is missing from a run was
not played, and counts as failed. Unknown dollars are never zero.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from whilesim.chat.usage import Usage
from whilesim.core.errors import RunError
from whilesim.keeping.rows import ROLES, STATES, Row, State


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """Counts of rows by state, with reasons and usage."""

    planned: int
    kept: int = 0
    dropped: int = 0
    failed: int = 0
    unjudged: int = 0
    reasons: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """State to reason to rows: which rule kept or dropped, which failure, why unjudged."""
    usage: Mapping[str, Usage] = field(default_factory=dict)
    """Usage by role: agent, customer, judge."""

    def __post_init__(self) -> None:
        counted = self.kept + self.dropped + self.failed + self.unjudged
        if counted != self.planned:
            msg = (
                f"{self.planned} rows were planned and {counted} are accounted for. Rows stand twice "
                "or belong to another run: load each run folder once, and ws.concat them."
            )
            raise RunError(msg)

    @classmethod
    def build(
        cls,
        rows: Iterable[Row],
        *,
        planned: int | None = None,
        unjudged: Mapping[str, str] | None = None,
    ) -> Ledger:
        """Count rows.

        Args:
            rows: Each once.
            planned: How many there should be; None: as many as there are.
            unjudged: Row id to why its judge gave no verdict.
        """
        reasons: dict[State, Counter[str]] = {state: Counter() for state in STATES}
        usage = {role: Usage() for role in ROLES}
        for row in rows:
            reasons[row.state][_reason(row, unjudged or {})] += 1
            for role in ROLES:
                usage[role] += Usage(**getattr(row.usage, role).to_json())
        played = sum(sum(found.values()) for found in reasons.values())
        if planned is not None and planned > played:
            reasons["failed"]["not_played"] += planned - played
        counts = {state: sum(reasons[state].values()) for state in STATES}
        return cls(
            planned=max(planned or 0, played),
            **counts,
            reasons={s: dict(sorted(c.items(), key=lambda kv: (-kv[1], kv[0]))) for s, c in reasons.items()},
            usage=usage,
        )

    @property
    def usd(self) -> float | None:
        """Dollars of all calls, or None when the price of any is unknown."""
        return sum(self.usage.values(), Usage()).usd

    def to_json(self) -> dict[str, Any]:
        """Return the ledger as a JSON object."""
        counts = {name: getattr(self, name) for name in ("planned", *STATES)}
        reasons = {state: dict(found) for state, found in self.reasons.items()}
        usage = {role: used.to_json() for role, used in self.usage.items()}
        return {**counts, "reasons": reasons, "usage": usage, "usd": self.usd}

    def __str__(self) -> str:
        lines = [f"{'planned':<40}{self.planned:>8}"]
        for state in STATES:
            lines.append(f"{state:<40}{getattr(self, state):>8}")
            lines += [f"  {reason:<38}{n:>8}" for reason, n in self.reasons.get(state, {}).items()]
        unread = self.reasons.get("kept", {}).get("unopposed", 0)
        if unread:
            lines.append(f"nobody read {unread} of the {self.kept} kept rows: nothing was found against them")
        lines += [f"{role:<12}{_used(used)}" for role, used in self.usage.items() if used.calls]
        lines.append(f"{'cost':<12}{_dollars(self.usd)}")
        return "\n".join(lines)


def _reason(row: Row, unjudged: Mapping[str, str]) -> str:
    if row.state == "failed":
        failure = row.failure
        return row.stop if failure is None else f"{failure.role}:{failure.reason}"
    if row.verdict is None:
        return unjudged.get(row.id, "not graded")
    return row.verdict.rule


def _used(used: Usage) -> str:
    return f"{used.calls:,} calls, {used.tokens_in:,} tokens in, {used.tokens_out:,} out, {_dollars(used.usd)}"


def _dollars(usd: float | None) -> str:
    return "unknown: a model's price is not known" if usd is None else f"${usd:,.4f}"
