"""Show every prompt of one card, as a model gets it: writer, customer, agent's action, judge.

    python tests/benchmarks/show_prompts.py POLICY.md TOOLS.json [NUMBER]

NUMBER is the card's place in the covering, 1 unless given. Without files, the bundled domain.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import whilesim as ws
from whilesim.cards.writer import Request
from whilesim.chat.actions import explain_actions
from whilesim.chat.messages import Message
from whilesim.conversations.players import DONE
from whilesim.core.templates import render_prompt
from whilesim.showcase import demo_policy, demo_tools

sys.path.insert(0, str(Path(__file__).parent.parent))

from judges import Scripted


def main() -> None:
    """Print the prompts."""
    files = [a for a in sys.argv[1:] if not a.isdigit()]
    policy = Path(files[0]).read_text(encoding="utf-8") if files else demo_policy()
    tools = json.loads(Path(files[1]).read_text(encoding="utf-8")) if files else demo_tools()
    number = next((int(a) for a in sys.argv[1:] if a.isdigit()), 1)
    plan = ws.plan(tools=tools, system_prompt=policy, situations=max(30, number))
    card = plan.cards[number - 1]
    tool = next(t for t in plan.tools if t.name == card.situation.values["tool"])
    show("writer", Request(cards=(card,), clause=plan.clause(card), tool=tool).prompt())
    show("customer", render_prompt("customer", card=card, done=DONE))
    opening = [Message(role="system", content=policy), Message(role="user", content=card.opening)]
    wired = explain_actions(opening, [t.to_openai() for t in plan.tools])
    show("agent, for an endpoint without tool calls", "\n\n".join(f"[{m['role']}]\n{m['content']}" for m in wired))
    judge = Scripted(["I would keep it.", "Still the same."])
    data = ws.simulate(plan=plan, rollouts=1, progress=False).filter(lambda row: row.situation_id == card.id)
    data.grade(judge=judge)
    if not judge.asked:
        print("\n(the row was dropped before a judge could read it: choose another NUMBER)")
    for title, message in zip(
        ("system", "user", "", "asked again"), judge.asked[-1][0] if judge.asked else (), strict=False
    ):
        if title:
            show(f"judge, {title}", message.content or "")


def show(title: str, text: str) -> None:
    """Print one prompt under its title."""
    print(f"\n######## {title}\n{text}")


if __name__ == "__main__":
    main()
