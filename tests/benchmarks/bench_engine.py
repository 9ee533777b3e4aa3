"""Calls a second and CPU per call of the engine, beside other clients.

    python tests/benchmarks/bench_engine.py                  # the table: 0 and 50 ms
    python tests/benchmarks/bench_engine.py --faults         # 30 % refusals, memory of 20,000 conversations (minutes)

Every client asks the same stub (a process of its own) for the same conversations: 12 calls
each, 8 tools, from 6 to some 16 KB of request. CPU is the client process's own. Compare
ratios on one machine, not numbers between machines.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from stub import Stub, refuse

from whilesim.chat.endpoint import Endpoint
from whilesim.chat.loop import run
from whilesim.chat.messages import Message, to_openai
from whilesim.chat.models import CallKey, Model
from whilesim.chat.replies import Replies
from whilesim.chat.throttle import Throttle
from whilesim.conversations.engine import run_jobs
from whilesim.conversations.journal import Journal

CALLS = 12
TEXT = "The customer wrote this and it goes on for a while, as customers' messages do. " * 6
SYSTEM = Message(role="system", content="You are a support agent. " + "This rule holds at all times. " * 90)
TOOLS = tuple(
    {
        "type": "function",
        "function": {
            "name": f"look_up_{i}",
            "description": "Looks something up in one of the systems. " * 3,
            "parameters": {
                "type": "object",
                "properties": {f"field_{j}": {"type": "string", "description": "What it is."} for j in range(4)},
                "required": ["field_0"],
            },
        },
    }
    for i in range(8)
)
Ask = Callable[[list[Message], CallKey], Awaitable[Message]]


@dataclass
class Job:
    id: str


def jobs(count: int) -> Iterator[Job]:
    return (Job(f"c{i}") for i in range(count))


async def converse(job: Job, ask: Ask) -> dict[str, Any]:
    messages = [SYSTEM, Message(role="user", content=TEXT)]
    for turn in range(CALLS):
        messages.append(await ask(messages, CallKey(case=job.id, role="agent", turn=turn)))
        messages.append(Message(role="user", content=TEXT))
    return {"id": job.id, "messages": to_openai(messages)}


async def plain(ask: Ask, count: int, concurrency: int) -> None:
    """Workers that pull conversations, and nothing else: what the other clients get."""
    waiting = jobs(count)

    async def worker() -> None:
        for job in waiting:
            await converse(job, ask)

    await asyncio.gather(*(worker() for _ in range(concurrency)))


async def with_aiohttp(url: str, count: int, concurrency: int) -> None:
    import aiohttp

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def ask(messages: list[Message], _: CallKey) -> Message:
            body = {"model": "m", "messages": to_openai(messages), "tools": TOOLS}
            async with session.post(f"{url}/chat/completions", json=body) as answer:
                found = json.loads(await answer.read())
            return Message(role="assistant", content=found["choices"][0]["message"]["content"])

        await plain(ask, count, concurrency)


async def with_bytes(url: str, count: int, concurrency: int) -> None:
    import aiohttp

    body = json.dumps(
        {
            "model": "m",
            "messages": to_openai([SYSTEM]) + to_openai([Message(role="user", content=TEXT)]) * 16,
            "tools": TOOLS,
        }
    )
    data = body.encode()
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def ask(messages: list[Message], _: CallKey) -> Message:
            async with session.post(f"{url}/chat/completions", data=data) as answer:
                found = json.loads(await answer.read())
            return Message(role="assistant", content=found["choices"][0]["message"]["content"])

        await plain(ask, count, concurrency)


async def with_openai(url: str, count: int, concurrency: int) -> None:
    import openai

    async with openai.AsyncOpenAI(base_url=url, api_key="x", timeout=60, max_retries=0) as client:

        async def ask(messages: list[Message], _: CallKey) -> Message:
            found = await client.chat.completions.create(
                model="m",
                messages=to_openai(messages),  # type: ignore[arg-type]
                tools=list(TOOLS),  # type: ignore[arg-type]
            )
            return Message(role="assistant", content=found.choices[0].message.content)

        await plain(ask, count, concurrency)


async def with_litellm(url: str, count: int, concurrency: int) -> None:
    from whilesim.chat.bridge import load_litellm

    litellm = load_litellm()

    async def ask(messages: list[Message], _: CallKey) -> Message:
        found = await litellm.acompletion(
            "hosted_vllm/m", messages=to_openai(messages), tools=list(TOOLS), api_base=url, timeout=60
        )
        return Message(role="assistant", content=found.choices[0].message.content)

    await plain(ask, count, concurrency)


async def with_whilesim(url: str, count: int, concurrency: int, **options: Any) -> None:
    model = options.pop("model", None) or Model("m", base_url=url)
    throttle = Throttle(concurrency=concurrency)
    folder = Path(options["run_dir"]) if "run_dir" in options else None
    replies = Replies(folder / "replies.sqlite") if folder and options.get("cache", True) else None
    chat = Endpoint(model, throttle=throttle, replies=replies)

    async def ask(messages: list[Message], key: CallKey) -> Message:
        return (await chat.reply(messages, TOOLS, key=key)).message

    journal = Journal(folder if options.get("journal", True) else None)
    try:
        with journal:
            summary = await run_jobs(
                jobs(count),
                lambda job: converse(job, ask),
                journal=journal,
                throttle=throttle,
                progress=False,
            )
        assert summary.failed == 0, summary
    finally:
        if replies is not None:
            replies.close()
        await chat.close()


async def with_our_client(url: str, count: int, concurrency: int) -> None:
    import openai

    async with openai.AsyncOpenAI(
        base_url=url, api_key="x", http_client=openai.DefaultAioHttpClient(base_url=url)
    ) as client:
        with tempfile.TemporaryDirectory() as folder:
            model = Model("m", client=client)
            await with_whilesim(url, count, concurrency, run_dir=folder, model=model)


@contextmanager
def stub(latency: float) -> Iterator[str]:
    command = [sys.executable, str(Path(__file__).parent.parent / "stub.py"), "--latency", str(latency)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def measure(name: str, client: Any, url: str, count: int, concurrency: int, **options: Any) -> None:
    wall, cpu = time.perf_counter(), time.process_time()
    run(client(url, count, concurrency, **options))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    calls = count * CALLS
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{name:34} {calls / wall:10,.0f} {cpu / calls * 1000:12.3f} {peak:8.0f}", flush=True)


def table(latency: float, concurrency: int, chosen: str, count: int) -> None:
    ideal = f", at best {concurrency / latency:,.0f} calls/s" if latency else ""
    print(f"\n{latency * 1000:.0f} ms, {concurrency} at a time{ideal}")
    print(f"{'client':34} {'calls/s':>10} {'CPU ms/call':>12} {'RSS MB':>8}")
    slow = max(concurrency, count // 8)
    with stub(latency) as url, tempfile.TemporaryDirectory() as top:
        rows: list[tuple[str, Any, int, dict[str, Any]]] = [
            ("aiohttp, ready-made bytes", with_bytes, count, {}),
            ("aiohttp, json=", with_aiohttp, count, {}),
            ("whilesim, in memory, no cache", with_whilesim, count, {}),
            ("whilesim, journal", with_whilesim, count, {"run_dir": f"{top}/a", "cache": False}),
            ("whilesim, journal and cache", with_whilesim, count, {"run_dir": f"{top}/b"}),
            ("whilesim, again: all from cache", with_whilesim, count, {"run_dir": f"{top}/b", "journal": False}),
            ("whilesim, through AsyncOpenAI", with_our_client, count // 2, {}),
            ("openai, create", with_openai, slow, {}),
            ("litellm, acompletion", with_litellm, slow, {}),
        ]
        for name, client, number, options in rows:
            if chosen in name:
                Path(f"{top}/a").mkdir(exist_ok=True)
                Path(f"{top}/b").mkdir(exist_ok=True)
                measure(name, client, url, number, concurrency, **options)


def faults(conversations: int) -> None:
    print(f"\n{'faults at 50 ms, 128 at a time':34} {'calls/s':>10} {'CPU ms/call':>12} {'RSS MB':>8}")
    answer = Stub().complete({"messages": [], "model": "m"}, 0)
    refusals = lambda n, _: refuse(429, retry_after=1) if n * 0.618034 % 1 < 0.3 else None  # noqa: E731
    with Stub(answer, latency=0.05, record=False) as server:
        measure("none (stub in this process)", with_whilesim, server.url, 1024, 128)
    with Stub(answer, latency=0.05, record=False, plan=refusals) as server:
        measure("30 % refused, Retry-After 1 s", with_whilesim, server.url, 2048, 128)
    with stub(0.02) as url, tempfile.TemporaryDirectory() as folder:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        measure("many conversations, 20 ms, c=256", with_whilesim, url, conversations, 256, run_dir=folder)
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"memory grew by {after - before:.0f} MB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", action="store_true")
    parser.add_argument("--only", default="", help="run the clients whose name holds this")
    parser.add_argument("--count", type=int, default=512, help="conversations for each of the quick clients")
    parser.add_argument("--conversations", type=int, default=20_000, help="of the memory measurement")
    arguments = parser.parse_args()
    if arguments.faults:
        faults(arguments.conversations)
    else:
        table(0.0, 64, arguments.only, arguments.count)
        table(0.05, 128, arguments.only, arguments.count)
