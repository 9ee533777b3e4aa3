"""Virtual: an event loop whose clock jumps to the next thing that is waited for.

A minute of pauses passes in no time, and a measurement on it does not depend on the machine.

    with virtual_time() as loop:
        loop.run_until_complete(...)        # asyncio.sleep(60) returns at once; time.monotonic() agrees
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop in which nothing happens but what is scheduled."""

    now = 1000.0
    _ready: Any
    _scheduled: Any

    def time(self) -> float:
        return self.now

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:
            self.now = max(self.now, self._scheduled[0]._when)
        super()._run_once()  # type: ignore[misc]


@contextmanager
def virtual_time() -> Iterator[VirtualLoop]:
    """Give a loop of that kind, and let ``time.monotonic`` tell its time."""
    loop, real = VirtualLoop(), time.monotonic
    time.monotonic = loop.time
    try:
        yield loop
    finally:
        time.monotonic = real
        loop.close()
