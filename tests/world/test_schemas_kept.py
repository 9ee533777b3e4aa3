"""What a schema says of a value holds for keys, for fields and for the arguments of the right call."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from world_sets import tool

from whilesim.core.errors import InputError
from whilesim.core.text import name_words
from whilesim.situations.tools import Tool, parse_tools
from whilesim.world.entities import infer_world
from whilesim.world.fitting import allows, fit
from whilesim.world.kinds import role_of
from whilesim.world.mock import MockWorld

TEXT = {"type": "string"}
PLAIN = st.sampled_from(
    [
        TEXT,
        {"type": "string", "minLength": 12},
        {"type": "string", "maxLength": 5},
        {"type": "string", "minLength": 3, "maxLength": 3},
        {"type": "string", "pattern": r"^[A-Z]{2}-\d{3,5}$"},
        {"type": "string", "pattern": r"^(?:north|south)( [a-z]+)?$"},
        {"type": "string", "enum": ["a", "b"]},
        {"enum": [1, "two", 2.5]},
        {"const": "fixed"},
        {"type": "boolean"},
        {"type": ["integer", "null"], "minimum": 40},
        {"anyOf": [{"type": "integer", "minimum": 7}, {"type": "string", "minLength": 9}]},
    ]
)


@st.composite
def numbers(draw: st.DrawFn) -> dict[str, Any]:
    low, step = draw(st.sampled_from([-40, 0, 0.001, 3, 500])), draw(st.sampled_from([None, 0.5, 7]))
    bound = {draw(st.sampled_from(["minimum", "exclusiveMinimum"])): low}
    over = {draw(st.sampled_from(["maximum", "exclusiveMaximum"])): low + draw(st.sampled_from([15, 100]))}
    kind = draw(st.sampled_from(["integer", "number"]))
    return {"type": kind, **bound, **(over if draw(st.booleans()) else {}), **({"multipleOf": step} if step else {})}


def nested(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    lists = st.builds(
        lambda i, n: {"type": "array", "items": i, "minItems": n, "maxItems": n + 1}, inner, st.integers(0, 3)
    )
    parts = st.dictionaries(st.sampled_from(["alpha", "beta"]), inner, min_size=1)
    return lists | parts.map(lambda p: {"type": "object", "properties": p, "required": list(p)})


SCHEMAS = st.recursive(PLAIN | numbers(), nested, max_leaves=3)
KEYS = st.sampled_from(
    [
        TEXT,
        {"type": "integer", "minimum": 1, "maximum": 500},
        {"type": "string", "pattern": r"^TH-\d{4}$"},
        {"type": "string", "minLength": 12},
        {"type": "string", "enum": ["north", "south"]},
        {"type": "string", "format": "uuid"},
    ]
)


def a_set(key: dict[str, Any], fields: dict[str, Any]) -> tuple[Tool, ...]:
    """Tools that read, list, make and change things with these fields."""
    own = {"thing_id": key}
    shown = {"type": "object", "properties": {**own, "customer_id": TEXT, **fields}}
    return (
        replace(tool("get_thing", **own), returns=shown),
        tool("list_things", customer_id="string"),
        tool("update_thing", "Update a thing.", "write", **own, **fields),
        tool("create_thing", "Create a thing.", "write", customer_id="string", **fields),
        tool("get_customer", customer_id="string"),
    )


@settings(max_examples=40, deadline=None)
@given(
    KEYS,
    st.dictionaries(st.sampled_from(["gamma", "delta", "colour", "phone", "city"]), SCHEMAS, min_size=1),
    st.integers(0, 99),
)
def test_what_is_stored_and_what_is_called_keeps_to_its_schema(key: Any, fields: dict[str, Any], seed: int) -> None:
    tools = a_set(key, fields)
    model = infer_world(tools)
    for one in tools:
        world = MockWorld(tools, None, {"tool": one.name, "world_state": "exists"}, seed, model=model)
        for record in world.records["thing"].values():
            assert allows(key, record["thing_id"])
            for name, told in model.kinds["thing"].fields.items():
                if name in record:
                    Draft202012Validator(dict(told.schema)).validate(record[name])
        Draft202012Validator(dict(one.parameters)).validate(dict(world.focus.arguments))
        world.call(one.name, world.focus.arguments)
        assert not world.log[-1].failed, world.log[-1].reply


@settings(max_examples=300, deadline=None)
@given(SCHEMAS, st.sampled_from(["blue", "P58008", 7, 9.75, True, None, [], {}]), st.integers(0, 999))
def test_a_value_is_brought_into_any_schema_and_stays_where_it_is_allowed(schema: Any, value: Any, seed: int) -> None:
    fitted = fit(value, schema, seed, "x")
    Draft202012Validator(schema).validate(fitted)
    assert fit(fitted, schema, seed, "y") == fitted


@pytest.mark.parametrize(
    "pattern",
    [r"^PET-\d{4}$", r"^(?:AB|CD)-(\d{2}|[x-z]+)$", r"^\+?[1-9]\d{1,14}$", r"^[^@\s]+@[^@\s]+\.[a-z]{2,}$", r"^\(\d{3}\) \d{3}$",
     r"^(?=.*\d)[A-Z0-9]{6}$", r"^a$|^b$", r"^([A-Z]{2}(-\d+)?){2}$", r"^ü{2}$", r"^$"],
)  # fmt: skip
def test_a_text_is_written_in_the_form_of_a_pattern(pattern: str) -> None:
    found = [fit("blue", {"type": "string", "pattern": pattern}, seed) for seed in range(20)]
    Draft202012Validator({"type": "array", "items": {"pattern": pattern}}).validate(found)


IMPOSSIBLE = [
    {"type": "integer", "minimum": 5, "maximum": 4},
    {"type": "integer", "minimum": 0.2, "maximum": 0.8},
    {"type": "string", "pattern": r"^(\w)\1$"},
]


@pytest.mark.parametrize("schema", IMPOSSIBLE)
def test_what_nothing_is_allowed_for_ends_no_world_and_is_noted(schema: dict[str, Any]) -> None:
    tools = (tool("get_pet", pet_id="string"), tool("set_dose", "Set the dose.", "write", pet_id="string", dose=schema))
    world = MockWorld(tools, None, {"tool": "set_dose"}, 1)
    assert "pet_id" in world.focus.arguments
    assert [n for n in world.model.notes() if "set_dose: no value was found that the schema of 'dose' allows" in n]


@pytest.mark.parametrize("odd", [[[["a"]]], 7])
def test_a_pattern_that_is_no_text_is_refused_in_words(odd: Any, recwarn: pytest.WarningsRecorder) -> None:
    schema = {"type": "object", "properties": {"pet_id": {"type": "string", "pattern": odd}}}
    with pytest.raises(InputError, match="is not of type 'string'"):
        parse_tools([{"name": "get_pet", "parameters": schema}])
    assert not recwarn.list


@pytest.mark.parametrize("odd", [r"^\p{L}+$", "["])
def test_a_pattern_that_cannot_be_read_is_left_out_and_noted(odd: Any) -> None:
    schema = {"type": "object", "properties": {"pet_id": {"type": "string", "pattern": odd}}}
    (told,) = parse_tools([{"name": "get_pet", "parameters": schema}])
    assert "pattern" not in told.parameters["properties"]["pet_id"]
    assert "cannot be read here" in told.notes[0]
    assert MockWorld([told]).call("get_pet", {"pet_id": "Ann"})


def test_one_argument_that_nothing_fits_does_not_starve_the_others() -> None:
    whole = {"type": "array", "minItems": 3, "uniqueItems": True, "items": {"type": "string", "enum": ["a", "b", "c"]}}
    asked = {
        "case_id": "string",
        "ends": IMPOSSIBLE[0],
        "tags": whole,
        "letter": {"type": "string", "maxLength": 3},
        "ok": {"const": True},
    }
    tools = (tool("get_case", case_id="string"), tool("close_case", "Close a case.", "write", **asked))
    made = MockWorld(tools, None, {"tool": "close_case"}, 2).focus.arguments
    assert sorted(made["tags"]) == ["a", "b", "c"]
    assert (len(made["letter"]) <= 3, made["ok"]) == (True, True)


@pytest.mark.parametrize(
    ("name", "words"),
    [("größe", ["größe"]), ("StraßenName", ["straßen", "name"]), ("类型", ["类型"]), ("имяКлиента", ["имя", "клиента"]),
     ("ürünFiyatı", ["ürün", "fiyatı"]), ("İSİM", ["isim"]), ("dirección_fiscal", ["dirección", "fiscal"]), ("हिन्दी_नाम", ["हिन्दी", "नाम"]),
     ("gro\u0308ße", ["größe"]), ("getOrder_byID2Go", ["get", "order", "by", "id2", "go"]), ("XMLId", ["xml", "id"]), ("__", [])],
)  # fmt: skip
def test_a_name_is_split_into_words_in_any_letters(name: str, words: list[str]) -> None:
    assert name_words(name) == words


NAMES = ("姓名", "地址", "电话", "类型", "цвет", "größe", "renk")


def test_fields_whose_names_have_no_latin_letters_are_apart() -> None:
    fields = dict.fromkeys(NAMES, TEXT)
    shown = {"type": "object", "properties": {"patient_id": TEXT, **fields}}
    tools = (
        replace(tool("get_patient", patient_id="string"), returns=shown),
        tool("update_patient", "Update a patient.", "write", patient_id="string", **fields),
    )
    model = infer_world(tools)
    assert model.deeds["update_patient"].sets == {name: name for name in NAMES}
    assert [model.kinds["patient"].find(n) for n in NAMES] == list(NAMES)
    assert not model.kinds["patient"].find("__")
    world = MockWorld(tools, None, {"tool": "update_patient"}, 1, model=model)
    record = world.records["patient"][str(world.focus.arguments["patient_id"])]
    world.call("update_patient", {**world.focus.arguments, "姓名": "甲", "地址": "乙"})
    assert (record["姓名"], record["地址"]) == ("甲", "乙")
    assert "new 类型" in world.focus.facts


@pytest.mark.parametrize(
    ("name", "role"),
    [("dirección", "address"), ("teléfono", "phone"), ("straße", "street"), ("ülke", "country"), ("цена", "money"),
     ("姓名", "full_name"), ("адрес", "address"), ("açıklama", "text")],
)  # fmt: skip
def test_a_field_s_name_tells_what_it_holds_with_accents_and_in_other_letters(name: str, role: str) -> None:
    assert role_of(name) == role


def test_a_name_that_holds_no_word_at_all_is_no_fact_that_ends_a_world() -> None:
    tools = (
        tool("get_thing", thing_id="string"),
        tool("update_thing", "Update a thing.", "write", thing_id="string", **{"$": "string"}),
    )
    assert MockWorld(tools, None, {"tool": "update_thing"}, 1).focus.arguments["$"]


def test_ids_inside_groups_name_records_that_exist_and_wrong_ones_are_refused() -> None:
    branch = {"type": "object", "properties": {"branch_id": TEXT}}
    hold = {
        "type": "object",
        "properties": {"book_id": TEXT, "branch": branch, "book_ids": {"type": "array", "items": TEXT}},
    }
    tools = (
        tool("get_book", book_id="string"),
        tool("get_branch", branch_id="string"),
        tool("get_member", member_id="string"),
        tool("list_holds", member_id="string"),
        tool("place_hold", "Place a hold.", "write", member_id="string", hold=hold),
    )
    for seed in range(5):
        world = MockWorld(tools, None, {"tool": "place_hold"}, seed)
        made = dict(world.focus.arguments)
        assert made["hold"]["book_id"] in world.records["book"]
        assert made["hold"]["branch"]["branch_id"] in world.records["branch"]
        assert set(made["hold"]["book_ids"]) <= set(world.records["book"])
        wrong = {**made, "hold": {**made["hold"], "branch": {"branch_id": "nowhere"}}}
        world.call("place_hold", wrong)
        assert world.log[-1].failed
        assert "branch" in world.log[-1].reply.lower()
        world.call("place_hold", made)
        assert not world.log[-1].failed


def test_the_two_ends_of_a_transfer_are_keys_without_saying_id() -> None:
    tools = (
        tool("get_account", account_number="string"),
        tool("list_accounts", client_id="string"),
        tool("get_client", client_id="string"),
        tool("transfer_funds", "Transfer money.", "write", from_account="string", to_account="string", amount="number"),
    )
    for seed in range(5):
        world = MockWorld(tools, None, {"tool": "transfer_funds"}, seed)
        ends = [world.focus.arguments[a] for a in ("from_account", "to_account")]
        assert set(ends) <= set(world.records["account"])
        assert len({*ends}) == 2
    assert "fund" not in world.model.kinds
