"""An agent of your own: any function that answers messages."""

from __future__ import annotations

from typing import Any

import whilesim as ws
from whilesim.showcase import demo_policy, demo_tools


def agent(messages: list[dict[str, Any]]) -> Any:
    """Hand over at once, as a lazy agent does: the floor that any agent must beat."""
    called = any(m.get("tool_calls") for m in messages)
    if called:
        return "A colleague will take over from here."
    summary = '{"summary": "The customer asked for help."}'
    return {"tool_calls": [{"id": "call_1", "function": {"name": "transfer_to_person", "arguments": summary}}]}


def main() -> None:
    """Show what always handing over scores, and where it was not wanted."""
    data = ws.simulate(agent, tools=demo_tools(), system_prompt=demo_policy(), situations=30, rollouts=1).grade()
    print(data.pass_at)
    print(data.handoffs)


if __name__ == "__main__":
    main()
