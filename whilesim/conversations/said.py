"""Said: what a customer's sentences say of one argument, whatever frame the value stands in.

'order id: W1', 'my order id is W1', 'it's order W1' and 'W1 is the order' all name order W1. An
argument is known by the words of its name, its kind of value and its fixed options.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from whilesim.core.templates import load_words
from whilesim.core.text import name_words
from whilesim.world.kinds import describe_field, role_of

_WORDS: Mapping[str, Any] = load_words("scripted_reading")
SHAPES: Mapping[str, str] = {
    shape: look.replace("{id}", _WORDS["shapes"]["id"]).replace("{opens}", _WORDS["shapes"]["opens"])
    for shape, look in _WORDS["shapes"].items()
}
"""Kinds of value and how one looks in a sentence."""

_GAP, _BACK = _WORDS["between"], _WORDS["between_back"]
_NAMED = re.compile(rf"\b(?:{'|'.join(n for names in _WORDS['names'].values() for n in names)}){_GAP}$", re.I)
_TURNED = "".join(rf"(?<!{v} )" for v in ("turn", "turned", "switch", "switched", "put", "set"))
_ELSEWHERE = re.compile(
    rf"{_TURNED}\b(?:on|off|in|out|up|down) (?=\d|(?:the|my|your|our|an?|this|that|it|behalf|hold)\b)", re.I
)
"""'on' before a date or a thing: no option."""
_KEYS = frozenset({"id", "ids", "number", "numbers", "uuid", "code", "key", "ref", "reference"})
_LIGHT = (_KEYS - {"uuid"}) | {"new", "old", "current", "no", "target", "on", "at"}


@dataclass(frozen=True, slots=True)
class Wanted:
    """One argument, as words can name it."""

    name: str
    shape: str
    phrase: str
    """A pattern for the words that name it."""
    new: bool
    """Whether it is the new one of two values."""
    options: tuple[str, ...] = ()
    like: str = ""
    """A pattern for what its description shows as an example."""


def wanted(name: str, schema: Mapping[str, Any], of: str = "") -> Wanted:
    """Read from an argument's name and schema how a customer's words name it; ``of`` is what a bare name is of."""
    told = describe_field(name, schema, "")
    party = not of or of.split()[0] in load_words("world_nouns")["party"]
    bare = name in ("name", "key", "id", "code") and not party and name not in of.split()  # 'correct_name'
    return _wanted(name, told.type, told.role, told.options, told.example, of if bare else "")


@lru_cache(maxsize=8192)
def _wanted(name: str, kind: str, told: str, options: tuple[str, ...], example: str, of: str) -> Wanted:
    parts, role = name_words(name) or [name], role_of(name)
    if role not in _WORDS["shape_of"] and told in _WORDS["shape_of"]:
        role = told  # 'to' of format date, or email
    if kind in ("integer", "number") and not is_key(name):
        shape = "number"
    elif "expression" in parts:
        shape = "sum"
    else:
        shape = "id" if is_key(name) else _WORDS["shape_of"].get(role, "word")
    core = [p for p in parts if p not in _LIGHT] or parts
    head = r"[\s_-]?".join(re.escape(p.removesuffix("s")) + "(?:e?s)?" for p in core)
    others = [re.escape(w) for w in _WORDS["names"].get(role, ()) if shape != "id"]
    if of and name == "name":
        return Wanted(name, "word", rf"{of.split()[0]}s?(?: is)? called", False, options)
    head = rf"{head}|{re.escape(of)}" if of else head
    phrase = rf"(?:{'|'.join([head, *others])})(?:[\s_-](?:ids?|numbers?|codes?|no|refs?|references?))?"
    return Wanted(name, shape, phrase, parts[0] in ("new", "target"), options, _pattern_like(example))


def is_key(name: str) -> bool:
    """Say whether an argument's name is that of an identifier."""
    return "".join(name_words(name)[-1:]) in _KEYS and role_of(name) not in ("phone", "zip")


def _pattern_like(example: str) -> str:
    """Return a pattern for what looks like an example id: '#W0000000' is a hash, a W and digits."""
    if not re.search(r"\d", example) or " " in example or len(example) < 4 or re.match(r"[a-z]+_", example):
        return ""  # 'sara_doe_496' could be anybody
    return re.sub(r"\d+", lambda m: rf"\d{{{min(3, len(m[0]))},{len(m[0]) + 2}}}", re.escape(example))


def value_said(texts: Sequence[str], want: Wanted) -> str | None:
    """Return the value that a customer's words give an argument by its name; the latest message counts first."""
    return next(values_said(texts, want), None)


def values_said(texts: Sequence[str], want: Wanted) -> Iterator[str]:
    """Yield all that may be meant by an argument's name: 'the flight type is one way' names no flight."""
    for text in reversed(texts):
        found = list(_forward(want.phrase, want.shape).finditer(text))
        if not found and want.shape in ("number", "zip", "id", "date"):
            found = list(_backward(want.phrase, want.shape).finditer(text))
        marked = [m for m in found if bool(m["new"]) == want.new]
        for match in marked or (found if not want.new or (want.shape != "id" and want.name.startswith("new")) else []):
            value = match["value"].strip(" ,\"'“”").rstrip(".")
            if value and value.casefold() not in ("is", "my", "the", "it", "of"):
                yield value


@lru_cache(maxsize=8192)
def _forward(phrase: str, shape: str) -> re.Pattern[str]:
    return re.compile(rf"(?P<new>\bnew\s)?(?<![\w_]){phrase}(?![\w_]){_GAP}(?P<value>{SHAPES[shape]})", re.I)


@lru_cache(maxsize=8192)
def _backward(phrase: str, shape: str) -> re.Pattern[str]:
    return re.compile(rf"(?P<value>{SHAPES[shape]}){_BACK}(?P<new>(?<=new )|)(?<![\w_]){phrase}(?![\w_])", re.I)


def option_said(texts: Sequence[str], want: Wanted) -> str | None:
    """Return the one of some fixed options that the customer named or paraphrased."""
    named = value_said(texts, Wanted(want.name, "word", want.phrase, want.new)) or ""
    for text in (named, *reversed(texts)):
        flat = f" {' '.join(name_words(_ELSEWHERE.sub('', text)))} "
        hits = [o for o in want.options if f" {' '.join(name_words(o))} " in flat]
        if hits:
            return max(hits, key=len)
    heard = {w for t in (named, *texts) for w in name_words(t)}
    telling = {o: {w for w in name_words(o) if len(w) > 3} for o in want.options}
    shares = {o: len(heard & telling[o]) / max(1, len(telling[o])) for o in want.options}
    best = max(shares, key=shares.__getitem__, default=None)
    return best if best is not None and shares[best] > 0.5 else None


def tokens_in(text: str, shape: str, like: str = "") -> list[str]:
    """Return a text's values of one shape, in order; what is named as something else is no id."""
    found = re.finditer(like or SHAPES[shape], text)
    return [m.group() for m in found if shape != "id" or not _NAMED.search(text[max(0, m.start() - 120) : m.start()])]


def mend(text: str, slips: Mapping[str, str]) -> str:
    """Put right a word with two letters swapped, one left out or one doubled, as :func:`slips_of` lists them."""
    return re.sub(r"(?<![\w@.-])[a-z]{3,}(?![\w@-]|[.]\w)", lambda m: slips.get(m[0], m[0]), text)


def slips_of(words: Iterable[str], known: Collection[str]) -> dict[str, str]:
    """Return each slip of the key in a longer word that is no known word itself, and the word."""
    found: dict[str, str] = {}
    for word in words:
        for i in range(1, len(word) - 1) if len(word) > 3 and word.isascii() and word.isalpha() else ():
            swapped = word[:i] + word[i + 1] + word[i] + word[i + 2 :]
            for slip in (swapped, word[:i] + word[i + 1 :], word[:i] + word[i] + word[i:]):
                if slip not in known:
                    found.setdefault(slip, word)
    return found
