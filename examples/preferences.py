"""Preference pairs: one prompt, two answers, and the reason why one of them is right."""

from __future__ import annotations

import json
from pathlib import Path

import whilesim as ws
from whilesim.showcase import demo_policy, demo_tools


def main() -> None:
    """Print three pairs."""
    plan = ws.plan(tools=demo_tools(), system_prompt=demo_policy(), situations=40, twins=0.3)
    data = ws.simulate(plan=plan, rollouts=4, progress=False).grade()

    path = Path("preferences.jsonl")
    data.export(path, format="dpo")
    pairs = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    print(f"{len(pairs)} pairs")
    for pair in pairs[:3]:
        print("chosen  ", pair["chosen"][-1]["content"] or pair["chosen"][-1]["tool_calls"])
        print("rejected", pair["rejected"][-1]["content"] or pair["rejected"][-1]["tool_calls"])
        print("because ", pair["reason"], end="\n\n")


if __name__ == "__main__":
    main()
