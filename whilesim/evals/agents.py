"""Agents: anything that answers, as an agent, and four that anybody could write in a minute.

A model, a script or ``agent(messages, context)`` is played as in a simulation. A function of
``(user_message, context, trace)``, a REST address, a LangChain runnable and an agent of the
OpenAI Agents SDK are adapted here; told apart by what they have, so neither package is needed.

What the four floors pass, a suite cannot tell from good work: their scores stand beside every
score.
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from http.client import HTTPException
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast
from urllib.request import Request, urlopen

from whilesim.chat.messages import Message, ToolCall, read_message, to_openai
from whilesim.chat.models import PROVIDERS, Model
from whilesim.conversations.players import Agent, Context, call_function
from whilesim.conversations.scripted import ScriptedAgent
from whilesim.core.errors import InputError, ModelError
from whilesim.core.jsontext import dumps
from whilesim.core.keys import hide, known_keys, place_of
from whilesim.core.templates import load_words
from whilesim.core.text import shorten
from whilesim.evals.rules import load_named
from whilesim.evals.tickets import Ticket
from whilesim.evals.traces import AgentTrace
from whilesim.situations.tools import parse_tools

_PATIENCE = 120.0  # seconds for one request to a REST agent


class TicketContext(dict[str, Any]):
    """A ticket's ``customer_context``; ``call`` reaches the mock world that stands in for the CRM."""

    def __init__(self, told: Mapping[str, Any], call: Callable[[str, Mapping[str, Any]], str]) -> None:
        super().__init__(told)
        self.call = call


@dataclass(frozen=True, slots=True)
class TicketAgent:
    """An agent that is a function ``agent(user_message, context, trace) -> {"final_state": ...}``."""

    function: Callable[..., Any]
    tickets: Mapping[str, Ticket]
    traces: dict[tuple[str, int], AgentTrace] = field(default_factory=dict)
    """What the function was handed, by ticket and trial."""
    remote: bool = False
    """It cannot reach the mock world, whose state then says nothing of it."""

    async def answer(self, messages: Sequence[Message], context: Context) -> Sequence[Message]:
        """Call the function; its tool calls come first, then its words."""
        context.inner.clear()
        trace = self.traces.setdefault((context.case, context.rollout), AgentTrace(context.case, trial=context.rollout))
        turns, calls = len(trace.turns), len(trace.tool_calls)
        told = TicketContext(self.tickets[context.case].customer_context, context.call)
        asked = {"user_message": messages[-1].content, "context": told, "trace": trace}
        names = inspect.signature(self.function).parameters
        by_name = asked.keys() <= names.keys() or any(p.kind is p.VAR_KEYWORD for p in names.values())
        found = await call_function(lambda: self.function(**asked) if by_name else self.function(*asked.values()))
        msg = f'the agent returned {found!r:.60}. Return {{"final_state": {{...}}}}, and "reply" if it is not on the trace.'
        found = {"reply": found} if isinstance(found, str) else found
        if not isinstance(found, Mapping):
            raise ModelError(msg, reason="player")
        if isinstance(found.get("final_state"), Mapping):
            trace.final_state, trace.state_of = dict(found["final_state"]), "agent"
        if not isinstance(made := found.get("tool_calls") or [], (list, tuple)):
            raise ModelError(f"the agent returned tool_calls={made!r:.60}. Return a list of calls.", reason="player")
        trace.tool_calls += made
        trace.tool_calls[calls:] = [_plain_call(c) for c in trace.tool_calls[calls:]]
        for number, call in enumerate(trace.tool_calls[calls:], start=calls):
            _add_call(context, call, number)
        trace.turns[turns:] = [_turn(t) for t in trace.turns[turns:]]
        said = "\n".join(t["content"] for t in trace.turns[turns:] if t["role"] == "assistant")
        reply = found.get("reply", found.get("content")) or said
        if not str(reply).strip():
            raise ModelError(msg, reason="player")
        return (*context.inner, Message(role="assistant", content=str(reply)))


@dataclass(frozen=True, slots=True)
class FrameworkAgent:
    """An agent of LangChain or of the OpenAI Agents SDK; it runs its own tools, or leaves them to the world."""

    agent: Any

    async def answer(self, messages: Sequence[Message], context: Context) -> Sequence[Message]:
        """Run it once."""
        context.inner.clear()
        wire = [m for m in to_openai(messages) if m["content"] or m["role"] != "system"]
        new = await (_run_openai if _is_openai(self.agent) else _run_langchain)(self.agent, wire, context)
        context.inner.extend(m for m in new if m.role == "tool")  # what is answered already is not asked again
        return new


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
        return (_calling(f"call_{len(messages)}", tool["name"], fill_arguments(tool.get("parameters") or {}, asked)),)

    def _tool(self, tools: Sequence[Mapping[str, Any]]) -> Any:
        name = tools[0]["function"]["name"] if self.kind == "first_tool" else None
        if self.kind == "always_handoff":
            name = find_handoff(dumps(list(tools)))
        return next((t["function"] for t in tools if t["function"]["name"] == name), None)


FLOORS = {kind: FloorAgent(kind) for kind in ("always_handoff", "do_nothing", "echo_policy", "first_tool")}
_NAMED: Mapping[str, Agent] = {"scripted": ScriptedAgent(faults=0.0), **FLOORS}


def find_agent(agent: Any, tickets: Mapping[str, Ticket]) -> Agent | None:
    """Return an agent for what evaluations alone know; None for what a simulation takes as well."""
    if isinstance(agent, str):
        address = agent.startswith(("http://", "https://"))
        return TicketAgent(rest_agent(agent), tickets, remote=True) if address else _NAMED.get(agent)
    if _is_openai(agent) or callable(getattr(agent, "invoke", None)):
        return FrameworkAgent(agent)
    if hasattr(agent, "answer"):
        return cast(Agent, agent)
    return TicketAgent(agent, tickets) if callable(agent) and _takes_tickets(agent) else None


def load_agent(spec: str, base_url: str | None = None) -> Any:
    """Return what a text names: ``module:function``, ``path.py:function``, a model at an address, or the text itself.

    Raises:
        InputError: There is no such function, or it stands beside an address, or nobody knows what the text names.
    """
    module, _, name = spec.rpartition(":")
    if spec.endswith(".py"):
        raise InputError(f"the agent {spec!r} names a file, and no function in it. Type {spec}:function.")
    if (script := module.endswith(".py")) and base_url:
        raise InputError(f"the agent {spec!r} is a function, and --base-url is where a model answers. Leave one out.")
    if base_url:
        return Model(spec, base_url=base_url)
    if not module or (not script and ("/" in spec or spec.partition(":")[0] in (*PROVIDERS, "http", "https"))):
        return spec
    top = module.partition(".")[0]
    here = top in sys.modules or find_spec(top) or PathFinder.find_spec(top, [str(Path.cwd())])
    if not script and not (here and name.isidentifier()):
        told = f"the agent {spec!r} names neither a provider ({', '.join(PROVIDERS)}) nor a module that is here. "
        typed = "Type provider:model, a litellm name (groq/llama-3), module:function or eval/agent.py:function."
        raise InputError(told + typed)
    told = f"the agent {spec!r} cannot be loaded: "
    return load_named(spec, told, "Type module:function, eval/agent.py:function or provider:model.")


def rest_agent(url: str) -> Callable[..., Any]:
    """Return an agent that asks an address: a POST of message, context and turns, JSON back."""
    keys = known_keys(url=url)

    def ask(user_message: str, context: Mapping[str, Any], trace: AgentTrace) -> Any:
        trace.turns.append({"role": "user", "content": user_message})
        body = {"ticket_id": trace.case_id, "user_message": user_message, "context": context, "turns": trace.turns}
        request = Request(url, dumps(body).encode(), {"Content-Type": "application/json"})  # noqa: S310  the user named the address
        try:
            with urlopen(request, timeout=_PATIENCE) as answer:  # noqa: S310  the same
                found = json.loads(answer.read())
        except (OSError, ValueError, HTTPException) as error:
            said = f"{place_of(url)} did not answer with JSON: {hide(str(error), keys)}"
            raise ModelError(said, reason="connection") from None  # what was raised may hold the address
        if isinstance(found, Mapping) and isinstance(found.get("reply"), str):
            trace.turns.append({"role": "assistant", "content": found["reply"]})
        return found

    return ask


@lru_cache(maxsize=64)
def find_handoff(tools: str) -> str | None:
    """Return the name of the first tool that hands the customer to a person; tools as JSON text."""
    return next((t.name for t in parse_tools(tools) if t.effect == "handoff"), None)


def fill_arguments(schema: Mapping[str, Any], text: str) -> dict[str, Any]:
    """Fill what a schema requires with the first thing that fits: an option, a number, a word with digits in it, the text."""
    known = schema.get("properties", {})
    coded = next(iter(re.findall(r"\w*\d[\w-]*", text)), "")
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


def _takes_tickets(agent: Any) -> bool:
    """Say whether an agent wants the ticket's three things; what has a default of its own is none of them."""
    with suppress(TypeError, ValueError):
        known = inspect.signature(agent).parameters
        needed = [p for p in known.values() if p.default is p.empty and p.kind <= p.POSITIONAL_OR_KEYWORD]
        return "user_message" in known or len(needed) == 3
    return False


def _is_openai(agent: Any) -> bool:
    return all(hasattr(agent, name) for name in ("instructions", "handoffs", "tools"))


def _plain_call(call: Any) -> dict[str, Any]:
    """Read a tool call as people write them down: its name alone, or any of a few spellings."""
    told = call if isinstance(call, Mapping) else {"name": call}
    told = told["function"] if isinstance(told.get("function"), Mapping) else told
    given = told.get("arguments") or told.get("args") or told.get("input") or {}
    result = next((told[n] for n in ("result", "output") if told.get(n) is not None), "")
    failed = bool(told.get("failed") or told.get("error"))
    return {"name": str(told.get("name")), "arguments": given, "result": result, "failed": failed}


def _turn(turn: Any) -> dict[str, Any]:
    role, text = turn if isinstance(turn, (tuple, list)) and len(turn) == 2 else ("assistant", turn)
    told = turn if isinstance(turn, Mapping) else {"role": role, "content": text}
    return {"role": str(told.get("role", "assistant")), "content": str(told.get("content") or "")}


def _add_call(context: Context, told: Mapping[str, Any], number: int) -> None:
    """Put a call that the agent made itself on the trace, unless it is the record of one made on the world."""
    message = _calling(f"own_{context.turn}_{number}", told["name"], told["arguments"])
    made = message.tool_calls[0]
    on_world = [c for m in context.inner for c in m.tool_calls if not c.id.startswith("own_")]
    if any(c.name == made.name and c.parsed == made.parsed for c in on_world):
        return
    result = told["result"] if isinstance(told["result"], str) else dumps(told["result"])
    answer = f"Error: {result}" if told["failed"] else result
    context.inner += [message, Message(role="tool", tool_call_id=made.id, content=answer)]


async def _run_openai(agent: Any, wire: list[dict[str, Any]], _context: Context) -> list[Message]:
    given = [m for m in wire if m["role"] != "system"]  # its own instructions are its system prompt
    result = await call_function(importlib.import_module("agents").Runner.run, agent, given)
    found = list[Message]()
    for item in result.to_input_list()[len(given) :]:
        if (kind := item.get("type")) == "function_call":
            found.append(_calling(item["call_id"], item["name"], item["arguments"]))
        elif kind == "function_call_output":
            found.append(Message(role="tool", tool_call_id=item["call_id"], content=str(item["output"])))
        elif item.get("role") == "assistant":
            found.append(read_message(item))
    return found or [Message(role="assistant", content=str(result.final_output))]


async def _run_langchain(agent: Any, wire: list[dict[str, Any]], context: Context) -> list[Message]:
    given: Any = {"messages": wire}
    if hasattr(agent, "bind_tools"):  # a chat model: the world answers its calls
        agent, given = agent.bind_tools(list(context.tools)), wire
    elif "input" in getattr(agent, "input_keys", ()):  # an executor
        given = {"input": wire[-1]["content"], "chat_history": wire[:-1]}
    if not isinstance(found := await call_function(agent.invoke, given), Mapping):
        return [_of_langchain(found)]
    if "messages" in found:
        return [_of_langchain(m) for m in found["messages"][len(wire) :]]
    new = list[Message]()
    for number, (action, seen) in enumerate(found.get("intermediate_steps", ())):
        call = _calling(f"step_{context.turn}_{number}", action.tool, action.tool_input)
        new += [call, Message(role="tool", tool_call_id=call.tool_calls[0].id, content=str(seen))]
    return [*new, Message(role="assistant", content=str(found.get("output", "")))]


def _calling(call_id: str, name: str, arguments: Any) -> Message:
    text = arguments if isinstance(arguments, str) else dumps(arguments)
    return Message(role="assistant", tool_calls=(ToolCall(id=call_id, name=name, arguments=text),))


def _of_langchain(message: Any) -> Message:
    """Read a message of LangChain's, a mapping of OpenAI's, or text."""
    if isinstance(message, (str, Mapping)):
        return read_message({"role": "assistant", **({"content": message} if isinstance(message, str) else message)})
    made = getattr(message, "tool_calls", None) or ()
    calls = [{"id": c.get("id"), "name": c["name"], "arguments": c["args"]} for c in made]
    told = {"role": "tool" if message.type == "tool" else "assistant", "content": message.content, "tool_calls": calls}
    return replace(read_message(told), tool_call_id=getattr(message, "tool_call_id", None))
