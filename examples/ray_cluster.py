"""One run on a Ray cluster: here two workers on this machine, elsewhere ``ray start`` on each."""

from __future__ import annotations

import sys

import ray

import whilesim as ws
from whilesim.scale.ray import simulate_on_ray
from whilesim.showcase import demo_policy, demo_tools


def main(run_dir: str) -> None:
    """Play twelve situations in four shards on two workers, and grade them."""
    ray.init(num_cpus=2, log_to_driver=False)
    plan = ws.plan(tools=demo_tools(), system_prompt=demo_policy(), situations=12)
    data = simulate_on_ray(plan, agent="scripted", shards=4, run_dir=run_dir, rollouts=2)
    print(data.grade().ledger)
    ray.shutdown()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "ray-run")
