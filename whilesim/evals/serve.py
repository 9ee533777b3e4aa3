"""Serve: any agent as an OpenAI-compatible endpoint on loopback.

Chat completions with tools, streamed or not, and the list of models; the model's name in a
request chooses the agent. The client runs the tools. Sampling parameters of a request are
read by nobody: an agent behind a model has those of its model.
"""

from __future__ import annotations

import ast
import inspect
import logging
import re
import textwrap
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

from aiohttp import web
from pydantic import BaseModel

from whilesim.chat.endpoint import Endpoint
from whilesim.chat.messages import Message, ToolCall, read_messages
from whilesim.chat.usage import Usage
from whilesim.conversations.players import Agent, Context
from whilesim.core.errors import InputError
from whilesim.core.jsontext import dumps, loads
from whilesim.core.text import digest
from whilesim.evals.agents import TicketAgent, find_agent
from whilesim.evals.tickets import Ticket
from whilesim.grading.rubric import checked
from whilesim.playing import find_cast, seat_agent

log = logging.getLogger(__name__)
BUILT_IN = ("scripted", "always_handoff", "do_nothing")
"""Agents that every endpoint serves beside those that are named."""


class Request(BaseModel):
    """What is read of a client's request; the rest may be anything."""

    model: str
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]] | None = None
    stream: bool | None = None
    stream_options: dict[str, Any] | None = None


class _AnyTicket(dict[str, Ticket]):
    """A served agent that wants tickets gets one that says nothing."""

    def __missing__(self, key: str) -> Ticket:
        return Ticket(ticket_id=key, user_message="-")


@asynccontextmanager
async def serving(agents: Mapping[str, Any], *, port: int = 0, key: str | None = None) -> AsyncIterator[str]:
    """Serve agents while the block lasts, and yield the address: ``http://127.0.0.1:<port>/v1``.

    Args:
        agents: Name to agent, in any form that ``evaluate`` takes.
        port: 0 for any that is free.
        key: What a client must send as its key; None asks for none.

    Raises:
        InputError: An agent cannot be used, makes its calls itself as far as its source shows, or the port is taken.
    """
    async with AsyncExitStack() as stack:
        for name, spec in agents.items():
            _refuse_own_calls(name, spec)
        desk = _Desk({n: await _seat(spec, stack) for n, spec in {**{n: n for n in BUILT_IN}, **agents}.items()}, key)
        app = web.Application(client_max_size=64 << 20)
        for path in ("/v1", ""):
            app.router.add_post(f"{path}/chat/completions", desk.chat)
            app.router.add_get(f"{path}/models", desk.models)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        stack.push_async_callback(runner.cleanup)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", port).start()
        except OSError as error:
            msg = f"port {port} cannot be listened on: {error}. Type --port 0 for any that is free."
            raise InputError(msg) from error
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"


async def _seat(spec: Any, stack: AsyncExitStack) -> Agent:
    if (own := find_agent(spec, _AnyTicket())) is not None:
        return own
    cast = await find_cast(spec, "scripted")
    chat = await stack.enter_async_context(Endpoint(cast.models["agent"])) if "agent" in cast.models else None
    return seat_agent(cast.agent, chat)


def _refuse_own_calls(name: str, agent: Any) -> None:
    """Refuse a function that reaches for ``context.call`` and is not ready to be refused it."""
    own, found = set[str](), list[str]()
    with suppress(OSError, TypeError, ValueError, SyntaxError):  # a source that cannot be read shows nothing
        taken = inspect.signature(agent).parameters.values()  # what has a default is the agent's own
        own = {f"{p.name}.call" for p in taken if p.default is p.empty or p.default is None}
        source = inspect.getsource(agent if inspect.isroutine(agent) else type(agent).__call__)
        nodes = list(ast.walk(ast.parse(textwrap.dedent(source))))
        ready = [n for n in nodes if isinstance(n, ast.stmt) and re.match(r"try:|with .*suppress\(", ast.unparse(n))]
        tried = {id(inner) for node in ready for inner in ast.walk(node)}
        found += [ast.unparse(n) for n in nodes if isinstance(n, ast.Attribute) and id(n) not in tried]
    if reached := own.intersection(found):
        told = f"the agent {name!r} makes its tool calls itself ({min(reached)}), and a served agent cannot"
        raise InputError(f'{told}: the client runs the tools. Return the calls instead: {{"tool_calls": [...]}}.')


def _refused(kind: type[web.HTTPException], message: str) -> web.HTTPException:
    told = "server_error" if kind.status_code >= 500 else "invalid_request_error"
    error = {"message": message, "type": told, "code": kind.status_code}
    return kind(text=dumps({"error": error}), content_type="application/json")


class _Desk:
    """Reads requests and writes answers."""

    def __init__(self, agents: Mapping[str, Agent], key: str | None) -> None:
        self.agents, self.key = agents, key

    async def models(self, _request: Any) -> Any:
        listed = [{"id": name, "object": "model", "created": 0, "owned_by": "whilesim"} for name in self.agents]
        return web.json_response({"object": "list", "data": listed}, dumps=dumps)

    async def chat(self, request: Any) -> Any:
        asked, reply, usage = await self.answer(request)
        head = {"id": f"chatcmpl-{digest(repr(reply), 12)}", "created": int(time.time()), "model": asked.model}
        if asked.stream:
            counted = (asked.stream_options or {}).get("include_usage")
            return await _stream(request, head, reply, usage if counted else None)
        message = {**reply.to_openai(), "refusal": None}
        choice = {"index": 0, "message": message, "finish_reason": _finish(reply), "logprobs": None}
        whole = {**head, "object": "chat.completion", "choices": [choice], "usage": usage}
        return web.json_response(whole, dumps=dumps)

    async def answer(self, request: Any) -> tuple[Request, Message, dict[str, int]]:
        """Let the agent that a request names answer it."""
        if self.key is not None and request.headers.get("Authorization") != f"Bearer {self.key}":
            raise _refused(web.HTTPUnauthorized, "the key is not the one that whilesim serve was started with.")
        raw = await request.read()
        try:
            asked = checked(Request, loads(raw), "")
            messages, tools = read_messages(asked.messages), tuple(asked.tools or ())
        except ValueError as error:
            raise _refused(web.HTTPBadRequest, f"the request cannot be read: {error}") from error
        agent = self.agents.get(asked.model) or self.agents.get(asked.model.removeprefix("openai/"))
        if agent is None:
            told = f"there is no agent {asked.model!r} here; there are {', '.join(self.agents)}."
            raise _refused(web.HTTPNotFound, told)
        if not messages:
            raise _refused(web.HTTPBadRequest, "the request holds no messages.")
        first = next((m.content or "" for m in messages if m.role == "user"), "")
        turn = sum(m.role == "assistant" for m in messages)
        context = Context(tools=tools, case=f"{digest(first)}-{turn}", seed=0, turn=turn, answer=_no_world)
        # what it writes down is of this request alone
        agent = replace(agent, traces={}) if isinstance(agent, TicketAgent) else agent
        try:
            said = await agent.answer(messages, context)
        except Exception as error:  # an agent of the user's may raise anything; the client must hear of it
            log.warning("%s: %s", asked.model, error)
            raise _refused(web.HTTPInternalServerError, f"{type(error).__name__}: {error}") from error
        if not (spoken := [m for m in said if m.role == "assistant"]):
            raise _refused(web.HTTPInternalServerError, f"the agent {asked.model!r} said nothing.")
        return asked, spoken[-1], _count(raw, spoken[-1], context.usage)


def _no_world(call: ToolCall) -> str:
    msg = f"a served agent cannot call {call.name!r} itself: the client runs the tools. Return the call instead."
    raise InputError(msg)


def _count(raw: bytes, reply: Message, used: Usage) -> dict[str, int]:
    """Return tokens as the agent's model counted them, else four bytes a token."""
    sent = used.tokens_in or max(1, len(raw) // 4)
    made = used.tokens_out or max(1, len(dumps(reply.to_openai())) // 4)
    return {"prompt_tokens": sent, "completion_tokens": made, "total_tokens": sent + made}


def _finish(reply: Message) -> str:
    return "tool_calls" if reply.tool_calls else "length" if reply.finish == "length" else "stop"


async def _stream(request: Any, head: Mapping[str, Any], reply: Message, usage: Mapping[str, int] | None) -> Any:
    """Send an answer as server-sent events: word by word, then its calls, then the usage where it was asked for."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"})
    await response.prepare(request)
    head = {**head, "object": "chat.completion.chunk"}
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": word} for word in re.findall(r"\s*\S+\s*$|\s*\S+", reply.content or "")]
    deltas += [{"tool_calls": [{"index": i, **c}]} for i, c in enumerate(reply.to_openai().get("tool_calls", ()))]
    parts: list[tuple[Any, str | None]] = [*((delta, None) for delta in deltas), ({}, _finish(reply))]
    choices = [{"index": 0, "delta": delta, "finish_reason": end, "logprobs": None} for delta, end in parts]
    chunks: list[Any] = [{**head, "choices": [choice]} for choice in choices]
    chunks += [{**head, "choices": [], "usage": usage}] if usage is not None else []
    for text in (*map(dumps, chunks), "[DONE]"):
        await response.write(f"data: {text}\n\n".encode())
    await response.write_eof()
    return response
