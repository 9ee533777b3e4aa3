"""The whole job on your two files, without a model: python examples/offline.py policy.md tools.json."""

from __future__ import annotations

import sys
from pathlib import Path

import whilesim as ws
from whilesim.showcase import demo_policy, demo_tools
from whilesim.situations.tools import read_tools


def main(arguments: list[str]) -> None:
    """Plan, play, grade and export; without arguments on the bundled mobile operator."""
    policy = Path(arguments[0]).read_text(encoding="utf-8") if arguments else demo_policy()
    tools = read_tools(arguments[1]) if arguments else demo_tools()
    plan = ws.plan(tools=tools, system_prompt=policy, situations=20)
    print(plan)
    data = ws.simulate("scripted", plan=plan).grade()
    print(data.ledger)
    data.kept.export("train.jsonl", format="trl")


if __name__ == "__main__":
    main(sys.argv[1:])
