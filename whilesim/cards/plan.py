"""Plan: everything that is decided before anyone speaks, to look at before you pay."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from html import escape
from itertools import combinations
from pathlib import Path
from typing import Any

from whilesim.cards.cards import Card
from whilesim.chat.models import Model
from whilesim.core.errors import InputError
from whilesim.core.jsontext import dumps
from whilesim.core.seeds import derive
from whilesim.core.text import shorten
from whilesim.situations.axes import Space, space_size
from whilesim.situations.covering import Covering
from whilesim.situations.policy import Clause, Policy
from whilesim.situations.tools import Tool
from whilesim.world.mock import MockWorld, World
from whilesim.world.model import WorldModel
from whilesim.world.oracle import Oracle
from whilesim.world.spec import WorldSpec

Pair = tuple[tuple[str, str], ...]
"""Two values that stand on two axes: ``(("tool", "get_order"), ("stance", "upset"))``."""
WorldFactory = Callable[[Mapping[str, str], int], World]


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How many of the pairs that can happen stand in the chosen situations."""

    feasible: int
    covered: int
    reachable: int
    """The most that so many situations could hold: a bound, not always reached."""
    holes: tuple[Pair, ...]

    @property
    def fraction(self) -> float:
        """Covered pairs over feasible pairs, 0 to 1."""
        return self.covered / self.feasible if self.feasible else 1.0

    def missing(self) -> tuple[Pair, ...]:
        """Return the feasible pairs that no chosen situation holds."""
        return self.holes


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What a run will roughly use."""

    calls: int
    tokens: int
    usd: float | None
    """Dollars, or None when a price is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The situations of a run, as cards with their oracles."""

    system_prompt: str
    policy: Policy
    tools: tuple[Tool, ...]
    customer_tools: tuple[Tool, ...] = ()
    space: Space
    covering: Covering
    cards: tuple[Card, ...]
    oracles: Mapping[str, Oracle]
    seed: int
    world: WorldModel | None
    """The inferred world, or None where the user brought one."""
    spec: WorldSpec | None = None
    """The user's corrections of the inferred world."""
    factory: WorldFactory | None = None
    embedder: str = ""
    twins_wanted: int = 0
    notes: tuple[str, ...] = ()

    @property
    def axes(self) -> dict[str, tuple[str, ...]]:
        """The values of every axis, in axis order."""
        return {axis.name: axis.values for axis in self.space.axes}

    @property
    def size(self) -> int:
        """How many situations there are, forbidden ones included."""
        return space_size(self.space)

    @property
    def ends(self) -> dict[str, int]:
        """How many cards want each end; ``open`` counts those for which several would do."""
        return dict(Counter(_wanted_end(self.oracles[c.id]) for c in self.cards))

    @property
    def coverage(self) -> Coverage:
        """The pairs that the chosen cards hold."""
        return measure_coverage(self.axes, self.covering.infeasible, [c.situation.values for c in self.cards])

    def clause(self, card: Card) -> Clause | None:
        """Return the clause that a card is about."""
        wanted = card.situation.values.get("clause")
        return next((c for c in self.policy.clauses if c.id == wanted), None)

    def world_for(self, card: Card) -> World:
        """Build a card's world: one that all rollouts of the card, and its twin, start from."""
        situation = replace(card.situation, id=card.twin_of or card.situation.id)
        seed = derive(self.seed, "world")
        if self.factory is not None:
            return self.factory(situation.values, derive(seed, situation.id))
        return MockWorld(self.tools, self.policy, situation, seed, model=self.world, customer_tools=self.customer_tools)

    def shard(self, index: int, count: int) -> Plan:
        """Return part ``index`` of ``count``, 0 first: the parts together are the plan.

        Raises:
            InputError: ``index`` is outside 0 to ``count - 1``.
        """
        if not 0 <= index < count:
            msg = f"shard({index}, {count}): the index must be from 0 to {count - 1}. Type plan.shard(0, {count})."
            raise InputError(msg)
        part = len(self.cards) * index // count, len(self.cards) * (index + 1) // count
        return replace(self, cards=self.cards[part[0] : part[1]])

    def estimate(self, agent: Any = "scripted", *, rollouts: int = 2, turns: int = 6) -> Estimate:
        """Estimate calls and tokens of a run; dollars only where the agent's price is known."""
        return _estimate(self, agent, rollouts, turns)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the plan as JSON; :func:`whilesim.load_plan` reads it."""
        Path(path).write_text(dumps(self.to_json(), indent=1) + "\n", encoding="utf-8")

    def to_json(self) -> dict[str, Any]:
        """Return the plan as a JSON object; a world of the user's own is named, not held."""
        return {
            "version": 1,
            "seed": self.seed,
            "system_prompt": self.system_prompt,
            "policy": asdict(self.policy),
            "tools": [_tool_json(t) for t in self.tools],
            "customer_tools": [_tool_json(t) for t in self.customer_tools],
            "axes": self.axes,
            "covering": asdict(self.covering),
            "cards": [asdict(c) for c in self.cards],
            "oracles": {c.id: asdict(self.oracles[c.id]) for c in self.cards},
            "world": None if self.spec is None else asdict(self.spec),
            "own_world": self.factory is not None,
            "embedder": self.embedder,
            "twins_wanted": self.twins_wanted,
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        return "\n".join(f"{name:<14}{text}" for name, text in _lines(self))

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{escape(n)}</th><td style='text-align:left'>{escape(t)}</td></tr>"
            for n, t in _lines(self)
        )
        return f"<table>{rows}</table>"


def measure_coverage(
    axes: Mapping[str, Sequence[str]], infeasible: Sequence[Pair], rows: Sequence[Mapping[str, str]]
) -> Coverage:
    """Count the feasible pairs that rows hold, and the most that so many rows could hold."""
    impossible = {frozenset(pair) for pair in infeasible}
    met = {frozenset(((a, row[a]), (b, row[b]))) for row in rows for a, b in combinations(axes, 2) if a in row}
    feasible, covered, reachable = 0, 0, 0
    holes: list[Pair] = []
    for a, b in combinations(axes, 2):
        pairs: list[Pair] = [((a, x), (b, y)) for x in axes[a] for y in axes[b]]
        possible = [p for p in pairs if frozenset(p) not in impossible]
        missing = [p for p in possible if frozenset(p) not in met]
        feasible += len(possible)
        covered += len(possible) - len(missing)
        reachable += min(len(rows), len(possible))
        holes += missing
    return Coverage(feasible=feasible, covered=covered, reachable=reachable, holes=tuple(holes))


def _wanted_end(oracle: Oracle) -> str:
    """Name the one end that an oracle wants; ``open`` where several different ones would do."""
    if oracle.handoff_wanted:
        return "handed_off"
    if set(oracle.ends) <= {"refused", "honest_failure"}:
        return "refused"
    if "resolved" in oracle.ends and oracle.handoff_wanted is False:
        return "resolved"
    return "open"


def _tool_json(tool: Tool) -> dict[str, Any]:
    kept = {**asdict(tool), "original": None}
    return {**kept, "examples": [list(e) for e in tool.examples]}


def _estimate(plan: Plan, agent: Any, rollouts: int, turns: int) -> Estimate:
    """Guess from text lengths: four characters a token, half the turns used, 1.5 calls a turn."""
    if agent == "scripted":
        return Estimate(calls=0, tokens=0, usd=0.0)
    spoken = max(2, (turns + 1) // 2)
    agent_calls, customer_calls = round(spoken * 2.5), spoken - 1
    head = (len(plan.system_prompt) + len(dumps([t.to_openai() for t in plan.tools]))) // 4
    tokens_in = agent_calls * (head + 400) + customer_calls * 600
    tokens_out = agent_calls * 90 + customer_calls * 40
    runs = len(plan.cards) * rollouts
    usd = None
    if isinstance(agent, Model) and agent.price is not None:
        usd = runs * (tokens_in * agent.price[0] + tokens_out * agent.price[1]) / 1e6
    return Estimate(calls=runs * (agent_calls + customer_calls), tokens=runs * (tokens_in + tokens_out), usd=usd)


def _lines(plan: Plan) -> list[tuple[str, str]]:
    """Return what a person should see of a plan, as (name, text) lines."""
    axes, covering, coverage = plan.axes, plan.covering, plan.coverage
    sizes = " x ".join(f"{len(values)} {name}" for name, values in axes.items())
    optimal = "proven optimal" if covering.proven_optimal else "not proven optimal"
    estimate = plan.estimate("model")
    lines = [
        ("axes", f"{sizes} = {plan.size:,} situations"),
        ("pairs", f"{coverage.feasible:,} can happen, {len(covering.infeasible):,} cannot"),
        ("bound", f"{covering.bound:,} rows at least for all of them ({optimal})"),
        (
            "chosen",
            f"{len(plan.cards):,} cards hold {coverage.covered:,} pairs ({coverage.fraction:.1%}); "
            f"so many could hold {coverage.reachable:,} at most",
        ),
        (
            "ends",
            ", ".join(f"{n} {end}" for end, n in sorted(plan.ends.items(), key=lambda e: (-e[1], e[0]))),
        ),
        ("per rollout", f"about {estimate.calls // 2:,} model calls, {estimate.tokens // 2:,} tokens"),
        ("embedder", plan.embedder),
    ]
    if plan.twins_wanted:
        lines.append(("twins", f"{sum(c.twin_of is not None for c in plan.cards)} of {plan.twins_wanted} asked for"))
    lines += [("note", note) for note in plan.notes]
    lines += [(card.id, shorten(card.opening, 110)) for card in plan.cards[:10]]
    return lines
