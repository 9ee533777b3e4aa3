"""The scripted agent held against the oracle: the bundled domain, and the tool sets of ../shared where it is there.

    python tests/benchmarks/bench_oracle.py [--situations 200] [--seed 0] [--sets demo,retail] [--show 5] [--sensible]
    python tests/benchmarks/bench_oracle.py --twins 30 --sets demo
    python tests/benchmarks/bench_oracle.py --clauses 20 --sets retail
    python tests/benchmarks/bench_oracle.py --oracles 30 --sets demo

Prints, for each set: how many conversations satisfy the oracle and what the others violate; how
many planted faults and writes on a wrong record the oracle or a check names. With ``--twins``:
pairs, what flipped, and how the right action changed. With ``--clauses``: what the oracle leaves
open where a clause forbids or conditions something. With ``--oracles``: the oracle in words, how
the scripted agent ended, and the verdict.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import whilesim as ws
from whilesim.chat.messages import Message, Trace
from whilesim.conversations.players import Context
from whilesim.conversations.rollout import Case, Stage, play
from whilesim.conversations.scripted import FAULTS, ScriptedAgent
from whilesim.conversations.scripted_customer import ScriptedCustomer
from whilesim.core.jsontext import dumps
from whilesim.core.seeds import pick
from whilesim.grading.checks.run import run_checks
from whilesim.grading.outcome import observe_end, violations
from whilesim.showcase import demo_policy, demo_tools

SHARED = Path(__file__).parent.parent.parent.parent / "shared"
TAU2 = ("retail", "airline", "telecom")
RULES = (
    "# Rules\n\n- Ask the customer for a go-ahead before you change anything.\n"
    "- Never talk about the account of another customer.\n- If the customer asks for a manager, offer to take a note.\n"
)
"""What stands in for a policy where a set of tools has none."""


def tool_sets(names: Sequence[str]) -> Iterator[tuple[str, str, Any]]:
    """Name, policy and tools of each set that is asked for and at hand; all where none is named."""
    if not names or "demo" in names:
        yield "demo", demo_policy(), demo_tools()
    folders = [SHARED / "tau2" / n for n in TAU2]
    if (SHARED / "corpus").is_dir():
        folders += sorted(p for p in (SHARED / "corpus").iterdir() if p.is_dir())
    for folder in folders:
        found = next((folder / f for f in ("tools.json", "tools.py") if (folder / f).exists()), None)
        if found is None or (names and not any(folder.name.startswith(n) for n in names)):
            continue
        text = found.read_text(encoding="utf-8")
        policy = folder / "policy.md"
        told = policy.read_text(encoding="utf-8") if policy.exists() else RULES
        yield folder.name, told, json.loads(text) if found.suffix == ".json" else text


@dataclass(frozen=True)
class Faulty(ScriptedAgent):
    """A scripted agent that shows one fault wherever the occasion comes."""

    kind: str = ""

    def fault(self, context: Context) -> str | None:
        """Always this one."""
        return self.kind or None


@dataclass(frozen=True)
class Misled(ScriptedAgent):
    """A scripted agent whose writes go to another record of the same kind."""

    tool: str = ""
    key: str = ""
    others: tuple[Any, ...] = ()

    async def answer(self, messages: Sequence[Message], context: Context) -> Sequence[Message]:
        """Swap the key of a write."""
        (message,) = await ScriptedAgent.answer(self, messages, context)
        calls = []
        for call in message.tool_calls:
            given = dict(call.parsed or {})
            others = [o for o in self.others if str(o) != str(given.get(self.key))]
            if call.name == self.tool and self.key in given and others:
                given[self.key] = type(given[self.key])(pick(others, context.seed, "wrong record"))
            calls.append(replace(call, arguments=dumps(given)))
        return (replace(message, tool_calls=tuple(calls)),)


def play_one(plan: ws.Plan, card: Any, agent: ScriptedAgent) -> Trace:
    """Play one card with one agent."""
    stage = Stage(agent=agent, customer=ScriptedCustomer(), system_prompt=plan.system_prompt, tools=plan.tools)
    return asyncio.run(play(Case(card=card, rollout=0, seed=plan.seed), stage, plan.world_for(card)))


def named(plan: ws.Plan, card: Any, trace: Trace) -> tuple[list[Any], list[Any]]:
    """Return what the oracle holds against a conversation, and what the checks find."""
    found = violations(plan.oracles[card.id], trace.messages, plan.tools, trace.failed_calls)
    return found, run_checks(trace.messages, tools=plan.tools, failed=trace.failed_calls)


def tell(trace: Trace, most: int = 300) -> None:
    """Print a conversation."""
    for m in trace.messages[1:]:
        calls = " ".join(f"{c.name}({c.arguments})" for c in m.tool_calls)
        print(f"      {m.role[:5]:5}: {(m.content or '')[:most]} {calls[:most]}")


def measure(name: str, plan: ws.Plan, show: int, *, faults: bool) -> dict[str, Counter[str]]:
    """Play one set sensibly, with each fault and on wrong records; print and return the counts."""
    count: dict[str, Counter[str]] = {k: Counter() for k in ("sensible", "wrong record", *FAULTS)}
    rules: Counter[str] = Counter()
    told = []
    for card in plan.cards:
        trace = play_one(plan, card, ScriptedAgent(faults=0.0))
        found, checks = named(plan, card, trace)
        count["sensible"][("ok", "violated")[bool(found)]] += 1
        count["sensible"]["false alarms"] += len(checks)
        rules.update(v.rule for v in found[:1])
        if found or checks:
            told.append(
                (
                    card,
                    trace,
                    [f"{v.rule}: {v.reason}" for v in found]
                    + [f"FALSE ALARM {c.check}: {c.quote} ({c.reason})" for c in checks],
                )
            )
        for kind in FAULTS if faults else ():
            trace = play_one(plan, card, Faulty(kind=kind))
            if trace.planted:
                seen = any(map(bool, named(plan, card, trace)))
                count[kind][("missed", "ok")[seen]] += 1
                if not seen:
                    told.append((card, trace, [f"MISSED {kind}: {trace.planted[0]['quote']}"]))
        if faults:
            _wrong_record(plan, card, count["wrong record"])
    print(f"{name}: " + ", ".join(f"{k} {_share(v)}" for k, v in count.items()), dict(rules), flush=True)
    for card, trace, found in told:
        values = card.situation.values
        said = " ".join(values.get(a, "") for a in ("tool", "tool_condition", "world_state", "stance"))
        print(f"   {card.id} {said} | {found[0][:170]}")
        if show > 0:
            show -= 1
            tell(trace)
    return count


def _wrong_record(plan: ws.Plan, card: Any, count: Counter[str]) -> None:
    world: Any = plan.world_for(card)
    deed = world.model.deeds[world.focus.tool]
    if deed.action not in ("change", "delete") or not deed.key:
        return
    kind = world.model.kinds[deed.kind]
    others = tuple(r.get(kind.key, k) for k, r in world.records[deed.kind].items() if k != world.focus.id)
    trace = play_one(plan, card, Misled(faults=0.0, tool=deed.tool, key=deed.key, others=others))
    if any(c.name == deed.tool and c.id not in (trace.failed_calls or ()) for c in trace.calls):
        count[("missed", "ok")[any(map(bool, named(plan, card, trace)))]] += 1


def _share(count: Counter[str]) -> str:
    whole = count["ok"] + count["violated"] + count["missed"]
    alarms = f" ({count['false alarms']} false alarms)" if count["false alarms"] else ""
    return f"{count['ok']}/{whole}" + (f" = {count['ok'] / whole:.1%}" if whole else "") + alarms


def show_twins(plan: ws.Plan) -> None:
    """Print pairs of twins: what flipped, and how the right action changed."""
    cards = {c.id: c for c in plan.cards}
    for card in plan.cards:
        if card.twin_of is None:
            continue
        first, mine, theirs = cards[card.twin_of], plan.oracles[card.twin_of], plan.oracles[card.id]
        flipped = [
            f"{a}: {first.situation.values[a]} -> {v}"
            for a, v in card.situation.values.items()
            if first.situation.values[a] != v
        ]
        print(f"{first.id} {first.situation.values['tool']} | {'; '.join(flipped)} | {first.goal}")
        for oracle in (mine, theirs):
            print(f"     {' or '.join(oracle.ends)}; hand-off {oracle.handoff_wanted}: {oracle.why}")


def show_clauses(plan: ws.Plan, most: int) -> None:
    """Print what the oracle leaves open where a clause forbids or conditions something."""
    kinds = {c.id: c for c in plan.policy.clauses}
    cards = [c for c in plan.cards if kinds[c.situation.values["clause"]].kind in ("must_not", "condition")]
    for card in cards[:most]:
        oracle, clause = plan.oracles[card.id], kinds[card.situation.values["clause"]]
        print(f"{card.id} [{clause.kind}] {clause.text[:200]}")
        print(f"     says: {card.opening[:200]} {card.second[:100]} | {dict(card.facts)}"[:420])
        print(
            f"     applies {card.clause_applies}; right: {' or '.join(oracle.ends)}; hand-off {oracle.handoff_wanted}"
        )
        print(f"     must {[r.name for r in oracle.must_call]}, open {oracle.open}; {oracle.why}")


def show_oracles(plan: ws.Plan, most: int) -> None:
    """Print the oracle in words, what the scripted agent ended with, and the verdict."""
    for card in plan.cards[:most]:
        oracle, trace = plan.oracles[card.id], play_one(plan, card, ScriptedAgent(faults=0.0))
        end = observe_end(trace.messages, plan.tools, trace.failed_calls or ())
        found, checks = named(plan, card, trace)
        wrong = "; ".join([v.reason for v in found] + [f"{c.check}: {c.reason}" for c in checks])
        print(f"{card.id} {', '.join(v for a, v in card.situation.values.items() if a != 'clause')}")
        must = ", ".join(f"{r.name}({dumps(dict(r.arguments))})" for r in oracle.must_call) or "nothing"
        print(f"     right: {' or '.join(oracle.ends)}; must call {must}; {oracle.why} open: {len(oracle.open)}")
        changed = ", ".join(f"{c.kind} {c.id}.{c.field} = {c.after}" for c in trace.changes[:3]) or "nothing"
        print(f"     ended {end}; changed {changed}; verdict: {wrong or 'satisfied'}")


def main() -> None:
    """Read the command line and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--situations", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sets", default="")
    parser.add_argument("--show", type=int, default=0)
    parser.add_argument("--sensible", action="store_true", help="leave faults and wrong records out")
    parser.add_argument("--twins", type=int, default=0)
    parser.add_argument("--clauses", type=int, default=0)
    parser.add_argument("--oracles", type=int, default=0)
    given = parser.parse_args()
    groups: dict[str, Counter[str]] = {"tau2": Counter(), "demo": Counter(), "corpus": Counter()}
    for name, policy, tools in tool_sets([n for n in given.sets.split(",") if n]):
        twins = min(1.0, given.twins / given.situations)
        plan = ws.plan(
            tools=tools, system_prompt=policy, situations=given.situations, seed=given.seed, twins=twins, candidates=1,
            embedder="hashed",
        )  # fmt: skip
        if given.twins:
            show_twins(plan)
        elif given.clauses:
            show_clauses(plan, given.clauses)
        elif given.oracles:
            show_oracles(plan, given.oracles)
        else:
            group = "demo" if name == "demo" else "tau2" if name in TAU2 else "corpus"
            groups[group].update(measure(name, plan, given.show, faults=not given.sensible)["sensible"])
    for name, count in groups.items():
        if count:
            print(f"{name}: the oracle is satisfied in {_share(count)}")


if __name__ == "__main__":
    main()
