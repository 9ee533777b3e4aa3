"""Planning: from a policy and tools to a plan.

Without a writer or a policy model nothing is sent anywhere, and a plan takes seconds.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

from whilesim.cards.cards import Card, write_card
from whilesim.cards.embeddings import embed
from whilesim.cards.needs import Phrasebook
from whilesim.cards.personas import Persona
from whilesim.cards.plan import Plan, WorldFactory
from whilesim.cards.selection import choose_candidates
from whilesim.cards.twins import find_twins
from whilesim.cards.writer import Request, phrase_cards
from whilesim.chat.endpoint import Endpoint
from whilesim.chat.loop import run
from whilesim.chat.models import Chat
from whilesim.core.errors import InputError
from whilesim.core.jsontext import loads
from whilesim.core.seeds import derive
from whilesim.situations.axes import Axis, Rule, Situation, Space, default_space
from whilesim.situations.covering import Covering, cover
from whilesim.situations.policy import Clause, Policy, extract_policy, name_tools, parse_policy
from whilesim.situations.tools import Tool, parse_tools
from whilesim.world.entities import infer_world
from whilesim.world.mock import Focus, MockWorld
from whilesim.world.model import WorldModel
from whilesim.world.oracle import CallRule, Oracle, build_oracle
from whilesim.world.spec import WorldSpec

T = TypeVar("T")


def plan(
    *,
    tools: Any = None,
    system_prompt: str | None = None,
    situations: int | None = 150,
    strength: int = 2,
    seed: int = 0,
    axes: Mapping[str, Sequence[str] | None] | None = None,
    forbid: Sequence[Rule] = (),
    balance: Mapping[str, float] | None = None,
    world: WorldSpec | WorldFactory | None = None,
    candidates: int = 4,
    embedder: Any = "auto",
    twins: float = 0.0,
    fixed: Sequence[Mapping[str, str]] = (),
    writer: Any = None,
    policy_model: Any = None,
    customer_tools: Any = None,
    **misspelt: Any,
) -> Plan:
    """Choose the situations of a run and write a card for each.

    Args:
        tools: The agent's tools, in any dialect that ``parse_tools`` reads.
        system_prompt: The policy: what the agent is told, word for word.
        situations: How many to choose from the covering; None takes the complete covering.
        strength: 2 lets every pair of values meet, 3 every triple.
        seed: Decides every draw; the same seed, policy and tools give the same plan.
        axes: ``{"channel": ["chat", "email"]}`` adds or replaces, ``{"stance": None}`` removes.
        forbid: Combinations that cannot happen, made with ``ws.forbid``.
        balance: ``{"handoff_wanted": 0.3}``: share that free cells and further rows lean to.
        world: Corrections of the inferred world, or a factory (situation, seed) -> world.
        candidates: Cards written for each situation, of which one is chosen.
        embedder: ``"auto"``, a sentence-transformers name, or a callable from texts to vectors.
        twins: Share of the situations, 0 to 1, that get a twin on top, where one exists.
        fixed: Situations that are there already and count first.
        writer: A model that phrases the cards; templates unless given.
        policy_model: A model that reads the policy's clauses, each checked against the text.
        customer_tools: Tools that the customer can use on the same world.

    Raises:
        InputError: The policy, the tools or an option cannot be used.
    """
    refuse_unknown("plan", misspelt, plan)
    if tools is None or system_prompt is None:
        raise InputError("a plan needs both files. Type: ws.plan(tools=TOOLS, system_prompt=POLICY)")
    _check_numbers(situations, candidates, twins)
    read = parse_tools(tools)
    policy = name_tools(_read_policy(system_prompt, policy_model), [t.name for t in read])
    theirs = parse_tools(customer_tools) if customer_tools else ()
    spec = world if isinstance(world, WorldSpec) else None
    factory = world if callable(world) else None
    model = None if factory else infer_world(read, policy, spec, customer_tools=theirs)
    space = default_space(
        [c.id for c in policy.clauses],
        read,
        axes=axes,
        forbid=(*forbid, *(_fitting(model.rules(), axes) if model else ())),
    )
    desk = _Desk(policy=policy, tools=read, customer_tools=theirs, model=model, factory=factory, seed=seed)
    prefer = _leaning(balance, desk) if balance else None
    covering = cover(
        space.axes, strength, forbid=space.forbidden, fixed=fixed, rows=situations, seed=seed, prefer=prefer
    )
    rows = [dict(r) for r in covering.rows][len(fixed) :]
    drafts, focuses, told = _write_cards(desk, space, rows, candidates, writer)
    cards, oracles, name = _choose_cards(desk, drafts, focuses, embedder)
    wanted = round(twins * len(cards))
    paired = find_twins(cards, oracles, wanted, look=desk.look, allowed=_allowed(space.forbidden), seed=seed)
    return Plan(
        system_prompt=system_prompt,
        policy=policy,
        tools=read,
        customer_tools=theirs,
        space=space,
        covering=covering,
        cards=(*cards, *(c for c, _ in paired)),
        oracles={**oracles, **{c.id: o for c, o in paired}},
        seed=seed,
        world=model,
        spec=spec,
        factory=factory,
        embedder=name,
        twins_wanted=wanted,
        notes=(*policy.notes, *space.notes, *(n for t in read for n in t.notes), *told),
    )


def write_wave(first: Plan, rows: Sequence[Mapping[str, str]], wave: int, candidates: int = 4) -> Plan:
    """Write cards for further rows of a plan; their ids say which wave they belong to."""
    desk = _Desk(
        policy=first.policy,
        tools=first.tools,
        customer_tools=first.customer_tools,
        model=first.world,
        factory=first.factory,
        seed=first.seed,
    )
    drafts, focuses, _ = _write_cards(desk, first.space, rows, candidates, None, prefix=f"w{wave}s")
    cards, oracles, _ = _choose_cards(desk, drafts, focuses, "hashed")
    return replace(first, cards=cards, oracles=oracles)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Desk:
    """What a card is written from."""

    policy: Policy
    tools: tuple[Tool, ...]
    customer_tools: tuple[Tool, ...]
    model: WorldModel | None
    factory: WorldFactory | None
    seed: int

    def tool(self, situation: Situation) -> Tool:
        wanted = situation.values.get("tool")
        return next((t for t in self.tools if t.name == wanted), self.tools[0])

    def clause(self, situation: Situation) -> Clause | None:
        wanted = situation.values.get("clause")
        return next((c for c in self.policy.clauses if c.id == wanted), None)

    def focus(self, situation: Situation) -> Focus:
        seed = derive(self.seed, "world")
        if self.factory is None:
            return MockWorld(self.tools, self.policy, situation, seed, model=self.model).focus
        world: Any = self.factory(situation.values, derive(seed, situation.id))
        found = getattr(world, "focus", None)
        found = found(situation.values) if callable(found) else found
        if isinstance(found, Focus):
            return found
        return Focus(tool=self.tool(situation).name, arguments={}, facts=dict(found or {}))

    def oracle(self, situation: Situation, focus: Focus, card: Card | None) -> Oracle:
        return build_oracle(
            situation.values,
            clause=self.clause(situation),
            tools=self.tools,
            focus=focus,
            applies=card.clause_applies if card else "unknown",
            model=self.model,
        )

    def look(self, situation: Situation, card: Card | None = None) -> tuple[Focus, Oracle]:
        focus = self.focus(situation)
        return focus, self.oracle(situation, focus, card)


def _read_policy(text: str, model: Any) -> Policy:
    if model is None:
        return parse_policy(text)
    return run(_with_chat(model, lambda chat: extract_policy(text, chat)))


async def _with_chat(model: Any, use: Callable[[Chat], Awaitable[T]]) -> T:
    """Open a model for one use; anything with a ``reply`` method is used as it is."""
    if hasattr(model, "reply"):
        return await use(model)
    chat = Endpoint(model)
    try:
        return await use(chat)
    finally:
        await chat.close()


def _write_cards(
    desk: _Desk, space: Space, rows: Sequence[Mapping[str, str]], candidates: int, writer: Any, prefix: str = "s"
) -> tuple[list[tuple[Card, ...]], list[Focus], tuple[str, ...]]:
    """Write several cards for every row; also return their focuses, and what should be told."""
    values = [v for axis in space.axes if axis.name not in ("clause", "tool") for v in axis.values]
    book = Phrasebook(desk.policy, desk.tools, values)
    requests: list[Request] = []
    focuses: list[Focus] = []
    for number, row in enumerate(rows):
        situation = Situation(id=f"{prefix}{number + 1:04d}", values=row)
        focus, clause, tool = desk.focus(situation), desk.clause(situation), desk.tool(situation)
        cards = [
            write_card(situation, clause, tool, focus, book, seed=desk.seed, candidate=n) for n in range(candidates)
        ]
        requests.append(Request(cards=tuple(cards), clause=clause, tool=tool))
        focuses.append(focus)
    if writer is None:
        return [r.cards for r in requests], focuses, ()
    written, kept = run(_with_chat(writer, lambda chat: phrase_cards(requests, chat, book)))
    note = f"{kept} of {len(rows) * candidates} cards keep the template's words: the writer's could not be used"
    return written, focuses, (note,) if kept else ()


def _choose_cards(
    desk: _Desk, drafts: Sequence[tuple[Card, ...]], focuses: Sequence[Focus], embedder: Any
) -> tuple[tuple[Card, ...], dict[str, Oracle], str]:
    """Keep one card of every row, so that the kept ones are far apart."""
    flat = [card for cards in drafts for card in cards]
    groups = [number for number, cards in enumerate(drafts) for _ in cards]
    vectors = embed([f"{c.opening} {c.second}" for c in flat], embedder)
    chosen = tuple(flat[int(i)] for i in choose_candidates(vectors.matrix, groups))
    oracles = {c.id: desk.oracle(c.situation, f, c) for c, f in zip(chosen, focuses, strict=True)}
    return chosen, oracles, vectors.name


def _leaning(balance: Mapping[str, float], desk: _Desk) -> Callable[[Mapping[str, str]], float]:
    """Say how well a row serves the wish: rows that want a hand-off where the share asks for them."""
    unknown = set(balance) - {"handoff_wanted"}
    share = balance.get("handoff_wanted", 0.0)
    if unknown or not 0 <= share <= 1:
        msg = f"balance={dict(balance)!r} cannot be followed. Type balance={{'handoff_wanted': 0.3}}, 0 to 1."
        raise InputError(msg)
    kinds = {c.id: c.kind for c in desk.policy.clauses}

    def wants_handoff(row: Mapping[str, str]) -> bool:
        return (
            row.get("tool_condition") in ("permission_denied", "malformed")
            or row.get("world_state") in ("missing",)
            or kinds.get(row.get("clause", "")) == "handoff"
        )

    return lambda row: share if wants_handoff(row) else 1.0 - share


def _allowed(rules: Sequence[Rule]) -> Callable[[Mapping[str, str]], bool]:
    return lambda row: not any(r.forbids(*(row[a] for a in r.axes)) for r in rules)


def _fitting(rules: Sequence[Rule], axes: Mapping[str, Sequence[str] | None] | None) -> list[Rule]:
    removed = {name for name, values in (axes or {}).items() if values is None}
    return [r for r in rules if not removed & set(r.axes)]


def _check_numbers(situations: int | None, candidates: int, twins: float) -> None:
    if situations is not None and (isinstance(situations, bool) or situations < 1):
        msg = f"situations={situations!r} leaves nothing to play. Type a number from 1, or None for the complete covering."
        raise InputError(msg)
    if candidates < 1:
        raise InputError(f"candidates={candidates!r} leaves no card to choose. Type a number from 1.")
    if not 0 <= twins <= 1:
        raise InputError(f"twins={twins!r} is a share of the situations. Type a number from 0 to 1.")


def refuse_unknown(door: str, given: Mapping[str, Any], function: Callable[..., Any]) -> None:
    """Refuse keywords that a door does not have, and name the nearest ones.

    Raises:
        InputError: ``given`` is not empty.
    """
    code = function.__code__
    known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    for name in given:
        near = get_close_matches(name, known, n=1)
        hint = f"Did you mean {near[0]!r}?" if near else f"It has: {', '.join(known)}."
        raise InputError(f"{door}() has no option {name!r}. {hint}")


def load_plan(path: str | os.PathLike[str], *, world: WorldFactory | None = None) -> Plan:
    """Read a plan that ``plan.save`` wrote.

    Args:
        world: The factory, where the plan was made with a world of the user's own.

    Raises:
        InputError: The file is no plan, or lacks the world it was made with.
    """
    try:
        found = loads(Path(path).read_text(encoding="utf-8"))
        return read_plan(found, world=world)
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        msg = f"{os.fspath(path)} is no plan ({type(error).__name__}: {error}). Type: ws.plan(...).save(path)"
        raise InputError(msg) from error


def read_plan(found: Mapping[str, Any], *, world: WorldFactory | None = None) -> Plan:
    """Read a plan from its JSON object."""
    if found["own_world"] and world is None:
        raise InputError("this plan was made with a world of your own. Type load_plan(path, world=factory).")
    policy = Policy(
        text=found["policy"]["text"],
        clauses=tuple(
            Clause(**{**c, "tools": tuple(c["tools"]), "span": tuple(c["span"])}) for c in found["policy"]["clauses"]
        ),
        language=found["policy"]["language"],
        notes=tuple(found["policy"]["notes"]),
    )
    tools = tuple(_read_tool(t) for t in found["tools"])
    theirs = tuple(_read_tool(t) for t in found["customer_tools"])
    spec = WorldSpec(**found["world"]) if found["world"] else None
    return Plan(
        system_prompt=found["system_prompt"],
        policy=policy,
        tools=tools,
        customer_tools=theirs,
        space=Space(axes=tuple(Axis(n, tuple(v)) for n, v in found["axes"].items())),
        covering=_read_covering(found["covering"]),
        cards=tuple(_read_card(c) for c in found["cards"]),
        oracles={i: _read_oracle(o) for i, o in found["oracles"].items()},
        seed=found["seed"],
        world=None if world else infer_world(tools, policy, spec, customer_tools=theirs),
        spec=spec,
        factory=world,
        embedder=found["embedder"],
        twins_wanted=found["twins_wanted"],
        notes=tuple(found["notes"]),
    )


def _read_tool(found: Mapping[str, Any]) -> Tool:
    tuples = {k: tuple(found[k]) for k in ("id_arguments", "notes")}
    return Tool(**{**found, **tuples, "examples": tuple((a, r) for a, r in found["examples"])})


def _read_card(found: Mapping[str, Any]) -> Card:
    situation = Situation(**found["situation"])
    return Card(**{**found, "situation": situation, "persona": Persona(**found["persona"])})


def _read_oracle(found: Mapping[str, Any]) -> Oracle:
    rules = {k: tuple(CallRule(**r) for r in found[k]) for k in ("must_call", "must_not_call")}
    others = {k: tuple(found[k]) for k in ("may_call", "must_not_claim", "ends", "open")}
    return Oracle(**{**found, **rules, **others})


def _read_covering(found: Mapping[str, Any]) -> Covering:
    pairs = tuple(tuple((str(axis), str(value)) for axis, value in pair) for pair in found["infeasible"])
    return replace(Covering(**{**found, "rows": tuple(found["rows"])}), infeasible=pairs)
