"""Pairs: two answers to the same conversation, of which one is right and one is wrong.

A pair shares its prompt message by message and ends in one agent turn each. From rollouts: a
kept and a dropped conversation of one card, cut at the first agent turn in which they differ.
From twins: two kept conversations that differ in one thing, cut after the first tool result
in which they differ; each one's answer is then wrong for the other, and the cause is known.

What is wrong with a dropped conversation is a finding or what its oracle forbids; a judge
speaks of the whole. Where it shows later than the turn that differs, that turn is wrong only
if both called something else there, or one gave up: two wordings of a question are equally
right. A conversation that its customer spoiled says nothing of the agent.

A long answer must not win for its length: the two are within a factor of two.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, product
from typing import Any, Literal

from whilesim.core.jsontext import dumps
from whilesim.core.text import fold
from whilesim.keeping.grades import oracle_violations
from whilesim.keeping.ledger import is_spoiled
from whilesim.keeping.rows import Row, State
from whilesim.situations.tools import Tool

LENGTH_RATIO = 2.0
_SHOWN = ("must_not_call", "must_not_claim", "handoff_unwanted")  # a message shows these; what is missing none does
Cause = Literal["rollouts", "twins"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Preference:
    """One prompt, a right and a wrong next turn, and why."""

    prompt: Sequence[Mapping[str, Any]]
    chosen: Mapping[str, Any]
    rejected: Mapping[str, Any]
    tools: Sequence[Mapping[str, Any]]
    cause: Cause
    rule: str
    """What spoke against the rejected turn: ``check:``, ``oracle:`` and a name, ``judge``, or ``twins``."""
    reason: str
    rows: tuple[str, str]
    """Ids of the rows that the chosen and the rejected turn are from."""


def build_pairs(
    rows: Sequence[Row], chosen: Iterable[tuple[int, Row]], left_out: Counter[str], tools: Sequence[Tool]
) -> Iterator[Preference]:
    """Yield preference pairs of graded rows, each dropped row in one pair at most, twins together.

    Rows are looked at twice, so that many need not be held at once.

    Args:
        chosen: Kept and dropped rows to take, each with its place in ``rows``.
        left_out: Counts the dropped rows and the pairs of twins that gave none, by why.
    """
    families: dict[str, dict[str, list[tuple[int, State]]]] = {}
    for place, row in chosen:
        cards = families.setdefault(row.twin_of or row.card_id, {})
        cards.setdefault(row.card_id, []).append((place, row.state))
    for cards in families.values():
        states = Counter(state for card in cards.values() for _, state in card)
        if not states["kept"]:
            left_out["candidate pairs: no rollout of the card was kept"] += states["dropped"]
        elif states["dropped"] or len(cards) > 1:
            family = [[rows[place] for place, _ in card] for card in cards.values()]
            tries = [_from_rollouts(card, tools) for card in family]
            tries += [_from_twins(_kept(first), _kept(second)) for first, second in combinations(family, 2)]
            for found in chain.from_iterable(tries):
                if isinstance(found, Preference):
                    yield found
                else:
                    left_out[f"candidate pairs: {found}"] += 1


def _kept(rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if row.state == "kept"]


def first_wrong(row: Row, tools: Sequence[Tool], *, shown: bool = False) -> int | None:
    """Return where a dropped row first went wrong, by finding or else by oracle; None where nobody says.

    What is missing is missing at the end, unless only what a message shows is asked for.
    """
    found = [f.message_index for f in row.findings if f.severity == "drop"]
    if not found and row.verdict is not None and row.verdict.rule.startswith("oracle:"):
        found = [v.message_index for v in oracle_violations(row, tools) if not shown or v.rule in _SHOWN]
    return min(found, default=None)


def _from_rollouts(group: Sequence[Row], tools: Sequence[Tool]) -> Iterator[Preference | str]:
    rights = _kept(group)
    for wrong in (row for row in group if row.state == "dropped"):
        if not rights or is_spoiled(wrong):
            yield "spoiled by the customer" if rights else "no rollout of the card was kept"
            continue
        tries = [_diverge(right, wrong, first_wrong(wrong, tools)) for right in rights]
        pairs = [t for t in tries if isinstance(t, Preference)]
        # a call against a call says more of what was wrong
        pairs.sort(key=lambda pair: bool(_calls(pair.chosen)) != bool(_calls(pair.rejected)))
        yield from [*pairs, *tries][:1]


def _diverge(right: Row, wrong: Row, place: int | None) -> Preference | str:
    if (cut := _first_difference(right, wrong)) is None:
        return "never differ"
    if {right.messages[cut]["role"], wrong.messages[cut]["role"]} != {"assistant"}:
        return "customer or world differ first"
    if place is not None and place < cut:
        return "wrong before they differ"
    assert wrong.verdict is not None, "a dropped row has a verdict"
    rule, reason = wrong.verdict.rule, wrong.verdict.reason
    if place is not None and place > cut:
        calls = [_calls(row.messages[cut]) for row in (right, wrong)]
        if not (all(calls) and calls[0] != calls[1]) and _gave_up(wrong, cut) <= _gave_up(right, cut):
            return "parted before it went wrong"
        if rule.startswith("check:"):
            reason = f"{reason} (seen {place - cut} messages later)"
    return _matched(right, wrong, cut, "rollouts", (rule, reason))


def _gave_up(row: Row, cut: int) -> bool:
    """Say whether the agent calls nothing and asks nothing from here on."""
    mine = [message for message in row.messages[cut:] if message["role"] == "assistant"]
    return not any(_calls(message) or any(mark in (message["content"] or "") for mark in "?？؟") for message in mine)


def _from_twins(first: Sequence[Row], second: Sequence[Row]) -> Iterator[Preference | str]:
    for a, b in product(first, second):
        if (cut := _cut_at_result(a, b)) is not None:
            yield _matched(a, b, cut, "twins", ("twins", _flipped(a, b)))
            yield _matched(b, a, cut, "twins", ("twins", _flipped(b, a)))
            return
    if first and second:
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
    return next((i for i, (x, y) in enumerate(zip(a.messages, b.messages, strict=False)) if _said(x) != _said(y)), None)


def _said(message: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what a message says and calls, without the ids of its calls and the thoughts behind it."""
    return message["role"], fold(message["content"] or ""), _calls(message)


def _calls(message: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return [call["function"] for call in message.get("tool_calls", ())]


def _matched(right: Row, wrong: Row, cut: int, cause: Cause, why: tuple[str, str]) -> Preference | str:
    chosen, rejected = right.messages[cut], wrong.messages[cut]
    if _said(chosen) == _said(rejected):
        return "the same turn"
    lengths = sorted(len(m["content"] or "") + len(dumps(_calls(m))) for m in (chosen, rejected))
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
