"""Annotations: types as Python and prose write them, as JSON Schema.

``list[str]``, ``Optional[int]``, ``str | None``, ``Literal["a", "b"]``, and the names that other
dialects use for JSON Schema's own types (``dict``, ``float``, ``STRING``); and what a source file
defines: aliases, Enum, dataclass, TypedDict, BaseModel. Nothing is imported or executed: a type
is read from its text. A name that is no type of Python's is a reference, for others to follow.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Container, Mapping, Sequence
from typing import Any

from whilesim.core.templates import load_words

_NAMES: dict[str, dict[str, Any]] = {
    **{name: {"type": kind} for kind, names in load_words("ids")["types"].items() for name in names.split()},
    **{name: {"type": "string", "format": name} for name in ("date", "time", "uuid", "uri")},
    "datetime": {"type": "string", "format": "date-time"},
    **{name: {} for name in ("any", "type_unspecified")},
}
_LIMITS = {
    "pattern": "pattern", "regex": "pattern", "description": "description", "multiple_of": "multipleOf",
    "min_length": "minLength", "max_length": "maxLength", "ge": "minimum", "le": "maximum",
    "gt": "exclusiveMinimum", "lt": "exclusiveMaximum",
}  # fmt: skip
"""Keywords of ``Field`` and ``StringConstraints``, and what JSON Schema calls them."""


def type_schema(text: str) -> dict[str, Any] | None:
    """Return the schema of a type given as text, or None when the text is no type we know."""
    plain = re.sub(r"^(.+)\[\]$", r"list[\1]", text.strip().removesuffix(", optional"))
    if plain.lower() in _NAMES:
        return dict(_NAMES[plain.lower()])
    return known(annotation_schema(parse_expression(plain))) or None


def parse_expression(text: str) -> ast.expr | None:
    """Return the Python expression that a text is, or None."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a text in it may hold what Python doubts
            return ast.parse(text.strip(), mode="eval").body if len(text) < 2000 else None
    except (SyntaxError, ValueError):
        return None


def annotation_schema(node: ast.expr | None) -> dict[str, Any]:
    """Return the schema of an annotation: a name that we do not know is a reference, any other form accepts anything."""
    match node:
        case ast.Constant(value=None):
            return {"type": "null"}
        case ast.Constant(value=str(text)):
            return annotation_schema(parse_expression(text))
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return dict(_NAMES.get(name.lower(), {"$ref": name}))
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return {"anyOf": [annotation_schema(left), annotation_schema(right)]}
        case ast.BoolOp(op=ast.Or(), values=parts):
            return {"anyOf": [annotation_schema(part) for part in parts]}
        case ast.Set(elts=parts):
            return {"enum": constants(parts)}
        case ast.Call(func=ast.Name(id="NewType"), args=[_, of]):
            return annotation_schema(of)
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
    if not parts:
        return dict(_NAMES.get(outer) or {})
    if outer == "literal":
        return {"enum": constants(parts)}
    if outer in ("optional", "union"):
        null = [{"type": "null"}] if outer == "optional" else []
        return {"anyOf": [annotation_schema(part) for part in parts] + null}
    first, schema = annotation_schema(parts[0]), _NAMES.get(outer)
    if outer == "annotated":
        limits = {k: v for p in parts[1:] if isinstance(p, ast.Call) for k, v in _limits(p, first).items()}
        said = [text for text in constants(parts[1:]) if isinstance(text, str)]
        return {**first, **limits, **({"description": said[0]} if said else {})}
    if not schema:  # Required[...], Final[...]: the type inside
        return first
    alike = len(parts) == 1 or constants(parts[1:]) == [...]
    return {**schema, "items": first} if schema["type"] == "array" and first and alike else dict(schema)


def known(schema: dict[str, Any], names: Container[str] = ()) -> dict[str, Any]:
    """Return the schema without references to other names than these; those into the schema itself stay."""
    inner = {k: known(v, names) for k, v in schema.items() if isinstance(v, dict)}
    unions = {k: [known(part, names) for part in v] for k, v in schema.items() if k == "anyOf"}
    lost = {k for k, v in schema.items() if k == "$ref" and isinstance(v, str) and v[:1] != "#" and v not in names}
    kept = {k: v for k, v in {**schema, **inner, **unions}.items() if k not in lost}
    return {k: v for k, v in kept.items() if k != "items" or v or not isinstance(schema.get("type"), str)}


def field_schema(annotation: ast.expr | None, default: ast.expr | None) -> tuple[dict[str, Any], ast.expr | None]:
    """Return the schema and the default of an argument or a field, where ``= Field(...)`` may say both."""
    schema = annotation_schema(annotation)
    if isinstance(default, ast.Call) and last_name(default.func).lower() == "field":
        named = {k.arg: k.value for k in default.keywords}
        schema = {**schema, **_limits(default, schema)}
        default = default.args[0] if default.args else named.get("default", named.get("default_factory"))
    return schema, None if isinstance(default, ast.Constant) and default.value is ... else default


def _limits(call: ast.Call, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a call such as ``Field(ge=1)`` says of a value; what is no literal is a reference, which is noted."""
    said = {}
    for keyword in call.keywords:
        name = _LIMITS.get(str(keyword.arg), "")
        try:
            said[name] = ast.literal_eval(keyword.value)
        except (ValueError, TypeError):
            said.update({"$ref": ast.unparse(keyword.value)} if name and "$ref" not in schema else {})
    many = schema.get("type") == "array"
    return {k.replace("Length", "Items") if many else k: v for k, v in said.items() if k}


def _fill_in(tree: ast.Module) -> None:
    """Put the constants of a file where its calls name them: ``Field(pattern=ORDER_ID)``."""
    stated = [node for node in tree.body if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)]
    values = {ast.unparse(node.targets[0]): node.value for node in stated}
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        for word in call.keywords if last_name(call.func) in ("Field", "StringConstraints") else ():
            if isinstance(word.value, ast.Name):
                word.value = values.get(word.value.id, word.value)


def definitions(tree: ast.Module) -> dict[str, dict[str, Any]]:
    """Return the schemas of the types that a file defines, by name; those that cannot be read are left out."""
    _fill_in(tree)
    found: dict[str, dict[str, Any]] = {}
    for node in tree.body:
        match node:
            case ast.ClassDef(name=name):
                found[name] = _class_schema(node, found)
            case ast.Assign(targets=[ast.Name(id=name)], value=of) | ast.AnnAssign(target=ast.Name(id=name), value=of):
                found[name] = annotation_schema(of)
    return {name: schema for name, schema in found.items() if schema}


def _class_schema(node: ast.ClassDef, above: Mapping[str, Any]) -> dict[str, Any]:
    bases = [last_name(base) for base in node.bases]
    if any(base.endswith("Enum") for base in bases):
        values = [part.value for part in node.body if isinstance(part, ast.Assign)]
        return {"enum": constants(values)} if values and len(constants(values)) == len(values) else {}
    parts = [part for part in node.body if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)]
    fields = {ast.unparse(p.target): p for p in parts if "ClassVar" not in ast.unparse(p.annotation)}
    read = {name: field_schema(part.annotation, part.value) for name, part in fields.items()}
    free = any(k.arg == "total" and constants([k.value]) == [False] for k in node.keywords)
    must = [name for name, part in fields.items() if "NotRequired" not in ast.unparse(part.annotation) and not free]
    required = [name for name in must if read[name][1] is None]
    own = {"type": "object", "properties": {name: schema for name, (schema, _) in read.items()}, "required": required}
    inherited = [{"$ref": base} for base in bases if above.get(base)]
    own = own if fields or "BaseModel" in bases else {}
    return {"allOf": [*inherited, own]} if inherited else own
