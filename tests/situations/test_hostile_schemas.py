"""Schemas that say little and stand for much: what is read, checked and described of them is counted, not timed."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from whilesim.core.errors import InputError
from whilesim.core.jsontext import read_yaml
from whilesim.situations.tools import parse_tools
from whilesim.world.entities import infer_world
from whilesim.world.fitting import allows, fit
from whilesim.world.mock import MockWorld

PLAIN: dict[str, Any] = {"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]}


def calls_of(name: str, action: Callable[[], Any]) -> int:
    """How often functions of this name are called while something is done."""
    seen: Counter[str] = Counter()
    before = sys.getprofile()
    sys.setprofile(lambda frame, event, _: seen.update([frame.f_code.co_name]) if event == "call" else None)
    try:
        action()
    finally:
        sys.setprofile(before)
    return seen[name]


def chain(levels: int, width: int, leaf: Any = None) -> dict[str, Any]:
    """An object whose every level refers so often to the next."""
    defs: dict[str, Any] = {f"L{levels}": leaf or {"type": "string"}}
    for n in range(levels):
        told = {f"part_{m}": {"$ref": f"#/$defs/L{n + 1}"} for m in range(width)}
        defs[f"L{n}"] = {"type": "object", "properties": told}
    return {
        "type": "object",
        "$defs": defs,
        "properties": {"order_id": {"type": "string"}, "whole": {"$ref": "#/$defs/L0"}},
    }


def source(reply: dict[str, Any], arguments: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    return [
        {"name": "get_order", "description": "Get an order.", "inputSchema": arguments or PLAIN, "outputSchema": reply}
    ]


@pytest.mark.parametrize(("small", "large"), [((4, 3), (4, 6)), ((5, 2), (10, 2)), ((3, 4), (6, 4))])
def test_twice_the_width_or_depth_of_a_shared_reply_is_not_many_times_the_fields_described(
    small: tuple[int, int], large: tuple[int, int]
) -> None:
    little, much = (parse_tools(source(chain(*size))) for size in (small, large))
    few, many = (calls_of("describe_field", lambda t=t: infer_world(t)) for t in (little, much))
    assert 4 < few < many * 2
    assert many <= 3 * few


def test_the_fields_of_a_plain_nested_reply_are_described_about_once() -> None:
    reply: dict[str, Any] = {"type": "string"}
    for level in range(4):
        reply = {"type": "object", "properties": {f"l{level}_{n}": {**reply} for n in range(4)}}
    tools = parse_tools(source({"type": "object", "properties": {"order_id": {"type": "string"}, "whole": reply}}))
    assert calls_of("describe_field", lambda: infer_world(tools)) < 400  # of 341 parts


def test_what_references_repeat_is_read_and_checked_once() -> None:
    few, many = (calls_of("tidy", lambda w=w: parse_tools(source(chain(6, w)))) for w in (2, 4))
    assert many <= 3 * few  # of 127 and 5,461
    assert calls_of("descend", lambda: parse_tools(source(chain(6, 4)))) < 2_000  # the whole, node by node, took 77,000


def test_what_is_referred_to_again_reads_as_if_written_again() -> None:
    [tool] = parse_tools(source(chain(2, 2, {"type": "integer", "minimum": 1})))
    part = {"type": "object", "properties": {f"part_{n}": {"type": "integer", "minimum": 1} for n in (0, 1)}}
    assert tool.returns is not None
    assert tool.returns["properties"]["whole"] == {
        "type": "object",
        "properties": dict.fromkeys(("part_0", "part_1"), part),
    }


def test_a_cut_depends_on_the_references_around_it_and_not_on_what_was_read_before() -> None:
    defs = {
        "A": {"type": "object", "properties": {"b": {"$ref": "#/$defs/B"}, "a_name": {"type": "string"}}},
        "B": {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}, "b_name": {"type": "string"}}},
    }
    ways = {"first": {"$ref": "#/$defs/A"}, "second": {"$ref": "#/$defs/B"}, "third": {"$ref": "#/$defs/A"}}
    [tool] = parse_tools(source({"type": "object", "$defs": defs, "properties": ways}))
    assert tool.returns is not None
    told = tool.returns["properties"]
    assert told["first"] == told["third"]
    assert told["first"]["properties"]["b"]["properties"]["a"] == {"type": "object"}
    assert told["second"]["properties"]["a"]["properties"] == {"b": {"type": "object"}, "a_name": {"type": "string"}}


FAULTS: list[tuple[Any, str]] = [
    ({"type": "number", "minimum": "5"}, "minimum"), ({"type": "text of some kind"}, "type"), ({"anyOf": []}, "anyOf"),
    ({"anyOf": {"type": "string"}}, "anyOf"), ({"not": 5}, "not"), ({"properties": {"a": 5}}, "properties.a"), ({"items": "x"}, "items"),
    ({"required": [1]}, "required"), ({"description": 5}, "description"), ({"dependentSchemas": {"a": {"type": 7}}}, "dependentSchemas"),
    ({"properties": [{}]}, "properties"), ({"enum": 3}, "enum"), ({"propertyNames": {"minLength": -1}}, "propertyNames"),
]  # fmt: skip


@pytest.mark.parametrize(("fault", "place"), FAULTS, ids=lambda f: str(f))
def test_a_fault_is_found_wherever_it_stands(fault: Any, place: str) -> None:
    for _ in range(2):  # what was checked before is found again
        inner = {
            "type": "object",
            "properties": {"sound": {"type": "string"}, "list": {"type": "array", "items": fault}},
        }
        given = {
            "type": "object",
            "properties": {"a": {"type": "string"}, "deep": {"anyOf": [inner, {"type": "integer"}]}},
        }
        assert not Draft202012Validator(Draft202012Validator.META_SCHEMA).is_valid(given)
        with pytest.raises(InputError, match="no JSON Schema: at .*" + place):
            parse_tools(source(PLAIN, given))


def nest(levels: int, leaf: Any) -> dict[str, Any]:
    for _ in range(levels):
        leaf = {"type": "object", "properties": {"part": leaf}, "required": ["part"]}
    return {
        "type": "object",
        "properties": {"order_id": {"type": "string"}, "part": leaf},
        "required": ["order_id", "part"],
    }


@pytest.mark.parametrize(
    "leaf", [{"type": "integer", "minimum": 5, "maximum": 3}, {"not": {}}, {"type": "string", "pattern": "^(?!x)x$"}]
)
def test_a_part_that_nothing_fits_is_not_tried_again_for_every_try_of_what_it_stands_in(leaf: dict[str, Any]) -> None:
    for levels in (0, 1, 2, 6):
        schema = nest(levels, leaf)
        value = {"order_id": "W1", "part": "x"}
        assert fit(value, schema, 1, "argument") == value
        assert calls_of("allows", lambda s=schema, v=value: fit(v, s, 1, "argument")) <= 1_500 * (levels + 2)
    [tool] = parse_tools(source(PLAIN, nest(3, leaf)))
    assert MockWorld([tool], situation={"tool": "get_order"}, seed=1).focus.tool == "get_order"


def test_what_only_a_later_try_fits_is_found_in_every_part() -> None:
    schema = nest(3, {"type": "array", "minItems": 3, "items": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{4}$"}})
    assert allows(schema, fit({"order_id": "W1"}, schema, 1, "argument"))


def test_a_yaml_file_of_anchors_within_anchors_is_refused_before_it_fills_the_memory() -> None:
    lines = [
        "- &x0 {type: string}",
        *(f"- &x{n} {{properties: {{{', '.join(f'p{m}: *x{n - 1}' for m in range(9))}}}}}" for n in range(1, 12)),
    ]
    with pytest.raises(ValueError, match="again too often"):
        read_yaml("\n".join(lines))
    merged = ["- &x0 {a: 1}", *(f"- &x{n} {{<<: [{', '.join([f'*x{n - 1}'] * 9)}]}}" for n in range(1, 12))]
    with pytest.raises(ValueError, match="again too often"):
        read_yaml("\n".join(merged))
    with pytest.raises(InputError, match="neither JSON"):
        parse_tools("\n".join(lines))


def test_yaml_that_says_a_few_things_again_is_read() -> None:
    assert read_yaml("a: &a {b: 1}\nc: [*a, *a]\nd: {<<: *a, e: 2}") == {
        "a": {"b": 1},
        "c": [{"b": 1}] * 2,
        "d": {"b": 1, "e": 2},
    }
    assert read_yaml("") is None
