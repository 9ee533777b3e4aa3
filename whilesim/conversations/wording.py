"""Wording: a deed as a phrase and as a participle, from nothing but a tool and its arguments."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from whilesim.core.text import name_words
from whilesim.situations.tools import Tool
from whilesim.world.verbs import spoken_verb

_IRREGULAR = {
    "send": "sent", "pay": "paid", "set": "set", "make": "made", "put": "put", "take": "taken",
    "give": "given", "write": "written", "buy": "bought", "get": "fetched", "find": "found",
    "reset": "reset", "withdraw": "withdrawn", "hold": "held", "bring": "brought", "run": "run",
    "undo": "undone", "redo": "redone", "begin": "begun", "choose": "chosen", "rebuild": "rebuilt",
    "let": "let", "cut": "cut", "shut": "shut", "split": "split", "sell": "sold", "tell": "told",
    "lend": "lent", "leave": "left", "keep": "kept", "do": "done", "override": "overridden",
    "refer": "referred", "defer": "deferred", "cancel": "cancelled", "submit": "submitted",
    "transfer": "transferred", "enrol": "enrolled", "permit": "permitted", "unsubscribe": "unsubscribed",
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
    named = next(((k, str(v)) for k, v in arguments.items() if is_id(k) and isinstance(v, (str, int))), None)
    if named is None:
        thing = f"the {noun}" if noun else "your request"
    else:
        kind = " ".join(w for w in name_words(named[0]) if w not in ("id", "ids", "number", "new", "old"))
        last = noun.split()[-1:] or [""]
        apart = kind and last[0].rstrip("s") not in kind
        thing = f"the {noun} for {kind} {named[1]}" if apart and noun else f"{noun or kind} {named[1]}"
    return f"{verb} {thing}", participle(verb), thing


def is_id(name: str) -> bool:
    """Say whether an argument's name is that of an identifier."""
    parts = name_words(name)
    return bool(parts) and parts[-1] in (
        "id",
        "ids",
        "number",
        "uuid",
        "code",
        "key",
        "ref",
        "reference",
        "email",
    )


def plain(name: str) -> str:
    """Return an argument's name in plain words: ``new_plan_id`` is new plan ID."""
    return " ".join("ID" if w == "id" else w for w in name_words(name))


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
