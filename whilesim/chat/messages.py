"""Messages: what was said and called, as values.

A message is OpenAI's chat message, frozen. Arguments of a call stay the text that the model
wrote, well-formed or not: nothing is coerced on the way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from reprlib import repr as brief
from typing import Any, Literal

from whilesim.chat.usage import Usage
from whilesim.core.errors import InputError
from whilesim.core.jsontext import dumps, parse_object
from whilesim.core.keys import hide

Role = Literal["system", "user", "assistant", "tool"]
RunStop = Literal["deadline", "budget", "interrupt"]
"""What ends a conversation that is nobody's fault in it."""
Stop = Literal["customer_done", "handed_off", "max_turns", "call_limit", "agent_error", "customer_error", RunStop]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One call as the model wrote it."""

    id: str
    name: str
    arguments: str
    """The text as received. ``parsed`` says whether it is a JSON object."""

    @property
    def parsed(self) -> dict[str, Any] | None:
        """The arguments as a mapping, or None when the text is no JSON object; no text, or null, is no arguments."""
        return {} if self.arguments.strip() in ("", "null") else parse_object(self.arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a conversation, from the agent's side of the table."""

    role: Role
    content: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    reasoning: str | None = None
    """What the model thought before it spoke; never part of ``content``."""
    finish: str | None = None
    """Why the model stopped, in the endpoint's word (``stop``, ``length``, ``tool_calls``)."""

    def to_openai(self) -> dict[str, Any]:
        """Return the message as an OpenAI chat message, reasoning and finish left out."""
        wire: dict[str, Any] = {"role": self.role, "content": self.content}
        if self.tool_calls:
            told = [(c.id, {"name": c.name, "arguments": c.arguments}) for c in self.tool_calls]
            wire["tool_calls"] = [{"id": i, "type": "function", "function": function} for i, function in told]
        if self.tool_call_id is not None:
            wire["tool_call_id"] = self.tool_call_id
        return wire


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomerCall:
    """One tool call of the customer's own: the agent never sees it."""

    after_message: int
    """Index of the last message on the trace when the call was made."""
    name: str
    arguments: str
    reply: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One field of one record that a call changed."""

    call: str
    """Id of the tool call; empty for a call of the customer's."""
    kind: str
    id: str
    field: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a conversation has no ending: whose fault, which kind, and the words."""

    role: Literal["agent", "customer", "run"]
    reason: str
    """One word of the taxonomy in ``core.errors.ModelError``."""
    message: str

    def __post_init__(self) -> None:
        """Leave out keys: what a user's function or a provider's client raises may repeat them."""
        object.__setattr__(self, "message", hide(self.message))


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """One conversation, whole: the contract between players, checks, scorers and judge.

    Nothing that graded it is in here, so that it can be graded twice.
    """

    case: str
    """Id of the card or the golden ticket that was played."""
    seed: int
    """With ``case``, all that the world needs in order to answer the same way again."""
    messages: tuple[Message, ...]
    """The agent's view, system prompt first: this is what is trained on."""
    failed_calls: tuple[str, ...] | None = ()
    """Ids of the tool calls that the world knows to have failed; None where it does not say."""
    customer_calls: tuple[CustomerCall, ...] = ()
    final_state: Mapping[str, Any] = field(default_factory=dict)
    changes: tuple[Change, ...] = ()
    stop: Stop
    failure: Failure | None = None
    usage: Mapping[str, Usage] = field(default_factory=dict)
    """Usage by role: ``agent`` and ``customer``."""
    planted: tuple[Mapping[str, Any], ...] = ()
    """Misbehaviour that the scripted agent was told to show; no grader reads it."""

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """All tool calls of the agent, in order."""
        return tuple(c for m in self.messages for c in m.tool_calls)


def read_message(wire: Mapping[str, Any]) -> Message:
    """Read one OpenAI chat message; lists of text parts are joined.

    Raises:
        InputError: The role is unknown, or the shape is not a chat message.
    """
    role: Any = wire.get("role")
    role = {"developer": "system", "function": "tool"}.get(role, role) if isinstance(role, str) else role
    if role not in ("system", "user", "assistant", "tool"):
        msg = f"a message has the role {brief(role)}; it must be system, user, assistant or tool. "
        raise InputError(msg + 'Type: {"role": "assistant", "content": "..."}')
    calls, call_id = wire.get("tool_calls") or (), wire.get("tool_call_id")
    if not isinstance(calls, (list, tuple)):
        raise InputError(f"a message's tool_calls is {brief(calls)}; it must be a list of calls.")
    return Message(
        role=role,
        content=_read_content(wire.get("content")),
        tool_calls=tuple(_read_call(c, i) for i, c in enumerate(calls)),
        tool_call_id=None if call_id is None else str(call_id),
        reasoning=_first_text(wire, "reasoning", "reasoning_content"),
        finish=_first_text(wire, "finish", "finish_reason"),
    )


def read_messages(wire: Iterable[Mapping[str, Any]]) -> tuple[Message, ...]:
    """Read OpenAI chat messages in order; see :func:`read_message`."""
    return tuple(read_message(m) for m in wire)


def to_openai(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return messages as OpenAI chat messages, in order."""
    return [m.to_openai() for m in messages]


def _first_text(wire: Mapping[str, Any], *names: str) -> str | None:
    return next((wire[name] for name in names if isinstance(wire.get(name), str) and wire[name]), None)


def _read_content(content: Any) -> str | None:
    if content is None or isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [p.get("text") or "" if isinstance(p, Mapping) else p for p in content]
        return "".join(p if isinstance(p, str) else brief(p) for p in parts) or None
    raise InputError(f"a message's content is {type(content).__name__}; it must be text or a list of text parts.")


def _read_call(wire: Any, index: int) -> ToolCall:
    function = wire.get("function", wire) if isinstance(wire, Mapping) else None
    if not isinstance(function, Mapping):
        msg = f'a tool call is {brief(wire)}. Type: {{"id": "...", "function": {{"name": "...", "arguments": "{{}}"}}}}'
        raise InputError(msg)
    if not isinstance(arguments := function.get("arguments"), str):
        arguments = "" if arguments is None else dumps(arguments)
    return ToolCall(id=str(wire.get("id") or f"call_{index}"), name=str(function.get("name", "")), arguments=arguments)
