"""Values: one field of one record, drawn from the seed and the field's name.

Names, streets and telephone formats are mimesis' lists, picked by ``derive``; its random
stream is never used. City, state and zip code are one draw, and so is a person: the
username, the e-mail and the name of one record belong together.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from whilesim.core.errors import InputError
from whilesim.core.seeds import between, derive, pick
from whilesim.core.templates import load_words
from whilesim.core.text import fold
from whilesim.world.kinds import Field, role_of

_ISO = re.compile(r"\d{4}-\d\d-\d\d")
_AHEAD = {"flight", "flights", "slot", "appointment", "argument"}
_PERSONAL = ("first_name", "last_name", "full_name", "dob", "email")
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
    found = find_spec("mimesis")
    assert found is not None
    assert found.submodule_search_locations
    root = Path(found.submodule_search_locations[0]) / "datasets"
    wanted = locale.lower().replace("_", "-")
    code = next((c for c in (wanted, wanted.split("-")[0]) if (root / c / "person.json").is_file()), "")
    base = code.split("-")[0]
    if not code:
        msg = f"no names are known for the locale {locale!r}. Type a language with or without a country: 'en_US', 'de_DE', 'pt_BR'."
        raise InputError(msg)
    lists: dict[str, Any] = {"code": code}
    for part in ("person", "address"):
        for folder in dict.fromkeys((base, code)):
            path = root / folder / f"{part}.json"
            if path.is_file():
                lists |= json.loads(path.read_text(encoding="utf-8"))
    return lists


def person_of(draw: Draw) -> dict[str, str]:
    """Draw a person: names, ways to be reached and an address that belong together."""
    lists = locale_lists(draw.locale)
    sex = pick(("female", "male"), *draw.at("sex"))
    first = str(pick(lists["names"][sex], *draw.at("first")))
    surnames = lists["surnames"]
    last = str(pick(surnames[sex] if isinstance(surnames, dict) else surnames, *draw.at("last")))
    plain = [re.sub(r"[^a-z0-9]", "", fold(p).translate(_PLAIN)) for p in (first, last)]
    handle = [p for p in plain if p] or ["user"]
    number = between(100, 999, *draw.at("number"))
    born = datetime(1950, 1, 1) + timedelta(days=between(0, 20_000, *draw.at("born")))
    return {
        "first_name": first, "last_name": last, "full_name": f"{first} {last}", "name": f"{first} {last}",
        "username": "_".join([*handle, str(number)]), "email": f"{'.'.join(handle)}{number}@example.com",
        "phone": _phone(lists, draw), "dob": f"{born:%Y-%m-%d}", **place_of(draw),
    }  # fmt: skip


def place_of(draw: Draw) -> dict[str, str]:
    """Draw an address: street, city, state, zip code and country that belong together."""
    lists = locale_lists(draw.locale)
    street, number = str(pick(lists["street"]["name"], *draw.at("street"))), between(2, 980, *draw.at("house"))
    if lists["code"] == "en":
        city, state, prefix = pick(load_words("world_values")["places"], *draw.at("place"))
        line = f"{number} {street} {pick(('Street', 'Avenue', 'Road', 'Lane', 'Drive'), *draw.at('suffix'))}"
        return {"street": line, "unit": f"Apt {between(1, 48, *draw.at('unit'))}", "city": city, "state": state,
                "zip": f"{prefix}{between(1, 99, *draw.at('zip')):02d}", "country": "USA"}  # fmt: skip
    states = lists.get("state", {}).get("name") or [""]
    return {
        "street": f"{street} {between(1, 120, *draw.at('house'))}", "unit": str(between(1, 20, *draw.at("unit"))),
        "city": str(pick(lists["city"], *draw.at("place"))), "state": str(pick(states, *draw.at("state"))),
        "zip": imitate(str(lists.get("postal_code_fmt") or "#####").replace("@", "A").replace("#", "0"), *draw.at("zip")),
        "country": str(lists["country"]["current_locale"]),
    }  # fmt: skip


_PLAIN = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "á": "a", "à": "a", "â": "a", "é": "e", "è": "e", "ê": "e", "í": "i",
                        "ó": "o", "ô": "o", "ú": "u", "ñ": "n", "ç": "c", "å": "a", "ø": "o", "æ": "ae"})  # fmt: skip


def _phone(lists: Mapping[str, Any], draw: Draw) -> str:
    if lists["code"] == "en":
        return f"555-{between(100, 999, *draw.at('phone'))}-{between(1000, 9999, *draw.at('line'))}"
    return imitate(str(pick(lists["telephone_fmt"], *draw.at("format"))).replace("#", "0"), *draw.at("phone"), keep="+")


def imitate(example: str, seed: int, *names: str | int, keep: str = "") -> str:
    """Return another value of the example's form: digits for digits, letters for letters of a code."""
    code = re.fullmatch(r"[A-Z0-9]{5,}", example) and re.search(r"\d[A-Z]|^[A-Z]+$", example)
    start = (re.match(r"\+\d+", example) or [""])[0] if keep else ""
    out = list(start)
    number = derive(seed, *names)
    for char in example[len(start) :]:
        number, roll = divmod(number, 36) if number > 36 else (derive(number, "more"), number)
        if code:
            out.append(_ALNUM[roll % len(_ALNUM)])
        elif char.isdigit():
            out.append(str(roll % 10) if out else str(1 + roll % 9))
        else:
            out.append(char)
    return "".join(out)


def key_of(kind: str, like: Field, draw: Draw, person: Mapping[str, str], taken: Mapping[str, Any]) -> str:
    """Draw a key that nobody has: like the example, like a username, or letters and digits."""
    example = like.example
    for attempt in range(50):
        names = (*draw.at("key"), attempt)
        if re.fullmatch(r"[a-z]+_[a-z]+_\d+", example) and person and not re.search("card|gift|pay", example):
            key = person["username"] if not attempt else imitate(person["username"], *names)
        elif like.type in ("integer", "number"):
            key = str(between(1000, 9999, *names))
        elif like.name.endswith("_name") or like.name == "name":
            listed = load_words("world_values").get(f"{kind}s") or load_words("world_values")["things"]
            key = str(listed[(draw.index + attempt) % len(listed)])
        elif kind == "airport":
            key = load_words("world_values")["airports"][
                (draw.index + attempt) % len(load_words("world_values")["airports"])
            ]
        elif len(re.findall(r"\d", example)) >= 3 or (example and re.search(r"\d[A-Z]|[A-Z]\d", example)):
            key = imitate(example, *names)
        else:
            letters = "".join(w[0] for w in kind.split("_")).upper()
            key = f"{letters}{between(10_000, 99_999, *names)}"
        if key not in taken:
            return key
    return f"{key}{len(taken)}"


def value_of(told: Field, draw: Draw, person: Mapping[str, str]) -> Any:
    """Draw the value of one field, in the type that its schema states."""
    if told.role == "group" or (told.inner and told.role != "items"):
        return {i.name: value_of(i, draw, person) for i in told.inner}
    if told.role == "items":
        count = between(1, 2, *draw.at(told.name))
        rows = [_row_draw(draw, told.name, n) for n in range(count)]
        people = any(i.role in _PERSONAL for i in told.inner)
        return [{i.name: value_of(i, row, person_of(row) if people else {}) for i in told.inner} for row in rows]
    value = _plain_value(told, draw, person)
    return _typed(value, told, draw)


def _row_draw(draw: Draw, name: str, n: int) -> Draw:
    return Draw(draw.seed, draw.now, draw.locale, f"{draw.kind}/{name}/{draw.index}", n)


def _plain_value(told: Field, draw: Draw, person: Mapping[str, str]) -> Any:
    if told.role == "choice" and told.options:
        return pick(told.options, *draw.at(told.name))
    if told.role == "phone" and re.search(r"\d{3}", told.example):
        return imitate(told.example, *draw.at(told.name), keep="+")
    if told.role in person and told.role != "name":
        return person[told.role]
    if told.role == "address":
        return ", ".join(person[p] for p in ("street", "city", "state", "zip") if person.get(p))
    make = _MAKERS.get(told.role)
    return make(told, draw) if make else _words(told, draw, person)


def _count(told: Field, draw: Draw) -> int:
    return between(1, 3 if re.search("bag|quantity|passenger|guest|seat", told.name) else 12, *draw.at(told.name))


def _url(told: Field, draw: Draw) -> str:
    return f"https://example.com/{draw.kind.split('/')[0]}/{between(1000, 9999, *draw.at(told.name))}"


def _currency(_told: Field, draw: Draw) -> Any:
    return load_words("world_values")["currencies"].get(locale_lists(draw.locale)["code"], "USD")


def _words(told: Field, draw: Draw, person: Mapping[str, str]) -> str:
    words, at = load_words("world_values"), draw.at(told.name)
    if told.role == "text":
        return str(pick(words["reasons"] if "reason" in told.name else words["sentences"], *at))
    if told.role == "title":
        return str(pick(words["titles"], *at))
    if told.role == "model":
        return str(pick(words["devices"], *at))
    if told.role == "name":
        named = {
            "plan": "plans",
            "service": "services",
            "device": "devices",
            "meal": "dishes",
            "dish": "dishes",
            "tableware": "wares",
        }
        listed = words[named.get(draw.kind.split("_")[-1], "things")]
        if draw.kind == "airport":
            return f"{words['places'][draw.index % len(words['places'])][0]} Airport"
        return (
            str(listed[(draw.index + derive(draw.seed, draw.kind, told.name)) % len(listed)])
            if person == {}
            else person["name"]
        )
    if re.fullmatch(r"\d{1,2}-\d{1,2}", told.example):
        return str(pick(("9-12", "13-16", told.example), *at))
    if told.example and told.role == "word":
        return imitate(told.example, *at) if re.search(r"\d", told.example) else told.example
    if "option" in told.name or "variant" in told.name:
        return f"{pick(words['colours'], *at)}, {pick(words['sizes'], *at)}"
    if told.name.endswith("status"):
        return str(pick(words["statuses"], *at))
    return str(pick(words["words"], *at))


def _date(told: Field, draw: Draw) -> str:
    """Draw a date near the policy's present: due, end and asked-for dates ahead of it, all others behind."""
    at = draw.at(told.name)
    if told.role == "time":
        clock = f"{between(6, 21, *at):02d}:{pick(('00', '15', '30', '45'), *at)}:00"
        return clock[:5] if told.example.count(":") == 1 else clock
    if told.role == "expiry" and not _ISO.match(told.example):
        return f"{between(1, 12, *at):02d}/{draw.now.year + between(1, 4, *at)}"
    ahead = told.role in ("future", "expiry") or bool(_AHEAD & set(draw.kind.split("/")))
    days = between(2, 25, *at) if ahead else -between(2, 60, *at)
    moment = draw.now + timedelta(days=days, minutes=-between(1, 700, *at))
    return f"{moment:%Y-%m-%d %H:%M:%S}" if told.role == "moment" else f"{moment:%Y-%m-%d}"


_MAKERS: dict[str, Callable[[Field, Draw], Any]] = {
    **dict.fromkeys(("date", "future", "moment", "expiry", "time"), _date),
    "switch": lambda f, d: pick(f.options or ("disabled", "enabled"), *d.at(f.name)),
    "money": lambda f, d: between(400, 24_000, *d.at(f.name)) / 100,
    "ledger": lambda f, d: between(400, 24_000, *d.at(f.name)) / 100,
    "count": _count,
    "flag": lambda f, d: derive(*d.at(f.name)) % 4 != 0,
    "percent": lambda f, d: 5 * between(1, 4, *d.at(f.name)),
    "last4": lambda f, d: f"{between(0, 9999, *d.at(f.name)):04d}",
    "tracking": lambda f, d: imitate(f.example or "100000000000", *d.at(f.name)),
    "url": _url,
    "currency": _currency,
    "seat": lambda f, d: f"{between(2, 32, *d.at(f.name))}{pick('ABCDEF', *d.at(f.name))}",
    "airport": lambda f, d: pick(load_words("world_values")["airports"], *d.at(f.name)),
    "airline_code": lambda f, d: imitate(f.example or "HA100", *d.at(f.name)),
}


def _typed(value: Any, told: Field, draw: Draw) -> Any:
    """Bring a value into the type that the schema states."""
    if told.options and told.role == "choice":
        return int(value) if told.type == "integer" and str(value).lstrip("-").isdigit() else value
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if told.type in ("integer", "number") and not number:
        return between(1, 5 if role_of(told.name) != "money" else 200, *draw.at(told.name))
    if told.type == "integer":
        return int(value)
    if told.type == "boolean" and not isinstance(value, bool):
        return derive(*draw.at(told.name)) % 2 == 0
    if told.type == "string" and (number or isinstance(value, bool)):
        return ("yes" if value else "no") if isinstance(value, bool) else str(value)
    if told.type == "array" and not isinstance(value, list):
        return [value] if value not in ("", None) else []
    if told.type == "object" and not isinstance(value, dict):
        return {}
    return value
