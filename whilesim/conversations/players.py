"""Players: who speaks. An agent answers messages, a customer speaks from a card.

Every player is a small object with one method. A chat model, a function of the user's and
a script all become such objects here, so that a rollout knows only these two protocols.
"""

from __future__ import annotations

import asyncio
import inspect
import re
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from reprlib import repr as brief
from typing import Any, Literal, Protocol

from whilesim.cards.cards import Card
from whilesim.chat.messages import Message, ToolCall, read_message, to_openai
from whilesim.chat.models import CallKey, Chat
from whilesim.chat.usage import Usage
from whilesim.core.errors import InputError, ModelError, RunError, WhilesimError
from whilesim.core.jsontext import dumps
from whilesim.core.templates import render_prompt

DONE = "[[DONE]]"
"""What a customer model says when it has nothing more to say; never stored."""
_SIGN = re.compile(r"\[+ ?DONE ?\]+")  # a small model writes it with fewer brackets
PATIENCE = 300.0
"""Seconds for one answer of a user's function; a model of one's own may serve many conversations."""


@dataclass(slots=True, kw_only=True)
class Context:
    """What a player may know beyond the messages: one conversation's tools, world and names."""

    tools: tuple[Mapping[str, Any], ...]
    """The agent's tools in OpenAI's wrapped form."""
    case: str
    seed: int
    rollout: int = 0
    turn: int = 0
    """How many times this player has been asked before, calls included."""
    answer: Callable[[ToolCall], str]
    """Answers a call on this conversation's world."""
    usage: Usage = Usage(calls=0)
    """What the player's model calls used so far."""
    planted: list[dict[str, Any]] = field(default_factory=list)
    """Misbehaviour that a scripted player was told to show."""
    inner: list[Message] = field(default_factory=list)
    """Calls made through ``call`` since the player was asked, with their results."""

    def key(self, role: Literal["agent", "customer"], sample: int = 0) -> CallKey:
        """Name the next call of the player's model."""
        return CallKey(case=self.case, rollout=self.rollout, role=role, turn=self.turn, sample=sample)

    def call(self, name: str, arguments: Mapping[str, Any] | str) -> str:
        """Make one tool call on this conversation's world; it stands on the trace too."""
        text = arguments if isinstance(arguments, str) else dumps(dict(arguments))
        call = ToolCall(id=f"call_{self.turn}_{len(self.inner) // 2}c", name=name, arguments=text)
        reply = self.answer(call)
        told = Message(role="tool", content=reply, tool_call_id=call.id)
        self.inner += [Message(role="assistant", tool_calls=(call,)), told]
        return reply


class Agent(Protocol):
    """Whoever is being tested or imitated."""

    async def answer(self, messages: Sequence[Message], context: Context) -> Sequence[Message]:
        """Return the agent's next messages, tool calls not yet answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Utterance:
    """What a customer says next."""

    text: str = ""
    done: bool = False
    """The customer has nothing more to say after ``text``."""


class Customer(Protocol):
    """Who has a need."""

    async def speak(self, card: Card, messages: Sequence[Message], context: Context) -> Utterance:
        """Return what the customer says to the visible ``messages`` (user and assistant texts)."""


@dataclass(frozen=True, slots=True)
class ModelAgent:
    """An agent that is a chat model with tools."""

    chat: Chat

    async def answer(self, messages: Sequence[Message], context: Context) -> Sequence[Message]:
        """Ask the model once; it may speak, call, or both."""
        reply = await self.chat.reply(messages, context.tools, key=context.key("agent"))
        context.usage = context.usage + reply.usage
        return (reply.message,)


@dataclass(frozen=True, slots=True)
class ModelCustomer:
    """A customer that is a chat model: it gets its card, and what a customer sees."""

    chat: Chat

    async def speak(self, card: Card, messages: Sequence[Message], context: Context) -> Utterance:
        """Ask the model, once more when it says nothing, and use its own tools where it calls them."""
        brief = Message(role="system", content=render_prompt("customer", card=card, done=DONE))
        # the customer's own words are the model's, the agent's are the other side's
        seen = (Message(role="assistant" if m.role == "user" else "user", content=m.content or "") for m in messages)
        talk = [brief, *seen]
        for attempt in range(6):
            reply = await self.chat.reply(talk, context.tools, key=context.key("customer", attempt))
            context.usage = context.usage + reply.usage
            if calls := reply.message.tool_calls:
                answers = (Message(role="tool", content=context.answer(c), tool_call_id=c.id) for c in calls)
                talk += [reply.message, *answers]
                continue
            said = read_utterance(reply.message.content or "")
            if said.text or said.done or attempt:
                return said if said.text or said.done else Utterance(done=True)
        return Utterance(done=True)


@dataclass(frozen=True, slots=True)
class FunctionAgent:
    """An agent that is the user's own function: ``agent(messages)`` or ``agent(messages, context)``."""

    function: Callable[..., Any]

    async def answer(self, messages: Sequence[Message], context: Context) -> Sequence[Message]:
        """Call the function, a plain one in a thread; calls it made itself come first."""
        context.inner.clear()
        found = await call_function(self.function, to_openai(messages), context)
        items = found if isinstance(found, (list, tuple)) else [found]
        return (*context.inner, *map(_as_message, items))


@dataclass(frozen=True, slots=True)
class FunctionCustomer:
    """A customer that is the user's own function ``customer(card, messages)``."""

    function: Callable[..., Any]

    async def speak(self, card: Card, messages: Sequence[Message], context: Context) -> Utterance:
        """Call the function; None or an empty text means that the customer is done."""
        del context
        found = await call_function(self.function, card, to_openai(messages))
        if isinstance(found, Mapping):
            found = found.get("content")
        if found in (None, ""):
            return Utterance(done=True)
        if not isinstance(found, str):
            raise ModelError(f"the customer function returned {found!r}; return text.", reason="player")
        return read_utterance(found)


def read_utterance(text: str) -> Utterance:
    """Split what a customer model wrote into words and the sign that it is done."""
    head, *done = _SIGN.split(text, maxsplit=1)
    return Utterance(text=head.strip(), done=bool(done))


async def call_function(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function of the user's with as many of the arguments as it takes.

    A coroutine function is awaited; a plain one runs in a thread, so that it may block.

    Raises:
        ModelError: It raised, or took longer than ``PATIENCE``; the reason is ``player``.
        RunError: It raised KeyboardInterrupt: whoever pressed Ctrl-C meant the run.
    """
    given = arguments[: _arity(function, len(arguments))]
    try:
        return await asyncio.wait_for(_ask(function, given), PATIENCE)
    except asyncio.TimeoutError as error:
        raise ModelError(f"the function gave no answer in {PATIENCE:g} seconds.", reason="player") from error


async def _ask(function: Callable[..., Any], given: Sequence[Any]) -> Any:
    try:
        own_call = getattr(function, "__call__", None)  # noqa: B004  an object may have an async __call__
        if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(own_call):
            found = function(*given)
        else:
            found = await asyncio.wrap_future(_in_thread(function, given))
        return await found if isinstance(found, Awaitable) else found
    except WhilesimError:
        raise
    except BaseException as error:  # whatever a user's function raises ends one conversation, not the run
        # before Python 3.11 nobody can tell a task that is cancelled from a function that says so
        if isinstance(error, asyncio.CancelledError) and getattr(asyncio.current_task(), "cancelling", lambda: 1)():
            raise
        msg = f"the function raised {type(error).__name__}: {error}"
        if isinstance(error, KeyboardInterrupt):
            raise RunError(msg) from error
        raise ModelError(msg, reason="player") from error


def _in_thread(function: Callable[..., Any], given: Sequence[Any]) -> Future[Any]:
    """Call in a thread for which the process does not wait at its end, as it does for a pool's."""
    future = Future[Any]()
    future.set_running_or_notify_cancel()

    def work() -> None:
        try:
            future.set_result(function(*given))
        except BaseException as error:  # it is raised again where the answer is awaited; no loop takes a StopIteration
            future.set_exception(RuntimeError(repr(error)) if isinstance(error, StopIteration) else error)

    threading.Thread(target=work, daemon=True).start()
    return future


def _arity(function: Callable[..., Any], most: int) -> int:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return most
    fixed = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
    return most if any(p.kind is p.VAR_POSITIONAL for p in parameters) else min(most, fixed)


def _as_message(found: Any) -> Message:
    if isinstance(found, Message):
        return found
    if isinstance(found, str):
        return Message(role="assistant", content=found)
    if callable(dump := getattr(found, "model_dump", None)):  # the openai package's own message objects
        found = dump()
    try:
        if isinstance(found, Mapping):
            return read_message({"role": "assistant", **found})
    except InputError as error:  # of one conversation, not of the run
        raise ModelError(f"the agent function returned {error}", reason="player") from error
    msg = f"the agent function returned {type(found).__name__}: {brief(found)}. Return text, one message "
    raise ModelError(msg + '({"role": "assistant", "content": "..."}) or a list of messages.', reason="player")
