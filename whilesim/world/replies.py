"""Replies: a tool's answer in the shape that its schema or its example shows, and the check of its arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import cache, lru_cache
from typing import Any

from whilesim.core.jsontext import dumps
from whilesim.core.text import shorten
from whilesim.situations.schemas import validator
from whilesim.situations.tools import Tool
from whilesim.world.attributes import plural
from whilesim.world.deeds import Deed
from whilesim.world.fitting import allows, fit, quick_test
from whilesim.world.kinds import A_CODE, MADE_UP, Kind, Row, describe_field, role_of
from whilesim.world.lookups import told_as
from whilesim.world.model import WorldModel
from whilesim.world.values import ISO, Draw, imitate, person_of, value_of

Checker = Callable[[Mapping[str, Any]], "tuple[str, str] | None"]


@lru_cache(maxsize=512)
def check_of(model: WorldModel, name: str) -> Checker:
    """Return the check of a tool's arguments: None when they are right, else the field and what is wrong with it."""
    tool = model.tools[name]
    known = tool.parameters.get("properties") or {}
    required = tuple(tool.parameters.get("required") or ())
    free = not known or tool.parameters.get("additionalProperties") is True
    fast = {name: quick_test(inner) for name, inner in known.items()}
    whole = cache(lambda: validator(tool.parameters))  # compiled only where the quick tests do not decide

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
            return next((n for n in error.validator_value if n not in error.instance), path), "is required"
        return path or "arguments", shorten(error.message, 160)

    return check


def shape_reply(model: WorldModel, seed: int, name: str, result: Any, arguments: Mapping[str, Any]) -> str:
    """Return a tool's reply as text: by schema, else by example, else the result itself."""
    tool, deed = model.tools[name], model.deeds[name]
    telling = any((tool.returns or {}).get(word) for word in ("properties", "anyOf", "items"))
    if tool.returns and (telling or not tool.examples):
        reply = Filler(model, seed, deed, arguments).fill(tool.returns, result)
        return dumps(fit(reply, tool.returns, seed, "reply", name))
    if tool.examples and not isinstance(result, str):
        result = _Example(tool, model, seed, arguments).fill(result)
    return result if isinstance(result, str) else dumps(result)


class Filler:
    """Fills the schema of a tool's replies."""

    def __init__(self, model: WorldModel, seed: int, deed: Deed, arguments: Row) -> None:
        self._model, self._seed, self._deed, self._arguments = model, seed, deed, arguments
        self._kind = model.kinds.get(deed.kind) or Kind(name="", key="id")

    def fill(self, schema: Any, value: Any, name: str = "", of: str = "") -> Any:
        """Return what a schema allows: the value where it fits, then the arguments', then one drawn for the record ``of``."""
        if not isinstance(schema, Mapping) or (value is None and allows(schema, None)):
            return value
        if ways := next((schema[w] for w in ("anyOf", "oneOf", "allOf") if schema.get(w)), None):
            return self.fill(next((s for s in ways if s.get("type") != "null"), {}), value, name, of)
        kind = schema.get("type")
        kind = next((k for k in kind if k != "null"), "null") if isinstance(kind, list) else kind
        if kind == "array" or (kind is None and "items" in schema):
            return self._list(schema, value, name, of)
        if kind == "object" or schema.get("properties"):
            return self._object(schema, value, of)
        if kind and (value is None or isinstance(value, (list, dict))):
            value = self._drawn(schema, name, of)
        return fit(value, schema, self._seed, "reply", self._deed.kind, of, name)

    def _list(self, schema: Row, value: Any, name: str, of: str) -> list[Any]:
        inner, rows = schema.get("items", {}), value if isinstance(value, list) else []
        if isinstance(value, Mapping):
            rows = next((v for v in value.values() if isinstance(v, list)), [value] if value else [])
        if prefix := schema.get("prefixItems"):
            key = next(iter(value.values()), None) if isinstance(value, Mapping) else None
            return [self.fill(s, key, name, of) for s in prefix]
        if isinstance(inner, Mapping) and inner.get("type") == "string":
            rows = [next(iter(row.values()), "") if isinstance(row, Mapping) else row for row in rows]
        plain = Filler(self._model, self._seed, self._deed, {})
        rows = rows or [None] * schema.get("minItems", 0)
        return [plain.fill(inner, row, name, f"{of}.{n}") for n, row in enumerate(rows)][: schema.get("maxItems")]

    def _object(self, schema: Row, value: Any, of: str) -> dict[str, Any]:
        first = value[0] if isinstance(value, list) and value else value
        found = first if isinstance(first, Mapping) else {}
        if not (shown := schema.get("properties")):
            return {plural(self._deed.kind or "result"): value} if isinstance(value, list) else dict(found)
        of = str(found.get(self._kind.key) or of) if of[:1] in ("", ".") else of  # a row of a list, or what is in one
        rest = {f: v for f, v in found.items() if f not in shown or f == self._kind.key} if found is value else {}
        now = {n: self._now(n, s, found if n in found else rest, value) for n, s in shown.items()}
        known = self._kind.fields if self._kind.key and self._kind.key in found else {}
        unsaid = {n for n in shown if now[n] is None and n in known} - {*(schema.get("required") or ())}
        return {n: self.fill(s, now[n], n, of) for n, s in shown.items() if n not in unsaid or allows(s, None)}

    def _now(self, name: str, schema: Any, found: Row, value: Any) -> Any:
        """Return what a field of a reply holds: what the record has, what the call said, how the deed went."""
        deed, kind = self._deed, schema.get("type") if isinstance(schema, Mapping) else ""
        if deed.writes and name in ("status", "result") and "operation" in str(schema):
            return "success"
        now = told_as(found, name, deed.kind)
        if name not in found and (now is None or isinstance(now, list) is not ("array" in (kind or ()))):
            now = self._arguments.get(name)
        now = found.get(self._kind.key) if now is None and name == "id" else now
        if now is None and (kind == "object" or (kind == "array" and isinstance(value, list))):
            return value
        return True if now is None and name in ("success", "ok") else now

    def _drawn(self, schema: Row, name: str, of: str) -> Any:
        about = self._kind.name if of and self._deed.reads else self._deed.tool
        draw = Draw(self._seed, self._model.now, self._model.locale, f"reply/{about}/{of}".rstrip("/"), 0)
        person = person_of(draw) if self._kind.people or role_of(name) != "name" else {}
        return value_of(describe_field(name or "value", schema, ""), draw, person)


class _Example:
    """An example reply, filled with a call's own values."""

    def __init__(self, tool: Tool, model: WorldModel, seed: int, arguments: Mapping[str, Any]) -> None:
        told, self.reply = tool.examples[0]
        self._deed, self._model, self._seed, self._arguments = model.deeds[tool.name], model, seed, arguments
        values = {k: str(v) for k, v in told.items() if isinstance(v, (str, int, float))}
        self._swap = {v: arguments[k] for k, v in values.items() if k in arguments and len(v) > 1}

    def fill(self, result: Any) -> Any:
        """Return the example with the record's and the call's own values in it."""
        if isinstance(self.reply, Mapping) and isinstance(result, dict) and result:
            own = next(iter(result.values()))  # a new record's own key leads it
            keys = (k for k, v in self.reply.items() if k.endswith("_id") and isinstance(v, str))
            result = {**result, **{k: own for k in keys if k not in result}}
        return self._imitated("", self.reply, result)

    def _imitated(self, name: str, shape: Any, whole: Any) -> Any:
        if isinstance(shape, Mapping):
            return {n: self._value(n, v, whole) for n, v in shape.items()}
        if isinstance(shape, list):
            rows = whole if isinstance(whole, list) and shape and isinstance(shape[0], Mapping) else ()
            return [self._imitated(name, shape[0], r) for r in rows] or [self._imitated(name, s, None) for s in shape]
        return self._text(name, shape) if isinstance(shape, str) else shape

    def _value(self, name: str, shape: Any, whole: Any) -> Any:
        found = whole if isinstance(whole, Mapping) else {}
        if isinstance(shape, str) and shape in self._swap:
            return self._swap[shape]
        if isinstance(shape, list) and isinstance(whole, list):
            keyed = shape and isinstance(shape[0], Mapping)
            return [self._imitated(name, shape[0], r) if keyed and isinstance(r, Mapping) else r for r in whole]
        told = told_as(found, name, self._deed.kind)
        if isinstance(told, type(shape)) and name not in ("status", "message"):
            return told
        given = self._arguments.get(name)
        return given if isinstance(given, type(shape)) else self._imitated(name, shape, None)

    def _text(self, name: str, text: str) -> str:
        """Return an example's text with the call's values, with dates of now, and with no word that says 'made up'."""
        if text in self._swap:
            return str(self._swap[text])
        for old, new in self._swap.items():
            text = text.replace(old, str(new)) if len(old) > 3 else text
        days = next((v for a, v in self._arguments.items() if a.endswith("days") and type(v) is int), 0) or 14
        day = self._model.now + timedelta(days=days if role_of(name) in ("expiry", "future") else 0)
        text = ISO.sub(f"{day:%Y-%m-%d}", text)
        if MADE_UP.search(text):
            text = imitate(A_CODE, self._seed, self._deed.tool, name, repr(self._arguments))
        return text
