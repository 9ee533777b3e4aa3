"""Cards: a situation as what one customer knows and wants.

The template writer needs no model. It says what the tool does in a customer's words, brings
the clause up, and types as the persona types. A card's facts are the world's own records.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from whilesim.cards.facts import say_facts
from whilesim.cards.needs import Need, Phrasebook
from whilesim.cards.personas import Persona, draw_persona, persona_prose, type_like
from whilesim.cards.requests import deed
from whilesim.cards.speech import lowered, second_person, word_set
from whilesim.core.seeds import between, chance, pick, shuffled
from whilesim.situations.axes import Situation
from whilesim.situations.policy import Clause
from whilesim.situations.tools import Tool
from whilesim.world.kinds import role_of
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


def write_cards(
    situation: Situation,
    clause: Clause | None,
    tool: Tool,
    focus: Focus,
    book: Phrasebook,
    *,
    seed: int,
    count: int = 1,
) -> tuple[Card, ...]:
    """Write the candidate cards of one situation from templates: the same needs, each time in other words.

    Args:
        clause: The rule that must come up, or None where none must.
        focus: What the situation is about in its world; the card's facts come from here.
        book: How the policy and tools may be spoken of.
        seed: Decides every choice of words, with the situation's id and the candidate's number.
        count: How many candidates.
    """
    stance, asked = situation.values.get("stance", "ordinary"), deed(tool, focus)
    changes = tool.effect == "write" and stance != "ambiguous"  # who names no deed says later what else is wanted
    need = book.need(clause, seed, situation.id, changes=changes) if clause else None
    form = _form(need, clause, tool, book, stance)
    facts = known_facts(focus)
    kept = [*facts.values(), *([focus.object] if focus.object else [])]
    goal = _goal(asked, book, need, form, kept)

    def candidate(number: int) -> Card:
        names = (situation.id, number)
        persona = draw_persona(seed, f"{situation.id}/{number}", stance, tool.effect)
        opening = book.clean(" ".join(_opening(situation, asked, tool, focus, book, need, form, seed, *names)), kept)
        return Card(
            id=situation.id, situation=situation, persona=persona, goal=goal, form=form, facts=facts,
            clause_applies=need.applies if need else "unknown",
            opening=type_like(opening, persona, seed, "opening", *names, protect=kept),
            second=_aside(book, "second", need, seed, *names) if need and form == "second_request" else "",
            exit=book.frames["exit"][tool.effect], give_up=between(4, 6, seed, "give up", *names), prose=persona_prose(persona),
        )  # fmt: skip

    return tuple(map(candidate, range(count)))


def known_facts(focus: Focus) -> dict[str, str]:
    """Return what a customer knows and has at hand, by plain name; a record's name is not the customer's."""
    kind = (focus.kind or "thing").replace("_", " ")
    about = {f"{kind} name" if n == "name" else n: v for n, v in focus.facts.items()}
    known = {**focus.identity, **about}
    return {name: value for name, value in known.items() if name not in focus.withheld and value.strip()}


def _form(need: Need | None, clause: Clause | None, tool: Tool, book: Phrasebook, stance: str) -> Form:
    """Say whether one request exercises clause and tool, or the customer has two needs.

    Who cannot put the first need into words brings the second up later.
    """
    if need is None or clause is None:
        return "one_request"
    if stance == "ambiguous":
        return "second_request"
    if book.related(clause, tool):
        return "one_request"
    invited = need.source == "conduct" and (tool.effect == "write" or need.form != "question")
    beside = invited or (need.form == "circumstance" and clause.kind != "handoff")
    return "circumstance" if beside else "second_request"


def _opening(
    situation: Situation,
    asked: str,
    tool: Tool,
    focus: Focus,
    book: Phrasebook,
    need: Need | None,
    form: Form,
    seed: int,
    *names: str | int,
) -> list[str]:
    """Put the first message together: history, request, circumstance, details; the mood is in the request's words."""
    stance = situation.values.get("stance", "ordinary")
    own = focus.object.startswith("my ") and focus.object in asked and focus.object != "my request"
    record, alone = re.sub(r" \S*\d\S*$", "", focus.object), "" if own else "_alone"
    pasts = book.frames[f"history{alone}"].get(situation.values.get("history", "fresh"), [""])
    past = pick(pasts, seed, "history", *names).format(record=record)
    if stance == "ambiguous":
        return [past, book.frame(f"vague{alone}", seed, *names, record="it" if past else record)]
    moods = {**book.frames["request"], **(book.frames["look_up"] if tool.effect in ("read", "compute") else {})}
    want = pick(moods.get(stance, moods["ordinary"]), seed, "request", *names).format(deed=asked)
    want = want.replace(" for me", "") if " me " in f"{asked} " else want
    kind = "circumstance" if need and need.form == "circumstance" else "asked"
    said = _aside(book, kind, need, seed, *names) if need and form != "second_request" else ""
    details = _details(focus, want, seed, *names)
    rest = [details, said] if chance(0.5, seed, "order", *names) else [said, details]
    return [p for p in (past, want, *rest) if p]


def _aside(book: Phrasebook, kind: str, need: Need, seed: int, *names: str | int) -> str:
    """Say a need behind a few words that lead over to it."""
    frame = str(pick(book.frames[kind], seed, kind, *names))
    said = frame.format(need=need.text if frame.startswith("{") else lowered(need.text))
    bare = need.source == "circumstance" and not re.search(r"\?|\bI(?:'d like| have to)\b", said)
    return f"{said} {book.frame('so_what', seed, *names)}" if bare else said


def _details(focus: Focus, want: str, seed: int, *names: str | int) -> str:
    """Give away up to three of the facts at once; the rest is said when asked."""
    facts = {n: v for n, v in known_facts(focus).items() if role_of(n) != "sent"}
    known = [(n, v) for n, v in facts.items() if n not in focus.identity and v not in want and len(v) < 60]
    known = known if focus.arguments else []  # a tool that asks for nothing reads no record of the customer's
    bare = {"to", "amount" if "look up" in want else "", *word_set("before_names")}  # of what?
    known = [(n, v) for n, v in known if n not in bare or n in focus.arguments]
    told = shuffled(known, seed, "facts", *names)[: between(0, 2, seed, "how many", *names)]
    who = [(n, v) for n, v in facts.items() if n in focus.identity and v not in dict(told).values()]
    if who and chance(0.5, seed, "who", *names):
        told.append(pick(who, seed, "which", *names))
    return say_facts(told)


def _goal(asked: str, book: Phrasebook, need: Need | None, form: Form, kept: list[str]) -> str:
    """Say to the customer what to want: the first need, and then what brings the clause up."""
    frames: Mapping[str, str] = book.frames["goal"]
    wanted: Mapping[str, str] = book.frames["wanted"]
    what = next((f"{wanted[start]}{asked[len(start) :]}" for start in wanted if asked.startswith(start)), asked)
    said = [frames["one_request"].format(deed=second_person(what))]
    if need:
        frame = "second_request" if form == "second_request" else "circumstance"
        said.append(frames[frame].format(about=need.about, need=need.text))
    return book.clean(" ".join(said), [second_person(k) for k in kept] + kept)
