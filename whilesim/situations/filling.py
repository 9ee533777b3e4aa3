"""Filling: rows completed cell by cell, each with the value that meets most.

A free cell takes the value that makes most wanted tuples with the cells already set, as in
AETG [1]. Under constraints the search checks ahead: a value that leaves some other axis
nothing is passed over, and the search turns back where no value is left. Where it ends
without a row it has proved that there is none; where it gives up, it says so.

    [1] Cohen, Dalal, Fredman, Patton (1997). The AETG system: an approach to testing based on
        combinatorial design. IEEE Trans. Software Engineering 23(7), 437-444.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

import numpy as np

from whilesim.situations.constraints import Limits
from whilesim.situations.tuples import FREE, Bools, Grid, Ints

_PATIENCE = 20_000  # values tried


def complete_row(row: Ints, grid: Grid, limits: Limits, wanted: Bools, turn: int = 0) -> tuple[Ints | None, bool]:
    """Fill the free cells of a row so that it makes many wanted tuples.

    Args:
        row: One index per axis, or ``FREE``; the cells that are set stay.
        grid: The numbering of tuples.
        limits: What is possible.
        wanted: Which tuples count, shape ``(total + 1,)``.
        turn: Where a cell gains nothing, values are tried from this one on, so that rows differ.

    Returns:
        The row, complete, or None where none was found; and whether that is proved.
    """
    steps: list[float] = [_PATIENCE]
    rows = _fill(row.copy(), grid, limits, wanted, turn, steps) if limits.allow(row[None])[0] else iter(())
    return next(rows, None), steps[0] > 0


def every_row(grid: Grid, limits: Limits) -> Iterator[Ints]:
    """Yield every row that can happen, the values of the last axis fastest."""
    return _fill(grid.row_of(), grid, limits, np.zeros(grid.total + 1, dtype=bool), 0, [inf])


def _fill(row: Ints, grid: Grid, limits: Limits, wanted: Bools, turn: int, steps: list[float]) -> Iterator[Ints]:
    free = np.flatnonzero(row == FREE)
    if not len(free):
        yield row.copy()
        return
    domains = limits.domains(row) if limits.forbid else limits.values
    left = [int(domains[axis].sum()) for axis in free]
    if 0 in left:
        return
    axis = int(free[left.index(1)] if limits.forbid and 1 in left else free[0])
    values = np.flatnonzero(domains[axis])
    gains = grid.gains(row, axis, wanted)[values]
    for value in values[np.lexsort(((values - turn) % grid.sizes[axis], -gains))]:
        steps[0] -= 1
        row[axis] = value
        if steps[0] > 0:
            yield from _fill(row, grid, limits, wanted, turn, steps)
    row[axis] = FREE


def keep_possible(row: Ints, limits: Limits) -> Ints:
    """Keep the cells of a row, first axes first, as long as every axis has a value left."""
    kept = np.full_like(row, FREE)
    for axis in np.flatnonzero(row != FREE):
        kept[axis] = row[axis]
        if not limits.allow(kept[None])[0] or not all(left.any() for left in limits.domains(kept)):
            kept[axis] = FREE
    return kept
