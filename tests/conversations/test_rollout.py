"""One conversation, with players and a world of a few lines."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from whilesim.cards.cards import Card
from whilesim.cards.personas import Persona
from whilesim.chat.messages import Message, ToolCall, Trace
from whilesim.conversations.players import DONE, Context, FunctionAgent, FunctionCustomer, Utterance, read_utterance
from whilesim.conversations.rollout import CALL_ROUNDS, Case, Stage, play
from whilesim.core.errors import ModelError
from whilesim.situations.axes import Situation
from whilesim.situations.tools import Tool
from whilesim.world.mock import WorldCall

CARD = Card(
    id="s0001",
    situation=Situation(id="s0001", values={"stance": "ordinary"}),
    persona=Persona(texture="ordinary", tone="neutral", length="short", pressure="none"),
    goal="You want to cancel your order W1.",
    opening="Please cancel my order W1.",
)
CANCEL = Tool(name="cancel_order", description="Cancel an order.", parameters={"type": "object"}, effect="write")
TRANSFER = Tool(name="transfer", description="Hand off.", parameters={"type": "object"}, effect="handoff")


class Desk:
    """A world that knows one order, and what failed."""

    def __init__(self) -> None:
        self.log: list[WorldCall] = []
        self.state: dict[str, Any] = {"order": {"W1": "pending"}}

    def call(self, name: str, arguments: Mapping[str, Any] | str) -> str:
        failed = isinstance(arguments, str) or name == "broken"
        reply = '{"error": "cannot read the arguments"}' if failed else '{"ok": true}'
        self.log.append(WorldCall(name=name, arguments=str(arguments), reply=reply, failed=failed))
        return reply


class Says:
    """A customer with a list of things to say."""

    def __init__(self, *turns: Utterance) -> None:
        self.turns = list(turns)

    async def speak(self, card: Card, messages: Sequence[Message], context: Context) -> Utterance:
        return self.turns.pop(0) if self.turns else Utterance(done=True)


def run(agent: Any, customer: Any = None, world: Any = None, **stage: Any) -> Trace:
    played = FunctionAgent(agent) if callable(agent) else agent
    made = Stage(agent=played, customer=customer or Says(), system_prompt="Be kind.", tools=(CANCEL, TRANSFER), **stage)
    return asyncio.run(play(Case(card=CARD, rollout=0, seed=1), made, world or Desk()))


def call(name: str, arguments: str = "{}", call_id: str = "c1") -> dict[str, Any]:
    return {"tool_calls": [{"id": call_id, "function": {"name": name, "arguments": arguments}}]}


def roles(trace: Trace) -> str:
    return "".join(m.role[0] for m in trace.messages)


def test_the_system_prompt_and_the_opening_come_first_word_for_word() -> None:
    trace = run(lambda messages: "Hello.")
    assert [m.content for m in trace.messages] == ["Be kind.", "Please cancel my order W1.", "Hello."]
    assert trace.stop == "customer_done"


def test_a_call_is_answered_before_the_agent_speaks_again() -> None:
    trace = run(lambda messages: call("cancel_order") if len(messages) == 2 else "Done.")
    assert roles(trace) == "suata"
    assert trace.messages[3].tool_call_id == trace.messages[2].tool_calls[0].id


def test_malformed_arguments_stay_as_they_were_and_count_as_failed() -> None:
    trace = run(lambda messages: call("cancel_order", '{"id": "W') if len(messages) == 2 else "Sorry.")
    assert trace.calls[0].arguments == '{"id": "W'
    assert trace.failed_calls == ("c1",)


def test_calls_through_the_context_stand_on_the_trace_in_order() -> None:
    def agent(messages: list[dict[str, Any]], context: Context) -> str:
        return f"I saw {context.call('cancel_order', {'id': 'W1'})}"

    trace = run(agent)
    assert roles(trace) == "suata"
    assert trace.messages[-1].content == 'I saw {"ok": true}'


def test_the_token_glued_to_text_delivers_the_text_and_the_agent_answers_once() -> None:
    said = read_utterance(f"That's fine, please close it. {DONE}")
    trace = run(lambda messages: "Okay.", Says(said))
    assert roles(trace) == "suaua"
    assert trace.messages[3].content == "That's fine, please close it."
    assert trace.stop == "customer_done"


@pytest.mark.parametrize("sign", [DONE, "[DONE]", "[[DONE]", "[[ DONE ]]"])
def test_a_customer_model_may_write_the_sign_with_other_brackets(sign: str) -> None:
    assert read_utterance(f"Thanks, bye. {sign}") == Utterance(text="Thanks, bye.", done=True)
    assert read_utterance("Is it DONE?") == Utterance(text="Is it DONE?")


def test_a_handoff_ends_after_one_more_word() -> None:
    trace = run(
        lambda messages: call("transfer") if len(messages) == 2 else "A colleague takes over.",
        Says(Utterance(text="and?")),
    )
    assert trace.stop == "handed_off"
    assert trace.messages[-1].role == "assistant"


def test_turns_count_customer_messages_the_opening_included() -> None:
    trace = run(lambda messages: "Go on.", Says(*[Utterance(text="more")] * 9), turns=3)
    assert trace.stop == "max_turns"
    assert sum(m.role == "user" for m in trace.messages) == 3


def test_calls_without_a_word_are_stopped() -> None:
    trace = run(lambda messages: call("cancel_order"))
    assert trace.stop == "call_limit"
    assert len(trace.calls) == CALL_ROUNDS
    assert len({c.id for c in trace.calls}) == CALL_ROUNDS


def test_an_agent_that_raises_fails_its_own_conversation() -> None:
    def agent(messages: list[dict[str, Any]]) -> str:
        raise ZeroDivisionError("no")

    trace = run(agent)
    assert trace.stop == "agent_error"
    assert trace.failure is not None
    assert (trace.failure.role, trace.failure.reason) == ("agent", "player")
    assert "ZeroDivisionError" in trace.failure.message


@pytest.mark.parametrize("found", [None, 3, {"role": "user", "content": "me"}, []])
def test_an_agent_that_returns_no_message_is_told_what_to_return(found: Any) -> None:
    trace = run(lambda messages: found)
    assert trace.stop == "agent_error"
    assert trace.failure is not None
    assert "return" in trace.failure.message


@pytest.mark.parametrize(
    ("reason", "stop"), [("budget", "budget"), ("interrupt", "interrupt"), ("timeout", "agent_error")]
)
def test_the_reason_of_a_model_error_decides_the_stop(reason: str, stop: str) -> None:
    def agent(messages: list[dict[str, Any]]) -> str:
        raise ModelError("over", reason=reason)

    assert run(agent).stop == stop


def test_a_customer_that_fails_is_the_customers_fault() -> None:
    def customer(card: Card, messages: list[dict[str, Any]]) -> str:
        raise ValueError("lost")

    trace = run(lambda messages: "Hello.", FunctionCustomer(customer))
    assert trace.stop == "customer_error"
    assert trace.failure is not None
    assert trace.failure.role == "customer"


def test_a_world_that_raises_or_returns_no_text_ends_one_conversation() -> None:
    class Raises(Desk):
        def call(self, name: str, arguments: Any) -> str:
            raise OSError("gone")

    class Odd(Desk):
        def call(self, name: str, arguments: Any) -> Any:
            return {"ok": True}

    for world, words in ((Raises(), "OSError"), (Odd(), "must return text")):
        trace = run(lambda messages: call("cancel_order"), world=world)
        assert trace.failure is not None
        assert trace.failure.reason == "world"
        assert words in trace.failure.message


def test_a_slow_player_meets_the_deadline_and_keeps_what_was_said() -> None:
    async def agent(messages: list[dict[str, Any]]) -> str:
        await asyncio.sleep(5)
        return "late"

    trace = run(agent, deadline=0.05)
    assert trace.stop == "deadline"
    assert roles(trace) == "su"


def test_the_customer_sees_no_calls_and_no_policy() -> None:
    seen: list[Sequence[Message]] = []

    class Watches(Says):
        async def speak(self, card: Card, messages: Sequence[Message], context: Context) -> Utterance:
            seen.append(messages)
            return Utterance(done=True)

    run(
        lambda messages: {**call("cancel_order"), "content": "One moment."} if len(messages) == 2 else "Done.",
        Watches(),
    )
    assert [(m.role, m.content, m.tool_calls) for m in seen[0]] == [
        ("user", "Please cancel my order W1.", ()),
        ("assistant", "One moment.", ()),
        ("assistant", "Done.", ()),
    ]


def test_a_call_without_an_id_gets_one() -> None:
    made = ToolCall(id="", name="cancel_order", arguments="{}")

    class Bare:
        async def answer(self, messages: Sequence[Message], context: Context) -> Sequence[Message]:
            if len(messages) == 2:
                return (Message(role="assistant", tool_calls=(made, replace(made))),)
            return (Message(role="assistant", content="Done."),)

    trace = run(Bare())
    assert [c.id for c in trace.calls] == ["call_1", "call_2"]


@pytest.mark.parametrize("ids", [["c", "c"], ["call_2", "call_2"]])
def test_calls_of_one_message_that_share_an_id_get_ids_of_their_own(ids: list[str]) -> None:
    calls = [call("cancel_order", text, i)["tool_calls"][0] for i, text in zip(ids, ("{}", "no JSON"), strict=True)]
    trace = run(lambda messages: {"tool_calls": calls} if len(messages) == 2 else "Done.")
    made = [c.id for c in trace.calls]
    assert len(set(made)) == 2
    assert [m.tool_call_id for m in trace.messages if m.role == "tool"] == made
    assert trace.failed_calls == (made[1],)


def test_an_agent_that_runs_its_own_tools_is_not_answered_a_second_time() -> None:
    world = Desk()

    def agent(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [call("cancel_order"), {"role": "tool", "tool_call_id": "c1", "content": "done"}, {"content": "Done."}]

    trace = run(agent, Says(Utterance(text="And again?")), world)
    assert roles(trace) == "suatauata"
    made = [c.id for c in trace.calls]
    assert made[0] != made[1]
    assert [(m.tool_call_id, m.content) for m in trace.messages if m.role == "tool"] == [(i, "done") for i in made]
    assert world.log == []
    assert trace.failed_calls is None


@pytest.mark.parametrize("found", [{"role": "boss"}, {"content": {"a": 1}}, {"tool_calls": [7]}, {"tool_calls": 7}])
def test_a_message_of_a_wrong_shape_ends_its_conversation_and_not_the_run(found: Any) -> None:
    trace = run(lambda messages: found)
    assert trace.stop == "agent_error"
    assert trace.failure is not None
    assert trace.failure.reason == "player"
    assert "the agent function returned a " in trace.failure.message


def test_a_value_nested_without_end_is_quoted_in_short() -> None:
    deep: Any = []
    for _ in range(3000):
        deep = [deep]
    trace = run(lambda messages: {"role": deep})
    assert trace.failure is not None
    assert "a message has the role [[[" in trace.failure.message


def test_a_result_before_its_call_answers_nothing() -> None:
    def agent(messages: list[dict[str, Any]]) -> Any:
        return [{"role": "tool", "tool_call_id": "c1", "content": "mine"}, call("cancel_order"), {"content": "Done."}]

    trace = run(agent)
    assert [m.content for m in trace.messages if m.role == "tool"] == ["mine", '{"ok": true}']
