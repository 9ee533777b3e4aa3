"""Floors: four agents that anybody could write in a minute.

What they pass, a suite cannot tell from good work: their scores stand beside every score.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from whilesim.chat.messages import Message, ToolCall
from whilesim.conversations.players import Context
from whilesim.core.jsontext import dumps
from whilesim.core.templates import load_words
from whilesim.core.text import shorten
from whilesim.situations.tools import parse_tools


@dataclass(frozen=True, slots=True)
class FloorAgent:
    """An agent that does one and the same thing, whatever is asked."""

    kind: str

    async def answer(self, messages: Sequence[Message], context: Context) -> Sequence[Message]:
        """Make the one call of its kind, once; then, or where there is no such tool, say its sentence."""
        said = load_words("evals")["floors"][self.kind]
        if self.kind == "echo_policy":
            said = next((m.content for m in messages if m.role == "system" and m.content), said)
        called = any(m.role == "assistant" and m.tool_calls for m in messages)
        tool = None if called or not context.tools else self._tool(context.tools)
        if tool is None:
            return (Message(role="assistant", content=said),)
        asked = next((m.content or "" for m in reversed(messages) if m.role == "user"), "")
        arguments = dumps(fill_arguments(tool.get("parameters") or {}, asked))
        call = ToolCall(id=f"call_{len(messages)}", name=tool["name"], arguments=arguments)
        return (Message(role="assistant", tool_calls=(call,)),)

    def _tool(self, tools: Sequence[Mapping[str, Any]]) -> Any:
        name = tools[0]["function"]["name"] if self.kind == "first_tool" else None
        if self.kind == "always_handoff":
            name = find_handoff(dumps(list(tools)))
        return next((t["function"] for t in tools if t["function"]["name"] == name), None)


FLOORS = {kind: FloorAgent(kind) for kind in ("always_handoff", "do_nothing", "echo_policy", "first_tool")}


@lru_cache(maxsize=64)
def find_handoff(tools: str) -> str | None:
    """Return the name of the first tool that hands the customer to a person; tools as JSON text."""
    return next((t.name for t in parse_tools(tools) if t.effect == "handoff"), None)


def fill_arguments(schema: Mapping[str, Any], text: str) -> dict[str, Any]:
    """Fill what a schema requires with the first thing that fits: an option, a number, a word with digits in it, the text."""
    known = schema.get("properties", {})
    found = re.search(r"\w*\d[\w-]*", text)
    coded = found.group() if found else ""
    return {name: _fill(name, known.get(name, {}), coded, text) for name in schema.get("required", ())}


def _fill(name: str, part: Mapping[str, Any], coded: str, text: str) -> Any:
    kind = part.get("type", "string")
    if part.get("enum"):
        return part["enum"][0]
    if kind in ("integer", "number"):
        return int(coded) if coded.isdigit() else 1
    if kind == "array":
        return [_fill(name.rstrip("s"), part.get("items", {}), coded, text)]
    if kind in ("boolean", "object"):
        return True if kind == "boolean" else {}
    return coded if coded and re.search(r"id|number|code|phone", name) else shorten(text, 160) or name
