"""Replies: a tool's answer in the shape that its schema or its example shows, and the check of its arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from whilesim.core.jsontext import dumps
from whilesim.core.text import shorten
from whilesim.situations.tools import Tool
from whilesim.world.deeds import Deed
from whilesim.world.kinds import describe_field, role_of
from whilesim.world.model import WorldModel
from whilesim.world.values import Draw, person_of, value_of

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,), "array": (list,), "object": (dict,),
}  # fmt: skip

_PLAIN = frozenset({"type", "description", "title", "default", "enum", "items", "example", "examples", "example_value"})

Checker = Callable[[Mapping[str, Any]], "tuple[str, str] | None"]


def compile_check(tool: Tool) -> Checker:
    """Return the check of a tool's arguments: None when they are right, else the field and what is wrong with it."""
    known = tool.parameters.get("properties") or {}
    required = tuple(tool.parameters.get("required") or ())
    free = not known or tool.parameters.get("additionalProperties") is True
    fast = {name: _fast(inner) for name, inner in known.items()}
    whole = cache(lambda: _validator(tool.parameters))  # compiled only where the quick tests do not decide

    def check(given: Mapping[str, Any]) -> tuple[str, str] | None:
        for name in given:
            if name not in known and not free:
                return str(name), "unexpected argument"
        if all(n in given for n in required) and all((test := fast.get(n)) and test(v) for n, v in given.items()):
            return None
        errors = whole().iter_errors(dict(given))
        error = min(errors, key=lambda e: (len(list(e.absolute_path)), str(e.message)), default=None)
        if error is None:
            return None
        path = ".".join(map(str, error.absolute_path))
        if error.validator == "required":
            path = next((n for n in error.validator_value if n not in error.instance), path)
            return path, "is required"
        return path or "arguments", shorten(error.message, 160)

    return check


def _validator(schema: Mapping[str, Any]) -> Any:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(dict(schema))


def _fast(schema: Any) -> Callable[[Any], bool] | None:
    """Return a quick test of a plain schema; None for one that needs the whole validator.

    A value that fails the quick test is not yet wrong: the validator decides, and words the error.
    """
    if not isinstance(schema, Mapping) or not set(schema) <= _PLAIN or str(schema.get("type")) not in _TYPES:
        return None
    types, options = _TYPES[schema["type"]], schema.get("enum")
    if schema["type"] == "array":
        inner = _fast(schema.get("items"))
        return (lambda value: type(value) is list and all(map(inner, value))) if inner else None
    if schema["type"] == "object":
        return None
    return lambda value: type(value) in types and (not options or value in options)


class Shaper:
    """Writes results as one world's tools would."""

    def __init__(self, model: WorldModel, seed: int) -> None:
        self._model, self._seed = model, seed
        self._validators: dict[str, Any] = {}

    def shape(self, tool: Tool, deed: Deed, result: Any, arguments: Mapping[str, Any]) -> str:
        """Return the reply as text: by schema, else by example, else the result itself."""
        if (tool.returns and tool.returns.get("type")) or (tool.returns or {}).get("properties"):
            filled = self._by_schema(tool, deed, result, arguments)
            return dumps(filled)
        if tool.examples and not isinstance(result, str):
            result = _by_example(tool, result, arguments)
        return result if isinstance(result, str) else dumps(result)

    def _by_schema(self, tool: Tool, deed: Deed, result: Any, arguments: Mapping[str, Any]) -> Any:
        assert tool.returns is not None
        filled = self.fill(tool.returns, result, arguments, deed, "")
        if tool.name not in self._validators:
            self._validators[tool.name] = _validator(tool.returns)
        valid = self._validators[tool.name].is_valid
        return filled if valid(filled) else self.fill(tool.returns, {}, {}, deed, "plain")

    def fill(self, schema: Any, value: Any, arguments: Mapping[str, Any], deed: Deed, name: str) -> Any:
        """Return what a schema allows: the value where it fits, then the arguments', then a drawn one."""
        if not isinstance(schema, Mapping):
            return value
        for word in ("anyOf", "oneOf", "allOf"):
            if schema.get(word):
                return self.fill(
                    next((s for s in schema[word] if s.get("type") != "null"), {}), value, arguments, deed, name
                )
        if "const" in schema:
            return schema["const"]
        kind = schema.get("type")
        kind = next((k for k in kind if k != "null"), "null") if isinstance(kind, list) else kind
        if kind == "array" or (kind is None and "items" in schema):
            return self._fill_list(schema, value, arguments, deed, name)
        if kind == "object" or schema.get("properties"):
            return self._fill_object(schema, value, arguments, deed)
        if schema.get("enum"):
            return value if value in schema["enum"] else schema["enum"][0]
        if kind is None:
            return value
        if type(value) in _TYPES.get(str(kind), ()) and not isinstance(value, (dict, list)):
            return value
        if kind == "string" and isinstance(value, (int, float)) and not isinstance(value, bool):
            return str(value)
        return self._drawn(schema, deed, name)

    def _fill_list(
        self, schema: Mapping[str, Any], value: Any, arguments: Mapping[str, Any], deed: Deed, name: str
    ) -> list[Any]:
        rows = (
            value
            if isinstance(value, list)
            else next((v for v in value.values() if isinstance(v, list)), [value] if value else [])
            if isinstance(value, Mapping)
            else []
        )
        inner = schema.get("items", {})
        prefix = schema.get("prefixItems")
        if prefix:
            return [self.fill(s, None, arguments, deed, name) for s in prefix]
        low = schema.get("minItems", 0)
        filled = [self.fill(inner, row, {}, deed, name) for row in rows] or [
            self.fill(inner, None, {}, deed, name) for _ in range(low)
        ]
        return filled[: schema.get("maxItems", len(filled))]

    def _fill_object(
        self, schema: Mapping[str, Any], value: Any, arguments: Mapping[str, Any], deed: Deed
    ) -> dict[str, Any]:
        found = (
            value[0]
            if isinstance(value, list) and value and isinstance(value[0], Mapping)
            else value
            if isinstance(value, Mapping)
            else {}
        )
        shown = schema.get("properties") or {}
        if not shown:
            return dict(found)
        made = {}
        for name, inner in shown.items():
            now = found.get(name, arguments.get(name))
            if now is None and name == "id" and deed.kind in self._model.kinds:
                now = found.get(self._model.kinds[deed.kind].key)
            if (
                now is None
                and isinstance(inner, Mapping)
                and inner.get("type") in ("array", "object")
                and (isinstance(value, list) or not found.get(name))
            ):
                now = value if isinstance(value, list) or inner.get("type") == "object" else None
            if (
                name in ("status", "result")
                and deed.action in ("create", "change", "delete")
                and "operation" in str(inner)
            ):
                now = "success"
            if name in ("success", "ok") and now is None:
                now = True
            made[name] = self.fill(inner, now, arguments, deed, name)
        return made

    def _drawn(self, schema: Mapping[str, Any], deed: Deed, name: str) -> Any:
        draw = Draw(self._seed, self._model.now, self._model.locale, f"reply/{deed.tool}", 0)
        told = describe_field(name or "value", schema, "")
        value = value_of(told, draw, person_of(draw) if role_of(name) != "name" else {})
        low, high = schema.get("minimum"), schema.get("maximum")
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            value = max(value, low) if isinstance(low, (int, float)) else value
            value = min(value, high) if isinstance(high, (int, float)) else value
        return value


def _by_example(tool: Tool, result: Any, arguments: Mapping[str, Any]) -> Any:
    told, reply = tool.examples[0]
    plain = {str(v): arguments[k] for k, v in told.items() if k in arguments and isinstance(v, (str, int, float))}
    swap = {old: new for old, new in plain.items() if len(old) > 1}
    if isinstance(reply, Mapping) and isinstance(result, dict) and result:
        own = next(iter(result.values()))  # a new record's own key leads it
        result = {
            **result,
            **{k: own for k, v in reply.items() if k.endswith("_id") and k not in result and isinstance(v, str)},
        }
    return _imitated(reply, result if isinstance(result, Mapping) else {}, arguments, swap, result)


def _imitated(
    shape: Any, found: Mapping[str, Any], arguments: Mapping[str, Any], swap: Mapping[str, Any], whole: Any
) -> Any:
    """Return the example with the record's and the call's own values in it."""
    if isinstance(shape, Mapping):
        made = {}
        for name, value in shape.items():
            if isinstance(value, list) and isinstance(whole, list):
                made[name] = [
                    _imitated(value[0], r, {}, {}, r)
                    if value and isinstance(value[0], Mapping) and isinstance(r, Mapping)
                    else r
                    for r in whole
                ]
            elif name in found and isinstance(found[name], type(value)) and name not in ("status", "message"):
                made[name] = found[name]
            elif name in arguments and isinstance(arguments[name], type(value)):
                made[name] = arguments[name]
            else:
                made[name] = _imitated(value, {}, arguments, swap, None)
        return made
    if isinstance(shape, list):
        if isinstance(whole, list) and shape and isinstance(shape[0], Mapping):
            return [_imitated(shape[0], r, {}, {}, r) for r in whole if isinstance(r, Mapping)]
        return [_imitated(s, {}, arguments, swap, None) for s in shape]
    if isinstance(shape, str):
        if shape in swap:
            return swap[shape]
        for old, new in swap.items():
            if len(old) > 3:
                shape = shape.replace(old, str(new))
    return shape
