"""Acts on records: a tool changes the record that its name says, by no more than its call says."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from world_sets import tool

from whilesim.situations.tools import Tool
from whilesim.world.entities import infer_world
from whilesim.world.mock import MockWorld


def act(name: str, about: str, effect: str = "write", needed: tuple[str, ...] = (), **arguments: Any) -> Tool:
    """Make a tool with a description, of whose arguments few are required."""
    return tool(name, about, effect, needed, **arguments)


def ask(world: MockWorld, name: str, **arguments: Any) -> Any:
    return json.loads(world.call(name, arguments))


RENTAL = [
    act("get_rental", "Show a rental.", "read", rental_id="string"),
    act("list_rentals", "List rentals.", "read", status={"type": "string", "enum": ["reserved", "running", "over"]}),
    act("change_rental", "Move a rental.", rental_id="string", driver_approved="boolean", driver_fee="number"),
    act("extend_rental", "Add drivers to a rental.", rental_id="string", extra_drivers="integer"),
    act("get_pledge", "Show what is held for a rental.", "read", rental_id="string"),
    act("release_pledge", "Release what is held for a rental.", rental_id="string"),
]


def test_a_number_that_is_added_gets_a_field_of_its_own_where_no_number_of_the_kind_is_there():
    world = MockWorld(RENTAL, None, {"tool": "extend_rental"}, 3)
    key, before = next(iter(world.records["rental"].items()))
    before = dict(before)
    after = ask(world, "extend_rental", rental_id=key, extra_drivers=2)
    assert after["extra_drivers"] == before["extra_drivers"] + 2
    assert {f: after[f] for f in ("driver_approved", "driver_fee")} == {
        f: before[f] for f in ("driver_approved", "driver_fee")
    }


@pytest.mark.parametrize(
    ("more", "kind"), [({}, "card"), ({"last4": "string"}, "customer"), ({"code": "string"}, "customer")]
)
def test_an_argument_that_tells_which_of_several_names_no_record_of_the_owner(more: Any, kind: str):
    tools = [
        act("get_customer", "Read a customer.", "read", customer_id="string"),
        act("get_card", "Read a card.", "read", card_id="string"),
        act("list_cards", "List the cards of a customer.", "read", customer_id="string"),
        act("block_card", "Block a card.", customer_id="string", **more),
    ]
    deed = infer_world(tools, None).deeds["block_card"]
    assert (deed.kind, deed.after) == (kind, "blocked")


def test_an_act_on_a_child_falls_on_the_child_and_leaves_its_owner_as_it_was():
    world = MockWorld(RENTAL, None, {"tool": "release_pledge"}, 1)
    key, other = list(world.records["rental"])[:2]
    for pledge in world.records["pledge"].values():
        pledge["status"] = "active"
    before = dict(world.records["rental"][key])
    assert ask(world, "release_pledge", rental_id=key)["status"] == "released"
    assert ask(world, "get_pledge", rental_id=key)["status"] == "released"
    assert world.records["rental"][key] == before
    assert ask(world, "get_pledge", rental_id=other)["status"] == "active"
    world.call("release_pledge", {"rental_id": key})
    assert world.log[-1].failed
    assert "released" not in world.model.kinds["rental"].statuses


def test_where_the_child_is_missing_nobody_else_s_is_acted_on():
    world = MockWorld(RENTAL, None, {"tool": "release_pledge", "world_state": "missing"}, 1)
    ask(world, "release_pledge", **world.focus.arguments)
    assert world.log[-1].failed
    assert not world.log[-1].changes


def test_what_was_done_to_a_child_before_is_seen_by_the_read_of_it():
    world = MockWorld(RENTAL, None, {"tool": "release_pledge", "world_state": "already_acted_on"}, 2)
    assert world.focus.kind == "pledge"
    assert ask(world, "get_pledge", **world.focus.arguments)["status"] == "released"


@pytest.mark.parametrize(
    ("name", "about", "kind"),
    [
        ("complete_pledge", "Sets the rental status to over.", "rental"),
        ("complete_pledge", "Complete it.", "pledge"),
        ("cancel_rental", "Cancel a rental.", "rental"),
    ],
)
def test_the_owner_is_acted_on_where_its_own_name_or_status_is_said(name, about, kind):
    model = infer_world([*RENTAL, act(name, about, rental_id="string")])
    assert model.deeds[name].kind == kind


PAID = [
    act("get_order", "Show an order.", "read", order_id="string"),
    act(
        "issue_refund", "Refund money on an order.", needed=("order_id", "amount_eur"), order_id="string", amount_eur="number",
        reason="string", express={"type": "boolean", "default": False}, approved={"type": "boolean", "default": None},
        phone="string",
    ),
]  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_a_new_record_says_what_the_call_says_or_a_default_and_makes_nothing_up(seed):
    world = MockWorld(PAID, None, {"tool": "issue_refund"}, seed)
    order = next(iter(world.records["order"]))
    made = ask(world, "issue_refund", order_id=order, amount_eur=213.47)
    assert made["amount_eur"] == 213.47
    assert made["express"] is False
    assert not {"amount", "currency", "reason", "phone", "approved"} & set(made)
    assert ask(world, "issue_refund", order_id=order, amount_eur=1.5, reason="late", express=True)["reason"] == "late"


def test_a_reply_with_a_schema_makes_nothing_up_either_but_what_the_schema_requires():
    shown = {n: {"type": "string"} for n in ("refund_id", "reason", "phone")}
    told = {"type": "object", "properties": shown, "required": ["refund_id", "phone"]}
    refund = replace(PAID[1], returns=told)
    read = replace(act("get_refund", "Show a refund.", "read", refund_id="string"), returns=told)
    world = MockWorld([PAID[0], refund, read], None, {"tool": "issue_refund"}, 0)
    made = ask(world, "issue_refund", order_id=next(iter(world.records["order"])), amount_eur=5)
    assert set(made) == {"refund_id", "phone"}
    assert ask(world, "get_refund", refund_id=made["refund_id"]) == made


def test_an_amount_without_a_unit_in_its_name_keeps_its_usual_currency():
    plain = act("issue_refund", "Refund an order.", order_id="string", amount="number")
    assert {"amount", "currency"} <= set(infer_world([PAID[0], plain]).kinds["refund"].fields)


def test_a_person_is_told_of_a_record_that_is_not_there():
    desk = act(
        "transfer_to_desk", "Hand the customer over to a human.", "handoff", ("why",), why="string", order_id="string"
    )
    world = MockWorld([*PAID, desk], None, {"tool": "get_order"}, 0)
    world.call("transfer_to_desk", {"why": "not found", "order_id": "none such"})
    assert not world.log[-1].failed
    world.call("get_order", {"order_id": "none such"})
    assert world.log[-1].failed


CLAIMS = [
    act(
        "get_claim",
        "Show a claim: payment status (due, sent), status (filed, in review, paid), total.",
        "read",
        claim_id="string",
    ),
    act("withdraw_claim", "Withdraw a claim that has not been paid.", claim_id="string"),
]


def test_a_record_has_the_statuses_that_the_tool_which_shows_it_lists():
    assert infer_world(CLAIMS).kinds["claim"].statuses == ("filed", "in review", "paid", "withdrawn")
    assert infer_world(CLAIMS).deeds["withdraw_claim"].before == ("filed", "in review")


def test_what_is_withdrawn_reads_so_and_what_is_past_that_is_not_withdrawn():
    world = MockWorld(CLAIMS, None, {"tool": "withdraw_claim"}, 0)
    first, second = list(world.records["claim"])[:2]
    world.records["claim"][first]["status"], world.records["claim"][second]["status"] = "filed", "paid"
    assert ask(world, "withdraw_claim", claim_id=first)["status"] == "withdrawn"
    assert ask(world, "get_claim", claim_id=first)["status"] == "withdrawn"
    for key in (first, second):
        world.call("withdraw_claim", {"claim_id": key})
        assert world.log[-1].failed


def test_money_that_is_withdrawn_ends_nothing():
    model = infer_world([act("get_account", "", "read", account_id="string"),
                         act("withdraw_funds", "Withdraw money.", account_id="string", amount="number")])  # fmt: skip
    assert model.deeds["withdraw_funds"].after == ""


SEATS = [
    act("get_ticket", "Read a ticket.", "read", ticket_id="string"),
    act("search_free_seats", "Free seats of an event.", "read", event_id="string"),
]


@pytest.mark.parametrize(
    ("about", "arguments", "kind", "sets"),
    [
        ("Move a ticket to another free seat.", ("ticket_id", "seat_id"), "ticket", {"seat_id": "seat_id"}),
        ("Move a ticket to a new seat.", ("ticket_id", "seat_id"), "ticket", {"seat_id": "seat_id"}),
        ("Move a ticket to another free seat.", ("ticket_id", "new_seat"), "ticket", {"new_seat": "seat"}),
        ("Change the row of a seat.", ("ticket_id", "seat_id"), "seat", {"ticket_id": "ticket_id"}),
        ("Move a seat to another ticket.", ("ticket_id", "seat_id"), "seat", {"ticket_id": "ticket_id"}),
    ],
)
def test_what_is_moved_to_another_is_the_record_and_the_other_its_field(
    about: str, arguments: Any, kind: str, sets: Any
):
    change = act("change_seat", about, needed=arguments, **dict.fromkeys(arguments, "string"))
    deed = infer_world([*SEATS, change], None).deeds["change_seat"]
    assert (deed.kind, deed.key, deed.sets) == (kind, f"{kind}_id", sets)


def test_a_key_before_the_record_s_own_says_whose_it_is_and_is_not_written():
    tools = [
        act("get_lease", "Read a lease.", "read", lease_id="string"),
        act("waive_late_fee", "Waive a late fee.", lease_id="string", fee_id="string", reason="string"),
    ]
    world = MockWorld(tools, None, {"tool": "waive_late_fee"}, 3)
    key, fee = next(iter(world.records["fee"].items()))
    other = next(t for t in world.records["lease"] if t != fee["lease_id"])
    ask(world, "waive_late_fee", lease_id=other, fee_id=key)
    assert world.records["fee"][key]["status"] != "waived"
    after = ask(world, "waive_late_fee", lease_id=fee["lease_id"], fee_id=key)
    assert after["status"] == "waived"
    assert "waive_lease_id" not in after


def test_a_key_behind_the_record_s_own_is_written():
    tools = [
        act("get_order", "Read an order.", "read", order_id="string"),
        act("get_payment_method", "Read it.", "read", payment_method_id="string"),
        act("refund_order", "Refund an order.", order_id="string", payment_method_id="string"),
    ]
    deed = infer_world(tools, None).deeds["refund_order"]
    assert (deed.key, deed.owner, deed.sets) == ("order_id", "", {"payment_method_id": "refund_payment_method_id"})
