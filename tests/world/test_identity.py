"""How a customer can be found is how their record has it, also where no kind of record is a customer."""

from __future__ import annotations

from dataclasses import replace

import pytest
from world_sets import tool

from whilesim.core.jsontext import loads
from whilesim.world.mock import MockWorld

TEXT = {"type": "string"}
SHOWN = {"type": "object", "properties": {"contract_id": TEXT, "email": TEXT, "postcode": TEXT, "tariff": TEXT}}
TOOLS = [
    replace(tool("find_contract", email="string", postcode="string"), returns=SHOWN),
    replace(tool("get_contract", contract_id="string"), returns=SHOWN),
    tool("end_contract", "End a contract.", "write", contract_id="string"),
    tool("get_meter", meter_id="string"),
    tool("add_meter", "Add a meter to a contract.", "write", contract_id="string", place="string"),
]


@pytest.mark.parametrize("name", ["get_contract", "end_contract", "add_meter", "find_contract"])
def test_the_identity_finds_the_record_that_it_is_about(name: str) -> None:
    for seed in range(5):
        world = MockWorld(TOOLS, None, {"tool": name}, seed)
        known = world.focus.identity
        found = loads(world.call("find_contract", {"email": known["email"], "postcode": known["zip"]}))
        assert found["email"] == known["email"]
        about = world.focus.arguments.get("contract_id", found["contract_id"])
        assert found["contract_id"] == about


def test_what_a_tool_sends_to_another_place_is_the_record_itself() -> None:
    move = tool(
        "redirect_parcel", "Send a parcel to another address.", "write", parcel_id="string", new_address="string"
    )
    world = MockWorld([tool("get_parcel", parcel_id="string"), move], None, {"tool": "redirect_parcel"}, 2)
    told = dict(world.focus.arguments)
    world.call("redirect_parcel", told)
    assert loads(world.call("get_parcel", {"parcel_id": told["parcel_id"]}))["address"] == told["new_address"]


@pytest.mark.parametrize("word", ["anyOf", "oneOf", "properties"])
def test_what_an_object_argument_names_finds_the_record(word: str) -> None:
    ways = [{"contract_id": TEXT}, {"email": TEXT}]
    forms = [{"type": "object", "properties": way, "required": [*way], "additionalProperties": False} for way in ways]
    key = {"type": "object", "properties": {**ways[0], **ways[1]}} if word == "properties" else {word: forms}
    shown = {"type": "object", "properties": {"contract_id": TEXT, "email": TEXT, "postcode": TEXT, "tariff": TEXT}}
    find = replace(tool("find_contract", key=key, postcode="string"), returns=shown)
    known = set()
    for seed in range(8):
        world = MockWorld([find, *TOOLS[1:]], None, {"tool": "find_contract"}, seed)
        (named,) = world.focus.arguments["key"].items()
        known.add(named[0])
        found = loads(world.call("find_contract", dict(world.focus.arguments)))
        assert (found["contract_id"], found[named[0]]) == (world.focus.id, named[1])
        assert str(named[1]) in world.focus.facts.values()
        assert "key" not in world.records["contract"][world.focus.id]
        wrong = {"key": {named[0]: "nobody@example.com"}, "postcode": world.focus.arguments["postcode"]}
        assert world.focus.id not in world.call("find_contract", wrong)
    assert known == {"contract_id", "email"}


def test_a_period_that_is_searched_is_no_field() -> None:
    day = {"type": "string", "format": "date"}
    period = {"type": "object", "properties": {"from": day, "to": day}}
    tools = [
        tool("list_visits", pet_id="string", range=period),
        tool("get_visit", visit_id="string"),
        tool("get_pet", pet_id="string"),
    ]
    world = MockWorld(tools, None, {"tool": "list_visits"}, 1)
    assert not any({"from", "to", "range"} & {*visit} for visit in world.records["visit"].values())


def test_a_month_that_a_pattern_asks_for_is_one() -> None:
    month = {"type": "string", "pattern": r"^\d{4}-\d\d$"}
    change = tool("change_tariff", "Change a tariff.", "write", contract_id="string", from_month=month)
    for seed in range(5):
        world = MockWorld([*TOOLS[:2], change], None, {"tool": "change_tariff"}, seed)
        assert 1 <= int(world.focus.arguments["from_month"][5:]) <= 12


def test_a_kind_has_no_more_records_than_its_keys_allow() -> None:
    level = {"type": "string", "enum": ["basic", "plus"]}
    tools = [tool("get_plan", plan_id=level), tool("get_customer", customer_id="string")]
    assert {*MockWorld(tools).records["plan"]} == {"basic", "plus"}


def test_a_search_keeps_to_its_bounds() -> None:
    day, number = {"type": "string", "format": "date"}, {"type": "number"}
    bounds = {"min_amount": number, "max_amount": number, "created_after": day, "to_date": day}
    shown = {"type": "object", "properties": {"transfer_id": TEXT, "amount": number, "created": day, "date": day}}
    tools = [
        replace(tool("search_transfers", **bounds), returns={"type": "array", "items": shown}),
        replace(tool("get_transfer", transfer_id="string"), returns=shown),
        tool("get_customer", customer_id="string"),
    ]
    for seed in range(6):
        world = MockWorld(tools, None, {"tool": "search_transfers"}, seed)
        assert not {*bounds} & {*world.records["transfer"][world.focus.id]}
        given = dict(world.focus.arguments)
        found = loads(world.call("search_transfers", given))
        assert world.focus.id in [row["transfer_id"] for row in found]
        assert all(given["min_amount"] <= row["amount"] <= given["max_amount"] for row in found)
        assert all(row["date"] <= given["to_date"] for row in found)
        assert loads(world.call("search_transfers", {**given, "min_amount": 1e9, "max_amount": 2e9})) == []
