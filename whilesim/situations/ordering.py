"""Ordering: rows in an order, and with free cells set, such that every prefix covers much.

The next row is always the one with the most tuples not seen before: a prefix then holds at
least 1 - 1/e of what any choice of as many of these rows holds [1]. A cell none of whose
tuples is seen there for the first time is free, and is set again to what helps most. Where a
share of the rows is wished to be of some kind, rows are turned that way as long as not one
tuple fewer is held.

    [1] Nemhauser, Wolsey, Fisher (1978). An analysis of approximations for maximizing
        submodular set functions. Mathematical Programming 14, 265-294.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations, islice
from math import prod

import numpy as np

from whilesim.situations.constraints import Goal
from whilesim.situations.filling import complete_row, every_row
from whilesim.situations.tabu import drop_redundant
from whilesim.situations.tuples import FREE, Bools, Ints

_TRIES = 8  # starts for a row beyond the covering; half as many rows to choose from
_CHOICES = 150  # free cells with so many settings are set together
_SWEEPS = 3

Liking = Callable[[Ints], float] | None
"""How much a row is liked, where any is."""


@dataclass(frozen=True, slots=True)
class Leaning:
    """A kind of row, and the share of the rows, 0 to 1, that is wished to be of it."""

    share: float
    fits: Callable[[Ints], float]
    """How likely a row is of that kind, 0 to 1."""

    def of(self, rows: Ints) -> list[float]:
        """Return how likely each row is of that kind."""
        return [float(self.fits(row)) for row in rows]


def arrange(rows: Ints, goal: Goal) -> Ints:
    """Order rows and set their free cells, so that every prefix covers much; lose no wanted tuple.

    Rows with nothing of their own are left out. ``rows`` may have free cells only where nothing is
    forbidden.
    """
    for _ in range(2):
        rows = _settle(_best_first(rows, goal), goal)
    return rows


def lean(rows: Ints, goal: Goal, leaning: Leaning) -> Ints:
    """Turn rows toward the share that is wished, last ones first, until it is reached; lose nothing.

    One or two cells of a row are set again where it then holds no fewer of the tuples that no other
    row holds. In a complete covering that leaves only its free cells; below the bound one missing
    tuple may take another's place.
    """
    grid, rows, counts = goal.grid, rows.copy(), goal.grid.counts(rows)
    complete = not (goal.wanted & (counts == 0)).any()
    fits = np.array(leaning.of(rows))
    for at in [*range(len(rows) - 1, goal.locked - 1, -1)] * _SWEEPS:
        excess = float(fits[goal.locked :].sum()) - leaning.share * (len(rows) - goal.locked)
        if abs(excess) <= 0.5:  # rows
            break
        if fits[at] == (excess < 0):
            continue
        ids = grid.ids(rows[at : at + 1])[0]
        counts[ids] -= 1
        own = goal.wanted & (counts == 0)
        movable = ~(grid.weights[:, own[ids]] > 0).any(axis=1) if complete else np.ones(len(grid.sizes), dtype=bool)
        choices = _variants(rows[at], np.flatnonzero(movable), goal)
        fine = choices[own[grid.ids(choices)].sum(axis=1) >= own[ids].sum()]
        liked = np.array(leaning.of(fine)) if len(fine) else fits[at : at + 1]
        best = int(liked.argmin() if excess > 0 else liked.argmax())
        if (liked[best] < fits[at]) if excess > 0 else (liked[best] > fits[at]):
            rows[at], fits[at] = fine[best], liked[best]
        counts[grid.ids(rows[at : at + 1])[0]] += 1
    return drop_redundant(_best_first(rows, goal), goal)


def extend(rows: Ints, goal: Goal, count: int, leaning: Leaning | None) -> Ints:
    """Add rows up to ``count``, each different from all before, or as many as there are.

    A new row starts from a tuple that has stood least often so far and is filled with more of
    those, so that whole rounds of coverage go by before any tuple is favoured. Of several such
    rows, with their other cells turned toward the share that is wished, the best is taken.
    """
    counts, found = goal.grid.counts(rows), [*rows]
    total = sum(leaning.of(rows[goal.locked :])) if leaning else 0.0
    known = {row.tobytes() for row in rows}
    others = every_row(goal.grid, goal.limits)
    while len(found) < count:
        prefer = _direction(leaning, total, len(found) + 1 - goal.locked)
        scarce = goal.wanted & (counts == counts[goal.wanted].min())
        numbers = np.roll(np.flatnonzero(scarce), -len(found))[:: 1 + int(scarce.sum()) // _TRIES]
        tries = (_row_with(int(number), goal, scarce, counts, prefer, len(found)) for number in numbers)
        new = (row for row in tries if row is not None and row.tobytes() not in known)
        fresh = list(islice(new, _TRIES // 2 if prefer else 1))
        fresh = fresh or list(islice((row for row in others if row.tobytes() not in known), 1))
        if not fresh:
            break
        row = fresh[_best(np.array(fresh), goal, scarce, counts, prefer)]
        counts[goal.grid.ids(row[None])] += 1
        known.add(row.tobytes())
        found.append(row)
        total += float(leaning.fits(row)) if leaning else 0.0
    return np.array(found)


def _direction(leaning: Leaning | None, total: float, rows: int) -> Liking:
    """Return what the last of so many rows should be like, where ``total`` of those before are of the kind."""
    if leaning is None:
        return None
    more = 1 if total + 0.5 < leaning.share * rows else -1
    return lambda row: more * leaning.fits(row)


def _variants(row: Ints, axes: Ints, goal: Goal) -> Ints:
    """Return the possible rows that differ from this one in one or two of some axes."""
    sizes = goal.grid.sizes
    pairs = [pair for pair in combinations(axes, 2) if sizes[pair[0]] * sizes[pair[1]] <= _CHOICES]
    rows = np.concatenate(
        [row[None], *(goal.grid.settings(row, np.array(group)) for group in [*pairs, *axes[:, None]])]
    )
    return rows[goal.limits.allow(rows)]


def _best_first(rows: Ints, goal: Goal) -> Ints:
    """Return the rows in greedy order."""
    ids = goal.grid.ids(rows)
    unseen = goal.wanted.copy()
    unseen[ids[: goal.locked]] = False
    gains = unseen[ids].sum(axis=1)
    gains[: goal.locked] = -1
    by_tuple = np.argsort(ids.ravel(), kind="stable") // ids.shape[1]
    ends = np.concatenate([[0], np.cumsum(goal.grid.counts(rows))])
    order = list(range(goal.locked))
    while gains.max(initial=0) > 1:
        row = int(gains.argmax())
        for number in ids[row][unseen[ids[row]]]:
            gains[by_tuple[ends[number] : ends[number + 1]]] -= 1
        unseen[ids[row]] = False
        gains[row] = -1
        order.append(row)
    return np.asarray(rows[order + np.argsort(-gains, kind="stable")[: len(rows) - len(order)].tolist()])


def _settle(rows: Ints, goal: Goal) -> Ints:
    """Set free cells again, row by row: what meets most, then what stood least."""
    grid, rows, unseen = goal.grid, rows.copy(), goal.wanted.copy()
    counts = grid.counts(rows[: goal.locked])
    unseen[counts > 0] = False
    left = int(unseen.sum())
    for at in range(goal.locked, len(rows)):
        if left <= len(rows) - at:
            break  # each row has one tuple of its own, and no cell can earn another
        ids = grid.ids(rows[at : at + 1])[0]
        free = np.flatnonzero(~(grid.weights[:, unseen[ids]] > 0).any(axis=1))
        if len(free):
            rows[at] = _reset(rows[at], free, goal, unseen, counts, None)
            ids = grid.ids(rows[at : at + 1])[0]
        left -= int(unseen[ids].sum())
        counts[ids] += 1
        unseen[ids] = False
    return drop_redundant(grid.in_turn(rows), goal)


def _row_with(number: int, goal: Goal, scarce: Bools, counts: Ints, prefer: Liking, turn: int) -> Ints | None:
    """Return a row that holds one tuple and more of the scarce ones, leaning as preferred."""
    row = goal.grid.row_of(number)
    filled, _ = complete_row(row, goal.grid, goal.limits, scarce, turn)
    if filled is None or prefer is None or FREE not in row:
        return filled
    return _reset(filled, np.flatnonzero(row == FREE), goal, scarce, counts, prefer)


def _reset(row: Ints, free: Ints, goal: Goal, unseen: Bools, counts: Ints, prefer: Liking) -> Ints:
    """Set the free cells to their best values: together where that is few choices, else one by one."""
    for group in [free] if prod(goal.grid.sizes[axis] for axis in free) <= _CHOICES else free[:, None]:
        choices = goal.grid.settings(row, group)
        choices = choices[goal.limits.allow(choices)]
        row = choices[_best(choices, goal, unseen, counts, prefer)]
    return row


def _best(choices: Ints, goal: Goal, unseen: Bools, counts: Ints, prefer: Liking) -> int:
    """Return the choice liked best, then the one with most unseen tuples, then with the rarest ones."""
    ids = goal.grid.ids(choices)
    liked = np.array([float(prefer(choice)) for choice in choices]) if prefer else np.zeros(len(choices))
    return int(np.lexsort((counts[ids].sum(axis=1), -unseen[ids].sum(axis=1), -liked))[0])
