"""Wording: what a tool's description and its section of the policy say of a status: before, after, once.

'Sets the line status to Suspended', 'status must be Active', 'can only be called once'. What is
said outright beats what a verb makes one guess; the vocabulary's spelling wins.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from whilesim.core.templates import load_words
from whilesim.core.text import name_words
from whilesim.situations.tools import Tool
from whilesim.world.attributes import PolicyFacts, pattern, singular
from whilesim.world.kinds import Kind
from whilesim.world.verbs import Phrase


def status_after(tool: Tool, phrase: Phrase, kind: Kind | None, facts: PolicyFacts) -> str:
    """Return the status after a write: as the description says, then the policy, then the verb; empty for none."""
    for text in (tool.description, sections_of(phrase, facts)):
        if found := pattern("after").search(text):
            return spell((found["a"] or found["b"] or found["c"]).strip(), kind)
    if phrase.deed != "status":
        return ""
    word = load_words("world_verbs")["status"][phrase.verb]
    if not (kind and kind.status):
        return str(word)
    options = kind.fields[kind.status].options
    same = [o for o in options if o.lower()[:5] == word[:5]]
    same = same or [o for o in options if o.lower().startswith(phrase.verb[:4])]
    return same[0] if same else _case(word, options)


def spell(value: str, kind: Kind | None) -> str:
    """Return a status in the spelling of the vocabulary."""
    options = kind.fields[kind.status].options if kind and kind.status else ()
    plain = re.sub(r"[_\s]+", " ", value).strip(" '\"").lower()
    same = (o for o in options if re.sub(r"[_\s]+", " ", o).lower() == plain)
    return next(same, plain if options else value.strip())


def _case(word: str, options: Sequence[str]) -> str:
    if options and all(o[:1].isupper() for o in options):
        return word.title()
    return word.replace(" ", "_") if any("_" in o for o in options) else word


def statuses_before(tool: Tool, phrase: Phrase, kind: Kind, facts: PolicyFacts) -> tuple[str, ...]:
    """Return the statuses that the description, then the tool's name, then its policy section ask for; empty for any."""
    options = kind.fields[kind.status].options if kind.status else ()
    for text in (tool.description, sections_of(phrase, facts)):
        for found in pattern("before").finditer(text):
            listed = re.split(r", | or | and ", found["list"])
            if spelled := tuple(s for o in listed if (s := spell(o.strip(" '\"*"), kind)) in options):
                return spelled
        before = rf"\b(?:an?|some \w+ of a) {{}} {kind.name}\b"
        said = text[:120].lower()
        called = (re.search(before.format(re.escape(o.lower())), said) or o.lower() in phrase.nouns for o in options)
        named = (o for o, one in zip(options, called, strict=True) if one)
        if adjectives := tuple(named):
            return adjectives
    return ()


def sections_of(phrase: Phrase, facts: PolicyFacts) -> str:
    """Return the bodies of the policy sections whose heading says what the tool's name says."""
    said = {w[:6] for w in (phrase.verb, *phrase.nouns)}
    if phrase.verb in ("update", "change", "edit"):
        said.add("modify")
    return "\n".join(
        body
        for heading, body in facts.sections
        if len(words := [singular(w.lower()) for w in name_words(heading)]) > 1 and all(w[:6] in said for w in words)
    )
