"""OpenAI's models as agent, customer and judge, with a price told first and a limit: needs OPENAI_API_KEY."""

from __future__ import annotations

import whilesim as ws
from whilesim.showcase import demo_policy, demo_tools


def main(agent: str = "openai:gpt-4.1-mini", judge: str = "openai:gpt-4.1") -> None:
    """Play five situations; typed again after a break, it goes on in the same folder and pays for nothing twice."""
    plan = ws.plan(tools=demo_tools(), system_prompt=demo_policy(), situations=5)
    print(plan.estimate(agent, rollouts=2))

    data = ws.simulate(agent, plan=plan, rollouts=2, run_dir="openai-run", budget=ws.Budget(usd=1.0))
    data.grade(judge=judge)
    print(data.ledger)


if __name__ == "__main__":
    main()
