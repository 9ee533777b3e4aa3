"""Slots: how many requests one endpoint is asked at a time.

A slot is held by a request, not by a conversation, and never by one that sleeps. An endpoint
begins with a few, whose answers show how fast it is without load, and gets one more with each
answer. From then on the number adapts once a second: it is cut when requests are refused,
time out or grow slow, and grows again when they are not (additive increase, multiplicative
decrease [1]), in small steps near the number that was too many. Neither refusals nor slow
answers need come from load, so each cut is on trial: one that cost answers is taken back.

A burst of refusals is one event: when most answers are refusals, one cool-down holds all.

    [1] Chiu, Jain (1989). Analysis of the increase and decrease algorithms for congestion
        avoidance in computer networks. Computer Networks and ISDN Systems 17(1), 1-14.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable

_START = 16  # slots of an endpoint that has answered nothing yet
_WINDOW = 1.0  # seconds between two looks
_CUT, _GROWTH = 0.7, 1 / 16
_NEAR = 0.9  # share of what was too many, from which on one slot more is enough
_STRAIN = 0.02  # share of refused or timed out requests that is a reason to cut
_SLOW = 3.0  # times the best mean latency seen, from which on it is a reason too
_WORTH = 0.9  # share of the answers a second that must be left after a cut
_REST = 30.0  # seconds without another cut after one that was taken back
_STORM = 0.6  # share of recent answers that are refusals, from which on all wait


class Slots:
    """Slots of one endpoint; all calls on one event loop.

    Args:
        ceiling: Most requests at a time.
        clock: Seconds; tests give their own.
    """

    def __init__(self, ceiling: int, clock: Callable[[], float] | None = None) -> None:
        self.ceiling, self.limit, self.taken = ceiling, float(min(ceiling, _START)), 0
        self._clock = clock or time.monotonic
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._cool_until = self._rest_until = 0.0
        self._refusing = 0.0  # moving share of answers that are refusals
        self._best = 0.0  # lowest mean latency of a window, in seconds; 0 is none yet
        self._edge = float("inf")  # where the last cut was made; until then, every answer is worth a slot
        self._trial: tuple[float, float] | None = None  # limit and answers a second before the last cut
        self._open_window(self._clock())

    async def take(self) -> None:
        """Wait for a slot; first come, first served."""
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        self._grant()
        try:
            await future
        except asyncio.CancelledError:
            if not future.cancelled() and future.exception() is None:
                self.give_back()  # the slot was granted while we were being cancelled
            raise

    def give_back(self) -> None:
        """Return a slot; whoever waits longest gets it."""
        self.taken -= 1
        self._grant()

    def answered(self, seconds: float) -> None:
        """Note an answer and how long the request took."""
        self._note(refused=False)
        self._answers += 1
        self._seconds += seconds
        if self._edge == float("inf") and self.limit < self.ceiling:
            self.limit += 1.0
            self._grant()
        if not self._best and self._answers >= min(self.ceiling, _START):
            self._best = self._seconds / self._answers
        self._review()

    def strained(self, *, refused: bool, retry_after: float | None = None) -> None:
        """Note a request that the endpoint refused for load (429) or let time out."""
        if (now := self._clock()) < self._cool_until:  # sent before the pause began: nothing new
            return
        self._strains += 1
        self._note(refused=refused)
        if self._refusing > _STORM:
            self._cool_until = now + (1.0 if retry_after is None else retry_after)
            self._refusing = _STORM / 2  # fewer refusals after the pause begin another one
            self._edge = self.limit
            self.limit, self._trial = max(1.0, self.limit / 2), None
            self._open_window(self._cool_until)
        self._review()

    def drop_waiting(self, error: Callable[[], Exception]) -> None:
        """Fail all who wait: the run is over."""
        while self._waiting:
            if not (future := self._waiting.popleft()).done():
                future.set_exception(error())

    def _grant(self) -> None:
        if (pause := self._cool_until - self._clock()) > 0:
            asyncio.get_running_loop().call_later(pause, self._grant)
            return
        while self._waiting and self.taken < int(self.limit):
            if not (future := self._waiting.popleft()).done():
                self.taken += 1
                future.set_result(None)

    def _note(self, *, refused: bool) -> None:
        """Move the share of refusals: they come back first, so a round of all slots must count as one look."""
        self._refusing += (refused - self._refusing) / max(20.0, self.limit)

    def _open_window(self, now: float) -> None:
        self._since, self._answers, self._strains, self._seconds = now, 0, 0, 0.0

    def _review(self) -> None:
        now, total = self._clock(), self._answers + self._strains
        if now - self._since < _WINDOW or total < max(4, min(20, self.limit)):
            return
        rate, mean = self._answers / (now - self._since), self._seconds / max(1, self._answers)
        if mean:
            self._best = min(self._best * 1.02, mean) if self._best else mean
        bad = self._strains / total > _STRAIN or mean > _SLOW * self._best
        before, self._trial = self._trial, None
        if before is not None and rate < _WORTH * before[1]:
            self.limit, self._rest_until = before[0], now + _REST
        elif bad and now >= self._rest_until:
            self._trial, self._edge = (self.limit, rate), self.limit
            self.limit = max(1.0, self.limit * _CUT)
        else:
            # after a window without strain: fast up to where it was too much before, then by one
            most = self.limit + max(1.0, self.ceiling * _GROWTH)
            if self.limit <= self._edge:
                most = min(most, max(self.limit + 1.0, _NEAR * self._edge))
            self.limit = min(float(self.ceiling), most)
        self._open_window(now)
        self._grant()
