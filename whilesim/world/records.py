"""Records: the world's records at the start, seeded, agreeing with one another.

A record stores keys of what it points at; what follows from another record (the name of a
plan, the lines of a customer) is looked up when it is read, so nothing ever goes stale.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from whilesim.core.jsontext import copied
from whilesim.core.seeds import between, chance, derive, pick
from whilesim.core.templates import load_words
from whilesim.world.kinds import Field, Kind, is_address, kind_of_key, role_of
from whilesim.world.model import WorldModel
from whilesim.world.values import PERSONAL, Draw, key_of, person_of, usual_price, value_of

_OF_PERSONS = (*PERSONAL, "address", "street", "city", "zip", "unit", "state", "country")
_EARLIER = ("paid", "overdue", "late", "expired", "disputed", "refunded")
_BIRTH = re.compile("creat|joined|registered|opened|since|activation|purchase|order_date")
_MANY = 30
"""Kinds of record in a world from which on it holds fewer of each."""

Records = dict[str, dict[str, dict[str, Any]]]


def build_records(model: WorldModel, seed: int) -> Records:
    """Return kind to key to record. The seed and the model decide every byte."""
    return copied(_build(model, seed))


@lru_cache(maxsize=256)  # a card's rollouts begin with the same records
def _build(model: WorldModel, seed: int) -> Records:
    store = Store(model, {name: {} for name in model.kinds}, seed)
    records = store.records
    for kind in sorted(model.kinds.values(), key=lambda k: _depth(model, k.name)):
        given = (model.spec.records or {}).get(kind.name, ())
        for told in given:
            records[kind.name][str(told.get(kind.key) or f"{kind.name}_{len(records[kind.name]) + 1}")] = dict(told)
        if given or kind.outbox:
            continue
        count = 1 if kind.single else kind.count if len(model.kinds) < _MANY else min(kind.count, 3)
        for parent in list(records[kind.parent]) if kind.parent else [""]:
            few = 1 + derive(seed, kind.name, parent) % count + (count < 3) if kind.parent else count
            for _ in range(min(count, few)):
                store.add(kind, parent, seed)
    for kind in model.kinds.values():
        if not kind.outbox:
            for index, record in enumerate(records[kind.name].values()):
                store.fill_links(kind, index, record)
    return records


class Store:
    """The records of one world, drawn so that they agree with one another."""

    def __init__(self, model: WorldModel, records: Records, seed: int) -> None:
        self.model, self.records, self.seed = model, records, seed

    def native(self, kind: str, key: str) -> Any:
        """Return a key as its record spells it: a number where keys are numbers."""
        field = self.model.kinds[kind].key if kind in self.model.kinds else ""
        return self.records.get(kind, {}).get(key, {}).get(field, key)

    def owned(self, name: str, record: Mapping[str, Any]) -> list[str]:
        """Return the keys of a kind's records that belong to the same owner as a record."""
        above = self.model.kinds.get(self.model.kinds[name].parent)
        key = above.key if above else ""
        mine = record.get(key)
        return [k for k, r in self.records[name].items() if r.get(key) == mine] if mine is not None else []

    def near(self, name: str, record: Mapping[str, Any]) -> list[str]:
        """Return the keys of a kind's records of the same owner; of all records where the owner has none."""
        return self.owned(name, record) or list(self.records[name])

    def add(self, kind: Kind, parent: str, seed: int, given: Mapping[str, Any] = MappingProxyType({})) -> str:
        """Draw one more record of a kind, but for the fields that are given, and return its key."""
        model, rows, outline = self.model, self.records[kind.name], _outlines(self.model)[kind.name]
        draw = Draw(seed, model.now, model.locale, kind.name, len(rows))
        person = person_of(draw) if outline.person else {}
        like = _like(kind, draw)
        key = key_of(kind.name, like, draw, person if kind.name == model.party else {}, rows)
        record: dict[str, Any] = {kind.key: int(key) if like.type in ("integer", "number") else key} if kind.key else {}
        above: Mapping[str, Any] = {}
        if kind.parent in model.kinds:
            above, field = self.records[kind.parent].get(parent, {}), model.kinds[kind.parent].key
            record[field or f"{kind.parent}_id"] = above.get(field, parent)
        if kind.name == model.party and not {"full_name", "name", "first_name"} & set(kind.fields):
            record["name"] = person["full_name"]
        for told in kind.fields.values():
            if told.name in record or (told.role in ("link", "links") and told.name not in given):
                continue
            if told.name in given:
                record[told.name] = given[told.name]
            elif not told.nullable:
                record[told.name] = value_of(told, draw, {} if told.role == "name" and not kind.people else person)
            elif told.why.startswith("attribute"):
                record[told.name] = None  # what only an argument tells of is not there before the act
        if kind.name == model.party and kind.status and chance(0.8, *draw.at("usual")):
            active = (o for o in kind.statuses if o.lower() == "active")
            record[kind.status] = next(active, record[kind.status])
        _agree(record, outline, above, draw)
        home: Any = above.get(_outlines(model)[kind.parent].home) if kind.parent in model.kinds else None
        own: Any = record.get(outline.home)
        if own and type(home) is type(own) and set(home) == set(own) and chance(0.7, *draw.at("home")):
            record[outline.home] = copied(home)
        set_dues(model, kind, record, seed, draw.index)
        if not kind.catalogue and kind.name != "session":
            _date_record(model, kind, record, outline, draw)
        rows[key] = record
        return key

    def fill_links(self, kind: Kind, index: int, record: dict[str, Any]) -> None:
        """Point at records that exist: the owner's own where the kind has an owner."""
        for told in _outlines(self.model)[kind.name].pointing:
            at = derive(self.seed, kind.name, index, told.name)
            rows = record.get(told.name)
            if told.inner and isinstance(rows, list):
                owner = {k: v for k, v in record.items() if k not in ("origin", "destination")}
                record[told.name] = rows = self.point(told, rows, owner, at)
                self.follow(rows, record, {f.name: f.options for f in kind.fields.values()})
            linked = self.model.kinds.get(told.link)
            own_child = linked is not None and told.role == "links" and linked.parent == kind.name
            if linked is None or told.name in record or told.nullable or own_child:
                continue
            pool = self.near(told.link, record)
            if told.role == "links" and pool:
                spread = rotate(pool, at)
                chosen = [*spread[::3], *spread[1::3]][: between(1, 3, at, "links")]
                record[told.name] = [self.native(told.link, k) for k in chosen]
            elif told.role == "link" and pool:
                record[told.name] = self.native(told.link, pool[(at if linked.catalogue else index) % len(pool)])
        self.repeat_own(kind, record)

    def repeat_own(self, kind: Kind, record: dict[str, Any]) -> None:
        """Fill what repeats the record's own: the items of a shipment, the payments of an order."""
        lists = {f.link: f.name for f in kind.fields.values() if f.role == "links" and f.name in record}
        for told in kind.fields.values():
            if told.role == "group" and isinstance(record.get(told.name), (dict, list)):
                own = {i.name: list(record[lists[i.link]]) for i in told.inner if i.link in lists}
                parcel = next((i for i in told.inner if i.role == "tracking"), None)
                if parcel and own:
                    sent = not str(record.get(kind.status, "")).lower().startswith(("pending", "open", "new"))
                    number = value_of(parcel, Draw(0, self.model.now, "", repr(own), 0), {})
                    record[told.name] = [{parcel.name: number, **own}] if sent else []
                elif own:
                    record[told.name] = {**record[told.name], **own}
            if told.role == "ledger" and told.name in record:
                bought = [self.records[k].get(str(v), {}).get("price") for k, f in lists.items() for v in record[f]]
                prices = [p for p in bought if isinstance(p, (int, float))]
                ways = (n for n in self.model.kinds if n.startswith("payment") and n != kind.name)
                mine = {self.model.kinds[n].key: k[0] for n in ways if (k := self.owned(n, record))}
                before = record[told.name]
                amount = round(sum(prices), 2) if prices else before
                record[told.name] = [{"type": "payment", "amount": amount, **mine}]

    def point(self, told: Field, rows: list[Any], owner: Mapping[str, Any], seed: int) -> list[Any]:
        """Make the rows of a list point at records that exist, and repeat what those say (a flight's date, a price).

        The legs of a journey lead to where its owner goes, and the second one back.
        """
        for inner in told.inner:
            name = kind_of_key(inner.name, self.model.kinds)[0]
            if not name or not self.records[name]:
                continue
            linked, records = self.model.kinds[name], self.records[name]
            pool = rotate(self.near(name, owner), derive(seed, inner.name))
            if {"origin", "destination"} <= set(linked.fields):
                first = {f: owner[f] for f in ("origin", "destination") if f in owner}
                first = first or {f: records[pool[0]][f] for f in ("origin", "destination")}
                back = {"origin": first.get("destination"), "destination": first.get("origin")}
                taken = {str(row.get(inner.name)) for row in owner.get(told.name) or ()}
                pool = [self._leg(linked, first, "", taken, seed)]
                after = records[pool[0]].get("date", "")
                pool += [self._leg(linked, back, after, taken, seed) for _ in rows[1:2]]
            rows = rows[: len(pool)]
            for row, key in zip(rows, pool, strict=False):
                row |= {f: v for f, v in records[key].items() if f in row} | {inner.name: self.native(name, key)}
        return rows

    def _leg(self, kind: Kind, way: Mapping[str, Any], after: str, taken: Container[str], seed: int) -> str:
        """Return a journey from one place to another after a date, put on the shelf where there is none but those taken."""
        rows = self.records[kind.name]
        fits = (k for k, r in rows.items() if way.items() <= r.items() and str(r.get("date", "~")) > after)
        found = [k for k in fits if k not in taken]
        key = found[0] if found else self.add(kind, "", derive(seed, *map(str, way.values())))
        rows[key] |= way
        if after and not found and "date" in rows[key]:
            later = datetime.fromisoformat(after) + timedelta(days=3 + derive(seed, "back") % 7)
            rows[key]["date"] = f"{later:%Y-%m-%d}"
        return key

    def follow(self, rows: Sequence[Any], record: dict[str, Any], choices: Mapping[str, Sequence[Any]]) -> None:
        """Let a record, or a call, say what its rows say: where the first leg starts, and whether there is one back."""
        if not rows or not isinstance(rows[0], Mapping):
            return
        targets = (
            self.records.get(kind_of_key(n, self.model.kinds)[0], {}).get(str(v), {}) for n, v in rows[0].items()
        )
        places = {f: v for target in targets for f, v in target.items() if f in choices and role_of(f) == "airport"}
        record |= places
        for name, options in choices.items() if places else ():
            way = [o for o in options if ("round" if len(rows) > 1 else "one") in str(o).lower()]
            if name in record and way and len(options) == 2:
                record[name] = way[0]


@dataclass(frozen=True, slots=True)
class _Outline:
    """What of a kind's fields has to agree with one another."""

    person: bool
    total: str
    sums: tuple[str, ...]
    """Groups and lists of numbers."""
    times: tuple[str, ...]
    past: tuple[str, ...]
    """Dates that lie behind, the first of all left out."""
    birth: str
    prices: tuple[str, ...]
    home: str
    """The address."""
    pointing: tuple[Field, ...]
    """Fields that point at records."""


@lru_cache(maxsize=64)
def _outlines(model: WorldModel) -> dict[str, _Outline]:
    return {kind.name: _outline(kind, model.kinds) for kind in model.kinds.values()}


def _outline(kind: Kind, kinds: Mapping[str, Kind]) -> _Outline:
    roles = {f.name: f.role for f in kind.fields.values()}
    dates = [f for f, role in roles.items() if role in ("date", "moment") and f != "updated_at"]
    birth = next((f for f in dates if _BIRTH.search(f)), "")
    return _Outline(
        person=kind.people
        or any(f.role in _OF_PERSONS for t in kind.fields.values() for f in (t, *t.inner) if t.role != "items"),
        total=next((f for f, role in roles.items() if "total" in f and role == "money"), ""),
        sums=tuple(f.name for f in kind.fields.values() if f.inner and not f.link),
        times=tuple(f for f, role in roles.items() if role == "time"),
        past=tuple(f for f in dates if f != birth) if "date" not in kind.fields else (),
        birth=birth,
        prices=tuple(f for f, role in roles.items() if role == "money" and "price" in f),
        home=next((f.name for f in kind.fields.values() if is_address(f)), ""),
        pointing=tuple(f for f in kind.fields.values() if f.inner or f.link in kinds),
    )


def _like(kind: Kind, draw: Draw) -> Field:
    """Let a key say what its record is: ``gift_card_0000000`` is no credit card."""
    told = kind.fields.get("type") or kind.fields.get("method_type")
    found = re.fullmatch(r"[a-z_]+_(\d+)", kind.key_like.example)
    if not told or not told.options or not found:
        return kind.key_like
    prefix = str(value_of(told, draw, {})).lower().replace(" ", "_")
    return replace(kind.key_like, example=f"{prefix}_{found[1]}")


def add_note(model: WorldModel, record: dict[str, Any], text: str, kind: str, days: int) -> None:
    """Write a dated entry into a record's notes; the record was last touched then, or later."""
    day = (model.now - timedelta(days=days)).date().isoformat()
    note = {"date": day, "text": text.format(date=day, object=kind.replace("_", " "))}
    record["notes"] = sorted([*(record.get("notes") or ()), note], key=lambda n: str(n["date"]))
    if "updated_at" in record:
        record["updated_at"] = max(record["updated_at"], f"{day} 10:{derive(days, text) % 60:02d}:00")


def _depth(model: WorldModel, name: str) -> int:
    """Return how many kinds stand above a kind; parents are drawn before their children."""
    depth, above = 0, model.kinds[name].parent
    while above in model.kinds and depth < len(model.kinds):
        depth, above = depth + 1, model.kinds[above].parent
    return depth


def _agree(record: dict[str, Any], outline: _Outline, above: Mapping[str, Any], draw: Draw) -> None:
    """Make the parts of one record agree: sums, prices of things of one name, counts, times."""
    for name in outline.sums:
        parts = record.get(name)
        if not isinstance(parts, dict) or not all(type(v) in (int, float) for v in parts.values()):
            continue
        if outline.total:
            signs = {n: -1 if re.search("credit|discount", n) else 1 for n in parts}
            record[outline.total] = round(sum(signs[n] * v for n, v in parts.items()), 2)
        else:
            record[name] = dict(zip(parts, sorted(parts.values()), strict=True))  # the better class costs more
    if outline.prices and (usual := usual_price(str(record.get("name") or above.get("name")))):
        for name in outline.prices:
            record[name] = max(round(usual * between(85, 120, *draw.at(name)) / 100) - 0.01, 0.99)
    if outline.times:
        record |= dict(zip(outline.times, sorted(record[f] for f in outline.times), strict=True))
    raise_totals(record)


def raise_totals(values: dict[str, Any]) -> None:
    """Let no part be more than its total: the bags that cost extra, all bags."""
    for name in [n for n in values if n.startswith("total_") and type(values[n]) is int]:
        values[name] = max(v for f, v in values.items() if f.endswith(name[5:]) and type(v) is int)


def set_dues(model: WorldModel, kind: Kind, record: dict[str, Any], seed: int, index: int) -> None:
    """Let issue, due and period dates follow from the status: what is paid or overdue is of an earlier month."""
    if "due_date" not in record:
        return
    late = str(record.get(kind.status, "")).lower() in _EARLIER
    days = 31 + 30 * (index % 3) if late else 0
    issued = model.now - timedelta(days=days + between(1, 9, seed, kind.name, index, "issued"))
    end = issued - timedelta(days=2)
    dates = {"issue_date": issued, "due_date": issued + timedelta(days=18)}
    record |= {f: f"{day:%Y-%m-%d}" for f, day in dates.items() if f in record}
    for parts in record.values():
        if isinstance(parts, dict) and {"start_date", "end_date"} <= set(parts):
            parts |= {"start_date": f"{end - timedelta(days=29):%Y-%m-%d}", "end_date": f"{end:%Y-%m-%d}"}


def _date_record(model: WorldModel, kind: Kind, record: dict[str, Any], outline: _Outline, draw: Draw) -> None:
    """Put a record's dates in order: made before all that happened to it, last touched after that."""
    now = model.now.isoformat(" ", "seconds")
    known = sorted(str(record[f]) for f in outline.past if record.get(f) and str(record[f]) < now)
    if outline.birth and isinstance(born := record.get(outline.birth), str):
        days = between(200, 1500, *draw.at("born")) if kind.name == model.party else between(1, 20, *draw.at("born"))
        if kind.name == model.party or (known and born > known[0]):
            first = datetime.fromisoformat((known[0] if known else born)[:10]) - timedelta(days=days)
            record[outline.birth] = f"{first:%Y-%m-%d}{born[10:]}"
        known.append(record[outline.birth])
    last = max(known, default="")
    moment = model.now - timedelta(days=between(1, 40, *draw.at("updated")), minutes=derive(*draw.at("minute")) % 700)
    record["updated_at"] = max(moment.isoformat(" ", "seconds"), last if len(last) > 10 else f"{last} 09:20:00")
    record["notes"] = []
    if chance(0.4, *draw.at("notes")):
        words = load_words("world_values")
        told = [*words["notes"], *words["notes"], *words["history"].values(), words["partial"]]
        add_note(model, record, pick(told, *draw.at("note")), kind.name, between(3, 40, *draw.at("noted")))


def rotate(pool: list[str], at: int) -> list[str]:
    """Return the list beginning at another place."""
    start = at % len(pool) if pool else 0
    return pool[start:] + pool[:start]
