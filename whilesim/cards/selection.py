"""Selection: candidates that are far apart.

``select_spread`` is plain farthest-first traversal and has its factor of two. The choice of
one candidate for each situation uses the same step under a constraint, and promises less:
one of each group, and a least distance that is never worse than the first candidates'.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from whilesim.core.errors import InputError

Floats = NDArray[np.float64]
_ROUNDS = 3  # passes over all groups in which a candidate may be swapped


def select_spread(vectors: Floats, count: int, *, start: int = 0) -> NDArray[np.intp]:
    """Choose ``count`` vectors so that none left out is far from a chosen one.

    Takes ``start``, then again and again the vector whose nearest chosen one is furthest away.
    The largest distance from a vector to its nearest chosen one is at most twice the smallest
    that any choice of ``count`` can reach.

    Args:
        vectors: Shape ``(n, d)``; scaled to unit length here, so that only directions matter.
        count: From 1 to ``n``.
        start: Index of the first one chosen.

    Returns:
        Indices in the order chosen, shape ``(count,)``: a shorter choice is a prefix of a longer
        one. Distances are Euclidean, 0 to 2; ties go to the lower index.

    Raises:
        InputError: ``count`` is outside 1 to ``n``, or a vector is zero or not finite.

    Source:
        Gonzalez (1985). Clustering to minimize the maximum intercluster distance. Theoretical
        Computer Science 38, 293-306.
    """
    unit = _unit(vectors)
    if not 1 <= count <= len(unit):
        raise InputError(f"count={count} of {len(unit)} vectors cannot be chosen. Type a number from 1 to {len(unit)}.")
    chosen = [start]
    nearest = _distances(unit, unit[start])
    while len(chosen) < count:
        nearest[chosen] = -1.0
        chosen.append(int(np.argmax(nearest)))
        nearest = np.minimum(nearest, _distances(unit, unit[chosen[-1]]))
    return np.array(chosen, dtype=np.intp)


def choose_candidates(vectors: Floats, groups: Sequence[int]) -> NDArray[np.intp]:
    """Choose one candidate of each group so that the chosen are far apart.

    Args:
        vectors: One row per candidate, shape ``(n, d)``.
        groups: The group of each candidate, shape ``(n,)``; candidates of a group stand together.

    Returns:
        One index per group, in the order in which the groups first stand, shape ``(g,)``. The
        least distance between two chosen ones is never less than the first candidates' is.

    Raises:
        InputError: A vector is zero or not finite, or the lengths differ.
    """
    unit = _unit(vectors) if len(vectors) else np.zeros((0, 1))
    if len(unit) != len(groups):
        raise InputError(f"{len(unit)} vectors and {len(groups)} groups: each candidate needs both.")
    members: dict[int, list[int]] = {}
    for index, group in enumerate(groups):
        members.setdefault(group, []).append(index)
    order = list(members.values())
    first = [m[0] for m in order]
    if len(order) < 2:
        return np.array(first, dtype=np.intp)
    spread = _swap(unit, _farthest_first(unit, order), order)
    chosen = spread if _least(unit, spread) >= _least(unit, first) else first
    return np.array(chosen, dtype=np.intp)


def _farthest_first(unit: Floats, order: Sequence[Sequence[int]]) -> list[int]:
    """Take the candidate that is furthest from all taken ones, of a group that has none yet."""
    group_of = np.empty(len(unit), dtype=np.intp)
    for number, members in enumerate(order):
        group_of[list(members)] = number
    taken = np.full(len(order), -1, dtype=np.intp)
    taken[0] = last = order[0][0]
    rows = np.flatnonzero(group_of != 0)  # candidates of groups that have none yet
    field, nearest = unit[rows], np.full(len(rows), np.inf)
    for _ in range(1, len(order)):
        nearest = np.minimum(nearest, _distances(field, unit[last]))
        last = int(rows[np.argmax(nearest)])
        taken[group_of[last]] = last
        nearest[group_of[rows] == group_of[last]] = -1.0
        still = nearest >= 0
        if 2 * int(still.sum()) < len(rows):  # fewer rows make the next steps cheaper
            rows, field, nearest = rows[still], field[still], nearest[still]
    return [int(t) for t in taken]


def _swap(unit: Floats, taken: list[int], order: Sequence[Sequence[int]]) -> list[int]:
    """Exchange a candidate for another of its group wherever that one's nearest neighbour is further."""
    taken = list(taken)
    likeness = unit @ unit[taken].T  # (n, g): each candidate against the one taken of each group
    for number, members in enumerate(order):
        likeness[list(members), number] = -2.0  # nobody is a neighbour of its own group
    for _ in range(_ROUNDS):
        changed = False
        for number, members in enumerate(order):
            gaps = np.round(-likeness[list(members)].max(axis=1), 6)
            best = int(np.argmax(gaps))
            if gaps[best] > gaps[list(members).index(taken[number])]:
                taken[number], changed = members[best], True
                likeness[:, number] = unit @ unit[members[best]]
                likeness[list(members), number] = -2.0
        if not changed:
            break
    return taken


def _least(unit: Floats, chosen: Sequence[int]) -> float:
    picked = unit[list(chosen)]
    likeness = picked @ picked.T
    np.fill_diagonal(likeness, -1.0)
    return float(np.round(2.0 - 2.0 * likeness.max(), 6))


def _distances(unit: Floats, point: Floats) -> Floats:
    """Return distances to one point, rounded so that no machine's last bit decides."""
    return np.round(np.sqrt(np.maximum(0.0, 2.0 - 2.0 * (unit @ point))), 6)


def _unit(vectors: Floats) -> Floats:
    found = np.asarray(vectors, dtype=np.float64)
    length = np.linalg.norm(found, axis=1, keepdims=True) if found.ndim == 2 else np.zeros((1, 1))
    if not np.isfinite(found).all() or not (length > 0).all():
        raise InputError("a vector is zero or not finite, so it has no direction. Check the embedder that made it.")
    unit: Floats = found / length
    return unit
