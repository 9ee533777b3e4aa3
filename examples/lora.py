"""Kept rows as a LoRA adapter, and how to serve it: python examples/lora.py Qwen/Qwen3-0.6B adapter."""

from __future__ import annotations

import sys

import whilesim as ws
from whilesim.training.lora import train
from whilesim.training.recipe import Recipe

POLICY = """
You help the readers of a town library.
- Extend a loan only if the reader asks for it.
- If the reader has lost a book, hand over to a librarian.
"""


def get_loan(loan_id: str) -> str:
    """Show a loan."""
    return loan_id


def extend_loan(loan_id: str) -> str:
    """Give a loan three more weeks."""
    return loan_id


def ask_librarian(summary: str) -> str:
    """Transfer the reader to a librarian."""
    return summary


def main(model: str, output: str) -> None:
    """Make rows, leave out those that the model's chat template breaks, and train eight steps on the others."""
    tools = [get_loan, extend_loan, ask_librarian]
    data = ws.simulate(tools=tools, system_prompt=POLICY, situations=12, progress=False).grade()
    checked = data.kept.verify_for(model, max_length=2048)
    print(checked)
    print(train(checked.trainable, model, output, recipe=Recipe(steps=8, batch=2, rank=16, max_length=2048)))


if __name__ == "__main__":
    main(*sys.argv[1:3])
