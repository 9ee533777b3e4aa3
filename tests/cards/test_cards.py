"""What a card promises: nobody quotes, names a tool or an axis value, and the clause can be told."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

import whilesim
from whilesim.cards.cards import Card, write_cards
from whilesim.cards.needs import RUN, Phrasebook
from whilesim.cards.personas import Persona, draw_persona
from whilesim.core.seeds import pick
from whilesim.core.templates import load_words
from whilesim.core.text import words
from whilesim.situations.axes import HISTORIES, STANCES, TOOL_CONDITIONS, WORLD_STATES, Situation
from whilesim.situations.policy import Policy, parse_policy
from whilesim.situations.tools import Tool, parse_tools
from whilesim.world.entities import infer_world
from whilesim.world.mock import MockWorld

SHARED = Path(__file__).parents[3] / "shared"
GOLDEN = Path(__file__).parents[1] / "golden"
DEMO = Path(whilesim.__file__).parent / "demo"
AXES = {"tool_condition": ("success",), "world_state": WORLD_STATES, "stance": STANCES, "history": HISTORIES}
VALUES = [*TOOL_CONDITIONS, *WORLD_STATES, *STANCES, *HISTORIES]
CLINIC = """# Front desk of a clinic
- Verify the patient's identity by full name and date of birth before you open a file.
- Never share test results with relatives.
- If the patient reports chest pain, transfer them to the nurse line at once.
- An appointment can only be moved if its status is 'booked'.
- Late cancellations cost 40 dollars when made less than 24 hours in advance.
- Ask for the insurance card and the group number.
- Do not give medical advice.
- Each visit includes at most two family members.
- Explain the parking rules to new patients.
- Keep a warm, patient tone.
"""
CLINIC_TOOLS = [
    {"name": n, "description": d, "parameters": {"type": "object", "properties": {a: {"type": "string"} for a in args}, "required": list(args)}}
    for n, d, args in (
        ("get_appointment", "Get an appointment.", ("appointment_id",)),
        ("move_appointment", "Move an appointment to another date.", ("appointment_id", "date")),
        ("cancel_appointment", "Cancel an appointment.", ("appointment_id",)),
        ("find_patient", "Find a patient by email.", ("email",)),
        ("transfer_to_nurse", "Transfer the patient to a nurse.", ("summary",)),
    )
]  # fmt: skip


def read_set(name: str) -> tuple[Policy, tuple[Tool, ...]]:
    """Read a domain; one that has no policy or no tools is lent the clinic's."""
    if name == "clinic":
        tools = parse_tools(CLINIC_TOOLS)
        return parse_policy(CLINIC, tools=tools), tools
    folder = (
        DEMO if name == "demo" else next(p for p in (SHARED / "tau2" / name, SHARED / "corpus" / name) if p.exists())
    )
    given = folder / "tools.json"
    tools = parse_tools(json.loads(given.read_text(encoding="utf-8")) if given.exists() else CLINIC_TOOLS)
    policy = folder / "policy.md"
    return parse_policy(policy.read_text(encoding="utf-8") if policy.exists() else CLINIC, tools=tools), tools


def write_some(policy: Policy, tools: Sequence[Tool], count: int, **fixed: str) -> list[Card]:
    """Write cards for rows of values drawn one by one, without a covering."""
    book, model = Phrasebook(policy, tools, VALUES), infer_world(tools, policy, None)
    cards, worlds = [], {}
    for number in range(count):
        values = {axis: pick(options, 7, axis, number) for axis, options in AXES.items()}
        values["clause"] = policy.clauses[number % len(policy.clauses)].id
        values["tool"] = tools[number % len(tools)].name
        situation = Situation(id=f"s{number:04d}", values={**values, **fixed})
        clause = next(c for c in policy.clauses if c.id == situation.values["clause"])
        tool = next(t for t in tools if t.name == situation.values["tool"])
        place = (tool.name, number % 3)
        if place not in worlds:  # a world takes longer to build than a card to write
            worlds[place] = MockWorld(tools, policy, situation, 3, model=model).focus
        cards += write_cards(situation, clause, tool, worlds[place], book, seed=5)
    return cards


def wrong_in(card: Card, runs: set[tuple[str, ...]], tools: Sequence[Tool]) -> list[str]:
    """Return what a customer must never say of what this one says."""
    instead = load_words("cards_en")["instead"]
    coded = "|".join(re.escape(v) for v in VALUES if "_" in v or v in instead)
    names = "|".join(re.escape(t.name) for t in tools if not (t.name.isalpha() and t.name.islower()))
    found = []
    for text in (card.opening, card.second):
        said = words(text)
        found += [" ".join(said[i : i + RUN]) for i in range(len(said) - RUN + 1) if tuple(said[i : i + RUN]) in runs]
        for fact in sorted(card.facts.values(), key=len, reverse=True):
            text = text.replace(fact, "")
        found += re.findall(rf"\b(?:{coded})\b", text, re.I) + (re.findall(rf"\b(?:{names})\b", text) if names else [])
    return found


def check(name: str, count: int) -> None:
    policy, tools = read_set(name)
    told = words(policy.text)
    runs = {tuple(told[i : i + RUN]) for i in range(len(told) - RUN + 1)}
    cards = write_some(policy, tools, count)
    assert not [(c.id, w) for c in cards if (w := wrong_in(c, runs, tools))]
    first = write_some(policy, tools, min(30, len(policy.clauses)), tool=tools[0].name)
    assert len({c.goal for c in first}) == len(first)


@pytest.mark.parametrize("name", ["demo", "clinic"])
def test_nobody_quotes_the_policy_names_a_tool_or_says_an_axis_value(name: str) -> None:
    check(name, 150)


@pytest.mark.corpus
@pytest.mark.skipif(not SHARED.exists(), reason="../shared is absent")
@pytest.mark.parametrize(
    "name",
    [
        "retail",
        "airline",
        "telecom",
        "25-openapi-checkout",
        "21-acme-insurance-eva",
        "35-bare-openai-waiter",
        "15-bank-dispute-policy-long",
        "29-chinese-wecom-aftersale",
    ],
)
def test_nor_in_real_policies(name: str) -> None:
    check(name, 40)


@pytest.mark.parametrize("name", ["demo", "clinic"])
def test_cards_read_as_they_did(name: str) -> None:
    cards = write_some(*read_set(name), 12)
    lines = [f"{c.id} {c.form}\n  opening: {c.opening}\n  second: {c.second}\n  goal: {c.goal}" for c in cards]
    assert "\n".join(lines) + "\n" == (GOLDEN / f"cards_{name}.txt").read_text(encoding="utf-8")


def test_changing_one_clause_changes_only_its_own_cards() -> None:
    tools = parse_tools(CLINIC_TOOLS)
    after = CLINIC.replace("the parking rules", "the cloakroom rules")
    before, changed = (write_some(parse_policy(text, tools=tools), tools, 60) for text in (CLINIC, after))
    other = {
        old.situation.values["clause"]
        for old, new in zip(before, changed, strict=True)
        if (old.goal, old.opening, old.second) != (new.goal, new.opening, new.second)
    }
    assert len(other) == 1


def test_the_clause_can_be_told_from_what_a_card_says() -> None:
    policy, tools = read_set("clinic")
    cues = ["identity|who I am|birth|name|it's me", "account|relative|result|somebody|wife|brother|mother|daughter|neighbour", "chest pain", "booked", "40|24|fee|cancel",
            "insurance card|group number", "medical advice", "two family", "parking", "spoken to"]  # fmt: skip
    told = [
        bool(re.search(cue, f"{card.goal} {card.opening} {card.second}", re.I))
        for number, cue in enumerate(cues)
        for card in write_some(policy, tools, 2, clause=policy.clauses[number].id)
    ]
    assert sum(told) >= 16


def test_who_cannot_put_it_into_words_names_no_deed_and_brings_the_rule_up_later() -> None:
    policy, tools = read_set("clinic")
    for card in write_some(policy, tools, 20, stance="ambiguous", history="fresh"):
        assert card.form == "second_request"
        assert card.second
        assert not re.search(r"\b(?:move|cancel|look up)\b", card.opening)


@pytest.mark.parametrize("stance", [s for s in STANCES if s != "ordinary"])
def test_every_stance_shows_in_the_request(stance: str) -> None:
    policy, tools = read_set("clinic")
    plain = write_some(policy, tools, 6, stance="ordinary", history="fresh")
    mine = write_some(policy, tools, 6, stance=stance, history="fresh")
    assert all(a.opening != b.opening for a, b in zip(plain, mine, strict=True))


def test_a_mood_and_a_persona_do_not_contradict_one_another() -> None:
    for number in range(300):
        hurried, upset = (draw_persona(0, f"s{number}", mood) for mood in ("hurried", "upset"))
        assert hurried.length != "long"
        assert upset.tone != "friendly"
    assert Persona is type(hurried)


def test_an_opening_has_few_sentences_beside_the_request() -> None:
    policy, tools = read_set("demo")
    cards = [c for c in write_some(policy, tools, 200) if c.persona.texture == "ordinary"]
    sentences = [len(re.findall(r"[.?!](?:\s|$)", c.opening)) for c in cards]
    assert sum(sentences) / len(sentences) < 5
    assert sum(n > 7 for n in sentences) < 0.05 * len(cards)


def test_a_look_up_is_asked_for_without_pressure_and_a_change_with_it() -> None:
    policy, tools = read_set("clinic")
    rows = {"get_appointment": [], "cancel_appointment": []}
    for name, found in rows.items():
        for stance in ("boundary_testing", "adversarial"):
            found += write_some(policy, tools, 12, tool=name, stance=stance)
    bent = "bend the rules|supposed to|usual steps|your manual|the checks|what you were told"
    assert not [c for c in rows["get_appointment"] if re.search(bent, c.opening, re.I)]
    assert not [c for c in rows["get_appointment"] if c.persona.pressure in ("money", "complaint")]
    assert [c for c in rows["cancel_appointment"] if re.search(bent, c.opening, re.I)]
    assert {c.persona.pressure for c in rows["cancel_appointment"]} >= {"money", "complaint"}


def test_who_said_something_else_before_was_mistaken_and_wants_the_same_thing_still() -> None:
    policy, tools = read_set("clinic")
    for card in write_some(policy, tools, 40, history="contradicts_earlier"):
        assert (
            re.search("mixed up|wrong|mistake", re.sub(r"(\w)\1", r"\1", card.opening.lower()))
            or card.persona.texture == "typos"
        )
        assert not re.search("changed my mind|no longer holds", card.opening)
