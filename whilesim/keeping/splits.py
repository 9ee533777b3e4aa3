"""Splits: rows in parts that share no situation and no twin.

A model that has trained on one twin has seen the other's question. So rows of one card, its
twins, and cards whose situations have the same values go to the same part.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from whilesim.core.errors import InputError
from whilesim.core.seeds import derive
from whilesim.keeping.rows import Row

_NAME = re.compile(r"\w+(\.\w+)*")


def split_rows(rows: Iterable[Row], shares: Mapping[str, float], seed: int = 0) -> dict[str, list[int]]:
    """Return for each part the indices of its rows, in their order.

    Args:
        shares: Name to share of the rows, 0 to 1, summing to 1. The parts come as near to it
            as groups allow, and none is left empty.
        seed: Decides which groups go where, by their ids alone.

    Raises:
        InputError: The shares do not sum to 1, a name is no name of a split, or there are
            fewer groups than parts.
    """
    if not shares or any(s <= 0 for s in shares.values()) or abs(sum(shares.values()) - 1) > 1e-6:
        msg = (
            f'splits are {dict(shares)!r}; they need shares above 0 that sum to 1. Type {{"train": 0.9, "test": 0.1}}.'
        )
        raise InputError(msg)
    for name in shares:
        if not _NAME.fullmatch(name):
            raise InputError(f"{name!r} cannot be a split's name: use letters, digits and underscores.")
    groups = _groups(rows)
    if len(groups) < len(shares):
        msg = f"{len(shares)} splits were asked for and the rows form {len(groups)} group(s) of situations. Ask for fewer."
        raise InputError(msg)
    total = sum(map(len, groups.values()))
    order = sorted(groups, key=lambda name: (derive(seed, "split", name), name))
    parts: dict[str, list[int]] = {name: [] for name in shares}
    for left, group in zip(range(len(order), 0, -1), order, strict=True):
        empty = [name for name in parts if not parts[name]]
        open_parts = empty if len(empty) >= left else list(parts)
        name = max(open_parts, key=lambda n: shares[n] * total - len(parts[n]))
        parts[name] += groups[group]
    return {name: sorted(indices) for name, indices in parts.items()}


def _groups(rows: Iterable[Row]) -> dict[str, list[int]]:
    """Return groups of row indices under the name of one of their cards."""
    leader: dict[str, str] = {}

    def find(name: str) -> str:
        while leader.setdefault(name, name) != name:
            name = leader[name]
        return name

    cards = []
    for row in rows:
        cards.append(row.card_id)
        same = "values " + repr(sorted(row.situation.items()))
        for other in filter(None, (row.twin_of, same)):
            leader[find(other)] = find(row.card_id)
    groups: dict[str, list[int]] = {}
    for index, card in enumerate(cards):
        groups.setdefault(find(card), []).append(index)
    return groups
