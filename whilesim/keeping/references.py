"""References: what a benchmark's items ask, name and expect, whatever their form.

Texts are all strings that somebody in the conversation says or is told; a system prompt, a
tool's description and a tool's result are none. Calls are mappings with a name and arguments,
OpenAI's tool calls, and lines like ``assistant:get_order({"order_id": "W1"})``.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

from whilesim.core.errors import InputError
from whilesim.core.jsontext import dumps, loads, parse_object, read_lines
from whilesim.core.templates import load_words
from whilesim.core.text import fold, shorten
from whilesim.keeping.rows import Row

FREE = 5
"""Words from which an argument is prose, and says nothing of what a call does."""
# scripts without spaces: by character
_TOKEN = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]|\w+(?:['’]\w+)*")
_CALL = re.compile(r"(assistant|user):(\w+)\((\{.*\})\)", re.DOTALL)
_DATE = re.compile(
    r"(?:19|20)\d\d([-/.])\d\d?\1\d\d?(?:[T ]\d\d:\d\d(?::\d\d)?)?|\d\d?([-/.])\d\d?\2(?:19|20)\d\d|\d{1,20}[.,]\d+|\d\d?:\d\d(?::\d\d)?"
)
_NAME = re.compile(
    r"[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64})+|\+?\d(?:[\d().-]| (?=[\d(])){5,}\d"
    r"|(?=[A-Za-z_-]{0,40}\d)[A-Za-z0-9][A-Za-z0-9_-]{4,}"
)
_AMOUNT = re.compile(r"\d[\d_]*[a-z]+")  # 500mbps, 24hours
_ONE_OF_FEW = re.compile(r"[a-z]{1,3}-?\d{1,3}")  # a flight, a form: two worlds soon draw the same


@dataclass(frozen=True, slots=True)
class Call:
    """A call as it is compared: who made it, and name and arguments in one spelling, prose left out."""

    name: str
    told: str
    named: bool
    """Whether an argument names a record."""
    customer: bool = False


@dataclass(frozen=True, slots=True)
class Item:
    """One item of a benchmark."""

    id: str
    texts: tuple[str, ...]
    names: frozenset[str]
    """Identifiers of records and people."""
    calls: tuple[Call, ...]


def read_items(against: Any) -> list[Item]:
    """Read a benchmark: a path (JSONL, JSON, or text with an item a line), a list, or a dataset on the Hub.

    Raises:
        InputError: There is no such file or dataset, or nothing in it.
    """
    found = list(against) if not isinstance(against, (str, os.PathLike)) else list(_read(os.fspath(against)))
    if not found:
        raise InputError(f"against={shorten(repr(against), 60)} holds nothing to compare with.")
    items = []
    for number, value in enumerate(found):
        plain = value.to_json() if isinstance(value, Row) else value
        if isinstance(plain, Mapping) and plain.keys() >= {"situation_id", "messages"}:  # a row of ours: what was said
            plain = {"id": plain.get("id"), "messages": plain["messages"]}
        named = plain.get("id", plain.get("task_id")) if isinstance(plain, Mapping) else None
        words = load_words("reference_keys")
        texts = tuple(text for text in _texts(plain, words) if text.strip())
        calls = tuple(_calls(plain, words))
        names = frozenset[str]().union(*map(_names, (*texts, *(call.told for call in calls))))
        items.append(Item(str(number if named is None else named), texts, names, calls))
    return items


@lru_cache(maxsize=1 << 16)
def tokens(text: str) -> tuple[str, ...]:
    """Return the words of a text, folded; characters, where a script has no spaces."""
    return tuple(_TOKEN.findall(unicodedata.normalize("NFKC", text).casefold()))


def identifiers(text: str, known: Container[str] | None = None) -> frozenset[str]:
    """Return what names a record or a person: numbers of seven digits or more, codes, addresses.

    Dates, times, amounts and plain words are none. Of ``known`` ones, those that stand in the
    text, however they are typed.
    """
    found = set()
    for match in _NAME.finditer(_DATE.sub(" ", text)):
        raw = match.group().strip("-_.").casefold()
        digits, number = sum(c.isdigit() for c in raw), re.sub(r"\D", "", raw)
        booked = digits and match.group().isupper() and len(raw) == 6
        coded = (digits >= 3 and not _AMOUNT.fullmatch(raw)) or booked
        if known is not None:
            found |= {name for name in (raw, number) if name in known}
        elif "@" in raw or (any(map(str.isalpha, raw)) and coded and not _ONE_OF_FEW.fullmatch(raw)):
            found.add(raw)
        elif digits >= 7 and not any(map(str.isalpha, raw)):
            found.add(number)
    return frozenset(found)


_names = lru_cache(maxsize=1 << 14)(identifiers)  # thousands of tasks may share a dozen texts


def read_call(name: str, arguments: Mapping[str, Any], *, customer: bool = False) -> Call:
    """Return a call as it is compared."""
    spelt = ((key, _spelt(value)) for key, value in sorted(arguments.items()))
    told = dumps({key: said for key, said in spelt if said not in (None, "", [])})
    return Call(name, f"{name}({told})", bool(identifiers(told)), customer)


def _read(name: str) -> Iterator[Any]:
    path = Path(name)
    if path.suffix == ".jsonl" and path.is_file():
        yield from (value for _, value in read_lines(path))
    elif path.is_file():
        text = path.read_text(encoding="utf-8-sig")
        try:
            value = loads(text)
        except ValueError as error:
            if path.suffix == ".json":
                raise InputError(f"{name!r} is not JSON: {error}. Mend it, or name it .jsonl or .txt.") from error
            value = [line for line in text.splitlines() if line.strip()]
        yield from _unwrapped(value)
    elif re.fullmatch(r"[\w.-]+/[\w.-]+", name) and path.suffix not in (".json", ".txt"):
        from datasets import load_dataset

        try:
            parts = load_dataset(name).values()
        except (OSError, ValueError) as error:  # what datasets and the Hub raise for what is not there
            msg = f"{name!r} is no file, and no dataset on the Hub that can be read: {shorten(str(error), 160)}"
            raise InputError(msg) from error
        yield from chain.from_iterable(parts)
    else:
        raise InputError(f"there is no file {name!r} to compare with. Type a path, a list, or 'owner/name' on the Hub.")


def _unwrapped(value: Any) -> Iterable[Any]:
    """Return the items of a file that is a list, or a mapping around its longest list."""
    if isinstance(value, Mapping):
        lists: list[list[Any]] = [v for v in value.values() if isinstance(v, list) and v and isinstance(v[0], Mapping)]
        lists.sort(key=len)
        return lists[-1] if lists else [value]
    return value if isinstance(value, list) else [value]


def _inside(value: Any, without: Container[str]) -> Iterable[Any]:
    """Return what a list holds, or a mapping under other keys than these."""
    if isinstance(value, Mapping):
        return [item for key, item in value.items() if key not in without]
    return value if isinstance(value, (list, tuple)) else ()


def _texts(value: Any, words: Mapping[str, Any]) -> Iterator[str]:
    if isinstance(value, str):
        if not _CALL.fullmatch(value):
            yield value
    elif not isinstance(value, Mapping) or value.get("role", value.get("from")) not in words["not_said"]:
        for item in _inside(value, words["not_asked"]):
            yield from _texts(item, words)


def _calls(value: Any, words: Mapping[str, Any]) -> Iterator[Call]:
    if isinstance(value, str) and (match := _CALL.fullmatch(value)):
        yield read_call(match[2], parse_object(match[3]) or {}, customer=match[1] == "user")
    found = value if isinstance(value, Mapping) else {}
    given = found.get("arguments", found.get("args"))
    given = parse_object(given) if isinstance(given, str) else given
    if isinstance(found.get("name"), str) and isinstance(given, Mapping):
        yield read_call(found["name"], given, customer=found.get("requestor") == "user")
    else:
        for item in _inside(value, words["not_done"]):
            yield from _calls(item, words)


def _spelt(value: Any) -> Any:
    """Return an argument as it is compared: folded, numbers as text, None for prose."""
    if isinstance(value, Mapping):
        return {key: said for key, item in sorted(value.items()) if (said := _spelt(item)) is not None}
    if isinstance(value, (list, tuple)):
        return [said for item in value if (said := _spelt(item)) is not None]
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = fold(str(value)).removeprefix("#")
    return text if len(tokens(text)) < FREE else None
