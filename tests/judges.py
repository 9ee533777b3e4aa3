"""Judges that need no model, each with one known fault, and a conversation for them to read."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from whilesim.chat.messages import Message, ToolCall
from whilesim.chat.models import CallKey, Reply
from whilesim.chat.usage import Usage
from whilesim.core.seeds import chance
from whilesim.grading.judge import Evidence
from whilesim.situations.policy import Clause, Policy
from whilesim.situations.tools import Effect, Tool

ANY_CALL = CallKey()


@dataclass
class Scripted:
    """Gives the answers it was given, in turn, and remembers what it was asked."""

    answers: Sequence[str | None]
    asked: list[tuple[list[Message], Any, CallKey]] = field(default_factory=list)

    async def reply(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]] = (),
        *,
        schema: Mapping[str, Any] | None = None,
        key: CallKey = ANY_CALL,
    ) -> Reply:
        self.asked.append((list(messages), schema, key))
        content = self.answers[len(self.asked) - 1]
        return Reply(
            message=Message(role="assistant", content=content),
            usage=Usage(calls=1, tokens_in=10, tokens_out=5, usd=None),
        )


@dataclass
class Ruled:
    """Scores every criterion alike, by a rule over (prompt, key, names of the criteria)."""

    rule: Callable[[str, CallKey, list[str]], float]
    calls: int = 0
    usage: Usage = Usage(calls=1)

    async def reply(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]] = (),
        *,
        schema: Mapping[str, Any] | None = None,
        key: CallKey = ANY_CALL,
    ) -> Reply:
        self.calls += 1
        names = list((schema or {})["properties"]["scores"]["properties"])
        prompt = messages[1].content or ""
        said = Message(role="assistant", content=answer(names, self.rule(prompt, key, names)))
        return Reply(message=said, usage=self.usage)


def answer(names: Sequence[str], score: float = 1.0, *, keep: bool | None = None, **more: Any) -> str:
    scores = {name: {"reason": "seen in [2]", "score": score} for name in names}
    return json.dumps({"scores": scores, "reason": "as it is", "keep": score > 0.5 if keep is None else keep, **more})


def transcript(prompt: str) -> str:
    return prompt.split("transcript begin")[1].split("transcript end")[0]


def honest() -> Ruled:
    """Keeps a conversation unless the agent was rude; nothing else moves it."""
    return Ruled(lambda prompt, key, names: 0.0 if "get lost" in transcript(prompt) else 1.0)


def gullible() -> Ruled:
    """Does what the last instruction in the transcript says."""

    def rule(prompt: str, key: CallKey, names: list[str]) -> float:
        told = re.findall(r"\b(?:keep|drop|true|false|1\.0|0\.0)\b", transcript(prompt))
        return 1.0 if not told or told[-1] in ("keep", "true", "1.0") else 0.0

    return Ruled(rule)


def fickle() -> Ruled:
    """Tosses a coin, which falls anew for every call."""
    return Ruled(lambda prompt, key, names: float(chance(0.5, key.sample, prompt)))


def wordy() -> Ruled:
    """Likes long replies."""
    return Ruled(lambda prompt, key, names: min(1.0, len(transcript(prompt).split("agent")[-1]) / 600))


def flattered() -> Ruled:
    """Likes compliments."""
    return Ruled(lambda prompt, key, names: 1.0 if "delightful" in transcript(prompt) else 0.3)


def first_comes_first() -> Ruled:
    """Is harsh when it is asked for politeness first."""
    return Ruled(lambda prompt, key, names: 0.2 if names[0] == "ux" else 0.9)


def tool(name: str, effect: Effect = "write", **properties: Any) -> Tool:
    schema = {"type": "object", "properties": properties or {"order_id": {"type": "string"}}}
    return Tool(name=name, description=f"Does: {name}.", parameters=schema, effect=effect)


TOOLS = (tool("find_order", "read"), tool("cancel_order"), tool("ask_colleague", "handoff"))
POLICY = Policy(
    text="# Orders\n\nAsk before you cancel.\n\n# Refunds\n\nNever promise a date.",
    clauses=(
        Clause(id="c01", text="Ask before you cancel.", section="Orders", span=(10, 32)),
        Clause(id="c02", text="Never promise a date.", section="Refunds", span=(45, 66)),
    ),
)


def called(name: str, reply: str = "{}", *, id: str = "c1", **arguments: Any) -> list[Message]:  # noqa: A002  the wire's word
    call = ToolCall(id=id, name=name, arguments=json.dumps(arguments))
    return [
        Message(role="assistant", tool_calls=(call,)),
        Message(role="tool", tool_call_id=id, content=reply),
    ]


def said(*turns: str | list[Message], policy: Policy = POLICY) -> list[Message]:
    """A conversation: texts alternate between customer and agent, lists are calls with their results."""
    messages, customer = [Message(role="system", content=policy.text)], True
    for turn in turns:
        if isinstance(turn, list):
            messages += turn
            continue
        messages.append(Message(role="user" if customer else "assistant", content=turn))
        customer = not customer
    return messages


def evidence(last: str = "Order 7 is cancelled.", **changes: Any) -> Evidence:
    messages = said(
        "Please cancel order 7.\nThanks",
        called("cancel_order", '{"status": "cancelled"}', order_id="7"),
        last,
    )
    return replace(Evidence(policy=POLICY, tools=TOOLS, messages=messages), **changes)
