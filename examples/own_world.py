"""A world of your own: any object with ``call`` and ``state``; one is made for each conversation."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import whilesim as ws

POLICY = """
# Library desk
- Renew a loan only when nobody else waits for the book.
- Never waive a fine without a manager's approval.
- Hand the reader over to a librarian when they ask for a person.
"""


def get_loan(loan_id: str) -> str:
    """Get the details of a loan."""
    return loan_id


def renew_loan(loan_id: str) -> str:
    """Renew a loan by four weeks."""
    return loan_id


class Library:
    """Two loans, one of which somebody waits for."""

    def __init__(self, situation: Mapping[str, str], seed: int) -> None:
        del situation, seed  # the same two loans in every conversation
        self.state: dict[str, Any] = {
            "LN1001": {"due": "2026-04-01", "waiting": 0},
            "LN1002": {"due": "2026-04-02", "waiting": 2},
        }

    def call(self, name: str, arguments: Mapping[str, Any] | str) -> str:
        """Answer one call as the library's server would."""
        loan = self.state.get(arguments.get("loan_id", "")) if isinstance(arguments, Mapping) else None
        if loan is None:
            return json.dumps({"error": "no such loan"})
        if name == "renew_loan" and loan["waiting"]:
            return json.dumps({"error": "somebody waits for this book"})
        if name == "renew_loan":
            loan["due"] = "2026-04-29"
        return json.dumps(loan)


def main() -> None:
    """Play six situations in that world."""
    data = ws.simulate(tools=[get_loan, renew_loan], system_prompt=POLICY, world=Library, situations=6, rollouts=1)
    for row in data.rows:
        print(row.id, row.stop, [c["function"]["name"] for m in row.messages for c in m.get("tool_calls", [])])


if __name__ == "__main__":
    main()
