"""How many rows coverings need, in how many seconds, beside the peers that are installed.

python tests/benchmarks/bench_covering.py [SPEC ...] [--limit SECONDS]

Each cell: rows, seconds of one core, and the word of a verifier that shares no code with any of them:
'ok', or 'lost n' where n possible combinations stand in no row, or 'n false' where a row has what is
forbidden. '=' before our rows: proven optimal. Peers: allpairspy, covertable and pypict (PICT), each
where it imports. Each runs in a process of its own, which is ended at the limit.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import multiprocessing
import queue
import resource
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from verifier import allowed, covered, feasible

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


def rules_of(axes: Axes, some: bool, seed: int = 0) -> list[Rule]:
    """About 8.5% of the pairs, and more of the two longest axes'."""

    def forbidden(x: str, y: str) -> bool:
        share = 220 if (x[:3], y[:3]) == ("a0v", "a1v") else 55
        return derive(seed, "rule", x, y) % 1000 < share

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


def pypict(axes: Axes, strength: int, rules: list[Rule]) -> Rows:
    from pypict import Task

    names, task = list(axes), Task()
    handles = [task.model.add_parameter(len(values), order=strength) for values in axes.values()]
    for rule in rules:
        places = [names.index(name) for name in rule.axes]
        for cells in itertools.product(*(enumerate(axes[name]) for name in rule.axes)):
            if rule.forbids(*(value for _, value in cells)):
                task.add_exclusion((handles[at], cell) for at, (cell, _) in zip(places, cells, strict=True))
    return [{name: axes[name][cell] for name, cell in zip(names, row, strict=True)} for row in task.generate()]


PEERS = (allpairspy, covertable, pypict)


def measure(method: Callable[[Axes, int, list[Rule]], Rows], spec: str, answers: Any) -> None:
    sizes, strength, some = SPECS[spec]
    axes = axes_of(sizes)
    rules = rules_of(axes, some)
    start = time.process_time()
    rows = list(method(axes, strength, rules))
    seconds = time.process_time() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    lost = len(feasible(axes, strength, rules) - covered(rows, strength))
    false = sum(not allowed(row, rules) for row in rows)
    answers.put((len(rows), seconds, memory, lost, false))


def cell(method: Callable[[Axes, int, list[Rule]], Rows], spec: str, limit: float) -> str:
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    process = context.Process(target=measure, args=(method, spec, answers), daemon=True)
    process.start()
    try:
        rows, seconds, memory, lost, false = answers.get(timeout=limit)
    except queue.Empty:
        return f"> {limit:.0f} s" if process.is_alive() else "failed"
    finally:
        process.terminate()
    room = f" {memory} MB" if spec == "S4" else ""
    word = ", ".join([f"lost {lost}"] * bool(lost) + [f"{false} false"] * bool(false)) or "ok"
    return f"{rows:,} {seconds:.2f} s{room} {word}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("specs", nargs="*", default=list(SPECS))
    parser.add_argument("--limit", type=float, default=60)
    given = parser.parse_args()
    there = [peer for peer in PEERS if importlib.util.find_spec(peer.__name__)]
    for peer in PEERS:
        if peer not in there:
            print(f"{peer.__name__} is absent: pip install {peer.__name__}")
    print(f"{'spec':5}{'axes':22}{'bound':>7}  " + "".join(f"{method.__name__:<26}" for method in (ours, *there)))
    for spec in given.specs:
        sizes, strength, some = SPECS[spec]
        axes = axes_of(sizes)
        named = f"{sizes[0]} x {len(sizes)}" if len(set(sizes)) == 1 else " ".join(map(str, sizes))
        found = cover(axes, strength, rules_of(axes, some))
        cells = ["=" * found.proven_optimal + cell(ours, spec, given.limit)]
        cells += [cell(peer, spec, given.limit) for peer in there]
        print(f"{spec:5}{named:22}{found.bound:>7,}  " + "".join(f"{text:<26}" for text in cells), flush=True)
    budget_mode()
    other_rules()


def budget_mode() -> None:
    axes = axes_of(S1)
    best = cover(axes, rows=150)
    word = "the verifier agrees" if len(covered(best.rows, 2)) == best.covered else "THE VERIFIER DISAGREES"
    print(f"\nS1 in 150 rows: {best.covered:,} of {best.feasible:,} pairs, {best.reachable:,} are possible; {word}.")
    prefix = len(covered(cover(axes).rows[:150], 2))
    print(f"The first 150 rows of the complete covering: {prefix:,}.")


def other_rules(instances: int = 10) -> None:
    """S7 again, with other pairs forbidden: rows against the flow bound of each."""
    axes = axes_of(S1)
    found = [cover(axes, forbid=rules_of(axes, True, seed)) for seed in range(instances)]
    told = ", ".join(f"{len(one.rows)}/{one.bound}" for one in found)
    print(f"S7 with other pairs forbidden, rows/bound: {told}; {sum(o.proven_optimal for o in found)} proven optimal.")


if __name__ == "__main__":
    main()
