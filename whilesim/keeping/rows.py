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
from typing import Any, Literal

from pydantic import Field, ValidationError

from whilesim.cards.cards import Card
from whilesim.chat.messages import (
    Message,
    Stop,
    Trace,
)
from whilesim.chat.usage import Usage
from whilesim.core.errors import InputError
from whilesim.core.jsontext import parse_object
from whilesim.core.text import shorten
from whilesim.grading.checks.findings import Finding
from whilesim.grading.rubric import Score
from whilesim.grading.verdicts import Verdict
from whilesim.keeping.parts import (
    ChatMessage,
    Object,
    Part,
    RowCard,
    RowChange,
    RowCustomerCall,
    RowFailure,
    RowFinding,
    RowPersona,
    RowProvenance,
    RowRoles,
    RowUsage,
    RowVerdict,
    Text,
    through_json,
    to_plain,
)
from whilesim.situations.tools import Tool
from whilesim.world.oracle import CallRule, Oracle

State = Literal["kept", "dropped", "failed", "unjudged"]
STATES: tuple[State, ...] = ("kept", "dropped", "failed", "unjudged")
FAILED_STOPS = frozenset({"agent_error", "customer_error", "deadline", "budget", "interrupt"})
ROLES = ("agent", "customer", "judge")


class Row(Part):
    """One conversation with all that is known of it (version 1)."""

    version: Literal[1] = 1
    id: Text
    """``<card id>/r<rollout>``."""
    situation_id: Text
    rollout: int
    wave: int
    """0 for what was planned; 1, 2 ... for what was played later to fill holes."""
    seed: int = Field(ge=-(2**63), lt=2**63)
    messages: list[ChatMessage]
    """OpenAI chat messages as the agent saw them, system prompt first. ``reasoning`` holds
    what a model thought; ``finish`` stands only where a reply did not end of itself."""
    tools: list[Object]
    """Wrapped OpenAI tools."""
    failed_calls: list[Text] | None
    """Ids of calls that failed; null where the world does not say."""
    customer_calls: list[RowCustomerCall]
    situation: Object
    persona: RowPersona
    card: RowCard
    twin_of: Text | None
    oracle: Object | None
    final_state: Object
    changes: list[RowChange]
    stop: Stop
    failure: RowFailure | None
    findings: list[RowFinding]
    verdict: RowVerdict | None
    usage: RowRoles
    provenance: RowProvenance
    planted: list[Object]

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
        embedder, prompts (a digest) and whilesim (a version).

        Raises:
            InputError: A value cannot stand in a row; names the field.
        """
        usage = {role: trace.usage.get(role, Usage()).to_json() for role in ROLES}
        return cls.from_json(
            {
                "version": 1,
                "id": f"{card.id}/r{rollout}",
                "situation_id": card.situation.id,
                "rollout": rollout,
                "wave": wave,
                "seed": trace.seed,
                "messages": [_write_message(m) for m in trace.messages],
                "tools": [t.to_openai() for t in tools],
                "failed_calls": trace.failed_calls,
                "customer_calls": to_plain(trace.customer_calls),
                "situation": card.situation.values,
                "persona": {name: getattr(card.persona, name) for name in RowPersona.model_fields},
                "card": {name: getattr(card, name) for name in RowCard.model_fields},
                "twin_of": card.twin_of,
                "oracle": to_plain(oracle),
                "final_state": trace.final_state,
                "changes": to_plain(trace.changes),
                "stop": trace.stop,
                "failure": to_plain(trace.failure),
                "findings": [f.to_json() for f in findings],
                "verdict": None,
                "usage": usage,
                "provenance": {**dict.fromkeys(RowProvenance.model_fields), **(provenance or {})},
                "planted": trace.planted,
            }
        )

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Row:
        """Read a row from its JSON object; arguments of calls may be text or objects.

        Raises:
            InputError: The object is no row of a version that this package reads.
        """
        version = value.get("version") if isinstance(value, Mapping) else None
        if version != 1 or isinstance(version, bool):
            msg = (
                f"a row has version {version!r}, and this whilesim reads version 1. Type: "
                "pip install --upgrade whilesim, or write the row again."
            )
            raise InputError(msg)
        try:
            return cls.model_validate(through_json(value))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(str(step) for step in first["loc"])
            msg = (
                f"row {value.get('id')!r} cannot be read: {where}: {shorten(first['msg'], 200)}. "
                "Its keys and their types are in whilesim/keeping/row.schema.json."
            )
            raise InputError(msg) from error

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
        calls = (c for m in self.messages for c in m.get("tool_calls", ()))
        return tuple(c["id"] for c in calls if parse_object(c["function"]["arguments"]) is None)

    def to_oracle(self) -> Oracle | None:
        """Return the oracle that the row was made with."""
        if self.oracle is None:
            return None
        known: dict[str, Any] = {k: _tupled(v) for k, v in self.oracle.items()}
        for name in ("must_call", "must_not_call"):
            known[name] = tuple(CallRule(**rule) for rule in known.get(name, ()))
        return Oracle(**known)

    def to_findings(self) -> list[Finding]:
        """Return the findings as the checks gave them."""
        return [Finding(**f.to_json()) for f in self.findings]

    def with_verdict(self, verdict: Verdict | None, *, usage: Usage | None = None) -> Row:
        """Return the row with another verdict, and with what its judges used."""
        judge = None if verdict is None else verdict.judge
        changed: dict[str, Any] = {
            "verdict": None if verdict is None else RowVerdict.model_validate(through_json(to_plain(verdict))),
            "provenance": self.provenance.model_copy(update={"judge": judge}),
        }
        if usage is not None:
            changed["usage"] = self.usage.model_copy(update={"judge": RowUsage(**usage.to_json())})
        return self.model_copy(update=changed)

    def to_verdict(self) -> Verdict | None:
        """Return the verdict as grading gave it."""
        if self.verdict is None:
            return None
        known = self.verdict.to_json()
        return Verdict(**{**known, "scores": {k: Score(**v) for k, v in known["scores"].items()}})


def _write_message(message: Message) -> dict[str, Any]:
    wire = message.to_openai()
    if message.reasoning:
        wire["reasoning"] = message.reasoning
    if message.finish not in (None, "stop", "tool_calls"):
        wire["finish"] = message.finish
    return wire


def _tupled(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
