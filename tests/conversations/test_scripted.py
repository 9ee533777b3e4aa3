"""The scripted players: sensible on tools they have never met, wrong only where it is labelled."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from whilesim.cards.cards import Card
from whilesim.cards.personas import Persona
from whilesim.chat.messages import Trace
from whilesim.conversations.reading import pairs_said, read_reply
from whilesim.conversations.rollout import Case, Stage, play
from whilesim.conversations.scripted import FAULTS, ScriptedAgent
from whilesim.conversations.scripted_customer import ScriptedCustomer
from whilesim.conversations.wording import participle
from whilesim.core.templates import load_words
from whilesim.situations.axes import Situation
from whilesim.situations.tools import Tool, parse_tools
from whilesim.world.mock import WorldCall

LIBRARY = parse_tools(
    [
        {"name": "find_reader", "description": "Find a reader by card number.", "parameters": {"type": "object", "properties": {"card_number": {"type": "string"}}, "required": ["card_number"]}},
        {"name": "get_loan", "description": "Get the details of a loan.", "parameters": {"type": "object", "properties": {"loan_id": {"type": "string"}}, "required": ["loan_id"]}},
        {"name": "renew_loan", "description": "Renew a loan.", "parameters": {"type": "object", "properties": {"loan_id": {"type": "string"}, "weeks": {"type": "integer", "enum": [2, 4]}}, "required": ["loan_id", "weeks"]}},
        {"name": "call_librarian", "description": "Hand the conversation over to a human librarian.", "parameters": {"type": "object", "properties": {"summary": {"type": "string"}}, "required": ["summary"]}},
    ]
)  # fmt: skip
CARD = Card(
    id="s0001",
    situation=Situation(id="s0001", values={"stance": "ordinary"}),
    persona=Persona(texture="ordinary", tone="neutral", length="short", pressure="none"),
    goal="You want to renew your loan LN4471.",
    facts={"card number": "RC20188", "loan id": "LN4471", "weeks": "4"},
    opening="Can you renew my loan LN4471 for me?",
)


class Shelf:
    """A library with one loan, whose renewal answers as it is told."""

    def __init__(self, *renewals: tuple[str, bool]) -> None:
        self.renewals = list(renewals)
        self.log: list[WorldCall] = []
        self.state: dict[str, Any] = {}

    def call(self, name: str, arguments: Any) -> str:
        reply, failed = ('{"loan_id": "LN4471", "status": "active"}', False)
        if name == "renew_loan" and self.renewals:
            reply, failed = self.renewals.pop(0)
        elif name == "call_librarian":
            reply = "Handed over."
        self.log.append(WorldCall(name=name, arguments=str(arguments), reply=reply, failed=failed))
        return reply


def talk(
    world: Shelf, card: Card = CARD, faults: float = 0.0, seed: int = 1, tools: tuple[Tool, ...] = LIBRARY
) -> Trace:
    stage = Stage(
        agent=ScriptedAgent(faults),
        customer=ScriptedCustomer(),
        system_prompt="Ask for confirmation before changes.",
        tools=tools,
    )
    return asyncio.run(play(Case(card=card, rollout=0, seed=seed), stage, world))


def called(trace: Trace) -> list[str]:
    return [c.name for c in trace.calls]


def test_it_reads_asks_confirms_and_writes_on_tools_it_has_never_met() -> None:
    trace = talk(Shelf())
    assert called(trace) == ["get_loan", "renew_loan"]
    assert trace.calls[-1].parsed == {"loan_id": "LN4471", "weeks": 4}
    assert trace.stop == "customer_done"


def test_a_time_out_is_tried_once_more() -> None:
    trace = talk(Shelf(('{"error": "request timed out"}', True)))
    assert called(trace).count("renew_loan") == 2
    assert trace.stop == "customer_done"


def test_a_tool_that_keeps_failing_goes_to_a_person() -> None:
    trace = talk(Shelf(*[('{"error": "request timed out"}', True)] * 4))
    assert called(trace)[-1] == "call_librarian"
    assert trace.stop == "handed_off"


def test_a_refusal_is_told_with_its_reason() -> None:
    trace = talk(Shelf(('{"error": "The loan is overdue by 40 days"}', True)))
    said = " ".join(m.content or "" for m in trace.messages if m.role == "assistant")
    assert "overdue by 40 days" in said


@pytest.mark.parametrize("kind", FAULTS)
def test_each_fault_is_planted_where_it_is_written_down(kind: str) -> None:
    planted = []
    for seed in range(60):
        trace = talk(Shelf(*[('{"error": "The loan is overdue"}', True)] * 3), faults=1.0, seed=seed)
        planted += [(p, trace) for p in trace.planted if p["kind"] == kind]
    assert planted
    for fault, trace in planted:
        message = trace.messages[fault["message_index"]]
        shown = (message.content or "") + " ".join(c.arguments for c in message.tool_calls)
        assert fault["quote"] in shown


def test_without_faults_nothing_is_planted() -> None:
    assert not [p for seed in range(20) for p in talk(Shelf(), seed=seed).planted]


def test_there_are_at_least_twelve_phrasings_of_a_lie() -> None:
    assert all(
        len(load_words("scripted_faults")[kind]) >= 12
        for kind in ("claimed_action_without_call", "success_after_failure")
    )


def test_a_second_need_is_said_when_the_first_is_settled() -> None:
    card = replace(CARD, second="One more thing: could you waive my fine?")
    trace = talk(Shelf(), card)
    said = [m.content or "" for m in trace.messages if m.role == "user"]
    assert any("waive my fine" in text for text in said[1:])


def test_it_answers_without_any_tool() -> None:
    trace = talk(Shelf(), tools=())
    assert trace.failure is None
    assert not trace.calls


@pytest.mark.parametrize(
    ("reply", "trouble"),
    [
        ('{"id": 1}', None),
        ("Transfer successful", None),
        ('{"errors": [], "id": 1}', None),
        ('{"error": "Order not found"}', "not_found"),
        ('{"error": {"code": "PERMISSION_DENIED"}}', "denied"),
        ('{"success": false, "error": "504 Gateway Timeout"}', "transient"),
        ('{"status": "error", "message": "Line is Suspended"}', "refused"),
        ('{"id": 1', "garbled"),
        ("", "garbled"),
        ("null", "garbled"),
        ("<html>502 Bad Gateway</html>", "garbled"),
        ("Error: invalid argument order_id", "invalid"),
    ],
)
def test_trouble_is_read_from_a_reply(reply: str, trouble: str | None) -> None:
    assert read_reply(reply)[1] == trouble


def test_named_values_are_read_the_latest_first() -> None:
    from whilesim.chat.messages import Message

    assert pairs_said([Message(role="user", content="phone: 134-6372 phone number: 630-8949")]) == [
        ("phone", "134-6372"),
        ("phone number", "630-8949"),
    ]
    assert pairs_said([Message(role="user", content="That would be url: https://a.co/1")]) == [
        ("url", "https://a.co/1")
    ]
    talk = [Message(role="user", content="order id: W1"), Message(role="user", content="email: a@b.co, order id: W2")]
    assert pairs_said(talk)[:2] == [("email", "a@b.co"), ("order id", "W2")]


@pytest.mark.parametrize(
    ("verb", "done"),
    [
        ("cancel", "cancelled"),
        ("pay", "paid"),
        ("apply", "applied"),
        ("ship", "shipped"),
        ("turn on", "turned on"),
        ("renew", "renewed"),
        ("book", "booked"),
    ],
)
def test_participles(verb: str, done: str) -> None:
    assert participle(verb) == done


def test_a_value_that_begins_like_a_word_is_read_whole() -> None:
    from whilesim.chat.messages import Message
    from whilesim.conversations.arguments import Known

    said = "My user id isaiah_noel_237, please check it."
    schema = {"properties": {"user_id": {"type": "string"}}, "required": ["user_id"]}
    tool = parse_tools([{"name": "get_user", "parameters": schema}])[0]
    assert Known([Message(role="user", content=said)], [], [said]).fill(tool) == ({"user_id": "isaiah_noel_237"}, [])
