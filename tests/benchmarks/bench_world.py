"""Benchmark: what a world gets right over real tool sets, and how fast it is.

    python tests/benchmarks/bench_world.py [SECTION ...]

Sections: speed, writes, gold, wellformed, determinism, truth; all of them by default. Sets that lie beside the
project are left out where it stands alone. ``world_session.py`` prints single calls to be read.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from world_sets import (
    SETS,
    SHARED,
    compare_truth,
    digest,
    gold_writes,
    ill_formed,
    open_set,
    tool,
    written_rows,
)

from whilesim.world.entities import infer_world
from whilesim.world.mock import MockWorld

HERE = [s for s in SETS if s == "demo" or (SHARED / s).is_dir()]
MANY = [
    tool(f"{verb}_thing_{n}", effect=effect, **{f"thing_{n}_id": "string"})
    for n in range(75)
    for verb, effect in (("get", "read"), ("cancel", "write"))
]


def seconds(work: Any, times: int) -> float:
    """CPU seconds of one run of ``work``: the best of five rounds."""
    best = float("inf")
    for _ in range(5):
        start = time.process_time()
        for n in range(times):
            work(n)
        best = min(best, (time.process_time() - start) / times)
    return best


def speed() -> None:
    """Inference once per tool set, a world per conversation, calls on one core."""
    print(f"{'set':44}{'infer ms':>9}{'world ms':>9}{'reads/s':>9}{'mixed/s':>9}")
    for name in (*HERE[:4], "150 tools"):
        tools, policy, model = (MANY, None, infer_world(MANY)) if name == "150 tools" else open_set(name)
        names = [t.name for t in tools]
        inferred = seconds(lambda n, t=tools, p=policy: infer_world(t, p), 5)
        start = iter(range(10**6))  # a seed once used is remembered, so that a card's rollouts share their records
        built = seconds(
            lambda n, t=tools, p=policy, m=model, names=names, start=start: MockWorld(
                t, p, {"tool": names[n % len(names)]}, next(start), model=m
            ),
            20,
        )
        worlds = [MockWorld(tools, policy, {"tool": name}, 1, model=model) for name in names]
        calls = [(w, w.focus.tool, json.dumps(w.focus.arguments)) for w in worlds]
        reads = [c for c in calls if model.tools[c[1]].effect == "read"]
        rates = [1 / seconds(lambda n, c=c: c[n % len(c)][0].call(*c[n % len(c)][1:]), 3000) for c in (reads, calls)]
        print(f"{name:44}{1000 * inferred:9.1f}{1000 * built:9.1f}{rates[0]:9.0f}{rates[1]:9.0f}")


def writes() -> None:
    """The hand-written table: which read must show which write."""
    rows = list(written_rows())
    for name, write, read, field, wrong in rows:
        said = (
            f"none can: {field}"
            if read == "-"
            else f"{read}.{field}  " + (f"NOT SEEN: {wrong[:90]}" if wrong else "seen")
        )
        print(f"{name.split('/')[-1][:24]:26}{write:34}{said}")
    told = [r for r in rows if r[2] != "-"]
    print(
        f"{sum(not r[4] for r in told)} of {len(told)} writes seen by the read that must show them; {len(rows) - len(told)} have none"
    )


def gold() -> None:
    """tau2's train tasks: each gold write of the agent's, with this world's own keys and values."""
    for domain in ("retail", "airline", "telecom"):
        rows = list(gold_writes(domain)) if (SHARED / "tau2").is_dir() else []
        by_tool: dict[str, Counter[bool]] = defaultdict(Counter)
        for _, name, wrong in rows:
            by_tool[name][not wrong] += 1
        print(f"{domain:10}{sum(not r[2] for r in rows)} of {len(rows)} accepted and seen by a later read")
        for name, count in sorted(by_tool.items()):
            print(f"    {name:36}{count[True]} of {count.total()}")
        print("".join(f"    {r}\n" for r in rows if r[2]), end="")


def wellformed() -> None:
    """Replies of a sensible agent's calls: JSON, the id asked for, the fields that earlier ones held."""
    for name in HERE:
        found = [ill_formed(name, seed) for seed in range(4)]
        count, wrong = sum(c for c, _ in found), [w for _, ws in found for w in ws]
        print(f"{name:44}{count - len(wrong):6} of {count}", *wrong[:3], sep="\n    " if wrong else " ")


def determinism() -> None:
    """One sha256 per set: two processes, two hash seeds, two orders of conversation."""
    runs = []
    for seed, order in (("11", "forwards"), ("4242", "backwards")):
        env = {**os.environ, "PYTHONHASHSEED": seed}
        told = subprocess.run(
            [sys.executable, __file__, "--digests", order], env=env, capture_output=True, check=True, text=True
        )
        runs.append(dict(line.split() for line in told.stdout.splitlines()))
    for name, first in runs[0].items():
        print(f"{name:44}{first[:16]}  {'equal' if first == runs[1][name] else 'DIFFERS'}")


def truth() -> None:
    """The oracle beside truth.yaml, which was written before it was run."""
    rows = list(compare_truth())
    for name, row, wrong in rows:
        if wrong:
            said = {k: v for k, v in row.items() if k in ("condition", "state", "lasts", "clause")}
            print(f"{name}: {row['tool']} {said}\n    {'; '.join(wrong)}")
    print(f"{sum(not wrong for *_, wrong in rows)} of {len(rows)} situations agree")


SECTIONS = {f.__name__: f for f in (speed, writes, gold, wellformed, determinism, truth)}

if __name__ == "__main__":
    if sys.argv[1:2] == ["--digests"]:
        for each in HERE:
            print(each, digest(each, backwards=sys.argv[2] == "backwards"))
    else:
        for section in sys.argv[1:] or SECTIONS:
            print(f"\n== {section}: {SECTIONS[section].__doc__}")
            SECTIONS[section]()
