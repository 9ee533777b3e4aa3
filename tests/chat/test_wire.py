"""Requests and replies as bytes."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from whilesim.chat.failures import CallFailed
from whilesim.chat.messages import Message, ToolCall
from whilesim.chat.usage import Price
from whilesim.chat.wire import Writer, read_reply, split_reasoning, to_wire

TOOLS = ({"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}},)
texts = st.text(max_size=20) | st.just("half \ud83d a pair") | st.just("nul \x00 byte")
calls = st.builds(ToolCall, id=st.text(min_size=1, max_size=3), name=st.just("look"), arguments=texts)
messages = st.lists(
    st.builds(
        Message,
        role=st.sampled_from(["system", "user", "assistant", "tool"]),
        content=st.none() | texts,
        tool_calls=st.lists(calls, max_size=2).map(tuple),
    ),
    max_size=8,
)


@given(messages, st.data())
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_body_written_piece_by_piece_is_the_body_written_at_once(said, data):
    writer = Writer({"model": "m"})
    for _ in range(3):  # grow, shrink, change: whatever comes, the body is what the messages say
        end = data.draw(st.integers(0, len(said)))
        body = writer.write(said[:end], TOOLS, None, "one conversation")
        assert json.loads(body)["messages"] == [to_wire(m) for m in said[:end]]
        assert body == Writer({"model": "m"}).write(said[:end], TOOLS, None)


def test_an_earlier_message_that_was_edited_is_written_again():
    said = [Message(role="user", content="one"), Message(role="user", content="two")]
    writer = Writer({"model": "m"})
    writer.write(said, (), None, "c")
    said[0] = replace(said[0], content="other")
    body = writer.write(said, (), None, "c")
    assert [m["content"] for m in json.loads(body)["messages"]] == ["other", "two"]


def test_what_was_sent_stays_a_prefix_of_what_is_sent_next():
    said = [Message(role="user", content="one")]
    writer = Writer({"model": "m", "temperature": 0.5})
    first = writer.write(said, TOOLS, None, "c")
    second = writer.write([*said, Message(role="assistant", content="two")], TOOLS, None, "c")
    assert second.startswith(first.removesuffix(b"]}"))


def test_a_list_of_tools_that_is_changed_is_written_again():
    tools = list(TOOLS)
    writer = Writer({"model": "m"})
    writer.write([], tools, None)
    tools.append({"type": "function", "function": {"name": "other"}})
    assert len(json.loads(writer.write([], tools, None))["tools"]) == 2


def test_empty_text_beside_a_call_is_sent_as_null():
    call = ToolCall(id="a", name="look", arguments="{}")
    assert to_wire(Message(role="assistant", content="", tool_calls=(call,)))["content"] is None
    assert to_wire(Message(role="assistant", content=None))["content"] == ""


def test_a_schema_is_strict_only_when_it_closes_every_object():
    closed = {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    for schema, strict in (
        (closed, True),
        ({**closed, "required": []}, False),
        ({**closed, "properties": {"a": {"type": "object"}}}, False),
    ):
        body = json.loads(Writer({"model": "m"}).write([], (), schema))
        assert body["response_format"]["json_schema"]["strict"] is strict


def answered(finish="stop", usage=None, **message) -> bytes:
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", **message}}
    return json.dumps({"choices": [choice], "usage": usage}).encode()


def read(raw, **options):
    return read_reply(raw, where="'m' at host", price=options.pop("price", None), **options)


def wire_call(arguments, call_id="call_9"):
    return {"id": call_id, "type": "function", "function": {"name": "refund", "arguments": arguments}}


@pytest.mark.parametrize(
    ("text", "content", "reasoning", "finish"),
    [
        ("Your parcel left today.", "Your parcel left today.", None, "stop"),
        ("<think>They want a date.</think>\n\nIt left today.", "It left today.", "They want a date.", "stop"),
        ("They want a date.</think>It left today.", "It left today.", "They want a date.", "stop"),
        ("<think>They want a date and", None, "They want a date and", "length"),
        ("It left.<think>Was that right?</think> Today.", "It left. Today.", "Was that right?", "stop"),
        ("One. <think>so", "One.", "so", "length"),
        ("<thinking>a</thinking>b", "b", "a", "stop"),
        ("<think></think>Hello", "Hello", None, "stop"),
        ("I think> so", "I think> so", None, "stop"),
        ("", "", None, "stop"),
    ],
)
def test_reasoning_is_split_off_also_without_its_close_tag(text, content, reasoning, finish):
    found = split_reasoning(Message(role="assistant", content=text, finish="stop"))
    assert (found.content, found.reasoning, found.finish) == (content, reasoning, finish)


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_a_reasoning_field_never_becomes_content(field):
    message = read(answered(content="Yes.", **{field: "hm"})).message
    assert (message.content, message.reasoning) == ("Yes.", "hm")


def test_arguments_stay_as_the_model_wrote_them():
    for text in ('{"order": "A-1", "why": "bro', "", "null", '{}""', '{"a": NaN}'):
        message = read(answered("tool_calls", content=None, tool_calls=[wire_call(text)])).message
        assert message.tool_calls[0].arguments == text


def test_half_a_call_at_the_token_limit_is_not_a_call():
    whole, half = wire_call('{"order": "A-1"}', "a"), wire_call('{"order": "A', "b")
    message = read(answered("length", content=None, tool_calls=[whole, half])).message
    assert [c.id for c in message.tool_calls] == ["a"]
    assert message.finish == "length"


def test_a_refusal_is_not_an_empty_answer():
    refused = read(answered(content=None, refusal="I cannot help with that.")).message
    empty = read(answered(content="")).message
    assert (refused.content, refused.finish) == ("I cannot help with that.", "refusal")
    assert (empty.content, empty.finish) == ("", "stop")


def test_empty_text_parts_beside_a_call_are_no_content():
    parts = [{"type": "text", "text": ""}]
    message = read(answered("tool_calls", content=parts, tool_calls=[wire_call("{}")])).message
    assert message.content is None
    assert len(message.tool_calls) == 1


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"<html>busy</html>",
        b'{"choices": []}',
        b'{"choices": [{}]}',
        b'{"choices": [{"message": {"content": 5}}]}',
        b'{"choices": [{"message": {"content": null, "tool_calls": ["x"]}}]}',
        answered(content="cut")[:-20],
    ],
)
def test_an_answer_that_is_no_completion_is_malformed(raw):
    with pytest.raises(CallFailed, match="answered what is no chat completion") as failed:
        read(raw)
    assert failed.value.reason == "malformed_reply"


def test_an_error_inside_a_200_is_that_error():
    raw = json.dumps({"error": {"code": 429, "message": "slow down"}}).encode()
    with pytest.raises(CallFailed, match="slow down") as failed:
        read(raw)
    assert failed.value.reason == "rate_limit"


def test_a_filtered_answer_is_never_asked_for_again():
    with pytest.raises(CallFailed, match="filtered its answer") as failed:
        read(answered("content_filter", content=""))
    assert failed.value.reason == "content_filter"
    assert failed.value.final


def test_dollars_are_unknown_without_a_price_or_without_usage():
    usage = {"prompt_tokens": 1_000_000, "completion_tokens": 500_000}
    price = Price(tokens_in=0.1, tokens_out=0.4)
    assert read(answered(content="x", usage=usage), price=price).usage.usd == pytest.approx(0.3)
    assert read(answered(content="x", usage=usage)).usage.usd is None
    assert read(answered(content="x"), price=price).usage.usd is None


@pytest.mark.parametrize("odd", [{"reasoning": {"steps": []}}, {"reasoning_content": 5}, {"content": [{"text": None}]}])
def test_what_stands_where_a_text_should_be_is_left_out(odd: dict[str, Any]) -> None:
    body = json.dumps({"choices": [{"message": {"content": "<think>a</think>", **odd}}]}).encode()
    assert isinstance(read_reply(body, where="'m' at h", price=None).message.reasoning, (str, type(None)))


def test_calls_that_are_no_list_are_no_completion() -> None:
    body = json.dumps({"choices": [{"message": {"tool_calls": 7}}]}).encode()
    with pytest.raises(CallFailed, match="no chat completion"):
        read_reply(body, where="'m' at h", price=None)
