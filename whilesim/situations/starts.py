"""Starts: complete coverings to begin with, and the proof of what cannot be covered.

Each start is a set of rows, from algebra or none at all. Cells that the rules forbid are given
up, free cells are filled, and a row is added for every possible tuple still missing. A tuple
that no row can hold is found out here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from whilesim.situations.constraints import Goal
from whilesim.situations.filling import complete_row, keep_possible
from whilesim.situations.skeleton import exact, squares
from whilesim.situations.tabu import drop_redundant
from whilesim.situations.tuples import FREE, Bools, Grid, Ints

_FEW = 2_500  # rows; beyond, building one row at a time is too slow to be worth comparing
_NEAR = 1.25  # how many times the largest pair of axes a start may be to need no rival


def starts(goal: Goal, locked: Ints) -> Iterator[tuple[Ints, Goal]]:
    """Yield complete coverings, likely good ones first, each with what it turned out to have to hold.

    Args:
        goal: Its wanted tuples are those that are not known to be impossible.
        locked: The rows that each covering begins with, shape ``(goal.locked, k)``.
    """
    first, *others = _plans(goal)
    rows, goal = complete(first, goal, locked)
    yield rows, goal
    for plan in others:
        rows, held = complete(plan, goal, locked)
        if held.unproved == goal.unproved:  # else it lacks what the first one holds
            yield rows, goal


def complete(rows: Ints, goal: Goal, locked: Ints) -> tuple[Ints, Goal]:
    """Make rows possible and whole, add what they lack, and take out what is there twice.

    Where nothing is forbidden and nothing lacks, free cells stay free.

    Returns:
        The rows, and the goal without the tuples that no row can hold, or none was found to hold.
    """
    grid, limits = goal.grid, goal.limits
    rows = rows.copy()
    for wrong in np.flatnonzero(~limits.allow(rows)):
        rows[wrong] = keep_possible(rows[wrong], limits)
    wanted = goal.wanted & (grid.counts(np.concatenate([locked, rows])) == 0)
    if not limits.forbid and not wanted.any():
        return np.concatenate([locked, rows]), goal
    found, easy = [*locked], grid.in_turn(rows)
    whole = (rows != FREE).all(axis=1)
    simple = limits.allow(easy)
    for at, row in enumerate(rows):
        if simple[at] and (whole[at] or not wanted.any()):
            found.append(easy[at])
            continue
        filled, _ = complete_row(row, grid, limits, wanted, len(found))
        if filled is not None:
            wanted[grid.ids(filled[None])] = False
            found.append(filled)
    rows, goal = _add_missing(found, goal)
    return drop_redundant(rows, goal), goal


def _plans(goal: Goal) -> list[Ints]:
    """Return the rows to begin with: from algebra where it serves, and none at all where it may not."""
    sizes, forbid = goal.grid.sizes, goal.limits.forbid
    plans = exact(sizes, goal.grid.strength)
    largest = len(plans[0])
    if goal.grid.counts(plans[0])[:-1].all():
        plans = plans[:1]
    elif goal.grid.strength == 2 and sizes[0] ** 2 <= 2 * largest:
        square = squares(sizes)
        rivals = [] if len(square) <= _NEAR * largest else plans
        plans = [*plans, square] if forbid else [square, *rivals]
    if (forbid or goal.locked) and largest <= _FEW:
        plans.append(np.empty((0, len(sizes)), dtype=np.int64))
    return plans


def _add_missing(found: list[Ints], goal: Goal) -> tuple[Ints, Goal]:
    """Add a row for each wanted tuple that is still missing, or learn that there is none."""
    grid, possible, unproved = goal.grid, goal.wanted.copy(), list(goal.unproved)
    wanted = possible & (grid.counts(_stack(found, grid)) == 0)
    while wanted.any():
        number = _first_of_most(grid, wanted)
        row, proved = complete_row(grid.row_of(number), grid, goal.limits, wanted, len(found))
        if row is None:
            possible[number] = wanted[number] = False
            unproved += [] if proved else [number]
        else:
            wanted[grid.ids(row[None])] = False
            found.append(row)
    return _stack(found, grid), replace(goal, wanted=possible, unproved=tuple(unproved))


def _first_of_most(grid: Grid, wanted: Bools) -> int:
    """Return the first wanted tuple of the axes that lack most."""
    combo = int(grid.per_combo(wanted).argmax())
    low = int(grid.offsets[combo])
    return low + int(wanted[low : grid.offsets[combo + 1]].argmax())


def _stack(rows: list[Ints], grid: Grid) -> Ints:
    return np.array(rows, dtype=np.int64).reshape(-1, len(grid.sizes))
