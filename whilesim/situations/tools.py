"""Tools: tool schemas in any dialect, as one kind of value.

Nothing that is given is executed or imported: functions are read from their signatures and
docstrings, Python source from its syntax tree.
"""

from __future__ import annotations

import ast
import inspect
import os
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import Any

from whilesim.core.errors import InputError
from whilesim.core.text import name_words, shorten, words
from whilesim.situations.callables import draft_object, draft_source, is_python
from whilesim.situations.dialects import Draft, draft_mappings, read_text
from whilesim.situations.docstrings import described_examples
from whilesim.situations.effects import Effect as Effect
from whilesim.situations.effects import infer_effect, own_descriptions, stated_effect, word_pattern
from whilesim.situations.openapi import draft_operations, is_openapi
from whilesim.situations.schemas import arguments_schema, mapping, plain_schema, types_of

_pattern = partial(word_pattern, "ids")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool that the agent may call."""

    name: str
    """Unique among the tools, and legal on the wire: ``[A-Za-z0-9_-]{1,64}``."""
    description: str
    parameters: Mapping[str, Any]
    """A JSON Schema of type object, references inlined; ``properties`` and ``required`` are always there."""
    effect: Effect
    effect_rule: str = ""
    """Which evidence decided the effect, in a few words; ends in ``(unsure)`` where it is a guess."""
    returns: Mapping[str, Any] | None = None
    """JSON Schema of the reply, where the source states one."""
    examples: tuple[tuple[Mapping[str, Any], Any], ...] = ()
    """(arguments, reply) pairs that the source itself shows."""
    id_arguments: tuple[str, ...] = ()
    """Arguments that name a record: ``order_id``, ``flight_number``, ``skus``."""
    original: Any = None
    """What was given, untouched."""
    notes: tuple[str, ...] = ()
    """What was changed on the way in: a name made legal or unique, a reference cut."""

    def to_openai(self) -> dict[str, Any]:
        """Return the tool in OpenAI's wrapped form."""
        function = {"name": self.name, "description": self.description, "parameters": dict(self.parameters)}
        return {"type": "function", "function": function}


def parse_tools(tools: Any, *, effects: Mapping[str, str] | None = None) -> tuple[Tool, ...]:
    """Read tools in any dialect, in the order given.

    Args:
        tools: A list (or one) of mappings in any dialect, Python functions, tool objects or
            classes with a schema, ``Tool`` values; an OpenAPI document; JSON, JSON lines, YAML
            or Python source as text; or the path of such a file.
        effects: Tool name to 'read', 'write', 'handoff' or 'compute', where the user knows better
            than the inference.

    Raises:
        InputError: There is no tool in it, a tool has no name, a schema is no JSON Schema of an
            object, or ``effects`` names a tool that is not there.
    """
    try:
        drafts = [d if isinstance(d, Tool) else _plain(d) for d in _drafts(tools, "tools")]
        own = own_descriptions([draft.description for draft in drafts])
        keys = {n for d in drafts for n, p in mapping(d.parameters.get("properties")).items() if names_record(n, p)}
        found = [d if isinstance(d, Tool) else _tool(d, text, keys) for d, text in zip(drafts, own, strict=True)]
    except RecursionError as error:
        raise InputError("tools: the schemas are nested too deeply to be read. Give them with fewer levels.") from error
    if not found:
        raise InputError(f"tools: no tool in {shorten(repr(tools))}. Give a list of tool schemas or Python functions.")
    return _with_effects(_unique(found), effects or {})


def read_tools(path: str | os.PathLike[str]) -> Any:
    """Read a file of tools, in a form that ``parse_tools`` takes.

    JSON, JSON lines and YAML come back as values, Python source (``.py``) as its text.

    Raises:
        InputError: There is no such file, or it is none of these.
    """
    file = Path(path)
    if not file.is_file():
        raise InputError(f"tools file {str(path)!r} is not there. Type the path of a JSON, JSONL, YAML or Python file.")
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"tools file {str(path)!r} cannot be read ({error}). Save it as text in UTF-8.") from error
    if file.suffix != ".py":
        return read_text(text, where=f"tools file {file.name!r}")
    try:
        ast.parse(text, file.name)
    except (SyntaxError, ValueError) as error:
        raise InputError(f"tools file {file.name!r} is no Python: {error}. Mend it there.") from error
    return text


def _drafts(source: Any, where: str) -> Iterator[Draft | Tool]:
    if isinstance(source, (Draft, Tool)):
        yield source
    elif isinstance(source, os.PathLike):
        yield from _drafts(read_tools(source), where)
    elif isinstance(source, str):
        if "\n" not in source and Path(source).suffix in (".json", ".jsonl", ".yaml", ".yml", ".py"):
            yield from _drafts(Path(source), where)
        else:
            yield from _drafts(draft_source(source) if is_python(source) else read_text(source, where=where), where)
    elif isinstance(source, Mapping):
        yield from _drafts(draft_operations(source) if is_openapi(source) else draft_mappings(source, where), where)
    elif isinstance(source, (Sequence, Iterator)):
        for number, item in enumerate(source):
            yield from _drafts(item, f"{where}[{number}]" if isinstance(source, Sequence) else where)
    else:
        yield from _drafts(draft_object(source, where), where)


def _plain(draft: Draft) -> Draft:
    parameters, notes = arguments_schema(draft.parameters, where=f"tool {draft.name!r}", document=draft.document)
    return replace(draft, parameters=parameters, notes=(*draft.notes, *notes))


def _tool(draft: Draft, own: str, known: Set[str]) -> Tool:
    """Make a tool; an argument that says nothing of itself is a key where another tool's words make it one."""
    returns, notes = _reply(draft, f"tool {draft.name!r}")
    properties = draft.parameters["properties"]
    silent = {n for n, p in properties.items() if _kinds(p) == {"string"} and not p.get("description")}
    keys = tuple(n for n, p in properties.items() if n in known and (n in silent or names_record(n, p)))
    effect, rule = infer_effect(draft, own, keyed=bool(keys))
    return Tool(
        name=draft.name, description=inspect.cleandoc(draft.description), parameters=draft.parameters, returns=returns,
        examples=draft.examples or described_examples(draft.description), effect=effect, effect_rule=rule,
        id_arguments=keys, original=draft.original, notes=tuple(dict.fromkeys((*draft.notes, *notes))),
    )  # fmt: skip


def _reply(draft: Draft, where: str) -> tuple[dict[str, Any] | None, tuple[str, ...]]:
    """Return the schema of the reply where the source states one that can be used, and the notes."""
    found = mapping(draft.returns)
    if not found.keys() & {"type", "properties", "items", "enum", "$ref", "anyOf", "oneOf", "allOf"}:
        return None, ()
    try:
        return plain_schema(found, where=where, document=draft.document)
    except InputError as error:  # a tool can be called whatever its reply looks like
        return None, (f"the schema of its reply was left out: {error}",)


def _kinds(schema: Any) -> set[str]:
    """Return what a value can be, null left out."""
    ways = mapping(schema).get("anyOf")
    found = {str(kind) for kind in types_of(mapping(schema))}
    return found.union(*map(_kinds, ways if isinstance(ways, list) else ())) - {"null", "None"}


def names_record(name: str, schema: Any = None) -> bool:
    """Say whether an argument names a record, by its name or else by its schema."""
    about = mapping(schema)
    text = " ".join(str(about.get("description", "")).split())
    kinds = _kinds(about) | _kinds(about.get("items"))
    counts = bool(kinds & {"integer", "number"})
    told = _pattern("told").match(text)  # 'Number of the contract' is a contract number, and of the items a count
    said = "" if told is None or (counts and told["noun"]) else f"{told['noun'] or ''} {told['own']} {told['kind']}"
    named = "_".join(name_words(name))
    if "boolean" in kinds or _pattern("denied").match(named):
        return False
    keys = [_pattern(kind) for kind in (("key",) if counts else ("key", "numbered"))]
    evident = about.get("format") == "uuid" or _pattern("described").match(text)
    return bool(evident or any(key.fullmatch(phrase) for key in keys for phrase in (named, "_".join(words(said)))))


def _unique(tools: Sequence[Tool]) -> list[Tool]:
    """Make every name legal on the wire and unique; what was changed stands in the notes."""
    found: dict[str, Tool] = {}
    numbers: dict[str, Iterator[int]] = {}  # thousands of tools may have one name
    for number, tool in enumerate(tools, start=1):
        legal = re.sub(r"[^A-Za-z0-9_-]+", "_", tool.name)[:64]
        legal = legal if re.search(r"[A-Za-z0-9]", legal) else f"tool_{number}"
        others = (f"{legal[: 63 - len(str(n))]}_{n}" for n in numbers.setdefault(legal, count(2)))
        name = next(name for name in chain([legal], others) if name not in found)
        why = "was there already" if legal == tool.name else "is not legal on the wire"
        note = f"name {tool.name!r} {why}: {name!r} instead"
        found[name] = tool if name == tool.name else replace(tool, name=name, notes=(*tool.notes, note))
    return list(found.values())


def _with_effects(tools: Sequence[Tool], effects: Mapping[str, str]) -> tuple[Tool, ...]:
    if unknown := [name for name in effects if name not in {tool.name for tool in tools}]:
        raise InputError(f"effects names {unknown[0]!r}, which is no tool. Type one of {[t.name for t in tools]}.")
    stated = {name: stated_effect(effect, f"effects[{name!r}]") for name, effect in effects.items()}
    return tuple(replace(t, effect=stated[t.name], effect_rule="given") if t.name in stated else t for t in tools)
