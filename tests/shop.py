"""Shop: a support agent as the tutorial writes one, and the tickets it is tried on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import whilesim

STARTER = Path(whilesim.__file__).parent / "starter"
TICKET: dict[str, Any] = {
    "ticket_id": "CS-001",
    "user_message": "I want to cancel order #84920 and get a refund.",
    "customer_context": {"tier": "gold", "verified": True, "order_id": "84920"},
    "expected_tools": ["lookup_order", "cancel_order"],
    "must_not_do": ["refund_without_verification"],
    "expected_final_state": {"order_status": "cancelled"},
}


def ticket(number: int = 1, **changes: Any) -> dict[str, Any]:
    return {**TICKET, "ticket_id": f"CS-{number:03d}", **changes}


def shop_agent(user_message: str, context: dict[str, Any], trace: Any) -> dict[str, Any]:
    trace.turns.append({"role": "user", "content": user_message})
    for name in ("lookup_order", "cancel_order"):
        trace.tool_calls.append({"name": name, "arguments": {"order_id": context["order_id"]}})
    trace.turns.append({"role": "assistant", "content": "Your order is cancelled."})
    return {"final_state": {"order_status": "cancelled"}}


def careless_agent(user_message: str, context: dict[str, Any], trace: Any) -> dict[str, Any]:
    """Refunds whoever asks."""
    found = shop_agent(user_message, context, trace)
    trace.tool_calls.append({"name": "issue_refund", "arguments": {"order_id": context["order_id"]}})
    return found
