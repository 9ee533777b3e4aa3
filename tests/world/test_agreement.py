"""Records that nobody would call impossible: two ends differ, parts add up, nested records say what their parents say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from world_sets import SETS, open_set, tool

from whilesim.situations.policy import parse_policy
from whilesim.situations.tools import Tool
from whilesim.world.focus import _telling
from whilesim.world.kinds import Field, key_noun, other_ends, partners
from whilesim.world.mock import MockWorld
from whilesim.world.values import Draw, set_apart


def rows(**fields: Any) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "object", "properties": fields}}


def a_set(kind: str, reply: dict[str, Any], **made_of: Any) -> list[Tool]:
    """Tools to read, list, make and cancel records of one kind, and the customer whom they belong to."""
    shown = {"type": "object", "properties": {f"{kind}_id": TEXT, "customer_id": TEXT, **reply}}
    return [
        replace(tool(f"get_{kind}", **{f"{kind}_id": "string"}), returns=shown),
        tool(f"list_{kind}s", customer_id="string"),
        tool(f"cancel_{kind}", f"Cancel a {kind}.", "write", **{f"{kind}_id": "string"}),
        tool(f"book_{kind}", f"Book a {kind}.", "write", customer_id="string", **made_of),
        tool("get_customer", customer_id="string"),
    ]


TEXT, NUMBER, COUNT, CLOCK = (
    {"type": "string"},
    {"type": "number"},
    {"type": "integer"},
    {"type": "string", "format": "time"},
)
WAY = {"from_station": TEXT, "to_station": TEXT}
STOP = {"type": "object", "properties": {"city": TEXT, "time": CLOCK}}
RENTAL = a_set("rental", {"pick_up_location": TEXT, "drop_off_location": TEXT, "start_time": CLOCK, "end_time": CLOCK},
               pick_up_location=TEXT, drop_off_location=TEXT, start_time=CLOCK, end_time=CLOCK)  # fmt: skip
TRIP = a_set("trip", {**WAY, "segments": rows(**WAY, departure_time=CLOCK, arrival_time=CLOCK), "departure": STOP, "arrival": STOP},
             **WAY, segments=rows(**WAY))  # fmt: skip
ORDER = a_set("order", {"subtotal": NUMBER, "tax": NUMBER, "discount_amount": NUMBER, "total": NUMBER,
                        "items": rows(name=TEXT, quantity=COUNT, unit_price=NUMBER, total=NUMBER)}, reason=TEXT)  # fmt: skip
BANK = """
Each account has:
- account ID
- customer ID
- balance

Each transfer has:
- transfer ID
- from account ID
- to account ID
- amount
- created date
"""
TRANSFER = [tool("get_transfer", transfer_id="string"), tool("get_account", account_id="string"), tool("get_customer", customer_id="string"),
            tool("transfer_money", "Transfer money.", "write", from_account_id="string", to_account_id="string", amount="number")]  # fmt: skip


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("state", ["exists", "duplicate"])
def test_the_two_ends_of_a_rental_a_trip_and_a_transfer_differ(seed: int, state: str) -> None:
    for kind, tools in (("rental", RENTAL), ("trip", TRIP)):
        world = MockWorld(tools, None, {"tool": f"cancel_{kind}", "world_state": state}, seed)
        for record in world.records[kind].values():
            for first, last in partners(tuple(record)):
                assert record[first] != record[last]
                assert "time" not in first or record[first] < record[last]
        for trip in world.records.get("trip", {}).values():
            assert trip["departure"]["city"] != trip["arrival"]["city"]
            assert trip["departure"]["time"] < trip["arrival"]["time"]
        asked = MockWorld(tools, None, {"tool": f"book_{kind}"}, seed).focus.arguments
        assert all(asked[first] != asked[last] for first, last in partners(tuple(asked)))
    world = MockWorld(TRANSFER, BANK, {"tool": "transfer_money"}, seed)
    assert all(t["from_account_id"] != t["to_account_id"] for t in world.records["transfer"].values())
    assert world.focus.arguments["from_account_id"] != world.focus.arguments["to_account_id"]
    world.call("transfer_money", world.focus.arguments)
    assert not world.log[-1].failed


@pytest.mark.parametrize("state", ["exists", "duplicate"])
def test_the_legs_of_a_trip_lead_from_where_it_starts_to_where_it_ends(state: str) -> None:
    legs = 0
    for seed in range(4):
        world = MockWorld(TRIP, None, {"tool": "cancel_trip", "world_state": state}, seed)
        for trip in world.records["trip"].values():
            way = [leg[end] for leg in trip["segments"] for end in WAY]
            assert (way[0], way[-1]) == (trip["from_station"], trip["to_station"])
            assert way[1:-1:2] == way[2:-1:2]
            clock = [leg[t] for leg in trip["segments"] for t in ("departure_time", "arrival_time")]
            assert clock == sorted(set(clock))
            legs = max(legs, len(trip["segments"]))
        asked = MockWorld(TRIP, None, {"tool": "book_trip"}, seed).focus.arguments
        assert asked["segments"][0]["from_station"] == asked["from_station"]
        assert asked["segments"][-1]["to_station"] == asked["to_station"]
    assert legs == 2


@pytest.mark.parametrize("state", ["exists", "duplicate"])
def test_an_order_costs_what_its_items_cost_and_tax(state: str) -> None:
    for seed in range(4):
        for order in (
            MockWorld(ORDER, None, {"tool": "cancel_order", "world_state": state}, seed).records["order"].values()
        ):
            assert all(i["total"] == round(i["quantity"] * i["unit_price"], 2) for i in order["items"])
            assert order["subtotal"] == round(sum(i["total"] for i in order["items"]), 2)
            assert order["total"] == round(order["subtotal"] + order["tax"] - order["discount_amount"], 2)


@pytest.mark.parametrize(("kind", "tools"), [("rental", RENTAL), ("trip", TRIP), ("order", ORDER)])
def test_a_double_differs_in_what_the_customer_tells(kind: str, tools: list[Tool]) -> None:
    for seed in range(6):
        world = MockWorld(tools, None, {"tool": f"cancel_{kind}", "world_state": "duplicate"}, seed)
        told, *others = (_telling(world._shelf, kind, k) for k in (world.focus.id or "", *world.records[kind]))
        assert len([o for o in others if o == told]) == 1
        assert len(world.records[kind]) == 1 + len(
            MockWorld(tools, None, {"tool": f"cancel_{kind}"}, seed).records[kind]
        )


def test_a_refund_is_later_and_smaller_than_what_was_paid() -> None:
    fields = {"amount": NUMBER, "created_at": TEXT}
    paid = replace(tool("get_payment", payment_id="string"), returns={"type": "object", "properties": fields})
    back = replace(
        tool("get_refund", refund_id="string", payment_id="string"), returns={"type": "object", "properties": fields}
    )
    for seed in range(4):
        world = MockWorld([paid, back, tool("list_refunds", payment_id="string")], None, None, seed)
        assert world.records["refund"]
        for refund in world.records["refund"].values():
            payment = world.records["payment"][refund["payment_id"]]
            assert refund["amount"] < 0.51 * payment["amount"]
            assert payment["created_at"] < refund["created_at"] < f"{world.model.now}"


def test_names_of_fields_say_which_are_two_ends() -> None:
    names = (
        "fromAccountId",
        "toAccountId",
        "valid_from",
        "valid_until",
        "price",
        "sender_name",
        "receiver_name",
        "total",
    )
    assert partners(names) == (
        ("fromAccountId", "toAccountId"),
        ("valid_from", "valid_until"),
        ("sender_name", "receiver_name"),
    )
    assert other_ends("toAccountId", names) == ["fromAccountId"]
    assert key_noun("from_account_id") == key_noun("toAccountId") == ("account", False)


def test_only_what_may_be_changed_is_changed() -> None:
    draw = Draw(1, MockWorld(TRIP).model.now, "en_US", "trip", 0)
    values = {"start_time": "12:00:00", "end_time": "11:00:00", "origin": "SFO", "destination": "SFO"}
    set_apart(
        values,
        {"end_time": Field(name="end_time", role="time"), "destination": Field(name="destination", role="airport")},
        draw,
    )
    assert (values["start_time"], values["origin"]) == ("12:00:00", "SFO")
    assert values["end_time"] > "12:00:00"
    assert values["destination"] != "SFO"


@pytest.mark.corpus
@pytest.mark.parametrize("name", SETS[1:4])
def test_no_record_of_a_real_set_is_impossible(shared: object, name: str) -> None:
    tools, policy, model = open_set(name)
    for seed, one in enumerate(tools):
        values = {"tool": one.name, "world_state": ("duplicate", "exists")[seed % 2]}
        world = MockWorld(tools, policy, values, seed, model=model)
        flights, today = world.records.get("flight", {}), f"{model.now:%Y-%m-%d}"
        for flight in flights.values():
            assert flight["origin"] != flight["destination"]
            assert flight["scheduled_departure_time"] < flight["scheduled_arrival_time"]
            assert flight["status"] != "flying" or flight["date"] == today
        for booking in world.records.get("reservation", {}).values():
            way = [
                flights[leg["flight_number"]][end] for leg in booking["flights"] for end in ("origin", "destination")
            ]
            assert way in (
                [booking["origin"], booking["destination"], booking["destination"], booking["origin"]][:n]
                for n in (2, 4)
            )
        for line in world.records.get("line", {}).values():
            assert (line["status"] == "Suspended") == bool(line["suspension_start_date"])
        for order in world.records.get("order", {}).values():
            assert order["status"] != "cancelled" or not order["fullfilments"]


@pytest.mark.parametrize("kind", ["sailing", "delivery", "lesson"])
def test_a_status_that_a_rule_names_moves_no_date(kind: str) -> None:
    """A date goes into cards; a word more in one rule must not change those of the other rules."""
    tools = a_set(kind, {**WAY, "date": {"type": "string", "format": "date"}})
    policy = f"# {kind.title()}s\n- If the status is **open** or **late**, it can be moved.\n- If the status is **{{}}**, it cannot.\n"
    days, found = {}, set()
    for word in ("in progress", "in transit", "full"):
        for seed in range(12):
            world = MockWorld(tools, parse_policy(policy.format(word)), {}, seed)
            records, today = world.records[kind].values(), f"{world.model.now:%Y-%m-%d}"
            days.setdefault(seed, [r["date"] for r in records])
            assert [r["date"] for r in records] == days[seed]
            assert all(r["date"] == today for r in records if r["status"].startswith("in "))
            found |= {(r["status"], r["date"] == today) for r in records}
    assert {("in progress", True), ("in transit", True), ("full", True), ("full", False), ("late", False)} <= found
