"""How fast the summaries are, and how often their 95% intervals hold the truth.

python tests/benchmarks/bench_stats.py
"""

from __future__ import annotations

import time

import numpy as np

from whilesim.core.stats import bootstrap, kappa, pass_at, permutation, wilson

RUNS = 1000


def timed(name: str, run: object) -> None:
    start = time.process_time()
    run()  # type: ignore[operator]
    print(f"{name:<58}{time.process_time() - start:>8.2f} s of one core")


def held(name: str, intervals: list[tuple[float | None, float | None]], truth: float) -> None:
    share = np.mean([low is not None and high is not None and low <= truth <= high for low, high in intervals])
    print(f"{name:<58}{share:>8.3f}")


def main() -> None:
    rng = np.random.default_rng(7)
    passes = [(8, int(c)) for c in rng.binomial(8, 0.4, 10_000)]
    timed("pass@1,2,4,8 and pass^2,4,8 of 10,000 tasks x 8", lambda: pass_at(passes))
    timed("the same over 5,000 groups of two", lambda: pass_at(passes, groups=[i // 2 for i in range(10_000)]))
    timed("permutation of 10,000 pairs", lambda: permutation(rng.random(10_000).tolist(), rng.random(10_000).tolist()))
    print(f"\nshare of {RUNS} intervals that hold the truth (0.95 is right)")
    for n in (20, 40, 150):
        held(f"wilson, n={n}, p=0.30", [wilson(int(rng.binomial(n, 0.3)), n) for _ in range(RUNS)], 0.3)
    for n in (20, 40, 150):
        found = [bootstrap((rng.random(n) < 0.3).astype(float).tolist()) for _ in range(RUNS)]
        held(f"bootstrap, {n} tasks, p=0.30", [(e.low, e.high) for e in found], 0.3)
    for n in (30, 60, 150):
        pairs = []
        for _ in range(RUNS):
            a = rng.random(n) < 0.8
            b = np.where(rng.random(n) < 0.9, a, ~a)  # the second rater errs in one of ten
            found_kappa = kappa(a.tolist(), b.tolist())
            pairs.append((found_kappa.low, found_kappa.high))
        by_chance = 0.8 * 0.74 + 0.2 * 0.26
        held(f"kappa, {n} labels, 80% keep, agreement 0.9", pairs, (0.9 - by_chance) / (1 - by_chance))


if __name__ == "__main__":
    main()
