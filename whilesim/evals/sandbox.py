"""Sandbox: the mock world in the state of a ticket, in place of the CRM.

One inferred back-end serves all tickets. Each ticket gets a fresh copy, with the records that
its ``initial_state`` gives, and one for each id that its customer is known by.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from whilesim.cards.plan import WorldFactory
from whilesim.cards.planning import near
from whilesim.core.errors import InputError
from whilesim.core.seeds import derive
from whilesim.core.text import name_words
from whilesim.evals.tickets import Ticket
from whilesim.situations.axes import Situation
from whilesim.situations.policy import Policy
from whilesim.situations.tools import Tool, parse_tools
from whilesim.world.entities import infer_world
from whilesim.world.kinds import key_noun, kind_of_key
from whilesim.world.live import LiveWorld
from whilesim.world.mock import MockWorld, World
from whilesim.world.model import WorldModel
from whilesim.world.spec import WorldSpec

Records = dict[str, dict[str, dict[str, Any]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """What all tickets of a run share: tools, policy and the inferred world."""

    tools: tuple[Tool, ...]
    policy: Policy
    model: WorldModel | None = None
    factory: WorldFactory | None = None
    seed: int = 0
    given: bool = False
    """Whether the tools were given: what is read from tickets may not be all there are."""
    spare: dict[str, World] = field(default_factory=dict)
    """Ticket id to a world in which nothing was called."""

    def give_back(self, ticket: Ticket, world: World) -> None:
        """Keep a world in which nothing was called: another agent may have it, and need not wait for a new one."""
        if isinstance(world, MockWorld) and not world.log:
            self.spare[ticket.ticket_id] = world

    def world_for(self, ticket: Ticket) -> World:
        """Build the world that a ticket starts from."""
        if ticket.ticket_id in self.spare:
            return self.spare.pop(ticket.ticket_id)
        if self.factory is not None:
            return self.factory(ticket.initial_state, derive(self.seed, ticket.ticket_id))
        if self.model is None:
            return LiveWorld({})
        if ticket.cell:
            played = Situation(id=ticket.world_of, values=ticket.cell)
            return MockWorld(self.tools, self.policy, played, derive(ticket.seed, "world"), model=self.model)
        reads = [t.name for t in self.tools if t.effect != "write"]  # a write would make a record ready for itself
        world = MockWorld(self.tools, self.policy, {"tool": reads[0]} if reads else None, self.seed, model=self.model)
        _put(cast(Records, world.records), ticket, self.model)
        return world


def open_sandbox(tickets: Sequence[Ticket], tools: Any, policy: Policy, world: Any = None, *, seed: int = 0) -> Sandbox:
    """Infer the world of a suite.

    Args:
        tools: In any dialect; where there are none, the names that the tickets expect are read as tools.
        world: A spec, or a factory of the user's own.

    Raises:
        InputError: A ticket expects a tool, or holds records of a kind, that there is not; or it was made from a row,
            and no tools are given.
    """
    given = parse_tools(tools) if tools else ()
    if not given and not callable(world) and (made := next((t for t in tickets if t.cell), None)):
        msg = f"{made.name} was made from the row {made.source!r}, whose world is built from all the tools of the agent, and none are given. "
        raise InputError(msg + "Type tools=..., as for simulate; in a shell: --tools tools.json --policy policy.md")
    known = {t.name: t.parameters["properties"] for t in given}
    for ticket in tickets if given else ():
        for name in ticket.expected_tools:
            refuse_stranger(f"{ticket.name} expects the tool {name!r}, and there is no such tool", name, known)
            for argument in ticket.expected_arguments.get(name, ()) if known[name] else ():
                told = f"{ticket.name}: expected_arguments gives {name} {argument!r}, and it takes no such argument"
                refuse_stranger(told, argument, known[name])
    read = given or _tools_of(tickets)
    if (factory := world if callable(world) else None) or not read:
        return Sandbox(tools=read, policy=policy, factory=factory, seed=seed, given=bool(given))
    model = infer_world(read, policy, world if isinstance(world, WorldSpec) else None)
    for ticket in tickets:
        for name, found in ticket.initial_state.items():
            told, kind = f"{ticket.name}: initial_state holds {name!r}", _kind(name, model)
            records = found.values() if isinstance(found, Mapping) else found if isinstance(found, list) else None
            if records is not None and kind is None and given:
                refuse_stranger(f"{told}, and the world has no such kind", name, model.kinds)
            if kind is not None and not all(isinstance(record, Mapping) for record in records or ()):
                raise InputError(f'{told}, and not all of it are records. Type: {{"84920": {{"status": "shipped"}}}}')
            if kind is not None:
                _doubt_fields(told, records or (), model.kinds[kind].fields)
    return Sandbox(tools=read, policy=policy, model=model, seed=seed, given=bool(given))


def _doubt_fields(told: str, records: Collection[Mapping[str, Any]], known: Collection[str]) -> None:
    """Warn of a field that is nearly one of the world's; address_2 beside address is one of the user's own."""
    names = {str(name) for record in records for name in record}
    for name in sorted(names.difference(known)):
        if hint := near(name, set(known) - names, 0.83):
            why = f"{told}, and its field {name!r} is none that the tools speak of. {hint.strip()}"
            warnings.warn(why, stacklevel=5)


def refuse_stranger(told: str, name: str, known: Collection[str]) -> None:
    """Refuse a name that is none of those known, with the nearest of them."""
    if name not in known:
        raise InputError(f"{told}. {near(name, known)}There are: {', '.join(sorted(known))}.")


def _tools_of(tickets: Sequence[Ticket]) -> tuple[Tool, ...]:
    """Read the tools that tickets expect from their names, and their arguments from the ids that the tickets hold."""
    found: dict[str, dict[str, Any]] = {}
    for ticket in tickets:
        ids = {k: v for k, v in ticket.customer_context.items() if key_noun(k)[0]}
        for name in (*ticket.expected_tools, *ticket.expected_arguments):
            mine = {k: v for k, v in ids.items() if set(key_noun(k)[0].split("_")) <= set(name_words(name))}
            told = {**mine, **ticket.expected_arguments.get(name, {})}
            kinds = {k: {"type": "number" if isinstance(v, (int, float)) else "string"} for k, v in told.items()}
            found[name] = found.get(name, {}) | kinds
    made = [{"name": n, "parameters": {"type": "object", "properties": p}} for n, p in found.items()]
    return parse_tools(made) if made else ()


def _put(records: Records, ticket: Ticket, model: WorldModel) -> None:
    """Put a ticket's records into the world: those given, and one for each id in the context."""
    context = ticket.customer_context
    told: list[tuple[str, str, Mapping[str, Any]]] = []
    for name, found in ticket.initial_state.items():
        if (kind := _kind(name, model)) is not None and isinstance(found, Mapping):
            told += [(kind, str(key), dict(fields)) for key, fields in found.items()]
        elif kind is not None and isinstance(found, list):
            told += [(kind, str(fields.get(model.kinds[kind].key, n)), fields) for n, fields in enumerate(found)]
    there = {(kind, key) for kind, key, _ in told}
    for name, value in context.items():
        kind, many = kind_of_key(name, model.kinds)
        key = str(value).lstrip("#")
        if kind and not many and isinstance(value, (str, int)) and (kind, key) not in there:
            told.append((kind, key, {}))
    shared = {k: v for k, v in context.items() if not isinstance(v, (Mapping, list))}
    for kind, key, fields in told:
        record = _record(records, kind, key, model)
        own = {k for k in shared if (k in record or kind == model.party) and k != model.kinds[kind].key}
        record |= {k: v for k, v in shared.items() if k in own} | dict(fields)
        if model.kinds[kind].status not in fields:
            _make_ready(record, kind, ticket, model)


def _kind(name: str, model: WorldModel) -> str | None:
    return next((n for n in (name, name.removesuffix("s"), name.removesuffix("es")) if n in model.kinds), None)


def _record(records: Records, kind: str, key: str, model: WorldModel) -> dict[str, Any]:
    """Return the record of a key; where there is none, one like the others of its kind."""
    if key not in (mine := records.setdefault(kind, {})):
        like = {k: v for k, v in next(iter(mine.values()), {}).items() if k != "notes"}
        name = model.kinds[kind].key or f"{kind}_id"
        like[name] = int(key) if isinstance(like.get(name), int) and key.isdigit() else key
        mine[key] = like
    return mine[key]


def _make_ready(record: dict[str, Any], kind: str, ticket: Ticket, model: WorldModel) -> None:
    """Give a record a status in which the tools that the ticket expects can do their work."""
    status = model.kinds[kind].status
    options = model.kinds[kind].fields[status].options if status else ()
    deeds = [model.deeds[name] for name in reversed(ticket.expected_tools) if status and name in model.deeds]
    for deed in (d for d in deeds if d.kind == kind):
        if (fit := [o for o in deed.before or options if o != deed.after]) and record.get(status) not in fit:
            record[status] = fit[0]
