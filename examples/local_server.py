"""A model on a server of your own (vLLM, ollama, llama.cpp): python examples/local_server.py http://127.0.0.1:8000/v1 NAME."""

from __future__ import annotations

import sys

import whilesim as ws
from whilesim.showcase import demo_policy, demo_tools


def main(address: str, name: str) -> None:
    """Play four situations with one model as agent and customer, and let it judge itself."""
    model = ws.Model(name, base_url=address, temperature=0.7, max_tokens=512)
    plan = ws.plan(tools=demo_tools(), system_prompt=demo_policy(), situations=4)
    data = ws.simulate(model, plan=plan, rollouts=1, concurrency=4, budget=ws.Budget(tokens=500_000, seconds=600))
    print(data.grade().ledger)


if __name__ == "__main__":
    main(*sys.argv[1:3])
