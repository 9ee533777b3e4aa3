"""What a policy says of records in plain sentences: their fields, when a deed is allowed, and what day it is."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest
from world_sets import tool

from whilesim.situations.policy import Policy, parse_policy
from whilesim.situations.tools import Tool
from whilesim.world.attributes import read_policy_facts
from whilesim.world.entities import infer_world
from whilesim.world.mock import MockWorld

POLICY = """# Depot

Each customer has: customer ID, name, e-mail address and phone number. Each crate contains a crate ID, the customer,
a size (small, medium, or large), the number of seals, an owner name and planned return date, a monthly price, bottles (each with a label, a
quantity and a unit price), and a status: stored, on loan, sealed, or cancelled.

- A crate can only be cancelled while its status is stored.
- Crates that are on loan or cancelled can't be updated.
"""
TOOLS = [
    tool("get_crate", crate_id="string"),
    tool("list_crates", customer_id="string", status={"type": "string", "enum": ["stored", "on loan", "sealed", "cancelled"]}, required=["customer_id"]),
    tool("cancel_crate", effect="write", crate_id="string"),
    tool("update_crate", effect="write", crate_id="string", label="string"),
    tool("repair_crate", "Repair a crate.", "write", crate_id="string"),
    tool("change_return_date", effect="write", crate_id="string", new_date={"type": "string", "format": "date"}),
    tool("mark_crate_sealed", "Sets the status of the crate to sealed.", "write", crate_id="string"),
]  # fmt: skip


def read(text: str) -> Policy:
    return parse_policy(text, tools=TOOLS)


def play(world: MockWorld, name: str, **arguments: Any) -> tuple[Any, bool]:
    reply = world.call(name, arguments)
    return (None if world.log[-1].failed else json.loads(reply)), bool(world.log[-1].failed)


def world_of(name: str, seed: int = 1) -> MockWorld:
    return MockWorld(TOOLS, read(POLICY), {"tool": name}, seed)


def test_a_sentence_that_lists_attributes_is_read_like_bullets():
    kinds = infer_world(TOOLS, read(POLICY)).kinds
    assert {"name", "email_address", "phone_number"} <= set(kinds["customer"].fields)
    crate = kinds["crate"].fields
    assert crate["size"].options == ("small", "medium", "large")
    assert crate["status"].options == ("stored", "on loan", "sealed", "cancelled")
    assert (crate["seals"].role, crate["monthly_price"].role, crate["bottles"].role) == ("count", "money", "items")
    assert [i.name for i in crate["bottles"].inner] == ["label", "quantity", "unit_price"]
    assert {"owner_name", "planned_return_date"} <= set(crate)
    assert "customer" not in crate  # the tools say how an owner is named


@pytest.mark.parametrize(
    "said", ["Each agent has patience and time.", "Every request has to be logged, checked, and then closed by the agent who took it."]
)  # fmt: skip
def test_another_sentence_lists_no_attributes(said):
    assert not read_policy_facts(said).attributes


@pytest.mark.parametrize(
    "said",
    [
        "Today is Tuesday, 12 May 2026, 10:00.",
        "The date is 12 May 2026, 10:00.",
        "Current date: 2026-05-12 10:00",
        "It is 2026-05-12 10:00.",
        "Today's date is May 12, 2026 at 10:00.",
        "The current time is 2026-05-12 10:00:00 EST.",
    ],
)
def test_a_policy_says_what_day_it_is_as_people_write_it(said):
    assert read_policy_facts(said).now == dt.datetime(2026, 5, 12, 10)


@pytest.mark.parametrize(
    "said", ["It is before 2026-05-12 that this applied.", "Today is a good day.", "Current date: 2026-13-45"]
)
def test_a_policy_that_names_no_such_day_says_none(said):
    assert read_policy_facts(said).now is None


def test_a_rule_in_a_sentence_says_in_which_status_a_deed_is_done():
    deeds = infer_world(TOOLS, read(POLICY)).deeds
    assert deeds["cancel_crate"].before == ("stored",)
    assert deeds["update_crate"].before == ("stored", "sealed")
    assert deeds["repair_crate"].before == ("stored", "on loan", "sealed")  # no rule speaks of it
    assert deeds["change_return_date"].before == ("stored", "on loan", "sealed")  # nothing is moved that was called off


def test_a_rule_about_something_else_says_nothing():
    text = POLICY.replace(
        "A crate can only be cancelled while its status", "A lease can only be cancelled while its status"
    )
    assert infer_world(TOOLS, read(text)).deeds["cancel_crate"].before == ()


def test_what_a_rule_does_not_allow_is_refused():
    world = world_of("cancel_crate")
    key = world.focus.arguments["crate_id"]
    assert play(world, "get_crate", crate_id=key)[0]["status"] == "stored"
    assert not play(world, "cancel_crate", crate_id=key)[1]
    assert play(world, "change_return_date", crate_id=key, new_date="2026-05-20")[1]


def test_a_status_in_a_tools_name_that_it_leads_to_is_no_condition():
    world = world_of("mark_crate_sealed")
    key = world.focus.arguments["crate_id"]
    assert not play(world, "mark_crate_sealed", crate_id=key)[1]
    assert play(world, "mark_crate_sealed", crate_id=key)[1]


def test_a_new_value_is_written_to_the_field_that_the_tools_name_tells_of():
    text = POLICY.replace("planned return date", "promised return date")
    world = MockWorld(TOOLS, read(text), {"tool": "change_return_date"}, 1)
    key = world.focus.arguments["crate_id"]
    after = play(world, "change_return_date", crate_id=key, new_date="2026-05-20")[0]
    assert after["promised_return_date"] == "2026-05-20"
    assert "date" not in after


def test_a_list_of_one_is_a_list():
    world = world_of("list_crates")
    owner = world.focus.arguments["customer_id"]
    rows, _ = play(world, "list_crates", customer_id=owner)
    for status in {r["status"] for r in rows} & {"stored", "on loan", "sealed", "cancelled"}:
        found, _ = play(world, "list_crates", customer_id=owner, status=status)
        assert [r["status"] for r in found] == [status] * len(found)
    none = next((s for s in ("stored", "on loan", "sealed") if s not in {r["status"] for r in rows}), "")
    assert not none or play(world, "list_crates", customer_id=owner, status=none) == ([], False)


def test_a_quote_is_computed_from_what_it_is_for():
    quote = tool(
        "calculate_rent", effect="compute", size={"type": "string", "enum": ["small", "large"]}, weeks="number"
    )
    world = MockWorld([*TOOLS, quote], read(POLICY), {"tool": "calculate_rent"}, 1)
    one, two = (play(world, "calculate_rent", size="small", weeks=n)[0]["result"] for n in (1, 2))
    assert 0 < one < two
    assert play(world, "calculate_rent", size="small", weeks=1)[0]["result"] == one


def test_a_number_of_digits_shapes_what_is_made():
    look = tool(
        "look_up_customer",
        "Look up a customer.",
        card_number={"type": "string", "description": "Card number, 8 digits"},
    )
    made = MockWorld([*TOOLS, look], read(POLICY), {"tool": "look_up_customer"}, 1).focus.arguments["card_number"]
    assert made.isdigit()
    assert len(made) == 8


def test_a_search_by_name_is_no_read_of_one_record():
    told = POLICY + "\nEach hall has a hall ID, a name, a town, and a rating.\n"
    words = {"name": {"type": "string"}, "town": {"type": "string"}}
    search = Tool(
        name="search_halls",
        description="Search halls.",
        parameters={"type": "object", "properties": words},
        effect="read",
    )
    deed = infer_world([*TOOLS, search], read(told)).deeds["search_halls"]
    assert (deed.action, deed.by) == ("find", {"name": "name", "town": "town"})


LIST = "Each order has the following attributes:\n\n- order ID\n- status (pending, shipped, delivered, cancelled)\n- total\n\n"


@pytest.mark.parametrize(
    "said",
    [
        "Unless an order is pending, it cannot be cancelled.",
        "If the refund is pending, it cannot be cancelled by the order desk.",
        "Once an order is shipped and the customer is pending, it cannot be cancelled without a fee.",
    ],
)
def test_a_rule_that_hangs_on_more_than_the_status_sets_no_status(said: str) -> None:
    cancel = tool("cancel_order", effect="write", order_id="string")
    model = infer_world([cancel], parse_policy(LIST + said, tools=[cancel]))
    assert model.deeds["cancel_order"].before == ()


@pytest.mark.parametrize(
    "said",
    [
        "All orders have to be confirmed, paid and shipped within three days.",
        "Every order has a right of return, a warranty, and a receipt.",
        "All orders have free shipping, gift wrap, and tracking.",
        "All customers have to confirm their identity, verify their e-mail, and accept the terms.",
        "Each passenger has one carry-on bag, one personal item, and one checked bag.",
        "All agents have access to the CRM, the phone system, and the order tool.",
    ],
)
def test_a_sentence_that_lists_no_fields_adds_none_and_takes_none_away(said: str) -> None:
    assert read_policy_facts(LIST + said).attributes.keys() == {"order"}
    assert read_policy_facts(LIST + said).attributes["order"] == read_policy_facts(LIST).attributes["order"]


@pytest.mark.parametrize(("given", "result"), [({"expression": "100*3"}, "300"), ({"expression": "7/2", "precision": 2}, "3.5")])  # fmt: skip
def test_a_sum_is_worked_out_beside_other_arguments(given: dict[str, Any], result: str) -> None:
    whole = {"expression": {"type": "string"}, "precision": {"type": "integer"}}
    calculate = tool("calculate", "Calculate the value of a sum.", "compute", required=["expression"], **whole)
    assert MockWorld([calculate], read(POLICY), {"tool": "calculate"}, 1).call("calculate", given) == result


def test_fields_may_have_articles() -> None:
    found = read_policy_facts("# Shop\n\nEach order has a number, a status and a total.\n").attributes
    assert [a.name for a in found["order"]] == ["number", "status", "total"]


@pytest.mark.parametrize(
    "said",
    [
        "Once an order is shipped or delivered it cannot be cancelled.",
        "If an order is shipped or delivered it cannot be cancelled.",
        "If the customer asks to cancel, an order can only be cancelled if it is pending.",
        "Orders that are shipped or delivered cannot be cancelled without exception.",
        "Orders that are shipped or delivered cannot be cancelled, even if the customer insists.",
    ],
)
def test_a_rule_of_the_status_alone_sets_it_in_many_words(said: str) -> None:
    cancel = tool("cancel_order", effect="write", order_id="string")
    model = infer_world([cancel], parse_policy(LIST + said, tools=[cancel]))
    assert model.deeds["cancel_order"].before == ("pending",)


@pytest.mark.parametrize(
    "said",
    [
        "Each flight has an origin, a destination and a departure time.",
        "Each order has total, status and items.",
        "Each account has access level, email and name.",
        "Each booking has an ID and a room.",
        "Each pet has a name, a breed and an age.",
    ],
)
def test_a_list_of_fields_needs_one_known_word(said: str) -> None:
    assert len(next(iter(read_policy_facts(f"# X\n\n{said}\n").attributes.values()))) > 1


@pytest.mark.parametrize(
    "given",
    [
        {"check_in": "2026-05-12", "check_out": "2026-05-14", "guests": 2},
        {"phone": "555-0144", "days": 2},
        {"price": 20, "discount": "10%"},
        {"size": "10-20", "weight": 2},
    ],
)
def test_dates_numbers_and_shares_are_no_sums(given: dict[str, Any]) -> None:
    kinds = {k: {"type": "string" if isinstance(v, str) else "number"} for k, v in given.items()}
    quote = tool("quote_stay", "Work out a price.", "compute", **kinds)
    reply = json.loads(MockWorld([quote], read(POLICY), {"tool": "quote_stay"}, 1).call("quote_stay", given))
    assert 0 < reply["result"] < 10_000
