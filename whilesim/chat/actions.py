"""Actions: tools for models that have none.

The model is asked for one JSON object: what it says, or which tool it calls. Its history is
rewritten into the same form, so that it sees its own earlier actions as it wrote them and a
tool's result as a message. What comes back is an ordinary message with an ordinary tool call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from whilesim.chat.failures import CallFailed
from whilesim.chat.messages import Message, ToolCall
from whilesim.core.jsontext import dumps, parse_object
from whilesim.core.templates import render_prompt


def action_schema(tools: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the schema of one action: ``{"reply": text}`` or ``{"call": tool, "arguments": {}}``."""
    schemas = [closed({"reply": {"type": "string"}})]
    for name, _, parameters in map(_read_tool, tools):
        if "$ref" in dumps(parameters) or parameters.get("type") != "object":
            parameters = {"type": "object"}  # a reference points to the root, which moves
        schemas.append(closed({"call": {"enum": [name], "type": "string"}, "arguments": parameters}))
    return {"anyOf": schemas}


def explain_actions(messages: Sequence[Message], tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a conversation in the form of actions, as endpoints take it.

    The system message explains the tools and how to act, assistants act, and a tool's result is
    told by the user.
    """
    listed = [{"name": n, "description": d, "parameters": dumps(p)} for n, d, p in map(_read_tool, tools)]
    text = render_prompt("json_actions", tools=listed)
    names: dict[str | None, str] = {}
    wires = []
    for message in messages:
        role, said = message.role, message.content or ""
        if role == "assistant":
            actions: list[dict[str, Any]] = [{"reply": said}] if said else []
            for call in message.tool_calls:
                names[call.id] = call.name
                parsed = call.parsed
                actions.append({"call": call.name, "arguments": call.arguments if parsed is None else parsed})
            said = "\n".join(map(dumps, actions))
        elif role == "tool":
            role, said = "user", f"Result of {names.get(message.tool_call_id, 'a tool')}: {said}"
        wires.append({"role": role, "content": said})
    if wires and wires[0]["role"] == "system":
        text = f"{wires.pop(0)['content']}\n\n{text}".strip()
    return [{"role": "system", "content": text}, *wires]


def read_action(message: Message, *, where: str) -> Message:
    """Turn the action in a message's content into a reply or a tool call.

    Args:
        where: Model and host, for messages.

    Raises:
        CallFailed: The content is no action; one that was cut at the token limit is an empty
            message instead, whose ``finish`` says so.
    """
    if message.tool_calls or not (text := message.content):
        return message
    match parse_object(text) or parse_object(text[text.find("{") : text.rfind("}") + 1]):
        case {"call": str(name), **rest} if name:
            arguments = rest.get("arguments", {})
            written = arguments if isinstance(arguments, str) else dumps(arguments)
            call = ToolCall(id="call_0", name=name, arguments=written)
            return replace(message, content=None, tool_calls=(call,), finish="tool_calls")
        case {"reply": str(said)}:
            return replace(message, content=said)
    if message.finish == "length":
        return replace(message, content=None)
    msg = f"{where} was asked for a JSON action and answered {text[:200]!r}."
    raise CallFailed(msg, reason="malformed_reply", billed=True)


def _read_tool(tool: Mapping[str, Any]) -> tuple[str, str, Mapping[str, Any]]:
    function = tool.get("function", tool)
    return function["name"], function.get("description") or "", function.get("parameters") or {}


def closed(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of an object that has all of these and nothing else."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
