"""Lookups: records as a tool shows them: found, filtered, and with what follows from other records."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import product
from typing import Any

from whilesim.core.seeds import between, derive
from whilesim.core.text import fold
from whilesim.world.attributes import plural
from whilesim.world.deeds import Deed, tells
from whilesim.world.kinds import Field, Kind, Row, folded, is_number, kind_of_key, role_of
from whilesim.world.model import WorldModel
from whilesim.world.records import Store
from whilesim.world.values import name_of

_NOTHING = (None, "", "None", "all")
"""Values by which a search asks for nothing."""


class Shelf(Store):
    """The records of one world, and how they are read."""

    party = ""
    """Key of the situation's customer: whom a tool means that names nobody."""
    gone = 0
    """How many records were deleted: what is made later takes the place of none of them."""

    def key(self, kind: str, value: Any) -> str:
        """Return the key under which a record stands; empty when it does not."""
        records, text = self.records.get(kind, {}), str(value)
        if text in records:
            return text
        folded = text.strip().lower().lstrip("#")
        return next((k for k in records if k.lower().lstrip("#") == folded), "") if folded else ""

    def children(self, child: str, parent: str, key: str) -> dict[str, dict[str, Any]]:
        """Return the records of kind ``child`` that belong to one parent."""
        field = self.model.kinds[parent].key or f"{parent}_id"
        return {k: r for k, r in self.records[child].items() if str(r.get(field)) == key}

    def mine(self, name: str) -> list[str]:
        """Return the keys of the situation's customer's own records; of all where the kind has no owner."""
        return [k for k, owner in self.owners(name).items() if not (self.party and owner) or owner == self.party]

    def owner(self, name: str, key: str) -> str:
        """Return the key of whoever a record belongs to, by what it hangs on or what points at it; empty for nobody."""
        return self.owners(name).get(key, "")

    def owners(self, name: str) -> dict[str, str]:
        """Return whom each record of a kind belongs to."""
        kinds, party, found = self.model.kinds, self.model.kinds.get(self.model.party), {}
        if not party or name not in kinds:
            return dict.fromkeys(self.records.get(name, ()), "")
        holders = [k for k in kinds.values() if k.parent == party.name and not kinds[name].catalogue]
        links = {k.name: [n.name for n in k.fields.values() if n.role == "link" and n.link == name] for k in holders}
        pointing = ((str(row.get(n)), row) for k, ns in links.items() for row in self.records[k].values() for n in ns)
        held: dict[str, Row] = dict(reversed([*pointing]))  # the first one counts
        for key, row in self.records[name].items():
            up = kinds[name]
            for _ in range(4):  # a user's own kinds may belong to one another
                if row and up != party and (above := kinds.get(up.parent)):
                    row, up = self.records[above.name].get(str(row.get(above.key or f"{above.name}_id")), {}), above
            owner = row if row and up == party else held.get(key, {})
            found[key] = self.key(party.name, owner.get(party.key, ""))
        return found

    def view(self, name: str, key: str) -> dict[str, Any]:
        """Return a record as it reads now: its own fields, the keys of what belongs to it, what it links to."""
        kind, record = self.model.kinds[name], self.records[name][key]
        shown = dict(record)
        for listed, child, whole in _children_of(self.model).get(name, ()):
            found, drop = self.children(child, name, key), (kind.key, "updated_at", "notes")
            if found and whole:
                shown[listed] = [{f: v for f, v in r.items() if f not in drop} for r in found.values()]
            elif found or not self.model.kinds[child].outbox:
                shown[listed] = [r.get(self.model.kinds[child].key) for r in found.values()]
        for field, linked in _expanded_of(self.model).get(name, ()):
            if isinstance(record.get(field), list):
                shown[field] = [self._brief(linked, str(k)) for k in record[field]]
                if prices := [p for row in shown[field] if is_number(p := row.get("price"))]:
                    shown.setdefault("total", round(sum(prices), 2))
        return shown | {late: shown.pop(late) for late in ("updated_at", "notes") if late in shown}

    def _brief(self, name: str, key: str) -> dict[str, Any]:
        """Return a shared record in brief, with the name of what it is a variant of."""
        kind = self.model.kinds[name]
        record = self.records[name].get(key, {kind.key: key})
        above = self.model.kinds.get(kind.parent)
        parent = self.records[above.name].get(str(record.get(above.key)), {}) if above else {}
        named = {"name": parent["name"]} if "name" in parent and "name" not in record else {}
        return {**named, **{f: v for f, v in record.items() if f not in ("availability", "updated_at", "notes")}}

    def _has(self, name: str, record: Mapping[str, Any], field: str, value: Any) -> bool:
        """Whether a record has what is looked for, compared as people write it."""
        role = role_of(field.split(".")[-1])
        found = list(_values(record, field, role))
        own = _children_of(self.model).get(name, ()) if role == "phone" and name == self.model.party else ()
        for _, child, _ in own:
            rows = self.children(child, name, str(record.get(self.model.kinds[name].key))).values()
            found += [v for r in rows for f, v in r.items() if role_of(f) == "phone"]
        if not (found := [f for f in found or _names(record, role) if f not in (None, "")]):
            return self.model.kinds[name].catalogue or (role == "text" and field not in self.model.kinds[name].fields)
        if role == "phone":
            digits = re.sub(r"\D", "", str(value))
            return any(digits and re.sub(r"\D", "", str(f)).endswith(digits[-10:]) for f in found)
        if role in ("text", "word", "title", "name") and isinstance(value, str):
            return any(fold(value) in fold(str(f)) or fold(str(f)) in fold(value) for f in found)
        return any(_plain(f) == _plain(value) for f in found)

    def unlike(self, deed: Deed, key: str, arguments: Row) -> str:
        """Return the argument in which a call says otherwise than the record, or whoever it belongs to, who asks; empty for none.

        What nobody's record tells is believed of one who has the key.
        """
        kind, row, party = self.model.kinds[deed.kind], self.records[deed.kind][key], self.model.party
        ways = [(kind, row)]
        if deed.proofs and party not in ("", kind.name):
            ways.append((self.model.kinds[party], self.records[party].get(self.owner(kind.name, key), {})))
        for name in (a for a in deed.proofs if at_path(arguments, a) not in _NOTHING):
            field, said = deed.by.get(name, name), at_path(arguments, name)
            known = [k for of, held in ways if (k := told_as(held, field, of.name)) is not None]
            same = any(_is_same(role_of(name), str(k), str(said)) for k in known)
            same = same or any(self._has(of.name, held, of.find(field) or field, said) for of, held in ways)
            if not same and (known or not arguments.get(deed.key)):
                return name
        return ""

    def find(self, deed: Deed, arguments: Mapping[str, Any]) -> list[str]:
        """Return the keys that a find or a list is after, newest first where records have dates."""
        name, kind = deed.kind, self.model.kinds[deed.kind]
        said = {field: at_path(arguments, a) for a, field in deed.by.items() if a not in deed.proofs}
        by = {field: value for field, value in said.items() if value not in _NOTHING}
        if kind.catalogue:  # what is on sale answers every question in words of one's own
            by = {field: v for field, v in by.items() if role_of(field) != "text"}
        parent = kind_of_key(deed.owner, self.model.kinds)[0] if deed.owner in arguments else ""
        owner = self.key(parent, arguments[deed.owner]) if parent and parent == kind.parent else None
        pool: Iterable[str] = self.records[name] if owner is None else self.children(name, parent, owner)
        if arguments.get(deed.key):
            pool = [k for k in pool if k == self.key(name, arguments[deed.key])]
        elif not kind.catalogue and any(role_of(f) == "text" and f not in kind.fields for f in by):
            pool = self.mine(name)  # words of one's own open nobody else's records
        found = [k for k in pool if all(self._has(name, self.records[name][k], *each) for each in by.items())]
        found = [k for k in found if not self.unlike(deed, k, arguments)]
        found = [k for k in found if _within(kind, self.records[name][k], arguments)]
        if deed.before:
            found = [k for k in self.mine(name) if self.records[name][k].get(kind.status) in deed.before]
        if not found and kind.catalogue and by and deed.action == "find":
            found = self.stock(kind, by)
        dated = [f for f, told in kind.fields.items() if "moment" in (told.role, role_of(f)) or role_of(f) == "date"]
        if dated and not kind.catalogue:
            found.sort(key=lambda k: str(self.records[name][k].get(dated[0]) or ""), reverse=True)
        return found

    def stock(self, kind: Kind, by: Mapping[str, Any]) -> list[str]:
        """Put records on the shelf that answer a search of a catalogue: what nobody asked for was never drawn."""
        seed = derive(self.seed, kind.name, repr(sorted((k, str(v)) for k, v in by.items())))
        choices = {f: {folded(o): o for o in t.options} for f, t in kind.fields.items() if f in by and t.options}
        if any(folded(str(by[f])) not in spelled for f, spelled in choices.items()):
            return []
        told = {f: choices[f][folded(v)] if f in choices and isinstance(v, str) else v for f, v in by.items()}
        found = [self.stow(kind, derive(seed, n), {}) for n in range(between(1, 3, seed, "stock"))]
        for key, (field, value) in product(found, told.items()):
            put_at(self.records[kind.name][key], field, value)
        return found

    def cut(self, deed: Deed, view: dict[str, Any], kind: str) -> Any:
        """Cut a view to what a narrow tool shows; its key and its date stay."""
        if not deed.shows:
            return view
        key = self.model.kinds[kind].key
        if deed.shows == ("id",):
            return view.get(key)
        linked = dict(view)
        for told in self.model.kinds[kind].fields.values():
            if told.role == "link" and told.link in self.records and told.link != self.model.party:
                linked = {**self.records[told.link].get(str(view.get(told.name)), {}), **linked}
        if (self.model.tools[deed.tool].returns or {}).get("properties"):
            return linked  # the schema says what is shown
        stay = (key, "updated_at") if key else ()
        kept = {f: v for f, v in linked.items() if f in stay or any(tells(f, name) for name in deed.shows)}
        return kept if len(kept) > len(stay) else view


@lru_cache(maxsize=64)
def _children_of(model: WorldModel) -> dict[str, list[tuple[str, str, bool]]]:
    """Kind to (name of the list, child kind, whether children show whole)."""
    found: dict[str, list[tuple[str, str, bool]]] = {}
    got = {d.kind for d in model.deeds.values() if d.reads}
    for child in model.kinds.values():
        if child.parent in model.kinds and child.key and not child.single:
            fields = model.kinds[child.parent].fields.values()
            listed = next((f.name for f in fields if f.role == "links" and f.link == child.name), plural(child.name))
            whole = child.outbox or child.catalogue or child.name not in got
            found.setdefault(child.parent, []).append((listed, child.name, whole))
    return found


@lru_cache(maxsize=64)
def _expanded_of(model: WorldModel) -> dict[str, list[tuple[str, str]]]:
    """Kind to (list field, shared kind): lists of keys that read as what they point at."""
    shared = {n: k.parent for n, k in model.kinds.items() if k.catalogue}
    told = {n: [f for f in k.fields.values() if f.role == "links"] for n, k in model.kinds.items()}
    listed = {n: [f for f in fields if f.why.startswith("attribute")] for n, fields in told.items()}
    return {n: [(f.name, f.link) for f in fs if shared.get(f.link, n) != n] for n, fs in listed.items()}


def _is_same(role: str, known: str, said: str) -> bool:
    """Whether a proof is right in another spelling: 24/07/1971, ****1665, 'Emerson, Valrie'; a month in words may be."""
    if role == "dob":
        numbers = [sorted(map(int, re.findall(r"\d+", text)[:3])) for text in (known, said)]
        return numbers[0] == numbers[1] or re.search(r"[^\W\dTZ]{3}", said) is not None
    if role == "last4":
        return re.sub(r"\D", "", said)[-4:] == known
    return role == "full_name" and {*fold(known).split()} <= {*re.findall(r"\w+", fold(said))}


def told_as(record: Row, name: str, noun: str) -> Any:
    """Return what a record of a kind has under a name, or under what means the same; None for nothing."""
    if name in record:
        return record[name]
    parts = {f: tuple(Field(name=i) for i in v) if isinstance(v, Mapping) else () for f, v in record.items()}
    fields = {f: Field(name=f, role="group" if inner else "word", inner=inner) for f, inner in parts.items()}
    found = at_path(record, Kind(name=noun, key="", fields=fields).find(name) or name)
    return next(filter(None, _names(record, role_of(name))), None) if found is None else found


def at_path(record: Mapping[str, Any], target: str) -> Any:
    """Return a field of a record; ``address.city`` is a part of one."""
    home, _, part = target.partition(".")
    inner = record.get(home)
    return (inner.get(part) if isinstance(inner, Mapping) else None) if part else inner


def put_at(record: dict[str, Any], target: str, value: Any) -> None:
    """Write a field of a record; ``address.city`` is a part of one."""
    home, _, part = target.partition(".")
    inner = record.get(home)
    record[home] = {**(inner if isinstance(inner, dict) else {}), part: value} if part else value


def _values(record: Mapping[str, Any], field: str, role: str) -> list[Any]:
    if "." in field or field in record:
        return [found] if (found := at_path(record, field)) is not None else []
    return [v for f, v in record.items() if role not in ("word", "text") and role_of(f) == role and v is not None]


def _names(record: Mapping[str, Any], role: str) -> list[Any]:
    """A whole name from its parts, or a part from the whole."""
    whole = name_of(record)
    parts = whole.split()
    return {"first_name": parts[:1], "last_name": parts[-1:], "full_name": [whole], "name": [whole]}.get(role, [])


def _within(kind: Kind, record: Row, arguments: Mapping[str, Any]) -> bool:
    """Whether a record's amounts and dates are within the bounds that a search gives."""
    for argument, bound in arguments.items():
        side, field = kind.bound(argument)
        ends: tuple[Any, Any] = (bound, record.get(field)) if side == "least" else (record.get(field), bound)
        low, high = (end[:10] if isinstance(end, str) else end for end in ends)
        alike = all(map(is_number, ends)) or all(isinstance(end, str) for end in ends)
        if side and alike and low > high:
            return False
    return True


def _plain(value: Any) -> str:
    text = folded(str(value))
    return text.rstrip("0").rstrip(".") if isinstance(value, float) else text
