"""How many rows coverings need, in how many seconds, beside the peers that are installed.

python tests/benchmarks/bench_covering.py [SPEC ...] [--limit SECONDS]

Each cell: rows, seconds of one core, and 'lost n' where an independent verifier finds that n possible
combinations stand in no row. Peers: allpairspy and covertable where they import, PICT where the
command `pict` is on the path (without S7: its rules are Python functions). Each runs in a process of
its own, which is ended at the limit.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import multiprocessing
import queue
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from verifier import covered, feasible

from whilesim.core.seeds import derive
from whilesim.situations.axes import Rule, forbid
from whilesim.situations.covering import cover

S1 = (16, 13, 10, 5, 5, 5)
SPECS: dict[str, tuple[tuple[int, ...], int, bool]] = {
    "S1": (S1, 2, False),
    "S2": ((30, 20, 10, 5, 5, 5), 2, False),
    "S3": ((120, 60, 10, 5, 5, 5), 2, False),
    "S4": ((300, 150, 10, 5, 5, 5), 2, False),
    "S5": ((10,) * 12, 2, False),
    "S6": ((4,) * 20, 2, False),
    "S7": (S1, 2, True),
    "S8": (S1, 3, False),
    "X1": ((15, 15, 15, 14, 5, 4), 2, False),
    "X2": ((6,) * 6, 2, False),
    "X5": ((6, 6, 6, 6, 5, 4), 3, False),
}
Axes = dict[str, list[str]]
Rows = Iterable[dict[str, str]]


def axes_of(sizes: Sequence[int]) -> Axes:
    return {f"a{a}": [f"a{a}v{v}" for v in range(size)] for a, size in enumerate(sizes)}


def rules_of(axes: Axes, some: bool) -> list[Rule]:
    """About 8.5% of the pairs, and more of the two longest axes'."""

    def forbidden(x: str, y: str) -> bool:
        share = 220 if (x[:3], y[:3]) == ("a0v", "a1v") else 55
        return derive(0, "rule", x, y) % 1000 < share

    return [forbid(a, b, forbidden) for a, b in itertools.combinations(axes, 2)] if some else []


def ours(axes: Axes, strength: int, rules: list[Rule]) -> Rows:
    return cover(axes, strength, rules).rows


def allpairspy(axes: Axes, strength: int, rules: list[Rule]) -> Rows:
    from allpairspy import AllPairs

    names = list(axes)

    def fine(cells: list[str]) -> bool:
        row = dict(zip(names, cells, strict=False))
        return not any(all(n in row for n in r.axes) and r.forbids(*(row[n] for n in r.axes)) for r in rules)

    return [dict(zip(names, cells, strict=True)) for cells in AllPairs(list(axes.values()), fine, n=strength)]


def covertable(axes: Axes, strength: int, rules: list[Rule]) -> Rows:
    from covertable import make

    def constraint(rule: Rule) -> dict[str, Any]:
        def fine(row: dict[str, str]) -> bool:
            return not rule.forbids(*(row[name] for name in rule.axes))

        return {"operator": "fn", "requires": list(rule.axes), "evaluate": fine}

    given = {"constraints": [constraint(rule) for rule in rules]} if rules else {}
    return [dict(row) for row in make(axes, strength=strength, **given)]


def pict(axes: Axes, strength: int, rules: list[Rule]) -> Rows:
    if rules:
        raise ValueError("predicates cannot be written for it")
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model.txt"
        model.write_text("\n".join(f"{name}: {', '.join(values)}" for name, values in axes.items()))
        made = subprocess.run(["pict", str(model), f"/o:{strength}"], capture_output=True, text=True, check=True)
    names, *rows = [line.split("\t") for line in made.stdout.splitlines()]
    return [dict(zip(names, row, strict=True)) for row in rows]


def measure(method: Callable[[Axes, int, list[Rule]], Rows], spec: str, answers: Any) -> None:
    sizes, strength, some = SPECS[spec]
    axes = axes_of(sizes)
    rules = rules_of(axes, some)
    start = time.process_time()
    rows = list(method(axes, strength, rules))
    seconds = time.process_time() - start + resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    lost = len(feasible(axes, strength, rules) - covered(rows, strength))
    answers.put((len(rows), seconds, memory, lost))


def cell(method: Callable[[Axes, int, list[Rule]], Rows], spec: str, limit: float) -> str:
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    process = context.Process(target=measure, args=(method, spec, answers), daemon=True)
    process.start()
    try:
        rows, seconds, memory, lost = answers.get(timeout=limit)
    except queue.Empty:
        return f"> {limit:.0f} s" if process.is_alive() else "-"
    finally:
        process.terminate()
    room = f" {memory} MB" if spec == "S4" else ""
    return f"{rows:,} {seconds:.2f} s{room}" + (f" lost {lost}" if lost else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("specs", nargs="*", default=list(SPECS))
    parser.add_argument("--limit", type=float, default=60)
    given = parser.parse_args()
    methods = [ours, *(m for m in (allpairspy, covertable) if importlib.util.find_spec(m.__name__))]
    methods += [pict] if shutil.which("pict") else []
    print(f"{'spec':5}{'axes':24}{'bound':>8}  " + "".join(f"{method.__name__:<26}" for method in methods))
    for spec in given.specs:
        sizes, strength, some = SPECS[spec]
        axes = axes_of(sizes)
        named = f"{sizes[0]} x {len(sizes)}" if len(set(sizes)) == 1 else " ".join(map(str, sizes))
        bound = cover(axes, strength, rules_of(axes, some)).bound
        cells = [f"{cell(method, spec, given.limit):<26}" for method in methods]
        print(f"{spec:5}{named:24}{bound:>8,}  " + "".join(cells), flush=True)
    best = cover(axes_of(S1), rows=150)
    prefix = len(covered(cover(axes_of(S1)).rows[:150], 2))
    print(f"\nS1 in 150 rows: {best.covered:,} of {best.feasible:,} pairs, {best.reachable:,} are possible.")
    print(f"The first 150 rows of the complete covering: {prefix:,}.")


if __name__ == "__main__":
    main()
