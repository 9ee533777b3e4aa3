"""Quotes: the rules that a chat model read out of a policy, each held against the text.

A model understands what word lists cannot: facts against rules, a distant exception, irony. It also
invents. So every rule comes with a quote, and counts only when the quote stands in the text, is no
example, script or persona, and the rule adds no number, name or negation to it and drops none.
What fails is read by word lists instead, and so is a duty that the model passed over in silence.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import SequenceMatcher

from pydantic import BaseModel, ValidationError

from whilesim.core.text import shorten
from whilesim.situations.blocks import Block, clean, read_blocks
from whilesim.situations.drafts import Draft
from whilesim.situations.norms import PLACEHOLDER, ClauseKind, language_of, sentences, unit
from whilesim.situations.roles import role_of

PART = 3000
"""Characters of a policy that one request holds; a longer one is cut at a heading or a blank line."""
_SILENT = frozenset("*_`#>|\\\"'“”‘’«»„-–—•")
_JOINED = re.compile(r"[;；，、]|\b(?:and|or|then|und|oder|y|o|e|ou|et)\b")
_SIMILAR = 0.95
"""Share of a quote that must stand in the text as it is: small slips of a copyist pass."""


class Proposal(BaseModel):
    """One rule as the model gives it."""

    quote: str
    text: str
    kind: ClauseKind


class Answer(BaseModel):
    """What the model must answer for one part of a policy."""

    clauses: list[Proposal]
    left_out: list[str] = []
    """Quotes that sound like a rule and are none."""


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a document's text that one request can hold."""

    start: int
    end: int
    headings: str
    """What stands above it, outermost first."""


def parts_of(text: str) -> Iterator[Part]:
    """Yield a document's text in parts, cut where a block begins."""
    start, headings = 0, ""
    for block in [*read_blocks(text), None]:
        cut = block.start if block else len(text)
        breaks = block is not None and block.kind in ("heading", "paragraph") and cut - start > PART / 2
        if block is None or cut - start > PART or breaks:
            yield Part(start, cut, headings)
            start, headings = cut, " > ".join(block.headings) if block else ""


def read_answer(answer: str) -> Answer | None:
    """Return the model's answer, words around the JSON object cut, or None when it cannot be read."""
    found = re.search(r"\{.*\}", answer, re.DOTALL)
    with suppress(ValidationError):
        return Answer.model_validate_json(found[0]) if found else None
    return None


def check_clauses(
    text: str, drafts: Sequence[Draft], answers: Sequence[Answer], unread: Sequence[Part] = ()
) -> tuple[list[Draft], list[str]]:
    """Hold the model's rules against a document's text.

    Args:
        drafts: The rules read by word lists.
        unread: Parts for which there is no answer: there the drafts stand.

    Returns:
        The rules that stand, in the order of the text, and notes: how many came from the model, why
        each of the others was refused, and how many were read by word lists instead.
    """
    page = _Page(text, drafts)
    refused: list[str] = []
    lost = [(part.start, part.end) for part in unread]
    for proposal in (p for answer in answers for p in answer.clauses):
        place = page.find(proposal.quote)
        fault = page.fault(proposal, place) if place else "its quote does not stand in the text"
        if place and fault:
            lost.append(place)
        elif place:
            page.take(proposal, place)
        if fault:
            refused.append(f"refused {shorten(proposal.text, 60)!r}: {fault}")
    heard = [d.place for d in page.taken]
    left_out = [page.find(quote) for answer in answers for quote in answer.left_out]
    told = [*heard, *(place for place in left_out if place)]
    silent = [d for d in drafts if not _touches(d.place, heard)]
    firm = [d for d in silent if d.kind == "handoff" or unit(d.core).firm]
    back = [d for d in silent if _touches(d.place, lost) or (d in firm and not _touches(d.place, told))]
    counts = f"{len(heard)} clauses read by the model, {len(refused)} of its clauses refused, {len(back)} read by word lists instead"
    return sorted([*page.taken, *back], key=lambda d: d.place), [counts, *refused]


def _touches(place: tuple[int, int], others: Iterable[tuple[int, int]]) -> int:
    """Count the places that share more than half of the shorter one's characters."""
    common = ((min(place[1], b) - max(place[0], a), min(place[1] - place[0], b - a)) for a, b in others)
    return sum(1 for both, shorter in common if both > 0.5 * max(1, shorter))


class _Page:
    """A document's text, folded so that quotes are found whatever their white space and markup."""

    def __init__(self, text: str, drafts: Sequence[Draft]) -> None:
        self.text, self.drafts = text, drafts
        self.taken: list[Draft] = []
        self.folded, self.places = _fold(text)
        self.blocks: list[Block] = read_blocks(text)
        self.language = language_of(text)

    def find(self, quote: str) -> tuple[int, int] | None:
        """Return where a quote stands, exactly or with a few slips; None when it does not."""
        wanted = _fold(quote)[0].strip()
        if not wanted or not self.blocks:
            return None
        at, size = self.folded.find(wanted), len(wanted)
        for offset in range(0, size - 12, 12) if at < 0 else ():
            anchor = self.folded.find(wanted[offset : offset + 12])
            window = self.folded[max(0, anchor - offset) : max(0, anchor - offset) + size]
            if anchor >= 0 and SequenceMatcher(None, wanted, window, autojunk=False).ratio() >= _SIMILAR:
                at, size = max(0, anchor - offset), len(window)
                break
        return (self.places[at], self.places[at + size - 1] + 1) if at >= 0 else None

    def fault(self, proposal: Proposal, place: tuple[int, int]) -> str:
        """Say what is wrong with a rule whose quote was found, or return an empty string."""
        quote, text = (unit(clean(t), self.language) for t in (self.text[slice(*place)], proposal.text))
        block = self._block(place)
        covered = [d for d in self.drafts if _touches(d.place, [place])]
        if not covered and (quote.excluded() or {"example", "script"} & set(map(role_of, block.headings))):
            return "its quote is a persona, a fact, a question, an example or a script"
        context = " ".join([self._around(block, place), *block.headings, *(d.text for d in covered)])
        if invented := _fixed_parts(proposal.text) - _fixed_parts(context):
            return f"the text does not say {', '.join(map(repr, sorted(invented)))} there"
        denies = text.has("must_not", "weak_not")
        if denies and not unit(clean(context), self.language).has("must_not", "weak_not"):
            return "it denies what the text does not"
        if quote.has("must_not") and not denies:
            return "it lost the negation of its quote"
        rules = len(sentences(quote.text)) + len(_JOINED.findall(quote.text))  # that the quote can hold at most
        return "the same words gave a rule already" if _touches(place, (d.place for d in self.taken)) >= rules else ""

    def take(self, proposal: Proposal, place: tuple[int, int]) -> None:
        """Keep a rule in the model's words."""
        core, text = clean(self.text[slice(*place)]), " ".join(proposal.text.split())
        self.taken.append(Draft(core, text, proposal.kind, self._block(place), place))

    def _around(self, block: Block, place: tuple[int, int]) -> str:
        """Return the whole sentences that a quote touches."""
        parts = ((block.start + s, block.start + e) for s, e in sentences(self.text[block.start : block.end]))
        touched = [self.text[s:e] for s, e in parts if s < place[1] and place[0] < e]
        return " ".join([*touched, self.text[slice(*place)]])

    def _block(self, place: tuple[int, int]) -> Block:
        return self.blocks[max(0, bisect_right([b.start for b in self.blocks], place[0]) - 1)]


def _fixed_parts(text: str) -> set[str]:
    """Return what a rule may not invent: numbers, placeholders and names with underscores."""
    numbers = {n.strip(".,") for n in re.findall(r"\d[\d.,]*", text)}
    return numbers | set(PLACEHOLDER.findall(text)) | set(re.findall(r"\b\w+_\w+\b", text))


def _fold(text: str) -> tuple[str, list[int]]:
    """Return the text without case, markup and quotation marks, white space single, and each character's place."""
    chars: list[str] = []
    places: list[int] = []
    for place, char in enumerate(text):
        for folded in unicodedata.normalize("NFKC", char).casefold():
            if folded in _SILENT or (folded.isspace() and chars[-1:] == [" "]):
                continue
            chars.append(" " if folded.isspace() else folded)
            places.append(place)
    return "".join(chars), places
