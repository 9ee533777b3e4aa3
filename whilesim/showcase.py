"""Showcase: the whole job on the bundled mobile operator, offline, said stage by stage."""

from __future__ import annotations

import json
import statistics
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from whilesim.cards.plan import Plan, measure_coverage
from whilesim.cards.planning import plan as make_plan
from whilesim.conversations.scripted import FAULTS
from whilesim.keeping.rows import Row
from whilesim.keeping.simulation import Simulation
from whilesim.situations.covering import cover
from whilesim.street import simulate

_HERE = Path(__file__).parent / "demo"


def demo_policy() -> str:
    """Return the bundled policy: a mobile operator's support, 16 clauses."""
    return (_HERE / "policy.md").read_text(encoding="utf-8")


def demo_tools() -> list[dict[str, Any]]:
    """Return the bundled tools: 13, in OpenAI's wrapped form."""
    found: list[dict[str, Any]] = json.loads((_HERE / "tools.json").read_text(encoding="utf-8"))
    return found


def count_faults(rows: Sequence[Row]) -> dict[str, dict[str, int]]:
    """Hold the findings of scripted rows against what was planted in them, kind by kind.

    ``false_alarms`` are rows without any planted misbehaviour in which the check found this kind.
    """
    counted, clean = {}, [r for r in rows if not r.planted]
    for kind in FAULTS:
        planted = [r for r in rows if any(p["kind"] == kind for p in r.planted)]
        found, alarms = (sum(any(f.check == kind for f in r.findings) for r in some) for some in (planted, clean))
        counted[kind] = {"planted": len(planted), "found": found, "false_alarms": alarms}
    return counted


def run_demo(folder: Path, *, situations: int = 150, seed: int = 0) -> tuple[Simulation, list[str]]:
    """Do the whole job on the bundled policy and write its files.

    Returns:
        The graded simulation, and what to tell a person about each stage.
    """
    began = time.monotonic()
    plan = make_plan(tools=demo_tools(), system_prompt=demo_policy(), situations=situations, seed=seed)
    lines = [*_tell_plan(plan, situations)]
    data = simulate("scripted", plan=plan, run_dir=folder)
    lines += _tell_play(data)
    data.grade()
    lines += ["", str(data.ledger), f"pass rate    {data.pass_at}", "hand-offs"]
    lines += [f"  {line}" for line in str(data.handoffs).splitlines()]
    data.report(folder / "report.html")
    data.kept.export(folder / "train.jsonl", format="trl")
    lines += ["", f"{len(data.rows)} rows, the report and a training file are in {folder}/"]
    return data, [*lines, f"  open {folder / 'report.html'}", f"{time.monotonic() - began:.1f} s"]


def _tell_plan(plan: Plan, situations: int) -> Iterator[str]:
    axes, coverage = plan.axes, plan.coverage
    whole = cover(axes)
    part = measure_coverage(axes, (), [dict(r) for r in cover(axes, rows=situations).rows])
    complete = cover(axes, forbid=plan.space.forbidden)
    yield f"policy       {len(plan.policy.clauses)} clauses; tools {len(plan.tools)}"
    yield f"situations   {' x '.join(str(len(v)) for v in axes.values())} = {plan.size:,} in the plain product"
    floor = f"{len(whole.rows)} rows hold every pair ({whole.bound} is the floor)"
    held = f"{situations} rows hold {part.covered:,} of {part.feasible:,} pairs (at most {part.reachable:,})"
    yield f"  without constraints: {floor}; {held}"
    floor = f"{len(complete.rows)} rows hold them all ({complete.bound} is the floor)"
    held = f"the {situations} chosen hold {coverage.covered:,} (at most {coverage.reachable:,})"
    yield f"  with constraints: {coverage.feasible:,} pairs can happen; {floor}; {held}"
    wanted = ", ".join(f"{n} {end}" for end, n in sorted(plan.ends.items()))
    yield f"cards        {len(plan.cards)}, chosen of {len(plan.cards) * 4} by {plan.embedder}; they want: {wanted}"


def _tell_play(data: Simulation) -> Iterator[str]:
    size = statistics.median(len(r.messages) - 1 for r in data.rows)
    stops = ", ".join(f"{n} {stop}" for stop, n in Counter(r.stop for r in data.rows).most_common())
    yield f"rollouts     {len(data.rows)} conversations, median {size:g} messages; {stops}"
    yield "planted misbehaviour and what the checks found"
    for kind, n in count_faults(data.rows).items():
        yield f"  {kind:<28} {n['found']:>3} of {n['planted']:>3} found, {n['false_alarms']} false alarms"
