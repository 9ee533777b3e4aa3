"""Gate: pass or fail, for people, for pytest and for CI.

A threshold of 1.0 speaks of every ticket: one violation fails. A lower one speaks of the mean,
and where it lies inside the mean's interval the tickets cannot decide.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from whilesim.core.errors import GateFailed, InputError
from whilesim.core.stats import Estimate
from whilesim.core.templates import render_page
from whilesim.evals.results import EvalResult
from whilesim.evals.scorers import NOTHING_EXPECTED
from whilesim.evals.traces import AgentTrace

Decides = Literal["estimate", "fail", "pass"]
_NO_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class GateReport:
    """What a gate decided."""

    passed: bool
    reasons: Mapping[str, str]
    """Ticket id to why it fails the gate; in the order of the tickets."""
    lines: tuple[str, ...]
    """One line for each score: threshold, value, decision."""

    def __str__(self) -> str:
        width = max([12, *map(len, self.reasons)])
        lines = [*self.lines, *(f"{ticket:<{width}}  {reason}" for ticket, reason in self.reasons.items())]
        return "\n  ".join([f"gate {'passed' if self.passed else 'failed'}", *lines])

    __repr__ = __str__  # a notebook shows the value of a cell


def gate(
    result: EvalResult, policy: float | None = 1.0, resolution: float | None = None, *, undecided: Decides = "estimate"
) -> GateReport:
    """Hold a run against thresholds, 0 to 1; None asks nothing.

    Args:
        undecided: What a threshold inside the interval means: ``estimate`` lets the mean
            decide, ``fail`` asks for the whole interval, ``pass`` lets it through.

    Returns:
        The report of a run that passes.

    Raises:
        GateFailed: It does not pass; lists tickets and reasons.
    """
    report = hold(result, policy, resolution, undecided)
    if not report.passed:
        raise GateFailed(str(report))
    return report


def hold(
    result: EvalResult, policy: float | None = 1.0, resolution: float | None = None, undecided: Decides = "estimate"
) -> GateReport:
    """Do what :func:`gate` does, and return the report of a run that fails too."""
    if undecided not in ("estimate", "fail", "pass"):
        raise InputError(f'undecided={undecided!r} is no way to decide. Type "estimate", "fail" or "pass".')
    reasons: dict[str, list[str]] = {}
    lines, passed = list[str](), bool(result.traces)
    for name, least in (("policy", policy), ("resolution", resolution)):
        if least is not None and not 0 <= least <= 1:
            raise InputError(f"{name}={least!r} is no threshold. Type a number from 0 to 1, or None to ask nothing.")
        found = result.scores.get(name) or Estimate(None, why="nothing was scored")
        if least is None:
            lines.append(f"{name:<12} {found}, not asked{_beside(result) if name == 'resolution' else ''}")
            continue
        below = [t for t in result.traces if is_below(t, name, least)]
        holds, said = _decide(found, len(below), least, undecided)
        failing = [t for t in below if t.failure or not holds]
        passed = passed and not failing and holds
        for trace in failing:
            reasons.setdefault(trace.case_id, []).append(trace.say_why(name))
        lines.append(f"{name:<12} {found} against {least:g}: {said}")
    told = {i: "; ".join(dict.fromkeys(reasons[i])) for i in result.by_ticket if i in reasons}
    return GateReport(passed=passed, reasons=told, lines=tuple(lines))


def is_below(trace: AgentTrace, name: str, least: float) -> bool:
    """Whether a trace is below a threshold, or could not be scored though its ticket asks for something."""
    score = trace.scores.get(name)
    return score < least if score is not None else trace.reasons.get(name) != NOTHING_EXPECTED


def _beside(result: EvalResult) -> str:
    """Name the trivial agent that resolves most: an agent that keeps every rule may be no better."""
    floors = [(name, f.resolution) for name, f in result.floors.items() if f.resolution is not None]
    return "; {} {:.2f}".format(*max(floors, key=lambda pair: pair[1])) if floors else ""


def _decide(found: Estimate, below: int, least: float, undecided: Decides) -> tuple[bool, str]:
    """Say whether a mean holds against a threshold, and in words why."""
    if least == 1.0:
        return not below, f"{below} trials are below it" if below else "holds for every ticket"
    if found.value is None:
        return False, f"nothing could be scored ({found.why})"
    holds, said = found.value >= least, "above it" if found.value >= least else "below it"
    if found.low is not None and found.high is not None and found.low < least <= found.high:
        holds = holds if undecided == "estimate" else undecided == "pass"
        said = f"undecided, the interval holds it: {undecided} decides, {'pass' if holds else 'fail'}"
    return holds, said


def write_junit(result: EvalResult, report: GateReport, path: str | os.PathLike[str]) -> None:
    """Write JUnit XML: one test case per ticket, failed where the gate names it."""
    turns = {ticket: [turn for t in traces for turn in t.turns] for ticket, traces in result.by_ticket.items()}
    page = render_page("junit", tickets=turns, reasons=report.reasons)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(_NO_XML.sub("", page), encoding="utf-8")


def write_summary(result: EvalResult, report: GateReport) -> None:
    """Append the report to the summary of the GitHub step that runs, where one does."""
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if not path:
        return
    rows = [f"| {_cell(ticket)} | {_cell(reason)} |" for ticket, reason in report.reasons.items()]
    table = ["", "| ticket | why it fails |", "| --- | --- |", *rows] if rows else []
    head = f"### {'✅ support agent: gate passed' if report.passed else '❌ support agent: gate failed'}"
    with Path(path).open("a", encoding="utf-8") as out:
        out.write("\n".join([head, *table, "", "```", str(result), *report.lines, "```", ""]))


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
