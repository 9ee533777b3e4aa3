"""How well tools are read: names, effects, required and id-like arguments against a reader's own.

Run: python tests/benchmarks/bench_tools.py [../shared]
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from whilesim.situations.tools import Tool, parse_tools

OWN = Path(__file__).parent.parent / "situations" / "tools_blind.yaml"
COLUMNS = ("names", "effects", "required", "ids")
PUBLISHED = {  # read, write and other tools of each side, as the benchmark's own counts say
    "airline/tools.json": (6, 6, 2),
    "retail/tools.json": (7, 7, 2),
    "telecom/tools.json": (6, 6, 1),
    "telecom/user_tools.json": (15, 15, 0),
}


def measure(shared: Path) -> dict[str, dict[str, tuple[int, int]]]:
    """Return, for each tool file that has expectations, right and all per column."""
    found = {}
    for expected in sorted((shared / "corpus").glob("*/expected_tools.json")):
        files = [*expected.parent.glob("tools.*"), *expected.parent.glob("openapi.*")]
        for file in sorted(files):
            wanted = json.loads(expected.read_text(encoding="utf-8"))
            found[f"{expected.parent.name}/{file.name}"] = score(parse_tools(file), wanted)
    return found


def score(tools: tuple[Tool, ...], wanted: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    """Compare tools with what a reader wrote down; what the reader left open does not count."""
    by_name: dict[str, Tool] = {}
    for name, tool in zip(wanted["names"], tools, strict=False):
        by_name.setdefault(name, tool)
    kinds = {"read_tools": "read", "write_tools": "write", "handoff_tools": "handoff"}
    effects = [by_name[n].effect == kind for key, kind in kinds.items() for n in wanted.get(key, ())]
    required = [
        list(by_name[n].parameters["required"]) == names for n, names in wanted.get("required_args", {}).items()
    ]
    ids = {a for tool in tools for a in tool.id_arguments}
    like = set(wanted["id_like_args"]) if "id_like_args" in wanted else ids
    same = [tool.name.startswith(name) for name, tool in zip(wanted["names"], tools, strict=False)]
    same += [False] * abs(len(tools) - len(wanted["names"]))
    return {
        "names": (sum(same), len(same)),
        "effects": (sum(effects), len(effects)),
        "required": (sum(required), len(required)),
        "ids": (len(ids & like), len(ids | like)),
    }


def splits(shared: Path) -> dict[str, tuple[int, int, int]]:
    """Return how many tools of each benchmark file read, write and do neither."""
    found = {}
    for name in PUBLISHED:
        counts = Counter(tool.effect for tool in parse_tools(shared / "tau2" / name))
        found[name] = (counts["read"], counts["write"], counts["handoff"] + counts["compute"])
    return found


def measure_own() -> dict[str, dict[str, tuple[int, int]]]:
    """Return the same for our own sets, of which the first runs stand at the head of tools_blind.yaml."""
    found: dict[str, dict[str, tuple[int, int]]] = {}
    for case in yaml.safe_load(OWN.read_text(encoding="utf-8")):
        tools, expect = {t.name: t for t in parse_tools(case["tools"])}, case["expect"]
        pairs = [(tools[name], *expect[name]) for name in expect if name in tools]
        found[f"{case['round']} {case['name']}"] = {
            "names": (len(pairs), len(expect)),
            "effects": (sum(t.effect == effect for t, effect, _, _ in pairs), len(expect)),
            "required": (
                sum(sorted(t.parameters["required"]) == sorted(r.split()) for t, _, r, _ in pairs),
                len(expect),
            ),
            "ids": (sum(sorted(t.id_arguments) == sorted(ids.split()) for t, _, _, ids in pairs), len(expect)),
        }
    return found


def print_table(table: Mapping[str, Mapping[str, tuple[int, int]]], title: str) -> None:
    print(f"{title:<72}" + "".join(f"{column:>11}" for column in COLUMNS))
    sums = {c: tuple(sum(s[c][i] for s in table.values()) for i in (0, 1)) for c in COLUMNS}
    for name, scores in {**table, "all": sums}.items():
        print(f"{name[:70]:<72}" + "".join(f"{'{}/{}'.format(*scores[column]):>11}" for column in COLUMNS))


def measure_speed() -> None:
    tools = [
        {
            "name": f"find_{n}",
            "description": "Finds a record by its fields.",
            "parameters": {"type": "object", "properties": {f"field_{k}": {"type": "string"} for k in range(6)}},
        }
        for n in range(117)
    ]
    parse_tools(tools[:1])  # the packages that it needs are loaded once
    began = time.process_time()
    print(f"{len(parse_tools(tools))} tools of 6 arguments: {time.process_time() - began:.2f} s of one core")


def main() -> None:
    shared = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[3] / "shared")
    print_table(measure_own(), "our own sets, by round")
    if shared.is_dir():
        print_table(measure(shared), "file")
        for name, split in splits(shared).items():
            print(f"{name:<72} read/write/other {split}, published {PUBLISHED[name]}")
    measure_speed()


if __name__ == "__main__":
    main()
