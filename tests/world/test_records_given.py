"""What a user gave stands in the world as it was given, in whatever form it was given."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
from world_sets import tool

from whilesim.situations.tools import Tool
from whilesim.world.mock import MockWorld
from whilesim.world.spec import WorldSpec

TEXT, NUMBER = {"type": "string"}, {"type": "number"}
ITEMS = {"type": "array", "items": {"type": "object", "properties": {"article_id": TEXT, "price": NUMBER}}}
PARCEL = {"parcel_id": TEXT, "client_id": TEXT, "items": ITEMS, "total": NUMBER, "carrier_id": TEXT}
GIVEN: dict[str, list[dict[str, Any]]] = {
    "parcel": [{"parcel_id": "P1", "client_id": "C1", "items": [{"article_id": "A1", "price": 5.0}], "total": 99.0}],
    "article": [{"article_id": f"A{i}", "name": f"thing {i}", "price": float(i)} for i in range(1, 5)],
    "client": [{"client_id": "C1", "name": "Ann"}],
}


def tools() -> list[Tool]:
    shown = {"type": "object", "properties": PARCEL}
    read = ("article", "client", "carrier")
    return [
        replace(tool("get_parcel", parcel_id="string"), returns=shown),
        tool("return_parcel", "Return a parcel.", "write", parcel_id="string"),
        *(tool(f"get_{kind}", **{f"{kind}_id": "string"}) for kind in read),
    ]


def test_given_records_stay_as_they_are_in_every_world_and_lend_nothing_to_the_next() -> None:
    before, spec = copy.deepcopy(GIVEN), WorldSpec(records=GIVEN)
    model = MockWorld(tools(), spec=spec).model
    first = {seed: MockWorld(tools(), None, {}, seed, model=model).records for seed in (2, 0, 1)}
    assert before == GIVEN
    for seed, records in first.items():
        parcel = dict(records["parcel"]["P1"])
        assert parcel.pop("carrier_id") in records["carrier"]  # only what is missing is filled
        assert parcel == before["parcel"][0]
        again = MockWorld(tools(), None, {}, seed, model=MockWorld(tools(), spec=spec).model)
        assert again.records == records


@pytest.mark.parametrize(
    "odd", [{"items": ["A1"]}, {"notes": "likes blue"}, {"updated_at": 1_700_000_000}, {"items": None}, {"notes": []}]
)
@pytest.mark.parametrize("state", ["exists", "partially_completed", "duplicate"])
def test_given_fields_may_have_any_form(odd: dict[str, Any], state: str) -> None:
    given = {**copy.deepcopy(GIVEN), "parcel": [{**GIVEN["parcel"][0], **odd}]}
    values = {"tool": "return_parcel", "world_state": state, "history": "prior_failure"}
    world = MockWorld(tools(), None, values, 3, spec=WorldSpec(records=given))
    assert world.call("get_parcel", {"parcel_id": "P1"})
    told = world.records["parcel"]["P1"]
    assert "prior_failure" not in str(told)
    assert "could not be completed" in str(told["notes"])
    assert type(told["notes"]) is type(odd.get("notes", []))


def test_a_list_of_keys_where_a_tool_takes_rows_is_no_crash() -> None:
    rows = {"type": "array", "items": {"type": "object", "properties": {"book_id": TEXT, "days": {"type": "integer"}}}}
    member = {"type": "object", "properties": {"member_id": TEXT, "books": {"type": "array", "items": TEXT}}}
    library = [
        replace(tool("get_member", member_id="string"), returns=member),
        tool("get_book", book_id="string"),
        tool("lend_books", "Lend books.", "write", member_id="string", books=rows),
    ]
    world = MockWorld(library, None, {"tool": "lend_books"}, 1)
    assert {row["book_id"] for row in world.focus.arguments["books"]} <= set(world.records["book"])
