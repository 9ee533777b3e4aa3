"""One loop in a thread of its own."""

from __future__ import annotations

import asyncio
import os
import signal
import threading

import pytest

from whilesim.chat.loop import on_interrupt, run
from whilesim.core.errors import RunError


async def where() -> str:
    return threading.current_thread().name


def test_work_runs_on_a_thread_of_its_own():
    assert run(where()) == "whilesim"


def test_it_works_where_a_loop_is_running_already():
    async def cell():  # what a notebook, a FastAPI handler and pytest-asyncio are
        return run(where())

    assert asyncio.run(cell()) == "whilesim"


def test_an_error_comes_out_as_it_was():
    async def fail():
        raise TimeoutError("my own")

    with pytest.raises(TimeoutError, match="my own"):
        run(fail())


def test_waiting_for_oneself_is_an_error():
    async def inside():
        run(where())

    with pytest.raises(RunError, match="Type: await asimulate"):
        run(inside())


def test_many_blocking_functions_wait_at_once():
    async def go():
        gate = threading.Barrier(100)  # opens when all hundred wait before it
        loop = asyncio.get_running_loop()
        return await asyncio.gather(*(loop.run_in_executor(None, gate.wait, 60) for _ in range(100)))

    assert sorted(run(go())) == list(range(100))


@pytest.fixture
def ctrl_c():
    """Press Ctrl-C in the main thread a little later."""
    timers = []

    def press(after):
        timers.append(threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT)))
        timers[-1].start()

    yield press
    for timer in timers:
        timer.join()


def test_ctrl_c_cancels_when_nobody_asked_to_be_told(ctrl_c):
    cancelled = threading.Event()

    async def work():
        ctrl_c(0.2)
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    with pytest.raises(KeyboardInterrupt):
        run(work())
    assert cancelled.wait(5)


def test_ctrl_c_lets_work_finish_that_asked_to_be_told(ctrl_c):
    async def work():
        told = asyncio.Event()
        with on_interrupt(told.set):
            ctrl_c(0.2)
            await told.wait()
            return "what exists"

    assert run(work()) == "what exists"


def test_a_second_ctrl_c_does_not_wait(ctrl_c):
    async def work():
        with on_interrupt(lambda: ctrl_c(0.2)):  # the second, once the first was heard
            ctrl_c(0.2)
            await asyncio.sleep(60)

    with pytest.raises(KeyboardInterrupt):
        run(work())
