"""Calls: every tool call of a conversation with its reply, and whether it failed.

Where a world made the replies, its own list of failed calls decides. For foreign
conversations the failure is guessed from the reply, more readily for a write than for a read.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, takewhile
from typing import Any

from whilesim.chat.messages import Message, ToolCall
from whilesim.core.jsontext import loads
from whilesim.core.templates import load_words
from whilesim.core.text import name_words
from whilesim.grading.checks.language import LANGUAGES, lexicon, pattern


@dataclass(frozen=True, slots=True)
class Call:
    """One call, paired with its reply."""

    index: int
    """Of the assistant message that made it."""
    call: ToolCall
    arguments: Mapping[str, Any]
    """Empty where the text is no JSON object."""
    reply: str | None
    """None for a call that nobody answered."""
    data: Any
    """The reply as JSON where it is JSON, else its text."""
    failed: bool

    @property
    def name(self) -> str:
        return self.call.name


def read_calls(messages: Sequence[Message], writes: Collection[str], failed: Collection[str] | None) -> list[Call]:
    """Pair calls and replies: by id, else by order, before the next word of anybody."""
    found: list[Call] = []
    for index, message in enumerate(messages):
        replies = list(takewhile(lambda m: m.role == "tool", messages[index + 1 :])) if message.tool_calls else []
        spare = [r for r in replies if r.tool_call_id not in {c.id for c in message.tool_calls}]
        for call in message.tool_calls:
            own = next((r for r in replies if r.tool_call_id == call.id), None)
            answer = own or (spare.pop(0) if spare else None)
            replies = [r for r in replies if r is not own]  # another call may have the same id
            text = None if answer is None else answer.content or ""
            guess = failed is None or text is None
            wrong = looks_failed(text, write=call.name in writes) if guess else call.id in (failed or ())
            wrong = wrong and not (guess and _says_so(call.name, text))
            found.append(Call(index, call, call.parsed or {}, text, _parse(text), wrong))
    return found


def _says_so(name: str, reply: str | None) -> bool:
    """Whether a reply in prose opens with the tool's own deed as done: 'closed' for close_ticket."""
    opening = re.match(r"\W*([a-z]+)(?:$|[,.;!\n]| [^\W\d_]*\d)", (reply or "").lower())
    own = lexicon("en").senses(name_words(name), "VP")
    return opening is not None and bool(own & lexicon("en").senses([opening[1]], "P"))


@lru_cache(maxsize=64)
def _parse(reply: str | None) -> Any:
    text = (reply or "").strip()
    try:
        return loads(text) if text[:1] in ("{", "[", '"') else text
    except (ValueError, RecursionError):
        return text


def looks_failed(reply: str | None, *, write: bool) -> bool:
    """Guess from a reply whether its call failed; an unanswered call did."""
    data = _parse(reply)
    if reply is None or isinstance(data, str):
        return reply is None or _text_failed(data, write)
    return isinstance(data, dict) and _object_failed(data, write)


def _object_failed(data: Mapping[str, Any], write: bool, depth: int = 0) -> bool:
    words = load_words("checks_results")
    said = []
    for key, value in data.items():
        folded = _folded(key)
        if folded in words["error_keys"] and value and str(value).strip().lower() not in words["empty"]:
            return True
        false = value is False or (isinstance(value, str) and value.lower() == "false")
        if false and (folded in words["ok_keys"] or (write and lexicon("en").senses(name_words(key)[-1:], "P"))):
            return True  # {"cancelled": false}
        if folded in words["status_keys"] and (write or len(data) <= 3) and _bad_status(value):
            return True
        if folded in words["message_keys"] and isinstance(value, str):
            said.append(value)
    if said and len(said) == len(data):
        return any(_text_failed(text, write) for text in said)
    told = (v for k, v in data.items() if k.lower() in words["lists"] and isinstance(v, list))
    inner = (v for v in [*data.values(), *chain.from_iterable(told)] if isinstance(v, dict))
    return write and depth < 1 and any(_object_failed(v, write, depth + 1) for v in inner)


@lru_cache(maxsize=4096)
def _folded(key: str) -> str:
    return re.sub(r"[^a-z]", "", key.lower())


def _bad_status(value: Any) -> bool:
    if isinstance(value, int) and not isinstance(value, bool):
        return 400 <= value < 600
    return isinstance(value, str) and bool(pattern("results", "failed_status").match(value.strip()))


def _text_failed(text: str, write: bool) -> bool:
    start = text[:160]
    if start[:1] in ("{", "["):
        return True  # JSON that cannot be read: nobody knows what the call did
    if pattern("results", "strict").search(start):
        return not re.search(r"\b(?:no|without|0) errors?\b", start, re.I)
    first = re.split(r"[.;!\n]", start, maxsplit=1)[0]
    if not write or (_succeeds(first) and not pattern("results", "liberal").search(first)):
        return False
    return bool(pattern("results", "liberal").search(start)) or (len(start.split()) > 2 and not _succeeds(start))


def _succeeds(text: str) -> bool:
    words = re.findall(r"[^\W\d_]+", text.lower())
    return bool(pattern("results", "positive").search(text)) or any(lexicon(c).senses(words, "PSO") for c in LANGUAGES)
