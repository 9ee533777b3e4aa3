"""Quotes: the rules that a chat model read out of a policy, each held against the text.

A model understands what word lists cannot: facts against rules, a distant exception, irony. It also
invents. So every rule comes with a quote, and counts only when the quote stands in the text, is no
example, script or persona, and the rule adds no number, name or negation to it and drops none.
What fails is read by word lists instead, and so is a duty that the model passed over in silence.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from pydantic import BaseModel, ValidationError

from whilesim.situations.blocks import Block, clean, read_blocks
from whilesim.situations.drafts import Draft
from whilesim.situations.norms import PLACEHOLDER, ClauseKind, language_of, sentences, unit
from whilesim.situations.roles import role_of

PART = 6000
"""Characters of a policy that one request holds; a longer one is cut at a heading or a blank line."""
_SILENT = frozenset("*_`#>|\\\"'“”‘’«»„-–—•")
_SIMILAR = 0.95
"""Share of a quote that must stand in the text as it is: small slips of a copyist pass."""


class Proposal(BaseModel):
    """One rule as the model gives it."""

    quote: str
    text: str
    kind: ClauseKind


class LeftOut(BaseModel):
    """A sentence that the model says is no rule."""

    quote: str
    reason: str = ""


class Answer(BaseModel):
    """What the model must answer for one part of a policy."""

    clauses: list[Proposal]
    left_out: list[LeftOut] = []


@dataclass(frozen=True, slots=True)
class Checked:
    """The rules that stand, in the order of the text, and how they came about."""

    drafts: tuple[Draft, ...]
    taken: int
    """Rules in the model's words."""
    refused: tuple[str, ...]
    """Why each of the model's other rules was not taken."""
    restored: int
    """Rules in the words of the text, where the model's were refused or missing."""


def parts_of(text: str) -> Iterator[tuple[str, str]]:
    """Yield a document's text in parts that one request can hold, each with the headings above it."""
    start, headings = 0, ""
    for block in [*read_blocks(text), None]:
        cut = block.start if block else len(text)
        breaks = block is not None and block.kind in ("heading", "paragraph") and cut - start > PART / 2
        if block is None or cut - start > PART or breaks:
            yield text[start:cut], headings
            start, headings = cut, " > ".join(block.headings) if block else ""


def read_answer(answer: str) -> Answer | None:
    """Return the model's answer, or None when it cannot be read; words around the JSON object are cut."""
    found = re.search(r"\{.*\}", answer, re.DOTALL)
    try:
        return Answer.model_validate_json(found[0]) if found else None
    except ValidationError:
        return None


def check_clauses(text: str, drafts: Sequence[Draft], answers: Sequence[Answer]) -> Checked:
    """Hold the model's rules against a document's text; ``drafts`` are the rules read by word lists."""
    page = _Page(text)
    taken: list[Draft] = []
    refused: list[str] = []
    lost: list[tuple[int, int]] = []
    for proposal in (p for answer in answers for p in answer.clauses):
        place = page.find(proposal.quote)
        fault = (
            page.fault(proposal, place, drafts, taken) if place else "its quote does not stand in the text"
        )
        if place and not fault:
            taken.append(page.draft(proposal, place))
        else:
            refused.append(f"{proposal.text[:60]!r}: {fault}")
            lost += [place] if place else []
    told = [page.find(out.quote) for answer in answers for out in answer.left_out]
    spoken = [p for p in told if p] + [(d.start, d.end) for d in taken]
    back = [
        d
        for d in drafts
        if not any(_overlap((d.start, d.end), (t.start, t.end)) for t in taken)
        and (
            any(_overlap((d.start, d.end), p) for p in lost)
            or (_is_firm(d) and not any(_overlap((d.start, d.end), p) for p in spoken))
        )
    ]
    ordered = sorted([*taken, *back], key=lambda d: (d.start, d.end))
    return Checked(tuple(ordered), len(taken), tuple(refused), len(back))


def _is_firm(draft: Draft) -> bool:
    return draft.kind == "handoff" or unit(draft.core).firm


def _overlap(a: tuple[int, int], b: tuple[int, int]) -> bool:
    shared = min(a[1], b[1]) - max(a[0], b[0])
    return shared > 0.5 * max(1, min(a[1] - a[0], b[1] - b[0]))


class _Page:
    """A document's text, folded so that quotes are found whatever their white space and markup."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.folded, self.places = _fold(text)
        self.blocks: list[Block] = read_blocks(text)
        self.language = language_of(text)

    def find(self, quote: str) -> tuple[int, int] | None:
        """Return where a quote stands, exactly or with a few slips; None when it does not."""
        wanted = _fold(quote)[0].strip()
        if not wanted or not self.blocks:
            return None
        at = self.folded.find(wanted)
        size = len(wanted)
        for offset in range(0, size - 12, 12) if at < 0 else ():
            anchor = self.folded.find(wanted[offset : offset + 12])
            window = self.folded[max(0, anchor - offset) : max(0, anchor - offset) + size]
            if anchor >= 0 and SequenceMatcher(None, wanted, window, autojunk=False).ratio() >= _SIMILAR:
                at, size = max(0, anchor - offset), len(window)
                break
        return (self.places[at], self.places[at + size - 1] + 1) if at >= 0 else None

    def fault(
        self, proposal: Proposal, place: tuple[int, int], drafts: Sequence[Draft], taken: Sequence[Draft]
    ) -> str:
        """Say what is wrong with a rule whose quote was found, or return an empty string."""
        quote = unit(clean(self.text[slice(*place)]), self.language)
        text = unit(proposal.text, self.language)
        covered = [d for d in drafts if _overlap((d.start, d.end), place)]
        block = self._block(place)
        if not covered and any(role_of(h) in ("example", "script") for h in block.headings):
            return "it stands in an example or a script"
        if not covered and quote.excluded():
            return "its quote is a persona, a fact or a question"
        context = " ".join(
            [
                self._sentences(block, place),
                quote.text,
                self._lead_in(block),
                *block.headings,
                *(d.text for d in covered),
            ]
        )
        invented = [t for t in _fixed_parts(proposal.text) if t not in _fixed_parts(context)]
        if invented:
            return f"the text does not say {', '.join(map(repr, invented))} there"
        denied = unit(clean(context), self.language).has("must_not", "weak_not")
        if text.has("must_not", "weak_not") and not denied:
            return "it denies what the text does not"
        if quote.has("must_not") and not text.has("must_not", "weak_not"):
            return "it lost the negation of its quote"
        same = sum(_overlap((t.start, t.end), place) for t in taken)
        return "the same words gave a rule already" if same >= _rules_in(quote.text) else ""

    def draft(self, proposal: Proposal, place: tuple[int, int]) -> Draft:
        block = self._block(place)
        core = clean(self.text[slice(*place)])
        text = " ".join(proposal.text.split())
        return Draft(core, text, proposal.kind, block.headings, *place, self.blocks.index(block))

    def _sentences(self, block: Block, place: tuple[int, int]) -> str:
        """Return the sentences of a block that a quote touches, whole."""
        found = [(block.start + s, block.start + e) for s, e in sentences(self.text[block.start : block.end])]
        return " ".join(clean(self.text[s:e]) for s, e in found if s < place[1] and place[0] < e)

    def _lead_in(self, block: Block) -> str:
        """Return the line that announces the list in which a block stands, if any does."""
        said = [
            clean(self.text[b.start : b.end])
            for b in self.blocks
            if b.end <= block.start and b.headings == block.headings
        ]
        return (
            next((t for t in reversed(said) if t.endswith((":", "："))), "")
            if block.kind != "paragraph"
            else ""
        )

    def _block(self, place: tuple[int, int]) -> Block:
        before = [b for b in self.blocks if b.start <= place[0]]
        return before[-1] if before else self.blocks[0]


def _rules_in(quote: str) -> int:
    """Return how many rules a quote can hold: one for each sentence, clause or verb joined on."""
    return len(sentences(quote)) + len(
        re.findall(r"[;；]|\b(?:and|or|then|und|oder|y|o|e|ou|et)\b|[，、]", quote)
    )


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
