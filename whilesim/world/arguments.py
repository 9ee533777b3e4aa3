"""Arguments: the one right call of a situation's tool, and a record that is ready for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from whilesim.core.jsontext import copied, dumps, loads
from whilesim.core.seeds import chance, derive, pick
from whilesim.core.templates import load_words
from whilesim.situations.schemas import first_form
from whilesim.world.dates import be_of_a_day, bound_near, follow_status
from whilesim.world.deeds import Deed
from whilesim.world.effects import switch
from whilesim.world.entities import schema_of
from whilesim.world.fitting import allows, fit
from whilesim.world.kinds import BUNDLES, Field, branches, describe_field, is_value, kind_of_key, other_ends, role_of
from whilesim.world.lookups import Shelf, at_path, told_as
from whilesim.world.records import agree, raise_totals, rotate
from whilesim.world.targets import find_named, first_named
from whilesim.world.values import ISO, Draw, name_of, person_of, set_apart, value_of
from whilesim.world.verbs import read_name

USUAL = ("overdue", "issued", "unpaid", "pending", "active", "open", "confirmed")
_SETTLED = ("paid", "closed", "completed")
_NAMED = ("email", "phone", "address", "word", "choice", "city", "zip", "country", "count", "date", "flag", "switch")
"""Roles of the fields that somebody asks to have changed by name."""


class Maker:
    """Makes the arguments of one deed on one record of one customer; the seed decides every value."""

    def __init__(self, shelf: Shelf, deed: Deed, key: str, party: str, seed: int) -> None:
        self.shelf, self.model, self.deed, self.key, self.party, self.seed = shelf, shelf.model, deed, key, party, seed
        self.kind = self.model.kinds.get(deed.kind)
        self.record: dict[str, Any] = shelf.records.get(deed.kind, {}).get(key, {})
        self.customer: dict[str, Any] = shelf.records.get(self.model.party, {}).get(party, {})
        self.schemas = self.model.arguments(deed.tool)
        self.required = first_form(dict(self.model.tools[deed.tool].parameters)).get("required") or ()
        self.made: dict[str, Any] = {}
        self._makers = {
            **dict.fromkeys(deed.lowers, self._due), **dict.fromkeys(deed.parts, self._row_part),
            **dict.fromkeys((*deed.names, *deed.names.values()), self._named),
        }  # fmt: skip

    def prepare(self) -> None:
        """Bring the record into a state in which the deed is allowed."""
        kind, deed, record = self.kind, self.deed, self.record
        if deed.action != "change" or not record or kind is None:
            return
        if deed.before and record.get(kind.status) not in deed.before:
            record[kind.status] = deed.before[0]
        elif deed.after and not deed.before and kind.status:
            others = [o for o in kind.statuses if o != deed.after]
            usual = [o for o in others if o.lower() in USUAL] or others or ["active"]
            record[kind.status] = record[kind.status] if record.get(kind.status) in usual else usual[0]
        be_of_a_day(self.model, kind, record, {kind.status: record.get(kind.status)}, self._draw())
        follow_status(self.model, kind, record, self.seed, 0)
        self.shelf.repeat_own(kind, record)
        for name, value in deed.fixed.items():
            if str(value).startswith("@switch"):
                record[name] = switch(kind, name, "@switch_off" if value == "@switch_on" else "@switch_on")
        for other in self.shelf.owned(kind.name, record) if deed.sole else ():
            row = self.shelf.records[kind.name][other]
            if other != self.key and row.get(kind.status) == deed.sole:
                row[kind.status] = kind.first_status(*_SETTLED)

    def make(self) -> dict[str, Any]:
        """Return all arguments of the one right call."""
        deed = self.deed
        by = {a.partition(".")[0] for a in (*deed.by, *deed.proofs)}
        some = [a for a in self.schemas if a in by or a in deed.written][:2]
        asked = [a for a in self.schemas if a in self.required] if self.required else some
        if deed.action in ("create", "change"):
            free = [a for a in self.schemas if a not in asked and a != deed.limit]
            chosen = [a for a in free if chance(0.3, self.seed, "optional", a)]
            empty = deed.action == "change" and not (deed.after or deed.fixed or deed.toggles or {*asked} - {deed.key})
            asked += chosen or (free and empty and [pick(free, self.seed, "one")]) or []  # to change nothing is no call
        for name in sorted(asked, key=lambda a: a != deed.moved):
            self.made[name] = self._argument(name)
        self.made = {a: self.made[a] for a in asked}
        raise_totals(self.made)
        told = {a: describe_field(a, self.schemas[a], "") for a in self.made}
        target = {a: self.deed.sets.get(a, a) for a in self.made}
        whole = {**self.record, **{target[a]: v for a, v in self.made.items()}}
        set_apart(whole, {target[a]: f for a, f in told.items()}, self._draw())
        self.made |= {a: whole[target[a]] for a in self.made}
        for name, value in [*self.made.items()]:
            if isinstance(value, list):
                self.shelf.follow(told[name], value, self.made, {a: f.options for a, f in told.items()})
        return self._valid()

    def _valid(self) -> dict[str, Any]:
        """Return the arguments as their schemas allow them; an optional one that cannot be made to fit is left out."""
        for name, value in [*self.made.items()]:
            key, schema = kind_of_key(name, self.model.kinds)[0], self.schemas[name]
            self.made[name] = fit(value, schema, self.seed, "argument", name)
            if name not in self.required and (self.made[name] != value if key else not allows(schema, self.made[name])):
                del self.made[name]
        return self.made

    def _draw(self, attempt: int = 1) -> Draw:
        return Draw(self.seed, self.model.now, self.model.locale, "argument", attempt)

    def _argument(self, name: str) -> Any:
        deed, schema = self.deed, self.schemas[name]
        told = describe_field(name, schema, "")
        kind, many = kind_of_key(name, self.model.kinds)
        if name == deed.key:
            if deed.action == "create":
                return value_of(replace(told, role="word" if name == "key" else told.role), self._draw(), {})
            return self.shelf.native(*((deed.kind, self.key) if deed.kind else (self.model.party, self.party)))
        if name == deed.body:
            return self._body()
        last = not told.inner and any(end in self.made for end in other_ends(name, self.schemas))
        if kind and kind == self.model.party and not is_value(name, schema) and not last:
            return self.shelf.native(kind, self.party)
        if kind and name == deed.owner and not last:
            first = next(iter(self._own(kind)), "")
            return self.record.get(self.model.kinds[kind].key) or self.shelf.native(kind, first)
        if make := self._makers.get(name):
            return make(name)
        if kind and not told.inner:
            return self._linked(name, kind, many=many or told.type == "array")
        found = self.record.get(deed.checks.get(name, ""))
        if found is None and name in (*deed.by, *deed.proofs):
            found = told_as(self.record, deed.by.get(name, name), deed.kind)
        if found is None and name in deed.proofs:
            found = told_as(self.customer, name, self.model.party)
        side, field = self.kind.bound(name) if self.kind and deed.reads else ("", "")
        if side and self.record.get(field) is not None:
            return bound_near(self.record[field], side, self.model)
        if ways := branches(schema) if deed.reads else []:
            return self._way(name, ways) or self._new_value(told)
        return self._new_value(told) if found is None or isinstance(found, (list, dict)) else found

    def _due(self, name: str) -> float:
        """Return what is to be paid: all that is due, where that settles it, else a part; something is due."""
        of = kind_of_key(self.deed.moved, self.model.kinds)[0] or self.deed.kind
        key = str(self.made[self.deed.moved]) if self.deed.moved else self.key
        kind, record, field = self.model.kinds[of], self.shelf.records[of].get(key, {}), self.deed.lowers[name]
        if not record.get(field):
            record[field] = value_of(kind.fields[field], self._draw(), {})
            record |= {kind.status: kind.first_status(*USUAL)} if kind.status else {}
        return float(round(record[field] / (1 if self.deed.after else 1 + derive(self.seed, name) % 3), 2))

    def _named(self, name: str) -> Any:
        """Choose a field for a call to name, or a new value that this field takes."""
        assert self.kind
        value, says = next(iter(self.deed.names.items()))
        plain = [f for f, told in self.kind.fields.items() if told.role in _NAMED and f != self.kind.status]
        options = describe_field(says, self.schemas[says], "").options
        options = tuple(o for o in options if not getattr(self.kind.fields.get(o), "inner", ())) or options
        field = str(pick(options or plain or ["name"], self.seed, "field"))
        if name == says:
            return field
        target = find_named(self.kind, field)
        told = self.kind.fields.get(target) or Field(name=target.split(".")[-1], role=role_of(target.split(".")[-1]))
        drawn = self._other(told, at_path(self.record, target))
        return drawn if allows(self.schemas[value], drawn) else str(drawn)

    def _row_part(self, name: str) -> Any:
        """Return a part of a row: what tells the one that is there from the others, else a new value."""
        assert self.kind
        told, deed = self.kind.fields[self.deed.rows], self.deed
        part = next(i for i in told.inner if i.name == deed.parts[name])
        rows = self.record.get(told.name) or ()
        row = rows[derive(self.seed, "row") % len(rows)] if rows and deed.way != "add" else {}
        if row and (deed.way == "remove" or name == first_named(told, deed.parts)):
            return row.get(part.name)
        schema = self.schemas[name]
        return self._other(replace(part, schema=schema, type=str(schema.get("type", ""))), row.get(part.name))

    def _other(self, told: Field, before: Any) -> Any:
        """Draw a value of a field that differs from the present one."""
        if told.options:
            return pick([o for o in told.options if o != before] or told.options, self.seed, "option", told.name)
        person = {} if told.role == "name" else person_of(self._draw(0))
        values = [value_of(told, self._draw(attempt), person) for attempt in range(4)]
        return not before if type(before) is bool else next((v for v in values if v != before), values[0])

    def _way(self, name: str, ways: list[Mapping[str, Any]]) -> dict[str, Any]:
        """Name the record in one of the ways that an object argument allows; empty where none can be filled from it."""
        for way in rotate(ways, derive(self.seed, name)):
            asked = way.get("required") or rotate(list(way["properties"]), derive(self.seed, name, "part"))[:1]
            found = {n: told_as(self.record, self.deed.by.get(f"{name}.{n}", n), self.deed.kind) for n in asked}
            if None not in found.values():
                return found
        return {}

    def _body(self) -> dict[str, Any]:
        """Return what a new record is made of, where one free object holds it all: whose it is, and how much."""
        kind, records = self.model.kinds[self.deed.kind], self.shelf.records
        key, own = next(iter(records.get(kind.parent, {}).items()), ("", {}))
        made = {self.model.kinds[kind.parent].key: self.shelf.native(kind.parent, key)} if key else {}
        told = (f for f in kind.fields.values() if f.role in ("money", "currency"))
        made |= {f.name: value_of(f, self._draw(), {}) for f in told}
        agree(kind, made, own, self._draw())
        return made

    def _linked(self, name: str, kind: str, *, many: bool) -> Any:
        """Choose what an argument points at: of the record's own, of the owner's own, or a new one."""
        fields = self.kind.fields.values() if self.kind else ()
        listed = next((f.name for f in fields if f.role == "links" and f.link == kind and f.name in self.record), "")
        here = [str(k) for k in self.record.get(listed) or ()]
        if many and name.startswith("new_"):
            return [self._variant(kind, str(k)) for k in self.made.get(name.removeprefix("new_")) or here[:1]]
        if many and here:
            return [self.shelf.native(kind, k) for k in here[: 1 + derive(self.seed, name) % 2]]
        pool = self._own(kind)
        taken = [self.record.get(self.deed.sets.get(name, name)), *map(self.made.get, other_ends(name, self.schemas))]
        others = [k for k in (*pool, *self.shelf.records[kind]) if k not in map(str, taken)][: len(pool)] or pool
        if not others:
            return value_of(Field(name=name), self._draw(), {})
        chosen = self.shelf.native(kind, pick(others, self.seed, "linked", name))
        return [chosen] if many else chosen

    def _own(self, kind: str) -> list[str]:
        """Return the keys of the customer's own records of a kind; of all where there are none."""
        mine = self.shelf.mine(kind) if kind != self.model.party else ()
        return list(mine or self.shelf.records[kind])

    def _variant(self, kind: str, key: str) -> Any:
        """Return another available variant of the same thing; one is put on the shelf where there is none."""
        of, records = self.model.kinds[kind], self.shelf.records
        pool = [k for k in self.shelf.near(kind, records[kind].get(key, {})) if k != key]
        parent = self.model.kinds[of.parent].key if of.parent in self.model.kinds else ""
        above = str(records[kind].get(key, {}).get(parent, ""))
        chosen = pick(pool or [""], self.seed, "variant", key) or self.shelf.add(of, above, self.seed)
        records[kind][chosen] |= {f.name: True for f in of.fields.values() if f.role == "flag"}
        return self.shelf.native(kind, chosen)

    def _rows(self, name: str, shown: Any) -> Any:
        """Return rows, or a group, like an example's that point at records of this world; what is removed is there."""
        present: Any = self.record.get(name.removesuffix("_to_remove"))
        listed = isinstance(shown, list) and isinstance(present, list) and present
        if name.endswith("_to_remove") and listed and isinstance(present[0], dict):
            return [{k: v for k, v in present[0].items() if k in shown[0]}]
        return self.shelf.point(describe_field(name, schema_of(shown), ""), shown, self.record, self.seed)

    def _known(self, told: Field) -> Any:
        """Return a value that stands fast: a free slot's time, who signs in, what a question is about; None for none."""
        model, words = self.model, load_words("world_values")
        if self.deed.action == "create" and told.role in ("date", "time", "future") and not told.before:
            free = (n for n in model.kinds if n.split("_")[-1] in load_words("world_nouns")["slots"])
            slot = next((r for n in free for r in self.shelf.records[n].values()), {})
            return next((v for f, v in slot.items() if role_of(f) == told.role.replace("future", "date")), None)
        if self.deed.kind == "session" and told.role in ("username", "email", "phone"):
            return person_of(Draw(self.seed, model.now, model.locale, model.party or "customer", 0))[told.role]
        if self.deed.action == "answer" and told.role == "text":
            nouns = [n for n in read_name(model.tools[self.deed.tool]).nouns if n not in words["no_topic"]]
            mine = (k.name for k in model.kinds.values() if k.parent == model.party and model.party)
            about = " ".join(nouns) or next(mine, "order")
            return words["question"].format(about=about.replace("_", " "))
        return None

    def _new_value(self, told: Field) -> Any:
        """Draw a value that differs from the present one; what it points at exists."""
        name, schema = told.name, self.schemas[told.name]
        if (known := self._known(told)) is not None:
            return known
        target = {**self.deed.sets, **self.deed.adds}.get(name, name)
        before = at_path(self.record, target) if self.deed.action == "change" else None
        if told.options:
            options = [o for o in told.options if o != str(before)] or list(told.options)
            usual = [o for o in options if o.lower() not in ("other", "none", "unknown")] or options
            return pick(usual, self.seed, "option", name)
        shown = next((a[name] for a, _ in self.model.tools[self.deed.tool].examples if name in a), None)
        alike = told.type in ("array", "object") or (told.role == "word" and told.type == "string")
        if shown and alike and not told.inner:
            shown = loads(ISO.sub(f"{self.model.now + timedelta(days=7):%Y-%m-%d}", dumps(shown)))
            return self._rows(name, shown) if isinstance(shown, dict) or isinstance(shown[0], dict) else shown
        if told.role == "word" and isinstance(schema.get("default"), str) and schema["default"] not in ("", "None"):
            return schema["default"]
        person = person_of(self._draw(0))
        person["holder"] = name_of(self.customer) or person["holder"]
        if told.type == "array" and not told.inner:
            items = schema["items"] if isinstance(schema.get("items"), Mapping) else {}
            one = describe_field(name, items if items.get("type") else {"type": "string"}, "")
            return [value_of(replace(one, role="word" if one.role == "links" else one.role), self._draw(), person)]
        if name in self.deed.adds:
            return 1 + derive(self.seed, name) % 2
        known = self.kind.fields.get(target) if self.kind and told.role == "word" and not told.type else None
        told = replace(known, name=name) if known else told
        if told.inner and name in BUNDLES:
            told = replace(told, inner=(pick(told.inner, self.seed, "bundle"),))
        values = [value_of(told, self._draw(attempt), person) for attempt in range(4)]
        value = next((v for v in values if v != before), values[0])
        if told.inner and isinstance(value, list):
            present = before if isinstance(before, list) else value
            value = [*value, *copied(present[len(value) :])][: len(present)]  # as many as before
        return self.shelf.point(told, value, {**self.customer, **self.record}, self.seed) if told.inner else value
