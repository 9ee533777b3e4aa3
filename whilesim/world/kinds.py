"""Kinds: which kinds of record a set of tools works on, and what stands in each.

Evidence, strongest first: what the user says, key arguments, attribute lists in the policy,
reply schemas and example replies, the object of a tool's name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from whilesim.core.templates import load_words
from whilesim.core.text import name_words
from whilesim.situations.tools import Tool
from whilesim.world.attributes import Attribute, PolicyFacts, singular, split_list
from whilesim.world.spec import WorldSpec
from whilesim.world.verbs import Phrase

_EXAMPLE = re.compile(
    r"(?:such as|e\.g\.,?|example:|for example,?|like|z\.B\.)\s+['\"`“]?([#\w+@.:/ -]*[\w])", re.IGNORECASE
)
_QUOTED = re.compile(r"['\"`“]([^'\"`”]+)['\"`”]")
_EITHER = re.compile(
    r"(?:either|one of|should be|must be|can be|levels?:|category:|types?:|values?:)\s*:?\s*(.+)",
    re.IGNORECASE | re.DOTALL,
)
_PARAMETERS = frozenset({"limit", "k", "page", "offset", "sort", "order_by", "sort_by", "page_size", "cursor", "format",
                         "max_results", "top_k", "per_page"})  # fmt: skip
_ADDRESS = frozenset({"street", "unit", "city", "state", "country", "zip"})
_FILLERS = frozenset({"status", "type", "class", "total", "full", "default", "travel", "scheduled", "list"})
_VALUE_PREFIX = ("new", "old", "target", "original", "current", "updated", "desired", "replacement")


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of a kind of record."""

    name: str
    role: str = "word"
    """What stands in it: a row of ``roles`` in the word list, or id, choice, link, links, group, items."""
    type: str = ""
    """JSON type, where a schema states one."""
    options: tuple[str, ...] = ()
    example: str = ""
    link: str = ""
    """Kind that the field points at."""
    inner: tuple[Field, ...] = ()
    nullable: bool = False
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of record."""

    name: str
    key: str
    parent: str = ""
    """Kind that it belongs to; empty for the party and for what belongs to nobody."""
    fields: Mapping[str, Field] = field(default_factory=dict)
    status: str = ""
    """Name of its status field."""
    catalogue: bool = False
    single: bool = False
    """One for each parent, or one in all: a cart, a device, a session."""
    outbox: bool = False
    """Only ever written: starts empty, and shows in what it belongs to."""
    key_like: Field = Field(name="")
    """How a key looks: example and type, from the arguments that take one."""
    people: bool = False
    """Whether its records are of people."""
    count: int = 0
    """Records in the world at the start; for a child, records for each parent."""
    why: str = ""


def kind_of_key(argument: str, kinds: Iterable[str]) -> tuple[str, bool]:
    """Return the kind among ``kinds`` that an argument names, and whether it names several."""
    noun, many = key_noun(argument)
    if noun not in kinds:
        noun = f"{noun}_method" if noun and f"{noun}_method" in kinds else ""
    return noun, many


@cache
def key_noun(argument: str) -> tuple[str, bool]:
    """Return the kind that an argument names and whether it names several; ``('', False)`` for none."""
    parts = name_words(argument)
    while len(parts) > 1 and parts[0] in _VALUE_PREFIX:
        parts = parts[1:]
    last = parts[-1] if parts else ""
    many = last in ("ids", "uuids", "numbers", "keys")
    if last in ("id", "ids", "uuid", "uuids", "guid"):
        return "_".join(singular(p) for p in parts[:-1]), many
    if last in ("number", "numbers", "no", "code") and "_".join(parts[:-1]) in load_words("world_nouns")["numbered"]:
        return "_".join(parts[:-1]), many
    return "", False


def is_value(argument: str, schema: Mapping[str, Any]) -> bool:
    """Whether a key argument names the new value rather than the record to work on."""
    told = str(schema.get("description", "")).lower()
    return name_words(argument)[:1] == ["new"] or " new " in f" {told[:40]} "


def properties(tool: Tool) -> dict[str, Mapping[str, Any]]:
    """Return a tool's arguments and their schemas."""
    found = tool.parameters.get("properties") or {}
    return {str(k): v if isinstance(v, Mapping) else {} for k, v in found.items()}


def is_bound(argument: str) -> bool:
    """Whether an argument of a search bounds it or is matched as a whole, and names no field."""
    return argument.lower() in (
        "q",
        "from",
        "to",
        "since",
        "until",
        "from_date",
        "to_date",
        "start",
        "end",
        "filter",
        "filters",
    )


def is_parameter(argument: str) -> bool:
    """Whether an argument says how to answer, not what about."""
    return argument.lower() in _PARAMETERS


@cache
def role_of(name: str) -> str:
    """Return what a field of this name holds; ``word`` where nothing is known."""
    roles = load_words("world_nouns")["roles"]
    parts = name_words(name)
    for size in range(min(4, len(parts)), 0, -1):
        for ending in ("_".join(parts[-size:]), "_".join([*parts[-size:-1], singular(parts[-1])])):
            for role, names in roles.items():
                if ending in names:
                    return str(role)
    if len(parts) > 1 and parts[-1] in ("at", "on", "history"):
        return (
            "moment"
            if parts[-1] != "history"
            else "ledger"
            if parts[0] in ("payment", "transaction", "billing")
            else "word"
        )
    if parts and parts[-1] == "name":
        return "full_name" if len(parts) > 1 and parts[0] in load_words("world_nouns")["party"] else "name"
    return next((r for r in ("money", "count") if any(p in roles[r] for p in parts)), "word")


def describe_field(name: str, schema: Mapping[str, Any], why: str) -> Field:
    """Make a field of an argument's or a reply's schema."""
    told = str(schema.get("description", ""))
    options = tuple(str(o) for o in schema.get("enum") or () if o is not None) or _options_of(told)
    kind = schema.get("type")
    kind = next((k for k in kind if k != "null"), "string") if isinstance(kind, list) else str(kind or "")
    noun, many = key_noun(name)
    inner_schema = schema.get("items") if kind == "array" else schema
    inner_schema = inner_schema if isinstance(inner_schema, Mapping) else {}
    inner = tuple(
        describe_field(str(k), v if isinstance(v, Mapping) else {}, why)
        for k, v in (inner_schema.get("properties") or {}).items()
    )
    role = "choice" if options else "links" if noun and (many or kind == "array") else "link" if noun else role_of(name)
    if inner and not noun:
        role = "items" if kind == "array" else "group"
    return Field(
        name=name, role=role, type=kind, options=options, example=example_of(schema), link=noun, inner=inner, why=why
    )


def example_of(schema: Mapping[str, Any]) -> str:
    """Return the example that a schema shows, as text; empty where there is none."""
    for word in ("example", "example_value"):
        if isinstance(schema.get(word), (str, int)):
            return str(schema[word])
    if schema.get("examples") and isinstance(schema["examples"], list):
        return str(schema["examples"][0])
    found = _EXAMPLE.search(str(schema.get("description", "")))
    return found[1].strip() if found else ""


def merge(old: Field | None, new: Field) -> Field:
    """Join what two sources say of one field; a schema's spelling of the options wins."""
    if old is None:
        return new
    strong = new if new.type and not old.type else old
    return replace(
        old,
        type=old.type or new.type,
        role=new.role if old.role == "word" or (new.role == "choice" and not old.link) or new.inner else old.role,
        options=strong.options or old.options or new.options,
        example=old.example or new.example,
        link=old.link or new.link,
        inner=old.inner or new.inner,
        nullable=old.nullable,
    )


def find_field(kind: Kind, name: str) -> str:
    """Return the field of a kind that goes by this name or one that means the same; empty for none.

    A part of an address inside a record is ``address.city``.
    """
    if name in kind.fields:
        return name
    if (part := role_of(name)) in _ADDRESS and (
        home := next((f for f in kind.fields if is_address(kind.fields[f])), "")
    ):
        inner = next((i.name for i in kind.fields[home].inner if role_of(i.name) == part), name)
        return f"{home}.{inner}"
    table = load_words("world_nouns")["synonyms"]
    wanted = _stems(table.get(name, name))
    for other in kind.fields:
        if _stems(table.get(other, other)) == wanted:
            return other
    noun = set(kind.name.split("_"))
    for other in kind.fields:
        stems = _stems(other)
        if wanted < stems and len(stems) == len(wanted) + 1 and (stems - wanted) & (_FILLERS | noun):
            return other
    return ""


def replaced_by(kind: Kind, name: str, options: Sequence[str] = ()) -> str:
    """Return the policy's field that a schema's stands for: a shorter name, or the same options in other spelling."""
    wanted, same = _stems(name), sorted(_folded(o) for o in options)
    for field_name, told in kind.fields.items():
        shorter = _stems(field_name) < wanted and wanted - _stems(field_name) <= _FILLERS
        if told.why.startswith(("attribute", "vocabulary")) and not told.link and field_name != kind.status:
            if shorter or (same and same == sorted(map(_folded, told.options))):
                return field_name
    return ""


def _folded(option: str) -> str:
    return option.lower().replace("_", " ")


def is_address(told: Field) -> bool:
    """Whether a field holds an address with parts."""
    return not told.link and (
        told.role == "address" or (told.role == "group" and any(role_of(i.name) in _ADDRESS for i in told.inner))
    )


def _stems(name: str) -> frozenset[str]:
    return frozenset(singular(w) for w in name_words(name))


def _options_of(told: str) -> tuple[str, ...]:
    found = _EITHER.search(told)
    if not found or re.search(r"such as|e\.g\.", told):
        return ()
    quoted = tuple(_QUOTED.findall(found[1]))
    if len(quoted) > 1:
        return tuple(dict.fromkeys(quoted))
    values = split_list(found[1]) if "," in found[1] or " or " in found[1] else ()
    return values if len(values) > 1 and all(re.fullmatch(r"[\w -]{1,24}", v) for v in values) else ()


def infer_kinds(
    tools: Sequence[Tool], phrases: Mapping[str, Phrase], facts: PolicyFacts, spec: WorldSpec
) -> tuple[dict[str, Kind], str]:
    """Return the kinds by name, and which of them is the party (empty for none)."""
    keys = _keys(
        tools,
        spec,
        "payment_method" if any(k.startswith("payment_method") for k in (*facts.options, *facts.attributes)) else "",
    )
    aliases = {a: a if a in keys else next((k for k in keys if k == a.split("_")[-1]), a) for a in facts.attributes}
    names = dict.fromkeys([*keys, *aliases.values(), *_nouns(tools, phrases, keys, aliases), *(spec.entities or {})])
    party = _party(tools, phrases, facts, names)
    kinds = {
        n: Kind(name=n, key=keys.get(n, (f"{n}_id", ""))[0], why=keys.get(n, ("", "object of a tool's name"))[1])
        for n in names
    }
    plural_of = {a.split("_")[0]: n for a, n in aliases.items() if a != n} | {n: n for n in names}
    for told, name in aliases.items():
        kinds[name] = replace(
            kinds[name],
            fields=_policy_fields(kinds[name], facts.attributes[told], plural_of),
            why="attribute list in the policy",
        )
    return kinds, party


def _keys(tools: Sequence[Tool], spec: WorldSpec, known: str) -> dict[str, tuple[str, str]]:
    votes: dict[str, Counter[str]] = {}
    for tool in tools:
        for name, schema in _walk(properties(tool)):
            noun, many = key_noun(name)
            if noun == "payment" and "payment_method" in known:
                noun = "payment_method"
            if noun and not many and not is_value(name, {}):
                votes.setdefault(noun, Counter())[name] += 1
            elif noun:
                votes.setdefault(noun, Counter())
    for kind, told in (spec.entities or {}).items():
        votes[kind] = Counter({str(told.get("key", f"{kind}_id")): 1})
    return {
        noun: (
            count.most_common(1)[0][0] if count else f"{noun}_id",
            f"argument {noun} in {sum(count.values())} tool(s)",
        )
        for noun, count in votes.items()
    }


def _walk(found: Mapping[str, Any], depth: int = 0) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, schema in found.items():
        if isinstance(schema, Mapping):
            yield name, schema
            inner = schema.get("items") if isinstance(schema.get("items"), Mapping) else schema
            if depth < 4 and isinstance(inner, Mapping) and isinstance(inner.get("properties"), Mapping):
                yield from _walk(inner["properties"], depth + 1)


def _nouns(
    tools: Iterable[Tool], phrases: Mapping[str, Phrase], keys: Mapping[str, Any], aliases: Mapping[str, Any]
) -> list[str]:
    """Objects of tool names that no key argument tells of: what is created, listed or searched."""
    known = {*keys, *aliases}
    never = set(load_words("world_nouns")["never"])
    found: list[str] = []
    for tool in tools:
        phrase = phrases[tool.name]
        if phrase.deed in ("handoff", "compute") or match_kind(phrase.nouns, known):
            continue
        noun = "_".join(n for n in phrase.nouns if n not in never)
        single = [k for k in properties(tool) if key_noun(k)[0] and not key_noun(k)[1]]
        own = {"id", "key", "uuid", "code", "name"} & set(properties(tool))
        own = own or {t.name for t in tools if t.effect != tool.effect and phrases[t.name].nouns[:1] == (noun,)}
        if noun and (
            phrase.deed in ("create", "send") or own or (phrase.deed == "read" and phrase.plural) or not single
        ):
            found.append(noun)
            known.add(noun)
    return found


def match_kind(nouns: Sequence[str], known: Iterable[str]) -> str:
    """Return the known kind nearest to the right end of an object phrase; empty for none."""
    best, best_at = "", (-1, 0)
    for name in known:
        parts = name.split("_")
        for at in range(len(nouns) - len(parts) + 1):
            if list(nouns[at : at + len(parts)]) == parts and (at + len(parts), len(parts)) > best_at:
                best, best_at = name, (at + len(parts), len(parts))
    return best


def _party(tools: Sequence[Tool], phrases: Mapping[str, Phrase], facts: PolicyFacts, names: Iterable[str]) -> str:
    votes: Counter[str] = Counter()
    candidates = load_words("world_nouns")["party"]
    for tool in tools:
        for name in properties(tool):
            votes[key_noun(name)[0]] += 3
        votes.update(n for n in phrases[tool.name].nouns)
    votes.update(dict.fromkeys(facts.attributes, 3))
    ranked = [(votes[c], -i, c) for i, c in enumerate(candidates) if c in names and votes[c]]
    return max(ranked)[2] if ranked else ""


def _policy_fields(kind: Kind, told: Sequence[Attribute], plural_of: Mapping[str, str]) -> dict[str, Field]:
    fields: dict[str, Field] = {}
    why = "attribute list in the policy"
    for attribute in told:
        name = attribute.name
        noun, many = key_noun(name)
        parts = name.split("_")
        target = plural_of.get("_".join([*parts[:-1], singular(parts[-1])]), "")
        if noun == kind.name:
            continue
        if target and target != kind.name and (singular(parts[-1]) != parts[-1] or name.endswith("info")):
            fields[name] = Field(name=name, role="links", link=target, why=why)
        elif noun:
            fields[name] = Field(
                name=name, role="links" if many else "link", link=noun, nullable=attribute.nullable, why=why
            )
        else:
            inner = tuple(_inner(i, why) for i in attribute.inner)
            role = (
                "choice" if attribute.options else "group" if inner else "count" if attribute.number else role_of(name)
            )
            fields[name] = Field(
                name=name, role=role, options=attribute.options, inner=inner, nullable=attribute.nullable, why=why
            )
    return fields


def _inner(name: str, why: str) -> Field:
    noun, many = key_noun(name)
    return Field(
        name=name,
        role=("links" if many else role_of(name)) if noun else role_of(name),
        link=noun if many else "",
        why=why,
    )
