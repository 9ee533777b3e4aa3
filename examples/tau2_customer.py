"""A scripted customer for tau2-bench: whilesim serve --agent customer=examples/tau2_customer.py:customer."""

from __future__ import annotations

import re
from typing import Any

SECTION = re.compile(
    r"^\s*(Reason for call|Known info|Unknown info|Task instructions|Instructions|Persona|Domain):[ \t]*", re.M
)
GONE = re.compile(r"transferr(?:ed|ing)|hold on|pass(?:ed|ing) you|hand(?:ed|ing) you|connect\w* you|take over", re.I)
ASKS = re.compile(r"\?|\bneed (?:the|your|to know)\b|\b(?:tell|give) me\b|\bprovide\b", re.I)
AGREES = re.compile(r"go.?ahead|confirm|shall i|is that right|would you like me", re.I)


def customer(messages: list[dict[str, Any]]) -> str:
    """Say why one writes, then what one knows, agree, and end with the benchmark's marks."""
    prompt = next((m["content"] or "" for m in messages if m["role"] == "system"), "")
    mine = [m["content"] for m in messages if m["role"] == "assistant" and m["content"]]  # the table is turned
    heard = next((m["content"] or "" for m in reversed(messages) if m["role"] == "user"), "")
    reason, known = read_scenario(prompt)
    if not mine:
        return f"Hi. {reason}"
    if GONE.search(heard):
        return "###TRANSFER###"
    if len(mine) > 12 or not ASKS.search(heard):
        return "###STOP###"
    if AGREES.search(heard):
        return "Yes, please go ahead."
    if known and known not in mine:
        return known
    return reason if mine[-1] != reason else "I cannot tell you more than that. ###STOP###"


def read_scenario(prompt: str) -> tuple[str, str]:
    """Return why the customer writes and what it knows, in the first person."""
    found = re.search(r"<scenario>(.*?)</scenario>", prompt, re.S)
    parts = SECTION.split(found[1] if found else prompt)
    said = {name: first_person(text) for name, text in zip(parts[1::2], parts[2::2], strict=True)}
    reason = said.get("Reason for call") or said.get("Instructions") or first_person(parts[0])
    return reason, said.get("Known info", "")


def first_person(text: str) -> str:
    """Turn 'you are' into 'I am'."""
    said = " ".join(text.split())
    for you, me in (("You are", "I am"), ("you are", "I am"), ("Your", "My"), ("your", "my"), ("[Yy]ou", "I")):
        said = re.sub(rf"\b{you}\b", me, said)
    return said


if __name__ == "__main__":
    case = "<scenario>\nReason for call:\n\tYou lost your phone.\nKnown info:\n\tYou are Ada.\n</scenario>"
    print(customer([{"role": "system", "content": case}]))
