"""Slots that adapt, on a clock of the test's own."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from whilesim.chat.slots import Slots


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def seconds_of(slots, clock, windows, outcome, count=lambda: 40):
    """Let so many seconds pass, each with so many outcomes: answered after some seconds, or refused."""
    limits = []
    for second in range(windows):
        outcomes = int(count())
        for i in range(outcomes):
            clock.now += 1.001 / outcomes
            found = outcome(second, i)
            if found is None:
                slots.strained(refused=True)
            else:
                slots.answered(found)
        limits.append(slots.limit)
    return limits


def test_an_endpoint_begins_with_a_few_slots_and_each_answer_is_worth_another():
    slots = Slots(64, clock := Clock())
    assert slots.limit == 16.0
    assert seconds_of(slots, clock, 10, lambda *_: 0.05) == [60.0] + [64.0] * 9
    assert Slots(4).limit == 4.0


def test_near_what_was_too_many_slots_grow_one_by_one():
    slots = Slots(128, clock := Clock())
    slots.limit = 128.0
    seconds_of(slots, clock, 1, lambda _, i: None if i % 3 == 0 else 0.05)
    assert slots.limit == pytest.approx(89.6)
    slots._trial = None  # whether it was worth it is another test's
    assert seconds_of(slots, clock, 5, lambda *_: 0.05) == pytest.approx([97.6, 105.6, 113.6, 115.2, 116.2])


def test_refusals_that_depend_on_load_cut_until_they_stop():
    slots = Slots(64, clock := Clock())

    def server(_, i):  # takes 30 at a time; the share above is refused
        return None if i / 40 < max(0.0, 1 - 30 / slots.limit) else 0.05

    limits = seconds_of(slots, clock, 30, server)
    assert min(limits) < 33
    assert sum(limits[10:]) / 20 < 45


def test_a_cut_that_costs_answers_is_taken_back():
    slots = Slots(64, clock := Clock())
    refused = lambda _, i: None if i % 3 == 0 else 0.05  # noqa: E731  whatever the load
    slots.limit = 64.0
    limits = seconds_of(slots, clock, 12, refused, lambda: slots.limit)
    assert limits[0] < 64
    assert limits[1:] == [64.0] * 11


def test_slow_answers_cut_where_that_costs_no_throughput():
    slots = Slots(64, clock := Clock())
    seconds_of(slots, clock, 2, lambda *_: 0.05)  # what it is without load
    limits = seconds_of(slots, clock, 6, lambda *_: 0.05 * max(1.0, slots.limit / 10))
    assert limits[-1] < 40


def test_slots_grow_back_after_a_strain():
    slots = Slots(64, clock := Clock())
    slots.limit = 8.0
    assert seconds_of(slots, clock, 20, lambda *_: 0.05)[-1] == 64.0


def test_a_burst_of_refusals_is_one_pause():
    slots = Slots(16, clock := Clock())
    for _ in range(60):
        slots.strained(refused=True, retry_after=2.0)
    end = slots._cool_until
    assert end == clock.now + 2.0
    clock.now += 1.0
    slots.strained(refused=True, retry_after=2.0)  # sent before the pause began
    assert slots._cool_until == end
    assert slots.limit == 8.0


def test_refusals_now_and_then_pause_nobody():
    slots = Slots(16, clock := Clock())
    seconds_of(slots, clock, 20, lambda _, i: None if i % 3 == 0 else 0.05)
    assert slots._cool_until == 0.0


def test_refusals_that_come_back_before_the_first_answers_are_no_storm():
    slots = Slots(128, Clock())
    slots.limit = 128.0
    for _ in range(55):  # 30 % of all, and of those that take their places, and so on
        slots.strained(refused=True, retry_after=2.0)
    assert slots._cool_until == 0.0


def test_slots_are_given_in_order_and_none_is_lost():
    async def go():
        slots, order = Slots(2), []

        async def user(number):
            await slots.take()
            order.append(number)
            await asyncio.sleep(0)
            slots.give_back()

        tasks = [asyncio.ensure_future(user(i)) for i in range(20)]
        await asyncio.sleep(0)
        for task in itertools.islice(tasks, 5, 15, 3):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert order == sorted(order)
        assert slots.taken == 0
        return len(order)

    assert asyncio.run(go()) >= 16


def test_a_slot_granted_to_a_task_that_is_being_cancelled_is_given_back():
    async def go():
        slots = Slots(1)
        await slots.take()
        task = asyncio.ensure_future(slots.take())
        await asyncio.sleep(0)
        slots.give_back()  # grants it
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return slots.taken

    assert asyncio.run(go()) == 0


def test_a_pause_ends_by_itself():
    async def go():
        slots = Slots(4)
        for _ in range(60):
            slots.strained(refused=True, retry_after=0.05)
        await asyncio.wait_for(slots.take(), 5)

    asyncio.run(go())
