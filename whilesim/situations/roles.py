"""Roles: what headings, labels and lead-ins make of the text below them, and whether it is a rule there.

"Polite and empathetic" is a rule under *Tone*, a fact under *About us*, and under *Examples* it is
nothing; under "Escalate when:" any fragment is a rule.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Literal

from whilesim.core.templates import load_words
from whilesim.situations.norms import Unit, shared, unit

LeadType = Literal["facts", "handoff", "open", "condition", "must_not", "must", "may", "label"]

DUTIES = ("rules", "procedure", "handoff", "forbid")
"""Roles under which any fragment is a rule."""
TOOL_LINE = re.compile(r"`?(?<!\w)[a-z][^\W_]*_\w+`?\s*(?:\([^()]*\))?`?\s*(?:[:–—]|-(?=\s))\s*")
"""A line that describes a tool: ``get_order(id): ...``."""


@dataclass(frozen=True, slots=True)
class Lead:
    """What stands before a list and completes its items."""

    text: str = ""
    type: LeadType = "label"
    role: str = ""
    consequence: str = ""
    """An order behind the list that holds for each item."""
    above: tuple[str, ...] = ()
    """The lead-ins that stand around this one."""

    @property
    def directs(self) -> bool:
        """Whatever stands below it is a rule."""
        return self.type not in ("label", "facts")


@cache
def role_of(heading: str) -> str:
    """Return the role that a heading or label gives to what follows, or an empty string."""
    text = re.sub(r"^[\W\d_]+", "", heading.replace("_", " "))
    role = next((r for r in load_words("policy_shared")["roles"] if _gives(text, r)), "")
    return "handoff" if role in ("", "rules", "procedure") and unit(text).hands_off else role


def _gives(heading: str, role: str) -> bool:
    """Say whether a heading gives the role; only one that says nothing else is about the agent: 'Roles and limits'."""
    left = shared(f"roles.{role}").sub("", heading)
    return left != heading and not (role == "meta" and re.search(r"[^\W\d_]", shared("meta_beside").sub("", left)))


def lead_of(said: Unit, above: Lead) -> Lead:
    """Return a sentence as the lead-in of the items below it; ``above`` is the one that it stands under."""
    kind = _lead_type(said)
    role = role_of(re.sub(r"\s*\([^()]*\)$", "", said.text)) if kind == "label" else ""
    chain = (*above.above, above.text) if above.text else ()
    return Lead(said.text.rstrip(" .:：。"), above.type if kind == "label" else kind, role, above.consequence, chain)


def _lead_type(said: Unit) -> LeadType:
    """Return what a lead-in makes of the items below it, the first that fits."""
    modal = said.main_has("must", "must_not")
    tasks = shared("tasks").search(said.text) is not None
    shown = TOOL_LINE.match(said.text) or said.starts("intro")
    if shown or (not modal and (said.has("lead_facts") or (said.starts("persona") and not tasks))):
        return "facts"
    if said.hands_off:
        return "handoff"
    if said.starts("if") and not re.search(r"[,，、].*\w", said.text) and not said.orders:
        return "open"
    barred = said.main_has("must_not")
    if (said.main_has("only") and said.main_has("may")) or (said.has("lead_condition") and not barred):
        return "condition"
    if barred:
        return "must_not"
    whole = said.length > 4 or shared("unfinished").search(said.text)  # 'Check that:', and not 'Change flights:'
    if said.main_has("must") or (said.orders and whole) or tasks:
        return "must"
    denied = re.search(r"\b(?:unless|except|außer|salvo|sauf|tranne)[\s:]*$", said.text, re.I)
    return "label" if not said.has("may") else "must_not" if denied else "may"


def accepts_item(said: Unit, role: str, lead: Lead, mark: str) -> bool:
    """Say whether an item of a list is a rule, by its lead-in, its heading's role and its words."""
    if said.excluded(fragment=lead.directs or role == "forbid"):
        return False
    if TOOL_LINE.match(said.text) or role == "tools":
        words = unit(TOOL_LINE.sub("", said.text), said.language)
        return words.has("must_not") or shared("tool_duties").search(words.text) is not None
    if lead.type == "facts":
        return accepts_fact(said, "")
    if lead.directs:
        return True
    if role in ("meta", "facts", "script"):
        return accepts_fact(said, role)
    if said.has("descriptive") and not (said.orders or said.firm or said.amount or said.has("only")):
        return False
    if role in DUTIES:
        return said.length > 1
    numbered = re.search(r"\w", mark) is not None and said.length > 2
    return numbered or said.strong or said.amount or said.has("only", "if", "weak_not", "back_reference", "statement")


def accepts_fact(said: Unit, role: str) -> bool:
    """Say whether a line in a section of facts, of scripts or about the document is a rule all the same."""
    if role == "script":
        return said.hands_off or (said.amount and shared("law").search(said.text) is not None)
    firm = said.has("must", "must_not") or (said.orders if role == "meta" else said.hands_off)
    return (firm or (role == "facts" and said.amount and not said.has("descriptive"))) and not said.excluded()


def accepts_prose(said: Unit, role: str = "", *, mission: bool = False) -> bool:
    """Say whether a sentence is a rule; ``mission`` is true behind a sentence such as "You are Eva"."""
    if role in ("meta", "facts", "tools", "script"):
        return accepts_fact(said, role)
    if said.excluded():
        return False
    if mission:
        return said.firm or said.has("if", "weak_not") or "_" in said.text
    if said.has("descriptive") and not (said.orders or said.firm):
        return False
    steps = re.split(r"->|=>|→", said.text)  # 'One room -> the caretaker', and no path through menus
    named = (said.key and role_of(said.key[0]) in DUTIES) or (len(steps) == 2 and unit(steps[1]).length > 1)
    return bool(named) or said.strong or said.amount or said.main_has("statement", "restricts")


def key_role(key: str) -> str:
    """Return what a key of ``Key: value`` says of its value: when, action, exception, dropped or nothing."""
    roles = ("when", "action", "exception", "dropped")
    return next((role for role in roles if shared(f"{role}_keys").fullmatch(key.strip())), "")
