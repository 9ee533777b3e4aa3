"""Report: one page to look at, in one file that asks nothing of the network.

Everything that a customer, a model or a world said is text on it, never markup; a strict
content security policy lets no script run and nothing load.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from whilesim.core.templates import render_page
from whilesim.keeping.ledger import Ledger
from whilesim.keeping.rows import STATES, Row

SHOWN = 10
"""Conversations on the page."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a message, marked by the findings about it or not."""

    text: str
    reasons: tuple[str, ...] = ()


def write_report(
    path: Path, rows: Sequence[Row], ledger: Ledger, *, tables: Mapping[str, str], title: str = "whilesim"
) -> Path:
    """Write the page and return its path.

    Args:
        rows: Ten of these are shown: dropped and failed ones first, then kept ones.
        tables: Heading to a table in plain text, in the order of the page.
    """
    shown = _choose(rows)
    page = render_page(
        "report",
        title=title,
        ledger=ledger,
        states=STATES,
        tables=tables,
        talks=[{"row": row, "turns": _turns(row)} for row in shown],
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    # a lone surrogate has no bytes: the page shows a question mark
    path.write_text(page.encode("utf-8", "replace").decode("utf-8"), encoding="utf-8", newline="\n")
    return path


def mark(text: str, found: Sequence[tuple[str, str]]) -> list[Piece]:
    """Cut a text at the quotes found in it.

    Args:
        found: Quotes with a reason each. One that does not stand in the text, word for word
            or at all, marks all of it.

    Returns:
        Pieces in order that together are the text; where quotes overlap, a piece has several reasons.
    """
    spans = []
    for quote, reason in found:
        start = text.find(quote) if quote else -1
        spans.append((start, start + len(quote), reason) if start >= 0 else (0, len(text), reason))
    cuts = sorted({0, len(text), *(cut for start, end, _ in spans for cut in (start, end))})
    return [Piece(text[a:b], tuple(r for start, end, r in spans if start <= a and b <= end)) for a, b in pairwise(cuts)]


def _choose(rows: Sequence[Row]) -> list[Row]:
    """Return ten rows, half of them such as something is wrong with, in their order."""
    wrong: list[int] = []
    right: list[int] = []
    for i, row in enumerate(rows):
        (wrong if row.state in ("dropped", "failed") or row.findings else right).append(i)
    half = max(SHOWN // 2, SHOWN - len(right))
    chosen = wrong[:half]
    return [rows[i] for i in sorted(chosen + right[: SHOWN - len(chosen)])]


def _turns(row: Row) -> list[dict[str, Any]]:
    turns = []
    for i, message in enumerate(row.messages):
        found = [f for f in row.findings if f.message_index == i]
        marks = [(f.quote, f"{f.severity}: {f.check}. {f.reason}") for f in found]
        content = message["content"] or ""
        turns.append(
            {
                "index": i,
                "role": message["role"],
                "pieces": mark(content, marks) if content else [],
                "calls": [
                    c["function"] | {"failed": c["id"] in (row.failed_calls or ())}
                    for c in message.get("tool_calls", ())
                ],
                "reasons": [reason for _, reason in marks],
            }
        )
    return turns
