"""Report: one row told in plain text, and a few as a piece of a page for a notebook.

Everything that a customer, a model or a world said is text there, never markup.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from whilesim.core.templates import render_page
from whilesim.core.text import shorten
from whilesim.keeping.grades import Grade
from whilesim.keeping.rows import Row

FEW = 3
"""Conversations where a simulation shows itself."""


def explain_row(row: Row, grade: Grade | None = None, *, limit: int | None = None) -> str:
    """Tell all that is known of one row: card, world, calls, findings, verdict and who wrote it.

    ``limit`` cuts each message to so many characters, on one line; None cuts only the system prompt.
    """
    wire = row.to_json()
    lines = [f"row {row.id}: {row.state}, stopped by {row.stop}, seed {row.seed}, wave {row.wave}"]
    lines.append("situation: " + ", ".join(f"{axis}={value}" for axis, value in row.situation.items()))
    lines += [f"card {name}: {value}" for name, value in wire["card"].items() if value]
    lines.append("persona: " + ", ".join(f"{name}={value}" for name, value in wire["persona"].items()))
    if (oracle := row.to_oracle()) is not None:
        lines.append(f"right is: {' or '.join(oracle.ends)}. {oracle.why}")
        lines += [f"open: {question}" for question in oracle.open]
    for i, message in enumerate(row.messages):
        text, most = message["content"] or "", 300 if limit is None and message["role"] == "system" else limit
        lines.append(f"[{i}] {message['role']}: {text if most is None else shorten(text, most)}")
        for call in message.get("tool_calls", ()):
            told, failed = call["function"], " FAILED" if call["id"] in row.failed_calls else ""
            lines.append(f"[{i}] calls {told['name']}({told['arguments']}){failed}")
    lines += [f"change {c.kind} {c.id}: {c.field} {c.before!r} -> {c.after!r}" for c in row.changes]
    lines += [f"{f.severity} {f.check} at [{f.message_index}] {f.quote!r}: {f.reason}" for f in row.findings]
    if row.verdict is not None:
        lines.append(f"verdict: {row.state} by {row.verdict.rule}, reward {row.verdict.reward}: {row.verdict.reason}")
        lines += [f"  {name} {s.score:g}: {s.reason}" for name, s in row.verdict.scores.items()]
    if grade is not None and grade.why:
        lines.append(f"unjudged: {grade.why}. {grade.raw}")
    if row.failure is not None:
        lines.append(f"failed: {row.failure.role}, {row.failure.reason}: {row.failure.message}")
    return "\n".join([*lines, *(f"{role}: {name}" for role, name in wire["provenance"].items() if name)])


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a message, marked by the findings about it or not."""

    text: str
    reasons: tuple[str, ...] = ()


def glance(rows: Sequence[Row], summary: str) -> str:
    """Return a summary and three conversations as a piece of a page, for a notebook."""
    talks = [{"row": row, "turns": _turns(row)} for row in _choose(rows, FEW)]
    return render_page("glance", summary=summary, talks=talks)


def tell_few(rows: Sequence[Row]) -> list[str]:
    """Return three conversations, one a line: how it opened, what was called, how it ended."""
    lines = []
    for row in _choose(rows, FEW):
        said = [m["content"] for m in row.messages[1:] if m["content"]]
        calls = [call["function"]["name"] for call in row.calls]
        told = [repr(shorten(said[0], 60)), *calls, repr(shorten(said[-1], 60))] if said else calls
        lines.append(f"  {row.id} {row.state}: {' > '.join(told)}")
    return lines


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


def _choose(rows: Sequence[Row], count: int) -> list[Row]:
    """Return so many rows, half of them such as something is wrong with, in their order."""
    wrong = [i for i, row in enumerate(rows) if row.state in ("dropped", "failed") or row.findings]
    right = sorted({*range(len(rows))}.difference(wrong))
    chosen = wrong[: max(count // 2, count - len(right))]
    return [rows[i] for i in sorted(chosen + right[: count - len(chosen)])]


def _turns(row: Row) -> list[dict[str, Any]]:
    turns = []
    for i, message in enumerate(row.messages):
        found = [(f.quote, f"{f.severity}: {f.check}. {f.reason}") for f in row.findings if f.message_index == i]
        calls = [c["function"] | {"failed": c["id"] in row.failed_calls} for c in message.get("tool_calls", ())]
        pieces, reasons = mark(message["content"] or "", found), [reason for _, reason in found]
        turns.append({"index": i, "role": message["role"], "pieces": pieces, "calls": calls, "reasons": reasons})
    return turns
