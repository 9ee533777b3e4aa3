"""Engine: many conversations at once, bounded.

A conversation begins when another ends; those under way are all that is in memory. One whose
call waits after a refusal does not count as running: others take its place, up to eight times
the concurrency.

How a run ends early:

- Budget used up: nothing new is sent, conversations under way fail with ``budget``.
- Ctrl-C: nothing new is begun, conversations under way have ``grace`` seconds to end; then
  they fail with ``interrupt``. What exists is returned.
- Nothing is answered any more: conversations under way fail. Rows that finished are kept and
  the summary says why; when there are none, it is a ``RunError`` with the three commonest causes.

Jobs that were never begun are ``unplayed``; the same run, called again, plays them.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any, Generic, Literal, Protocol, TypeVar

from whilesim.chat.loop import on_interrupt
from whilesim.chat.messages import Failure
from whilesim.chat.throttle import Throttle
from whilesim.conversations.journal import Journal
from whilesim.conversations.progress import Progress
from whilesim.core.errors import InputError, MissingExtra, ModelError, RunError

log = logging.getLogger(__name__)

Ending = Literal["done", "budget", "interrupt", "dead"]

GRACE = 30.0
"""Seconds that conversations under way have after Ctrl-C."""
_LAST = 5.0  # seconds until what does not stop by itself is cancelled
_MOST_ALIVE = 8  # conversations alive, as a multiple of the concurrency
_TICK = 0.5  # seconds


class Job(Protocol):
    """Anything with an id; the engine knows nothing else about it."""

    @property
    def id(self) -> str:
        """What the finished row is called."""


J = TypeVar("J", bound=Job)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """What a run did: ``played + kept + unplayed`` is the number of jobs."""

    played: int = 0
    """Rows that finished now, failed ones included."""
    failed: int = 0
    """Those of them that have a ``failure``."""
    clean: int = 0
    kept: int = 0
    """Jobs whose row the journal held already."""
    unplayed: int = 0
    """Jobs that were not begun, because the run ended early."""
    ending: Ending = "done"
    why: str = ""
    """The words to ``ending``, with causes."""
    seconds: float = 0.0


async def run_jobs(
    jobs: Sequence[J],
    work: Callable[[J], Awaitable[Mapping[str, Any]]],
    *,
    journal: Journal,
    throttle: Throttle,
    progress: bool | None = None,
    clean: Callable[[Mapping[str, Any]], bool] = lambda row: not row.get("failure"),
    lost: Callable[[J, Failure], Mapping[str, Any]] = lambda job, failure: {"id": job.id, "failure": asdict(failure)},
) -> RunSummary:
    """Play the jobs that the journal does not hold yet; append each row as it finishes.

    Args:
        jobs: In the order in which they begin.
        work: Plays one job and returns its row, a mapping with the job's ``id``.
        throttle: The one that the run's endpoints share. So many jobs as its ``concurrency`` are
            under way, those asleep before another attempt not counted, each for its
            ``deadline`` at most.
        progress: See :class:`whilesim.conversations.progress.Progress`.
        clean: Whether a row counts as clean on the progress line.
        lost: Makes the row of a job whose work raised, or had to be cancelled.

    Returns:
        Numbers only: the rows are in the journal. Nothing has been rewritten yet; the caller
        knows the order (``Journal.finish``).

    Raises:
        RunError: No call is answered and no row has finished.
        InputError: ``work`` raised it: the run cannot work with what it was given.
    """
    run = _Run(work, journal, throttle, clean, lost)
    bar = Progress(len(jobs), show=progress)
    try:
        with on_interrupt(run.interrupt):
            await run.play(jobs, bar)
    finally:
        throttle.wake = lambda: None
        bar.close()
    summary = run.summary()
    told = {"retries": throttle.retries, "failures": dict(throttle.failures), "usage": throttle.used.to_json()}
    journal.log({"run": asdict(summary), **told, "at": round(time.time(), 3)})
    if summary.ending == "dead" and summary.played == summary.failed and not summary.kept:
        raise RunError(f"the run was given up: {summary.why}")
    if summary.ending != "done":
        log.warning("the run ended early (%s): %s", summary.ending, summary.why)
    return summary


@dataclass(eq=False)
class _Run(Generic[J]):
    """The state of one call of ``run_jobs``."""

    work: Callable[[J], Awaitable[Mapping[str, Any]]]
    journal: Journal
    throttle: Throttle
    clean: Callable[[Mapping[str, Any]], bool]
    lost: Callable[[J, Failure], Mapping[str, Any]]
    counts: Counter[str] = field(default_factory=Counter)
    unplayed: int = 0
    interrupted: float | None = None
    fatal: BaseException | None = None
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    began: float = field(default_factory=time.monotonic)
    wake: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.throttle.wake = self.wake.set

    def interrupt(self) -> None:
        """Begin nothing new."""
        self.interrupted = time.monotonic()
        self.wake.set()

    async def play(self, jobs: Sequence[J], bar: Progress) -> None:
        """Begin jobs while there is room, until all have ended."""
        waiting, more = iter(jobs), True
        concurrency = self.throttle.concurrency
        try:
            while True:
                self.wake.clear()
                most = min(_MOST_ALIVE * concurrency, concurrency + self.throttle.asleep)
                while more and not self._ending() and len(self.tasks) < most:
                    more = self._begin(waiting)
                bar.update(self.counts["played"] + self.counts["kept"], self.counts["clean"], self.throttle)
                if not self.tasks and (not more or self._ending()):
                    break
                await self._rest()
        finally:
            for task in self.tasks:
                task.cancel()
            await asyncio.gather(*self.tasks, return_exceptions=True)
        if self.fatal is not None:
            raise self.fatal
        self.unplayed = sum(j.id not in self.journal for j in waiting)

    def summary(self) -> RunSummary:
        """Return what was done."""
        ending: Ending = "done"
        why, stopped = "", self.throttle.stopped
        if self.interrupted is not None:
            ending, why = "interrupt", "Ctrl-C was pressed."
        elif stopped is not None:
            ending, why = ("budget" if stopped.reason == "budget" else "dead"), str(stopped)
        seconds = time.monotonic() - self.began
        return RunSummary(**self.counts, unplayed=self.unplayed, ending=ending, why=why, seconds=seconds)

    def _ending(self) -> bool:
        return self.interrupted is not None or self.throttle.stopped is not None or self.fatal is not None

    def _begin(self, waiting: Iterator[J]) -> bool:
        """Begin the next job that is not done; False when there is none left."""
        for job in waiting:
            if job.id in self.journal:
                self.counts["kept"] += 1
                continue
            task = asyncio.ensure_future(self._play_one(job))
            self.tasks.add(task)
            task.add_done_callback(self._ended)
            return True
        return False

    def _ended(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.fatal = self.fatal or error
        self.wake.set()

    async def _rest(self) -> None:
        """Wait until something happens, half a second at most; then end what does not end by itself."""
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self.wake.wait(), _TICK)
        self.throttle.watch()
        self.journal.sync()
        now = time.monotonic()
        if self.interrupted is not None and now - self.interrupted > GRACE:
            self.throttle.stop(ModelError("Ctrl-C was pressed.", reason="interrupt"))
        if self.fatal is not None or (self.throttle.stopped is not None and now - self.throttle.stopped_at > _LAST):
            for task in self.tasks:
                task.cancel()

    async def _play_one(self, job: J) -> None:
        began = time.monotonic()
        try:
            row = await asyncio.wait_for(self.work(job), self.throttle.deadline)
        except (InputError, RunError, MissingExtra):  # about the whole run, not about this conversation
            raise
        except asyncio.CancelledError:
            stopped = self.throttle.stopped
            if self.interrupted is None and stopped is None:
                raise
            row = self._lose(job, stopped.reason if stopped else "interrupt", "stopped before it ended.")
        except ModelError as error:
            row = self._lose(job, error.reason, str(error))
        except asyncio.TimeoutError:
            seconds = self.throttle.deadline
            row = self._lose(job, "deadline", f"the conversation took longer than its {seconds} seconds.")
        except Exception as error:  # one conversation must not end the run; its row says what happened
            log.exception("the work on %r raised", job.id)
            row = self._lose(job, "player", f"{type(error).__name__}: {error}")
        self.journal.append(row)
        self.journal.log({"id": row["id"], "seconds": round(time.monotonic() - began, 3), "at": round(time.time(), 3)})
        self.counts.update(played=1, failed=int(bool(row.get("failure"))), clean=int(bool(self.clean(row))))

    def _lose(self, job: J, reason: str, message: str) -> Mapping[str, Any]:
        return self.lost(job, Failure(role="run", reason=reason, message=message))
