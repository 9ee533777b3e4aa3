"""Street: ``simulate()``, the whole job in one call.

The module is not called ``simulate``, because a module of that name would stand in the way
of the function: ``whilesim.simulate`` can be only one of the two.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping, Sequence
from typing import Any

from whilesim.cards.plan import Plan
from whilesim.cards.planning import plan as make_plan
from whilesim.cards.planning import refuse_unknown
from whilesim.chat.loop import run
from whilesim.chat.throttle import Budget
from whilesim.core.errors import InputError
from whilesim.keeping.folders import Recalled, recall
from whilesim.keeping.rows import Row
from whilesim.keeping.simulation import Simulation
from whilesim.playing import SCRIPTED, Cast, How, describe_run, find_cast, play_plan
from whilesim.refilling import refiller

log = logging.getLogger(__name__)


def simulate(
    agent: Any = SCRIPTED,
    *,
    tools: Any = None,
    system_prompt: str | None = None,
    plan: Plan | None = None,
    customer: Any = None,
    writer: Any = None,
    situations: int | None = 150,
    rollouts: int = 2,
    turns: int = 6,
    seed: int = 0,
    world: Any = None,
    customer_tools: Any = None,
    concurrency: int = 64,
    run_dir: str | os.PathLike[str] | None = None,
    budget: Budget | None = None,
    progress: bool | None = None,
    **misspelt: Any,
) -> Simulation:
    """Choose situations, play them, and return all rows, not yet graded.

    Args:
        agent: ``"provider:model"``, a ``Model``, a callable, an ``AsyncOpenAI`` client, or
            ``"scripted"``: an agent without a model, that misbehaves on a labelled share.
        tools: The agent's tools, in any dialect.
        system_prompt: The policy: what the agent is told, word for word.
        plan: A plan made before; then no tools, system_prompt, situations, seed, writer,
            world or customer_tools.
        customer: As ``agent``; by default the agent's model, or scripted where it has none.
        writer: A model that phrases the cards; templates unless given.
        situations: How many to play; None plays the complete covering.
        rollouts: Conversations for each situation.
        turns: Customer messages at most, the opening included.
        seed: Decides every draw that is not a model's.
        world: Corrections of the inferred world (``WorldSpec``) or a factory of your own.
        customer_tools: Tools that the customer has on the same world.
        concurrency: Requests at a time for each endpoint, at most.
        run_dir: Folder of the run; the same call with the same folder goes on where it ended.
        budget: Caps on dollars, tokens and seconds.
        progress: None shows progress in a terminal or notebook.

    Raises:
        InputError: Something given cannot be used; nothing was sent.
        RunError: A model does not answer, or the folder is in use.
    """
    refuse_unknown("simulate", misspelt, simulate)
    options = {"tools": tools, "system_prompt": system_prompt, "writer": writer, "situations": situations}
    options |= {"seed": seed, "world": world, "customer_tools": customer_tools}
    chosen = _plan(plan, options)
    how = How(rollouts, turns, concurrency, budget, progress, None if run_dir is None else os.fspath(run_dir))
    return run(_simulate(chosen, agent, customer, how))


async def asimulate(agent: Any = SCRIPTED, **options: Any) -> Simulation:
    """Do what ``simulate`` does, from a running loop; the options are the same."""
    return await asyncio.get_running_loop().run_in_executor(None, lambda: simulate(agent, **options))


def _plan(plan: Plan | None, options: Mapping[str, Any]) -> Plan:
    """Return the plan that was given, or make one; both at once is a mistake."""
    if plan is None:
        for name in ("tools", "system_prompt"):
            if options[name] is None:
                typed = "Type: simulate(agent, tools=TOOLS, system_prompt=POLICY), or plan=ws.plan(...)."
                raise InputError(f"simulate() has no {name}. {typed}")
        return make_plan(**options)
    defaults = {"situations": 150, "seed": 0}
    if given := [f"{name}=" for name, value in options.items() if value != defaults.get(name)]:
        msg = f"plan= was given together with {', '.join(given)}: the plan decides these. "
        raise InputError(msg + "Leave them out, or pass them to ws.plan().")
    return plan


async def _simulate(plan: Plan, agent: Any, customer: Any, how: How) -> Simulation:
    cast: Cast = await find_cast(agent, customer)
    known = recall(how.run_dir)
    rows = await play_plan(plan, cast, how)
    if how.run_dir is not None:
        try:
            plan.save(os.path.join(how.run_dir, "plan.json"))
        except OSError as error:  # the rows are more than the folder's completeness
            log.warning("%s has no plan.json, so refill cannot go on from it later: %s", how.run_dir, error)
    return as_simulation(rows, plan, cast, how, known)


def as_simulation(rows: Sequence[Row], plan: Plan, cast: Cast, how: How, known: Recalled) -> Simulation:
    """Return a run's rows with all that is known of the run, what its folder held before included."""
    manifest, more = describe_run(plan, cast, how).model_copy(update={"admitted": known[0]}), refiller(plan, cast, how)
    return Simulation(rows, manifest, folder=how.run_dir, players=cast.players, refiller=more, grades=known[1])
