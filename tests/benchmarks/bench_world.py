"""How fast a world is inferred, built and called: run it, and it prints a table.

python tests/benchmarks/bench_world.py [TOOLS.json POLICY.md]
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import whilesim
from whilesim.situations.policy import parse_policy
from whilesim.situations.tools import parse_tools
from whilesim.world.entities import infer_world
from whilesim.world.mock import MockWorld

DEMO = Path(whilesim.__file__).parent / "demo"


def seconds(work, times: int) -> float:
    """CPU seconds of one run of ``work``: the best of three rounds."""
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        for n in range(times):
            work(n)
        best = min(best, (time.process_time() - start) / times)
    return best


def main(tools_path: Path, policy_path: Path) -> None:
    tools = parse_tools(json.loads(tools_path.read_text(encoding="utf-8")))
    policy = parse_policy(policy_path.read_text(encoding="utf-8"), tools=tools)
    model = infer_world(tools, policy)
    names = [t.name for t in tools]
    print(f"infer a world            {1000 * seconds(lambda n: infer_world(tools, policy), 5):8.2f} ms")
    built = seconds(lambda n: MockWorld(tools, policy, {"tool": names[n % len(names)]}, n, model=model), 40)
    print(f"build a world            {1000 * built:8.2f} ms")
    worlds = [MockWorld(tools, policy, {"tool": name}, 1, model=model) for name in names]
    calls = [(w, w.focus.tool, json.dumps(w.focus.arguments)) for w in worlds]
    reads = [c for c in calls if model.tools[c[1]].effect == "read"]
    for label, chosen in (("reads", reads), ("reads and writes, mixed", calls)):
        each = seconds(lambda n, chosen=chosen: chosen[n % len(chosen)][0].call(*chosen[n % len(chosen)][1:]), 4000)
        print(f"{label:24} {1 / each:8.0f} calls/s")


if __name__ == "__main__":
    main(*(map(Path, sys.argv[1:3]) if len(sys.argv) > 2 else (DEMO / "tools.json", DEMO / "policy.md")))
