"""Oracle: what a right agent does in a situation, known before anyone speaks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

End = Literal["resolved", "refused", "handed_off", "honest_failure"]
Applies = Literal["yes", "no", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRule:
    """Calls that a rule speaks of."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Arguments that matter: a call matches when it has these values, whatever else it has."""
    other_than: Mapping[str, Any] = field(default_factory=dict)
    """A call matches only when one of these arguments is there with another value."""
    at_most: int = 0
    """For a forbidden call: how many successful ones are still fine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Oracle:
    """Acceptable ends, calls and claims of one situation; what it cannot know stands in ``open``."""

    must_call: tuple[CallRule, ...] = ()
    may_call: tuple[str, ...] = ()
    must_not_call: tuple[CallRule, ...] = ()
    must_not_claim: tuple[str, ...] = ()
    """Names of tools whose deed must not be said to be done."""
    ends: tuple[End, ...] = ("resolved", "refused", "handed_off", "honest_failure")
    handoff_wanted: bool | None = None
    """True: hand off; False: do not; None: either is fine."""
    open: tuple[str, ...] = ()
    """What only a reader can decide, one sentence each."""
    why: str = ""
    """One sentence: why this is right."""
