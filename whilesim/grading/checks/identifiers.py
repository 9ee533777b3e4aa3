"""Identifiers: where an id in a call comes from.

An id is sourced when a customer's message, a tool's reply or the system prompt held it
before the call, as a whole token. The agent's own words and calls are no source.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate, chain, islice, takewhile
from typing import Any

from whilesim.chat.messages import Message
from whilesim.conversations.reading import leaves as paths
from whilesim.grading.checks.calls import Call
from whilesim.grading.checks.deeds import Toolbox
from whilesim.grading.checks.findings import Finding
from whilesim.grading.checks.language import pattern

_TOKEN = re.compile(r"[^\W_](?:[\w\-./@+'#&]*\w)?")
_JUNK = re.compile(r"[\W_]+")
_SPOKEN = re.compile(r"(?i)\b[\w.-]{1,40}(?:\W+dot\W+[\w-]+){0,4}\W+at(?:\W+[\w-]+\W+dot){1,4}\W+\w+")
_ESCAPED = re.compile(r"\\(?:u([0-9a-fA-F]{4})|[nrt])")  # as JSON writes it
_DIGITS = re.compile(r"\d[\d\s().\-/]{5,20}\d")


def normal(value: str) -> str:
    """Return letters and digits only, lower case, in compatibility form."""
    if value.isalnum() and value.isascii():
        return value.lower()
    return _JUNK.sub("", unicodedata.normalize("NFKC", value).casefold())


@lru_cache(maxsize=2048)
def tokens_of(text: str) -> frozenset[str]:
    """Return the tokens of a text in their normal form, and the parts of those with marks inside."""
    tokens = set(_TOKEN.findall(text))
    parts = (part for token in tokens if not token.isalnum() for part in re.split(r"[^\w]+", token))
    return frozenset(map(normal, (*tokens, *parts)))


def _runs(text: str) -> Iterator[str]:
    """Short neighbours joined, for customers spell ids with blanks in them, and ``#`` before bare numbers."""
    plain = [normal(t) for t in _TOKEN.findall(text)]
    yield from (f"#{token}" for token in plain if token.isdigit())
    yield from (normal(re.sub(r"(?i)\W+(?:at|dot)\W+", "", m)) for m in _SPOKEN.findall(text))
    for start in range(len(plain)):
        yield from takewhile(lambda run: len(run) <= 24, islice(accumulate(plain[start : start + 12]), 1, None))


@dataclass(frozen=True)
class _Heard:
    """What others than the agent said: message index, role and text of each message, in order."""

    texts: Sequence[tuple[int, str, str]]

    def holds(self, value: str, before: int) -> bool:
        """Say whether a value was said before a message, in any spelling."""
        plain, digits = normal(value), re.sub(r"\D", "", value)
        short = re.fullmatch(r"[a-z]{1,2}(\d{4,})", plain)  # 'order 4411' gives W4411
        spelt = (plain, f"#{short[1]}") if short else (plain,)
        if any(self._tokens.get(token, before) < before for token in spelt):
            return True
        if not pattern("identifiers", "phone").match(value):
            return False
        told = (re.sub(r"\D", "", n) for at, _, text in self.texts if at < before for n in _DIGITS.findall(text))
        return any(abs(len(n) - len(digits)) <= 4 and (n.endswith(digits) or digits.endswith(n)) for n in told)

    @cached_property
    def _tokens(self) -> Mapping[str, int]:
        """Every token and the first message that holds it; of a customer's, neighbours joined as well."""
        found: dict[str, int] = {}
        for at, role, text in self.texts:
            for token in chain(tokens_of(text), _runs(text) if role == "user" else ()):
                found.setdefault(token, at)
        return found


def is_id(key: str, value: Any) -> bool:
    """Say whether an argument is like an id: by its key, or by letters and digits together."""
    (other, named), text = _kind_of_key(key), str(value).strip()
    if other or isinstance(value, bool) or not isinstance(value, (str, int)):
        return False
    if pattern("identifiers", "no_id").match(text) or not re.search(r"\d|@", text):
        return False
    if named:
        return len(text) <= (24 if " " in text else 80) and len(normal(text)) >= (4 if text.isdigit() else 2)
    return isinstance(value, str) and bool(pattern("identifiers", "mixed").match(text))


@lru_cache(maxsize=1024)
def _kind_of_key(key: str) -> tuple[bool, bool]:
    """Whether a key is of something else, and whether it is of an id."""
    name = re.sub(r"(?<=[a-z])(?=[A-Z])|[\s.\-]", "_", key).lower()
    return bool(pattern("identifiers", "other_key").search(name)), bool(pattern("identifiers", "id_key").search(name))


def leaves(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield every plain value of a JSON value with the key it stands under."""
    return ((path[-1] if path else "", leaf) for path, leaf in paths(value))


def check_identifiers(messages: Sequence[Message], calls: Sequence[Call], tools: Toolbox) -> list[Finding]:
    """Find ids in calls that nobody gave before the call: ``unsourced_identifier``."""
    others = [(i, m.role, m.content) for i, m in enumerate(messages) if m.role != "assistant" and m.content]
    heard = _Heard([(i, role, _ESCAPED.sub(lambda m: chr(int(m[1] or "20", 16)), said)) for i, role, said in others])
    given = ((c, k, v) for c in calls for k, v in leaves(c.arguments) if is_id(k, v))
    wrong = ((c, k, str(v)) for c, k, v in given if not heard.holds(str(v), c.index) and not _stated(tools, c.name, v))
    return [Finding("unsourced_identifier", c.index, v, f"{k} {v!r} was given by nobody before") for c, k, v in wrong]


def _stated(tools: Toolbox, name: str, value: Any) -> bool:
    """Whether the tool's own schema states a value: in an enum, a constant or a default."""
    schema = tools.deeds[name].tool.parameters if name in tools.deeds else {}
    return any(v == value and not {"enum", "const", "default"}.isdisjoint(path) for path, v in paths(schema))
