"""Rollout: one conversation, from the opening to its stop.

The agent sees everything that stands on the trace; the customer sees its card and what was
said to it. Tool calls are answered by the world in the order in which they were made, and a
call that cannot be read is answered with the world's error and kept as it was written.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from whilesim.cards.cards import Card
from whilesim.chat.messages import Change, CustomerCall, Failure, Message, RunStop, Stop, ToolCall, Trace
from whilesim.conversations.players import Agent, Context, Customer
from whilesim.core.errors import ModelError
from whilesim.core.seeds import derive
from whilesim.situations.tools import Tool
from whilesim.world.mock import World

CALL_ROUNDS = 10
"""Rounds of tool calls without a word to the customer, after which a conversation is stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One conversation to play."""

    card: Card
    rollout: int
    seed: int
    """The run's seed; what is drawn for this conversation is derived from it and its names."""

    @property
    def id(self) -> str:
        """The row's id: card and rollout."""
        return f"{self.card.id}/r{self.rollout}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What all conversations of a run share."""

    agent: Agent
    customer: Customer
    system_prompt: str
    tools: tuple[Tool, ...]
    customer_tools: tuple[Tool, ...] = ()
    turns: int = 6
    """Customer messages at most, the opening included."""
    deadline: float | None = None
    """Seconds for one conversation, or None."""


class _Stopped(Exception):  # noqa: N818  it ends a conversation and is no error
    def __init__(self, stop: Stop, failure: Failure | None = None) -> None:
        super().__init__(stop)
        self.stop, self.failure = stop, failure


class _Talk:
    """One conversation while it lasts."""

    def __init__(self, case: Case, stage: Stage, world: World) -> None:
        self.case, self.stage, self.world = case, stage, world
        opening = Message(role="user", content=case.card.opening)
        self.messages = [Message(role="system", content=stage.system_prompt), opening]
        seed = derive(case.seed, "rollout", case.card.id, case.rollout)
        names: dict[str, Any] = {"case": case.card.id, "seed": seed, "rollout": case.rollout}
        self.agent_context, self.customer_context = (
            Context(tools=tuple(t.to_openai() for t in tools), answer=answer, **names)
            for tools, answer in ((stage.tools, self.answer_agent), (stage.customer_tools, self.answer_customer))
        )
        self.customer_calls: list[CustomerCall] = []
        self.failed: list[str] = []
        self.changes: list[Change] = []
        self.taken, self.asked = set[str](), set[str]()  # ids of all calls, and of those that the world answered
        self.knows_failures, self.handed_off, self.calls = True, False, 0

    async def run(self) -> Stop:
        """Play until something stops the conversation; say what did."""
        said, leaving = 1, False
        while True:
            await self.agent_turn()
            if self.handed_off:
                return "handed_off"
            if leaving:
                return "customer_done"
            if said >= self.stage.turns:
                return "max_turns"
            leaving = await self.customer_turn()
            said += 1

    async def agent_turn(self) -> None:
        """Let the agent call until it has spoken."""
        for _ in range(CALL_ROUNDS):
            heard = len(self.messages)
            new = await self.stage.agent.answer(tuple(self.messages), self.agent_context)
            self.agent_context.turn += 1
            self.take(new)
            if self.messages[-1].role == "assistant" and not self.messages[-1].tool_calls:
                return
            if len(self.messages) == heard:
                raise ModelError("the agent returned no message.", reason="player")
        raise _Stopped("call_limit")

    def take(self, new: Sequence[Message]) -> None:
        """Put the agent's messages on the trace, and answer the calls to which it brought no answer of its own."""
        brought, renamed = Counter(m.tool_call_id for m in new if m.role == "tool"), dict[str, deque[str]]()
        for message in new:
            if message.role == "tool":  # several calls of one id are answered in their order
                mine = renamed.get(message.tool_call_id or "")
                brought[message.tool_call_id] -= not mine  # it stands before its call, and answers none
                self.messages.append(replace(message, tool_call_id=mine.popleft()) if mine else message)
                continue
            if message.role != "assistant":
                msg = f"the agent returned a message of role {message.role!r}; it may speak and call only."
                raise ModelError(msg, reason="player")
            calls = tuple(map(self.named, message.tool_calls))
            self.messages.append(replace(message, tool_calls=calls))
            for told, call in zip(message.tool_calls, calls, strict=True):
                if brought[told.id] > 0:
                    brought[told.id] -= 1
                    self.knows_failures &= call.id in self.asked
                    renamed.setdefault(told.id, deque()).append(call.id)
                else:
                    self.messages.append(Message(role="tool", content=self.answer_agent(call), tool_call_id=call.id))

    def named(self, call: ToolCall) -> ToolCall:
        """Give a call an id that no other call of the trace has."""
        self.calls += 1
        spare = f"call_{self.calls}"
        while not call.id or call.id in self.taken:
            call, spare = replace(call, id=spare), f"{spare}_"
        self.taken.add(call.id)
        return call

    async def customer_turn(self) -> bool:
        """Let the customer speak; say whether it leaves after this. Stops when it says nothing."""
        visible = [m for m in self.messages if m.role in ("user", "assistant") and m.content]
        spoken = [Message(role=m.role, content=m.content) for m in visible]
        try:
            said = await self.stage.customer.speak(self.case.card, spoken, self.customer_context)
        except ModelError as error:
            raise _stopped_by(error, "customer") from error
        self.customer_context.turn += 1
        if not said.text:
            raise _Stopped("customer_done")
        self.messages.append(Message(role="user", content=said.text))
        return said.done

    def answer_agent(self, call: ToolCall) -> str:
        """Answer one call of the agent's, and remember what it did."""
        reply, failed = self.ask_world("call", call, call.id)
        self.asked.add(call.id)
        if failed is None:
            self.knows_failures = False
        if failed:
            self.failed.append(call.id)
        elif any(t.name == call.name and t.effect == "handoff" for t in self.stage.tools):
            self.handed_off = True
        return reply

    def answer_customer(self, call: ToolCall) -> str:
        """Answer one call of the customer's own."""
        reply, _ = self.ask_world("customer_call", call, "")
        after = len(self.messages) - 1
        made = CustomerCall(after_message=after, name=call.name, arguments=call.arguments, reply=reply)
        self.customer_calls.append(made)
        return reply

    def ask_world(self, method: str, call: ToolCall, call_id: str) -> tuple[str, bool | None]:
        """Ask the world, note what changed, and say whether the call failed, or None where the world keeps no log.

        A world of the user's that raises ends this conversation, not the run.
        """
        arguments: Any = call.parsed
        try:
            reply = getattr(self.world, method)(call.name, call.arguments if arguments is None else arguments)
        except Exception as error:  # a user's world may raise anything
            msg = f"the world raised {type(error).__name__} on {call.name}: {error}"
            raise _Stopped("agent_error", Failure(role="run", reason="world", message=msg)) from error
        if not isinstance(reply, str):
            msg = f"the world answered {call.name} with {type(reply).__name__}; it must return text."
            raise _Stopped("agent_error", Failure(role="run", reason="world", message=msg))
        log: Sequence[Any] = getattr(self.world, "log", ())
        if not log:
            return reply, None
        self.changes.extend(replace(c, call=call_id) for c in log[-1].changes)
        return reply, log[-1].failed


async def play(case: Case, stage: Stage, world: World) -> Trace:
    """Play one conversation to its end, whatever the end is.

    Returns:
        The trace. A player that fails ends it with a ``failure``; nothing is raised for one
        conversation's sake.
    """
    talk = _Talk(case, stage, world)
    try:
        ended = _Stopped(await asyncio.wait_for(talk.run(), stage.deadline))
    except _Stopped as stopped:
        ended = stopped
    except asyncio.TimeoutError:
        msg = f"the conversation took more than {stage.deadline:g} seconds."
        ended = _stopped_by(ModelError(msg, reason="deadline"), "agent")
    except ModelError as error:
        ended = _stopped_by(error, "agent")
    return Trace(
        case=case.card.id,
        seed=talk.agent_context.seed,
        messages=tuple(talk.messages),
        failed_calls=tuple(talk.failed) if talk.knows_failures else None,
        customer_calls=tuple(talk.customer_calls),
        final_state=world.state,
        changes=tuple(talk.changes),
        stop=ended.stop,
        failure=ended.failure,
        usage={"agent": talk.agent_context.usage, "customer": talk.customer_context.usage},
        planted=tuple(talk.agent_context.planted),
    )


def _stopped_by(error: ModelError, role: Literal["agent", "customer"]) -> _Stopped:
    ended: Any = error.reason if error.reason in get_args(RunStop) else None
    failure = Failure(role="run" if ended else role, reason=error.reason, message=str(error))
    return _Stopped(ended or ("agent_error" if role == "agent" else "customer_error"), failure)
