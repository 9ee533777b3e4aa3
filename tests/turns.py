"""A conversation written as lines, and what the checks find in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from whilesim.grading.checks import run_checks


def findings(tools: Sequence[Any], *turns: str, policy: str = "") -> list[str]:
    """Findings of turns: ``C: words``, ``A: words`` or ``T: tool {arguments} -> reply``."""
    messages = [{"role": "system", "content": policy}] if policy else []
    for number, (tag, text) in enumerate(t.split(": ", 1) for t in turns):
        if tag != "T":
            messages.append({"role": "user" if tag == "C" else "assistant", "content": text})
            continue
        said, reply = text.split(" -> ")
        name, arguments = said.split(" ", 1)
        call = {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": arguments}}
        messages += [{"role": "assistant", "content": None, "tool_calls": [call]}]
        messages += [{"role": "tool", "tool_call_id": f"c{number}", "content": reply}]
    return [f.check for f in run_checks(messages, tools)]
