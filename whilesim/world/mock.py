"""Mock world: answers tool calls from seeded records, and remembers what was written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from whilesim.chat.messages import Change


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldCall:
    """One call that a world answered."""

    name: str
    arguments: str
    reply: str
    failed: bool | None
    """Whether the call failed, in the world's own knowledge; None where nobody knows."""
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Focus:
    """What a situation is about, in this world: the card's facts and the oracle are made of it."""

    tool: str
    arguments: Mapping[str, Any]
    """The arguments of the one right call of the situation's tool: the truth, not what the customer says."""
    kind: str | None = None
    """Kind of the record that the tool touches, None for a tool that touches none."""
    id: str | None = None
    """Id of that record in the records; in a missing world it is not there."""
    identity: Mapping[str, str] = field(default_factory=dict)
    """How the customer can be found: name, email, phone, date of birth, zip, as they would say them."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """What the customer knows and may say, in plain words: ``{"order id": "W2210", "item": "blue kettle"}``.
    In a missing world the key told here is the wrong one; in a duplicate world there is no key but a
    detail that tells the two candidates apart."""
    withheld: tuple[str, ...] = ()
    """Keys of ``facts`` that the customer does not have at hand; the agent can find them by a read."""
    object: str = ""
    """The record in a customer's words: 'my order W2210', 'the line 555-0182'."""
    reachable: bool = True
    """Whether the tool can succeed at all in this situation, by an agent that does everything right."""


class World(Protocol):
    """What answers the agent's calls: ours, or one of the user's own."""

    def call(self, name: str, arguments: Mapping[str, Any] | str) -> str:
        """Answer one call; a string of arguments is read as JSON, and refused where it is none."""
        ...

    @property
    def state(self) -> Mapping[str, Any]:
        """The records now, as JSON."""
        ...
