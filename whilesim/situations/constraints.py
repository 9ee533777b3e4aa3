"""Constraints: what the rules leave possible, as tables.

A rule is called once for every combination of values of its own axes, never for whole
situations. Its table is projected to pairs of values, and path consistency [1] takes away
every pair that no value of some third axis can join. What is left is necessary, not
sufficient: whether a pair can stand in a whole row is for a search to prove (``filling``).

    [1] Montanari (1974). Networks of constraints: fundamental properties and applications to
        picture processing. Information Sciences 7, 95-132.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import prod

import numpy as np

from whilesim.core.errors import InputError
from whilesim.situations.axes import Axis, Rule, require_axes
from whilesim.situations.tuples import FREE, Bools, Grid, Ints

_LARGEST_TABLE = 2_000_000


@dataclass(frozen=True, slots=True)
class Limits:
    """Which values, pairs and longer combinations are possible."""

    values: tuple[Bools, ...]
    """For each axis, which of its values can stand in a row at all."""
    tables: tuple[tuple[tuple[int, ...], Bools], ...]
    """Axes, and which combinations of their values are possible: one, two or more axes, where some are not."""

    @property
    def forbid(self) -> bool:
        """Whether anything is impossible at all."""
        return bool(self.tables)

    def allow(self, rows: Ints) -> Bools:
        """Say of each row whether it can happen; a rule that meets a free cell does not speak."""
        fine = np.ones(len(rows), dtype=bool)
        for axes, table in self.tables:
            cells = rows[:, axes]
            fine &= table[tuple(cells.T)] | (cells == FREE).any(axis=1)
        return fine

    def domains(self, row: Ints) -> list[Bools]:
        """Return for each axis which values the cells set in ``row`` leave to it, where it is free."""
        domains = [values.copy() for values in self.values]
        for axes, table in self.tables:
            free = [at for at, axis in enumerate(axes) if row[axis] == FREE]
            if len(free) == 1:
                cut = tuple(slice(None) if at in free else int(row[axis]) for at, axis in enumerate(axes))
                domains[axes[free[0]]] &= table[cut]
        return domains

    def possible(self, grid: Grid) -> Bools:
        """Say of each tuple whether the tables leave it possible, shape ``(total + 1,)``."""
        fine = np.ones(grid.total + 1, dtype=bool)
        fine[-1] = False
        for at, combo in enumerate(grid.combos):
            fine[grid.offsets[at] : grid.offsets[at + 1]] = self.allow(grid.settings(grid.row_of(), combo))
        return fine


@dataclass(frozen=True, slots=True)
class Goal:
    """What rows have to hold, and what they may."""

    grid: Grid
    limits: Limits
    wanted: Bools
    """The tuples that must stand in a row, shape ``(total + 1,)``."""
    locked: int
    """How many rows, the first ones, stay as they are."""
    unproved: tuple[int, ...] = ()
    """Tuples not wanted because no row was found for them, without proof that there is none."""


def tabulate(axes: Sequence[Axis], rules: Sequence[Rule]) -> Limits:
    """Turn rules into tables over the axes, and take away pairs that no third value can join.

    Raises:
        InputError: A rule names an axis that is not there, its own axes have more than two million
            combinations, or its predicate fails.
    """
    names = [axis.name for axis in axes]
    values = [np.ones(len(axis.values), dtype=bool) for axis in axes]
    pairs: dict[tuple[int, int], Bools] = {}
    tables: list[tuple[tuple[int, ...], Bools]] = []
    for rule in rules:
        require_axes(rule, {axis.name: axis.values for axis in axes})
        places, table = _table(rule, [axes[names.index(name)] for name in rule.axes], names)
        if len(places) > 2:
            tables.append((places, table))
        for at, place in enumerate(places):
            values[place] &= table.any(axis=tuple(i for i in range(len(places)) if i != at))
        for i, j in combinations(range(len(places)), 2):
            others = tuple(at for at in range(len(places)) if at not in (i, j))
            _narrow(pairs, places[i], places[j], np.asarray(table.any(axis=others)))
    for a, b in combinations(range(len(axes)), 2):
        if not (values[a].all() and values[b].all()):
            _narrow(pairs, a, b, np.outer(values[a], values[b]))
    _make_path_consistent(pairs)
    for (a, _), table in pairs.items():
        values[a] &= table.any(axis=1)
    tables += [((axis,), possible) for axis, possible in enumerate(values) if not possible.all()]
    tables += [(places, table) for places, table in pairs.items() if places[0] < places[1]]
    return Limits(tuple(values), tuple(tables))


def _table(rule: Rule, axes: Sequence[Axis], names: Sequence[str]) -> tuple[tuple[int, ...], Bools]:
    shape = tuple(len(axis.values) for axis in axes)
    if prod(shape) > _LARGEST_TABLE:
        raise InputError(
            f"a rule over {rule.axes} has {prod(shape):,} combinations to ask for, more than "
            f"{_LARGEST_TABLE:,}. Forbid over fewer axes at a time."
        )
    allowed = np.empty(shape, dtype=bool)
    for at, values in zip(np.ndindex(shape), product(*(axis.values for axis in axes)), strict=True):
        try:
            allowed[at] = not rule.forbids(*values)
        except Exception as error:  # a predicate of the user's may raise anything
            raise InputError(
                f"the rule over {rule.axes} failed on {values}: {error!r}. Its predicate must take one value "
                f"of each of these {len(values)} axes and answer true or false."
            ) from error
    return tuple(names.index(name) for name in rule.axes), allowed


def _narrow(pairs: dict[tuple[int, int], Bools], a: int, b: int, table: Bools) -> bool:
    """Keep of the pairs of ``a`` and ``b`` those in ``table``; say whether that took any away."""
    before = pairs.get((a, b))
    after = table.copy() if before is None else before & table
    if after.all() or (before is not None and (after == before).all()):
        return False
    pairs[a, b], pairs[b, a] = after, after.T
    return True


def _make_path_consistent(pairs: dict[tuple[int, int], Bools]) -> None:
    changed = bool(pairs)
    while changed:
        changed = False
        for (a, c), (d, b) in product(list(pairs), list(pairs)):
            if c == d and a < b:
                joined = pairs[a, c].astype(np.float32) @ pairs[c, b].astype(np.float32) > 0
                changed |= _narrow(pairs, a, b, joined)
