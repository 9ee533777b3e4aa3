"""Twins: two cards that differ in one thing, so that the right action flips.

Only the state of the record or the condition of the tool flips; goal, facts, opening and
persona stay word for word. A twin is played in the world of the situation it was flipped
from. It is made only where the oracles differ, and what they leave open is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from whilesim.cards.cards import Card, known_facts
from whilesim.core.seeds import shuffled
from whilesim.situations.axes import Situation
from whilesim.world.mock import Focus
from whilesim.world.oracle import Oracle

FLIPS: Mapping[str, tuple[str, ...]] = {
    "tool_condition": ("success", "permission_denied", "timeout", "malformed"),
    "world_state": ("exists", "already_acted_on", "missing"),
}
"""The axes that may flip, and the values they flip between."""

Look = Callable[[Situation], tuple[Focus, Oracle]]
"""What a situation is about in its world, and what is right in it."""


def find_twins(
    cards: Sequence[Card],
    oracles: Mapping[str, Oracle],
    count: int,
    *,
    look: Look,
    allowed: Callable[[Mapping[str, str]], bool],
    seed: int,
) -> list[tuple[Card, Oracle]]:
    """Find ``count`` twins, or as many as there are.

    Args:
        look: Gives focus and oracle of a situation; the id says which world it is drawn in.
        allowed: Whether a combination of values can happen.
        seed: Decides which cards are tried first.

    Returns:
        Cards with ``twin_of`` set, with their oracles, at most one for each card.
    """
    found: list[tuple[Card, Oracle]] = []
    for card in shuffled(cards, seed, "twins"):
        if len(found) >= count:
            break
        mine = oracles[card.id]
        for values in _flipped(card, allowed, seed):
            focus, oracle = look(Situation(id=card.situation.id, values=values))
            if _differ(mine, oracle) and _same_words(card, focus):
                twin = replace(
                    card,
                    id=f"{card.id}t",
                    situation=Situation(id=f"{card.situation.id}t", values=values),
                    twin_of=card.id,
                )
                found.append((twin, oracle))
                break
    return sorted(found, key=lambda pair: pair[0].id)


def _flipped(card: Card, allowed: Callable[[Mapping[str, str]], bool], seed: int) -> Iterator[dict[str, str]]:
    values = card.situation.values
    for axis in shuffled(FLIPS, seed, "axis", card.id):
        for value in shuffled(FLIPS[axis], seed, "value", card.id, axis):
            flipped = {**values, axis: value}
            if axis in values and values[axis] in FLIPS[axis] and values[axis] != value and allowed(flipped):
                yield flipped


def _differ(left: Oracle, right: Oracle) -> bool:
    """Say whether the right end flips, for another reason; what stays open must be open in both, so that it cannot be the cause."""
    if left.open != right.open or left.why == right.why:
        return False
    return set(left.ends) != set(right.ends) or left.handoff_wanted != right.handoff_wanted


def _same_words(card: Card, focus: Focus) -> bool:
    """Say whether the customer would know and say the same in the flipped world."""
    known = known_facts(focus)
    return all(known.get(name) == value for name, value in card.facts.items())
