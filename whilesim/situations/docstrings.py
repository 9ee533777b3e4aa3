"""Docstrings: what a docstring says of a function's arguments, its reply, and an example call.

Google, NumPy and Sphinx styles. The description is what is left when these are taken out.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from whilesim.core.jsontext import loads

_ARGUMENTS = ("args", "arguments", "parameters", "params", "keyword args", "keyword arguments", "other parameters")
_REPLIES = ("returns", "return", "example", "examples", "example response", "sample response")
_TITLES = "|".join((*_ARGUMENTS, *_REPLIES, "yields", "raises", "notes?", "warnings?", "usage", "see also"))
_SECTION = re.compile(
    rf"^({_TITLES})[ \t]*(?:\n(?P<line>[-=]{{3,}})[ \t]*$|:(?=[ \t]*(\S?)))", re.IGNORECASE | re.MULTILINE
)
_SPHINX = re.compile(
    r"^[:@](param|arg|type|return|raise|rtype)\w*\s*([^:\n]*):[ \t]*(.*(?:\n[ \t]+.*)*)\n?", re.MULTILINE
)
_GOOGLE = re.compile(r"^[-* ]*`?(\w+)`?\s*(?:\(((?:[^()]|\([^()]*\))*)\))?\s*:\s*(.*)$")
_NUMPY = re.compile(r"^\*{0,2}(\w+)(?:\s*,\s*\w+)*\s*(?::\s*(.*))?()$")
_SHOWN = re.compile(
    r"\b(?:examples?|returns?|sample|response|reply|output)\b[^:{\[]{0,40}:?\s*(?=[{\[])", re.IGNORECASE
)

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
    found, shown = Docstring(), ""
    text = _SPHINX.sub(lambda match: _add_field(match, found), inspect.cleandoc(text or ""))
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
    found.examples = tuple(_calls(shown.splitlines(), names)) or described_examples(shown)
    return found


def described_examples(description: str) -> tuple[Example, ...]:
    """Return the reply that a text shows after 'Example:' or 'Returns:', as an example without arguments."""
    for match in _SHOWN.finditer(description):
        reply = _literal(description[match.end() :])
        if isinstance(reply, (dict, list)) and reply:
            return (({}, reply),)
    return ()


def _add_field(match: re.Match[str], found: Docstring) -> str:
    """Take over one Sphinx field; nothing of it stays in the description."""
    *kind, name = match[2].split() or [""]
    if match[1] == "type":
        found.types[name] = match[3].strip()
    elif match[1] in ("param", "arg"):
        found.arguments[name] = " ".join(match[3].split())
        found.types.setdefault(name, " ".join(kind))
    return ""


def _add_arguments(body: str, found: Docstring, entry: re.Pattern[str]) -> None:
    name = ""
    for line in inspect.cleandoc("\n" + body).splitlines():
        match = None if line.startswith(" ") else entry.match(line)
        if match:
            name, found.types[match[1]], found.arguments[match[1]] = match[1], (match[2] or "").strip(), match[3]
        elif name:
            found.arguments[name] = f"{found.arguments[name]} {line.strip()}".strip()


def _calls(lines: Sequence[str], names: Sequence[str]) -> Iterator[Example]:
    """Read '>>> call(...)' lines, which may run over several, with the reply below each."""
    for number, line in enumerate(lines):
        if not line.strip().startswith(">>>"):
            continue
        source, below = line.strip()[3:].strip(), list(lines[number + 1 :])
        while (call := _call(source)) is None and below and below[0].strip():
            source += "\n" + below.pop(0).strip().removeprefix("...")
        reply = _literal("\n".join(below).split(">>>")[0])
        if call is not None and reply is not None:
            given = [*zip(names, call.args, strict=False), *((k.arg, k.value) for k in call.keywords)]
            yield {name: _value(node) for name, node in given if name}, reply


def _call(source: str) -> ast.Call | None:
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError):
        return None
    value = body[-1].value if body and isinstance(body[-1], (ast.Expr, ast.Assign)) else None
    return value if isinstance(value, ast.Call) else None


def _value(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None


def _literal(text: str) -> Any:
    """Read the JSON or Python literal at the start of a text, whatever follows it."""
    text = text.strip()
    quoted = text.startswith(("'", '"'))
    ends = [len(text.split("\n")[0])] if quoted else [m.end() for m in re.finditer(r"[}\]]", text[:4000])]
    for end in ends if quoted or text.startswith(("{", "[")) else ():
        for read in (loads, ast.literal_eval):
            try:
                found = read(text[:end].strip())
            except (ValueError, SyntaxError, MemoryError, RecursionError):
                continue
            return _literal(found) if isinstance(found, str) and found.startswith(("{", "[")) else found
    return None
