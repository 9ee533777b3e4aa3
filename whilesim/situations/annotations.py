"""Annotations: types as Python and prose write them, as JSON Schema.

``list[str]``, ``Optional[int]``, ``str | None``, ``Literal["a", "b"]``, and the names that other
dialects use for JSON Schema's own types (``dict``, ``float``, ``STRING``). Nothing is imported
or executed: a type is read from its text, and one that nobody knows accepts any value.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import Any

_TYPES = {
    "object": "object dict map mapping struct json",
    "number": "number float double decimal",
    "integer": "integer int long int32 int64",
    "string": "string str text char bytes enum",
    "boolean": "boolean bool",
    "array": "array list tuple set sequence iterable",
    "null": "null none nonetype",
}
_NAMES: dict[str, dict[str, Any]] = {
    **{name: {"type": kind} for kind, names in _TYPES.items() for name in names.split()},
    **{name: {"type": "string", "format": name} for name in ("date", "time", "uuid", "uri")},
    "datetime": {"type": "string", "format": "date-time"},
    **{name: {} for name in ("any", "type_unspecified")},
}


def type_schema(text: str) -> dict[str, Any] | None:
    """Return the schema of a type given as text, or None when the text is no type we know."""
    plain = re.sub(r"^(.+)\[\]$", r"list[\1]", text.strip().removesuffix(", optional"))
    if plain.lower() in _NAMES:
        return dict(_NAMES[plain.lower()])
    return annotation_schema(parse_expression(plain)) or None


def parse_expression(text: str) -> ast.expr | None:
    """Return the Python expression that a text is, or None."""
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return None


def annotation_schema(node: ast.expr | None) -> dict[str, Any]:
    """Return the schema of an annotation; an empty one, which accepts anything, when it is unknown."""
    match node:
        case ast.Constant(value=None):
            return {"type": "null"}
        case ast.Constant(value=str(text)):
            return type_schema(text) or {}
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return dict(_NAMES.get(name.lower(), {}))
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return {"anyOf": [annotation_schema(left), annotation_schema(right)]}
        case ast.BoolOp(op=ast.Or(), values=parts):
            return {"anyOf": [annotation_schema(part) for part in parts]}
        case ast.Set(elts=parts):
            return {"enum": constants(parts)}
        case ast.Subscript(value=outer, slice=inner):
            return _generic(last_name(outer).lower(), inner.elts if isinstance(inner, ast.Tuple) else [inner])
    return {}


def last_name(node: ast.expr) -> str:
    """Return the last name of a dotted name: ``typing.Optional`` is Optional."""
    return ast.unparse(node).rsplit(".", 1)[-1]


def constants(nodes: Sequence[ast.expr]) -> list[Any]:
    """Return the values of those nodes that are constants."""
    return [node.value for node in nodes if isinstance(node, ast.Constant)]


def _generic(outer: str, parts: Sequence[ast.expr]) -> dict[str, Any]:
    if outer == "literal":
        return {"enum": constants(parts)}
    if outer in ("optional", "union"):
        null = [{"type": "null"}] if outer == "optional" else []
        return {"anyOf": [annotation_schema(part) for part in parts] + null}
    first, schema = annotation_schema(parts[0]), _NAMES.get(outer)
    if outer == "annotated":
        fields = [k.value for p in parts[1:] if isinstance(p, ast.Call) for k in p.keywords if k.arg == "description"]
        said = [text for text in constants([*parts[1:], *fields]) if isinstance(text, str)]
        return {**first, "description": said[0]} if said else first
    if not schema:  # Required[...], Final[...]: the type inside
        return first
    alike = len(parts) == 1 or constants(parts[1:]) == [...]
    return {**schema, "items": first} if schema["type"] == "array" and first and alike else dict(schema)
