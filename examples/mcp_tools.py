"""Tools as an MCP server lists them: annotations say which of them change something."""

from __future__ import annotations

import whilesim as ws

LISTED = {
    "tools": [
        {
            "name": "get_loan",
            "description": "Shows a loan and when it is due.",
            "inputSchema": {"type": "object", "properties": {"loan_id": {"type": "string"}}, "required": ["loan_id"]},
            "annotations": {"readOnlyHint": True},
        },
        {
            "name": "loan_extension",
            "description": "Gives a loan three more weeks. Only loans that nobody waits for.",
            "inputSchema": {"type": "object", "properties": {"loan_id": {"type": "string"}}, "required": ["loan_id"]},
            "annotations": {"readOnlyHint": False, "idempotentHint": False},
        },
        {
            "name": "fetch_librarian",
            "description": "Transfers the reader to a librarian.",
            "inputSchema": {"type": "object", "properties": {"summary": {"type": "string"}}, "required": ["summary"]},
        },
    ]
}
POLICY = """
You help the readers of a town library.
- Never extend a loan twice.
- Extend a loan only if the reader asks for it.
- If the reader has lost a book, hand over to a librarian.
"""


def main() -> None:
    """Print what each tool does and five customers."""
    plan = ws.plan(tools=LISTED, system_prompt=POLICY, situations=12)
    for tool in plan.tools:
        print(f"{tool.name:<16} {tool.effect}")
    for card in plan.cards[:5]:
        print(f"- {card.opening}")

    data = ws.simulate(plan=plan, progress=False).grade()
    print(data.ledger)


if __name__ == "__main__":
    main()
