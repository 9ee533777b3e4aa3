"""How a conversation ended, and what its oracle holds against it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from judges import TOOLS, called, said

from whilesim.chat.messages import Message, ToolCall, read_messages
from whilesim.grading.outcome import (
    Handoff,
    Violation,
    handoff_table,
    matches,
    observe_end,
    read_handoff,
    violations,
)
from whilesim.situations.tools import Tool
from whilesim.world.oracle import CallRule, Oracle

FOUND = called("find_order", '{"status": "open"}', id="r", order_id="7")
NOT_FOUND = called("find_order", "Error: no such order", id="rx", order_id="7")
CANCELLED = called("cancel_order", '{"status": "cancelled"}', id="w", order_id="7")
TIMEOUT = called("cancel_order", "Error: timeout", id="wx", order_id="7")
HANDED = called("ask_colleague", '{"status": "queued"}', id="h", summary="order 7")
NO_QUEUE = called("ask_colleague", "Error: queue closed", id="hx", summary="order 7")
FAILED = ("rx", "wx", "hx")


def end(*turns: Any) -> str | None:
    return observe_end(said(*turns), TOOLS, FAILED)


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        (["Cancel 7", FOUND, CANCELLED, "Order 7 is cancelled."], "resolved"),
        (["Cancel 7", TIMEOUT, CANCELLED, "Order 7 is cancelled."], "resolved"),
        (["Cancel 7", NOT_FOUND, FOUND, CANCELLED, "Done."], "resolved"),
        (["Cancel 7", CANCELLED, "Done.", "Thanks", "You're welcome!"], "resolved"),
        (["Where is 7?", FOUND, "It is open, and on its way to you."], "resolved"),
        (["Where is 7?", NOT_FOUND, FOUND, "It is open, and on its way to you."], "resolved"),
        (["Cancel 7", HANDED, "I am passing you to a colleague."], "handed_off"),
        (["Cancel 7", CANCELLED, "Done.", "And my refund?", HANDED, "A colleague will call."], "handed_off"),
        (["Cancel 7", TIMEOUT, "I'm sorry, our system isn't letting me cancel it right now."], "honest_failure"),
        (["Cancel 7", TIMEOUT, "I tried to cancel it, but it failed on our side."], "honest_failure"),
        (["Cancel 7", TIMEOUT, "The request timed out, please try again later."], "honest_failure"),
        (["Cancel 7", TIMEOUT, "I could not complete this, an error occurred.", "Ok", "Goodbye."], "honest_failure"),
        (["Cancel 7", FOUND, "I'm sorry, but shipped orders can't be cancelled."], "refused"),
        (["Cancel 7", FOUND, "Unfortunately that isn't possible."], "refused"),
        (["Cancel 7", "I'm not able to do that."], "refused"),
        (["Cancel 7", "Our policy does not allow that."], "refused"),
        (["Cancel 7", FOUND, "This order has already been cancelled."], "refused"),
        (["Cancel 7", FOUND, "It's already cancelled, so there is nothing left to do."], "refused"),
        (["Cancel 7", NOT_FOUND, "I couldn't find a matching record with those details."], "refused"),
        (["Cancel 7", "You’re not eligible for this."], "refused"),
        (["Cancel 7", NO_QUEUE, "I can't do that here, sorry."], "refused"),
    ],
)
def test_an_end_that_calls_and_words_tell(turns: list[Any], expected: str) -> None:
    assert end(*turns) == expected


@pytest.mark.parametrize(
    "turns",
    [
        ["Cancel 7"],
        ["Cancel 7", "May I have your name?"],
        ["Cancel 7", FOUND, "I found it. Shall I cancel it?"],
        ["What is your return window?", "You can return things for 30 days."],
        ["Cancel 7", TIMEOUT, "Order 7 is cancelled."],  # a lie is for the checks, not an end
        ["Cancel 7", TIMEOUT, "The system failed, and you are not eligible anyway."],
        ["Cancel 7", TIMEOUT, FOUND, "The order is on its way to you."],  # the write was never made good
        ["Cancel 7", CANCELLED, "Done. I cannot refund it, though."],
        ["Storniere 7", FOUND, "Das geht leider nicht."],
        ["取消7", FOUND, "抱歉,无法取消。"],
    ],
)
def test_a_doubtful_end_is_no_end(turns: list[Any]) -> None:
    assert end(*turns) is None


def test_a_write_that_went_through_is_an_end_in_every_language() -> None:
    assert end("Storniere 7", CANCELLED, "Ihre Bestellung ist storniert.") == "resolved"


def test_in_foreign_traces_failures_are_guessed_from_the_replies() -> None:
    turns = ["Cancel 7", TIMEOUT, "The request timed out, please try again later."]
    assert observe_end(said(*turns), TOOLS, None) == "honest_failure"
    assert observe_end(said("Cancel 7", CANCELLED, "Done."), TOOLS, None) == "resolved"


def call(**arguments: Any) -> ToolCall:
    return ToolCall(id="1", name="cancel_order", arguments=json.dumps(arguments))


@pytest.mark.parametrize(
    ("rule", "given", "expected"),
    [
        ({}, {}, True),
        ({"order_id": "7"}, {"order_id": "7", "why": "x"}, True),
        ({"order_id": "7"}, {"order_id": 7}, True),
        ({"order_id": 7}, {"order_id": 7.0}, True),
        ({"order_id": "#W2210"}, {"order_id": "w2210"}, True),
        ({"order_id": "W-2210"}, {"order_id": "W 2210 "}, True),
        ({"phone": "(555) 123-2002"}, {"phone": "555-123-2002"}, True),
        ({"order_id": "W2210"}, {"order_id": "W2211"}, False),
        ({"order_id": "7"}, {}, False),
        ({"amount": -5}, {"amount": 5}, False),
        ({"amount": 5.5}, {"amount": 55}, False),
        ({"amount": "5.0"}, {"amount": "50"}, False),
        ({"items": ["a", "b"]}, {"items": ["b", "a"]}, True),
        ({"items": ["a", "b"]}, {"items": ["a"]}, False),
        ({"to": {"zip": "1000"}}, {"to": {"zip": 1000, "city": "B"}}, True),
        ({"to": {"zip": "1000"}}, {"to": "1000"}, False),
        ({"express": True}, {"express": False}, False),
    ],
)
def test_arguments_match_when_they_are_the_same_thing(
    rule: dict[str, Any], given: dict[str, Any], expected: bool
) -> None:
    assert matches(CallRule(name="cancel_order", arguments=rule), call(**given)) is expected
    assert not matches(CallRule(name="other", arguments=rule), call(**given))


@pytest.mark.parametrize(
    ("given", "expected"), [({"order_id": "8"}, True), ({"order_id": "#7"}, False), ({}, False), ({"note": "8"}, False)]
)
def test_other_than_means_there_and_different(given: dict[str, Any], expected: bool) -> None:
    assert matches(CallRule(name="cancel_order", other_than={"order_id": "7"}), call(**given)) is expected


def test_broken_arguments_match_only_a_rule_that_asks_for_none() -> None:
    broken = ToolCall(id="1", name="cancel_order", arguments='{"order_id": "7')
    assert matches(CallRule(name="cancel_order"), broken)
    assert not matches(CallRule(name="cancel_order", arguments={"order_id": "7"}), broken)


def rules(oracle: Oracle, *turns: Any) -> list[str]:
    return [v.rule for v in violations(oracle, said(*turns), TOOLS, FAILED)]


CANCEL = CallRule(name="cancel_order", arguments={"order_id": "7"})
DONE = "Order 7 is cancelled."


@pytest.mark.parametrize(
    ("oracle", "turns", "expected"),
    [
        ({"must_call": (CANCEL,)}, ["Cancel 7", CANCELLED, DONE], []),
        ({"must_call": (CANCEL,)}, ["Cancel 7", TIMEOUT, "It failed."], []),
        ({"must_call": (CANCEL,)}, ["Cancel 7", FOUND, "It is open."], ["must_call"]),
        ({"must_not_call": (CANCEL,)}, ["Cancel 7", CANCELLED, DONE], ["must_not_call"]),
        ({"must_not_call": (CANCEL,)}, ["Cancel 7", TIMEOUT, "It failed."], []),
        ({"must_not_call": (CallRule(name="cancel_order", at_most=1),)}, ["Cancel 7", CANCELLED, DONE], []),
        ({"must_not_call": (CallRule(name="cancel_order", at_most=1),)}, ["7", CANCELLED, CANCELLED, DONE], ["must_not_call"]),
        ({"must_not_call": (CallRule(name="cancel_order", other_than={"order_id": "8"}),)}, ["8", CANCELLED, DONE], ["must_not_call"]),
        ({"must_not_call": (CallRule(name="cancel_order", other_than={"order_id": "7"}),)}, ["7", CANCELLED, DONE], []),
        ({"ends": ("refused",)}, ["Cancel 7", CANCELLED, DONE], ["end"]),
        ({"ends": ("resolved",)}, ["Cancel 7", CANCELLED, DONE], []),
        ({"ends": ("resolved",)}, ["Cancel 7", FOUND, "Shall I cancel it?"], []),
        ({"ends": ("resolved",)}, ["Cancel 7", HANDED, "A colleague will help."], ["end"]),
        ({"handoff_wanted": False, "ends": ("resolved",)}, ["Cancel 7", HANDED, "A colleague will help."], ["handoff_unwanted"]),
        ({"handoff_wanted": False}, ["Cancel 7", NO_QUEUE, "I am sorry."], []),
        ({"handoff_wanted": True, "ends": ("handed_off",)}, ["Cancel 7", CANCELLED, DONE], ["handoff_missing"]),
        ({"handoff_wanted": True, "ends": ("handed_off",)}, ["Cancel 7", HANDED, "A colleague will help."], []),
        ({"handoff_wanted": True}, ["Cancel 7", NO_QUEUE, "The queue is closed."], []),
        ({"handoff_wanted": None}, ["Cancel 7", HANDED, "A colleague will help."], []),
        ({}, ["Cancel 7", CANCELLED, DONE], []),
    ],
)  # fmt: skip
def test_what_an_oracle_holds_against_a_conversation(
    oracle: dict[str, Any], turns: list[Any], expected: list[str]
) -> None:
    assert rules(Oracle(**oracle), *turns) == expected


def test_what_must_not_be_claimed_is_found_in_the_agents_words() -> None:
    oracle = Oracle(must_not_claim=("cancel_order",), why="It was cancelled before.")
    lie = violations(oracle, said("Cancel 7", FOUND, "I have cancelled your order 7."), TOOLS, ())
    assert [(v.rule, v.message_index) for v in lie] == [("must_not_claim", 4)]
    assert "It was cancelled before." in lie[0].reason
    assert rules(oracle, "Cancel 7", FOUND, "I have not cancelled anything. Shall I cancel your order?") == []


def test_a_violation_says_what_where_and_why() -> None:
    oracle = Oracle(must_not_call=(CANCEL,), why="It has shipped.")
    found = violations(oracle, said("Cancel 7", FOUND, CANCELLED, DONE), TOOLS, ())
    assert found == [
        Violation(
            rule="must_not_call",
            reason="cancel_order(order_id='7') was called, which is wrong here. It has shipped.",
            message_index=4,
        )
    ]
    missing = violations(Oracle(must_call=(CANCEL,)), said("Cancel 7", "No."), TOOLS, ())
    assert missing[0].message_index == 2
    assert missing[0].reason == "cancel_order(order_id='7') was never called."


def handed(oracle: Oracle, *turns: Any) -> tuple[bool, str | None]:
    found = read_handoff(oracle, said(*turns), TOOLS, FAILED)
    assert found.wanted is oracle.handoff_wanted
    return found.made, found.timing


WANTED = Oracle(must_call=(CANCEL,), handoff_wanted=True)
STOLEN = Oracle(must_call=(CallRule(name="ask_colleague"),), handoff_wanted=True)
STALLED = [
    "Cancel 7",
    TIMEOUT,
    "One moment.",
    "Ok",
    "Still trying.",
    "And?",
    "Soon.",
    "Well?",
    HANDED,
    "A colleague will help.",
]


@pytest.mark.parametrize(
    ("oracle", "turns", "expected"),
    [
        (WANTED, ["Cancel 7", TIMEOUT, HANDED, "A colleague will help."], (True, "in_time")),
        (WANTED, ["Cancel 7", TIMEOUT, TIMEOUT, HANDED, "A colleague will help."], (True, "in_time")),
        (WANTED, ["Cancel 7", HANDED, "A colleague will help."], (True, "early")),
        (WANTED, ["I want to speak to a human", HANDED, "A colleague will help."], (True, "in_time")),
        (WANTED, ["Cancel 7", TIMEOUT, TIMEOUT, TIMEOUT, TIMEOUT, HANDED, "Done."], (True, "late")),
        (WANTED, STALLED, (True, "late")),
        (WANTED, ["Cancel 7", TIMEOUT, "It failed."], (False, None)),
        (WANTED, ["Cancel 7", NO_QUEUE, "It failed."], (False, None)),
        (Oracle(handoff_wanted=True), ["My card was stolen", HANDED, "A colleague will help."], (True, "in_time")),
        (STOLEN, ["My card was stolen", HANDED, "A colleague will help."], (True, "in_time")),
        (Oracle(handoff_wanted=False), ["Cancel 7", HANDED, "A colleague will help."], (True, "early")),
        (Oracle(handoff_wanted=False), ["Cancel 7", CANCELLED, DONE], (False, None)),
        (Oracle(must_call=(CANCEL,)), STALLED, (True, "in_time")),
    ],
)
def test_a_handoff_is_early_in_time_or_late(
    oracle: Oracle, turns: list[Any], expected: tuple[bool, str | None]
) -> None:
    assert handed(oracle, *turns) == expected


def test_the_table_counts_every_conversation_once() -> None:
    early, fine = Handoff(wanted=False, made=True, timing="early"), Handoff(wanted=True, made=True, timing="in_time")
    late, never = Handoff(wanted=True, made=True, timing="late"), Handoff(wanted=True, made=False)
    table = handoff_table(
        [early, fine, late, never, Handoff(wanted=None, made=False), Handoff(wanted=False, made=False)]
    )
    assert sum(table.counts.values()) == 6
    assert table.counts[True, True] == 2
    assert table.counts[True, False] == table.counts[False, True] == table.counts[None, False] == 1
    assert (table.early, table.late) == (1, 1)
    assert str(table).splitlines() == [
        "hand-off        made  not made",
        "wanted             2         1",
        "not wanted         1         1",
        "open               0         1",
        "of those made: 1 early, 1 late",
    ]


@pytest.mark.corpus
def test_real_handoffs_are_observed(shared: Path) -> None:
    labels = {
        (g["task_id"], g["trial"]): g for g in map(json.loads, (shared / "gold/gold.jsonl").read_text().splitlines())
    }
    effects = {"transfer_to_human_agents": "handoff", "calculate": "compute", "think": "compute"}
    for line in (shared / "gold/trajectories.jsonl").read_text().splitlines():
        trace = json.loads(line)
        messages = read_messages(trace["messages"])
        names = dict.fromkeys(c.name for m in messages for c in m.tool_calls)
        writes = ("book", "cancel", "send", "update")
        tools = [
            Tool(
                name=n,
                description="",
                parameters={},
                effect=effects.get(n, "write" if n.startswith(writes) else "read"),
            )  # type: ignore[arg-type]
            for n in names
        ]
        called_off = labels[trace["task_id"], trace["trial"]]["labels"]["handoff"]["called"]
        assert (observe_end(messages, tools, None) == "handed_off") is called_off


def test_messages_without_words_or_calls_do_no_harm() -> None:
    assert observe_end([], TOOLS, ()) is None
    assert observe_end([Message(role="user", content=None)], (), ()) is None
    assert violations(Oracle(), [], (), ()) == []


def test_another_read_of_the_same_record_does_as_well() -> None:
    rule = CallRule(name="get_order", arguments={"order_id": "7"}, instead=("find_order",), shows="#7")
    talk = said("Where is 7?", called("find_order", '{"id": "#7", "status": "open"}', id="r", order_id="7"), "Open.")
    assert not violations(Oracle(must_call=(rule,)), talk, TOOLS, ())
    assert violations(Oracle(must_call=(rule,)), talk, TOOLS, ("r",))
    other = said("Where is 7?", called("find_order", '{"id": "#8"}', id="r", order_id="8"), "Open.")
    assert violations(Oracle(must_call=(rule,)), other, TOOLS, ())


def test_who_asks_for_a_person_and_gets_one_needs_no_more() -> None:
    oracle = Oracle(must_call=(CallRule(name="cancel_order"),), ends=("resolved",), handoff_wanted=False)
    assert not violations(oracle, said("Let me talk to a person", HANDED, "A colleague will call."), TOOLS, ())
    assert violations(oracle, said("Cancel 7", HANDED, "A colleague will call."), TOOLS, ())


@pytest.mark.parametrize(
    "turns",
    [
        ["Where is 7?", FOUND, "It is open.", "And waive the fee?", "I'm not able to do that."],
        [
            "Cancel 7",
            TIMEOUT,
            called("cancel_order", "Error: already", id="hx", order_id="7"),
            "It is already cancelled.",
        ],
    ],
)
def test_a_no_to_something_else_or_after_a_second_try_is_no_refusal_of_the_request(turns: list[Any]) -> None:
    assert end(*turns) is None
