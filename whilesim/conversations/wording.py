"""Wording: a deed as a phrase and as a participle, from nothing but a tool and its arguments."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from whilesim.conversations.said import is_key
from whilesim.core.templates import load_words
from whilesim.core.text import name_words
from whilesim.situations.tools import Tool
from whilesim.world.verbs import spoken_verb

PARTIES = ("customer", "user", "client", "member", "patient", "guest", "subscriber", "profile", "account")
"""Words for whoever has an account."""
_IRREGULAR = {
    "send": "sent", "pay": "paid", "set": "set", "make": "made", "put": "put", "take": "taken",
    "give": "given", "write": "written", "buy": "bought", "get": "fetched", "find": "found",
    "reset": "reset", "withdraw": "withdrawn", "hold": "held", "bring": "brought", "run": "run",
    "undo": "undone", "redo": "redone", "begin": "begun", "choose": "chosen", "rebuild": "rebuilt",
    "let": "let", "cut": "cut", "shut": "shut", "split": "split", "sell": "sold", "tell": "told",
    "lend": "lent", "leave": "left", "keep": "kept", "do": "done", "override": "overridden",
    "refer": "referred", "defer": "deferred", "cancel": "cancelled", "submit": "submitted",
    "transfer": "transferred", "login": "signed in", "logout": "signed out", "enrol": "enrolled", "permit": "permitted", "unsubscribe": "unsubscribed",
}  # fmt: skip


def participle(verb: str) -> str:
    """Return the past participle of an English verb: cancelled, paid, suspended."""
    head, _, particle = verb.partition(" ")
    if particle:
        return f"{participle(head)} {particle}"
    if verb in _IRREGULAR:
        return _IRREGULAR[verb]
    if verb.endswith("e"):
        return verb + "d"
    if re.search(r"[^aeiou]y$", verb):
        return verb[:-1] + "ied"
    if re.fullmatch(r"[^aeiou]*[aeiou][bdgmnprt]", verb):
        return verb + verb[-1] + "ed"
    return verb + "ed"


def split_name(tool: Tool) -> tuple[str, str]:
    """Return verb and object of a tool's name: ``cancel_pending_order`` is cancel, pending order."""
    verb = spoken_verb(tool)
    rest = [w for w in name_words(tool.name) if w not in verb]
    cut = next((i for i, w in enumerate(rest) if w == "by"), len(rest))
    return " ".join(verb), " ".join(rest[:cut])


def deed_phrase(tool: Tool, arguments: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return what a call does as (phrase, participle, object): cancel order W1, cancelled, order W1."""
    verb, noun = split_name(tool)
    named = target_key(tool, arguments)
    if not named:
        thing = f"the {noun}" if noun else "your request"
    else:
        kind = " ".join(w for w in name_words(named) if w not in ("id", "ids", "number", "new", "old"))
        last = noun.split()[-1:] or [""]
        apart = kind and last[0].rstrip("s") not in kind
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
    return said.get(name) or " ".join("ID" if w == "id" else said.get(w, w) for w in name_words(name))


def listed(items: Sequence[str]) -> str:
    """Join names as a sentence does: a, b and c."""
    return ", ".join(items[:-1]) + " and " + items[-1] if len(items) > 1 else "".join(items)


def spoken(value: Any) -> str:
    """Return a value as people say it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{plain(str(k))} {spoken(v)}" for k, v in value.items())
    if isinstance(value, (list, tuple)):
        return listed([spoken(v) for v in value]) or "none"
    return "none" if value is None else str(value)
