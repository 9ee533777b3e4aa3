"""Discovery: which kinds of record the tools and the policy tell of, and who the customer is.

Evidence, strongest first: what the user says, key arguments, attribute lists in the policy, the
object of a tool's name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from whilesim.core.templates import load_words
from whilesim.core.text import name_words
from whilesim.situations.policy import Policy
from whilesim.situations.schemas import first_form
from whilesim.situations.tools import Tool
from whilesim.world.attributes import Attribute, PolicyFacts, singular, snake
from whilesim.world.kinds import (
    OWN_KEYS,
    WHO,
    Field,
    Kind,
    is_value,
    key_noun,
    kind_of_key,
    match_kind,
    properties,
    role_of,
    walk_schemas,
)
from whilesim.world.spec import WorldSpec
from whilesim.world.verbs import Phrase, Phrases

EMPTY = ("detail", "info", "information", "profile", "record", "data")
"""Words after which a tool shows the record itself."""


def read_kinds(tools: list[Tool], phrases: Phrases, facts: PolicyFacts, spec: WorldSpec) -> tuple[dict[str, Kind], str]:
    """Return the kinds by name, and which of them is the party (empty for none)."""
    method = any(k.startswith("payment_method") for k in (*facts.options, *facts.attributes))
    keys = _keys(tools, spec, method=method)
    aliases = {a: a if a in keys else next((k for k in keys if k == a.split("_")[-1]), a) for a in facts.attributes}
    nouns = _nouns(tools, phrases, facts, {*keys, *aliases})
    names = dict.fromkeys([*keys, *aliases.values(), *nouns, *(spec.entities or {})])
    party = _party(tools, phrases, facts, names)
    kinds = {}
    for name in names:
        key, why = keys.get(name, ("iata" if name == "airport" else f"{name}_id", "object of a tool's name"))
        kinds[name] = Kind(name=name, key=key, why=why)
    plural_of = {a.split("_")[0]: n for a, n in aliases.items() if a != n} | {n: n for n in names}
    for told, name in aliases.items():
        fields = _policy_fields(kinds[name], facts.attributes[told], plural_of)
        kinds[name] = replace(kinds[name], fields=fields, why="attribute list in the policy")
    for name, spread, vocabulary in facts.spread:
        if name in kinds:
            more = _spread(spread, facts.options.get(vocabulary, ()))
            kinds[name] = replace(kinds[name], fields={**kinds[name].fields, **more})
    return kinds, party


def own_keys(kinds: Mapping[str, Kind], tools: Sequence[Tool], phrases: Phrases, party: str) -> dict[str, Kind]:
    """Key a kind by the id argument that its own tools share, else by ``id``, ``key`` or ``name`` where they do.

    A kind of which nothing is known but such an argument (the confirmation of a confirmation code) is no other kind.
    """
    done = dict(kinds)
    keyed = {key_noun(a)[0] for t in tools for a in properties(t)}
    about = {t.name: match_kind(phrases[t.name].nouns, kinds) for t in tools}
    bare = {n for n, k in kinds.items() if not k.fields and n not in about.values() and n != party}
    for noun in dict.fromkeys(n for n in about.values() if n and n not in keyed):
        own = [t for t in tools if about[t.name] == noun]
        there = [t for t in own if phrases[t.name].deed not in ("create", "send")]
        ids = [(a, phrases[t.name].deed == "read") for t in there for a in t.id_arguments if a not in OWN_KEYS]
        named = {a: kind_of_key(a, kinds)[0] for a, _ in ids}
        both = [a for a, n in named.items() if n == noun or (n in bare and {(a, True), (a, False)} <= {*ids})]
        one = {a for t in there if not phrases[t.name].plural for a in t.id_arguments if [a] == [*properties(t)]}
        rest = [a for a, n in named.items() if not n and ((a, False) in ids or ids.count((a, True)) > 1 or a in one)]
        rest.sort(key=lambda a: -sum(i[0] == a for i in ids))  # what most of them take
        plain = (a for t in reversed(own) for a in (*OWN_KEYS, f"{noun}_name") if a in properties(t))
        plain = (a for a in plain if a not in kinds[noun].fields)  # a policy that lists the name means another key
        if key := next(iter((*both, *rest, *plain)), ""):
            done[noun] = replace(kinds[noun], key=key)
            done = {n: k for n, k in done.items() if n not in bare or n != named.get(key)}
    return done


def offered(kinds: Mapping[str, Kind], tools: Sequence[Tool], phrases: Phrases, party: str) -> set[str]:
    """Return the kinds that are there for everybody: listed whoever asks, and only booked, joined or ordered by a customer."""
    found: dict[str, set[str]] = {}
    for tool in tools:
        keys = {kind_of_key(a, kinds)[0] for a in properties(tool)} - {""}
        about = match_kind(phrases[tool.name].nouns, kinds)
        deed = phrases[tool.name].deed if party in keys or phrases[tool.name].deed != "create" else "other"
        for name in keys - {party} if deed != "read" else {about} - {""}:
            found.setdefault(name, set()).add("own" if deed == "read" and party in keys else deed)
    return {n for n, deeds in found.items() if n != party and deeds == {"read", "create"}}


def locale_of(tools: Iterable[Tool], policy: Policy | None) -> str:
    """Return the language of a policy; of an English one the country too, where money and words name one alone."""
    told = "\n".join([policy.text if policy else "", *(f"{t.description} {dict(t.parameters)}" for t in tools)])
    named = [c for c, sign in load_words("world_values")["signs"].items() if re.search(sign, told)]
    country = named[0] if len(named) == 1 and named[0] != "elsewhere" else "en_US"
    return country if policy is None or policy.language == "en" else policy.language


def _keys(tools: Sequence[Tool], spec: WorldSpec, *, method: bool) -> dict[str, tuple[str, str]]:
    """Return kind to (key argument, why); ``method``: whether a payment id names a payment method."""
    votes: dict[str, Counter[str]] = {}
    for tool in tools:
        for name, _ in walk_schemas(properties(tool)):
            noun, many = key_noun(name)
            noun = "payment_method" if noun == "payment" and method else noun
            if noun:
                votes.setdefault(noun, Counter()).update([name] if not many and not is_value(name, {}) else [])
    for kind, told in (spec.entities or {}).items():
        if "key" in told or kind not in votes:  # what says nothing of the key leaves it as it was
            votes[kind] = Counter({str(told.get("key", f"{kind}_id")): 1})
    best = {n: c.most_common(1)[0][0] if c else f"{n}_id" for n, c in votes.items()}
    return {n: (best[n], f"argument {n} in {sum(c.values())} tool(s)") for n, c in votes.items()}


def _nouns(tools: Iterable[Tool], phrases: Phrases, facts: PolicyFacts, known: set[str]) -> list[str]:
    """Objects of tool names that no key argument tells of: what is created, listed or searched."""
    never = set(load_words("world_nouns")["never"])
    parts = {singular(a.name.split("_")[-1]) for told in facts.attributes.values() for a in told if a.each}
    found: list[str] = []
    for tool in tools:
        phrase = phrases[tool.name]
        if phrase.deed in ("handoff", "compute") or match_kind(phrase.nouns, known):
            continue
        noun = "_".join(n for n in phrase.nouns if n not in never)
        single = [k for k in properties(tool) if key_noun(k)[0] and not key_noun(k)[1]]
        if single and not parts.isdisjoint(phrase.nouns):
            continue  # a line of an order is no record of its own
        own = {"id", "key", "uuid", "code", "name"} & set(properties(tool))
        own = own or {a for a in tool.id_arguments if not key_noun(a)[0]}
        short = any(noun in key_noun(k)[0].split("_") for k in single)  # the dues of a dues account are the account's
        others = (t for t in tools if t.effect != tool.effect and not short)
        own = own or {t.name for t in others if phrases[t.name].nouns[:1] == (noun,)}
        told = phrase.plural if phrase.deed == "read" else phrase.deed in ("create", "send")
        if noun and (told or own or not single):
            found.append(noun)
            known.add(noun)
    return found


def _party(tools: Sequence[Tool], phrases: Phrases, facts: PolicyFacts, names: Iterable[str]) -> str:
    votes: Counter[str] = Counter()
    for tool in tools:
        keyed, nouns = {key_noun(name)[0] for name in properties(tool)}, phrases[tool.name].nouns
        votes.update(dict.fromkeys(keyed, 3))
        votes.update(dict.fromkeys(nouns, 0 if keyed - {"", *nouns} else 1))  # who is put into a thing is not who asks
    votes.update(dict.fromkeys(facts.attributes, 3))
    parties = (*load_words("world_nouns")["party"], *(n for n in votes if n.endswith("holder")))
    known = [noun for noun in parties if noun in names and noun in votes]
    return max(known, key=votes.__getitem__, default="")


def _policy_fields(kind: Kind, told: Sequence[Attribute], plural_of: Mapping[str, str]) -> dict[str, Field]:
    fields: dict[str, Field] = {}
    why = "attribute list in the policy"
    for attribute in told:
        name = attribute.name
        noun, many = key_noun(name)
        parts = name.split("_")
        target = plural_of.get("_".join([*parts[:-1], singular(parts[-1])]), "")
        if noun == kind.name or (name in plural_of and not attribute.inner):
            continue  # its own key, or the record that it belongs to: the tools say how that is named
        several = target not in ("", kind.name) and (singular(parts[-1]) != parts[-1] or name.endswith("info"))
        if link := target if several else noun:
            role, nullable = "links" if many or several else "link", attribute.nullable and link == noun
            fields[name] = Field(name=name, role=role, link=link, nullable=nullable, why=why)
            continue
        inner, options, nullable = tuple(_inner(i, why) for i in attribute.inner), attribute.options, attribute.nullable
        plain = "count" if attribute.number else "moment" if name.endswith("ed_time") else role_of(name)
        role = "choice" if options else "items" if attribute.each else "group" if inner else plain
        fields[name] = Field(name=name, role=role, options=options, inner=inner, nullable=nullable, why=why)
    return fields


def _spread(names: Sequence[str], options: Sequence[str]) -> dict[str, Field]:
    """Return fields that hold a number for each word of a vocabulary: the price of each class."""
    roles = {n: "money" if role_of(singular(n)) == "money" else "count" for n in names if options}
    inner = {n: tuple(Field(name=snake(o), role=role) for o in options) for n, role in roles.items()}
    why = "attribute the policy lists for each word"
    return {n: Field(name=n, role="group", inner=parts, why=why) for n, parts in inner.items()}


def _inner(name: str, why: str) -> Field:
    noun, many = key_noun(name)
    return Field(name=name, role="links" if noun and many else role_of(name), link=noun if many else "", why=why)


def proofs_of(tool: Tool, phrase: Phrase, kind: Kind, key: str = "") -> tuple[str, ...]:
    """Return the arguments that show who asks: a birth date, a PIN, and where a person may be meant an e-mail, a name.

    An e-mail may be what a read is about: it shows who asks where a tool verifies, reads the record itself, or does
    without the key. What a write takes is mostly written: it shows who asks where it must be given to end a record. A
    zip code by itself is a place; the other end of a deed, or a new value, is somebody else's.
    """
    schemas, required = properties(tool), first_form(dict(tool.parameters)).get("required") or ()
    writes, ends = phrase.deed != "read", {w for pair in load_words("world_nouns")["ends"] for w in pair}
    whole = not {*phrase.nouns} - {*kind.name.split("_"), *EMPTY, "status"}
    if kind.catalogue or (writes and not (whole and phrase.deed in ("status", "delete"))):
        return ()
    shows = phrase.verb in ("verify", "authenticate", "identify")
    person = whole or key not in required or shows
    roles = (*WHO["proof"], *(WHO["person"] if person else ()))
    asked = required if writes or shows else schemas
    own = [a for a in asked if a != key and (role_of(a) in roles or (shows and whole))]
    other = {a for a in own if {*name_words(a)[:1]} & (ends - {"first", "last"}) or is_value(a, schemas.get(a, {}))}
    return tuple(a for a in own if a not in other) if key or any(role_of(a) != "zip" for a in own) else ()
