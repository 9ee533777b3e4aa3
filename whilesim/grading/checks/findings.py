"""Findings: what a check found, and where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["drop", "warn"]


@dataclass(frozen=True, slots=True)
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
    """As :func:`~whilesim.grading.checks.run.run_checks` decides; the checks themselves leave it alone."""
