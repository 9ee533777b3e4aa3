"""Requests: what a tool does, as a customer asks for it.

The tool's name gives the words where it reads as a phrase; the first sentence of its
description where it does not, or where nothing of the customer's is named.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from whilesim.cards.speech import NOUN, a_or_the, as_me, base_form, describes, is_plural, listed, lowered, the, word_set
from whilesim.core.templates import load_words
from whilesim.core.text import name_words
from whilesim.situations.tools import Tool
from whilesim.world.mock import Focus
from whilesim.world.verbs import deed_of_verb, read_name, spoken_verb

_LINKS = ("by", "for", "from", "with", "using", "in", "to", "of")


def deed(tool: Tool, focus: Focus) -> str:
    """Say what a tool does so that it follows 'could you': 'suspend my line L20871'."""
    if tool.effect == "handoff":
        return "put me through to a person"
    sums = [v for n, v in focus.facts.items() if re.search(r"\d", v) and "id" not in n.split()]
    if tool.effect == "compute" and sums and len(tool.parameters.get("properties") or ()) < 2:
        return f"work out {listed(sums[:2])}"
    if tool.effect == "read" and focus.object == "my account":
        return f"look up {thing(tool, focus)}"
    given = {w for a in tool.parameters.get("properties") or () for w in name_words(a)} - word_set("parties")
    verb, name = _verb_of(tool, focus), name_words(tool.name)
    writes = tool.effect == "write"  # a ticket that is listed for sale is not told
    told = _described(tool.description, () if writes else tuple(sorted(given)), *name[:1], writes=writes)
    if focus.kind and re.search(r"\d", focus.object):
        told = re.sub(rf"\ban? {focus.kind.replace('_', ' ')}\b(?: of \w+)?", focus.object, told)
    links = [w for w, to in pairwise(name) if w in ("for", "to", "from", "in") and to not in word_set("parties")]
    named = verb[0] in name and not links and verb[0] not in ("post", "put", "patch", "manage", "handle", "process")
    if told and (not named or (tool.effect == "read" and (not focus.kind or verb[0] in ("search", "find", "list")))):
        key = focus.facts.get("id")
        return f"{told} for {key}" if key and key not in told else told
    if tool.effect in ("read", "compute"):
        return f"look up {thing(tool, focus)}"
    return _written(tool, focus, verb) if named else f"help me with {focus.object or 'this'}"


def _verb_of(tool: Tool, focus: Focus) -> list[str]:
    """Return a tool's verb; that of its name where the world knows none: 'take the deposit', 'resend my invoice'."""
    verb, (first, *rest) = spoken_verb(tool), name_words(tool.name) or [""]
    noun = is_plural(first) or _same(first, name_words(focus.kind or "")) or NOUN.search(first)
    known = verb[0] in (first, *rest) or tool.effect != "write" or not rest
    return verb if known or (noun and first not in word_set("verbs") | word_set("verb_or_noun")) else [first]


def thing(tool: Tool, focus: Focus) -> str:
    """Name what a reading tool reads: 'my bill B30915', 'the data usage of my line'."""
    words, kind = _object_words(tool, read_name(tool).verb.split("_")), name_words(focus.kind or "")
    at = max((i for i, w in enumerate(words) if _same(w, kind)), default=-1)
    dull = word_set("dull") | word_set("parties")
    before = [w for w in words[: max(at, 0)] if w not in dull and not _same(w, kind)]
    after = [w for w in words[at + 1 :] if w not in dull]
    if not focus.object or focus.object == "my request":
        return the(" ".join(w for w in words if w not in ("tool", "all")) or "what you have on this")
    if after:
        nouns = " ".join([*before, *after])
        return f"the {nouns} of {focus.object}"
    if at >= 0 and (before or is_plural(words[at])) and not re.search(r"\d", focus.object):
        return " ".join([focus.object.split()[0], *before, *kind[:-1], words[at]])
    return focus.object


def _written(tool: Tool, focus: Focus, verb: Sequence[str]) -> str:
    words, kind, said = _object_words(tool, verb), name_words(focus.kind or ""), " ".join(verb)
    nouns, keyed = " ".join(words), re.search(r"\d", focus.object) is not None
    spoken = load_words("cards_en")["spoken"]
    if not focus.object or (not keyed and verb[0] in word_set("creates")):
        to_me = " me" if verb[0] in ("send", "issue", "give") else ""
        return f"{said}{to_me} {a_or_the(spoken.get(nouns, nouns))}".strip()
    at = next((i for i, w in enumerate(words) if _same(w, kind)), None)
    if at and verb[0] in word_set("creates"):
        return f"{said} {a_or_the(' '.join(words[: at + 1]))} for {focus.object}"
    rest = words if at is None else words[at + 1 :]
    rest = [spoken.get(w, w) for w in rest if not _same(w, kind)]
    if not rest or focus.object == "my request":
        return f"{said} {focus.object if not rest else 'the ' + ' '.join(rest)}"
    if len(rest) == 1 and at is None and describes(rest[0]):
        return f"{said} {focus.object} as {rest[0]}"
    spoken_of = f"the {' '.join(rest)} {'for' if at is None else 'of'} {focus.object}"
    wish = next((v for n, v in focus.facts.items() if n.startswith("new ") and rest[-1] in n.split()), "")
    if said in ("set", "toggle", "switch") and wish:
        return f"switch {spoken_of} {wish}" if wish in ("on", "off") else f"{said} {spoken_of} to {wish}"
    return f"{said} {spoken_of}"


@lru_cache(maxsize=4096)
def _described(description: str, given: tuple[str, ...], named: str = "", *, writes: bool = False) -> str:
    """Return the deed that a description opens with, or nothing: 'search for direct flights'; what is ``given`` is left out."""
    frames = load_words("cards_en")
    text = re.sub(frames["before_description"], "", description.strip(), flags=re.I | re.S)
    text = re.split(r"[.;:(,\n\"“]", text, maxsplit=1)[0]
    text = re.split(frames["after_description"], text, maxsplit=1, flags=re.I)[0].strip()
    which = rf"(\s\S{{3,}})\s(?:of|on|at|near|in|for|from|with|by|to) an? (?:{'|'.join(given)})\b.*"
    text = re.sub(which, r"\1", text) if given else text  # 'the slots of a dentist on a day': the facts say which
    text = re.sub(r"^(\w+)(?:, \w+)*,? or \w+ (?=an? |the )", r"\1 ", text)  # 'book or cancel a room'
    first, _, rest = text.partition(" ")
    verb = base_form(first.lower())
    if verb not in {*deed_of_verb(), *frames["say_instead"], named} or not 1 <= len(rest.split()) <= 9 or "_" in text:
        return ""
    bare = verb != "search" and not re.match(
        r"(?:an?|the|my|your|all|any|some|for|to|up|whether|if|in|on|with|how|what|this|its|their)\b", rest, re.I
    )
    rest = f"the {rest}" if bare else rest
    return as_me(f"{verb if writes else frames['say_instead'].get(verb, verb)} {lowered(rest)}")


def _object_words(tool: Tool, verb: Sequence[str]) -> list[str]:
    parts = [w for w in name_words(tool.name) if w not in verb]
    cut = next((i for i, w in enumerate(parts) if w in _LINKS and i > 0), len(parts))
    return [w for w in parts[:cut] if w not in _LINKS]


def _same(word: str, kind: Sequence[str]) -> bool:
    return any(word in (k, f"{k}s", f"{k}es") or (k.endswith("y") and word == f"{k[:-1]}ies") for k in kind)
