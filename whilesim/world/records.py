"""Records: the world's records at the start, seeded, agreeing with one another.

A record stores keys of what it points at; what follows from another record (the name of a
plan, the lines of a customer) is looked up when it is read, so nothing ever goes stale.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from whilesim.core.jsontext import copied
from whilesim.core.seeds import between, chance, derive, pick
from whilesim.core.templates import load_words
from whilesim.world.kinds import Field, Kind, kind_of_key, role_of
from whilesim.world.model import WorldModel
from whilesim.world.values import Draw, key_of, person_of, value_of

_OF_PERSONS = ("address", "group", "phone", "username")

Records = dict[str, dict[str, dict[str, Any]]]


def build_records(model: WorldModel, seed: int) -> Records:
    """Return kind to key to record. The seed and the model decide every byte."""
    return copied(_build(model, seed))


@lru_cache(maxsize=256)  # a card's rollouts begin with the same records
def _build(model: WorldModel, seed: int) -> Records:
    records: Records = {name: {} for name in model.kinds}
    for kind in _in_order(model):
        given = (model.spec.records or {}).get(kind.name, ())
        for told in given:
            records[kind.name][str(told.get(kind.key) or f"{kind.name}_{len(records[kind.name]) + 1}")] = dict(told)
        if given or kind.outbox:
            continue
        parents = list(records.get(kind.parent, {})) if kind.parent else [""]
        count = 1 if kind.single else kind.count
        for parent in parents:
            for _ in range(
                count if not kind.parent else min(count, 1 + derive(seed, kind.name, parent) % count + (count < 3))
            ):
                add_record(model, records, kind, parent, seed)
    for kind in model.kinds.values():
        if not kind.outbox:
            for key in records[kind.name]:
                _fill_links(model, records, kind, key, seed)
    return records


def add_record(model: WorldModel, records: Records, kind: Kind, parent: str, seed: int) -> str:
    """Draw one more record of a kind, and return its key."""
    index = len(records[kind.name])
    draw = Draw(seed, model.now, model.locale, kind.name, index)
    person = person_of(draw) if kind.people or any(f.role in _OF_PERSONS for f in kind.fields.values()) else {}
    like = _like(kind, draw)
    key = key_of(kind.name, like, draw, person if kind.name == model.party else {}, records[kind.name])
    record: dict[str, Any] = {kind.key: int(key) if like.type in ("integer", "number") else key} if kind.key else {}
    if kind.parent in model.kinds:
        record[model.kinds[kind.parent].key or f"{kind.parent}_id"] = _native(records, model.kinds[kind.parent], parent)
    if kind.name == model.party and not {"full_name", "name", "first_name"} & set(kind.fields):
        record["name"] = person["full_name"]
    for told in kind.fields.values():
        if told.role in ("link", "links") or told.name in record:
            continue
        if not told.nullable:
            record[told.name] = value_of(told, draw, {} if told.role == "name" and not kind.people else person)
        elif told.why.startswith("attribute"):
            record[told.name] = None  # what only an argument tells of is not there before the act
    _agree(record, kind, model, draw)
    records[kind.name][key] = record
    return key


def _like(kind: Kind, draw: Draw) -> Field:
    """Let a key say what its record is: ``gift_card_0000000`` is no credit card."""
    told = kind.fields.get("type") or kind.fields.get("method_type")
    found = re.fullmatch(r"[a-z_]+_(\d+)", kind.key_like.example)
    if not told or not told.options or not found:
        return kind.key_like
    prefix = str(value_of(told, draw, {})).lower().replace(" ", "_")
    return replace(kind.key_like, example=f"{prefix}_{found[1]}")


def note_of(model: WorldModel, text: str, kind: str, days: int, **values: str) -> dict[str, str]:
    """Return a dated entry for a record's notes."""
    day = model.now - timedelta(days=days)
    return {
        "date": f"{day:%Y-%m-%d}",
        "text": text.format(date=f"{day:%Y-%m-%d}", object=kind.replace("_", " "), **values),
    }


def _in_order(model: WorldModel) -> list[Kind]:
    """Parents before children; shared records first."""
    done: list[str] = []

    def visit(name: str, trail: tuple[str, ...]) -> None:
        kind = model.kinds[name]
        if name in done or name in trail:
            return
        if kind.parent in model.kinds:
            visit(kind.parent, (*trail, name))
        done.append(name)

    for name in sorted(model.kinds, key=lambda n: not model.kinds[n].catalogue):
        visit(name, ())
    return [model.kinds[n] for n in done]


def _native(records: Records, kind: Kind, key: str) -> Any:
    return records[kind.name].get(key, {}).get(kind.key, key)


def _agree(record: dict[str, Any], kind: Kind, model: WorldModel, draw: Draw) -> None:
    """Make the parts of one record agree: totals, dates in order, dates that follow from the status."""
    total = next((f for f in kind.fields if "total" in f and kind.fields[f].role == "money"), "")
    for told in kind.fields.values():
        parts = record.get(told.name)
        if total and isinstance(parts, dict) and all(isinstance(v, (int, float)) for v in parts.values()):
            less = [n for n in parts if "credit" in n or "discount" in n]
            for name in less:
                parts[name] = round(min(parts[name], sum(v for n, v in parts.items() if n not in less) / 2), 2)
            record[total] = round(sum(-v if n in less else v for n, v in parts.items()), 2)
        if isinstance(parts, dict) and {"start_date", "end_date"} <= set(parts):
            start = model.now - timedelta(days=between(32, 60, *draw.at("period")))
            parts |= {"start_date": f"{start:%Y-%m-%d}", "end_date": f"{start + timedelta(days=29):%Y-%m-%d}"}
    times = [f for f in kind.fields if kind.fields[f].role == "time" and f in record]
    record |= dict(zip(times, sorted(record[f] for f in times), strict=True))
    status = str(record.get(kind.status, "")).lower()
    if status in ("overdue", "late", "expired") and "due_date" in record:
        record["due_date"] = f"{model.now - timedelta(days=between(3, 20, *draw.at('due'))):%Y-%m-%d}"
    if "issue_date" in record and "due_date" in record and record["issue_date"] >= record["due_date"]:
        record["issue_date"] = f"{datetime.fromisoformat(record['due_date']) - timedelta(days=21):%Y-%m-%d}"
    if not kind.catalogue and kind.name != "session":
        moment = model.now - timedelta(
            days=between(1, 40, *draw.at("updated")), minutes=between(1, 700, *draw.at("minute"))
        )
        record["updated_at"] = f"{moment:%Y-%m-%d %H:%M:%S}"
        if chance(0.4, *draw.at("notes")):
            text = pick(load_words("world_values")["notes"], *draw.at("note"))
            record["notes"] = [note_of(model, text, kind.name, between(3, 40, *draw.at("noted")))]


def _fill_links(model: WorldModel, records: Records, kind: Kind, key: str, seed: int) -> None:
    """Point at records that exist: the owner's own where the kind has an owner."""
    record = records[kind.name][key]
    index = list(records[kind.name]).index(key)
    for told in kind.fields.values():
        at = derive(seed, kind.name, key, told.name)
        if told.inner and isinstance(record.get(told.name), list):
            record[told.name] = point(model, records, told, record[told.name], record, at)
            for row in record[told.name][:1]:
                _follow(model, records, kind, told, row, record)
        linked = model.kinds.get(told.link)
        if (
            linked is None
            or told.name in record
            or told.nullable
            or (told.role == "links" and linked.parent == kind.name)
        ):
            continue
        pool = owned(model, records, told.link, record) or list(records[told.link])
        if told.role == "links" and pool:
            record[told.name] = [
                records[told.link][k].get(linked.key, k) for k in rotate(pool, at)[: between(1, 3, at, "links")]
            ]
        elif told.role == "link" and pool:
            chosen = pool[(at if linked.catalogue else index) % len(pool)]
            record[told.name] = records[told.link][chosen].get(linked.key, chosen)
    _fill_groups(records, kind, record)


def _fill_groups(records: Records, kind: Kind, record: dict[str, Any]) -> None:
    """Fill what repeats the record's own: the items of a shipment, the payments of an order."""
    for told in kind.fields.values():
        for inner in told.inner if told.role == "group" else ():
            own = next(
                (
                    f.name
                    for f in kind.fields.values()
                    if inner.link and f.link == inner.link and f.role == "links" and f.name in record
                ),
                "",
            )
            if own:
                record[told.name] = {**record[told.name], inner.name: list(record[own])}
        if told.role == "ledger" and told.name in record:
            paid = {k: record[k] for k in record if "payment" in k and "id" in k}
            bought = [
                records[f.link].get(str(k), {}).get("price")
                for f in kind.fields.values()
                if f.role == "links"
                for k in record.get(f.name) or ()
            ]
            prices = [p for p in bought if isinstance(p, (int, float))]
            amount = round(sum(prices), 2) if prices else record[told.name]
            record[told.name] = [{"type": "payment", "amount": amount, **paid}]


def point(
    model: WorldModel, records: Records, told: Field, rows: list[Any], owner: Mapping[str, Any], seed: int
) -> list[Any]:
    """Make the rows of a list point at records that exist, and repeat what those say (a flight's date, a price).

    Legs of a journey are cut to one, which needs no connection.
    """
    for inner in told.inner:
        name = kind_of_key(inner.name, model.kinds)[0]
        if not name or not records[name]:
            continue
        linked = model.kinds[name]
        rows = rows[:1] if "destination" in linked.fields else rows
        pool = rotate(owned(model, records, name, owner) or list(records[name]), derive(seed, inner.name))
        rows = rows[: len(pool)]
        for row, key in zip(rows, pool, strict=False):
            target = records[name][key]
            row |= {f: target[f] for f in row if f in target} | {inner.name: target.get(linked.key, key)}
    return rows


def _follow(model: WorldModel, records: Records, kind: Kind, told: Field, row: Any, record: dict[str, Any]) -> None:
    """Let a record say what its first row says: a reservation's origin is its flight's."""
    for inner in told.inner:
        name = kind_of_key(inner.name, model.kinds)[0]
        target = records.get(name, {}).get(str(row.get(inner.name)), {}) if isinstance(row, Mapping) else {}
        record |= {f: v for f, v in target.items() if f in kind.fields and role_of(f) == "airport"}


def rotate(pool: list[str], at: int) -> list[str]:
    """Return the list beginning at another place."""
    start = at % len(pool) if pool else 0
    return pool[start:] + pool[:start]


def owned(model: WorldModel, records: Records, name: str, record: Mapping[str, Any]) -> list[str]:
    """Return the keys of a kind's records that belong to the same owner as a record."""
    target = model.kinds[name]
    key = model.kinds[target.parent].key if target.parent in model.kinds else ""
    mine = record.get(key)
    return [k for k, r in records[name].items() if r.get(key) == mine] if mine is not None else []
