"""Pairs: two answers to the same conversation, of which one is right and one is wrong.

A pair shares its prompt message by message and ends in one agent turn each. From rollouts: a
kept and a dropped conversation of one card, cut at the first agent turn in which they differ.
From twins: two kept conversations that differ in one thing, cut after the first tool result
in which they differ; each one's answer is then wrong for the other, and the cause is known.

What is wrong with a dropped conversation is a finding or what its oracle forbids; a judge
speaks of the whole. One that its customer spoiled says nothing of the agent.

A long answer must not win for its length: the two are within a factor of two.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any, Literal

from whilesim.core.jsontext import dumps
from whilesim.core.text import fold
from whilesim.keeping.grades import oracle_violations
from whilesim.keeping.ledger import is_spoiled
from whilesim.keeping.rows import Row
from whilesim.situations.tools import Tool

LENGTH_RATIO = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Preference:
    """One prompt, a right and a wrong next turn, and why."""

    prompt: Sequence[Mapping[str, Any]]
    chosen: Mapping[str, Any]
    rejected: Mapping[str, Any]
    tools: Sequence[Mapping[str, Any]]
    cause: Literal["rollouts", "twins"]
    rule: str
    """What spoke against the rejected turn: ``check:``, ``oracle:`` and a name, ``judge``, or ``twins``."""
    reason: str
    rows: tuple[str, str]
    """Ids of the rows that the chosen and the rejected turn are from."""


def build_pairs(rows: Iterable[Row], left_out: Counter[str], tools: Sequence[Tool]) -> list[Preference]:
    """Build preference pairs from graded rows, each dropped row in one pair at most.

    ``left_out`` counts the dropped rows and the pairs of twins that gave none, by why.
    """
    cards: dict[str, list[Row]] = {}
    twins: dict[str, list[str]] = {}
    for row in rows:
        if not row.loose_calls:
            cards.setdefault(row.card_id, []).append(row)
    for card, group in cards.items():
        twins.setdefault(group[0].twin_of or card, []).append(card)
    found = [pair for group in cards.values() for pair in _from_rollouts(group, tools)]
    for names in twins.values():
        for first, second in combinations(names, 2):
            found += _from_twins(_kept(cards[first]), _kept(cards[second]))
    left_out.update(f"candidate pairs: {why}" for why in found if isinstance(why, str))
    return [pair for pair in found if isinstance(pair, Preference)]


def _kept(rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if row.state == "kept"]


def first_wrong(row: Row, tools: Sequence[Tool]) -> int | None:
    """Return where a dropped row first went wrong, by finding or else by oracle; None where nobody says."""
    found = [f.message_index for f in row.findings if f.severity == "drop"]
    if not found and row.verdict is not None and row.verdict.rule.startswith("oracle:"):
        found = [violation.message_index for violation in oracle_violations(row, tools)]
    return min(found, default=None)


def _from_rollouts(group: Sequence[Row], tools: Sequence[Tool]) -> Iterator[Preference | str]:
    rights = _kept(group)
    for wrong in (row for row in group if row.state == "dropped"):
        if not rights or is_spoiled(wrong):
            yield "spoiled by the customer" if rights else "no rollout of the card was kept"
            continue
        tries = [_diverge(right, wrong, first_wrong(wrong, tools)) for right in rights]
        yield from [*(t for t in tries if isinstance(t, Preference)), *tries][:1]


def _diverge(right: Row, wrong: Row, place: int | None) -> Preference | str:
    cut = _first_difference(right, wrong)
    if cut is None:
        return "never differ"
    if {right.messages[cut]["role"], wrong.messages[cut]["role"]} != {"assistant"}:
        return "customer or world differ first"
    if place is not None and place < cut:
        return "wrong before they differ"
    assert wrong.verdict is not None, "a dropped row has a verdict"
    later = place is not None and place > cut and wrong.verdict.rule.startswith("check:")
    if later and not any(row.messages[cut].get("tool_calls") for row in (right, wrong)):
        return "worded differently before it went wrong"
    return _matched(right, wrong, cut, "rollouts", (wrong.verdict.rule, wrong.verdict.reason))


def _from_twins(first: Sequence[Row], second: Sequence[Row]) -> Iterator[Preference | str]:
    tries = [(a, b, _cut_at_result(a, b)) for a, b in product(first, second)]
    found = next(((a, b, cut) for a, b, cut in tries if cut is not None), None)
    if found is not None:
        a, b, cut = found
        yield _matched(a, b, cut, "twins", ("twins", _flipped(a, b)))
        yield _matched(b, a, cut, "twins", ("twins", _flipped(b, a)))
    elif tries:
        yield "no tool result differs first"


def _cut_at_result(a: Row, b: Row) -> int | None:
    """Return where the agent answers the first results that differ, None where it never does."""
    first = _first_difference(a, b) or 0
    for cut, messages in enumerate(zip(a.messages[first:], b.messages[first:], strict=False), start=first):
        roles = {message["role"] for message in messages}
        if roles != {"tool"}:
            return cut if roles == {"assistant"} and cut > first else None
    return None


def _flipped(right: Row, wrong: Row) -> str:
    names = [name for name in right.situation if right.situation[name] != wrong.situation.get(name)]
    told = "Here {0} is {1}; the other answer is right where it is {2}"
    return "; ".join(told.format(name, right.situation[name], wrong.situation.get(name)) for name in names)


def _first_difference(a: Row, b: Row) -> int | None:
    together = zip(a.messages, b.messages, strict=False)
    return next((i for i, (x, y) in enumerate(together) if _said(x) != _said(y)), None)


def _said(message: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what a message says and calls, without the ids of its calls and the thoughts behind it."""
    calls = [tuple(call["function"].values()) for call in message.get("tool_calls", ())]
    return message["role"], fold(message["content"] or ""), calls


def _matched(
    right: Row, wrong: Row, cut: int, cause: Literal["rollouts", "twins"], why: tuple[str, str]
) -> Preference | str:
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
        rule=why[0],
        reason=why[1],
        rows=(right.id, wrong.id),
    )
