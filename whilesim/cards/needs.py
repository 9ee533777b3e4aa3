"""Needs: what a customer says so that a clause comes up.

A customer has never read the policy and does not recite it. A rule that starts with 'if the
customer ...' becomes something that is so ('I'm travelling abroad'); a prohibition becomes
the request that it forbids; any other rule becomes what its theme (``words/themes_en``) has
customers say, about the few words that set this clause apart; and where no theme fits, a
short question about these words. Rules of the agent's own conduct (confirm first, invent
nothing) become an invitation to break them.

The words are English; a policy in another language lends its own nouns to English frames.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from string import Formatter
from typing import Any, Literal

from whilesim.cards.speech import as_me, first_person, listed, lowered, names_in, spans_of, stem, stems, the, word_set
from whilesim.core.seeds import pick
from whilesim.core.templates import load_words
from whilesim.core.text import name_words, words
from whilesim.situations.norms import language_of
from whilesim.situations.policy import Clause, Policy
from whilesim.situations.tools import Tool
from whilesim.world.oracle import Applies
from whilesim.world.verbs import read_name

NeedForm = Literal["circumstance", "request", "question"]
Source = Literal["conduct", "circumstance", "request", "theme", "topic"]
RUN = 6
"""So many words in a row with the policy would be a quotation."""
_HOLD = 0xE000  # private characters stand for what must survive
_TELLING = 0.19  # the least that a phrase must be worth to stand in a theme's frame
_LONGEST = 14  # words of a need that is said with the clause's own words

_NEGATION = re.compile(
    r"\b(?:never|do not|don't|must not|may not|cannot|can't|should not|(?:are|is) not (?:allowed|permitted) to|"
    r"not permitted to|shall not|avoid)\s+",
    re.IGNORECASE,
)
_END = re.compile(r"[.;!?(\n]|:(?!//)|,(?!\d)|\bthen\b|\bunless\b|\bexcept\b|\beven\b|\banyway\b|\s[-–—→]\s")
_LAST_PART = re.compile(r"^(.*)\s(?:after|before|during|for|in|on|at|of|with|from|by|that|which|who)\b[^.]*(\.?)$")
_AGENT = re.compile(r"\b(?:you|we|(?:agent|assistant|bot|chatbot|desk|staff)s?)(?: (?:are|should|must|can))?$", re.I)
_HEADINGS = re.compile(r"^(?:[^\W\d_][^.:;]{0,60}: )+")
_INDIRECT = re.compile(
    r"\b(?:ask|check|determine|verify|see|investigate|know|clarify|confirm|test)(?: \w+){0,2}\s+$", re.IGNORECASE
)
_UNSAYABLE = re.compile(r"[{}`\"“_/<>=]|\b(?:agent|tool|system|above|below|listed|following|API)s?\b|\bone\W*$", re.I)
_LOOSE = re.compile(r"(?:[({]|(?:if|when|there|do|it|for|with|without|in|on|at|after|but|and|or)\b)|.*\bto$", re.I)
_POINTING = frozenset({"it", "this", "that", "so", "one", "them", "these", "those"})
"""What names nothing by itself: 'if the customer asks for it'."""
_AMOUNT = re.compile(
    r"[$€£]\s?\d[\d,.]*\d|[$€£]\d|\b\d[\d,.]{0,20}\s?(?:dollars|euros|pounds|USD|EUR|percent|GB|MB|kg|lbs)\b|\b\d[\d.]{0,20}\s?%"
)
_TIME = re.compile(
    r"\b\d+(?:\s?(?:-|–|to)\s?\d+)?[ -]?(?:business |working |calendar )?(?:day|hour|hr|week|month|year|minute)s?\b(?![ -](?:based|format|clock|service|line|support)\b)",
    re.I,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What a customer says so that one clause comes up."""

    text: str
    form: NeedForm
    applies: Applies
    """Whether what is said makes the clause apply, as far as its words decide."""
    about: str = ""
    """What the clause is about, in the customer's words; with it two clauses are told apart."""
    source: Source = "topic"
    """How the words were found."""


class Phrasebook:
    """The policy and tools as a customer may and may not say them.

    Args:
        policy: Its six-word runs are never repeated, and its clauses say which words set one
            clause apart from the others.
        tools: Their names are never said.
        values: Axis values, which are never said either.
    """

    def __init__(self, policy: Policy, tools: Sequence[Tool], values: Sequence[str]) -> None:
        self.frames: Mapping[str, Any] = load_words("cards_en")
        self._policy = policy
        text = words(policy.text)
        self._runs = {tuple(text[i : i + RUN]) for i in range(len(text) - RUN + 1)}
        self._needs: dict[tuple[Any, ...], Need] = {}
        self._common = {stem(w) for t in tools for n in (t.name, *t.parameters["properties"]) for w in name_words(n)}
        named = (name_words(n) for t in tools for n in t.parameters["properties"])
        self._fields = {" ".join(name) for name in named if len(name) > 1 and name[-1] in word_set("weak")}
        names = {t.name: " ".join(name_words(t.name)) for t in tools}
        swaps: dict[str, str] = {v: v.replace("_", " ") for v in values if "_" in v}
        swaps |= {n: w for n, w in names.items() if w != n.lower()}
        swaps |= {n: "that" for n, w in names.items() if w == n.lower()}
        swaps |= {k: v for k, v in self.frames["instead"].items() if k in values or k in names}
        self._swaps = {k.lower(): v for k, v in swaps.items()}
        spelled = sorted(map(re.escape, swaps), key=lambda s: (-len(s), s))
        self._banned = re.compile(rf"\b(?:{'|'.join(spelled)})\b", re.IGNORECASE) if spelled else None

    def frame(self, kind: str, seed: int, *names: str | int, **values: str) -> str:
        """Fill one of the frames of a kind, drawn by the names."""
        return str(pick(self.frames[kind], seed, kind, *names)).format(**values)

    def clean(self, text: str, keep: Sequence[str] = ()) -> str:
        """Take tool names, axis values and quotations out of a text; ``keep`` stays as it is."""
        whole = sorted({k for k in keep if k and k in text}, key=lambda k: (-len(k), k))
        kept = {chr(_HOLD + i): k for i, k in enumerate(whole)}
        for mark, value in kept.items():
            for start, end in reversed([*spans_of(value, text)]):
                text = text[:start] + mark + text[end:]
        if self._banned:
            text = self._banned.sub(lambda m: self._swaps[m.group().lower()], text)
        return self._break_runs(text.translate({ord(mark): value for mark, value in kept.items()}))

    def need(self, clause: Clause, seed: int, *names: str | int, changes: bool = True) -> Need:
        """Say what brings a clause up; ``changes`` says whether the customer's request changes anything."""
        asked = (clause.id, seed, names, changes)
        if asked not in self._needs:  # all candidates of a situation share it
            self._needs[asked] = self._need(clause, seed, *names, changes=changes)
        return self._needs[asked]

    def _need(self, clause: Clause, seed: int, *names: str | int, changes: bool) -> Need:
        ways = self._ways(clause, seed, *names, changes=changes)
        found = next(n for n in ways if n and (n.source == "topic" or self._run_in(words(n.text)) is None))
        text = self.clean(found.text)
        return Need(
            text=text[:1].upper() + text[1:], form=found.form, applies=found.applies,
            about=self.clean(self._label(clause, found.about)), source=found.source,
        )  # fmt: skip

    def _ways(self, clause: Clause, seed: int, *names: str | int, changes: bool) -> Iterator[Need | None]:
        """Yield what would bring a clause up, the best first; the last always says something."""
        rule = _HEADINGS.sub("", clause.text)
        says = "says" if changes else "asks"
        yield self._themed(clause, rule, ("first", "conduct"), seed, *names, says=says)
        yield self._condition(clause)
        yield self._forbidden(clause, seed, *names)
        yield self._themed(clause, rule, ("",), seed, *names, says=says)
        yield self._themed(clause, clause.text, ("first", "conduct", ""), seed, *names, says=says)
        yield self._asked(clause, seed, *names)

    def related(self, clause: Clause, tool: Tool) -> bool:
        """Say whether one request naturally brings up both: the clause names the tool or its words."""
        if tool.name in clause.tools:
            return True
        mine, theirs = _stems(" ".join(words(clause.text))), _stems(" ".join(name_words(tool.name)))
        theirs -= {stem(read_name(tool).verb)} if tool.effect == "read" else set()
        return len(mine & theirs) >= min(2, max(1, len(theirs)))

    def topics(self, text: str) -> list[str]:
        """Return the phrases that tell what a rule is about, the most telling first, those of its headings last.

        They hang on the rule's own words and the tools alone: what another rule says changes nothing here.
        """
        phrases, own = self._phrases(text), self._phrases(_own_words(text))
        return sorted(phrases, key=lambda p: (p not in own, -self._worth(p)))

    def _phrases(self, text: str) -> tuple[str, ...]:
        """Return what a text names; a rule in another language than the policy's is read in its own."""
        return names_in(text, self._language(text))

    def _label(self, clause: Clause, theme: str) -> str:
        """Say what a clause is about: its theme, the phrases that set it apart, and its own words where these are few."""
        about = listed([self._the(t, clause) for t in self._named(clause.text)])
        told, idle = set(words(about)), word_set("stop") | word_set("inner")
        own = [w for w in dict.fromkeys(words(clause.text)) if w.isalpha() and len(w) < 16 and w not in idle | told]
        own = sorted(own, key=lambda w: stem(w) in stems("weak"))[:2]
        said = ", to do with ".join(filter(None, (theme, about))) or str(self.frames["nothing_named"])
        return f"{said} ({', '.join(own)})" if own and len(words(about)) < 6 else said

    def _named(self, text: str) -> list[str]:
        """Return up to three telling topics, none of which says what another has said: the third of a heading, if any."""
        named: list[str] = []
        told: set[str] = set()
        for topic in self.topics(text):
            if self._worth(topic) >= _TELLING and not {stem(w) for w in words(topic)} <= told:
                named.append(topic)
                told |= {stem(w) for w in words(topic)}
        own = self._phrases(_own_words(text))
        lead = [t for t in named[2:] if t not in own]
        return [*named[:2], *(lead or named[2:])[:1]]

    def _asked_about(self, clause: Clause) -> list[str]:
        """Return what a customer may ask about, with articles: no person and no field of a form, and no heading if there is more."""
        own = self._phrases(_own_words(clause.text))
        asked = [t for t in self.topics(clause.text) if self._worth(t) >= _TELLING and t.casefold() not in self._fields]
        things = [t for t in asked if not _is_person(t, clause.text)]
        telling = [t for t in things if t in own and self._worth(t) > 0.5]
        return [self._the(t, clause) for t in telling or sorted(things, key=self._worth, reverse=True)]

    def _the(self, phrase: str, clause: Clause) -> str:
        return the(phrase) if self._language(clause.text) == "en" else phrase

    def _language(self, text: str) -> str:
        return language_of(" ".join(dict.fromkeys(words(text))), self._policy.language)  # 'no' is Spanish too

    def _worth(self, phrase: str) -> float:
        """Say how much a phrase tells: 1 for a word that no tool has, little for one that stands in many rules."""
        told = [0.2 if w in stems("weak") else 0.5 if w in self._common else 1.0 for w in map(stem, words(phrase))]
        return sum(told) / len(told) ** 0.5 if len(told) > 1 else 0.6 * sum(told)

    def _condition(self, clause: Clause) -> Need | None:
        """Turn 'if the customer travels abroad' into 'I travel abroad'."""
        found, start = _circumstance(clause.text)
        if not (text := self._cut(found)):
            return None
        if len(words(text)) < 5:
            said = {stem(w) for w in words(text)}
            asked = self._asked_about(clause) if clause.kind != "handoff" else []
            topic = next((t for t in asked if said.isdisjoint(map(stem, words(t)))), "me")
            text += " " + str(self.frames["and_then"]).format(topic=topic)
        certain = text.startswith(found) and not re.search(r"\bonly\b", clause.text[:start], re.I) and text[:3] != "My "
        return Need(text=text, form="circumstance", applies="yes" if certain else "unknown", source="circumstance")

    def _cut(self, text: str) -> str:
        """Leave out the last parts of a text until it quotes nothing."""
        while self._run_in(words(text)) is not None and (cut := _LAST_PART.sub(r"\1\2", text)) != text:
            text = cut
        return text

    def _forbidden(self, clause: Clause, seed: int, *names: str | int) -> Need | None:
        """Turn 'never share details' into 'could you share details?'."""
        start = _NEGATION.search(clause.text)
        if clause.kind != "must_not" or start is None:
            return None
        body = re.sub(r" yourself\b", "", _END.split(clause.text[start.end() :], maxsplit=1)[0].strip())
        points, body = re.search(r"\b(?:it|them)$", body, re.I), as_me(body)
        before = re.split(r"[.:;,]\s", clause.text[: start.start()])[-1].strip()
        if points or not 2 <= len(words(body)) <= 9 or not _sayable(f"{before} {body}"):
            return None
        body = self._cut(body)
        if before and start.group().casefold().startswith("never"):  # 'the desk never gives', 'fees are never waived'
            before, passive = re.subn(r" (?:is|are)$", "", before)
            body = f"be {body}" if passive else first_person(body)
        verb, *told = words(body)
        if {*told} <= {"me", "it", "them", "one"} or verb in word_set("before_names") | {"more", "to", "only"}:
            return None
        parties = "|".join(word_set("parties"))
        if re.fullmatch(rf"(?:the |an? |any )?(?:{parties})", before, re.I):
            asked = f"can I {body}?"
        elif before and not _AGENT.search(before):
            if len(words(before)) > 5 or _LOOSE.match(before):
                return None
            asked = f"can {lowered(as_me(before))} {body}?"
        elif verb in word_set("not_asked"):
            return None
        else:
            asked = self.frame("ask_for", seed, *names, deed=body)
        return Need(text=asked, form="request", applies="unknown", source="request")

    def _themed(
        self, clause: Clause, rule: str, ranks: Sequence[str], seed: int, *names: str | int, says: str
    ) -> Need | None:
        """Say what customers say about the first theme of these ranks that the clause has."""
        for name, theme in load_words("themes_en").items():
            rank = theme.get("rank", "")
            found = _cue(name).search(rule) if rank in ranks else None
            if found is None:
                continue
            slots, said = self._slots(clause, found), theme[says if says in theme else "says"]
            told = {f: text for f in said if _slots_of(f) and (text := self._filled(f, slots, clause))}
            fit = [told[f] for f in told if not _slots_of(f) <= {"amount", "time"}] or [*told.values()]
            plain = [frame for frame in said if not _slots_of(frame)] if rank == "conduct" or not fit else []
            if fit := [*fit, *(pick(plain, n, clause.text) for n in (0, 1) if plain)]:
                text = pick(fit, seed, "need", *names)
                form: NeedForm = "question" if "?" in text else "circumstance"
                form = "request" if re.match(r"(?:please|can you|could you)\b", text, re.I) else form
                source: Source = "conduct" if rank == "conduct" else "theme"
                return Need(text=text, form=form, applies="unknown", source=source, about=theme.get("about", ""))
        return None

    def _filled(self, frame: str, slots: Mapping[str, str], clause: Clause) -> str | None:
        """Fill a theme's frame; None where it asks for what the rule has not, or would say a thing twice."""
        asked = _slots_of(frame)
        told = {stem(w) for w in words(frame)} | {stem(w) for n, v in slots.items() if n in asked for w in words(v)}
        fresh = [t for t in self._asked_about(clause)[:4] if told.isdisjoint(stem(w) for w in words(t))]
        slots = {**slots, **({"topic": fresh[0], "both": listed(fresh[:2])} if fresh else {})}
        return frame.format(**slots) if asked <= slots.keys() else None

    def _slots(self, clause: Clause, found: re.Match[str]) -> dict[str, str]:
        """Return what fills the frames of a theme beside its topics: an amount, a time, groups of its cue."""
        slots: dict[str, str] = {}
        for name, pattern in (("amount", _AMOUNT), ("time", _TIME)):
            if hit := pattern.search(clause.text):
                slots[name] = hit.group()
        for name, value in found.groupdict().items():
            named = self._phrases("the " * (name == "thing") + (value or "").strip())  # an object opens it
            if name == "thing":
                telling = [t for t in named[:2] if " " in t or stem(t) not in stems("weak")]
                slots |= {name: self._the(telling[0], clause)} if telling else {}
            elif name == "deed" and value:
                deed = re.split(r",| and | or ", value, maxsplit=1)[0].strip()
                whole = _sayable(deed) and not deed.endswith(" it")
                slots |= {name: as_me(lowered(deed))} if whole and 1 < len(words(deed)) < 8 else {}
            elif name != "deed" and value and _sayable(value):
                stops = "|".join(map(re.escape, sorted(word_set("stop"))))
                value = re.sub(rf"(?: (?:{stops}))+$", "", value, flags=re.I)
                slots[name] = named[0] if name == "what" and named else value if value.isupper() else value.lower()
                slots[name] = f"my {slots[name]}" if slots[name].lower() in word_set("owned") else slots[name]
        return slots

    def _asked(self, clause: Clause, seed: int, *names: str | int) -> Need:
        """Ask about what sets the clause apart."""
        first, other, *_ = [*self._asked_about(clause), "", ""]
        kind = "topic_both" if other and len(words(first)) < 3 else "topic" if first else "nothing"
        asked = self.frame(kind, seed, *names, topic=first, other=other)
        return Need(text=asked, form="question", applies="unknown")

    def _run_in(self, said: Sequence[str]) -> int | None:
        """Return where a run of the policy stands in these words."""
        return next((i for i in range(len(said) - RUN + 1) if tuple(said[i : i + RUN]) in self._runs), None)

    def _break_runs(self, text: str) -> str:
        """Change or leave out the word that is least missed in every run that the policy has too."""
        soften: Mapping[str, str] = self.frames["soften"]
        rank = {word: place for place, word in enumerate(soften)}
        while True:
            spans = [(m.start(), m.end()) for m in re.finditer(r"\w+(?:['’]\w+)*", text)]
            said = [text[a:b].casefold() for a, b in spans]
            run = self._run_in(said)
            if run is None:
                return text
            at = min(range(run, run + RUN), key=lambda i: (rank.get(said[i], len(rank)), -len(said[i]) * (i > run), i))
            a, b = spans[at]
            text = text[:a] + soften.get(said[at], "") + text[b:]
            text = re.sub(r" +(?=[ .,;:!?])", "", text).strip()


def _own_words(text: str) -> str:
    """Return what a rule says below its headings: of a row of a table what stands in its columns."""
    parts = text.split("; ")
    return ". ".join(p.rpartition(": ")[2] for p in (parts if all(": " in p for p in parts) else [text]))


@lru_cache(maxsize=8192)
def _stems(spoken: str) -> frozenset[str]:
    return frozenset(stem(w) for w in spoken.split() if w not in word_set("stop") | word_set("parties"))


@lru_cache(maxsize=8192)
def _is_person(nouns: str, rule: str) -> bool:
    """Say whether a rule has these nouns act, decide or be told something, as only people do."""
    told, patterns = f"{rule} {nouns}", load_words("cards_en")["persons"]
    return any(re.search(p.replace("NOUNS", re.escape(nouns)), told, re.I) for p in patterns)


@cache
def _cue(theme: str) -> re.Pattern[str]:
    """Compile a theme's cue; 'contract' has its theme, 'contract number' only names a field."""
    found = load_words("themes_en")[theme]
    whole = "" if "rank" in found else r"(?!\w*\s(?:number|id|code|name)s?\b)"
    return re.compile(f"(?:{found['cue']}){whole}", re.IGNORECASE)


def _circumstance(rule: str) -> tuple[str, int]:
    """Say what a rule's condition on the customer comes to, and where it starts; nothing where it has none."""
    for pattern, said in _conditions():
        for found in pattern.finditer(rule):
            if _INDIRECT.search(rule[: found.start()]):
                continue
            rest = found["rest"] if "rest" in pattern.groupindex else ""
            body = re.split(r" or (?=(?:\w+s )?(?:an?|the|my|their)\b)", _END.split(rest, maxsplit=1)[0].strip())[0]
            body = as_me(body)  # of two things joined by 'or' one is enough
            loose = not body or (len(words(body)) < 4 and words(body)[-1] in _POINTING)
            if not _sayable(body) or ("{" in said and loose):
                continue
            text = re.sub(r"\bI am\b", "I'm", said.format(rest=body, acts=_agreeing(first_person(body))))
            if len(words(text)) > 2:
                return text, found.start()
    return "", 0


def _agreeing(text: str) -> str:
    """Let a second verb agree too: 'have a key and wants another' is 'have a key and want another'."""
    second = r"\b(and|or|but) (\w+s)\b(?= (?:to|a|an|the|my|another|not)\b)"
    return re.sub(second, lambda m: f"{m[1]} {first_person(m[2])}", text)


def _sayable(text: str) -> bool:
    return len(words(text)) <= _LONGEST and _UNSAYABLE.search(text) is None


def _slots_of(frame: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(frame) if name}


@cache
def _conditions() -> list[tuple[re.Pattern[str], str]]:
    """Return patterns of a condition on the customer, and what a customer says for each."""
    parties = "|".join(sorted(word_set("parties"), key=len, reverse=True))
    who = rf"(?:(?:the|an?|any)\s+)?(?:\w+ )?(?:{parties})\b(?!'s)"
    told = load_words("cards_en")["conditions"]
    return [(re.compile(pattern.replace("WHO", who), re.IGNORECASE), said) for pattern, said in told]
