"""Values: one field of one record, drawn from the seed and the field's name.

Names, streets and telephone formats are mimesis' lists, picked by ``derive``; its random
stream is never used. City, state and zip code are one draw, and so is a person: the
username, the e-mail and the name of one record belong together.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from functools import cache, lru_cache
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from whilesim.core.errors import InputError
from whilesim.core.seeds import between, derive, pick
from whilesim.core.templates import load_words
from whilesim.core.text import fold, name_words
from whilesim.world.fitting import allows, fit
from whilesim.world.kinds import ORDERED, Field, Kind, happened, is_number, partners, role_of

ISO = re.compile(r"\d{4}-\d\d-\d\d")
_AHEAD = {"flight", "flights", "slot", "appointment", "availability", "time", "argument", "check_in", "check_out"}
PERSONAL = ("first_name", "last_name", "full_name", "dob", "email", "phone", "username", "holder")
_ALNUM = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"


@dataclass(frozen=True, slots=True)
class Draw:
    """Where a value is drawn: all that it depends on."""

    seed: int
    now: datetime
    locale: str
    kind: str
    index: int

    def at(self, name: str) -> tuple[int, str, int, str]:
        """Return the names of the draw of one field."""
        return (self.seed, self.kind, self.index, name)


@cache
def locale_lists(locale: str) -> Mapping[str, Any]:
    """Return names, streets and formats of a locale; of its language where it has none of its own.

    Raises:
        InputError: Nothing is known of the language.
    """
    root = Path(str(distribution("mimesis").locate_file("mimesis/datasets")))
    wanted = locale.lower().replace("_", "-")
    code = next((c for c in (wanted, wanted.split("-")[0]) if (root / c / "person.json").is_file()), "")
    base = code.split("-")[0]
    if not code:
        msg = f"no names are known for the locale {locale!r}. Type a language with or without a country: 'en_US', 'de_DE', 'pt_BR'."
        raise InputError(msg)
    lists: dict[str, Any] = {"code": code}
    folders = [root / folder for folder in dict.fromkeys((base, code))]
    for path in (folder / f"{part}.json" for part in ("person", "address") for folder in folders):
        lists |= json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return lists


def _rolls(draw: Draw, name: str) -> Callable[[int], int]:
    """Return dice for one draw: each roll is from 0 to below the size given."""
    number = derive(*draw.at(name))

    def roll(size: int) -> int:
        nonlocal number
        number, found = divmod(number, size)
        return found

    return roll


def person_of(draw: Draw, known: Mapping[str, str] | None = None) -> dict[str, str]:
    """Draw a person: names (but those known), ways to be reached and an address that belong together."""
    return {**_identity(draw, known), **place_of(draw)}


def _identity(draw: Draw, known: Mapping[str, str] | None = None) -> dict[str, str]:
    lists, roll = locale_lists(draw.locale), _rolls(draw, "person")
    sex = ("female", "male")[roll(2)]
    surnames = lists["surnames"][sex] if isinstance(lists["surnames"], dict) else lists["surnames"]
    first, last = str(lists["names"][sex][roll(len(lists["names"][sex]))]), str(surnames[roll(len(surnames))])
    first, last = {"first_name": first, "last_name": last, **(known or {})}.values()
    handle = [p for name in (first, last) if (p := _plain(name))] or ["user"]
    number = 100 + roll(900)
    born = datetime(1950, 1, 1) + timedelta(days=roll(20_000))
    return {
        "first_name": first, "last_name": last, "full_name": f"{first} {last}", "name": f"{first} {last}",
        "username": "_".join([*handle, str(number)]), "email": f"{'.'.join(handle)}{number}@example.com",
        "phone": _phone(lists, draw), "dob": born.date().isoformat(), "holder": f"{first} {last}",
    }  # fmt: skip


def name_of(record: Mapping[str, Any]) -> str:
    """Return the name of the person that a record is of; empty where it says none."""
    parts = " ".join(str(record[f]) for f in ("first_name", "last_name") if f in record)
    return str(record.get("full_name") or record.get("name") or parts)


@cache
def _plain(name: str) -> str:
    """Return a name as it stands in an address: small letters and digits."""
    return re.sub(r"[^a-z0-9]", "", fold(name).translate(_PLAIN))


def place_of(draw: Draw) -> dict[str, str]:
    """Draw an address: street, city, state, zip code and country that belong together."""
    lists, roll = locale_lists(draw.locale), _rolls(draw, "place")
    street = str(lists["street"]["name"][roll(len(lists["street"]["name"]))])
    if lists["code"] == "en":
        places = load_words("world_values")["places"]
        city, state, prefix = places[roll(len(places))]
        line = f"{2 + roll(979)} {street} {('Street', 'Avenue', 'Road', 'Lane', 'Drive')[roll(5)]}"
        unit, code = f"Apt {1 + roll(48)}", f"{prefix}{1 + roll(99):02d}"
        return {"street": line, "unit": unit, "city": city, "state": state, "zip": code, "country": "USA"}
    states = lists.get("state", {}).get("name") or [""]
    form = str(lists.get("postal_code_fmt") or "#####").replace("#", "0")
    code = re.sub("@", lambda _: "BDEGHLMNRSTW"[roll(12)], form)
    return {
        "street": f"{street} {1 + roll(120)}", "unit": str(1 + roll(20)), "city": str(lists["city"][roll(len(lists["city"]))]),
        "state": str(states[roll(len(states))]), "zip": imitate(code, *draw.at("zip")),
        "country": str(lists["country"]["current_locale"]),
    }  # fmt: skip


_PLAIN = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "á": "a", "à": "a", "â": "a", "é": "e", "è": "e", "ê": "e", "í": "i",
                        "ó": "o", "ô": "o", "ú": "u", "ñ": "n", "ç": "c", "å": "a", "ø": "o", "æ": "ae"})  # fmt: skip


def _phone(lists: Mapping[str, Any], draw: Draw) -> str:
    roll = _rolls(draw, "phone")
    if lists["code"] == "en":
        return f"555-{100 + roll(900)}-{1000 + roll(9000)}"
    shapes = lists["telephone_fmt"]
    return imitate(str(shapes[roll(len(shapes))]).replace("#", "0"), *draw.at("phone"), keep="+")


def imitate(example: str, seed: int, *names: str | int, keep: str = "") -> str:
    """Return another value of the example's form: digits for digits, letters for letters of a code."""
    code, start = _shape(example)
    start = start if keep else ""
    out = list(start)
    number = 0
    for at, char in enumerate(example[len(start) :]):
        if not code and not char.isdigit():
            out.append(char)
            continue
        number, roll = divmod(number if number > 10**6 else derive(seed, *names, at), 32 * 9 * 5)
        out.append(_ALNUM[roll % 32] if code else str(roll % 10 if out else 1 + roll % 9))
    return "".join(out)


@lru_cache(maxsize=1024)
def _shape(example: str) -> tuple[bool, str]:
    """Return whether an example is a code of letters and digits, and its country prefix."""
    code = re.fullmatch(r"[A-Z0-9]{5,}", example) and re.search(r"\d[A-Z]|^[A-Z]+$", example)
    return bool(code), (re.match(r"\+\d+", example) or [""])[0]


def _like_of(kind: Kind, draw: Draw) -> Field:
    """Let a key say what its record is: ``gift_card_0000000`` is no credit card."""
    told = kind.fields.get("type") or kind.fields.get("method_type")
    found = re.fullmatch(r"[a-z_]+_(\d+)", kind.key_like.example)
    if not told or not told.options or not found:
        return kind.key_like
    prefix = str(value_of(told, draw, {})).lower().replace(" ", "_")
    return replace(kind.key_like, example=f"{prefix}_{found[1]}")


def key_of(kind: Kind, draw: Draw, person: Mapping[str, str], taken: Mapping[str, Any]) -> Any:
    """Draw a key that nobody has: like the example, like a username, or letters and digits."""
    like = _like_of(kind, draw)
    example = like.example
    for attempt in range(50):
        names = (*draw.at("key"), attempt)
        if re.fullmatch(r"[a-z]+_[a-z]+_\d+", example) and person and not re.search("card|gift|pay", example):
            drawn: str | int = person["username"] if not attempt else imitate(person["username"], *names)
        elif like.type in ("integer", "number"):
            drawn = between(1000, 9999, *names)
        elif like.name.endswith("_name") or like.name == "name":
            listed = names_of(kind.name)
            drawn = listed[(draw.index + attempt) % len(listed)]
        elif kind.name == "airport":
            drawn = _airports()[(draw.index + attempt) % len(_airports())]
        elif len(re.findall(r"\d", example)) >= 3 or (example and re.search(r"\d[A-Z]|[A-Z]\d", example)):
            drawn = imitate(example, *names)
        else:
            letters = "".join(w[0] for w in kind.name.split("_")).upper()
            drawn = f"{letters}{between(10_000, 99_999, *names)}"
        if str(key := fit(drawn, like.schema, *names)) not in taken:
            return key
    other = type(key)(f"{key}{len(taken)}")
    return other if allows(like.schema, other) else key  # all that are allowed are taken


def value_of(told: Field, draw: Draw, person: Mapping[str, str]) -> Any:
    """Draw the value of one field, in the type that its schema states."""
    if told.role == "group" or (told.inner and told.role != "items"):
        return _parts_of(told, draw, person)
    if told.role == "items":
        least, most = (told.schema.get(word, usual) for word, usual in (("minItems", 1), ("maxItems", 2)))
        count = between(least, max(least, most), *draw.at(told.name))
        rows = [replace(draw, kind=f"{draw.kind}/{told.name}/{draw.index}", index=n) for n in range(count)]
        people = any(i.role in PERSONAL for i in told.inner)
        whole = person_of if people and any(i.role not in PERSONAL for i in told.inner) else _identity
        persons = [whole(row) if people else {} for row in rows]
        found = [_parts_of(told, row, p) for row, p in zip(rows, persons, strict=True)]
        name = next((i.name for i in told.inner if i.role in ("word", "name")), "")
        once = {str(row[name] if name else n): row for n, row in enumerate(found)}
        return list(once.values()) if len(once) >= least else found  # each thing once
    return fitted(_plain_value(told, draw, person), told, draw)


def fitted(value: Any, told: Field, draw: Draw) -> Any:
    """Bring a value into what its field's schema allows; a moment that is a number is counted in seconds since 1970."""
    if told.type in ("integer", "number") and ISO.match(str(value)):
        value = int(datetime.fromisoformat(value).replace(tzinfo=timezone.utc).timestamp())
    elif told.type in ("integer", "number") and not (is_number(value) or str(value).lstrip("-").isdecimal()):
        value = between(1, 5 if role_of(told.name) != "money" else 200, *draw.at(told.name))
    if "pattern" in told.schema and not allows(told.schema, value):
        day = datetime.fromisoformat(_date(replace(told, role="date"), draw))
        spelled = (f"{day:{form}}" for form in ("%Y-%m-%d", "%Y-%m", "%m/%Y", "%d.%m.%Y", "%m/%d/%Y"))
        value = next((text for text in (*_countries({"country": value}), *spelled) if allows(told.schema, text)), value)
    return fit(value, told.schema, *draw.at(told.name))


def _parts_of(told: Field, draw: Draw, person: Mapping[str, str]) -> dict[str, Any]:
    parts = {i.name: value_of(i, draw, person) for i in told.inner}
    costs = [i for i in told.inner if i.role == "money" and "price" in i.name and "name" in parts]
    parts |= {i.name: fitted(price, i, draw) for i in costs if (price := price_of(str(parts["name"]), draw, i.name))}
    set_apart(parts, {i.name: i for i in told.inner}, draw)
    return parts


def set_apart(values: dict[str, Any], told: Mapping[str, Field], draw: Draw) -> None:
    """Let the two ends of one thing differ, and what is earlier or smaller come first; only the fields told are changed."""
    for ends in partners(tuple(values)):
        free = [f for f in ends if f in told and not told[f].link and told[f].role != "flag"]
        for attempt in range(20):
            first, last = (values[f] for f in ends)
            if not free or None in (first, last):
                break
            if isinstance(first, dict) and isinstance(last, dict):
                for inner in (i for i in told[free[-1]].inner if i.name in first and i.name in last):
                    pair = {"start": first[inner.name], "end": last[inner.name]}
                    set_apart(pair, {"start": inner, "end": inner}, draw)
                    first[inner.name], last[inner.name] = pair.values()
                break
            ordered = told[free[-1]].role in ORDERED and type(first) is type(last)
            if first < last if ordered else first != last:
                break
            swap = ordered and first > last and len(free) == 2 and allows(told[free[0]].schema, last)
            if swap and allows(told[free[1]].schema, first):
                values[ends[0]], values[ends[1]] = last, first
            else:
                other = replace(draw, seed=derive(draw.seed, "other end", attempt))
                values[free[-1]] = value_of(told[free[-1]], other, person_of(other))


def _plain_value(told: Field, draw: Draw, person: Mapping[str, str]) -> Any:
    if told.role == "choice" and told.options:
        home = [c.lower() for c in _countries(person)] if role_of(told.name) == "country" else ()
        return pick([o for o in told.options if o.lower() in home] or told.options, *draw.at(told.name))
    if told.role == "phone" and re.search(r"\d{3}", told.example):
        return imitate(told.example, *draw.at(told.name), keep="+")
    if draw.kind == "airport" and told.role == "city":
        return load_words("world_values")["airports"][_airports()[draw.index % len(_airports())]]
    if told.role in person and told.role != "name":
        return person[told.role]
    if told.role == "address":
        return ", ".join(person[p] for p in ("street", "city", "state", "zip") if person.get(p))
    if told.name.endswith("_apps"):
        return list(load_words("world_values")["apps"])
    make = _MAKERS.get(told.role)
    return make(told, draw) if make else _words(told, draw, person)


def _countries(place: Mapping[str, Any]) -> Sequence[str]:
    """Return the ways to write the country of an address."""
    return list(load_words("world_values")["countries"].get(place.get("country"), ()))


def _usual_range(told: Field, draw: Draw) -> list[int]:
    """Return from how many hundredths to how many an amount goes: what a car is worth is no parking fee."""
    usual = load_words("world_values")["amounts"]
    words = (*reversed(told.name.split("_")), *draw.kind.split("/")[0].split("_"), "any")
    return list(next(usual[w] for w in words if w in usual))


def _count(told: Field, draw: Draw) -> int:
    if "limit" in told.name:
        return 5 * between(1, 10, *draw.at(told.name))
    if "age" in told.name.split("_"):
        return between(30, 79, *draw.at(told.name))
    return between(1, 3 if re.search("bag|quantity|passenger|guest", told.name) else 12, *draw.at(told.name))


def names_of(kind: str) -> list[str]:
    """Return what records of a kind are called, where nothing else is known."""
    words = load_words("world_values")
    return list(words[words["named"].get(kind.split("_")[-1], "things")])


def price_of(thing: str, draw: Draw, name: str) -> float | None:
    """Draw a price near what a thing usually costs; None for one that no list has."""
    words = load_words("world_values")
    lists = (words[n] for n in ("things", *dict.fromkeys(words["named"].values())))
    usual = next((listed[thing] for listed in lists if thing in listed), None)
    return usual and max(round(usual * between(85, 120, *draw.at(name)) / 100) - 0.01, 0.99)


def _airports() -> list[str]:
    return list(load_words("world_values")["airports"])


def _words(told: Field, draw: Draw, person: Mapping[str, str]) -> str:
    words, at = load_words("world_values"), draw.at(told.name)
    if told.role in ("text", "title"):
        ware = draw.kind.split("/")[0] in ("product", "item", "service", "meal")
        known = (words["texts"][w] for w in name_words(told.name) if w in words["texts"])
        plain = next(known, "descriptions" if ware else "sentences")
        return str(pick(words["titles" if told.role == "title" else plain], *draw.at("subject")))
    if told.role == "name" and draw.kind == "airport":
        return f"{words['airports'][_airports()[draw.index % len(_airports())]]} Airport"
    if told.role == "name":
        names = list(told.seen) or ([told.example] if told.example else names_of(draw.kind))
        at_name = draw.index + derive(draw.seed, draw.kind, told.name)
        return person["name"] if person else names[at_name % len(names)]
    if told.role == "link":
        return f"{''.join(w[0] for w in told.link.split('_')).upper()}{between(10_000, 99_999, *at)}"
    if re.fullmatch(r"\d{1,2}-\d{1,2}", told.example):
        return str(pick(("9-12", "13-16", told.example), *at))
    if told.example and told.role == "word":
        return imitate(told.example, *at) if re.search(r"\d", told.example) else told.example
    if "option" in told.name or "variant" in told.name:
        n, shades, sizes = draw.index + derive(draw.seed, draw.kind), words["colours"], words["sizes"]
        return f"{shades[n % len(shades)]}, {sizes[n // len(shades) % len(sizes)]}"
    usual = words["words"]
    return str(pick(usual.get(told.name) or usual.get(told.name.split("_")[-1]) or usual["any"], *at))


def _date(told: Field, draw: Draw) -> str:
    """Draw a date near the policy's present: due, end and asked-for dates ahead of it, all others behind."""
    number = derive(*draw.at(told.name))
    if told.role == "time":
        hours = max((told.before or 22) - 6, 1)
        clock = f"{6 + number % hours:02d}:{15 * (number // hours % 4):02d}:00"
        return clock[:5] if told.example.count(":") == 1 else clock
    if told.role == "expiry" and not ISO.match(told.example):
        return f"{1 + number % 12:02d}/{draw.now.year + 1 + number % 4}"
    ahead = told.role in ("future", "expiry") or bool(_AHEAD & {told.name, *re.split("[/_]", draw.kind)})
    days = 2 + number % 24 if ahead and not happened(told.name) else -2 - number % 59
    moment = draw.now + timedelta(days=days, minutes=-1 - number % 700)
    return moment.isoformat(" ", "seconds") if told.role == "moment" else moment.date().isoformat()


def _bank(draw: Draw) -> Sequence[str]:
    banks = load_words("world_values")["banks"]
    return list(banks.get(locale_lists(draw.locale)["code"]) or next(iter(banks.values())))


def _iban(told: Field, draw: Draw) -> str:
    """Draw the number of a bank account, its two check digits right (ISO 7064, MOD 97-10)."""
    form = _bank(draw)[0]
    number = imitate(form[4:], *draw.at(told.name))
    return f"{form[:2]}{98 - int(''.join(str(int(c, 36)) for c in f'{number}{form[:2]}00')) % 97:02d}{number}"


_MAKERS: dict[str, Callable[[Field, Draw], Any]] = {
    **dict.fromkeys(("date", "future", "moment", "expiry", "time"), _date),
    "switch": lambda f, d: pick(f.options or ("disabled", "enabled"), *d.at(f.name)),
    **dict.fromkeys(("money", "ledger"), lambda f, d: between(*_usual_range(f, d), *d.at(f.name)) / 100),
    "small": lambda f, d: between(100, 1500, *d.at(f.name)) / 100,
    "count": _count,
    "flag": lambda f, d: derive(*d.at(f.name)) % 4 != 0,
    "percent": lambda f, d: 5 * between(1, 4, *d.at(f.name)),
    "last4": lambda f, d: f"{between(0, 9999, *d.at(f.name)):04d}",
    "tracking": lambda f, d: imitate(f.example or "100000000000", *d.at(f.name)),
    "url": lambda f, d: f"https://example.com/{d.kind.split('/')[0]}/{between(1000, 9999, *d.at(f.name))}",
    "currency": lambda _f, d: load_words("world_values")["currencies"].get(locale_lists(d.locale)["code"], "USD"),
    "seat": lambda f, d: f"{between(2, 32, *d.at(f.name))}{pick('ABCDEF', *d.at(f.name))}",
    "airport": lambda f, d: pick(_airports(), *d.at(f.name)),
    "model": lambda f, d: pick(load_words("world_values")["devices"], *d.at(f.name)),
    "place": lambda f, d: place_of(replace(d, kind=f"{d.kind}/{f.name}"))["city"],
    **dict.fromkeys(
        ("code", "sent"), lambda f, d: "".join(pick(_ALNUM + _ALNUM.lower(), *d.at(f.name), n) for n in range(10))
    ),
    "iban": lambda f, d: imitate(f.example, *d.at(f.name)) if f.example else _iban(f, d),
    "bic": lambda _f, d: _bank(d)[1],
    "reference": lambda f, d: imitate(f.example or "REF-000000", *d.at(f.name)),
    "airline_code": lambda f, d: imitate(f.example or "HA100", *d.at(f.name)),
}
