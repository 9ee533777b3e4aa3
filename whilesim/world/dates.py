"""Dates: those of one record in order, and in keeping with its status."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from whilesim.core.seeds import between, chance, derive, pick
from whilesim.core.templates import load_words
from whilesim.core.text import name_words
from whilesim.world.attributes import pattern
from whilesim.world.kinds import BIRTH, Field, Kind, Row, happened, is_number
from whilesim.world.model import WorldModel
from whilesim.world.values import ISO, Draw

_DATES = ("date", "moment")
_TIMED = (*_DATES, "future", "expiry")
_DAY = re.compile(r"\d{4}-\d\d-\d\d(?!\d)")
_FIXED = re.compile(f"{BIRTH.pattern}|birth|dob|expir|updated_at")
_NUMBERS = ("integer", "number")
_EARLIER = ("paid", "overdue", "late", "expired", "disputed", "refunded")


def add_note(model: WorldModel, record: dict[str, Any], text: str, kind: str, days: int) -> None:
    """Write a dated entry into a record's notes, be they a list or a text; the record was last touched then, or later."""
    born = max((str(v)[:10] for f, v in record.items() if BIRTH.search(f) and ISO.match(str(v))), default="")
    day = max((model.now - timedelta(days=days)).date().isoformat(), born)
    told, notes = text.format(date=day, object=kind.replace("_", " ")), record.get("notes") or ()
    if isinstance(record.get("notes"), str):
        record["notes"] = f"{record['notes']} {told}".strip()
    else:
        dated = [n for n in notes if isinstance(n, dict) and "date" in n]
        others = [n for n in notes if n not in dated]
        record["notes"] = [*others, *sorted([*dated, {"date": day, "text": told}], key=lambda n: str(n["date"]))]
    if isinstance(touched := record.get("updated_at"), str):
        record["updated_at"] = max(touched, f"{day} 10:{derive(days, text) % 60:02d}:00")


def be_of_a_day(model: WorldModel, kind: Kind, record: dict[str, Any], given: Row, draw: Draw) -> None:
    """Let what has a day, and is booked or has a status, be of yesterday, today or tomorrow, and its status say so.

    What is booked and can be cancelled starts on a day to come, mostly; its other days move along.
    The status follows the date: were it the other way round, a word more in a policy would move dates.
    """
    tense, booked = {s: tense_of(s) for s in kind.statuses}, kind.name in _booked(model)
    planned, tenses = booked or "ahead" in tense.values(), {*tense.values(), *([""] if booked else ())}
    rows = (record, *(v for v in record.values() if booked and isinstance(v, dict)))
    dated = [(row, n) for row in rows for n, v in row.items() if _is_day(v) and n != kind.key]
    days = [d for d in dated if not (_FIXED.search(d[1]) or happened(d[1]))]
    named = ("date", *([f"{kind.name.split('_')[-1]}_date"] if planned else ()))
    first = (d for d in days if booked and pattern("starts").search("_".join(name_words(d[1]))))
    row, name = next((d for n in named for d in days if d == (record, n)), next(first, (record, "")))
    if not name or not (record.get(kind.status) or booked):
        return
    when = "today" if chance(0.1 if booked else 0.2, *draw.at("today")) or tenses == {"today"} else ""
    if kind.status in given:
        when = tense_of(given[kind.status])
    elif not when and planned:
        when = "over" if {"over", ""} & tenses and chance(0.15 if booked else 0.3, *draw.at("over")) else "ahead"
    if name not in given:
        begins = _moved(row[name], when, draw)
        later = datetime.fromisoformat(begins[:10]) - datetime.fromisoformat(row[name][:10])
        for part, n in [d for d in days if d[1] not in given] if booked else [(row, name)]:
            part[n] = f"{datetime.fromisoformat(part[n][:10]) + later:%Y-%m-%d}{part[n][10:]}"
    unlike = {"today": ["over"], "ahead": ["over", "today"], "over": ["ahead", "today"], "": ["today"]}[when]
    fits = [s for s in tense if tense[s] == when == "today"] or [s for s in tense if tense[s] not in unlike]
    if fits and kind.status not in given and record[kind.status] not in fits:
        record[kind.status] = pick(fits, *draw.at("moving"))


def _is_day(value: Any) -> bool:
    """Whether a value is a date of the calendar, and of no far future: '2024-10-1234' is a number of something."""
    try:
        return bool(_DAY.match(str(value))) and datetime.fromisoformat(str(value)[:10]).year < 9000
    except ValueError:
        return False


@lru_cache(maxsize=64)
def _booked(model: WorldModel) -> frozenset[str]:
    """Return the kinds whose records are booked for some day, where a tool calls that off or puts it off."""
    words, made, ended = load_words("world_values")["booked"], set(), set()
    for deed in model.deeds.values():
        moves = deed.action == "change" and any(map(pattern("starts").search, deed.sets.values()))
        ended |= {deed.kind} if moves or deed.verb in words["ends"] else set()
        made |= {deed.kind} if deed.verb in words["makes"] or deed.kind.split("_")[-1] in words["nouns"] else set()
    return frozenset(n for n in made & ended & {*model.kinds} if not model.kinds[n].catalogue)


def tense_of(status: Any) -> str:
    """Return when a thing of this status takes place: ``today``, ``ahead`` or ``over``; empty where it does not say."""
    tenses = load_words("world_values")["tenses"]
    return next((tense for tense, words in tenses.items() if str(status).lower() in words), "")


def _moved(date: str, when: str, draw: Draw) -> str:
    """Return a date of today, ahead of it or behind it; one that is so already, or of no such time, stays."""
    today, number = f"{draw.now:%Y-%m-%d}", derive(*draw.at("when"))
    right = {"today": date[:10] == today, "ahead": date[:10] > today, "over": date[:10] < today}
    days = {"today": 0, "ahead": 2 + number % 24, "over": -2 - number % 59}
    return date if right.get(when, True) else f"{draw.now + timedelta(days=days[when]):%Y-%m-%d}{date[10:]}"


def follow_status(model: WorldModel, kind: Kind, record: dict[str, Any], seed: int, index: int) -> None:
    """Let dates follow from the status: what is paid or overdue is of an earlier month, and only what is suspended was."""
    status = str(record.get(kind.status, "")).lower()
    for told in kind.fields.values():
        stems = {w[:5] for w in name_words(told.name)} if may_lack(told) and told.role in _DATES else set()
        if stems and stems & {o.lower()[:5] for o in kind.statuses} and told.type not in _NUMBERS:
            since = model.now - timedelta(days=between(1, 20, seed, kind.name, index, told.name))
            record[told.name] = f"{since:%Y-%m-%d}" if status[:5] in stems else None
        if told.name.endswith("_status") and record.get(told.name) == "pending" and not told.options:
            record[told.name] = "completed" if record.get(f"{told.name.removesuffix('_status')}_date") else "pending"
    if not ISO.match(str(record.get("due_date"))):
        return
    days = 31 + 30 * (index % 3) if status in _EARLIER else 0
    issued = model.now - timedelta(days=days + between(1, 9, seed, kind.name, index, "issued"))
    end = issued - timedelta(days=2)
    dates = {"issue_date": issued, "due_date": issued + timedelta(days=18)}
    record |= {f: f"{day:%Y-%m-%d}" for f, day in dates.items() if ISO.match(str(record.get(f)))}
    spans = (v for f, v in record.items() if isinstance(v, dict) and {"period", "cycle"} & {*name_words(f)})
    for parts in (v for v in spans if {"start_date", "end_date"} <= set(v)):
        parts |= {"start_date": f"{end - timedelta(days=29):%Y-%m-%d}", "end_date": f"{end:%Y-%m-%d}"}


def date_record(model: WorldModel, kind: Kind, record: dict[str, Any], above: Row, given: Row, draw: Draw) -> None:
    """Put a record's dates in order: made after what it belongs to, then begun, then due, and last touched after all that happened."""
    now, birth = model.now.isoformat(" ", "seconds"), _birth(kind)
    _set_in_order(kind, record, given, draw)
    dates = (f.name for f in kind.fields.values() if f.role in _DATES and f.name not in (birth, "updated_at"))
    known = sorted(d for f in dates if (d := str(record.get(f) or now)) < now and ISO.match(d))
    if birth and ISO.match(born := str(record.get(birth))):
        earliest = str(above.get(_birth(model.kinds[kind.parent])) or "") if above else ""
        days = between(*((200, 1500) if kind.name == model.party else (1, 20)), *draw.at("born"))
        if kind.name == model.party or (known and born > known[0]):
            first = moment_of(known[0] if known else born, model) - timedelta(days=days)
            record[birth] = f"{first:%Y-%m-%d}{born[10:]}"
        elif born < earliest:
            start = moment_of(earliest, model)
            later = start + (model.now - start) * between(5, 95, *draw.at("born")) / 100
            record[birth] = later.isoformat(" ", "seconds")[: len(born)]
        known.append(record[birth])
    last = max(known, default="")
    moment = model.now - timedelta(days=between(1, 40, *draw.at("updated")), minutes=derive(*draw.at("minute")) % 700)
    types = {n: kind.fields[n].type for n in ("updated_at", "notes") if n in kind.fields}
    if types.get("updated_at") not in _NUMBERS:
        record["updated_at"] = max(moment.isoformat(" ", "seconds"), last if len(last) > 10 else f"{last} 09:20:00")
    record["notes"] = "" if types.get("notes") == "string" else []
    if chance(0.4, *draw.at("notes")):
        words = load_words("world_values")
        told = [*words["notes"], *words["notes"], *words["history"].values(), words["partial"]]
        add_note(model, record, pick(told, *draw.at("note")), kind.name, between(3, 40, *draw.at("noted")))


def _set_in_order(kind: Kind, record: dict[str, Any], given: Row, draw: Draw) -> None:
    """Let what begins come before what is due, and what was done to it after it began; what is given stays."""
    words, today = load_words("world_values"), f"{draw.now:%Y-%m-%d}"
    names = [f.name for f in kind.fields.values() if f.role in _TIMED and _is_day(record.get(f.name))]
    done = [n for n in names if happened(n)]
    late = [n for n in names if n not in done and {*words["late"]} & {*name_words(n)}]
    early = [n for n in names if n not in (*done, *late, "updated_at") and not BIRTH.search(n)]
    for first, last in ((f, n) for f in early for n in late):
        if record[first] >= record[last] and not (first in given and last in given):
            fixed, moved, sign = (first, last, 1) if first in given or first == "date" else (last, first, -1)
            day = datetime.fromisoformat(record[fixed][:10]) + timedelta(days=sign * between(2, 14, *draw.at(moved)))
            record[moved] = f"{day:%Y-%m-%d}{record[moved][10:]}"
    begun = max((record[n][:10] for n in early if record[n][:10] <= today), default="")
    for name in (n for n in done if record[n][:10] < begun and n not in given):
        record[name] = f"{begun}{record[name][10:]}"


def may_lack(told: Field) -> bool:
    """Whether a record may hold nothing here: the date of a deed not done, where its schema allows null, or what a policy calls optional."""
    if told.nullable or told.role not in _TIMED or not happened(told.name):
        return told.nullable
    ways = [told.schema, *(w for w in told.schema.get("anyOf") or () if isinstance(w, Mapping))]
    return any(w.get("type") == "null" or "null" in (w.get("type") or ()) for w in ways)


def _birth(kind: Kind) -> str:
    """Return the field that says since when a record is there; empty for none."""
    return next((f.name for f in kind.fields.values() if f.role in _DATES and BIRTH.search(f.name)), "")


def bound_near(value: Any, side: str, model: WorldModel) -> Any:
    """Return a bound, the least or the most, that an amount or a date keeps to."""
    if is_number(value):
        return type(value)(round(value * (0.5 if side == "least" else 1.5), 2))
    days = timedelta(days=-7 if side == "least" else 7)
    return f"{moment_of(str(value), model) + days:%Y-%m-%d}{str(value)[10:]}"


def moment_of(date: str, model: WorldModel) -> datetime:
    """Return the day that a date names, now where it names none."""
    try:
        return datetime.fromisoformat(date[:19])
    except ValueError:
        return model.now
