"""Manifest: what a run was made of, in one small file that never holds a key.

Rows say what happened; the manifest says what could have: axes, the pairs that cannot meet,
the clauses as they were read, what each tool does. With it, rows can be graded and counted
again on another machine.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, product
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from whilesim.core.errors import InputError
from whilesim.core.jsontext import dumps, first_fault, loads, write_whole
from whilesim.situations.axes import Axis
from whilesim.situations.policy import Clause, Policy
from whilesim.situations.tools import Effect, Tool, parse_tools

Pair = tuple[tuple[str, str], ...]
"""Two values that stand on two axes: ``(("tool", "get_order"), ("stance", "upset"))``."""


class Manifest(BaseModel):
    """What a run was made of (version 1); unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Literal[1] = 1
    whilesim: str = ""
    seed: int = 0
    models: dict[str, str | None] = {}
    """Role (agent, customer, writer, judge, embedder) to the model's name."""
    licences: dict[str, str] = {}
    """Model name to the licence of what it writes, as the user states it."""
    digests: dict[str, str] = {}
    """What (policy, tools, prompts, plan, world) to the digest of its text."""
    fingerprint: dict[str, Any] = {}
    """All that decided the rows: a run goes on in its folder only with the same."""
    counts: dict[str, int] = {}
    """``situations``, ``rollouts``, ``turns``, and ``planned``: the rows that should be there."""
    axes: dict[str, list[str]] = {}
    infeasible: list[list[str]] = []
    """Pairs that cannot meet, each as axis, value, axis, value."""
    language: str = "en"
    clauses: list[Clause] = []
    effects: dict[str, Effect] = {}
    """Tool name to what it does, inferred or set by the user."""
    admitted: list[str] = []
    """Names of the judges that people's labels have admitted."""
    record: dict[str, Any] = {}
    """Ledger, pass rates and certificate of the whole run, where the rows here are a part of it."""
    notes: list[str] = []

    @classmethod
    def describe(
        cls, *, policy: Policy, tools: Sequence[Tool], axes: Sequence[Axis], infeasible: Iterable[Pair], **others: Any
    ) -> Manifest:
        """Build a manifest from a plan's parts; ``others`` are further fields, as they are."""
        return cls(
            axes={a.name: list(a.values) for a in axes},
            infeasible=sorted([*first, *second] for first, second in infeasible),
            language=policy.language,
            clauses=list(policy.clauses),
            effects={t.name: t.effect for t in tools},
            **others,
        )

    @classmethod
    def read(cls, path: str | os.PathLike[str], name: str = "") -> Manifest:
        """Read ``manifest.json``; ``name`` is what an error calls it, its path by default.

        Raises:
            InputError: It is not JSON, or no manifest of this version; names the file and the key.
        """
        try:
            return cls.model_validate(loads(Path(path).read_text(encoding="utf-8")))
        except ValueError as error:
            kind = "cannot be read" if isinstance(error, ValidationError) else "is not JSON"
            msg = f"{name or os.fspath(path)} {kind}: {first_fault(error)}. Restore it, or start anew elsewhere; "
            raise InputError(msg + "if a later whilesim wrote it, type: pip install --upgrade whilesim") from error

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write ``manifest.json``, whole or not at all."""
        write_whole(path, [dumps(self.model_dump(), indent=1).encode(), b"\n"])

    def of_part(self) -> Manifest:
        """Return the manifest of rows that are all there is from now on, whatever was planned."""
        counts = {name: n for name, n in self.counts.items() if name != "planned"}
        return self.model_copy(update={"counts": counts, "record": {}})

    def feasible(self) -> set[Pair]:
        """Return the pairs of axis values that can meet, both in axis order."""
        values = [[(axis, value) for value in values] for axis, values in self.axes.items()]
        pairs = {pair for first, second in combinations(values, 2) for pair in product(first, second)}
        cannot = {frozenset(((a, u), (b, v))) for a, u, b, v in self.infeasible}
        return {pair for pair in pairs if frozenset(pair) not in cannot}

    def tools(self, wire: Sequence[Mapping[str, Any]]) -> tuple[Tool, ...]:
        """Return wrapped tools, each with the effect that it had then."""
        names = {tool["function"]["name"] for tool in wire}
        return parse_tools(wire, effects={k: v for k, v in self.effects.items() if k in names}) if wire else ()

    def policy(self, text: str) -> Policy:
        """Return the policy whose text this is, with the clauses as they were read then."""
        return Policy(text=text, clauses=tuple(self.clauses), language=self.language)


def join_manifests(manifests: Sequence[Manifest]) -> Manifest:
    """Return one manifest for rows of several runs; what differs between them is noted.

    Planned rows and situations add up; everything else is the first one's.
    """
    first = manifests[0]
    summed = [name for name in ("planned", "situations") if all(name in m.counts for m in manifests)]
    counts = first.counts | {name: sum(m.counts[name] for m in manifests) for name in summed}
    notes = list(dict.fromkeys(note for m in manifests for note in m.notes))
    for name in ("seed", "models", "digests", "axes", "infeasible", "clauses", "effects"):
        if any(getattr(m, name) != getattr(first, name) for m in manifests):
            notes.append(f"joined from {len(manifests)} runs that differ in {name}")
    return first.model_copy(update={"counts": counts, "notes": notes, "record": {}})
