"""Pairs: two answers to the same conversation, of which one is right and one is wrong.

A pair shares its prompt message by message and ends in one agent turn each. From rollouts: a
kept and a dropped conversation of one card, cut at the first agent turn in which they differ.
From twins: two kept conversations that differ in one thing, cut after the first tool result
in which they differ; each one's answer is then wrong for the other, and the cause is known.

A long answer must not win for its length: the two are within a factor of two.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

from whilesim.core.jsontext import canonical, dumps
from whilesim.core.text import fold
from whilesim.keeping.rows import Row

LENGTH_RATIO = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Preference:
    """One prompt, a right and a wrong next turn, and why."""

    prompt: Sequence[Mapping[str, Any]]
    chosen: Mapping[str, Any]
    rejected: Mapping[str, Any]
    tools: Sequence[Mapping[str, Any]]
    cause: Literal["rollouts", "twins"]
    reason: str
    rows: tuple[str, str]
    """Ids of the rows that the chosen and the rejected turn are from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preferences:
    """All pairs of a simulation, and how many candidates gave none."""

    pairs: tuple[Preference, ...]
    left_out: Mapping[str, int]
    """Why a candidate gave no pair, to how many did not."""


def build_pairs(rows: Iterable[Row]) -> Preferences:
    """Build preference pairs from graded rows, each dropped row in one pair at most."""
    cards: dict[str, list[Row]] = {}
    for row in rows:
        if not row.loose_calls:
            cards.setdefault(row.card_id, []).append(row)
    pairs: list[Preference] = []
    left_out: Counter[str] = Counter()
    for found in [*(_from_rollouts(group) for group in cards.values()), *_from_twins(cards)]:
        for candidate in found:
            if isinstance(candidate, Preference):
                pairs.append(candidate)
            else:
                left_out[candidate] += 1
    return Preferences(pairs=tuple(pairs), left_out=dict(sorted(left_out.items())))


def _from_rollouts(group: Sequence[Row]) -> Iterator[Preference | str]:
    kept = [row for row in group if row.state == "kept"]
    for wrong in (row for row in group if row.state == "dropped"):
        tries = [_diverge(right, wrong) for right in kept]
        found = [t for t in tries if isinstance(t, Preference)]
        if found:
            yield found[0]
        elif tries:
            yield str(tries[0])


def _diverge(right: Row, wrong: Row) -> Preference | str:
    cut = _first_difference(right, wrong)
    if cut is None:
        return "never differ"
    if {right.messages[cut]["role"], wrong.messages[cut]["role"]} != {"assistant"}:
        return "customer or world differ first"
    if any(f.message_index < cut for f in wrong.findings if f.severity == "drop"):
        return "wrong before they differ"
    reason = "" if wrong.verdict is None else wrong.verdict.reason
    return _matched(right, wrong, cut, "rollouts", reason)


def _from_twins(cards: Mapping[str, Sequence[Row]]) -> Iterator[Iterator[Preference | str]]:
    groups: dict[str, list[str]] = {}
    for card, rows in cards.items():
        groups.setdefault(rows[0].twin_of or card, []).append(card)
    for twins in groups.values():
        for i, first in enumerate(twins):
            for second in twins[i + 1 :]:
                yield _flip(cards[first], cards[second])


def _flip(first: Sequence[Row], second: Sequence[Row]) -> Iterator[Preference | str]:
    kept = [[row for row in rows if row.state == "kept"] for rows in (first, second)]
    tries = [(a, b, _cut_at_result(a, b)) for a, b in product(*kept)]
    found = next(((a, b, cut) for a, b, cut in tries if cut is not None), None)
    if found is None:
        yield from ["no tool result differs first"] if tries else []
        return
    a, b, cut = found
    for right, wrong in ((a, b), (b, a)):
        yield _matched(right, wrong, cut, "twins", _flipped(right, wrong))


def _cut_at_result(a: Row, b: Row) -> int | None:
    """Return where the agent answers the first results that differ, None where it never does."""
    cut = _first_difference(a, b)
    while cut is not None and cut < min(len(a.messages), len(b.messages)):
        roles = {a.messages[cut]["role"], b.messages[cut]["role"]}
        if roles == {"assistant"}:
            return cut if a.messages[cut - 1]["role"] == "tool" else None
        if roles != {"tool"}:
            return None
        cut += 1
    return None


def _flipped(right: Row, wrong: Row) -> str:
    names = [n for n in right.situation if right.situation[n] != wrong.situation.get(n)]
    return "; ".join(
        f"Here {n} is {right.situation[n]}; the other answer is right where it is {wrong.situation.get(n)}"
        for n in names
    )


def _first_difference(a: Row, b: Row) -> int | None:
    for i, (x, y) in enumerate(zip(a.messages, b.messages, strict=False)):
        if _said(x) != _said(y):
            return i
    return None


def _said(message: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what a message says and calls, without the ids of its calls and the thoughts behind it."""
    calls = [(c["function"]["name"], canonical(c["function"]["arguments"])) for c in message.get("tool_calls", ())]
    return message["role"], fold(message["content"] or ""), tuple(calls)


def _matched(right: Row, wrong: Row, cut: int, cause: Literal["rollouts", "twins"], reason: str) -> Preference | str:
    chosen, rejected = right.messages[cut], wrong.messages[cut]
    if _said(chosen) == _said(rejected):
        return "the same turn"
    lengths = sorted(len(m["content"] or "") + len(dumps(m.get("tool_calls", ""))) for m in (chosen, rejected))
    if lengths[1] > LENGTH_RATIO * lengths[0]:
        return "lengths beyond a factor of two"
    return Preference(
        prompt=right.messages[:cut],
        chosen=chosen,
        rejected=rejected,
        tools=right.tools,
        cause=cause,
        reason=reason,
        rows=(right.id, wrong.id),
    )
