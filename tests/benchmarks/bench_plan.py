"""How long a plan takes, how much memory, and how near its estimate is.

python tests/benchmarks/bench_plan.py [--complete]

Each plan runs in a process of its own; seconds are of CPU. The 117 tools and the 300 rules are made here.
``--complete`` also covers 300 rules x 117 tools whole, rows only: the cards of so many take minutes.
"""

from __future__ import annotations

import json
import multiprocessing
import resource
import sys
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import whilesim as ws
from whilesim.core.jsontext import dumps
from whilesim.showcase import demo_policy, demo_tools
from whilesim.situations.axes import default_space
from whilesim.situations.covering import cover
from whilesim.situations.tools import parse_tools

TAU2 = Path(__file__).parent.parent.parent.parent / "shared" / "tau2"
VERBS = ("get", "list", "create", "update", "cancel", "search", "approve", "archive", "count")
NOUNS = (
    *("order", "invoice", "shipment", "booking", "claim", "contract", "meter"),
    *("subscription", "device", "repair", "voucher", "refund", "address"),
)
DUTIES = ("confirm", "explain", "check", "read back", "write down")
OBJECTS = (
    *("the amount", "the date", "the address", "the delivery time", "the reason"),
    *("the last four digits", "the name of the owner", "the warranty", "the notice period", "the fee"),
)
CASES = (
    "a customer moves house",
    "an order is late",
    "a device is broken",
    "two accounts are merged",
    "a fee is waived",
)


def made_tools() -> list[dict[str, Any]]:
    return [
        {
            "name": f"{verb}_{noun}",
            "description": f"{verb.capitalize()} a customer's {noun}.",
            "parameters": {
                "type": "object",
                "properties": {f"{noun}_id": {"type": "string"}, "note": {"type": "string"}},
                "required": [f"{noun}_id"],
            },
        }
        for verb, noun in product(VERBS, NOUNS)
    ]


def made_policy(rules: int = 300) -> str:
    kinds = ("You must", "Never")
    lines = [
        f"- {kind} {duty} {what} when {case}." for kind, duty, what, case in product(kinds, DUTIES, OBJECTS, CASES)
    ]
    return "# Rules\n\n" + "\n".join(lines[:rules])


def tau2(name: str) -> tuple[Any, str] | None:
    folder = TAU2 / name
    if not folder.is_dir():
        return None
    return json.loads((folder / "tools.json").read_text("utf-8")), (folder / "policy.md").read_text("utf-8")


def measured(work: Callable[[], str]) -> str:
    """Run in a process of its own; add its seconds of CPU and the most memory it held."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.apply(_measure, (work,))


def _measure(work: Callable[[], str]) -> str:
    start = time.process_time()
    told = work()
    seconds = time.process_time() - start
    return f"{seconds:8.2f} s {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024:6} MB  {told}"


def one_plan(given: tuple[Any, str], **options: Any) -> str:
    plan = ws.plan(tools=given[0], system_prompt=given[1], embedder="hashed", **options)
    wanted = sum(oracle.handoff_wanted is True for oracle in plan.oracles.values())
    return (
        f"{len(plan.policy.clauses)} clauses, {len(plan.tools)} tools, {len(plan.cards):,} cards, "
        f"{plan.coverage.covered:,} pairs, bound {plan.covering.bound:,}, {wanted / len(plan.cards):.1%} want a hand-off"
    )


def complete() -> str:
    space = default_space([f"c{at}" for at in range(300)], parse_tools(made_tools()))
    found = cover(space.axes, forbid=space.forbidden)
    optimal = "proven optimal" if found.proven_optimal else "not proven optimal"
    return f"complete covering: {len(found.rows):,} rows, bound {found.bound:,}, {optimal}"


def estimate(name: str, given: tuple[Any, str]) -> str:
    """Hold the estimate against what a scripted run would have cost a model, four characters a token."""
    plan = ws.plan(tools=given[0], system_prompt=given[1], situations=60, embedder="hashed")
    data = ws.simulate("scripted", plan=plan, rollouts=1, progress=False)
    head = len(given[1]) + len(dumps([tool.to_openai() for tool in plan.tools]))
    calls = tokens = 0
    for row in data.rows:
        seen = spoken = 0
        for at, message in enumerate(row.messages[1:]):
            size = len(message.get("content") or "") + len(dumps(message.get("tool_calls") or ""))
            asked = message["role"] == "assistant" or (message["role"] == "user" and at > 0)
            calls += asked
            tokens += (head + seen + size if message["role"] == "assistant" else spoken + 1200 + size) * asked
            seen += size
            spoken += size * (message["role"] == "user" or bool(message.get("content")))
    guess = plan.estimate("openai:any", rollouts=1)
    return (
        f"estimate for {name}: {guess.calls:,} calls, {guess.tokens:,} tokens; a scripted run makes "
        f"{calls:,} and {tokens // 4:,}: ratios {guess.calls / calls:.2f} and {guess.tokens / (tokens // 4):.2f}"
    )


def main() -> None:
    demo = (demo_tools(), demo_policy())
    made, big = made_tools(), made_policy()
    sets = {"demo": demo, "117 tools": (made, demo[1]), "300 rules": (demo[0], big), "both": (made, big)}
    sets |= {name: found for name in ("telecom", "retail", "airline") if (found := tau2(name))}
    for name, given in sets.items():
        print(f"{name:<12}{measured(_Job(one_plan, given))}", flush=True)
    for name in ("demo", "retail", "telecom"):
        for share in (0.1, 0.3) if name in sets else ():
            told = measured(_Job(one_plan, sets[name], balance={"handoff_wanted": share}))
            print(f"{name:<12}{told} (wished {share:.0%})", flush=True)
    for name in ("demo", "retail", "telecom", "airline"):
        if name in sets:
            print(estimate(name, sets[name]), flush=True)
    if "--complete" in sys.argv:
        print(f"{'300 x 117':<12}{measured(complete)}")


class _Job:
    """A call that another process can be handed."""

    def __init__(self, work: Callable[..., str], *given: Any, **options: Any) -> None:
        self.work, self.given, self.options = work, given, options

    def __call__(self) -> str:
        return self.work(*self.given, **self.options)


if __name__ == "__main__":
    main()
