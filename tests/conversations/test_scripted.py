"""The scripted players: sensible on tools they have never met, wrong only where it is labelled."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from typing import Any

import pytest

from whilesim.cards.cards import Card
from whilesim.cards.facts import say_facts
from whilesim.cards.personas import Persona
from whilesim.chat.messages import Message, ToolCall, Trace
from whilesim.conversations.arguments import Known
from whilesim.conversations.intent import asks_person, open_toolbox
from whilesim.conversations.players import Context
from whilesim.conversations.reading import read_reply, read_results
from whilesim.conversations.rollout import Case, Stage, play
from whilesim.conversations.said import mend, option_said, slips_of, value_said, wanted
from whilesim.conversations.scripted import FAULTS, ScriptedAgent
from whilesim.conversations.scripted_customer import _LOOKS, ScriptedCustomer
from whilesim.conversations.searching import Search
from whilesim.conversations.wording import asked_for, deed_phrase, participle, plain, spoken
from whilesim.core.jsontext import dumps, loads
from whilesim.core.templates import load_words
from whilesim.situations.axes import Situation
from whilesim.situations.tools import Tool, parse_tools
from whilesim.world.mock import MockWorld, WorldCall

GET_LOAN = {"name": "get_loan", "description": "Get the details of a loan.", "parameters": {"type": "object", "properties": {"loan_id": {"type": "string"}}, "required": ["loan_id"]}}  # fmt: skip
LIBRARY = parse_tools(
    [
        {"name": "find_reader", "description": "Find a reader by card number.", "parameters": {"type": "object", "properties": {"card_number": {"type": "string"}}, "required": ["card_number"]}},
        GET_LOAN,
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
        self.shown = '{"loan_id": "LN4471", "status": "active"}'

    def call(self, name: str, arguments: Any) -> str:
        reply, failed = (self.shown, False)
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


@pytest.mark.parametrize(("verb", "status"), [("resume", "active"), ("reopen", "open"), ("dispatch", "on hold")])
def test_what_the_record_shows_as_done_is_not_done_again(verb: str, status: str) -> None:
    tools = parse_tools([GET_LOAN, {**GET_LOAN, "name": f"{verb}_loan", "description": f"{verb} a loan."}])
    card = replace(CARD, goal=f"You want to {verb} your loan.", opening=f"Please {verb} my loan LN4471.")
    world = Shelf()
    world.shown = f'{{"loan_id": "LN4471", "status": "{status}"}}'
    done = "so nothing is left to do|so there is nothing left to do"
    trace = talk(world, card, tools=tools)
    said = " ".join(m.content or "" for m in trace.messages if m.role == "assistant")
    assert bool(re.search(done, said)) is (f"{verb}_loan" not in called(trace)) is (verb != "dispatch")


def test_a_plan_that_the_record_names_already_is_not_set_again() -> None:
    text = {"type": "string"}
    both = {"type": "object", "properties": {"loan_id": text, "shelf_id": text}, "required": ["loan_id", "shelf_id"]}
    tools = parse_tools([GET_LOAN, {"name": "change_shelf", "description": "Change the shelf.", "parameters": both}])
    card = replace(
        CARD,
        goal="You want to change the shelf.",
        opening="Please change the shelf of loan LN4471. The new shelf id is S77120.",
    )
    world = Shelf()
    world.shown = '{"loan_id": "LN4471", "shelf_id": "S77120"}'
    assert "change_shelf" not in called(talk(world, card, tools=tools))
    world.shown = '{"loan_id": "LN4471", "shelf_id": "S10001"}'
    assert "change_shelf" in called(talk(world, card, tools=tools))


def test_a_tool_that_keeps_failing_goes_to_a_person() -> None:
    trace = talk(Shelf(*[('{"error": "request timed out"}', True)] * 4))
    assert called(trace)[-1] == "call_librarian"
    assert trace.stop == "handed_off"


def test_a_refusal_is_told_with_its_reason() -> None:
    trace = talk(Shelf(('{"error": "The loan is overdue by 40 days"}', True)))
    said = " ".join(m.content or "" for m in trace.messages if m.role == "assistant")
    assert "overdue by 40 days" in said


@pytest.fixture(scope="module")
def faulty() -> list[Trace]:
    return [talk(Shelf(*[('{"error": "The loan is overdue"}', True)] * 3), faults=1.0, seed=s) for s in range(30)]


@pytest.mark.parametrize("kind", FAULTS)
def test_each_fault_is_planted_where_it_is_written_down(faulty: list[Trace], kind: str) -> None:
    planted = [(p, trace) for trace in faulty for p in trace.planted if p["kind"] == kind]
    assert planted
    for fault, trace in planted:
        message = trace.messages[fault["message_index"]]
        shown = (message.content or "") + " ".join(c.arguments for c in message.tool_calls)
        assert fault["quote"] in shown


def test_without_faults_nothing_is_planted() -> None:
    assert not [p for seed in range(10) for p in talk(Shelf(), seed=seed).planted]


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


ORDER = {"type": "string", "description": "The order id, such as '#W0000000'."}
ITEM = {"type": "string", "description": "The item id, such as '6086499569'."}
BY = {"type": "object", "oneOf": [{"type": "object", "properties": {n: {"type": "string"}}, "required": [n]} for n in ("vat_id", "email")]}  # fmt: skip
REASON = {"type": "string", "description": "The reason, should be either 'no longer needed' or 'ordered by mistake'."}


@pytest.mark.parametrize(
    ("said", "name", "schema", "value"),
    [
        ("order id: W1, email: a@b.co", "order_id", {}, "W1"),
        ("My order id is #W1984.", "order_id", {}, "#W1984"),
        ("It's about my order #W1984, please look.", "order_id", {}, "#W1984"),
        ("Please cancel my booking G49LSJ.", "booking_ref", {}, "G49LSJ"),
        ("The last four digits are 8963.", "card_last4", {}, "8963"),
        ("The last four digits are 8963. My card id is CRD-05669.", "card_id", {}, "CRD-05669"),
        ("Please cancel my booking, the reference is G49LSJ.", "reference", {}, "G49LSJ"),
        ("please look at #W1984 for me", "order_id", ORDER, "#W1984"),
        ("My user id is bee_suarez_466 and I'm in a hurry", "user_id", {}, "bee_suarez_466"),
        ("my user id isaiah_noel_237, please check it", "user_id", {}, "isaiah_noel_237"),
        ("The new zip code would be 85718 and my zip code is 10001", "zip", {}, "10001"),
        ("The new zip code would be 85718.", "zip", {}, "85718"),
        ("You can reach me under 555-478-9014.", "phone_number", {}, "555-478-9014"),
        ("I was born on 1990-02-01", "date_of_birth", {}, "1990-02-01"),
        ("My name is Ada Low I was born in 1990", "full_name", {}, "Ada Low"),
        ("It came to 213.56 in total.", "amount", {"type": "number"}, 213.56),
        ("that is 4 weeks", "weeks", {"type": "integer"}, 4),
        ("I don't need it any more, no longer needed", "reason", REASON, "no longer needed"),
        ("I ordered it by mistake", "reason", REASON, "ordered by mistake"),
        ("I'm leaving from JFK and going to SEA", "destination", {}, "SEA"),
        ("could you work out 3 + 4?", "expression", {}, "3 + 4"),
        ("The items are 7981043488 and 5076079998, and the payment goes through gift_card_11.", "item_ids", {"type": "array", "items": {"type": "string"}}, ["7981043488", "5076079998"]),
        ("That would be url: https://a.co/1", "url", {}, "https://a.co/1"),
        ("my name is Milton Cardenas If the order is late who pays", "last_name", {}, "Cardenas"),
        ("Return the items now. Zip code 37246.", "item_id", ITEM, None),
        ("My zip code is 37246, the item is 5179405618", "item_id", ITEM, "5179405618"),
        ("I'm ready to take this to your management", "order_id", ORDER, None),
        ("my phone number is 555-478-9014", "line_id", {}, None),
        ("It hasn't been opened.", "opened", {"type": "boolean"}, False),
        ("The deposit hasn't been paid yet.", "deposit_paid", {"type": "boolean"}, False),
        ("The deposit has been paid.", "deposit_paid", {"type": "boolean"}, True),
        ("It isn't fragile.", "is_fragile", {"type": "boolean"}, False),
        ("It has no warranty.", "has_warranty", {"type": "boolean"}, False),
        ("It can't cancel.", "can_cancel", {"type": "boolean"}, False),
        ("Insurance: no.", "insurance", {"type": "boolean"}, False),
        ("It has insurance.", "has_insurance", {"type": "boolean"}, True),
        ("The move out is on 2026-03-06.", "move_out_on", {}, "2026-03-06"),
        ("You'll find it under 555-0182 or a@b.co.", "by", BY, {"email": "a@b.co"}),
        ("The contract ends on 2026-04-04 The new plan would be Pro", "plan_id", {}, None),
        ("I need you to look up the slots.", "to", {"format": "date"}, None),
        ("Send it to a@b.co please", "to", {"format": "email"}, "a@b.co"),
    ],
)  # fmt: skip
def test_a_value_is_read_from_a_sentence(said: str, name: str, schema: dict[str, Any], value: Any) -> None:
    parameters = {"type": "object", "properties": {name: {"type": "string", **schema}}, "required": [name]}
    tool = parse_tools([{"name": "get_record", "parameters": parameters}])[0]
    messages = [Message(role="user", content=said)]
    assert Known(messages, [], [said], said).fill(tool)[0].get(name) == value


def test_the_latest_message_counts_first_and_a_new_value_is_not_the_old_one() -> None:
    text = {"type": "string"}
    tool = parse_tools([{"name": "change_line", "parameters": {"type": "object", "properties": {"line_id": text, "new_line_id": text}, "required": ["line_id", "new_line_id"]}}])[0]  # fmt: skip
    said = ["My line id is L100.", "Sorry, my line id is L200. The new line id would be L300."]
    known = Known([Message(role="user", content=t) for t in said], [], said, said[0])
    assert known.fill(tool)[0] == {"line_id": "L200", "new_line_id": "L300"}


def test_the_words_of_one_argument_that_open_another_name_no_thing() -> None:
    day = {"type": "object", "properties": {"flight_number": {"type": "string"}, "date": {"type": "string"}}}
    day["required"] = ["flight_number", "date"]
    said = ["The flight type is one way. The flights are HAT391 2026-03-06.", "The passengers are Ann Lee 1990-02-01."]
    flights = {"type": "object", "properties": {"flights": {"type": "array", "items": day}}, "required": ["flights"]}
    tool = parse_tools([{"name": "book_flight", "parameters": flights}])[0]
    found = Known((), (), said, said[0]).fill(tool)[0]
    assert found == {"flights": [{"flight_number": "HAT391", "date": "2026-03-06"}]}


def test_one_date_that_was_said_is_not_two() -> None:
    day = {"type": "string", "format": "date"}
    find = {
        "name": "find_slots",
        "parameters": {"type": "object", "properties": {"from": day, "to": day}, "required": ["from"]},
    }
    said = "Which slots are free from 2026-03-09?"
    known = Known([Message(role="user", content=said)], [], [said], said)
    assert known.fill(parse_tools([find])[0]) == ({"from": "2026-03-09"}, [])


def test_a_list_of_dates_is_left_as_it_is_beside_one_date() -> None:
    day = {"type": "string", "format": "date"}
    parameters = {"type": "object", "properties": {"from": day, "to": day, "dates": {"type": "array", "items": day}}}
    said = "Which slots are free? The dates are 2026-03-09 and 2026-03-10."
    known = Known([Message(role="user", content=said)], [], [said], said)
    (tool,) = parse_tools([{"name": "find_slots", "parameters": {**parameters, "required": ["from", "dates"]}}])
    assert known.fill(tool) == ({"from": "2026-03-09", "dates": ["2026-03-09", "2026-03-10"]}, [])


@pytest.mark.parametrize(
    ("said", "stay"),
    [
        (["Move it to 2026-03-06."], {"check_in": "2026-03-06"}),
        (["Move it to 2026-03-06.", "The check out is 2026-03-10."], {"check_in": "2026-03-06", "check_out": "2026-03-10"}),
        (["The new stay would be 2026-03-06 2026-03-10."], {"check_in": "2026-03-06", "check_out": "2026-03-10"}),
        (["Check out 2026-03-06, born on 1990-02-01."], {"check_out": "2026-03-06"}),
        (["The check in is 2026-03-06 and the check out is 2026-03-06."], {"check_in": "2026-03-06", "check_out": "2026-03-06"}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("nested", [True, False])
def test_one_date_that_was_said_does_not_fill_two_required_arguments(
    said: list[str], stay: dict[str, str], nested: bool
) -> None:
    day = {"type": "string", "format": "date"}
    days = {"type": "object", "properties": {"check_in": day, "check_out": day}, "required": ["check_in", "check_out"]}
    parameters = {"type": "object", "properties": {"new_stay": days}, "required": ["new_stay"]} if nested else days
    tool = parse_tools([{"name": "change_booking", "description": "Change a booking.", "parameters": parameters}])[0]
    found, missing = Known([Message(role="user", content=t) for t in said], [], said, said[0]).fill(tool)
    whole = len(stay) == 2
    assert (found, missing) == (
        ({"new_stay": stay} if whole else {}, [] if whole else ["new_stay"])
        if nested
        else (stay, [k for k in ("check_in", "check_out") if k not in stay])
    )


@pytest.mark.parametrize(
    ("name", "key", "phrases"),
    [
        ("mark_deceased", "pet_id", ("mark pet P1 as deceased", "marked as deceased", "pet P1")),
        ("take_deposit", "owner_id", ("take the deposit for owner P1", "taken", "the deposit for owner P1")),
        ("cancel_order", "order_id", ("cancel order P1", "cancelled", "order P1")),
        ("order_new_card", "card_id", ("order the new card for card P1", "ordered", "the new card for card P1")),
    ],
)
def test_a_deed_is_said_by_its_name(name: str, key: str, phrases: tuple[str, str, str]) -> None:
    tool = parse_tools([{"name": name, "parameters": {"type": "object", "properties": {key: {"type": "string"}}}}])[0]
    assert deed_phrase(tool, {key: "P1"}) == phrases


@pytest.mark.parametrize(
    ("name", "schema", "asked"),
    [
        ("to", {"format": "email"}, 'the "to" email address'),
        ("diedOn", {"format": "date"}, 'the "died on" date'),
        ("start_date", {"format": "date"}, "the start date"),
        ("to", {}, "the to"),
    ],
)
def test_an_argument_is_asked_for_in_words(name: str, schema: dict[str, Any], asked: str) -> None:
    assert asked_for(name, {"type": "string", **schema}) == asked


def test_slips_of_the_key_are_put_right_and_values_are_left_alone() -> None:
    slips = slips_of(["number", "cancel", "line"], {"number", "cancel", "line", "lines"})
    assert mend("my nubmer, please cancle the liine at maegan.cancle@x.co", slips) == (
        "my number, please cancel the line at maegan.cancle@x.co"
    )


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


@pytest.mark.parametrize(
    "opening",
    [
        "Please put me through to a person and I'd like to talk to a human, please speak, my person",
        "I want to tallk to a persno about my loans",
    ],
)
def test_who_asks_for_a_person_is_put_through(opening: str) -> None:
    trace = talk(Shelf(), replace(CARD, opening=opening))
    assert called(trace)[-1] == "call_librarian"


def test_a_hand_off_that_asks_for_a_choice_is_given_one() -> None:
    choice = {"type": "string", "enum": ["front_desk", "returns"]}
    schema = {"type": "object", "properties": {"team": choice, "why": {"type": "string"}}, "required": ["team", "why"]}
    desk = {"name": "hand_over", "description": "Hand the conversation over to a human.", "parameters": schema}
    card = replace(CARD, opening="Put me through to a person at returns, please. I want a human.")
    trace = talk(Shelf(), card, tools=parse_tools([desk]))
    assert [loads(c.arguments)["team"] for c in trace.calls] == ["returns"]


def test_a_thing_whose_name_ends_in_ss_is_one() -> None:
    text = {"type": "string"}
    change = {"name": "change_address", "description": "Change an address.", "parameters": {"type": "object", "properties": {"address_id": text}, "required": ["address_id"]}}  # fmt: skip
    card = replace(CARD, goal="You want to change your address.", facts={"address id": "AD4471"}, opening="Please change my address AD4471.")  # fmt: skip
    trace = talk(Shelf(), card, tools=parse_tools([change]))
    assert any("has been changed" in (m.content or "") for m in trace.messages if m.role == "assistant")


def test_a_second_request_is_answered_by_the_rule_it_is_about() -> None:
    card = replace(CARD, second="One more thing: could you waive my fine?")
    stage = Stage(
        agent=ScriptedAgent(0.0),
        customer=ScriptedCustomer(),
        system_prompt="You are the agent of a library.\n\n- Never waive a fine without a supervisor.",
        tools=LIBRARY,
    )
    trace = asyncio.run(play(Case(card=card, rollout=0, seed=1), stage, Shelf()))
    said = " ".join(m.content or "" for m in trace.messages if m.role == "assistant")
    assert "I'm not allowed to waive a fine without a supervisor" in said


@pytest.mark.parametrize(
    ("heard", "asked"),
    [
        ("To help you I need the date, please.", True),
        ("Please provide the bill ID.", True),
        ("What our rules say on this: if you provide a gift card, it must have enough balance.", False),
        ("If it is urgent, please provide the bill ID.", True),
        ("What our rules say on this: I'm not allowed to add checked bags that you don't need.", False),
        ("Our rule on this: a full refund is possible if you need to cancel for health reasons.", False),
    ],
)
def test_a_customer_that_is_told_a_rule_has_not_been_asked(heard: str, asked: bool) -> None:
    assert (_LOOKS["asks"].search(heard) is not None) is asked


@pytest.mark.parametrize("asked", ["Could you tell me the postcode?", "I need your postal code, please."])
def test_a_customer_shares_what_it_has_under_another_word(asked: str) -> None:
    card = replace(CARD, facts={"name": "Ann Lee", "zip": "27668", "zip code": "27668"})
    said = [Message(role="user", content=CARD.opening), Message(role="assistant", content=asked)]
    context = Context(tools=(), case="s0001", seed=1, answer=lambda call: "")
    answer = asyncio.run(ScriptedCustomer().speak(card, said, context)).text
    assert answer.count("27668") == 1
    assert "Ann" not in answer


def test_an_id_of_several_words_still_says_which_tool_is_meant() -> None:
    given = {"list_leaks": ("List the leaks of a meter.", "meter_number"), "get_leak": ("Get one leak.", "leak_number")}
    tools = [
        {
            "name": n,
            "description": told,
            "parameters": {"type": "object", "properties": {a: {"type": "string"}}, "required": [a]},
        }
        for n, (told, a) in given.items()
    ]
    box = open_toolbox(dumps(tools))
    assert box.meant("Can you look up my leak LK-39-1204?") is box.tools["get_leak"]
    meter = box.meant("Please tell me the leaks of a meter. My meter number is MT-7-4412.")
    assert meter is box.tools["list_leaks"]


def test_who_has_an_account_is_whoever_the_tools_keep_a_record_of() -> None:
    tools = [
        {"name": "get_tenant_file", "parameters": {"type": "object", "properties": {"tenant_id": {"type": "string"}}}}
    ]
    assert open_toolbox(dumps(tools)).meant("Look up my account, please.") is not None


LEAK = parse_tools([{
    "name": "report_leak",
    "description": "Report a leak.",
    "parameters": {
        "type": "object", "required": ["spot"],
        "properties": {
            "spot": {"type": "object", "required": ["day", "floor"], "properties": {"day": {"type": "string", "format": "date"}, "floor": {"type": "string"}}},
            "send_to": {"type": "object", "properties": {"street": {"type": "string"}, "postcode": {"type": "string"}}},
        },
    },
}])[0]  # fmt: skip


def test_the_parts_of_a_group_are_said_and_read_one_by_one_and_ones_own_postcode_is_no_address() -> None:
    focus = MockWorld([LEAK], None, {"tool": "report_leak"}, 3).focus
    told = {n: v for n, v in focus.facts.items() if n.startswith("spot")}
    assert [*told] == ["spot day", "spot floor"]
    said = f"My zip code is 33675. {say_facts(told.items())}"
    found, missing = Known([Message(role="user", content=said)], [], [said], said).fill(LEAK)
    assert (found, missing) == ({"spot": focus.arguments["spot"]}, [])


READERS = parse_tools(
    [
        {"name": "find_member", "description": "Find a member by email.", "parameters": {"type": "object", "properties": {"email": {"type": "string"}}, "required": ["email"]}},
        GET_LOAN,
        {"name": "renew_loan", "description": "Renew a loan.", "parameters": {"type": "object", "properties": {"loan_id": {"type": "string"}}, "required": ["loan_id"]}},
        {"name": "list_branches", "description": "List the branches.", "parameters": {"type": "object", "properties": {}}},
    ]
)  # fmt: skip


def next_step(messages: list[Message], tools: tuple[Tool, ...]) -> Message:
    context = Context(tools=tuple(t.to_openai() for t in tools), case="s0001", seed=1, answer=lambda call: "")
    return asyncio.run(ScriptedAgent(0.0).answer(messages, context))[0]


@pytest.mark.parametrize(
    ("rule", "checks"),
    [
        ("Verify the member's identity before you change a loan.", True),
        ("You must first identify the member.", True),
        ("Authenticate the user by email, even if they give a loan number.", True),
        ("Members are already authenticated, so you must not ask who they are.", False),
        ("Always identify the cause before you renew a loan.", False),
        ("Verify that the loan is not overdue before you renew it.", False),
        ("Tell the member about identity theft insurance.", False),
        ("Never ask for proof of identity.", False),
    ],
)
def test_a_rule_to_identify_is_kept_before_anything_is_looked_up_or_changed(rule: str, checks: bool) -> None:
    messages = [Message(role="system", content=f"You work for a library.\n\n- {rule}\n")]
    messages += [Message(role="user", content="Can you renew my loan LN4471?")]
    step = next_step(messages, READERS)
    asked = not step.tool_calls and "email" in (step.content or "")
    assert asked is checks
    if not checks:
        return
    messages += [step, Message(role="user", content="My email is jo.doe12@example.com.")]
    call = next_step(messages, READERS)
    assert [c.name for c in call.tool_calls] == ["find_member"]
    messages += [call, Message(role="tool", content='{"member_id": "M1"}', tool_call_id=call.tool_calls[0].id)]
    assert [c.name for c in next_step(messages, READERS).tool_calls] == ["get_loan"]


def test_who_cannot_be_identified_is_asked_once_and_a_list_of_everything_needs_nobody() -> None:
    messages = [Message(role="system", content="You work for a library.\n\n- You must first identify the member.\n")]
    lists = [*messages, Message(role="user", content="Can you list the branches?")]
    assert [c.name for c in next_step(lists, READERS).tool_calls] == ["list_branches"]
    messages += [Message(role="user", content="Can you renew my loan LN4471?")]
    messages += [next_step(messages, READERS), Message(role="user", content="I don't have that at hand.")]
    assert [c.name for c in next_step(messages, READERS).tool_calls] == ["get_loan"]


@pytest.mark.parametrize(
    ("said", "option"),
    [
        ("Switch the roaming off. I was born on 1983-05-21.", "off"),
        ("Switch the roaming off. It is on my line.", "off"),
        ("Turn on the roaming for my line.", "on"),
        ("I want it on, please.", "on"),
    ],
)
def test_a_preposition_is_no_option(said: str, option: str) -> None:
    assert option_said([said], wanted("status", {"enum": ["on", "off"]})) == option


def test_no_word_is_said_twice_in_an_arguments_name() -> None:
    assert [plain(n) for n in ("zip_code", "new_zip_code", "zip")] == ["zip code", "new zip code", "zip code"]


def test_an_option_is_said_in_words_and_an_identifier_as_it_is() -> None:
    assert spoken("one_way", "flight_type") == "one way"
    assert spoken({"cabin": "basic_economy", "user_id": "mia_li"}) == "cabin basic economy, user ID mia_li"
    assert [spoken(v, "note") for v in (True, None, "a_b1", ["x"])] == ["yes", "none", "a_b1", "x"]


@pytest.mark.parametrize(
    ("name", "phrases"),
    [
        ("upgrade_to_vip", ("upgrade ticket T1 to vip", "upgraded to vip", "ticket T1")),
        ("freeze_ticket", ("freeze ticket T1", "frozen", "ticket T1")),
        ("resend_ticket", ("resend ticket T1", "resent", "ticket T1")),
        ("refund_ticket", ("refund ticket T1", "refunded", "ticket T1")),
    ],
)
def test_a_deed_that_goes_somewhere_says_where(name: str, phrases: tuple[str, str, str]) -> None:
    arguments = {"ticket_id": {"type": "string"}}
    tool = parse_tools([{"name": name, "parameters": {"type": "object", "properties": arguments}}])[0]
    assert deed_phrase(tool, {"ticket_id": "T1"}) == phrases


def test_a_free_text_ends_where_the_next_fact_begins() -> None:
    reason, name = wanted("reason", {}), wanted("name", {})
    said = "My reason: costs too much and my zip code is 12284"
    assert value_said([said], reason) == "costs too much"
    assert value_said(["My reason: it is loud and the door is broken"], name) is None
    question = Message(role="assistant", content="Could you give me the reason?")
    answer = Message(role="user", content="It is too loud at night. My name is Chet Huber.")
    messages = [Message(role="user", content="Freeze it."), question, answer]
    assert Known(messages, [], [m.content or "" for m in messages if m.role == "user"], "")._answer(reason) == (
        "too loud at night"
    )


def test_a_read_without_required_arguments_is_not_made_with_none() -> None:
    either = {"type": "object", "properties": {"member_id": {"type": "string"}, "email": {"type": "string"}}}
    tools = parse_tools([{"name": "find_member", "description": "Find a member by id or email.", "parameters": either}])
    bare = [Message(role="user", content="Can you look up my account?")]
    assert "member ID" in (next_step(bare, tools).content or "")
    told = [Message(role="user", content="Can you look up my account? My email is jo.doe12@example.com.")]
    assert next_step(told, tools).tool_calls[0].parsed == {"email": "jo.doe12@example.com"}


@pytest.mark.parametrize(
    ("said", "asks"),
    [
        ("I'd rather discuss the refund with a person.", True),
        ("Can I sort this out with one of your colleagues?", True),
        ("I'd like to discuss the refund with my wife.", False),
        ("I discussed it with the person who lives here.", False),
    ],
)
def test_who_wants_to_discuss_with_a_person_asks_for_one(said: str, asks: bool) -> None:
    assert asks_person(said) is asks


def test_what_is_corrected_takes_the_new_value_and_not_the_customers_own() -> None:
    both = {"ticket_id": {"type": "string"}, "name": {"type": "string"}}
    parameters = {"type": "object", "properties": both, "required": ["ticket_id", "name"]}
    tools = parse_tools([{"name": "correct_name", "description": "Correct a name.", "parameters": parameters}])
    said = ["Can you correct the name for my ticket TK-1234?"]
    assert Known([], [], said, said[0]).fill(tools[0]) == ({"ticket_id": "TK-1234"}, ["name"])
    said.append("My name is Ann Low. The new name would be Joe Finn.")
    assert Known([], [], said, said[0]).fill(tools[0]) == ({"ticket_id": "TK-1234", "name": "Joe Finn"}, [])


def test_what_the_customer_gave_before_is_no_text() -> None:
    note = {"type": "string", "description": "What is wrong"}
    tool = parse_tools([{"name": "report_fault", "parameters": {"type": "object", "properties": {"details": note}, "required": ["details"]}}])[0]  # fmt: skip
    said = ["Please report a fault.", "As I said: my name is Ada Low. It makes a noise."]
    talked = [
        Message(role="user", content=said[0]),
        Message(role="assistant", content="Could you give me the details?"),
    ]
    known = Known([*talked, Message(role="user", content=said[1])], [], said, said[0])
    assert known.fill(tool)[0] == {"details": "It makes a noise"}


CALLERS = parse_tools([
    {"name": "find_reader", "description": "Find a reader.", "parameters": {"type": "object", "properties": {"card_number": {"type": "string"}}, "required": ["card_number"]}},
    {"name": "schedule_callback", "description": "Have a librarian call back.", "parameters": {"type": "object", "properties": {"topic": {"type": "string"}}, "required": ["topic"]}},
    {"name": "call_librarian", "description": "Hand the conversation over to a human librarian.", "parameters": {"type": "object", "properties": {"summary": {"type": "string"}}, "required": ["summary"]}},
])  # fmt: skip


PLACE = {"type": "object", "properties": {n: {"type": "string"} for n in ("street", "town", "postcode")}}


@pytest.mark.parametrize(
    ("name", "schema", "said", "value"),
    [
        ("new_address", PLACE, "The new address would be 2 Elm Road, Leeds, LS1 4AP.", {"street": "2 Elm Road", "town": "Leeds", "postcode": "LS1 4AP"}),
        ("new_address", PLACE, "The new address would be somewhere, far, away.", None),
        ("reading", {"type": "integer"}, "The reading is 20412.", 20412),
    ],
)  # fmt: skip
def test_what_is_submitted_is_read_as_it_is_said(name: str, schema: dict[str, Any], said: str, value: Any) -> None:
    parameters = {"type": "object", "properties": {name: schema}, "required": [name]}
    tool = parse_tools([{"name": "submit_reading", "description": "Submit it.", "parameters": parameters}])[0]
    assert Known([Message(role="user", content=said)], [], [said], said).fill(tool)[0].get(name) == value


@pytest.mark.parametrize("code", ["403", "404", "502", "400", "422"])
def test_digits_of_an_id_are_no_status(code: str) -> None:
    assert read_reply(f'{{"error": "Contract BL-{code}848 does not exist"}}')[1] == "not_found"
    assert read_reply(f'{{"error": "{code}"}}')[1] is not None


@pytest.mark.parametrize(("topic", "again"), [("late fine", False), ("lost book", True)])
def test_what_a_reply_lists_as_made_is_not_made_again(topic: str, again: bool) -> None:
    asked = "Please schedule a callback. My card number is RC20188. The topic is late fine."
    read = ToolCall(id="c1", name="find_reader", arguments='{"card_number": "RC20188"}')
    shown = dumps({"card_number": "RC20188", "callbacks": [{"callback_id": "CB1", "topic": topic}]})
    messages = [Message(role="user", content=asked), Message(role="assistant", tool_calls=(read,))]
    step = next_step([*messages, Message(role="tool", content=shown, tool_call_id="c1")], CALLERS)
    assert ("Shall I" in (step.content or "") or "go ahead" in (step.content or "")) is again
    assert ("callback ID CB1" in (step.content or "")) is not again


def test_a_look_up_that_is_denied_is_not_made_up_for_by_questions() -> None:
    class Denied(Shelf):
        def call(self, name: str, arguments: Any) -> str:
            if name != "list_loans":
                return super().call(name, arguments)
            reply = '{"error": "Permission denied"}'
            self.log.append(WorldCall(name=name, arguments=str(arguments), reply=reply, failed=True))
            return reply

    tools = parse_tools([
        {"name": "list_loans", "description": "List the loans of a reader.", "parameters": {"type": "object", "properties": {"reader_id": {"type": "string"}}, "required": ["reader_id"]}},
        GET_LOAN, {**GET_LOAN, "name": "renew_loan", "description": "Renew a loan."}, LIBRARY[-1].original,
    ])  # fmt: skip
    card = replace(CARD, facts={"reader id": "RD4471"}, opening="Can you renew my loan? My reader id is RD4471.")
    trace = talk(Denied(), card, tools=tools)
    assert called(trace)[-1] == "call_librarian"
    assert sum("loan ID" in (m.content or "") for m in trace.messages if m.role == "assistant") == 1


FIELD = parse_tools([{"name": "update_owner_field", "description": "Update one field of an owner.", "parameters": {"type": "object", "properties": {"owner_id": {"type": "string"}, "field": {"type": "string", "enum": ["email", "phone", "vet", "size"]}, "new_value": {"type": "string"}}, "required": ["owner_id", "field", "new_value"]}}])  # fmt: skip


def test_a_field_and_its_new_value_are_two_arguments_that_a_customer_says_as_one() -> None:
    told = ["Please update my record. My email is ada@example.com.", "My new phone is 555-101-2020."]
    found, missing = Known([], [], told, told[0]).fill(FIELD[0])
    assert (found["field"], found["new_value"], missing) == ("phone", "555-101-2020", ["owner_id"])
    own = Known([], [], ["My phone is 555-101-2020. My new size would be large."], "").fill(FIELD[0])[0]
    assert (own["field"], own["new_value"]) == ("size", "large")


@pytest.mark.parametrize(
    ("name", "given", "done"),
    [
        ("update_owner_field", {"field": "vet", "new_value": "Dr. Low"}, True),
        ("update_owner_field", {"field": "vet", "new_value": "Dr. High"}, False),
        ("remove_owner_dog", {"dog": "Rex"}, False),
        ("change_owner_dog", {"dog": "Rex", "new_age": 4}, True),
        ("change_owner_dog", {"dog": "Ida", "new_age": 4}, False),
    ],
)
def test_what_a_record_says_already_is_done_but_for_what_is_to_be_taken_out_of_it(
    name: str, given: dict[str, Any], done: bool
) -> None:
    kind = {str: "string", int: "integer"}
    read, write = ({"name": n, "description": "", "parameters": {"type": "object", "properties": {"owner_id": {"type": "string"}, **{k: {"type": kind[type(v)]} for k, v in more.items()}}, "required": ["owner_id", *more]}} for n, more in (("get_owner", {}), (name, given)))  # fmt: skip
    tools = parse_tools([read, write])
    shown = dumps({"owner_id": "O77", "vet": "Dr. Low", "dogs": [{"dog": "Rex", "age": 4}, {"dog": "Ida", "age": 9}], "dog": "Rex"})  # fmt: skip
    call = ToolCall(id="c1", name="get_owner", arguments='{"owner_id": "O77"}')
    messages = [Message(role="user", content="Owner O77, please."), Message(role="assistant", tool_calls=(call,)), Message(role="tool", tool_call_id="c1", content=shown)]  # fmt: skip
    known = Known(messages, read_results(messages), ["Owner O77, please."], "")
    found = Search({t.name: t for t in tools}, known).already(tools[1], {"owner_id": "O77", **given})
    assert bool(found) is done


def test_a_queue_is_the_one_spoken_of_else_a_general_one_else_not_always_the_first() -> None:
    def chosen(options: list[str], said: str) -> str:
        (person,) = parse_tools([{"name": "transfer_to_human", "description": "Hand over.", "parameters": {"type": "object", "properties": {"queue": {"type": "string", "enum": options}}, "required": ["queue"]}}])  # fmt: skip
        return str(Known([], [], [said], said).fill(person)[0]["queue"])

    assert chosen(["billing", "technical", "general"], "My billing address is wrong.") == "billing"
    assert chosen(["billing", "technical", "general"], "I would like a word.") == "general"
    assert len({chosen(["billing", "technical", "sales"], f"I am cross, {n} times.") for n in range(9)}) > 1
