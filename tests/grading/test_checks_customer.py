"""The customer's side, held against its card."""

from __future__ import annotations

import pytest

from whilesim.cards.cards import Card
from whilesim.cards.personas import Persona
from whilesim.chat.messages import read_messages
from whilesim.grading.checks.customer import check_customer
from whilesim.situations.axes import Situation

CARD = Card(
    id="k1",
    situation=Situation(id="s1", values={}),
    persona=Persona(texture="ordinary", tone="neutral", length="short", pressure="none"),
    goal="Suspend line L20871 because the phone was lost.",
    facts={"line": "L20871", "name": "Maria Bell"},
    opening="Hi, I lost my phone. Please suspend line L20871.",
    second="And tell me what my bill is.",
)


def checks(*turns: str, done: bool = False) -> list[str]:
    wire = [{"role": "user" if i % 2 == 0 else "assistant", "content": t} for i, t in enumerate((CARD.opening, *turns))]
    return [f.check for f in check_customer(CARD, read_messages(wire), done)]


@pytest.mark.parametrize(
    ("said", "check"),
    [
        ("My goal is to get the line suspended.", "customer_leak"),
        ("As a customer, I was told to act upset.", "customer_leak"),
        ("###STOP###", "customer_leak"),
        ("As an AI I have no phone.", "customer_leak"),
        ("How can I help you today?", "broke_persona"),
        ("I have suspended your line.", "broke_persona"),
        ("Thank you for contacting us.", "broke_persona"),
        ("The line is L99999.", "invented_goal"),
        ("I also want to book a hotel room.", "invented_goal"),
        ("Could you also send my laptop back?", "invented_goal"),
    ],
)
def test_a_customer_that_leaves_its_card_is_found(said, check):
    assert checks("What is your name?", said) == [check]


@pytest.mark.parametrize(
    "said",
    [
        "Maria Bell. The line is L20871.",
        "l 20871",
        "Please hurry, I need this done today!",
        "I want my line suspended. Can you do that?",
        "Could you suspend my line, please?",
        "And what is my bill?",
        "I already told you my name.",
        "Please suspend the line and tell me what my bill is.",
        "Yes, go ahead.",
        "Could you also send me a confirmation by email?",
        "My role at work needs that phone, so please be quick.",
    ],
)
def test_a_customer_that_stays_on_its_card_is_left_alone(said):
    assert checks("What is your name?", said, "Thank you.") == []


def test_to_agree_and_leave_is_an_early_end():
    assert checks("Shall I suspend line L20871?", "Yes please.", done=True) == ["ended_early"]
    assert checks("Shall I suspend line L20871?", "Yes please.", "It is suspended.", done=True) == []
    assert checks("It is suspended. Anything else?", "No, thanks.", done=True) == []
    assert checks("Shall I suspend line L20871?", "Yes please.", done=False) == []


def test_to_leave_before_the_agent_spoke_is_an_early_end():
    assert checks(done=True) == ["ended_early"]
    assert checks("", "Okay, thank you.", "", done=True) == []  # an agent that says nothing has had its turn
