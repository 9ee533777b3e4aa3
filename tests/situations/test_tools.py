"""Tools in any dialect come out as one kind of value, or with an error that says what to do."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from whilesim.core.errors import InputError
from whilesim.situations.schemas import first_form
from whilesim.situations.tools import Tool, parse_tools, read_tools

SCHEMA = {"type": "object", "properties": {"parcel_id": {"type": "string"}}, "required": ["parcel_id"]}
PLAIN = {"name": "find_parcel", "description": "Find a parcel.", "parameters": SCHEMA}


def one(source: Any) -> Tool:
    (tool,) = parse_tools(source)
    return tool


DIALECTS = {
    "openai wrapped": [{"type": "function", "function": PLAIN}],
    "openai bare": [PLAIN],
    "openai responses": [{"type": "function", "strict": True, **PLAIN}],
    "one tool alone": PLAIN,
    "a box of functions": {"functions": [PLAIN]},
    "a mapping by name": {"find_parcel": {"description": "Find a parcel.", "parameters": SCHEMA}},
    "wrapped by name": {"find_parcel": {"type": "function", "function": PLAIN}},
    "required beside the arguments": [{**PLAIN, "parameters": SCHEMA["properties"], "required": ["parcel_id"]}],
    "wrapped by name in source": f"SCHEMAS: dict = {{'find_parcel': {{'type': 'function', 'function': {PLAIN!r}}}}}",
    "anthropic": [{"name": "find_parcel", "description": "Find a parcel.", "input_schema": SCHEMA}],
    "mcp": {"jsonrpc": "2.0", "result": {"tools": [{"name": "find_parcel", "description": "Find a parcel.", "inputSchema": SCHEMA}]}},
    "gemini": [
        {
            "functionDeclarations": [
                {
                    "name": "find_parcel",
                    "description": "Find a parcel.",
                    "parameters": {"type": "OBJECT", "properties": {"parcel_id": {"type": "STRING"}}, "required": ["parcel_id"]},
                }
            ]
        }
    ],
    "smolagents": [{"name": "find_parcel", "description": "Find a parcel.", "inputs": {"parcel_id": {"type": "string"}}}],
    "cohere": [
        {
            "name": "find_parcel",
            "description": "Find a parcel.",
            "parameter_definitions": {"parcel_id": {"type": "str", "required": True}},
        }
    ],
    "bfcl": [{**PLAIN, "parameters": {**SCHEMA, "type": "dict"}}],
    "toolbench": [
        {
            "api_name": "find_parcel",
            "api_description": "Find a parcel.",
            "required_parameters": [{"name": "parcel_id", "type": "STRING"}],
            "optional_parameters": [],
        }
    ],
    "a list of arguments": [{**PLAIN, "parameters": [{"name": "parcel_id", "type": "string", "required": True}]}],
    "tools as JSON text": json.dumps([PLAIN]),
    "tools as JSON lines": json.dumps(PLAIN) + "\n\n" + json.dumps({**PLAIN, "name": "second"}),
    "each tool as JSON text": [json.dumps(PLAIN)],
    "a Python literal": "[" + repr(PLAIN) + "]",
    "a schema in Python source": f"import os\n\nTOOLS = [{PLAIN!r}]\n\ndef find_parcel():\n    ...\n",
    "yaml": "- name: find_parcel\n  description: Find a parcel.\n  parameters:\n    type: object\n    properties:\n"
    "      parcel_id: {type: string}\n    required: [parcel_id]\n",
}  # fmt: skip


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_gives_the_same_tool(dialect):
    tool = parse_tools(DIALECTS[dialect])[0]
    assert (tool.name, tool.description, tool.effect) == ("find_parcel", "Find a parcel.", "read")
    assert {k: tool.parameters[k] for k in SCHEMA} == SCHEMA
    assert tool.id_arguments == ("parcel_id",)


def test_parsed_tools_pass_through_and_mix_with_others():
    tool = one(PLAIN)
    assert parse_tools([tool, {**PLAIN, "name": "other"}])[0] is tool
    assert parse_tools(tool) == (tool,)
    assert one(tool.to_openai()).parameters == tool.parameters


def test_the_original_is_kept_untouched():
    given_ = {"type": "function", "function": {"name": "x", "parameters": {"type": "dict"}}}
    assert one([given_]).original is given_
    assert given_["function"]["parameters"] == {"type": "dict"}


ARGUMENTS = [
    ({"type": "float"}, {"type": "number"}),
    ({"type": "INTEGER", "nullable": True}, {"type": ["integer", "null"]}),
    ({"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}, {"type": ["string", "null"], "default": None}),
    ({"type": "string", "default": None}, {"type": "string"}),
    ({"type": "any", "description": "x"}, {"description": "x"}),
    ({"type": "List[int]"}, {"type": "array", "items": {"type": "integer"}}),
    ({"type": "string[]"}, {"type": "array", "items": {"type": "string"}}),
    ({"enum": ["a", "b"]}, {"type": "string", "enum": ["a", "b"]}),
    ({"oneOf": [{"const": "a", "title": "A"}, {"const": "b"}]}, {"type": "string", "enum": ["a", "b"]}),
    ({"allOf": [{"$ref": "#/$defs/Box"}], "description": "mine"}, {"type": "object", "properties": {"w": {"type": "number"}}, "description": "mine"}),
    ({"anyOf": [{"$ref": "#/$defs/Box"}, {"type": "object", "additionalProperties": True}]}, {"type": "object", "properties": {"w": {"type": "number"}}}),
    ({"type": "array", "items": [{"type": "float"}, {"type": "string"}]}, {"type": "array", "prefixItems": [{"type": "number"}, {"type": "string"}]}),
    ({"type": "string", "example": "W1"}, {"type": "string", "examples": ["W1"]}),
    ({"type": "string", "enum": None, "description": None}, {"type": "string"}),
    ({"type": "object", "properties": {"type": {"type": "str"}, "$ref": {"type": "str"}}}, {"type": "object", "properties": {"type": {"type": "string"}, "$ref": {"type": "string"}}}),
]  # fmt: skip


@pytest.mark.parametrize(("written", "plain"), ARGUMENTS, ids=str)
def test_an_argument_is_plain_json_schema(written, plain):
    definitions = {"Box": {"type": "object", "properties": {"w": {"type": "float"}}}}
    schema = {"type": "object", "properties": {"a": written}, "$defs": definitions}
    assert one([{"name": "x", "parameters": schema}]).parameters["properties"]["a"] == plain


def test_a_recursive_schema_is_cut_and_noted():
    node = {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/Node"}}}}
    tool = one([{"name": "x", "parameters": {"$ref": "#/$defs/Node", "$defs": {"Node": node}}}])
    assert tool.parameters["properties"]["kids"]["items"] == {"type": "object"}
    assert tool.notes == ("'Node' contains itself: cut at its second level",)


def test_references_that_double_at_every_level_do_not_fill_the_memory():
    deep = {
        f"L{n}": {"type": "object", "properties": {k: {"$ref": f"#/$defs/L{n + 1}"} for k in "ab"}} for n in range(60)
    }
    tool = one([{"name": "x", "parameters": {"$ref": "#/$defs/L0", "$defs": {**deep, "L60": {"type": "string"}}}}])
    assert len(json.dumps(tool.parameters)) < 2_000_000


def test_a_reference_that_leads_nowhere_accepts_anything_and_is_noted():
    tool = one([{"name": "x", "parameters": {"type": "object", "properties": {"a": {"$ref": "#/$defs/Gone"}}}}])
    assert tool.parameters["properties"]["a"] == {}
    assert "leads nowhere" in tool.notes[0]


def test_required_is_read_from_marks_and_its_contradictions_are_told():
    marked = {"a": {"type": "string", "required": True}, "b": {"type": "string", "required": False}}
    assert one([{"name": "x", "parameters": {"type": "object", "properties": marked}}]).parameters["required"] == ["a"]
    both = {"type": "object", "properties": {"a": {}}, "required": ["a", "a"], "optional": ["a"]}
    tool = one([{"name": "x", "parameters": both}])
    assert tool.parameters["required"] == ["a"]
    assert "both required and optional" in tool.notes[0]
    assert one([{"name": "x", "parameters": {"type": "object"}, "required": []}]).parameters["properties"] == {}
    beside = {"name": "x", "parameters": {"type": "object", "properties": {"a": {}}}, "required": ["a"]}
    assert one([beside]).parameters["required"] == ["a"]


def test_arguments_given_as_a_plain_mapping_are_required_unless_they_have_a_default():
    mapping = {"city": {"type": "str"}, "days": {"type": "int, optional"}, "unit": {"type": "str", "default": "km"}}
    assert one([{"name": "x", "parameters": mapping}]).parameters["required"] == ["city"]


def test_a_required_argument_without_description_accepts_anything():
    tool = one([{"name": "x", "parameters": {"type": "object", "properties": {}, "required": ["a"]}}])
    assert tool.parameters["properties"] == {"a": {}}
    assert "required but not described" in tool.notes[0]


NAMES = [
    (["a", "a", "a"], ["a", "a_2", "a_3"]),
    (["a", "a_2", "a"], ["a", "a_2", "a_3"]),
    (["shop.find order", "shop/find/order"], ["shop_find_order", "shop_find_order_2"]),
    (["查询订单", "ok"], ["tool_1", "ok"]),
    (["x" * 70, "x" * 64], ["x" * 64, "x" * 62 + "_2"]),
]


@pytest.mark.parametrize(("given_names", "wire"), NAMES, ids=str)
def test_names_are_legal_and_unique_and_changes_are_noted(given_names, wire):
    tools = parse_tools([{"name": name} for name in given_names])
    assert [t.name for t in tools] == wire
    assert [bool(t.notes) for t in tools] == [a != b for a, b in zip(given_names, wire, strict=True)]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(min_size=1, max_size=80), min_size=1, max_size=8))
def test_whatever_the_names_the_wire_names_are_legal_and_unique(names):
    tools = parse_tools([{"name": name, "description": name} for name in names])
    assert len({t.name for t in tools}) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", t.name) for t in tools)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "properties",
                    "items",
                    "anyOf",
                    "allOf",
                    "enum",
                    "required",
                    "$ref",
                    "default",
                    "a",
                    "nullable",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@given(JSON)
def test_any_schema_is_read_as_json_schema_or_refused_in_words(schema):
    try:
        tool = one([{"name": "x", "parameters": schema}])
    except InputError:
        return
    Draft202012Validator.check_schema(dict(tool.parameters))
    assert tool.parameters["type"] == "object"
    assert set(tool.parameters["required"]) <= set(tool.parameters["properties"])
    again = parse_tools([tool.to_openai()])[0].parameters
    assert {**again, "default": None} == {**tool.parameters, "default": None}


ERRORS = [
    ([], "no tool in"),
    (None, "tools is None"),
    (7, "tools is 7"),
    ([7], r"tools\[0\] is 7"),
    ([PLAIN, {"description": "x"}], r"tools\[1\] is .* which has no 'name'"),
    ([{"name": ""}], "has no 'name'"),
    ([{"type": "web_search"}], "has no 'name'"),
    ({"tools": {"x": 3}}, "has no 'name'"),
    ("2024-01-01: a date is no key in JSON", "neither JSON, JSON lines, YAML nor Python"),
    ("hello there", "neither JSON, JSON lines, YAML nor Python"),
    ("missing.json", "tools file 'missing.json' is not there"),
    ([{"name": "x", "parameters": {"type": "object", "properties": {"a": {"type": "strng"}}}}], "at properties.a.type, 'strng' is no type"),
    ([{"name": "x", "parameters": {"type": "object", "properties": {"a": "string"}}}], "at properties.a"),
    ([{"name": "x", "parameters": {"type": "array"}}], "have the type 'array', but a tool is called with named arguments"),
    ([{"name": "x", "parameters": 5}], "schema of its arguments is 5"),
    ([{"name": "x", "parameters": "{}"}], "schema of its arguments is '{}'"),
    ([{"name": "x", "parameters": [{"type": "string"}]}], "without a 'name'"),
    ([{"name": "x", "effect": "delete"}], "effect 'delete' is not known. Type 'read'"),
    ([{"name": "x", "input_shema": SCHEMA}], "tool 'x' has 'input_shema', which is no key of a tool. Did you mean 'input_schema'"),
    ([{"type": "function", "function": {"name": "x", "paramters": SCHEMA}}], "'paramters', which is no key .* Did you mean 'parameters'"),
    ({"openapi": "3.1.0", "paths": {}}, "no operation under 'paths'"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "message"), ERRORS, ids=str)
def test_what_is_no_tool_is_refused_with_what_to_give(source, message):
    with pytest.raises(InputError, match=message):
        parse_tools(source)


def test_a_schema_nested_beyond_all_reason_is_refused():
    schema: dict[str, Any] = {}
    for _ in range(5_000):
        schema = {"type": "array", "items": schema}
    with pytest.raises(InputError, match="nested too deeply"):
        parse_tools([{"name": "x", "parameters": {"type": "object", "properties": {"a": schema}}}])


@pytest.mark.parametrize("pattern", ["^[[A-Z]-]{3}$", "a{99999999999}", "(?<x>a)", "(" * 5_000 + ")" * 5_000])
def test_a_pattern_that_python_cannot_read_or_doubts_is_left_out_aloud(pattern):
    properties = {
        "a": {"type": "string", "pattern": pattern},
        "b": {"type": "object", "patternProperties": {pattern: {}}},
    }
    tool = one([{"name": "x", "parameters": {"type": "object", "properties": properties}}])
    assert tool.parameters["properties"] == {"a": {"type": "string"}, "b": {"type": "object", "patternProperties": {}}}
    assert all("cannot be read here" in note for note in tool.notes)


def test_of_two_faults_of_a_schema_the_same_one_is_told_in_every_run():
    code = (
        "from whilesim.situations.tools import parse_tools\n"
        "schema = {'type': 'object', 'properties': {'a': {'type': 'array', 'items': 5, 'minItems': 'x'}, 'b': 5}, 'required': 5}\n"
        "try: parse_tools([{'name': 'x', 'parameters': schema}])\n"
        "except ValueError as error: print(error)"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in "124"
    }
    assert len(told) == 1


def test_effects_can_be_set_and_a_wrong_name_is_refused():
    tool = parse_tools([PLAIN], effects={"find_parcel": "write"})[0]
    assert (tool.effect, tool.effect_rule) == ("write", "given")
    with pytest.raises(InputError, match="effects names 'nope', which is no tool"):
        parse_tools([PLAIN], effects={"nope": "read"})


@pytest.mark.parametrize(("name", "text"), [("t.json", json.dumps([PLAIN])), ("t.yaml", DIALECTS["yaml"]), ("t.jsonl", json.dumps(PLAIN))])  # fmt: skip
def test_a_file_is_read_by_its_content(tmp_path: Path, name, text):
    (tmp_path / name).write_text("\ufeff" + text, encoding="utf-8")
    assert parse_tools(tmp_path / name) == parse_tools(str(tmp_path / name)) == parse_tools(read_tools(tmp_path / name))
    assert parse_tools(tmp_path / name)[0].name == "find_parcel"


def test_a_file_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(InputError, match=r"nothing.json' is not there"):
        read_tools(tmp_path / "nothing.json")
    (tmp_path / "bad.py").write_text("def broken(x: int:\n    pass\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"tools file 'bad\.py' is no Python: .*bad\.py, line 1.*Mend it there"):
        parse_tools(tmp_path / "bad.py")


def test_yaml_dates_and_keys_become_json():
    tool = one("name: x\nparameters:\n  type: object\n  properties:\n    day: {type: string, example: 2024-05-01}\n")
    assert tool.parameters["properties"]["day"]["examples"] == ["2024-05-01"]


IDS = {
    True: "order_id orderId item_ids id ids uuid customer_uuid flight_number confirmation_number ticket_no booking_reference "
    "sku imei orderid bestellnummer id_cliente kunden_nr tracking_number reservation_code",
    False: "phone_number card_number zip_code email name date amount valid idea paid seat_number promo_code api_key page "
    "country_code number key order query language_code",
}


@pytest.mark.parametrize("names_record", IDS)
def test_arguments_that_name_a_record_are_found(names_record):
    names = IDS[names_record].split()
    tool = one([{"name": "x", "parameters": {"type": "object", "properties": {n: {"type": "string"} for n in names}}}])
    assert set(tool.id_arguments) == (set(names) if names_record else set())


@pytest.mark.parametrize(
    ("name", "schema", "is_key"),
    [
        ("batch_number", {"type": ["integer", "null"]}, False),
        ("batch_number", {"anyOf": [{"type": "integer"}, {"type": "null"}]}, False),
        ("has_account_id", {"type": ["boolean", "null"]}, False),
        ("order_id", {"type": ["integer", "null"]}, True),
        ("batch_number", {"type": ["string", "null"]}, True),
    ],
)
def test_a_number_that_may_be_null_is_a_number(name, schema, is_key):
    tool = one([{"name": "x", "parameters": {"type": "object", "properties": {name: schema}}}])
    assert tool.id_arguments == ((name,) if is_key else ())


def test_a_description_that_is_an_id_counts_too():
    said = {
        "a": "The unique ID of the parcel.",
        "b": "Either an email or an ID.",
        "c": "Identifier of the shelf",
        "d": "An ID card.",
    }
    properties = {name: {"type": "string", "description": text} for name, text in said.items()}
    assert one([{"name": "x", "parameters": {"type": "object", "properties": properties}}]).id_arguments == ("a", "c")


SAID = {
    True: [
        "Number of the contract",
        "Circuit reference, like CBUK12345678",
        "Code printed on the gift card.",
        "Numéro du bail",
        "Nummer der Rechnung",
        "Asset, e.g. AST-00912",
        "Licence plate, which identifies the vehicle",
        "Token that stands for the card",
        "pi_...",
    ],
    False: [
        "Phone number of the customer",
        "Number of the items",
        "Colour code",
        "Code painted on the shelf",
        "Format, e.g. ISO8601",
        "The key of the scale",
        "Unit that stands for the price",
    ],
}


@pytest.mark.parametrize(("is_key", "said"), [(is_key, said) for is_key in SAID for said in SAID[is_key]])
def test_a_description_that_names_a_key_or_shows_one_makes_its_argument_an_id(is_key, said):
    properties = {"a": {"type": "string", "description": said}}
    tool = one([{"name": "x", "parameters": {"type": "object", "properties": properties}}])
    assert bool(tool.id_arguments) == is_key


def test_what_counts_is_no_key():
    properties = {
        "quantity": {"type": "integer", "description": "Number of the product to add"},
        "episode_no": {"type": "integer"},
        "with_references": {"type": "boolean"},
        "order_no": {"type": "integer"},
    }
    assert one([{"name": "x", "parameters": {"type": "object", "properties": properties}}]).id_arguments == (
        "order_no",
    )


def test_an_argument_without_a_word_is_a_key_where_another_tool_calls_it_one():
    def tool(name: str, about: dict[str, str]) -> dict[str, Any]:
        properties = {"ticket": {"type": "string", **about}}
        return {"name": name, "parameters": {"type": "object", "properties": properties}}

    told, silent, other = parse_tools(
        [
            tool("show", {"description": "Number of the ticket"}),
            tool("close", {}),
            tool("write", {"description": "Text"}),
        ]
    )
    assert [t.id_arguments for t in (told, silent, other)] == [("ticket",), ("ticket",), ()]


def test_what_a_source_shows_of_replies_is_kept():
    assert one([{**PLAIN, "returns": {"type": "dict"}}]).returns == {"type": "object"}
    assert one([{**PLAIN, "result": {"type": "string"}}]).returns == {"type": "string"}
    told = {**PLAIN, "description": 'Find a parcel. Returns: {"weight": 2, "status": "sent"} or an error.'}
    assert one([told]).examples == (({}, {"weight": 2, "status": "sent"}),)


def test_a_wrong_schema_of_a_reply_is_left_out_aloud():
    tool = one([{**PLAIN, "response": {"type": "a list of parcels"}}])
    assert tool.returns is None
    assert "schema of its reply was left out" in tool.notes[0]


KEYS = [
    "name",
    "description",
    "parameters",
    "type",
    "properties",
    "function",
    "tools",
    "result",
    "paths",
    "get",
    "post",
    "responses",
    "200",
    "content",
    "application/json",
    "schema",
    "requestBody",
    "in",
    "$ref",
    "required",
    "items",
    "anyOf",
    "enum",
    "security",
    "annotations",
    "examples",
    "returns",
    "required_parameters",
    "operationId",
    "inputSchema",
    "json",
    "allOf",
    "default",
    "nullable",
    "openapi",
]
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from(["", "x", "path", "query", "body", "object", "#/paths", "[1]"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=20,
)


@settings(max_examples=300, deadline=None)
@given(ANYTHING)
def test_whatever_is_given_is_read_or_refused_in_words(anything):
    operation = {
        "openapi": "3.1.0",
        "paths": {"/x": {"post": anything, "get": {"responses": anything, "parameters": [anything]}}},
    }
    for source in (anything, [{"name": "x", "parameters": anything, "returns": anything}], operation):
        try:
            tools = parse_tools(source)
        except InputError as error:
            assert str(error)  # noqa: PT017  either outcome is right
        else:
            assert all(isinstance(tool, Tool) for tool in tools)


def test_a_hundred_and_fifty_tools_keep_their_order():
    tools = parse_tools([{**PLAIN, "name": f"find_{n}"} for n in range(150)])
    assert [t.name for t in tools] == [f"find_{n}" for n in range(150)]


def test_a_file_that_is_no_text_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "tools.json").write_bytes(b"\xff\xfe[\x00")
    with pytest.raises(InputError, match=r"tools\.json' cannot be read .* Save it as text in UTF-8"):
        parse_tools(tmp_path / "tools.json")


def test_what_is_nested_without_end_is_refused_at_once() -> None:
    with pytest.raises(InputError, match="neither JSON, JSON lines, YAML"):
        parse_tools("[" * 20_000 + "]" * 20_000)


def test_a_tool_with_several_forms_has_the_arguments_of_all_and_is_called_in_the_first():
    ways = [
        {"properties": {"do": {"const": "moor"}, "length": {"type": "number"}}, "required": ["do", "length"]},
        {"properties": {"do": {"const": "leave"}, "berth_id": {"type": "string"}}, "required": ["do", "berth_id"]},
    ]
    given = {"name": "manage_berth", "inputSchema": {"type": "object", "oneOf": ways}}
    (found,) = parse_tools([given])
    (again,) = parse_tools([found.to_openai()])
    assert (
        found.parameters["properties"]["do"]["enum"]
        == again.parameters["properties"]["do"]["enum"]
        == ["moor", "leave"]
    )
    assert [*found.parameters["properties"]] == ["do", "length", "berth_id"]
    form = first_form(dict(found.parameters))
    assert ([*form["properties"]], form["required"]) == (["do", "length"], ["do", "length"])
