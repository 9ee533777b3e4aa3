"""Fitting: a value that a JSON Schema allows, near one that is at hand.

A pattern is written from its plain parts: letters, classes, groups and how often each comes. Of
one that looks around, or refers to itself, nothing is promised.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from fractions import Fraction
from functools import lru_cache
from typing import Any

from whilesim.core.seeds import between, derive, pick
from whilesim.core.templates import load_words
from whilesim.situations.schemas import validator

_TRIES = 60
_AGAIN = (*range(7), _TRIES - 1)  # the tries of a part, where what it stands in is tried again
_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,), "array": (list,), "object": (dict,),
}  # fmt: skip
_PLAIN = frozenset({"type", "description", "title", "default", "enum", "items", "example", "examples", "example_value",
                    "properties", "required"})  # fmt: skip
_CHARS = "ABCDEFGHJKLMNPQRSTUVWXYZ0123456789abcdefghijklmnopqrstuvwxyz -_.,:/#@"
_CLASS, _OFTEN = r"\\.|\[\^?(?:\\.|[^\]\\])+\]", r"(\{\d+,?\d*\}|[*+?]|)\??"
_GROUP = re.compile(rf"(?<!\\)\((?:\?:|\?P?<\w+>)?((?:{_CLASS}|[^()\[\\])*)\){_OFTEN}")
_BRANCH, _ATOM = re.compile(rf"(?:{_CLASS}|[^|\[\\])+"), re.compile(rf"({_CLASS}|.){_OFTEN}")


def quick_test(schema: Any) -> Callable[[Any], bool] | None:
    """Return a quick test of a plain schema; None for one that needs the whole validator.

    A value that fails the quick test is not yet wrong: the validator decides, and words the error.
    """
    if not isinstance(schema, Mapping) or not set(schema) <= _PLAIN or str(schema.get("type")) not in _TYPES:
        return None
    types, options = _TYPES[schema["type"]], schema.get("enum")
    if schema["type"] == "array":
        inner = quick_test(schema.get("items"))
        return (lambda value: type(value) is list and all(map(inner, value))) if inner else None
    if schema["type"] == "object":
        told, needed = schema.get("properties") or {}, set(schema.get("required") or ())
        tests = {n: test for n, inner in told.items() if (test := quick_test(inner))}
        if len(tests) < len(told):
            return None

        def whole(value: Any) -> bool:
            fits = type(value) is dict and needed <= set(value)
            return fits and all(test(value[n]) for n, test in tests.items() if n in value)

        return whole
    return lambda value: type(value) in types and (not options or value in options)


def allows(schema: Any, value: Any) -> bool:
    """Whether a schema allows a value; one with a pattern that cannot be read here allows all."""
    if not isinstance(schema, Mapping) or not schema or ((test := quick_test(schema)) and test(value)):
        return True
    broken = type(value) is float and "integer" in str(schema.get("type"))  # a whole number is written as one
    with suppress(re.error):
        return not broken and bool(validator(schema).is_valid(value))
    return True


def fit(value: Any, schema: Any, seed: int, *names: str | int) -> Any:
    """Return the value where its schema allows it, else one near it; the value itself where none is found.

    The seed and the names decide what is drawn.
    """
    return _Search().fit(value, schema, seed, *names)


class _Search:
    """One search for a value: as long as the value is large, however deep the part that no try will fit."""

    left, again = 0, False

    def fit(self, value: Any, schema: Any, *at: Any) -> Any:
        """Return the value or one near it; a part of what is tried again is itself tried a few times only."""
        if allows(schema, value):
            return value
        again = self.again
        self.left += 0 if again else _TRIES * len(_AGAIN)
        for attempt in _AGAIN if again else range(_TRIES):
            if self.left <= 0:
                break
            self.left, self.again = self.left - 1, again or attempt > 0
            near = self.near(value, schema, attempt, *at)
            self.again = again
            if allows(schema, near):
                return near
        return value

    def near(self, value: Any, schema: Mapping[str, Any], attempt: int, *at: Any) -> Any:
        """Bring a value nearer to a schema: into its type at first, then with what is drawn."""
        kinds, at = schema.get("type"), (*at, attempt) if attempt > 1 else at
        listed = [schema["const"]] if "const" in schema else schema.get("enum")
        if listed := listed or (schema.get("examples") if attempt == _TRIES - 1 else None):
            return next((o for o in listed if str(o) == str(value)), pick(listed, *at))
        if ways := next((schema[w] for w in ("anyOf", "oneOf") if schema.get(w)), None):
            return self.fit(value, pick(ways, *at), *at)
        usual = next((k for k, types in _TYPES.items() if type(value) in types), "string")
        kind = next((k for k in kinds if k != "null"), "null") if isinstance(kinds, list) else kinds or usual
        with suppress(ValueError, TypeError):
            if kind in ("integer", "number") and not attempt:
                return _TYPES[kind][-1](value)
        makers = {**_MAKERS, "array": self.rows, "object": self.parts}
        return makers[kind](value, schema, attempt, *at)

    def rows(self, value: Any, schema: Mapping[str, Any], _attempt: int, *at: Any) -> list[Any]:
        rows = value if isinstance(value, list) else [value] if value not in ("", None) else []
        of, items = schema.get("prefixItems") or (), schema.get("items")
        count = min(max(len(rows), len(of), schema.get("minItems", 0)), schema.get("maxItems", 99))
        rows = [*rows, *(_word(*at, n) for n in range(len(rows), count))][:count]
        return [self.fit(row, of[n] if n < len(of) else items, *at, n) for n, row in enumerate(rows)]

    def parts(self, value: Any, schema: Mapping[str, Any], _attempt: int, *at: Any) -> dict[str, Any]:
        told, rest = schema.get("properties") or {}, schema.get("additionalProperties", True)
        found = {k: v for k, v in value.items() if k in told or rest} if isinstance(value, Mapping) else {}
        found |= {n: _word(*at, n) for n in schema.get("required") or () if n not in found}
        return {n: self.fit(v, told.get(n, rest), *at, n) for n, v in found.items()}


def _number(_value: Any, schema: Mapping[str, Any], _attempt: int, *at: Any) -> Any:
    told = {w.lower(): Fraction(str(v)) for w, v in schema.items() if w == "multipleOf" or w.lower().endswith("imum")}
    whole = "integer" in (schema.get("type") or ())
    step = told.get("multipleof", Fraction(1, 1 if whole else 100))
    lows, highs = ([b for w, b in told.items() if w.endswith(end)] for end in ("minimum", "maximum"))
    high = min(highs or [max(lows or [Fraction(0)]) + 12 * max(step, Fraction(1))])
    low = max(lows or [Fraction(0) if high > 0 else high - 12 * step])
    while not whole and "multipleof" not in told and high - low < 2 * step and step > Fraction(1, 10**9):
        step /= 10
    first, last = math.ceil(low / step), math.floor(high / step)
    found = between(first, max(first, last), *at) * step
    return int(found) if found.denominator == 1 and (whole or step.denominator == 1) else float(found)


def _word(*at: Any) -> Any:
    return pick(load_words("world_values")["words"]["any"], *at)


def _text(value: Any, schema: Mapping[str, Any], attempt: int, *at: Any) -> str:
    """Cut a text, or go on with it, to the length that is asked for; write one of a pattern's form."""
    if "pattern" in schema:
        return _spelled(schema["pattern"], attempt + 2, *at)
    text = {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
    while len(text) < schema.get("minLength", 0):
        more = pick(load_words("world_values")["sentences"], *at, len(text))
        text += f" {more}" if text.replace(" ", "").isalpha() else f"{derive(*at, len(text)) % 1000:03d}"
    return text[: schema.get("maxLength")]


def _spelled(pattern: str, reach: int, *at: Any) -> str:
    """Write a text of a pattern's form; a part that may come any number of times comes at most ``reach`` times more."""
    pattern = re.sub(r"\(\?<?[=!](?:\\.|[^()\\])*\)", "", pattern)  # what it looks around for is tried, not written
    while group := _GROUP.search(pattern):
        times = range(_times(group[2], reach, *at, len(pattern)))
        text = "".join(_spelled(group[1], reach, *at, len(pattern), n) for n in times)
        pattern = pattern[: group.start()] + re.escape(text) + pattern[group.end() :]
    parts = [*enumerate(_ATOM.findall(pick(_BRANCH.findall(pattern) or [""], *at)))]
    chars = ((_fitting(atom), n, m) for n, (atom, often) in parts for m in range(_times(often, reach, *at, n)))
    return "".join(pick(some, *at, *place) for some, *place in chars)


def _times(often: str, reach: int, *at: Any) -> int:
    least, some, most = {"": "1", "?": "0,1", "*": "0,", "+": "1,"}.get(often, often.strip("{}")).partition(",")
    low = min(int(least), 999)
    return between(low, max(low, min(int(most or 999 if some else low), low + reach)), *at)


@lru_cache(maxsize=1024)
def _fitting(atom: str) -> tuple[str, ...]:
    """Return the characters that a part of a pattern stands for; an empty one for a place, such as a start."""
    with suppress(re.error):
        return tuple(c for c in dict.fromkeys(_CHARS + atom[-1]) if re.fullmatch(atom, c)) or ("",)
    return ("",)


_MAKERS: Mapping[str, Callable[..., Any]] = {
    "integer": _number, "number": _number, "string": _text,
    "boolean": lambda _v, _s, _n, *at: derive(*at) % 2 == 0, "null": lambda *_: None,
}  # fmt: skip
