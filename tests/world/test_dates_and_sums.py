"""A record's dates are in order, its status fits them, and its sums are those of their parts."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any

import pytest
from world_sets import tool

from whilesim.situations.tools import Tool
from whilesim.world.kinds import Field, Kind, describe_field, happened
from whilesim.world.mock import MockWorld
from whilesim.world.records import add_up

TEXT, NUMBER, COUNT = {"type": "string"}, {"type": "number"}, {"type": "integer"}
DAY, MOMENT = {"type": "string", "format": "date"}, {"type": "string", "format": "date-time"}
MAYBE = {"type": ["string", "null"], "format": "date"}


def status(*words: str) -> dict[str, Any]:
    return {"type": "string", "enum": [*words]}


SHOWN: dict[str, dict[str, Any]] = {
    "loan": {"loan_date": DAY, "due_date": DAY, "returned_date": MAYBE, "status": status("on loan", "overdue", "returned")},
    "visit": {"date": DAY, "created_at": MOMENT, "cancelled_at": MAYBE,
              "status": status("requested", "confirmed", "completed", "no show", "cancelled")},
    "stay": {"check_in_date": DAY, "check_out_date": DAY, "nights": COUNT, "created_at": MOMENT,
             "price": {"type": "integer", "minimum": 100, "maximum": 900}},
    "meter": {"read_at": COUNT, "due_date": COUNT, "updated_at": COUNT, "notes": TEXT},
    "member": {"name": TEXT, "age": COUNT, "date_of_birth": DAY},
}  # fmt: skip


def tools() -> list[Tool]:
    found = [
        tool(f"cancel_{kind}", f"Cancel a {kind}.", "write", **{f"{kind}_id": "string"}) for kind in ("visit", "loan")
    ]
    for kind, fields in SHOWN.items():
        keys = {f"{kind}_id": TEXT, "member_id": TEXT}
        shown = {"type": "object", "properties": {**keys, **fields}}
        found.append(replace(tool(f"get_{kind}", **{f"{kind}_id": "string"}), returns=shown))
    return found


@pytest.fixture(scope="module")
def worlds() -> list[MockWorld]:
    model = MockWorld(tools()).model
    values = {"tool": "cancel_visit", "history": "prior_failure"}
    return [MockWorld(tools(), None, values, seed, model=model) for seed in range(40)]


def records(worlds: list[MockWorld], kind: str) -> list[dict[str, Any]]:
    return [record for world in worlds for record in world.records[kind].values()]


def test_what_is_lent_is_due_later_and_back_only_when_it_says_so(worlds: list[MockWorld]) -> None:
    today = f"{worlds[0].model.now:%Y-%m-%d}"
    for loan in records(worlds, "loan"):
        assert loan["loan_date"] < loan["due_date"]
        assert (loan["returned_date"] is not None) == (loan["status"] == "returned")
        assert loan["loan_date"] <= (loan["returned_date"] or today) <= today
        assert loan["status"] != "overdue" or loan["due_date"] < today


def test_a_status_fits_the_day_and_what_was_made_is_older(worlds: list[MockWorld]) -> None:
    today, days = f"{worlds[0].model.now:%Y-%m-%d}", set()
    for visit in records(worlds, "visit"):
        day = visit["date"]
        days.add((day > today) - (day < today))
        assert visit["created_at"][:10] <= min(day, visit["updated_at"][:10])
        assert (visit["cancelled_at"] is not None) == (visit["status"] == "cancelled")
        assert day >= today or visit["status"] in ("completed", "no show", "cancelled")
        assert day <= today or visit["status"] not in ("completed", "no show")
        assert all(note["date"] >= visit["created_at"][:10] for note in visit["notes"])
    assert days == {-1, 0, 1}


def test_what_follows_from_other_fields_is_counted(worlds: list[MockWorld]) -> None:
    now = worlds[0].model.now
    for stay in records(worlds, "stay"):
        nights = dt.date.fromisoformat(stay["check_out_date"]) - dt.date.fromisoformat(stay["check_in_date"])
        assert stay["nights"] == nights.days > 0
        assert type(stay["price"]) is int
        assert 100 <= stay["price"] <= 900
    for member in records(worlds, "member"):
        assert 0 <= now.year - int(member["date_of_birth"][:4]) - member["age"] <= 1


def test_numbers_and_texts_stay_what_their_schema_says(worlds: list[MockWorld]) -> None:
    for meter in records(worlds, "meter"):
        stamps = {type(meter[name]) for name in ("read_at", "due_date", "updated_at")}
        assert stamps == {int}
        assert 1_500_000_000 < meter["read_at"] < meter["due_date"] < 2_500_000_000
        assert isinstance(meter["notes"], str)


@pytest.mark.parametrize(
    ("name", "done"),
    [("returned_date", True), ("paid_at", True), ("diedOn", True), ("incident_date", True), ("departure_date", False), ("last_login", True), ("created_at", False), ("due_date", False), ("updated_at", False)],
)  # fmt: skip
def test_a_date_of_what_was_done_is_known_by_its_name(name: str, done: bool) -> None:
    assert happened(name) is done


@pytest.mark.parametrize(
    ("extras", "total", "wanted"),
    [
        ({"tax": 2.0}, "total", 22.0),
        ({"taxi_price": 9.0, "coffee_price": 4.0}, "total", 20.0),  # hold 'tax' and 'fee', and are none
        ({"total_tax": 3.0, "discount_amount": 5.0}, "total", 18.0),
        ({"total_paid": 7.0, "service_fees": 1.0}, "order_total", 21.0),
        ({"taxes": 2.5}, "total_amount", 22.5),
    ],
)
def test_a_total_is_the_sum_of_its_parts_and_nothing_else(extras: dict[str, float], total: str, wanted: float) -> None:
    line = Field(
        name="lines", role="items", inner=(Field(name="price", role="money"), Field(name="quantity", role="count"))
    )
    money = {name: Field(name=name, role="money") for name in (*extras, total)}
    record = {**extras, total: 1.0, "lines": [{"price": 6.0, "quantity": 2}, {"price": 8.0, "quantity": 1}]}
    add_up(Kind(name="order", key="order_id", fields={"lines": line, **money}), record)
    assert record[total] == wanted
    assert {name: record[name] for name in extras} == extras


@pytest.mark.parametrize(("form", "role"), [("date", "date"), ("date-time", "moment"), ("", "moment")])
def test_the_form_that_a_schema_states_beats_the_name(form: str, role: str) -> None:
    assert describe_field("start_on", {"type": "string", "format": form}, "").role == role


def test_what_a_write_will_note_has_not_happened_yet_and_lies_behind() -> None:
    tools = [
        tool("get_pet", pet_id="string"),
        tool(
            "mark_deceased",
            "Mark a pet as deceased.",
            "write",
            pet_id="string",
            diedOn={"type": "string", "format": "date"},
        ),
        tool("move_pet", "Move a pet.", "write", pet_id="string", move_date={"type": "string", "format": "date"}),
    ]
    for seed in range(6):
        world = MockWorld(tools, None, {"tool": "mark_deceased"}, seed)
        assert all(pet.get("diedOn") is None for pet in world.records["pet"].values())
        today = f"{world.model.now:%Y-%m-%d}"
        assert (
            world.focus.arguments["diedOn"]
            < today
            < MockWorld(tools, None, {"tool": "move_pet"}, seed).focus.arguments["move_date"]
        )
