"""Throttle: what all endpoints of one run share: slots, budget, and when to stop.

A call reserves what it may cost at most before it is sent, and settles what it did cost
after, so a cap is never passed. A run whose endpoints answer nothing any more ends in
seconds and says the three commonest causes.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from whilesim.chat.failures import CallFailed
from whilesim.chat.slots import Slots
from whilesim.chat.usage import Price, Usage
from whilesim.core.errors import InputError, ModelError
from whilesim.core.text import shorten

_SOME = 5  # failures in a row that may be a coincidence
_HOPELESS = 10  # deterministic ones in a row that are none


@dataclass(frozen=True, slots=True)
class Budget:
    """What one run may use at most: dollars, tokens (in and out together), seconds.

    A cap counts what this call of the run uses; a resumed run starts at zero.
    """

    usd: float | None = None
    tokens: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        for name in ("usd", "tokens", "seconds"):
            if (cap := getattr(self, name)) is not None and not cap > 0:
                raise InputError(f"Budget({name}={cap!r}) allows nothing. Type a number above 0, or leave {name} out.")


class Throttle:
    """The shared state of one run's endpoints; all on one event loop.

    Args:
        concurrency: Requests at a time, for each endpoint, at most.
        budget: Caps; None is none.
        deadline: Seconds for one conversation; the engine holds it.
        retry_for: Seconds that one call may spend on failed attempts and pauses.
        patience: Seconds without one answer, while calls fail, until the run is given up;
            eight times as long when what fails is refusals for load.
        seed: Decides the jitter of pauses.
    """

    def __init__(
        self,
        *,
        concurrency: int = 64,
        budget: Budget | None = None,
        deadline: float | None = 1800.0,
        retry_for: float = 300.0,
        patience: float = 15.0,
        seed: int = 0,
    ) -> None:
        if concurrency < 1:
            raise InputError(f"concurrency={concurrency!r} lets no request through. Type 1 or more.")
        self.concurrency, self.budget, self.deadline = concurrency, budget or Budget(), deadline
        self.retry_for, self.patience, self.seed = retry_for, patience, seed
        self.used = Usage()
        """What the calls of the run used; those that the reply cache answered are not in it."""
        self.retries = 0
        self.failures: Counter[str] = Counter()
        """Attempts that failed, by reason."""
        self.asleep = 0
        """Calls that are waiting before another attempt; they hold no slot."""
        self.stopped: ModelError | None = None
        """Why no further call is sent, once that is so."""
        self.stopped_at = 0.0
        self.wake: Callable[[], None] = lambda: None
        """Called when a call falls asleep and when the run stops; the engine sets it."""
        self._slots: dict[str, Slots] = {}
        self._started = time.monotonic()
        self._reserved_usd, self._reserved_tokens = 0.0, 0
        self._spent_usd, self._spent_tokens = 0.0, 0
        self._causes: Counter[str] = Counter()
        self._failed, self._silent_since, self._last_reason = 0, 0.0, ""
        self._settled, self._over = asyncio.Event(), asyncio.Event()

    def slots(self, endpoint: str) -> Slots:
        """Return the slots of an endpoint, which all models behind one address share."""
        return self._slots.setdefault(endpoint, Slots(self.concurrency))

    def check(self) -> float:
        """Return the seconds that a request may take at most, by the budget.

        Raises:
            ModelError: The run has stopped.
        """
        self.watch()
        if self.stopped is not None:
            raise _copy(self.stopped)
        return self._seconds_left()

    async def reserve(self, usd: float, tokens: int) -> None:
        """Set aside what a call may use at most; wait while others still hold what it needs.

        Raises:
            ModelError: The caps do not allow it (``budget``).
        """
        while not self._fits(usd, tokens):
            if self._reserved_tokens == 0:  # nobody will give anything back
                spent = f"{self._spent_usd:.4f} dollars and {self._spent_tokens} tokens are spent"
                msg = f"the budget is used up: {spent}, and the next call may take {usd:.4f} dollars and {tokens} "
                self.stop(ModelError(msg + "tokens. Resume the run with a larger Budget(...).", reason="budget"))
            self.check()
            await self._settled.wait()
        self._reserved_usd += usd
        self._reserved_tokens += tokens

    def settle(self, usd: float, tokens: int, used: Usage | None) -> None:
        """Replace a reservation by what was used.

        Args:
            usd: As reserved.
            tokens: As reserved.
            used: What the answer says; where it says nothing (no tokens), the call cost what
                was reserved. None when it cost nothing.
        """
        self._reserved_usd -= usd
        self._reserved_tokens -= tokens
        if used is not None:
            said = used.tokens_in + used.tokens_out
            self._spent_usd += (used.usd or 0.0) if said else usd
            self._spent_tokens += said or tokens
        self._settled.set()
        self._settled = asyncio.Event()  # those who wait wait for the next settlement

    def answered(self, used: Usage) -> None:
        """Note a call that was answered."""
        self.used += used
        self._failed = 0

    def failed(self, failure: CallFailed) -> None:
        """Note a failed attempt; give the run up when nothing is answered any more."""
        self.failures[failure.reason] += 1
        self._causes[f"{failure.reason}: {failure}"] += 1
        if failure.reason in ("context_window", "content_filter"):  # an answer about one conversation
            return
        if self._failed == 0:
            self._silent_since = time.monotonic()
        self._failed += 1
        self._last_reason = failure.reason
        if failure.final and self._failed >= _HOPELESS:
            self._give_up()
        self.watch()

    def watch(self) -> None:
        """Stop the run if its seconds are used up, or if no call has been answered for too long.

        While more requests are under way than have failed, the endpoint may just be slow.
        """
        if self._seconds_left() <= 0:
            self.stop(ModelError(f"the budget of {self.budget.seconds:g} seconds is used up.", reason="budget"))
        under_way = sum(slots.taken for slots in self._slots.values())
        patience = self.patience * (8 if self._last_reason == "rate_limit" else 1)
        if self._failed >= max(_SOME, under_way) and time.monotonic() - self._silent_since > patience:
            self._give_up()

    def stop(self, why: ModelError) -> None:
        """Send no further call: those that wait fail with ``why``, those under way may finish."""
        if self.stopped is not None:
            return
        self.stopped, self.stopped_at = why, time.monotonic()
        self._over.set()
        for slots in self._slots.values():
            slots.drop_waiting(lambda: _copy(why))
        self.settle(0.0, 0, None)  # wakes those that wait for money; they find the run stopped
        self.wake()

    async def sleep(self, seconds: float) -> None:
        """Wait before another attempt, holding nothing; ends early when the run stops."""
        self.asleep += 1
        self.retries += 1
        self.wake()
        try:
            await asyncio.wait_for(self._over.wait(), seconds)
        except asyncio.TimeoutError:  # the pause is over
            pass
        finally:
            self.asleep -= 1

    def _give_up(self) -> None:
        causes = "; ".join(f"{n} x {shorten(text, 200)}" for text, n in self._causes.most_common(3))
        msg = f"no call was answered in {time.monotonic() - self._silent_since:.0f} s. Causes: {causes}"
        self.stop(ModelError(msg, reason=self._last_reason))

    def _seconds_left(self) -> float:
        cap = self.budget.seconds
        return float("inf") if cap is None else self._started + cap - time.monotonic()

    def _fits(self, usd: float, tokens: int) -> bool:
        caps = self.budget
        paid = caps.usd is None or self._spent_usd + self._reserved_usd + usd <= caps.usd
        return paid and (caps.tokens is None or self._spent_tokens + self._reserved_tokens + tokens <= caps.tokens)


def bound_of(body: bytes, max_tokens: int | None, price: Price | None) -> tuple[float, int]:
    """Return dollars and tokens that a request may use at most.

    A token is a byte at least, so the body's length bounds what goes in; ``max_tokens`` bounds
    what comes out.
    """
    out = max_tokens or 0
    return (price.of(len(body), out) if price else 0.0), len(body) + out


def _copy(error: ModelError) -> ModelError:
    """Return a new error: one that is raised in many tasks would collect all their tracebacks."""
    return ModelError(str(error), reason=error.reason)
