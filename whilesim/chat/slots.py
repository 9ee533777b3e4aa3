"""Slots: how many requests one endpoint is asked at a time.

A slot is held by a request, not by a conversation, and never by one that sleeps. The number
of slots adapts once a second: it is cut when requests are refused, time out or grow slow,
and grows again when they are not (additive increase, multiplicative decrease [1]). Refusals
do not always depend on load, so each cut is on trial: one that did not help is taken back.

A burst of refusals is one event: when most answers are refusals, one cool-down holds all.

    [1] Chiu, Jain (1989). Analysis of the increase and decrease algorithms for congestion
        avoidance in computer networks. Computer Networks and ISDN Systems 17(1), 1-14.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable

_WINDOW = 1.0  # seconds between two looks
_CUT, _GROWTH = 0.7, 1 / 16
_STRAIN = 0.02  # share of refused or timed out requests that is a reason to cut
_STORM = 0.6  # share of recent answers that are refusals, from which on all wait
_SLOW = 3.0  # times the best mean latency seen
_REST = 30.0  # seconds without another cut after one that did not help


class Slots:
    """Slots of one endpoint; all calls on one event loop.

    Args:
        ceiling: Most requests at a time.
        clock: Seconds; tests give their own.
    """

    def __init__(self, ceiling: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.ceiling = ceiling
        self.limit = float(ceiling)
        self.taken = 0
        self._clock = clock
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._cool_until = 0.0
        self._refusing = 0.0  # moving share of answers that are refusals
        self._timer: asyncio.TimerHandle | None = None
        self._open_window(clock())
        self._best = 0.0  # lowest mean latency of a window, in seconds; 0 is none yet
        self._trial: tuple[float, float, float] | None = None  # limit, strain and rate before the cut
        self._no_cut_until = 0.0

    async def take(self) -> None:
        """Wait for a slot; first come, first served."""
        if not self._waiting and self.taken < int(self.limit) and self._clock() >= self._cool_until:
            self.taken += 1
            return
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        self._arm()
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled() and future.exception() is None:
                self.give_back()  # the slot was granted while we were being cancelled
            raise

    def give_back(self) -> None:
        """Return a slot; whoever waits longest gets it."""
        self.taken -= 1
        self._grant()

    def answered(self, seconds: float) -> None:
        """Note an answer and how long the request took."""
        self._refusing *= 0.95
        self._answers += 1
        self._seconds += seconds
        self._look()

    def strained(self, *, refused: bool, retry_after: float | None = None) -> None:
        """Note a request that the endpoint refused for load (429, 503) or let time out."""
        if self._clock() < self._cool_until:  # sent before the pause began: nothing new
            return
        self._strains += 1
        if refused:
            self._refusing = self._refusing * 0.95 + 0.05
            if self._refusing > _STORM:
                self._cool_down(1.0 if retry_after is None else retry_after)
        self._look()

    def drop_waiting(self, error: Callable[[], Exception]) -> None:
        """Fail all who wait: the run is over."""
        while self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                future.set_exception(error())

    def _cool_down(self, seconds: float) -> None:
        now = self._clock()
        self._cool_until = now + seconds
        self._refusing = _STORM * 0.9  # a few refusals after the pause begin another one
        self.limit, self._trial = max(1.0, self.limit / 2), None
        self._open_window(self._cool_until)

    def _grant(self) -> None:
        if self._clock() < self._cool_until:
            self._arm()
            return
        while self._waiting and self.taken < int(self.limit):
            future = self._waiting.popleft()
            if not future.done():
                self.taken += 1
                future.set_result(None)

    def _arm(self) -> None:
        wait = self._cool_until - self._clock()
        if self._waiting and wait > 0 and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(wait, self._fire)

    def _fire(self) -> None:
        self._timer = None
        self._grant()

    def _open_window(self, now: float) -> None:
        self._since, self._answers, self._strains, self._seconds = now, 0, 0, 0.0

    def _look(self) -> None:
        now = self._clock()
        if now - self._since < _WINDOW or self._answers + self._strains < max(4, min(20, self.limit)):
            return
        strain = self._strains / (self._answers + self._strains)
        mean = self._seconds / self._answers if self._answers else 0.0
        rate = self._answers / (now - self._since)
        if mean:
            self._best = min(self._best * 1.02, mean) if self._best else mean
        self._adapt(now, strain, slow=mean > _SLOW * self._best, rate=rate)
        self._open_window(now)
        self._grant()

    def _adapt(self, now: float, strain: float, *, slow: bool, rate: float) -> None:
        if self._trial is not None:
            before, old_strain, old_rate = self._trial
            self._trial = None
            helped = strain <= 0.8 * old_strain if old_strain > _STRAIN else rate >= 0.9 * old_rate
            if not helped:
                self.limit, self._no_cut_until = before, now + _REST
                return
        if (strain > _STRAIN or slow) and now >= self._no_cut_until:
            self._trial = (self.limit, strain, rate)
            self.limit = max(1.0, self.limit * _CUT)
        elif (strain <= _STRAIN and not slow) or now < self._no_cut_until:
            self.limit = min(float(self.ceiling), self.limit + max(1.0, self.ceiling * _GROWTH))
