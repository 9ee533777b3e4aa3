"""Fuzz: input of any kind at every door, for long by hand and for a little in CI.

    python tests/fuzz.py --cases 20000 --seed 1          # all targets, shares of 20,000
    python tests/fuzz.py --cases 500 --only policies     # one of them

A target is a strategy and a promise. The promise: a value that keeps its word, or an error of the
library's own that says something; never another exception, a warning, or more time than the size of
the input explains. By hand every kind of failure is counted once, with the shortest input that
showed it; in CI (``test_fuzz.py``) the first one is shrunk.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import copy
import gzip
import json
import os
import re
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from judges import answer

import whilesim
from whilesim.cards.plan import Plan
from whilesim.cards.planning import load_plan, plan
from whilesim.chat.actions import read_action
from whilesim.chat.messages import Message, read_message
from whilesim.chat.models import CallKey, Reply
from whilesim.chat.wire import read_reply
from whilesim.cli import main as cli
from whilesim.conversations.players import FunctionAgent, ModelAgent, ModelCustomer
from whilesim.conversations.rollout import Case, Stage, play
from whilesim.conversations.scripted_customer import ScriptedCustomer
from whilesim.core.errors import WhilesimError
from whilesim.core.jsontext import dumps, loads, read_lines
from whilesim.evals.results import load_result
from whilesim.evals.tau2 import compare_tau2, floors_tau2, read_tasks, read_tau2, tell_tau2
from whilesim.evals.tickets import load_tickets
from whilesim.grading.checks.run import run_checks
from whilesim.grading.judge import read_judgement
from whilesim.grading.rubric import read_rubric
from whilesim.grading.trust import read_labels
from whilesim.keeping.loading import load
from whilesim.keeping.rows import Row
from whilesim.keeping.simulation import Simulation
from whilesim.situations.axes import default_space
from whilesim.situations.policy import parse_policy
from whilesim.situations.tools import Tool, parse_tools
from whilesim.street import simulate
from whilesim.world.mock import MockWorld
from whilesim.world.oracle import build_oracle

HERE = Path(whilesim.__file__).parent
LONG = 20_000
"""Characters of a repeated pattern: what grows with the square of a text's length then takes seconds."""


class Slow(BaseException):
    """A case took more time than its size explains; no ``except`` of the package catches it."""


@contextlib.contextmanager
def quick(seconds: float) -> Iterator[None]:
    """Raise ``Slow`` where the processor was busy for so long, also inside a regular expression."""

    def late(*_: object) -> None:
        raise Slow(f"more than {seconds:.1f} s of processor time")

    before = signal.signal(signal.SIGVTALRM, late)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def says_what(error: WhilesimError) -> None:
    """Hold an error of the library's own to its form: a sentence or more, never a bare word."""
    assert len(str(error).split()) >= 4, f"{type(error).__name__} says only {str(error)!r}"


def refused(action: Callable[[], Any]) -> Any:
    """Return the value, or None where the library refuses in words."""
    try:
        return action()
    except WhilesimError as error:
        says_what(error)
        return None


# Strategies: text

POLICY = "# Desk\n- Confirm the amount before you refund an order.\n- Never promise a delivery date.\n"
SAID = (HERE / "demo" / "policy.md").read_text(encoding="utf-8").splitlines()
DEBRIS = [
    "# ", "### Rules", "- ", "* ", "1. ", "1.2.3 ", "(a) ", "> ", "| ", "|---|---|", "| Case | Action |", "```", "~~~",
    "```json\n{", "**", "__", "*_`", "`", "---", "===", "\n===\n", "\n\n", "\n", "\t", "    ", "  - ", "<p>", "</p>", "<div class='x'>",
    "<li>", "<script>", "<!--", "-->", "<", ">", "&amp;", "&#x110000;", "&#99999999;", "&nbsp", "{{ name }}", "{", "}", "{%", "[", "](",
    "![", "https://a.b/c?d=", "a@b.c", "(", ")", '"', "“", "‘", "'", "don't ", "«", ":", "：", "。", "!", "...", "…", ";", "e.g. ", "No. 5 ",
    "You must ", "Never ", "Do not ", "Always ask ", "only if ", "unless ", "Example: ", "User: ", "Agent: ", "If ", ", then ", " and ",
    "refund the order", "transfer_to_human ", "get_order(", "$50 ", "24 hours ", "Il faut ", "Sie müssen ", "No debe ", "必须 ", "返金しないでください。",
    "يجب ألا ", "\u202e", "\u200f", "\u200b", "\ufeff", "\x00", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\r", "\r\n", "\ud83d", "\udc00", "🎉", "İ", "ß", "ǆ", "①", "²",
    "𝟘", "٣", "ﬁ", "\u0301", "=", "~", "+", "\\", "\\n", "%s", "%(x)s", "$(x)", "../", "NaN", "-0", "1e999", "null",
]  # fmt: skip
PIECES = st.one_of(st.sampled_from(DEBRIS), st.sampled_from(SAID), st.text(max_size=8))
MESS = st.tuples(st.lists(PIECES, max_size=14), st.sampled_from(["", " ", "\n", "\n\n"])).map(lambda m: m[1].join(m[0]))
UNIT = st.lists(st.one_of(st.sampled_from(DEBRIS), st.text(min_size=1, max_size=3)), min_size=1, max_size=3).map(
    "".join
)


def bombs(length: int = LONG) -> st.SearchStrategy[str]:
    """A pattern over and over, with something else around it: where a search goes back, it goes back often."""
    return st.builds(
        lambda head, unit, tail, way: head + (unit * (length // len(unit)))[:length] + tail if way else
        "\n".join(" " * n + unit for n in range(min(200, length // 100))) + tail,
        MESS, UNIT, PIECES, st.integers(0, 9),
    )  # fmt: skip


ODD = [
    0, -1, 1.5, 2**63, 10**400, 1e308, float("nan"), float("inf"), True, False, None, "", "x", "\ud83d", "\x00", "object", "string",
    [], {}, [[]], {"": {}}, "null", "W1", "../../etc/passwd", "٣",
]  # fmt: skip
WORDS = [
    "type", "name", "description", "parameters", "properties", "required", "enum", "items", "$ref", "$defs", "anyOf", "allOf", "oneOf",
    "const", "default", "format", "pattern", "minimum", "maximum", "examples", "function", "input_schema", "inputSchema", "nullable",
    "additionalProperties", "title", "returns", "annotations", "effect", "tools", "id", "order_id", "status", "result", "paths", "x y",
]  # fmt: skip
SCALARS = st.one_of(
    st.sampled_from(ODD).map(copy.deepcopy),
    st.text(max_size=6),
    st.integers(),
    st.floats(),
    st.sampled_from(
        [
            "integer",
            "array",
            "#/$defs/A",
            "#",
            "get_order",
            "str",
            "^(a+)+$",
            "date-time",
            "[",
            "W100",
            "a" * 3000,
            "#/%",
        ]
    ),
)
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(WORDS) | st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=10,
)


@st.composite
def twisted(draw: st.DrawFn, bases: st.SearchStrategy[Any], most: int = 4) -> Any:
    """A value that is right but for a few places: replaced, removed, doubled, renamed, wrapped or nested."""
    value = copy.deepcopy(draw(bases))
    for _ in range(draw(st.integers(0, most))):
        value = _twist(draw, value)
    return value


def _twist(draw: st.DrawFn, value: Any) -> Any:
    if not value or not isinstance(value, (dict, list)) or draw(st.integers(0, 5)) == 0:
        deep = draw(st.integers(0, 25)) == 0
        return _nested(value, draw(st.sampled_from([50, 400, 3000]))) if deep else draw(JSON)
    if isinstance(value, dict):
        key = draw(st.sampled_from(list(value)))
        way = draw(st.integers(0, 9))
        if way == 0:
            del value[key]
        elif way == 1:
            value[draw(st.sampled_from(WORDS) | st.text(max_size=5))] = draw(JSON)
        elif way == 2:
            value[draw(st.text(max_size=5) | st.sampled_from(DEBRIS))] = value.pop(key)
        else:
            value[key] = _twist(draw, value[key])
        return value
    at = draw(st.integers(0, len(value) - 1))
    way = draw(st.integers(0, 9))
    if way == 0:
        del value[at]
    elif way == 1:
        value.append(value[at])
    elif way == 2:
        return value * draw(st.integers(2, 40))
    else:
        value[at] = _twist(draw, value[at])
    return value


def _nested(value: Any, depth: int) -> Any:
    for _ in range(depth):
        value = {"properties": {"a": value}, "type": "object"} if depth == 400 else [value]
    return value


def written(value: Any) -> str:
    """Write as JSON, whatever is in it, nesting beyond what a reader takes included."""
    try:
        return json.dumps(value)
    except (RecursionError, ValueError):
        return "[" * 5000 + "]" * 5000


@st.composite
def torn(draw: st.DrawFn, contents: st.SearchStrategy[bytes]) -> bytes:
    """Bytes as they come off a disk or a wire: mostly whole, else cut, doubled, with a mark in front or packed."""
    data = draw(contents)
    way = draw(st.integers(0, 19))
    cut = draw(st.integers(0, max(0, len(data)))) if way < 5 else 0
    ways = [
        data[:cut], data[:cut] + draw(st.binary(max_size=4)) + data[cut:], data[cut:], data[:cut] + b"\xff\xfe" + data[cut:],
        data[:cut] + b"\n" + data[cut:], b"\xef\xbb\xbf" + data, data.replace(b"\n", b"\r\n"), gzip.compress(data, mtime=0), data + data,
        data.decode("utf-8", "replace").encode("utf-16"), b"", b"\n\n", data.rstrip(b"\n"), data.replace(b"\n", b"\r"),
    ]  # fmt: skip
    return ways[way] if way < len(ways) else data


# Targets


@dataclass(frozen=True, repr=False)
class Given:
    """An input that can be printed whatever it is: nested beyond what ``repr`` follows, or long."""

    value: Any

    def __repr__(self) -> str:
        try:
            return repr(self.value)
        except RecursionError:
            return "(nested too deeply to be printed)"


@dataclass(frozen=True)
class Target:
    """A door, what goes in, and what must hold."""

    name: str
    inputs: st.SearchStrategy[Any]
    hold: Callable[[Any], None]
    share: float
    """Of all cases."""
    seconds: float = 2.0
    """Of processor time for a case of no size; and 0.1 ms for each character more."""


TARGETS: list[Target] = []


def target(inputs: st.SearchStrategy[Any], *, share: float, seconds: float = 2.0) -> Callable[[Any], Any]:
    """Add a promise to the targets under its own name."""

    def add(hold: Callable[[Any], None]) -> Callable[[Any], None]:
        TARGETS.append(Target(hold.__name__, inputs.map(Given), hold, share, seconds))
        return hold

    return add


def tool(name: str, about: str, **fields: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": fields, "required": list(fields)}
    return {"type": "function", "function": {"name": name, "description": about, "parameters": schema}}


TEXT = {"type": "string"}
TOOLS = [
    tool("get_order", "Get an order by its ID, such as W100.", order_id=TEXT),
    tool("refund_order", "Refund an order.", order_id=TEXT, amount={"type": "number", "minimum": 0}),
    tool(
        "set_status", "Set the status of an order.", order_id=TEXT, status={"type": "string", "enum": ["open", "sent"]}
    ),
    tool("transfer_to_human", "Transfer the customer to a person.", reason=TEXT),
]
READ = parse_tools(TOOLS)


@target(st.one_of(*[MESS] * 6, bombs()), share=0.14)
def policies(text: str) -> None:
    """Clauses stand in the text, once each, and a second reading gives the same."""
    found = refused(lambda: parse_policy(text))
    if found is None:
        return
    assert found == parse_policy(text)
    assert len({c.id for c in found.clauses}) == len(found.clauses)
    for clause in found.clauses:
        start, end = clause.span
        assert 0 <= start < end <= len(text)
        assert clause.text.strip()
        assert text[start:end].strip()
    assert loads(dumps(asdict(found)))


@target(MESS | bombs(3000), share=0.02, seconds=6)
def plans(text: str) -> None:
    """A plan of any text goes to the disk and comes back."""
    made = refused(lambda: plan(tools=TOOLS, system_prompt=text, situations=2, candidates=2, embedder="hashed"))
    if made is None:
        return
    assert str(made)
    assert made._repr_html_()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "plan.json")
        made.save(path)
        again = load_plan(path)
        assert (again.cards, again.oracles, again.policy) == (made.cards, made.oracles, made.policy)
        assert dumps(again.to_json()) == dumps(made.to_json())


SOURCE = '''
from typing import Literal, Optional

def refund_order(order_id: str, amount: float = 0, reason: Literal["late", "broken"] = "late") -> dict:
    """Refund an order.

    Args:
        order_id (str): The order, such as "W100".
        amount: How much.

    Returns:
        dict: {"order_id": "W100", "status": "refunded"}

    Raises:
        ValueError: No such order.

    >>> refund_order("W100")
    {"ok": true}
    """

@tool("get_order")
async def fetch(self, ctx, order_id: Optional[list[str]] = None, *rest, **more): "Get an order."
'''
LINES = SOURCE.splitlines()
SCHEMA = {
    "type": "object",
    "$defs": {"A": {"type": "object", "properties": {"inner": {"$ref": "#/$defs/A"}, "zip": {"type": "string", "pattern": "^\\d{5}$"}}}},
    "properties": {
        "order_id": {"type": "string", "description": "The order's ID, such as W100."},
        "kind": {"enum": ["a", "b", None]}, "count": {"type": ["integer", "null"], "minimum": 1, "maximum": 3, "default": 2},
        "address": {"$ref": "#/$defs/A"}, "tags": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
        "when": {"type": "string", "format": "date-time"}, "deep": {"allOf": [{"type": "object"}, {"required": ["x"]}]},
    },
    "required": ["order_id"],
}  # fmt: skip
REPLY = {
    "type": "object",
    "properties": {
        "order_id": TEXT,
        "status": {"type": "string", "enum": ["open", "sent"]},
        "total": {"type": "number"},
    },
}
DIALECTS: list[Any] = [
    {"type": "function", "function": {"name": "update_order", "description": "Update an order.", "parameters": SCHEMA}},
    {"name": "cancel_order", "description": "Cancel a pending order. Returns the order.", "input_schema": SCHEMA},
    {"name": "get_order", "inputSchema": SCHEMA, "outputSchema": REPLY, "annotations": {"readOnlyHint": True}},
    {"functionDeclarations": [{"name": "list_orders", "parameters": {"type": "OBJECT", "properties": {"user_id": {"type": "STRING"}}}}]},
    {"title": "CreateTicket", "properties": {"subject": TEXT}, "type": "object"},
    {"api_name": "Order", "required_parameters": [{"name": "order_id", "type": "STRING", "default": "W1"}], "optional_parameters": []},
    {"find_user": {"description": "Find a user.", "parameters": {"email": {"type": "str"}, "limit": {"type": "int", "optional": True}}}},
    {"openapi": "3.1.0", "paths": {"/orders/{order_id}": {
        "parameters": [{"name": "order_id", "in": "path", "required": True, "schema": TEXT}],
        "get": {"summary": "Read an order", "responses": {"200": {"content": {"application/json": {"schema": REPLY, "example": {"order_id": "W1"}}}}}},
        "post": {"operationId": "changeOrder", "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/B"}}}}}}},
        "components": {"schemas": {"B": {"type": "object", "properties": {"status": TEXT, "next": {"$ref": "#/components/schemas/B"}}}}}},
    TOOLS, {"tools": TOOLS[:2]}, {"result": {"tools": TOOLS[2:]}},
]  # fmt: skip
DESCRIBED = st.one_of(MESS, st.lists(st.sampled_from([x.strip() for x in LINES] + DEBRIS), max_size=12).map("\n".join))


@st.composite
def tool_sources(draw: st.DrawFn) -> Any:
    """Tools as a value, as JSON, JSON lines, YAML or Python; mended nowhere."""
    way = draw(st.integers(0, 11))
    if way == 0:
        return draw(MESS | bombs() | DESCRIBED)
    if way <= 2:
        lines = list(LINES)
        for _ in range(draw(st.integers(0, 4))):
            at = draw(st.integers(0, len(lines) - 1))
            lines[at : at + draw(st.integers(0, 3))] = draw(st.lists(st.sampled_from(LINES) | PIECES, max_size=2))
        return "\n".join(lines)
    value = draw(twisted(st.sampled_from(DIALECTS)))
    if way == 3:
        about = draw(bombs(3000) | DESCRIBED)
        return [{"name": draw(MESS), "description": about, "parameters": draw(twisted(st.just(SCHEMA)))}, value]
    if way == 4:
        return [draw(twisted(st.sampled_from(DIALECTS))), value]
    if way == 5:
        return written(value)
    if way == 6:
        return "\n".join(map(written, value if isinstance(value, list) else [value]))
    if way == 7:
        import yaml

        with contextlib.suppress(yaml.YAMLError, RecursionError, ValueError):
            return yaml.safe_dump(value)
    return value


def check_tools(tools: tuple[Tool, ...]) -> None:
    """Names are legal and told apart, arguments are an object."""
    names = [t.name for t in tools]
    assert len(set(names)) == len(names)
    for found in tools:
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", found.name)
        assert found.parameters["type"] == "object"
        assert set(found.parameters["required"]) <= set(found.parameters["properties"])
        assert found.effect in ("read", "write", "handoff", "compute")


@target(
    st.tuples(tool_sources(), st.lists(st.tuples(st.integers(0, 9), JSON | MESS), max_size=3)), share=0.4, seconds=4
)
def tools(given_: tuple[Any, list[tuple[int, Any]]]) -> None:
    """Tools are read or refused; a world made of them answers any call in text, and the same twice."""
    source, calls = given_
    found = refused(lambda: parse_tools(source))
    if found is None:
        return
    check_tools(found)
    assert parse_tools(source) == found or "nan" in repr(source).lower()
    space = default_space(["c01"], found, axes=None, forbid=())
    values = {axis.name: axis.values[(len(calls) + n) % len(axis.values)] for n, axis in enumerate(space.axes)}
    told = []
    for _ in range(2):
        world = MockWorld(found, situation={k: v for k, v in values.items() if k != "clause"}, seed=len(calls))
        oracle = build_oracle(values, clause=None, tools=found, focus=world.focus, model=world.model)
        assert oracle.why
        replies = [world.call(world.focus.tool, world.focus.arguments)]
        for number, arguments in calls:
            name = found[number % len(found)].name if number < 8 else str(arguments)[:20]
            taken = (
                arguments
                if isinstance(arguments, dict)
                else arguments
                if isinstance(arguments, str)
                else written(arguments)
            )
            replies.append(world.call(name, taken))
        assert all(isinstance(reply, str) for reply in replies)
        told.append((replies, dumps(world.state), oracle))
        assert world.model.describe()
    assert told[0] == told[1]


@cache
def demo_plan() -> Plan:
    return plan(tools=TOOLS, system_prompt=POLICY, situations=3, candidates=1, embedder="hashed")


CALL = {"id": "c1", "type": "function", "function": {"name": "get_order", "arguments": '{"order_id": "W100"}'}}
COMPLETION = {
    "id": "x",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Order W100 is refunded.", "tool_calls": [CALL]}}],
    "usage": {"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13},
}  # fmt: skip
THINK = ["<think>", "</think>", "<thinking>", "</thinking>", "[[DONE]]", "I refunded it. ", "Order W100 ", "cancelled", "```json", '{"reply": "hi"}',
         '{"call": "get_order", "arguments": {"order_id": "W100"}}', '{"call": ', "Goodbye.", "{", "}", "$12.50", "Sorry, I cannot "]  # fmt: skip
SPEECH = st.one_of(MESS, st.lists(st.sampled_from(THINK) | PIECES, max_size=8).map("".join), bombs(3000))


@st.composite
def completions(draw: st.DrawFn) -> bytes:
    """A completion's body: right but for a few places, or bytes of any kind."""
    whole = copy.deepcopy(COMPLETION)
    message: dict[str, Any] = whole["choices"][0]["message"]  # type: ignore[index]
    if draw(st.booleans()):
        message["content"] = draw(SPEECH)
    name, arguments = draw(st.sampled_from(["refund_order", "get_order", ""]) | MESS), draw(JSON | MESS)
    way = draw(st.integers(0, 4))
    if way <= 1:
        message.pop("tool_calls")
    elif way == 2:
        function = {"name": name, "arguments": written(arguments) if draw(st.booleans()) else arguments}
        message["tool_calls"] = [{"id": draw(st.sampled_from(["c1", "", None, 7])), "function": function}] * draw(
            st.integers(1, 3)
        )
    return draw(torn(st.just(written(draw(twisted(st.just(whole), 2))).encode())))


@dataclass
class Replayed:
    """A chat model that answers with these bodies, then says goodbye."""

    bodies: list[bytes]
    action: bool = False
    asked: int = field(default=0)

    async def reply(self, messages: Any, tools: Any = (), *, schema: Any = None, key: Any = CallKey()) -> Reply:  # noqa: B008  a frozen value
        self.asked += 1
        raw = self.bodies[self.asked - 1] if self.asked <= len(self.bodies) else json.dumps(
            {"choices": [{"message": {"content": '{"reply": "Goodbye."}' if self.action else "Goodbye. [[DONE]]"}}]}
        ).encode()  # fmt: skip
        return read_reply(raw, where="'m' at h", price=None, action=self.action)


def played(agent: Any, customer: Any) -> Row:
    """Play one card, check it and make it a row, as a run does."""
    made = demo_plan()
    card = made.cards[0]
    stage = Stage(agent=agent, customer=customer, system_prompt=POLICY, tools=made.tools, turns=3)
    trace = asyncio.run(play(Case(card=card, rollout=0, seed=1), stage, made.world_for(card)))
    findings = run_checks(trace.messages, tools=made.tools, failed=trace.failed_calls)
    for finding in findings:
        assert 0 <= finding.message_index < len(trace.messages)
    return Row.from_trace(trace, card, rollout=0, tools=made.tools, oracle=made.oracles[card.id], findings=findings)


def check_row(row: Row) -> None:
    """A row comes back equal from its own JSON, and is graded, told and counted."""
    assert Row.from_json(loads(dumps(row.to_json()))) == row
    data = Simulation([row])
    graded = data.grade()
    ledger = graded.ledger
    assert ledger.planned == ledger.kept + ledger.dropped + ledger.failed + ledger.unjudged == 1
    assert graded.explain(row.id)
    assert str(graded.certificate)


@target(st.tuples(st.lists(completions(), min_size=1, max_size=3), st.booleans()), share=0.07, seconds=3)
def bodies(given_: tuple[list[bytes], bool]) -> None:
    """Whatever an endpoint sends, the conversation becomes a row that can be read again."""
    raws, action = given_
    for raw in raws:
        read = refused(lambda raw=raw: read_reply(raw, where="'m' at h", price=None, action=action))
        if read is not None:
            assert isinstance(read.message.content, (str, type(None)))
            assert all(isinstance(c.arguments, str) for c in read.message.tool_calls)
    rows = [played(ModelAgent(Replayed(raws, action)), ScriptedCustomer()) for _ in range(2)]
    assert rows[0] == rows[1]
    check_row(rows[0])
    check_row(played(ModelAgent(Replayed([])), ModelCustomer(Replayed(raws))))


MESSAGES = [
    {"role": "system", "content": POLICY}, {"role": "user", "content": "Refund W100 please"}, {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": '{"order_id": "W100", "status": "open", "total": 12.5}'},
    {"role": "assistant", "content": "I have refunded your order W100. The $12.50 arrive within 3 days."},
]  # fmt: skip


@target(
    st.tuples(twisted(st.just(MESSAGES)), SPEECH, twisted(st.just(json.loads(answer(["policy", "ux"])))), JSON),
    share=0.06,
    seconds=3,
)
def words(given_: tuple[Any, str, Any, Any]) -> None:
    """Checks point into the messages; a judge's answer is read as it stands or not at all; any function may play."""
    messages, speech, verdict, found = given_
    if isinstance(messages, list) and all(isinstance(m, dict) for m in messages):
        spoken = [*messages, {"role": "assistant", "content": speech}]
        findings = refused(lambda: run_checks(spoken, tools=READ))
        for finding in findings or ():
            assert 0 <= finding.message_index < len(spoken)
        assert findings is None or findings == run_checks(spoken, tools=READ)
        refused(lambda: [read_message(m) for m in messages])
    rubric = read_rubric({"weights": {"policy": 0.6, "ux": 0.4}})
    for text in (written(verdict), f"```json\n{written(verdict)}\n```", speech, written({"final": verdict})):
        judgement = refused(lambda text=text: read_judgement(text, rubric))
        assert judgement is None or 0 <= rubric.reward(judgement.scores) <= 1
    refused(lambda: read_action(Message(role="assistant", content=speech), where="'m' at h"))
    check_row(played(FunctionAgent(lambda _: found if found else messages), ScriptedCustomer()))


@cache
def run_folder() -> dict[str, bytes]:
    """The files of a small graded run."""
    with tempfile.TemporaryDirectory() as folder:
        simulate(plan=demo_plan(), rollouts=2, run_dir=folder, progress=False).grade()
        return {name: Path(folder, name).read_bytes() for name in ("rows.jsonl", "verdicts.jsonl", "manifest.json")}


def of_lines(data: bytes) -> list[Any]:
    return [json.loads(line) for line in data.splitlines()]


def jsonl(value: Any) -> bytes:
    return b"".join(written(v).encode() + b"\n" for v in (value if isinstance(value, list) else [value]))


@st.composite
def folders(draw: st.DrawFn) -> dict[str, bytes]:
    """A run's folder with one file that is not as it was."""
    files = dict(run_folder())
    name = draw(st.sampled_from([*files, "rows.jsonl"]))
    value = json.loads(files[name]) if name.endswith(".json") else of_lines(files[name])
    write = jsonl if name.endswith("l") else lambda v: written(v).encode()
    files[name] = draw(torn(twisted(st.just(value), 2).map(write)))
    if draw(st.integers(0, 9)) == 0:
        files[name] = draw(st.binary(max_size=60))
    if draw(st.integers(0, 9)) == 0:
        del files[draw(st.sampled_from(list(files)))]
    return files


@target(st.deferred(folders), share=0.04, seconds=4)
def runs(files: dict[str, bytes]) -> None:
    """A folder that is read is counted, saved and read again equal, graded, exported and told."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, data in files.items():
            (folder / file).write_bytes(data)
        found = refused(lambda: load(folder))
        if found is None:
            return
        assert repr(found)
        refused(lambda: check_data(found, folder))


def check_data(found: Simulation, folder: Path) -> None:
    ledger = found.ledger
    assert ledger.planned == ledger.kept + ledger.dropped + ledger.failed + ledger.unjudged or ledger.planned != len(
        found
    )
    found.save(folder / "again")
    again = load(folder / "again")
    assert list(again.rows) == list(found.rows)
    for form in ("trl", "openai", "sharegpt", "kto", "rl"):
        refused(lambda form=form: found.export(folder / "x.jsonl", format=form))
    graded = refused(found.grade)
    assert str(ledger)
    for row in found.rows[:2] if graded else ():
        assert found.explain(row.id)
    refused(lambda: found.report(folder / "report.html"))


TICKETS = of_lines((HERE / "starter" / "golden_tickets.jsonl").read_bytes())[:4]
RUBRIC = json.loads((HERE / "starter" / "rubric.json").read_text(encoding="utf-8"))
TAU2 = {
    "info": {"num_trials": 1, "seed": 3, "agent_info": {"implementation": "llm_agent", "llm": "m", "llm_args": {}}, "user_info": {"llm": "u"},
             "environment_info": {"domain_name": "retail", "policy": "p"}},
    "tasks": [{"id": "[x]a[PERSONA:None]", "evaluation_criteria": {"actions": [{"name": "refund_order", "arguments": {"order_id": "1"}}],
               "communicate_info": [], "reward_basis": ["DB", "COMMUNICATE"]}}, {"id": "b", "evaluation_criteria": None}],
    "simulations": [{"task_id": t, "trial": 0, "termination_reason": "user_stop", "reward_info": {"reward": r}, "messages": [
        {"role": "user", "content": "hi"}, {"role": "tool", "error": True, "content": "x"}]} for t, r in (("[x]a[PERSONA:None]", 1.0), ("b", 0.0))],
}  # fmt: skip
LABELS = [{"id": "s1", "keep": True, "reason": "fine"}, {"id": "s2", "keep": False, "reason": ""}]
CSV = "ticket_id,user_message,customer_context,expected_tools\nCS-1,Hello,\"{\"\"tier\"\": \"\"gold\"\"}\",get_order;refund_order\n"  # fmt: skip


@st.composite
def files(draw: st.DrawFn) -> tuple[str, bytes]:
    """A file of tickets, labels, a rubric, a benchmark's results, tools or a plan, not as it should be."""
    name = draw(st.sampled_from(["t.jsonl", "t.json", "t.csv", "labels.jsonl", "rubric.json", "rubric.md", "tau2.json", "tools.json", "tools.yaml",
                                 "tools.py", "plan.json", "scores.json"]))  # fmt: skip
    values: dict[str, Any] = {"t.jsonl": TICKETS, "t.json": TICKETS, "labels.jsonl": LABELS, "rubric.json": RUBRIC, "tau2.json": TAU2,
                              "tools.json": TOOLS, "tools.yaml": TOOLS, "scores.json": {"scores": {}}}  # fmt: skip
    if name == "plan.json":
        values[name] = json.loads(dumps(demo_plan().to_json()))
    texts = {"t.csv": CSV, "rubric.md": "Be fair.\n- policy: Follows the policy.\n- ux: Is kind.\n", "tools.py": SOURCE}
    if name in texts:
        lines = texts[name].splitlines()
        lines[draw(st.integers(0, len(lines) - 1))] = draw(MESS)
        text = "\n".join(lines)
        return name, draw(torn(st.just(text.encode("utf-8", "surrogatepass"))))
    write = jsonl if name.endswith("l") and name != "tools.yaml" else lambda v: written(v).encode()
    return name, draw(torn(twisted(st.just(values[name])).map(write)))


@target(st.deferred(files), share=0.15, seconds=4)
def documents(given_: tuple[str, bytes]) -> None:
    """Every other file is read, or refused with its name; what is read can be told."""
    name, data = given_
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(data)
        if name.startswith("t."):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # a field that is left out is said so
                found = refused(lambda: load_tickets(path))
                if found is not None:
                    found.save(Path(folder, "again.jsonl"))
                    assert list(load_tickets(Path(folder, "again.jsonl"))) == list(found)
        elif name.startswith("labels"):
            refused(lambda: read_labels(path, ["s1", "s2"]))
            refused(lambda: list(read_lines(path)))
        elif name.startswith("rubric"):
            refused(lambda: read_rubric(path))
        elif name.startswith("tau2"):
            read = refused(lambda: read_tau2(path))
            if read is not None:
                assert tell_tau2(read.summary())
                assert str(compare_tau2(read, read))
            tasks = refused(lambda: read_tasks(path))
            assert tasks is None or floors_tau2(tasks)
        elif name.startswith("plan"):
            made = refused(lambda: load_plan(path))
            assert made is None or (str(made) and dumps(made.to_json()))
        elif name.startswith("scores"):
            refused(lambda: load_result(folder))
        else:
            made = refused(lambda: parse_tools(path))
            assert made is None or check_tools(made) is None


COMMANDS: dict[str, list[str]] = {
    "plan": ["--policy", "--tools", "--situations", "--strength", "--balance", "--seed", "--save", "--json"],
    "simulate": ["--policy", "--tools", "--plan", "--situations", "--rollouts", "--turns", "--seed", "--concurrency", "--run-dir", "--json"],
    "grade": ["ARG", "--rubric", "--fraction", "--json"],
    "report": ["ARG", "--out"], "export": ["ARG", "ARG", "--format"], "explain": ["ARG", "ARG"], "label": ["ARG"],
    "eval": ["ARG", "--tools", "--policy", "--rubric", "--trials", "--turns", "--run-dir", "--protocol", "--no-floors", "--freeze", "--init", "--json"],
    "gate": ["ARG", "--tools", "--policy", "--rubric", "--min-policy", "--min-resolution", "--undecided", "--junit", "--json"],
    "compare": ["ARG", "ARG", "--json"], "floors": ["ARG", "--tools", "--policy", "--rubric", "--json"],
    "tau2": ["ARG", "ARG", "ARG", "--splits", "--out", "--json"], "nothing": [], "--version": [], "-h": [],
}  # fmt: skip
FLAGS = ("--json", "--no-floors")
PLACES = [
    "run",
    "policy.md",
    "tools.json",
    "tickets.jsonl",
    "rubric.json",
    "tau2.json",
    "results",
    "binary",
    "empty",
    "there is none",
    ".",
    "",
    "new",
    "new/er",
]
FITTING = {"--policy": "policy.md", "--tools": "tools.json", "--rubric": "rubric.json", "--run-dir": "new", "--situations": "3", "--save": "new.json",
           "--format": "trl", "--undecided": "fail", "--splits": "tau2.json", "--seed": "1", "--turns": "2", "--strength": "2"}  # fmt: skip
FIRST = {"grade": "run", "report": "run", "export": "run", "explain": "run", "label": "run", "eval": "tickets.jsonl", "gate": "tickets.jsonl",
         "compare": "results", "floors": "tickets.jsonl", "tau2": "read"}  # fmt: skip
GIVEN = st.one_of(
    st.sampled_from(PLACES),
    st.sampled_from(["0", "-1", "1", "2", "3", "0.5", "nan", "inf", "all", "read", "compare", "floors", "trl", "dpo", "pass", "--", "-x", "9" * 30, "٣", "²"]),
    st.text(st.characters(exclude_characters="\0"), max_size=5),  # no shell can hand over a NUL
)  # fmt: skip


@st.composite
def command_lines(draw: st.DrawFn) -> list[str]:
    """A command with most of what it needs, and some of what it does not."""
    command = draw(st.sampled_from(list(COMMANDS)))
    line = [command]
    for number, option in enumerate(COMMANDS[command]):
        way = draw(st.integers(0, 9))
        fitting = FITTING.get(
            option,
            FIRST.get(command, "tau2.json") if number == 0 else "tau2.json" if command == "tau2" else "new.jsonl",
        )
        if option == "ARG":
            line += [fitting] if way < 7 else [draw(GIVEN)] if way < 9 else []
        elif option in FLAGS:
            line += [option] if way < 4 else []
        elif option in ("--policy", "--tools") or way < 4:
            line += [option, fitting if way < 6 and option in FITTING else draw(GIVEN)]
    return line if draw(st.integers(0, 9)) else [*line, draw(GIVEN)]


@cache
def desk_files() -> dict[str, bytes]:
    """What lies about where the commands run."""
    found = {f"run/{name}": data for name, data in run_folder().items()}
    found |= {"policy.md": POLICY.encode(), "tools.json": json.dumps(TOOLS).encode(), "tickets.jsonl": jsonl(TICKETS[:2]), "empty": b"",
              "rubric.json": json.dumps(RUBRIC).encode(), "tau2.json": json.dumps(TAU2).encode(), "binary": bytes(range(256))}  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        from whilesim.evals.runner import evaluate

        path = Path(folder, "tickets.jsonl")
        path.write_bytes(found["tickets.jsonl"])
        from whilesim.evals.setup import EvalOptions

        evaluate(
            "scripted", path, rubric=RUBRIC, tools=HERE / "starter" / "tools.json", options=EvalOptions(run_dir=folder)
        )
        found |= {
            f"results/{p.name}": p.read_bytes() for p in Path(folder).iterdir() if p.suffix in (".json", ".jsonl")
        }
    return found


@target(command_lines(), share=0.12, seconds=8)
def commands(line: list[str]) -> None:
    """A command ends with 0, 1 or 2; what it cannot use it names, and there is no traceback."""
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        os.chdir(folder)
        try:
            for name, data in desk_files().items():
                Path(name).parent.mkdir(exist_ok=True)
                Path(name).write_bytes(data)
            result = CliRunner().invoke(cli, line, input="k\nfine\nq\n", catch_exceptions=False)
        finally:
            os.chdir(here)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code in (0, 1, 2)
    assert "Traceback" not in result.output
    assert result.exit_code == 0 or len(result.output.split()) >= 4
    if "--json" in line and result.exit_code == 0 and line[0] not in ("eval",):
        assert loads(result.stdout) is not None


# The run by hand


@dataclass
class Count:
    """What one target came to."""

    name: str
    cases: int = 0
    seconds: float = 0.0
    slowest: float = 0.0
    kinds: dict[str, tuple[int, str, str]] = field(default_factory=dict)
    """Kind of failure to how often, its shortest input and where."""


def attack(aim: Target, cases: int, number: int) -> Count:
    """Try so many inputs and count what fails, one kind once."""
    count = Count(aim.name)

    @seed(number)
    @settings(
        max_examples=cases,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(aim.inputs)
    def one(found: Given) -> None:
        value, shown = found.value, repr(found)
        size = len(shown)
        began = time.process_time()
        try:
            with quick(aim.seconds + size / 10_000):
                aim.hold(value)
        except (Exception, Slow) as error:
            kind, where = kind_of(error)
            n, shortest, _ = count.kinds.get(kind, (0, "", ""))
            if not shortest or len(shown) < len(shortest):
                shortest = shown
            count.kinds[kind] = (n + 1, shortest, where)
        took = time.process_time() - began
        count.cases, count.seconds, count.slowest = count.cases + 1, count.seconds + took, max(count.slowest, took)

    one()
    return count


def kind_of(error: BaseException) -> tuple[str, str]:
    """Name a failure by its type and the package's line that it came from."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if str(HERE) in f.filename] or frames
    where = " < ".join(f"{Path(f.filename).name}:{f.lineno} {f.name}" for f in reversed(ours[-5:]))
    last = ours[-1]
    return f"{type(error).__name__} in {Path(last.filename).name}:{last.name}", f"{where}\n      {str(error)[:300]}"


def main() -> int:
    """Attack the targets and print a table; 1 when anything failed."""
    options = argparse.ArgumentParser(description="Hostile input at every door.")
    options.add_argument("--cases", type=int, default=20_000)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--only", action="append", help="a target's name")
    told = options.parse_args()
    chosen = [t for t in TARGETS if not told.only or t.name in told.only]
    whole = sum(t.share for t in chosen)
    counts = []
    import datasets  # noqa: F401  seconds that belong to no case

    warnings.simplefilter("error")
    print(f"{'target':<12}{'cases':>8}{'seconds':>10}{'slowest':>9}{'failures':>10}")
    for aim in chosen:
        count = attack(aim, max(1, round(told.cases * aim.share / whole)), told.seed)
        counts.append(count)
        print(
            f"{count.name:<12}{count.cases:>8}{count.seconds:>10.1f}{count.slowest:>9.2f}{len(count.kinds):>10}",
            flush=True,
        )
        for kind, (n, shortest, where) in count.kinds.items():
            print(f"  {kind}: {n} times\n      {where}\n      {shortest[:600]}", flush=True)
    print(f"{'all':<12}{sum(c.cases for c in counts):>8}{sum(c.seconds for c in counts):>10.1f}")
    return int(any(c.kinds for c in counts))


if __name__ == "__main__":
    sys.exit(main())
