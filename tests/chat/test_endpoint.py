"""An endpoint that fails in every way that endpoints do."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from contextlib import closing

import pytest
from stub import DISCONNECT, DRIP, HANG, RESET, TRUNCATED, Stub, refuse, say_raw

from whilesim.chat.endpoint import Endpoint, identify, is_client
from whilesim.chat.failures import CallFailed
from whilesim.chat.loop import run
from whilesim.chat.messages import Message
from whilesim.chat.models import CallKey, Model
from whilesim.chat.replies import Replies
from whilesim.chat.throttle import Budget, Throttle
from whilesim.core.errors import InputError, ModelError

TOOLS = (
    {
        "type": "function",
        "function": {
            "name": "look_up",
            "parameters": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
        },
    },
)
HELLO = [Message(role="user", content="Hello")]


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch):
    """The first pause is a tenth of what it is, and so are all that double it; a header's pause is the header's."""
    monkeypatch.setattr("whilesim.chat.endpoint._FIRST_PAUSE", 0.05)


def ask(stub, *, times=1, tools=(), schema=None, throttle=None, replies=None, **model):
    """Ask the stub so many times, one after another; return the replies."""
    model.setdefault("base_url", stub.url)
    model.setdefault("timeout", 5)

    async def all_calls():
        chat = Endpoint(Model("m", **model), throttle=throttle, replies=replies)
        try:
            return [await chat.reply(HELLO, tools, schema=schema, key=CallKey(case="c", turn=i)) for i in range(times)]
        finally:
            await chat.close()

    return run(all_calls())


def kept(folder) -> int:
    """Return how many answers the folder's reply cache holds."""
    with closing(sqlite3.connect(folder / "replies.sqlite")) as file:
        return file.execute("SELECT count(*) FROM replies").fetchone()[0]


def quick(**options) -> Throttle:
    return Throttle(**{"retry_for": 20.0, **options})


def test_a_call_is_one_request_with_what_the_model_says():
    with Stub() as stub:
        [reply] = ask(stub, api_key="k", temperature=None, max_tokens=7, extra={"top_p": 0.5})
    assert reply.message.content == "This is answer 1."
    assert reply.usage.calls == 1
    assert reply.usage.usd is None
    assert stub.bodies == [
        {"model": "m", "max_tokens": 7, "top_p": 0.5, "messages": [{"role": "user", "content": "Hello"}]}
    ]
    assert stub.headers[0]["authorization"] == "Bearer k"


def test_tools_and_schemas_reach_the_endpoint():
    schema = {"type": "object", "properties": {"keep": {"type": "boolean"}}, "required": ["keep"]}
    with Stub() as stub:
        [called] = ask(stub, tools=TOOLS)
        [judged] = ask(stub, schema=schema)
    assert called.message.tool_calls[0].parsed == {"id": "text"}
    assert json.loads(judged.message.content) == {"keep": True}


@pytest.mark.parametrize(
    "fault",
    [RESET, DISCONNECT, TRUNCATED, refuse(500), refuse(503), refuse(429), say_raw("<html>"), say_raw("{}")],
    ids=lambda f: f"{f.kind}-{f.status}",
)
def test_a_passing_fault_is_tried_again(fault):
    with Stub(plan=[fault]) as stub:
        [reply] = ask(stub, throttle=quick())
    assert reply.message.content == "This is answer 1."
    assert stub.count == 2


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (refuse(400, "maximum context length"), "context_window"),
        (refuse(400, "content_filter"), "content_filter"),
        (refuse(400, "unknown field"), "bad_request"),
        (refuse(401), "auth"),
        (refuse(404, "no such model"), "bad_request"),
        (refuse(429, "insufficient_quota"), "rate_limit"),
    ],
)
def test_a_deterministic_error_is_asked_once(fault, reason):
    with Stub(plan=lambda *_: fault) as stub, pytest.raises(ModelError) as failed:
        ask(stub, throttle=quick())
    assert failed.value.reason == reason
    assert stub.count == 1


@pytest.mark.parametrize("fault", [HANG, DRIP], ids=["hang", "drip"])
def test_a_request_ends_at_its_timeout_also_when_bytes_keep_dripping(fault):
    with Stub(plan=lambda *_: fault) as stub, pytest.raises(ModelError, match="did not answer within") as failed:
        ask(stub, timeout=0.3, throttle=Throttle(retry_for=0.5))
    assert failed.value.reason == "timeout"


def test_nobody_listening_is_a_connection_error():
    with Stub() as stub:
        url = stub.url
    with pytest.raises(ModelError, match="Given up after") as failed:
        ask(stub, base_url=url, throttle=Throttle(retry_for=0.6))
    assert failed.value.reason == "connection"


def test_an_unreadable_answer_is_not_asked_for_for_ever():
    with Stub(plan=lambda *_: TRUNCATED) as stub, pytest.raises(ModelError) as failed:
        ask(stub, throttle=quick())
    assert failed.value.reason == "malformed_reply"
    assert stub.count == 5


def test_each_pause_follows_the_latest_header():
    past = "Wed, 21 Oct 2015 07:28:00 GMT"
    plan = [refuse(429, retry_after=0.1), refuse(429, retry_after=0.8), refuse(429, retry_after=past)]
    with Stub(plan=plan) as stub:
        ask(stub, throttle=quick())
    waits = [b - a for a, b in zip(stub.times, stub.times[1:], strict=False)]
    assert len(waits) == 3
    assert 0.1 <= waits[0] < 0.7
    assert waits[1] >= 0.8
    assert waits[2] < 5


def test_the_jitter_of_a_pause_depends_on_names_alone():
    chat = Endpoint(Model("m", base_url="http://127.0.0.1:1/v1"), throttle=quick(seed=3))

    def pauses(case):
        failure = CallFailed("x", reason="server")
        return [chat._pause(failure, ["server"] * attempts, CallKey(case=case)) for attempts in range(1, 5)]

    assert pauses("a") == pauses("a")
    assert pauses("a") != pauses("b")


def test_a_key_is_in_no_error_although_the_server_repeats_it(caplog):
    with Stub(key="the-right-one") as stub, pytest.raises(ModelError) as failed:
        ask(stub, api_key="sk-wrong-secret")
    assert failed.value.reason == "auth"
    assert "Incorrect API key provided: ***" in str(failed.value)
    assert "sk-wrong-secret" not in str(failed.value) + caplog.text
    assert "sk-wrong-secret" not in repr(Endpoint(Model("m", base_url=stub.url, api_key="sk-wrong-secret")))


def refuses(word, field):
    """Refuse requests that hold a field, in the words of some server."""
    return lambda _, body: refuse(400, word) if field in body else None


def test_an_endpoint_without_tools_is_asked_for_actions(caplog):
    with Stub(plan=refuses("m does not support tools", "tools")) as stub:
        first, second = ask(stub, times=2, tools=TOOLS)
    assert first.message.content == "text"
    assert second.message.content == "text"
    assert stub.count == 3  # found out once
    assert [r.levelname for r in caplog.records] == ["WARNING"]
    assert "is asked without tools" in caplog.text


def test_an_action_that_calls_is_an_ordinary_tool_call():
    action = '{"call": "look_up", "arguments": {"id": "A-7"}}'
    with Stub(answer=lambda _: action) as stub:
        [reply] = ask(stub, tools=TOOLS, tool_mode="json")
    assert "tools" not in stub.bodies[0]
    assert reply.message.tool_calls[0].name == "look_up"
    assert reply.message.tool_calls[0].parsed == {"id": "A-7"}


def test_an_endpoint_that_should_have_tools_and_has_none_says_so():
    with (
        Stub(plan=refuses("m does not support tools", "tools")) as stub,
        pytest.raises(ModelError, match="does not support tools"),
    ):
        ask(stub, tools=TOOLS, tool_mode="native")


@pytest.mark.parametrize(
    ("word", "field"),
    [
        ("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", "max_tokens"),
        ("Unsupported value: 'temperature' does not support 0.7 with this model.", "temperature"),
        ("response_format is not supported", "response_format"),
    ],
)
def test_a_field_that_an_endpoint_does_not_know_is_left_out(word, field):
    with Stub(plan=refuses(word, field)) as stub:
        [reply] = ask(stub, schema={"type": "object"})
    assert reply.message.content
    assert field not in stub.bodies[-1]
    if field == "max_tokens":
        assert stub.bodies[-1]["max_completion_tokens"] == 1024


def test_an_answer_is_kept_and_given_again(tmp_path):
    replies = Replies(tmp_path / "replies.sqlite")
    with Stub() as stub:
        once = ask(stub, times=3, replies=replies)
        again = ask(stub, times=3, replies=replies)
    replies.close()
    assert once == again
    assert stub.count == 3


def test_an_answer_is_found_again_behind_another_host_and_key(tmp_path):
    replies = Replies(tmp_path / "replies.sqlite")
    with Stub() as stub:
        once = ask(stub, replies=replies, api_key="one")
    with Stub() as other:
        again = ask(other, replies=replies, api_key="two", timeout=9, price=(1, 1))
    replies.close()
    assert other.count == 0
    assert [r.message for r in once] == [r.message for r in again]


def test_a_broken_answer_is_not_kept(tmp_path):
    replies = Replies(tmp_path / "replies.sqlite")
    with Stub(plan=[TRUNCATED]) as stub:
        ask(stub, replies=replies, throttle=quick())
    replies.close()
    assert kept(tmp_path) == 1


def test_a_dollar_budget_needs_a_price():
    with pytest.raises(InputError, match=r"price of 'm' is unknown.*price=\(0.1, 0.4\)"):
        Endpoint(Model("m", base_url="http://x/v1"), throttle=Throttle(budget=Budget(usd=1)))


def test_a_budget_needs_a_bound_on_answers():
    with pytest.raises(InputError, match="max_tokens of 'm' is None"):
        Endpoint(Model("m", base_url="http://x/v1", max_tokens=None), throttle=Throttle(budget=Budget(tokens=9)))


@pytest.mark.parametrize("concurrent", [1, 20])
def test_a_budget_is_never_passed(concurrent):
    budget = Budget(usd=0.02, tokens=15_000)
    throttle = Throttle(budget=budget)

    async def go(url):
        chat = Endpoint(Model("m", base_url=url, max_tokens=100, price=(1, 2)), throttle=throttle)

        async def many():
            for i in range(200):
                await chat.reply([Message(role="user", content="x" * 900)], key=CallKey(turn=i))

        ended = await asyncio.gather(*(many() for _ in range(concurrent)), return_exceptions=True)
        await chat.close()
        return ended

    with Stub(latency=0.001) as stub:
        ended = run(go(stub.url))
    assert {e.reason for e in ended} == {"budget"}
    assert "Resume the run with a larger Budget" in str(ended[0])
    assert stub.tokens <= 15_000
    assert stub.tokens == throttle.used.tokens_in + throttle.used.tokens_out
    assert stub.tokens > 13_000  # it waited for what others had set aside, and used the budget up
    assert 0 < throttle.used.usd <= 0.02


def test_seconds_end_a_request_that_is_under_way():
    throttle = Throttle(budget=Budget(seconds=0.4))
    began = time.monotonic()
    with Stub(plan=lambda *_: HANG) as stub, pytest.raises(ModelError, match=r"budget of 0.4 seconds") as failed:
        ask(stub, timeout=60, throttle=throttle)
    assert failed.value.reason == "budget"
    assert time.monotonic() - began < 5


def test_waiting_for_a_slot_is_not_part_of_the_timeout():
    throttle = Throttle(concurrency=1)

    async def go(url):
        chat = Endpoint(Model("m", base_url=url, timeout=0.5), throttle=throttle)
        found = await asyncio.gather(*(chat.reply(HELLO) for _ in range(10)))
        await chat.close()
        return found

    with Stub(latency=0.1) as stub:
        assert len(run(go(stub.url))) == 10
    assert stub.most_busy == 1


def test_a_dead_endpoint_ends_the_run_with_its_causes():
    throttle = Throttle(patience=0.5)

    async def go(url):
        chat = Endpoint(Model("m", base_url=url), throttle=throttle)
        ended = await asyncio.gather(*(chat.reply(HELLO) for _ in range(20)), return_exceptions=True)
        await chat.close()
        return ended

    began = time.monotonic()
    with Stub(plan=lambda n, _: refuse(500, "the disk is on fire") if n % 2 else RESET) as stub:
        ended = run(go(stub.url))
    assert time.monotonic() - began < 10
    assert {type(e) for e in ended} == {ModelError}
    assert throttle.stopped is not None
    assert "the disk is on fire" in str(throttle.stopped)
    assert "connection" in str(throttle.stopped)


def test_a_short_outage_loses_no_call():
    end = time.monotonic() + 0.2
    with Stub(plan=lambda *_: refuse(500) if time.monotonic() < end else None) as stub:
        assert len(ask(stub, times=2)) == 2


def test_an_endpoint_can_be_asked_from_one_loop_after_another():
    with Stub() as stub:
        chat = Endpoint(Model("m", base_url=stub.url))

        async def once():
            reply = await chat.reply(HELLO)
            await chat.close()
            return reply.message.content

        assert asyncio.run(once()) == run(once()) == asyncio.run(once())


def test_a_client_is_asked_through_its_own_connections():
    import openai

    async def go(url, **options):
        async with openai.AsyncOpenAI(base_url=url, api_key="sk-of-the-client", **options) as client:
            assert is_client(client)
            with pytest.raises(InputError, match=r"a model is AsyncOpenAI.*client=client"):
                Endpoint(client)
            model = await identify(client)
            chat = Endpoint(model, throttle=quick())
            return model.name, await chat.reply(HELLO, TOOLS)

    plan = [refuse(429, retry_after=0.1), RESET, TRUNCATED]
    with Stub(plan=plan, models=["only-one"]) as stub:
        name, reply = run(go(stub.url, default_headers={"X-Mine": "yes"}))
    assert name == "only-one"
    assert reply.message.tool_calls
    assert stub.count == 4
    assert {h["x-mine"] for h in stub.headers} == {"yes"}
    assert {h["authorization"] for h in stub.headers} == {"Bearer sk-of-the-client"}
    assert stub.bodies[-1]["messages"] == [{"role": "user", "content": "Hello"}]


def test_a_clients_answer_is_utf8_whatever_charset_its_server_names():
    import openai

    async def go(url):
        async with openai.AsyncOpenAI(base_url=url, api_key="k") as client:
            return await Endpoint(await identify(client)).reply(HELLO)

    body = json.dumps({"choices": [{"message": {"role": "assistant", "content": "Viele Grüße"}}]}, ensure_ascii=False)
    with Stub(plan=[say_raw(body, **{"Content-Type": "application/json; charset=ISO-8859-1"})]) as stub:
        assert run(go(stub.url)).message.content == "Viele Grüße"


def test_a_client_of_many_models_must_say_which():
    import openai

    async def go(url):
        async with openai.AsyncOpenAI(base_url=url, api_key="k") as client:
            await identify(client)

    with Stub(models=["a", "b"]) as stub, pytest.raises(InputError, match=r"serves 2 models \(a, b\)"):
        run(go(stub.url))
    with pytest.raises(InputError, match="OpenAI cannot be awaited"):
        run(identify(openai.OpenAI(api_key="k")))


def test_nothing_is_printed(capfd):
    with Stub(plan=[refuse(500)]) as stub:
        ask(stub, throttle=quick())
    assert capfd.readouterr() == ("", "")
