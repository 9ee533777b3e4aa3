"""Grades: rows held against their findings, their oracle and a judge.

Findings and oracle come first, and cost nothing; the judge reads what they left. A row whose
judge cannot be read stays unjudged, with the raw answer beside it. Grading again asks only
about the rows that this judge has not read yet.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar, get_args

from whilesim.chat.messages import read_messages
from whilesim.chat.models import CallKey
from whilesim.chat.usage import Usage
from whilesim.core.errors import InputError, JudgeError, ModelError
from whilesim.core.seeds import derive
from whilesim.grading.checks.findings import Finding
from whilesim.grading.judge import Evidence, Judgement, judge, judge_name
from whilesim.grading.outcome import Violation, violations
from whilesim.grading.rubric import Rubric
from whilesim.grading.trust import Case
from whilesim.grading.verdicts import Verdict, decide, oppose
from whilesim.keeping.rows import Row
from whilesim.situations.policy import Policy
from whilesim.situations.tools import Tool

T = TypeVar("T")
Weight = Literal["drop", "warn", "ignore"]
Weights = Mapping[str, Weight]
"""Check to what a finding of it weighs."""
_FIRST = 10  # rows after which a judge that was never readable is given up
_AT_ONCE = 64
_RECORDS = 20  # records of the world that a judge is shown at most


@dataclass(frozen=True, slots=True, kw_only=True)
class Grade:
    """What grading made of one row."""

    id: str
    verdict: Verdict | None
    findings: tuple[Finding, ...]
    why: str = ""
    """Why there is no verdict."""
    raw: str = ""
    """The judge's answer that could not be read."""
    usage: Usage = Usage()
    earlier: tuple[Verdict, ...] = ()
    """What other judges were paid to say of it: asked again, they need not read it twice."""

    def apply(self, row: Row) -> Row:
        """Return the row with this grade; the row as it was played stays as it is."""
        return row.model_copy(update={"findings": [*self.findings]}).with_verdict(self.verdict, usage=self.usage)


Grades = Mapping[str, Grade]
"""Row id to what grading made of it."""


def grades_of(rows: Iterable[Row]) -> dict[str, Grade]:
    """Return the grades that rows carry, by the ids of those that have a verdict."""
    told = ((row, tuple(row.findings)) for row in rows if row.verdict is not None)
    return {r.id: Grade(id=r.id, verdict=r.verdict, findings=found, usage=r.usage.judge) for r, found in told}


@dataclass(frozen=True, slots=True, kw_only=True)
class Grading:
    """How rows are graded: rubric, judge, and what the rows do not hold."""

    rubric: Rubric
    policy: Policy
    """Its clauses; the text is each row's own."""
    tools: tuple[Tool, ...]
    severity: Weights
    chat: Any = None
    """The judge as a ``Chat``, or None for no judge at all."""
    model: str = ""
    fraction: float = 1.0
    """Share of the survivors that the judge reads, 0 to 1."""
    seed: int = 0
    """Decides which share."""

    def __post_init__(self) -> None:
        if not 0 <= self.fraction <= 1:
            raise InputError(f"fraction is {self.fraction!r}; it is a share from 0 to 1. Type fraction=0.25")
        if wrong := {k: v for k, v in self.severity.items() if v not in get_args(Weight)}:
            msg = f"severity has {wrong!r}; a check's severity is drop, warn or ignore. Type severity={{'refusal': 'warn'}}"
            raise InputError(msg)

    @property
    def judge(self) -> str:
        """Name of the judge with the digest of what it is asked; empty without a judge."""
        return judge_name(self.model, self.rubric) if self.chat is not None else ""


async def grade_rows(rows: Iterable[Row], known: Grades, how: Grading, done: Callable[[Grade], None]) -> None:
    """Grade rows that were played to an end, and hand on each grade as it is made.

    Args:
        rows: As they were played, findings as the checks gave them.
        known: Row id to an earlier grade: what this judge has read, ever, it is not asked again.

    Raises:
        JudgeError: None of the judge's first 10 answers could be read; shows one.
        ModelError: The judge's endpoint refused the key.
    """
    survivors = []
    for row in (row for row in rows if row.state != "failed"):
        before = known.get(row.id)
        spent = before.usage if before else Usage()  # what earlier judges cost stays on the bill
        paid = tuple(v for v in (before.verdict, *before.earlier) if v and v.judge) if before else ()
        weights = ((finding, how.severity.get(finding.check, finding.severity)) for finding in row.findings)
        findings = tuple(replace(finding, severity=weight) for finding, weight in weights if weight != "ignore")
        blank = Grade(id=row.id, verdict=None, findings=findings, usage=spent, earlier=paid)
        found = oppose(findings, against := oracle_violations(row, how.tools))
        if how.chat is None:
            found = decide(findings, against, None, row.to_oracle(), how.rubric)
        if found is None:
            survivors.append((row, blank))
        else:
            done(replace(blank, verdict=found))
    ranked = sorted((row.id for row, _ in survivors), key=lambda row_id: (derive(how.seed, "judged", row_id), row_id))
    chosen, judge_now, waiting = set(ranked[: math.ceil(how.fraction * len(ranked))]), how.judge, []
    for row, blank in survivors:
        if read := next((v for v in blank.earlier if v.judge == judge_now), None):
            done(replace(blank, verdict=read, earlier=tuple(v for v in blank.earlier if v is not read)))
        elif row.id in chosen:
            waiting.append((row, blank))
        else:
            done(replace(blank, why="not in the fraction"))
    await _judge_all(waiting, how, done)


def judged_case(row: Row, how: Grading) -> Case | None:
    """Return a row's conversation as this judge read it, None where another or none did."""
    if (verdict := row.verdict) is None or verdict.judge != how.judge:
        return None
    told = Judgement(keep=verdict.keep, reason=verdict.reason, scores=verdict.scores, judge=how.judge)
    return Case(id=row.id, evidence=_evidence(row, row.findings, how), judgement=told, key=_key(row))


def oracle_violations(row: Row, tools: Sequence[Tool]) -> list[Violation]:
    """Return what a row did against its oracle."""
    oracle = row.to_oracle()
    return violations(oracle, read_messages(row.messages), tools, row.failed_calls) if oracle else []


async def _judge_all(waiting: Sequence[tuple[Row, Grade]], how: Grading, done: Callable[[Grade], None]) -> None:
    gate = asyncio.Semaphore(_AT_ONCE)

    async def read(row: Row, blank: Grade) -> Grade:
        async with gate:
            grade = await _judge_one(row, blank, how)
        done(grade)
        return grade

    first = await _together(read(*each) for each in waiting[:_FIRST])
    if len(first) == _FIRST and all(grade.verdict is None for grade in first):
        msg = f"the judge {how.model!r} gave no verdict on its first {_FIRST} rows, and would hardly give one on the next. "
        msg += f"The first time: {first[0].why}. It answered {first[0].raw[:300]!r}. "
        raise JudgeError(msg + "Give another judge: data.grade(judge=...)")
    await _together(read(*each) for each in waiting[_FIRST:])


async def _together(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run all at once; when one raises, stop the others before it is passed on."""
    tasks = [asyncio.ensure_future(each) for each in work]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


async def _judge_one(row: Row, grade: Grade, how: Grading) -> Grade:
    try:
        said = await judge(how.chat, how.rubric, _evidence(row, grade.findings, how), key=_key(row), model=how.model)
    except JudgeError as error:
        return replace(grade, why="judge unreadable", raw=error.raw, usage=grade.usage + error.usage)
    except ModelError as error:
        if error.reason == "auth":
            raise
        return replace(grade, why=f"judge failed: {error.reason}", raw=str(error))
    verdict = decide(grade.findings, (), said, row.to_oracle(), how.rubric)
    return replace(grade, verdict=verdict, usage=grade.usage + said.usage)


def _key(row: Row) -> CallKey:
    return CallKey(case=row.card_id, rollout=row.rollout, role="judge")


def _evidence(row: Row, findings: Sequence[Finding], how: Grading) -> Evidence:
    oracle = row.to_oracle()
    return Evidence(
        policy=replace(how.policy, text=row.messages[0]["content"] or ""),
        tools=how.tools,
        messages=read_messages(row.messages),
        clause=next((c for c in how.policy.clauses if c.id == row.situation.get("clause")), None),
        facts=_facts(row),
        findings=tuple(findings),
        failed=row.failed_calls,
        open=oracle.open if oracle else (),
    )


def _facts(row: Row) -> dict[str, Any]:
    """Return what the world knows and the conversation touched: records by their ids, and changes."""
    text = "\n".join(m["content"] or "" for m in row.messages[1:])
    facts: dict[str, Any] = {f"the customer's {name}": value for name, value in row.card.facts.items()}
    for kind, records in row.final_state.items():
        for record_id, record in records.items() if isinstance(records, Mapping) else ():
            if record_id in text and len(facts) < _RECORDS:
                facts[f"{kind} {record_id} at the end"] = record
    for n, change in enumerate(row.changes[:_RECORDS], start=1):
        facts[f"change {n}"] = f"{change.kind} {change.id}: {change.field} {change.before!r} -> {change.after!r}"
    return facts
