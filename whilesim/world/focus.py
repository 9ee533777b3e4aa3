"""Focus: what a situation is about: one record, the one right call, what the customer knows.

The state of the situation is brought about here, on the records, before anyone calls: the
record is gone, the deed is already done, it has a double, or work on it was begun.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from whilesim.core.jsontext import copied
from whilesim.core.seeds import between, chance, derive, pick
from whilesim.core.templates import load_words
from whilesim.core.text import name_words
from whilesim.world.arguments import USUAL, Maker
from whilesim.world.dates import add_note
from whilesim.world.deeds import Deed
from whilesim.world.effects import Effects
from whilesim.world.kinds import BUNDLES, TELLING, WHO, Row, is_value, kind_of_key, role_of
from whilesim.world.lookups import Shelf, told_as
from whilesim.world.records import rotate
from whilesim.world.rows import Refusal
from whilesim.world.values import Draw, name_of, person_of

_SPOKEN = {"dob": "date of birth", "zip": "zip code", "street": "street address", "unit": "apartment", "phone": "phone number",
           "email": "email", "city": "city", "state": "state", "country": "country", "last4": "last four digits"}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Focus:
    """What a situation is about, in this world: the card's facts and the oracle are made of it."""

    tool: str
    arguments: Mapping[str, Any]
    """The arguments of the one right call of the situation's tool: the truth, not what the customer says."""
    kind: str | None = None
    """Kind of the record that the tool touches, None for a tool that touches none."""
    id: str | None = None
    """Id of that record in the records; in a missing world it is not there."""
    identity: Mapping[str, str] = field(default_factory=dict)
    """How the customer can be found: name, email, phone, date of birth, zip, as they would say them."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """What the customer knows and may say, in plain words: ``{"order id": "W2210", "item": "blue kettle"}``.
    In a missing world the key told here is the wrong one; in a duplicate world there is no key but a
    detail that tells the two candidates apart."""
    withheld: tuple[str, ...] = ()
    """Keys of ``facts`` that the customer does not have at hand; the agent can find them by a read."""
    object: str = ""
    """The record in a customer's words: 'my order W2210', 'the line 555-0182'."""
    reachable: bool = True
    """Whether the tool can succeed at all in this situation, by an agent that does everything right."""


def build_focus(shelf: Shelf, values: Mapping[str, str], seed: int) -> Focus:
    """Choose the record, bring about the situation's state, and say what the customer knows."""
    model = shelf.model
    deed = model.deeds[values["tool"]]
    state = values.get("world_state", "exists")
    if any(rule.forbids(values["tool"], state) for rule in model.rules() if rule.axes[1] == "world_state"):
        state = "exists"
    key = _focal(shelf, deed, seed)
    shelf.party = party = _party_of(shelf, deed, key, seed)
    maker = Maker(shelf, deed, key, party, seed)
    maker.prepare()
    arguments = maker.make()
    facts = _facts(shelf, deed, key, party, arguments)
    identity = _identity(shelf, party, _about(shelf, deed.kind, key, arguments), seed)
    _history(shelf, deed, key, party, values.get("history", "fresh"), seed)
    key = _bring_about(shelf, deed, key, state, arguments, facts, seed)
    spoken = _key_fact(deed)
    knowable = spoken in facts and state not in ("missing", "duplicate") and model.listable(deed.kind)
    withheld = (spoken,) if knowable and chance(0.4, seed, "withheld") else ()
    name = deed.kind.replace("_", " ")
    return Focus(
        tool=deed.tool, arguments=arguments, kind=deed.kind or None, id=key or None, identity=identity, facts=facts, withheld=withheld,
        object=_object(shelf, deed, name, facts, spoken), reachable=state not in ("missing", "already_acted_on"),
    )  # fmt: skip


def _key_fact(deed: Deed) -> str:
    return _plain(deed.key) if deed.key and deed.key not in ("id", "key") else f"{deed.kind.replace('_', ' ')} id"


def _object(shelf: Shelf, deed: Deed, name: str, facts: Mapping[str, str], spoken: str) -> str:
    if not deed.kind or deed.kind == "session":
        return "my request"
    if deed.kind == shelf.model.party:
        return "my account"
    named = f"{'the' if shelf.model.kinds[deed.kind].catalogue else 'my'} {name}"
    return f"{named} {facts[spoken]}" if spoken in facts and deed.key else named


def _focal(shelf: Shelf, deed: Deed, seed: int) -> str:
    """Choose the record: one that the deed is allowed on, where there is one."""
    records = shelf.records.get(deed.kind, {})
    if not records or (deed.action == "create" and not deed.key):
        return ""
    status = {k: str(r.get(shelf.model.kinds[deed.kind].status)) for k, r in records.items()}
    fits = [k for k, s in status.items() if (s in deed.before if deed.before else s.lower() in USUAL)]
    return pick((deed.action == "change" and fits) or list(records), seed, "focal", deed.kind)


def _party_of(shelf: Shelf, deed: Deed, key: str, seed: int) -> str:
    """Return the key of whoever the record belongs to; of one who has what the tool's arguments name, where there is none."""
    parties = list(shelf.records.get(shelf.model.party, {}))
    if not parties or (owner := shelf.owner(deed.kind, key)):
        return owner if parties else ""
    named = {kind_of_key(a, shelf.model.kinds)[0] for a in shelf.model.arguments(deed.tool)}
    owners = [set(shelf.owners(kind).values()) for kind in named - {"", shelf.model.party}]
    fits = [p for p in parties if all(p in has for has in owners if any(has))]
    return pick(fits or parties, seed, "party")


def _facts(shelf: Shelf, deed: Deed, key: str, party: str, arguments: Mapping[str, Any]) -> dict[str, str]:
    """Say in plain words what the customer knows: the call's arguments, who they are, what it is about."""
    facts: dict[str, str] = {}
    model = shelf.model
    spoken = {a: v for a, v in arguments.items() if a not in deed.names.values()}  # 'my new phone', no field 'phone'
    for name, value in spoken.items() if deed.action not in ("handoff", "answer") else ():
        kind, many = kind_of_key(name, model.kinds)
        if name == deed.key and deed.kind and value not in (None, ""):
            facts[_key_fact(deed)] = str(value)
        elif value not in (None, "", []) and not (kind and kind == model.party and not is_value(name, {})):
            written = deed.action == "change" and name in (*deed.sets, *deed.names) and not deed.after
            name = str(arguments.get(deed.names.get(name, ""), name))
            new = "new " if written and name_words(name)[:1] != ["new"] and role_of(name) != "text" else ""
            parts = _parts(name, value, bare=name in BUNDLES or deed.reads)
            facts |= {f"{new}{part}": _say(inner) for part, inner in parts}
            if kind and not many and (named := shelf.records[kind].get(str(value), {}).get("name")):
                facts[f"{new}{kind.replace('_', ' ')}"] = str(named)
    asked = {kind_of_key(a, model.kinds)[0] for tool in model.tools for a in model.arguments(tool)}
    if party and model.party in asked and deed.kind != model.party:
        facts.setdefault(f"{model.party.replace('_', ' ')} id", party)
    if key in shelf.records.get(deed.kind, {}) and deed.kind != model.party:
        told = (pair for pair in _telling(shelf, deed.kind, key) if f"new {pair[0]}" not in facts)
        facts = {**dict(told), **facts}  # one value of each at a time
    return facts


def _parts(name: str, value: Any, *, bare: bool) -> list[tuple[str, Any]]:
    """Name what a customer tells one by one of an argument: of a group its parts, but an address whole."""
    if not isinstance(value, dict) or not (bare or {"street", "city", "zip"}.isdisjoint(map(role_of, value))):
        return [(_plain(name), value)]
    whole = {n if bare else f"{name}_{n}": v for n, v in value.items() if v not in (None, "")}
    return [(_plain(n) if bare else " ".join(name_words(n)), v) for n, v in whole.items()]


def _telling(shelf: Shelf, kind: str, key: str) -> list[tuple[str, str]]:
    """Return up to two details by which a customer knows a record: what is in it, a date, an amount, a number."""
    view, fields = shelf.view(kind, key), shelf.model.kinds[kind].fields
    found: list[tuple[str, str]] = []
    for name, value in view.items():
        role = role_of(name)
        role = fields[name].role if role == "word" and name in fields else role
        if isinstance(value, list) and value and isinstance(value[0], dict) and "name" in value[0]:
            found.insert(0, ("item", ", ".join(str(v["name"]) for v in value)))
        elif role in (*TELLING, "name", "model") and isinstance(value, (str, int, float)):
            found.append((_plain(name), str(value)))
    return found[:2]


def _say(value: Any) -> str:
    if isinstance(value, Mapping):
        between = ", " if "street" in map(role_of, value) else " "
        return between.join(_say(v) for v in value.values() if v not in (None, ""))
    if isinstance(value, list):
        return ", ".join(_say(v) for v in value)
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _plain(name: str) -> str:
    return _SPOKEN.get(role_of(name), " ".join(name_words(name)))


def _identity(shelf: Shelf, party: str, record: Row, seed: int) -> dict[str, str]:
    """Return how the customer can be found: as their own record says, or the one that it is about where customers have none."""
    model = shelf.model
    names = {role: str(v) for f, v in _flat(record) if (role := role_of(f)) in ("first_name", "last_name") and v}
    drawn = person_of(Draw(seed, model.now, model.locale, model.party or "customer", 0), {} if model.party else names)
    own = shelf.records.get(model.party, {}).get(party, {}) if model.party else record
    wanted = {"name": "full_name", "email": "email", "phone": "phone", "date of birth": "dob", "zip": "zip"}
    found: dict[str, str] = {}
    for spoken, role in wanted.items():
        value = next((v for f, v in _flat(own) if role_of(f) == role and v), None)
        value = value or (name_of(own) if role == "full_name" and model.party else "")
        if value or not own or not model.party:
            found[spoken] = str(value or drawn[role])
    names = {role: spoken for spoken, role in wanted.items()} | dict.fromkeys(("first_name", "last_name"), "name")
    for deed in (d for d in model.deeds.values() if d.proofs):
        kind, keys = model.kinds[deed.kind], shelf.mine(deed.kind)[:1] if deed.kind != model.party else ()
        rows = [record, *(shelf.records[kind.name][k] for k in keys)] if kind.name != model.party else [own]
        for asked in (deed.by.get(a, a) for a in deed.proofs):
            told = (v for r in rows if (v := told_as(r, asked, kind.name)) is not None)
            value, spoken = next(told, None), names.get(role_of(asked), _plain(asked))
            found |= {} if value is None or spoken in found else {spoken: str(value)}
    return found


def _about(shelf: Shelf, kind: str, key: str, arguments: Row) -> dict[str, Any]:
    """Return a record with what those say that it, or the call, points at, as far as it does not say it itself."""
    records, model, found = shelf.records, shelf.model, dict(shelf.records.get(kind, {}).get(key, {}))
    for _ in range(3):  # what it hangs on hangs on something in its turn
        for name, value in (*arguments.items(), *found.items()):
            other = kind_of_key(name, model.kinds)[0]
            found = {**(records.get(other, {}).get(str(value), {}) if other != kind else {}), **found}
    asked = (d.kind for d in model.deeds.values() if d.proofs and d.kind != kind and not model.party)
    return {**next((r for k in asked for r in records[k].values()), {}), **found}


def _flat(record: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return [pair for f, v in record.items() for pair in (_flat(v) if isinstance(v, Mapping) else [(f, v)])]


def _history(shelf: Shelf, deed: Deed, key: str, party: str, history: str, seed: int) -> None:
    """Leave a note of what was before: on the record, or on the customer where the record is shared."""
    text = load_words("world_values")["history"].get(history)
    model, about = shelf.model, deed.kind.replace("_", " ")
    record = None if deed.kind and model.kinds[deed.kind].catalogue else shelf.records.get(deed.kind, {}).get(key)
    if record is None or deed.kind == model.party:
        record, about = shelf.records.get(model.party, {}).get(party), "account"
    if text and record is not None:
        add_note(model, record, text, about, between(1, 6, seed, "history"))


def _bring_about(shelf: Shelf, deed: Deed, key: str, state: str, made: Row, facts: dict[str, str], seed: int) -> str:
    """Make the situation's state true of the records, and return the key that it is about."""
    records = shelf.records.get(deed.kind, {})
    if state == "missing":
        kind = deed.kind
        if (deed.owner and deed.action in ("list", "find")) or key not in records:
            kind = kind_of_key(deed.owner, shelf.model.kinds)[0]
            key = shelf.key(kind, made.get(deed.owner, ""))
        _remove(shelf, kind, key)
    elif state == "already_acted_on":
        with suppress(Refusal):
            Effects(shelf).run(deed, made)
        key = next(reversed(records), "") if deed.action == "create" else key
    elif state == "duplicate" and key in records:
        _double(shelf, deed, key, facts, seed)
    elif state == "partially_completed" and key in records:
        text = load_words("world_values")["partial"]
        add_note(shelf.model, records[key], text, deed.kind, between(1, 4, seed, "begun"))
    return key


def _remove(shelf: Shelf, kind: str, key: str) -> None:
    """Take a record and all that belongs to it out of the world."""
    if key not in shelf.records.get(kind, {}):
        return
    for child in shelf.model.kinds.values():
        if child.parent == kind:
            for own in list(shelf.children(child.name, kind, key)):
                _remove(shelf, child.name, own)
    del shelf.records[kind][key]


def _double(shelf: Shelf, deed: Deed, key: str, facts: dict[str, str], seed: int) -> None:
    """Put a second record beside the first that differs in what the customer says; take the key out of the facts, where it does."""
    kind, records = shelf.model.kinds[deed.kind], shelf.records[deed.kind]
    record, telling = records[key], _telling(shelf, deed.kind, key)
    same = ("choice", "switch", "flag", "link", *(() if shelf.model.party else {*WHO["person"]} - {"phone"}))
    given = {n: record[n] for n, f in kind.fields.items() if n in record and (f.role in same or n == kind.status)}
    for told in kind.fields.values():
        linked, present = shelf.model.kinds.get(told.link), record.get(told.name)
        if isinstance(present, list) and any(kind_of_key(i.name, shelf.model.kinds)[0] for i in told.inner):
            given[told.name] = copied(present)  # others than these are pointed at
        elif told.role == "links" and linked and linked.catalogue and isinstance(present, list):
            others = [k for k in shelf.records[told.link] if k not in map(str, present)]
            given[told.name] = [shelf.native(told.link, k) for k in rotate(others, seed)[:1]]
    parent = shelf.model.kinds.get(kind.parent)
    owner, twin = str(record.get(parent.key, "")) if parent else "", ""
    for attempt in range(8):
        records.pop(twin, None)
        twin = shelf.add(kind, owner, derive(seed, "double", attempt), given)
        shelf.fill_links(kind, len(records) + attempt, records[twin], record)
        records[twin] = {**copied(record), **records[twin]}
        if any(facts.get(pair[0]) == pair[1] and pair not in _telling(shelf, deed.kind, twin) for pair in telling):
            facts.pop(_key_fact(deed), None)
            break
