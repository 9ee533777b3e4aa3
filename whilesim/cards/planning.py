"""Planning: from a policy and tools to a plan.

Without a writer or a policy model nothing is sent anywhere, and a plan takes seconds.
"""

from __future__ import annotations

import inspect
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import ConfigDict, StrictInt, TypeAdapter

from whilesim.cards.cards import Card
from whilesim.cards.desk import Desk, choose_cards, draft_cards, with_chat
from whilesim.cards.plan import Plan, WorldFactory
from whilesim.cards.twins import find_twins
from whilesim.chat.loop import run
from whilesim.chat.models import resolve_model
from whilesim.core.errors import InputError
from whilesim.core.jsontext import first_fault, loads
from whilesim.situations.axes import Axis, Rule, Space, default_space
from whilesim.situations.covering import Covering, cover
from whilesim.situations.policy import Policy, extract_policy, name_tools, parse_policy
from whilesim.situations.tools import Tool, parse_tools
from whilesim.world.entities import infer_world
from whilesim.world.oracle import Oracle
from whilesim.world.spec import WorldSpec

T = TypeVar("T")
_NOTHING = "leaves nothing to play. Type a whole number from 1"


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

    A card is written from its own clause, tool and world, and chosen by what it says besides its
    clause: change one clause's text, and only its own cards change.

    Args:
        tools: The agent's tools, in any dialect that ``parse_tools`` reads.
        system_prompt: The policy: what the agent is told, word for word.
        situations: How many to choose from the covering; None takes the complete covering.
        strength: 2 lets every pair of values meet, 3 every triple.
        seed: Decides every draw; the same seed, policy and tools give the same plan.
        axes: ``{"channel": ["chat", "email"]}`` adds or replaces, ``{"stance": None}`` removes.
        forbid: Combinations that cannot happen, made with ``ws.forbid``.
        balance: ``{"handoff_wanted": 0.3}``: the share of situations that should want a hand-off; cells
            that no pair depends on and rows beyond the covering are turned that way.
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
    for rule in forbid:
        if not isinstance(rule, Rule):
            raise InputError(
                f"forbid holds {rule!r}, which is no rule. Type forbid=[ws.forbid('stance', lambda stance: ...)]."
            )
    if tools is None or system_prompt is None:
        raise InputError("a plan needs both files. Type: ws.plan(tools=TOOLS, system_prompt=POLICY)")
    seed = whole_number("seed", seed, -(2**63), "decides nothing. Type a whole number below 2**63, such as 0")
    if situations is not None:
        situations = whole_number("situations", situations, told=f"{_NOTHING}, or None for the complete covering")
    strength = whole_number(
        "strength", strength, 2, "is no strength: a covering meets pairs or triples. Type 2 or 3", 3
    )
    candidates = whole_number("candidates", candidates, told="leaves no card to choose. Type a number from 1")
    if not is_share(twins):
        raise InputError(f"twins={twins!r} is no share of the situations. Type a number from 0 to 1.")
    spec = world if isinstance(world, WorldSpec) else None
    said = {name: told["effect"] for name, told in ((spec and spec.tools) or {}).items() if "effect" in told}
    read = parse_tools(tools)
    read = parse_tools(read, effects={t.name: said[t.name] for t in read if t.name in said})
    if _are_these(system_prompt, read):
        raise InputError(
            "system_prompt is the list of tools once more. Give the policy: the text that the agent is told."
        )
    policy = name_tools(_read_policy(system_prompt, policy_model), [t.name for t in read])
    theirs = parse_tools(customer_tools) if customer_tools else ()
    factory = world if callable(world) else None
    model = None if factory else infer_world(read, policy, spec, customer_tools=theirs)
    rules = _fitting(model.rules(), axes) if model else ()
    space = default_space([c.id for c in policy.clauses], read, axes=axes, forbid=(*forbid, *rules))
    desk = Desk(policy=policy, tools=read, customer_tools=theirs, model=model, factory=factory, seed=seed)
    wish = desk.wish(_share(balance)) if balance is not None else None
    covering = cover(space.axes, strength, forbid=space.forbidden, fixed=fixed, rows=situations, seed=seed, wish=wish)
    drafts = draft_cards(desk, space, [dict(r) for r in covering.rows][len(fixed) :], candidates, writer)
    cards, oracles, name, diversity = choose_cards(desk, drafts, embedder)
    wanted = round(twins * len(cards))
    told = (*(n for t in read for n in t.notes), *(model.notes() if model else ()))
    paired = find_twins(cards, oracles, wanted, look=desk.look, allowed=_allowed(space.forbidden), seed=seed)
    return Plan(
        system_prompt=system_prompt, policy=policy, tools=read, customer_tools=theirs, space=space, covering=covering,
        cards=(*cards, *(c for c, _ in paired)), oracles={**oracles, **{c.id: o for c, o in paired}}, seed=seed,
        world=model, spec=spec, factory=factory, embedder=name, diversity=diversity,
        balance=None if balance is None else {name: float(share) for name, share in balance.items()},
        twins_wanted=wanted, notes=(*policy.notes, *space.notes, *covering.notes, *told, *drafts.notes),
    )  # fmt: skip


def write_wave(first: Plan, rows: Sequence[Mapping[str, str]], wave: int) -> Plan:
    """Write cards for further rows of a plan; their ids say which wave they belong to."""
    desk = Desk(
        policy=first.policy, tools=first.tools, customer_tools=first.customer_tools, model=first.world,
        factory=first.factory, seed=first.seed,
    )  # fmt: skip
    drafts = draft_cards(desk, first.space, rows, 4, None, prefix=f"w{wave}s")
    cards, oracles, _, _ = choose_cards(desk, drafts, "hashed")
    return replace(first, cards=cards, oracles=oracles)


def _read_policy(text: str, model: Any) -> Policy:
    if model is None:
        return parse_policy(text)
    if not hasattr(model, "reply"):  # an answer quotes all that it was asked about: 1,024 tokens would cut it short
        found = resolve_model(model)
        model = replace(found, max_tokens=found.max_tokens and max(found.max_tokens, 4096))
    return run(with_chat(model, lambda chat: extract_policy(text, chat)))


def _are_these(text: Any, tools: tuple[Tool, ...]) -> bool:
    try:
        return isinstance(text, str) and text.lstrip().startswith("[") and parse_tools(text) == tools
    except InputError:
        return False


def _share(balance: Mapping[str, float]) -> float:
    share = balance.get("handoff_wanted", -1.0) if isinstance(balance, Mapping) else -1.0
    if not is_share(share) or len(balance) != 1:
        wanted = "Type balance={'handoff_wanted': 0.3}, a share from 0 to 1."
        raise InputError(f"balance={balance!r} cannot be followed. {wanted}")
    return float(share)


def _allowed(rules: Sequence[Rule]) -> Callable[[Mapping[str, str]], bool]:
    return lambda row: not any(r.forbids(*(row[a] for a in r.axes)) for r in rules)


def _fitting(rules: Sequence[Rule], axes: Mapping[str, Sequence[str] | None] | None) -> list[Rule]:
    given = axes.items() if isinstance(axes, Mapping) else ()  # anything else is refused where axes are read
    return [r for r in rules if not {name for name, values in given if values is None} & set(r.axes)]


def is_share(value: Any) -> bool:
    """Say whether a value is a number from 0 to 1, of Python's or of numpy's; True and False are none."""
    return isinstance(value, Real) and not isinstance(value, bool) and not value < 0 and bool(value <= 1)


def whole_number(name: str, value: Any, least: int = 1, told: str = _NOTHING, most: int = 2**63 - 1) -> int:
    """Return a whole number from ``least`` to ``most``, be it Python's or numpy's; True and False are none.

    Raises:
        InputError: It is none; the message is the argument with its value, and ``told``.
    """
    found = int(value) if isinstance(value, Integral) and not isinstance(value, bool) else None
    if found is None or not least <= found <= most:
        raise InputError(f"{name}={value!r:.60} {told}.")
    return found


def near(name: str, known: Iterable[str], least: float = 0.6) -> str:
    """Ask whether the nearest of what there is was meant; empty where nothing is near, 1 being the same."""
    found = get_close_matches(name, list(known), 1, least)
    return f"Did you mean {found[0]!r}? " if found else ""


def refuse_unknown(door: str, given: Mapping[str, Any], function: Callable[..., Any]) -> None:
    """Refuse keywords that a door does not have, and name the nearest ones.

    Raises:
        InputError: ``given`` is not empty.
    """
    known = [n for n, p in inspect.signature(function).parameters.items() if p.kind is not p.VAR_KEYWORD]
    for name in given:
        hint = near(name, known) or f"It has: {', '.join(known)}."
        raise InputError(f"{door}() has no option {name!r}. {hint.strip()}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFile:
    """A plan as it stands in its file: what ``Plan.to_json`` returns."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # what it holds inherits it: a misspelt field is no missing one

    version: Literal[1]
    seed: StrictInt  # a text or a true would be read as a number: as another seed than the file's
    system_prompt: str
    policy: Policy
    tools: tuple[Tool, ...]
    customer_tools: tuple[Tool, ...]
    axes: dict[str, tuple[str, ...]]
    covering: Covering
    cards: tuple[Card, ...]
    oracles: dict[str, Oracle]
    world: WorldSpec | None
    own_world: bool
    embedder: str
    diversity: dict[str, float | None]
    balance: dict[str, float] | None
    twins_wanted: StrictInt
    notes: tuple[str, ...]


def load_plan(path: str | os.PathLike[str], *, world: WorldFactory | None = None) -> Plan:
    """Read a plan that ``plan.save`` wrote.

    Args:
        world: The factory, where the plan was made with a world of the user's own.

    Raises:
        InputError: The file is no plan, or lacks the world it was made with.
    """
    try:
        found = TypeAdapter(PlanFile).validate_python(loads(Path(path).read_bytes()))
        _check_fit(found)
    except ValueError as error:
        wrong = first_fault(error)
        raise InputError(f"{os.fspath(path)} is no plan ({wrong}). Type: ws.plan(...).save(path)") from error
    if found.own_world and world is None:
        raise InputError("this plan was made with a world of your own. Type load_plan(path, world=factory).")
    names = [field.name for field in fields(Plan) if hasattr(found, field.name) and field.name != "world"]
    kept = {name: getattr(found, name) for name in names}
    space = Space(axes=tuple(Axis(*axis) for axis in found.axes.items()))
    model = None if world else infer_world(found.tools, found.policy, found.world, customer_tools=found.customer_tools)
    return Plan(**kept, space=space, world=model, spec=found.world, factory=world)


def _check_fit(found: PlanFile) -> None:
    """Refuse rows and cards that do not stand on the axes, cards that no oracle stands beside, and what stands there twice."""
    if found.system_prompt != found.policy.text:
        raise ValueError("its system_prompt is another text than that of its policy")
    if twice := [name for name, count in Counter(card.id for card in found.cards).items() if count > 1]:
        raise ValueError(f"the card {twice[0]!r} stands there twice")
    known = {*found.axes}
    named = [cell for cells in found.covering.infeasible for cell in cells]
    for values in (*found.covering.rows, *(card.situation.values for card in found.cards)):
        if {*values} != known:
            raise ValueError(f"a row has the axes {sorted(values)}, the plan {sorted(known)}")
        named += values.items()
    for axis, value in dict.fromkeys(named):
        if value not in found.axes.get(axis, ()):
            raise ValueError(f"the axis {axis!r} has no value {value!r}")
    alone = next((card.id for card in found.cards if card.id not in found.oracles), None)
    if alone is not None:
        raise ValueError(f"the card {alone!r} has no oracle")
