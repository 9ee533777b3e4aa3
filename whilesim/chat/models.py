"""Models: which model, where, with which parameters; and the one seam to it.

A ``Model`` is a value: it opens nothing. ``Chat`` is the seam that players, writers and
judges hold: an endpoint implements it, and so does a fake of a few lines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from whilesim.chat.messages import Message
from whilesim.chat.usage import Usage

ToolMode = Literal["auto", "native", "json"]


@dataclass(frozen=True, slots=True)
class Model:
    """A chat model behind an OpenAI-compatible endpoint, or any that litellm knows.

    Args:
        name: ``"provider:model"``, a litellm name ``"provider/model"``, or with ``base_url``
            the name that the server knows.
        price: Dollars per million tokens, (in, out); None is unknown.
        timeout: Seconds for one request, waiting in our own queue not counted.
        tool_mode: ``native`` sends tools as tools, ``json`` asks for an action as a JSON
            schema, ``auto`` tries native first.
        extra: Further fields of the request's body.
    """

    name: str
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    temperature: float | None = 0.7
    max_tokens: int | None = 1024
    tool_mode: ToolMode = "auto"
    price: tuple[float, float] | None = None
    timeout: float = 120.0
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallKey:
    """Which call of a run this is: with the request's digest, the key of the reply cache."""

    case: str = ""
    rollout: int = 0
    role: str = ""
    turn: int = 0
    sample: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One model's answer: a message, what it cost, and the raw text that was read."""

    message: Message
    usage: Usage = Usage(calls=1)
    raw: str = ""


class Chat(Protocol):
    """The seam to a model."""

    async def reply(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]] = (),
        *,
        schema: Mapping[str, Any] | None = None,
        key: CallKey = CallKey(),
    ) -> Reply:
        """Answer the messages.

        Args:
            tools: Wrapped OpenAI tools the model may call.
            schema: A JSON schema that the content must follow, where the endpoint can.
            key: Which call this is; the same request under another key is another call.

        Raises:
            ModelError: The endpoint failed, after its retries.
        """
        ...
