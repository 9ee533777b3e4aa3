"""Faults: how a tool fails, how errors read, and what a model must not learn from them.

The wording and the shape of errors are drawn once per world. A fault belongs to one tool,
passes on retry or persists by seed, and its error reads like the tool's other errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from whilesim.core.jsontext import dumps
from whilesim.core.seeds import chance, derive, pick
from whilesim.core.templates import load_words


class Voice:
    """How one world words its errors."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._shape = pick(load_words("world_errors")["shapes"], seed, "error shape")

    def say(self, problem: str, **values: Any) -> str:
        """Return an error as this world's API would send it."""
        words = load_words("world_errors")
        kind = str(values.get("kind", "record")).replace("_", " ")
        party = str(values.get("party", "customer")).replace("_", " ")
        told = {"field": "id", "value": "", **values, "party": party, "kind": kind, "Kind": kind.capitalize()}
        text = " ".join(pick(words[problem], self._seed, "error", problem).format(**told).split())
        code = words["codes"][problem]
        return {
            "text": f"Error: {text}",
            "error": dumps({"error": text}),
            "code": dumps({"error": {"code": code, "message": text}}),
            "status": dumps({"status": "error", "message": text}),
            "success": dumps({"success": False, "error": text}),
        }[self._shape]


@dataclass(frozen=True, slots=True)
class FaultPlan:
    """When one tool of a situation fails."""

    tool: str
    condition: str
    failures: int
    """How many calls fail before one works; -1 for all."""
    applied: bool
    """Whether the tool's work is done although the caller is not told."""

    @property
    def persists(self) -> bool:
        """Whether no call of this tool ever works."""
        return self.failures < 0

    def at(self, tool: str, earlier: int) -> str:
        """Return the condition that the tool's next call meets, after ``earlier`` calls of it: ``success`` or what fails."""
        fails = tool == self.tool and (self.persists or earlier < self.failures)
        return self.condition if fails else "success"


def plan_faults(values: Mapping[str, str], seed: int, *, readable: bool) -> FaultPlan:
    """Draw how the situation's tool fails.

    Args:
        values: The situation's axis values.
        seed: Decides whether the failure passes on retry, and when.
        readable: Whether the tool changes records, and another one can show what it changed.
    """
    condition = values.get("tool_condition", "success")
    tool = values.get("tool", "")
    if condition == "permission_denied":
        return FaultPlan(tool, condition, -1, applied=False)
    if condition in ("timeout", "malformed"):
        persists = chance(0.35, seed, f"{condition} persists")
        lost = readable and not persists and chance(0.3, seed, "timeout applied")
        return FaultPlan(tool, condition, -1 if persists else 1, applied=condition == "malformed" or lost)
    if condition == "stale":
        return FaultPlan(tool, condition, 1 + derive(seed, "stale count") % 2, applied=False)
    return FaultPlan(tool, "success", 0, applied=False)


def garble(reply: str, seed: int, count: int) -> str:
    """Return a reply that arrived broken: cut off, empty, in another envelope, or not the tool's at all."""
    kinds = ["html", "empty", "null", "envelope"]
    if len(reply) > 30 and reply[:1] in "{[":
        kinds += ["cut", "cut", "separators"]
    kind = pick(kinds, seed, "malformed", count)
    if kind == "html":
        return str(pick(load_words("world_errors")["html"], seed, "html"))
    if kind == "cut":
        return reply[: len(reply) // 4 + derive(seed, "cut", count) % (len(reply) // 2)]
    if kind == "separators":
        return reply.replace('": ', '" ', 2).replace(", ", " ", 1)
    return {"empty": "", "null": "null", "envelope": dumps({"data": None, "meta": {"count": 0}})}[kind]
