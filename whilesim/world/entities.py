"""Entities: a world inferred from tools and a policy: kinds, their links, what each tool does."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from datetime import datetime
from typing import Any

from whilesim.core.templates import load_words
from whilesim.core.text import name_words
from whilesim.situations.policy import Policy
from whilesim.situations.tools import Tool
from whilesim.world.attributes import PolicyFacts, pattern, read_policy_facts, snake, split_list
from whilesim.world.deeds import Deed, infer_deed, infer_own_deed, listed_statuses, tells
from whilesim.world.discovery import locale_of, offered, own_keys, read_kinds
from whilesim.world.kinds import (
    BUNDLES,
    WHO,
    Field,
    Kind,
    describe_field,
    happened,
    key_noun,
    kind_of_key,
    mappings,
    parts_of,
    properties,
    role_of,
    walk_schemas,
)
from whilesim.world.model import WorldModel
from whilesim.world.spec import WorldSpec
from whilesim.world.targets import grown
from whilesim.world.verbs import read_name

_NOW = datetime(2026, 3, 2, 10, 0)


def infer_world(
    tools: Sequence[Tool], policy: Policy | None = None, spec: WorldSpec | None = None, *, customer_tools: Sequence[Tool] = ()
) -> WorldModel:  # fmt: skip
    """Infer kinds, fields, links and deeds from the tools and the policy; a spec overrides each.

    Nothing is drawn here: the same input gives the same model.
    """
    spec = spec or WorldSpec()
    known = {t.name for t in tools}
    own = {t.name for t in customer_tools} - known
    tools = [_told(tool, spec) for tool in (*tools, *(t for t in customer_tools if t.name in own))]
    facts = read_policy_facts(policy.text if policy else "")
    phrases = {t.name: read_name(t) for t in tools}
    kinds, party = read_kinds([t for t in tools if t.name in known], phrases, facts, spec)
    kinds = {n: _settle(k, party, facts) for n, k in own_keys(kinds, tools, phrases, party).items()}
    kinds |= {n: replace(kinds[n], catalogue=True) for n in offered(kinds, tools, phrases, party)}
    kinds["session"] = Kind(name="session", key="", single=True, why="tools that name no record")
    deeds: dict[str, Deed] = {}
    for tool in sorted(tools, key=lambda t: (t.name in own, t.effect == "write")):  # reads show how writes spell it
        phrase = phrases[tool.name]
        mine = infer_own_deed(tool, phrase, kinds, deeds.values(), facts) if tool.name in own else None
        deeds[tool.name] = deed = _spec_deed(mine or infer_deed(tool, phrase, kinds, party, facts), spec)
        if deed.kind and deed.kind not in kinds:
            kinds[deed.kind] = _settle(Kind(name=deed.kind, key=f"{deed.kind}_id", why=deed.why), party, facts)
        kinds = _grow(kinds, deed, tool, party)
    kinds = {n: _usual(k) if n in {d.kind for d in deeds.values()} else k for n, k in kinds.items()}
    told = {t.name: t.description for t in tools}
    for deed in deeds.values():
        _promise(kinds, deed, told.get(deed.tool, ""))
    kinds = {n: _pointed(k, kinds) for n, k in kinds.items()}
    kinds = {n: _spec_kind(k, spec) for n, k in _link(kinds, deeds, party).items()}
    kinds = {n: k if k.parent in kinds else replace(k, parent="") for n, k in kinds.items()}  # nothing hangs on air
    shown = _key_arguments(tools, deeds, {k.key for k in kinds.values()})
    kinds = {n: _keyed(k, shown, party) for n, k in kinds.items()}
    return WorldModel(
        tools={t.name: t for t in tools}, kinds=kinds, deeds=deeds, party=party if party in kinds else "", now=facts.now or _NOW,
        locale=locale_of(tools, policy) if spec.locale == "en_US" else spec.locale, spec=spec,
        sentences=_facts_of(policy.text) if policy else (),
    )  # fmt: skip


def _facts_of(text: str) -> tuple[str, ...]:
    """Return the sentences of a policy that may be read out to a customer: none that tell an agent what to do."""
    lines = (line.strip(" -*#>") for line in text.splitlines())
    said = (s for line in lines for s in re.split(r"(?<=[.!?]) ", line) if len(s.split()) > 4)
    return tuple(s for s in said if pattern("tells").search(s) and not pattern("to_agent").search(s))


def _told(tool: Tool, spec: WorldSpec) -> Tool:
    effect = (spec.tools or {}).get(tool.name, {}).get("effect")
    tool = replace(tool, effect=effect, effect_rule="as the spec says") if effect else tool
    tool = replace(tool, returns=(spec.returns or {}).get(tool.name, tool.returns))
    if tool.name not in (spec.examples or {}):
        return tool
    given = (spec.examples or {})[tool.name]
    paired = isinstance(given, list) and given and all(isinstance(p, (list, tuple)) and len(p) == 2 for p in given)
    return replace(tool, examples=(*([(p[0], p[1]) for p in given] if paired else [({}, given)]), *tool.examples))


def _settle(kind: Kind, party: str, facts: PolicyFacts) -> Kind:
    """Give a kind its vocabulary, its status field and its place: shared, or somebody's."""
    fields = dict(kind.fields)
    last = kind.name.split("_")[-1]
    for phrase, options in facts.options.items():
        bare = next((phrase.removeprefix(f"{n}_") for n in (kind.name, last) if phrase.startswith(f"{n}_")), "")
        own = kind.find(bare or phrase) or kind.find(phrase) or bare
        told = fields.get(own, Field(name=own, why="vocabulary in the policy"))
        if bare or (own in fields and not told.options and not told.link):
            fields[own] = replace(told, options=options, role="choice")
    status = next((f for f in ("status", f"{kind.name}_status") if f in fields), "")
    status = status or next((f for f in fields if f.endswith("status") and fields[f].options), "")
    if last in load_words("world_nouns")["slots"]:
        fields.setdefault("time", Field(name="time", role="time", example="10:00", why="a slot has a time"))
    if last in ("quote", "rate", "price", "estimate"):
        fields.setdefault("amount", Field(name="amount", role="money", why="a quote has an amount"))
    catalogue = kind.name != party and last in load_words("world_nouns")["catalogue"]
    return replace(kind, fields=fields, status=status, catalogue=catalogue)


def _grow(kinds: dict[str, Kind], deed: Deed, tool: Tool, party: str) -> dict[str, Kind]:
    """Add the fields that a tool's arguments, its replies and its deed tell of; who asks is told of by the customer's own record."""
    if not deed.kind:
        return kinds
    arguments = properties(tool)
    named = [*((a, a, s) for a, s in arguments.items()), *parts_of(arguments)]
    given = {path: describe_field(name, s, f"argument of {tool.name}") for path, name, s in named}
    home, kind = kinds.get(party), kinds[deed.kind]
    asked = [a for a in deed.proofs if home and home != kind and not kind.find(a)]
    theirs = {a: given[a] for a in asked if home and (home.find(a) or role_of(a) in WHO["person"])}
    if home and (new := {a: told for a, told in theirs.items() if not home.find(a)}):
        kinds = {**kinds, party: replace(home, fields={**home.fields, **new})}
    by = {a: kind.find(a) or a for a in deed.proofs} | {**deed.by}
    kind = _asked(kind, replace(deed, by={a: t for a, t in by.items() if a not in theirs}), given)
    for source in (tool.returns, *(schema_of(reply) for _, reply in tool.examples)):
        kind = _replied(kind, deed, source)
    listed = listed_statuses(tool, kind.name) if deed.reads and kind.key else ()
    return {**kinds, kind.name: _with_status(_fixed(kind, deed), deed, listed)}


def _asked(kind: Kind, deed: Deed, given: Mapping[str, Field]) -> Kind:
    """Add what a deed's arguments write, then what they search by."""
    fields = {**kind.fields, **grown(deed.names, given, kind)}
    moved = {} if deed.moved else {**deed.adds, **deed.lowers}
    for target, new in {t: given[a] for a, t in {**deed.sets, **moved}.items() if a in given}.items():
        home = target.partition(".")[0]  # an argument's own name may hold a dot
        if home in fields and (home != target or fields[home].is_address):
            fields = _with_part(fields, target, new)
        elif deed.action in ("create", "change") and not (new.link == kind.name and new.role == "link"):
            if old := target not in fields and replace(kind, fields=fields).replaced_by(target, new.options):
                fields.pop(old)
            bare = new.role in ("text", "word", "name") and not new.inner
            asked = kind.catalogue if deed.action == "create" else kind.name == "session"
            stamp = new.role in ("date", "moment") and (happened(target) or name_words(target)[-1:] in (["at"], ["on"]))
            late = (bare and asked) or (deed.action == "change" and (stamp or bool(deed.after)))
            loose = (new.type == "object" and not new.inner) or target in BUNDLES  # is merged into the record
            if not loose and not target.endswith(("_to_add", "_to_remove")):
                new = replace(new, name=target, nullable=late and target not in fields)
                fields[target] = fields[target].joined(new) if target in fields else new
    for argument, target in ((a, t) for a, t in deed.by.items() if t != kind.key):
        if "." in target and target.partition(".")[0] in fields:
            fields = _with_part(fields, target, given[argument])
        elif target in fields or given[argument].role != "text":
            new = replace(given[argument], name=target)
            fields[target] = fields[target].joined(new) if target in fields else new
    return replace(kind, fields=fields)


def _usual(kind: Kind) -> Kind:
    """Give a kind of which nothing says what it holds the fields that such records usually have."""
    if any(f.why.startswith(("attribute", "reply", "as the spec")) for f in kind.fields.values()):
        return kind
    fields, why = dict(kind.fields), "what such a record usually holds"
    for name, told in load_words("world_values")["usual_fields"].get(kind.name.split("_")[-1], {}).items():
        options = tuple(told) if isinstance(told, list) else ()
        if not (kind.find(name) or _told_by_unit(kind, told)):
            fields[name] = Field(name=name, role="choice" if options else told, options=options, why=why)
    return replace(kind, fields=fields, status=kind.status or ("status" if "status" in fields else ""))


def _told_by_unit(kind: Kind, role: str) -> bool:
    """Whether a kind has an amount under another name, or its currency in that name: ``amount_eur``."""
    units = {u.lower() for u in load_words("world_values")["currencies"].values()}
    said = any(units & {*name_words(f)} for f in kind.fields)
    priced = role == "money" and any(f.role == "money" for f in kind.fields.values())
    return priced or (said and role in ("money", "currency"))


def _promise(kinds: dict[str, Kind], deed: Deed, described: str) -> None:
    """Add what the description of a read says it shows, and no record has; of a whole record what has a known form."""
    own = deed.kind == "session"
    kind = kinds.get(deed.kind) if deed.reads and not deed.shows else None
    named = _listed(described, kind) if kind and kind.key else ()
    for name in deed.shows if own else (*deed.shows[1:], *named):
        told = (f for k in kinds.values() if own == (k.name == "session") for f in k.fields)
        if name != "all" and not any(tells(f, name) for f in told):
            role = "flag" if name.startswith(("can_", "is_", "has_")) else role_of(name)
            new = Field(name=name, role=role, why=f"what {deed.tool} shows")
            kinds[deed.kind] = replace(kinds[deed.kind], fields={**kinds[deed.kind].fields, name: new})


def _listed(described: str, kind: Kind) -> list[str]:
    """Return the fields of a known form that a description lists: "Get a bill: amount, due date and plan"."""
    found = pattern("listed").search(described)
    parts = split_list(re.sub(r"\([^)]*\)", "", described[found.end() :][:600]).split(". ")[0]) if found else ()
    said = {w for f in (*kind.fields, kind.key) for w in name_words(f)} - {"date", "day", "time"}
    names = (snake(part) for part in parts)
    return [
        n for n in names if role_of(n) not in ("word", "name") and said.isdisjoint(name_words(n)) and "type" not in n
    ]


def _fixed(kind: Kind, deed: Deed) -> Kind:
    fields, why = dict(kind.fields), f"what {deed.tool} changes"
    for name in filter(None, (*deed.fixed, deed.toggles)):
        flips = name == deed.toggles or str(deed.fixed.get(name)).startswith("@switch")
        new = Field(name=name, role="switch" if flips else "moment", nullable=not flips, why=why)
        told = fields.setdefault(name, new)
        fields[name] = replace(told, role="switch") if flips and told.role == "word" else told
    return replace(kind, fields=fields)


def _with_status(kind: Kind, deed: Deed, listed: tuple[str, ...]) -> Kind:
    """Give a kind the statuses that its tools set or show."""
    status = kind.status or ("status" if "status" in kind.fields else "")
    shown = deed.action == "get" and "status" in deed.tool.lower() and kind.name != "session"
    if not (status or shown or deed.after or listed):
        return kind
    status = status or "status"
    usual = load_words("world_values")["usual_statuses"]
    start = listed or tuple(usual.get(kind.name.split("_")[-1], ("active",) if deed.after else usual["record"]))
    told = kind.fields.get(status, Field(name=status, options=start, why=f"what {deed.tool} changes or shows"))
    options = told.options or (start if deed.after or listed else ())
    options = options if not deed.after or deed.after in options else (*options, deed.after)
    told = replace(told, options=options, role="choice" if options else told.role)
    return replace(kind, fields={**kind.fields, status: told}, status=status)


def _with_part(fields: dict[str, Field], target: str, new: Field) -> dict[str, Field]:
    """Put a part of an address into the field that holds the address."""
    home, _, part = target.partition(".")
    told = fields[home]
    if not part or any(i.name == part for i in told.inner):
        return fields
    return {**fields, home: replace(told, role="group", inner=(*told.inner, replace(new, name=part)))}


def _replied(kind: Kind, deed: Deed, schema: Mapping[str, Any] | None) -> Kind:
    """Add the fields that replies show; where a list is wrapped in an object, those of its rows."""
    if not schema or deed.action not in ("get", "create", "find", "list"):
        return kind
    shown = schema.get("items") if schema.get("type") == "array" else schema
    found = mappings(shown.get("properties")) if isinstance(shown, Mapping) else {}
    lists = [s.get("items") or {} for s in found.values() if s.get("type") == "array"]
    rows = next((r for r in lists if kind.key in (r.get("properties") or {})), None)
    if rows or (deed.action in ("find", "list") and len(lists) == len(found) == 1):
        return _replied(kind, deed, rows) if rows else kind
    for name, inner in found.items():
        own = kind.find(name)
        apart = not own or (own != name and own in found)  # two names in one reply are two things
        guessed = own == name and kind.fields[name].why.startswith("what ")
        if (apart or guessed) and name not in (kind.key, "id", "success", "error", "message"):
            told = describe_field(name, inner, f"reply of {deed.tool}")
            if not apart:  # words that were guessed of a status before make room
                words, old = told.options, kind.fields[name]
                told = replace(old, options=words, schema=told.schema, type=told.type) if words else old
            kind = replace(kind, fields={**kind.fields, name: told})
    return kind


def schema_of(reply: Any) -> dict[str, Any]:
    """Return a rough schema of an example."""
    if isinstance(reply, Mapping):
        return {"type": "object", "properties": {str(k): schema_of(v) for k, v in reply.items()}}
    if isinstance(reply, list):
        first: Any = schema_of(reply[0]) if reply else {}
        for name, inner in (first.get("properties") or {}).items():
            seen = dict.fromkeys(r[name] for r in reply if isinstance(r, Mapping) and isinstance(r.get(name), str))
            inner |= {"examples": list(seen)} if len(seen) > 1 else {}
        return {"type": "array", "items": first}
    kind = {bool: "boolean", int: "integer", float: "number"}.get(type(reply), "string")
    return {"type": kind, "example": reply} if kind in ("integer", "string") and reply is not None else {"type": kind}


def _link(kinds: dict[str, Kind], deeds: Mapping[str, Deed], party: str) -> dict[str, Kind]:
    """Find out what is one of a kind, what is shared, what is only ever written, and how much there is of each."""
    parents = _parents(kinds, deeds, party)
    told = {f.link for k in kinds.values() for f in k.fields.values() if f.link}
    told |= {kind_of_key(d.owner, kinds)[0] for d in deeds.values()}  # others go by it: it is there already
    done = {}
    for name, kind in kinds.items():
        mine = [d for d in deeds.values() if d.kind == name]
        if not mine and name not in told and name != party and not (kind.fields and name != "session"):
            continue
        actions = {d.action for d in mine}
        for_all = name != party and all(d.action == "find" and d.by and not (d.owner or d.proofs) for d in mine)
        searched = bool(mine) and for_all
        parent = "" if searched or name == party else parents.get(name, "")
        catalogue = searched or (kind.catalogue and not (party and parent == party))
        owned = any(d.owner for d in mine if d.action in ("get", "list"))
        single = owned and "change" in actions and name != party and not kind.catalogue and not any(d.key for d in mine)
        outbox = actions == {"create"} and name not in told
        seen = max((len(f.seen) for f in kind.fields.values() if f.role == "name"), default=0)
        seen = len(load_words("world_values")["airports"]) if name == "airport" else seen
        count = 0 if outbox else kind.count or (4 if name == party else seen or 6 if catalogue else 2 if parent else 5)
        kind = replace(kind, parent=parent, catalogue=catalogue, outbox=outbox)
        done[name] = replace(kind, single=kind.single or single, count=count)
    return done


def _pointed(kind: Kind, kinds: Mapping[str, Kind]) -> Kind:
    """Let the fields that are keys of other kinds point at them: a voucher's ``booking_ref``."""
    fields = dict(kind.fields)
    for name, told in fields.items():
        link, many = kind_of_key(name, kinds)
        if link not in ("", kind.name, told.link) and told.link not in kinds and not told.inner:
            fields[name] = replace(told, role="links" if many else "link", link=link)
    return replace(kind, fields=fields)


def _parents(kinds: Mapping[str, Kind], deeds: Mapping[str, Deed], party: str) -> dict[str, str]:
    """Return what each kind belongs to: by link, by list, by a tool that asks whose it is, else the party."""
    parents: dict[str, str] = {}
    for name, kind in kinds.items():
        for f in kind.fields.values():
            holds = f.role in ("links", "items") and f.link in kinds and f.link != name
            if holds and (name == party or kind.catalogue):
                parents.setdefault(f.link, name)
            if f.role == "link" and f.link == party and not kind.catalogue:
                parents[name] = party
    for deed in deeds.values():
        owner = kind_of_key(deed.owner, kinds)[0]
        if owner and deed.kind in kinds and owner != deed.kind != party and not kinds[deed.kind].catalogue:
            parents.setdefault(deed.kind, owner)
    seen = {d.kind for d in deeds.values() if d.action != "create"}  # what is only written holds nothing yet
    for name, kind in kinds.items():
        if name not in parents and name not in ("session", party) and not kind.catalogue:
            others = (k for k in kinds.values() if not k.catalogue and k.name != name and k.name in seen)
            parents[name] = "" if any(f.link == name for k in others for f in k.fields.values()) else party
    return parents


def _key_arguments(tools: Sequence[Tool], deeds: Mapping[str, Deed], keys: Set[str]) -> dict[str, list[Field]]:
    """Return how keys look in the tools' arguments, in nested ones too: by argument, and by kind for a deed's own key."""
    shown: dict[str, list[Field]] = {}
    for tool in tools:
        deed = deeds[tool.name]
        for argument, schema in walk_schemas(properties(tool)):
            if argument == deed.key or key_noun(argument)[0]:
                told = next((str(a[argument]) for a, _ in tool.examples if argument in a), "")
                found = describe_field(argument, schema, "")
                found = replace(found, example=found.example or told)
                shown.setdefault(argument, []).append(found)
                if argument == deed.key:
                    shown.setdefault(f"{deed.kind}.", []).append(found)
        for name, schema in walk_schemas({"": tool.returns or {}}):
            if name in keys:
                shown.setdefault(f"reply.{name}", []).append(describe_field(name, schema, "", 4))
    return shown


def _keyed(kind: Kind, shown: Mapping[str, Sequence[Field]], party: str) -> Kind:
    """Find out how keys of a kind look, and whether its records are people."""
    best, told = Field(name=kind.key), (*shown.get(kind.key, ()), *shown.get(f"{kind.name}.", ()))
    for found in told:
        if not best.example or (found.type == "integer" and best.type != "integer"):
            best = found
    people = kind.name == party or any(role_of(f) in ("first_name", "full_name", "email", "dob") for f in kind.fields)
    replies = shown.get(f"reply.{kind.key}", ())
    rules = {k: v for f in (*replies, *told) if f.type == best.type for k, v in f.schema.items()}
    return replace(kind, key_like=replace(best, schema=rules), people=people)


def _spec_deed(deed: Deed, spec: WorldSpec) -> Deed:
    told, words = (spec.tools or {}).get(deed.tool, {}), {"entity": "kind", "post": "after"}
    changes = {words.get(w, w): told[w] for w in ("action", "entity", "post", "sets") if w in told}
    changes |= {"before": tuple(map(str, told["pre"]))} if "pre" in told else {}
    if changes.get("kind", deed.kind) != deed.kind or {*deed.names} & {*changes.get("sets", ())}:
        changes |= {"rows": "", "way": "", "parts": {}, "names": {}, "lowers": {}, "moved": ""}  # of another record
    return replace(deed, **changes, why="as the spec says", guessed=False) if changes else deed


def _spec_kind(kind: Kind, spec: WorldSpec) -> Kind:
    told, why = (spec.entities or {}).get(kind.name, {}), "as the spec says"
    fields, status = dict(kind.fields), kind.status or ("status" if told.get("status") else "")
    for name, value in (told.get("fields") or {}).items():
        link = str(value).removesuffix("[]") if str(value).endswith("[]") else ""
        fields.setdefault(name, Field(name=name, role="links" if link else str(value), link=link, why=why))
    if told.get("status"):
        new = fields.get(status, Field(name=status, why=why))
        fields[status] = replace(new, options=tuple(map(str, told["status"])), role="choice")
    same = {w: told[w] for w in ("key", "parent", "count", "catalogue", "single") if w in told}
    return replace(kind, fields=fields, status=status, **same)
