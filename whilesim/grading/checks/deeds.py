"""Deeds: what each tool does, as senses that a claim can meet.

A sense is a kind of change (``cancel``, ``refund``, ``off``). A tool has the senses of the
lead verb of its name, and of nouns in it that are deeds; objects are the things it knows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from typing import Any

from whilesim.core.jsontext import dumps, loads
from whilesim.core.templates import load_words
from whilesim.core.text import name_words
from whilesim.grading.checks.language import LANGUAGES, Lexicon, lexicon
from whilesim.situations.tools import Tool, parse_tools
from whilesim.world.fitting import quick_test

_WAYS = frozenset({"on", "off"})


@dataclass(frozen=True, slots=True)
class Deed:
    """One tool, as a claim sees it."""

    tool: Tool
    senses: frozenset[str]
    objects: frozenset[str]

    @property
    def acts(self) -> bool:
        """Whether a call changes anything or hands over."""
        return self.tool.effect in ("write", "handoff")


@dataclass(frozen=True)
class Toolbox:
    """The tools of a conversation, by name."""

    deeds: Mapping[str, Deed]
    given: frozenset[str]
    """Names that were given; the others are guessed from the calls."""

    def lexicon(self, code: str) -> Lexicon:
        """Return a language's lexicon; English gets the lead verbs that no lexicon has."""
        return lexicon(code, self._verbs) if self._verbs and code == "en" else lexicon(code)

    @cached_property
    def _verbs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(s[1:] for d in self.deeds.values() for s in sorted(d.senses) if s[0] == "="))

    @cached_property
    def spelled(self) -> re.Pattern[str]:
        """A pattern of the names that no customer would use: ``close_ticket``, ``closeTicket``."""
        names = [re.escape(n) for n in self.deeds if re.search(r"[a-z][_.][a-z]|[a-z][A-Z]", n)]
        return re.compile(rf"(?<!\w)(?:{'|'.join(names)})(?!\w)" if names else r"(?!)")

    @cached_property
    def fits(self) -> Mapping[str, Callable[[Any], bool] | None]:
        """Quick tests of the arguments of the given tools whose schemas are plain."""
        return {name: quick_test(self.deeds[name].tool.parameters) for name in self.given}

    @cached_property
    def writes(self) -> frozenset[str]:
        """Names of the tools that act."""
        return frozenset(n for n, d in self.deeds.items() if d.acts)


def open_toolbox(tools: Any, called: Iterable[str] = ()) -> Toolbox:
    """Read tools in any dialect; names that were called but not given are judged by name alone."""
    if isinstance(tools, Toolbox):
        box = tools
    elif tools and isinstance(tools, list) and all(isinstance(t, dict) for t in tools):
        box = _parse(dumps(tools))
    else:
        box = _box(parse_tools(tools) if tools else ())
    names = (n for n in dict.fromkeys(called) if n and n not in box.given)
    guessed = {n: deed for n in names for deed in _parse(dumps([{"name": n, "parameters": {}}])).deeds.values()}
    return replace(box, deeds={**box.deeds, **guessed}) if guessed else box


@lru_cache(maxsize=1024)
def _parse(text: str) -> Toolbox:
    return _box(parse_tools(loads(text)))


def _box(tools: Sequence[Tool]) -> Toolbox:
    fields = {t.name: tuple(t.parameters.get("properties") or ()) for t in tools}
    deeds = {t.name: Deed(t, *_read(t.name, t.description, t.effect, fields[t.name])) for t in tools}
    found = ((t.name, re.match("name '(.+)' is not legal", note)) for t in tools for note in t.notes)
    deeds |= {old[1]: deeds[name] for name, old in found if old}  # calls of elsewhere have the name as it was
    return Toolbox(deeds, frozenset(deeds))


@lru_cache(maxsize=4096)
def _read(name: str, description: str, effect: str, fields: Iterable[str]) -> tuple[frozenset[str], frozenset[str]]:
    first = re.split(r"(?<=[.!?])\s", description, maxsplit=1)[0].lower()
    said = re.findall(r"[^\W\d_]+", first)
    things = [*name_words(name), *(w for f in fields for w in name_words(f)), *said]
    acts = effect in ("write", "handoff")
    senses = _senses(name_words(name), said[:1]) if acts else frozenset()
    return senses | ({"handoff"} if effect == "handoff" else set()), stems(things)


def _senses(words: Sequence[str], opening: Sequence[str]) -> frozenset[str]:
    """The lead verb is the first that is no noun as well; only it counts, and nouns that are deeds."""
    data = load_words("checks_deeds")
    leads = [w for w in words if _verb(w) and not w.endswith("ed")] or [w for w in opening if _verb(w)]
    lead = next((w for w in leads if w not in data["nouns_in_names"]), leads[0] if leads else "")
    light = any(lead in lexicon(code).light for code in LANGUAGES)
    deeds = [w for w in words if w != lead and (light or w in data["deeds_in_names"])]
    found = _verb(lead).union(*(_verb(w, "VPGO") for w in deeds))
    if leads and leads[0] == words[0] and leads[0] not in ("order", "book"):
        found |= _verb(leads[0])  # post_void posts and voids
    return found or frozenset(f"={w}" for w in words[:1])


def _verb(word: str, kinds: str = "VPG") -> frozenset[str]:
    return frozenset().union(*(lexicon(code).senses([word], kinds) for code in LANGUAGES))


def call_senses(deed: Deed, arguments: Mapping[str, Any]) -> frozenset[str]:
    """Return the senses of one call: its tool's, and those that short argument values tell.

    A tool that switches both ways has only the way that the arguments say.
    """
    told: set[str] = set()
    for key, value in arguments.items():
        if isinstance(value, bool) and deed.senses & {"on", "off", "update"}:
            told.add("on" if value else "off")
        elif isinstance(value, str) and re.fullmatch(r"[^\d]{1,30}", value) and "reason" not in key:
            told |= _told(value.lower())
    both = deed.senses >= _WAYS and told & _WAYS
    return (deed.senses - _WAYS if both else deed.senses) | told


@lru_cache(maxsize=4096)
def _told(value: str) -> frozenset[str]:
    words = (w for w in re.split(r"[\s_-]+", value) if w not in ("order", "book"))
    return frozenset([value]) if value in _WAYS else frozenset().union(*(_verb(w, "PVS") for w in words))


@cache
def _things() -> tuple[dict[str, str], frozenset[str]]:
    data = load_words("checks_deeds")
    return {_stem(w): group[0] for group in data["same"] for w in group}, frozenset(data["plain"].split())


@lru_cache(maxsize=65536)
def _stem(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    cut = 2 if len(word) > 4 and word.endswith(("ses", "xes", "ches", "shes")) else 1
    return word[:-cut] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def stems(words: Iterable[str]) -> frozenset[str]:
    """Return the words that name things, without plural, one name for each thing."""
    same, plain = _things()
    return frozenset(same.get(s, s) for w in words if w not in plain for s in (_stem(w),))


def meets(claimed: frozenset[str], done: frozenset[str]) -> bool:
    """Say whether a deed of senses ``done`` can be what a claim of senses ``claimed`` speaks of."""
    if len(_WAYS & claimed) == 1 and _WAYS & done and not _WAYS & claimed & done:
        return False
    pairs = load_words("checks_deeds")["pairs"]
    supporting = {s for c in claimed for s in (c, *str(pairs.get(c, "")).split())}
    return "any" in claimed or "any" in done or bool(supporting & done)
