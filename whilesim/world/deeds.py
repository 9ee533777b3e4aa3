"""Deeds: what one tool does to which record; and how a tool that reads is understood."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

from whilesim.core.templates import load_words
from whilesim.core.text import name_words
from whilesim.situations.tools import Tool
from whilesim.world.attributes import pattern, snake, split_list
from whilesim.world.kinds import ORDERED, Kind, branches, is_parameter, match_kind, parts_of, properties, role_of
from whilesim.world.spec import Action
from whilesim.world.verbs import Phrase

Kinds = Mapping[str, Kind]
UNFOUND = "none of its arguments names the record that it changes"
"""Why a tool that should change a record is taken to make one."""
_EMPTY = ("detail", "info", "information", "profile", "record", "data")


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


def read_deed(tool: Tool, phrase: Phrase, kinds: Kinds, party: str, keys: Mapping[str, str]) -> Deed:
    """Read what a tool that changes nothing shows; ``keys`` are the arguments that name a record, with its kind."""
    arguments, noun = properties(tool), match_kind(phrase.nouns, kinds)
    limit = next((a for a in arguments if is_parameter(a)), "")
    make = partial(Deed, tool=tool.name, verb=phrase.verb, limit=limit)
    if set(arguments) == {"id"} and not keys:
        return make(action="get", kind="" if len(kinds) > 1 else "record", key="id", why="an id of any kind")
    if key := _key_of_read(phrase, noun, party, keys):
        kind = kinds[keys[key]]
        by = {a: f for a in arguments if a not in keys and (f := kind.find(a))} | _nested(arguments, kind)
        owner, shows = next((a for a in keys if a != key), ""), _shows(tool, phrase, kind)
        why = f"reads {kind.name} by {key}"
        return make(action="get", kind=kind.name, key=key, owner=owner, by=by, shows=shows, why=why)
    plain = [a for a, s in arguments.items() if a not in keys and s.get("type") != "object" and not branches(s)]
    bounds = load_words("world_nouns")["bounds"]  # they name no field
    free = [a for a in plain if not is_parameter(a) and a.lower() not in bounds]
    asked = [a for a in free if not noun or not kinds[noun].bound(a)[0]]
    told = any(role_of(a) == "text" for a in asked)
    if not noun or (asked and all(role_of(a) == "text" for a in asked) and not keys and not kinds[noun].fields):
        why = "a question, and no record it speaks of"
        return make(action="answer" if told else "get", kind="" if told else noun, why=why, guessed=True)
    by = {a: kinds[noun].find(a) or a for a in asked} | _nested(arguments, kinds[noun])
    owner, shows = next(iter(keys), ""), ("id",) if "id" in phrase.nouns else ()
    one = not arguments and not phrase.plural and "_".join(phrase.nouns) == noun
    action: Action = "find" if by else "get" if one else "list"
    return make(action=action, kind=noun, owner=owner, by=by, shows=shows, why=f"looks for {noun}")


def _nested(arguments: Mapping[str, Mapping[str, Any]], kind: Kind) -> dict[str, str]:
    """Return what object arguments name a record by: ``by.phone`` to its field; no period, and nothing that is not known."""
    found = ((path, n, n if n == kind.key else kind.find(n)) for path, n, _ in parts_of(arguments))
    return {path: field or n for path, n, field in found if field or role_of(n) not in ("word", *ORDERED)}


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
    extra = [n for n in nouns if n not in _EMPTY]
    if not extra or (extra == ["status"] and not kind.status):
        return ()
    found = pattern("including").search(" ".join(tool.description.split()))
    parts = ["_".join(part.split()) for part in split_list(found[1])] if found else []
    return ("_".join(nouns), *(p for p in parts if len(p.split("_")) < 5))


def shown_names(tool: Tool, phrase: Phrase) -> tuple[str, ...]:
    """Return the fields that a look at one's own device shows, as the description lists them; else the tool's own noun."""
    own = "_".join(phrase.nouns) or "all"
    own = f"{phrase.verb}_{own}" if phrase.verb in ("can", "is", "has") else f"{own}s" if phrase.plural else own
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
