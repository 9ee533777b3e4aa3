"""Annotations: types as Python and prose write them, as JSON Schema.

``list[str]``, ``Optional[int]``, ``str | None``, ``Literal["a", "b"]``, and the names that other
dialects use for JSON Schema's own types (``dict``, ``float``, ``STRING``). Nothing is imported
or executed: a type is read from its text, and one that nobody knows accepts any value.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

Classes = Mapping[str, ast.ClassDef]
"""Classes that stand in the same source, by name."""

_TYPES = {
    "object": "object dict map mapping mutablemapping struct json",
    "number": "number float double decimal numeric",
    "integer": "integer int long int32 int64 short",
    "string": "string str text char bytes enum",
    "boolean": "boolean bool",
    "array": "array list tuple set frozenset sequence iterable",
    "null": "null none nonetype",
}
_FORMATS = {"date": "date", "datetime": "date-time", "time": "time", "uuid": "uuid", "uri": "uri", "url": "uri"}
_NAMES: dict[str, dict[str, Any]] = {
    **{name: {"type": kind} for kind, names in _TYPES.items() for name in names.split()},
    **{name: {"type": "string", "format": kind} for name, kind in _FORMATS.items()},
    **{name: {} for name in ("any", "mixed", "type_unspecified", "unspecified")},
}


def type_schema(text: str, classes: Classes | None = None) -> dict[str, Any] | None:
    """Return the schema of a type given as text, or None when the text is no type we know."""
    plain = text.strip().removesuffix(", optional").replace("<", "[").replace(">", "]")
    if plain.endswith("[]"):
        items = type_schema(plain[:-2], classes)
        return None if items is None else {"type": "array", "items": items}
    if plain.lower() in _NAMES:
        return dict(_NAMES[plain.lower()])
    try:
        return annotation_schema(ast.parse(plain, mode="eval").body, classes) or None
    except (SyntaxError, ValueError):
        return None


def annotation_schema(node: ast.expr | None, classes: Classes | None = None) -> dict[str, Any]:
    """Return the schema of an annotation; an empty one, which accepts anything, when it is unknown."""
    classes = classes or {}
    match node:
        case ast.Constant(value=None):
            return {"type": "null"}
        case ast.Constant(value=str(text)):
            return type_schema(text, classes) or {}
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return _class_schema(name, classes) if name in classes else dict(_NAMES.get(name.lower(), {}))
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return {"anyOf": [annotation_schema(part, classes) for part in (left, right)]}
        case ast.BoolOp(op=ast.Or(), values=parts):
            return {"anyOf": [annotation_schema(part, classes) for part in parts]}
        case ast.Set(elts=parts):
            return {"enum": constants(parts)}
        case ast.Subscript(value=outer, slice=inner):
            parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            return _generic(last_name(outer).lower(), parts, classes)
    return {}


def last_name(node: ast.expr | None) -> str:
    """Return the last name of a dotted name or of a call's function: ``typing.Optional`` is Optional."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Call(func=inner) | ast.Subscript(value=inner):
            return last_name(inner)
    return ""


def constants(nodes: Sequence[ast.expr]) -> list[Any]:
    """Return the values of those nodes that are constants."""
    return [node.value for node in nodes if isinstance(node, ast.Constant)]


def _generic(outer: str, parts: Sequence[ast.expr], classes: Classes) -> dict[str, Any]:
    first = annotation_schema(parts[0], classes)
    if outer == "literal":
        return {"enum": constants(parts)}
    if outer in ("optional", "union"):
        null = [{"type": "null"}] if outer == "optional" else []
        return {"anyOf": [annotation_schema(part, classes) for part in parts] + null}
    if outer == "annotated":
        fields = [k.value for p in parts[1:] if isinstance(p, ast.Call) for k in p.keywords if k.arg == "description"]
        said = [text for text in constants([*parts[1:], *fields]) if isinstance(text, str)]
        return {**first, "description": said[0]} if said else first
    schema = _NAMES.get(outer)
    if not schema:  # Required[...], Final[...]: the type inside
        return first
    alike = len(parts) == 1 or constants(parts[1:]) == [...]
    return {**schema, "items": first} if schema["type"] == "array" and first and alike else dict(schema)


def _class_schema(name: str, classes: Classes) -> dict[str, Any]:
    """Read an enumeration, or a class of annotated fields, without importing it."""
    found, others = classes[name], {n: c for n, c in classes.items() if n != name}
    if any(last_name(base).endswith("Enum") for base in found.bases):
        return {"enum": constants([node.value for node in found.body if isinstance(node, ast.Assign)])}
    fields = {n.target.id: n for n in found.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)}
    return {
        "type": "object",
        "properties": {name: annotation_schema(field.annotation, others) for name, field in fields.items()},
        "required": [name for name, field in fields.items() if field.value is None],
    }
