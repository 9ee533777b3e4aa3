"""Stats: rates with their intervals, exact tests, and how many tasks a question needs.

Every function says what it cannot know. Arguments that make no sense (more passes than
tries) raise InputError; a number that the data do not hold (kappa of raters who only ever
said yes) is an ``Estimate`` whose ``value`` is None and whose ``why`` says the reason.
Probabilities run from 0 to 1. Nothing here draws from a library's random stream: the same
data and seed give the same interval everywhere.

    [1] Chen et al. (2021). Evaluating large language models trained on code. arXiv:2107.03374.
    [2] Yao et al. (2024). tau-bench. arXiv:2406.12045: pass^k.
    [3] Wilson (1927). Probable inference. J. American Statistical Association 22, 209-212.
    [4] Fisher (1935). The logic of inductive inference. J. Royal Statistical Society 98, 39-82.
    [5] McNemar (1947). Note on the sampling error of the difference between correlated
        proportions. Psychometrika 12, 153-157.
    [6] Cohen (1960). A coefficient of agreement for nominal scales. Educational and
        Psychological Measurement 20, 37-46.
    [7] Fleiss, Levin, Paik (2003). Statistical methods for rates and proportions, chapter 4.
    [8] Steele, Lea, Flood (2014). Fast splittable pseudorandom number generators. OOPSLA.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from whilesim.core.errors import InputError
from whilesim.core.seeds import derive

_Floats = NDArray[np.float64]
_EXACT = 16  # up to 2**16 sign patterns are enumerated; beyond, they are drawn
_DRAWS = 1000  # resamples behind an interval
_BLOCK = 200  # resamples in memory at once


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its 95% interval, or the reason why there is none."""

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    """How many independent things it rests on: groups, pairs or tries."""
    why: str = ""
    """Why value or interval is missing, or how the interval was made where that surprises."""

    def __str__(self) -> str:
        if self.value is None:
            return f"n/a ({self.why})"
        if self.low is None or self.high is None:
            return f"{self.value:.2f} [n/a: {self.why}]"
        return f"{self.value:.2f} [{self.low:.2f}..{self.high:.2f}]"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The outcome of a two-sided test of 'no difference'."""

    p: float
    difference: float
    """Second minus first: of pass rates, or of means."""
    n: int
    """Tries, or pairs that could tell the two apart."""


@dataclass(frozen=True, slots=True)
class PassAt:
    """pass@k and pass^k over tasks; printing it gives one line."""

    at: Mapping[int, Estimate]
    """k to the chance that one of k tries passes, mean over tasks."""
    hat: Mapping[int, Estimate]
    """k to the chance that all of k tries pass, mean over tasks; k of 2 and more."""
    left_out: Mapping[int, int]
    """k to the number of tasks with fewer than k tries, which say nothing about that k."""

    def __str__(self) -> str:
        parts = [f"pass@{k} {e}" for k, e in self.at.items()] + [f"pass^{k} {e}" for k, e in self.hat.items()]
        parts += [f"{n} with fewer than {k} tries left out" for k, n in self.left_out.items() if n]
        return " | ".join(parts) or "pass@k n/a (no task was tried)"

    __repr__ = __str__  # a notebook shows the value of a cell


def pass_at_k(n: int, c: int, k: int) -> float:
    """Return the chance that at least one of ``k`` tries passes, given ``c`` passes in ``n``.

    The unbiased estimate 1 - C(n-c, k) / C(n, k) of [1].

    Raises:
        InputError: ``c`` is outside 0 to ``n``, or ``k`` outside 1 to ``n``.
    """
    _check_tries(n, c, k)
    return 1.0 - math.comb(n - c, k) / math.comb(n, k)


def pass_hat_k(n: int, c: int, k: int) -> float:
    """Return the chance that all of ``k`` tries pass, C(c, k) / C(n, k), as in [2].

    Raises:
        InputError: ``c`` is outside 0 to ``n``, or ``k`` outside 1 to ``n``.
    """
    _check_tries(n, c, k)
    return math.comb(c, k) / math.comb(n, k)


def pass_at(counts: Sequence[tuple[int, int]], groups: Sequence[Hashable] | None = None, *, seed: int = 0) -> PassAt:
    """Summarise tasks by pass@k and pass^k, with intervals over tasks.

    Args:
        counts: Tries and passes of each task, ``(n, c)``. Summarised are the k of 1, 2, 4, 8 ...
            up to the most tries of a task, and that number itself.
        groups: One label per task; tasks with one label (twins) are resampled together.
        seed: Decides the bootstrap's draws.
    """
    most = max((n for n, _ in counts), default=0)
    ks = sorted({*(2**i for i in range(most.bit_length())), most} - {0})
    columns = [(pass_at_k, k) for k in ks] + [(pass_hat_k, k) for k in ks[1:]]
    known = {(n, c): [f(n, c, k) if k <= n else np.nan for f, k in columns] for n, c in counts}
    values = np.array([known[pair] for pair in counts]).reshape(len(counts), len(columns))
    found = _group_means(values, groups, seed=seed)
    at, hat = dict(zip(ks, found, strict=False)), dict(zip(ks[1:], found[len(ks) :], strict=True))
    return PassAt(at=at, hat=hat, left_out={k: sum(n < k for n, _ in counts) for k in ks})


def wilson(c: int, n: int) -> tuple[float, float]:
    """Return Wilson's 95% interval (low, high) for ``c`` passes in ``n`` tries [3].

    Raises:
        InputError: ``n`` is 0, or ``c`` is outside 0 to ``n``.
    """
    from scipy.stats import binomtest

    _check_tries(n, c, 1)
    found = binomtest(c, n).proportion_ci(method="wilson")
    return float(found.low), float(found.high)


def proportion(c: int, n: int) -> Estimate:
    """Return ``c`` of ``n`` with Wilson's interval; n/a where nothing was counted."""
    if n == 0:
        return Estimate(None, why="nothing to count")
    low, high = wilson(c, n)
    return Estimate(c / n, low, high, n)


def share(told: Sequence[tuple[Hashable, bool]]) -> Estimate:
    """Return the share of trials that hold, each told with its task.

    Trials of one task are no independent evidence, however many there are: the interval is a bootstrap's over tasks,
    and Wilson's where every task was tried once.
    """
    tasks, held = [task for task, _ in told], [bool(holds) for _, holds in told]
    return bootstrap(held, tasks) if len(set(tasks)) < len(tasks) else proportion(sum(held), len(held))


def fisher(passes_a: int, n_a: int, passes_b: int, n_b: int) -> Comparison:
    """Compare two pass counts by Fisher's exact test, two-sided [4].

    Raises:
        InputError: A count is outside 0 to its ``n``, or an ``n`` is 0.
    """
    from scipy.stats import fisher_exact

    _check_tries(n_a, passes_a, 1)
    _check_tries(n_b, passes_b, 1)
    p = fisher_exact(np.array([[passes_a, n_a - passes_a], [passes_b, n_b - passes_b]]))[1]
    return Comparison(float(p), passes_b / n_b - passes_a / n_a, n_a + n_b)


def mcnemar(only_a: int, only_b: int, *, pairs: int | None = None) -> Comparison:
    """Compare two agents on the same tasks by the exact McNemar test [5].

    Args:
        only_a: Tasks that only the first agent passed.
        only_b: Tasks that only the second agent passed.
        pairs: All tasks, for ``difference``; by default those that only one passed.
    """
    from scipy.stats import binomtest

    told = only_a + only_b
    every = told if pairs is None else pairs
    if only_a < 0 or only_b < 0 or every < told:
        msg = f"only_a={only_a!r}, only_b={only_b!r} of pairs={pairs!r} cannot be: counts are 0 or more, "
        raise InputError(msg + "and no more than there are pairs. Type: mcnemar(only_a=3, only_b=9, pairs=40)")
    if told == 0:  # nothing tells them apart, which is no evidence of a difference
        return Comparison(1.0, 0.0, 0)
    return Comparison(float(binomtest(only_a, told).pvalue), (only_b - only_a) / every, told)


def permutation(a: Sequence[float], b: Sequence[float], *, seed: int = 0, draws: int = 10_000) -> Comparison:
    """Compare paired values by flipping the sign of each difference, two-sided.

    Exact up to 16 pairs that differ; beyond that the signs of ``draws`` patterns are drawn,
    decided by ``seed``, and p counts the observed pattern too, so it is never 0.

    Raises:
        InputError: The two have different lengths, or none, or a value is not finite.
    """
    if len(a) != len(b) or not len(a):
        msg = f"paired values need equal lengths of 1 or more, not {len(a)} and {len(b)}: "
        raise InputError(msg + "give one value per task, in the same order.")
    gaps = _finite(b) - _finite(a)
    told = gaps[gaps != 0]
    exact = len(told) <= _EXACT
    every = np.arange(2 ** min(len(told), _EXACT), dtype="<u8")[:, None]
    blocks = [every] if exact else _noise(draws, len(told), seed, "permutation")
    bits = (np.unpackbits(block.view(np.uint8), axis=1, bitorder="little")[:, : len(told)] for block in blocks)
    sums = 2 * np.concatenate([some @ told for some in bits]) - told.sum()
    reached = int((np.abs(sums) >= abs(told.sum()) - 1e-9 * np.abs(told).sum()).sum())
    p = reached / len(sums) if exact else (reached + 1) / (len(sums) + 1)
    return Comparison(float(p), float(gaps.mean()), len(told))


def bootstrap(values: Sequence[float], groups: Sequence[Hashable] | None = None, *, seed: int = 0) -> Estimate:
    """Return the mean of the values with a bootstrap interval over groups.

    Groups (by default each value its own) are drawn with replacement, 1,000 times, and the
    interval runs between the 2.5th and 97.5th percentile. Where all groups agree on 0 or on 1
    a bootstrap sees no spread and would promise certainty: Wilson's interval over the groups
    stands in, and ``why`` says so.

    Raises:
        InputError: ``groups`` has another length than ``values``, or a value is not finite.
    """
    return _group_means(_finite(values)[:, None], groups, seed=seed)[0]


def kappa(a: Sequence[Hashable], b: Sequence[Hashable]) -> Estimate:
    """Return Cohen's kappa of two raters [6], with an interval.

    The interval is Wilson's for the observed agreement, carried over with chance agreement
    held at its observed value: unlike the textbook one it keeps a width when all agree.

    Raises:
        InputError: The two have different lengths.
    """
    if len(a) != len(b):
        raise InputError(f"kappa needs one label from each rater for each thing, not {len(a)} and {len(b)} labels.")
    if (n := len(a)) == 0:
        return Estimate(None, why="nothing was labelled by both")
    agreed = sum(x == y for x, y in zip(a, b, strict=True))
    by_chance = sum(list(a).count(v) * list(b).count(v) for v in dict.fromkeys(a)) / n**2
    if by_chance == 1.0:
        return Estimate(None, n=n, why="both gave one and the same label to everything")
    value, low, high = ((p - by_chance) / (1 - by_chance) for p in (agreed / n, *wilson(agreed, n)))
    return Estimate(value, low, high, n)


def sample_size(p1: float, p2: float, power: float = 0.8, alpha: float = 0.05) -> int:
    """Return the tasks per arm that tell ``p1`` from ``p2``: 181 for 0.30 and 0.175.

    Two-sided, pooled normal approximation without continuity correction [7].

    Raises:
        InputError: A rate is outside 0 to 1, the two are equal, or power or alpha is not
            between 0 and 1.
    """
    from scipy.stats import norm

    if not (0 <= p1 <= 1 and 0 <= p2 <= 1 and p1 != p2 and 0 < alpha < 1 and 0 < power < 1):
        msg = f"p1={p1!r}, p2={p2!r}, alpha={alpha!r}, power={power!r} cannot be planned for: rates lie from 0 "
        raise InputError(msg + "to 1 and differ, alpha and power lie between 0 and 1. Type: sample_size(0.30, 0.175)")
    mean = (p1 + p2) / 2  # the spread of a difference if the two rates were one, and as they are
    pooled, own = math.sqrt(2 * mean * (1 - mean)), math.sqrt(p1 * (1 - p1) + p2 * (1 - p2))
    width = norm.isf(alpha / 2) * pooled + norm.isf(1 - power) * own
    return max(1, math.ceil((width / (p1 - p2)) ** 2 - 1e-9))


def minimum_detectable_effect(p1: float, n: int, *, power: float = 0.8, alpha: float = 0.05) -> Estimate:
    """Return the smallest gain over ``p1`` that ``n`` tasks per arm can tell; n/a where none can be."""
    low, high = p1, 1.0
    if p1 == 1 or sample_size(p1, 1.0, power, alpha) > n:
        return Estimate(None, n=n, why=f"{n} tasks per arm cannot tell any gain over {p1:g}")
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (low, middle) if sample_size(p1, middle, power, alpha) <= n else (middle, high)
    return Estimate(high - p1, n=n, why="a bound, not a measurement")


def _group_means(values: _Floats, groups: Sequence[Hashable] | None, *, seed: int) -> list[Estimate]:
    """Return the mean of each column over the rows where it is a number, bootstrapped over groups."""
    labels = range(len(values)) if groups is None else groups
    if len(labels) != len(values):
        raise InputError(f"groups has {len(labels)} label(s) for {len(values)} value(s): give one label per value.")
    order = {label: i for i, label in enumerate(dict.fromkeys(labels))}
    index = np.array([order[label] for label in labels], dtype=int)
    there = ~np.isnan(values)
    sums, counts = np.zeros((2, len(order), values.shape[1]))
    np.add.at(sums, index, np.where(there, values, 0.0))
    np.add.at(counts, index, there)
    with np.errstate(invalid="ignore"):  # a draw without any number for a column is left out below
        drawn = np.concatenate([(times @ sums) / (times @ counts) for times in _resamples(len(order), seed)])
    return [_summary(sums[:, j], counts[:, j], drawn[:, j]) for j in range(values.shape[1])]


def _resamples(size: int, seed: int) -> Iterator[_Floats]:
    """Yield how often each of ``size`` groups stands in each resample, in blocks of shape ``(some, size)``."""
    for block in _noise(_DRAWS, 32 * size, seed, "bootstrap"):
        numbers = block.view("<u4")[:, :size].astype(np.uint64)
        chosen = (numbers * np.uint64(size) >> np.uint64(32)).astype(int)
        yield np.array([np.bincount(one, minlength=size) for one in chosen], dtype=float)


def _summary(sums: _Floats, counts: _Floats, drawn: _Floats) -> Estimate:
    used = counts > 0
    if (n := int(used.sum())) == 0:
        return Estimate(None, why="nothing to count")
    value = float(sums.sum() / counts.sum())
    if n == 1:
        return Estimate(value, n=1, why="one group has no spread")
    if value in (0.0, 1.0) and (sums[used] == value * counts[used]).all():
        low, high = wilson(round(value * n), n)
        return Estimate(value, low, high, n, "all groups agree: Wilson's interval over groups")
    low, high = np.nanquantile(drawn, [0.025, 0.975])
    return Estimate(value, float(low), float(high), n)


def _noise(rows: int, bits: int, seed: int, name: str) -> Iterator[NDArray[np.uint64]]:
    """Yield ``rows`` rows of at least ``bits`` random bits, in blocks that memory can hold.

    They are splitmix64 [8] of a counter, started by seed and name.
    """
    width = -(-bits // 64) or 1
    for start in range(0, rows, _BLOCK):
        count = np.arange(start * width + 1, min(start + _BLOCK, rows) * width + 1, dtype=np.uint64)
        z = count * np.uint64(0x9E3779B97F4A7C15) + np.uint64(derive(seed, name))
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            z = (z ^ (z >> np.uint64(shift))) * np.uint64(factor)
        yield (z ^ (z >> np.uint64(31))).astype("<u8").reshape(-1, width)


def _finite(values: Sequence[float]) -> _Floats:
    if not np.isfinite(found := np.asarray(values, dtype=float)).all():
        raise InputError("a value is NaN or infinite, and a mean of it says nothing: leave the task out, and count it.")
    return found


def _check_tries(n: int, c: int, k: int) -> None:
    if not 0 <= c <= n or not 1 <= k <= n:
        msg = f"n={n!r} tries, c={c!r} passes, k={k!r} cannot be: c runs from 0 to n, and k from 1 to n. "
        raise InputError(msg + "A task with fewer than k tries says nothing about k: leave it out, and count it.")
