"""Plan: everything that is decided before anyone speaks, to look at before you pay."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from html import escape
from itertools import combinations
from math import ceil
from typing import Any

from whilesim.cards.cards import Card
from whilesim.chat.bridge import find_price
from whilesim.chat.models import Model
from whilesim.chat.usage import Price
from whilesim.core.errors import InputError
from whilesim.core.jsontext import dumps, write_whole
from whilesim.core.seeds import derive
from whilesim.core.templates import render_prompt
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

    def __str__(self) -> str:
        dollars = "price unknown" if self.usd is None else f"${self.usd:.2f}"
        return f"about {self.calls:,} calls, {self.tokens:,} tokens, {dollars}"

    __repr__ = __str__


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
    diversity: Mapping[str, float | None] = field(default_factory=dict)
    """How far a card is from its nearest other one, ``least`` and ``mean``: 0 the same, 2 opposite."""
    balance: Mapping[str, float] | None = None
    """The share of situations that was wished to want a hand-off."""
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
            wrong = f"shard({index}, {count}): the index must be from 0 to {count - 1}"
            raise InputError(f"{wrong}. Type plan.shard(0, {count}).")
        part = len(self.cards) * index // count, len(self.cards) * (index + 1) // count
        return replace(self, cards=self.cards[part[0] : part[1]])

    def estimate(self, agent: Any = "scripted", *, rollouts: int = 2, turns: int = 6) -> Estimate:
        """Estimate calls and tokens of a run; dollars only where the agent's price is known."""
        return _estimate(self, agent, rollouts, turns)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the plan as JSON; :func:`whilesim.load_plan` reads it."""
        write_whole(path, [f"{dumps(self.to_json(), indent=1)}\n".encode()])

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
            "diversity": dict(self.diversity),
            "balance": None if self.balance is None else dict(self.balance),
            "twins_wanted": self.twins_wanted,
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        return "\n".join(f"{name:<14}{text}" for name, text in _lines(self))

    __repr__ = __str__

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
    impossible = _impossible_pairs(axes, infeasible)
    met = {frozenset(((a, row[a]), (b, row[b]))) for row in rows for a, b in combinations(axes, 2) if a in row}
    feasible, reachable = 0, 0
    holes: list[Pair] = []
    for a, b in combinations(axes, 2):
        pairs: list[Pair] = [((a, x), (b, y)) for x in axes[a] for y in axes[b]]
        possible = [p for p in pairs if frozenset(p) not in impossible]
        missing = [p for p in possible if frozenset(p) not in met]
        feasible += len(possible)
        reachable += min(len(rows), len(possible))
        holes += missing
    return Coverage(feasible=feasible, covered=feasible - len(holes), reachable=reachable, holes=tuple(holes))


def _impossible_pairs(axes: Mapping[str, Sequence[str]], infeasible: Sequence[Pair]) -> set[frozenset[tuple[str, str]]]:
    """Return the pairs among combinations that cannot happen, and those that no value of a third axis can join."""
    times = Counter(
        (frozenset(pair), axis)
        for cells in infeasible
        for pair in combinations(cells, 2)
        for axis, _ in {*cells} - {*pair}
    )
    whole = {pair for (pair, axis), count in times.items() if count == len(axes[axis])}
    return whole | {frozenset(cells) for cells in infeasible if len(cells) == 2}


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
    return {**asdict(tool), "original": None, "examples": [list(e) for e in tool.examples]}


def _estimate(plan: Plan, agent: Any, rollouts: int, turns: int) -> Estimate:
    """Guess from text lengths: four characters a token; calls and growth as measured (bench_plan.py)."""
    if agent == "scripted":
        return Estimate(calls=0, tokens=0, usd=0.0)
    customer_calls = max(0, min(turns - 1, 3))
    agent_calls = 3 + customer_calls
    head = len(plan.system_prompt) + len(dumps([t.to_openai() for t in plan.tools]))
    briefs = [len(render_prompt("customer", card=card, done="")) for card in plan.cards[:20]]
    tokens_in = agent_calls * (head // 4 + 380) + customer_calls * (sum(briefs) // max(1, len(briefs)) // 4 + 90)
    tokens_out = agent_calls * 40 + customer_calls * 20
    runs = len(plan.cards) * rollouts
    price = _price(agent)
    usd = price.of(runs * tokens_in, runs * tokens_out) if price else None
    return Estimate(calls=runs * (agent_calls + customer_calls), tokens=runs * (tokens_in + tokens_out), usd=usd)


def _price(agent: Any) -> Price | None:
    """Return the agent's own price, or the listed one of a provider's model; no key is needed to ask."""
    if isinstance(agent, Model) and agent.price is not None:
        return Price(tokens_in=agent.price[0], tokens_out=agent.price[1])
    name = agent if isinstance(agent, str) else agent.name if isinstance(agent, Model) and not agent.base_url else ""
    return find_price(name.replace(":", "/", 1), name.partition(":")[2] or name) if name else None


def _lines(plan: Plan) -> list[tuple[str, str]]:
    """Return what a person should see of a plan, as (name, text) lines."""
    axes, coverage, found = plan.axes, plan.coverage, plan.diversity
    estimate = plan.estimate(None, rollouts=1)
    lines = [
        ("axes", " x ".join(f"{len(values)} {name}" for name, values in axes.items())),
        ("size", f"{plan.size:,} possible situations: each value of each axis with each of every other"),
        ("pairs", f"{coverage.feasible:,} can happen, {len(plan.covering.infeasible):,} cannot" + _some(plan)),
        ("bound", _bound(plan.covering)),
        (
            "chosen",
            f"{len(plan.cards):,} cards hold {coverage.covered:,} pairs ({coverage.fraction:.1%}); "
            f"so many could hold {coverage.reachable:,} at most",
        ),
        ("ends", ", ".join(f"{n} {end}" for end, n in sorted(plan.ends.items(), key=lambda e: (-e[1], e[0])))),
        *([("balance", _balance(plan))] if plan.balance else []),
        ("diversity", ", ".join(f"{name} {far:.3f}" for name, far in found.items() if far) + f" by {plan.embedder}"),
        ("estimate", f"{estimate.calls:,} model calls and {estimate.tokens:,} tokens for one rollout of each card"),
    ]
    if plan.twins_wanted:
        lines.append(("twins", f"{sum(c.twin_of is not None for c in plan.cards)} of {plan.twins_wanted} asked for"))
    lines += [("note", note) for note in plan.notes]
    lines += [(card.id, shorten(card.opening, 110)) for card in plan.cards[:10]]
    return lines


def _some(plan: Plan) -> str:
    """Name a few of the combinations that cannot happen."""
    known = plan.covering.infeasible
    named = [" with ".join(f"{axis} {value}" for axis, value in cells) for cells in known[:: len(known) // 3 + 1]]
    return (": " + "; ".join(named) + " ..." * (len(known) > len(named))) if named else ""


def _bound(covering: Covering) -> str:
    what = "pair" if covering.strength < 3 else "triple"
    told = f"{covering.bound:,} situations at least for every {what}; "
    if covering.proven_optimal:
        return f"{told}these {len(covering.rows):,} are proven optimal"
    return f"{told}{len(covering.rows):,} rows hold {covering.covered:,} of {covering.feasible:,}"


def _balance(plan: Plan) -> str:
    """Say which share was reached, and about how many situations would reach the one that was wished."""
    share = (plan.balance or {})["handoff_wanted"]
    cards = [card for card in plan.cards if card.twin_of is None]
    wanted = sum(plan.oracles[card.id].handoff_wanted is True for card in cards)
    told = f"{wanted} of {len(cards)} want a hand-off: {wanted / len(cards):.1%}, wished {share:.1%}"
    whole = max(1.0, plan.covering.bound / len(cards))
    few, many = share * len(cards) - wanted > 1, wanted - share * len(cards) > 1
    if few and share < 1:
        return f"{told}; about {ceil(whole * (len(cards) - wanted) / (1 - share)):,} situations would reach it"
    if many and share > 0:
        return f"{told}; about {ceil(whole * wanted / share):,} situations would reach it"
    return told + ("; no number of situations reaches it" if few or many else "")
