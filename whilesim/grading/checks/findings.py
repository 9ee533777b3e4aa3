"""Findings: what a check found, and where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Severity = Literal["drop", "warn"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong in a conversation."""

    check: str
    """Name of the check, as in the design: ``claimed_action_without_call``."""
    message_index: int
    """Index in the messages that were given, the system prompt counted."""
    quote: str
    """The words it is about, as they stand in that message."""
    reason: str
    severity: Severity = "drop"

    def to_json(self) -> dict[str, Any]:
        """Return the finding as a JSON object, keys as in a row."""
        return {
            "check": self.check,
            "message_index": self.message_index,
            "quote": self.quote,
            "reason": self.reason,
            "severity": self.severity,
        }


def found(check: str, message_index: int, quote: str, reason: str) -> Finding:
    """Make a finding; :func:`~whilesim.grading.checks.run.run_checks` gives it its severity."""
    return Finding(check=check, message_index=message_index, quote=quote, reason=reason)
