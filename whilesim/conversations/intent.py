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

from whilesim.conversations.wording import split_name
from whilesim.core.jsontext import loads
from whilesim.core.text import name_words, words
from whilesim.situations.tools import Tool, parse_tools

_READ_CUES = frozenset({"look", "check", "know", "question", "tell", "what", "see", "detail", "find", "show", "list"})
_ASKS_PERSON = re.compile(
    r"\b(?:speak|talk|chat)\b.{0,20}\b(?:person|human|someone|colleague|supervisor|manager)\b|\bhuman\b"
    r"|\bcolleague\b.{0,20}\btake this over|\btransfer me\b|\bask for an? (?:person|human)",
    re.IGNORECASE,
)
_RULE_TALK = re.compile(
    r"\b(?:does it still hold|is it right that|am I right|do you|will you|I was told|I'd like to (?:know|be certain)|by the way|"
    r"just so you know|you should also know|to be clear)\b",
    re.IGNORECASE,
)
_PARTIES = ("customer", "user", "client", "member", "patient", "guest", "subscriber", "profile")


@dataclass(frozen=True, slots=True)
class _Words:
    """The words by which a customer can mean a tool, as stems."""

    verb: str
    nouns: frozenset[str]
    about: frozenset[str]
    """Words of the description's first sentence that its name does not have."""


@dataclass(frozen=True, slots=True, eq=False)
class Toolbox:
    """Tools, the words by which they are meant, and how common each word is among them."""

    tools: Mapping[str, Tool]
    words: Mapping[str, _Words]
    common: Mapping[str, float]

    @property
    def handoff(self) -> Tool | None:
        """The first tool that reaches a person."""
        return next((t for t in self.tools.values() if t.effect == "handoff"), None)

    @lru_cache(maxsize=4096)  # noqa: B019  boxes are few and live as long as the process
    def meant(self, request: str) -> Tool | None:
        """Return the tool that a request asks for, or None where its words fit none."""
        if _ASKS_PERSON.search(request):
            return self.handoff
        parts = [_stems(_RULE_TALK.split(part)[0]) for part in re.split(r"[.!?;\n]|, (?:and|but)\b", request)]
        scored = [
            (max(self._fit(t, said) for said in parts) + 0.2 * self._fit(t, _stems(request)), -i, t)
            for i, t in enumerate(self.tools.values())
            if t.effect != "handoff"
        ]
        best = max(scored, key=lambda s: s[:2], default=(0.0, 0, None))
        return best[2] if best[0] >= 1.0 else None

    def _fit(self, tool: Tool, said: Sequence[str]) -> float:
        """Say how well a tool fits a sentence: its verb near its nouns, and its rarer words."""
        mine, heard = self.words[tool.name], set(said)
        if heard.isdisjoint(mine.nouns) and heard.isdisjoint(mine.about):
            return -0.25 * len(mine.nouns)
        score = sum(2.0 / self.common.get(w, 1.0) for w in sorted(mine.nouns & heard))
        score += 0.6 * sum(1.0 / self.common.get(w, 1.0) for w in sorted(mine.about & heard))
        score -= 0.25 * len(mine.nouns - heard)
        if tool.effect == "read":
            cued = [i for i, w in enumerate(said) if w in _READ_CUES]
            near = any(w in mine.nouns for i in cued for w in said[i + 1 : i + 5])
            return score + (1.0 * bool(cued) + 1.5 * near) * (score > 0)
        if mine.verb not in heard:
            return 0.4 * score
        places = [i for i, w in enumerate(said) if w == mine.verb]
        near = any(w in mine.nouns or w in mine.about for i in places for w in said[i + 1 : i + 5])
        return score + 0.5 + 3.5 * near


@lru_cache(maxsize=64)
def open_toolbox(wire: str) -> Toolbox:
    """Read tools from their JSON, once for all conversations that have the same."""
    tools = {t.name: t for t in parse_tools(loads(wire))} if wire != "[]" else {}
    known, counts = {}, Counter[str]()
    for tool in tools.values():
        verb, noun = split_name(tool)
        nouns = frozenset(stem(w) for w in noun.split())
        about = frozenset(stem(w) for w in words(tool.description.split(".")[0]))
        known[tool.name] = _Words(stem(verb), nouns, about - nouns)
        counts.update({stem(w) for w in name_words(tool.name)})
    return Toolbox(tools, known, {w: n**0.5 for w, n in counts.items()})


def answer_further(prompt: str, text: str) -> str:
    """Say what kind of answer a customer's further words call for, once the request is settled.

    Returns:
        ``goodbye``, ``handoff``, ``policy_no`` (a rule forbids it), ``policy_none`` (no rule speaks
        of it), ``policy_answer`` (a question that a rule answers) or ``policy_noted``.
    """
    if _ASKS_PERSON.search(text):
        return "handoff"
    if not re.search(r"\?|\b(?:please|could|would|can|need|want|like|know|certain|told|ask|report|i)\b", text, re.I):
        return "goodbye"
    if re.search(r"exception|try again|something you can do|insist", text, re.I):
        return "policy_no"
    rule = closest_rule(prompt, text)
    to_person = rule and re.search(r"\b(?:transfer|escalate|hand (?:\w+ )?(?:off|over))\b", rule, re.I)
    if to_person and not re.search(r"\b(?:do|will) you\b", text, re.I):
        return "handoff"
    if re.search(r"\b(?:could you|please|would it be possible|like you to)\b", text, re.I):
        forbidden = rule and re.search(r"\b(?:never|not|cannot|only)\b", rule, re.I)
        return "policy_no" if forbidden else "policy_none"
    if not re.search(r"\b(?:do|will) you\b|right that|is that so|certain that|hold that|like to know|\?", text, re.I):
        return "policy_noted"
    return "policy_answer" if rule else "policy_none"


def closest_rule(prompt: str, text: str) -> str | None:
    """Return the sentence of the prompt that shares most rare words with a text."""
    heard = {stem(w) for w in words(text) if len(w) > 3}
    lines = [s.strip(" -*#\t") for s in re.split(r"(?<=[.!?])\s+|\n", prompt) if len(s) > 20]
    scored = [(len(heard & {stem(w) for w in words(line)}), -i) for i, line in enumerate(lines)]
    best = max(scored, default=(0, 0))
    return lines[-best[1]] if best[0] >= 2 else None


def _stems(text: str) -> list[str]:
    """Return the stems of a text's longer words; who has an account is a customer in a tool's words."""
    found = [stem(w) for w in words(text) if len(w) > 2]
    return [*found, *map(stem, _PARTIES)] if "account" in found or "profil" in found else found


@lru_cache(maxsize=8192)
def stem(word: str) -> str:
    """Cut the commonest English endings off a word."""
    word = word.casefold()
    for ending in ("ations", "ation", "ings", "ing", "ied", "ies", "ed", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word
