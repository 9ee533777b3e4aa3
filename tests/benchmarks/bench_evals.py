"""Evals: tickets a second, and requests a second that ``serve`` answers. Run: python tests/benchmarks/bench_evals.py."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path

import aiohttp

import whilesim as ws

STARTER = Path(ws.__file__).parent / "starter"
TICKETS = 1000
REQUESTS, CONCURRENCY = 3000, 32


def bench_tickets() -> None:
    lines = [json.loads(line) for line in (STARTER / "golden_tickets.jsonl").read_text().splitlines()]
    suite = [{**lines[n % len(lines)], "ticket_id": f"T{n:04d}"} for n in range(TICKETS)]
    options = ws.EvalOptions(system_prompt=(STARTER / "policy.md").read_text(), progress=False)
    began, cpu = time.perf_counter(), time.process_time()
    tools = json.loads((STARTER / "tools.json").read_text())
    result = ws.evaluate("scripted", suite, rubric=STARTER / "rubric.json", tools=tools, options=options)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    print(
        f"{TICKETS} tickets with the scripted agent, and {len(result.floors)} floors: {seconds:.1f} s, {cpu:.1f} s of one core (wanted: under 20)"
    )


async def bench_serve(url: str) -> float:
    body = {"model": "do_nothing", "messages": [{"role": "user", "content": "hi"}]}
    left = iter(range(REQUESTS))

    async def client(session: aiohttp.ClientSession) -> None:
        for _ in left:
            async with session.post(f"{url}/chat/completions", json=body) as answer:
                assert (await answer.json())["choices"][0]["message"]["content"]

    async with aiohttp.ClientSession() as session:
        began = time.perf_counter()
        await asyncio.gather(*(client(session) for _ in range(CONCURRENCY)))
        return REQUESTS / (time.perf_counter() - began)


def main() -> None:
    bench_tickets()
    command = [sys.executable, "-c", "from whilesim.cli import main; main()", "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = server.stdout.readline().split()[0]
        rate = asyncio.run(bench_serve(url))
        server.terminate()
    print(f"serve, {REQUESTS} requests at concurrency {CONCURRENCY}: {rate:,.0f} a second (wanted: 300)")


if __name__ == "__main__":
    main()
