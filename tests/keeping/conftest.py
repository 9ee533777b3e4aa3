"""Rows to keep, made by hand."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from whilesim.cards.cards import Card
from whilesim.cards.personas import Persona
from whilesim.chat.messages import Change, CustomerCall, Message, ToolCall, Trace
from whilesim.chat.usage import Usage
from whilesim.grading.checks.findings import Finding
from whilesim.grading.verdicts import Verdict
from whilesim.keeping.rows import Row
from whilesim.situations.axes import Situation
from whilesim.situations.tools import Tool
from whilesim.world.oracle import CallRule, Oracle

POLICY = "You may cancel an order only when the customer asks for it."
TOOLS = (
    Tool(
        name="cancel_order",
        description="Cancel an order.",
        parameters={"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]},
        effect="write",
    ),
    Tool(
        name="get_order",
        description="Look up an order.",
        parameters={"type": "object", "properties": {"order_id": {"type": "string"}}},
        effect="read",
    ),
    Tool(
        name="transfer_to_human",
        description="Hand over.",
        parameters={"type": "object", "properties": {}},
        effect="handoff",
    ),
)
VALUES = {
    "clause": "c01",
    "tool": "cancel_order",
    "tool_condition": "success",
    "world_state": "exists",
    "stance": "upset",
}


def call(name: str, arguments: str, call_id: str = "call_1") -> Message:
    return Message(role="assistant", tool_calls=(ToolCall(id=call_id, name=name, arguments=arguments),))


def talk(*said: Message) -> tuple[Message, ...]:
    """A conversation: prompt, opening, then what is given, or a cancelled order."""
    told = said or (
        call("cancel_order", '{"order_id": "W2210"}'),
        Message(role="tool", content='{"status": "cancelled", "total": 19.99}', tool_call_id="call_1"),
        Message(role="assistant", content="Order W2210 is cancelled."),
        Message(role="user", content="thanks"),
        Message(role="assistant", content="You are welcome."),
    )
    return (Message(role="system", content=POLICY), Message(role="user", content="Cancel W2210 please"), *told)


def make_row(card: str = "s001", rollout: int = 0, messages: tuple[Message, ...] = (), **changes: Any) -> Row:
    """A row; ``verdict`` is True or False for kept and dropped, other changes are fields of trace or card."""
    values = {**VALUES, **changes.pop("values", {})}
    verdict, findings, wave = changes.pop("verdict", None), changes.pop("findings", ()), changes.pop("wave", 0)
    oracle = changes.pop(
        "oracle", Oracle(must_call=(CallRule(name="cancel_order"),), ends=("resolved",), why="It may be.")
    )
    twin_of, provenance = changes.pop("twin_of", None), changes.pop("provenance", {"agent": "scripted"})
    facts = changes.pop("facts", {"order id": "W2210"})
    trace = Trace(
        case=card,
        seed=changes.pop("seed", 7),
        messages=messages or talk(),
        stop=changes.pop("stop", "customer_done"),
        usage=changes.pop("usage", {"agent": Usage(calls=2, tokens_in=10, tokens_out=5, usd=0.001)}),
        customer_calls=(CustomerCall(after_message=1, name="toggle", arguments="{}", reply="on"),),
        changes=(Change(call="call_1", kind="order", id="W2210", field="status", before="open", after="cancelled"),),
        **changes,
    )
    row = Row.from_trace(
        trace,
        Card(
            id=card,
            situation=Situation(id=card, values=values),
            persona=Persona(texture="ordinary", tone="neutral", length="short", pressure="none"),
            goal="Cancel order W2210",
            facts=facts,
            opening="Cancel W2210 please",
            twin_of=twin_of,
        ),
        rollout=rollout,
        wave=wave,
        tools=TOOLS,
        oracle=oracle,
        findings=findings,
        provenance=provenance,
    )
    if verdict is None:
        return row
    rule = "unopposed" if verdict else "check:refusal"
    return row.with_verdict(Verdict(keep=verdict, reward=float(verdict), reason="because", rule=rule))


def make_finding(check: str = "refusal", index: int = 4, quote: str = "cancelled", severity: Any = "drop") -> Finding:
    return Finding(check=check, message_index=index, quote=quote, reason="It is wrong.", severity=severity)


class Watched:
    """Rows that pass by, and how many of them were held at once at most."""

    def __init__(self, count: int) -> None:
        self.count, self.most = count, 0
        self.seen: list[weakref.ref[Row]] = []

    def __iter__(self) -> Iterator[Row]:
        for i in range(self.count):
            row = make_row(card=f"s{i:04}")
            self.seen.append(weakref.ref(row))
            self.most = max(self.most, sum(ref() is not None for ref in self.seen[-500:]))
            yield row


@pytest.fixture(scope="session")
def watched() -> type[Watched]:
    return Watched


@pytest.fixture(scope="session")
def make() -> Any:
    """What tests of this house make rows with: ``make.row``, ``make.talk``, ``make.call``, ``make.finding``."""

    class Make:
        row = staticmethod(make_row)
        talk = staticmethod(talk)
        call = staticmethod(call)
        finding = staticmethod(make_finding)
        tools = TOOLS
        policy = POLICY
        values = VALUES

    return Make
