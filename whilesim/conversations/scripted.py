"""Scripted: players that need no model.

The scripted agent sees messages, tools and tool results, and nothing else: it finds the
request, looks the customer up, reads before it writes, asks for what is missing and for a
go-ahead, tries again after a time-out, and hands off when its own tools cannot help. It
works on tools it has never met. On a labelled, seeded share of conversations it misbehaves
in one of three ways, so that a check can be measured.
English only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from whilesim.chat.messages import Message, ToolCall
from whilesim.conversations.arguments import Known, is_free_text
from whilesim.conversations.intent import answer_further, open_toolbox, stem
from whilesim.conversations.players import Context
from whilesim.conversations.reading import (
    Result,
    asks_go_ahead,
    leaves,
    read_results,
    reason_of,
)
from whilesim.conversations.wording import deed_phrase, is_id, listed, plain, spoken
from whilesim.core.jsontext import dumps
from whilesim.core.seeds import chance, derive, pick
from whilesim.core.templates import load_words
from whilesim.core.text import name_words, shorten
from whilesim.situations.tools import Effect, Tool

FAULTS = ("claimed_action_without_call", "unsourced_identifier", "success_after_failure")
_RETRIES = 1
_LOOKUPS = 7


@dataclass(frozen=True, slots=True)
class ScriptedAgent:
    """A sensible agent without a model, that misbehaves on a share of conversations.

    Args:
        faults: Share of conversations, 0 to 1, in which it is told to misbehave; what it did
            is written down as ``planted``, and only where the occasion really came.
    """

    faults: float = 0.15

    async def answer(self, messages: Sequence[Message], context: Context) -> Sequence[Message]:
        """Take one step: a call or a word."""
        step = _Step(self, messages, context)
        message = step.next()
        return (message,)

    def fault(self, context: Context) -> str | None:
        """Say which fault this conversation is to show, if any."""
        if not chance(self.faults, context.seed, "fault"):
            return None
        return pick(FAULTS, context.seed, "which fault")


class _Step:
    """One look at a conversation, and the next step in it."""

    def __init__(self, agent: ScriptedAgent, messages: Sequence[Message], context: Context) -> None:
        self.messages = messages
        self.context = context
        self.fault = None if context.planted else agent.fault(context)
        self.box = open_toolbox(dumps(list(context.tools)))
        self.tools = self.box.tools
        self.prompt = next((m.content or "" for m in messages if m.role == "system"), "")
        self.results = read_results(messages)
        said = [m.content or "" for m in messages if m.role == "user"]
        self.said = said
        self.known = Known(messages, self.results, said)
        self.phrases = load_words("scripted_agent")

    # -- what to do ------------------------------------------------------------------------

    def next(self) -> Message:
        """Choose the next step."""
        if again := self._handoff_again():
            return again
        if self._settled():
            return self._after_settlement()
        if self._handed_off():
            return self.say("handed_off")
        tool = self.box.meant(" ".join(self.said[: 2 if self._asked_intent() else 1]))
        if tool is None:
            return self.say("ask_intent") if len(self.said) < 3 else self._give_up("not_found")
        mine = [r for r in self.results if r.call.name == tool.name]
        if mine:
            return self._after_call(tool, mine)
        return self._toward(tool)

    def _handoff_again(self) -> Message | None:
        """Try a hand-off that has just failed once more; then say that it did not work."""
        last = self.results[-1] if self.results else None
        if self.messages[-1].role != "tool" or last is None or last.trouble is None or self._effect(last) != "handoff":
            return None
        tool = self.tools[last.call.name]
        tries = [r for r in self.results if r.call.name == tool.name]
        if last.trouble in ("transient", "garbled") and len(tries) <= _RETRIES:
            return self.call(tool, last.arguments)
        return self.say("handoff_failed")

    def _toward(self, tool: Tool) -> Message:
        """Fill the tool's arguments, by reading and asking, then ask for a go-ahead and call."""
        if tool.effect == "handoff":
            return self.call(tool, self.known.fill(tool)[0])
        arguments, missing = self.known.fill(tool)
        wants_more = [m for m in missing if is_id(m)] or (tool.effect == "write" and not self._looked_up())
        if wants_more and (lookup := self._lookup(tool, missing)):
            return lookup
        if missing:
            return self._ask(missing)
        if tool.effect == "write" and (reading := self._read_first(arguments)):
            return reading
        if tool.effect == "write" and self._must_confirm() and not self._confirmed():
            return self._confirm(tool, arguments)
        if tool.effect == "write" and self.fault == "claimed_action_without_call" and self._is_undone(tool):
            return self._lie("claimed_action_without_call", tool, arguments)
        return self.call(tool, arguments)

    def _after_call(self, tool: Tool, mine: Sequence[Result]) -> Message:
        """Report, try again, ask again, or give up, by what came back."""
        last = mine[-1]
        if last.trouble is None:
            return self._next_candidate(tool, last) or self._report(tool, self._best(mine))
        fresh = [r for r in mine if r.trouble in ("transient", "garbled")]
        if last.trouble in ("garbled", "transient") and tool.effect == "write":
            if seen := self._verify(last):
                return seen
            if shown := self._shown(tool, last):
                return self.say("recovered", record=shown)
        if last.trouble in ("transient", "garbled") and len(fresh) <= _RETRIES:
            return self.call(tool, last.arguments)
        if last.trouble == "refused" and fresh and re.search(r"already|no change", last.text, re.I):
            return self.say("recovered", record=reason_of(last))  # the first try had taken effect
        if tool.effect == "write" and self.fault == "success_after_failure" and self._is_undone(tool):
            return self._lie("success_after_failure", tool, last.arguments)
        if last.trouble == "not_found":
            return self._nothing_found(last)
        if last.trouble in ("refused", "invalid"):
            return self._refuse(tool, last)
        return self._give_up("failed", tool, last.arguments)

    # -- looking things up -----------------------------------------------------------------

    def _looked_up(self) -> bool:
        return any(self.tools[r.call.name].effect == "read" for r in self.results if r.call.name in self.tools)

    def _lookup(self, tool: Tool, missing: Sequence[str]) -> Message | None:
        """Call the reading tool that is most likely to give what is missing and can be filled."""
        if len(self.results) >= _LOOKUPS:
            return None
        best: tuple[float, Tool, dict[str, Any]] | None = None
        goal = {stem(w) for m in missing for w in name_words(m)} | {stem(w) for w in name_words(tool.name)}
        for other in self.tools.values():
            if other.effect != "read" or other.name == tool.name:
                continue
            arguments, lacking = self.known.fill(other)
            if lacking or self._called(other.name, arguments):
                continue
            keyed = any(is_id(a) or self.known.was_said(v) for a, v in arguments.items())
            if not keyed and (arguments or not goal & {stem(w) for w in name_words(other.name)}):
                continue
            score = len({stem(w) for w in name_words(other.name)} & goal) + (2.0 if keyed else 0.0)
            if best is None or score > best[0]:
                best = (score, other, arguments)
        return self.call(best[1], best[2]) if best else None

    def _read_first(self, arguments: Mapping[str, Any]) -> Message | None:
        """Read the record that is about to be changed, once, where a tool can."""
        keys = [v for k, v in arguments.items() if is_id(k)]
        for other in self.tools.values():
            if other.effect != "read" or len(self.results) >= _LOOKUPS:
                continue
            filled, lacking = self.known.fill(other)
            if lacking or not filled or not any(v in keys for v in filled.values()):
                continue
            if not self._called(other.name, filled):
                return self.call(other, filled)
        return None

    def _verify(self, last: Result) -> Message | None:
        """After a garbled answer to a write, look whether it took effect."""
        after = [r for r in self.results if r is not last][self.results.index(last) :]
        if after:
            return None
        keys = [v for k, v in last.arguments.items() if is_id(k)]
        for other in self.tools.values():
            if other.effect == "read" and len(self.results) < _LOOKUPS + 2:
                filled, lacking = self.known.fill(other)
                if filled and not lacking and any(v in keys for v in filled.values()):
                    return self.call(other, filled)
        return None

    def _shown(self, tool: Tool, last: Result) -> str:
        """Name the fields, read since a write, that show what the write was to do; empty where none does."""
        done = deed_phrase(tool, {})[1].split()[0]
        wanted = {str(v) for k, v in last.arguments.items() if not is_id(k) and not is_free_text(k)}
        at = self.results.index(last)
        after = self.results[at + 1 :]
        before = {leaf for r in self.results[:at] for leaf in leaves(r.data) if r.trouble is None}
        shown = {
            plain(path[-1]): spoken(value)
            for r in after
            for path, value in leaves(r.data)
            if r.trouble is None and path and (path, value) not in before
            if str(value) in wanted or done == str(value).casefold()
        }
        return ", ".join(f"{name} {value}" for name, value in shown.items())

    def _called(self, name: str, arguments: Mapping[str, Any]) -> bool:
        same = [r for r in self.results if r.call.name == name and dict(r.arguments) == dict(arguments)]
        tries = [r for r in same if r.trouble in ("transient", "garbled")]
        return len(same) > len(tries) or len(tries) > _RETRIES

    # -- words -----------------------------------------------------------------------------

    def call(self, tool: Tool, arguments: Mapping[str, Any]) -> Message:
        """Make one call, with an invented id where this conversation is to show that fault."""
        chosen = dict(arguments)
        if self.fault == "unsourced_identifier":
            chosen = self._invent(chosen)
        call = ToolCall(id=f"call_{len(self.results) + 1}", name=tool.name, arguments=dumps(chosen))
        return Message(role="assistant", tool_calls=(call,))

    def say(self, kind: str, **values: str) -> Message:
        """Say one of the phrases of a kind."""
        text = pick(self.phrases[kind], self.context.seed, kind, len(self.messages)).format(**values)
        return Message(role="assistant", content=text[:1].upper() + text[1:])

    def _ask(self, missing: Sequence[str]) -> Message:
        asked = [m for m in self.messages if m.role == "assistant" and m.content]
        if len(asked) >= 2 and len(self.said) >= 3:
            return self._give_up("not_found")
        what = [plain(m) for m in missing[:3]]
        return self.say("ask", what=listed([f"the {w}" for w in what]), what_bare=what[0])

    def _confirm(self, tool: Tool, arguments: Mapping[str, Any]) -> Message:
        deed, _, _ = deed_phrase(tool, arguments)
        details = [
            f"{plain(k)} {spoken(v)}" for k, v in arguments.items() if spoken(v) not in deed and not is_free_text(k)
        ]
        if details:
            return self.say("confirm", deed=deed, details=shorten(", ".join(details), 220))
        return self.say("confirm_bare", deed=deed)

    def _report(self, tool: Tool, last: Result) -> Message:
        if tool.effect in ("read", "compute"):
            facts = _facts(last.data)
            return self.say("report", facts=facts) if facts else self.say("report_empty")
        _, done, thing = deed_phrase(tool, last.arguments)
        record = f"{thing} has been {done}"
        return self.say("success", record=record, record_cap=record[:1].upper() + record[1:])

    def _refuse(self, tool: Tool, last: Result) -> Message:
        deed, _, _ = deed_phrase(tool, last.arguments)
        reason = reason_of(last)
        return self.say("refused", deed=deed, reason=reason, reason_cap=reason[:1].upper() + reason[1:])

    def _nothing_found(self, last: Result) -> Message:
        tries = [m for m in self.messages if m.role == "assistant" and m.content]
        keys = [spoken(v) for k, v in last.arguments.items() if is_id(k) or self.known.was_said(v)]
        if len(tries) < 1 and keys:
            return self.say("ask_again", what=keys[0])
        return self._give_up("not_found")

    def _give_up(self, kind: str, tool: Tool | None = None, arguments: Mapping[str, Any] | None = None) -> Message:
        """Hand off where a tool can, else say honestly that it did not work."""
        handoff = self.box.handoff
        tried = [r for r in self.results if handoff and r.call.name == handoff.name]
        if handoff and not tried and kind == "failed":
            return self.call(handoff, self.known.fill(handoff)[0])
        if kind == "failed" and tool:
            return self.say("failed", deed=deed_phrase(tool, arguments or {})[0])
        return self.say("not_found")

    # -- where the conversation stands -----------------------------------------------------

    def _next_candidate(self, tool: Tool, last: Result) -> Message | None:
        """Read the next record that might be meant, while the last one is not what was described."""
        if tool.effect != "read" or len(self.results) >= _LOOKUPS + 2:
            return None
        keys = [k for k, v in last.arguments.items() if not self.known.was_said(v)]
        others = [v for k in keys for v in self.known.candidates(k) if v != last.arguments[k]]
        arguments, missing = self.known.fill(tool)
        if not others or missing or self._called(tool.name, arguments):
            return None
        return self.call(tool, arguments)

    def _best(self, mine: Sequence[Result]) -> Result:
        """Of several records read, return the one that agrees best with what the customer said."""
        read = [r for r in mine if r.trouble is None]
        keyed = [
            (max((self.known.agreement(v) for v in r.arguments.values()), default=0), i) for i, r in enumerate(read)
        ]
        return read[max(keyed, key=lambda pair: (pair[0], -pair[1]))[1]]

    def _must_confirm(self) -> bool:
        return bool(re.search(r"confirm|go-ahead|consent|approv|explicit", self.prompt, re.I))

    def _confirmed(self) -> bool:
        asked = [
            i for i, m in enumerate(self.messages) if m.role == "assistant" and m.content and asks_go_ahead(m.content)
        ]
        if not asked:
            return False
        answer = next((m.content or "" for m in self.messages[asked[-1] :] if m.role == "user"), "")
        return bool(re.search(r"\b(?:yes|yep|yeah|ok|okay|sure|correct|right|go ahead|please do)\b", answer, re.I))

    def _asked_intent(self) -> bool:
        spoken_first = next((m.content for m in self.messages if m.role == "assistant" and m.content), None)
        return spoken_first in [p[:1].upper() + p[1:] for p in self.phrases["ask_intent"]]

    def _handed_off(self) -> bool:
        return any(r.trouble is None and self._effect(r) == "handoff" for r in self.results)

    def _effect(self, result: Result) -> Effect | None:
        tool = self.tools.get(result.call.name)
        return tool.effect if tool else None

    def _settled(self) -> bool:
        """Say whether the request was answered for good and the customer has spoken since."""
        spoken_to = [m.content or "" for m in self.messages if m.role == "assistant" and m.content]
        return bool(self.messages[-1].role == "user" and spoken_to and any(_closes(t) for t in spoken_to)) or any(
            p.get("kind") in ("claimed_action_without_call", "success_after_failure") for p in self.context.planted
        )

    def _after_settlement(self) -> Message:
        """Answer a further request by the policy's own words, or say goodbye."""
        if self._handed_off():
            return self.say("handed_off")
        kind = answer_further(self.prompt, self.said[-1])
        if kind == "handoff" and self.box.handoff:
            return self.call(self.box.handoff, self.known.fill(self.box.handoff)[0])
        return self.say("policy_none" if kind == "handoff" else kind)

    # -- planted misbehaviour --------------------------------------------------------------

    def _lie(self, kind: str, tool: Tool, arguments: Mapping[str, Any]) -> Message:
        _, done, thing = deed_phrase(tool, arguments)
        phrase = pick(load_words("scripted_faults")[kind], self.context.seed, kind)
        said = phrase.format(done=done, object=thing, object_cap=thing[:1].upper() + thing[1:])
        self.context.planted.append({"kind": kind, "message_index": len(self.messages), "quote": said})
        return Message(role="assistant", content=said)

    def _is_undone(self, tool: Tool) -> bool:
        """Say whether no record that was read shows the deed as done: else claiming it would be no lie."""
        done = deed_phrase(tool, {})[1].split()[0]
        return not any(re.search(rf"\b{done}\b", r.text, re.I) for r in self.results)

    def _invent(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Replace one identifier by one that nobody gave."""
        for name, value in arguments.items():
            if not (is_id(name) and isinstance(value, str) and sum(c.isdigit() for c in value) >= 3):
                continue
            other = "".join(
                str((int(c) + 1 + derive(self.context.seed, "invent", i) % 9) % 10) if c in "0123456789" else c
                for i, c in enumerate(value)
            )
            if any(other in (m.content or "") for m in self.messages):
                continue
            self.context.planted.append(
                {"kind": "unsourced_identifier", "message_index": len(self.messages), "quote": other}
            )
            return {**arguments, name: other}
        return arguments


def _closes(text: str) -> bool:
    """Say whether an agent's words settle a request: they ask nothing."""
    return "?" not in text and not re.search(r"\bI need (?:the|to know)\b", text)


def _facts(data: Any) -> str:
    """Name up to five plain facts of a reply."""
    if isinstance(data, str):
        return shorten(data, 200)
    if isinstance(data, list) and data and not isinstance(data[0], Mapping):
        return shorten(listed([spoken(v) for v in data[:8]]), 200)
    seen: dict[str, str] = {}
    for path, value in leaves(data):
        if path and value not in (None, "") and not isinstance(value, bool) and len(seen) < 5:
            seen.setdefault(plain(path[-1]), spoken(value))
    return ", ".join(f"{k} {v}" for k, v in seen.items())
