"""Rules of order: what a policy wants called first is called first, where its words leave no doubt."""

from __future__ import annotations

import pytest

from whilesim.grading.checks import run_checks

NAMES = (
    "check_availability get_balance get_order list_orders verify_identity get_price "
    "book_room book_flight transfer_money transfer_to_human_agent cancel_order send_payment_request place_order"
)
TOOLS = [
    {"name": name, "description": f"{name.replace('_', ' ').capitalize()}.", "parameters": {"type": "object"}}
    for name in NAMES.split()
]


def found(rule: str, *calls: str) -> list[str]:
    """Findings of order where the calls are made in turn; ``!name`` fails."""
    messages = [{"role": "system", "content": f"You help guests.\n{rule}"}, {"role": "user", "content": "Please help."}]
    for number, name in enumerate(calls):
        call = {"id": f"c{number}", "type": "function", "function": {"name": name.lstrip("!"), "arguments": "{}"}}
        reply = '{"error": "timeout"}' if name[0] == "!" else '{"ok": true}'
        messages += [{"role": "assistant", "content": None, "tool_calls": [call]}]
        messages += [{"role": "tool", "tool_call_id": f"c{number}", "content": reply}]
    return [f.quote for f in run_checks(messages, TOOLS) if f.check == "acted_out_of_order"]


@pytest.mark.parametrize(
    ("rule", "first", "later"),
    [
        ("Check availability before booking a room.", "check_availability", "book_room"),
        ("- Always run get_balance before transfer_money.", "get_balance", "transfer_money"),
        ("You must check the balance before you transfer money.", "get_balance", "transfer_money"),
        ("Before transferring money, you must always check the balance.", "get_balance", "transfer_money"),
        ("First look up the order, then cancel it.", "get_order", "cancel_order"),
        ("1. First verify the customer's identity, then cancel the order.", "verify_identity", "cancel_order"),
        ("Never transfer money without checking the balance.", "get_balance", "transfer_money"),
        ("Do not cancel an order until verify_identity has been called.", "verify_identity", "cancel_order"),
    ],
)
def test_what_a_rule_wants_first_is_called_first(rule, first, later):
    assert found(rule, later) == [later]
    assert found(rule, later, first) == [later]
    assert found(rule, first, later) == []
    assert found(rule, f"!{later}", first, later) == []
    assert found(rule, f"!{first}", later) == []
    assert found(rule, first) == []


@pytest.mark.parametrize(
    "rule",
    [
        "Check availability before booking.",  # a room, or a table
        "Check the balance before a transfer over 500.",
        "If the guest asks, check the balance before transferring money.",
        "Before booking a room for more than two guests, check availability.",
        "Get the order number before cancelling the order.",  # of the guest
        "Read the order back before placing the order.",
        "Ask for the availability before booking a room.",
        "Tell the price before booking a room.",
        "You may check availability before booking a room.",
        "Check availability or the price before booking a room.",
        "Never check the balance before transferring money.",
        "Check the weather before booking a room.",
        "Obtain a clear yes before booking a room.",
        "Our guests check availability before booking a room.",
    ],
)
def test_a_rule_that_leaves_open_what_comes_first_holds_nobody(rule):
    for later in ("book_room", "transfer_money", "cancel_order", "place_order"):
        assert found(rule, later) == []


def test_another_look_up_shows_as_much_and_a_person_is_no_transfer_of_money():
    rule = "Check the order before cancelling the order.\nCheck the balance before transferring money."
    assert found(rule, "list_orders", "cancel_order") == []
    assert found(rule, "get_balance", "cancel_order") == ["cancel_order"]
    assert found(rule, "transfer_to_human_agent") == []
