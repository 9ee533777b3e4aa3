"""Intent: which tool a customer's words ask for, and which rule of a prompt they touch.

Words alone decide: a tool is meant by its verb near its nouns, and by what few other tools
say. English only.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from whilesim.conversations.said import SHAPES, is_key, mend, slips_of
from whilesim.conversations.wording import PARTIES, split_name
from whilesim.core.jsontext import loads
from whilesim.core.templates import load_words
from whilesim.core.text import name_words, words
from whilesim.situations.tools import Tool, parse_tools

_ASKS_PERSON, _ASKS, _ASIDE, _RULE_TALK = (
    re.compile("|".join(load_words("scripted_intent")[kind]), re.IGNORECASE)
    for kind in ("asks_person", "asks", "aside", "rule_talk")
)
_CUES, _SHORT, _LINKS, _DULL = (
    frozenset(load_words("scripted_intent")[kind].split()) for kind in ("read_cues", "short", "links", "dull")
)
_SUM = re.compile(rf"\b(?:work out|calculate|comes? to|add up|sum|how much is|what is)\b.{{0,40}}{SHAPES['sum']}", re.I)


@dataclass(frozen=True, slots=True)
class _Words:
    """The words by which a customer can mean a tool, as stems."""

    verbs: frozenset[str]
    nouns: frozenset[str]
    plurals: frozenset[str]
    keys: frozenset[str]
    """What the arguments are keys of."""
    about: frozenset[str]
    """Words of the description's first sentence that its name does not have."""


@dataclass(frozen=True, slots=True, eq=False)
class Toolbox:
    """Tools, the words by which they are meant, and how common each word is among them."""

    tools: Mapping[str, Tool]
    words: Mapping[str, _Words]
    common: Mapping[str, float]
    slips: Mapping[str, str]
    """Words with a slip of the key, to the words that tools have and customers use."""

    @property
    def handoff(self) -> Tool | None:
        """The first tool that reaches a person."""
        return next((t for t in self.tools.values() if t.effect == "handoff"), None)

    def mended(self, text: str) -> str:
        """Put a customer's slips of the key right, where a word of the tools is meant."""
        return mend(text, self.slips)

    @lru_cache(maxsize=4096)  # noqa: B019  boxes are few and live as long as the process
    def meant(self, request: str, pressed: bool = False) -> Tool | None:
        """Return the tool that a request asks for, or None where its words fit none.

        Who asks for a person and for something else is helped with that first.

        Args:
            request: What the customer wrote.
            pressed: Whether the customer has said it twice already: then the nearest tool is taken.
        """
        if asks_person(request):
            rest = " ".join(s for s in sentences(request) if not asks_person(s))
            more = _ASKS.search(rest) and not asks_person(rest)
            return (self.meant(rest) if more else None) or self.handoff
        if _SUM.search(request) and (computes := [t for t in self.tools.values() if t.effect == "compute"]):
            return computes[0]
        parts = [_RULE_TALK.split(_ASIDE.sub("", part))[0] for part in sentences(request)]
        asks = next((i for i, part in enumerate(parts) if _ASKS.search(part)), -1)
        said, heard = [_stems(part) for part in parts] + [["?"]], set(words(request))
        scored = ((self._score(t, said, asks, heard), t) for t in self.tools.values() if t.effect != "handoff")
        score, best = max(scored, key=lambda s: s[0], default=(0.0, None))
        return best if score >= (0.9 if pressed else 2.0) else None

    def _score(self, tool: Tool, said: Sequence[Sequence[str]], asks: int, heard: set[str]) -> float:
        """Return the best fit of any sentence; the one that asks for something counts more, and so does a plural."""
        mine = self.words[tool.name]
        best = max(self._fit(tool, s) + 1.0 * (n == asks or s[0] in mine.verbs) for n, s in enumerate(said) if s)
        return best + 0.2 * self._fit(tool, [w for s in said for w in s]) + 0.6 * len(mine.plurals & heard)

    def _fit(self, tool: Tool, said: Sequence[str]) -> float:
        """Say how well a tool fits a sentence: its verb near its nouns, and its rarer words."""
        mine, heard = self.words[tool.name], set(said)
        if heard.isdisjoint(mine.nouns) and heard.isdisjoint(mine.about):
            return -0.25 * len(mine.nouns)
        score = sum(2.0 / self.common.get(w, 1.0) for w in sorted(mine.nouns & heard))
        score += 0.6 * sum(1.0 / self.common.get(w, 1.0) for w in sorted(mine.about & heard))
        score -= 0.25 * len(mine.nouns - heard)
        reads = tool.effect in ("read", "compute")
        cues = mine.verbs | (_CUES if reads else frozenset())
        places = [i for i, w in enumerate(said) if w in cues]
        if not places:
            return 0.3 * score
        near = max(sum(w in mine.nouns for w in said[i + 1 : i + 6]) for i in places)
        named = any(re.search(r"\d", w) and before in mine.keys for before, w in pairwise(said))
        score += 1.5 * (named and bool(tool.parameters.get("required")))
        nearly = near or 0.5 * any(w in mine.about for i in places for w in said[i + 1 : i + 6])
        if reads:
            return score + (1.0 + 1.2 * min(nearly, 2)) * (score > 0)
        return score + 0.5 + 3.5 * min(nearly, 1) if mine.verbs & heard else 0.4 * score


@lru_cache(maxsize=64)
def open_toolbox(wire: str, prompt: str = "") -> Toolbox:
    """Read tools from their JSON, once for all conversations that have the same."""
    tools = {t.name: t for t in parse_tools(loads(wire))} if wire != "[]" else {}
    known, counts = {}, Counter[str]()
    vocabulary = dict.fromkeys(load_words("scripted_reading")["words"])
    opening = Counter(s for t in tools.values() for s in t.description.split(".")[:3])
    for tool in tools.values():
        verb, noun = split_name(tool)
        given = tool.parameters.get("properties", {})
        lines = tool.description.split(".")
        told = words(next((s for s in lines if opening[s] < 2), lines[0]))
        nouns = frozenset(stem(w) for w in noun.split()) - _LINKS
        known[tool.name] = _Words(
            frozenset({stem(verb), *map(stem, told[:1])}),
            nouns,
            frozenset(w for w in noun.split() if w.endswith("s")),
            frozenset(stem(w) for parts in map(name_words, filter(is_key, given)) for w in parts[:-1] or parts),
            frozenset(stem(w) for w in told if len(w) > 3) - nouns - _DULL,
        )
        counts.update({stem(w) for w in name_words(tool.name)})
        vocabulary |= dict.fromkeys([*name_words(tool.name), *told, *(w for a in given for w in name_words(a))])
    slips = slips_of(vocabulary, {*vocabulary, *words(prompt)})
    return Toolbox(tools, known, {w: n**0.5 for w, n in counts.items()}, slips)


def asks_person(text: str) -> bool:
    """Say whether a customer asks to be passed to a person."""
    return bool(_ASKS_PERSON.search(text))


def answer_further(prompt: str, text: str) -> str:
    """Say what kind of answer a customer's further words call for, once the request is settled.

    Returns:
        ``goodbye``, ``handoff``, ``policy_no`` (a rule forbids it), ``policy_none`` (no rule speaks
        of it), ``policy_answer`` (a rule confirms it), ``policy_depends`` (a rule speaks
        of it) or ``policy_noted``.
    """
    rule = closest_rule(prompt, text) or ""
    if asks_person(text):
        return "handoff"
    if not re.search(r"\?|\b(?:please|could|would|can|need|want|like|know|certain|told|ask|report|i)\b", text, re.I):
        return "goodbye"
    if re.search(r"exception|try again|something you can do|insist|skip|rules or not", text, re.I):
        return "policy_no"
    confirms = re.search(r"\b(?:do|will) you\b|right that|is that (?:so|how)|certain that|hold that", text, re.I)
    if re.search(r"\b(?:transfer|escalate|hand (?:\w+ )?(?:off|over))\b", rule, re.I) and not confirms:
        return "handoff"
    if confirms:
        return "policy_answer" if rule else "policy_none"
    wishes = r"\b(?:could you|can you|please|would it|would \w+|like you to|rather|instead|is there|may i|can i)\b"
    asks = re.search(wishes, text, re.I)
    if asks and re.search(r"\b(?:never|not|cannot|only|must|deny)\b", rule, re.I):
        return "policy_no"
    if asks or re.search(r"\?|\b(?:what|why|when|how|which|where|who|is|are|does|like to know)\b", text, re.I):
        return "policy_depends" if rule else "policy_none"
    return "policy_noted"


def sentences(text: str) -> list[str]:
    """Split a text into sentences; one without marks before the words that open most sentences."""
    parts = re.split(r"(?<=[.!?;])\s+|\n|, (?:and|but)\b|(?:,| and) (?=(?:my|I|I'm|it's|the new)\b)", text)
    opens = rf" (?=(?:{load_words('scripted_intent')['openers']})\b)"
    return [s for p in parts for s in (re.split(opens, p) if len(p.split()) > 20 else [p]) if s.strip()]


def asking(text: str) -> str:
    """Return the sentence of a message in which the customer asks for something."""
    parts, asks = sentences(text), r"\b(?:can|could|please|want|like|rather|need|check|look)\b"
    return next((p for p in parts if re.search(asks, p, re.I)), max(parts, key=len))


def closes(text: str) -> bool:
    """Say whether an agent's words settle a request: they ask nothing."""
    return "?" not in text and not re.search(r"\bI (?:also )?need (?:the|to know)\b", text)


@lru_cache(maxsize=4096)
def closest_rule(prompt: str, text: str) -> str | None:
    """Return the sentence of the prompt that shares most rare words with a text."""
    heard = {stem(w) for w in words(text) if len(w) > 3}
    lines = [s.strip(" -*#\t") for s in re.split(r"(?<=[.!?])\s+|\n", prompt) if len(s) > 20]
    shared = [len(heard & {stem(w) for w in words(line)}) for line in lines]
    return lines[shared.index(max(shared))] if max(shared, default=0) >= 2 else None


def _stems(text: str) -> list[str]:
    """Return the stems of a text's longer words; who has an account is a customer in a tool's words."""
    found = [stem(w) for w in words(text) if w not in _SHORT]
    return [x for w in found for x in (map(stem, PARTIES) if w in ("account", "profil") else (w,))]


@lru_cache(maxsize=8192)
def stem(word: str) -> str:
    """Cut the commonest English endings off a word."""
    word = word.casefold()
    for ending in ("ations", "ation", "ings", "ing", "ied", "ies", "ed", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word
