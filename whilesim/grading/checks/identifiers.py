"""Identifiers: where an id in a call comes from.

An id is sourced when a customer's message, a tool's reply or the system prompt held it
before the call, as a whole token. The agent's own words and calls are no source.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from whilesim.chat.messages import Message
from whilesim.grading.checks.calls import Call
from whilesim.grading.checks.deeds import Toolbox
from whilesim.grading.checks.findings import Finding
from whilesim.grading.checks.language import pattern

_TOKEN = re.compile(r"[^\W_](?:[\w\-./@+'#&]*\w)?")
_JUNK = re.compile(r"[\W_]+")
_DIGITS = re.compile(r"\d[\d\s().\-/]{5,20}\d")


@dataclass
class Sources:
    """Every token that somebody other than the agent has said, and in which message first."""

    first: dict[str, int] = field(default_factory=dict)
    phones: dict[str, int] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    """Bare numbers that a customer said: 'order 4411' gives W4411."""

    def holds(self, value: str, before: int) -> bool:
        """Say whether a value was said before a message, in any spelling."""
        plain, digits = normal(value), re.sub(r"\D", "", value)
        short = re.fullmatch(r"[a-z]{1,2}(\d{4,})", plain)
        if self.first.get(plain, before) < before or (short and self.numbers.get(short[1], before) < before):
            return True
        return bool(pattern("identifiers", "phone").match(value)) and any(
            when < before and abs(len(known) - len(digits)) <= 4 and (known.endswith(digits) or digits.endswith(known))
            for known, when in self.phones.items()
        )


def normal(value: str) -> str:
    """Return letters and digits only, lower case, in compatibility form."""
    if value.isalnum() and value.isascii():
        return value.lower()
    return _JUNK.sub("", unicodedata.normalize("NFKC", value).casefold())


@lru_cache(maxsize=2048)
def tokens_of(text: str) -> tuple[str, ...]:
    """Return the distinct tokens of a text in their normal form, and the parts of those with marks inside."""
    found: dict[str, None] = {}
    for token in dict.fromkeys(_TOKEN.findall(text)):
        found[normal(token)] = None
        if not token.isalnum():
            found.update(dict.fromkeys(map(normal, re.split(r"[^\w]+", token))))
    return tuple(found)


def read_sources(messages: Sequence[Message]) -> Sources:
    """Collect the tokens of all messages that are not the agent's; linear in their length."""
    sources = Sources()
    for index, message in enumerate(messages):
        if message.role == "assistant" or not message.content:
            continue
        for token in tokens_of(message.content):
            sources.first.setdefault(token, index)
        for run in _DIGITS.findall(message.content):
            sources.phones.setdefault(re.sub(r"\D", "", run), index)
        if message.role == "user":
            _note_runs(sources, message.content, index)
    return sources


def _note_runs(sources: Sources, text: str, index: int) -> None:
    """Short neighbours joined: customers spell ids with blanks in them."""
    plain = [normal(t) for t in _TOKEN.findall(text)]
    for start, joined in enumerate(plain):
        if joined.isdigit():
            sources.numbers.setdefault(joined, index)
        for following in plain[start + 1 : start + 12]:
            joined += following
            if len(joined) > 24:
                break
            sources.first.setdefault(joined, index)


def is_id(key: str, value: Any) -> bool:
    """Say whether an argument is like an id: by its key, or by letters and digits together."""
    name = re.sub(r"(?<=[a-z])(?=[A-Z])|[\s.\-]", "_", key).lower()
    text = str(value).strip()
    if isinstance(value, bool) or not isinstance(value, (str, int)) or pattern("identifiers", "other_key").search(name):
        return False
    if pattern("identifiers", "no_id").match(text) or not re.search(r"\d|@", text):
        return False
    if pattern("identifiers", "id_key").search(name):
        return len(text) <= (24 if " " in text else 80) and len(normal(text)) >= (4 if text.isdigit() else 2)
    return isinstance(value, str) and bool(pattern("identifiers", "mixed").match(text))


def leaves(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every plain value of a JSON value with the key it stands under."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from leaves(item, str(name))
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from leaves(item, key)
    else:
        yield key, value


def check_identifiers(messages: Sequence[Message], calls: Sequence[Call], tools: Toolbox) -> list[Finding]:
    """Find ids in calls that nobody gave before the call: ``unsourced_identifier``."""
    sources = read_sources(messages) if calls else Sources()
    return [
        Finding("unsourced_identifier", call.index, str(value), f"{key} {str(value)!r} was given by nobody before")
        for call in calls
        for key, value in leaves(call.arguments)
        if is_id(key, value) and not sources.holds(str(value), call.index) and not _stated(tools, call.name, value)
    ]


def _stated(tools: Toolbox, name: str, value: Any) -> bool:
    """Whether the tool's own schema states a value: in an enum, a constant or a default."""
    schema = tools.deeds[name].tool.parameters if name in tools.deeds else {}
    return any(v == value for _, v in _fixed(schema))


def _fixed(schema: Any) -> Iterator[tuple[str, Any]]:
    for key, item in schema.items() if isinstance(schema, Mapping) else ():
        yield from leaves(item) if key in ("enum", "const", "default") else _fixed(item)
    for item in schema if isinstance(schema, list) else ():
        yield from _fixed(item)
