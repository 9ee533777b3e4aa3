"""Tool sets to try a world on, and a player that knows the focus: shared by the world's tests."""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml

import whilesim
from whilesim.situations.policy import Clause, Policy, parse_policy
from whilesim.situations.tools import Tool, parse_tools
from whilesim.world.deeds import Deed
from whilesim.world.entities import infer_world
from whilesim.world.kinds import kind_of_key, properties
from whilesim.world.mock import MockWorld
from whilesim.world.model import WorldModel
from whilesim.world.oracle import CallRule, Oracle, build_oracle

SHARED, DEMO = Path(__file__).parents[2] / "shared", Path(whilesim.__file__).parent / "demo"
WORLD = Path(__file__).with_name("world")
SETS = ("demo", *(f"tau2/{n}" for n in ("retail", "airline", "telecom", "mock")), *(
    f"corpus/{n}" for n in (
        "01-openai-cs-agents-demo-airline", "03-swarm-help-center-wrapped", "05-adk-home-garden", "07-german-voice-agent-mcp",
        "09-bfcl-ticket-api-dict", "11-bfcl-memory-duplicate-names", "21-acme-insurance-eva", "25-openapi-checkout",
        "35-bare-openai-waiter", "37-toolbench-optional-example-value",
    )
))  # fmt: skip


@cache
def open_set(name: str) -> tuple[tuple[Tool, ...], Policy | None, WorldModel]:
    """Read a set by its name and infer its world, once."""
    tools, policy = load_set(DEMO if name == "demo" else SHARED / name)
    return tools, policy, infer_world(tools, policy)


def load_set(folder: Path) -> tuple[tuple[Tool, ...], Policy | None]:
    """Read the tools and the policy of a folder; functions are read, never called."""
    if (folder / "tools.json").exists():
        tools = parse_tools(json.loads((folder / "tools.json").read_text(encoding="utf-8")))
    else:
        spec = importlib.util.spec_from_file_location("given_tools", folder / "tools.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found = [f for _, f in inspect.getmembers(module, inspect.isfunction) if f.__module__ == "given_tools"]
        tools = parse_tools(found)
    policy = folder / "policy.md"
    return tools, parse_policy(policy.read_text(encoding="utf-8"), tools=tools) if policy.exists() else None


def tool(name: str, description: str = "", effect: str = "read", required=None, **properties: Any) -> Tool:
    """Write a tool by hand."""
    schema = {k: v if isinstance(v, dict) else {"type": v} for k, v in properties.items()}
    parameters = {"type": "object", "properties": schema, "required": list(schema if required is None else required)}
    return Tool(name=name, description=description, parameters=parameters, effect=effect)


def play(world: MockWorld, oracle: Oracle, tools: tuple[Tool, ...]) -> str:
    """Do what the oracle asks, as an agent would that knows the focus; return the end."""
    focus = world.focus
    handoff = next((t for t in tools if t.effect == "handoff"), None)
    if any(r.name == focus.tool and r.at_most < 1 and not r.other_than for r in oracle.must_not_call):
        return "refused"  # it was seen to be done already
    for _ in range(3):
        world.call(focus.tool, focus.arguments)
        last = world.log[-1]
        if not last.failed:
            return "handed_off" if handoff and focus.tool == handoff.name else "resolved"
        if any(c.changes for c in world.log) and world.model.deeds[focus.tool].action != "create":
            return "resolved"  # no answer came, and a look at the record shows it done
        if not focus.reachable and oracle.ends[0] == "refused":
            return "refused"
    if handoff and focus.tool != handoff.name:
        world.call(handoff.name, dict.fromkeys(handoff.parameters["properties"], "help"))
        return "handed_off"
    return "honest_failure"


def violations(oracle: Oracle, world: MockWorld, end: str) -> list[str]:
    """What of the oracle a finished play breaks."""
    calls = [(c.name, json.loads(c.arguments), c.failed) for c in world.log]
    found = [] if end in oracle.ends else [f"{end} is not among {oracle.ends}"]
    found += [f"never called {r}" for r in oracle.must_call if not any(meets(r, n, a) for n, a, _ in calls)]
    for rule in oracle.must_not_call:
        if sum(meets(rule, n, a) and not failed for n, a, failed in calls) > rule.at_most:
            found.append(f"forbidden {rule}")
    return found


def meets(rule: CallRule, name: str, arguments: dict[str, Any]) -> bool:
    if rule.name != name or any(arguments.get(k) != v for k, v in rule.arguments.items()):
        return False
    return not rule.other_than or any(k in arguments and arguments[k] != v for k, v in rule.other_than.items())


def read_arguments(world: MockWorld, read: str, key: str) -> dict[str, Any]:
    """What an agent that knows the focus calls a read with; an argument that it cannot know is missing."""
    deed, focus, records = world.model.deeds[read], world.focus, world.records
    record = records.get(focus.kind or "", {}).get(key, {})
    party = records.get(world.model.party, {}).get(str(focus.facts.get(f"{world.model.party} id", "")), {})
    made: dict[str, Any] = {}
    for name in properties(world.model.tools[read]):
        kind = kind_of_key(name, world.model.kinds)[0]
        own = deed.kind == focus.kind
        if name == deed.key and (own or not deed.kind):
            made[name] = records.get(deed.kind or "", {}).get(key, {}).get(deed.key, key)
        else:
            field = world.model.kinds[kind].key if kind else name
            made[name] = focus.arguments.get(name, record.get(field, focus.arguments.get(field, party.get(field))))
    required = world.model.tools[read].parameters.get("required") or ()
    return {k: v for k, v in made.items() if v is not None or k in required}


def shows(world: MockWorld, write: str, read: str, field: str, value: str | None) -> str:
    """Whether a read shows what a write changed: empty when it does, else what it said."""
    created = world.model.deeds[write].action == "create"
    before = world.call(read, read_arguments(world, read, world.focus.id or ""))
    world.call(write, world.focus.arguments)
    call = world.log[-1]
    if call.failed:
        return call.reply
    key = call.changes[0].id if created and call.changes else world.focus.id or ""
    after = world.call(read, read_arguments(world, read, key))
    if value == "gone":
        return "" if world.log[-1].failed else after
    if value is None:
        return "" if before != after and field in after else after
    found = json.loads(after)
    found = found[0] if isinstance(found, list) else found
    return "" if str(found.get(field)).lower().replace("_", " ") == value.lower() else after


def written_rows() -> Iterator[tuple[str, str, str, str, str]]:
    """Each row of visible_writes.yaml whose tools are there: set, write, read, field, and what is wrong with it."""
    table = yaml.safe_load((WORLD / "visible_writes.yaml").read_text(encoding="utf-8"))
    for name, rows in table.items():
        tools, policy, model = open_set(name)
        for write, (read, field, value) in rows.items():
            wrong = "none"
            if read != "-":
                wrong = shows(MockWorld(tools, policy, {"tool": write}, 7, model=model), write, read, field, value)
            yield name, write, read, field, wrong


def gold_writes(domain: str, every: int = 1) -> Iterator[tuple[str, str, str]]:
    """Each gold write of the agent's in the train tasks: task, tool, and what is wrong in a world built for it."""
    tools, policy, model = open_set(f"tau2/{domain}")
    split = set(json.loads((SHARED / "tau2" / domain / "splits.json").read_text(encoding="utf-8"))["splits"]["train"])
    for number, line in enumerate(
        (SHARED / "tau2" / domain / "tasks_text.jsonl").read_text(encoding="utf-8").splitlines()
    ):
        task = json.loads(line)
        for action in task.get("actions") or () if str(task["id"]) in split and number % every == 0 else ():
            deed = model.deeds.get(action["name"])
            if (
                deed
                and action.get("requestor", "assistant") == "assistant"
                and deed.action in ("create", "change", "delete")
            ):
                yield str(task["id"]), deed.tool, _gold(tools, policy, model, deed, set(action["arguments"]), number)


def _gold(
    tools: tuple[Tool, ...], policy: Policy | None, model: WorldModel, deed: Deed, given: set[str], seed: int
) -> str:
    worlds = (MockWorld(tools, policy, {"tool": deed.tool}, seed + n, model=model) for n in range(40))
    world = next((w for w in worlds if given <= set(w.focus.arguments)), None)
    if world is None:
        return f"no world has all of {sorted(given)}"
    reads = [d.tool for d in model.deeds.values() if d.action in ("get", "list", "find")]
    reply = world.call(deed.tool, {k: v for k, v in world.focus.arguments.items() if k in given})
    call = world.log[-1]
    if call.failed:
        return reply
    key = call.changes[0].id if deed.action == "create" and call.changes else world.focus.id or ""
    after = [world.call(read, read_arguments(world, read, key)) for read in reads]
    after = [reply for reply, call in zip(after, world.log[-len(after) :], strict=True) if not call.failed]
    wanted = [c.after for c in call.changes if c.field and c.after is not None] or [key]
    return "" if any(all(_stands(v, reply) for v in wanted) for reply in after) else f"no read shows {wanted}"


def _stands(value: Any, reply: str) -> bool:
    """Whether a value, or all that it holds, stands in a reply."""
    if isinstance(value, (list, dict)):
        return all(_stands(v, reply) for v in (value.values() if isinstance(value, dict) else value))
    return json.dumps(value, ensure_ascii=False) in reply


def ill_formed(name: str, seed: int) -> tuple[int, list[str]]:
    """How many successful calls a sensible agent made in worlds of a set, and what is wrong with which replies."""
    tools, policy, model = open_set(name)
    count, wrong, held = 0, [], {}
    for one in tools:
        late: dict[str, set[str]] = {}
        world = MockWorld(tools, policy, {"tool": one.name}, seed, model=model)
        reads = [t.name for t in tools if model.deeds[t.name].action in ("get", "list", "find")]
        for at, read in enumerate((*reads, one.name, *reads)):
            arguments = world.focus.arguments if read == one.name else read_arguments(world, read, world.focus.id or "")
            reply = world.call(read, arguments)
            if world.log[-1].failed:
                continue
            count += 1
            if said := _ill(world, read, arguments, reply, held if at < len(reads) else late):
                wrong.append(f"{name} {read}: {said}: {reply[:160]}")
    return count, wrong


def _ill(world: MockWorld, name: str, arguments: dict[str, Any], reply: str, held: dict[str, set[str]]) -> str:
    tool, deed = world.model.tools[name], world.model.deeds[name]
    try:
        found = json.loads(reply)
    except ValueError:
        return "" if deed.action in ("handoff", "compute") or deed.shows == ("id",) else "no JSON"
    shapes = [json.dumps(s) for s in (tool.returns, *(r for _, r in tool.examples)) if s]
    key = arguments.get(deed.key)
    plain = not shapes or any(f'"{deed.key}"' in s for s in shapes)
    if deed.action != "delete" and deed.key and plain and f"{key}".lower() not in reply.lower():
        return f"without the id {key}"
    rows = found if isinstance(found, list) else [found]
    for row in rows:
        fields = set(row) if isinstance(row, dict) else set()
        kind = f"{name} {next(iter(row), '')}" if isinstance(row, dict) else name
        if missing := held.get(kind, set()) - fields:
            return f"without {sorted(missing)}"
        held[kind] = fields
    return ""


def digest(name: str, *, backwards: bool = False) -> str:
    """sha256 of all that the worlds of a set say: records, focus and replies of every tool under every condition."""
    tools, policy, model = open_set(name)
    told = {}
    for one in reversed(tools) if backwards else tools:
        for values in (
            {},
            {"tool_condition": "timeout"},
            {"tool_condition": "malformed"},
            {"world_state": "missing"},
            {"world_state": "duplicate"},
        ):
            world = MockWorld(tools, policy, {"tool": one.name, **values}, 5, model=model)
            replies = [world.call(one.name, world.focus.arguments) for _ in range(3)]
            told[f"{one.name} {values}"] = [json.dumps(world.state), repr(world.focus), replies]
    text = json.dumps([model.describe(), dict(sorted(told.items()))])
    return hashlib.sha256(text.encode()).hexdigest()


def compare_truth() -> Iterator[tuple[str, dict[str, Any], list[str]]]:
    """Each row of truth.yaml whose tools are there, and what the oracle says otherwise."""
    table = yaml.safe_load((WORLD / "truth.yaml").read_text(encoding="utf-8"))
    for name, rows in table.items():
        tools, policy, model = open_set(name)
        for row in rows:
            values = {
                "tool": row["tool"],
                "tool_condition": row.get("condition", "success"),
                "world_state": row.get("state", "exists"),
            }
            worlds = (MockWorld(tools, policy, values, seed, model=model) for seed in range(40))
            world = next(w for w in worlds if "lasts" not in row or row["lasts"] != w.focus.reachable)
            kind, text, applies = row.get("clause", ("must", "", "no"))
            clause = Clause(id="c1", text=text, kind=kind, tools=(row["tool"],)) if text else None
            oracle = build_oracle(values, clause=clause, tools=tools, focus=world.focus, applies=applies, model=model)
            yield name, row, _differences(row, oracle)


def _differences(row: dict[str, Any], oracle: Oracle) -> list[str]:
    rules = oracle.must_not_call
    never = {r.name for r in rules if r.at_most < 1 and not r.other_than}
    elsewhere, again = {r.name for r in rules if r.other_than}, {r.name for r in rules if r.at_most == 1}
    ends, right, fine = set(oracle.ends), set(row["ends"]), {*row["ends"], *row.get("also", ())}
    wrong = {
        "must call": {r.name for r in oracle.must_call} ^ set(row.get("must", ())),
        "never call": never ^ set(row.get("never", ())),
        "own record only": set(row.get("own", ())) - elsewhere - never,
        "not twice": set(row.get("once", ())) - again - never,
        "ends": (right - ends) | (ends - fine),
        "hand-off": set() if oracle.handoff_wanted == row["handoff"] else {str(oracle.handoff_wanted)},
    }
    return [f"{what}: {', '.join(sorted(names))}" for what, names in wrong.items() if names]
