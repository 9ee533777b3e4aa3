"""Quotes: a model's clauses count only when the text bears them out."""

from __future__ import annotations

import asyncio
import json
import re

import pytest
from stub import Stub

from whilesim.cards.planning import plan
from whilesim.chat.endpoint import Endpoint
from whilesim.chat.messages import Message
from whilesim.chat.models import Model, Reply
from whilesim.core.errors import InputError, ModelError
from whilesim.situations.policy import extract_policy, parse_policy
from whilesim.situations.quotes import PART, parts_of

TEXT = """# Desk rules

You are the helper of a small theatre. It opened in 1950.

## Tickets

Tickets can be exchanged once, up to 2 hours before the show. Never resell a
**returned** ticket. Seats in the balcony have no lift, so tell guests in wheelchairs before they pay.

## Example

Guest: I must have a refund!

## Help

Transfer the guest to the house manager when a seat is broken.
"""


class FakeChat:
    """Answers each request with the next of its answers, and remembers what it was asked."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []

    async def reply(self, messages, tools=(), *, schema=None, key=None):
        self.asked.append((messages[0].content, schema, key))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return Reply(message=Message(role="assistant", content=answer))


def clause(quote, text=None, kind="must"):
    return {"quote": quote, "text": text or quote, "kind": kind}


GOOD = [
    clause("Tickets can be exchanged once, up to 2 hours before the show.", kind="condition"),
    clause("Never resell a returned ticket.", kind="must_not"),
    clause(
        "tell guests in wheelchairs before they pay",
        "Tell guests in wheelchairs that the balcony has no lift before they pay.",
    ),
    clause("Transfer the guest to the house manager when a seat is broken.", kind="handoff"),
]


def extract(clauses, left_out=(), text=TEXT):
    answer = json.dumps({"clauses": list(clauses), "left_out": list(left_out)})
    return asyncio.run(extract_policy(text, FakeChat(answer)))


def test_clauses_that_the_text_bears_out_are_taken_with_exact_spans():
    policy = extract(GOOD)
    assert [c.text for c in policy.clauses] == [c["text"] for c in GOOD]
    assert [c.kind for c in policy.clauses] == ["condition", "must_not", "must", "handoff"]
    assert TEXT[slice(*policy.clauses[1].span)] == "Never resell a\n**returned** ticket."
    assert policy.clauses[0].section == "Desk rules > Tickets"
    assert policy.notes[0].startswith("4 clauses read by the model, 0 of its clauses refused, 0 read by word lists")


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (clause("Tickets are free for children."), "does not stand in the text"),
        (clause(GOOD[0]["quote"], "Tickets can be exchanged once, up to 3 hours before the show."), "'3'"),
        (
            clause(GOOD[0]["quote"], "Exchange tickets once with exchange_ticket, up to 2 hours before."),
            "'exchange_ticket'",
        ),
        (clause(GOOD[0]["quote"], "Tickets can never be exchanged within 2 hours."), "denies what the text does not"),
        (clause(GOOD[1]["quote"], "Resell returned tickets."), "lost the negation"),
        (clause("You are the helper of a small theatre."), "its quote is a persona"),
        (clause("I must have a refund!"), "its quote is a persona"),
    ],
)
def test_what_the_text_does_not_bear_out_is_refused_and_counted(changed, reason):
    others = [c for c in GOOD if c["quote"] != changed["quote"]]
    policy = extract([*others, changed])
    assert any(note.startswith("refused") and reason in note for note in policy.notes)
    assert "1 of its clauses refused" in policy.notes[0]
    assert changed["text"] not in [c.text for c in policy.clauses]


def test_a_refused_clause_falls_back_to_the_words_of_the_text():
    policy = extract([clause(GOOD[0]["quote"], "Exchange within 99 hours."), *GOOD[1:]])
    assert policy.clauses[0].text == "Tickets can be exchanged once, up to 2 hours before the show."
    assert "1 read by word lists instead" in policy.notes[0]


def test_a_duty_passed_over_in_silence_comes_back_and_one_left_out_aloud_does_not():
    silent = extract([GOOD[0], *GOOD[2:]])
    assert "Never resell a returned ticket." in [c.text for c in silent.clauses]
    told = extract([GOOD[0], *GOOD[2:]], left_out=["Never resell a returned ticket."])
    assert "Never resell a returned ticket." not in [c.text for c in told.clauses]


def test_a_slip_of_the_copyist_passes_but_a_paraphrase_does_not():
    slip = clause("Transfer the guest to the house manager when a seat is brokn.", GOOD[3]["text"], "handoff")
    assert "0 of its clauses refused" in extract([*GOOD[:3], slip]).notes[0]
    paraphrase = clause("Broken seats go to the manager of the house.", kind="handoff")
    assert "1 of its clauses refused" in extract([*GOOD[:3], paraphrase]).notes[0]


def test_the_same_words_do_not_give_two_rules():
    twice = clause(GOOD[3]["quote"], "Call the house manager for a broken seat.", "handoff")
    policy = extract([*GOOD, twice])
    assert any("gave a rule already" in note for note in policy.notes)


@pytest.mark.parametrize("answer", ["I found four rules.", '{"clauses": [{"quote": "x"}]}', "{", ""])
def test_an_answer_that_cannot_be_read_leaves_the_word_lists(answer):
    policy = asyncio.run(extract_policy(TEXT, FakeChat(answer)))
    assert [c.text for c in policy.clauses] == [c.text for c in parse_policy(TEXT).clauses]
    assert any("1 answers of the model were cut short or could not be read" in note for note in policy.notes)


def test_an_answer_that_breaks_off_is_not_read_in_part():
    answer = json.dumps({"clauses": GOOD})
    policy = asyncio.run(extract_policy(TEXT, FakeChat(answer[: answer.index("Transfer") + 3])))
    assert policy.notes[0].startswith("0 clauses read by the model")
    assert [c.text for c in policy.clauses] == [c.text for c in parse_policy(TEXT).clauses]


def test_words_around_the_answer_are_cut():
    answer = "Here it is:\n```json\n" + json.dumps({"clauses": GOOD}) + "\n```"
    assert len(asyncio.run(extract_policy(TEXT, FakeChat(answer))).clauses) == 4


def test_a_long_policy_is_asked_in_parts_that_lose_nothing():
    chapters = [f"## Part {n}\n\nNever open door {n} at night. " + "Fill. " * 60 for n in range(40)]
    text = "# Long\n\n" + "\n\n".join(chapters)
    parts = list(parts_of(text))
    assert "".join(text[part.start : part.end] for part in parts) == text
    assert len(parts) > 2
    assert max(part.end - part.start for part in parts) < 2 * PART
    chat = FakeChat(*(["{}"] * len(parts)))
    asyncio.run(extract_policy(text, chat))
    assert [key.turn for _, _, key in chat.asked] == list(range(len(parts)))
    assert "stands under: Long" in chat.asked[1][0]
    assert re.search(r"<policy>\s*# Long", chat.asked[0][0])


def test_a_failing_endpoint_is_told_and_an_empty_text_never_sent():
    with pytest.raises(ModelError, match="down"):
        asyncio.run(extract_policy(TEXT, FakeChat(ModelError("down", reason="server"))))
    with pytest.raises(InputError, match="the policy is empty"):
        asyncio.run(extract_policy(" ", FakeChat()))


def copy_rules(body):
    """Answer like a model: one clause for each line of the asked part that begins with 'Never', and one invented."""
    part = body["messages"][0]["content"].split("<policy>")[1]
    copied = [clause(line, kind="must_not") for line in re.findall(r"^Never .*$", part, re.MULTILINE)]
    return json.dumps({"clauses": [*copied, clause("Always give 40 percent off.")], "left_out": []})


def test_over_the_wire_a_long_policy_is_asked_in_parts_and_an_invented_clause_is_dropped_and_told():
    text = "\n\n".join(f"Never open crate {n} before its seal was photographed by the night shift." for n in range(120))

    async def ask(url):
        chat = Endpoint(Model("m", base_url=url, api_key="x"))
        try:
            return await extract_policy(text, chat)
        finally:
            await chat.close()

    with Stub(copy_rules) as stub:
        policy = asyncio.run(ask(stub.url))
    assert stub.count == len(list(parts_of(text))) > 2
    assert len(policy.clauses) == 120
    assert all(text[slice(*c.span)] == c.text for c in policy.clauses)
    assert (
        f"120 clauses read by the model, {stub.count} of its clauses refused, 0 read by word lists" in policy.notes[0]
    )
    assert sum("Always give 40 percent off" in note for note in policy.notes) == stub.count


def test_a_plan_gives_the_policy_model_room_for_its_answer_and_tells_what_was_unreadable():
    tools = [{"name": "open_crate", "parameters": {"type": "object", "properties": {}}}]
    with Stub(lambda body: "I would rather not.") as stub:
        model = Model("m", base_url=stub.url, api_key="x", max_tokens=100)
        made = plan(tools=tools, system_prompt=TEXT, situations=4, policy_model=model)
    assert stub.bodies[0]["max_tokens"] >= 4096
    assert [c.text for c in made.policy.clauses] == [c.text for c in parse_policy(TEXT).clauses]
    assert any("could not be read; what they lack was read by word lists" in note for note in made.notes)
