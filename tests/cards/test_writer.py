"""A model phrases the cards: asked once more where it breaks a rule, and then the template stays."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from whilesim.cards.cards import write_cards
from whilesim.cards.needs import Phrasebook
from whilesim.cards.writer import Request, phrase_cards
from whilesim.chat.messages import Message
from whilesim.chat.models import Reply
from whilesim.showcase import demo_policy, demo_tools
from whilesim.situations.axes import HISTORIES, STANCES, Situation
from whilesim.situations.policy import parse_policy
from whilesim.situations.tools import parse_tools
from whilesim.world.mock import MockWorld

TOOLS = parse_tools(demo_tools())
POLICY = parse_policy(demo_policy(), tools=TOOLS)
BOOK = Phrasebook(POLICY, TOOLS, [*STANCES, *HISTORIES])


class Writer:
    """Answers with the given openings, one list for each time that it is asked."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def reply(self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = (), **_: Any) -> Reply:
        self.asked.append(messages[-1].content or "")
        second = "And one more thing." if '"second": "..."' in (messages[0].content or "") else ""
        cards = [{"opening": o, "second": second} for o in self.answers.pop(0)]
        return Reply(message=Message(role="assistant", content=json.dumps({"cards": cards})))


def request(stance: str = "hurried", history: str = "prior_failure") -> Request:
    clause, tool = POLICY.clauses[1], next(t for t in TOOLS if t.name == "suspend_line")
    values = {"clause": clause.id, "tool": tool.name, "stance": stance, "history": history}
    situation = Situation(id="s0001", values=values)
    focus = MockWorld(TOOLS, POLICY, situation, 3).focus
    cards = write_cards(situation, clause, tool, focus, BOOK, seed=0, count=2)
    return Request(cards=cards, clause=clause, tool=tool)


def test_one_request_for_all_candidates_holds_their_personas_as_prose_and_no_label() -> None:
    made = request()
    prompt = made.prompt()
    assert all(card.prose in prompt for card in made.cards)
    assert not re.search(r"prior_failure|hurried|stance|history:|no_punctuation", prompt)
    assert len({card.goal for card in made.cards}) == len({bool(card.second) for card in made.cards}) == 1


@pytest.mark.parametrize("axis", ["stance", "history"])
def test_every_stance_and_history_has_its_sentence(axis: str) -> None:
    values = STANCES if axis == "stance" else HISTORIES
    assert len({request(**{axis: v}).prompt().split("to be felt and not named:")[1] for v in values}) == len(values)


@pytest.mark.parametrize(
    ("opening", "reason"),
    [
        ("My order ZZ99887 is late.", "'ZZ99887' stands nowhere"),
        ("Please run suspend_line for me.", "names a function"),
        ("Identify the customer by phone number, customer ID.", "repeats the rule"),
        ("", "is empty"),
    ],
)
def test_a_wording_that_breaks_a_rule_is_asked_for_once_more(opening: str, reason: str) -> None:
    writer = Writer([opening, "Hello, it's me."], ["Better now.", "Hello again."])
    ((first, other),), kept = asyncio.run(phrase_cards([request()], writer, BOOK))
    assert reason in writer.asked[1]
    assert (first.opening, other.opening, kept) == ("Better now.", "Hello, it's me.", 0)


def test_after_the_second_time_the_templates_words_stay_and_are_counted() -> None:
    made = request()
    writer = Writer(["run suspend_line", "Hello."], ["run suspend_line", "Hello."])
    (cards,), kept = asyncio.run(phrase_cards([made], writer, BOOK))
    assert [c.opening for c in cards] == [made.cards[0].opening, "Hello."]
    assert kept == 1
