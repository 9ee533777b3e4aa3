"""Intent: which tool a customer's words ask for, and what kind of answer further words do.

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

from whilesim.cards.speech import stem
from whilesim.conversations.rulebook import ToldClause
from whilesim.conversations.said import SHAPES, is_key, mend, slips_of
from whilesim.conversations.wording import PARTIES, split_name
from whilesim.core.jsontext import loads
from whilesim.core.templates import load_words
from whilesim.core.text import name_words, words
from whilesim.situations.tools import Tool, parse_tools

_SAID = load_words("scripted_intent")
_TALK = ("asks_person", "asks", "aside", "rule_talk")
_ASKS_PERSON, _ASKS, _ASIDE, _RULE_TALK = (re.compile("|".join(_SAID[kind]), re.IGNORECASE) for kind in _TALK)
_FURTHER = {kind: re.compile(look, re.IGNORECASE) for kind, look in _SAID["further"].items()}
_CUES, _SHORT, _LINKS, _DULL = (frozenset(_SAID[kind].split()) for kind in ("read_cues", "short", "links", "dull"))
_SUM = re.compile(rf"\b(?:work out|calculate|comes? to|add up|sum|how much is|what is)\b.{{0,40}}{SHAPES['sum']}", re.I)


@dataclass(frozen=True, slots=True)
class _Words:
    """The words by which a customer can mean a tool, as stems."""

    verbs: frozenset[str]
    nouns: frozenset[str]
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
        said = [_stems(part) for part in parts] + [["?"]]
        scored = ((self._score(t, said, asks), t) for t in self.tools.values() if t.effect != "handoff")
        score, best = max(scored, key=lambda s: s[0], default=(0.0, None))
        return best if score >= (0.9 if pressed else 2.0) else None

    def _score(self, tool: Tool, said: Sequence[Sequence[str]], asks: int) -> float:
        """Return the best fit of any sentence; the one that asks for something counts more."""
        mine = self.words[tool.name]
        best = max(self._fit(tool, s) + 1.0 * (n == asks or s[0] in mine.verbs) for n, s in enumerate(said) if s)
        return best + 0.2 * self._fit(tool, [w for s in said for w in s])

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
        near = max(len(mine.nouns.intersection(said[i + 1 : i + 6])) for i in places)
        bare = [w for w in said if len(w) > 3 or re.search(r"\d", w)]  # 'CL' of 'claim CL-39-12' is a word too
        named = any(re.search(r"\d", w) and before in mine.keys for before, w in pairwise(bare))
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


def answer_further(said: str, rule: ToldClause | None) -> str:
    """Say what kind of answer a customer's further words call for, once the request is settled.

    Args:
        said: What the customer wrote.
        rule: What the prompt says of it, if anything.

    Returns:
        ``handoff``, or a kind of phrase: ``policy_rule`` tells the rule, ``policy_depends`` says
        that there is one, ``policy_none`` that there is none.
    """
    kind = next((k for k, look in _FURTHER.items() if look.search(said)), "policy_depends" if rule else "goodbye")
    supposed = re.search(r"\b(?:when|if|in case|suppose)\b", said, re.IGNORECASE)
    stated = kind == "policy_noted" or re.search(r"\b(?:that case|handle that|that mean)\b", said)  # it is so
    due = rule and (rule.on_wish or (rule.handoff and stated) or (rule.on_mention and not supposed))
    if asks_person(said) or due:
        return "handoff"
    if rule and rule.told and kind != "goodbye":
        return "policy_rule"
    return "policy_none" if kind == "policy_depends" and rule is None else kind


def sentences(text: str) -> list[str]:
    """Split a text into sentences; one without marks before the words that open most sentences."""
    parts = re.split(r"(?<=[.!?;])\s+|\n|, (?:and|but)\b|(?:,| and) (?=(?:my|I|I'm|it's|the new)\b)", text)
    opens = rf" (?=(?:{_SAID['openers']})\b)"
    return [s for p in parts for s in (re.split(opens, p) if len(p.split()) > 20 else [p]) if s.strip()]


def asking(text: str) -> str:
    """Return the sentence of a message in which the customer asks for something."""
    parts, asks = sentences(text), r"\b(?:can|could|please|want|like|rather|need|check|look)\b"
    return next((p for p in parts if re.search(asks, p, re.I)), max(parts, key=len))


def closes(text: str) -> bool:
    """Say whether an agent's words settle a request: they ask nothing."""
    return "?" not in text and not re.search(r"\bI (?:also )?need (?:the|to know)\b", text)


def _stems(text: str) -> list[str]:
    """Return the stems of a text's longer words; who has an account is a customer in a tool's words."""
    found = [stem(w) for w in words(text) if w not in _SHORT]
    parties = map(stem, (*PARTIES, *load_words("world_nouns")["party"]))
    return [x for w in found for x in (dict.fromkeys(parties) if w in ("account", "profil") else (w,))]
