"""Seeds: draws that are functions of names, never of order.

Every choice in a run is ``derive(seed, "what", "for whom")``: it does not matter which
conversation finishes first, how many run at once, or in which process. No library's random
stream decides a byte of a row.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")

_SPAN = 1 << 63  # seeds are stored in rows, and Arrow's integers end at 2**63 - 1


def derive(seed: int, *names: str | int) -> int:
    """Draw an integer from 0 to ``2**63 - 1`` that depends on the seed and the names alone."""
    digest = hashlib.sha256(repr((seed, *names)).encode("utf-8", "backslashreplace")).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def pick(options: Sequence[T], seed: int, *names: str | int) -> T:
    """Choose one of ``options``, each as likely as the others; the names say which draw it is."""
    return options[derive(seed, *names) % len(options)]


def chance(share: float, seed: int, *names: str | int) -> bool:
    """Answer yes for the given share of all names; ``share`` runs from 0 to 1."""
    return derive(seed, *names) < share * _SPAN


def between(low: int, high: int, seed: int, *names: str | int) -> int:
    """Draw a whole number from ``low`` to ``high``, both included."""
    return low + derive(seed, *names) % (high - low + 1)


def shuffled(options: Iterable[T], seed: int, *names: str | int) -> list[T]:
    """Return the options in an order that depends on the seed and the names alone."""
    return [o for _, o in sorted(enumerate(options), key=lambda pair: (derive(seed, *names, pair[0]), pair[0]))]
