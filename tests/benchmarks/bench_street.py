"""The whole street on the bundled domain and on the benchmark's three, where ../shared is there.

    python tests/benchmarks/bench_street.py [situations]

Prints what came out at each stage, and how many planted faults the checks found.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import whilesim as ws
from whilesim.showcase import count_faults

sys.path.insert(0, str(Path(__file__).parent.parent))

from domains import domains


def run(name: str, policy: str, tools: Any, situations: int) -> None:
    """Play one domain and print its counts."""
    began = time.process_time()
    plan = ws.plan(tools=tools, system_prompt=policy, situations=situations)
    planned = time.process_time() - began
    data = ws.simulate("scripted", plan=plan, rollouts=2, progress=False).grade()
    played = time.process_time() - began - planned
    with tempfile.TemporaryDirectory() as folder:  # every row is written, and read back strictly
        data.save(folder)
        assert list(ws.load(folder).rows) == list(data.rows)
    ledger, coverage = data.ledger, plan.coverage
    assert ledger.planned == ledger.kept + ledger.dropped + ledger.failed + ledger.unjudged
    print(f"{name}: {len(plan.policy.clauses)} clauses, {len(plan.tools)} tools, size {plan.size:,}")
    print(
        f"  pairs {coverage.covered:,} of {coverage.feasible:,} (reachable {coverage.reachable:,}); bound {plan.covering.bound:,}"
    )
    print(
        f"  rows {ledger.planned}: kept {ledger.kept}, dropped {ledger.dropped}, failed {ledger.failed}, unjudged {ledger.unjudged}"
    )
    print(f"  {data.pass_at}")
    for fault in count_faults(list(data.rows)):
        print(f"  {fault.kind:<28} {fault.found} of {fault.planted} found, {fault.false_alarms} false alarms")
    print(f"  plan {planned:.1f} s, play and grade {played:.1f} s of CPU")


if __name__ == "__main__":
    for domain in domains():
        run(*domain, int(sys.argv[1]) if len(sys.argv) > 1 else 150)
