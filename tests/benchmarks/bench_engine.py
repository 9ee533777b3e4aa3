"""Calls a second and CPU per call: our engine and whole runs, beside other clients and the incumbent.

    python tests/benchmarks/bench_engine.py                            # 0 and 50 ms; 16, 64, 128, 256 at a time
    python tests/benchmarks/bench_engine.py --at 0.05:128 --only aiohttp,simulate
    python tests/benchmarks/bench_engine.py --incumbent VENV/bin/python  # a venv that has whileai 0.131
    python tests/benchmarks/bench_engine.py --faults                   # 30 % refusals
    python tests/benchmarks/bench_engine.py --memory                   # peaks of 1,000 and 20,000 rows (minutes)
    python tests/benchmarks/bench_engine.py --ray                      # two local Ray workers beside this process

The clients ask one stub (a process of its own) for the same conversations: 12 calls each, 8
tools, from 6 to some 16 KB of request. A whole run plays the bundled policy with agent and
customer on a stub of the same kind. CPU is the client process's own. Compare ratios on one
machine in one run, not numbers between machines: the load is printed beside.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import whilesim as ws
from whilesim.chat.endpoint import Endpoint
from whilesim.chat.loop import run
from whilesim.chat.messages import Message, to_openai
from whilesim.chat.models import CallKey, Model
from whilesim.chat.replies import Replies
from whilesim.chat.throttle import Throttle
from whilesim.conversations.engine import run_jobs
from whilesim.conversations.journal import Journal
from whilesim.showcase import demo_policy, demo_tools

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


async def with_whilesim(
    url: str, count: int, concurrency: int, *, run_dir: str | None = None, cache: bool = True, client: Any = None
) -> None:
    """Our engine alone: conversations without a world, checks or rows."""
    model = Model("m", client=client) if client else Model("m", base_url=url)
    throttle = Throttle(concurrency=concurrency)
    replies = Replies(Path(run_dir) / "replies.sqlite") if run_dir and cache else None
    chat = Endpoint(model, throttle=throttle, replies=replies)

    async def ask(messages: list[Message], key: CallKey) -> Message:
        return (await chat.reply(messages, TOOLS, key=key)).message

    try:
        with Journal(run_dir) as journal:
            summary = await run_jobs(
                list(jobs(count)), lambda job: converse(job, ask), journal=journal, throttle=throttle, progress=False
            )
        assert summary.failed == 0, summary
    finally:
        if replies is not None:
            replies.close()
        await chat.close()


async def with_our_client(url: str, count: int, concurrency: int) -> None:
    import openai

    http = openai.DefaultAioHttpClient(base_url=url)
    async with openai.AsyncOpenAI(base_url=url, api_key="x", http_client=http) as client:
        with tempfile.TemporaryDirectory() as folder:
            await with_whilesim(url, count, concurrency, run_dir=folder, client=client)


@contextmanager
def stub(latency: float, *options: str) -> Iterator[str]:
    command = [sys.executable, str(Path(__file__).parent.parent / "stub.py"), "--latency", str(latency), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def asked(url: str) -> int:
    """How many requests a stub has had."""
    with urllib.request.urlopen(url.removesuffix("/v1") + "/count") as answer:
        return int(json.load(answer)["count"])


@dataclass
class Line:
    """One line of a table."""

    name: str
    calls: int
    seconds: float
    cpu: float
    rss: float
    rows: int = 0

    @property
    def rate(self) -> float:
        return self.calls / self.seconds if self.calls else 0.0

    def __str__(self) -> str:
        per_call = f"{self.cpu / self.calls * 1000:12.3f}" if self.calls else f"{'-':>12}"
        rows = f"{self.rows / self.seconds:8.1f} {self.calls / self.rows:9.1f}" if self.rows else ""
        return f"{self.name:36} {self.rate:9,.0f} {per_call} {self.rss:7.0f} {rows}"


HEAD = f"{'':36} {'calls/s':>9} {'CPU ms/call':>12} {'RSS MB':>7} {'rows/s':>8} {'calls/row':>9}"


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(name: str, client: Any, url: str, count: int, concurrency: int, **options: Any) -> Line:
    """Time conversations with a client."""
    wall, cpu = time.perf_counter(), time.process_time()
    run(client(url, count, concurrency, **options))
    return Line(name, count * CALLS, time.perf_counter() - wall, time.process_time() - cpu, peak())


def measure_run(name: str, latency: float, concurrency: int, rows: int, agent: Any = None) -> Line:
    """Time a whole ``simulate``: world, cards, checks, rows, journal and cache; the plan is made before."""
    plan = ws.plan(tools=demo_tools(), system_prompt=demo_policy(), situations=min(150, rows // 2))
    with stub(latency, "--play") as url, tempfile.TemporaryDirectory() as folder:
        played = agent or ws.Model("stub", base_url=url)
        ws.simulate(played, plan=plan.shard(0, 20), rollouts=1, progress=False)  # what is loaded once
        before, wall, cpu = asked(url), time.perf_counter(), time.process_time()
        data = ws.simulate(
            played,
            plan=plan,
            rollouts=rows // len(plan.cards),
            concurrency=concurrency,
            run_dir=folder,
            progress=False,
        )
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        assert not data.failed.rows
        return Line(name, asked(url) - before, wall, cpu, peak(), len(data.rows))


INCUMBENT = """
import json, os, sys, time
url, rows, options, tools, policy = sys.argv[1], int(sys.argv[2]), *map(json.loads, sys.argv[3:])
os.environ.update(OPENAI_BASE_URL=url, OPENAI_API_KEY="x")
import whileai
wall, cpu = time.perf_counter(), time.process_time()
data = whileai.simulate(agent="openai:stub", user_model="openai:stub", simulator=False, tools=tools,
                        system_prompt=policy, budget=rows, **options)
wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
peak = int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) / 1024  # ru_maxrss begins with ours
print(json.dumps([len(list(data.rows())), wall, cpu, peak]))
"""


def measure_incumbent(name: str, python: str, latency: float, rows: int, **options: Any) -> Line:
    """Time whileai on the same stub; its offline writer makes the situations meanwhile."""
    told = [json.dumps(each) for each in (options, demo_tools(), demo_policy())]
    with stub(latency, "--play") as url:
        done = subprocess.run(
            [python, "-c", INCUMBENT, url, str(rows), *told], capture_output=True, text=True, check=True
        )
        found, wall, cpu, rss = json.loads(done.stdout.strip().splitlines()[-1])
        return Line(name, asked(url), wall, cpu, rss, found)


def table(latency: float, concurrency: int, options: argparse.Namespace) -> None:
    """Print one table, and the ratios that matter."""
    ideal = f", at best {concurrency / latency:,.0f} calls/s" if latency else ""
    load = os.getloadavg()[0]
    print(
        f"\n{latency * 1000:.0f} ms, {concurrency} at a time{ideal} (load {load:.1f} on {os.cpu_count()} cores)\n{HEAD}"
    )
    count, lines = options.count, {}
    slow = max(concurrency, count // 8)
    with stub(latency) as url, tempfile.TemporaryDirectory() as top:
        for name in "abc":
            Path(top, name).mkdir()
        todo: list[tuple[str, Callable[[str], Line]]] = [
            ("aiohttp, json=", lambda n: measure(n, with_aiohttp, url, count, concurrency)),
            ("openai, create", lambda n: measure(n, with_openai, url, slow, concurrency)),
            ("litellm, acompletion", lambda n: measure(n, with_litellm, url, slow, concurrency)),
            ("engine, in memory", lambda n: measure(n, with_whilesim, url, count, concurrency)),
            (
                "engine, journal",
                lambda n: measure(n, with_whilesim, url, count, concurrency, run_dir=f"{top}/a", cache=False),
            ),
            (
                "engine, journal and cache",
                lambda n: measure(n, with_whilesim, url, count, concurrency, run_dir=f"{top}/b"),
            ),
            ("engine, through AsyncOpenAI", lambda n: measure(n, with_our_client, url, count // 2, concurrency)),
            ("simulate, all of it", lambda n: measure_run(n, latency, concurrency, options.rows)),
            ("simulate, scripted players", lambda n: measure_run(n, 0.0, concurrency, options.rows, "scripted")),
        ]
        if options.incumbent:
            best = {"mode": "rl", "repeats": 8, "concurrency": 256}
            ask = measure_incumbent
            todo += [
                ("whileai 0.131, best (rl, 8, 256)", lambda n: ask(n, options.incumbent, latency, 320, **best)),
                ("whileai 0.131, default", lambda n: ask(n, options.incumbent, latency, 160)),
            ]
        for name, job in todo:
            if any(word in name for word in options.only.split(",")):
                lines[name.split(" (")[0]] = line = job(name)
                print(line, flush=True)
    ratios = [
        ("engine, journal and cache", "aiohttp, json="),
        ("engine, journal and cache", "engine, in memory"),
        ("simulate, all of it", "aiohttp, json="),
        ("simulate, all of it", "whileai 0.131, best"),
        ("simulate, all of it", "whileai 0.131, default"),
    ]
    for above, below in ratios:
        if above in lines and below in lines:
            one, other = lines[above], lines[below]
            cpu = one.cpu / one.calls / (other.cpu / other.calls)
            print(f"  {above} / {below}: {one.rate / other.rate:.2f} calls/s, {cpu:.2f} CPU a call")


def faults(count: int) -> None:
    """Print what refusals cost; two tries each, a run's rate falls at its end when few conversations are left."""
    print(f"\n50 ms, 128 at a time (load {os.getloadavg()[0]:.1f})\n{HEAD}")
    rates = []
    for name, options in (("no refusals", ()), ("30 % refused, Retry-After 1 s", ("--refuse", "0.3"))):
        with stub(0.05, *options) as url:
            line = measure(name, with_whilesim, url, count, 128)
        rates.append(line.rate)
        print(line, flush=True)
    print(f"  with refusals / without: {rates[1] / rates[0]:.2f} calls/s")


MEMORY = """
import resource, sys, tempfile, time
import whilesim as ws
from whilesim.showcase import demo_policy, demo_tools
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
async def agent(messages):
    return "I cannot help with that. Goodbye."
plan = ws.plan(tools=demo_tools(), system_prompt=demo_policy(), situations=100)
before, began = peak(), time.perf_counter()
with tempfile.TemporaryDirectory() as folder:
    data = ws.simulate(agent, plan=plan, rollouts=int(sys.argv[1]) // 100, turns=1, run_dir=folder, progress=False)
    seconds = time.perf_counter() - began
    assert data.ledger.planned == int(sys.argv[1])
    print(f"{len(data.rows):>7,} rows: {peak():4.0f} MB at most, {before:.0f} MB of it before; {len(data.rows) / seconds:,.0f} rows/s")
"""


def memory() -> None:
    """Print the peak memory of runs of two sizes, rows and ledger read back."""
    for rows in (1_000, 20_000):
        subprocess.run([sys.executable, "-c", MEMORY, str(rows)], check=True)


def beyond() -> None:
    """Print a run of scripted players in this process, and the same on a local Ray cluster with two workers."""
    import ray

    from whilesim.scale.ray import simulate_on_ray

    plan, rows = ws.plan(tools=demo_tools(), system_prompt=demo_policy(), embedder="hashed"), 300
    began = time.monotonic()
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as top:
        ws.simulate(plan=plan, progress=False, run_dir=Path(top, "local"))
        here = time.monotonic()
        simulate_on_ray(plan, shards=2, run_dir=Path(top, "ray"))
        there = time.monotonic()
        simulate_on_ray(plan, shards=2, run_dir=Path(top, "again"))
        warm = time.monotonic()
    print(f"Ray starts in {started - began:.1f} s; {rows} rows: {rows / (here - started):.1f} rows/s here, ", end="")
    print(
        f"{rows / (there - here):.1f} with two new workers, {rows / (warm - there):.1f} once they have imported whilesim"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--at", default="", help="latency:concurrency, several with commas; the whole grid by default")
    parser.add_argument("--only", default="", help="only lines whose name holds one of these words, with commas")
    parser.add_argument("--count", type=int, default=512, help="conversations for each of the quick clients")
    parser.add_argument("--rows", type=int, default=300, help="rows of a whole run")
    parser.add_argument("--incumbent", help="a Python that has whileai")
    parser.add_argument("--faults", action="store_true")
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--ray", action="store_true")
    arguments = parser.parse_args()
    grid = [(float(a), int(b)) for a, b in (each.split(":") for each in arguments.at.split(",") if each)]
    if arguments.faults:
        faults(4 * arguments.count)
    elif arguments.memory:
        memory()
    elif arguments.ray:
        beyond()
    else:
        for place in grid or [(t, c) for t in (0.0, 0.05) for c in (16, 64, 128, 256)]:
            table(*place, arguments)
