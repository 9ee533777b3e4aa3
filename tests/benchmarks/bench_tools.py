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

from whilesim.situations.tools import Tool, parse_tools

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


def main() -> None:
    shared = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[3] / "shared")
    began = time.perf_counter()
    table = measure(shared)
    print(f"{'file':<52}" + "".join(f"{column:>11}" for column in COLUMNS))
    for name, scores in table.items():
        print(f"{name:<52}" + "".join(f"{'{}/{}'.format(*scores[column]):>11}" for column in COLUMNS))
    sums = {c: [sum(s[c][i] for s in table.values()) for i in (0, 1)] for c in COLUMNS}
    print(f"{'all':<52}" + "".join(f"{'{}/{}'.format(*sums[column]):>11}" for column in COLUMNS))
    for name, split in splits(shared).items():
        print(f"{name:<52} read/write/other {split}, published {PUBLISHED[name]}")
    print(f"{time.perf_counter() - began:.2f} s")


if __name__ == "__main__":
    main()
