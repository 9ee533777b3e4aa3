"""Results: traces, scores and floors of one run, and what they say."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from whilesim.chat.usage import Usage
from whilesim.core.errors import InputError
from whilesim.core.jsontext import dumps, read_lines, write_lines, write_whole
from whilesim.core.stats import Estimate, PassAt, bootstrap, pass_at, proportion, share
from whilesim.evals.publish import push_table
from whilesim.evals.scorers import SCORERS
from whilesim.evals.tickets import read_json
from whilesim.evals.traces import AgentTrace
from whilesim.grading.outcome import Handoff, HandoffTable, handoff_table
from whilesim.grading.rubric import checked
from whilesim.keeping.ledger import tell_usage

FLOOR = 0.2
"""Share of a suite that a trivial agent may pass before the suite is called weak."""
T = TypeVar("T")
_RUN = ("run_id", "date", "commit", "agent", "whilesim", "judge", "trials", "protocol", "weights")
_AGAIN = "Evaluate again with run_dir= or --run-dir."


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """What a trivial agent passes."""

    passed: tuple[str, ...]
    """Ids of the tickets."""
    tickets: int
    wanted: tuple[int, int]
    """Passed and all, of the tickets on which a person is wanted."""
    unwanted: tuple[int, int]
    open: tuple[int, int] = (0, 0)
    """The same of the tickets on which either is fine."""
    resolution: float | None = None
    """Mean of the score, 0 to 1; None where it was not scored."""

    @property
    def rate(self) -> float:
        """Share passed, 0 to 1."""
        return len(self.passed) / self.tickets if self.tickets else 0.0

    @classmethod
    def of(cls, told: Mapping[str, tuple[bool, bool | None]], resolution: float | None = None) -> Floor:
        """Count what a floor passed: ticket id to whether it passed, and whether a person was wanted (None: either is fine)."""
        split = ([passed for passed, wanted in told.values() if wanted is w] for w in (True, False, None))
        wanted, unwanted, rest = ((sum(found), len(found)) for found in split)
        ids = tuple(i for i, (passed, _) in told.items() if passed)
        return cls(passed=ids, tickets=len(told), wanted=wanted, unwanted=unwanted, open=rest, resolution=resolution)


@dataclass(frozen=True)
class EvalResult:
    """One run of an agent over a suite."""

    traces: tuple[AgentTrace, ...]
    """In the order of the tickets, then of trials."""
    run: Mapping[str, Any]
    """run_id, date, commit, agent, judge, trials, weights, protocol."""
    floors: Mapping[str, Floor] = field(default_factory=dict)

    @cached_property
    def by_ticket(self) -> dict[str, list[AgentTrace]]:
        """Ticket id to its trials."""
        return gather((trace.case_id, trace) for trace in self.traces)

    @cached_property
    def scores(self) -> dict[str, Estimate]:
        """Scorer to its mean over tickets, with an interval; scores that are None are left out of it."""
        found: dict[str, Estimate] = {}
        for name in dict.fromkeys(name for trace in self.traces for name in trace.scores):
            told = [(t.case_id, v) for t in self.traces if (v := t.scored(name)) is not None]
            why = next((t.reasons[name] for t in self.traces if name in t.reasons), "nothing was scored")
            found[name] = bootstrap([v for _, v in told], [i for i, _ in told]) if told else Estimate(None, why=why)
        return found

    @cached_property
    def pass_at(self) -> PassAt:
        """pass@k and pass^k over tickets; trials that could not be decided are left out."""
        tried = [[t.passed for t in traces if t.passed is not None] for traces in self.by_ticket.values()]
        return pass_at([(len(told), sum(map(bool, told))) for told in tried])

    @property
    def passed(self) -> Estimate:
        """Share of decided traces that passed, with an interval over tickets."""
        return share([(t.case_id, t.passed) for t in self.traces if t.passed is not None])

    @property
    def undecided(self) -> int:
        """Traces of which nobody can say whether they passed."""
        return sum(t.passed is None for t in self.traces)

    @property
    def failed(self) -> tuple[AgentTrace, ...]:
        """The traces that did not pass: ``load_tickets(result.failed)`` makes tickets of them."""
        return tuple(t for t in self.traces if t.passed is False)

    @property
    def flip_rate(self) -> Estimate:
        """Share of tickets whose trials disagree; n/a for single trials."""
        decided = [[t.passed for t in traces if t.passed is not None] for traces in self.by_ticket.values()]
        if not (tried := [set(told) for told in decided if len(told) > 1]):
            return Estimate(None, why="single trials")
        return proportion(sum(len(told) > 1 for told in tried), len(tried))

    @property
    def tool_error_rate(self) -> Estimate:
        """Share of tool calls that failed."""
        return share([(t.case_id, bool(c.get("failed"))) for t in self.traces for c in t.tool_calls])

    @property
    def average_turns(self) -> float:
        """Mean number of the customer's messages."""
        return sum(sum(turn["role"] == "user" for turn in t.turns) for t in self.traces) / max(1, len(self.traces))

    @property
    def handoffs(self) -> HandoffTable:
        """Hand-offs wanted and made."""
        return handoff_table(Handoff(**t.handoff) for t in self.traces if t.handoff)

    @property
    def usage(self) -> dict[str, Usage]:
        """Role to what its model used, the floors left out; empty where no model was called from here."""
        used = gather((role, u) for t in self.traces for role, u in t.usage.items() if u.calls)
        return {role: sum(found, Usage()) for role, found in used.items()}

    def summary(self) -> dict[str, Any]:
        """Return the run's numbers as a JSON object: what ``scores.json`` holds."""
        scores = {name: asdict(e) for name, e in self.scores.items()}
        tickets = {i: {"passed": [t.passed for t in ts], "tags": ts[0].tags} for i, ts in self.by_ticket.items()}
        rates = {"passed": self.passed, "flip_rate": self.flip_rate, "tool_error_rate": self.tool_error_rate}
        told = {name: asdict(e) for name, e in rates.items()}
        return {**self.run, "scores": scores, **told, "undecided": self.undecided, "average_turns": self.average_turns,
                "usage": {role: used.to_json() for role, used in self.usage.items()},
                "pass_at": str(self.pass_at), "floors": {n: asdict(f) for n, f in self.floors.items()}, "tickets": tickets}  # fmt: skip

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write ``traces.jsonl`` and ``scores.json`` into a folder."""
        write_lines(Path(folder, "traces.jsonl"), (t.to_json() for t in self.traces))
        write_whole(Path(folder, "scores.json"), [dumps(self.summary(), indent=1).encode()])

    def push_to_hub(self, repo: str, *, split: str = "nightly", private: bool = True) -> str:
        """Publish traces and scores beside the runs before, and return the revision."""
        run = {name: self.run[name] for name in ("run_id", "date", "commit", "agent")}
        rows = [{**run, **t.to_json()} for t in self.traces]
        return push_table(rows, repo, split=split, private=private, run=self.summary())

    def __str__(self) -> str:
        run, passed = self.run, sum(t.passed is True for t in self.traces)
        lines = [f"{len(self.by_ticket)} tickets x {run['trials']} trial(s), agent {run['agent']}, run {run['run_id']}"]
        unsure = f", {self.undecided} could not be decided" if self.undecided else ""
        lines.append(f"  {'passed':<16}{self.passed} ({passed} of {len(self.traces)}{unsure})")
        lines += [f"  {name:<16}{found}" for name, found in self.scores.items()]
        lines.append(f"  {'trials':<16}{self.pass_at}; flip rate {self.flip_rate}")
        turns = f"{self.average_turns:.1f} customer messages a ticket"
        lines.append(f"  {'tool errors':<16}{self.tool_error_rate}; {turns}")
        lines += ["  " + line for line in tell_usage(self.usage, 16) if self.usage]
        failures = [t.failure for t in self.traces if t.failure]
        found = [t.findings[0] for t in self.traces if t.findings]
        lines += [f"  {len(failures)} without an answer: {failures[0]}"] if failures else []
        lines += [f"  {len(found)} in which the agent said what is not so: {found[0]}"] if found else []
        beside = [t for t in self.traces if t.passed and (t.scored("tool_accuracy") or 1.0) < 1]
        told_of = [f"{t.case_id}, {t.say_why('tool_accuracy')}" for t in beside]
        lines += [f"  {len(beside)} passed with calls besides: {told_of[0]}"] if beside else []
        lines += ["  " + line for line in str(self.handoffs).splitlines()]
        wrong = [t for t in self.failed if not t.failure]
        told = {t.case_id: [t.say_why(n) for n in SCORERS if t.scores.get(n) not in (None, 1.0)] for t in wrong}
        lines += [f"  {ticket:<16}{'; '.join(why)}" for ticket, why in list(told.items())[:10]]
        lines += [f"  and {len(told) - 10} more that failed"] if len(told) > 10 else []
        return "\n".join([*lines, *tell_floors(self.floors)])

    __repr__ = __str__  # a notebook shows the value of a cell


def gather(pairs: Iterable[tuple[str, T]]) -> dict[str, list[T]]:
    """Return each name with all that stands under it, in the order in which they come."""
    found: dict[str, list[T]] = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return found


def tell_floors(floors: Mapping[str, Floor]) -> list[str]:
    """Return the floors as a table, and which of them pass too much."""
    if not floors:
        return []
    lines = [f"{'floors':<18}{'passed':>12}{'hand-off wanted':>18}{'not wanted':>13}{'open':>13}"]
    for name, floor in floors.items():
        told = ("{} of {}".format(*pair) for pair in (floor.wanted, floor.unwanted, floor.open))
        lines.append("  {:<16}{:>12}{:>18}{:>13}{:>13}".format(name, f"{len(floor.passed)} of {floor.tickets}", *told))
    return lines + [f"weak suite: {line}" for line in weak(floors)]


def weak(floors: Mapping[str, Floor]) -> list[str]:
    """Say which trivial agents pass more than a fifth of the suite, and which tickets those are."""
    found = list[str]()
    for name, f in ((name, f) for name, f in floors.items() if f.rate > FLOOR):
        named = ", ".join(f.passed[:10]) + (" ..." if len(f.passed) > 10 else "")
        share = f"{len(f.passed)} of {f.tickets} tickets ({f.rate:.0%})"
        found.append(f"{name} passes {share}, so they tell little: {named}")
    return found


def load_result(folder: str | os.PathLike[str]) -> EvalResult:
    """Read a run's folder.

    Raises:
        InputError: It holds no run, or a file of it cannot be read.
    """
    place = Path(folder)
    if not (place / "scores.json").is_file() or not (place / "traces.jsonl").is_file():
        msg = f"{os.fspath(folder)!r} holds no scores.json and traces.jsonl. Type the folder that run_dir= or --run-dir named."
        raise InputError(msg)
    told = read_json(place / "scores.json", str(place / "scores.json"), _AGAIN)
    told = told if isinstance(told, dict) else {}
    if missing := [name for name in _RUN if name not in told]:
        raise InputError(f"{place / 'scores.json'} holds no {missing[0]!r}, so it is none of a run. {_AGAIN}")
    found = {"traces": [value for _, value in read_lines(place / "traces.jsonl")], "floors": told.get("floors")}
    run = {name: told[name] for name in _RUN}
    result = checked(EvalResult, {**found, "run": run}, f"{os.fspath(folder)!r} cannot be read: ", _AGAIN)
    if told.get("tickets") != result.summary()["tickets"]:
        it = f"the {len(result.traces)} traces of {os.fspath(folder)!r} are not those that its scores.json counts"
        raise InputError(f"{it}: it was cut, or changed. {_AGAIN}")
    return result
