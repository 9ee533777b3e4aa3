"""Verifier: what rows cover, counted by brute force; it shares no code with what made them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, product
from typing import Any

import numpy as np

Tuple = frozenset[tuple[str, str]]


def tuples_in(row: Mapping[str, str], strength: int) -> set[Tuple]:
    return {frozenset(cells) for cells in combinations(row.items(), strength)}


def covered(rows: Iterable[Mapping[str, str]], strength: int) -> set[Tuple]:
    return {found for row in rows for found in tuples_in(row, strength)}


def allowed(row: Mapping[str, str], rules: Sequence[Any]) -> bool:
    return not any(rule.forbids(*(row[name] for name in rule.axes)) for rule in rules)


def every_row(axes: Mapping[str, Sequence[str]], rules: Sequence[Any] = ()) -> Iterable[dict[str, str]]:
    for values in product(*axes.values()):
        row = dict(zip(axes, values, strict=True))
        if allowed(row, rules):
            yield row


def feasible(axes: Mapping[str, Sequence[str]], strength: int, rules: Sequence[Any] = ()) -> set[Tuple]:
    """Every combination that stands in some row of the whole product, which is laid out cell by cell."""
    names = list(axes)
    if not rules:  # then all stand in one, and the product may be too large to lay out
        pairs = [[(name, value) for value in axes[name]] for name in names]
        return {frozenset(cells) for some in combinations(pairs, strength) for cells in product(*some)}
    fine = np.ones([len(axes[name]) for name in names], dtype=bool)
    for rule in rules:
        values = [axes[name] if name in rule.axes else [None] for name in names]
        allowed_here = [not rule.forbids(*(row[names.index(n)] for n in rule.axes)) for row in product(*values)]
        fine &= np.array(allowed_here).reshape([len(given) for given in values])
    found = set()
    for places in combinations(range(len(names)), strength):
        flat = fine.any(axis=tuple(at for at in range(len(names)) if at not in places))
        for cells in np.argwhere(flat):
            found.add(frozenset((names[at], axes[names[at]][cell]) for at, cell in zip(places, cells, strict=True)))
    return found
