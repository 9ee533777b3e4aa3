"""Tau2: results of tau2-bench, read, compared, and what trivial agents score there.

What the file does not say is derived (the split from the ids, the persona from the id, the
wanted hand-off from the gold actions). What only looks like one run is refused: the benchmark
goes on in a file whose configuration has changed since. pass^k is counted as it counts it:
infrastructure errors dropped, a pass within 1e-6 of a reward of 1.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel

from whilesim.core.errors import InputError
from whilesim.core.keys import scrub
from whilesim.core.stats import Estimate, pass_at, proportion, share
from whilesim.core.templates import load_words
from whilesim.core.text import digest
from whilesim.evals.compare import Change, compare_tries
from whilesim.evals.results import Floor, gather
from whilesim.grading.rubric import checked
from whilesim.situations.tools import Effect, parse_tools

_PARTS = {"agent": "agent_info", "user": "user_info", "domain": "environment_info"}
_PERSONA = re.compile(r"\[PERSONA:([^\]]*)\]")


class _Action(BaseModel):
    name: str


class _Criteria(BaseModel):
    actions: list[_Action] | None = None
    reward_basis: list[str] | None = None


class _Task(BaseModel):
    id: str | int
    evaluation_criteria: _Criteria | None = None


class _Reward(BaseModel, strict=True):
    reward: float | None = None


class _Said(BaseModel):
    raw_data: dict[str, Any] | None = None


class _Simulation(BaseModel):
    task_id: str
    termination_reason: str
    trial: int | None = None
    seed: int | None = None
    policy: str | None = None
    reward_info: _Reward | None = None
    messages: list[_Said] | None = None


class _Info(BaseModel):
    agent_info: dict[str, Any]
    user_info: dict[str, Any]
    environment_info: dict[str, Any]


class _Results(BaseModel):
    """What is read of a file; it may hold more."""

    info: _Info
    tasks: list[_Task]
    simulations: list[_Simulation]


@dataclass(frozen=True, slots=True)
class Tau2Run:
    """One run of the benchmark: all simulations of one configuration, keys taken out."""

    info: Mapping[str, Any]
    tasks: Mapping[str, Mapping[str, Any]]
    simulations: tuple[Mapping[str, Any], ...]
    notes: tuple[str, ...] = field(default=())

    @property
    def domain(self) -> str:
        """The benchmark's domain."""
        return str(self.info["environment_info"].get("domain_name"))

    @property
    def terminations(self) -> dict[str, int]:
        """How the simulations ended, and how many each way."""
        return dict(Counter(str(s["termination_reason"]) for s in self.simulations))

    @property
    def tries(self) -> dict[str, list[bool]]:
        """Task to whether each of its simulations passed; infrastructure errors dropped."""
        return gather((s["task_id"], _passes(s)) for s in self.simulations if not _is_broken(s))

    @property
    def passes(self) -> int:
        """Simulations with a reward of 1; infrastructure errors dropped."""
        return sum(map(sum, self.tries.values()))

    @property
    def three_ways(self) -> dict[str, Estimate]:
        """The pass rate with infrastructure errors left out, as failures, and as passes."""
        whole = [(s["task_id"], _passes(s)) for s in self.simulations if not _is_broken(s)]
        broken = [s["task_id"] for s in self.simulations if _is_broken(s)]
        more = {"left out": [], "as failures": [(i, False) for i in broken], "as passes": [(i, True) for i in broken]}
        return {name: share([*whole, *tries]) for name, tries in more.items()}

    @property
    def tags(self) -> dict[str, list[str]]:
        """Persona, and hand-off wanted or not, to the tasks."""
        found = [("hand-off wanted" if wants_handoff(t) else "hand-off not wanted", i) for i, t in self.tasks.items()]
        found += [(f"persona {persona}", i) for i in self.tasks for persona in _PERSONA.findall(i)[:1]]
        return dict(sorted(gather(found).items()))

    def split(self, splits: Mapping[str, Sequence[str]] | None = None) -> str:
        """Say which split the tasks are: by the ids given, else the benchmark's whole ones by their digest."""
        ids = {s["task_id"] for s in self.simulations}
        for name, members in sorted((splits or {}).items(), key=lambda pair: len(pair[1])):
            if ids <= set(members):
                return f"{name} ({len(ids)} of {len(members)} tasks)"
        known = load_words("evals")["tau2_splits"].get(self.domain, {})
        seal = digest("\n".join(sorted(ids)), 12)
        found = next((f"{name} (all " for name, one in known.items() if one == seal), "unknown (")
        return f"{found}{len(ids)} tasks)"

    def summary(self, splits: Mapping[str, Sequence[str]] | None = None) -> dict[str, Any]:
        """Return the run's numbers as a JSON object."""
        tools = [m for s in self.simulations for m in s.get("messages") or () if m.get("role") == "tool"]
        turns = [sum(m.get("role") == "user" for m in s.get("messages") or ()) for s in self.simulations]
        tries = self.tries
        by_tag = {tag: [v for i in ids for v in tries.get(i, ())] for tag, ids in self.tags.items()}
        return {
            "domain": self.domain,
            "split": self.split(splits),
            "agent": self.info["agent_info"].get("llm"),
            "user": self.info["user_info"].get("llm"),
            "tasks": len({s["task_id"] for s in self.simulations}),
            "simulations": len(self.simulations),
            "passes": self.passes,
            "terminations": self.terminations,
            "pass_rate": {name: str(rate) for name, rate in self.three_ways.items()},
            "pass_at": str(pass_at([(len(told), sum(told)) for told in tries.values()])),
            "tags": {tag: f"{sum(told)} of {len(told)}" for tag, told in by_tag.items()},
            "tool_error_rate": str(proportion(sum(bool(m.get("error")) for m in tools), len(tools))),
            "average_turns": round(sum(turns) / len(turns), 2) if turns else 0.0,
            "notes": list(self.notes),
        }


def read_tau2(*paths: str | os.PathLike[str]) -> Tau2Run:
    """Read one run from a results file, a folder of the newer form, or several files of one configuration.

    Raises:
        InputError: A file is cut off, is none of the benchmark's, or holds more than one configuration.
    """
    if not (files := [_read(Path(path)) for path in paths]):
        raise InputError("no file of results was given. Type: whilesim tau2 read results.json")
    info, where = scrub(files[0]["info"]), os.fspath(paths[0])
    for path, other in zip(paths, files, strict=True):
        if differ := _differences(info, other["info"]):
            told = f"has another configuration than {where!r} ({', '.join(differ)})"
            raise InputError(f"{os.fspath(path)!r} {told}: compare the two.")
    runs = [s for f in files for s in f["simulations"]]
    notes = _refuse_mixed(runs, info, where)
    infos = json.dumps([f["info"] for f in files]).replace('"dummy_key"', '"***"')  # what the benchmark writes for none
    if json.dumps(scrub(json.loads(infos))) != infos:
        notes.append("a key stood in the file: it is left out here; make a new one")
    tasks = {str(t["id"]): t for f in files for t in f["tasks"]}
    return Tau2Run(info, tasks, tuple(scrub(s) for s in runs), tuple(notes))


def compare_tau2(before: Tau2Run, after: Tau2Run) -> Change:
    """Compare two runs on the tasks of both: as a whole, per persona, and per hand-off wanted.

    Raises:
        InputError: They are of two domains, or have no task in common.
    """
    if before.domain != after.domain:
        msg = f"one run is of {before.domain!r} and the other of {after.domain!r}: only runs of one domain can be compared."
        raise InputError(msg)
    notes = [name for name in _differences(before.info, after.info) if name != "agent"]
    return compare_tries(before.tries, after.tries, tags=before.tags, notes=notes)


def floors_tau2(tasks: Iterable[Mapping[str, Any]]) -> dict[str, Floor]:
    """Say which tasks trivial agents pass, from what the tasks ask for, without running them.

    An agent that changes nothing leaves the state as it was: right where the gold actions
    change nothing either. What only a judge can read counts as passed, so this is the most
    that such an agent can score.
    """
    known = [(t, str(t["id"]), wants_handoff(t)) for t in tasks]
    floors = {"always_handoff": True, "do_nothing": False}.items()
    return {n: Floor.of({i: (_floor_passes(t, handoff=does), w) for t, i, w in known}) for n, does in floors}


def read_tasks(path: str | os.PathLike[str]) -> list[Mapping[str, Any]]:
    """Read the tasks of a results file, or of the benchmark's own ``tasks.json``."""
    found = _parse(Path(path))
    tasks = found.get("tasks") if isinstance(found, Mapping) else found
    typed = "Type the path of results.json or tasks.json."
    checked(list[_Task], tasks or None, f"{os.fspath(path)!r} holds no tasks of tau2-bench: ", typed)
    return cast(list[Mapping[str, Any]], tasks)


def read_splits(path: str | os.PathLike[str]) -> Mapping[str, Sequence[str]]:
    """Read the benchmark's ``split_tasks.json``: name to task ids."""
    found = _parse(Path(path))
    found = found.get("splits", found) if isinstance(found, dict) else found
    told = f"{os.fspath(path)!r} holds no splits: "
    return checked(dict[str, list[str]], found, told, "It must be an object of name to a list of task ids.")


def wants_handoff(task: Mapping[str, Any]) -> bool:
    """Whether a task's gold actions hand the customer to a person."""
    return any(_effect(a["name"]) == "handoff" for a in (task.get("evaluation_criteria") or {}).get("actions") or ())


def tell_tau2(told: Mapping[str, Any]) -> str:
    """Return a summary as a table."""
    lines = [f"note: {note}" for note in told["notes"]]
    for name, value in told.items():
        if isinstance(value, Mapping):
            lines += [name, *(f"  {k:<24}{v}" for k, v in value.items())]
        elif name != "notes":
            lines.append(f"{name:<26}{value}")
    return "\n".join(lines)


def _parse(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InputError(f"{os.fspath(path)!r} cannot be read: {error}.") from error
    except (ValueError, RecursionError) as error:
        msg = f"{os.fspath(path)!r} is no whole JSON file ({error}). It may be cut off: run again, or take the file of a run that ended."
        raise InputError(msg) from error


def _read(path: Path) -> dict[str, Any]:
    file = path / "results.json" if path.is_dir() else path
    found = _parse(file)
    if isinstance(found, dict) and not found.get("simulations") and (found.get("simulation_index") or path.is_dir()):
        found["simulations"] = [_parse(part) for part in sorted((file.parent / "simulations").glob("*.json"))]
    checked(_Results, found, f"{os.fspath(path)!r} is no file of results: ", "Type the path that --save-to named.")
    return cast(dict[str, Any], found)


def _differences(one: Mapping[str, Any], two: Mapping[str, Any]) -> list[str]:
    """Name what differs between two configurations, keys and bookkeeping left out."""
    fields = ("implementation", "llm", "llm_args", "domain_name", "policy")

    def told(info: Mapping[str, Any], name: str) -> Any:
        return [scrub(info[_PARTS[name]]).get(f) for f in fields] if name in _PARTS else info.get(name)

    return [name for name in (*_PARTS, "max_steps", "max_errors", "seed") if told(one, name) != told(two, name)]


def _refuse_mixed(runs: Sequence[Mapping[str, Any]], info: Mapping[str, Any], path: str) -> list[str]:
    """Refuse what was made by several configurations; return notes on what is odd."""
    told = [("the policy", digest(s["policy"])) for s in runs if s.get("policy")]
    told += [(f"the seed of trial {s.get('trial')}", s["seed"]) for s in runs if s.get("seed") is not None]
    said = [m for s in runs for m in s.get("messages") or () if m.get("role") in ("assistant", "user")]
    models = [(m["role"], (m.get("raw_data") or {}).get("model")) for m in said]
    told += [(f"the {role}'s model", model) for role, model in models if model]
    seen = {name: sorted({str(v) for n, v in told if n == name}) for name, _ in told}
    if mixed := [f"{name} is {found}" for name, found in seen.items() if len(found) > 1]:
        msg = f"{path!r} was made by more than one configuration: {'; '.join(mixed)}. Run again with a --save-to of its own."
        raise InputError(msg)
    pairs = Counter((s["task_id"], s.get("trial")) for s in runs if not _is_broken(s))
    for task, trial in (pair for pair, count in pairs.items() if count > 1):
        raise InputError(f"{path!r} holds trial {trial} of task {task!r} more than once: give each file once.")
    trials, due = len({s.get("trial") for s in runs}), info.get("num_trials")
    odd = runs and due and due != trials
    return [f"the file says {due} trial(s) and holds {trials}: the run was resumed"] if odd else []


def _is_broken(simulation: Mapping[str, Any]) -> bool:
    """Whether the benchmark failed, not the agent; one form of it calls that ``skipped``."""
    return simulation["termination_reason"] == "infrastructure_error" or bool(simulation.get("skipped"))


def _passes(simulation: Mapping[str, Any]) -> bool:
    reward = (simulation.get("reward_info") or {}).get("reward")
    return reward is not None and abs(reward - 1) <= 1e-6


@cache
def _effect(name: str) -> Effect:
    return parse_tools([{"name": name}])[0].effect


def _floor_passes(task: Mapping[str, Any], *, handoff: bool) -> bool:
    told = task.get("evaluation_criteria") or {}
    actions = told.get("actions") or []
    basis = told.get("reward_basis") or ["DB", "COMMUNICATE"]
    changes = [a for a in actions if _effect(a["name"]) == "write"]
    # a person's note is never the gold one, so its text must not be compared
    missed = [a for a in actions if not (handoff and _effect(a["name"]) == "handoff" and a.get("compare_args") == [])]
    fails = {"DB": changes, "ENV_ASSERTION": changes, "COMMUNICATE": told.get("communicate_info"), "ACTION": missed}
    return not any(fails.get(name) for name in basis)
