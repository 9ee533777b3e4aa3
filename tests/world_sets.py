"""Tool sets to try a world on, and a player that knows the focus: shared by the world's tests."""

from __future__ import annotations

import importlib.util
import inspect
import json
from pathlib import Path
from typing import Any

from whilesim.situations.policy import Policy, parse_policy
from whilesim.situations.tools import Tool, parse_tools
from whilesim.world.mock import MockWorld
from whilesim.world.oracle import CallRule, Oracle


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
    if any(r.name == focus.tool and not r.at_most and not r.other_than for r in oracle.must_not_call):
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
