"""Label: keep or drop, by a person, one conversation a screen.

The screen shows what was said and called, and neither findings nor verdict: a label that
has seen the judge's opinion says nothing about the judge. Every answer is on disk before
the next screen, and the next session goes on where this one stopped.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TextIO

from whilesim.chat.messages import Message
from whilesim.core.jsontext import read_lines, write_lines
from whilesim.grading.trust import read_labels

_WHO = {"system": "POLICY", "user": "CUSTOMER", "assistant": "AGENT", "tool": "RESULT"}
_PROMPT = "[k]eep  [d]rop  [s]kip  [u]ndo  [q]uit > "


def label(
    conversations: Mapping[str, Sequence[Message]], path: str | os.PathLike[str], *, answers: TextIO, screen: TextIO
) -> int:
    """Ask a person about each conversation that has no label yet.

    Args:
        conversations: Id to messages, in the order to be shown; the system prompt is not shown.
        path: The JSONL file of labels: ``id``, ``keep`` and ``reason`` a line. Made if absent.
        answers: Where the person types: a command a line, after keep or drop the reason.
        screen: Where the conversations are shown.

    Returns:
        How many of the conversations carry a label now.

    Raises:
        InputError: The file is there and holds something else than labels of these conversations.
    """
    labels = {}
    if Path(path).exists():
        read_labels(path, conversations)
        labels = {line["id"]: line for _, line in read_lines(path)}
    waiting, at = [name for name in conversations if name not in labels], 0
    while at < len(waiting):
        name = waiting[at]
        print(f"\n=== {name}: {at + 1} of {len(waiting)} ===\n{_page(conversations[name])}", file=screen)
        command = _ask(_PROMPT, answers, screen)
        if command is None or command[:1] == "q":
            break
        if command[:1] in ("k", "d"):
            reason = _ask("why > ", answers, screen) or ""
            labels[name] = {"id": name, "keep": command[0] == "k", "reason": reason}
            at += 1
        elif command[:1] == "s":
            at += 1
        elif command[:1] == "u" and at:
            at -= 1
            labels.pop(waiting[at], None)
        write_lines(path, labels.values())
    return sum(name in labels for name in conversations)


def _ask(prompt: str, answers: TextIO, screen: TextIO) -> str | None:
    """Return what was typed, None at the end of input."""
    print(prompt, end="", file=screen, flush=True)
    line = answers.readline()
    return line.strip() if line else None


def _page(messages: Sequence[Message]) -> str:
    lines = []
    for i, message in enumerate(messages):
        said = [message.content or ""] + [f"-> {c.name} {c.arguments}" for c in message.tool_calls]
        if message.role != "system":
            lines.append(f"[{i}] {_WHO[message.role]}: " + "\n    ".join(part for part in said if part))
    return "\n".join("".join(c if c.isprintable() else " " for c in line) for line in "\n".join(lines).splitlines())
