"""One loop in a thread of its own."""

from __future__ import annotations

import asyncio
import contextvars
import os
import signal
import threading
import time

import pytest

from whilesim.chat.loop import call, on_interrupt, run
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


def test_sync_callables_run_beside_the_loop_and_async_ones_on_it():
    name = contextvars.ContextVar("name", default="")

    def sync(word):
        time.sleep(0.2)
        return word, threading.current_thread().name, name.get()

    class Asked:
        async def __call__(self, word):
            return word, threading.current_thread().name

    async def go():
        name.set("mine")
        began = time.monotonic()
        found = await asyncio.gather(*(call(sync, i) for i in range(40)), call(Asked(), "a"))
        return found, time.monotonic() - began

    found, seconds = run(go())
    assert [f[0] for f in found] == [*range(40), "a"]
    assert all(f[1].startswith("whilesim-call") and f[2] == "mine" for f in found[:40])
    assert found[40][1] == "whilesim"
    assert seconds < 0.2 * 40 / 4


def test_a_function_that_returns_an_awaitable_is_awaited():
    assert run(call(lambda: where())) == "whilesim"


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
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    ctrl_c(0.2)
    with pytest.raises(KeyboardInterrupt):
        run(work())
    assert cancelled.wait(5)


def test_ctrl_c_lets_work_finish_that_asked_to_be_told(ctrl_c):
    async def work():
        told = asyncio.Event()
        with on_interrupt(told.set):
            await told.wait()
            return "what exists"

    ctrl_c(0.2)
    assert run(work()) == "what exists"


def test_a_second_ctrl_c_does_not_wait(ctrl_c):
    async def work():
        with on_interrupt(lambda: None):
            await asyncio.sleep(60)

    ctrl_c(0.2)
    ctrl_c(0.6)
    with pytest.raises(KeyboardInterrupt):
        run(work())
