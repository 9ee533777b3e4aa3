"""A record is found by every way that its tool names, and by nobody who says it wrong."""

from __future__ import annotations

from dataclasses import replace

import pytest
from world_sets import tool

import whilesim as ws
from whilesim.core.jsontext import loads
from whilesim.situations.tools import Tool
from whilesim.world.mock import MockWorld


def optional(name: str, description: str = "", **arguments: str) -> Tool:
    """Return a tool none of whose arguments must be given."""
    made = tool(name, description, **arguments)
    made.parameters.pop("required", None)
    return replace(made, id_arguments=(next(iter(arguments)),))


TEXT = {"type": "string"}
LETS = [
    optional(
        "find_tenancy",
        "By its reference, or by e-mail and postcode.",
        tenancy_ref="string",
        email="string",
        postcode="string",
    ),
    replace(tool("get_tenancy", tenancy_ref="string"), id_arguments=("tenancy_ref",)),
    tool("get_order", order_number="string", email="string"),
]
SHOP = [
    tool("get_customer", customer_id="string"),
    optional("find_order", order_id="string", email="string", postcode="string"),
    tool("cancel_order", "Cancel an order.", "write", order_id="string", email="string"),
]


@pytest.mark.parametrize("tools", [LETS, SHOP])
def test_a_record_is_found_by_its_key_or_by_who_asks(tools: list[Tool]) -> None:
    find = next(t for t in tools if t.name.startswith("find"))
    key = next(iter(find.parameters["properties"]))
    for seed in range(6):
        world = MockWorld(tools, None, {"tool": find.name}, seed)
        known, right = world.focus.identity, world.focus.id
        mine = {"email": known["email"], "postcode": known["zip"]}
        found = loads(world.call(find.name, mine))
        assert right in [row[key] for row in (found if isinstance(found, list) else [found])]
        assert loads(world.call(find.name, {key: right}))[key] == right
        assert loads(world.call(find.name, {key: right, **mine}))[key] == right
        assert right not in world.call(find.name, {**mine, "postcode": "00000"})
        said = world.call(find.name, {"email": "nobody@example.org", "postcode": known["zip"]})
        assert world.log[-1].failed
        assert key not in said
        assert "@" not in said.replace("nobody@example.org", "")
        world.call(find.name, {})
        assert world.log[-1].failed
        world.call(find.name, {key: right, "email": "nobody@example.org"})
        assert world.log[-1].failed


def test_one_who_gives_a_wrong_email_beside_the_key_is_not_answered() -> None:
    world = MockWorld(LETS, None, {"tool": "get_order"}, 3)
    right = dict(world.focus.arguments)
    assert right["email"] == world.focus.identity["email"]
    world.call("get_order", {**right, "email": "nobody@example.org"})
    assert world.log[-1].failed
    assert (
        loads(world.call("get_order", {**right, "email": right["email"].upper()}))["order_number"]
        == right["order_number"]
    )


def test_a_write_asks_too_where_it_has_no_other_use_for_the_email() -> None:
    world = MockWorld(SHOP, None, {"tool": "cancel_order"}, 3)
    right = dict(world.focus.arguments)
    world.call("cancel_order", {**right, "email": "nobody@example.org"})
    assert world.log[-1].failed
    assert not world.log[-1].changes
    world.call("cancel_order", right)
    (change,) = world.log[-1].changes
    assert (change.field, change.after) == ("status", "cancelled")


def test_an_email_that_is_written_is_no_proof() -> None:
    tools = [*SHOP, tool("update_email", "Change the e-mail.", "write", customer_id="string", email="string")]
    tools.append(tool("send_receipt", "Send the receipt of an order.", "write", order_id="string", email="string"))
    tools.append(tool("get_shipping_quote", "The price of shipping.", order_id="string", zip="string"))
    for name in ("update_email", "send_receipt", "get_shipping_quote"):
        world = MockWorld(tools, None, {"tool": name}, 1)
        other = {"zip": "10001"} if "zip" in world.focus.arguments else {"email": "new@example.org"}
        world.call(name, {**world.focus.arguments, **other})
        assert not world.log[-1].failed, name


def test_a_find_opens_no_stranger_s_records() -> None:
    tools = [
        tool("get_customer", customer_id="string"),
        tool("find_bookings", email="string"),
        replace(
            tool("get_claim", claim_id="string"), returns={"properties": {"claim_id": {}, "amount": {"type": "number"}}}
        ),
        tool("search_claims", "Search claims in words.", query="string"),
        tool("get_booking", booking_id="string"),
    ]
    for seed in range(4):
        world = MockWorld(tools, None, {"tool": "find_bookings"}, seed)
        assert world.focus.id in world.call("find_bookings", {"email": world.focus.identity["email"]})
        world.call("find_bookings", {"email": "nobody@example.org"})
        assert world.log[-1].failed
        found = loads(world.call("search_claims", {"query": "rain"}))
        assert len({row["customer_id"] for row in (found if isinstance(found, list) else [found])}) == 1


def test_a_search_of_what_is_on_sale_needs_no_field_for_each_word() -> None:
    shelf = [tool("search_products", query="string"), tool("get_product", product_id="string")]
    assert loads(MockWorld(shelf).call("search_products", {"query": "something blue"}))


def test_a_place_with_a_zip_code_is_no_person() -> None:
    tools = [tool("find_shops", zip="string"), tool("get_customer", customer_id="string", email="string")]
    world = MockWorld(tools, None, {"tool": "find_shops"}, 1)
    assert loads(world.call("find_shops", dict(world.focus.arguments)))


def test_a_spec_s_find_keeps_to_key_and_to_fields() -> None:
    spec = ws.WorldSpec(
        entities={"tenancy": {"key": "tenancy_ref", "fields": {"email": "email", "postcode": "zip"}}},
        tools={"find_tenancy": {"effect": "read", "action": "find", "entity": "tenancy"}},
    )
    world = MockWorld(LETS, None, {"tool": "find_tenancy"}, 1, spec=spec)
    for key, row in world.records["tenancy"].items():
        asked = {f: row[f] for f in ("email", "postcode")}
        assert loads(world.call("find_tenancy", asked))["tenancy_ref"] == key
        assert loads(world.call("find_tenancy", {"tenancy_ref": key}))["tenancy_ref"] == key
    world.call("find_tenancy", {"email": "nobody@example.org"})
    assert world.log[-1].failed


REPAIRS = [
    tool("get_home", home_id="string"),
    tool("log_repair", "Log a repair for a home.", "write", home_id="string", problem="string"),
    tool("get_visit_slots", "Free slots for a logged repair.", repair_id="string"),
    tool("book_visit", "Book a visit for a repair.", "write", repair_id="string", slot="string"),
    tool("reschedule_visit", "Move a booked visit.", "write", visit_id="string", new_slot="string"),
    tool("send_voucher", "Send a voucher.", "write", home_id="string"),
]


def test_what_other_tools_go_by_is_there_before_a_tool_makes_it() -> None:
    world = MockWorld(REPAIRS, None, {"tool": "reschedule_visit"}, 1)
    assert world.records["repair"]
    assert world.focus.id in world.records["visit"]
    assert not world.records["voucher"]  # nothing goes by it: it is only ever sent
    for named in REPAIRS:
        world = MockWorld(REPAIRS, None, {"tool": named.name}, 1)
        assert "" not in [*world.focus.arguments.values(), *world.focus.facts.values()]


def test_a_kind_without_records_asks_for_no_call_without_a_key() -> None:
    spec = ws.WorldSpec(entities={"visit": {"count": 0}})
    plan = ws.plan(
        tools=[t.original or dict_of(t) for t in REPAIRS], system_prompt="- Be polite.", world=spec, situations=12
    )
    for card in (c for c in plan.cards if c.situation.values["tool"] == "reschedule_visit"):
        assert not [c for c in plan.oracles[card.id].must_call if c.name == "reschedule_visit"]
        assert "" not in card.facts.values()


def dict_of(made: Tool) -> dict[str, object]:
    """Return a tool as a model is told of it."""
    return {"name": made.name, "description": made.description, "parameters": made.parameters}


def test_a_spec_that_adds_a_field_leaves_the_key_as_it_was() -> None:
    spec = ws.WorldSpec(entities={"order": {"fields": {"gift": "flag"}}})
    kinds = MockWorld([tool("get_order", order_number="string")], spec=spec).model.kinds
    assert kinds["order"].key == "order_number"
    assert "gift" in kinds["order"].fields
    told = ws.WorldSpec(entities={"order": {"key": "ref"}})
    assert MockWorld([tool("get_order", order_number="string")], spec=told).model.kinds["order"].key == "ref"


def test_an_effect_that_a_spec_corrects_reaches_cards_and_oracle() -> None:
    give = {"name": "transfer_ticket", "description": "Transfer a ticket to an agent for resale."}
    tools = [
        {**give, "parameters": {"type": "object", "properties": {"ticket_id": TEXT}, "required": ["ticket_id"]}},
        {"name": "get_ticket", "parameters": {"type": "object", "properties": {"ticket_id": TEXT}}},
        {"name": "escalate", "description": "Hand over to a person.", "parameters": {"type": "object"}},
    ]
    spec = ws.WorldSpec(tools={"transfer_ticket": {"effect": "write", "action": "change", "entity": "ticket"}})
    for world, wanted in ((None, {"handoff"}), (spec, {"write"})):
        plan = ws.plan(tools=tools, system_prompt="- Be polite.", world=world, situations=8)
        assert {t.effect for t in plan.tools if t.name == "transfer_ticket"} == wanted
    cards = [c for c in plan.cards if c.situation.values["tool"] == "transfer_ticket"]
    assert cards
    assert not [
        c for c in cards if "put through" in c.goal or (plan.oracles[c.id].handoff_wanted and c.clause_applies == "no")
    ]


@pytest.mark.parametrize(
    ("policy", "locale"),
    [
        ("Rent is paid in £.", "en_GB"),
        ("Rent is paid in £ or in €.", "en_US"),
        ("A fee of $25, or £20.", "en_US"),
        ("Be polite.", "en_US"),
        ("A key costs A$40.", "en_AU"),
    ],
)
def test_the_country_of_a_firm_is_that_of_its_money(policy: str, locale: str) -> None:
    assert MockWorld(REPAIRS, f"# Desk\n\n- {policy}").model.locale == locale
    assert MockWorld(REPAIRS, policy, spec=ws.WorldSpec(locale="de_DE")).model.locale == "de_DE"
