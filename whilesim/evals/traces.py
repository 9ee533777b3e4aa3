"""Traces: what an agent did on one ticket, in the form that scorers and people read."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, fields
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator

from whilesim.chat.messages import Failure, Trace
from whilesim.chat.usage import Usage
from whilesim.keeping.folders import append_lines
from whilesim.keeping.rows import to_plain

NOTHING_EXPECTED, NO_TOOLS = "the ticket expects no final state", "the ticket expects no tools"
"""Reasons of a score of 1 that says nothing of the agent: nothing was asked, so nothing was missed."""

# older files have one sum, of nobody knows which roles
_BY_ROLE = BeforeValidator(lambda told: {"all roles": told} if isinstance(told, dict) and "calls" in told else told)


@dataclass(slots=True)
class AgentTrace:
    """One ticket, played once.

    An agent function is handed one, and appends to ``turns`` and ``tool_calls``. What is
    played on the mock world is written here by itself.
    """

    case_id: str
    turns: list[dict[str, Any]] = field(default_factory=list)
    """``{"role": "user" or "assistant", "content": "..."}``."""
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    """``{"name": "...", "arguments": {...}, "result": "...", "failed": false}``."""
    final_state: dict[str, Any] = field(default_factory=dict)
    scores: dict[str, float | None] = field(default_factory=dict)
    """Scorer to score, 0 to 1; None where it could not score, and ``reasons`` says why.

    Where the ticket asks nothing it is 1, as the tutorial has it, and no mean counts it.
    """
    started_at: str = field(default_factory=lambda: datetime.now(timezone.utc).isoformat())
    trial: int = 0
    reasons: dict[str, str] = field(default_factory=dict)
    parts: dict[str, float] = field(default_factory=dict)
    """What a score was made of: precision, recall, order, arguments."""
    passed: bool | None = None
    """None where it could not be decided."""
    handoff: dict[str, Any] = field(default_factory=dict)
    """Whether a hand-off was wanted, whether it was made, and when."""
    findings: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    stop: str = ""
    failure: str = ""
    """Why the agent gave no answer."""
    state_of: str = ""
    """Who says ``final_state``: ``agent``, ``world``, or nobody."""
    usage: Annotated[dict[str, Usage], _BY_ROLE] = field(default_factory=dict)
    """Role (agent, customer, judge) to what its model used; of models that a function of yours calls, nothing is known."""
    trace: Trace | None = field(default=None, repr=False, compare=False)
    """The same conversation as messages."""

    def scored(self, name: str) -> float | None:
        """Return a score that says something of the agent, else None."""
        return None if self.reasons.get(name) in (NOTHING_EXPECTED, NO_TOOLS) else self.scores.get(name)

    def say_why(self, name: str) -> str:
        """Return a score with its reason."""
        score = self.scores.get(name)
        said = "could not be scored" if score is None else f"{score:.2g}"
        return f"{name} {said}: {self.failure or self.reasons.get(name, '')}".rstrip(": ")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Append the trace to a JSONL file."""
        append_lines(Path(path), [self.to_json()])

    def to_json(self) -> dict[str, Any]:
        """Return the trace as a JSON object."""
        return {f.name: to_plain(getattr(self, f.name)) for f in fields(self) if f.name != "trace"}


def tell_failure(failure: Failure) -> str:
    """Return whose failure it is, its reason in one word, and the words."""
    return f"{failure.role} {failure.reason}: {failure.message}"
