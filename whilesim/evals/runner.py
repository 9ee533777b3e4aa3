"""Runner: tickets played by an agent and scored, beside what trivial agents score.

The mock world stands in for the CRM. A real one is reached only where the user names it:
``world=ws.live(...)``, or an agent that has tools of its own.
"""

from __future__ import annotations

import asyncio
import os
import warnings
from collections.abc import Mapping, Sequence, Set
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import Any

from whilesim import __version__
from whilesim.cards.cards import Card
from whilesim.cards.personas import Persona
from whilesim.chat.endpoint import Endpoint
from whilesim.chat.loop import run
from whilesim.chat.messages import Failure, Message, Trace
from whilesim.chat.models import CallKey, Chat, resolve_model
from whilesim.chat.preflight import preflight
from whilesim.chat.throttle import Throttle
from whilesim.chat.usage import Usage
from whilesim.conversations.engine import run_jobs
from whilesim.conversations.journal import Journal, claim
from whilesim.conversations.players import Context, Customer, Utterance
from whilesim.conversations.rollout import Case, Stage, play
from whilesim.core.errors import JudgeError, ModelError
from whilesim.core.jsontext import dumps
from whilesim.core.seeds import chance
from whilesim.core.templates import load_words
from whilesim.core.text import digest
from whilesim.evals.agents import FLOORS, FloorAgent, TicketAgent, find_agent
from whilesim.evals.results import EvalResult, Floor, weak
from whilesim.evals.scorers import Scored, decide_pass, score_ticket
from whilesim.evals.setup import EvalOptions, Setup, check_protocol, describe, find_commit, name_agent, set_up
from whilesim.evals.tickets import Ticket
from whilesim.evals.traces import AgentTrace, tell_failure
from whilesim.grading.checks.calls import read_calls
from whilesim.grading.checks.run import run_checks
from whilesim.grading.judge import Evidence, Judgement, judge
from whilesim.grading.outcome import read_handoff
from whilesim.grading.rubric import Rubric
from whilesim.keeping.judging import and_close, name_model
from whilesim.playing import DEADLINE, Cast, find_cast, seat_agent, seat_customer
from whilesim.situations.axes import Situation
from whilesim.situations.tools import parse_tools
from whilesim.world.oracle import CallRule, Oracle

_DEFAULTS = EvalOptions()


def evaluate(
    agent: Any,
    tickets: Any,
    rubric: Any = None,
    judge: Any = None,
    trials: int = 1,
    tools: Any = (),
    options: EvalOptions = _DEFAULTS,
) -> EvalResult:
    """Play tickets with an agent, score each, and say what trivial agents score.

    Args:
        agent: ``agent(user_message, context, trace)``, what ``simulate`` takes, a REST address, a
            LangChain runnable, an agent of the OpenAI Agents SDK, or a floor's name.
        tickets: What ``load_tickets`` reads.
        rubric: Weights by scorer, ``hard_fail_on_policy_violation`` and ``rules``: a path or mapping.
        judge: A model for the criteria that no rule can score (ux, groundedness); it reads what
            passed. None: they stay None.
        trials: How often each ticket is played.
        tools: The agent's tools, in any dialect; by default those that the tickets name.

    Raises:
        InputError: Something given cannot be used; nothing was played.
        RunError: A model does not answer.
    """
    setup = set_up(tickets, rubric, trials, tools, options)
    if judge is not None and not hasattr(judge, "reply"):
        resolve_model(judge)  # what it lacks is told before anything is played
    told = describe(setup, judge)
    if options.protocol is not None:
        check_protocol(options.protocol, told)
    if options.run_dir is not None:
        claim(Path(options.run_dir))
    result = run(_evaluate(setup, agent, judge, told))
    if told_weak := weak(result.floors):
        warnings.warn("\n".join(told_weak), stacklevel=2)
    if options.run_dir is not None:
        try:
            result.save(options.run_dir)
        except OSError as error:  # what was paid for is in the result
            warnings.warn(f"the run is not in its folder: {error}. Type result.save(FOLDER).", stacklevel=2)
    return result


async def aevaluate(agent: Any, tickets: Any, **options: Any) -> EvalResult:
    """Do what ``evaluate`` does, from a running loop; the options are the same."""
    return await asyncio.get_running_loop().run_in_executor(None, lambda: evaluate(agent, tickets, **options))


async def _evaluate(setup: Setup, agent: Any, judge_model: Any, told: Mapping[str, Any]) -> EvalResult:
    began = datetime.now(timezone.utc).isoformat(timespec="seconds")
    traces = await _play_agent(setup, agent, setup.trials)
    await _judge(setup, traces, judge_model)
    for trace in traces:
        if trace.trace is not None:
            found = run_checks(trace.trace.messages, setup.box.tools or None, trace.trace.failed_calls)
            fine = () if setup.box.given else ("unknown_tool",)
            trace.findings = [f"{f.check}: {f.reason}" for f in found if f.severity == "drop" and f.check not in fine]
        _weigh(setup.rubric, trace)
    # no paid customer speaks to an agent that does not listen
    quiet = replace(setup, options=replace(setup.options, progress=False, customer=None))
    floors: dict[str, Floor] = {}
    for name in FLOORS if setup.options.floors else ():
        played = await _play_agent(quiet, name, 1)
        solved = [score for t in played if (score := t.scored("resolution")) is not None]
        told_of = {t.case_id: (t.passed is True, t.handoff.get("wanted")) for t in played}
        floors[name] = Floor.of(told_of, fmean(solved) if solved else None)
    known: dict[str, Any] = {"date": began, "commit": find_commit(), "agent": name_agent(agent)}
    known |= {"whilesim": __version__, "judge": told["judge"], "trials": setup.trials, "protocol": dict(told)}
    known["weights"] = {c.name: c.weight for c in setup.rubric.criteria}
    run_id = digest(f"{dumps(known)} {os.getpid()}", 12)
    return EvalResult(traces=tuple(traces), run={"run_id": run_id, **known}, floors=floors)


async def _play_agent(setup: Setup, spec: Any, trials: int) -> list[AgentTrace]:
    """Play all tickets with one agent; return the traces scored, tickets in order, then trials."""
    options = setup.options
    tickets = {t.ticket_id: t for t in setup.tickets}
    own = find_agent(spec, tickets)
    cast: Cast = await find_cast("scripted" if own is not None else spec, options.customer)
    throttle = Throttle(concurrency=options.concurrency, deadline=DEADLINE + 5, seed=options.seed)
    models = cast.models if any(t.persona or t.goal for t in setup.tickets) or own is None else {}
    chats = {role: Endpoint(model, throttle=throttle) for role, model in models.items()}
    agent = own if own is not None else seat_agent(cast.agent, chats.get("agent"))
    stage = Stage(
        agent=agent,
        customer=_Customer(tickets, seat_customer(cast.customer, chats.get("customer"))),
        system_prompt=load_words("evals")["prompt"] if options.system_prompt is None else options.system_prompt,
        tools=setup.box.tools,
        turns=max([options.turns, *(1 + len(t.follow_ups) for t in setup.tickets)]),
        deadline=None if isinstance(agent, FloorAgent) else DEADLINE,  # which waits for nobody
    )
    cases = [Case(card=_card(t, options), rollout=n, seed=options.seed) for t in setup.tickets for n in range(trials)]
    done: dict[str, AgentTrace] = {}

    def note(case: Case, trace: AgentTrace) -> Mapping[str, Any]:
        _score(setup, trace, tickets[case.card.id])
        done[case.id] = trace
        return {"id": case.id, "failure": {"reason": trace.failure} if trace.failure else None}

    async def work(case: Case) -> Mapping[str, Any]:
        return note(case, await _play_one(setup, stage, case, tickets[case.card.id]))

    def lost(case: Case, failure: Failure) -> Mapping[str, Any]:
        tags = list(tickets[case.card.id].tags)
        return note(case, AgentTrace(case.card.id, trial=case.rollout, tags=tags, failure=tell_failure(failure)))

    try:
        await preflight(chats, [t.to_openai() for t in stage.tools])
        with Journal(None) as journal:
            await run_jobs(cases, work, journal=journal, throttle=throttle, progress=options.progress, lost=lost)
    finally:
        for chat in chats.values():
            await chat.close()
    for case in cases:
        if case.id not in done:
            lost(case, Failure(role="run", reason="interrupt", message="the ticket was not played."))
    return [done[case.id] for case in cases]


async def _play_one(setup: Setup, stage: Stage, case: Case, ticket: Ticket) -> AgentTrace:
    world, tools = setup.box.world_for(ticket), setup.box.tools
    began = datetime.now(timezone.utc).isoformat()
    played = await play(case, stage, world)
    answered = getattr(world, "log", None)
    own_calls = answered is not None and len(played.calls) > len(answered)
    setup.box.give_back(ticket, world)
    if own_calls:  # the agent ran tools of its own: nobody here knows which of them failed
        played = replace(played, failed_calls=None)
    writes = {t.name for t in tools if t.effect == "write"}
    said = [m for m in played.messages if m.role in ("user", "assistant") and m.content]
    calls = read_calls(played.messages, writes, played.failed_calls)
    made = [{"name": c.name, "arguments": dict(c.arguments), "result": c.reply, "failed": c.failed} for c in calls]
    turns = [{"role": m.role, "content": m.content} for m in said]
    trace = AgentTrace(ticket.ticket_id, turns, made, dict(played.final_state), started_at=began, trial=case.rollout)
    trace.tags, trace.stop, trace.trace = list(ticket.tags), played.stop, played
    mute = Failure(role="agent", reason="player", message="the agent returned no word for the customer.")
    silent = _is_silent(played, {t.name for t in tools if t.effect == "handoff"})
    trace.failure = tell_failure(why) if (why := played.failure or (mute if silent else None)) else ""
    trace.state_of = "" if own_calls or not played.final_state else "world"
    trace.usage = dict(played.usage)
    if isinstance(stage.agent, TicketAgent) and (told := stage.agent.traces.pop((case.card.id, case.rollout), None)):
        if told.state_of or stage.agent.remote:
            trace.final_state, trace.state_of = told.final_state, told.state_of
        trace.turns = told.turns if any(turn.get("role") == "assistant" for turn in told.turns) else trace.turns
    return trace


def _is_silent(played: Trace, handoffs: Set[str]) -> bool:
    """Say whether a turn of the agent's ended without one word for the customer, who was not handed to a person either."""
    over = {c.id for m in played.messages for c in m.tool_calls if c.name in handoffs} - {*(played.failed_calls or ())}
    turns = [list(turn) for asked, turn in groupby(played.messages, lambda m: m.role == "user") if not asked]
    ended = [turn for turn in turns if turn[-1].role == "assistant" and not turn[-1].tool_calls]
    said = ([m for m in turn if m.role == "assistant"] for turn in ended)
    return any(not any((m.content or "").strip() or over & {c.id for c in m.tool_calls} for m in made) for made in said)


def _score(setup: Setup, trace: AgentTrace, ticket: Ticket) -> None:
    """Give a trace the scores that need no model."""
    trace.handoff = _handoff(setup, trace, ticket) if trace.trace is not None else {}
    for name, scored in score_ticket(trace, ticket, setup.rules[ticket.ticket_id], setup.box.tools).items():
        _note(trace, name, scored)
    trace.passed = decide_pass(trace, ticket)


def _handoff(setup: Setup, trace: AgentTrace, ticket: Ticket) -> dict[str, Any]:
    """Say whether a person was wanted and reached; tools that were not given are judged by their names."""
    assert trace.trace is not None
    known = {t.name: t for t in setup.box.tools}
    named = dict.fromkeys([*ticket.expected_tools, *(str(c["name"]) for c in trace.tool_calls if c["name"])])
    tools = [known.get(name) or parse_tools([{"name": name}])[0] for name in named]
    asked = any(t.effect == "handoff" and t.name in ticket.expected_tools for t in tools)
    wanted = True if asked and ticket.handoff is None else ticket.handoff  # what is only not expected stays open
    due = tuple(CallRule(name=t.name) for t in tools if t.name in ticket.expected_tools and t.effect != "handoff")
    oracle = Oracle(handoff_wanted=wanted, must_call=due)
    return asdict(read_handoff(oracle, trace.trace.messages, tools, trace.trace.failed_calls))


async def _judge(setup: Setup, traces: Sequence[AgentTrace], model: Any) -> None:
    """Have the judge read a share of what passed; the rest gets None, and why."""
    rubric, options = setup.judged, setup.options
    if not rubric.criteria:
        return
    chat: Chat | None = None if model is None else model if hasattr(model, "reply") else Endpoint(model)
    slots = asyncio.Semaphore(options.concurrency)
    tickets = {t.ticket_id: t for t in setup.tickets}

    async def read(trace: AgentTrace) -> None:
        why = "no judge was given" if chat is None else "" if trace.passed else "the judge reads what passed"
        if not why and not chance(options.fraction, options.seed, "judge", trace.case_id, trace.trial):
            why = "not among those that the judge was to read"
        scores: Mapping[str, float] = {}
        if chat is not None and not why:
            try:
                async with slots:
                    said = await _ask(chat, setup, trace, tickets[trace.case_id], name_model(model))
                scores, trace.usage["judge"] = {n: s.score for n, s in said.scores.items()}, said.usage
            except (JudgeError, ModelError) as error:
                why, trace.usage["judge"] = f"the judge: {error}", getattr(error, "usage", Usage())
        for criterion in rubric.criteria:
            _note(trace, criterion.name, Scored(value=scores.get(criterion.name), why=why))

    await and_close(asyncio.gather(*map(read, traces)), chat)


async def _ask(chat: Chat, setup: Setup, trace: AgentTrace, ticket: Ticket, name: str) -> Judgement:
    assert trace.trace is not None
    facts: dict[str, Any] = {"what the agent is told of the customer": dict(ticket.customer_context)}
    facts |= {n: v for n, v in (("a good answer", ticket.reference), ("what may be said", ticket.knowledge)) if v}
    told, questions, box = trace.trace.messages, (ticket.oracle or {}).get("open", ()), setup.box
    evidence = Evidence(policy=box.policy, tools=box.tools, messages=told, facts=facts, open=questions)
    key = CallKey(case=trace.case_id, rollout=trace.trial, role="judge")
    return await judge(chat, setup.judged, evidence, key=key, model=name)


def _note(trace: AgentTrace, name: str, scored: Scored) -> None:
    trace.scores[name] = scored.value
    trace.parts |= scored.parts
    if scored.why:
        trace.reasons[name] = scored.why


def _weigh(rubric: Rubric, trace: AgentTrace) -> None:
    """Add the weighted mean of the scores that there are; a hard fail makes it 0."""
    scores = {c: v for c in rubric.criteria if (v := trace.scored(c.name)) is not None}
    failed = [c.name for c, v in scores.items() if c.hard_fail and v < 0.5]
    missing = [c.name for c in rubric.criteria if c not in scores]
    weight, total = sum(c.weight for c in scores), sum(c.weight * v for c, v in scores.items())
    trace.scores["total"] = 0.0 if failed else total / weight if weight else None
    if failed or missing:
        trace.reasons["total"] = f"hard fail on {failed[0]}" if failed else f"without {', '.join(missing)}"


@dataclass(frozen=True, slots=True)
class _Customer:
    """Who speaks for a ticket: its follow-ups, a customer player where it asks for one, else nobody."""

    tickets: Mapping[str, Ticket]
    player: Customer

    async def speak(self, card: Card, messages: Sequence[Message], context: Context) -> Utterance:
        """Say what comes next."""
        ticket = self.tickets[card.id]
        said = sum(m.role == "user" for m in messages) - 1
        played = bool(ticket.persona or ticket.goal)
        if said < len(ticket.follow_ups):
            return Utterance(text=ticket.follow_ups[said], done=said + 1 == len(ticket.follow_ups) and not played)
        return await self.player.speak(card, messages, context) if played else Utterance(done=True)


def _card(ticket: Ticket, options: EvalOptions) -> Card:
    facts = {str(k).replace("_", " "): str(v) for k, v in ticket.customer_context.items() if isinstance(v, (str, int))}
    return Card(
        id=ticket.ticket_id,
        situation=Situation(id=ticket.ticket_id, values=ticket.cell),
        persona=Persona(texture="ordinary", tone="neutral", length="short", pressure="none"),
        goal=ticket.goal or ticket.user_message,
        facts=facts,
        opening=ticket.user_message,
        second=ticket.second,
        exit="You are done when your request is settled, or it is clear that it cannot be.",
        give_up=options.turns,
        prose=ticket.persona,
    )
