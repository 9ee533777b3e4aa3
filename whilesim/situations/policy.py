"""Policy: a policy text as clauses, one for each rule that an agent can keep or break."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ClauseKind = Literal["must", "must_not", "may", "condition", "handoff"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """One rule, self-contained, with the exception that belongs to it."""

    id: str
    """``c01``, ``c02`` ... in the order of the text: a value of the clause axis."""
    text: str
    section: str = ""
    """The headings above it, outermost first, joined by `` > ``."""
    kind: ClauseKind = "must"
    tools: tuple[str, ...] = ()
    """Names of tools that the clause names, as the policy spells them."""
    span: tuple[int, int] = (0, 0)
    """Start and end of its source in ``Policy.text``, in characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A policy text and the clauses read from it."""

    text: str
    clauses: tuple[Clause, ...]
    language: str = "en"
    """Two-letter code of most of the text."""
    notes: tuple[str, ...] = ()
    """What the reader of the policy should be told: nothing found, duplicates merged, a fallback."""
