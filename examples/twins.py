"""Counterfactual twins: the same words, one thing different in the world, another right action."""

from __future__ import annotations

import whilesim as ws
from whilesim.showcase import demo_policy, demo_tools


def main() -> None:
    """Print what flipped in each pair, and how the right end changed."""
    plan = ws.plan(tools=demo_tools(), system_prompt=demo_policy(), situations=60, twins=0.3)
    cards = {card.id: card for card in plan.cards}
    for twin in (card for card in plan.cards if card.twin_of):
        first = cards[str(twin.twin_of)]
        flipped = [a for a, v in twin.situation.values.items() if first.situation.values[a] != v]
        for axis in flipped:
            print(f"{first.id}  {axis}: {first.situation.values[axis]} -> {twin.situation.values[axis]}")
        print(f"      right ends: {plan.oracles[first.id].ends} -> {plan.oracles[twin.id].ends}")


if __name__ == "__main__":
    main()
