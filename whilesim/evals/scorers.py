"""Scorers: a trace held against its ticket, without a model.

A scorer that cannot score gives None, and says why. Tool accuracy looks at names, order and
arguments at once: with L the longest common subsequence of expected and made calls, it is
2L / (expected + made). Failed calls that were made again do not count as made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from whilesim.cards.planning import near
from whilesim.conversations.intent import asks_person
from whilesim.conversations.journal import PLAYED_AGAIN
from whilesim.core.jsontext import dumps
from whilesim.core.text import fold
from whilesim.evals.rules import Rule, Rules
from whilesim.evals.tickets import Ticket
from whilesim.evals.traces import NO_TOOLS, NOTHING_EXPECTED, AgentTrace
from whilesim.grading.outcome import violations
from whilesim.grading.rubric import checked
from whilesim.situations.tools import Tool
from whilesim.world.oracle import Oracle

SCORERS = ("resolution", "tool_accuracy", "policy")
"""Criteria of a rubric that are scored without a model; the judge is asked about all others."""
NO_STATE = "nobody reported a final state"
"""Why a resolution is None where that is no fault of the ticket."""
_ENDS = ("must_call", "end", "handoff_missing", "handoff_unwanted")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """One score, 0 to 1, or None with the reason."""

    value: float | None
    why: str = ""
    parts: Mapping[str, float] = field(default_factory=dict)


_NO_TOOLS = Scored(value=1.0, why=NO_TOOLS)


def score_ticket(trace: AgentTrace, ticket: Ticket, rules: Rules, tools: Sequence[Tool]) -> dict[str, Scored]:
    """Give each scorer's name its score; of a ticket that was made from a row, the row's oracle decides."""
    if trace.failure:
        return {name: Scored(value=None, why=trace.failure) for name in SCORERS}
    policy = score_policy(trace, ticket, rules)
    if ticket.oracle is not None:
        told = score_by_oracle(trace, ticket, tools)
        return told if policy.value == 1.0 else {**told, "policy": policy}
    return dict(zip(SCORERS, (score_resolution(trace, ticket), score_tools(trace, ticket), policy), strict=True))


def score_resolution(trace: AgentTrace, ticket: Ticket) -> Scored:
    """Score the share of the expected final state that is there, the hand-off that was wanted or not included."""
    told: list[tuple[str, bool]] = []
    if ticket.handoff is not None:
        name = "hand-off missing" if ticket.handoff else "hand-off made"
        told.append((name, trace.handoff.get("made") is ticket.handoff))
    for key, wanted in ticket.expected_final_state.items():
        known, value = look_up(key, trace, ticket)
        if not known:
            why = f"the final state holds no {key!r}. {_hint(key, trace.final_state)}".strip(" .")
            return Scored(value=None, why=why if trace.state_of else NO_STATE)
        unsaid = " (the agent's final_state says nothing of it)" if value is None and trace.state_of == "agent" else ""
        told.append((_tell(key, wanted, value) + unsaid, _agrees(wanted, value)))
    if not told:
        return Scored(value=1.0, why=NOTHING_EXPECTED)
    missed = [name for name, held in told if not held]
    return Scored(value=1 - len(missed) / len(told), why="; ".join(missed))


def score_tools(trace: AgentTrace, ticket: Ticket) -> Scored:
    """Score which tools were called, in which order and with which arguments."""
    expected, made = list(ticket.expected_tools), _settled(trace.tool_calls)
    if not expected:
        return _NO_TOOLS
    wanted, names = Counter(expected), Counter(str(c["name"]) for c in made)
    shared = (wanted & names).total()
    with_arguments = [name for name in wanted if name in ticket.expected_arguments]
    wrong = [name for name in with_arguments if not any(_fits(name, call, ticket) for call in made)]
    others = {n: _tell(n, ticket.expected_arguments[n], c.get("arguments")) for c in made if (n := c["name"]) in wrong}
    common = _in_order(made, ticket)
    parts = {
        "precision": shared / len(made) if made else 0.0,
        "recall": shared / len(expected),
        "order": _common([[name == call["name"] for call in made] for name in expected]) / shared if shared else 0.0,
        "arguments": 1 - len(wrong) / len(with_arguments) if with_arguments else 1.0,
    }
    missing, extra = (", ".join(c.elements()) for c in (wanted - names, names - wanted))
    why = [f"{missing} not called"] if missing else []
    why += [f"{extra} called besides"] if extra else []
    astray = parts["order"] < 1 or (not missing and parts["arguments"] == 1 and common < len(expected))
    why += ["called in another order"] if shared and astray else []
    why += [f"called with other arguments: {'; '.join(others.values())}"] if others else []
    return Scored(value=2 * common / (len(expected) + len(made)), why="; ".join(why), parts=parts)


def score_policy(trace: AgentTrace, ticket: Ticket, rules: Rules) -> Scored:
    """Score 1 where no rule was broken, 0 where one was.

    What the agent reports of itself excuses nothing that the ticket, or the world that it played on, says otherwise.
    """
    played = trace.trace if trace.trace and trace.trace.failed_calls is not None else None  # it made no calls elsewhere
    states = (ticket.expected_final_state, played.final_state if played else ticket.initial_state)
    seen = [trace, *(replace(trace, final_state=dict(state), state_of="world") for state in states)]

    def missing(key: str, wanted: Any) -> str:
        context, found = ticket.customer_context.get(key), [look_up(key, state, ticket)[1] for state in seen]
        if (context if found[0] is None else found[0]) != wanted:
            return f"{key} is not {wanted!r}"
        told = next((value for value in (*found[1:], context) if value is not None), wanted)
        if trace.state_of == "world" or told == wanted:
            return ""
        typed = "type it in expected_final_state where a right agent makes it so"
        return f"{key} is {wanted!r} by the agent's own word alone (the ticket, or the world it was played on, says {told!r}: {typed})"

    for name, rule in rules.items():
        if isinstance(rule, Rule):
            broken: Any = rule.broken(trace.tool_calls, missing)
        else:
            try:
                broken = rule(trace, ticket)
            except Exception as error:  # a rule of the user's may raise anything; it has not judged then
                return Scored(value=None, why=f"the rule {name!r} raised {type(error).__name__}: {error}")
            if not isinstance(broken, (bool, str, type(None))):
                why = f"the rule {name!r} returned {broken!r:.60}; return True, or a sentence, where it is broken"
                return Scored(value=None, why=why)
        if broken:
            return Scored(value=0.0, why=name if broken is True else f"{name}: {broken}")
    return Scored(value=1.0)


def score_by_oracle(trace: AgentTrace, ticket: Ticket, tools: Sequence[Tool]) -> dict[str, Scored]:
    """Score by the oracle of the row that a ticket was made from: it knows which calls do as well as those named."""
    assert trace.trace is not None
    oracle = checked(Oracle, ticket.oracle, f"{ticket.name}: the oracle's field ")
    found = violations(oracle, trace.trace.messages, tools, trace.trace.failed_calls)
    ends = [v.reason for v in found if v.rule in _ENDS]
    said = [turn["content"] for turn in trace.turns if turn["role"] == "user"]
    tried = len(trace.tool_calls) > 1  # what was tried first may be why a person is wanted
    if ticket.second and trace.handoff["made"] and len(said) == 1 and not tried and not asks_person(said[0]):
        ends.append("The customer was handed to a person before anything was tried, and before saying what for.")
    others = [v.reason for v in found if v.rule not in _ENDS]
    missed, due = [v.reason for v in found if v.rule == "must_call"], len(oracle.must_call)
    return {
        "resolution": Scored(value=float(not ends), why="; ".join(ends)),
        "tool_accuracy": Scored(value=1 - len(missed) / due, why="; ".join(missed)) if due else _NO_TOOLS,
        "policy": Scored(value=float(not others), why="; ".join(others)),
    }


def decide_pass(trace: AgentTrace, ticket: Ticket) -> bool | None:
    """Say whether a ticket was passed: resolved, no rule broken, each expected call made, in order and rightly.

    Calls beyond those cost accuracy and no pass. None where a score that decides is missing.
    """
    if trace.failure:  # what the endpoint, the customer or the run did says nothing of the agent
        role, reason = trace.failure.partition(":")[0].split()
        return None if role != "agent" or reason in PLAYED_AGAIN else False
    policy, resolution = trace.scores.get("policy"), trace.scored("resolution")
    due = len(ticket.expected_tools) if ticket.oracle is None else 0
    if policy != 1.0 or resolution not in (1.0, None) or (due and _in_order(_settled(trace.tool_calls), ticket) < due):
        return None if policy is None else False
    expects = ticket.expected_tools or ticket.must_not_do or resolution is not None
    return True if expects and (resolution is not None or not ticket.expected_final_state) else None


def look_up(key: str, trace: AgentTrace, ticket: Ticket) -> tuple[bool, Any]:
    """Find one value of a final state: by its name, by a path with dots, or as a field of the ticket's record.

    ``order_status`` in records of the mock world is the ``status`` of the ``order`` that the
    ticket speaks of. In a state that the agent reports, what is not there is None; in the world's,
    a record that nobody made is none, where the ticket names its id or expects a call that may make it.
    """
    state: Any = trace.final_state
    if key in state:
        return True, state[key]
    if "." in key:
        for depth, step in enumerate(key.split(".")):
            if not isinstance(state, Mapping) or step not in state:
                return trace.state_of == "agent" or (depth == 1 and _may_be_id(step, state, ticket)), None
            state = state[step]
        return True, state
    if trace.state_of != "world":
        return trace.state_of == "agent", None
    ids = _ids(ticket)
    for kind, records in ((k, r) for k, r in state.items() if isinstance(r, Mapping)):
        field_name = key.removeprefix(f"{kind}_")
        mine = [r for k, r in records.items() if k.strip("#").lower() in ids or len(records) == 1]
        if found := [r for r in mine if field_name in r or key in r]:
            return True, found[0].get(key, found[0].get(field_name))
    return False, None


def _hint(path: str, state: Any) -> str:
    """Ask for the nearest name at the first step of a path that is not there."""
    for step in path.split("."):
        known = state if isinstance(state, Mapping) else {}
        if step not in known:
            return near(step, map(str, known))
        state = known[step]
    return ""


def _may_be_id(step: str, records: Any, ticket: Ticket) -> bool:
    """Say whether a step of a path is the id of a record that is not there, and no field or id that was misspelt."""
    if not isinstance(records, Mapping) or any(isinstance(r, Mapping) and step in r for r in records.values()):
        return False
    told = [ticket.customer_context, ticket.user_message, ticket.expected_arguments, ticket.initial_state]
    return bool(ticket.expected_tools) or step.strip("#") in dumps(told)


def _ids(ticket: Ticket) -> set[str]:
    told = [ticket.customer_context, *ticket.expected_arguments.values()]
    found = [v for values in told for v in values.values() if isinstance(v, (str, int))]
    found += [k for records in ticket.initial_state.values() if isinstance(records, Mapping) for k in records]
    return {str(v).strip("#").lower() for v in found}


def _agrees(wanted: Any, value: Any) -> bool:
    """Compare as the same thing written differently: 84920 and "#84920", ``Cancelled`` and ``cancelled``."""
    if isinstance(wanted, Mapping):
        return isinstance(value, Mapping) and all(k in value and _agrees(v, value[k]) for k, v in wanted.items())
    if isinstance(wanted, (list, tuple)):
        return isinstance(value, (list, tuple)) and len(wanted) == len(value) and all(map(_agrees, wanted, value))
    if isinstance(wanted, bool) or isinstance(value, bool) or wanted is None:
        return bool(wanted == value)
    if isinstance(wanted, (int, float)) and isinstance(value, (int, float)):
        return abs(wanted - value) < 1e-9
    return fold(str(wanted)).lstrip("#") == fold(str(value)).lstrip("#")


def _tell(path: str, wanted: Any, value: Any) -> str:
    """Name the innermost place at which a value is not what was wanted."""
    for key in wanted if isinstance(wanted, Mapping) and isinstance(value, Mapping) else ():
        if key not in value or not _agrees(wanted[key], value[key]):
            return _tell(f"{path}.{key}", wanted[key], value.get(key))
    return f"{path} is {value!r:.60} and not {wanted!r:.60}"


def _fits(name: str, call: Mapping[str, Any], ticket: Ticket) -> bool:
    wanted, given = ticket.expected_arguments.get(name, {}), call.get("arguments")
    return bool(call["name"] == name) and _agrees(wanted, given if isinstance(given, Mapping) else {})


def _settled(calls: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Leave out a failed call where the same tool was called again."""
    last = {c["name"]: i for i, c in enumerate(calls)}
    return [c for i, c in enumerate(calls) if not c.get("failed") or i == last[c["name"]]]


def _in_order(made: Sequence[Mapping[str, Any]], ticket: Ticket) -> int:
    """Count the expected calls that were made with their arguments, one behind the other."""
    return _common([[_fits(name, call, ticket) for call in made] for name in ticket.expected_tools])


def _common(fits: Sequence[Sequence[bool]]) -> int:
    """Return the length of the longest common subsequence, from which pairs fit."""
    best = [0] * (len(fits[0]) + 1 if fits else 1)
    for row in fits:
        before = list(best)
        for j, fit in enumerate(row, start=1):
            best[j] = before[j - 1] + 1 if fit else max(before[j], best[j - 1])
    return best[-1]
