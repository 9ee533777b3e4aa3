"""Serve: the clients that people use talk to it, streaming included."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import threading
from typing import Any

import pytest
from shop import STARTER, shop_agent

from whilesim.conversations.players import Context
from whilesim.core.errors import InputError
from whilesim.evals.serve import serving

TOOLS = json.loads((STARTER / "tools.json").read_text())


def echo(messages: list[dict[str, Any]]) -> str:
    return f"You said: {messages[-1]['content']}"


def caller(messages: list[dict[str, Any]], context: Any) -> Any:
    name = context.tools[0]["function"]["name"]
    return {
        "content": "One moment. ",
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": name, "arguments": "{}"}}],
    }


def reach(context: Any) -> str:
    return str(context.call("lookup_order", {}))


def reaching(messages: list[dict[str, Any]], context: Any) -> str:
    return reach(context)


AGENTS = {"echo": echo, "caller": caller, "reaching": reaching, "shop": shop_agent}
HI = [{"role": "user", "content": "hi there,  you"}]


def test_the_openai_client_talks_to_it() -> None:
    from openai import AsyncOpenAI, NotFoundError

    async def talk() -> None:
        async with serving(AGENTS) as url, AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as client:
            listed = [m.id async for m in client.models.list()]
            assert listed == ["scripted", "always_handoff", "do_nothing", *AGENTS]
            plain = await client.chat.completions.create(model="echo", messages=HI)
            assert plain.choices[0].message.content == "You said: hi there,  you"
            assert plain.choices[0].finish_reason == "stop"
            assert plain.usage is not None
            stream = await client.chat.completions.create(
                model="caller", messages=HI, tools=TOOLS, stream=True, stream_options={"include_usage": True}
            )
            chunks = [c async for c in stream]
            deltas = [c.choices[0].delta for c in chunks if c.choices]
            assert "".join(d.content or "" for d in deltas) == "One moment. "
            called = [c for d in deltas for c in d.tool_calls or ()]
            assert called[0].function.name == "lookup_order"
            assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "tool_calls"
            assert chunks[-1].usage is not None
            handed = await client.chat.completions.create(model="always_handoff", messages=HI, tools=TOOLS)
            assert handed.choices[0].message.tool_calls[0].function.name == "transfer_to_human"
            with pytest.raises(NotFoundError, match="there is no agent 'nobody' here; there are scripted"):
                await client.chat.completions.create(model="nobody", messages=HI)

    asyncio.run(talk())


@pytest.mark.filterwarnings("ignore:.*ReadOnly.*")  # pydantic's word on a type of litellm's
def test_litellm_talks_to_it() -> None:
    from whilesim.chat.bridge import load_litellm

    litellm = load_litellm()

    async def talk() -> None:
        async with serving(AGENTS) as url:
            given = {"api_base": url, "api_key": "none"}
            plain = await litellm.acompletion("openai/echo", HI, **given)
            assert plain.choices[0].message.content == "You said: hi there,  you"
            stream = await litellm.acompletion("openai/echo", HI, stream=True, **given)
            words = [c.choices[0].delta.content or "" async for c in stream]
            assert "".join(words) == "You said: hi there,  you"
            assert len(words) > 3

    asyncio.run(talk())


@pytest.mark.parametrize(
    ("body", "status", "match"),
    [
        (b'{"model": "echo", "messages"', 400, "the request cannot be read"),
        (b'{"model": "echo"}', 400, "the request cannot be read: 'messages' is not there."),
        (b"[1]", 400, "it is [1]: Input should be a valid dictionary"),
        (b'{"model": "echo", "messages": "hi"}', 400, "'messages' is 'hi': Input should be a valid list."),
        (b'{"model": "echo", "messages": ["hi"]}', 400, "'messages.0' is 'hi': Input should be a valid dictionary."),
        (b'{"model": 5, "messages": []}', 400, "'model' is 5: Input should be a valid string."),
        (b'{"model": "echo", "messages": [], "tools": {}}', 400, "'tools' is {}: Input should be a valid list."),
        (
            b'{"model": "echo", "messages": [{"role": "user", "content": 5}]}',
            400,
            "read: a message's content is int; it must be text",
        ),
        (b'{"model": "echo", "messages": [{"role": "bot"}]}', 400, "a message has the role 'bot'"),
        (
            b'{"model": "echo", "messages": [], "stream_options": 3}',
            400,
            "'stream_options' is 3: Input should be a valid dict",
        ),
        (b'{"model": "echo", "messages": []}', 400, "the request holds no messages"),
        (b'{"model": "reaching", "messages": [{"role": "user", "content": "x"}]}', 500, "the client runs the tools"),
        (b'{"model": "shop", "messages": [{"role": "user", "content": "x"}]}', 500, "KeyError: 'order_id'"),
    ],
)
def test_what_cannot_be_answered_says_why(body: bytes, status: int, match: str) -> None:
    import aiohttp

    async def ask() -> tuple[int, dict[str, Any]]:
        async with serving(AGENTS) as url, aiohttp.ClientSession() as session:
            answer = await session.post(f"{url}/chat/completions", data=body)
            return answer.status, (await answer.json())["error"]

    found, error = asyncio.run(ask())
    assert found == status
    assert match in error["message"]
    assert error["type"] == ("server_error" if status == 500 else "invalid_request_error")


def test_what_clients_leave_empty_is_no_fault() -> None:
    import aiohttp

    body = {"model": "echo", "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]}
    empty = {"tools": None, "stream": None, "stream_options": None, "temperature": 0, "user": 7}

    async def ask() -> str:
        async with serving(AGENTS) as url, aiohttp.ClientSession() as session:
            answer = await session.post(f"{url}/chat/completions", json={**body, **empty})
            return str((await answer.json())["choices"][0]["message"]["content"])

    assert asyncio.run(ask()) == "You said: hi"


CLERK = Context(tools=(), case="", seed=0, answer=lambda call: "found")


def calls_now(messages: Any, context: Any) -> str:
    if "order" in messages[-1]["content"]:
        return str(context.call("lookup_order", {}))
    return "Hello"


def calls_as_a_ticket(user_message: str, context: Any, trace: Any) -> dict[str, Any]:
    call = context.call
    return {"reply": call("lookup_order", {})}


class Calling:
    def __call__(self, messages: Any, context: Any) -> str:
        return str(context.call("lookup_order", {}))


def ready(messages: Any, context: Any) -> Any:
    try:
        return context.call("lookup_order", {})
    except InputError:
        return caller(messages, context)


def ready_otherwise(messages: Any, context: Any) -> Any:
    with contextlib.suppress(InputError):
        return context.call("lookup_order", {})
    return caller(messages, context)


def of_its_own(messages: Any, context: Any, clerk: Any = CLERK) -> str:
    return str(clerk.call("lookup_order", {}))


def by_default(messages: Any, context: Any = None) -> str:
    return str(context.call("lookup_order", {}))


def of_another(messages: Any, context: Any) -> str:
    clerk = CLERK
    return clerk.call("lookup_order", {})


@pytest.mark.parametrize("agent", [calls_now, calls_as_a_ticket, Calling(), by_default])
def test_an_agent_that_makes_its_calls_itself_is_refused_before_it_is_served(agent: Any) -> None:
    async def start() -> None:
        async with serving({"mine": agent}):
            pass

    with pytest.raises(
        InputError, match=r"the agent 'mine' makes its tool calls itself \(context\.call\).*Return the calls"
    ):
        asyncio.run(start())


@pytest.mark.parametrize(
    "agent", [ready, ready_otherwise, of_its_own, of_another, reaching, functools.partial(caller), caller, shop_agent]
)
def test_an_agent_of_which_that_cannot_be_known_is_served(agent: Any) -> None:
    async def start() -> str:
        async with serving({"mine": agent}) as url:
            return url

    assert asyncio.run(start())


def test_requests_with_the_same_words_at_the_same_time_do_not_mix() -> None:
    import aiohttp

    both = threading.Barrier(2)

    def slow(user_message: str, context: Any, trace: Any) -> dict[str, Any]:
        both.wait(timeout=30)
        trace.turns.append({"role": "assistant", "content": "One answer."})
        both.wait(timeout=30)
        return {}

    async def ask() -> list[str]:
        async with serving({"slow": slow}) as url, aiohttp.ClientSession() as session:

            async def one() -> str:
                async with session.post(f"{url}/chat/completions", json={"model": "slow", "messages": HI}) as answer:
                    return str((await answer.json())["choices"][0]["message"]["content"])

            return await asyncio.gather(one(), one())

    assert asyncio.run(ask()) == ["One answer.", "One answer."]


def test_a_key_is_asked_for_where_one_was_set_and_a_port_is_taken_once() -> None:
    import aiohttp

    async def ask() -> list[int]:
        async with serving(AGENTS, key="k") as url, aiohttp.ClientSession() as session:
            found = []
            for key in ("no", "k"):
                head = {"Authorization": f"Bearer {key}"}
                async with session.post(
                    f"{url}/chat/completions", json={"model": "echo", "messages": HI}, headers=head
                ) as answer:
                    found.append(answer.status)
            with pytest.raises(InputError, match="cannot be listened on"):
                async with serving(AGENTS, port=int(url.split(":")[2].split("/")[0])):
                    pass
            return found

    assert asyncio.run(ask()) == [401, 200]
