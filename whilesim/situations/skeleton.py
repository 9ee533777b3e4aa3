"""Skeleton: rows from algebra, with no search.

Over a finite field of q elements, the polynomials of degree below t make q**t rows of q + 1
columns in which every t columns show every combination exactly once [1]. Two uses are made
of that:

``exact``: let v1 >= v2 >= ... be the sizes of the axes, and q at most v(t) and at least
v(t+1). One row for each combination of the t largest axes; every other axis is a combination
of their indices, read modulo q, with no coefficient zero. Given any t axes and values for
them, the indices can be solved for, so every tuple stands in a row, and there are v1 * ... *
vt rows: fewer are impossible. Where q is no prime power, the ring that is the product of its
prime powers' fields serves, with as many columns as the smallest of them gives; the axes
after those may still use the larger fields alone.

``squares``: where many axes are about as large, the q * q rows for pairs, with one row made to
disappear where no axis needs all q symbols; and blocks of q * q - q further rows, each of
which multiplies the number of columns by q [2].

Symbols beyond an axis' size are free cells.

    [1] Bush (1952). Orthogonal arrays of index unity. Annals of Mathematical Statistics 23,
        426-434.
    [2] Colbourn (2008). Strength two covering arrays: existence tables and projection. Discrete
        Mathematics 308, 772-786.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import count
from math import prod

import numpy as np

from whilesim.situations.tuples import FREE, Ints


def exact(sizes: Sequence[int], strength: int) -> list[Ints]:
    """Return rows with every combination of the largest axes once, shape ``(v1 * ... * vt, k)`` each.

    ``sizes`` descend. Where algebra serves every axis, the first answer alone is all that is needed:
    it is complete up to free cells. Otherwise the two that serve most come, the rest free.
    """
    top, rest = sizes[:strength], sizes[strength:]
    index = np.indices(top).reshape(len(top), -1)
    start = np.full((index.shape[1], len(sizes)), FREE, dtype=np.int64)
    start[:, : len(top)] = index.T
    orders = range(2, min(top[-1], 2 * max(rest, default=1)) + 1)  # beyond, most cells would be free
    plans = {served: q for q in orders if (served := _served(q, rest, strength))}
    best = sorted(plans, key=lambda served: (-len(served), -prod(rest[axis] for axis, _ in served), plans[served]))
    starts = []
    for served in best[:2] or [()]:
        rows = start.copy()
        for axis, slot in served:
            column = _column(plans[served], slot, strength, index)
            rows[:, len(top) + axis] = np.where(column < rest[axis], column, FREE)
        starts.append(rows)
    return starts[:1] if len(best[:1]) and len(best[0]) == len(rest) else starts


def squares(sizes: Sequence[int]) -> Ints:
    """Return rows in which every two values of any two axes meet, shape ``(n, k)``.

    With q the first prime power that no axis passes: q * q rows, and q * q - q more for each time that
    the columns are multiplied by q. Symbols are taken off at the low end, where the constant
    polynomials' rows consist of them alone and disappear.
    """
    q = next(order for order in count(max(sizes)) if len(_prime_powers(order)) == 1)
    index = np.indices((q, q)).reshape(2, -1)
    slots = range(min(q - 1, len(sizes) - 2))
    rows = np.stack([*index, *(_column(q, slot, 2, index) for slot in slots)], axis=1)
    add, times = _field(q)
    block = add[times[index[0, q:, None], np.arange(q)], index[1, q:, None]]
    while rows.shape[1] < len(sizes):
        rows = np.concatenate([rows.repeat(q, axis=1), np.tile(block, rows.shape[1])])
    rows = np.maximum(rows[:, : len(sizes)] - (q - np.array(sizes)), FREE)
    return np.asarray(rows[(rows != FREE).any(axis=1)])


def _served(order: int, rest: Sequence[int], strength: int) -> tuple[tuple[int, int], ...]:
    """Give the ring's columns, widest first, to the axes in ``rest`` that they are wide enough for."""
    served: list[tuple[int, int]] = []
    for axis, size in enumerate(rest):
        if 1 < prod(_parts(order, len(served), strength)) >= size:
            served.append((axis, len(served)))
    return tuple(served)


def _parts(order: int, slot: int, strength: int) -> list[int]:
    """Return the ring's fields that have a column of this number beside the indices, largest first."""
    return [q for q in _prime_powers(order) if strength == 1 or slot < q - 1 - (strength == 3 and q % 2)]


def _column(order: int, slot: int, strength: int, index: Ints) -> Ints:
    """Return one column of the ring: in each of its fields a combination of the indices, none left out."""
    column, scale = np.zeros_like(index[0]), 1
    # Indices past the order may be read in any way: shifted by column, so that rows differ in more.
    shift = slot * (order // 2)
    for q in _parts(order, slot, strength):
        add, times = _field(q)
        total = np.zeros_like(column)
        for coefficient, axis in zip(_coefficients(q, slot, strength), index, strict=True):
            total = add[total, times[coefficient, (axis + axis // order * shift) % order // scale % q]]
        column, scale = column + scale * total, scale * q
    return np.asarray(column, dtype=np.int64)


def _coefficients(q: int, slot: int, strength: int) -> tuple[int, ...]:
    """Return coefficients such that any ``strength`` of all columns, indices included, are independent."""
    add, times = _field(q)
    if strength < 3:
        return (1, slot + 1)[:strength]
    if q % 2 == 0:
        a = slot + 1
        return 1, a, int(times[a, a])
    a = slot + 2
    minus = [int(np.flatnonzero(add[value] == 0)[0]) for value in range(q)]
    return int(add[1, minus[a]]), a, int(add[times[a, a], minus[a]])


@cache
def _prime_powers(order: int) -> tuple[int, ...]:
    """Split a whole number into its prime powers, largest first: 12 into 4 and 3."""
    powers, left = [], order
    for p in range(2, order + 1):
        power = 1
        while left % p == 0:
            left, power = left // p, power * p
        powers += [power] if power > 1 else []
    return tuple(sorted(powers, reverse=True))


@cache
def _field(q: int) -> tuple[Ints, Ints]:
    """Return the addition and multiplication tables of the field of q elements, ``(q, q)`` each.

    An element is the number whose digits in base p are its coefficients, 0 and 1 being themselves.
    """
    p = next(p for p in count(2) if q % p == 0)
    places = [p**at for at in range(q.bit_length()) if p**at < q]
    digits = np.arange(q)[:, None] // places % p
    add = (digits[:, None] + digits) % p @ places
    for rule in digits[1:]:  # x**e reduced: the field needs one that makes x generate all elements but 0
        powers = [1]
        while len(powers) < q:
            last = digits[powers[-1]]
            powers.append(int((np.concatenate([[0], last[:-1]]) + last[-1] * rule) % p @ places))
        if powers[-1] == 1 and len(set(powers)) == q - 1:
            break
    times = np.zeros((q, q), dtype=np.int64)
    log = np.argsort(powers[:-1])
    times[1:, 1:] = np.array(powers)[(log[:, None] + log) % (q - 1)]
    return add, times
