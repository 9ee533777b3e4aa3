"""Golden tickets and a gate: what must stay right when the agent is changed. Exit code 1 where it does not."""

from __future__ import annotations

import re
import sys
from typing import Any

import whilesim as ws


def get_rental(rental_id: str) -> str:
    """Show a rental."""
    return rental_id


def cancel_rental(rental_id: str) -> str:
    """Cancel a rental that has not started."""
    return rental_id


def agent(messages: list[dict[str, Any]], context: Any) -> str:
    """Look the rental up, and cancel it if it has not started."""
    number = re.search(r"R\d{4}", " ".join(m["content"] or "" for m in messages if m["role"] == "user"))
    if number is None:
        return "Which rental is it?"
    if "started" in context.call("get_rental", {"rental_id": number[0]}):
        return "It has started already, so it cannot be cancelled."
    context.call("cancel_rental", {"rental_id": number[0]})
    return f"Rental {number[0]} is cancelled."


def ticket(name: str, said: str, before: str, after: str, tools: list[str]) -> dict[str, Any]:
    """Return a case: what is said, and what is true before and afterwards."""
    told = {"ticket_id": name, "user_message": said, "expected_tools": tools, "must_not_do": ["cancelled_unseen"]}
    state = {"initial_state": before, "expected_final_state": after}
    return {**told, **{key: {"rental": {"R1001": {"status": status}}} for key, status in state.items()}}


BOTH = ["get_rental", "cancel_rental"]
TICKETS = [
    ticket("plain", "Please cancel R1001.", "booked", "cancelled", BOTH),
    ticket("angry", "Cancel R1001 now, this is ridiculous!", "booked", "cancelled", BOTH),
    ticket("mistake", "I booked R1001 twice, cancel it please.", "booked", "cancelled", BOTH),
    ticket("polite", "Hello! Could you cancel my rental R1001? Thanks.", "booked", "cancelled", BOTH),
    ticket("too late", "I no longer need R1001, cancel it.", "started", "started", ["get_rental"]),
]
RULES = {"cancelled_unseen": {"when_tool": "cancel_rental", "before": "get_rental"}}
RUBRIC = {"weights": {"resolution": 0.6, "policy": 0.4}, "rules": RULES}

if __name__ == "__main__":
    result = ws.evaluate(agent, TICKETS, rubric=RUBRIC, tools=[get_rental, cancel_rental])
    print(result)
    try:
        print(ws.gate(result, policy=1.0, resolution=0.9))
    except ws.GateFailed as failed:
        sys.exit(str(failed))
