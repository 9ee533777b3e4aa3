"""Cards: a situation as what one customer knows and wants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from whilesim.cards.personas import Persona
from whilesim.situations.axes import Situation
from whilesim.world.oracle import Applies

Form = Literal["one_request", "second_request", "circumstance"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """What one customer knows and wants: all that the customer player gets.

    Nothing here is policy text, a tool's name or an axis value.
    """

    id: str
    situation: Situation
    persona: Persona
    goal: str
    form: Form = "one_request"
    """How clause and tool stand together: in one request, in a second one, or as a circumstance."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """What the customer can say when asked, by plain name."""
    clause_applies: Applies = "unknown"
    opening: str
    second: str = ""
    """A second request, said when the first is settled; empty where there is none."""
    exit: str = ""
    """When the customer is done."""
    give_up: int = 6
    """Customer messages after which the customer stops asking."""
    prose: str = ""
    """The persona as a prose aside, for a model that writes or plays the customer."""
    twin_of: str | None = None
