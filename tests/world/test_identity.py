"""How a customer can be found is how their record has it, also where no kind of record is a customer."""

from __future__ import annotations

from dataclasses import replace

import pytest
from world_sets import tool

from whilesim.core.jsontext import loads
from whilesim.situations.tools import parse_tools
from whilesim.world.kinds import role_of
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


SPACES = [
    tool("lookup_account", "Look up an account by email.", email="string"),
    tool("get_space", space_id="string"),
    tool("add_member", "Add a member to a space.", "write", space_id="string", email="string"),
    tool("remove_member", "Remove a member.", "write", space_id="string", member_email="string"),
]


def test_who_is_put_into_a_thing_is_not_the_customer() -> None:
    world = MockWorld(SPACES, None, {"tool": "get_space"}, 3)
    assert (world.model.party, world.model.kinds["member"].parent) == ("account", "space")
    shown = loads(world.call("lookup_account", {"email": world.focus.identity["email"]}))
    assert world.focus.id in shown["spaces"]


def test_where_only_members_are_known_they_are_the_customers() -> None:
    assert MockWorld(SPACES[2:], None, {"tool": "add_member"}, 3).model.party == "member"


def test_a_number_by_which_alone_a_record_is_read_is_its_key() -> None:
    given = {"rx_number": {"type": "string", "description": "Prescription number, like RX482913"}, "note": TEXT}
    told = {
        "get_recipe": "Get a recipe.",
        "refill_recipe": "Order a refill.",
        "request_renewal": "Send a renewal request.",
    }
    shapes = {n: {a: given[a] for a in [*given][: 1 + (n != "get_recipe")]} for n in told}
    forms = {n: {"type": "object", "properties": s, "required": [*s]} for n, s in shapes.items()}
    raw = [{"name": n, "description": d, "parameters": forms[n]} for n, d in told.items()]
    world = MockWorld(parse_tools(raw), None, {"tool": "refill_recipe"}, 2)
    assert world.model.kinds["recipe"].key == "rx_number"
    assert world.focus.arguments["rx_number"] == world.focus.id
    assert [world.model.deeds[n].action for n in told] == ["get", "change", "create"]


def test_the_customer_is_called_as_the_record_says_where_no_kind_is_the_customer() -> None:
    find = tool("find_booking", last_name="string", pickup_date="string")
    for seed in range(5):
        world = MockWorld([find, tool("get_booking", booking_ref="string")], None, {"tool": "get_booking"}, seed)
        named = world.records["booking"][str(world.focus.id)]["last_name"]
        assert world.focus.identity["name"].endswith(f" {named}")
        assert named.lower().replace("'", "") in world.focus.identity["email"]


def test_a_change_of_what_is_optional_changes_something() -> None:
    change = tool("modify_booking", "Change a booking.", "write", booking_ref="string", time="string", place="string")
    change = replace(change, parameters={**change.parameters, "required": ["booking_ref"]})
    for seed in range(12):
        world = MockWorld([tool("get_booking", booking_ref="string"), change], None, {"tool": "modify_booking"}, seed)
        assert set(world.focus.arguments) > {"booking_ref"}


def test_records_are_listed_under_an_english_plural() -> None:
    move = tool("move_delivery", "Move a delivery.", "write", delivery_id="string", new_date="string")
    find = tool("find_patient", full_name="string", date_of_birth="string")
    world = MockWorld([find, move], None, {"tool": "find_patient"}, 1)
    known = {"full_name": world.focus.identity["name"], "date_of_birth": world.focus.identity["date of birth"]}
    assert "deliveries" in loads(world.call("find_patient", known))


def test_a_holder_is_the_customer_and_knows_what_it_is_verified_by() -> None:
    check = tool("verify_cardholder", "Check who asks.", card_last4="string", security_answer="string")
    world = MockWorld([check, tool("get_card", card_id="string")], None, {"tool": "get_card"}, 3)
    known = world.focus.identity
    assert (world.model.party, world.model.kinds["card"].parent) == ("cardholder", "cardholder")
    given = {"card_last4": known["last four digits"], "security_answer": known["security answer"]}
    assert world.focus.id in loads(world.call("verify_cardholder", given))["cards"]
    world.call("verify_cardholder", {**given, "security_answer": "no idea"})
    assert world.log[-1].failed


CLASSES = [
    tool("find_member", email="string"),
    tool("list_classes", "Classes on a day.", studio="string", date="string"),
    tool("book_class", "Book a class for a member.", "write", member_id="string", class_id="string"),
    tool("list_bookings", "Bookings of a member.", member_id="string"),
    tool("cancel_booking", "Cancel a booking.", "write", booking_id="string"),
]


def test_what_everybody_can_book_is_nobodys_and_what_is_booked_is_the_customers() -> None:
    world = MockWorld(CLASSES, None, {"tool": "book_class"}, 3)
    kinds = world.model.kinds
    assert kinds["class"].catalogue
    assert (kinds["booking"].parent, "class_id" in kinds["booking"].fields) == ("member", True)
    made = loads(world.call("book_class", dict(world.focus.arguments)))
    assert made in loads(world.call("list_bookings", {"member_id": world.focus.arguments["member_id"]}))


def test_what_is_listed_for_everybody_and_cancelled_is_somebodys() -> None:
    tools = [*CLASSES[:2], tool("cancel_class", "Cancel.", "write", member_id="string", class_id="string")]
    assert not MockWorld(tools, None, {"tool": "cancel_class"}, 3).model.kinds["class"].catalogue


def test_what_is_restored_in_a_space_is_not_the_space() -> None:
    restore = tool("restore_file", "Restore a deleted file.", "write", space_id="string", file_path="string")
    world = MockWorld([*SPACES[:2], restore], None, {"tool": "restore_file"}, 3)
    shown = loads(world.call("restore_file", dict(world.focus.arguments)))
    assert ("status" in shown, shown["file_status"]) == (False, "active")


def test_a_number_of_a_thing_is_the_things_key_and_an_address_is_said_with_commas() -> None:
    place = {"type": "object", "properties": {"street": TEXT, "town": TEXT, "postcode": TEXT}, "required": ["street"]}
    tools = [
        tool("getReadings", "Readings of a meter.", meterNumber="string"),
        tool("submitReading", "Submit a reading.", "write", meterNumber="string", reading="integer"),
        tool("registerMove", "Register a move.", "write", meterNumber="string", newAddress=place),
    ]
    world = MockWorld(tools, None, {"tool": "registerMove"}, 2)
    assert world.model.kinds["meter"].key == "meterNumber"
    assert ", ".join(world.focus.arguments["newAddress"].values()) in world.focus.facts.values()
    assert MockWorld(tools, None, {"tool": "submitReading"}, 2).focus.arguments["meterNumber"] in world.records["meter"]


@pytest.mark.parametrize(
    ("described", "more"),
    [
        ("Get a loan: balance, last payment date and shelf.", ["balance", "last_payment_date"]),
        ("Fetch a loan. Returns the title, due date and fee.", ["title", "due_date", "fee"]),
        ("Get a loan with status (open, returned), email and price type.", ["email"]),
        ("Get a loan. Use it with care.", []),
        ("Get a loan.", []),
    ],
)
def test_what_a_description_lists_stands_in_the_record(described: str, more: list[str]) -> None:
    world = MockWorld([tool("get_loan", described, loan_id="string")], None, {"tool": "get_loan"}, 1)
    fields = world.model.kinds["loan"].fields.values()
    assert [f.name for f in fields if f.why == "what get_loan shows"] == more


@pytest.mark.parametrize(
    ("name", "role"), [("neighbour_name", "full_name"), ("shop_name", "name"), ("leaseholder_name", "full_name")]
)
def test_a_persons_name_is_told_from_a_things(name: str, role: str) -> None:
    assert role_of(name) == role
