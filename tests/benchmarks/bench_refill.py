"""Benchmark: ledger and certificate before and after refill, for three agents.

    python tests/benchmarks/bench_refill.py [--situations N] [--rows N]

The scripted agent, one that refuses everything, and one that never calls a tool: a run of each
is graded and refilled, and the certificate must say what the kept rows really hold.
"""

from __future__ import annotations

import argparse
from typing import Any

import whilesim as ws
from whilesim.showcase import demo_policy, demo_tools


def refuse(messages: Any) -> str:
    """Refuse whatever is asked."""
    return "I am sorry, but I cannot help you with that."


def chat(messages: Any) -> str:
    """Be kind, and call nothing."""
    return (
        "Thank you for your message! I have written that down. Is there anything else that you would like to tell me?"
    )


def main() -> None:
    """Print ledger and certificate before and after."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--situations", type=int, default=60)
    parser.add_argument("--rows", type=int, default=100)
    asked = parser.parse_args()
    agents: dict[str, Any] = {"scripted": "scripted", "refuses everything": refuse, "never calls a tool": chat}
    for name, agent in agents.items():
        data = ws.simulate(
            agent, tools=demo_tools(), system_prompt=demo_policy(), situations=asked.situations, progress=False
        ).grade()
        print(f"=== {name}\nbefore\n{data.ledger}\n{data.certificate}\n{data.pass_at}")
        data.refill(rows=asked.rows)
        print(f"after refill(rows={asked.rows})\n{data.ledger}\n{data.certificate}\n{data.pass_at}")
        print("notes", *data.manifest.notes[-2:], sep="\n  ")


if __name__ == "__main__":
    main()
