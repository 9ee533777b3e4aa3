"""Ray: shards of a plan as tasks on a Ray cluster, and one folder at the end.

Each task runs the engine that one machine runs, on its part of the plan, in a folder of its
own below ``run_dir``; Ray moves the tasks, and starts one again whose worker or machine was
lost. The task then goes on from its own journal. At the end the rows are put into ``run_dir``
in card order: the same bytes as one machine would have written.

``run_dir`` must be a folder that all machines of the cluster see. Keys in the environment
must be set where the workers are; one in ``ws.Model(..., api_key=...)`` travels with the task.
"""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from typing import Any

from whilesim.cards.plan import Plan
from whilesim.cards.planning import refuse_unknown
from whilesim.chat.loop import run
from whilesim.chat.models import Model
from whilesim.chat.throttle import Budget
from whilesim.core.errors import InputError, MissingExtra
from whilesim.keeping.folders import recall
from whilesim.keeping.simulation import Simulation
from whilesim.playing import SCRIPTED, Cast, How, find_cast, join_parts
from whilesim.street import as_simulation, simulate

log = logging.getLogger(__name__)

_STARTS = 10  # times that a shard is begun again when its worker was lost


def simulate_on_ray(
    plan: Plan,
    agent: Any = SCRIPTED,
    *,
    run_dir: str | os.PathLike[str],
    shards: int = 8,
    customer: Any = None,
    rollouts: int = 2,
    turns: int = 6,
    concurrency: int = 64,
    budget: Budget | None = None,
    **misspelt: Any,
) -> Simulation:
    """Do what ``simulate`` does, on a Ray cluster: the connected one, else one on this machine.

    Args:
        plan: What is played; its parts must be of a kind that can be sent (no open client).
        agent: As for ``simulate``.
        run_dir: Folder of the run, seen by all machines. The same call goes on where it ended.
        shards: Parts of the plan, each a task with one CPU.
        customer, rollouts, turns: As for ``simulate``.
        concurrency, budget: As for ``simulate``, shared out among the shards.

    Raises:
        InputError: Something given cannot be used; nothing was sent.
        RunError: A model does not answer, or a folder is in use.
        MissingExtra: Ray is not installed.
    """
    refuse_unknown("simulate_on_ray", misspelt, simulate_on_ray)
    how = How(rollouts, turns, concurrency, budget, False, os.path.abspath(run_dir))
    if shards < 1:
        raise InputError(f"shards={shards!r} leaves nothing to play. Type a whole number from 1.")
    cast = run(find_cast(agent, customer))
    if any(isinstance(m, Model) and m.client is not None for m in cast.models.values()):
        raise InputError("a client cannot be sent to another machine. Type: ws.Model(name, base_url=..., api_key=...).")
    known = recall(how.run_dir)
    folders = _play_shards(plan, cast, how, min(shards, max(1, len(plan.cards))))
    return as_simulation(join_parts(plan, cast, how, folders), plan, cast, how, known)


def _play_shards(plan: Plan, cast: Cast, how: How, shards: int) -> list[str]:
    """Play all shards and return their folders, in the order of the cards."""
    ray = _connect()
    task = ray.remote(num_cpus=1, max_retries=_STARTS)(_play_shard)
    folders = [os.path.join(str(how.run_dir), "shards", f"{i + 1}-of-{shards}") for i in range(shards)]
    caps = how.budget or Budget()
    usd, tokens = caps.usd and caps.usd / shards, caps.tokens and caps.tokens // shards
    each = replace(how, concurrency=max(1, how.concurrency // shards), budget=Budget(usd, tokens, caps.seconds))
    sent = ray.put((plan, cast, each))
    waiting = [task.remote(sent, i, shards, folder) for i, folder in enumerate(folders)]
    try:
        while waiting:
            [ended], waiting = ray.wait(waiting)
            log.info("shard in %s has ended, %d of %d are left", ray.get(ended), len(waiting), shards)
    except ray.exceptions.RayTaskError as error:  # it would print the worker's whole traceback
        raise error.cause from error
    finally:  # after an error or Ctrl-C the others end in order
        for left in waiting:
            ray.cancel(left)
    return folders


def _play_shard(sent: tuple[Plan, Cast, How], index: int, shards: int, folder: str) -> str:
    """Play one shard in its folder, or go on where a lost worker left it."""
    plan, cast, how = sent
    told = {name: getattr(how, name) for name in ("rollouts", "turns", "concurrency", "budget")}
    simulate(cast.agent, plan=plan.shard(index, shards), customer=cast.customer, run_dir=folder, progress=False, **told)
    return folder


def _connect() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is told to anybody
    try:
        import ray
    except ImportError:
        raise MissingExtra("ray", "ray") from None
    if not ray.is_initialized():
        ray.init(logging_level=logging.ERROR, log_to_driver=False)
    return ray
