"""Loop: one event loop in a thread of its own, so that ``simulate`` works anywhere.

A notebook, a FastAPI handler and pytest-asyncio already run a loop in the caller's thread;
``asyncio.run`` fails there. ``run`` hands the coroutine to the library's own loop and
waits. Whoever stands in a running loop and does not want to block it awaits the coroutine.

Ctrl-C: what is running may finish. The first one tells everyone who asked with
``on_interrupt``; the second one, or the first when nobody asked, cancels.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from whilesim.core.errors import RunError

T = TypeVar("T")

_THREADS = 256  # sync callables that may wait at once; an idle thread costs a few kilobytes

_guard = threading.Lock()
_thread: threading.Thread | None = None
_loop: asyncio.AbstractEventLoop | None = None
_listeners: list[Callable[[], None]] = []


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run the coroutine on the library's own loop and return its result.

    Raises:
        RunError: The caller stands on that very loop; it would wait for itself.
        KeyboardInterrupt: Ctrl-C, and the work did not end in order (see the module).
    """
    loop = _own_loop()
    if threading.current_thread() is _thread:
        coroutine.close()
        raise RunError("this function waits, and it was called from an async callable. Type: await asimulate(...)")
    future = asyncio.run_coroutine_threadsafe(coroutine, loop)
    told = False
    while not future.done():
        try:  # a wait without an end cannot be interrupted on Windows
            concurrent.futures.wait([future], timeout=0.5)
        except KeyboardInterrupt:
            if told or not _listeners:
                future.cancel()
                raise
            told = True
            for listener in list(_listeners):
                loop.call_soon_threadsafe(listener)
    return future.result()


@contextmanager
def on_interrupt(listener: Callable[[], None]) -> Iterator[None]:
    """While the block lasts, the first Ctrl-C calls ``listener`` on the loop."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def _own_loop() -> asyncio.AbstractEventLoop:
    global _thread, _loop
    with _guard:
        if _loop is None or _thread is None or not _thread.is_alive():  # after a fork it is not
            _loop = asyncio.new_event_loop()
            _loop.set_default_executor(concurrent.futures.ThreadPoolExecutor(_THREADS))
            _thread = threading.Thread(target=_loop.run_forever, name="whilesim", daemon=True)
            _thread.start()
        return _loop
