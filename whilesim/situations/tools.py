"""Tools: tool schemas in any dialect, as one kind of value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Effect = Literal["read", "write", "handoff", "compute"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool that the agent may call."""

    name: str
    """Unique among the tools, and legal on the wire: ``[A-Za-z0-9_-]{1,64}``."""
    description: str
    parameters: Mapping[str, Any]
    """A JSON Schema of type object, references inlined."""
    effect: Effect
    effect_rule: str = ""
    """Which evidence decided the effect, in a few words; ends in ``(unsure)`` where it is a guess."""
    returns: Mapping[str, Any] | None = None
    """JSON Schema of the reply, where the source states one."""
    examples: tuple[tuple[Mapping[str, Any], Any], ...] = ()
    """(arguments, reply) pairs that the source itself shows."""
    id_arguments: tuple[str, ...] = ()
    """Arguments that name a record: ``order_id``, ``email``, ``flight_number``."""
    original: Any = None
    """What was given, untouched."""
    notes: tuple[str, ...] = ()
    """What was changed on the way in: a name made legal or unique, a reference cut."""

    def to_openai(self) -> dict[str, Any]:
        """Return the tool in OpenAI's wrapped form."""
        return {
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.description,
                "parameters": dict(self.parameters),
            },
        }
