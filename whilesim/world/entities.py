"""Entities: a world inferred from tools and a policy: kinds, their links, what each tool does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from whilesim.core.templates import load_words
from whilesim.situations.policy import Policy
from whilesim.situations.tools import Tool
from whilesim.world.attributes import PolicyFacts, read_policy_facts
from whilesim.world.deeds import Deed
from whilesim.world.discovery import infer_kinds
from whilesim.world.kinds import (
    Field,
    Kind,
    describe_field,
    find_field,
    is_address,
    key_noun,
    kind_of_key,
    match_kind,
    merge,
    properties,
    replaced_by,
    role_of,
)
from whilesim.world.model import WorldModel
from whilesim.world.spec import WorldSpec
from whilesim.world.verbs import read_name
from whilesim.world.writes import fields_of_arguments, infer_deed, infer_own_deed, own_key

_NOW = datetime(2026, 3, 2, 10, 0)


def infer_world(
    tools: Sequence[Tool],
    policy: Policy | None = None,
    spec: WorldSpec | None = None,
    *,
    customer_tools: Sequence[Tool] = (),
) -> WorldModel:
    """Infer kinds, fields, links and deeds from the tools and the policy; a spec overrides each.

    Nothing is drawn here: the same input gives the same model.
    """
    spec = spec or WorldSpec()
    known = {t.name for t in tools}
    own = {t.name for t in customer_tools} - known
    tools = [_told(tool, spec) for tool in (*tools, *(t for t in customer_tools if t.name in own))]
    facts = read_policy_facts(policy.text if policy else "")
    phrases = {t.name: read_name(t) for t in tools}
    kinds, party = infer_kinds([t for t in tools if t.name in known], phrases, facts, spec)
    kinds = _own_keys(kinds, tools, phrases)
    kinds = {n: _settle(k, party, facts) for n, k in kinds.items()}
    kinds["session"] = Kind(name="session", key="", single=True, why="tools that name no record")
    deeds: dict[str, Deed] = {}
    for tool in tools:
        phrase = phrases[tool.name]
        deed = infer_own_deed(tool, phrase, kinds, deeds, facts) if tool.name in own else None
        deed = deed or infer_deed(tool, phrase, kinds, party, facts)
        deeds[tool.name] = deed = _spec_deed(deed, spec)
        if deed.kind and deed.kind not in kinds:
            kinds[deed.kind] = _settle(Kind(name=deed.kind, key=f"{deed.kind}_id", why=deed.why), party, facts)
        kinds = _grow(kinds, deed, tool)
    kinds = {n: _spec_kind(k, spec) for n, k in _link(kinds, deeds, party).items()}
    kinds = {n: _keyed(k, deeds, tools, party) for n, k in kinds.items()}
    language = policy.language if policy else "en"
    return WorldModel(
        tools={t.name: t for t in tools}, kinds=kinds, deeds=deeds, party=party if party in kinds else "", now=facts.now or _NOW,
        locale=spec.locale if spec.locale != "en_US" or language == "en" else language, spec=spec,
        sentences=tuple(c.text for c in policy.clauses if "{" not in c.text)[:40] if policy else (),
    )  # fmt: skip


def _told(tool: Tool, spec: WorldSpec) -> Tool:
    told = (spec.tools or {}).get(tool.name, {})
    if told.get("effect"):
        tool = replace(tool, effect=told["effect"], effect_rule="as the spec says")
    if tool.name in (spec.returns or {}):
        tool = replace(tool, returns=(spec.returns or {})[tool.name])
    if tool.name in (spec.examples or {}):
        given = (spec.examples or {})[tool.name]
        paired = isinstance(given, list) and given and all(isinstance(p, (list, tuple)) and len(p) == 2 for p in given)
        pairs = [(p[0], p[1]) for p in given] if paired else [({}, given)]
        tool = replace(tool, examples=(*pairs, *tool.examples))
    return tool


def _own_keys(kinds: dict[str, Kind], tools: Sequence[Tool], phrases: Mapping[str, Any]) -> dict[str, Kind]:
    """Key a kind by ``id``, ``key`` or ``name`` where its own tools do."""
    for tool in tools:
        noun = match_kind(phrases[tool.name].nouns, kinds)
        own = next((a for a in ("id", "key", "uuid", "code", "name", f"{noun}_name") if a in properties(tool)), "")
        keyed = any(key_noun(a)[0] == noun for t in tools for a in properties(t))
        if noun and own and not keyed and not own_key(own, phrases[tool.name], kinds):
            kinds[noun] = replace(kinds[noun], key=own)
    return kinds


def _settle(kind: Kind, party: str, facts: PolicyFacts) -> Kind:
    """Give a kind its vocabulary, its status field and its place: shared, or somebody's."""
    fields = dict(kind.fields)
    last = kind.name.split("_")[-1]
    for phrase, options in facts.options.items():
        bare = next((phrase.removeprefix(f"{n}_") for n in (kind.name, last) if phrase.startswith(f"{n}_")), "")
        own = find_field(kind, bare or phrase) or find_field(kind, phrase) or bare
        told = fields.get(own, Field(name=own, why="vocabulary in the policy"))
        if bare or (own in fields and not told.options and not told.link):
            fields[own] = replace(told, options=options, role="choice")
    status = next((f for f in ("status", f"{kind.name}_status") if f in fields), "")
    status = status or next((f for f in fields if f.endswith("status") and fields[f].options), "")
    if last in ("availability", "slot", "time"):
        fields.setdefault("time", Field(name="time", role="time", example="10:00", why="a slot has a time"))
    if last in ("quote", "rate", "price", "estimate"):
        fields.setdefault("amount", Field(name="amount", role="money", why="a quote has an amount"))
    catalogue = kind.name != party and last in load_words("world_nouns")["catalogue"]
    return replace(kind, fields=fields, status=status, catalogue=catalogue)


def _grow(kinds: dict[str, Kind], deed: Deed, tool: Tool) -> dict[str, Kind]:
    """Add the fields that a tool's arguments, its replies and its deed tell of."""
    if not deed.kind:
        return kinds
    given = {a: describe_field(a, s, f"argument of {tool.name}") for a, s in properties(tool).items()}
    kind = _searched(_written(kinds[deed.kind], deed, given), deed, given)
    for source in (tool.returns, *(_schema_of(reply) for _, reply in tool.examples)):
        kind = _replied(kind, deed, source)
    return {**kinds, kind.name: _with_status(_fixed(kind, deed), deed)}


def _written(kind: Kind, deed: Deed, given: Mapping[str, Field]) -> Kind:
    fields = dict(kind.fields)
    for target, new in fields_of_arguments(deed, given).items():
        if "." in target or (target in fields and is_address(fields[target])):
            fields = _with_part(fields, target, new)
        elif deed.action in ("create", "change") and not (new.link == kind.name and new.role == "link"):
            if old := target not in fields and replaced_by(replace(kind, fields=fields), target, new.options):
                fields.pop(old)
            late = target not in fields and deed.action == "change" and bool(deed.after)
            fields[target] = merge(fields.get(target), replace(new, name=target, nullable=late))
    return replace(kind, fields=fields)


def _searched(kind: Kind, deed: Deed, given: Mapping[str, Field]) -> Kind:
    fields = dict(kind.fields)
    for argument, target in deed.by.items():
        if "." in target:
            fields = _with_part(fields, target, given[argument])
        elif target in fields:
            fields[target] = merge(fields[target], given[argument])
        elif given[argument].role != "text":
            fields[target] = replace(given[argument], name=target)
    return replace(kind, fields=fields)


def _fixed(kind: Kind, deed: Deed) -> Kind:
    fields = dict(kind.fields)
    for name in filter(None, (*deed.fixed, deed.toggles)):
        flips = name == deed.toggles or str(deed.fixed.get(name)).startswith("@switch")
        new = Field(
            name=name, role="switch" if flips else "moment", nullable=not flips, why=f"what {deed.tool} changes"
        )
        told = fields.setdefault(name, new)
        if flips and told.role == "word":
            fields[name] = replace(told, role="switch")
    return replace(kind, fields=fields)


def _with_status(kind: Kind, deed: Deed) -> Kind:
    """Give a kind the statuses that its tools set or show."""
    status = kind.status or ("status" if "status" in kind.fields else "")
    shown = deed.action == "get" and "status" in deed.tool.lower() and kind.name != "session"
    if not status and not shown and not deed.after:
        return kind
    status = status or "status"
    usual = load_words("world_values")["usual_statuses"]
    start = tuple(usual.get(kind.name.split("_")[-1], ("active",) if deed.after else usual["record"]))
    told = kind.fields.get(status, Field(name=status, options=start, why=f"what {deed.tool} changes or shows"))
    options = told.options or (start if deed.after else ())
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
    if not schema or deed.action not in ("get", "create", "find"):
        return kind
    items = schema.get("items")
    found = (items if schema.get("type") == "array" and isinstance(items, Mapping) else schema).get("properties")
    for inner in found.values() if isinstance(found, Mapping) else ():
        rows = inner.get("items") if isinstance(inner, Mapping) else None
        if isinstance(rows, Mapping) and kind.key in (rows.get("properties") or {}):
            return _replied(kind, deed, rows)
    for name, inner in found.items() if isinstance(found, Mapping) else ():
        if name not in (kind.key, "id", "success", "error", "message") and not find_field(kind, name):
            new = describe_field(name, inner if isinstance(inner, Mapping) else {}, f"reply of {deed.tool}")
            kind = replace(kind, fields={**kind.fields, name: new})
    return kind


def _schema_of(reply: Any) -> Mapping[str, Any]:
    """Return a rough schema of an example reply."""
    if isinstance(reply, Mapping):
        return {"type": "object", "properties": {str(k): _schema_of(v) for k, v in reply.items()}}
    if isinstance(reply, list):
        return {"type": "array", "items": _schema_of(reply[0]) if reply else {}}
    kind = {bool: "boolean", int: "integer", float: "number"}.get(type(reply), "string")
    return {"type": kind, "example": reply} if kind in ("integer", "string") and reply is not None else {"type": kind}


def _link(kinds: dict[str, Kind], deeds: Mapping[str, Deed], party: str) -> dict[str, Kind]:
    """Find out what is one of a kind, what is shared, what is only ever written, and how much there is of each."""
    parents = _parents(kinds, deeds, party)
    told = {f.link for k in kinds.values() for f in k.fields.values() if f.link}
    done = {}
    for name, kind in kinds.items():
        mine = [d for d in deeds.values() if d.kind == name]
        if not mine and name not in told and name != party and not (kind.fields and name != "session"):
            continue
        actions = {d.action for d in mine}
        searched = bool(mine) and name != party and all(d.action == "find" and d.by and not d.owner for d in mine)
        parent = "" if searched or name == party else parents.get(name, "")
        catalogue = searched or (kind.catalogue and not (party and parent == party))
        owned = any(d.owner for d in mine if d.action in ("get", "list"))
        single = owned and "change" in actions and name != party and not kind.catalogue and not any(d.key for d in mine)
        outbox = actions == {"create"} and name not in told
        count = 0 if outbox else kind.count or (4 if name == party else 6 if catalogue else 2 if parent else 5)
        done[name] = replace(
            kind, parent=parent, catalogue=catalogue, outbox=outbox, single=kind.single or single, count=count
        )
    return done


def _parents(kinds: Mapping[str, Kind], deeds: Mapping[str, Deed], party: str) -> dict[str, str]:
    """Return what each kind belongs to: by link, by list, by a tool that asks whose it is, else the party."""
    parents: dict[str, str] = {}
    for name, kind in kinds.items():
        for f in kind.fields.values():
            if (
                f.role in ("links", "items")
                and f.link in kinds
                and f.link != name
                and (name == party or kind.catalogue)
            ):
                parents.setdefault(f.link, name)
            if f.role == "link" and f.link == party and not kind.catalogue:
                parents[name] = party
    for deed in deeds.values():
        owner = kind_of_key(deed.owner, kinds)[0]
        if owner and deed.kind in kinds and owner != deed.kind != party and not kinds[deed.kind].catalogue:
            parents.setdefault(deed.kind, owner)
    for name, kind in kinds.items():
        if name not in parents and name not in ("session", party) and not kind.catalogue:
            others = (k for k in kinds.values() if not k.catalogue and k.name != name)
            held = any(f.link == name for k in others for f in k.fields.values())
            parents[name] = "" if held else party
    return parents


def _keyed(kind: Kind, deeds: Mapping[str, Deed], tools: Sequence[Tool], party: str) -> Kind:
    """Find out how keys of a kind look, and whether its records are people."""
    best = Field(name=kind.key)
    for tool in tools:
        for argument, schema in properties(tool).items():
            if argument == kind.key or (deeds[tool.name].kind == kind.name and argument == deeds[tool.name].key):
                found = describe_field(argument, schema, "")
                if not best.example or (found.type == "integer" and best.type != "integer"):
                    best = found
    people = kind.name == party or any(role_of(f) in ("first_name", "full_name", "email", "dob") for f in kind.fields)
    return replace(kind, key_like=best, people=people)


def _spec_deed(deed: Deed, spec: WorldSpec) -> Deed:
    told = (spec.tools or {}).get(deed.tool, {})
    changes = {
        mine: told[word]
        for word, mine in (("action", "action"), ("entity", "kind"), ("post", "after"), ("sets", "sets"))
        if word in told
    }
    if "pre" in told:
        changes["before"] = tuple(map(str, told["pre"]))
    return replace(deed, **changes, why="as the spec says", guessed=False) if changes else deed


def _spec_kind(kind: Kind, spec: WorldSpec) -> Kind:
    told = (spec.entities or {}).get(kind.name)
    if told is None:
        return kind
    fields = dict(kind.fields)
    for name, value in (told.get("fields") or {}).items():
        text = str(value)
        link = text.removesuffix("[]") if text.endswith("[]") else ""
        fields.setdefault(name, Field(name=name, role="links" if link else text, link=link, why="as the spec says"))
    status = kind.status
    if told.get("status"):
        status = status or "status"
        fields[status] = replace(
            fields.get(status, Field(name=status, why="as the spec says")),
            options=tuple(map(str, told["status"])),
            role="choice",
        )
    return replace(
        kind, fields=fields, status=status, key=told.get("key", kind.key), parent=told.get("parent", kind.parent),
        count=int(told.get("count", kind.count)), catalogue=bool(told.get("catalogue", kind.catalogue)), single=bool(told.get("single", kind.single)),
    )  # fmt: skip
