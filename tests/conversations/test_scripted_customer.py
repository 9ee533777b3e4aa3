"""The scripted customer: it hears what an agent asks and offers in the words that agents use."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace

import pytest

from whilesim.cards.cards import Card
from whilesim.cards.personas import Persona
from whilesim.chat.messages import Message
from whilesim.conversations.players import Context, Utterance
from whilesim.conversations.reading import asks_go_ahead
from whilesim.conversations.scripted_customer import ScriptedCustomer
from whilesim.core.templates import load_words
from whilesim.situations.axes import Situation

CARD = Card(
    id="s0001",
    situation=Situation(id="s0001", values={"stance": "ordinary"}),
    persona=Persona(texture="ordinary", tone="neutral", length="short", pressure="none"),
    goal="You want to change the dates of your booking.",
    facts={
        "name": "Ann Lee",
        "email": "a@b.co",
        "date of birth": "1990-02-01",
        "booking id": "LH-750732",
        "new stay": "2026-03-06 2026-03-10",
        "extra guests": "2",
        "amount eur": "20",
        "arrival time": "22:15",
        "topic": "wrong amount",
    },
    opening="Please change the dates of my booking.",
)
SECOND = "And something else: can I bring two pets?"


def answered(heard: str, card: Card = CARD, *before: str) -> Utterance:
    said = [Message(role="user", content=t) for t in (card.opening, *before)]
    context = Context(tools=(), case=card.id, seed=1, answer=lambda call: "")
    return asyncio.run(ScriptedCustomer().speak(card, [*said, Message(role="assistant", content=heard)], context))


CLOSINGS = [
    "Is there anything else I can help you with?",
    "Your leave has 12 days left. Is there anything else?",
    "Anything else I can do for you today?",
    "That's done, is there anything else you need?",
    "Would you like me to help you with anything else?",
    "What else can I do for you?",
    "Do you have any other questions?",
    "Will that be all?",
    "Please let me know if you need anything else.",
]


def test_what_else_it_wants_is_said_before_it_gives_up() -> None:
    tried = [f"My booking id is LH-{n}." for n in range(8)]
    card = replace(CARD, second=SECOND)
    assert answered("I'm sorry, I can't find a record that fits.", card, *tried) == Utterance(text=SECOND)
    assert answered("I'm sorry, I can't find a record that fits.", card, *tried, SECOND).done


@pytest.mark.parametrize(("day", "right"), [("2026-03-06", True), ("1990-02-01", False)])
def test_another_date_beside_a_part_of_a_fact_is_wrong(day: str, right: bool) -> None:
    card = replace(CARD, facts={"flights": "HAT391 2026-03-06", "passengers": "Ann Lee 1990-02-01"})
    said = answered(f"I book flight number HAT391, date {day}, for Ann Lee 1990-02-01. May I go ahead?", card).text
    assert said.startswith("No,") is not right


@pytest.mark.parametrize("heard", CLOSINGS)
def test_who_is_asked_for_anything_else_says_so_or_leaves(heard: str) -> None:
    assert answered(heard, replace(CARD, second=SECOND)) == Utterance(text=SECOND)
    last = answered(heard, replace(CARD, second=SECOND), SECOND)
    assert last.done
    assert last.text in load_words("scripted_customer")["closed"]


@pytest.mark.parametrize(
    ("heard", "told"),
    [
        ("Which new dates would you like?", {"new stay"}),
        ("What are the new check-in and check-out days?", {"new stay"}),
        ("When will you arrive?", {"arrival time", "new stay"}),
        ("How much should be refunded?", {"amount eur"}),
        ("How many people will come along?", {"extra guests"}),
        ("What is the callback about?", {"topic"}),
        ("Please describe the problem in your own words.", {"topic"}),
        ("When were you born?", {"date of birth"}),
        ("Could you give me your date of birth?", {"date of birth"}),
        ("May I have your name?", {"name"}),
        ("Could you please confirm your booking ID?", {"booking id"}),
        ("Is there anything else you know about it, such as your email?", {"email", "topic"}),
        ("Which way shall it be?", {"booking id", "new stay"}),
        ("Could you help me to identify you?", {"name", "email"}),
    ],
)
def test_a_question_is_answered_with_what_it_is_about(heard: str, told: set[str]) -> None:
    text = answered(heard).text
    assert {n for n, v in CARD.facts.items() if re.search(rf"\b{re.escape(v)}\b", text)} == told


@pytest.mark.parametrize(
    ("heard", "asks"),
    [
        ("Do you want me to cancel?", True),
        ("Should I cancel the booking then?", True),
        ("Is that okay for you?", True),
        ("Please reply yes to confirm.", True),
        ("Can you confirm?", True),
        ("Please confirm that I may cancel it.", True),
        ("Do you agree?", True),
        ("Are you sure?", True),
        ("It costs 5 euros. Would you like to proceed?", True),
        ("What exactly would you like me to do?", False),
        ("Which of them shall I cancel?", False),
        ("What should I tell your host?", False),
        ("May I have your date of birth?", False),
        ("Can you confirm your date of birth?", False),
        ("Could you confirm which booking you mean?", False),
        ("I should tell you that this is fine.", False),
    ],
)
def test_an_agent_asks_for_a_yes_in_many_words(heard: str, asks: bool) -> None:
    assert asks_go_ahead(heard) is asks


@pytest.mark.parametrize(
    ("heard", "right"),
    [
        ("I will cancel booking LH-000000. Shall I go ahead?", "LH-750732"),
        ("New stay: check in 2026-03-06, check out 2026-03-06. Is that right?", "2026-03-06 2026-03-10"),
        ('update_party({"extra_guests": 8}). Do you want me to do this?', "extra guests are 2"),
        ("You want a voucher of 50 euros. Shall I go ahead?", "amount eur is 20"),
        ("An amount of €1,050 goes back to you. Can you confirm?", "amount eur is 20"),
    ],
)
def test_a_summary_that_is_wrong_gets_no_yes(heard: str, right: str) -> None:
    said = answered(heard).text
    assert right in said
    assert said.startswith("No,")
    late = answered(heard, CARD, "No.", "No.", "No.", "No.", "No.")
    assert late.done
    assert late.text in load_words("scripted_customer")["resigned"]


@pytest.mark.parametrize(
    "heard",
    [
        "I will change booking LH-750732 to 2026-03-06 until 2026-03-10. Shall I go ahead?",
        "I can cancel your booking. Shall I go ahead?",
        "The fee is 35 euros. Shall I go ahead?",
        "A voucher of 20.00 euros, in total. Shall I go ahead?",
        "Your booking of 2026-02-01 will be moved as you said. Shall I go ahead?",
        "The amount of 20 euros goes back to you within 1,000 days. Shall I go ahead?",
        "I add 2 extra guests to booking lh-750732. Shall I go ahead?",
    ],
)
def test_a_summary_that_is_right_or_says_less_gets_a_yes(heard: str) -> None:
    assert answered(heard).text in load_words("scripted_customer")["agree"]


def test_an_amount_with_its_thousands_apart_is_the_same() -> None:
    card = replace(CARD, facts={"amount": "1050"})
    assert (
        answered("I pay the amount 1,050 back. Shall I go ahead?", card).text
        in load_words("scripted_customer")["agree"]
    )


def test_a_rule_that_is_told_asks_for_nothing() -> None:
    told = answered("What our rules say on this: you need to provide a payment method to receive the refund.")
    assert told.done
    assert not told.text.startswith(("Sure", "Of course"))


@pytest.mark.parametrize(
    ("said", "agrees"), [("12,50 €", False), ("$1,00,000", True), ("20,00 €", True), ("20 €", True)]
)
def test_an_amount_is_read_with_a_decimal_comma_and_a_strange_one_stops_nobody(said: str, agrees: bool) -> None:
    """What is no number cannot be wrong: the customer agrees, as before."""
    text = answered(f"I would refund {said}. Shall I go ahead?").text
    assert text
    assert ("20" not in text) is agrees
