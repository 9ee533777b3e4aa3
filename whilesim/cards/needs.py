"""Needs: what a customer says so that a clause comes up, and what a tool does in their words.

A customer has never read the policy. A rule that starts with 'if the customer ...' becomes
something that is so ('I am abroad and roaming is off'); a prohibition becomes the very
request that it forbids; any other rule becomes a question whether it is so. No run of six words of the policy survives.

The words are English; a policy in another language lends its own nouns to English frames.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from whilesim.core.seeds import pick
from whilesim.core.templates import load_words
from whilesim.core.text import name_words, words
from whilesim.situations.norms import unit
from whilesim.situations.policy import Clause, Policy
from whilesim.situations.tools import Tool
from whilesim.world.mock import Focus
from whilesim.world.oracle import Applies
from whilesim.world.verbs import read_name, spoken_verb

NeedForm = Literal["circumstance", "request", "question"]
RUN = 6
_HOLD = 0xE000  # private characters stand for what must survive
"""So many words in a row with the policy would be a quotation."""

_CONDITION = re.compile(r"\b(?:if|when|whenever|where|in case|once)\s+", re.IGNORECASE)
_OF_PARTY = r"(?:ids?|number|name|account|profile|details|identity|e-?mail|address|information|data)"
_SECOND_VERB = re.compile(
    r"\b(and|or|but) (wants|needs|has|is|asks|does|requests|provides|reports|says|agrees|confirms|insists)\b"
)
_NEGATION = re.compile(
    r"\b(?:never|do not|don't|must not|may not|cannot|can't|should not|are not allowed to|is not allowed to|"
    r"not permitted to|shall not|avoid)\s+",
    re.IGNORECASE,
)
_END = re.compile(r"[.;:!?(\n]|,(?!\d)|\bthen\b|\bunless\b|\bexcept\b|\beven\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What a customer says so that one clause comes up."""

    text: str
    form: NeedForm
    applies: Applies
    """Whether what is said makes the clause apply, as far as its words decide."""


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
        text = words(policy.text)
        self._runs = {tuple(text[i : i + RUN]) for i in range(len(text) - RUN + 1)}
        self._seen_in = Counter(w for c in policy.clauses for w in {_stem(w) for w in words(c.text)})
        self._stop = frozenset(map(str, self.frames["stop"])) | frozenset(self.frames["parties"])
        self._stop_stems = frozenset(map(_stem, self._stop))
        names = {t.name: " ".join(name_words(t.name)) for t in tools}
        swaps: dict[str, str] = {v: v.replace("_", " ") for v in values if "_" in v}
        swaps |= {n: w for n, w in names.items() if w != n.lower()}
        swaps |= {n: "that" for n, w in names.items() if w == n.lower()}
        swaps |= {k: v for k, v in self.frames["instead"].items() if k in values or k in names}
        self._swaps = swaps
        spelled = sorted(map(re.escape, swaps), key=lambda s: (-len(s), s))
        self._banned = re.compile(rf"\b(?:{'|'.join(spelled)})\b", re.IGNORECASE) if spelled else None

    def frame(self, kind: str, seed: int, *names: str | int, **values: str) -> str:
        """Fill one of the frames of a kind, drawn by the names."""
        return str(pick(self.frames[kind], seed, kind, *names)).format(**values)

    def clean(self, text: str, keep: Sequence[str] = ()) -> str:
        """Take tool names, axis values and quotations out of a text; ``keep`` stays as it is."""
        kept = {
            chr(_HOLD + i): k
            for i, k in enumerate(sorted({k for k in keep if k and k in text}, key=lambda k: (-len(k), k)))
        }
        for mark, value in kept.items():
            text = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", mark, text)
        if self._banned:
            lower = {k.lower(): v for k, v in self._swaps.items()}
            text = self._banned.sub(lambda m: lower[m.group().lower()], text)
        text = "".join(kept.get(char, char) for char in text)
        return self._break_runs(text)

    def need(self, clause: Clause, seed: int, *names: str | int) -> Need:
        """Say what brings a clause up."""
        found = self._condition(clause) or self._forbidden(clause, seed, *names)
        if found is None:
            found = self._question(clause, seed, *names)
        text = self.clean(found.text)
        return Need(text=text[:1].upper() + text[1:], form=found.form, applies=found.applies)

    def related(self, clause: Clause, tool: Tool) -> bool:
        """Say whether one request naturally brings up both: the clause names the tool or its words."""
        if tool.name in clause.tools:
            return True
        mine = {_stem(w) for w in words(clause.text)} - self._stop_stems
        theirs = {_stem(w) for w in name_words(tool.name)} - self._stop_stems
        theirs -= {_stem(read_name(tool).verb)} if tool.effect == "read" else set()
        return len(mine & theirs) >= min(2, max(1, len(theirs)))

    def _condition(self, clause: Clause) -> Need | None:
        """Turn 'if the customer travels abroad' into 'I travel abroad'."""
        parties = "|".join(self.frames["parties"])
        for start in _CONDITION.finditer(clause.text):
            rest = clause.text[start.end() :]
            subject = re.match(rf"(?:(?:the|a|an|any)\s+)?(?:{parties})\b(?!'s)\s+", rest, re.IGNORECASE)
            if subject is None:
                continue
            body = _END.split(rest[subject.end() :], maxsplit=1)[0].strip()
            if len(words(body)) < 2:
                continue
            said = _SECOND_VERB.sub(
                lambda m: f"{m[1]} {_first_person_verb(m[2])}", f"I {_first_person_verb(self._as_me(body))}."
            )
            certain = re.search(r"\bonly\b", clause.text[: start.start()], re.I) is None
            return Need(text=said, form="circumstance", applies="yes" if certain else "unknown")
        return None

    def _forbidden(self, clause: Clause, seed: int, *names: str | int) -> Need | None:
        """Turn 'never share details' into 'could you share details?'."""
        start = _NEGATION.search(clause.text)
        if clause.kind != "must_not" or start is None:
            return None
        body = _END.split(clause.text[start.end() :], maxsplit=1)[0].strip()
        if len(words(body)) < 2:
            return None
        if body.lower().startswith("be "):  # 'flights cannot be modified': the customer asks whether they can
            subject = self._as_me(re.split(r"[.:;]\s", clause.text[: start.start()])[-1].strip())
            asked = f"can {_lower_first(subject)} {self._as_me(body)} after all?"
            return Need(text=asked, form="request", applies="unknown") if subject else None
        return Need(
            text=self.frame("ask_for", seed, *names, deed=self._as_me(body)),
            form="request",
            applies="unknown",
        )

    def _question(self, clause: Clause, seed: int, *names: str | int) -> Need:
        """Turn 'take a payment only for an overdue bill' into 'do you take a payment for ...?'."""
        lead, _, core = clause.text.rpartition(": ")
        core = core or clause.text
        when = re.match(rf"(?:{'|'.join(self.frames['subordinate'])})\b[^,]*,\s+(?=\w)", core, re.I)
        lead, core = (f"{lead} {when.group()}", core[when.end() :]) if when else (lead, core)
        body = self._as_me(_shortened(re.sub(r"\b(?:only|always)\s+", "", core)))
        about = f"about {self._topic(lead, 2)}: " if lead.strip() else ""
        stranded = re.match(rf"(?:{'|'.join(self.frames['subordinate'])})\b", body, re.I)
        if unit(clause.text).language != "en" or len(words(body)) < 3 or stranded:
            asked = self.frame("question", seed, *names, topic=self._topic(clause.text))
        elif body.lower().startswith("be "):
            asked = f"{about}will you {_lower_first(body)}?"
        elif unit(core).orders:
            asked = about + self.frame("ask_order", seed, *names, body=body[:1].lower() + body[1:])
        else:
            asked = about + self.frame("ask_rule", seed, *names, body=_lower_first(body))
        return Need(text=asked, form="question", applies="unknown")

    def _topic(self, text: str, most: int = 3) -> str:
        """Name what sets a text apart: its rarest phrases, in the order of the text."""
        phrases = _phrases(text, self._stop)
        if not phrases:
            return "this"

        def rarity(phrase: list[str]) -> float:
            return float(sum(1.0 / max(1, self._seen_in[_stem(w)]) for w in phrase)) / float(len(phrase) ** 0.5)

        chosen = sorted(range(len(phrases)), key=lambda i: (-rarity(phrases[i]), i))[:most]
        names = [" ".join(phrases[i]) for i in sorted(chosen)]
        return ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else names[0]

    def _as_me(self, text: str) -> str:
        """Put a rule about 'the customer' into the first person: I where it acts, me where it is acted on."""
        parties = "|".join(p for p in self.frames["parties"] if p != "they")
        text = re.sub(rf"\b(?:an)?other (?:{parties})(?P<own>['’]s)?\b", r"somebody else\g<own>", text, flags=re.I)
        text = re.sub(rf"\b(?:the |a |an |any |one |their |your )?(?:{parties})['’]s\b", "my", text, flags=re.I)
        text = re.sub(rf"\b(?:the |a )(?:{parties}) (?={_OF_PARTY}\b)", "my ", text, flags=re.I)
        text = re.sub(r"\b(?:their|his or her|his/her)\b", "my", text, flags=re.I)
        party = re.compile(
            rf"\b(?P<before>\w+ )?(?:(?:the|a|an|any) (?:{parties})|they|them)\b(?!['’])(?P<after> \w+(?:['’]t)?)?",
            re.I,
        )

        def swap(match: re.Match[str]) -> str:
            before, after = match["before"] or "", match["after"] or ""
            party = match.group().lower().split()[-1 if not after else -2]
            if party == "them" or (party != "they" and not self._acts(match, text)):
                return f"{before}me{after}"
            return f"{before}I{' ' + _first_person_verb(after.strip()) if after else ''}"

        return party.sub(swap, text)

    def _acts(self, match: re.Match[str], text: str) -> bool:
        """Say whether a party is the subject: at the start, or behind a conjunction or comma."""
        before = (match["before"] or "").strip().lower()
        openers = ("and", "or", "if", "when", "that", "because", "unless", "before", "after", "until", "once", "where")
        if before:
            return before in (*openers, "whether", "while", "which", "whenever", "but", "as", "then")
        return match.start() == 0 or text[: match.start()].rstrip().endswith((",", ":", ";"))

    def _break_runs(self, text: str) -> str:
        """Change a function word, the least needed one, in every six-word run that the policy has too."""
        soften: Mapping[str, str] = self.frames["soften"]
        fillers: Sequence[str] = self.frames["fillers"]
        while True:
            spans = [(m.start(), m.end()) for m in re.finditer(r"\w+(?:['’]\w+)*", text)]
            said = [text[a:b].casefold() for a, b in spans]
            run = next((i for i in range(len(said) - RUN + 1) if tuple(said[i : i + RUN]) in self._runs), None)
            if run is None:
                return text
            ranked = {word: place for place, word in enumerate(soften)}
            soft = min(
                (i for i in range(run, run + RUN) if said[i] in ranked),
                key=lambda i: (ranked[said[i]], i),
                default=None,
            )
            if soft is None:
                at, last = spans[run + RUN - 1][0], said[run + RUN - 1]
                fit = [f for f in fillers if (*said[run : run + RUN - 1], f.split()[0]) not in self._runs]
                if fit:
                    text = f"{text[:at].rstrip()}, {fit[run % len(fit)]}, {text[at:]}"
                else:
                    text = text[:at] + text[at + len(last) :]
            else:
                a, b = spans[soft]
                text = text[:a] + soften[said[soft]] + text[b:]


def deed(tool: Tool, focus: Focus) -> str:
    """Say what a tool does, as a customer asks for it: 'suspend my line L20871'."""
    verb = spoken_verb(tool)
    rest = _object_words(tool, verb)
    kind = {_stem(k) for k in name_words(focus.kind or "")}
    about = next((i for i, w in enumerate(rest) if _stem(w) in kind), None)
    nouns = " ".join(rest if about is None else rest[about + 1 :])
    said = " ".join(verb)
    if not focus.object:
        return f"{said} {_with_article(nouns)}".strip()
    if not nouns:
        return f"{said} {focus.object}"
    return f"{said} the {nouns} {'for' if about is None else 'of'} {focus.object}"


def thing(tool: Tool, focus: Focus) -> str:
    """Name what a reading tool reads: 'my bill B30915', 'the data usage of my line'."""
    kind = {_stem(k) for k in name_words(focus.kind or "")}
    parts = [w for w in _object_words(tool, read_name(tool).verb.split("_")) if w != "all"]
    nouns = " ".join(w for w in parts if _stem(w) not in kind and w not in ("details", "info"))
    if not focus.object:
        return _with_article(nouns or " ".join(parts) or "what you have on this")
    return f"the {nouns} of {focus.object}" if nouns else focus.object


def _object_words(tool: Tool, verb: Sequence[str]) -> list[str]:
    parts = [w for w in name_words(tool.name) if w not in verb]
    return parts[: parts.index("by")] if "by" in parts else parts


def second_person(text: str) -> str:
    """Turn what a customer says into what the customer is told to want."""
    swaps = {"i": "you", "my": "your", "me": "you", "mine": "yours", "i'm": "you are", "i'd": "you would"}
    swaps |= {"am": "are", "you": "they", "your": "their", "i've": "you have"}

    def swap(match: re.Match[str]) -> str:
        found = swaps.get(match.group().lower().replace("’", "'"))
        if found is None:
            return match.group()
        return found.capitalize() if match.start() == 0 else found

    return re.sub(r"[A-Za-z]+(?:['’][a-z]+)?", swap, text)


def _shortened(text: str, most: int = 22) -> str:
    """Cut a sentence at its first end, and a long one at a comma or at ``most`` words."""
    body = re.split(r"[;\n]|[.!?](?:\s|$)|\s[-–—]\s|\(", text.strip(), maxsplit=1)[0].strip(" ,")
    while len(words(body)) > most and "," in body:
        body = body.rpartition(",")[0]
    return " ".join(body.split()[:most]).strip(" ,")


def _lower_first(text: str) -> str:
    first = text.split(" ", 1)[0]
    return text if first in ("I", "I'm", "I'd") or sum(c.isupper() for c in first) > 1 else text[:1].lower() + text[1:]


def _with_article(nouns: str) -> str:
    if not nouns:
        return ""
    return f"the {nouns}" if nouns.endswith("s") else f"{'an' if nouns[0] in 'aeiou' else 'a'} {nouns}"


def _first_person_verb(text: str) -> str:
    """Make the verb that follows 'I' agree: travels is travel, is is am, has is have."""
    adverb = re.match(r"(?:already|also|still|only|never|always|\w+ly)\s+", text)
    if adverb:
        return adverb.group() + _first_person_verb(text[adverb.end() :])
    first, _, rest = text.partition(" ")
    irregular = {"is": "am", "are": "am", "has": "have", "does": "do", "was": "was", "were": "was"}
    irregular |= {"doesn't": "don't", "isn't": "am not", "hasn't": "haven't"}
    lower = first.lower()
    if lower in irregular:
        first = irregular[lower]
    elif lower.endswith("ies") and len(lower) > 4:
        first = first[:-3] + "y"
    elif re.search(r"(?:ss|sh|ch|x|z)es$", lower):
        first = first[:-2]
    elif lower.endswith("s") and not lower.endswith("ss"):
        first = first[:-1]
    return f"{first} {rest}".strip()


def _phrases(text: str, stop: frozenset[str]) -> list[list[str]]:
    """Split a text into its runs of content words, four at most each."""
    found: list[list[str]] = []
    for part in re.split(r"[.,;:!?()\[\]\"“”\n/]+", text):
        run: list[str] = []
        for word in [*re.findall(r"[\w#$€%'’-]+", part), ""]:
            if word and word.casefold() not in stop and not word.isdigit():
                run.append(word if word.isupper() else word.lower())
                continue
            if run:
                found.append(run[-4:])
            run = []
    return [p for p in found if len(" ".join(p)) > 2]


@lru_cache(maxsize=8192)
def _stem(word: str) -> str:
    for ending in ("ings", "ing", "ied", "ies", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word.rstrip("e") if len(word) > 4 else word
