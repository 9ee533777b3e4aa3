"""Street: ``simulate()``, the whole job in one call.

The module is not called ``simulate``, because a module of that name would stand in the way
of the function: ``whilesim.simulate`` can be only one of the two.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from whilesim import __version__
from whilesim.cards.plan import Plan
from whilesim.cards.planning import plan as make_plan
from whilesim.cards.planning import refuse_unknown
from whilesim.chat.endpoint import Endpoint, identify, is_client, preflight
from whilesim.chat.loop import run
from whilesim.chat.messages import Failure, Message, Trace
from whilesim.chat.models import Chat, Model
from whilesim.chat.replies import Replies
from whilesim.chat.throttle import Budget, Throttle
from whilesim.conversations.engine import run_jobs
from whilesim.conversations.journal import Journal
from whilesim.conversations.players import (
    Agent,
    Customer,
    FunctionAgent,
    FunctionCustomer,
    ModelAgent,
    ModelCustomer,
)
from whilesim.conversations.rollout import Case, Stage, play
from whilesim.conversations.scripted import ScriptedAgent
from whilesim.conversations.scripted_customer import ScriptedCustomer
from whilesim.core.errors import InputError
from whilesim.core.jsontext import dumps
from whilesim.core.templates import prompts_digest
from whilesim.core.text import digest
from whilesim.grading.checks.customer import check_customer
from whilesim.grading.checks.run import run_checks
from whilesim.keeping.manifest import Manifest
from whilesim.keeping.rows import Row
from whilesim.keeping.simulation import Simulation

SCRIPTED = "scripted"
DEADLINE = 1800.0
"""Seconds for one conversation; the engine cuts what does not end by itself a little later."""


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
    how = _How(rollouts, turns, concurrency, budget, progress, None if run_dir is None else os.fspath(run_dir))
    return run(_simulate(chosen, agent, customer, how))


async def asimulate(agent: Any = SCRIPTED, **options: Any) -> Simulation:
    """Do what ``simulate`` does, from a running loop; the options are the same."""
    import asyncio

    return await asyncio.get_running_loop().run_in_executor(None, lambda: simulate(agent, **options))


@dataclass(frozen=True, slots=True)
class _How:
    """How a plan is played."""

    rollouts: int
    turns: int
    concurrency: int
    budget: Budget | None
    progress: bool | None
    run_dir: str | None

    def __post_init__(self) -> None:
        for name in ("rollouts", "turns", "concurrency"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InputError(f"{name}={value!r} leaves nothing to play. Type a whole number from 1.")


def _plan(plan: Plan | None, options: Mapping[str, Any]) -> Plan:
    """Return the plan that was given, or make one; both at once is a mistake."""
    defaults = {"situations": 150, "seed": 0}
    given = [name for name, value in options.items() if value != defaults.get(name)]
    if plan is None:
        for name in ("tools", "system_prompt"):
            if options[name] is None:
                raise InputError(
                    f"simulate() has no {name}. Type: simulate(agent, tools=TOOLS, system_prompt=POLICY), "
                    "or plan=ws.plan(...)."
                )
        return make_plan(**options)
    if given:
        raise InputError(
            f"plan= was given together with {', '.join(g + '=' for g in given)}: the plan decides these. "
            f"Leave them out, or pass them to ws.plan()."
        )
    return plan


async def _simulate(plan: Plan, agent: Any, customer: Any, how: _How) -> Simulation:
    throttle = Throttle(concurrency=how.concurrency, budget=how.budget, deadline=DEADLINE + 5, seed=plan.seed)
    cast = await _cast(agent, customer)
    with Journal(how.run_dir, fingerprint=_fingerprint(plan, cast, how)) as journal:
        replies = Replies(os.path.join(how.run_dir, "replies.sqlite")) if how.run_dir and cast.models else None
        chats = {role: Endpoint(m, throttle=throttle, replies=replies) for role, m in cast.models.items()}
        try:
            rows = await _play_all(plan, cast, chats, how, journal, throttle)
        finally:
            for chat in chats.values():
                await chat.close()
            if replies is not None:
                replies.close()
    return Simulation(
        rows,
        _manifest(plan, cast, how),
        folder=how.run_dir,
        players={"agent": cast.agent, "customer": cast.customer},
    )


@dataclass(frozen=True, slots=True)
class _Cast:
    """Who plays: specifications, and the models among them."""

    agent: Any
    customer: Any

    @property
    def models(self) -> dict[str, Model | str]:
        """Role to model, scripts and functions left out."""
        named = {"agent": self.agent, "customer": self.customer}
        return {role: s for role, s in named.items() if isinstance(s, Model) or (isinstance(s, str) and s != SCRIPTED)}

    def name(self, role: str) -> str:
        """Return what stands in a row for a role's player; never a key."""
        spec = getattr(self, role)
        if isinstance(spec, (str, Model)):
            return spec if isinstance(spec, str) else spec.name
        return f"function:{getattr(spec, '__name__', type(spec).__name__)}"


async def _cast(agent: Any, customer: Any) -> _Cast:
    """Settle who plays the customer, and ask a client which model it serves."""
    agent = await identify(agent) if is_client(agent) else agent
    if customer is None:
        customer = agent if isinstance(agent, (str, Model)) else SCRIPTED
    customer = await identify(customer) if is_client(customer) else customer
    for role, spec in (("agent", agent), ("customer", customer)):
        if not (isinstance(spec, (str, Model)) or callable(spec)):
            raise InputError(
                f'{role}={spec!r:.60} cannot play. Type a model ("openai:gpt-4.1-mini"), ws.Model(...), '
                f'a function, or "scripted".'
            )
    return _Cast(agent, customer)


async def _play_all(
    plan: Plan, cast: _Cast, chats: Mapping[str, Endpoint], how: _How, journal: Journal, throttle: Throttle
) -> Sequence[Row]:
    wire = [t.to_openai() for t in plan.tools]
    cases = [Case(card=c, rollout=r, seed=plan.seed) for c in plan.cards for r in range(how.rollouts)]
    if any(case.id not in journal for case in cases):
        await preflight(chats, wire)
    stage = Stage(
        agent=_agent(cast.agent, chats.get("agent")),
        customer=_customer(cast.customer, chats.get("customer")),
        system_prompt=plan.system_prompt,
        tools=plan.tools,
        customer_tools=plan.customer_tools,
        turns=how.turns,
    )
    desk = _Desk(plan, cast)

    async def work(case: Case) -> Mapping[str, Any]:
        return desk.row(case, await play(case, stage, plan.world_for(case.card)))

    await run_jobs(
        cases,
        work,
        journal=journal,
        throttle=throttle,
        progress=how.progress,
        clean=lambda row: not row["failure"] and not any(f["severity"] == "drop" for f in row["findings"]),
        lost=desk.lost,
    )
    order = [case.id for case in cases]
    journal.finish(order)
    journal.write_manifest(_manifest(plan, cast, how).model_dump(mode="json"))
    return [Row.from_json(row) for row in journal.rows(order)]


def _agent(spec: Any, chat: Chat | None) -> Agent:
    if chat is not None:
        return ModelAgent(chat)
    return ScriptedAgent() if spec == SCRIPTED else FunctionAgent(spec)


def _customer(spec: Any, chat: Chat | None) -> Customer:
    if chat is not None:
        return ModelCustomer(chat)
    return ScriptedCustomer() if spec == SCRIPTED else FunctionCustomer(spec)


@dataclass(frozen=True, slots=True)
class _Desk:
    """Where a played conversation becomes a row."""

    plan: Plan
    cast: _Cast

    def row(self, case: Case, trace: Trace) -> dict[str, Any]:
        """Check a trace and write its row."""
        card, tools = case.card, self.plan.tools
        findings = run_checks(trace.messages, tools=tools, failed=trace.failed_calls)
        findings += check_customer(card, trace.messages, customer_done=trace.stop == "customer_done")
        row = Row.from_trace(
            trace,
            card,
            rollout=case.rollout,
            tools=tools,
            oracle=self.plan.oracles[card.id],
            findings=findings,
            provenance=self.provenance(),
        )
        return row.to_json()

    def lost(self, case: Case, failure: Failure) -> dict[str, Any]:
        """Write the row of a conversation that had to be cut off."""
        stop: Any = failure.reason if failure.reason in ("budget", "deadline", "interrupt") else "agent_error"
        opening = Message(role="user", content=case.card.opening)
        said = (Message(role="system", content=self.plan.system_prompt), opening)
        return self.row(case, Trace(case=case.card.id, seed=0, messages=said, stop=stop, failure=failure))

    def provenance(self) -> dict[str, str]:
        """Name who made a row and with what."""
        return {
            "agent": self.cast.name("agent"),
            "customer": self.cast.name("customer"),
            "writer": "templates",
            "embedder": self.plan.embedder,
            "prompts": prompts_digest(),
            "whilesim": __version__,
        }


def _manifest(plan: Plan, cast: _Cast, how: _How) -> Manifest:
    return Manifest.describe(
        policy=plan.policy,
        tools=plan.tools,
        axes=plan.space.axes,
        infeasible=plan.covering.infeasible,
        whilesim=__version__,
        seed=plan.seed,
        models={"agent": cast.name("agent"), "customer": cast.name("customer"), "embedder": plan.embedder},
        digests=_digests(plan),
        fingerprint=_fingerprint(plan, cast, how),
        counts={
            "situations": len(plan.cards),
            "rollouts": how.rollouts,
            "turns": how.turns,
            "planned": len(plan.cards) * how.rollouts,
        },
        notes=list(plan.notes),
    )


def _digests(plan: Plan) -> dict[str, str]:
    return {
        "policy": digest(plan.system_prompt),
        "tools": digest(dumps([t.to_openai() for t in plan.tools])),
        "prompts": prompts_digest(),
        "plan": digest(dumps([asdict(c) for c in plan.cards])),
        "world": digest("own" if plan.world is None else plan.world.describe()),
    }


def _fingerprint(plan: Plan, cast: _Cast, how: _How) -> dict[str, Any]:
    """Say what decides the rows: all that may not change between two attempts at one run."""
    return {
        **_digests(plan),
        "seed": plan.seed,
        "situations": len(plan.cards),
        "rollouts": how.rollouts,
        "turns": how.turns,
        **{role: _parameters(cast, role) for role in ("agent", "customer")},
    }


def _parameters(cast: _Cast, role: str) -> Any:
    spec = getattr(cast, role)
    return spec.fingerprint if isinstance(spec, Model) else cast.name(role)
