"""A field that a call names is written, a list that a call changes is added up anew, and what is paid is owed no more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from world_sets import tool

from whilesim.core.jsontext import loads
from whilesim.situations.policy import parse_policy
from whilesim.world.entities import infer_world
from whilesim.world.mock import MockWorld
from whilesim.world.spec import WorldSpec

TEXT, NUMBER, WHOLE = {"type": "string"}, {"type": "number"}, {"type": "integer"}
POLICY = """# Kennel

Each owner has:
- owner ID
- name
- email
- phone
- vet
- dog size level (small, medium, large)
- weekly walks (in walks)
- wallet balance

Each bill has:
- bill ID
- owner ID
- meals (each with a dish, a portion count and a price per portion)
- total portions
- cleaning fee
- total
- amount due
- status (open, paid, void)

Each stay has:
- stay ID
- owner ID
- amount
- status (booked, paid)
"""
FIELDS = {"type": "string", "enum": ["email", "phone", "vet", "dog_size_level", "weekly_walks", "newsletter"]}
TOOLS = [
    tool("get_owner", owner_id="string"),
    tool("update_owner_field", "Update one field of an owner.", "write", owner_id="string", field=FIELDS, new_value=TEXT),
    tool("set_owner_attribute", "Set an attribute.", "write", owner_id="string", attribute_name=TEXT, value=TEXT),
    tool("top_up_wallet", "Top up the wallet.", "write", owner_id="string", amount=NUMBER),
    tool("withdraw_funds", "Withdraw money from the wallet.", "write", owner_id="string", amount=NUMBER),
    tool("get_bill", bill_id="string"),
    tool("list_bills", owner_id="string"),
    tool("add_meal", "Add a meal to a bill.", "write", bill_id="string", dish=TEXT, portion_count=WHOLE, price_per_portion=NUMBER),
    tool("remove_meal", "Remove a meal from a bill.", "write", bill_id="string", dish=TEXT),
    tool("change_meal", "Change how much of a meal.", "write", bill_id="string", dish=TEXT, new_portion_count=WHOLE),
    tool("set_bill_fee", "Set the fee.", "write", bill_id="string", cleaning_fee=NUMBER),
    tool("pay_bill", "Pay a bill, or a part of it.", "write", bill_id="string", amount=NUMBER),
    tool("record_payment", "Record a payment.", "write", bill_id="string", amount=NUMBER),
    tool("schedule_payment", "Schedule a payment for later.", "write", bill_id="string", amount=NUMBER),
    tool("charge_bill", "Charge more to a bill, which raises what is due.", "write", bill_id="string", amount=NUMBER),
    tool("settle_bill", "Settle a bill, all of it.", "write", bill_id="string"),
    tool("get_stay", stay_id="string"),
    tool("pay_stay", "Pay a stay.", "write", stay_id="string", amount=NUMBER),
    tool("adjust_stay", "Adjust a stay.", "write", stay_id="string", action={"type": "string", "enum": ["extend", "cut"]}, until=TEXT),
]  # fmt: skip
MODEL = infer_world(TOOLS, parse_policy(POLICY, tools=TOOLS))


def world(name: str, seed: int = 1, **situation: str) -> MockWorld:
    return MockWorld(TOOLS, None, {"tool": name, **situation}, seed, model=MODEL)


def call(at: MockWorld, name: str, **arguments: Any) -> Any:
    """Make a call that must work."""
    reply = at.call(name, arguments)
    assert not at.log[-1].failed, reply
    return loads(reply)


def refused(at: MockWorld, name: str, **arguments: Any) -> str:
    reply = at.call(name, arguments)
    assert at.log[-1].failed, reply
    assert not at.log[-1].changes
    return reply


# -- a field that a call names


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(
    ("name", "says", "gives"),
    [("update_owner_field", "field", "new_value"), ("set_owner_attribute", "attribute_name", "value")],
)
def test_the_field_that_a_call_names_takes_the_value_and_nothing_else_changes(
    name: str, says: str, gives: str, seed: int
) -> None:
    at = world(name, seed)
    right = at.focus.arguments
    before = call(at, "get_owner", owner_id=right["owner_id"])
    call(at, name, **right)
    after = call(at, "get_owner", owner_id=right["owner_id"])
    assert str(after[right[says]]).lower() == str(right[gives]).lower()
    assert {f for f in after if after[f] != before.get(f)} == {right[says], "updated_at"} & {*after}
    assert (right[says] == "email") == ("@" in str(right[gives]))
    assert right[says] != "dog_size_level" or right[gives] in ("small", "medium", "large")


def test_a_named_field_keeps_its_type_and_a_value_that_it_cannot_take_is_refused() -> None:
    at = world("update_owner_field")
    key = at.focus.arguments["owner_id"]
    call(at, "update_owner_field", owner_id=key, field="weekly_walks", new_value="7")
    assert call(at, "get_owner", owner_id=key)["weekly_walks"] == 7
    assert "many" in refused(at, "update_owner_field", owner_id=key, field="weekly_walks", new_value="many")
    assert "giant" in refused(at, "update_owner_field", owner_id=key, field="dog_size_level", new_value="giant")
    assert "shoe size" in refused(at, "set_owner_attribute", owner_id=key, attribute_name="shoe size", value="44")
    refused(at, "set_owner_attribute", owner_id=key, attribute_name="owner_id", value="O1")


def test_what_was_written_under_a_named_field_already_is_there_and_the_oracle_knows() -> None:
    at = world("update_owner_field", world_state="already_acted_on")
    right = at.focus.arguments
    assert str(call(at, "get_owner", owner_id=right["owner_id"])[right["field"]]) == right["new_value"]
    assert {"field", "new_value"} <= {*MODEL.deeds["update_owner_field"].written}


def test_a_customer_knows_the_new_phone_and_no_field() -> None:
    named = (world("update_owner_field", s) for s in range(30))
    facts = next(w.focus.facts for w in named if w.focus.arguments["field"] == "phone")
    assert "new phone number" in facts
    assert not {"field", "value", "new value"} & {*facts}


def test_a_value_without_a_field_is_a_field_of_its_own_and_so_is_a_key() -> None:
    tools = [
        tool("get_meter", meter_id="string"),
        tool("set_reading", "Set it.", "write", meter_id="string", value=NUMBER),
        tool("read_memory", key="string"),
        tool("replace_memory", "Replace it.", "write", key="string", value="string"),
    ]
    deeds = infer_world(tools).deeds
    assert not deeds["set_reading"].names
    assert not deeds["replace_memory"].names
    at = MockWorld(tools, None, {"tool": "set_reading"}, 1)
    call(at, "set_reading", meter_id=at.focus.arguments["meter_id"], value=12)
    assert 12 in call(at, "get_meter", meter_id=at.focus.arguments["meter_id"]).values()


def test_a_setting_of_no_record_takes_any_name_and_a_user_may_say_which_field_is_meant(tmp_path: Path) -> None:
    loose = [tool("change_setting", "Change a setting.", "write", setting=TEXT, value=TEXT), tool("get_settings")]
    at = MockWorld(loose, None, {"tool": "change_setting"}, 1)
    call(at, "change_setting", **at.focus.arguments)
    for told in ({"sets": {"value": "vet"}}, {"entity": "stay"}):
        spec = WorldSpec(tools={"set_owner_attribute": told, "add_meal": {"entity": "owner"}})
        model = infer_world(TOOLS, parse_policy(POLICY, tools=TOOLS), spec)
        assert not model.deeds["set_owner_attribute"].names
        assert not model.deeds["add_meal"].rows
    (tmp_path / "world.yaml").write_text(MODEL.describe(), encoding="utf-8")
    again = WorldSpec.from_yaml(tmp_path / "world.yaml")
    assert infer_world(TOOLS, parse_policy(POLICY, tools=TOOLS), again).deeds["add_meal"].rows == "meals"


# -- a list with totals


def agrees(bill: dict[str, Any]) -> bool:
    meals = bill["meals"]
    sums = sum(m["portion_count"] * m["price_per_portion"] for m in meals) + bill["cleaning_fee"]
    return abs(bill["total"] - sums) < 0.01 and bill["total_portions"] == sum(m["portion_count"] for m in meals)


@pytest.mark.parametrize("seed", range(8))
def test_totals_agree_with_the_lines_at_first_and_after_each_change_of_them(seed: int) -> None:
    at = world("remove_meal", seed)
    right = at.focus.arguments
    key, dish = right["bill_id"], right["dish"]
    first = call(at, "get_bill", bill_id=key)
    assert agrees(first)
    assert dish in [m["dish"] for m in first["meals"]]
    call(at, "add_meal", bill_id=key, dish="rice bowl", portion_count=2, price_per_portion=3.5)
    more = call(at, "get_bill", bill_id=key)
    assert agrees(more)
    assert [m["dish"] for m in more["meals"]] == [*(m["dish"] for m in first["meals"]), "rice bowl"]
    assert round(more["amount_due"] - first["amount_due"], 2) == 7
    call(at, "change_meal", bill_id=key, dish="rice bowl", new_portion_count=5)
    assert agrees(call(at, "get_bill", bill_id=key))
    call(at, "remove_meal", bill_id=key, dish=dish)
    left = call(at, "get_bill", bill_id=key)
    assert agrees(left)
    assert not {"dish", "portion_count", "new_portion_count"} & {*left}
    for name, other in (("remove_meal", {}), ("change_meal", {"new_portion_count": 1})):
        refused(at, name, bill_id=key, dish="a dish that nobody had", **other)


def test_a_row_that_nothing_tells_from_the_others_stays_and_an_address_is_no_row() -> None:
    policy = "Each trip has:\n- trip ID\n- stops (each with an address and a note)\n"
    tools = [
        tool("get_trip", trip_id="string"),
        tool("remove_stop", "Remove a stop.", "write", required=["trip_id"], trip_id="string", note=TEXT),
        tool("change_stop", "Change a stop.", "write", trip_id="string", city=TEXT, reason=TEXT),
    ]
    at = MockWorld(tools, parse_policy(policy, tools=tools), {"tool": "remove_stop"}, 1)
    refused(at, "remove_stop", trip_id=at.focus.arguments["trip_id"])
    assert not at.model.deeds["change_stop"].rows


def test_a_total_keeps_what_its_lines_do_not_say_and_a_write_of_another_field_leaves_it() -> None:
    mine = {"bill_id": "B1", "owner_id": "O1", "meals": [{"dish": "soup", "portion_count": 1, "price_per_portion": 5}], "total_portions": 1, "total": 40.0, "cleaning_fee": 2.0, "amount_due": 10.0, "status": "open"}  # fmt: skip
    spec = WorldSpec(records={"bill": [mine], "owner": [{"owner_id": "O1", "name": "Ada"}]})
    at = MockWorld(TOOLS, parse_policy(POLICY, tools=TOOLS), {"tool": "get_bill"}, 1, spec=spec)
    call(at, "add_meal", bill_id="B1", dish="rice", portion_count=2, price_per_portion=1)
    bill = call(at, "get_bill", bill_id="B1")
    assert (bill["total"], bill["amount_due"], bill["total_portions"]) == (42, 12, 3)
    call(at, "set_bill_fee", bill_id="B1", cleaning_fee=9)
    assert call(at, "get_bill", bill_id="B1")["total"] == 42


# -- balances


@pytest.mark.parametrize("name", ["pay_bill", "record_payment"])
def test_a_payment_lowers_what_is_due_and_the_last_one_settles_it(name: str) -> None:
    at = world(name)
    key = at.focus.arguments["bill_id"]
    due = call(at, "get_bill", bill_id=key)["amount_due"]
    assert 0 < at.focus.arguments["amount"] <= due
    refused(at, name, bill_id=key, amount=due + 0.5)
    refused(at, name, bill_id=key, amount=-1)
    part = round(due / 2, 2)
    call(at, name, bill_id=key, amount=part)
    half = call(at, "get_bill", bill_id=key)
    assert (half["amount_due"], half["status"]) == (round(due - part, 2), "open")
    call(at, name, bill_id=key, amount=half["amount_due"])
    done = call(at, "get_bill", bill_id=key)
    assert (done["amount_due"], done["status"], done["total"]) == (0, "paid", half["total"])
    refused(at, name, bill_id=key, amount=1)


@pytest.mark.parametrize(
    ("name", "sign"), [("top_up_wallet", 1), ("withdraw_funds", -1)]
)  # fmt: skip
def test_a_balance_rises_with_what_is_put_in_and_falls_with_what_is_taken_out(name: str, sign: int) -> None:
    at = world(name)
    key = at.focus.arguments["owner_id"]
    before = call(at, "get_owner", owner_id=key)["wallet_balance"]
    call(at, name, owner_id=key, amount=1.5)
    assert call(at, "get_owner", owner_id=key)["wallet_balance"] == round(before + sign * 1.5, 2)
    if sign < 0:
        refused(at, name, owner_id=key, amount=before)


def test_what_is_charged_on_top_raises_and_what_is_only_planned_moves_nothing() -> None:
    at = world("charge_bill")
    key = at.focus.arguments["bill_id"]
    due = call(at, "get_bill", bill_id=key)["amount_due"]
    call(at, "charge_bill", bill_id=key, amount=4)
    assert call(at, "get_bill", bill_id=key)["amount_due"] == round(due + 4, 2)
    call(at, "schedule_payment", bill_id=key, amount=4)
    assert call(at, "get_bill", bill_id=key)["amount_due"] == round(due + 4, 2)


def test_a_record_that_tells_no_balance_is_paid_in_whole_as_before() -> None:
    at = world("pay_stay")
    key = at.focus.arguments["stay_id"]
    amount = call(at, "get_stay", stay_id=key)["amount"]
    refused(at, "pay_stay", stay_id=key, amount=round(amount / 2, 2))
    assert call(at, "pay_stay", stay_id=key, amount=amount)["amount"] == amount


def test_what_is_settled_without_an_amount_is_settled_whole_and_a_tip_is_no_payment() -> None:
    at = world("settle_bill")
    key = at.focus.arguments["bill_id"]
    call(at, "settle_bill", bill_id=key)
    done = call(at, "get_bill", bill_id=key)
    assert (done["amount_due"], done["status"]) == (0, "paid")
    tipped = tool("pay_bill", "Pay a bill.", "write", bill_id="string", tip=NUMBER, amount=NUMBER)
    assert infer_world([*TOOLS, tipped], parse_policy(POLICY, tools=TOOLS)).deeds["pay_bill"].lowers == {
        "amount": "amount_due"
    }


def test_an_open_bill_owes_its_total_and_a_paid_one_nothing() -> None:
    for seed in range(12):
        for bill in world("get_bill", seed).records["bill"].values():
            assert bill["amount_due"] == (bill["total"] if bill["status"] == "open" else 0)


# -- what says only which deed it is


def test_what_says_which_deed_is_meant_is_no_state_but_a_field_of_that_name_is() -> None:
    assert MODEL.deeds["adjust_stay"].sets == {"until": "until"}
    own = POLICY.replace("- stay ID", "- stay ID\n- action")
    assert "action" in infer_world(TOOLS, parse_policy(own, tools=TOOLS)).deeds["adjust_stay"].sets
    by_number = [tool("adjust_stock", "Adjust it.", "write", ware_id="string", change=WHOLE)]
    assert "change" in infer_world(by_number).deeds["adjust_stock"].sets
    typed = [tool("update_room", "Update it.", "write", room_id="string", type=TEXT, kind=TEXT, change_type=TEXT)]
    assert {"type", "kind"} == {*infer_world(typed).deeds["update_room"].sets}
