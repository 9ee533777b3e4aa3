"""Splits: rows in parts that share no situation and no twin; and rows that nearly repeat another.

A model that has trained on one twin has seen the other's question. So rows of one card, its
twins, and cards whose situations have the same values go to the same part.

Near-duplicates are found by MinHash and counted by the Jaccard index of their runs of five
words, system prompt and tools left out.

Source: Broder (1997). On the resemblance and containment of documents. Proc. Compression and
Complexity of Sequences, 21-29.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from zlib import crc32

from whilesim.cards.planning import is_share
from whilesim.core.errors import InputError
from whilesim.core.seeds import derive
from whilesim.keeping.references import tokens
from whilesim.keeping.rows import Row

_NAME = re.compile(r"\w+(\.\w+)*")
_RUN = 5  # words
_PERMUTATIONS = 64


def split_rows(
    rows: Sequence[Row], shares: Mapping[str, float], seed: int = 0, *, by: str | None = None
) -> dict[str, list[int]]:
    """Return for each part the indices of its rows, in their order.

    Args:
        shares: Name to share of the rows, 0 to 1, summing to 1. The parts come as near to it
            as groups allow, and none is left empty.
        seed: Decides which groups go where, by their ids alone.
        by: An axis of which each part gets its share of every value.

    Raises:
        InputError: The shares do not sum to 1, a name is no name of a split, there are fewer
            groups than parts, or a row has no such axis.
    """
    given = shares.values() if isinstance(shares, Mapping) else ()
    if not given or not all(is_share(s) and s for s in given) or abs(sum(given) - 1) > 1e-6:
        msg = f"splits are {shares!r}; they need shares above 0 that sum to 1. "
        raise InputError(msg + 'Type {"train": 0.9, "test": 0.1}.')
    for name in shares:
        if not _NAME.fullmatch(name):
            raise InputError(f"{name!r} cannot be a split's name: use letters, digits and underscores.")
    if len(groups := _groups(rows)) < len(shares):
        msg = f"{len(shares)} splits were asked for and the rows form {len(groups)} group(s) of situations. Ask for fewer."
        raise InputError(msg)
    kinds = [""] * len(rows) if by is None else [_value(row, by) for row in rows]
    total, held = Counter(kinds), Counter[tuple[str, str]]()
    order = sorted(groups, key=lambda name: (derive(seed, "split", name), name))
    parts: dict[str, list[int]] = {name: [] for name in shares}
    for left, group in zip(range(len(order), 0, -1), order, strict=True):
        empty = [name for name in parts if not parts[name]]
        open_parts = empty if len(empty) >= left else list(parts)
        mine = {kinds[i] for i in groups[group]}
        name = max(open_parts, key=lambda n: sum(shares[n] * total[kind] - held[n, kind] for kind in mine))
        parts[name] += groups[group]
        held.update((name, kinds[i]) for i in groups[group])
    return {name: sorted(indices) for name, indices in parts.items()}


def near_duplicates(rows: Iterable[Row], threshold: float = 0.8) -> dict[str, str]:
    """Return id of each row that nearly repeats an earlier one to the id of that one.

    Args:
        threshold: Jaccard index, above 0 to 1, from which two conversations are the same.

    Raises:
        InputError: The threshold is outside of its range.
    """
    if not 0 < threshold <= 1:
        raise InputError(f"threshold={threshold!r} is no likeness: type a number above 0, up to 1, like 0.8.")
    from datasketch import MinHash, MinHashLSH

    index = MinHashLSH(threshold=max(0.1, threshold - 0.1), num_perm=_PERMUTATIONS)
    blank = MinHash(num_perm=_PERMUTATIONS, hashfunc=crc32)
    kept, found = dict[str, frozenset[tuple[str, ...]]](), dict[str, str]()
    for row in rows:
        runs = _runs(row)
        sketch = blank.copy()  # making one draws its permutations again
        sketch.update_batch(["\x1f".join(run).encode("utf-8", "surrogatepass") for run in sorted(runs)])
        likely = ((len(runs & kept[name]) / len(runs | kept[name]), name) for name in sorted(index.query(sketch)))
        if best := max((each for each in likely if each[0] >= threshold), default=None):
            found[row.id] = best[1]
        else:
            kept[row.id] = runs
            index.insert(row.id, sketch)
    return found


def _runs(row: Row) -> frozenset[tuple[str, ...]]:
    """Return the runs of words of a conversation, what was called included."""
    said = [m["content"] or "" for m in row.messages[1:]]
    words = tokens("\n".join([*said, *(c["function"]["name"] + c["function"]["arguments"] for c in row.calls)]))
    return frozenset(words[i : i + _RUN] for i in range(max(1, len(words) - _RUN + 1)))


def _value(row: Row, axis: str) -> str:
    if axis not in row.situation:
        raise InputError(f"row {row.id!r} has no axis {axis!r} to split by. Its axes are {list(row.situation)}.")
    return row.situation[axis]


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
        for other in filter(None, (row.twin_of, f"values {sorted(row.situation.items())!r}")):
            leader[find(other)] = find(row.card_id)
    groups: dict[str, list[int]] = {}
    for index, card in enumerate(cards):
        groups.setdefault(find(card), []).append(index)
    return groups
