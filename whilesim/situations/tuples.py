"""Tuples: every combination of values that must stand in some row, numbered.

Inside the covering rooms an axis is its position and a value is its index; a row is one
index per axis, and ``FREE`` where any value will do. With ``strength`` t, the tuples of one
combination of t axes have consecutive numbers, and all numbers together run from 0 to
``total - 1``. A tuple with a free cell has the number ``total``, which is nobody's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

FREE = -1


@dataclass(frozen=True, slots=True)
class Grid:
    """The numbering of all tuples over axes of the given sizes."""

    sizes: tuple[int, ...]
    strength: int
    combos: Ints
    """Positions of the axes of each combination, ascending, shape ``(c, t)``."""
    weights: Ints
    """What one step of an axis' index adds to the number of a tuple, shape ``(k, c)``; 0: not in it."""
    offsets: Ints
    """Number of each combination's first tuple, and ``total`` at the end, shape ``(c + 1,)``."""

    @property
    def total(self) -> int:
        """How many tuples there are, forbidden ones included."""
        return int(self.offsets[-1])

    def ids(self, rows: Ints) -> Ints:
        """Return the number of the tuple in each row and combination, shape ``(n, c)``."""
        free = (rows == FREE) @ (self.weights > 0)
        return np.where(free, self.total, rows @ self.weights + self.offsets[:-1])

    def settings(self, row: Ints, axes: Ints) -> Ints:
        """Return the row once for each way to set some axes, the last one fastest."""
        options = np.indices([self.sizes[axis] for axis in axes]).reshape(len(axes), -1).T
        rows = np.tile(row, (len(options), 1))
        rows[:, axes] = options
        return rows

    def in_turn(self, rows: Ints) -> Ints:
        """Return the rows with free cells set to one value after the other."""
        return np.where(rows == FREE, np.arange(len(rows))[:, None] % self.sizes, rows)

    def per_combo(self, marked: Bools) -> Ints:
        """Return how many tuples of each combination are marked, shape ``(c,)``."""
        return np.add.reduceat(marked[:-1].astype(np.int64), self.offsets[:-1])

    def cells(self, number: int) -> tuple[Ints, Ints]:
        """Return the axes and the values of one tuple, each of shape ``(t,)``."""
        combo = int(np.searchsorted(self.offsets, number, side="right")) - 1
        axes = self.combos[combo]
        sizes = [self.sizes[axis] for axis in axes]
        return axes, np.array(np.unravel_index(number - int(self.offsets[combo]), sizes), dtype=np.int64)

    def row_of(self, number: int | None = None) -> Ints:
        """Return a row that holds one tuple, or nothing, and is free elsewhere."""
        row = np.full(len(self.sizes), FREE, dtype=np.int64)
        if number is not None:
            axes, values = self.cells(number)
            row[axes] = values
        return row

    def counts(self, rows: Ints) -> Ints:
        """Return in how many rows each tuple stands, shape ``(total + 1,)``; the last is nobody's."""
        return np.bincount(self.ids(rows).ravel(), minlength=self.total + 1)

    def gains(self, row: Ints, axis: int, wanted: Bools) -> Ints:
        """Return for each value of a free cell how many wanted tuples it makes with the cells set."""
        combos = np.flatnonzero(self.weights[axis])
        weights = self.weights[:, combos]
        there = row != FREE
        there[axis] = False
        ready = there.astype(np.int64) @ (weights > 0) == self.strength - 1
        base = (self.offsets[combos] + np.where(there, row, 0) @ weights)[ready]
        numbers = base[:, None] + weights[axis, ready, None] * np.arange(self.sizes[axis])
        return np.asarray(wanted[numbers].sum(axis=0))


def make_grid(sizes: Sequence[int], strength: int) -> Grid:
    """Number the tuples of ``strength`` values over axes of the given sizes."""
    combos = np.array(list(combinations(range(len(sizes)), strength)), dtype=np.int64)
    weights = np.zeros((len(sizes), len(combos)), dtype=np.int64)
    for at, combo in enumerate(combos):
        for place, axis in enumerate(combo):
            weights[axis, at] = prod(sizes[other] for other in combo[place + 1 :])
    lengths = [prod(sizes[axis] for axis in combo) for combo in combos]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return Grid(tuple(sizes), strength, combos, weights, offsets)
