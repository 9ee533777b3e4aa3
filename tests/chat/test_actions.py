"""Tools as JSON actions, and back."""

from __future__ import annotations

import json

import jsonschema
import pytest

from whilesim.chat.actions import action_schema, read_action
from whilesim.chat.failures import CallFailed
from whilesim.chat.messages import Message, ToolCall
from whilesim.chat.wire import Writer

LOOK = {
    "type": "function",
    "function": {
        "name": "look_up",
        "description": "Finds an order.",
        "parameters": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
    },
}
BARE = {"name": "bye"}


def read(text, finish="stop"):
    message = Message(role="assistant", content=text, finish=finish)
    return read_action(message, where="'m' at host")


def test_the_schema_takes_a_reply_and_each_tools_arguments():
    check = jsonschema.Draft202012Validator(action_schema([LOOK, BARE])).is_valid
    assert check({"reply": "Hello."})
    assert check({"call": "look_up", "arguments": {"id": "1"}})
    assert check({"call": "bye", "arguments": {}})
    assert not check({"call": "look_up", "arguments": {}})
    assert not check({"call": "other", "arguments": {}})


def test_a_reference_inside_a_tool_does_not_break_the_schema():
    tool = {
        "name": "t",
        "parameters": {"type": "object", "$defs": {"A": {}}, "properties": {"a": {"$ref": "#/$defs/A"}}},
    }
    assert jsonschema.Draft202012Validator(action_schema([tool])).is_valid({"call": "t", "arguments": {"a": 1}})


def test_an_action_becomes_an_ordinary_message():
    assert read('{"reply": "Hello."}').content == "Hello."
    called = read('```json\n{"call": "look_up", "arguments": {"id": "ü"}}\n```')
    assert called.content is None
    assert called.tool_calls == (ToolCall(id="call_0", name="look_up", arguments='{"id": "ü"}'),)
    assert called.finish == "tool_calls"


def test_what_is_no_action_is_malformed_unless_it_was_cut():
    with pytest.raises(CallFailed, match="asked for a JSON action and answered 'Sure!'"):
        read("Sure!")
    cut = read('{"call": "look_up", "argu', finish="length")
    assert (cut.content, cut.tool_calls, cut.finish) == (None, (), "length")


def test_the_history_is_rewritten_into_actions():
    call = ToolCall(id="c", name="look_up", arguments='{"id": "7"}')
    said = [
        Message(role="system", content="Be kind."),
        Message(role="user", content="Where is 7?"),
        Message(role="assistant", tool_calls=(call,)),
        Message(role="tool", content="sent", tool_call_id="c"),
        Message(role="assistant", content="It was sent."),
        Message(role="user", content="Thanks"),
    ]
    body = json.loads(Writer({"model": "m"}, json_actions=True).write(said, [LOOK], None))
    first, *rest = body["messages"]
    assert "tools" not in body
    assert first["role"] == "system"
    assert first["content"].startswith("Be kind.")
    assert "look_up: Finds an order." in first["content"]
    assert [(m["role"], m["content"]) for m in rest] == [
        ("user", "Where is 7?"),
        ("assistant", '{"call": "look_up", "arguments": {"id": "7"}}'),
        ("user", "Result of look_up: sent"),
        ("assistant", '{"reply": "It was sent."}'),
        ("user", "Thanks"),
    ]


def test_without_a_system_message_the_tools_are_explained_first():
    body = json.loads(Writer({"model": "m"}, json_actions=True).write([], [BARE], None))
    assert [m["role"] for m in body["messages"]] == ["system"]


def test_without_tools_nothing_is_rewritten():
    said = [Message(role="assistant", content="plain")]
    body = json.loads(Writer({"model": "m"}, json_actions=True).write(said, (), None))
    assert body["messages"] == [{"role": "assistant", "content": "plain"}]
