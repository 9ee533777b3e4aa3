"""Covering: a few situations in which every two values meet.

Six axes describe more situations than anyone can write. Most software failures need only one
or two conditions to coincide [1], so it is enough that every pair of values from every two
axes stands in one situation at least. Sixteen clauses, thirteen tools and four shorter axes
make 260,000 situations, and 208 rows cover their pairs: the two longest axes alone make
16 x 13, so fewer rows cannot.

The rooms before this one do the work. ``skeleton`` has the rows that algebra gives, ``filling``
completes rows and proves what cannot be, ``tabu`` takes rows out, ``ordering`` makes every
prefix count, and ``bound`` says how few rows there can be. A covering is called optimal only
when it is complete and has no more rows than that. Coverage is counted over what is
possible; the rest is listed.

    [1] Kuhn, Wallace, Gallo (2004). Software fault interactions and implications for software
        testing. IEEE Trans. Software Engineering 30(6), 418-421.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

import numpy as np

from whilesim.core.errors import InputError
from whilesim.core.seeds import shuffled
from whilesim.situations.axes import Axis, Rule
from whilesim.situations.bound import fewest_rows
from whilesim.situations.constraints import Goal, Limits, tabulate
from whilesim.situations.filling import complete_row
from whilesim.situations.ordering import Leaning, arrange, extend, lean
from whilesim.situations.starts import complete, starts
from whilesim.situations.tabu import Search, reduce_rows
from whilesim.situations.tuples import FREE, Bools, Grid, Ints, make_grid

Method = Literal["auto", "allpairspy"]
Combination = tuple[tuple[str, str], ...]
"""One value of each of ``strength`` axes: ``(("tool", "refund"), ("world_state", "missing"))``."""


@dataclass(frozen=True, slots=True)
class Wish:
    """A share of the rows, 0 to 1, that should be of some kind."""

    share: float
    fits: Callable[[Mapping[str, str]], float]
    """Called with a whole row: how likely it is of that kind, 0 to 1."""


_CLOSE = 1.1  # a start with more times the rows of the smallest is not searched any further


@dataclass(frozen=True, slots=True, kw_only=True)
class Covering:
    """Rows of axis values, and what they cover."""

    rows: tuple[Mapping[str, str], ...]
    """Axis name to value, in the order of the axes given; fixed rows first, then best first."""
    strength: int
    """How many values must meet: 2 for pairs; lower than asked for where there are fewer axes."""
    bound: int
    """No complete covering has fewer rows, the fixed ones included."""
    proven_optimal: bool
    """Complete, with as many rows as the bound."""
    feasible: int
    """How many combinations can stand in a row."""
    covered: int
    """How many of those stand in one."""
    reachable: int
    """How many of those this number of rows could cover at most."""
    infeasible: tuple[Combination, ...]
    """Combinations that the rules make impossible, each one proved."""
    missing: tuple[Combination, ...]
    """Feasible combinations that stand in no row."""
    notes: tuple[str, ...] = ()
    """What the caller should be told: rows that there are not, what a method lost, what is not proved."""


@dataclass(frozen=True, slots=True)
class _Task:
    """The axes as the other rooms know them: longest first, values in an order drawn by the seed."""

    names: tuple[str, ...]
    """In the order given."""
    axes: tuple[Axis, ...]
    grid: Grid
    limits: Limits

    def decode(self, row: Ints) -> dict[str, str]:
        values = {axis.name: axis.values[at] for axis, at in zip(self.axes, row.tolist(), strict=True)}
        return {name: values[name] for name in self.names}

    def combination(self, number: int) -> Combination:
        axes, values = self.grid.cells(number)
        found = {self.axes[a].name: self.axes[a].values[v] for a, v in zip(axes, values, strict=True)}
        return tuple((name, found[name]) for name in self.names if name in found)


def cover(
    axes: Mapping[str, Sequence[str]] | Sequence[Axis],
    strength: int = 2,
    forbid: Sequence[Rule] = (),
    fixed: Sequence[Mapping[str, str]] = (),
    rows: int | None = None,
    seed: int = 0,
    method: Method = "auto",
    *,
    wish: Wish | None = None,
) -> Covering:
    """Return rows in which every possible combination of ``strength`` values stands.

    Args:
        axes: Values by axis name, or axes.
        strength: 2 or 3.
        forbid: Combinations that cannot happen.
        fixed: Rows that are there already: they come first, stay as they are and count. A row that
            lacks an axis gets a value there.
        rows: How many rows to return, fixed ones included. Fewer than a complete covering needs:
            the rows that cover most. More: further rows, each different, that begin the coverage
            again with what has stood least often. None: a complete covering.
        seed: Decides among rows that are equally good.
        method: ``auto``, or the package ``allpairspy`` as a second opinion; what it loses is added,
            and told in ``notes``.
        wish: Turns cells that no combination depends on, and the rows beyond a complete covering,
            toward a share of rows of some kind; never costs a combination. With fewer rows than a
            complete covering needs, it only decides among rows that hold as many.

    Raises:
        InputError: An axis has no value or one twice, a rule or a fixed row names what is not there,
            a fixed row cannot happen, nothing can happen, or a number is out of range.
    """
    task = _read(axes, strength, forbid, seed)
    locked = _locked(task, fixed)
    if rows is not None and rows < max(1, len(locked)):
        raise InputError(
            f"rows={rows} is fewer than the {max(1, len(locked))} that must be there. Ask for more or None."
        )
    goal = Goal(task.grid, task.limits, task.limits.possible(task.grid), len(locked))
    notes = [f"with {len(task.axes)} axes, strength is {task.grid.strength}."] * (strength > task.grid.strength)
    options = starts(goal, locked) if method == "auto" else _allpairspy(goal, locked, method, notes)
    first, goal = next(options)
    notes += _notes(task, goal, first)
    bound = _bound(goal, locked)
    found = _fewest(chain([(first, goal)], options), max(bound, rows or 0), seed)
    if rows is not None and rows < len(found):
        found = _most(found, goal, rows, seed)
    found = arrange(found, goal)
    leaning = Leaning(wish.share, lambda row: wish.fits(task.decode(row))) if wish else None
    found = lean(found, goal, leaning) if leaning else found
    if rows is not None and rows > len(found):
        found = extend(found, goal, rows, leaning)
        if len(found) < rows:
            notes.append(f"there are only {len(found)} different situations, fewer than rows={rows}.")
    return _report(task, goal, found, bound, notes)


def _read(
    axes: Mapping[str, Sequence[str]] | Sequence[Axis], strength: int, forbid: Sequence[Rule], seed: int
) -> _Task:
    given = [Axis(name, tuple(values)) for name, values in axes.items()] if isinstance(axes, Mapping) else axes
    if strength not in (2, 3):
        raise InputError(f"strength={strength!r}: a covering meets pairs or triples. Type 2 or 3.")
    if not given:
        raise InputError("there is no axis, so there is nothing to cover. Give at least one axis with its values.")
    for axis in given:
        if not axis.values or len(set(axis.values)) < len(axis.values):
            fault = "a value twice" if axis.values else "no value"
            raise InputError(f"axis {axis.name!r} has {fault}: {axis.values!r}. Name each value once, at least one.")
    names = tuple(axis.name for axis in given)
    if len(set(names)) < len(names):
        raise InputError(f"an axis stands twice among {names}. Give each axis one name and all its values.")
    longest_first = sorted(given, key=lambda axis: -len(axis.values))
    mixed = tuple(Axis(axis.name, tuple(shuffled(axis.values, seed, "covering", axis.name))) for axis in longest_first)
    grid = make_grid([len(axis.values) for axis in mixed], min(strength, len(mixed)))
    return _Task(names, mixed, grid, tabulate(mixed, forbid))


def _locked(task: _Task, fixed: Sequence[Mapping[str, str]]) -> Ints:
    """Return the fixed rows as indices, with a value where they lack an axis."""
    rows = np.full((len(fixed), len(task.axes)), FREE, dtype=np.int64)
    everything = np.ones(task.grid.total + 1, dtype=bool)
    for at, given in enumerate(fixed):
        strange = [name for name in given if name not in task.names]
        for place, axis in enumerate(task.axes):
            if axis.name in given and given[axis.name] in axis.values:
                rows[at, place] = axis.values.index(given[axis.name])
            elif axis.name in given:
                strange.append(f"{axis.name}={given[axis.name]}")
        if strange:
            raise InputError(
                f"fixed row {at} has {strange[0]!r}, which is no axis or value here. Leave the row out, "
                "or cover the axes that it was made for."
            )
        filled, _ = complete_row(rows[at], task.grid, task.limits, everything, at)
        if filled is None:
            raise InputError(f"fixed row {at}, {dict(given)}, cannot happen by the rules. Drop it, or change the rule.")
        rows[at] = filled
    return rows


def _allpairspy(goal: Goal, locked: Ints, method: str, notes: list[str]) -> Iterator[tuple[Ints, Goal]]:
    """Yield the rows of the package's own method, with what they lack; say how much that was."""
    if method != "allpairspy":
        raise InputError(f"method={method!r} is none of ours. Type 'auto' or 'allpairspy'.")
    from allpairspy import AllPairs

    def fine(cells: list[int]) -> bool:
        row = goal.grid.row_of()
        row[: len(cells)] = cells
        return bool(goal.limits.allow(row[None])[0])

    values = [list(range(size)) for size in goal.grid.sizes]
    many = len(values) > 1  # the package refuses a single axis
    made = AllPairs(values, filter_func=fine, n=goal.grid.strength) if many else zip(*values, strict=True)
    rows = np.array([list(row) for row in made], dtype=np.int64).reshape(-1, len(values))
    found, goal = complete(rows, goal, locked)
    lost = int((goal.wanted & (goal.grid.counts(rows) == 0)).sum())
    notes += [f"allpairspy stopped {lost} combinations short; rows for them were added."] if lost else []
    yield found, goal


def _notes(task: _Task, goal: Goal, rows: Ints) -> list[str]:
    """Return what the caller should be told of a complete covering."""
    if not len(rows):
        raise InputError("the rules leave no situation that can happen. Take a rule out or give an axis another value.")
    unproved = f"no row was found for {len(goal.unproved)} combinations, nor a proof that there is none."
    notes = [unproved] if goal.unproved else []
    for place, axis in enumerate(task.axes):
        standing = set(rows[:, place].tolist())
        dead = [value for at, value in enumerate(axis.values) if at not in standing]
        notes += [f"no situation has {axis.name} {value!r}: the rules forbid it." for value in dead]
    return notes


def _bound(goal: Goal, locked: Ints) -> int:
    """Return a bound on all rows: by themselves, and by what the locked ones lack."""
    lacks = goal.grid.per_combo(goal.wanted & (goal.grid.counts(locked) == 0))
    return max(fewest_rows(goal.grid, goal.wanted), len(locked) + int(lacks.max()))


def _fewest(options: Iterable[tuple[Ints, Goal]], target: int, seed: int) -> Ints:
    """Return the fewest rows found from any start."""
    found: list[Ints] = []
    least = 0
    for start, goal in options:
        least = min(least or len(start), len(start))
        if len(start) <= _CLOSE * least:
            found.append(reduce_rows(start, goal, target, seed))
        if len(found[-1]) <= target:
            break
    return min(found, key=len)


def _most(rows: Ints, goal: Goal, count: int, seed: int) -> Ints:
    """Return ``count`` rows that hold as many combinations as can be found."""
    search = Search(arrange(rows, goal)[:count], goal, seed)
    search.run(goal.grid.per_combo(goal.wanted) - _reachable(goal.grid, goal.wanted, rows[: goal.locked], count))
    return search.rows


def _reachable(grid: Grid, wanted: Bools, locked: Ints, rows: int) -> Ints:
    """Return for each combination of axes how many tuples so many rows can hold, the locked ones first."""
    there = grid.per_combo(wanted & (grid.counts(locked) > 0))
    return np.minimum(grid.per_combo(wanted), there + rows - len(locked))


def _report(task: _Task, goal: Goal, rows: Ints, bound: int, notes: list[str]) -> Covering:
    feasible = goal.wanted.copy()
    feasible[list(goal.unproved)] = True
    missing = feasible & (task.grid.counts(rows) == 0)
    named = [tuple(map(task.combination, np.flatnonzero(marked).tolist())) for marked in (~feasible[:-1], missing)]
    return Covering(
        rows=tuple(task.decode(row) for row in rows), strength=task.grid.strength, bound=bound,
        proven_optimal=not missing.any() and len(rows) == bound,
        feasible=int(feasible.sum()), covered=int(feasible.sum() - missing.sum()),
        reachable=int(_reachable(task.grid, feasible, rows[: goal.locked], len(rows)).sum()),
        infeasible=named[0], missing=named[1], notes=tuple(notes),
    )  # fmt: skip
