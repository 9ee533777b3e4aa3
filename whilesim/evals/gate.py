"""Gate: pass or fail, for people, for pytest and for CI.

A threshold of 1.0 speaks of every ticket: one violation fails. A lower one speaks of the mean,
and where it lies inside the mean's interval the tickets cannot decide. A ticket that expects
nothing, or a final state that there cannot be, fails the gate: nothing was tried by it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from whilesim.core.errors import GateFailed, InputError
from whilesim.core.jsontext import write_whole
from whilesim.core.stats import Estimate
from whilesim.core.templates import render_page
from whilesim.evals.results import EvalResult, gather
from whilesim.evals.scorers import NO_STATE, SCORERS
from whilesim.evals.traces import NOTHING_EXPECTED, AgentTrace

Way = Literal["estimate", "fail", "pass"]
Min = float | None
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
    result: EvalResult, policy: Min = 1.0, resolution: Min = None, *, passed: Min = None, undecided: Way = "estimate"
) -> GateReport:
    """Hold a run against thresholds, 0 to 1; None asks nothing.

    Args:
        passed: Share of tickets that must be passed: resolved, no rule broken, each expected call made.
        undecided: What a threshold inside the interval means: ``estimate`` lets the mean
            decide, ``fail`` asks for the whole interval, ``pass`` lets it through.

    Returns:
        The report of a run that passes.

    Raises:
        GateFailed: It does not pass; lists tickets and reasons.
    """
    if not (report := hold(result, policy, resolution, passed, undecided)).passed:
        raise GateFailed(str(report))
    return report


def hold(
    result: EvalResult, policy: Min = 1.0, resolution: Min = None, passed: Min = None, undecided: Way = "estimate"
) -> GateReport:
    """Do what :func:`gate` does, and return the report of a run that fails too."""
    if undecided not in ("estimate", "fail", "pass"):
        raise InputError(f'undecided={undecided!r} is no way to decide. Type "estimate", "fail" or "pass".')
    reasons = gather((t.case_id, why) for t in result.traces if (why := _undecided(t)))
    lines, good = list[str](), bool(result.traces) and not reasons
    for name, least in (("policy", policy), ("resolution", resolution), ("passed", passed)):
        if least is not None and not 0 <= least <= 1:
            raise InputError(f"{name}={least!r} is no threshold. Type a number from 0 to 1, or None to ask nothing.")
        found = {**result.scores, "passed": result.passed}.get(name) or Estimate(None, why="nothing was scored")
        said = "; no ticket passed" if name == "passed" and not any(t.passed for t in result.traces) else ""
        said += _beside(result, name, least)
        if least is None:
            lines.append(f"{name:<12} {found}, not asked{said}")
            continue
        below = [t for t in result.traces if is_below(t, name, least)]
        holds, decided = _decide(found, len(below), least, undecided)
        failing = [t for t in below if t.failure or not holds]
        good = good and not failing and holds
        for trace in failing:
            missed = [n for n in SCORERS if trace.scores.get(n) not in (None, 1.0) or trace.reasons.get(n) == NO_STATE]
            named = missed if name == "passed" and missed else [name]
            reasons.setdefault(trace.case_id, []).extend(map(trace.say_why, named))
        lines.append(f"{name:<12} {found} against {least:g}: {decided}{said}")
    told = {i: "; ".join(dict.fromkeys(reasons[i])) for i in result.by_ticket if i in reasons}
    return GateReport(passed=good, reasons=told, lines=tuple(lines))


def is_below(trace: AgentTrace, name: str, least: float) -> bool:
    """Whether a trace is below a threshold, or could not be scored though its ticket asks for something."""
    score = trace.scores.get(name) if name != "passed" else float(bool(trace.passed))
    return score < least if score is not None else trace.reasons.get(name) != NOTHING_EXPECTED  # as older files have it


def _undecided(trace: AgentTrace) -> str:
    """Say why nobody can tell whether a trace passed, where its ticket is at fault; else nothing."""
    why = trace.reasons.get("policy") or trace.reasons.get("resolution", "")
    if trace.passed is not None or trace.failure or why == NO_STATE:
        return ""
    nothing = "the ticket expects no tools, no final state and no hand-off, and names no rule"
    return f"could not be decided: {nothing if why == NOTHING_EXPECTED else why}"


def _beside(result: EvalResult, name: str, least: float | None) -> str:
    """Name the trivial agent that reaches most: an agent that keeps every rule may be no better."""
    rates = {n: f.rate if name == "passed" else f.resolution for n, f in result.floors.items() if name != "policy"}
    told = {n: rate for n, rate in rates.items() if rate is not None and rate >= (least or 0)}
    best, reached = max(told, key=told.__getitem__, default=""), "" if least is None else " reaches it too, with"
    return f"; {best}{reached} {told[best]:.2f}" if best else ""


def _decide(found: Estimate, below: int, least: float, undecided: Way) -> tuple[bool, str]:
    """Say whether a mean holds against a threshold, and in words why."""
    if least == 1.0:
        told = f"{below} trial{' is' if below == 1 else 's are'} below it"
        return not below, told if below else "holds for every ticket"
    if found.value is None:
        return False, f"nothing could be scored ({found.why})"
    holds, said = found.value >= least, "above it" if found.value >= least else "below it"
    if least > 0 if found.low is None or found.high is None else found.low < least <= found.high:
        holds = holds if undecided == "estimate" else undecided == "pass"
        said = f"undecided, {'no' if found.low is None else 'the'} interval holds it: {undecided} decides, {'pass' if holds else 'fail'}"
    return holds, said


def write_junit(result: EvalResult, report: GateReport, path: str | os.PathLike[str]) -> None:
    """Write JUnit XML: one test case per ticket, failed where the gate names it."""
    turns = {ticket: [turn for t in traces for turn in t.turns] for ticket, traces in result.by_ticket.items()}
    write_whole(path, [_NO_XML.sub("", render_page("junit", tickets=turns, reasons=report.reasons)).encode()])


def write_summary(result: EvalResult, report: GateReport) -> None:
    """Append the report to the summary of the GitHub step that runs, where one does."""
    if not (path := os.environ.get("GITHUB_STEP_SUMMARY")):
        return
    rows = [f"| {_cell(ticket)} | {_cell(reason)} |" for ticket, reason in report.reasons.items()]
    table = ["", "| ticket | why it fails |", "| --- | --- |", *rows] if rows else []
    head = f"### {'✅ support agent: gate passed' if report.passed else '❌ support agent: gate failed'}"
    with Path(path).open("a", encoding="utf-8") as out:
        out.write("\n".join([head, *table, "", "```", str(result), *report.lines, "```", ""]))


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
