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
    reply = _closed({"reply": {"type": "string"}})
    calls = [
        _closed({"call": {"enum": [name], "type": "string"}, "arguments": _arguments(parameters)})
        for name, _, parameters in map(_read_tool, tools)
    ]
    return {"anyOf": [reply, *calls]}


def explain_actions(messages: Sequence[Message], tools: Sequence[Mapping[str, Any]], *, schema: bool) -> list[Message]:
    """Add the tools and the form of an action to the system message."""
    listed = [
        {"name": name, "description": description, "parameters": dumps(parameters)}
        for name, description, parameters in map(_read_tool, tools)
    ]
    text = render_prompt("json_actions", tools=listed, schema=schema)
    if messages and messages[0].role == "system":
        first = replace(messages[0], content=f"{messages[0].content or ''}\n\n{text}".strip())
        return [first, *messages[1:]]
    return [Message(role="system", content=text), *messages]


def rewrite(message: Message, earlier: Sequence[Message]) -> list[dict[str, Any]]:
    """Return a message in the form of actions: assistants act, and a result is told by the user."""
    if message.role == "assistant":
        actions = [{"reply": message.content}] if message.content else []
        actions += [{"call": c.name, "arguments": _shown(c)} for c in message.tool_calls]
        return [{"role": "assistant", "content": "\n".join(dumps(a) for a in actions)}]
    if message.role == "tool":
        names = {c.id: c.name for m in earlier for c in m.tool_calls}
        name = names.get(message.tool_call_id or "", "a tool")
        return [{"role": "user", "content": f"Result of {name}: {message.content or ''}"}]
    return [{"role": message.role, "content": message.content or ""}]


def read_action(message: Message, *, where: str, number: int) -> Message:
    """Turn the action in a message's content into a reply or a tool call.

    Args:
        where: Model and host, for messages.
        number: How many calls came before: the new one's id.

    Raises:
        CallFailed: The content is no action; one that was cut at the token limit is an empty
            message instead, whose ``finish`` says so.
    """
    if message.tool_calls or not message.content:
        return message
    match _find_object(message.content):
        case {"call": str(name), **rest} if name:
            arguments = rest.get("arguments", {})
            text = arguments if isinstance(arguments, str) else dumps(arguments)
            call = ToolCall(id=f"call_{number}", name=name, arguments=text)
            return replace(message, content=None, tool_calls=(call,), finish="tool_calls")
        case {"reply": str(text)}:
            return replace(message, content=text)
    if message.finish == "length":
        return replace(message, content=None)
    msg = f"{where} was asked for a JSON action and answered {message.content[:200]!r}."
    raise CallFailed(msg, reason="malformed_reply", billed=True)


def _find_object(text: str) -> dict[str, Any] | None:
    """Return the object that the text is, or that stands between its first and last brace."""
    found = parse_object(text)
    return found if found is not None else parse_object(text[text.find("{") : text.rfind("}") + 1])


def _shown(call: ToolCall) -> Any:
    parsed = call.parsed
    return call.arguments if parsed is None else parsed


def _read_tool(tool: Mapping[str, Any]) -> tuple[str, str, Mapping[str, Any]]:
    function = tool.get("function", tool)
    return function["name"], function.get("description") or "", function.get("parameters") or {}


def _arguments(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    text = dumps(parameters)
    if "$ref" in text or parameters.get("type") != "object":  # a reference points to the root, which moves
        return {"type": "object"}
    return parameters


def _closed(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }
