"""Schemas: argument schemas of any dialect as plain JSON Schema (draft 2020-12).

References are inlined, type names are JSON Schema's own, and what may be null says so in its
list of types. A reference that comes back to itself, or leads nowhere, is cut, and the cut is
noted. Whatever is then still no JSON Schema is an error, never a guess.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

from whilesim.core.errors import InputError
from whilesim.core.jsontext import dumps, loads
from whilesim.core.text import shorten
from whilesim.situations.annotations import type_schema

Schema = dict[str, Any]

_MAPS = frozenset({"properties", "patternProperties"})
_UNIONS = frozenset({"allOf", "anyOf", "oneOf"})
_INNER = _UNIONS | {"prefixItems", "items", "additionalProperties", "not", "if", "then", "else", "contains"}
_DEFINITIONS = frozenset({"$ref", "$defs", "definitions"})
_DROPPED = _DEFINITIONS | {"$schema", "$id", "nullable", "optional", "example", "example_value"}
_TOP = _MAPS | _UNIONS | _DEFINITIONS
_INLINED = 5_000  # nodes of one tool: references that double at every level must not fill the memory
_LEVELS = 60  # of a schema that is checked node by node; the whole check knows what is nested too deeply


def arguments_schema(source: Any, *, where: str, document: Any = None) -> tuple[Schema, tuple[str, ...]]:
    """Return a tool's arguments as one JSON Schema of type object, and what was changed.

    Args:
        source: A schema, a mapping from argument to schema, a list of named arguments, or None
            for a tool without arguments.
        where: Names the tool in an error: ``tool 'find_order'``.
        document: What references such as ``#/components/schemas/Order`` point into, where that
            is not the schema itself.

    Raises:
        InputError: What was given is no JSON Schema, or not one of an object.
    """
    source = {} if source is None else source
    if isinstance(source, list):
        source = _from_map({_name(item, where): {k: v for k, v in item.items() if k != "name"} for item in source})
    if not isinstance(source, Mapping):
        raise InputError(f"{where}: the schema of its arguments is {shorten(repr(source))}. Give one of type object.")
    if not _TOP & source.keys() and all(isinstance(v, Mapping) for v in source.values()):
        source = _from_map(source)
    schema, notes = plain_schema(source, where=where, document=document)
    if "object" not in types_of(schema) and ("type" in schema or "enum" in schema):
        raise InputError(
            f"{where}: its arguments have the type {schema.get('type')!r}, but a tool is called with named "
            "arguments. Give a JSON Schema of type 'object' with 'properties'."
        )
    required, properties = schema.get("required", []), _of_forms(schema)
    unknown = [name for name in required if name not in properties]
    notes += tuple(f"argument {name!r} is required but not described: any value is accepted" for name in unknown)
    fixed = {"type": "object", "properties": {**properties, **{n: {} for n in unknown}}, "required": required}
    return {**fixed, **{k: v for k, v in schema.items() if k not in fixed}}, notes


def first_form(schema: Schema) -> Schema:
    """Return the arguments of a call in the first of the forms that a tool takes: 'book', and not 'cancel'."""
    if not (ways := _forms(schema)):
        return schema
    first, others = ways[0]["properties"], {name for way in ways[1:] for name in way["properties"]}
    told = {n: first.get(n, p) for n, p in schema["properties"].items() if n in first or n not in others}
    needed = (*schema["required"], *ways[0].get("required", ()))
    return {**schema, "properties": told, "required": [n for n in told if n in needed]}


def _forms(schema: Mapping[str, Any]) -> list[Any]:
    return [way for key in ("oneOf", "anyOf") for way in listed(schema.get(key)) if mapping(way).get("properties")]


def _of_forms(schema: Schema) -> Schema:
    """Return the arguments of all forms; one that has other values in each may have any of them."""
    own, told = schema.get("properties", {}), [each for way in _forms(schema) for each in way["properties"].items()]
    parts = {name: [p for i, (n, p) in enumerate(told) if n == name and (n, p) not in told[:i]] for name, _ in told}
    return {**own, **{n: _simplify_union({"anyOf": p}, "anyOf") for n, p in parts.items() if n not in own}}


def plain_schema(source: Mapping[str, Any], *, where: str, document: Any = None) -> tuple[Schema, tuple[str, ...]]:
    """Return any schema, an argument's or a reply's, in the plain form, and what was changed.

    Raises:
        InputError: The result is no JSON Schema; names the place in it.
    """
    reader = _Reader([source] if document is None else [source, document])
    schema = reader.read(source, ())
    sound = _sound_levels(schema, {}) < _LEVELS
    faults = [
        (".".join(str(step) for step in error.path) or "the top", error.message, error.instance)
        for error in (() if sound else validator(validator({}).META_SCHEMA).iter_errors(schema))
    ]
    if faults:  # they come in the order of a set: the same one is told whatever the run
        place, message, instance = min(faults, key=lambda fault: fault[:2])
        why = f"{instance!r} is no type" if place.endswith("type") else shorten(message, 160)
        raise InputError(
            f"{where}: its schema is no JSON Schema: at {place}, {why}. Types are 'string', 'number', 'integer', "
            "'boolean', 'array', 'object' and 'null', and each argument is a mapping like {'type': 'string'}."
        )
    return schema, tuple(dict.fromkeys(reader.notes))


def validator(schema: Mapping[str, Any]) -> Any:
    """Return the validator of a JSON Schema; its own ``META_SCHEMA`` is that of schemas."""
    from jsonschema import Draft202012Validator

    return Draft202012Validator(dict(schema))


def _sound_levels(node: Schema, seen: dict[int, int]) -> int:
    """Return how deep a JSON Schema is nested, each node checked once; ``_LEVELS`` where only the whole check can say."""
    if id(node) not in seen:
        inner: list[Schema] = []
        flat = {**node, "description": ""} if isinstance(node.get("description"), str) else dict(node)
        for key in node.keys() & (_MAPS | _INNER):
            many = isinstance(node[key], list)
            parts = node[key] if many else [*mapping(node[key]).values()] if key in _MAPS else [node[key]]
            if (many or isinstance(node[key], dict)) and all(isinstance(part, dict) for part in parts):
                inner += parts
                flat[key] = [{}][: len(parts)] if many else {}
        seen[id(node)] = _LEVELS
        with suppress(TypeError, RecursionError):
            if _is_sound(dumps(flat)):
                seen[id(node)] = 1 + max((_sound_levels(part, seen) for part in inner), default=0)
    return seen[id(node)]


@lru_cache(maxsize=4096)
def _is_sound(node: str) -> bool:
    return bool(validator(validator({}).META_SCHEMA).is_valid(loads(node)))


class _Reader:
    """Reads one schema: where its references point, and what was noted on the way."""

    def __init__(self, roots: Sequence[Any]) -> None:
        self.roots = roots
        self.notes: list[str] = []
        self.left = _INLINED
        self.known: dict[tuple[int, tuple[str, ...]], tuple[Schema, int]] = {}
        """Node and the references that it stands in: its plain form, and how many nodes it was read from."""

    def read(self, node: Any, inside: tuple[str, ...]) -> Any:
        """Return the plain form of a node, one object for all its places; ``inside`` are the references being followed."""
        left = self.left
        out, size = self.known.get((id(node), inside), (node, 1))
        self.left = left - size
        if isinstance(node, Mapping) and (out is node or self.left < 0):
            self.left = left - 1
            out = self.plain(node, inside)
            self.known[id(node), inside] = (out, left - self.left)
        return out

    def plain(self, node: Mapping[str, Any], inside: tuple[str, ...]) -> Any:
        out = self.follow(node["$ref"], inside) if isinstance(node.get("$ref"), str) else {}
        for key, value in node.items():
            if key in _DROPPED or (value is None and key not in ("default", "const")):
                continue
            if key in _MAPS and isinstance(value, Mapping):
                kept = (k for k, v in value.items() if v is not None and (key == "properties" or self.readable(k)))
                out[key] = {k: self.read(value[k], inside) for k in kept}
            elif key in _INNER and isinstance(value, list):
                out["prefixItems" if key == "items" else key] = [self.read(v, inside) for v in value]
            else:
                out[key] = self.read(value, inside) if key in _INNER else value
        return self.tidy(node, out)

    def follow(self, reference: str, inside: tuple[str, ...]) -> Schema:
        target = next((t for root in self.roots if (t := point(root, reference)) is not None), None)
        if target is None:
            told = f"reference {reference!r} leads nowhere" if "/" in reference else f"type {reference!r} is not read"
            self.notes.append(f"{told}: any value is accepted there")
            return {}
        if reference in inside or self.left < 0:
            self.notes.append(f"{reference.rsplit('/', 1)[-1]!r} contains itself: cut at its second level")
            return type_schema(str(target.get("type", ""))) or {}
        return dict(self.read(target, (*inside, reference)))

    def tidy(self, node: Mapping[str, Any], out: Schema) -> Schema:
        """Bring types, required, unions and examples of one node into the plain form."""
        kind = out.get("type")
        if isinstance(kind, str) and (known := type_schema(kind)) is not None:
            out = {**known, **{k: v for k, v in out.items() if k != "type"}}
        elif isinstance(out.get("enum"), list) and all(isinstance(v, str) for v in out["enum"]):
            out = {"type": "string", **out}
        if "pattern" in out and not self.readable(out["pattern"]):
            del out["pattern"]
        self.require(node, out)
        shown = [node[key] for key in ("example", "example_value") if node.get(key) is not None]
        if shown and "examples" not in out:
            out["examples"] = shown
        out = _simplify_union(_simplify_union(_merge_all(out), "anyOf"), "oneOf")
        if node.get("nullable") is True:
            out = _or_null(out)
        if out.get("default", 0) is None and not any(k in ("null", None) for k in types_of(out)):
            del out["default"]  # padding, as columnar files write it
        return out

    def readable(self, pattern: Any) -> bool:
        """Say whether Python reads a pattern without a word; what is no text is refused later."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                re.compile(pattern if isinstance(pattern, str) else "")
        except (re.error, OverflowError, RecursionError, Warning) as error:
            self.notes.append(f"pattern {shorten(pattern)!r} cannot be read here ({error}): any text is accepted there")
            return False
        return True

    def require(self, node: Mapping[str, Any], out: Schema) -> None:
        """Make ``required`` one list, from a list or from marks on the properties."""
        marks = {name: _mark(prop) for name, prop in mapping(node.get("properties")).items()}
        names = out.get("required")
        if names is None or isinstance(names, bool):  # a boolean belongs to the schema around this one
            out.pop("required", None)
            if True in marks.values():
                out["required"] = [name for name, mark in marks.items() if mark]
        elif names == _required(out):  # else it is no JSON Schema, and the check says so
            out["required"] = list(dict.fromkeys(names))
            optional = [*listed(node.get("optional")), *(name for name, mark in marks.items() if mark is False)]
            both = [name for name in out["required"] if name in optional]
            self.notes += [f"argument {n!r} is called both required and optional: taken as required" for n in both]


def _name(item: Any, where: str) -> str:
    if isinstance(item, Mapping) and isinstance(item.get("name"), str):
        return str(item["name"])
    raise InputError(f"{where}: {shorten(repr(item))} stands in its list of arguments without a 'name'. Name it.")


def _from_map(properties: Mapping[str, Mapping[str, Any]]) -> Schema:
    """Make an object of named arguments; where none is marked required, those without a default are."""
    schema: Schema = {"type": "object", "properties": dict(properties)}
    if not any(map(_mark, properties.values())):
        plain = {n: p for n, p in properties.items() if "default" not in p and not p.get("nullable")}
        schema["required"] = [name for name, prop in plain.items() if _mark(prop) is None]
    return schema


def _mark(prop: Any) -> bool | None:
    """Say whether a property calls itself required, or optional, or neither."""
    mark = mapping(prop).get("required")
    if isinstance(mark, bool):
        return mark
    return False if str(mapping(prop).get("type", "")).endswith(", optional") else None


def point(root: Any, reference: str) -> Mapping[str, Any] | None:
    """Return what a reference such as ``#/$defs/Order`` points to in ``root``, or None.

    A bare name is looked up among the definitions.
    """
    for step in reference.split("/")[1:] if reference.startswith("#") else ["$defs", reference]:
        root = mapping(root).get(unquote(step).replace("~1", "/").replace("~0", "~"))
    return root if isinstance(root, Mapping) else None


def types_of(schema: Mapping[str, Any]) -> list[Any]:
    """Return what ``type`` says, as a list; ``[None]`` where it says nothing."""
    kind = schema.get("type")
    return kind if isinstance(kind, list) else [kind]


def _or_null(schema: Schema) -> Schema:
    out = dict(schema)
    if "type" in out:
        out["type"] = [k for k in types_of(out) if k != "null"] + ["null"]
    if isinstance(out.get("enum"), list) and None not in out["enum"]:
        out["enum"] = [*out["enum"], None]
    return out


def _simplify_union(schema: Schema, key: str) -> Schema:
    """Reduce a union to what it says: X or null, one of some constants, a model or any object."""
    options = _objects(schema.get(key))
    rest = [o for o in options if o.get("type") != "null"]
    if len(rest) > 1 and all("const" in o or "enum" in o for o in rest):
        values = [v for o in rest for v in (o["enum"] if "enum" in o else [o["const"]])]
        rest = [{**({"type": "string"} if all(isinstance(v, str) for v in values) else {}), "enum": values}]
    if any(o.get("properties") for o in rest):
        rest = [o for o in rest if o.get("type") != "object" or o.get("properties")]
    if len(rest) != 1:
        return schema
    merged = {**rest[0], **{k: v for k, v in schema.items() if k != key}}
    return _or_null(merged) if {"type": "null"} in options else merged


def _merge_all(schema: Schema) -> Schema:
    """Merge ``allOf`` into the schema it stands in, unless its parts have different types."""
    if not (parts := _objects(schema.get("allOf"))):
        return schema
    parts.append({k: v for k, v in schema.items() if k != "allOf"})
    if len({str(part["type"]) for part in parts if "type" in part}) > 1:
        return schema
    merged = {key: value for part in parts for key, value in part.items()}
    if "properties" in merged:
        merged["properties"] = {k: v for part in parts for k, v in mapping(part.get("properties")).items()}
    if "required" in merged:
        merged["required"] = list(dict.fromkeys(n for part in parts for n in _required(part)))
    return merged


def _required(schema: Mapping[str, Any]) -> list[str]:
    return [name for name in listed(schema.get("required")) if isinstance(name, str)]


def _objects(options: Any) -> list[Any]:
    """Return the options of a union, or none where one of them is no mapping."""
    found = listed(options)
    return list(found) if all(isinstance(o, Mapping) for o in found) else []


def mapping(value: Any) -> Mapping[str, Any]:
    """Return a mapping as it is, and anything else as an empty one."""
    return value if isinstance(value, Mapping) else {}


def listed(value: Any) -> list[Any]:
    """Return a list as it is, and anything else as an empty one."""
    return value if isinstance(value, list) else []
