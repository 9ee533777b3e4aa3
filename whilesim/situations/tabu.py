"""Tabu: fewer rows, or fewer missing tuples in a fixed number of rows.

A row whose every tuple stands elsewhere too is redundant. When none is, the row that matters
least is taken out, and each tuple then missing is written into the row where that loses
least; the row is left alone for a few steps, so that the search moves on instead of turning in
a circle [1]. It stops after a number of steps set by the size of the task, never by the clock:
the same call gives the same rows on any machine.

    [1] Nayeri, Colbourn, Konjevod (2013). Randomized post-optimization of covering arrays.
        European Journal of Combinatorics 34, 91-103.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from whilesim.core.seeds import derive
from whilesim.situations.constraints import Goal
from whilesim.situations.tuples import Ints

_TRIES = 3  # searches that may fail
_PATIENCE = 50_000  # over the root of rows x combinations: steps without fewer missing tuples
_CELLS = 6  # the same, over rows x combinations: a small task is searched through before that
_REST = 6


def drop_redundant(rows: Ints, goal: Goal) -> Ints:
    """Take out rows, last ones first, that hold no wanted tuple of their own."""
    ids, counts = goal.grid.ids(rows), goal.grid.counts(rows)
    kept = np.ones(len(rows), dtype=bool)
    alone = ((counts[ids] == 1) & goal.wanted[ids]).any(axis=1)
    for row in np.flatnonzero(~alone)[::-1]:
        if row >= goal.locked and not ((counts[ids[row]] == 1) & goal.wanted[ids[row]]).any():
            counts[ids[row]] -= 1
            kept[row] = False
    return rows[kept]


class Search:
    """Rows of a fixed number, and what they miss."""

    def __init__(self, rows: Ints, goal: Goal, seed: int) -> None:
        self.goal, self.grid, self.rows = goal, goal.grid, goal.grid.in_turn(rows)
        self.ids = goal.grid.ids(self.rows)
        # What is not wanted stands twice more than it does: never missed, never the last.
        self.counts = goal.grid.counts(self.rows) + np.where(goal.wanted, 0, 2)
        self.until = np.zeros(len(rows), dtype=np.int64)
        self.draw = derive(seed, "tabu", len(rows))

    def delete_least(self) -> None:
        """Take out the row with the fewest tuples of its own."""
        own = (self.counts[self.ids] == 1).sum(axis=1)
        row = len(self.rows) - 1 - int(own[self.goal.locked :][::-1].argmin())
        self.counts[self.ids[row]] -= 1
        self.rows, self.ids = np.delete(self.rows, row, axis=0), np.delete(self.ids, row, axis=0)
        self.until = np.delete(self.until, row)

    def run(self, spare: Ints) -> bool:
        """Write missing tuples into rows until no more is missing than must be; say whether it got there.

        Args:
            spare: For each combination of axes, how many of its tuples must be missing in so few rows,
                shape ``(c,)``. Afterwards ``rows`` are the best seen.
        """
        lacking, open_ = self._lacking(spare)
        best, best_rows, step, last = lacking, self.rows.copy(), 0, 0
        patience = min(_PATIENCE / sqrt(self.ids.size), _CELLS * self.ids.size)
        while len(open_) and step - last < patience:
            self._write(int(open_[self._next(len(open_))]), step, lacking - best)
            lacking, open_ = self._lacking(spare)
            step += 1
            if lacking < best:
                best, best_rows, last = lacking, self.rows.copy(), step
        self.rows = best_rows
        return bool(best <= spare.sum())

    def _lacking(self, spare: Ints) -> tuple[int, Ints]:
        """Return how many tuples are missing, and those of combinations that miss more than they must."""
        missing = np.flatnonzero(self.counts == 0)
        if not spare.any():
            return len(missing), missing
        combos = np.searchsorted(self.grid.offsets, missing, side="right") - 1
        return len(missing), missing[(np.bincount(combos, minlength=len(spare)) > spare)[combos]]

    def _next(self, size: int) -> int:
        self.draw = (self.draw * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        return (self.draw >> 33) % size

    def _write(self, tuple_id: int, step: int, behind: int) -> None:
        """Set one tuple into the row where that loses least."""
        axes, values = self.grid.cells(tuple_id)
        near = np.flatnonzero(self.grid.weights[axes].any(axis=0))
        change = (values - self.rows[:, axes]) @ self.grid.weights[axes][:, near]
        old = self.ids[:, near]
        new = old + change
        cost = ((self.counts[old] == 1) & (change != 0)).sum(axis=1) - (self.counts[new] == 0).sum(axis=1)
        barred = (self.until > step) & (cost + behind >= 0)
        if self.goal.limits.forbid:
            written = self.rows.copy()
            written[:, axes] = values
            barred |= ~self.goal.limits.allow(written)
        cost[barred] = 1 << 20
        cost[: self.goal.locked] = 1 << 20
        equal = np.flatnonzero(cost == cost.min())
        row = int(equal[self._next(len(equal))])
        if cost[row] == 1 << 20:
            return
        moved = change[row] != 0
        self.counts[old[row, moved]] -= 1
        self.counts[new[row, moved]] += 1
        self.rows[row, axes] = values
        self.ids[row, near] = new[row]
        self.until[row] = step + 1 + _REST


def reduce_rows(rows: Ints, goal: Goal, target: int, seed: int) -> Ints:
    """Return as few rows, down to ``target``, as the search finds that still hold every wanted tuple."""
    tries = 0
    while len(rows) > max(target, goal.locked) and tries < _TRIES:
        search = Search(rows, goal, derive(seed, "try", tries))
        search.delete_least()
        if search.run(np.zeros(len(goal.grid.combos), dtype=np.int64)):
            rows = drop_redundant(search.rows, goal)
        else:
            tries += 1
    return rows
