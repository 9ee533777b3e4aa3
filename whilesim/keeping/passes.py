"""Passes: pass@k and hand-offs of graded rows.

A pass is a kept row. Counted are the rows of the first wave, since later ones were played
where the first had holes; a conversation that its customer spoiled says nothing about the
agent and is left out, and so is one that failed or that nobody judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from whilesim.chat.messages import read_messages
from whilesim.core.stats import PassAt, pass_at
from whilesim.grading.outcome import HandoffTable, handoff_table, read_handoff
from whilesim.keeping.grades import failed_calls
from whilesim.keeping.rows import Row
from whilesim.situations.tools import Tool
from whilesim.world.oracle import Oracle

CUSTOMER_CHECKS = frozenset({"customer_leak", "ended_early", "invented_goal", "broke_persona"})


def count_passes(rows: Iterable[Row], seed: int = 0) -> PassAt:
    """Summarise graded rows by pass@k and pass^k over cards; twins are resampled together."""
    counts: dict[str, list[int]] = {}
    groups: dict[str, str] = {}
    for row in rows:
        if row.wave:
            continue
        tries = counts.setdefault(row.card_id, [0, 0])
        groups[row.card_id] = row.twin_of or row.card_id
        if row.state in ("kept", "dropped") and not is_spoiled(row):
            tries[0] += 1
            tries[1] += row.state == "kept"
    return pass_at([(n, c) for n, c in counts.values()], groups=list(groups.values()), seed=seed)


def count_handoffs(rows: Iterable[Row], tools: Sequence[Tool]) -> HandoffTable:
    """Count hand-offs that were wanted and made; failed rows are left out."""
    found = []
    for row in rows:
        if row.state != "failed":
            messages = read_messages(row.messages)
            failed = failed_calls(messages, tools, row.failed_calls)
            found.append(read_handoff(row.to_oracle() or Oracle(), messages, tools, failed))
    return handoff_table(found)


def is_spoiled(row: Row) -> bool:
    """Say whether the customer, not the agent, made the conversation useless."""
    return any(f.check in CUSTOMER_CHECKS and f.severity == "drop" for f in row.findings)
