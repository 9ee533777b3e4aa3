"""Rows: one row of a list, or one field that a call names, as a write leaves it; what there is none of is refused."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from whilesim.core.jsontext import copied, loads
from whilesim.core.seeds import derive
from whilesim.world.attributes import singular
from whilesim.world.deeds import Deed
from whilesim.world.kinds import Field, Kind, Row, folded, is_number, kind_of_key
from whilesim.world.lookups import Shelf, at_path
from whilesim.world.targets import NUMBERS, find_named, first_named
from whilesim.world.values import Draw, value_of

_SWITCHED = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


class Refusal(Exception):  # noqa: N818  an answer of the world's, and no error
    """Why a tool does not do it, in a problem of the error words and its values."""

    def __init__(self, problem: str, **values: Any) -> None:
        super().__init__(problem)
        self.problem, self.values = problem, values


def change_rows(shelf: Shelf, deed: Deed, record: Row, arguments: Row) -> list[Any]:
    """Return the list of a record with the row that a call is about added, removed or changed.

    Raises:
        Refusal: There is no such row.
    """
    told, rows = shelf.model.kinds[deed.kind].fields[deed.rows], copied(list(record.get(deed.rows) or ()))
    given = {part: arguments[a] for a, part in deed.parts.items() if a in arguments}
    if deed.way == "add":
        one = replace(told, schema={"minItems": 1, "maxItems": 1})
        seed = derive(shelf.seed, deed.rows, len(rows))
        drawn = value_of(one, Draw(seed, shelf.model.now, shelf.model.locale, deed.kind, len(rows)), {})[0]
        for part, value in given.items():
            linked = shelf.records.get(kind_of_key(part, shelf.model.kinds)[0], {})
            drawn |= {f: v for f, v in linked.get(str(value), {}).items() if f in drawn}
        return [*rows, {**drawn, **given}]
    at = find_row(deed, told, rows, arguments)
    if at < 0:
        first = first_named(told, deed.parts)
        raise Refusal("not_found", kind=singular(deed.rows), value=arguments.get(first, ""), field=first)
    return [*rows[:at], *([] if deed.way == "remove" else [{**rows[at], **given}]), *rows[at + 1 :]]


def find_row(deed: Deed, told: Field, rows: Sequence[Any], arguments: Row) -> int:
    """Return where the row stands that a call names: by its first word where it is changed, by all where it is removed; -1 for nowhere."""
    roles = {i.name: i.role for i in told.inner}
    words = {p: arguments[a] for a, p in deed.parts.items() if a in arguments and roles[p] not in NUMBERS}
    asked = [(p, folded(str(v))) for p, v in words.items()][: 1 if deed.way == "change" else None]
    same = (n for n, r in enumerate(rows) if all(folded(str(r.get(p))) == v for p, v in asked))
    return next(same, -1) if asked else -1


def write_named(deed: Deed, kind: Kind, record: Row, arguments: Row) -> dict[str, Any]:
    """Return the fields that a call names, with the values that it gives them, in the type that they have.

    Raises:
        Refusal: The record has no such field, or the field takes no such value.
    """
    new: dict[str, Any] = {}
    for argument, says in deed.names.items():
        if argument in arguments and (said := arguments.get(says)) is not None:
            if not (name := find_named(kind, str(said))):
                raise Refusal("invalid", field=says, detail=f"{said!r} is not a field that can be changed")
            new[name] = _typed(argument, kind.fields.get(name), at_path(record, name), arguments[argument])
    return new


def _typed(argument: str, told: Field | None, present: Any, value: Any) -> Any:
    """Return a value as its field holds it: a number, yes or no, one of its options."""
    told, text = told or Field(name=""), folded(str(value))
    found: Any = value
    if told.options:
        found = next((o for o in told.options if folded(o) == text), None)
    elif type(present) is bool or told.role == "flag":
        found = _SWITCHED.get(text)
    elif is_number(present) or told.role in NUMBERS:
        found = loads(text) if re.fullmatch(r"-?(?:0|[1-9]\d*)(?:\.\d+)?", text) else None
    if found is None:
        allowed = f"one of {[*told.options]}" if told.options else "a valid value"
        raise Refusal("invalid", field=argument, detail=f"{value!r} is not {allowed}")
    return found
