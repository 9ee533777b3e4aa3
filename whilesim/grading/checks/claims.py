"""Claims: what an assistant message says to be done, as deed, objects, ids and amounts.

Each verb of a deed in each sentence is tried against the families of cues in order, then
against the gates that drop offers, plans, rules, refusals and what others did. Families,
gates and verbs are data: ``words/checks_<language>.yaml``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from whilesim.chat.messages import Message
from whilesim.grading.checks.deeds import Toolbox, meets, open_toolbox, stems
from whilesim.grading.checks.language import Lexicon, Sentence, language_of, pattern, sentences

BARE = frozenset({"bare"})
"""The sense of a claim that says only 'done'."""

_SEGMENT = re.compile(r"[^,CUFL:;?()\-]*$")
_NEXT_DEED = re.compile(r"(?<=[^,])C[RE]*[PQ]")
_STOP = re.compile(r"[UF;?:]|,[dIY]|C[dIYw]*[HZBWM]|[LI]")


@dataclass(frozen=True, slots=True)
class Claim:
    """One deed that a message says to be done."""

    index: int
    quote: str
    family: str
    senses: frozenset[str]
    nouns: frozenset[str]
    """Stems of the words around the deed."""
    head: frozenset[str]
    """Those of them that name what it was done to."""
    ids: tuple[str, ...]
    amounts: tuple[float, ...]
    text: str
    """The sentence, clean and lower case."""
    clause: str


def claims_measured(messages: Sequence[Message]) -> bool:
    """Say whether what the agent says is in a language that is read for claims.

    False means that claims were not measured; it never means that there is none.
    """
    return spoken_language(messages) != "other"


def spoken_language(messages: Sequence[Message]) -> str:
    """Return the agent's language; the customer's counts where the agent has said too little to tell."""
    for roles in (("assistant",), ("assistant", "user")):
        if code := language_of(" ".join(m.content or "" for m in messages if m.role in roles)):
            return code
    return "en"


def read_claims(messages: Sequence[Message], tools: Toolbox) -> list[Claim]:
    """Return every claim of every assistant message, in order."""
    main = spoken_language(messages)
    found: list[Claim] = []
    for index, message in enumerate(messages):
        text = message.content or ""
        if message.role == "assistant" and text and (code := language_of(text) or main) != "other":
            words = tools.lexicon(code)
            for sentence in sentences(text):
                if sentence.says(words.triggers):
                    found += _Reading(sentence, words, tools, text).claims(index)
    return found


class _Reading:
    """One sentence being read: its tokens, and one tag for each."""

    def __init__(self, sentence: Sentence, words: Lexicon, tools: Toolbox, whole: str) -> None:
        self.sentence, self.words, self.tools, self.whole = sentence, words, tools, whole
        self.tokens, self.tags = words.tokens(sentence.text)
        self.low = " ".join(self.tokens)

    def claims(self, index: int) -> Iterator[Claim]:
        for family, at, cue in self._cues():
            start = self._clause(cue)
            if not self._dropped(family, at, start, cue) and (claim := self._claim(index, family, at, start)):
                yield claim

    def _cues(self) -> Iterator[tuple[str, int, int]]:
        """Yield family, index of the deed, and start of the cue; a deed has the first family that fits."""
        taken: set[int] = set()
        for family, cue in self.words.cues:
            for match in cue.finditer(self.tags):
                at = match.end() - 1 - (self.tags[match.end() - 1] == "d")
                while at not in taken:
                    taken.add(at)
                    yield family, at, match.start()
                    if joined := self.words.pattern("joined").match(self.tags, at + 1):
                        at = joined.end() - 1  # 'I cancelled it and refunded you': one speaker, two deeds
        if "?" not in self.tags and (bare := self.words.pattern("bare").search(self.low)):
            yield "bare", len(bare.group().rstrip(" ,.!;-").split()) - 1, 0
        elif not taken and (at := self._fragment()) >= 0:
            yield "fragment", at, 0

    def _clause(self, cue: int) -> int:
        """Walk left from a cue to where its clause begins; 'X and Y' without a verb stays whole."""
        start = cue
        while start > 0 and (tag := self.tags[start - 1]) not in "UFL:;?()-":
            if tag in ",C":
                left = _SEGMENT.search(self.tags[: start - 1])
                segment = left.group() if left else ""
                if not segment or set(segment) & set("HZBWMDPQKXJ") or (tag == "," and self.tags[start] in "dIY"):
                    break
            start -= 1
        return start

    def _fragment(self) -> int:
        """The deed of a short sentence without a verb ('Booking cancelled.'), -1 where there is none."""
        body = re.sub(r"\([^)]*\)?", lambda m: "-" * len(m.group()), self.tags)
        match = re.fullmatch(r"[^HZBWDMIXKTFLU?]*?(P)(R*)[.,\-wvRdVTP]*", body)
        if not match or len(body.replace("-", "")) > 12:
            return -1
        known = self.words.pattern
        if known("asks").search(self.whole.lower()) or known("status_label").search(self.low):
            return -1
        after = self.tokens[match.end(2) : match.end(2) + 1]
        closed = not after or not after[0][0].isalnum() or after[0] in self.words.data["after_fragment"]
        return match.start(1) if closed else -1

    def _dropped(self, family: str, at: int, start: int, cue: int) -> str | None:
        """Return the name of the gate that drops a cue, None where none does."""
        edge = self.tokens[start - 1 : start] if start and self.tags[start - 1] in "UFL" else []
        whole = self.tokens
        regions = {"before": whole[:start], "lead": [*edge, *whole[start:cue]], "left": whole[start:at]}
        regions |= {"after": whole[at + 1 :], "sentence": whole, "so_far": whole[:at]}
        texts = {name: " ".join(region) for name, region in regions.items()}
        if self.sentence.text.rstrip(" *_\"')").endswith("?"):
            tail = self.words.pattern("question_tail").search(texts["after"])
            if tail is None or self.words.pattern("question_head").match(self.low):
                return "question"
        for name, families, where, gate in self.words.gates:
            if ("*" in families or family in families) and gate.search(texts[where]):
                return name
        return None

    def _claim(self, index: int, family: str, at: int, start: int) -> Claim | None:
        """Build the claim of a cue; None where its words leave open what was done."""
        stop = _STOP.search(self.tags, at + 1)
        end = stop.start() if stop else len(self.tokens)
        if other := _NEXT_DEED.search(self.tags[:end], at + 1):
            end = other.start()  # 'withdrawn from A1 and enrolled in B2': each deed has its own ids
        around = [w for i, w in enumerate(self.tokens[start:end], start) if i != at and w[0].isalpha()]
        nouns, head = stems(around), stems(self._thing(family, at, start, end))
        senses = BARE if family == "bare" else self._senses(self.tokens[at], around, nouns)
        firm = bool({*self.words.data["habit"]["words"]} & {*self.tokens})
        if family == "progressive":
            senses &= {"handoff"}
        if family == "stative" and not firm and senses <= {*self.words.data["habit"]["senses"]}:
            family, senses = "past", senses if at == len(self.tokens) - 1 else frozenset()
        if not senses or (self.tags[at] == "S" and family == "stative" and not firm):
            return None
        clause = " ".join(self.tokens[start:end]).replace(" '", "'")
        ids = [*find_ids(clause), *(i for item in self.sentence.items for i in find_ids(item)[:1])]
        amounts = find_amounts(clause)
        return Claim(index, self.sentence.quote, family, senses, nouns, head, tuple(ids), amounts, self.low, clause)

    def _thing(self, family: str, at: int, start: int, end: int) -> list[str]:
        """Words that name what the deed was done to: after an active verb, else before it."""
        if self.words.code == "de":
            return self.tokens[start:end]
        after = family in ("active", "did", "progressive")
        region = self.tokens[at + 1 : end] if after else self.tokens[start:at]
        much = {"of", "de"} if region and region[0][0].isdigit() else set()  # six euros of credit are credit
        cut = (i for i, w in enumerate(region) if i and w in self.words.data["prepositions"] and w not in much)
        return [w for w in region[: next(cut, None)] if w[0].isalpha()]

    def _senses(self, verb: str, around: Sequence[str], nouns: frozenset[str]) -> frozenset[str]:
        """What was done; a light verb ('processed') leaves that to a noun, or says no more than 'done'."""
        senses = self.words.senses([verb])
        if verb not in self.words.light:
            return senses
        listed = self.words.data["nouns"]
        direct = {listed[n] for w in around if (n := w if w in listed else w.rstrip("s")) in listed}
        direct |= self.words.senses((w for w in around if w not in listed), "O")
        if direct - {"any"}:
            return senses | (direct - {"any"})
        if named := self.words.senses(around, "VP"):
            return named
        if any(d.acts and nouns & d.objects for d in self.tools.deeds.values()):
            return senses | {"any"}
        return BARE if not nouns or "any" in direct else frozenset()


def find_ids(text: str) -> list[str]:
    """Return the id-like tokens of a text: letters and digits, or four digits and more."""
    text = pattern("identifiers", "ending").sub(" ", text)
    found = (m.lstrip("#") for m in pattern("identifiers", "id_in_text").findall(text))
    return list(dict.fromkeys(m for m in found if not pattern("identifiers", "not_in_text").fullmatch(m)))


def find_amounts(text: str) -> tuple[float, ...]:
    """Return the amounts of money in a text."""
    return tuple(float((a or b).replace(",", "")) for a, b in pattern("identifiers", "amount").findall(text))


def claimed_tools(messages: Sequence[Message], tools: Any) -> list[tuple[Claim, str]]:
    """Return each claim with the name of a tool whose deed it says to be done, truly or not.

    A claim that fits several tools counts for those of its very sense, then for those that
    know its object.
    """
    box = open_toolbox(tools)
    found: list[tuple[Claim, str]] = []
    for claim in read_claims(messages, box):
        fitting = [d for d in box.deeds.values() if d.acts and meets(claim.senses, d.senses)]
        close = [d for d in fitting if claim.senses & d.senses] or fitting
        found += [(claim, d.tool.name) for d in [d for d in close if claim.head & d.objects] or close]
    return found
