"""Targets: what each argument of a write does to its record: it is written, added, paid, compared, put into a row.

A tool may name the field that it writes (``field`` and ``value``), be about one row of a list
(``add_order_item``), or move a balance (``record_payment``). Names say so, and the description; an
argument of which neither says more is written as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from whilesim.core.templates import load_words
from whilesim.core.text import name_words
from whilesim.world.attributes import pattern, singular, snake
from whilesim.world.kinds import Field, Kind, is_number, kind_of_key, role_of
from whilesim.world.verbs import Phrase

Schemas = Mapping[str, Mapping[str, Any]]
MONEY = ("money", "small")
NUMBERS = ("count", "percent", *MONEY)
NUMERIC = ("number", "integer")
_WAYS = {"create": "add", "delete": "remove", "update": "change"}


def read_targets(
    phrase: Phrase, kind: Kind, after: str, told: str, free: Schemas, about: Sequence[str]
) -> dict[str, Any]:
    """Return what each argument does: is written, is added, lowers a balance, is checked, takes the place of list members."""
    made: dict[str, dict[str, str]] = {n: {} for n in ("sets", "adds", "lowers", "checks", "swaps")}
    sets, adds, lowers, checks, swaps = made.values()
    names = named_field(free)
    rows, way, parts = read_row(phrase, kind, free)
    amount, (moved, falls) = amount_of(free), moves(phrase, kind, told)
    aside = {*names, *names.values(), *parts, *(a for a, s in free.items() if _says("deed", a, s) and not kind.find(a))}
    for a, schema in ((a, s) for a, s in free.items() if a not in aside):
        numeric = schema.get("type") in NUMERIC
        own = kind.find(a) or kind.find("_".join(about) if name_words(a)[-1:] == list(about[-1:]) else "")
        replaces = pattern("replaces").search(str(schema.get("description")))
        if moved and a == amount and not replaces:
            (lowers if falls else adds)[a] = moved
        elif numeric and pattern("adds").search(told[:300]) and not replaces:
            adds[a] = nearest_field(_summed(kind, a), [*about, phrase.verb, *name_words(a)]) or a
        elif numeric and (after or phrase.deed == "status") and role_of(a) == "money":
            due = own or nearest_field(_summed(kind, a), ["amount", "total", "price", "balance"])
            (checks if due else sets)[a] = due or f"{phrase.verb}_{a}"
        elif after and phrase.deed != "update" and not own:
            sets[a] = a if a in about else f"{singular(phrase.verb)}_{a}"
        else:
            bare = len(free) == 1 and about and role_of(a) == "word" and a not in about and "_" not in a
            sets[a] = own or ("_".join(about) if bare else a.removeprefix("new_"))
    for a in [a for a in sets if phrase.deed == "update" and a.startswith("new_") and a[4:] in sets]:
        noun = kind_of_key(a, {f.link: kind for f in kind.fields.values()})[0]
        if listed := next((n for n, f in kind.fields.items() if noun and f.role == "links" and f.link == noun), ""):
            swaps[a] = listed
            del sets[a], sets[a[4:]]
    return {**made, "names": names, "rows": rows, "way": way, "parts": parts}


def amount_of(arguments: Schemas) -> str:
    """Return the argument that says how much is paid: a tip beside it is no payment; empty for none."""
    money = [a for a, s in arguments.items() if role_of(a) in MONEY and s.get("type") in NUMERIC]
    return min(money, key=lambda a: MONEY.index(role_of(a)), default="")


def _says(what: str, argument: str, schema: Mapping[str, Any]) -> bool:
    """Whether an argument says which ``field`` a call is about, or which ``deed`` it is, which is no state of a record."""
    words, said = {*load_words("world_nouns")["selectors"][what]}, {*name_words(argument)}
    found, rest = said & words, said - words - {"type", "kind"}
    return bool(found) and schema.get("type", "string") == "string" and (what == "field" or not rest)


def named_field(arguments: Schemas) -> dict[str, str]:
    """Return the argument with a value and the one that says which field takes it; nothing where there are no such two."""
    values = [a for a in arguments if name_words(a)[-1:] == ["value"]]
    fields = [a for a, s in arguments.items() if a not in values and _says("field", a, s)]
    return {values[0]: fields[0]} if len(values) == len(fields) == 1 else {}


def grown(names: Mapping[str, str], given: Mapping[str, Field], kind: Kind) -> dict[str, Field]:
    """Return the fields that a call can name, as its options say, and that the record has not yet."""
    found = ((snake(o), given[v]) for v, says in names.items() for o in given[says].options if not find_named(kind, o))
    return {n: Field(name=n, role="flag" if v.type == "boolean" else role_of(n), why=v.why) for n, v in found}


def find_named(kind: Kind, said: str) -> str:
    """Return the field of a record that a call names; empty for one that no such record has, and for its key."""
    name = snake("_".join(name_words(said)))
    told = any(f.why.startswith(("attribute", "reply", "as the spec")) for f in kind.fields.values())
    return kind.find(name) or ("" if told or name == kind.key else name)


def read_row(phrase: Phrase, kind: Kind, free: Schemas) -> tuple[str, str, dict[str, str]]:
    """Return the list of which a tool changes one row, whether it adds, removes or changes it, and argument to part of the row."""
    way = _WAYS.get(phrase.deed, "")
    for told in (f for f in kind.fields.values() if f.role == "items" and way):
        if {*phrase.nouns}.isdisjoint(map(singular, name_words(told.name))):
            continue
        row = Kind(name=singular(told.name), key="", fields={i.name: i for i in told.inner})
        plain = (a for a, s in free.items() if s.get("type") not in ("array", "object"))
        parts = {a: part for a in plain if (part := row.find(a.removeprefix("new_"))) in row.fields}
        if parts and (way == "add" or first_named(told, parts)):
            return told.name, way, parts
    return "", "", {}


def first_named(told: Field, parts: Mapping[str, str]) -> str:
    """Return the first argument that tells one row of a list from the others; empty where all are numbers."""
    roles = {i.name: i.role for i in told.inner}
    return next((a for a, part in parts.items() if roles[part] not in NUMBERS), "")


def moves(phrase: Phrase, kind: Kind, told: str) -> tuple[str, bool]:
    """Return the balance of a record that a tool's amount moves, and whether it lowers it; ``('', False)`` for none."""
    words = load_words("world_verbs")["of_money"]
    said = {*phrase.verb.split("_"), *phrase.nouns} - ({*phrase.nouns} & {"charge"})  # a charge added is no charging
    takes, gives = (not said.isdisjoint(words[w]) for w in ("takes", "gives"))
    if not (takes or gives) or not said.isdisjoint(words["later"]):
        return "", False
    owed, held = (balances(kind, w) for w in ("owed", "held"))
    fields = owed or held if takes else held or owed
    best = max(fields, key=lambda f: len(said & {*map(singular, name_words(f))}), default="")
    return best, not pattern("raises").search(told.partition("\n")[0]) and (takes or best in owed)


def balances(kind: Kind, which: str) -> list[str]:
    """Return the amounts of a record that are ``owed``, or ``held``, by their names."""
    words = load_words("world_verbs")["of_money"]
    money = ((f.name, {*map(singular, name_words(f.name))}) for f in kind.fields.values() if f.role in MONEY)
    return [n for n, said in money if not said.isdisjoint(words[which]) and said.isdisjoint(words["least"])]


def debt_of(kind: Kind, record: Mapping[str, Any]) -> tuple[str, str]:
    """Return the amount that is still owed, and the one that all of it came to; empty where a record does not tell both."""
    owed = next((n for n in balances(kind, "owed") if is_number(record.get(n))), "")
    whole = {"total", "amount", "grand", "original", "principal", *kind.name.split("_")}
    money = (f.name for f in kind.fields.values() if f.role == "money" and is_number(record.get(f.name)))
    best = next((n for n in money if n != owed and {*name_words(n)} <= whole), "")
    return (owed, best) if owed and best else ("", "")


def _summed(kind: Kind, argument: str) -> Kind:
    """Return a kind with the fields alone that a number is added to, or compared with: money with money only."""
    apart = () if role_of(argument) in MONEY else MONEY
    kept = (f for f in kind.fields.values() if f.type in NUMERIC or (f.role in NUMBERS and not f.type))
    return replace(kind, fields={f.name: f for f in kept if f.role not in apart})


def nearest_field(kind: Kind, about: Iterable[str]) -> str:
    """Return the field that shares most words with a phrase; empty when none shares any."""
    stems = {w[:5] for w in about if len(w) > 1}
    plain = {f: name_words(f) for f in kind.fields if not kind.fields[f].link}
    best = max(((len(stems & {w[:5] for w in ws}), -len(ws), f) for f, ws in plain.items()), default=(0, 0, ""))
    return best[2] if best[0] else ""
