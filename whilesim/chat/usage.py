"""Usage: calls, tokens and dollars, where unknown is never zero."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Dollars per million tokens."""

    tokens_in: float
    tokens_out: float

    def of(self, tokens_in: int, tokens_out: int) -> float:
        """Return the dollars that so many tokens cost."""
        return (tokens_in * self.tokens_in + tokens_out * self.tokens_out) / 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a number of model calls used."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    usd: float | None = 0.0
    """Dollars, or None when the price of any of the calls is unknown."""

    def __add__(self, other: Usage) -> Usage:
        usd = None if self.usd is None or other.usd is None else self.usd + other.usd
        tokens_in, tokens_out = self.tokens_in + other.tokens_in, self.tokens_out + other.tokens_out
        return Usage(calls=self.calls + other.calls, tokens_in=tokens_in, tokens_out=tokens_out, usd=usd)

    def to_json(self) -> dict[str, Any]:
        """Return the usage as a JSON object; dollars rounded to a millionth of a cent."""
        return {**asdict(self), "usd": None if self.usd is None else round(self.usd, 8)}
