"""Drafts: the blocks of a document as rules, each with the context that it needs.

A unit (sentence, item, row) becomes a draft when its place or its words make it a rule. A lead-in
("Escalate when:") completes the items below it; an exception joins the rule that it bends; a
heading goes along where the rule says too little without it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import cast

from whilesim.situations.blocks import Block, cells, clean, read_blocks
from whilesim.situations.documents import speakers
from whilesim.situations.norms import ClauseKind, Unit, cue, language_of, sentences, shared, unit
from whilesim.situations.roles import (
    DUTIES,
    TOOL_LINE,
    Lead,
    LeadType,
    accepts_fact,
    accepts_item,
    accepts_prose,
    key_role,
    lead_type,
    role_of,
)

_COLON = (":", "：")


@dataclass(slots=True)
class Draft:
    """A rule before it has an id; places count in the document."""

    core: str
    """Its own words."""
    text: str
    """The words with heading, lead-in and exception."""
    kind: ClauseKind
    headings: tuple[str, ...]
    start: int
    end: int
    block: int


def draft_clauses(text: str) -> list[Draft]:
    """Return the rules of a document's text in order, duplicates not yet merged."""
    drafter = _Drafter(text, read_blocks(text), language_of(text), speakers(text) >= 3)
    for index in range(len(drafter.blocks)):
        if index not in drafter.done:
            drafter.read(index)
    drafter.read_headings()
    return sorted(drafter.drafts, key=lambda d: (d.start, d.end))


@dataclass(slots=True)
class _Drafter:
    text: str
    blocks: list[Block]
    language: str
    speaks: bool
    """Lines that begin with a speaker are a transcript."""
    drafts: list[Draft] = field(default_factory=list)
    done: set[int] = field(default_factory=set)
    """Blocks that are read already, as part of another."""
    leads: dict[int, Lead] = field(default_factory=dict)
    """By group: the lead-in of a list or a table."""
    parents: dict[int, Lead] = field(default_factory=dict)
    """By index of an item: what it is to the blocks below it."""
    children: dict[int, list[int]] = field(default_factory=dict)
    title: str = ""

    def __post_init__(self) -> None:
        for index, block in enumerate(self.blocks):
            if block.parent is not None:
                self.children.setdefault(block.parent, []).append(index)
        tops = [b for b in self.blocks if b.level == 1]
        if len(tops) == 1 and self.blocks[0] is tops[0]:
            self.title = tops[0].headings[-1]

    def said(self, index: int) -> Unit:
        block = self.blocks[index]
        return unit(clean(self.text[block.start : block.end]), self.language)

    def role(self, block: Block, lead: Lead | None = None) -> str:
        """Return the role of the label or of the innermost heading that has one; the title only says rules."""
        if lead and lead.role:
            return lead.role
        for heading in reversed(block.headings):
            role = role_of(heading)
            if role and (heading != self.title or role in ("rules", "procedure", "handoff")):
                return role
        return ""

    def read(self, index: int) -> None:
        block = self.blocks[index]
        lead = self.leads.get(block.group) if block.parent is None else self.parents.get(block.parent)
        role = self.role(block, lead)
        if (
            block.kind == "heading"
            or role == "example"
            or (lead and lead.type == "example")
            or self._keyed(index)
        ):
            return
        if block.kind == "row":
            self._row(index, role, lead)
        elif block.kind == "item" or TOOL_LINE.match(self.said(index).text):
            self._item(index, role, lead)
        else:
            self._prose(index, role, lead)

    def _parts(self, start: int, end: int) -> Iterator[tuple[Unit, int, int]]:
        raw = self.text[start:end]
        for first, last in sentences(raw):
            yield unit(clean(raw[first:last]), self.language), start + first, start + last

    def _is_speech(self, said: Unit, block: Block) -> bool:
        if self.speaks and said.key and shared("speakers").fullmatch(said.key[0]):
            return True
        return block.kind == "quote" and shared("to_customer").search(said.text) is not None

    # Lead-ins

    def _lead(self, said: Unit, above: Lead | None = None) -> Lead:
        kind: LeadType = "facts" if TOOL_LINE.match(said.text) else lead_type(said)
        role = role_of(said.text) if kind == "label" else ""
        if role in ("example", "script"):
            kind = "example"
        elif kind == "label" and above:
            kind, role = above.type, role or above.role
        chain = (*above.above, above.text) if above else ()
        return Lead(said.text.rstrip(" .:：。"), kind, role, above.consequence if above else "", chain)

    def _list_after(self, index: int) -> Block | None:
        following = self.blocks[index + 1] if index + 1 < len(self.blocks) else None
        listed = following and following.kind in ("item", "row", "quote")
        return (
            following if following and listed and following.headings == self.blocks[index].headings else None
        )

    def _with_consequence(self, index: int, lead: Lead) -> Lead:
        """Give an open lead-in (``If the issue involves:``) the order that follows its list."""
        group = self.blocks[index + 1].group
        after = next((n for n in range(index + 1, len(self.blocks)) if self.blocks[n].group != group), None)
        if lead.type != "open" or after is None or self.blocks[after].kind != "paragraph":
            return lead
        said = self.said(after)
        alone = len(sentences(said.text)) == 1 and not said.text.endswith(_COLON)
        if not (alone and said.strong and self.blocks[after].headings == self.blocks[index].headings):
            return lead
        self.done.add(after)
        return replace(lead, consequence=said.text)

    # Units by place

    def _prose(self, index: int, role: str, lead: Lead | None) -> None:
        block = self.blocks[index]
        parts = list(self._parts(block.start, block.end))
        listed = self._list_after(index)
        if parts and listed and block.parent is None:
            last = parts[-1][0]
            ended = re.search(r"[.!?。！？]\W*$", last.text) and not shared("announces").search(last.text)
            if not ended or last.text.endswith(_COLON):
                self.leads[listed.group] = self._with_consequence(index, self._lead(last))
                parts.pop()
        mission = False
        for said, start, end in parts:
            mission = mission or said.starts("persona")
            if self._joins(index, said, end) or self._is_speech(said, block):
                continue
            if role in ("meta", "facts", "tools", "script"):
                accepted = accepts_fact(said, role)
            else:
                accepted = accepts_prose(said, mission=mission)
            if accepted:
                self._add(index, said, start, end, lead)

    def _item(self, index: int, role: str, lead: Lead | None) -> None:
        block, said = self.blocks[index], self.said(index)
        inner = [self.blocks[n] for n in self.children.get(index, ())]
        if self._is_speech(said, block) or (not inner and self._joins(index, said, block.end)):
            return
        end = block.end
        if inner:
            self.parents[index] = self._lead(said, lead)
            if said.text.endswith(_COLON) or (
                inner[0].kind == "item" and (not said.strong or said.length < 4)
            ):
                parts = list(self._parts(block.start, block.end))
                end = parts[-1][1] if len(parts) > 1 and said.text.endswith(_COLON) else block.start
        for first, last in self._rules_in(block.start, end):
            part = unit(clean(self.text[first:last]), self.language)
            if accepts_item(part, role, lead, block.mark):
                self._add(index, part, first, last, lead)

    def _rules_in(self, start: int, end: int) -> list[tuple[int, int]]:
        """Return an item whole, or in parts when two or more sentences are rules on their own; facts left out."""
        parts = list(self._parts(start, end))
        alone = [said.strong and not said.starts("anaphor", "exception") for said, _, _ in parts]
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

    def _row(self, index: int, role: str, lead: Lead | None) -> None:
        block = self.blocks[index]
        values = [clean(cell) for cell in cells(self.text[block.start : block.end])]
        said = unit(" ".join(values), self.language)
        schema = all(not h or shared("schema_headers").fullmatch(h) for h in block.header or ("fee",))
        ruled = any(shared("rule_headers").search(h) for h in block.header)
        names = block.header if len(block.header) == len(values) else ("",) * len(values)
        told = [f"{n}: {v}" if n else v for n, v in zip(names, values, strict=True) if re.search(r"\w", v)]
        if role in ("tools", "meta") or schema or not (ruled or said.strong or said.amount) or len(told) < 2:
            return
        refused = any(
            re.match(rf"(?:{shared('refusals').pattern})(?!\w)[^|]{{0,30}}$", v, re.IGNORECASE)
            for v in values[1:]
        )
        kind: ClauseKind = "must_not" if refused else unit("; ".join(values[1:]), said.language).kind()
        text = self._with_context(unit("; ".join(told), said.language), block, lead, heading=True)
        self.drafts.append(Draft(said.text, text, kind, block.headings, block.start, block.end, index))

    def _keyed(self, index: int) -> bool:
        """Read ``When: ...`` and ``Action: ...`` lines as one rule; true when the block begins such lines."""
        first = self.blocks[index]
        told: list[tuple[int, str, str, str]] = []
        for n in range(index, len(self.blocks)):
            block, pair = self.blocks[n], self.said(n).key
            same = (block.kind, block.parent, block.headings) == (first.kind, first.parent, first.headings)
            role = key_role(pair[0]) if pair and same else ""
            again = role == "when" and any(r == "action" for _, r, _, _ in told)
            if not pair or not role or again or (n == index and role != "when"):
                break
            told.append((n, role, *pair))
        action = unit(" ".join(value for _, role, _, value in told if role == "action"), self.language)
        if not action.text or (
            told[0][3].endswith(("?", "？", "؟")) and not accepts_prose(action, mission=False)
        ):
            return False
        self.done.update(n for n, _, _, _ in told)
        said = "; ".join(
            f"{key}: {value.rstrip('.;。')}" for _, role, key, value in told if role != "dropped"
        )
        end = max(self.blocks[n].end for n, role, _, _ in told if role != "dropped")
        text = self._with_context(unit(said, self.language), first, None, heading=True)
        self.drafts.append(Draft(said, text, action.kind("must"), first.headings, first.start, end, index))
        return True

    def read_headings(self) -> None:
        """Let a heading that is a prohibition or a duty itself be a rule when nothing below it became one."""
        used = {d.headings[:n] for d in self.drafts for n in range(len(d.headings) + 1)}
        for index, block in enumerate(self.blocks):
            if block.kind == "heading" and block.headings not in used and block.headings[-1] != self.title:
                said = self.said(index)
                if said.length > 3 and said.has("must", "must_not") and not said.excluded():
                    draft = Draft(
                        said.text, said.text, said.kind(), block.headings[:-1], block.start, block.end, index
                    )
                    self.drafts.append(draft)

    # Drafts

    def _joins(self, index: int, said: Unit, end: int) -> bool:
        """Join an exception to the rule before it; true when it was one."""
        if not self.drafts or not said.starts("exception"):
            return False
        last, block = self.drafts[-1], self.blocks[index]
        if last.block != index and not (said.starts("hard_exception") and last.headings == block.headings):
            return False
        last.end = end
        last.text += ("" if last.text.endswith(tuple(".;!。；！")) else ".") + " " + said.text
        last.core += " " + said.text
        return True

    def _add(self, index: int, said: Unit, start: int, end: int, lead: Lead | None) -> None:
        block = self.blocks[index]
        kind = self._kind(said, lead, self.role(block, lead), block.mark)
        said = unit(re.sub(r"[;,；，](?:\s+(?:and|or|und|oder|y|o|e|ou|et))?$", "", said.text), said.language)
        text = self._with_context(said, block, lead, heading=_leans(said, block, kind))
        if (
            shared("back_references").search(said.text)
            and self.drafts
            and self.drafts[-1].headings == block.headings
        ):
            text = f"{self.drafts[-1].core} {text}"
        self.drafts.append(Draft(said.text, text, kind, block.headings, start, end, index))

    def _kind(self, said: Unit, lead: Lead | None, role: str, mark: str) -> ClauseKind:
        type_ = lead.type if lead else "label"
        if lead and type_ == "open":
            return unit(lead.consequence, said.language).kind("must") if lead.consequence else said.kind()
        if type_ in ("handoff", "must_not", "may", "condition"):
            return cast(ClauseKind, type_)
        if role == "forbid" or mark[:1] in tuple("❌✗✘🚫⛔"):
            return "must_not"
        if role == "handoff" and not (said.orders or said.starts("must_not")):
            return "handoff"
        if said.key and role_of(said.key[0]) in DUTIES:
            role = role_of(said.key[0])
        duty = type_ == "must" or TOOL_LINE.match(said.text) or (role in DUTIES and not said.amount)
        return said.kind("must" if duty else "condition")

    def _with_context(self, said: Unit, block: Block, lead: Lead | None, *, heading: bool) -> str:
        leads = [
            t
            for t in ((*lead.above, lead.text) if lead else ())
            if t != said.text and not _is_generic(t, said)
        ]
        named = [h for h in block.headings if h != self.title and not _is_generic(h, said)][-1:]
        if not heading or (leads and lead and lead.type not in ("label", "facts")):
            named = []
        parts = [re.sub(r"^[\W_]+|^\d[\d.]*\s*", "", h) for h in named] + leads
        told = ": ".join([*(p.rstrip(" :：") for p in parts), said.text])
        return f"{told} → {lead.consequence}" if lead and lead.consequence else told


def _is_generic(text: str, said: Unit) -> bool:
    plain = unit(re.sub(r"^[\W\d_]+|[\W_]+$", "", text), said.language)
    if any(cue(code, "generic_heading").fullmatch(plain.text) for code in {said.language, "en"}):
        return True
    return cue(said.language, "lead_generic").fullmatch(plain.text) is not None or plain.starts(
        "persona", "intro"
    )


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
    shares = any(
        w[:4] in said.text.lower() for w in re.findall(r"\w{4,}", " ".join(block.headings[-1:]).lower())
    )
    return not shares and (said.orders or not said.strong)
