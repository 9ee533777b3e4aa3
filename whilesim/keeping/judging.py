"""Judging: a judge is found and opened, reads rows, and is held against people's labels.

What a judge was paid for is on disk before the next answer comes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from whilesim.chat.endpoint import Endpoint
from whilesim.chat.loop import run
from whilesim.chat.models import Chat
from whilesim.core.errors import InputError
from whilesim.grading.rubric import read_rubric
from whilesim.grading.trust import Reader, Trust, measure_trust, read_labels
from whilesim.keeping.folders import append_lines, write_grades
from whilesim.keeping.grades import Grade, Grading, Weights, grade_rows, judged_case
from whilesim.keeping.manifest import Manifest
from whilesim.keeping.rows import Row
from whilesim.situations.tools import Tool

T = TypeVar("T")


def choose_judge(players: Mapping[str, Any], fingerprint: Mapping[str, Any]) -> Any:
    """Return the model that judges where none is named: the customer's, or the agent's.

    None for scripts and functions.

    Raises:
        InputError: All that is left of the model is its name, and it may have answered at an address of the user's.
    """
    agent, customer = (_model_of(players.get(role)) for role in ("agent", "customer"))
    role, judge = ("agent", agent) if customer is None else ("customer", customer)
    if isinstance(judge, str) and isinstance(fingerprint.get(role), Mapping):
        msg = f"{judge!r} played these rows, and where it answered is not written down: they could go to the wrong "
        msg += "host. Type grade(judge=ws.Model(...)); in a shell: --judge NAME, "
        raise InputError(msg + "and --base-url for a server of yours.")
    return judge


def doubt_judge(judge: Any, players: Mapping[str, Any], rubric: Any) -> str:
    """Say what speaks against a judge that was chosen for want of another; empty where nothing does."""
    if judge is not None and judge == _model_of(players.get("agent")):
        told = f"{name_model(judge)} judges its own conversations, and models are kind to themselves"
        return f"{told}: name another with grade(judge=...)."
    if judge is None and rubric is not None:
        told = "a rubric is read by a judge, and there is none: findings and oracle alone decide"
        return f"{told}. Name one with grade(judge=...); in a shell: --judge NAME."
    return ""


def open_grading(
    manifest: Manifest, tools: tuple[Tool, ...], rubric: Any, judge: Any, fraction: float, severity: Weights
) -> Grading:
    """Read the rubric and open the judge: a model, any object with ``reply``, or None for none."""
    return Grading(
        rubric=read_rubric(rubric),
        policy=manifest.policy(""),
        tools=tools,
        severity=severity,
        chat=judge if judge is None or hasattr(judge, "reply") else Endpoint(judge),
        model="" if judge is None else name_model(judge),
        fraction=fraction,
        seed=manifest.seed,
    )


def name_model(model: Any) -> str:
    """Return a model's name, for messages and verdicts."""
    return model if isinstance(model, str) else str(getattr(model, "name", type(model).__name__))


def grade_played(played: Iterable[Row], made: dict[str, Grade], how: Grading, folder: Path | None) -> None:
    """Grade rows that were not read yet; in ``made``, and in ``folder``, a grade stands as soon as it is made."""
    known, path = dict(made), folder and folder / "verdicts.jsonl"
    if path is not None:  # whole lines only: what follows is appended
        write_grades(path, made.values())

    def done(grade: Grade) -> None:
        made[grade.id] = grade
        if path is not None and grade.verdict is not None and grade.verdict.judge:
            append_lines(path, [asdict(grade)])

    run(and_close(grade_rows(played, known, how, done), how.chat))
    if path is not None:
        write_grades(path, (made[row.id] for row in played if row.id in made))


def hold_against(labels: Any, rows: Iterable[Row], how: Grading) -> Trust:
    """Hold a judge against people's labels of rows that it has read, and probe it.

    Raises:
        InputError: A label cannot be read, or this judge has read none of the labelled rows.
    """
    by_id = {row.id: row for row in rows}
    known = read_labels(labels, by_id.keys())
    cases = [case for row_id in known if (case := judged_case(by_id[row_id], how))]
    if how.chat is None or not cases:
        msg = "this judge has read none of the labelled rows. Grade them first, with the same rubric and judge."
        raise InputError(msg)
    return run(and_close(measure_trust(Reader(how.chat, how.rubric, how.model), cases, known), how.chat))


async def and_close(work: Awaitable[T], chat: Chat | None) -> T:
    """Do what a judge is needed for, then close it; one of the user's own is left open."""
    try:
        return await work
    finally:
        if isinstance(chat, Endpoint):
            await chat.close()


def _model_of(player: Any) -> Any:
    if isinstance(player, str):  # a manifest names functions too
        return None if player == "scripted" or player.startswith("function:") else player
    return None if callable(player) and not hasattr(player, "reply") else player
