"""Outcome: how a conversation ended, held against what its oracle allows.

Calls and their results decide where they can; the agent's words only say whether it refused
or admitted a failure, in English. Where neither tells, the end is None, and None violates
nothing: a doubtful end is the judge's to read.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from whilesim.chat.messages import Message, ToolCall
from whilesim.core.templates import load_words
from whilesim.core.text import fold, words
from whilesim.grading.checks.calls import Call, read_calls
from whilesim.grading.checks.claims import claimed_tools
from whilesim.situations.tools import Effect, Tool
from whilesim.world.oracle import CallRule, End, Oracle

ViolationRule = Literal["must_call", "must_not_call", "must_not_claim", "end", "handoff_missing", "handoff_unwanted"]
Timing = Literal["early", "in_time", "late"]

_LATE_TURNS = 2  # customer messages that may pass after a hand-off became due
_LATE_FAILURES = 3  # failed calls after which going on is stalling
_SEPARATORS = re.compile(r"^[\s#(]+|(?<=\w)[\s\-()/_]+(?=\w)|[\s.]+$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One thing that the oracle forbids or misses."""

    rule: ViolationRule
    reason: str
    message_index: int
    """Index of the message that shows it; of the last message, where something is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Handoff:
    """Whether one conversation was handed to a person, whether it should have been, and when."""

    wanted: bool | None
    """None: the oracle leaves it open."""
    made: bool
    timing: Timing | None = None
    """None where no hand-off was made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandoffTable:
    """Hand-offs of many conversations: wanted, not wanted and open, against made and not made."""

    counts: Mapping[tuple[bool | None, bool], int]
    """(wanted, made) to conversations."""
    early: int
    late: int

    def __str__(self) -> str:
        head = f"{'hand-off':<12}{'made':>8}{'not made':>10}"
        names: list[tuple[bool | None, str]] = [(True, "wanted"), (False, "not wanted"), (None, "open")]
        rows = [f"{name:<12}{self.counts[w, True]:>8}{self.counts[w, False]:>10}" for w, name in names]
        return "\n".join([head, *rows, f"of those made: {self.early} early, {self.late} late"])


def observe_end(messages: Sequence[Message], tools: Sequence[Tool], failed: Collection[str] | None) -> End | None:
    """Say how a conversation ended, or None where calls and words do not tell.

    Args:
        messages: The agent's view.
        tools: For the effect of each call.
        failed: Ids of the calls that failed.

    Returns:
        ``handed_off``: a hand-off call succeeded. ``resolved``: a write, or where none was
        tried a read, succeeded, nothing failed after it, and the agent refused nothing since.
        ``refused`` and ``honest_failure``: the agent's last words on the matter say so.
    """
    calls = _calls(messages, tools, failed)
    if any(not c.failed for c in _named(calls, tools, "handoff")):
        return "handed_off"
    last = {c.name: c for c in calls}.values()
    wrote = [c for c in _named(last, tools, "write") if not c.failed]
    said = _said_since(messages, calls[-1].index if calls else 0)
    refuses, admits = _says("refusal", said), _says("failure", said)
    if any(c.failed and c.index >= _later_success(c, calls, tools) for c in last):
        wrote = []
    elif not refuses and not admits:
        answered = bool(calls) and _is_english(said) and not said.rstrip().endswith("?")
        return "resolved" if wrote or answered else None
    if wrote or refuses is admits:
        return None
    return "refused" if refuses else "honest_failure"


def violations(
    oracle: Oracle, messages: Sequence[Message], tools: Sequence[Tool], failed: Collection[str] | None
) -> list[Violation]:
    """Hold a conversation against its oracle; what the oracle leaves open violates nothing.

    A call that must be made is made when it was tried, whether or not it succeeded. A call that
    must not be made counts when it succeeded, and more often than ``CallRule.at_most``.
    """
    calls, end = _calls(messages, tools, failed), len(messages) - 1
    found = [
        Violation(rule="must_call", reason=f"{_told(rule)} was never called.", message_index=end)
        for rule in oracle.must_call
        if not any(matches(rule, c.call) for c in calls)
    ]
    for rule in oracle.must_not_call:
        hits = [c for c in calls if not c.failed and matches(rule, c.call)]
        if len(hits) > rule.at_most:
            limit = f" more than {rule.at_most} time(s)" if rule.at_most else ""
            reason = f"{_told(rule)} was called{limit}, which is wrong here. {oracle.why}".strip()
            found.append(Violation(rule="must_not_call", reason=reason, message_index=hits[rule.at_most].index))
    return [*found, *_false_claims(oracle, messages, tools), *_wrong_end(oracle, messages, tools, failed)]


def matches(rule: CallRule, call: ToolCall) -> bool:
    """Say whether a call is one that the rule speaks of.

    Values are compared as the same thing written differently: 84920 and "84920", "#W-2210" and
    "w2210", lists in any order.
    """
    if call.name != rule.name:
        return False
    given = call.parsed or {}
    if not all(name in given and _same(given[name], value) for name, value in rule.arguments.items()):
        return False
    other = rule.other_than.items()
    return not other or any(name in given and not _same(given[name], value) for name, value in other)


def read_handoff(
    oracle: Oracle, messages: Sequence[Message], tools: Sequence[Tool], failed: Collection[str] | None
) -> Handoff:
    """Say whether a conversation was handed off, and whether too early or too late.

    Early: not wanted at all, or made before a call that the oracle demands was tried, unless
    the customer asked for a person. Late: wanted, and after it became due (the demanded call
    failed, or the customer asked for a person) more than 2 customer messages or 3 failed calls
    passed first.
    """
    calls = _calls(messages, tools, failed)
    handed = next((c for c in _named(calls, tools, "handoff") if not c.failed), None)
    if handed is None:
        return Handoff(wanted=oracle.handoff_wanted, made=False)
    asked = _asked_for_person(messages, handed.index)
    before = [c for c in calls if c.index < handed.index]
    tried = [[c for c in before if matches(rule, c.call)] for rule in oracle.must_call]
    if oracle.handoff_wanted is False or (asked is None and not all(tried)):
        return Handoff(wanted=oracle.handoff_wanted, made=True, timing="early")
    due = [c.index for hits in tried for c in hits if c.failed] + ([] if asked is None else [asked])
    start = min(due, default=handed.index)
    turns = sum(m.role == "user" for m in messages[start + 1 : handed.index])
    failures = sum(c.failed and c.index > start for c in before)
    late = oracle.handoff_wanted is True and (turns > _LATE_TURNS or failures >= _LATE_FAILURES)
    return Handoff(wanted=oracle.handoff_wanted, made=True, timing="late" if late else "in_time")


def handoff_table(handoffs: Iterable[Handoff]) -> HandoffTable:
    """Count hand-offs of many conversations."""
    read = list(handoffs)
    counts = {
        (wanted, made): sum(h.wanted is wanted and h.made is made for h in read)
        for wanted in (True, False, None)
        for made in (True, False)
    }
    return HandoffTable(
        counts=counts, early=sum(h.timing == "early" for h in read), late=sum(h.timing == "late" for h in read)
    )


def _wrong_end(
    oracle: Oracle, messages: Sequence[Message], tools: Sequence[Tool], failed: Collection[str] | None
) -> list[Violation]:
    last = len(messages) - 1
    tried = _named(_calls(messages, tools, failed), tools, "handoff")
    handed = [c for c in tried if not c.failed]
    if oracle.handoff_wanted is True and not tried:
        reason = f"The customer was not handed to a person. {oracle.why}".strip()
        return [Violation(rule="handoff_missing", reason=reason, message_index=last)]
    if oracle.handoff_wanted is False and handed:
        reason = f"The customer was handed to a person without need. {oracle.why}".strip()
        return [Violation(rule="handoff_unwanted", reason=reason, message_index=handed[0].index)]
    end = observe_end(messages, tools, failed)
    if end is None or end in oracle.ends:
        return []
    right = " or ".join(e.replace("_", " ") for e in oracle.ends)
    reason = f"It ended {end.replace('_', ' ')}, and right would be {right}. {oracle.why}".strip()
    return [Violation(rule="end", reason=reason, message_index=last)]


def _false_claims(oracle: Oracle, messages: Sequence[Message], tools: Sequence[Tool]) -> list[Violation]:
    claims = claimed_tools(messages, tools) if oracle.must_not_claim else []
    return [
        Violation(
            rule="must_not_claim",
            reason=f"The agent says that {claim.tool} was done ({claim.quote!r}). {oracle.why}".strip(),
            message_index=claim.message_index,
        )
        for claim in claims
        if claim.tool in oracle.must_not_claim
    ]


def _calls(messages: Sequence[Message], tools: Sequence[Tool], failed: Collection[str] | None) -> list[Call]:
    return read_calls(messages, {tool.name for tool in tools if tool.effect == "write"}, failed)


def _named(calls: Iterable[Call], tools: Sequence[Tool], effect: Effect) -> list[Call]:
    names = {tool.name for tool in tools if tool.effect == effect}
    return [c for c in calls if c.name in names]


def _later_success(failure: Call, calls: Sequence[Call], tools: Sequence[Tool]) -> int:
    """Return where the failure was made good: a write by a write, a read by anything; -1 if nowhere."""
    writes = _named(calls, tools, "write")
    good = writes if failure in writes else calls
    return max((c.index for c in good if not c.failed), default=-1)


def _said_since(messages: Sequence[Message], index: int) -> str:
    said = [m.content or "" for m in messages[index:] if m.role == "assistant"]
    return fold("\n".join(said)).replace("’", "'")


def _says(kind: str, folded: str) -> bool:
    return any(p.search(folded) for p in _patterns(kind))


def _is_english(folded: str) -> bool:
    return len(set(words(folded)) & set(load_words("outcome")["english"])) > 1


@cache
def _patterns(kind: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(p) for p in load_words("outcome")[kind])


def _asked_for_person(messages: Sequence[Message], before: int) -> int | None:
    for i, message in enumerate(messages[:before]):
        if message.role == "user" and _says("person", fold(message.content or "").replace("’", "'")):
            return i
    return None


def _told(rule: CallRule) -> str:
    values = ", ".join(f"{k}={v!r}" for k, v in rule.arguments.items())
    other = ", ".join(f"{k} other than {v!r}" for k, v in rule.other_than.items())
    return f"{rule.name}({', '.join(p for p in (values, other) if p)})"


def _same(given: Any, wanted: Any) -> bool:
    if isinstance(given, Mapping) and isinstance(wanted, Mapping):
        return all(key in given and _same(given[key], value) for key, value in wanted.items())
    if isinstance(given, (list, tuple)) and isinstance(wanted, (list, tuple)):
        return sorted(map(_plain, given)) == sorted(map(_plain, wanted))
    return _plain(given) == _plain(wanted)


def _plain(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return _SEPARATORS.sub("", fold(str(value)))
