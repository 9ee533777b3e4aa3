"""Deeds: what one tool does to which record: one that reads, one that writes, one of the customer's own.

'Sets the line status to Suspended', 'status must be Active', 'can only be called once': what the
description or the tool's section of the policy says outright beats what a verb makes one guess;
the vocabulary's spelling wins.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any

from whilesim.core.templates import load_words
from whilesim.core.text import name_words
from whilesim.situations.tools import Tool
from whilesim.world.attributes import PolicyFacts, pattern, plural, ruled_statuses, singular, snake, split_list
from whilesim.world.discovery import EMPTY, proofs_of
from whilesim.world.kinds import Kind, branches, is_parameter, is_value, kind_of_key, match_kind, properties, role_of
from whilesim.world.spec import Action
from whilesim.world.targets import amount_of, moves, nearest_field, read_row, read_targets
from whilesim.world.verbs import Phrase

Kinds = Mapping[str, Kind]
UNFOUND = "none of its arguments names the record that it changes"
"""Why a tool that should change a record is taken to make one."""
_LISTED = re.compile(r"(?:\b(\w+) )?\bstatus(?:es)?:? ?\((?:one of |either )?([^()]+)\)", re.IGNORECASE)
_OVER = ("cancelled", "canceled", "void", "voided", "deleted", "terminated", "withdrawn", "revoked")
_NOT_YET = re.compile(r"\b(?:has|have|is|are)(?: not|n't) (?:yet )?(?:been )?(\w+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deed:
    """What one tool does."""

    tool: str
    action: Action
    verb: str = ""
    kind: str = ""
    key: str = ""
    """Argument that names the record."""
    owner: str = ""
    """Argument that names whom the record belongs to."""
    by: Mapping[str, str] = field(default_factory=dict)
    """Argument to field: what a find or a list looks for."""
    proofs: tuple[str, ...] = ()
    """Arguments that must say what the record, or whoever it belongs to, says of the customer."""
    limit: str = ""
    before: tuple[str, ...] = ()
    """Statuses in which the deed is allowed; empty for any."""
    after: str = ""
    """Status afterwards."""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    """Field to the value it has afterwards; ``@now`` for the time of the call, None for cleared."""
    sets: Mapping[str, str] = field(default_factory=dict)
    """Argument to the field it is written to."""
    adds: Mapping[str, str] = field(default_factory=dict)
    """Argument to the number it is added to."""
    lowers: Mapping[str, str] = field(default_factory=dict)
    """Argument to the balance that it lowers, and may not pass."""
    moved: str = ""
    """Argument that names the record whose balance a new one moves: the invoice that a payment is of."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Argument with a value to the argument that says which field it is written to."""
    rows: str = ""
    """List of which one row is changed."""
    way: str = ""
    """What becomes of the row: add, remove, change."""
    parts: Mapping[str, str] = field(default_factory=dict)
    """Argument to the part of the row."""
    checks: Mapping[str, str] = field(default_factory=dict)
    """Argument to the amount that it must equal, or for a refund not pass."""
    swaps: Mapping[str, str] = field(default_factory=dict)
    """Argument with new keys to the list field in which they take the place of old ones."""
    body: str = ""
    """Argument that holds all values in one free object."""
    toggles: str = ""
    once: bool = False
    sole: str = ""
    """Status that no other record of the same owner may have."""
    shows: tuple[str, ...] = ()
    """Words of the fields that a reply is cut to; ``id`` alone for the bare key."""
    why: str = ""
    guessed: bool = False

    @property
    def reads(self) -> bool:
        """Whether it shows records."""
        return self.action in ("get", "list", "find")

    @property
    def writes(self) -> bool:
        """Whether it changes records."""
        return self.action in ("create", "change", "delete")

    @property
    def written(self) -> tuple[str, ...]:
        """The arguments that stand in the record afterwards."""
        return (*self.sets, *self.parts, *self.names, *self.names.values())

    @property
    def piles(self) -> bool:
        """Whether doing it twice does it twice."""
        return bool(self.adds or self.way == "add" or (self.lowers and not self.after))


def read_deed(tool: Tool, phrase: Phrase, kinds: Kinds, party: str, keys: Mapping[str, str]) -> Deed:
    """Read what a tool that changes nothing shows; ``keys`` are the arguments that name a record, with its kind."""
    arguments, noun = properties(tool), match_kind(phrase.nouns, kinds)
    limit = next((a for a in arguments if is_parameter(a)), "")
    make = partial(Deed, tool=tool.name, verb=phrase.verb, limit=limit)
    if set(arguments) == {"id"} and not keys:
        return make(action="get", kind="" if len(kinds) > 1 else "record", key="id", why="an id of any kind")
    if key := _key_of_read(phrase, noun, party, keys):
        kind = kinds[keys[key]]
        by = {a: f for a in arguments if a not in keys and (f := kind.find(a))} | kind.named_by(arguments)
        owner, shows = next((a for a in keys if a != key), ""), _shows(tool, phrase, kind)
        make = partial(make, kind=kind.name, proofs=proofs_of(tool, phrase, kind, key))
        return make(action="get", key=key, owner=owner, by=by, shows=shows, why=f"reads {kind.name} by {key}")
    plain = [a for a, s in arguments.items() if a not in keys and s.get("type") != "object" and not branches(s)]
    bounds = load_words("world_nouns")["bounds"]  # they name no field
    free = [a for a in plain if ((noun and a in kinds[noun].fields) or not is_parameter(a)) and a.lower() not in bounds]
    asked = [a for a in free if not noun or not kinds[noun].bound(a)[0]]
    told = any(role_of(a) == "text" for a in asked)
    if not noun or (asked and all(role_of(a) == "text" for a in asked) and not keys and not kinds[noun].fields):
        why = "a question, and no record it speaks of"
        return make(action="answer" if told else "get", kind="" if told else noun, why=why, guessed=True)
    by = {a: kinds[noun].find(a) or a for a in asked} | kinds[noun].named_by(arguments)
    owner, shows = next(iter(keys), ""), ("id",) if "id" in phrase.nouns else ()
    make = partial(make, proofs=proofs_of(tool, phrase, kinds[noun]))
    one = not arguments and not phrase.plural and "_".join(phrase.nouns) == noun
    action: Action = "list" if phrase.verb == "list" and owner else "find" if by else "get" if one else "list"
    return make(action=action, kind=noun, owner=owner, by=by, shows=shows, why=f"looks for {noun}")


def _key_of_read(phrase: Phrase, noun: str, party: str, keys: Mapping[str, str]) -> str:
    """Return the argument by which a read of one record names it; empty for a list or a search."""
    named = [a for a in keys if keys[a] == noun]
    others = [a for a in keys if keys[a] != party]
    if named and not phrase.plural:
        return named[0]
    if others and not (noun and noun not in [keys[a] for a in others] and (phrase.plural or noun != party)):
        return others[-1]
    return list(keys)[-1] if keys and not noun else ""


def _shows(tool: Tool, phrase: Phrase, kind: Kind) -> tuple[str, ...]:
    """Return the fields that a narrow read ('get data usage') is cut to; empty where it shows all."""
    nouns = [n for n in phrase.nouns if n not in kind.name.split("_")]
    extra = [n for n in nouns if n not in EMPTY]
    if not extra or (extra == ["status"] and not kind.status):
        return ()
    found = pattern("including").search(" ".join(tool.description.split()))
    parts = ["_".join(part.split()) for part in split_list(found[1])] if found else []
    return ("_".join(nouns), *(p for p in parts if len(p.split("_")) < 5))


def shown_names(tool: Tool, phrase: Phrase) -> tuple[str, ...]:
    """Return the fields that a look at one's own device shows, as the description lists them; else the tool's own noun."""
    own = "_".join(phrase.nouns) or "all"
    own = f"{phrase.verb}_{own}" if phrase.verb in ("can", "is", "has") else plural(own) if phrase.plural else own
    found = pattern("shown").findall(re.sub(r"\([^)]*\)", "", tool.description))
    plain = found[-1].replace("-", "") if found else ""
    listed = re.split(r",\s*(?:and )?| and ", plain)[: 1 if plain.startswith(("if ", "whether ")) else None]
    names = [snake(m[1]) for part in listed if (m := pattern("state").match(part.strip())) and len(m[1].split()) < 4]
    names = [own if tells(n, own) else n for n in names if n]
    return tuple(dict.fromkeys(names)) if len(names) > 1 or len(listed) == 1 == len(names) else (own,)


@cache
def tells(field: str, name: str) -> bool:
    """Whether a field is what a narrow read speaks of: all words of one stand in the other."""
    stems, part = ({w[:5] for w in name_words(text)} for text in (field, name))
    return stems <= part or part <= stems


def infer_deed(tool: Tool, phrase: Phrase, kinds: Kinds, party: str, facts: PolicyFacts) -> Deed:
    """Read what one tool does: from its name and arguments, its description, its section of the policy, its verb."""
    if phrase.deed in ("handoff", "compute"):
        action: Action = "handoff" if phrase.deed == "handoff" else "compute"
        return Deed(tool=tool.name, action=action, verb=phrase.verb, why=tool.effect_rule or f"effect {action}")
    arguments = properties(tool)
    if {"login", "logout"} & {phrase.verb, *phrase.nouns}:
        session = partial(Deed, tool=tool.name, verb=phrase.verb, kind="session", why="a session's login")
        now = {"login_status": phrase.verb != "logout"}
        return session(action="get") if phrase.deed == "read" else session(action="change", fixed=now)
    found = {a: kind_of_key(a, kinds) for a in arguments if arguments[a].get("type") != "array"}
    keys = {a: kind for a, (kind, many) in found.items() if kind and not many}
    keys |= {a: n for a in arguments if (n := own_key(a, phrase, kinds))}
    if phrase.deed == "read":
        return read_deed(tool, phrase, kinds, party, keys)
    return _write(tool, phrase, kinds, party, keys, facts)


def own_key(argument: str, phrase: Phrase, kinds: Kinds) -> str:
    """Return the kind that an argument called ``id`` or ``key`` alone names: the one in the tool's name."""
    noun = match_kind(phrase.nouns, kinds)
    return noun if noun and kinds[noun].key == argument else ""


def infer_own_deed(tool: Tool, phrase: Phrase, kinds: Kinds, agent: Iterable[Deed], facts: PolicyFacts) -> Deed | None:
    """Read what a tool of the customer's own does where it names no record: it acts on one device, or answers the agent.

    'Makes a payment for the bill that the agent has sent you' pays the record that the agent's
    tool left waiting. None where the tool names a record by itself.
    """
    arguments = properties(tool)
    if any(kind_of_key(a, kinds)[0] or own_key(a, phrase, kinds) for a in arguments):
        return None
    said = {singular(w.lower()) for w in re.findall(r"\w+", tool.description)} | set(phrase.nouns)
    waits = (d for d in agent if d.after and ({d.kind} <= said or set(name_words(d.tool)[1:]) <= said))
    asked = next(waits, None) if not arguments else None
    make = partial(Deed, tool=tool.name, kind=asked.kind if asked else "session")
    if asked and phrase.deed == "read":
        return make(action="list", before=(asked.after,), why=f"shows what {asked.tool} left waiting")
    verb = "pay" if said & {"payment", "pay"} else phrase.verb
    if asked and verb in load_words("world_verbs")["status"]:
        after = status_after(tool, replace(phrase, verb=verb, deed="status"), kinds[asked.kind], facts)
        return make(action="change", verb=verb, before=(asked.after,), after=after, why=f"answers {asked.tool}")
    if phrase.deed == "read":
        return make(action="get", shows=shown_names(tool, phrase), why="reads the customer's own device")
    return _change(tool, phrase, Kind(name="session", key="", single=True), "", facts, key="", owner="")


def _target(tool: Tool, phrase: Phrase, party: str, keys: Mapping[str, str]) -> str:
    """Return the argument that names the record a write works on; empty for none."""
    single = [a for a in keys if not is_value(a, properties(tool)[a])]
    others = [a for a in single if keys[a] != party] or single
    for word in pattern("of_kind").findall(tool.description.split(".")[0]) if len(others) > 1 else ():
        if match := [a for a in others if keys[a].split("_")[-1] == singular(word.lower())]:
            return match[0]
    return next((a for a in others if match_kind(phrase.nouns, [keys[a]])), next(iter(others), ""))


def _write(tool: Tool, phrase: Phrase, kinds: Kinds, party: str, keys: Mapping[str, str], facts: PolicyFacts) -> Deed:
    arguments, noun = properties(tool), match_kind(phrase.nouns, kinds)
    if phrase.verb in load_words("world_verbs")["of_money"]["goes"] and any(role_of(a) == "money" for a in arguments):
        phrase = replace(phrase, deed="update")  # money is withdrawn from a record, not the record
    key = _target(tool, phrase, party, keys)
    for a in keys:
        if read_row(phrase, kinds[keys[a]], {n: s for n, s in arguments.items() if n != a})[0]:
            return _change(tool, phrase, kinds[keys[a]], "", facts, key=a, owner="")
    unnamed = bool(noun) and noun not in keys.values() and keys.get(key) == party and kinds[noun].key not in arguments
    if unnamed and phrase.deed in ("update", "delete"):
        return _change(tool, phrase, kinds[noun], "", facts, key="", owner=key)  # the customer's one cart
    if phrase.deed == "status" and key and _is_of(tool, noun, kinds, keys[key]):
        after = status_after(tool, phrase, kinds[noun], facts)
        made = _change(tool, phrase, kinds[noun], after, facts, key="", owner=key)
        return replace(made, why=f"acts on the {noun} of the {keys[key]}")
    kind = keys.get(key, "") or (noun if noun and (arguments or phrase.deed == "delete") else "session")
    after = status_after(tool, phrase, kinds.get(kind), facts)
    there = noun and noun == keys.get(key) and not kinds[noun].catalogue  # what is sent somewhere else
    creates = phrase.deed in ("create", "send") and not there and not (after and keys.get(key, party) != party)
    loose = not key and arguments and phrase.deed in ("status", "update") and not (noun and kinds[noun].single)
    if creates or loose:
        made = _creation(tool, phrase, kinds, party, keys, after if phrase.deed == "status" else "")
        return made if creates else replace(made, guessed=True, why=f"{UNFOUND}, so it makes a {made.kind}")
    owners = {party, kinds[kind].parent if kind in kinds else ""} - {kind}
    if after and key and keys[first := next(iter(keys))] != kind and not kinds[keys[first]].catalogue:
        owners.add(keys[first])  # whose record it is stands before its key: 'waive_fee(account_id, fee_id)'
    owner = next((a for a in keys if a != key and keys[a] in owners and not is_value(a, arguments[a])), "")
    proofs = proofs_of(tool, phrase, kinds[kind], key) if key and kind in kinds else ()
    if phrase.deed == "delete" and (key or noun) and not [a for a in arguments if a not in (*keys, *proofs)]:
        named = partial(Deed, kind=kind, key=key, owner=owner, proofs=proofs)
        return named(tool=tool.name, action="delete", verb=phrase.verb, why=f"verb {phrase.verb!r} removes")
    return _change(tool, phrase, kinds.get(kind) or Kind(name=kind, key=""), after, facts, key=key, owner=owner)


def _is_of(tool: Tool, noun: str, kinds: Kinds, owner: str) -> bool:
    """Whether a tool that names an owner alone acts on the record of the kind in its own name that belongs to it."""
    named = {name for a in properties(tool) for name in (a, role_of(a), kind_of_key(a, kinds)[0])}
    apart = {"code", "last4", "phone", "tracking"} & named  # tells which of several
    if not noun or apart or kinds[noun].catalogue or {noun, kinds[noun].key} & named:
        return False
    told = pattern("after").search(tool.description)
    above = any(f.role == "link" and f.link == noun for f in kinds[owner].fields.values())
    return not above and not (told and owner.split("_")[-1] in told[0].lower())


def _creation(tool: Tool, phrase: Phrase, kinds: Kinds, party: str, keys: Mapping[str, str], after: str) -> Deed:
    arguments, noun = properties(tool), match_kind(phrase.nouns, kinds)
    plain = "_".join(n for n in phrase.nouns if n not in load_words("world_nouns")["never"])
    name = noun if noun and noun not in keys.values() else plain or phrase.verb or "entry"
    alike = (k for k in kinds if k.startswith(phrase.verb[:5]) and k not in (phrase.verb, name))  # a booking, of 'book'
    name = next(alike, f"{name}_booking") if name in kinds and kinds[name].catalogue else name
    own = next((a for a in keys if keys[a] == name), "")
    owner = next((a for a in keys if keys[a] == party), "") or next((a for a in keys if name in kinds and a != own), "")
    kind = kinds.get(name) or Kind(name=name, key="")
    body = next((a for a, s in arguments.items() if s.get("type") == "object" and not s.get("properties")), "")
    sets = {a: kind.find(a) or a for a in arguments if a not in (owner, body) and role_of(a) != "sent"}
    amount = amount_of(arguments)
    others = sorted((a for a in keys if amount and a != own), key=lambda a: keys[a] == party)
    found = ((a, *moves(phrase, kinds[keys[a]], tool.description)) for a in others)
    moved, field, falls = next((m for m in found if m[1]), ("", "", False))
    balance = {amount: field} if moved else {}
    return Deed(
        tool=tool.name, action="create", verb=phrase.verb, kind=name, key=own, owner=owner, sets=sets, body=body, after=after,
        moved=moved, lowers=balance if falls else {}, adds={} if falls else balance, why=f"verb {phrase.verb!r} makes a {name}",
    )  # fmt: skip


def _change(tool: Tool, phrase: Phrase, kind: Kind, after: str, facts: PolicyFacts, *, key: str, owner: str) -> Deed:
    arguments, told = properties(tool), f"{tool.description}\n{sections_of(phrase, facts)}"
    proofs = proofs_of(tool, phrase, kind, key) if key else ()
    free = [a for a in arguments if a not in (key, owner, *proofs) and not is_parameter(a)]
    about = [n for n in phrase.nouns if n not in kind.name.split("_") and n not in ("pending", "mode")]
    targets = read_targets(phrase, kind, after, told, {a: arguments[a] for a in free}, about)
    fixed: dict[str, Any] = dict.fromkeys(pattern("records").findall(tool.description), "@now")
    fixed |= {name: None for name in pattern("clears").findall(tool.description) if "_" in name}
    toggles = ""
    if phrase.deed in ("switch_on", "switch_off", "toggle"):
        name = nearest_field(kind, about) or ("_".join([*about, "status"]) if about else kind.status or "enabled")
        name = "_".join(phrase.nouns) if kind.single and not key and phrase.nouns else name
        toggles = name if phrase.deed == "toggle" else ""
        if not toggles and not (free and kind.find(free[0])):
            fixed[name] = f"@{phrase.deed}"
    part = not pattern("after").search(told) and any({*about} & {*name_words(a)} for a in free)
    if after and ((key and part) or (kind.single and not key)):  # the file is restored, and not the space that holds it
        fixed[f"{'_'.join(phrase.nouns) or 'session'}_status"], after = after, ""
    if not (after or fixed or toggles or any(targets[w] for w in ("sets", "adds", "lowers", "swaps", "names", "rows"))):
        fixed[f"last_{phrase.verb}_at"] = "@now"
    sole = pattern("sole").search(tool.description)
    return Deed(
        tool=tool.name, action="change", verb=phrase.verb, kind=kind.name, key=key, owner=owner, after=after, fixed=fixed,
        before=statuses_before(tool, phrase, kind, facts), toggles=toggles, proofs=proofs, **targets,
        once=bool(pattern("once").search(told)), sole=spell(sole[2], kind) if sole else "", guessed=not key,
        why="the description or the policy says the status afterwards" if after and phrase.deed != "status" else f"verb {phrase.verb!r}",
    )  # fmt: skip


def status_after(tool: Tool, phrase: Phrase, kind: Kind | None, facts: PolicyFacts) -> str:
    """Return the status after a write: as the description says, then the policy, then the verb; empty for none."""
    for text in (tool.description, sections_of(phrase, facts)):
        if found := pattern("after").search(text):
            return spell((found["a"] or found["b"] or found["c"]).strip(), kind)
    if phrase.deed != "status":
        return ""
    word: str = load_words("world_verbs")["status"][phrase.verb]
    options = kind.statuses if kind else ()
    word_alike = (o for o in options if o.lower()[:5] == word[:5] or (word == "paid" and o.lower() == "settled"))
    verb_alike = (o for o in options if o.lower().startswith(phrase.verb[:4]))
    titled = bool(options) and all(o[:1].isupper() for o in options)
    spelled = word.title() if titled else word.replace(" ", "_") if any("_" in o for o in options) else word
    return [*word_alike, *verb_alike, spelled][0]


def listed_statuses(tool: Tool, kind: str) -> tuple[str, ...]:
    """Return the statuses of its own record that a description lists in brackets: 'status (open, paid)'; empty for none."""
    plain = ("", "the", "its", "their", "current", "and", "with", "or", *kind.split("_"))
    found = (m[2] for m in _LISTED.finditer(tool.description) if (m[1] or "").lower() in plain)
    return next((listed for text in found if (listed := split_list(text))), ())


def spell(value: str, kind: Kind | None) -> str:
    """Return a status in the spelling of the vocabulary."""
    options = kind.statuses if kind else ()
    plain = re.sub(r"[_\s]+", " ", value).strip(" '\"").lower()
    same = (o for o in options if re.sub(r"[_\s]+", " ", o).lower() == plain)
    return next(same, plain if options else value.strip())


def statuses_before(tool: Tool, phrase: Phrase, kind: Kind, facts: PolicyFacts) -> tuple[str, ...]:
    """Return the statuses that the description, then the tool's name, then its policy section ask for; empty for any."""
    options, after = kind.statuses, status_after(tool, phrase, kind, facts)
    for text in (tool.description, sections_of(phrase, facts)):
        for found in pattern("before").finditer(text):
            listed = re.split(r", | or | and ", found["list"])
            if spelled := tuple(s for o in listed if (s := spell(o.strip(" '\"*"), kind)) in options):
                return spelled
        barred = {spell(w, kind) for w in _NOT_YET.findall(text)} & {*options} if text == tool.description else ()
        if barred:
            return tuple(o for o in options if o not in (*barred, after))
        before = rf"\b(?:an?|some \w+ of a) {{}} {kind.name}\b"
        said = text[:120].lower()
        spoken = [(o, re.escape(o.lower())) for o in options if o != after]
        if named := tuple(o for o, w in spoken if re.search(before.format(w), said) or o.lower() in phrase.nouns):
            return named
    alive = [o for o in options if phrase.deed != "update" or o.lower() not in _OVER]
    left = ruled_statuses(facts, phrase.verb, {kind.name, *phrase.nouns}, alive)
    return tuple(o for o in left if o != after) if len(left) < len(options) else ()


def sections_of(phrase: Phrase, facts: PolicyFacts) -> str:
    """Return the bodies of the policy sections whose heading says what the tool's name says."""
    modifies = phrase.verb in ("update", "change", "edit")
    said = {w[:6] for w in (phrase.verb, *phrase.nouns, *["modify"] * modifies)}
    heads = [(body, [singular(w.lower())[:6] for w in name_words(heading)]) for heading, body in facts.sections]
    return "\n".join(body for body, words in heads if len(words) > 1 and said.issuperset(words))
