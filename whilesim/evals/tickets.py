"""Tickets: golden cases of support work, each with what a right agent does.

They come from a JSONL or CSV file, a list, a dataset on the Hub, the rows of a simulation
(their oracle says what is right) or the traces of a run (a person then says what is right).
"""

from __future__ import annotations

import csv
import logging
import os
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict

from whilesim.cards.planning import near
from whilesim.core.errors import InputError
from whilesim.core.jsontext import dumps, loads, read_lines, write_lines
from whilesim.core.text import digest, shorten
from whilesim.evals.publish import push_table, read_table
from whilesim.evals.traces import AgentTrace
from whilesim.grading.rubric import Words, checked
from whilesim.keeping.hub import REPO
from whilesim.keeping.rows import Row
from whilesim.keeping.simulation import Simulation
from whilesim.world.oracle import Oracle

log = logging.getLogger(__name__)


def _many(value: Any) -> Any:
    return [v.strip() for v in re.split(r"[;,]", value) if v.strip()] if isinstance(value, str) else value


Names = Annotated[tuple[str, ...], BeforeValidator(_many)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """One case: what the customer says, what is true of them, and what a right agent does."""

    ticket_id: Words
    user_message: Words
    customer_context: Mapping[str, Any] = field(default_factory=dict)
    """What the agent is told of the customer; ids in it are records of the mock world."""
    expected_tools: Names = ()
    """In the order in which they should be called."""
    must_not_do: Annotated[tuple[str | Mapping[str, Any], ...], BeforeValidator(_many)] = ()
    """Names of rules, or rules (:mod:`whilesim.evals.rules`)."""
    expected_final_state: Mapping[str, Any] = field(default_factory=dict)
    """``{"order_status": "cancelled"}``, or records: ``{"order": {"84920": {"status": "cancelled"}}}``."""
    expected_arguments: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Tool to arguments that matter; an expected call with others does not count."""
    handoff: bool | None = None
    """Whether the customer should reach a person; None: decided by ``expected_tools``."""
    follow_ups: Annotated[tuple[str, ...], BeforeValidator(lambda v: [v] if isinstance(v, str) else v)] = ()
    """What the customer says next, whatever the agent answers."""
    persona: str = ""
    """How the customer is; a customer player then speaks for them. With ``goal``, what they want."""
    goal: str = ""
    second: str = ""
    """A second request, which the customer player makes when the first is settled."""
    tags: Names = ()
    initial_state: Mapping[str, Any] = field(default_factory=dict)
    """Records of the mock world: kind to id to fields, or kind to a list of records."""
    reference: str = ""
    """A good answer, for the judge."""
    knowledge: str = ""
    """What the agent's words must be grounded in, for the judge."""
    source: str = ""
    """Id of the row or trace that the ticket was made from."""
    cell: Mapping[str, str] = field(default_factory=dict)
    """Axis values of that row's situation; the same world is built again."""
    world_of: str = ""
    """Id of the situation whose world it is: of a twin, the one that it was flipped from."""
    seed: int = 0
    oracle: Mapping[str, Any] | None = None

    @property
    def name(self) -> str:
        """What messages call it."""
        return f"ticket {self.ticket_id!r}"


class _Oracle(Oracle):
    """An oracle as people write it, where a misspelt field would ask for nothing."""

    __slots__ = ()
    __pydantic_config__ = ConfigDict(extra="forbid")


_KNOWN = tuple(f.name for f in fields(Ticket))
_TWENTY = "Type: whilesim eval --init, for twenty to begin with."
_OF_RUN = "Type ws.load_tickets(ws.load(RUN).kept).save(FILE), for tickets of a run."
_TEXTS = {f.name for f in fields(Ticket) if f.type in ("str", "Words")}


class Tickets(Sequence[Ticket]):
    """Golden tickets, each id once."""

    def __init__(self, tickets: Iterable[Ticket]) -> None:
        self._tickets = tuple(tickets)

    def __getitem__(self, index: Any) -> Any:
        found = self._tickets[index]
        return Tickets(found) if isinstance(index, slice) else found

    def __len__(self) -> int:
        return len(self._tickets)

    @property
    def digest(self) -> str:
        """A digest of all that the tickets say."""
        return digest(dumps([asdict(t) for t in self]))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tickets as JSONL, fields that say nothing left out."""
        told = map(asdict, self)
        write_lines(path, ({k: v for k, v in t.items() if v is False or v not in ("", (), {}, None, 0)} for t in told))

    def push_to_hub(self, repo: str, *, private: bool = True, split: str = "test") -> str:
        """Publish the tickets, and return the revision: ``load_tickets("owner/name@revision")`` reads it again."""
        return push_table([asdict(t) for t in self], repo, split=split, private=private)

    def keep_out(self, data: Simulation) -> Simulation:
        """Return the rows to train on: without those that a ticket was made from, and those of the same cell."""
        sources = {t.source for t in self}
        cells = [t.cell for t in self if t.cell]
        return data.filter(lambda r: not {r.id, r.card_id} & sources and r.situation not in cells)


def load_tickets(source: Any, *, split: str = "test") -> Tickets:
    """Read tickets, all checked before any is played.

    Args:
        source: A path (JSONL, CSV, a JSON list), a list of mappings or tickets, ``"owner/name"`` of a
            dataset (``@revision`` behind it where one is meant), a simulation, whose rows then
            become tickets (one a card, where its oracle asks for something: how many were left out,
            and why, is logged), or traces of an evaluation.
        split: Of a dataset.

    Raises:
        InputError: Tickets that cannot be read, each with its line; there are none; or two
            have one id.
    """
    if isinstance(source, Tickets):
        return source
    if source is None:
        raise InputError(f"no tickets were given. Type the path of a file, or owner/name of a dataset. {_TWENTY}")
    where = "tickets"
    if isinstance(source, Simulation):
        values: Iterable[tuple[str, Any]] = [(f"row {t.source!r}", t) for t in _of_rows(source)]
    elif isinstance(source, (str, os.PathLike)):
        where, path = os.fspath(source), Path(source)
        is_file = path.exists() or path.suffix in (".jsonl", ".json", ".csv")
        values = _of_hub(where, split) if not is_file and REPO.fullmatch(where.partition("@")[0]) else _of_file(path)
    else:
        values = ((f"ticket {i}", v) for i, v in enumerate(source if isinstance(source, Iterable) else [source], 1))
    found, faults, strange = dict[str, tuple[str, Ticket]](), list[str](), dict[str, list[str]]()
    for place, value in values:
        if isinstance(value, Mapping) and "messages" in value and "ticket_id" not in value:
            raise InputError(f"{where}: {place} is a row to train on, and no ticket. {_OF_RUN}")
        try:
            ticket = _read(value, place, strange)
        except InputError as error:
            faults.append(str(error))
            continue
        first, _ = found.setdefault(ticket.ticket_id, (place, ticket))
        if first != place:
            faults.append(f"{place} has the id {ticket.ticket_id!r}, which {first} has already.")
    if faults:
        more = f"\n  and {len(faults) - 10} more" if len(faults) > 10 else ""
        told = "\n  ".join(faults[:10])
        raise InputError(f"{where}: {len(faults)} of the tickets cannot be used, mend them:\n  {told}{more}")
    if not found:
        raise InputError(f"{where}: there is no ticket in it. {_TWENTY}")
    for name, places in strange.items():
        more = f" and {len(places) - 1} more" if len(places) > 1 else ""
        told = f"{places[0]}{more}: the field {name!r} is unknown and was left out; the fields are {', '.join(_KNOWN[:6])} ..."
        warnings.warn(told, stacklevel=4)
    return Tickets(ticket for _, ticket in found.values())


def _read(value: Any, place: str, strange: dict[str, list[str]]) -> Ticket:
    ticket = value if isinstance(value, Ticket) else _of_fields(value, place, strange)
    if ticket.oracle is not None:
        checked(_Oracle, ticket.oracle, f"{place}: the oracle's field ")
    return ticket


def _of_fields(value: Any, place: str, strange: dict[str, list[str]]) -> Ticket:
    if isinstance(value, Mapping) and {"case_id", "turns"} <= value.keys():  # a line of traces.jsonl
        value = checked(AgentTrace, value, f"{place}: ")
    value = _of_trace(value) if hasattr(value, "case_id") else value
    if not isinstance(value, Mapping):
        raise InputError(f"{place} is {type(value).__name__}, and must be a mapping with ticket_id and user_message.")
    for name in (name for name in value if name not in _KNOWN):
        if hint := near(str(name), _KNOWN, 0.84):  # so near that it is no column of the user's own
            raise InputError(f"{place}: the field {name!r} is unknown. {hint}")
        strange.setdefault(name, []).append(place)
    known = {k: value[k] for k in _KNOWN if value.get(k) not in (None, [])}  # [] is an empty mapping, too
    for name in ("ticket_id", "user_message"):
        if name not in known:
            raise InputError(f'{place} has no {name!r}. Type: {{"ticket_id": "CS-001", "user_message": "..."}}')
    ticket = checked(Ticket, {**known, "ticket_id": str(known["ticket_id"])}, f"{place}: ")
    for tool in (name for name in ticket.expected_arguments if name not in ticket.expected_tools):
        told = f"{place}: expected_arguments names the tool {tool!r}, and expected_tools does not, so nothing would look at them."
        raise InputError(f"{told} {near(tool, ticket.expected_tools)}Add it there.")
    return ticket


def _of_file(path: Path) -> Iterator[tuple[str, Any]]:
    if not path.is_file():
        raise InputError(f"there is no file {os.fspath(path)!r} of tickets. {_OF_RUN if path.is_dir() else _TWENTY}")
    if path.suffix == ".csv":
        try:
            yield from _of_csv(path)
        except (UnicodeDecodeError, csv.Error) as error:
            raise InputError(f"{os.fspath(path)} is no CSV file in UTF-8 ({error}). Save it as one.") from error
    elif path.suffix == ".json":
        if not isinstance(found := read_json(path, os.fspath(path), "Write one ticket a line, as .jsonl."), list):
            raise InputError(f"{os.fspath(path)} holds {shorten(repr(found))}, and must hold a list of tickets.")
        yield from ((f"ticket {i}", v) for i, v in enumerate(found, start=1))
    else:
        yield from ((f"line {number}", value) for number, value in read_lines(path))


def read_json(path: str | os.PathLike[str], where: str, typed: str) -> Any:
    """Read a JSON file.

    Raises:
        InputError: It cannot be; the message opens with ``where`` and ends with ``typed``.
    """
    try:
        return loads(Path(path).read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        raise InputError(f"{where} cannot be read: {error}. {typed}") from error


def _of_csv(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield rows; a cell that starts like JSON is JSON where a text is not asked for, and an empty cell says nothing."""
    with path.open(encoding="utf-8-sig", newline="") as lines:
        reader = csv.reader(lines)
        if (head := next(reader, [])) and not {"ticket_id", "user_message"} <= set(head):
            names = f"{path.name}, line 1 names the columns {', '.join(head)}"
            raise InputError(f"{names}: ticket_id and user_message must be there.")
        for cells in reader:
            place = f"line {reader.line_num}"
            if not any(cell.strip() for cell in cells):
                warnings.warn(f"{path.name}, {place} is empty and was left out.", stacklevel=5)
                continue
            if len(cells) > len(head):
                msg = f"{path.name}, {place} has {len(cells)} cells, and there are {len(head)} columns. Quote cells with commas."
                raise InputError(msg)
            told = {n: c for n, c in zip(head, cells, strict=False) if c.strip()}
            yield place, {n: c if n in _TEXTS else _cell(c, f"{place}, column {n!r}") for n, c in told.items()}


def _cell(text: str, place: str) -> Any:
    try:
        return loads(text) if text.strip()[:1] in ("{", "[") else text
    except ValueError as error:
        raise InputError(f"{place} starts like JSON and is none: {error}.") from error


def _of_hub(name: str, split: str) -> Iterator[tuple[str, Any]]:
    repo, _, revision = name.partition("@")
    if (rows := read_table(repo, split, revision or None)) and not {"ticket_id", "user_message"} <= rows[0].keys():
        msg = f"{repo!r}, split {split!r} has the columns {', '.join(rows[0])}, and no tickets: they need ticket_id and user_message."
        raise InputError(msg)
    # a plain Dataset.from_list pads mappings with the keys of the others
    yield from ((f"row {i}", {k: _unpadded(v) for k, v in row.items()}) for i, row in enumerate(rows))


def _unpadded(value: Any) -> Any:
    return {k: _unpadded(v) for k, v in value.items() if v is not None} if isinstance(value, dict) else value


def _of_rows(data: Simulation) -> Iterator[Ticket]:
    """Make tickets of rows that were played, and log why some became none: where nothing is asked, doing nothing would do."""
    left, cards = Counter[str](), set[str]()
    for row in data.rows:
        oracle, first = row.to_oracle(), row.card_id not in cards
        cards.add(row.card_id)
        if first and oracle is not None and (oracle.must_call or oracle.handoff_wanted):
            yield _of_row(row, oracle, data.manifest.seed)
        else:
            left["that ask for no call and no hand-off" if first else "further rollouts of a card"] += 1
    if left:
        why = ", ".join(f"{n} {told}" for told, n in left.items())
        log.warning("%d of %d rows became tickets; left out: %s", len(data.rows) - left.total(), len(data.rows), why)


def _of_row(row: Row, oracle: Oracle, seed: int) -> Ticket:
    second = re.search(r'"([^"]+)"$', row.card.goal) if row.card.form == "second_request" else None
    return Ticket(
        ticket_id=row.card_id,
        user_message=row.card.opening,
        customer_context=row.card.facts,
        expected_tools=tuple(rule.name for rule in oracle.must_call),
        expected_arguments={rule.name: dict(rule.arguments) for rule in oracle.must_call if rule.arguments},
        handoff=oracle.handoff_wanted,
        persona=row.card.prose,
        goal=row.card.goal,
        second=second[1] if second else "",
        tags=(row.state, *(row.situation[a] for a in ("tool_condition", "world_state") if a in row.situation)),
        source=row.id,
        cell=row.situation,
        world_of=row.twin_of or row.situation_id,
        seed=seed,
        oracle=row.oracle,
    )


def _of_trace(trace: Any) -> dict[str, Any]:
    """Make a ticket of a trace: the customer's words as they were; a person adds what is right."""
    turns = [turn for turn in trace.turns if isinstance(turn, Mapping) and isinstance(turn.get("content"), str)]
    if not (said := [turn["content"] for turn in turns if turn.get("role") == "user"]):
        raise InputError(f"the trace of {trace.case_id!r} holds no word of a customer, so no ticket can be made of it.")
    return {"ticket_id": f"{trace.case_id}-trial{trace.trial}", "user_message": said[0], "follow_ups": said[1:],
            "tags": ["from_trace"], "source": trace.case_id}  # fmt: skip
