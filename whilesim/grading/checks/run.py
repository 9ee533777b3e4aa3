"""Run: all checks over one conversation.

Works on any conversation in OpenAI's form; nothing of our own world is needed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from whilesim.chat.messages import Message, read_message
from whilesim.core.errors import InputError
from whilesim.core.templates import load_words
from whilesim.grading.checks.calls import read_calls
from whilesim.grading.checks.conduct import check_calls, check_confirmation, check_order, check_words
from whilesim.grading.checks.deeds import open_toolbox
from whilesim.grading.checks.findings import Finding
from whilesim.grading.checks.identifiers import check_identifiers
from whilesim.grading.checks.support import check_claims

Level = Literal["drop", "warn", "off"]

SEVERITY: Mapping[str, Level] = load_words("checks_severity")
"""Every check of a conversation, and what a finding of it does to a row."""


def run_checks(
    messages: Sequence[Mapping[str, Any] | Message],
    tools: Any = None,
    failed: Collection[str] | None = None,
    *,
    severity: Mapping[str, Level] | None = None,
) -> list[Finding]:
    """Check one conversation; return what is wrong, in the order of the messages.

    Args:
        messages: OpenAI chat messages, or ``Message`` values; ``message_index`` counts these.
        tools: Tool schemas in any dialect, ``Tool`` values, or a ``Toolbox`` that was opened before.
            Without them the effect of a tool is guessed from its name, and arguments are not held
            against a schema.
        failed: Ids of the calls known to have failed; None guesses from the replies.
        severity: Check name to ``drop``, ``warn`` or ``off``, over the defaults in ``SEVERITY``.

    Claims are read in English, Spanish and German; ``claims.claims_measured`` says whether
    this conversation was one of them.

    Raises:
        InputError: A message is no chat message, or ``severity`` names what there is not.
    """
    for check, level in (severity or {}).items():
        if check not in SEVERITY or level not in ("drop", "warn", "off"):
            msg = f"severity has {check!r}: {level!r}, and there is no such check or level."
            raise InputError(f"{msg} Type drop, warn or off for one of: {', '.join(SEVERITY)}.")
    levels = {**SEVERITY, **(severity or {})}
    read = [m if isinstance(m, Message) else read_message(m) for m in messages]
    box = open_toolbox(tools, (c.name for m in read for c in m.tool_calls))
    calls = read_calls(read, box.writes, None if failed is None else {*failed})
    found = [*check_claims(read, calls, box), *check_identifiers(read, calls, box), *check_order(read, calls, box)]
    found += [*check_confirmation(read, calls, box), *check_calls(read, calls, box), *check_words(read, box)]
    kept = [replace(f, severity=level) for f in found if (level := levels[f.check]) != "off"]
    return sorted(kept, key=lambda f: (f.message_index, f.check != "unknown_tool"))
