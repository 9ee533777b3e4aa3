"""Verbs: what the name of a tool says: a verb, an object, and how the record is named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from whilesim.core.templates import load_words
from whilesim.core.text import name_words, words
from whilesim.situations.tools import Tool
from whilesim.world.attributes import singular

_PREPOSITIONS = ("by", "for", "from", "to", "of", "in", "with", "on", "as", "at", "and")


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrase:
    """The name of a tool, read as a phrase."""

    verb: str
    deed: str
    """read, status, switch_on, switch_off, toggle, update, create, send, delete, compute, handoff."""
    nouns: tuple[str, ...]
    """The words of the object, singular, without the verb."""
    plural: bool


Phrases = Mapping[str, Phrase]
_NO_VERBS = ("", "is", "are", "this", "the", "it", "an", "you", "for", "when")


def spoken_verb(tool: Tool) -> list[str]:
    """Return the words of a tool's verb as people say them; 'use' where neither name nor description has one."""
    verb = read_name(tool).verb
    return ["use"] if verb in _NO_VERBS else verb.split("_")


@cache
def deed_of_verb() -> dict[str, str]:
    """Return verb to deed; of a verb in several lists the first list counts."""
    other = ("person", "nouns_too", "tail_nouns", "handoff", "of_money")
    lists = [(deed, verbs) for deed, verbs in load_words("world_verbs").items() if deed not in other]
    return {str(verb): deed for deed, verbs in reversed(lists) for verb in verbs}


def read_name(tool: Tool) -> Phrase:
    """Read a tool's name; the description's first verb where the name has none."""
    return _read_name(tool.name, tool.description, tool.effect)


@lru_cache(maxsize=4096)
def _read_name(name: str, description: str, effect: str) -> Phrase:
    table, lists = deed_of_verb(), load_words("world_verbs")
    parts = name_words(name)
    if len(parts) > 2 and parts[-1] == "tool":
        parts = parts[:-1]
    at, size = _verb_at(parts, table, lists)
    verb = "_".join(parts[at : at + size]) if size else _verb_of_description(description, table)
    rest = parts[:at] + parts[at + size :] if size else parts
    ends = (n for n, word in enumerate(rest) if word in _PREPOSITIONS and (n or word == "by"))
    nouns = rest[: next(ends, None)]
    plural = _is_plural(nouns) or verb in ("list", "search", "browse")
    deed = _agree(table.get(verb, "update"), effect, verb)
    return Phrase(verb=verb, deed=deed, nouns=tuple(map(singular, nouns)), plural=plural)


def _is_plural(nouns: list[str]) -> bool:
    told = [n for n in nouns if n not in ("details", "status", "types", *load_words("world_verbs")["tail_nouns"])]
    return bool(told) and singular(told[-1]) != told[-1]


def _verb_at(parts: list[str], table: dict[str, str], lists: Any) -> tuple[int, int]:
    for at in [0, len(parts) - 1, *range(1, len(parts) - 1)]:
        for size in (2, 1):
            if at + size <= len(parts) and "_".join(parts[at : at + size]) in table:
                word, after = parts[at], parts[at + 1 : at + 2]
                as_noun = word in lists["nouns_too"] and ((after and after[0] in lists["tail_nouns"]) or at > 0)
                if not (size == 1 and as_noun) and not (at > 0 and word in lists["tail_nouns"]):
                    return at, size
    return 0, int(len(parts) > 1 and parts[0] in _other_verbs())  # take_deposit, redirect_parcel, refill_card


@cache
def _other_verbs() -> frozenset[str]:
    return frozenset(load_words("policy_en")["verbs"]) | {*load_words("verbs")["write"].split()}


def _verb_of_description(description: str, table: dict[str, str]) -> str:
    ways = ((w, w[:-1], w[:-2], w[:-3], w[:-1] + "e", w[:-2] + "e") for w in words(description)[:6])
    return next((stem for stems in ways for stem in stems if len(stem) > 1 and stem in table), "")


def _agree(deed: str, effect: str, verb: str) -> str:
    """Let the tool's effect decide between reading and writing."""
    if effect in ("handoff", "compute", "read"):
        return effect
    writes = "create" if verb in ("test", "estimate", "sum") else "update"
    return writes if deed in ("read", "compute") else deed
