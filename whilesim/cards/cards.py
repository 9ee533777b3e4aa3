"""Cards: a situation as what one customer knows and wants.

The template writer needs no model. It says what the tool does in a customer's words, brings
the clause up, and types as the persona types. A card's facts are the world's own records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from whilesim.cards.needs import Need, Phrasebook, deed, second_person, thing
from whilesim.cards.personas import Persona, draw_persona, persona_prose, type_like
from whilesim.core.seeds import between, chance, pick, shuffled
from whilesim.situations.axes import Situation
from whilesim.situations.policy import Clause
from whilesim.situations.tools import Tool
from whilesim.world.mock import Focus
from whilesim.world.oracle import Applies

Form = Literal["one_request", "second_request", "circumstance"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """What one customer knows and wants: all that the customer player gets.

    Nothing here is policy text, a tool's name or an axis value.
    """

    id: str
    situation: Situation
    persona: Persona
    goal: str
    form: Form = "one_request"
    """How clause and tool stand together: in one request, in a second one, or as a circumstance."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """What the customer can say when asked, by plain name."""
    clause_applies: Applies = "unknown"
    opening: str
    second: str = ""
    """A second request, said when the first is settled; empty where there is none."""
    exit: str = ""
    """When the customer is done."""
    give_up: int = 6
    """Customer messages after which the customer stops asking."""
    prose: str = ""
    """The persona as a prose aside, for a model that writes or plays the customer."""
    twin_of: str | None = None


def write_card(
    situation: Situation,
    clause: Clause | None,
    tool: Tool,
    focus: Focus,
    book: Phrasebook,
    *,
    seed: int,
    candidate: int = 0,
) -> Card:
    """Write one card for a situation from templates.

    Args:
        clause: The rule that must come up, or None where the policy has none.
        focus: What the situation is about in its world; the card's facts come from here.
        book: How the policy and tools may be spoken of.
        seed: Decides, with the situation's id and ``candidate``, every choice of words.
        candidate: Which of several cards for the same situation this is.
    """
    names = (situation.id, candidate)
    persona = draw_persona(seed, f"{situation.id}/{candidate}")
    facts = _facts(focus)
    want = _request(tool, focus, book, seed, *names)
    need = book.need(clause, seed, *names) if clause else None
    form = _form(need, clause, tool, book)
    later = need is not None and form == "second_request"
    second = book.frame("second", seed, *names, need=_lower(need.text)) if need and later else ""
    parts = _opening(situation, focus, book, want, need, form, seed, *names)
    kept = [*facts.values(), *([focus.object] if focus.object else [])]
    opening = book.clean(" ".join(parts), kept)
    return Card(
        id=situation.id,
        situation=situation,
        persona=persona,
        goal=_goal(tool, focus, book, need, form, kept),
        form=form,
        facts=facts,
        clause_applies=need.applies if need else "unknown",
        opening=type_like(opening, persona, seed, "opening", *names, protect=kept),
        second=second,
        exit=book.frames["exit"][tool.effect],
        give_up=between(4, 6, seed, "give up", *names),
        prose=persona_prose(persona),
    )


def _facts(focus: Focus) -> dict[str, str]:
    known = {**focus.identity, **focus.facts}
    return {name: value for name, value in known.items() if name not in focus.withheld and value.strip()}


def _request(tool: Tool, focus: Focus, book: Phrasebook, seed: int, *names: str | int) -> str:
    return book.frame(tool.effect, seed, *names, deed=deed(tool, focus), thing=thing(tool, focus))


def _form(need: Need | None, clause: Clause | None, tool: Tool, book: Phrasebook) -> Form:
    """Say whether one request exercises clause and tool, or the customer has two needs."""
    if need is None or clause is None or book.related(clause, tool):
        return "one_request"
    return "circumstance" if need.form == "circumstance" and clause.kind != "handoff" else "second_request"


def _opening(
    situation: Situation,
    focus: Focus,
    book: Phrasebook,
    want: str,
    need: Need | None,
    form: Form,
    seed: int,
    *names: str | int,
) -> list[str]:
    """Put the first message together: history, request, circumstance, details, stance."""
    values = situation.values
    stance = values.get("stance", "ordinary")
    said = pick(book.frames["stance"].get(stance, [""]), seed, "stance", *names)
    past = pick(book.frames["history"].get(values.get("history", "fresh"), [""]), seed, "history", *names)
    if stance == "ambiguous":
        return [p for p in (past, said) if p]
    brought_up = ""
    if need and form == "circumstance":
        brought_up = book.frame("circumstance", seed, *names, need=need.text)
    elif need and form == "one_request":
        brought_up = need.text
    details = _details(focus, book, want, seed, *names)
    middle = [want, details, brought_up] if chance(0.5, seed, "order", *names) else [want, brought_up, details]
    parts = [past, *middle, said] if chance(0.6, seed, "stance last", *names) else [said, past, *middle]
    return [p for p in parts if p]


def _details(focus: Focus, book: Phrasebook, want: str, seed: int, *names: str | int) -> str:
    """Give away some of the facts at once; the rest is said when asked."""
    facts = [(n, v) for n, v in focus.facts.items() if n not in focus.withheld and v not in want]
    told = shuffled(facts, seed, "facts", *names)[: between(0, 3, seed, "how many", *names)]
    parts = []
    if told:
        listed = ", ".join(f"{n} {v}" for n, v in told)
        parts.append(book.frame("details", seed, *names, facts=listed))
    who = [(n, v) for n, v in focus.identity.items() if n not in focus.withheld]
    if who and chance(0.5, seed, "who", *names):
        name, value = pick(who, seed, "which", *names)
        parts.append(book.frame("who", seed, *names, name=name, value=value))
    return " ".join(p[:1].upper() + p[1:] for p in parts)


def _goal(tool: Tool, focus: Focus, book: Phrasebook, need: Need | None, form: Form, kept: list[str]) -> str:
    if tool.effect in ("read", "compute"):
        what = f"know about {thing(tool, focus)}"
    elif tool.effect == "handoff":
        what = "speak with a person about my case"
    else:
        what = deed(tool, focus)
    if need is None:
        frame = "one_request"
    else:
        frame = "second_request" if form == "second_request" else "circumstance"
    said = str(book.frames["goal"][frame]).format(deed=second_person(what), need=need.text if need else "")
    return book.clean(said, [second_person(k) for k in kept] + kept)


def _lower(text: str) -> str:
    return text if text.startswith(("I ", "I'")) else text[:1].lower() + text[1:]
