"""Refilling: more conversations for the pairs that the kept rows lack.

A wave plays the rows of a complete covering that hold most of what is missing, each once, with
new customers. A pair that was tried three times and is still not kept is given up, and said so.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import combinations
from math import ceil
from pathlib import Path
from typing import Any

from whilesim.cards.plan import Plan
from whilesim.cards.planning import load_plan, write_wave
from whilesim.chat.loop import run
from whilesim.chat.models import Model
from whilesim.core.errors import InputError
from whilesim.keeping.manifest import Pair
from whilesim.keeping.simulation import Simulation
from whilesim.playing import Cast, How, find_cast, play_plan
from whilesim.situations.covering import cover

log = logging.getLogger(__name__)

ROWS = 200
"""Rows that a refill plays at most, unless it is told otherwise."""
_TRIES = 3
_WAVE = 64  # rows of one wave at most, so that what it kept can steer the next


def refiller(plan: Plan, cast: Cast, how: How) -> Callable[[Simulation, int | None, int | None], Simulation]:
    """Return what plays more rows of a run; see :meth:`whilesim.keeping.simulation.Simulation.refill`."""
    whole = replace(how, rollouts=1, run_dir=None)

    def refill(data: Simulation, rows: int | None, kept: int | None) -> Simulation:
        most = rows if rows is not None else ROWS if kept is None else 3 * kept
        tried: Counter[Pair] = Counter()
        wave = max((row.wave for row in data.rows), default=0)
        while most > 0 and (chosen := _choose(plan, data, tried, min(most, _WAVE), kept, wave + 1)):
            wave, most = wave + 1, most - len(chosen)
            before = len(data.kept.rows)
            data.extend(run(play_plan(write_wave(plan, chosen, wave), cast, whole, wave=wave)))
            data.grade(**data.asked)
            tried.update({pair for row in chosen for pair in combinations(row.items(), 2)})
            log.info("wave %d: %d rows played, %d more kept", wave, len(chosen), len(data.kept.rows) - before)
        _tell(data, tried, kept)
        return data

    return refill


def reopen(
    data: Simulation,
    agent: Any = None,
    customer: str | None = None,
    *,
    base_url: str | None = None,
    rubric: str | None = None,
    judge: str | None = None,
) -> Simulation:
    """Return a run that was loaded from its folder, ready to be refilled.

    Args:
        agent, customer: Models, or the function that the agent was; those that the run names by default.
        base_url: Address of the agent's server, as it was given to ``simulate``.
        rubric: Path of the rubric that the run was graded with; None for the built-in one.
        judge: The model that read it.

    Raises:
        InputError: A judge read the rows and none is named, the folder holds no plan, or nobody knows where a model answers.
    """
    folder, models, counts = data.folder or Path(), data.manifest.models, data.manifest.counts
    read_by = {row.verdict.judge.partition("@")[0] for row in data.rows if row.verdict and row.verdict.judge}
    if read_by and judge is None:
        msg = f"the rows in {str(folder)!r} were read by {min(read_by)!r}, and refilled rows need a judge too. Type --judge, "
        raise InputError(msg + "and --rubric if grade had one.")
    if not (folder / "plan.json").exists():
        msg = f"{str(folder)!r} holds no plan.json, so nobody knows what else to play. "
        raise InputError(msg + "Run simulate again on that folder.")
    name, other = agent or models["agent"], customer or models["customer"]
    for role, given, known in (("agent", agent, base_url), ("customer", customer, other == name)):
        if not given and str(models.get(role)).startswith("function:"):
            msg = f"the {role} {models[role]!r} was a function, and no folder holds one. Type --{role} "
            raise InputError(msg + ("file.py:function." if role == "agent" else "to name a model at its provider."))
        if not (given or known) and isinstance(data.manifest.fingerprint.get(role), Mapping):
            msg = f"where the {role} {models[role]!r} answered is not written down. Type --{role} to name a model at its provider"
            raise InputError(msg + (", or --base-url as it was." if role == "agent" else "."))
    cast = run(find_cast(Model(str(name), base_url=base_url) if base_url else name, None if other == name else other))
    how = How(counts["rollouts"], counts["turns"], 64, None, None, str(folder))
    data.players, data.asked = cast.players, {"rubric": rubric and Path(rubric), "judge": judge}
    data.refiller = refiller(load_plan(folder / "plan.json"), cast, how)
    return data


def _choose(
    plan: Plan, data: Simulation, tried: Mapping[Pair, int], most: int, kept: int | None, wave: int
) -> list[Mapping[str, str]]:
    """Choose rows of a complete covering, those with most missing pairs first; none when all is done."""
    if kept is not None:  # as many as will do, if as large a share of them is kept as before, and an eighth at least
        have = len(data.kept.rows)
        most = min(most, ceil((kept - have) / max(0.125, have / max(1, len(data.rows)))))
    missing = {hole.pair for hole in data.certificate.holes if tried.get(hole.pair, 0) < _TRIES}
    if most < 1 or (not missing and kept is None):
        return []
    covering = cover(plan.space.axes, plan.covering.strength, forbid=plan.space.forbidden, seed=plan.seed + wave)
    chosen, rows = list[Mapping[str, str]](), list(covering.rows)
    while missing and rows and len(chosen) < most:
        gains = [missing.intersection(combinations(row.items(), 2)) for row in rows]
        best = max(range(len(rows)), key=lambda n: (len(gains[n]), -n))
        if not gains[best]:
            break
        missing -= gains[best]
        chosen.append(rows.pop(best))
    return [*chosen, *rows[: most - len(chosen)]] if kept is not None else chosen


def _tell(data: Simulation, tried: Mapping[Pair, int], kept: int | None) -> None:
    """Say in the manifest's notes what could not be had."""
    notes = list(data.manifest.notes)
    if lost := [hole for hole in data.certificate.holes if tried.get(hole.pair, 0) >= _TRIES]:
        notes.append(f"{len(lost)} pairs were tried {_TRIES} times and are in no kept row: {lost[0]} and others")
    if kept is not None and len(data.kept.rows) < kept:
        notes.append(f"asked for {kept:,} kept rows, kept {len(data.kept.rows):,}: the rows allowed were used up")
    data.describe(notes=notes)
