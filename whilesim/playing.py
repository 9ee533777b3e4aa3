"""Playing: a plan's cards played by a cast, checked and written as rows."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from typing import Any, get_args

from whilesim import __version__
from whilesim.cards.plan import Plan
from whilesim.cards.planning import whole_number
from whilesim.chat.endpoint import Endpoint, identify, is_client
from whilesim.chat.messages import Failure, Message, RunStop, Trace
from whilesim.chat.models import Chat, Model, resolve_model
from whilesim.chat.preflight import preflight
from whilesim.chat.replies import Replies
from whilesim.chat.throttle import Budget, Throttle
from whilesim.conversations.engine import run_jobs
from whilesim.conversations.journal import Journal
from whilesim.conversations.players import Agent, Customer, FunctionAgent, FunctionCustomer, ModelAgent, ModelCustomer
from whilesim.conversations.rollout import Case, Stage, play
from whilesim.conversations.scripted import ScriptedAgent
from whilesim.conversations.scripted_customer import ScriptedCustomer
from whilesim.core.errors import InputError
from whilesim.core.jsontext import dumps, read_lines
from whilesim.core.templates import prompts_digest
from whilesim.core.text import digest
from whilesim.grading.checks.customer import check_customer
from whilesim.grading.checks.deeds import Toolbox, open_toolbox
from whilesim.grading.checks.run import run_checks
from whilesim.keeping.folders import WHOLE, RowFile, share_tools
from whilesim.keeping.manifest import Manifest
from whilesim.keeping.rows import Row

SCRIPTED = "scripted"
DEADLINE = 1800.0
"""Seconds for one conversation; the engine cuts what does not end by itself, such as an agent that swallows its end."""


@dataclass(frozen=True, slots=True)
class How:
    """How a plan is played."""

    rollouts: int
    turns: int
    concurrency: int
    budget: Budget | None
    progress: bool | None
    run_dir: str | None

    def __post_init__(self) -> None:
        for name in ("rollouts", "turns", "concurrency"):
            object.__setattr__(self, name, whole_number(name, getattr(self, name)))  # numpy's would stand in no file


async def play_plan(plan: Plan, cast: Cast, how: How, *, wave: int = 0) -> Sequence[Row]:
    """Play a plan's cards and return their rows, in card order, then rollout."""
    throttle = Throttle(concurrency=how.concurrency, budget=how.budget, deadline=DEADLINE + 5, seed=plan.seed)
    models = {role: resolve_model(model) for role, model in cast.models.items()}  # a misspelt one leaves no folder
    desk, cases = _Desk(plan, cast, wave, open_toolbox(plan.tools)), _cases(plan, how)
    with Journal(how.run_dir, fingerprint=_fingerprint(plan, cast, how)) as journal:
        async with AsyncExitStack() as stack:  # a model that cannot be asked leaves nothing open
            replies = Replies(os.path.join(how.run_dir, "replies.sqlite")) if how.run_dir and models else None
            if replies is not None:
                stack.callback(replies.close)
            chats: dict[str, Endpoint] = {}
            for role, model in models.items():
                chats[role] = await stack.enter_async_context(Endpoint(model, throttle=throttle, replies=replies))
            if any(case.id not in journal for case in cases):
                await preflight(chats, [t.to_openai() for t in plan.tools], plan.system_prompt)
            stage = Stage(
                agent=seat_agent(cast.agent, chats.get("agent")),
                customer=seat_customer(cast.customer, chats.get("customer")),
                system_prompt=plan.system_prompt,
                tools=plan.tools,
                customer_tools=plan.customer_tools,
                turns=how.turns,
                deadline=DEADLINE,
            )

            async def work(case: Case) -> Mapping[str, Any]:
                return desk.row(case, await play(case, stage, plan.world_for(case.card)))

            told: dict[str, Any] = {"progress": how.progress, "clean": _is_clean, "lost": desk.lost}
            await run_jobs(cases, work, journal=journal, throttle=throttle, **told)
            return _conclude(plan, cast, how, journal)


@dataclass(frozen=True, slots=True)
class Cast:
    """Who plays: specifications, and the models among them."""

    agent: Any
    customer: Any

    @property
    def players(self) -> dict[str, Any]:
        """Role to specification."""
        return {"agent": self.agent, "customer": self.customer}

    @property
    def models(self) -> dict[str, Model | str]:
        """Role to model, scripts and functions left out."""
        return {role: s for role, s in self.players.items() if isinstance(s, (str, Model)) and s != SCRIPTED}

    @property
    def names(self) -> dict[str, str]:
        """Role to what stands in a row for its player; never a key."""
        return {role: s if isinstance(s, str) else _name(s) for role, s in self.players.items()}


def _name(spec: Any) -> str:
    return spec.name if isinstance(spec, Model) else f"function:{getattr(spec, '__name__', type(spec).__name__)}"


async def find_cast(agent: Any, customer: Any) -> Cast:
    """Settle who plays the customer, and ask a client which model it serves."""
    agent = await identify(agent) if is_client(agent) else agent
    if customer is None:
        customer = agent if isinstance(agent, (str, Model)) else SCRIPTED
    cast = Cast(agent, await identify(customer) if is_client(customer) else customer)
    for role, spec in cast.players.items():
        if not (isinstance(spec, (str, Model)) or callable(spec)):
            typed = 'Type a model ("openai:gpt-4.1-mini"), ws.Model(...), a function, or "scripted".'
            raise InputError(f"{role}={spec!r:.60} cannot play. {typed}")
    return cast


def _is_clean(row: Mapping[str, Any]) -> bool:
    return not row["failure"] and not any(f["severity"] == "drop" for f in row["findings"])


def join_parts(plan: Plan, cast: Cast, how: How, folders: Iterable[str]) -> Sequence[Row]:
    """Put the rows that shards of a plan left in their folders into the run's own, as if it had played them."""
    with Journal(how.run_dir, fingerprint=_fingerprint(plan, cast, how)) as journal:
        for folder in folders:
            for _, row in read_lines(os.path.join(folder, "rows.jsonl")):
                if row["id"] not in journal:
                    journal.append(row)
        return _conclude(plan, cast, how, journal)


def _cases(plan: Plan, how: How) -> list[Case]:
    return [Case(card=c, rollout=r, seed=plan.seed) for c in plan.cards for r in range(how.rollouts)]


def _conclude(plan: Plan, cast: Cast, how: How, journal: Journal) -> Sequence[Row]:
    """Put the folder in order and return its rows, those that a refill has added too; many stay on the disk."""
    journal.finish([case.id for case in _cases(plan, how)])
    journal.write_manifest(describe_run(plan, cast, how).model_dump(mode="json"))
    path = None if journal.folder is None or journal.problem else journal.folder / "rows.jsonl"
    if path is not None and path.stat().st_size > WHOLE:
        return RowFile.open(path)
    return list(share_tools(Row.from_json(journal.read(row_id)) for row_id in journal.ids))


def seat_agent(spec: Any, chat: Chat | None) -> Agent:
    """Return the player that a specification and its endpoint make."""
    own: Agent = ScriptedAgent() if spec == SCRIPTED else FunctionAgent(spec)
    return own if chat is None else ModelAgent(chat)


def seat_customer(spec: Any, chat: Chat | None) -> Customer:
    """Return the player that a specification and its endpoint make."""
    own: Customer = ScriptedCustomer() if spec == SCRIPTED else FunctionCustomer(spec)
    return own if chat is None else ModelCustomer(chat)


@dataclass(frozen=True, slots=True)
class _Desk:
    """Where a played conversation becomes a row."""

    plan: Plan
    cast: Cast
    wave: int
    box: Toolbox

    def row(self, case: Case, trace: Trace) -> dict[str, Any]:
        """Check a trace and write its row."""
        plan, card = self.plan, case.card
        found = run_checks(trace.messages, tools=self.box, failed=trace.failed_calls)
        found += check_customer(card, trace.messages, customer_done=trace.stop == "customer_done")
        made = {"embedder": plan.embedder, "prompts": prompts_digest(), "whilesim": __version__}
        row = Row.from_trace(
            trace,
            card,
            rollout=case.rollout,
            wave=self.wave,
            tools=plan.tools,
            oracle=plan.oracles[card.id],
            findings=found,
            provenance={**self.cast.names, "writer": "templates", **made},
        )
        return row.to_json()

    def lost(self, case: Case, failure: Failure) -> dict[str, Any]:
        """Write the row of a conversation that had to be cut off."""
        stop: Any = failure.reason if failure.reason in get_args(RunStop) else "agent_error"
        opening = Message(role="user", content=case.card.opening)
        said = (Message(role="system", content=self.plan.system_prompt), opening)
        return self.row(case, Trace(case=case.card.id, seed=0, messages=said, stop=stop, failure=failure))


def describe_run(plan: Plan, cast: Cast, how: How) -> Manifest:
    """Describe what a run is made of."""
    return Manifest.describe(
        policy=plan.policy,
        tools=plan.tools,
        axes=plan.space.axes,
        infeasible=plan.covering.infeasible,
        whilesim=__version__,
        seed=plan.seed,
        models={**cast.names, "embedder": plan.embedder},
        digests=_digests(plan),
        fingerprint=_fingerprint(plan, cast, how),
        counts=_counts(plan, how) | {"planned": len(plan.cards) * how.rollouts},
        notes=list(plan.notes),
    )


def _counts(plan: Plan, how: How) -> dict[str, int]:
    return {"situations": len(plan.cards), "rollouts": how.rollouts, "turns": how.turns}


def _digests(plan: Plan) -> dict[str, str]:
    return {
        "policy": digest(plan.system_prompt),
        "tools": digest(dumps([t.to_openai() for t in plan.tools])),
        "prompts": prompts_digest(),
        "plan": digest(dumps([asdict(c) for c in plan.cards])),
        "world": digest("own" if plan.world is None else plan.world.describe()),
    }


def _fingerprint(plan: Plan, cast: Cast, how: How) -> dict[str, Any]:
    """Say what decides the rows: all that may not change between two attempts at one run."""
    models = {role: spec.fingerprint for role, spec in cast.players.items() if isinstance(spec, Model)}
    return {**_digests(plan), "seed": plan.seed, **_counts(plan, how), **cast.names, **models}
