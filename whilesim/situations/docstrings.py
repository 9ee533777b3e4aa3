"""Docstrings: what a docstring says of a function's arguments, its reply, and an example call.

Google, NumPy and Sphinx styles. The description is what is left when these are taken out.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from whilesim.core.jsontext import loads
from whilesim.situations.annotations import parse_expression

_ARGUMENTS = ("args", "arguments", "parameters", "params", "keyword args", "keyword arguments", "other parameters")
_REPLIES = ("returns", "return", "example", "examples", "example response", "sample response")
_TITLES = "|".join((*_ARGUMENTS, *_REPLIES, "yields", "raises", "notes?", "warnings?", "usage", "see also"))
_SECTION = re.compile(rf"(?im)^({_TITLES})[ \t]*(?:\n(?P<line>[-=]{{3,}})[ \t]*$|:(?=[ \t]*(\S?)))")
_GOOGLE = re.compile(r"^[-* ]*`?(\w+)`?\s*(?:\(((?:[^()]|\([^()]*\))*)\))?\s*:\s*(.*)$")
_NUMPY = re.compile(r"^\*{0,2}(\w+)(?:\s*,\s*\w+)*\s*(?::\s*(.*))?()$")
_SPHINX = re.compile(
    r"^:(param|parameter|arg|argument|key|keyword|type|returns?|rtype|raises?)(?:[ \t]+([^:\n]*))?:(.*(?:\n(?:[ \t]+\S.*|[ \t]*$))*)",
    re.MULTILINE,
)
_SHOWN = re.compile(r"(?i)\b(?:examples?|returns?|sample|response|reply|output)\b[^:{\[]{0,40}:?\s*(?=[{\[])")

Example = tuple[Mapping[str, Any], Any]


@dataclass(slots=True)
class Docstring:
    """A docstring, taken apart."""

    description: str = ""
    arguments: dict[str, str] = field(default_factory=dict)
    """Argument to what is said of it, on one line."""
    types: dict[str, str] = field(default_factory=dict)
    """Argument to its type, as the docstring writes it."""
    examples: tuple[Example, ...] = ()


def read_docstring(text: str | None, names: Sequence[str] = ()) -> Docstring:
    """Take a docstring apart; ``names`` are the function's arguments in order, for positional examples."""
    found, shown, text = Docstring(), "", inspect.cleandoc(text or "")
    text = _SPHINX.sub(lambda field: _add_field(field, found), text)
    matches = list(_SECTION.finditer(text))
    parts = [text[: matches[0].start()] if matches else text]
    for match, after in zip_longest(matches, matches[1:]):
        title, body = match[1].lower(), text[match.end() : after.start() if after else len(text)]
        if title in _ARGUMENTS:
            _add_arguments(body, found, _NUMPY if match["line"] else _GOOGLE)
        elif title in _REPLIES:
            shown += f"{match[0]}{body}\n"
        elif title not in ("raises", "yields"):
            parts.append(match[0] + body)
    found.description = "\n".join(part.strip() for part in parts if part.strip())
    found.examples = tuple(_calls(shown, names)) or described_examples(shown)
    return found


def described_examples(description: str) -> tuple[Example, ...]:
    """Return the reply that a text shows after 'Example:' or 'Returns:', as an example without arguments."""
    for match in _SHOWN.finditer(description):
        reply = _literal(description[match.end() :])
        if isinstance(reply, (dict, list)) and reply:
            return (({}, reply),)
    return ()


def _add_field(field: re.Match[str], found: Docstring) -> str:
    """Take in Sphinx's ``:param str name: ...`` or ``:type name: ...``; return what stays in the text."""
    kind, (*types, name), said = field[1], (field[2] or "").split() or [""], " ".join(field[3].split())
    if kind == "type":
        found.types[name] = said
    elif kind in ("return", "returns"):
        return f"\nReturns: {said}\n"
    elif kind not in ("rtype", "raise", "raises"):
        found.arguments[name] = said
        found.types[name] = " ".join(types) or found.types.get(name, "")
    return ""


def _add_arguments(body: str, found: Docstring, entry: re.Pattern[str]) -> None:
    name = ""
    for line in inspect.cleandoc("\n" + body).splitlines():
        match = None if line.startswith(" ") else entry.match(line)
        if match:
            name, found.types[match[1]], found.arguments[match[1]] = match[1], (match[2] or "").strip(), match[3]
        elif name:
            found.arguments[name] = f"{found.arguments[name]} {line.strip()}".strip()


def _calls(shown: str, names: Sequence[str]) -> list[Example]:
    """Read '>>> call(...)', which may run over several lines, with the reply below each."""
    found: list[Example] = []
    for piece in shown.split(">>>")[1:]:
        lines = [line.strip().removeprefix("...") for line in piece.splitlines()]
        tries = ((parse_expression("\n".join(lines[:end])), end) for end in range(1, len(lines)))
        call, end = next((one for one in tries if isinstance(one[0], ast.Call)), (None, 0))
        reply = _literal("\n".join(lines[end:]))
        if isinstance(call, ast.Call) and reply is not None:
            given = [*zip(names, call.args, strict=False), *((k.arg, k.value) for k in call.keywords)]
            with suppress(ValueError):  # an argument that is no literal: nobody knows its value
                found.append(({name: ast.literal_eval(node) for name, node in given if name}, reply))
    return found


def _literal(text: str) -> Any:
    """Read the JSON or Python literal at the start of a text, whatever follows it."""
    text = text.strip()
    ends = {"'": r"$", '"': r"$", "{": r"\}", "[": r"\]"}.get(text[:1], r"(?!)")
    for end in re.finditer(ends, text[:4000], re.MULTILINE):
        for read in (loads, ast.literal_eval):
            with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
                found = read(text[: end.end()])
                return _literal(found) if isinstance(found, str) and found[:1] in ("{", "[") else found
    return None
