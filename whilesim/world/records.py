"""Records: the world's records at the start, seeded, agreeing with one another.

A record stores keys of what it points at; what follows from another record (the name of a
plan, the lines of a customer) is looked up when it is read, so nothing ever goes stale.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from types import MappingProxyType
from typing import Any, TypeVar

from whilesim.core.jsontext import copied
from whilesim.core.seeds import between, chance, derive, shuffled
from whilesim.core.templates import load_words
from whilesim.core.text import name_words
from whilesim.world.attributes import singular
from whilesim.world.dates import be_of_a_day, date_record, follow_status, may_lack, moment_of, tense_of
from whilesim.world.kinds import Field, Kind, Row, is_number, kind_of_key, other_ends, partners, way_of
from whilesim.world.model import WorldModel
from whilesim.world.targets import MONEY, debt_of
from whilesim.world.values import ISO, PERSONAL, Draw, fitted, key_of, name_of, person_of, price_of, set_apart, value_of

_OF_PERSONS = (*PERSONAL, "address", "street", "city", "zip", "unit", "state", "country")
T = TypeVar("T")
_EMPTY: Row = MappingProxyType({})
_OVER = ("paid", "settled", "closed", "void", "voided", "refunded", "cancelled", "written off")
_MANY = 30
"""Kinds of record in a world from which on it holds fewer of each."""

Record = dict[str, Any]
Records = dict[str, dict[str, Record]]


def build_records(model: WorldModel, seed: int) -> Records:
    """Return kind to key to record. The seed and the model decide every byte."""
    return copied(_build(model, seed))


@lru_cache(maxsize=256)  # a card's rollouts begin with the same records
def _build(model: WorldModel, seed: int) -> Records:
    store = Store(model, {name: {} for name in model.kinds}, seed)
    records = store.records
    for kind in sorted(model.kinds.values(), key=lambda k: _depth(model, k.name)):
        given = (model.spec.records or {}).get(kind.name, ())
        for told in map(dict, given):
            key = str(told.get(kind.key) or f"{kind.name}_{len(records[kind.name]) + 1}")
            records[kind.name][key] = copied(told)
        if given or kind.outbox:
            continue
        count = 1 if kind.single else kind.count if len(model.kinds) < _MANY else min(kind.count, 3)
        for parent in list(records[kind.parent]) if kind.parent else [""]:
            few = between(1, count, seed, kind.name, parent) if kind.parent and count > 2 else count
            for _ in range(few):
                store.add(kind, parent, seed)
    for kind in model.kinds.values():
        told_of = kind.name in (model.spec.records or {})
        for index, record in enumerate(() if kind.outbox else records[kind.name].values()):
            store.fill_links(kind, index, record, given=tuple(record) if told_of else ())
    return records


class Store:
    """The records of one world, drawn so that they agree with one another."""

    def __init__(self, model: WorldModel, records: Records, seed: int) -> None:
        self.model, self.records, self.seed = model, records, seed

    def native(self, kind: str, key: str) -> Any:
        """Return a key as its record spells it: a number where keys are numbers."""
        field = self.model.kinds[kind].key if kind in self.model.kinds else ""
        return self.records.get(kind, {}).get(key, {}).get(field, key)

    def owned(self, name: str, record: Row) -> list[str]:
        """Return the keys of a kind's records that belong to the same owner as a record."""
        above = self.model.kinds.get(self.model.kinds[name].parent)
        key = above.key if above else ""
        mine = record.get(key)
        return [k for k, r in self.records[name].items() if r.get(key) == mine] if mine is not None else []

    def near(self, name: str, record: Row) -> list[str]:
        """Return the keys of a kind's records of the same owner; of all records where the owner has none."""
        return self.owned(name, record) or list(self.records[name])

    def add(self, kind: Kind, parent: str, seed: int, given: Row = _EMPTY) -> str:
        """Draw one more record of a kind, but for the fields that are given, and return its key."""
        model, rows = self.model, self.records[kind.name]
        draw = Draw(seed, model.now, model.locale, kind.name, len(rows))
        told_of = (f for t in kind.fields.values() if t.role != "items" for f in (t, *t.inner))
        person = person_of(draw) if kind.people or any(f.role in _OF_PERSONS for f in told_of) else {}
        key = given.get(kind.key) or key_of(kind, draw, person if kind.name == model.party else {}, rows)
        if kind.key and str(key) in rows and kind.key not in given:
            return str(key)  # of the keys that its schema allows none is left
        record: Record = {kind.key: key} if kind.key else {}
        above: Row = {}
        if owner := model.kinds.get(kind.parent):
            above = self.records[kind.parent].get(parent, {})
            record[owner.key or f"{owner.name}_id"] = above.get(owner.key, parent)
        if kind.name == model.party and not {"full_name", "name", "first_name"} & set(kind.fields):
            record["name"] = person["full_name"]
        person |= {"holder": name_of(above)} if person and owner and owner.people and name_of(above) else {}
        for told in kind.fields.values():
            if told.name in record or (told.role in ("link", "links") and told.name not in given):
                continue
            if told.name in given:
                record[told.name] = given[told.name]
            elif not may_lack(told):
                record[told.name] = value_of(told, draw, {} if told.role == "name" and not kind.people else person)
            elif told.why.startswith("attribute") or not told.nullable:
                record[told.name] = None  # what only an argument tells of is not there before the act
        set_apart(record, {n: f for n, f in kind.fields.items() if n not in given}, draw)
        if kind.name == model.party and kind.status and chance(0.8, *draw.at("usual")):
            record[kind.status] = next((o for o in kind.statuses if o.lower() == "active"), record[kind.status])
        be_of_a_day(model, kind, record, given, draw)
        agree(kind, record, above, draw)
        home, theirs = _home(kind), above.get(_home(owner)) if owner else None
        if isinstance(theirs, dict) and set(theirs) == set(record.get(home) or ()) and chance(0.7, *draw.at("home")):
            record[home] = copied(theirs)
        follow_status(model, kind, record, seed, draw.index)
        if not kind.catalogue and kind.name != "session":
            date_record(model, kind, record, above, given, draw)
        rows[str(key)] = record
        return str(key)

    def stow(self, kind: Kind, seed: int, told: Row) -> str:
        """Put one more record of a shared kind on the shelf that says what is told and can be had, and return its key."""
        key = self.add(kind, "", seed)
        self.records[kind.name][key] |= told
        self.fill_links(kind, len(self.records[kind.name]), self.records[kind.name][key], given=tuple(told))
        if kind.status:
            self.records[kind.name][key][kind.status] = kind.first_status("available", "active") or "available"
        return key

    def fill_links(self, kind: Kind, nth: int, record: Record, unlike: Row = _EMPTY, given: Sequence[str] = ()) -> None:
        """Point at records that exist, the owner's own where the kind has an owner; what is given stays as it is.

        Args:
            unlike: A record that this one is to lead elsewhere than.
        """
        for told in (f for f in kind.fields.values() if (f.inner or f.link in self.records) and f.name not in given):
            at = derive(self.seed, kind.name, nth, told.name)
            rows, linked = record.get(told.name), self.model.kinds.get(told.link)
            if told.inner and isinstance(rows, (list, dict)):
                ends = {f for pair in partners(tuple(record)) for f in pair}
                owner = {f: v for f, v in record.items() if f not in ends}
                record[told.name] = rows = self.point(told, rows, owner, at, unlike)
                if isinstance(rows, list):
                    self.follow(told, rows, record, {f.name: f.options for f in kind.fields.values()})
            own_child = linked is not None and told.role == "links" and linked.parent == kind.name
            if linked is None or told.name in record or told.nullable or own_child:
                continue
            taken = {str(record.get(end)) for end in other_ends(told.name, kind.fields)}
            near = self.near(told.link, record)
            pool = [k for k in near if k not in taken] or [k for k in self.records[told.link] if k not in taken] or near
            if told.role == "links" and pool:
                spread = rotate(pool, at)
                chosen = [*spread[::3], *spread[1::3]][: between(1, 3, at, "links")]
                record[told.name] = [self.native(told.link, k) for k in chosen]
            elif told.role == "link" and pool:
                record[told.name] = self.native(told.link, pool[(at if linked.catalogue else nth) % len(pool)])
        if not given:
            self.repeat_own(kind, record)

    def repeat_own(self, kind: Kind, record: Record) -> None:
        """Fill what repeats the record's own: the items of a shipment, the payments of an order, what all of it costs."""
        lists = {f.link: f.name for f in kind.fields.values() if f.role == "links" and f.name in record}
        costs = [self.records[k].get(str(v), {}).get("price") for k, f in lists.items() for v in record[f]]
        bought = round(sum(prices), 2) if (prices := [p for p in costs if is_number(p)]) else None
        for told in kind.fields.values():
            if told.role == "group" and isinstance(record.get(told.name), (dict, list)):
                own = {i.name: list(record[lists[i.link]]) for i in told.inner if i.link in lists}
                sent = not str(record.get(kind.status, "")).lower().startswith(("pending", "open", "new", "cancel"))
                draw = Draw(0, self.model.now, "", repr(own), 0)
                parcels = [{i.name: value_of(i, draw, {}), **own} for i in told.inner if i.role == "tracking" and own]
                if own:
                    record[told.name] = parcels[:sent] if parcels else {**record[told.name], **own}
            if told.role == "ledger" and told.name in record:
                ways = (n for n in self.model.kinds if n.startswith("payment") and n != kind.name)
                mine = {self.model.kinds[n].key: k[0] for n in ways if (k := self.owned(n, record))}
                amount = record[told.name] if bought is None else bought
                record[told.name] = [{"type": "payment", "amount": amount, **mine}]
        add_up(kind, record, bought)

    def point(self, told: Field, rows: Any, owner: Row, seed: int, unlike: Row = _EMPTY) -> Any:
        """Make the rows of a list, or one group, point at records that exist, others than now, and repeat what those say (a flight's date, a price)."""
        if not isinstance(rows, list):
            return next(iter(self.point(told, [rows], owner, seed, unlike)), rows)
        for inner in told.inner if all(isinstance(row, dict) for row in rows) else ():
            for row in rows if inner.inner else ():
                row |= {f: self.point(inner, v, owner, seed, unlike) for f, v in row.items() if f == inner.name}
            name = kind_of_key(inner.name, self.model.kinds)[0]
            if not name or not self.records[name]:
                continue
            linked, records = self.model.kinds[name], self.records[name]
            present = now if isinstance(now := owner.get(told.name), list) else ()
            taken = {str(r.get(inner.name)) for r in present if isinstance(r, dict)}
            pool = sorted(rotate(self.near(name, owner), derive(seed, inner.name)), key=taken.__contains__)
            if inner.name in owner and not linked.catalogue:
                pool = [str(owner[inner.name])] * len(rows)
            elif way := way_of(linked.fields):
                elsewhere = next((k for k in pool if records[k].get(way[0]) != unlike.get(way[0])), pool[0])
                first = {f: owner[f] for f in way if f in owner} or {f: records[elsewhere].get(f) for f in way}
                pool = self._legs(linked, first, len(rows), taken, seed)
            rows = rows[: len(pool)]
            for row, key in zip(rows, pool, strict=False):
                row |= {f: v for f, v in records.get(key, {}).items() if f in row}
                row[inner.name] = [self.native(name, key)] if inner.role == "links" else self.native(name, key)
        return rows

    def _legs(self, kind: Kind, first: Row, count: int, taken: Container[str], seed: int) -> list[str]:
        """Return a journey from one place to another, and a second one back, put on the shelf where there is none but those taken."""
        rows, way, found, after = self.records[kind.name], way_of(kind.fields), [], f"{self.model.now:%Y-%m-%d}"
        for leg in (first, {way[0]: first.get(way[1]), way[1]: first.get(way[0])})[:count]:
            free = (k for k in rows if k not in taken and tense_of(rows[k].get(kind.status)) != "today")
            fits = (k for k in free if leg.items() <= rows[k].items() and str(rows[k].get("date", "~")) > after)
            if not (key := next(fits, "")):
                key = self.stow(kind, derive(seed, *map(str, leg.values())), leg)
                if str(rows[key].get("date", "~")) <= after:
                    later = moment_of(after, self.model) + timedelta(days=3 + derive(seed, "back") % 7)
                    rows[key]["date"] = f"{later:%Y-%m-%d}"
            found.append(key)
            after = str(rows[key].get("date", ""))
        return found

    def follow(self, told: Field, rows: list[Any], record: Record, choices: Row) -> None:
        """Let a record, or a call, say what its rows say: where the first leg starts, and whether there is one back.

        Legs that are no records themselves are made to lead from where the record starts to where it ends.
        """
        if not rows or not isinstance(rows[0], dict):
            return
        linked = ((kind_of_key(name, self.model.kinds)[0], str(key)) for name, key in rows[0].items())
        targets = [(self.model.kinds[n], r) for n, key in linked if n and (r := self.records[n].get(key))]
        places = {f: row[f] for kind, row in targets for f in way_of(kind.fields) if f in choices and f in row}
        record |= places
        for name, options in choices.items() if places else ():
            way = [o for o in options if ("round" if len(rows) > 1 else "one") in str(o).lower()]
            if name in record and way and len(options) == 2:
                record[name] = way[0]
        if not targets and (ends := way_of({i.name: i for i in told.inner})):
            start, end, via = record.get(ends[0]), record.get(ends[1]), rows[0][ends[1]]
            del rows[1 if via in (start, end) else len(rows) :]
            rows[0][ends[0]], rows[-1][ends[1]] = start or rows[0][ends[0]], end or rows[-1][ends[1]]
            for at in range(1, len(rows)):
                rows[at][ends[0]] = rows[at - 1][ends[1]]
            timetable(rows, [i.name for i in told.inner if i.role == "time"], derive(self.seed, "clock", repr(rows)))


def _depth(model: WorldModel, name: str) -> int:
    """Return how many kinds stand above a kind; parents are drawn before their children."""
    depth, above = 0, model.kinds[name].parent
    while above in model.kinds and depth < len(model.kinds):
        depth, above = depth + 1, model.kinds[above].parent
    return depth


def timetable(rows: Sequence[dict[str, Any]], times: Sequence[str], seed: int) -> None:
    """Give the legs of a journey times of one day, each later than the one before."""
    quarters = sorted(shuffled(range(24, 88), seed)[: len(rows) * len(times)])
    for row in rows:
        row |= {f: f"{(q := quarters.pop(0)) // 4:02d}:{q % 4 * 15:02d}:00"[: len(str(row[f]))] for f in times}


def _home(kind: Kind) -> str:
    """Return the field that holds a record's address; empty for none."""
    return next((f.name for f in kind.fields.values() if f.is_address), "")


def agree(kind: Kind, record: Record, above: Row, draw: Draw) -> None:
    """Make the parts of one record agree with one another, and with what the record above says under the same name."""
    called = str(record.get("name") or above.get("name"))
    for told in kind.fields.values():
        name = told.name
        if told.role == "dob" and "age" in record and ISO.match(str(record.get(name))):
            born = datetime.fromisoformat(record[name])
            record["age"] = draw.now.year - born.year - ((draw.now.month, draw.now.day) < (born.month, born.day))
        if told.role != "money" or not is_number(record.get(name)):
            continue
        if "price" in name and (price := price_of(called, draw, name)):
            record[name] = fitted(price, told, draw)
        elif is_number(above.get(name)) and not kind.catalogue:  # a refund is a part of what was paid
            record[name] = fitted(round(above[name] * between(10, 50, *draw.at(name)) / 100, 2), told, draw)
    for start, end in partners(tuple(record)) if is_number(record.get("nights")) else ():
        if ISO.match(str(record[start])) and ISO.match(str(record[end])):
            days = [datetime.fromisoformat(record[name][:10]) for name in (start, end)]
            record["nights"] = (days[1] - days[0]).days
    add_up(kind, record)
    raise_totals(record)


def add_up(kind: Kind, record: Record, bought: float | None = None) -> None:
    """Let a total be the sum of its parts: what was bought, or else the record's own lines, and taxes and fees."""
    money = [f for f in kind.fields.values() if f.role in ("money", "small") and is_number(record.get(f.name))]
    extra = {f.name: record[f.name] for f in money if _says(f.name, "extra")}
    base = next((f.name for f in money if "subtotal" in f.name.replace("_", "")), "")
    known = {"total", "amount", "price", "cost", "grand", *kind.name.split("_")}
    totals = [f.name for f in money if "total" in name_words(f.name) and f.name not in (*extra, base)]
    total = min(totals, key=lambda name: len({*name_words(name)} - known), default="")
    for told in kind.fields.values():
        parts = record.get(told.name)
        if told.role == "items" and isinstance(parts, list):
            amounts = [_amount(told, row) for row in parts if isinstance(row, dict)]
            _count_up(kind, told, [row for row in parts if isinstance(row, dict)], record)
            bought = sum(amounts) if any(amounts) else bought
        elif told.inner and not told.link and isinstance(parts, dict) and all(map(is_number, parts.values())):
            if total:
                bought = _signed(parts)
            elif told.inner[0].role == "money":  # the better class costs more
                record[told.name] = dict(zip(parts, sorted(parts.values()), strict=True))
    sums = {} if bought is None else {base: bought, total: _signed({"": bought, **extra})}
    for told in (f for f in money if f.name in sums):
        record[told.name] = round(sums[told.name], None if told.type == "integer" else 2)
    owed, whole = debt_of(kind, record)
    if owed:
        status = str(record.get(kind.status, "")).lower()
        left = record[whole] if status else min(record[owed], record[whole])
        record[owed] = 0 if status in _OVER else round(left / 2, 2) if "part" in status else left


def recount(kind: Kind, record: Row, new: Row) -> Record:
    """Return the totals of a record as a change of its lines leaves them; what else is in a total stays in it."""
    lists = [f.name for f in kind.fields.values() if f.role == "items" and f.name in new]
    old, now = copied(dict(record)), copied({**record, **new})
    for each in (old, now) if lists else ():
        add_up(kind, each)
    moved = ((f, now[f] - old[f]) for f in record if f not in new and is_number(record[f]) and is_number(now[f]))
    return {f: now[f] for f in lists} | {f: round(record[f] + more, 2) for f, more in moved if more}


def _count_up(kind: Kind, told: Field, rows: Sequence[Row], record: Record) -> None:
    """Let what counts the lines of a record, or adds up a number that each has, say what they say."""
    stems = {f: frozenset(map(singular, name_words(f))) for f in (*kind.fields, *(i.name for i in told.inner))}
    parts = {stems[i.name] - {"count"}: i.name for i in told.inner if i.role not in MONEY}
    for name in [f for f in kind.fields if is_number(record.get(f)) and {"total", "overall", "count"} & stems[f]]:
        said = stems[name] - {"total", "overall", "count", "of"}
        if numbers := [row[parts[said]] for row in rows if said and said in parts and is_number(row.get(parts[said]))]:
            record[name] = round(sum(numbers), 2)
        elif said == {singular(told.name.split("_")[-1])}:
            record[name] = len(rows)


def _says(name: str, what: str) -> bool:
    """Whether the name of an amount says that it is an extra, that it is taken off, or how many there are."""
    return not {*map(singular, name_words(name))}.isdisjoint(load_words("world_values")["sums"][what])


def _signed(parts: Mapping[str, float]) -> float:
    return round(sum(-v if _says(n, "less") else v for n, v in parts.items()), 2)


def _amount(told: Field, row: Record) -> float:
    """Return what one line comes to, and let its own total say so."""
    money = [i.name for i in told.inner if i.role == "money" and is_number(row.get(i.name))]
    price = next((n for n in money if "price" in n), "")
    if not price:
        return float(row[money[0]]) if money else 0
    counts = (i.name for i in told.inner if i.role not in MONEY and _says(i.name, "many"))
    many = next((row[n] for n in counts if is_number(row.get(n))), 1)
    row |= {n: round(row[price] * many, 2) for n in money if "total" in n}
    return float(row[price] * many)


def raise_totals(values: dict[str, Any]) -> None:
    """Let no part be more than its total: the bags that cost extra, all bags."""
    for name in [n for n in values if n.startswith("total_") and type(values[n]) is int]:
        values[name] = max(v for f, v in values.items() if f.endswith(name[5:]) and type(v) is int)


def rotate(pool: list[T], at: int) -> list[T]:
    """Return the list beginning at another place."""
    start = at % len(pool) if pool else 0
    return pool[start:] + pool[:start]
