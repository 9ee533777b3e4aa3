"""Outcome: how a conversation ended, held against what its oracle allows.

Calls and their results decide where they can; the agent's words only say whether it refused
or admitted a failure, in English. Where neither tells, the end is None, and None violates
nothing: a doubtful end is the judge's to read.
"""

from __future__ import annotations

import re
from collections import Counter
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
_Ids = Collection[str] | None

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

    counts: Counter[tuple[bool | None, bool]]
    """(wanted, made) to conversations."""
    early: int
    late: int

    def __str__(self) -> str:
        lines = [f"{'hand-off':<12}{'made':>8}{'not made':>10}"]
        for wanted, name in ((True, "wanted"), (False, "not wanted"), (None, "open")):
            lines.append(f"{name:<12}{self.counts[wanted, True]:>8}{self.counts[wanted, False]:>10}")
        return "\n".join([*lines, f"of those made: {self.early} early, {self.late} late"])


def observe_end(messages: Sequence[Message], tools: Sequence[Tool], failed: _Ids) -> End | None:
    """Say how a conversation ended, or None where calls and words do not tell.

    Args:
        messages: The agent's view.
        tools: For the effect of each call.
        failed: Ids of the calls that failed; None for a foreign conversation, where it is guessed.

    Returns:
        ``handed_off``: a hand-off call succeeded. ``resolved``: a write, or where none was
        tried a read, succeeded, nothing failed after it, and the agent refused nothing since.
        ``refused`` and ``honest_failure``: the agent's last words on the matter say so.
    """
    calls = _calls(messages, tools, failed)
    if any(not c.failed for c in _named(calls, tools, "handoff")):
        return "handed_off"
    said = "\n".join(m.content or "" for m in messages[calls[-1].index if calls else 0 :] if m.role == "assistant")
    refuses, admits = _says("refusal", said), _says("failure", said)
    last = {c.name: c for c in calls}.values()
    spoiled = any(c.failed and c.index >= _later_success(c, calls, tools) for c in last)
    wrote = not spoiled and any(not c.failed for c in _named(last, tools, "write"))
    if not spoiled and not refuses and not admits:
        english = len({*words(said)} & {*load_words("outcome")["english"]}) > 1
        answered = bool(calls) and english and not said.rstrip().endswith("?")
        return "resolved" if wrote or answered else None
    retried = spoiled and any(c.failed and sum(d.name == c.name and d.failed for d in calls) > 1 for c in last)
    first = _first_answer(messages[calls[-1].index if calls else 0 :])
    later = first and not _says("refusal", first) and not _says("failure", first)
    if wrote or later or refuses is admits or (retried and refuses):  # 'already', of a second try, is no refusal
        return None
    return "refused" if refuses else "honest_failure"


def violations(oracle: Oracle, messages: Sequence[Message], tools: Sequence[Tool], failed: _Ids) -> list[Violation]:
    """Hold a conversation against its oracle; what the oracle leaves open violates nothing.

    A call that must be made is made when it was tried, whether or not it succeeded, or when
    another tool showed the same record; a customer who asks for a person and gets one needs no more.
    A call that must not be made counts when it succeeded, and more often than ``CallRule.at_most``;
    where not even a try is fine, it counts when it failed, too.
    """
    calls, found = _calls(messages, tools, failed), list[Violation]()
    wished = _handed_on_wish(messages, calls, tools)
    for rule in oracle.must_call:
        if not wished and not any(matches(rule, c.call) or _does_as_well(rule, c) for c in calls):
            found.append(_violation("must_call", f"{_told(rule)} was never called.", oracle, len(messages) - 1))
    for rule in oracle.must_not_call:
        fine, tried = max(rule.at_most, 0), rule.at_most < 0
        hits = [c for c in calls if (tried or not c.failed) and matches(rule, c.call)]
        if len(hits) > fine:
            limit = f" more than {fine} time(s)" if fine else ""
            reason = f"{_told(rule)} was called{limit}, which is wrong here."
            found.append(_violation("must_not_call", reason, oracle, hits[fine].index))
    for claim, tool in claimed_tools(messages, tools) if oracle.must_not_claim else ():
        if tool in oracle.must_not_claim:
            reason = f"The agent says that {tool} was done ({claim.quote!r})."
            found.append(_violation("must_not_claim", reason, oracle, claim.index))
    return [*found, *_wrong_end(oracle, messages, tools, failed)]


def matches(rule: CallRule, call: ToolCall) -> bool:
    """Say whether a call is one that the rule speaks of.

    Values are compared as the same thing written differently: 84920 and "84920", "#W-2210" and
    "w2210", lists in any order.
    """
    given, other = call.parsed or {}, rule.other_than
    if call.name != rule.name or not _same(given, rule.arguments):
        return False
    return not other or any(name in given and not _same(given[name], value) for name, value in other.items())


def read_handoff(oracle: Oracle, messages: Sequence[Message], tools: Sequence[Tool], failed: _Ids) -> Handoff:
    """Say whether a conversation was handed off, and whether too early or too late.

    Early: not wanted at all, or made before a call that the oracle demands was tried, unless
    the customer asked for a person. Late: wanted, and after it became due (the demanded call
    failed, or the customer asked for a person) more than 2 customer messages or 3 failed calls
    passed first.
    """
    wanted, calls = oracle.handoff_wanted, _calls(messages, tools, failed)
    made = next((c for c in _named(calls, tools, "handoff") if not c.failed), None)
    if made is None:
        return Handoff(wanted=wanted, made=False)
    end = made.index
    asked = [i for i, m in enumerate(messages[:end]) if m.role == "user" and _says("person", m.content or "")][:1]
    before = [c for c in calls if c.index < end]
    tried = [[c for c in before if matches(rule, c.call)] for rule in oracle.must_call if rule.name != made.call.name]
    if wanted is False or not (asked or all(tried)):
        return Handoff(wanted=wanted, made=True, timing="early")
    due = min([*asked, *(c.index for hits in tried for c in hits if c.failed)], default=end)
    turns = sum(m.role == "user" for m in messages[due + 1 : end])
    failures = sum(c.failed and c.index > due for c in before)
    late = wanted is True and (turns > _LATE_TURNS or failures >= _LATE_FAILURES)
    return Handoff(wanted=wanted, made=True, timing="late" if late else "in_time")


def handoff_table(handoffs: Iterable[Handoff]) -> HandoffTable:
    """Count hand-offs of many conversations."""
    read = list(handoffs)
    timings = Counter(h.timing for h in read)
    return HandoffTable(counts=Counter((h.wanted, h.made) for h in read), early=timings["early"], late=timings["late"])


def _wrong_end(oracle: Oracle, messages: Sequence[Message], tools: Sequence[Tool], failed: _Ids) -> list[Violation]:
    tried = _named(_calls(messages, tools, failed), tools, "handoff")
    handed = [c.index for c in tried if not c.failed]
    if oracle.handoff_wanted is True and not tried:
        return [_violation("handoff_missing", "The customer was not handed to a person.", oracle, len(messages) - 1)]
    if handed and _handed_on_wish(messages, tried, tools):
        return []
    if oracle.handoff_wanted is False and handed:
        return [_violation("handoff_unwanted", "The customer was handed to a person without need.", oracle, handed[0])]
    end = observe_end(messages, tools, failed)
    if end is None or end in oracle.ends:
        return []
    reason = f"It ended {end}, and right would be {' or '.join(oracle.ends)}.".replace("_", " ")
    return [_violation("end", reason, oracle, len(messages) - 1)]


def _handed_on_wish(messages: Sequence[Message], calls: Sequence[Call], tools: Sequence[Tool]) -> bool:
    """Say whether the customer asked for a person and got one: then nothing more had to be tried."""
    end = next((c.index for c in _named(calls, tools, "handoff") if not c.failed), 0)
    return any(m.role == "user" and _says("person", m.content or "") for m in messages[:end])


def _first_answer(messages: Sequence[Message]) -> str:
    """Return what the agent told after its last call, where the customer went on and was answered again."""
    spoken = [m for m in messages if m.role in ("user", "assistant") and m.content]
    told = next((i for i, m in enumerate(spoken) if m.role == "assistant" and "?" not in str(m.content)), len(spoken))
    went_on = [m.role for m in spoken[told + 1 : told + 3]] == ["user", "assistant"]
    return spoken[told].content or "" if went_on else ""


def _violation(rule: ViolationRule, reason: str, oracle: Oracle, index: int) -> Violation:
    return Violation(rule=rule, reason=f"{reason} {oracle.why}".strip(), message_index=index)


def _calls(messages: Sequence[Message], tools: Sequence[Tool], failed: _Ids) -> list[Call]:
    return read_calls(messages, {tool.name for tool in tools if tool.effect == "write"}, failed)


def _named(calls: Iterable[Call], tools: Sequence[Tool], effect: Effect) -> list[Call]:
    names = {tool.name for tool in tools if tool.effect == effect}
    return [c for c in calls if c.name in names]


def _later_success(failure: Call, calls: Sequence[Call], tools: Sequence[Tool]) -> int:
    """Return where the failure was made good: a write by a write, a read by anything; -1 if nowhere."""
    writes = _named(calls, tools, "write")
    good = writes if failure in writes else calls
    return max((c.index for c in good if not c.failed), default=-1)


def _says(kind: str, text: str) -> bool:
    return bool(_pattern(kind).search(fold(text).replace("’", "'")))


@cache
def _pattern(kind: str) -> re.Pattern[str]:
    return re.compile("|".join(load_words("outcome")[kind]))


def _does_as_well(rule: CallRule, call: Call) -> bool:
    """Say whether a read that succeeded showed what the demanded one would have shown."""
    return call.name in rule.instead and not call.failed and fold(rule.shows) in fold(call.reply or "")


def _told(rule: CallRule) -> str:
    values = [f"{k}={v!r}" for k, v in rule.arguments.items()]
    return f"{rule.name}({', '.join(values + [f'{k} other than {v!r}' for k, v in rule.other_than.items()])})"


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
