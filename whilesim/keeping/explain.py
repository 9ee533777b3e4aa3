"""Explain: rows and counts, told in plain text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from whilesim.chat.messages import read_messages
from whilesim.core.text import shorten
from whilesim.keeping.grades import Grade
from whilesim.keeping.ledger import Ledger
from whilesim.keeping.rows import STATES, Row


def summarise(rows: Iterable[Row], ledger: Ledger, *, graded: bool) -> str:
    """Say in a few lines what became of the rows; where all failed, from which causes."""
    head = f"Simulation of {ledger.planned} rows"
    if not graded:
        head += f": {ledger.unjudged} played, {ledger.failed} failed, not graded yet (data.grade())"
    else:
        head += "".join(f"{', ' if i else ': '}{getattr(ledger, s)} {s}" for i, s in enumerate(STATES))
    lines = [head]
    for state in ("dropped", "failed", "unjudged"):
        reasons = list(ledger.reasons[state].items()) if graded or state == "failed" else []
        told = ", ".join(f"{n} {reason}" for reason, n in reasons[:5])
        lines += [f"  {state}: {told}{', ...' if len(reasons) > 5 else ''}"] if told else []
    if ledger.failed and ledger.failed == ledger.planned:
        causes = Counter(row.failure.message for row in rows if row.failure)
        lines += [f"  {n} times: {shorten(cause, 200)}" for cause, n in causes.most_common(3)]
    return "\n".join(lines)


def explain_row(row: Row, grade: Grade | None = None) -> str:
    """Tell all that is known of one row: card, world, calls, findings, verdict and who wrote it."""
    lines = [f"row {row.id}: {row.state}, stopped by {row.stop}, seed {row.seed}, wave {row.wave}"]
    lines.append("situation: " + ", ".join(f"{axis}={value}" for axis, value in row.situation.items()))
    lines += [f"card {name}: {value}" for name, value in row.card.to_json().items() if value]
    lines.append("persona: " + ", ".join(f"{k}={v}" for k, v in row.persona.to_json().items()))
    if row.oracle is not None:
        lines.append(f"right is: {' or '.join(row.oracle.get('ends', []))}. {row.oracle.get('why', '')}")
        lines += [f"open: {question}" for question in row.oracle.get("open", [])]
    failed = row.failed_calls or []
    for i, message in enumerate(read_messages(row.messages)):
        said = shorten(message.content or "", 300)
        lines.append(f"[{i}] {message.role}: {said}")
        lines += [
            f"[{i}] calls {c.name}({c.arguments}){' FAILED' if c.id in failed else ''}" for c in message.tool_calls
        ]
    lines += [f"change {c.kind} {c.id}: {c.field} {c.before!r} -> {c.after!r}" for c in row.changes]
    lines += [f"{f.severity} {f.check} at [{f.message_index}] {f.quote!r}: {f.reason}" for f in row.findings]
    if row.verdict is not None:
        lines.append(f"verdict: {row.state} by {row.verdict.rule}, reward {row.verdict.reward}: {row.verdict.reason}")
        lines += [f"  {name} {s.score:g}: {s.reason}" for name, s in row.verdict.scores.items()]
    if grade is not None and grade.why:
        lines.append(f"unjudged: {grade.why}. {grade.raw}")
    if row.failure is not None:
        lines.append(f"failed: {row.failure.role}, {row.failure.reason}: {row.failure.message}")
    lines += [f"{role}: {name}" for role, name in row.provenance.to_json().items() if name]
    return "\n".join(lines)
