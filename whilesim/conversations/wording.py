"""Wording: a deed as a phrase and as a participle, and an argument as one asks for it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import takewhile
from typing import Any

from whilesim.cards.speech import describes, listed, word_set
from whilesim.conversations.said import is_key, wanted
from whilesim.core.templates import load_words
from whilesim.core.text import name_words
from whilesim.situations.tools import Tool
from whilesim.world.verbs import spoken_verb

PARTIES = ("customer", "user", "client", "member", "patient", "guest", "subscriber", "profile", "account")
"""Words for whoever has an account."""
_LEADS = ("to ", "for ", "from ", "as ", "into ", "with ")
"""A name's object that begins with one of these says where a thing goes: ``upgrade_to_vip``."""
_LINKS = ("from", "to", "on", "at", "by", "until", "since", "after", "before")
"""A name that ends in one of these says of what it is a date or an address, not that it is one."""


def participle(verb: str) -> str:
    """Return the past participle of an English verb: cancelled, paid, suspended."""
    head, _, particle = verb.partition(" ")
    if particle:
        return f"{participle(head)} {particle}"
    known: Mapping[str, str] = load_words("scripted_reading")["participles"]
    again = next((p for p in ("re", "un", "over") if verb.removeprefix(p) in known and verb.startswith(p)), "")
    if irregular := known.get(verb) or (again and again + known[verb.removeprefix(again)]):
        return irregular
    if re.search(r"[^aeiou]y$", verb):
        return verb[:-1] + "ied"
    doubled = verb[-1] if re.fullmatch(r"[^aeiou]*[aeiou][bdgmnprt]", verb) else ""
    return verb + ("d" if verb.endswith("e") else doubled + "ed")


def split_name(tool: Tool) -> tuple[str, str]:
    """Return verb and object of a tool's name: ``cancel_pending_order`` is cancel, pending order."""
    verb = spoken_verb(tool)
    rest = [w for w in name_words(tool.name) if w not in verb]
    return " ".join(verb), " ".join(takewhile(lambda w: w != "by", rest))


def deed_phrase(tool: Tool, arguments: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return what a call does as (phrase, participle, object): cancel order W1, cancelled, order W1."""
    verb, noun = split_name(tool)
    named = target_key(tool, arguments)
    kind = " ".join(w for w in name_words(named) if w not in ("id", "ids", "number", "new", "old"))
    if kind and describes(noun):
        noun = f"as {noun}"
    if noun.startswith(_LEADS):
        thing = f"{kind} {arguments[named]}" if kind else "it"
        return f"{verb} {thing} {noun}", f"{participle(verb)} {noun}", thing
    thing = f"the {noun}" if noun else "your request"
    if named:
        last = noun.split()[-1:] or [""]
        apart = kind and (last[0].rstrip("s") not in kind or (noun != kind and verb in word_set("creates")))
        thing = f"the {noun} for {kind} {arguments[named]}" if apart and noun else f"{noun or kind} {arguments[named]}"
    return f"{verb} {thing}", participle(verb), thing


def target_key(tool: Tool, arguments: Mapping[str, Any]) -> str:
    """Return the argument that names the record a call is about: its noun is the tool's, or it comes last."""
    keys = [k for k, v in arguments.items() if is_key(k) and isinstance(v, (str, int)) and name_words(k)[0] != "new"]
    others = [k for k in keys if name_words(k)[0] not in PARTIES] or keys
    nouns = [w.rstrip("s") for w in name_words(tool.name)]
    of_tool = [k for k in others if {w.rstrip("s") for w in name_words(k)[:-1]} & set(nouns)]
    apart = [k for k in others if nouns[-1] not in name_words(k)]  # 'change plan' changes the line's plan
    return next(iter([*(k for k in of_tool if k in apart), *(apart if len(others) > 1 else ()), *of_tool, *others]), "")


def plain(name: str) -> str:
    """Return an argument's name in plain words: ``new_plan_id`` is new plan ID, ``address2`` apartment."""
    said: Mapping[str, str] = load_words("scripted_reading")["spoken"]
    told = said.get(name) or " ".join("ID" if w == "id" else said.get(w, w) for w in name_words(name))
    return re.sub(r"\b(\w+) \1\b", r"\1", told)  # not 'zip code code'


def required_of(tool: Tool) -> str:
    """Name what a tool must be given: the first name, the last name and the zip code."""
    return listed([f"the {plain(a)}" for a in tool.parameters["required"]])


def asked_for(name: str, schema: Mapping[str, Any]) -> str:
    """Name an argument as one asks a customer for it, with the choices where they are few."""
    want, parts = wanted(name, schema), name_words(name) or [name]
    if parts[0] == "new" and parts[-1] in ("id", "ids"):
        return f"the {' '.join(parts[1:-1])}{'s' if parts[-1] == 'ids' else ''} that you would like instead"
    if parts[-1] == "ids":
        return f"the {' '.join(parts[:-1])}s"
    choices = f" ({' or '.join(want.options)})".replace("_", " ") if 1 < len(want.options) < 6 else ""
    kind = {"date": " date", "email": " email address"}.get(want.shape, "") if parts[-1] in _LINKS else ""
    return f'the "{plain(name)}"{kind}' if kind else f"the {plain(name)}{choices}"


def spoken(value: Any, name: str = "id") -> str:
    """Return a value as people say it: ``one_way`` is one way, where its name is not that of an identifier."""
    if not is_key(name) and re.fullmatch(r"[a-z]+(?:_[a-z]+)+", str(value)):
        return str(value).replace("_", " ")
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{plain(str(k))} {spoken(v, str(k))}" for k, v in value.items())
    if isinstance(value, (list, tuple)):
        return listed([spoken(v) for v in value]) or "none"
    return "none" if value is None else str(value)
