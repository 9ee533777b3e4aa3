"""A LangChain agent on golden tickets: pip install langchain langchain-openai, and OPENAI_API_KEY."""

from __future__ import annotations

from langchain.agents import create_agent
from langchain.tools import tool
from langchain_openai import ChatOpenAI

import whilesim as ws


@tool
def get_rental(rental_id: str) -> str:
    """Show a rental."""
    return f"Rental {rental_id} is booked for tomorrow."


@tool
def transfer_to_person(summary: str) -> str:
    """Hand the customer over to a colleague."""
    return f"A colleague knows: {summary}"


TOOLS = [get_rental, transfer_to_person]
POLICY = "You are the help desk of a bicycle hire. Look a rental up before you say anything about it."
TICKETS = [
    {"ticket_id": "look-up", "user_message": "When does R1001 start?", "expected_tools": ["get_rental"]},
    {"ticket_id": "accident", "user_message": "I fell off the bike of R1001, my arm is broken.", "handoff": True},
]


def main() -> None:
    """Score the agent, which runs its own tools, and then its bare model, whose calls a mock back-end answers."""
    model = ChatOpenAI(model="gpt-4.1-mini")
    options = ws.EvalOptions(system_prompt=POLICY, floors=False)
    for agent in (create_agent(model, TOOLS, system_prompt=POLICY), model):
        print(ws.evaluate(agent, TICKETS, tools=TOOLS, options=options), end="\n\n")


if __name__ == "__main__":
    main()
