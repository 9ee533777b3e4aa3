"""Rows: one conversation with all that is known of it, as one JSON object.

A row is written once and read many times, by people, trainers and later versions of this
package. So its keys stand in a fixed order, unknown keys are refused on reading, and what
goes in comes out equal: whatever a customer typed, a model wrote or a world answered. For
that, everything passes through JSON once when a row is made: tuples become lists, numbers
that JSON does not know become null.

Arguments of a call that parse to an object are one canonical JSON string; all others stay
as the model wrote them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError, WrapValidator

from whilesim.cards.cards import Card
from whilesim.cards.personas import Persona
from whilesim.chat.messages import Change, CustomerCall, Failure, Message, Role, Stop, Trace
from whilesim.chat.usage import Usage
from whilesim.core.errors import InputError
from whilesim.core.jsontext import dumps, first_fault, loads, parse_object
from whilesim.grading.checks.calls import read_calls
from whilesim.grading.checks.findings import Finding
from whilesim.grading.verdicts import Verdict
from whilesim.situations.tools import Tool
from whilesim.world.oracle import Oracle

State = Literal["kept", "dropped", "failed", "unjudged"]
STATES: tuple[State, ...] = ("kept", "dropped", "failed", "unjudged")
FAILED_STOPS = frozenset({"agent_error", "customer_error", "deadline", "budget", "interrupt"})
ROLES = ("agent", "customer", "judge")
_ORACLE = TypeAdapter(Oracle)
# parts that reading may convert
_BUILT = ["customer_calls", "persona", "changes", "failure", "findings", "verdict", "usage"]


def _as_text(arguments: Any) -> Any:
    if isinstance(arguments, dict):
        arguments = dumps(arguments)
    found = parse_object(arguments) if isinstance(arguments, str) else None
    return arguments if found is None else dumps(found)


class Part(BaseModel):
    """A frozen value with known keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    def to_json(self) -> dict[str, Any]:
        """Return the value as a JSON object, keys in the order of the schema."""
        return {name: _opened(getattr(self, name)) for name in type(self).model_fields}


class RowFunction(Part):
    """What is called, with which arguments, as text."""

    name: str
    arguments: Annotated[str, BeforeValidator(_as_text)]


class RowCall(Part):
    """One tool call, as OpenAI writes it."""

    id: str
    type: Literal["function"]
    function: RowFunction


class RowMessage(Part):
    """One chat message; keys that say nothing are left out, but for ``content``."""

    role: Role
    content: str | None
    tool_calls: list[RowCall] = []
    tool_call_id: str = ""
    reasoning: str = ""
    """What the model thought before it spoke."""
    finish: str = ""
    """Why the model stopped, where it did not end of itself: ``length``, ``content_filter``."""


if TYPE_CHECKING:
    ChatMessage = dict[str, Any]
else:  # checked as a RowMessage, kept as the mapping that it is
    ChatMessage = Annotated[RowMessage, WrapValidator(lambda wire, read: read(wire).model_dump(exclude_unset=True))]


class RowCard(Part):
    """What the customer knew and wanted."""

    goal: str
    form: str
    facts: dict[str, Any]
    clause_applies: str
    opening: str
    exit: str
    give_up: int
    prose: str


class RowRoles(Part):
    """Usage by role."""

    model_config = ConfigDict(strict=False)

    agent: Usage
    customer: Usage
    judge: Usage


class RowProvenance(Part):
    """Which models and which version wrote the row; null where nothing took part."""

    agent: str | None
    customer: str | None
    writer: str | None
    judge: str | None
    embedder: str | None
    prompts: str | None
    whilesim: str | None


class Row(Part):
    """One conversation with all that is known of it (version 1)."""

    # pydantic builds dataclasses only where it may convert; from_json refuses what it converted
    model_config = ConfigDict(strict=False)

    version: Literal[1] = 1
    id: str
    """``<card id>/r<rollout>``."""
    situation_id: str
    rollout: int = Field(strict=True)
    wave: int = Field(strict=True)
    """0 for what was planned; 1, 2 ... for what was played later to fill holes."""
    seed: int = Field(strict=True, ge=-(2**63), lt=2**63)
    messages: list[ChatMessage]
    """OpenAI chat messages as the agent saw them, system prompt first. ``reasoning`` holds
    what a model thought; ``finish`` stands only where a reply did not end of itself."""
    tools: list[dict[str, Any]]
    """Wrapped OpenAI tools."""
    failed_calls: list[str]
    """Ids of calls that failed."""
    customer_calls: list[CustomerCall]
    situation: dict[str, str]
    persona: Persona
    card: RowCard
    twin_of: str | None
    oracle: dict[str, Any] | None
    final_state: dict[str, Any]
    changes: list[Change]
    stop: Stop
    failure: Failure | None
    findings: list[Finding]
    verdict: Verdict | None
    usage: RowRoles
    provenance: RowProvenance
    planted: list[dict[str, Any]]

    @classmethod
    def from_trace(
        cls,
        trace: Trace,
        card: Card,
        *,
        rollout: int,
        wave: int = 0,
        tools: Sequence[Tool] = (),
        oracle: Oracle | None = None,
        findings: Sequence[Finding] = (),
        provenance: Mapping[str, str | None] | None = None,
    ) -> Row:
        """Build the row of one played card, not yet graded.

        ``rollout`` counts the playings of the card from 0; ``wave`` is 0 unless the card was
        played to fill a hole. ``provenance`` names any of agent, customer, writer, judge,
        embedder, prompts (a digest) and whilesim (a version). Where the world does not say
        which calls failed, the replies do.

        Raises:
            InputError: A value cannot stand in a row; names the field.
        """
        parts = {name: getattr(trace, name) for name in ("customer_calls", "changes", "failure")}
        made = to_plain(parts | {"persona": card.persona, "oracle": oracle, "findings": findings})
        made |= {name: getattr(trace, name) for name in ("seed", "final_state", "stop", "planted")}
        made |= {"version": 1, "id": f"{card.id}/r{rollout}", "rollout": rollout, "wave": wave, "verdict": None}
        failed: Sequence[str] | None = trace.failed_calls
        if failed is None:
            writes = {tool.name for tool in tools if tool.effect == "write"}
            failed = [c.call.id for c in read_calls(trace.messages, writes, None) if c.failed]
        told = {
            "situation_id": card.situation.id,
            "situation": card.situation.values,
            "messages": [_write_message(m) for m in trace.messages],
            "tools": [t.to_openai() for t in tools],
            "failed_calls": failed,
            "card": {name: getattr(card, name) for name in RowCard.model_fields},
            "twin_of": card.twin_of,
            "usage": {role: trace.usage.get(role, Usage()).to_json() for role in ROLES},
            "provenance": dict.fromkeys(RowProvenance.model_fields) | dict(provenance or {}),
        }
        return cls.from_json(made | told)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Row:
        """Read a row from its JSON object; arguments of calls may be text or objects.

        Raises:
            InputError: The object is no row of a version that this package reads.
        """
        try:
            text = dumps(value)
        except TypeError:  # a world of the user's may hold any values
            text = dumps(to_plain(value))
        return cls.from_text(text)  # it holds what a reader of its JSON would get

    @classmethod
    def from_text(cls, text: str | bytes) -> Row:
        """Read a row from its JSON text; raises as ``from_json`` does, or ValueError where it is no JSON."""
        given = loads(text)
        version = given.get("version") if isinstance(given, dict) else None
        if version != 1 or isinstance(version, bool):
            msg = f"a row has version {version!r}, and this whilesim reads version 1. Type: "
            raise InputError(msg + "pip install --upgrade whilesim, or write the row again.")
        try:
            row = cls.model_validate(given)
            # reading may have made another value than was given
            read = ((name, given[name], _opened(getattr(row, name))) for name in _BUILT)
            told = (f"{name} is {a!r:.100}, and would be read as {b!r:.100}" for name, a, b in read if a != b)
            wrong = next(told, "")
        except ValidationError as error:
            wrong = first_fault(error)
        if wrong:
            msg = f"row {given.get('id')!r} cannot be read: {wrong}. "
            raise InputError(msg + "Its keys and their types are in whilesim/keeping/row.schema.json.")
        return row

    @property
    def card_id(self) -> str:
        """The id of the card that was played."""
        return self.id.rsplit("/r", 1)[0]

    @property
    def state(self) -> State:
        """What became of the row: failed by its stop, else by its verdict, else unjudged."""
        if self.stop in FAILED_STOPS:
            return "failed"
        if self.verdict is None:
            return "unjudged"
        return "kept" if self.verdict.keep else "dropped"

    @property
    def loose_calls(self) -> tuple[str, ...]:
        """Ids of the calls whose arguments are no JSON object: such a row is never exported."""
        return tuple(c["id"] for c in self.calls if parse_object(c["function"]["arguments"]) is None)

    @property
    def calls(self) -> list[Mapping[str, Any]]:
        """The agent's calls in order, as they stand in its messages."""
        return [call for message in self.messages for call in message.get("tool_calls", ())]

    def has_calls(self, patterns: Sequence[str]) -> bool:
        """Say whether calls that fit the patterns were made in this order, others between them or not.

        A pattern is a name with ``*`` and ``?``, with ``:error`` behind it for a call that
        failed, ``:ok`` for one that did not.

        Raises:
            InputError: A pattern ends in another word.
        """
        calls = iter(self.calls)
        for pattern in patterns:
            name, _, how = pattern.partition(":")
            if how not in ("", "ok", "error"):
                raise InputError(f"{pattern!r}: a call went ok or error, not {how!r}. Type '{name}:error'.")
            named = (c["id"] for c in calls if fnmatchcase(c["function"]["name"], name))
            if not any(how in ("", "error" if call in self.failed_calls else "ok") for call in named):
                return False
        return True

    def to_oracle(self) -> Oracle | None:
        """Return the oracle that the row was made with."""
        return None if self.oracle is None else _ORACLE.validate_python(self.oracle)

    def with_verdict(self, verdict: Verdict | None, *, usage: Usage | None = None) -> Row:
        """Return the row with another verdict, and with what its judges used."""
        judge = None if verdict is None else verdict.judge
        provenance = self.provenance.model_copy(update={"judge": judge})
        used = self.usage.model_copy(update={"judge": usage or self.usage.judge})
        return self.model_copy(update={"verdict": verdict, "provenance": provenance, "usage": used})


def to_plain(value: Any) -> Any:
    """Return the value as JSON's own types; what has none is written as its text."""
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if is_dataclass(value):
        return {f.name: to_plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(k): to_plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(v) for v in value]
    if isinstance(value, (set, frozenset)):
        return sorted((to_plain(v) for v in value), key=repr)
    return str(value)


def _opened(value: Any) -> Any:
    """Return a part or dataclass as a mapping; what is inside of mappings already stays shared."""
    if isinstance(value, Part):
        return value.to_json()
    if is_dataclass(value):
        return {f.name: _opened(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, list):
        return [_opened(item) if is_dataclass(item) else item for item in value]
    if isinstance(value, dict):
        return {name: _opened(item) if is_dataclass(item) else item for name, item in value.items()}
    return value


def _write_message(message: Message) -> dict[str, Any]:
    wire = message.to_openai()
    if message.reasoning:
        wire["reasoning"] = message.reasoning
    if message.finish not in (None, "stop", "tool_calls"):
        wire["finish"] = message.finish
    return wire
