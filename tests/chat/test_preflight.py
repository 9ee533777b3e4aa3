"""What a run finds out before anything is played."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from stub import HANG, Stub, refuse

from whilesim.chat.endpoint import Endpoint
from whilesim.chat.loop import run
from whilesim.chat.models import Model
from whilesim.chat.preflight import preflight
from whilesim.chat.replies import Replies
from whilesim.chat.throttle import Budget, Throttle
from whilesim.core.errors import InputError, RunError


def tools(count, words=3):
    return tuple(
        {
            "type": "function",
            "function": {"name": f"look_up_{i}", "description": "word " * words, "parameters": {"type": "object"}},
        }
        for i in range(count)
    )


def fly(*models, given=(), prompt="Be kind.", throttle=None, replies=None):
    """Ask once for each role: the first model is the agent, a second the customer."""

    async def go():
        chats = {
            role: Endpoint(model, throttle=throttle, replies=replies)
            for role, model in zip(("agent", "customer"), models, strict=False)
        }
        try:
            await preflight(chats, given, prompt)
        finally:
            for chat in chats.values():
                await chat.close()

    return run(go())


def at(stub, **options):
    return Model("m", base_url=stub.url, **{"timeout": 5, **options})


def test_each_role_is_asked_once_the_agent_with_its_own_prompt_and_tools():
    with Stub() as stub:
        fly(at(stub), at(stub), given=tools(2))
    agent, customer = stub.bodies
    assert [m["content"] for m in agent["messages"]] == ["Be kind.", "Say OK."]
    assert len(agent["tools"]) == 2
    assert [m["content"] for m in customer["messages"]] == ["Say OK."]
    assert "tools" not in customer


def test_it_names_the_role_and_the_cause():
    with Stub(key="right") as stub, pytest.raises(RunError, match=r"the customer's model .* \(auth\).*Check the key"):
        fly(at(stub, api_key="right"), at(stub, api_key="wrong"))
    assert stub.count == 2


def test_a_model_that_says_nothing_at_all_is_given_up_in_seconds(monkeypatch):
    monkeypatch.setattr("whilesim.chat.endpoint._FIRST_PAUSE", 0.05)
    throttle = Throttle(patience=0.3)
    with Stub(plan=lambda *_: HANG) as stub, pytest.raises(RunError, match=r"does not answer.*timeout"):
        fly(at(stub, timeout=0.2), throttle=throttle)
    assert stub.count < 12


def test_the_cache_is_not_looked_into_and_keeps_nothing(tmp_path):
    replies = Replies(tmp_path / "r.sqlite")
    with Stub() as stub:
        fly(at(stub), replies=replies)
        fly(at(stub), replies=replies)
    replies.close()
    assert stub.count == 2
    with closing(sqlite3.connect(tmp_path / "r.sqlite")) as file:
        assert file.execute("SELECT count(*) FROM replies").fetchone()[0] == 0


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("openai:gpt-x", None),
        ("gpt-x", "https://api.openai.com/v1"),
        ("deployed", "https://me.openai.azure.com/openai/v1"),
        ("groq/llama-x", None),
    ],
)
def test_too_many_functions_for_a_known_endpoint_are_refused_before_any_call(name, url, monkeypatch):
    monkeypatch.setenv("GROQ_API_KEY", "k")
    model = Model(name, base_url=url, api_key="k")
    with pytest.raises(InputError, match=r"there are 129 tools, and .* takes 128 functions .* tool_mode=\"json\""):
        fly(model, given=tools(129))


def test_a_server_of_ones_own_may_take_more_functions_and_json_actions_are_none():
    with Stub() as stub:
        fly(at(stub), given=tools(129))
        fly(at(stub, tool_mode="json"), given=tools(129))
    assert stub.count == 2


def test_an_endpoint_that_counts_functions_itself_is_understood():
    long = "Invalid 'tools': array too long. Expected an array with maximum length 64, but got an array with length 80."
    with Stub(plan=lambda *_: refuse(400, long)) as stub, pytest.raises(RunError, match=r"Give fewer tools, or type"):
        fly(at(stub), given=tools(80))
    assert stub.count == 1


def test_a_prompt_that_cannot_fit_the_known_window_is_refused_before_any_call():
    with Stub() as stub, pytest.raises(InputError, match=r"3 tools take [\d,]+ tokens or more, and 'm' reads 4,096"):
        fly(at(stub, window=4096), given=tools(3), prompt="Help the customer. " * 2000)
    assert stub.count == 0


def test_tools_count_into_the_window(monkeypatch):
    with pytest.raises(InputError, match=r"'gpt-4' reads 8,192\. Choose a model that reads more"):
        fly(Model("openai:gpt-4", api_key="k"), given=tools(20, words=1000))


def test_what_fits_the_window_is_asked_and_a_given_window_beats_the_listed_one():
    with Stub() as stub:
        fly(Model("openai:gpt-4", api_key="k", base_url=stub.url, window=200_000), prompt="Help them. " * 5000)
    assert stub.count == 1


def test_an_endpoint_that_finds_the_prompt_too_long_says_what_to_do():
    full = "This model's maximum context length is 2048 tokens"
    with (
        Stub(plan=lambda *_: refuse(400, full)) as stub,
        pytest.raises(RunError, match=r"context_window.*longer context"),
    ):
        fly(at(stub))
    assert stub.count == 1


def test_a_model_without_tools_is_asked_for_json_unless_that_was_ruled_out():
    plan = lambda _, body: refuse(400, "m does not support tools") if "tools" in body else None  # noqa: E731
    with Stub(plan=plan) as stub:
        fly(at(stub), given=tools(1))
        assert stub.count == 2
    with Stub(plan=plan) as stub, pytest.raises(RunError, match=r"does not support tools.* tool_mode=\"json\""):
        fly(at(stub, tool_mode="native"), given=tools(1))
    assert stub.count == 1


def test_a_budget_that_allows_no_call_says_so_before_any_call():
    throttle = Throttle(budget=Budget(tokens=10))
    with Stub() as stub, pytest.raises(RunError, match=r"may not be asked.*budget is used up"):
        fly(at(stub), throttle=throttle)
    assert stub.count == 0
