"""Drafts: the blocks of a document as rules, each with the context that it needs.

A unit (sentence, item, row) becomes a draft when its place or its words make it a rule. A lead-in
("Escalate when:") completes the items below it; an exception joins the rule that it bends; a
heading goes along where the rule says too little without it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import cast

from whilesim.situations.blocks import Block, cells, clean, read_blocks
from whilesim.situations.norms import PLACEHOLDER, ClauseKind, Unit, cue, language_of, sentences, shared, unit
from whilesim.situations.roles import DUTIES, TOOL_LINE, Lead, accepts_item, accepts_prose, key_role, lead_of, role_of

_COLON = (":", "：")
_EXCEPTIONS = ("exception", "hard_exception")
_BETWEEN = re.compile(r"\s*;\s+(?:and\s+)?|,\s+and\s+", re.IGNORECASE)
_LONG = 600  # characters of a sentence that is looked through for a second rule: every place in it is tried
_TRAILING = re.compile(r"[;,；，](?:\s+(?:and|or|und|oder|y|o|e|ou|et))?$")


@dataclass(slots=True)
class Draft:
    """A rule before it has an id; places count in the document."""

    core: str
    """Its own words."""
    text: str
    """The words with heading, lead-in and exception."""
    kind: ClauseKind
    block: Block
    place: tuple[int, int]
    """Start and end in the document's text."""
    condition: str = ""
    """The condition that it stands under, its own or that of the sentence before it."""

    @property
    def section(self) -> str:
        """The headings above it, outermost first."""
        return " > ".join(filter(None, self.block.headings[: -1 if self.block.kind == "heading" else None]))


def draft_clauses(text: str) -> list[Draft]:
    """Return the rules of a document's text in order, duplicates not yet merged."""
    drafter = _Drafter(text, read_blocks(text), language_of(text))
    for index, block in enumerate(drafter.blocks):
        if block not in drafter.done:
            drafter.read(index, block)
    return sorted(drafter.drafts, key=lambda d: d.place)


@dataclass(slots=True)
class _Drafter:
    text: str
    blocks: list[Block]
    language: str
    drafts: list[Draft] = field(default_factory=list)
    done: set[Block] = field(default_factory=set)
    """Blocks that are read already, as part of another."""
    leads: dict[Block | int, Lead] = field(default_factory=dict)
    """What an item is to the blocks under it, and a lead-in to the group of blocks behind it."""
    title: str = ""

    def __post_init__(self) -> None:
        top, *others = self.blocks or [Block("paragraph", 0, 0)]
        if top.level in (1, 7) and all(not b.level or b.level > top.level for b in others):
            self.title = top.headings[-1]

    def _said(self, start: int, end: int) -> Unit:
        return unit(clean(self.text[start:end]), self.language)

    def _whole(self, block: Block) -> Unit:
        return self._said(block.start, block.end)

    def _sentences(self, start: int, end: int) -> list[tuple[Unit, int, int]]:
        found = [part for s, e in sentences(self.text[start:end]) for part in self._halves(start + s, start + e)]
        return [(self._said(*part), *part) for part in found]

    def _halves(self, start: int, end: int) -> list[tuple[int, int]]:
        """Return a sentence in parts where two rules are joined that could stand alone: '...; refunds must not ...'."""
        for cut in _BETWEEN.finditer(self.text, start, end) if end - start < _LONG else ():
            if self._said(start, cut.start()).stands_beside(self._said(cut.end(), end)):
                return [(start, cut.start()), *self._halves(cut.end(), end)]
        return [(start, end)]

    def _role(self, block: Block, lead: Lead) -> str:
        """Return the role of the label or of the innermost heading that has one.

        The title only says rules, and only of what stands right below it.
        """
        roles = [(h, role_of(h)) for h in reversed(block.headings)]
        alone = len(block.headings) == 1
        told = (r for h, r in roles if r and (h != self.title or (alone and r in ("rules", "procedure", "handoff"))))
        return lead.role or next(told, "")

    def read(self, index: int, block: Block) -> None:
        """Draft what the block says, by its kind and place."""
        lead = self.leads.get(block.parent or block.group, Lead())
        role = self._role(block, lead)
        if block.kind == "heading" or role == "example" or self._keyed(index, block):
            return
        if block.kind == "row" and _is_do_and_dont(block.header):
            self._cells(block)
        elif block.kind == "row":
            self._row(block, role, lead)
        elif block.kind == "item" or TOOL_LINE.match(self._whole(block).text):
            self._item(block, role, lead)
        else:
            self._prose(index, block, role, lead)

    def _announce(self, index: int, said: Unit) -> bool:
        """Keep a sentence as the lead-in of the list that follows its block; false when it is none."""
        after = self.blocks[index + 1 : index + 2]
        marks = re.match(r"\W*", said.text[::-1])  # from the end: a search would try every place
        ended = marks and re.search(r"[.!。！]", marks[0]) and not shared("announces").search(said.text)
        if not after or after[0].kind not in ("item", "row", "quote") or (ended and not said.text.endswith(_COLON)):
            return False
        lead = lead_of(said, Lead())
        if lead.role == "example" and self.text.count("\n", self.blocks[index].end, after[0].start) > 3:
            return False  # its example stood between, and is blank
        later = map(self.blocks.__getitem__, range(index + 1, len(self.blocks)))
        behind = next((b for b in later if b.group != after[0].group), None)
        if lead.type == "open" and behind and behind.kind == "paragraph" and not self._whole(after[0]).orders:
            order = self._whole(behind)
            if order.strong and len(sentences(order.text)) == 1 and not order.text.endswith(_COLON):
                self.done.add(behind)
                lead = replace(lead, consequence=order.text)
        self.leads[after[0].group] = lead
        return True

    def _prose(self, index: int, block: Block, role: str, lead: Lead) -> None:
        parts = self._sentences(block.start, block.end)
        if parts and self._announce(index, parts[-1][0]):
            parts.pop()
        mission, asked = False, lead
        for said, start, end in parts:
            mission, above = mission or said.starts("persona"), asked
            asked = Lead(said.text, "label") if said.text.endswith(("?", "？", "؟")) else lead
            spoken = block.kind == "quote" and shared("to_customer").search(said.text)
            if spoken or self._joins(block, said, end):
                continue
            manner = any(shared("manners").search(h) for h in block.headings[-1:]) and said.length <= 12
            last = block is self.blocks[-1] and role in ("tools", "facts") and said.orders  # a word to the agent
            taken = accepts_prose(said, "" if last else role, mission=mission)
            asks = role == "handoff" and said.starts("if")  # 'When do I call my lead?' 'When the line drops.'
            if taken or ((manner or asks) and not said.excluded()):
                self._add(block, said, start, end, above)

    def _item(self, block: Block, role: str, lead: Lead) -> None:
        said, end = self._whole(block), block.end
        if not block.children and self._joins(block, said, block.end):
            return
        if block.children:
            self.leads[block] = lead_of(said, lead)
            if said.text.endswith(_COLON):  # its last sentence belongs to the items below
                end = self._sentences(block.start, block.end)[-1][1]
            hangs = shared("conditional").fullmatch(said.text.rsplit(" ", 1)[-1]) or role_of(said.text) == "forbid"
            whole = said.length > 3 and (said.strong or (said.amount and said.text[-1] in ".。"))
            if end == block.end and block.children[0].kind == "item" and (hangs or not whole):
                end = block.start
        for start, stop in self._rules_in(block.start, end):
            part = self._said(start, stop)
            if accepts_item(part, role, lead, block.mark):
                self._add(block, part, start, stop, lead)

    def _rules_in(self, start: int, end: int) -> list[tuple[int, int]]:
        """Return an item whole, or in parts when two or more sentences are rules on their own; facts left out."""
        parts = self._sentences(start, end)
        alone = [(s.strong or s.main_has("statement")) and not s.starts("anaphor", *_EXCEPTIONS) for s, _, _ in parts]
        rules: list[tuple[int, int]] = []
        growing, firm = False, False
        for (said, first, last), strong in zip(parts, alone, strict=True):
            if len(parts) > 1 and said.excluded(fragment=True):
                growing = False
            elif growing and not (sum(alone) > 1 and strong and firm):
                rules[-1], firm = (rules[-1][0], last), firm or strong
            else:
                rules.append((first, last))
                growing, firm = True, strong
        return rules

    def _row(self, block: Block, role: str, lead: Lead) -> None:
        values = [clean(cell) for cell in cells(self.text[block.start : block.end])]
        said = unit("; ".join(values), self.language)
        schema = block.header and all(not h or shared("schema_headers").fullmatch(h) for h in block.header)
        ruled = any(shared("rule_headers").search(h) for h in block.header)
        names = block.header if len(block.header) == len(values) else ("",) * len(values)
        told = [f"{n}: {v}" if n else v for n, v in zip(names, values, strict=True) if re.search(r"\w", v)]
        refusal = re.compile(rf"(?:{shared('refusals').pattern})(?!\w).{{0,30}}$", re.IGNORECASE)
        refused = (role != "facts" or ruled) and any(refusal.match(value) for value in values[1:])
        ruled = ruled or refused or role in DUTIES or said.strong or said.amount
        if role in ("tools", "meta") or schema or not ruled or len(told) < 2:
            return
        pairs, grants = zip(names, values, strict=True), shared("grants")
        fragment: ClauseKind = "may" if any(grants.search(h) and grants.fullmatch(v) for h, v in pairs) else "condition"
        fragment = "handoff" if role == "handoff" else fragment
        kind = "must_not" if refused else unit("; ".join(values[1:]), said.language).kind(fragment)
        text = self._with_context(unit("; ".join(told), said.language), block, lead, heading=True)
        self.drafts.append(Draft(said.text, text, kind, block, (block.start, block.end)))

    def _cells(self, block: Block) -> None:
        """Read each cell of a table "Do | Don't" as a rule of its own."""
        end = block.start
        for header, cell in zip(block.header, cells(self.text[block.start : block.end]), strict=False):
            start = self.text.index(cell, end)
            end = start + len(cell)
            said = unit(clean(cell), self.language)
            if said.length > 1:
                kind = "must_not" if role_of(header) == "forbid" else said.kind("must")
                self.drafts.append(Draft(said.text, f"{header}: {said.text}", kind, block, (start, end)))

    def _keyed(self, index: int, first: Block) -> bool:
        """Read ``When: ...`` and ``Action: ...`` lines as one rule; true when the block begins such lines."""
        told: list[tuple[Block, str, str, str]] = []
        for number in range(index, len(self.blocks)):
            block = self.blocks[number]
            pair = self._whole(block).key
            same = (block.kind, block.parent, block.headings) == (first.kind, first.parent, first.headings)
            role = key_role(pair[0]) if pair and same else ""
            again = role == "when" and any(r == "action" for _, r, _, _ in told)
            if not pair or not role or again or (block is first and role != "when"):
                break
            told.append((block, role, *pair))
        action = unit(" ".join(value for _, role, _, value in told if role == "action"), self.language)
        # a question, or 'Q: Somebody lost a book.'
        asked = bool(told) and (told[0][3].endswith(("?", "？", "؟")) or len(told[0][2]) == 1)
        if not action.text or (asked and not accepts_prose(action)):
            return False
        last, _, _, answer = told[-1]
        last.start = max(last.start, self.text.find(answer[:4], last.start, last.end))
        if asked and first.kind == "paragraph" and len(self._rules_in(last.start, last.end)) > 1:  # each on its own
            self.leads[last.group] = Lead(told[0][3], "label")
            return False
        self.done.update(block for block, _, _, _ in told)
        kept = [(block, f"{key}: {value.rstrip('.;。')}") for block, role, key, value in told if role != "dropped"]
        said = unit("; ".join(line for _, line in kept), self.language)
        text = self._with_context(said, first, Lead(), heading=True)
        self.drafts.append(Draft(said.text, text, action.kind("must"), first, (first.start, kept[-1][0].end)))
        return True

    def _joins(self, block: Block, said: Unit, end: int) -> bool:
        """Join an exception to the rule before it; true when it was one."""
        last = self.drafts[-1] if self.drafts else None
        if not last or not said.starts(*_EXCEPTIONS):
            return False
        hard = said.starts("hard_exception") and last.block.headings == block.headings
        if last.block is block or hard:
            last.place = (last.place[0], end)
            last.text += ("" if last.text.endswith(tuple(".;!。；！")) else ".") + " " + said.text
            last.core += " " + said.text
        return last.block is block or hard

    def _add(self, block: Block, said: Unit, start: int, end: int, lead: Lead) -> None:
        kind = self._kind(said, block, lead)
        said = unit(_TRAILING.sub("", said.text), said.language)
        condition, carried = said.condition, said
        same = takewhile(lambda draft: draft.block is block, reversed(self.drafts))
        last = next(same, None)
        if last and last.condition and said.continues(last.core, opened=all(d.condition for d in same)):
            condition = last.condition
            carried = unit(f"{condition}, {said.text[0].lower()}{said.text[1:]}", said.language)
        text = self._with_context(carried, block, lead, heading=_leans(carried, block, kind))
        if self._refers_back(said, block):
            text += f" ({self.drafts[-1].core})"
        self.drafts.append(Draft(said.text, text, kind, block, (start, end), condition))

    def _refers_back(self, said: Unit, block: Block) -> bool:
        """Say whether "above this amount" means an amount in the rule before, and not one of its own."""
        found = cue(said.language, "back_reference").search(said.text)
        if not found or not self.drafts or self.drafts[-1].block.headings != block.headings:
            return False
        own, before = (unit(text, said.language) for text in (said.text[: found.start()], self.drafts[-1].core))
        return not own.amount and (before.amount or PLACEHOLDER.search(before.text) is not None)

    def _kind(self, said: Unit, block: Block, lead: Lead) -> ClauseKind:
        role, mark = self._role(block, lead), block.mark
        if said.has(*_EXCEPTIONS):  # what the exception denies is not what the rule forbids
            parts = [unit(said.text[s:e], said.language) for s, e in sentences(said.text)]
            rule = " ".join(part.text for part in parts if not part.starts(*_EXCEPTIONS))
            said = unit(rule, said.language) if rule else said
        if lead.type == "open":
            kind = unit(lead.consequence, said.language).kind("must") if lead.consequence else said.kind()
            return "handoff" if role == "handoff" and kind == "must" else kind
        completes = lead.type == "must" and shared("unfinished").search(lead.text)  # 'Check that: no bill is open'
        if completes or lead.type in ("handoff", "must_not", "may", "condition"):
            return cast(ClauseKind, lead.type)
        if (role == "forbid" and (mark or not said.strong)) or re.search(r"[❌✖✗✘🚫⛔👎]|:(?:x|no)", mark):
            return "must_not"
        role = role_of(said.key[0]) if said.key and role_of(said.key[0]) in DUTIES else role
        denied = said.starts("must_not") or (block.kind == "paragraph" and said.main_has("must_not"))
        if role == "handoff" and not (said.orders or denied):
            return "handoff"
        states = said.amount or shared("conditional").match("".join(block.headings[-1:]))  # 'When we refund'
        duty = lead.type == "must" or TOOL_LINE.match(said.text) or (role in DUTIES and not states)
        return said.kind("must" if duty else "condition")

    def _with_context(self, said: Unit, block: Block, lead: Lead, *, heading: bool) -> str:
        leads = [t for t in (*lead.above, lead.text) if t and t != said.text and not _is_generic(t, said)]
        named = [h for h in block.headings if h != self.title and not _is_generic(h, said)][-1:]
        named = [] if not heading or (leads and lead.directs) else named
        parts = [re.sub(r"^(?:[^\w¿¡]|_)+|^\d[\d.]*\s*", "", h) for h in named] + leads
        told = ": ".join([*(p.rstrip(" :：") for p in parts), said.text])
        return f"{told} → {lead.consequence}" if lead.consequence else told


def _is_do_and_dont(header: tuple[str, ...]) -> bool:
    others = [h for h in header if role_of(h) != "forbid"]
    return len(header) == 2 and len(others) == 1 and shared("do_headers").match(others[0]) is not None


def _is_generic(text: str, said: Unit) -> bool:
    plain = unit(re.sub(r"^[\W\d_]+|[\W_]+$", "", text), said.language)
    told = shared("generic").fullmatch(plain.text) or shared("greetings").match(plain.text)
    return bool(told) or plain.starts("persona", "intro")


def _leans(said: Unit, block: Block, kind: ClauseKind) -> bool:
    """Say whether a rule needs its heading: a fragment, an order without a condition, or one with ``it``."""
    if (block.headings and block.headings[-1].endswith(("?", "？"))) or said.starts("anaphor"):
        return True
    if said.starts("if") and said.has("anaphor_inside"):
        return True
    if kind == "must_not" and not said.has("must_not", "weak_not"):
        return True
    if kind == "must_not" or (said.length > 10 and (block.kind != "item" or said.has("if"))):
        return False
    named = re.findall(r"\w{4,}", " ".join(block.headings[-1:]).lower())
    return not any(word[:4] in said.text.lower() for word in named) and (said.orders != "" or not said.strong)
