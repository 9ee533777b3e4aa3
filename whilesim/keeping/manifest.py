"""Manifest: what a run was made of, in one small file that never holds a key.

Rows say what happened; the manifest says what could have: axes, the pairs that cannot meet,
the clauses as they were read, what each tool does. With it, rows can be graded and counted
again on another machine.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from whilesim.core.errors import InputError
from whilesim.core.jsontext import dumps, loads
from whilesim.core.text import shorten
from whilesim.situations.axes import Axis
from whilesim.situations.policy import Clause, Policy
from whilesim.situations.tools import Effect, Tool

Pair = tuple[tuple[str, str], ...]
"""Two values that stand on two axes: ``(("tool", "get_order"), ("stance", "upset"))``."""


class Manifest(BaseModel):
    """What a run was made of (version 1); unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    version: Literal[1] = 1
    whilesim: str = ""
    seed: int = 0
    models: dict[str, str | None] = {}
    """Role (agent, customer, writer, judge, embedder) to the model's name."""
    licences: dict[str, str] = {}
    """Model name to the licence of what it writes, as the user states it."""
    digests: dict[str, str] = {}
    """What (policy, tools, prompts, plan, world) to the digest of its text."""
    counts: dict[str, int] = {}
    """``situations``, ``rollouts``, ``turns``, and ``planned``: the rows that should be there."""
    axes: dict[str, list[str]] = {}
    infeasible: list[list[str]] = []
    """Pairs that cannot meet, each as axis, value, axis, value."""
    language: str = "en"
    clauses: list[dict[str, Any]] = []
    effects: dict[str, Effect] = {}
    """Tool name to what it does, inferred or set by the user."""
    admitted: list[str] = []
    """Names of the judges that people's labels have admitted."""
    record: dict[str, Any] = {}
    """Ledger, pass rates and certificate of the whole run, where the rows here are a part of it."""
    notes: list[str] = []

    @classmethod
    def describe(
        cls,
        *,
        policy: Policy,
        tools: Sequence[Tool],
        axes: Sequence[Axis] = (),
        infeasible: Iterable[Pair] = (),
        **others: Any,
    ) -> Manifest:
        """Build a manifest from a plan's parts; ``others`` are further fields, as they are."""
        clauses = loads(dumps([asdict(c) for c in policy.clauses]))
        return cls(
            axes={a.name: list(a.values) for a in axes},
            infeasible=sorted([*first, *second] for first, second in infeasible),
            language=policy.language,
            clauses=clauses,
            effects={t.name: t.effect for t in tools},
            **others,
        )

    @classmethod
    def from_json(cls, value: Any, where: str = "the manifest") -> Manifest:
        """Read a manifest from its JSON object; raises InputError that names ``where``."""
        try:
            return cls.model_validate(value)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            field = ".".join(str(step) for step in first["loc"])
            msg = (
                f"{where} cannot be read: {field}: {shorten(first['msg'], 200)}. "
                "It was written by another version, or changed by hand: restore it."
            )
            raise InputError(msg) from error

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Manifest:
        """Read ``manifest.json``."""
        try:
            value = loads(Path(path).read_text(encoding="utf-8"))
        except ValueError as error:
            msg = f"{os.fspath(path)} is not JSON ({error}): restore it, or run again in a new folder."
            raise InputError(msg) from error
        return cls.from_json(value, os.fspath(path))

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write ``manifest.json``, whole or not at all."""
        target = Path(path)
        temporary = target.with_name(target.name + ".part")
        temporary.write_text(dumps(self.to_json(), indent=1) + "\n", encoding="utf-8", newline="\n")
        temporary.replace(target)

    def to_json(self) -> dict[str, Any]:
        """Return the manifest as a JSON object."""
        return {name: getattr(self, name) for name in type(self).model_fields}

    def feasible(self) -> set[Pair]:
        """Return the pairs of axis values that can meet, both in axis order."""
        cannot = {frozenset(((a, u), (b, v))) for a, u, b, v in self.infeasible}
        names = list(self.axes)
        return {
            ((a, u), (b, v))
            for i, a in enumerate(names)
            for b in names[i + 1 :]
            for u in self.axes[a]
            for v in self.axes[b]
            if frozenset(((a, u), (b, v))) not in cannot
        }

    def policy(self, text: str) -> Policy:
        """Return the policy whose text this is, with the clauses as they were read then."""
        clauses = tuple(_clause(c) for c in self.clauses)
        return Policy(text=text, clauses=clauses, language=self.language)


def _clause(value: Mapping[str, Any]) -> Clause:
    return Clause(**{**value, "tools": tuple(value["tools"]), "span": tuple(value["span"])})


def join_manifests(manifests: Sequence[Manifest]) -> Manifest:
    """Return one manifest for rows of several runs; what differs between them is noted.

    Planned rows and situations add up. Everything else is the first one's, and a pair is
    infeasible where any of them says so.
    """
    first = manifests[0]
    summed = [n for n in ("planned", "situations") if all(n in m.counts for m in manifests)]
    counts = {**first.counts, **{n: sum(m.counts[n] for m in manifests) for n in summed}}
    differ = [
        name
        for name in ("seed", "models", "digests", "axes", "clauses", "effects")
        if any(getattr(m, name) != getattr(first, name) for m in manifests)
    ]
    axes = {a: list(dict.fromkeys(v for m in manifests for v in m.axes.get(a, []))) for a in first.axes}
    pairs = sorted({tuple(pair) for m in manifests for pair in m.infeasible})
    notes = list(dict.fromkeys(note for m in manifests for note in m.notes))
    notes += [f"joined from {len(manifests)} runs that differ in {name}" for name in differ]
    changed = {"counts": counts, "axes": axes, "infeasible": [list(p) for p in pairs], "notes": notes, "record": {}}
    return first.model_copy(update=changed)
