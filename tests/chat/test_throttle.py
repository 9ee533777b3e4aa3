"""Budgets and stops."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from whilesim.chat.failures import CallFailed
from whilesim.chat.throttle import Budget, Throttle, bound_of
from whilesim.chat.usage import Price, Usage
from whilesim.core.errors import InputError, ModelError


@pytest.mark.parametrize("caps", [{"usd": 0}, {"tokens": -1}, {"seconds": 0.0}, {"usd": float("nan")}])
def test_a_budget_of_nothing_is_an_error(caps: dict[str, Any]):
    with pytest.raises(InputError, match=r"Budget\(.* allows nothing. Type a number above 0"):
        Budget(**caps)


def test_no_concurrency_is_an_error():
    with pytest.raises(InputError, match="concurrency=0 lets no request through"):
        Throttle(concurrency=0)


def test_a_reservation_waits_for_what_others_hold():
    async def go():
        throttle = Throttle(budget=Budget(tokens=100))
        await throttle.reserve(0.0, 80)
        waiting = asyncio.ensure_future(throttle.reserve(0.0, 50))
        await asyncio.sleep(0)
        assert not waiting.done()
        throttle.settle(0.0, 80, Usage(calls=1, tokens_in=10, tokens_out=5))
        await asyncio.wait_for(waiting, 1)
        throttle.settle(0.0, 50, Usage(calls=1, tokens_in=40, tokens_out=5))
        with pytest.raises(ModelError, match="60 tokens are spent, and the next call may take"):
            await throttle.reserve(0.0, 50)

    asyncio.run(go())


def test_a_call_without_an_answer_gives_its_reservation_back_unless_it_may_be_billed():
    async def go():
        throttle = Throttle(budget=Budget(tokens=100))
        for _ in range(10):
            await throttle.reserve(0.0, 60)
            throttle.settle(0.0, 60, None)
        await throttle.reserve(0.0, 60)
        throttle.settle(0.0, 60, Usage(calls=1))
        with pytest.raises(ModelError, match="budget is used up"):
            await throttle.reserve(0.0, 60)

    asyncio.run(go())


def test_an_answer_without_usage_costs_what_was_set_aside():
    async def go():
        throttle = Throttle(budget=Budget(tokens=100))
        await throttle.reserve(0.0, 60)
        throttle.settle(0.0, 60, Usage(calls=1, usd=None))
        with pytest.raises(ModelError, match="budget is used up"):
            await throttle.reserve(0.0, 60)

    asyncio.run(go())


def test_the_bound_counts_bytes_and_the_longest_answer():
    assert bound_of(b"x" * 900, 100, Price(tokens_in=1, tokens_out=2)) == (pytest.approx(0.0011), 1000)


def test_refusals_for_load_are_given_eight_times_the_patience():
    for reason, stops in (("server", True), ("rate_limit", False)):
        throttle = Throttle(patience=0.0 if reason == "server" else 10.0)
        for _ in range(30):
            throttle.failed(CallFailed("no", reason=reason))
        assert (throttle.stopped is not None) is stops


def test_an_answer_ends_the_silence():
    throttle = Throttle(patience=0.0)
    for _ in range(50):
        for _ in range(4):
            throttle.failed(CallFailed("no", reason="server"))
        throttle.answered(Usage(calls=1))
    assert throttle.stopped is None


def test_a_conversation_that_is_too_long_says_nothing_about_the_endpoint():
    throttle = Throttle(patience=0.0)
    for _ in range(100):
        throttle.failed(CallFailed("too long", reason="context_window"))
    assert throttle.stopped is None


def test_a_wrong_key_in_the_middle_of_a_run_stops_it_at_once():
    throttle = Throttle()
    for _ in range(10):
        throttle.failed(CallFailed("bad key", reason="auth"))
    assert throttle.stopped is not None
    assert throttle.stopped.reason == "auth"
    assert "10 x auth: bad key" in str(throttle.stopped)


def test_a_stop_wakes_all_who_sleep_and_wait():
    async def go():
        throttle = Throttle(concurrency=1, budget=Budget(tokens=100))
        slots = throttle.slots("here")
        await slots.take()
        await throttle.reserve(0.0, 90)
        waiting = [
            asyncio.ensure_future(slots.take()),
            asyncio.ensure_future(throttle.reserve(0.0, 50)),
            asyncio.ensure_future(throttle.sleep(60)),
        ]
        await asyncio.sleep(0)
        assert throttle.asleep == 1
        throttle.stop(ModelError("enough", reason="interrupt"))
        ended = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), 5)
        assert [type(e) for e in ended] == [ModelError, ModelError, type(None)]
        assert throttle.asleep == 0

    asyncio.run(go())
