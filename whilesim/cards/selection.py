"""Selection: candidates that are far apart, one for each row.

Every situation has several candidate cards, and which of them is played changes no pair that
the covering holds: so the choice is free to be made for difference alone. Distances are
Euclidean between unit vectors, from 0 (same direction) to 2 (opposite), and are rounded to
1e-6 before they are compared, ties by index: the last bits of a sum, which differ between
machines, decide nothing.

What is promised: the two closest of the chosen are never closer than among the first
candidates. That no choice is better is not promised; finding the best one is NP-hard [1].

    [1] Gonzalez (1985). Clustering to minimize the maximum intercluster distance. Theoretical
        Computer Science 38, 293-306.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from whilesim.core.errors import InputError

Vectors = NDArray[np.float64]
Indices = NDArray[np.intp]

_AT_ONCE = 256  # groups whose candidates are held against all chosen ones at once


def choose_candidates(vectors: Vectors, groups: Sequence[int]) -> Indices:
    """Choose one vector of each group so that the chosen are far apart.

    Every group begins with its first one. Then each in turn takes the one of its vectors whose
    nearest chosen one is furthest away.

    Args:
        vectors: One embedding for each candidate, shape ``(n, d)``; only directions count.
        groups: The group of each candidate, length ``n``.

    Returns:
        One index for each group, in the order in which groups first appear.

    Raises:
        InputError: ``groups`` has another length than ``vectors``, or a vector is zero or not finite.
    """
    unit = _unit(vectors) if len(vectors) else np.empty((0, 1))
    if len(groups) != len(unit):
        raise InputError(f"{len(groups)} groups were given for {len(unit)} vectors. Give each vector its group.")
    members: dict[int, list[int]] = {}
    for index, group in enumerate(groups):
        members.setdefault(group, []).append(index)
    each = list(members.values())
    chosen = np.array([indices[0] for indices in each], dtype=np.intp)
    for low in range(0, len(each), _AT_ONCE):
        _move_apart(unit, each[low : low + _AT_ONCE], low, chosen)
    return chosen


def spread(vectors: Vectors) -> dict[str, float | None]:
    """Return ``least`` and ``mean``: how far vectors are from their nearest other one.

    Both are None for fewer than two vectors, which are not near anything.

    Raises:
        InputError: A vector is zero or not finite.
    """
    unit = _unit(vectors)
    if len(unit) < 2:
        return {"least": None, "mean": None}
    nearest = _nearest(unit)
    return {"least": float(nearest.min()), "mean": round(float(nearest.mean()), 6)}


def _move_apart(unit: Vectors, groups: list[list[int]], low: int, chosen: Indices) -> None:
    """Let some groups, of which the first has the place ``low``, choose again, one after the other."""
    indices = np.array([index for group in groups for index in group], dtype=np.intp)
    ends = np.cumsum([0, *(len(group) for group in groups)])
    candidates = unit[indices]
    alike = candidates @ unit[chosen].T
    for place, (start, end) in enumerate(pairwise(ends), low):
        alike[start:end, place] = -1.0  # nobody is a neighbour of its own group
        gaps = _distance(alike[start:end].max(axis=1))
        best = int(gaps.argmax())
        if best:
            chosen[place] = indices[start + best]
            alike[end:, place] = candidates[end:] @ unit[chosen[place]]


def _nearest(unit: Vectors) -> Vectors:
    """Return each vector's distance to the nearest other one, shape ``(n,)``."""
    nearest = np.empty(len(unit))
    for low in range(0, len(unit), 1_024):
        rows = np.arange(low, min(low + 1_024, len(unit)))
        alike = unit[rows] @ unit.T
        alike[rows - low, rows] = -1.0
        nearest[rows] = alike.max(axis=1)
    return _distance(nearest)


def _distance(cosines: Vectors) -> Vectors:
    """Return the distances between unit vectors with these products, rounded so that no last bit decides."""
    return np.asarray(np.sqrt(np.maximum(2.0 - 2.0 * cosines, 0.0)).round(6))


def _unit(vectors: Vectors) -> Vectors:
    given = np.asarray(vectors, dtype=np.float64)
    lengths = np.linalg.norm(given, axis=-1) if given.ndim == 2 else np.zeros(1)
    wrong = np.flatnonzero(~(np.isfinite(lengths) & (lengths > 0)))
    if len(wrong):
        raise InputError(
            f"vector {wrong[0]} is zero or not finite, so it has no direction. Give vectors of shape (n, d), and "
            "look at the embedder that made them."
        )
    return np.asarray(given / lengths[:, None])
