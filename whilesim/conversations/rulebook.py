"""Rulebook: the rule of a prompt that a question is about, and how a customer is told it.

A question is known by the rule's own words, and by what customers say about rules of its
theme. A rule is told as who keeps it would say it: 'Ask the customer for a reason before you
cancel' is 'I have to ask you for a reason before I cancel'. One that this cannot be done with
soundly is found all the same, but has no words to be told in. English only.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby
from math import log
from typing import Any

from whilesim.cards.speech import base_form, lowered, stem, stems, word_set
from whilesim.core.templates import load_words
from whilesim.core.text import words
from whilesim.situations.norms import unit
from whilesim.situations.policy import Clause, parse_policy

_WORDS: Mapping[str, Any] = load_words("scripted_rules")
_THEMES: Mapping[str, Any] = load_words("themes_en")
_LONGEST = 330  # characters of a rule that is told
_COPIED = 25  # words in a row that would be a quotation of the prompt
_MANY = 5  # rules that a question fits equally well, at most
_THEME = 1_000.0  # what a rule's theme counts, beside the words that it shares
_UNSOUND = "{}"  # what is told holds no brace


def _compiled(*patterns: str) -> re.Pattern[str]:
    joined = "|".join(patterns)
    for name in ("PARTY", "MODAL", "PLURAL", "OWN"):
        joined = joined.replace(name, _WORDS[name])
    return re.compile(joined, re.IGNORECASE)


_LOOKS = {name: _compiled(*([look] if isinstance(look, str) else look)) for name, look in _WORDS["looks"].items()}
_TURNS = [(_compiled(look), put) for look, put in _WORDS["turns"]]
_CUES = {name: re.compile(theme["cue"], re.IGNORECASE) for name, theme in _THEMES.items()}
_SAID = [(name, line) for name, theme in _THEMES.items() for kind in ("says", "asks") for line in theme.get(kind, ())]
_FRAMES = [(name, frozenset(words(re.sub(r"\{\w+\}", " ", line)))) for name, line in _SAID]
"""What customers say of each theme, as words; what stands in a gap is not among them."""


@dataclass(frozen=True, slots=True)
class ToldClause:
    """One rule, and how it is told."""

    handoff: bool
    on_wish: bool
    """Whether it hands off who wishes for a person."""
    on_mention: bool
    """Whether it hands off who mentions something: legal action, an injury."""
    told: str
    """What it is about and how it is said to the customer; empty where it cannot be."""
    stems: frozenset[str]
    themes: frozenset[str]


@dataclass(frozen=True, eq=False)
class Rulebook:
    """The rules of a prompt, and how much a word tells of which of them is meant."""

    rules: Sequence[ToldClause]
    worth: Mapping[str, float]
    identifies: bool
    """Whether the agent is to check who the customer is."""

    @lru_cache(maxsize=4096)  # noqa: B019  rulebooks are few and live as long as the process
    def about(self, question: str) -> ToldClause | None:
        """Return the rule that a question is about, the nearest of a few; of many, one that is not told."""
        if _LOOKS["through"].search(question):
            handoffs = sorted((r for r in self.rules if r.handoff), key=lambda r: (not r.on_wish, not r.told))
            return next(iter(handoffs), None)
        said = frozenset(words(_LOOKS["aside"].sub("", question)))
        fits = [(len(f & said), theme, f) for theme, f in _FRAMES if len(f) > 3 and len(f & said) >= 0.8 * len(f)]
        best = [(theme, f) for size, theme, f in fits if size == max(fits)[0]]
        ways = [*best, ("", frozenset[str]().union(*(f for _, f in best)))]
        marks = [max(self._mark(r, said, *way) for way in ways) for r in self.rules]
        top = [r for r, mark in zip(self.rules, marks, strict=True) if mark == max(marks) > 0]
        near = min(top, key=lambda r: (not r.told, -len(r.stems & _stems(said)), len(r.stems)), default=None)
        alike = max(marks, default=0) != _THEME or any(theme in _WORDS["alike"] for theme, _ in best)
        return near if near is None or len(top) <= (_MANY if alike else 1) else replace(near, told="", handoff=False)

    def _mark(self, rule: ToldClause, said: frozenset[str], theme: str, frame: frozenset[str]) -> float:
        """Say how much of what is said a rule speaks of; 0 where it is another rule."""
        gap = _stems(said - frame)
        asked = sorted(gap or (_stems(said) if theme else ()))
        worth = [self.worth.get(w, self.worth[""]) * (w in rule.stems or -1) for w in asked]
        shared = [w for w in worth if w > 0]
        telling = len(shared) > 1 or (sum(worth) > 0 and max(shared, default=0) >= max(self.worth.values()))
        if (theme not in rule.themes) if theme else not telling:
            return 0.0
        return _THEME * bool(theme) * (sum(worth) >= 0 or not gap) + sum(shared) * (sum(worth) >= 0)


@lru_cache(maxsize=16)
def read_rules(prompt: str) -> Rulebook:
    """Read the rules of a prompt, once for all conversations that have it."""
    policy = parse_policy(prompt) if prompt.strip() else None
    mute = policy is None or policy.language != "en" or _LOOKS["secret"].search(prompt)
    ours, known = bool(_LOOKS["addressed"].search(prompt)), " ".join(re.findall(r"\w+", prompt.lower()))
    identifies = any(_LOOKS["identity"].search(c.text) for c in (policy.clauses if policy else ()))
    rules = []
    for text, handoff in _joined(policy.clauses if policy else ()):
        rule = _LOOKS["label"].sub("", text)
        label = text.removesuffix(rule)
        told = "" if mute or _LOOKS["untold"].search(label) else _told(rule, ours=ours, headed=bool(label))
        run = re.findall(r"\w+", told.lower())
        copied = any(" ".join(run[i : i + _COPIED]) in known for i in range(len(run) - _COPIED + 1))
        about = f'"{label[:-2]}"' if label else "this"
        themes = frozenset(name for name, cue in _CUES.items() if cue.search(text))
        said = _stems(words(_LOOKS["aside"].sub("", rule)))
        on_wish, on_mention = (handoff and bool(_LOOKS[look].search(text)) for look in ("wish", "mention"))
        telling = f"{about}: {told}" if told and not copied else ""
        rules.append(ToldClause(handoff, on_wish, on_mention, telling, said, themes))
    counts = Counter(w for rule in rules for w in rule.stems)
    worth = {w: (0.4 if w in stems("weak") else 1.0) * log(1 + len(rules) / n) for w, n in counts.items()}
    return Rulebook(rules, worth | {"": 0.7 * log(1 + len(rules))}, identifies)


def _joined(clauses: Sequence[Clause]) -> Iterator[tuple[str, bool]]:
    """Yield each rule and whether it hands off; items that stand below one lead-in are one rule."""

    def lead(clause: Clause) -> str:
        before = clause.text[: clause.text.rfind(": ") + 2]
        return before if len(before) > 1 and _LOOKS["label"].sub("", before) else clause.text

    for start, group in groupby(clauses, key=lead):
        items = list(group)
        ends = [lowered(c.text.removeprefix(start).rstrip(".")) for c in items if c.text != start]
        listed = "; and ".join(filter(None, ["; ".join(ends[:-1]), *ends[-1:]]))
        yield _LOOKS["note"].sub("", start + listed), any(c.kind == "handoff" for c in items)


def _told(rule: str, *, ours: bool, headed: bool) -> str:
    """Say a rule as who keeps it says it to the customer; empty where that cannot be done soundly.

    Args:
        rule: Without what it is filed under.
        ours: Whether the prompt speaks to the agent, so that its orders are the agent's.
        headed: Whether it is filed under something; then an entry of a list or table, without a verb, is told too.
    """
    rule = " ".join(rule.replace("*", "").split())
    if len(rule) > _LONGEST or _LOOKS["unsaid"].search(rule) or (not ours and re.search(r"\byou", rule, re.I)):
        return ""
    for look, put in _TURNS:
        rule = look.sub(put, rule)
    rule = _LOOKS["acting"].sub(_agreeing, rule)
    parts = re.split(r"(?<=;) |(?<=[.!?]) (?=[A-Z])", rule)
    rule = " ".join(_ordered(part, ours or "you" in rule) for part in parts)
    for full, short in _WORDS["short"].items():
        rule = re.sub(rf"\b{full}(?= \w)", short, rule)
    rule = lowered(rule.rstrip(" .!;")) + "."
    said = [bool(_LOOKS["finite"].search(part)) for part in re.split(r"(?<=[.!?]) (?=[A-Z])", rule)]
    sound = (all(said) or (headed and not any(said))) and not _LOOKS["untold"].search(rule)
    return rule if sound and len(rule.split()) > 3 else ""


def _agreeing(found: re.Match[str]) -> str:
    """Let the verbs behind 'you' agree: 'you has paid and wants more' is 'you have paid and want more'."""

    def agreed(part: re.Match[str]) -> str:
        known = word_set("verbs") | word_set("verb_or_noun") if part[1] == "you" else word_set("verbs")
        base = base_form(part[3])
        verb = base if known & {base, part[3]} else part[3]
        return f"{part[1]}{part[2]}{_WORDS['irregular'].get(part[3], verb)}"

    return re.sub(r"\b(you|and|or|but)( (?:already |also |still |only |\w+ly )?)([\w']+)", agreed, found[0])


def _ordered(part: str, ours: bool) -> str:
    """Give an order to who keeps it: 'tell you the price' is 'I have to tell you the price'."""
    order = _LOOKS["lead"].sub("", part)
    head, allowed = part.removesuffix(order), _LOOKS["never"].sub("", order)
    if allowed != order:
        return f"{head}I'm not allowed to {allowed}" if ours else _UNSOUND
    if not _orders(order):
        return part
    first = words(re.sub(r"^(?:(?:always|only|\w+ly) )+", "", order))[0]
    if first not in word_set("verbs") | word_set("verb_or_noun") | {"be"}:
        return _UNSOUND if _orders(re.split(r"[,:] ", order)[-1]) else part
    may = "can" if _LOOKS["limit"].search(order) else "have to"
    return f"{head}I {may} {lowered(order)}" if ours and ": " not in order else _UNSOUND


def _orders(text: str) -> bool:
    return bool(unit(text[:1].upper() + text[1:]).orders)


def _stems(said: Iterable[str]) -> frozenset[str]:
    idle = word_set("stop") | word_set("inner") | frozenset(_WORDS["idle"].split())
    return frozenset(stem(w) for w in said if (len(w) > 1 or w.isdigit()) and w not in idle)
