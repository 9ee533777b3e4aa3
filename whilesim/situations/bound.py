"""Bound: how few rows a complete covering can have.

Through any two axes, the rows are edges between the values of one and the values of the
other. Every possible pair needs an edge, and a value needs as many edges as it has partners
on any third axis. An edge more serves two values at once only where they may meet, so the
most that can be saved is a maximum flow.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from whilesim.situations.tuples import Bools, Grid, Ints


def fewest_rows(grid: Grid, possible: Bools) -> int:
    """Return a number of rows below which some possible tuple must be missing.

    Args:
        grid: The numbering of tuples.
        possible: Which tuples can stand in a row, shape ``(total + 1,)``.
    """
    if grid.strength != 2 or possible[:-1].all():
        return int(grid.per_combo(possible).max())
    tables, axes = _tables(grid, possible), range(len(grid.sizes))
    need = [np.max([tables[a, b].sum(axis=1) for b in axes if b != a], axis=0) for a in axes]
    return max(_through(tables[a, b], need[a], need[b]) for a, b in combinations(axes, 2))


def _tables(grid: Grid, possible: Bools) -> dict[tuple[int, int], Bools]:
    tables = {}
    for at, (a, b) in enumerate(grid.combos.tolist()):
        tables[a, b] = possible[grid.offsets[at] : grid.offsets[at + 1]].reshape(grid.sizes[a], grid.sizes[b])
        tables[b, a] = tables[a, b].T
    return tables


def _through(table: Bools, need_a: Ints, need_b: Ints) -> int:
    """Return how many rows the pairs of two axes need, by what each value needs elsewhere."""
    lack_a = np.maximum(need_a - table.sum(axis=1), 0)
    lack_b = np.maximum(need_b - table.sum(axis=0), 0)
    lacking = int(lack_a.sum() + lack_b.sum())
    shared = _flow(table, lack_a, lack_b) if lack_a.any() and lack_b.any() else 0
    return int(table.sum()) + lacking - shared


def _flow(table: Bools, supply: Ints, demand: Ints) -> int:
    """Return the most that can flow from supplies to demands where the table has an edge."""
    left, right = table.shape
    capacity = np.zeros((left + right + 2, left + right + 2), dtype=np.int32)
    capacity[0, 1 : left + 1] = supply
    capacity[1 : left + 1, left + 1 : -1] = table * int(supply.sum())
    capacity[left + 1 : -1, -1] = demand
    return int(maximum_flow(csr_array(capacity), 0, left + right + 1).flow_value)
