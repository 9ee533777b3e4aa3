"""Runner: agents of every kind on tickets, what is scored, what goes on when one breaks."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from judges import Ruled, Scripted
from shop import STARTER, shop_agent, ticket

import whilesim as ws
from whilesim.chat.usage import Usage
from whilesim.conversations import players
from whilesim.conversations.intent import asks_person
from whilesim.core.errors import InputError, ModelError, RunError
from whilesim.evals.agents import load_agent
from whilesim.evals.results import load_result
from whilesim.evals.sandbox import open_sandbox
from whilesim.evals.setup import check_protocol, freeze_protocol
from whilesim.evals.tickets import load_tickets
from whilesim.showcase import demo_policy, demo_tools
from whilesim.situations.policy import Policy

QUIET = ws.EvalOptions(floors=False, progress=False)
RULE = "refund_without_verification"
ARGS = '{"summary": "A cancellation."}'
TOOLS = json.loads((STARTER / "tools.json").read_text())


def run(agent: Any, *tickets: Any, **more: Any) -> Any:
    return ws.evaluate(agent, list(tickets) or [ticket()], **{"options": QUIET, **more})


def test_the_tutorials_agent_passes_and_its_trace_is_what_it_wrote() -> None:
    result = run(shop_agent)
    (trace,) = result.traces
    assert trace.passed
    assert trace.scores == {
        "resolution": 1.0,
        "tool_accuracy": 1.0,
        "policy": 1.0,
        "ux": None,
        "groundedness": None,
        "total": 1.0,
    }
    assert [t["role"] for t in trace.turns] == ["user", "assistant"]
    assert [c["name"] for c in trace.tool_calls] == ["lookup_order", "cancel_order"]
    assert trace.trace is not None
    assert [c.name for c in trace.trace.calls] == ["lookup_order", "cancel_order"]


async def awaited(message: str, context: Any, trace: Any) -> dict[str, Any]:
    context.call("lookup_order", {"order_id": "84920"})
    context.call("cancel_order", {"order_id": "84920"})
    return {"reply": "It is cancelled."}


def test_the_mock_world_stands_in_for_the_crm() -> None:
    (trace,) = run(awaited, tools=TOOLS).traces
    assert trace.passed
    assert trace.final_state["order"]["84920"]["status"] == "cancelled"
    assert '"84920"' in trace.tool_calls[0]["result"]


def messages_agent(messages: list[dict[str, Any]]) -> Any:
    done = sum(m["role"] == "tool" for m in messages)
    if done == 2:
        return "Your order is cancelled."
    call = {"name": ("lookup_order", "cancel_order")[done], "arguments": '{"order_id": "84920"}'}
    return {"content": None, "tool_calls": [{"id": f"c{done}", "type": "function", "function": call}]}


def test_an_agent_that_writes_down_the_customers_turn_alone_loses_none_of_its_own() -> None:
    def agent(message: str, context: Any, trace: Any) -> dict[str, Any]:
        trace.turns.append({"role": "user", "content": message})
        return {"reply": "Done.", "final_state": {}}

    assert [turn["role"] for turn in run(agent, ticket(1)).traces[0].turns] == ["user", "assistant"]


def test_a_tool_that_no_ticket_names_is_no_lie_where_the_tools_are_known_from_tickets_alone() -> None:
    def agent(message: str, context: Any, trace: Any) -> dict[str, Any]:
        trace.tool_calls.append({"name": "look_at_the_weather", "arguments": {}, "result": "{}"})
        return {"reply": "Done.", "final_state": {}}

    assert not [f for f in run(agent, ticket(1)).traces[0].findings if "unknown_tool" in f]
    given = [
        {"name": name, "parameters": {"type": "object", "properties": {}}} for name in ("lookup_order", "cancel_order")
    ]
    assert [f for f in run(agent, ticket(1), tools=given).traces[0].findings if "unknown_tool" in f]


def test_an_agent_of_messages_plays_on_the_tickets_own_records() -> None:
    given = ticket(
        initial_state={"order": {"84920": {"status": "shipped"}}}, expected_final_state={"order_status": "shipped"}
    )
    (trace,) = run(messages_agent, {**given, "expected_tools": ["lookup_order"]}, tools=TOOLS).traces
    assert '"shipped"' in trace.tool_calls[0]["result"]
    assert run(messages_agent, tools=TOOLS).traces[0].passed


def test_calls_and_turns_in_the_form_of_openai_are_read() -> None:
    def agent(user_message: str, context: Any, trace: Any) -> dict[str, Any]:
        for name in ("lookup_order", "cancel_order"):
            call = {"id": name, "type": "function", "function": {"name": name, "arguments": '{"order_id": "84920"}'}}
            trace.tool_calls.append(call)
            trace.turns.append({"role": "assistant", "content": None, "tool_calls": [call]})
        return {"reply": "Done.", "final_state": {"order_status": "cancelled"}}

    told = ticket(expected_arguments={"cancel_order": {"order_id": "84920"}})
    (trace,) = run(agent, told).traces
    assert trace.passed
    assert [(c["name"], c["arguments"]) for c in trace.tool_calls][1] == ("cancel_order", {"order_id": "84920"})
    assert {t["content"] for t in trace.turns} == {""}


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        calls = [
            {"name": n, "arguments": {"order_id": asked["context"]["order_id"]}}
            for n in ("lookup_order", "cancel_order")
        ]
        told = {"reply": "Done.", "tool_calls": calls, "final_state": {"order_status": "cancelled"}}
        told = {"CS-003": {}, "CS-004": {"reply": "Done."}}.get(asked["ticket_id"], told)
        body = b"<html>" if asked["ticket_id"] == "CS-002" else json.dumps(told).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


def test_a_rest_address_is_an_agent() -> None:
    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        result = run(f"http://127.0.0.1:{server.server_port}/chat?token=secret", *map(ticket, (1, 2, 3, 4)))
    finally:
        server.shutdown()
        server.server_close()
    good, bad, mute, brief = result.traces
    assert "the agent returned {}" in mute.failure
    assert (brief.scores["resolution"], brief.reasons["resolution"]) == (None, "nobody reported a final state")
    assert result.run["agent"] == "http://127.0.0.1/chat"
    assert good.passed
    assert "did not answer with JSON" in bad.failure
    assert bad.passed is None


def langchain(kind: str, content: str, **more: Any) -> Any:
    return SimpleNamespace(type=kind, content=content, **more)


class Graph:
    def invoke(self, given: dict[str, Any]) -> dict[str, Any]:
        made = [
            {"id": f"t{i}", "name": n, "args": {"order_id": "84920"}}
            for i, n in enumerate(("lookup_order", "cancel_order"))
        ]
        new: list[Any] = []
        for call in made:
            new.append(langchain("ai", "", tool_calls=[call]))
            new.append(langchain("tool", "{}", tool_call_id=call["id"]))
        return {"messages": [*given["messages"], *new, langchain("ai", "Done.", tool_calls=[])]}


class Executor:
    input_keys = ("input",)

    def invoke(self, given: dict[str, Any]) -> dict[str, Any]:
        steps = [
            (SimpleNamespace(tool=n, tool_input={"order_id": "84920"}), "{}") for n in ("lookup_order", "cancel_order")
        ]
        return {"output": "Done.", "intermediate_steps": steps}


class ChatModel:
    def bind_tools(self, tools: Any) -> Any:
        assert tools[0]["type"] == "function"
        return self

    def invoke(self, messages: list[dict[str, Any]]) -> Any:
        done = sum(m["role"] == "tool" for m in messages)
        if done == 2:
            return langchain("ai", "Done.", tool_calls=[])
        call = {"id": f"t{done}", "name": ("lookup_order", "cancel_order")[done], "args": {"order_id": "84920"}}
        return langchain("ai", "", tool_calls=[call])


@pytest.mark.parametrize("agent", [Graph(), Executor(), ChatModel()], ids=lambda a: type(a).__name__)
def test_a_langchain_runnable_is_an_agent(agent: Any) -> None:
    (trace,) = run(agent, tools=TOOLS).traces
    assert [c["name"] for c in trace.tool_calls] == ["lookup_order", "cancel_order"]
    assert trace.scores["tool_accuracy"] == 1.0
    assert trace.turns[-1]["content"] == "Done."
    if isinstance(agent, ChatModel):
        assert trace.passed
    else:  # it ran tools of its own, and nobody here saw what became of the order
        assert trace.scores["resolution"] is None
        assert trace.reasons["resolution"] == "nobody reported a final state"


def test_an_agent_of_the_openai_agents_sdk_is_an_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    class Runner:
        @staticmethod
        async def run(agent: Any, given: list[Any]) -> Any:
            call = {
                "type": "function_call",
                "call_id": "c1",
                "name": "lookup_order",
                "arguments": '{"order_id": "84920"}',
            }
            out = {"type": "function_call_output", "call_id": "c1", "output": "{}"}
            said = {"role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}
            return SimpleNamespace(to_input_list=lambda: [*given, call, out, said], final_output="Done.")

    module = ModuleType("agents")
    module.Runner = Runner  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "agents", module)
    agent = SimpleNamespace(name="shop", instructions="Help.", handoffs=[], tools=[])
    result = run(agent, tools=TOOLS)
    assert result.run["agent"] == "shop"
    assert [c["name"] for c in result.traces[0].tool_calls] == ["lookup_order"]
    assert result.traces[0].turns[-1]["content"] == "Done."


def broken(user_message: str, context: Any, trace: Any) -> Any:
    if trace.case_id == "CS-001":
        return None
    if trace.case_id == "CS-002":
        raise KeyError("order_id")
    if trace.case_id == "CS-004":
        raise SystemExit(3)
    return shop_agent(user_message, context, trace)


def test_an_agent_that_returns_none_or_raises_spoils_its_own_tickets_only() -> None:
    result = run(broken, ticket(1), ticket(2), ticket(3), ticket(4))
    assert [t.passed for t in result.traces] == [False, False, True, False]
    assert "the function raised SystemExit: 3" in result.traces[3].failure
    assert 'the agent returned None. Return {"final_state": {...}}' in result.traces[0].failure
    assert "the function raised KeyError: 'order_id'" in result.traces[1].failure
    assert result.traces[0].scores["policy"] is None
    with pytest.raises(ws.GateFailed, match=r"(?s)CS-001 .*returned None.*CS-002 .*KeyError"):
        ws.gate(result)


@pytest.mark.parametrize(
    ("agent", "why"),
    [
        (lambda messages, context: "", "the agent returned no word for the customer"),
        (lambda messages, context: {"content": " "}, "the agent returned no word for the customer"),
        (lambda user_message, context, trace: "", "the agent returned ''. Return"),
        (lambda user_message, context, trace: {"message": "Hi"}, "the agent returned {'message': 'Hi'}. Return"),
    ],
)
def test_an_agent_that_says_nothing_fails(agent: Any, why: str) -> None:
    result = run(agent, ticket(must_not_do=[RULE]))
    assert result.traces[0].passed is False
    assert why in result.traces[0].failure
    with pytest.raises(ws.GateFailed, match="policy could not be scored: agent player: the agent returned"):
        ws.gate(result)


def handing_over(messages: Any, context: Any) -> Any:
    call = {"id": "c1", "type": "function", "function": {"name": "transfer_to_human", "arguments": ARGS}}
    return {"content": None, "tool_calls": [call]} if messages[-1]["role"] == "user" else ""


def looking_up(messages: Any, context: Any) -> Any:
    call = {"id": "c1", "type": "function", "function": {"name": "lookup_order", "arguments": ARGS}}
    return {"content": None, "tool_calls": [call]} if messages[-1]["role"] == "user" else ""


@pytest.mark.parametrize(
    ("agent", "silent"),
    [
        (lambda messages, context: [{"content": ""}, {"content": "Hi."}], False),  # frameworks send empty steps
        (lambda messages, context: [{"content": ""}, {"content": " "}], True),
        (lambda messages, context: "Hi." if len(messages) < 4 else "", True),
        (handing_over, False),  # a person has the word now
        (looking_up, True),
    ],
)
def test_an_agent_is_silent_where_a_whole_turn_of_its_holds_no_word(agent: Any, silent: bool) -> None:
    result = run(agent, ticket(expected_tools=["transfer_to_human"], follow_ups=["And?"]), tools=TOOLS)
    assert ("no word for the customer" in result.traces[0].failure) is silent


def test_an_agent_of_messages_may_have_an_argument_of_its_own() -> None:
    def agent(messages: Any, context: Any, manner: str = "Hi") -> str:
        return f"{manner}, you said {messages[-1]['content']}"

    assert run(agent).traces[0].turns[-1]["content"].startswith("Hi, you said ")

    def of_tickets(said: str, told: Any, trace: Any, loud: bool = False) -> Any:
        return {"reply": f"{said}, {told['order_id']}, {loud}", "final_state": {}}

    assert run(of_tickets).traces[0].turns[-1]["content"].endswith("84920, False")


def hangs(messages: Any, context: Any) -> str:
    threading.Event().wait(60)
    return "Too late."


async def sleeps(messages: Any, context: Any) -> str:
    await asyncio.sleep(60)
    return "Too late."


@pytest.mark.parametrize("agent", [hangs, sleeps])
def test_an_agent_that_hangs_fails_when_patience_ends(agent: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(players, "PATIENCE", 0.2)
    result = run(agent, ticket(1), ticket(2))
    assert [t.passed for t in result.traces] == [False, False]
    assert result.traces[0].failure == "agent player: the function gave no answer in 0.2 seconds."
    left = [t for t in threading.enumerate() if not t.daemon]  # none that the process would wait for
    assert left == [threading.main_thread()]


def interrupts(messages: Any, context: Any) -> str:
    raise KeyboardInterrupt


async def interrupts_later(messages: Any, context: Any) -> str:
    raise KeyboardInterrupt


@pytest.mark.parametrize("agent", [interrupts, interrupts_later])
def test_a_keyboard_interrupt_of_an_agent_s_ends_the_run(agent: Any) -> None:
    with pytest.raises(RunError, match="the function raised KeyboardInterrupt"):
        run(agent, ticket(1), ticket(2))


def fails(messages: Any, context: Any) -> str:
    pytest.fail("of the agent's own")


def ends(messages: Any, context: Any) -> str:
    raise StopIteration


def cancels(messages: Any, context: Any) -> str:
    raise asyncio.CancelledError


RAISES: list[tuple[Any, str]] = [(fails, "Failed"), (ends, "RuntimeError: StopIteration()")]
if sys.version_info >= (3, 11):  # before, a task cannot tell whether it was cancelled or its agent raised so
    RAISES.append((cancels, "CancelledError"))


@pytest.mark.parametrize(("agent", "name"), RAISES)
def test_whatever_an_agent_raises_is_a_failure_of_its_ticket(agent: Any, name: str) -> None:
    (trace,) = run(agent).traces
    assert trace.failure.startswith(f"agent player: the function raised {name}")
    assert trace.passed is False


def test_follow_ups_are_said_in_order_and_a_persona_is_played() -> None:
    heard: list[str] = []

    def listen(user_message: str, context: Any, trace: Any) -> dict[str, Any]:
        heard.append(user_message)
        return {"reply": "Yes?", "final_state": {}}

    run(listen, ticket(follow_ups=["The blue one.", "Thanks."]))
    assert heard == [ticket()["user_message"], "The blue one.", "Thanks."]
    heard.clear()

    def customer(card: Any, messages: Any) -> str | None:
        return f"I am {card.prose}" if len(messages) < 3 else None

    run(listen, ticket(persona="angry"), options=ws.EvalOptions(floors=False, customer=customer, progress=False))
    assert heard == [ticket()["user_message"], "I am angry"]
    heard.clear()
    run(listen, ticket(follow_ups=[str(n) for n in range(9)]))
    assert heard[1:] == [str(n) for n in range(9)]


def test_trials_give_flips_and_intervals() -> None:
    def moody(user_message: str, context: Any, trace: Any) -> Any:
        return shop_agent(user_message, context, trace) if trace.trial % 2 else {"final_state": {}, "reply": "No."}

    result = run(moody, ticket(1), ticket(2), trials=4)
    assert result.flip_rate.value == 1.0
    assert result.pass_at.at[1].value == 0.5
    assert result.pass_at.at[4].value == 1.0
    assert result.pass_at.hat[4].value == 0.0
    assert len(result.failed) == 4


def test_a_judge_reads_what_passed_and_is_not_guessed_for() -> None:
    tickets = [ticket(1), ticket(2, expected_final_state={"order_status": "open"})]
    good, bad = run(shop_agent, *tickets, judge=Ruled(lambda *_: 0.8)).traces
    assert (good.scores["ux"], good.scores["groundedness"]) == (0.8, 0.8)
    assert bad.scores["ux"] is None
    assert bad.reasons["ux"] == "the judge reads what passed"
    assert good.scores["total"] == pytest.approx(0.4 + 0.3 + 0.2 + 0.1 * 0.8)
    (mumbled,) = run(shop_agent, judge=Scripted(["no idea", "0.5?"])).traces
    assert mumbled.scores["ux"] is None
    assert mumbled.reasons["ux"].startswith("the judge: it must be one JSON object")
    half = ws.EvalOptions(floors=False, fraction=0.0, progress=False)
    assert run(shop_agent, judge=Ruled(lambda *_: 1.0), options=half).traces[0].scores["ux"] is None


def test_the_tutorials_rubric_weighs_and_fails_hard(tmp_path: Path) -> None:
    rubric = {
        "weights": {"resolution": 0.4, "tool_accuracy": 0.3, "policy": 0.2, "ux": 0.1},
        "hard_fail_on_policy_violation": True,
    }
    rubric["rules"] = {"never_cancel": {"never": "cancel_order"}}
    path = tmp_path / "rubric.json"
    path.write_text(json.dumps(rubric))
    (trace,) = run(shop_agent, ticket(must_not_do=["never_cancel"]), rubric=str(path)).traces
    assert (trace.scores["policy"], trace.scores["total"], trace.passed) == (0.0, 0.0, False)
    assert trace.reasons["policy"] == "never_cancel: cancel_order was called, and never may be"
    (tmp_path / "rubric.txt").write_text(json.dumps(rubric))
    for given in (json.dumps(rubric), tmp_path / "rubric.txt"):
        assert run(shop_agent, ticket(must_not_do=["never_cancel"]), rubric=given).traces[0].passed is False
    with pytest.raises(InputError, match="weights sum to 0"):
        run(shop_agent, rubric={"weights": {"policy": 0, "resolution": 0}})


def test_floors_stand_beside_the_score_and_a_weak_suite_is_named() -> None:
    weak = ticket(1, expected_tools=[], expected_final_state={}, handoff=False)
    with pytest.warns(UserWarning, match="do_nothing passes 1 of 1 tickets .100%., so they tell little: CS-001"):
        result = ws.evaluate(shop_agent, [weak], options=ws.EvalOptions(progress=False))
    assert result.floors["do_nothing"].unwanted == (1, 1)
    assert "always_handoff" in str(result)


def test_always_handoff_wins_where_a_person_is_wanted_and_nothing_else() -> None:
    wanted = {
        "ticket_id": "a",
        "user_message": "A person, please.",
        "expected_tools": ["transfer_to_human"],
        "handoff": True,
    }
    plain = ticket(2, initial_state={"order": {"84920": {"status": "processing"}}})
    never = {**plain, "ticket_id": "CS-003", "handoff": False}
    with pytest.warns(UserWarning, match="always_handoff passes 1 of 3 tickets .33%"):
        result = ws.evaluate(
            "always_handoff", [wanted, plain, never], tools=TOOLS, options=ws.EvalOptions(progress=False)
        )
    floor = result.floors["always_handoff"]
    assert (floor.wanted, floor.unwanted, floor.open) == ((1, 1), (0, 1), (0, 1))
    counts = result.handoffs.counts  # the table of hand-offs counts the same tickets in the same rows
    assert {w: counts[w, True] + counts[w, False] for w in (True, False, None)} == {True: 1, False: 1, None: 1}
    assert "hand-off wanted   not wanted         open" in str(result)


def test_tickets_of_the_demo_are_played_on_the_worlds_that_they_came_from(demo: ws.Simulation) -> None:
    data, tickets = demo, ws.load_tickets(demo.kept)
    options = ws.EvalOptions(system_prompt=demo_policy(), floors=False, progress=False)
    result = ws.evaluate("scripted", tickets, tools=demo_tools(), options=options)
    played = {r.card_id: r for r in data.rows if not r.rollout}
    told = {c["result"] for t in result.traces for c in t.tool_calls if not c["failed"] and len(c["result"]) > 80}
    there = {m["content"] for r in played.values() for m in r.messages if m["role"] == "tool"}
    assert told & there
    assert [str(t.reasons) for t in result.traces if not t.passed] == []
    assert result.scores["tool_accuracy"].value == 1.0


def test_a_person_who_is_wanted_later_is_not_wanted_before_anything_was_tried(demo: ws.Simulation) -> None:
    tickets = [t for t in ws.load_tickets(demo.kept) if t.second and not asks_person(t.user_message)]
    assert tickets
    options = ws.EvalOptions(system_prompt=demo_policy(), floors=False, progress=False)
    result = ws.evaluate("always_handoff", tickets, tools=demo_tools(), options=options)
    assert not any(t.passed for t in result.traces)
    assert "before anything was tried" in str(result)


def test_a_rule_that_a_person_adds_to_a_ticket_of_a_row_holds(demo: ws.Simulation) -> None:
    tickets = [replace(t, must_not_do=({"never": "*"},)) for t in ws.load_tickets(demo.kept)]
    options = ws.EvalOptions(system_prompt=demo_policy(), floors=False, progress=False)
    result = ws.evaluate("scripted", tickets, tools=demo_tools(), options=options)
    assert {t.scores["policy"] for t in result.traces if t.tool_calls} == {0.0}


def test_an_untouched_world_is_handed_on_and_a_touched_one_is_not() -> None:
    (one,) = load_tickets([ticket(initial_state={"order": {"84920": {"status": "processing"}}})])
    box = open_sandbox([one], TOOLS, Policy(text="", clauses=()))
    world = box.world_for(one)
    box.give_back(one, world)
    assert box.world_for(one) is world
    world.call("cancel_order", {"order_id": "84920"})
    box.give_back(one, world)
    assert box.world_for(one).state["order"]["84920"]["status"] == "processing"


def test_a_run_is_saved_and_read_back(tmp_path: Path) -> None:
    result = run(shop_agent, ticket(1), ticket(2), options=ws.EvalOptions(run_dir=tmp_path, progress=False))
    again = load_result(tmp_path)
    assert again.traces == result.traces
    assert json.loads(json.dumps(again.summary())) == json.loads((tmp_path / "scores.json").read_text())
    assert again.floors == result.floors
    with pytest.raises(InputError, match=r"holds no scores\.json and traces\.jsonl"):
        load_result(tmp_path / "nowhere")
    scores = (tmp_path / "scores.json").read_text()
    wrong = [
        ('{"run_id"', None, r"scores\.json cannot be read"),
        ("[]", None, r"scores\.json holds no 'run_id'"),
        (scores.replace('"do_nothing": {', '"do_nothing": 3, "x": {'), None, r"'floors\.do_nothing' is 3"),
        (scores, "3\n", r"'traces\.0' is 3"),
        (scores, '{"case_id": "a", "turns": 3}\n', r"'traces\.0\.turns' is 3"),
    ]
    for text, line, match in wrong:
        (tmp_path / "scores.json").write_text(text)
        (tmp_path / "traces.jsonl").write_text(line or "")
        with pytest.raises(InputError, match=match):
            load_result(tmp_path)


def test_a_folder_of_before_usage_was_told_by_role_and_before_nothing_expected_was_1_is_read(tmp_path: Path) -> None:
    options = ws.EvalOptions(floors=False, progress=False, run_dir=tmp_path)
    result = run(shop_agent, ticket(1), ticket(2, expected_final_state={}), options=options)
    lines = [json.loads(line) for line in (tmp_path / "traces.jsonl").read_text().splitlines()]
    for line in lines:
        line["usage"] = {"calls": 2, "tokens_in": 9, "tokens_out": 1, "usd": None}
    assert lines[1]["reasons"]["resolution"] == "the ticket expects no final state"
    lines[1]["scores"]["resolution"] = None
    (tmp_path / "traces.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    old = load_result(tmp_path)
    assert old.usage == {"all roles": Usage(calls=4, tokens_in=18, tokens_out=2, usd=None)}
    assert (old.pass_at, old.scores["resolution"]) == (result.pass_at, result.scores["resolution"])
    assert ws.gate(old, resolution=1.0).passed
    assert ws.compare(old, result).regressions == ()
    assert len(ws.load_tickets(tmp_path / "traces.jsonl")) == 2


def test_an_empty_policy_takes_no_word_of_the_customers_away() -> None:
    empty = ws.EvalOptions(floors=False, progress=False, system_prompt="")
    (trace,) = run("do_nothing", options=empty).traces
    assert [t["role"] for t in trace.turns] == ["user", "assistant"]


def test_a_frozen_protocol_is_held_to(tmp_path: Path) -> None:
    path = tmp_path / "protocol.json"
    freeze_protocol(path, [ticket()], trials=2)
    options = ws.EvalOptions(floors=False, protocol=path, progress=False)
    assert run(shop_agent, trials=2, options=options).run["protocol"]["trials"] == 2
    with pytest.raises(InputError, match="trials is 3 and was frozen as 2"):
        run(shop_agent, trials=3, options=options)
    path.write_text(path.read_text().replace('"trials": 2', '"trials": 3'))
    with pytest.raises(InputError, match="was changed after it was frozen"):
        check_protocol(path, {})
    for text, match in (("{", "cannot be read"), ("[]", "holds no digest")):
        path.write_text(text)
        with pytest.raises(InputError, match=f"the protocol .* {match}"):
            check_protocol(path, {})


@pytest.mark.parametrize(
    ("more", "match"),
    [
        ({"trials": 0}, "trials=0 leaves nothing to play"),
        ({"judge": "gpt"}, "the model 'gpt' names no provider"),
        ({"options": ws.EvalOptions(fraction=2)}, "fraction=2 is no share"),
        (
            {"tools": TOOLS[1:]},
            "expects the tool 'lookup_order', and there is no such tool.*Did you mean 'lookup_charge'",
        ),
        (
            {"tools": TOOLS, "options": ws.EvalOptions(rules={RULE: {"never": "issue_refnd"}})},
            "ticket 'CS-001': the rule 'refund_.*' names the tool 'issue_refnd', and there is no such.*Did you mean 'issue_refund'",
        ),
        (
            {
                "tools": TOOLS,
                "options": ws.EvalOptions(rules={RULE: {"when_tool": "issue_*", "before": "lokup_order"}}),
            },
            "names the tool 'lokup_order', and there is no such tool",
        ),
    ],
)
def test_what_cannot_be_run_is_refused_before_it_is(more: dict[str, Any], match: str) -> None:
    with pytest.raises(InputError, match=match):
        run(shop_agent, **more)


def test_a_pattern_that_no_tool_of_this_agent_bears_is_a_rule_all_the_same() -> None:
    options = ws.EvalOptions(rules={RULE: {"never": "delete_*"}}, floors=False, progress=False)
    assert run("do_nothing", tools=TOOLS, options=options).traces[0].scores["policy"] == 1.0


def test_an_expected_argument_that_the_tool_does_not_take_is_refused() -> None:
    told = ticket(expected_arguments={"cancel_order": {"ordr_id": "84920"}})
    with pytest.raises(
        InputError, match=r"gives cancel_order 'ordr_id', and it takes no such.*Did you mean 'order_id'"
    ):
        run(shop_agent, told, tools=TOOLS)


def test_records_of_an_unknown_kind_are_refused() -> None:
    with pytest.raises(
        InputError, match=r"initial_state holds 'ordre', and the world has no such kind\. Did you mean 'order'"
    ):
        run(shop_agent, ticket(initial_state={"ordre": {"1": {}}}), tools=TOOLS)


@pytest.mark.parametrize("records", [{"84920": 3}, ["shipped"]])
def test_a_record_that_is_none_is_refused_before_anything_is_played(records: Any) -> None:
    for tools in (TOOLS, ()):
        with pytest.raises(
            InputError, match="ticket 'CS-001': initial_state holds 'order', and not all of it are records"
        ):
            run(shop_agent, ticket(initial_state={"order": records}), tools=tools)


@pytest.mark.parametrize("made", ["lookup_order", 3, {"name": "lookup_order"}])
def test_calls_that_are_no_list_spoil_their_own_ticket(made: Any) -> None:
    (trace,) = run(lambda user_message, context, trace: {"reply": "Done.", "tool_calls": made}).traces
    assert trace.passed is False
    assert "Return a list of calls" in trace.failure


def test_an_agent_is_loaded_from_a_module_or_a_script(tmp_path: Path) -> None:
    script = tmp_path / "agent.py"
    script.write_text("def agent(user_message, context, trace):\n    return {}\n")
    assert load_agent(f"{script}:agent").__name__ == "agent"
    assert load_agent("shop:shop_agent") is shop_agent
    for name in ("scripted", "openai:gpt-4.1", "http://127.0.0.1:1/x", "groq/llama"):
        assert load_agent(name) == name
    with pytest.raises(InputError, match="the agent 'shop:nobody' cannot be loaded: shop holds no 'nobody'"):
        load_agent("shop:nobody")
    with pytest.raises(InputError, match=r"names a file, and no function in it\. Type eval/agent\.py:function"):
        load_agent("eval/agent.py")
    for name in ("nowhere:agent", "groq:llama-3", "json:llama-3"):  # the last is a module, and holds no such name
        with pytest.raises(
            InputError, match=rf"'{name}' names neither a provider \(openai, .*provider:model.*module:f"
        ):
            load_agent(name)
    script.write_text("def agent(:")
    with pytest.raises(InputError, match="cannot be loaded: SyntaxError"):
        load_agent(f"{script}:agent")


class Hooked(MetaPathFinder, Loader):
    """Makes modules that no file holds."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        return ModuleSpec(name, self) if name == "hooked_agent" else None

    def exec_module(self, module: ModuleType) -> None:
        module.agent = shop_agent  # type: ignore[attr-defined]


def test_an_agent_is_loaded_from_a_module_that_no_file_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    made = ModuleType("made_by_hand")  # without a spec: to look for one raises
    made.agent = shop_agent  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "made_by_hand", made)
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Hooked()])
    monkeypatch.delitem(sys.modules, "hooked_agent", raising=False)
    assert load_agent("made_by_hand:agent") is load_agent("hooked_agent:agent") is shop_agent


def test_own_factories_get_the_tickets_state() -> None:
    seen: list[Any] = []

    def factory(state: Any, seed: int) -> Any:
        seen.append(state)
        return ws.live({})(state, seed)

    run(
        "do_nothing",
        ticket(initial_state={"a": 1}),
        tools=TOOLS,
        options=ws.EvalOptions(world=factory, floors=False, progress=False),
    )
    assert seen == [{"a": 1}]


def test_it_runs_from_a_running_loop() -> None:
    assert asyncio.run(ws.aevaluate(shop_agent, [ticket()], options=QUIET)).traces[0].passed


def test_a_folder_that_cannot_be_written_is_refused_before_anything_is_played(tmp_path: Path) -> None:
    def never(user_message: str, context: Any, trace: Any) -> Any:
        raise AssertionError("played")

    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"the run folder '.*file' cannot be written: .* Choose another run_dir"):
        run(never, options=replace(QUIET, run_dir=tmp_path / "file"))


def test_a_run_that_the_disk_does_not_take_is_returned_all_the_same(tmp_path: Path) -> None:
    folder = tmp_path / "run"

    def spoils(user_message: str, context: Any, trace: Any) -> Any:
        folder.rmdir()
        folder.write_text("")
        return shop_agent(user_message, context, trace)

    with pytest.warns(UserWarning, match=r"the run is not in its folder: .* Type result\.save\(FOLDER\)"):
        result = run(spoils, options=replace(QUIET, run_dir=folder))
    assert result.traces[0].passed


def test_a_trial_that_nobody_could_decide_is_no_flip() -> None:
    def absent(user_message: str, context: Any, trace: Any) -> Any:
        if trace.trial == 1:
            raise ModelError("busy", reason="server")
        return shop_agent(user_message, context, trace)

    result = run(absent, trials=3)
    assert [t.passed for t in result.traces] == [True, None, True]
    assert (result.flip_rate.value, result.flip_rate.n) == (0.0, 1)


@pytest.mark.parametrize("records", [{"84920": {"statsu": "shipped"}}, [{"order_id": "84920", "statsu": "shipped"}]])
def test_a_field_of_a_record_that_is_nearly_one_of_the_worlds_is_told(records: Any) -> None:
    options = ws.EvalOptions(floors=False, progress=False)
    with pytest.warns(UserWarning, match="initial_state holds 'order', and its field 'statsu' .*Did you mean 'status'"):
        run(shop_agent, ticket(initial_state={"order": records}), tools=TOOLS, options=options)
    # what a record has beside it, or what is like nothing, is the user's own
    fine = {"84920": {"status": "shipped", "status_2": "x", "gift_wrap": True}}
    run(shop_agent, ticket(initial_state={"order": fine, "today": "2026-05-01"}), tools=TOOLS, options=options)
    run(shop_agent, ticket(initial_state={"flags": [1, 2]}), options=options)


def test_the_tutorials_comparison_holds_where_a_ticket_expects_no_final_state() -> None:
    """Of it no mean is made: it says nothing of the agent."""
    asked, bare = ticket(1, expected_final_state={"order_status": "lost"}), ticket(2, expected_final_state={})
    result = run(shop_agent, asked, bare, options=ws.EvalOptions(progress=False))
    below = [t.case_id for t in result.traces if not (t.scores["policy"] == 1.0 and t.scores["resolution"] >= 0.8)]
    assert below == ["CS-001"]
    assert [t.passed for t in result.traces] == [False, True]
    assert (result.scores["resolution"].value, result.floors["do_nothing"].resolution) == (0.0, 0.0)
    alone = run(shop_agent, bare).scores["resolution"]
    assert (alone.value, alone.why) == (None, "the ticket expects no final state")


def test_tickets_of_rows_without_the_tools_of_their_world_say_what_to_type(demo: ws.Simulation) -> None:
    tickets = ws.load_tickets(demo.kept)
    with pytest.raises(InputError, match=r"made from the row .*Type tools=.*--tools tools\.json --policy policy\.md"):
        run("do_nothing", *tickets)
    assert run("do_nothing", *tickets, tools=demo_tools()).traces
    assert run("do_nothing").traces  # tickets that people wrote name what they need


def test_what_a_judge_cost_is_told_and_kept(tmp_path: Path) -> None:
    """Answers that could not be read were paid for, too."""
    spent = Usage(calls=1, tokens_in=100, tokens_out=5, usd=0.25)
    judged = Ruled(lambda *_: 0.8, usage=spent)
    options = ws.EvalOptions(floors=False, progress=False, run_dir=tmp_path)
    result = run(shop_agent, ticket(1), ticket(2), judge=judged, options=options)
    assert result.usage == {"judge": spent + spent}
    assert "  judge           2 calls, 200 tokens in, 10 out, $0.5000\n  cost            $0.5000\n" in str(result)
    assert load_result(tmp_path).summary()["usage"] == {
        "judge": {"calls": 2, "tokens_in": 200, "tokens_out": 10, "usd": 0.5}
    }
    mumbled = run(shop_agent, judge=Scripted(["no idea", "0.5?"]))
    assert mumbled.usage == {"judge": Usage(calls=2, tokens_in=20, tokens_out=10, usd=None)}
    assert "cost            unknown: a model's price" in str(mumbled)
    free = run(shop_agent)  # nobody knows what a function calls
    assert free.usage == {}
    assert "cost" not in str(free)


def test_a_ticket_that_passed_with_a_call_that_nobody_expected_is_told() -> None:
    """It may be the regression that the ticket was written for: a rule in must_not_do forbids it."""

    def eager(user_message: str, context: Any, trace: Any) -> Any:
        found = shop_agent(user_message, context, trace)
        trace.tool_calls.append({"name": "change_address", "arguments": {}})
        return found

    result = run(eager, ticket(1), ticket(2))
    assert all(t.passed for t in result.traces)
    assert "  2 passed with calls besides: CS-001, tool_accuracy 0.8: change_address called besides" in str(result)
    assert "passed with calls" not in str(run(shop_agent))
    assert "passed with calls" not in str(run(shop_agent, ticket(1, expected_tools=[])))
