"""Ledger: what became of every planned conversation, what it cost, and how often it passed.

planned = kept + dropped + failed + unjudged, always: a row that is missing from a run was
not played, and counts as failed. Unknown dollars are never zero.

A pass is a kept row. Counted are the rows of the first wave, since later ones were played
where the first had holes; a conversation that its customer spoiled says nothing about the
agent and is left out, and so is one that failed or that nobody judged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import starmap
from typing import Any

from whilesim.chat.messages import read_messages
from whilesim.chat.usage import Usage
from whilesim.core.stats import PassAt, pass_at
from whilesim.core.text import shorten
from whilesim.grading.outcome import HandoffTable, handoff_table, read_handoff
from whilesim.keeping.rows import ROLES, STATES, Row, State
from whilesim.situations.tools import Tool
from whilesim.world.oracle import Oracle

CUSTOMER_CHECKS = frozenset({"customer_leak", "ended_early", "invented_goal", "broke_persona"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """Counts of rows by state, with reasons and usage."""

    planned: int
    kept: int
    dropped: int
    failed: int
    unjudged: int
    reasons: Mapping[State, Mapping[str, int]]
    """State to reason to rows: which rule kept or dropped, which failure, why unjudged."""
    usage: Mapping[str, Usage] = field(default_factory=dict)
    """Usage by role: agent, customer, judge."""

    @classmethod
    def build(cls, rows: Iterable[Row], *, planned: int | None = None, why: Mapping[str, str] | None = None) -> Ledger:
        """Count rows.

        Args:
            rows: Each once.
            planned: How many there should be; None: as many as there are.
            why: Id of an unjudged row to why its judge gave no verdict.
        """
        reasons: dict[State, Counter[str]] = {state: Counter() for state in STATES}
        usage = {role: Usage() for role in ROLES}
        for row in rows:
            reasons[row.state][_reason(row, why or {})] += 1
            for role in ROLES:
                usage[role] += getattr(row.usage, role)
        played = sum(found.total() for found in reasons.values())
        if planned is not None and planned > played:
            reasons["failed"]["not_played"] += planned - played
        counts = {state: sum(found.values()) for state, found in reasons.items()}
        ranked = {s: dict(sorted(c.items(), key=lambda each: (-each[1], each[0]))) for s, c in reasons.items()}
        return cls(planned=sum(counts.values()), **counts, reasons=ranked, usage=usage)

    @property
    def usd(self) -> float | None:
        """Dollars of all calls, or None when the price of any is unknown."""
        return sum(self.usage.values(), Usage()).usd

    def to_json(self) -> dict[str, Any]:
        """Return the ledger as a JSON object."""
        counts = {name: getattr(self, name) for name in ("planned", *STATES)}
        usage = {role: used.to_json() for role, used in self.usage.items()}
        return {**counts, "reasons": self.reasons, "usage": usage, "usd": self.usd}

    def __str__(self) -> str:
        lines = [f"{'planned':<40}{self.planned:>8}"]
        for state in STATES:
            lines.append(f"{state:<40}{getattr(self, state):>8}")
            lines += [f"  {reason:<38}{n:>8}" for reason, n in self.reasons[state].items()]
        if unread := self.reasons["kept"].get("unopposed"):
            lines.append(f"nobody read {unread} of the {self.kept} kept rows: nothing was found against them")
        return "\n".join([*lines, *tell_usage(self.usage)])

    __repr__ = __str__  # a notebook shows the value of a cell


def tell_usage(usage: Mapping[str, Usage], width: int = 12) -> list[str]:
    """Return a line for each role whose model was called, and what all cost."""
    lines = list[str]()
    for role, used in ((role, used) for role, used in usage.items() if used.calls):
        tokens = f"{used.tokens_in:,} tokens in, {used.tokens_out:,} out"
        lines.append(f"{role:<{width}}{used.calls:,} calls, {tokens}, {_dollars(used.usd)}")
    return [*lines, f"{'cost':<{width}}{_dollars(sum(usage.values(), Usage()).usd)}"]


def summarise(rows: Iterable[Row], ledger: Ledger, *, graded: bool) -> str:
    """Say in a few lines what became of the rows; where all failed, from which causes."""
    if graded:
        counts = ", ".join(f"{getattr(ledger, state)} {state}" for state in STATES)
    else:
        counts = f"{ledger.unjudged} played, {ledger.failed} failed, not graded yet (data.grade())"
    lines = [f"Simulation of {ledger.planned} rows: {counts}"]
    for state in STATES[1:] if graded else ("failed",):
        if reasons := [f"{n} {reason}" for reason, n in ledger.reasons[state].items()]:
            lines.append(f"  {state}: {', '.join(reasons[:5])}{', ...' if len(reasons) > 5 else ''}")
    if ledger.failed == ledger.planned:
        causes = Counter(row.failure.message for row in rows if row.failure)
        lines += [f"  {n} times: {shorten(cause, 200)}" for cause, n in causes.most_common(3)]
    return "\n".join(lines)


def count_passes(rows: Iterable[Row], seed: int = 0) -> PassAt:
    """Summarise graded rows by pass@k and pass^k over cards; twins are resampled together."""
    groups, tried, passed = dict[str, str](), Counter[str](), Counter[str]()
    for row in (row for row in rows if not row.wave):
        groups[row.card_id] = row.twin_of or row.card_id
        if row.state in ("kept", "dropped") and not is_spoiled(row):
            tried[row.card_id] += 1
            passed[row.card_id] += row.state == "kept"
    return pass_at([(tried[card], passed[card]) for card in groups], groups=list(groups.values()), seed=seed)


def count_handoffs(rows: Iterable[Row], tools: Sequence[Tool]) -> HandoffTable:
    """Count hand-offs that were wanted and made; failed rows are left out."""
    ended = (row for row in rows if row.state != "failed")
    told = ((row.to_oracle() or Oracle(), read_messages(row.messages), tools, row.failed_calls) for row in ended)
    return handoff_table(starmap(read_handoff, told))


def is_spoiled(row: Row) -> bool:
    """Say whether the customer, not the agent, made the conversation useless."""
    return any(f.check in CUSTOMER_CHECKS and f.severity == "drop" for f in row.findings)


def _reason(row: Row, unjudged: Mapping[str, str]) -> str:
    if row.state == "failed":
        return row.stop if row.failure is None else f"{row.failure.role}:{row.failure.reason}"
    return unjudged.get(row.id, "not graded") if row.verdict is None else row.verdict.rule


def _dollars(usd: float | None) -> str:
    return "unknown: a model's price, or the tokens that it used, are not known" if usd is None else f"${usd:,.4f}"
