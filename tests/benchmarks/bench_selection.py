"""How long the choice of candidates takes, and what it gains.

python tests/benchmarks/bench_selection.py
"""

from __future__ import annotations

import time

import numpy as np

from whilesim.cards.selection import choose_candidates, spread


def main() -> None:
    print(f"{'groups x candidates, d':<26}{'seconds':>8}  least and mean distance: first candidates, chosen")
    for groups, each, d in [(150, 4, 256), (1_000, 4, 64), (1_000, 4, 512), (5_000, 4, 512)]:
        vectors = np.random.default_rng(0).normal(size=(groups * each, d))
        start = time.perf_counter()
        chosen = choose_candidates(vectors, [at // each for at in range(groups * each)])
        seconds = time.perf_counter() - start
        before, after = spread(vectors[::each]), spread(vectors[chosen])
        figures = f"{before['least']:.3f} {before['mean']:.3f}, {after['least']:.3f} {after['mean']:.3f}"
        print(f"{f'{groups:,} x {each}, {d}':<26}{seconds:>8.2f}  {figures}")


if __name__ == "__main__":
    main()
