"""Axes: what a situation is made of, and which values cannot meet.

Six axes stand unless the user says otherwise: the policy's clauses, the tools, how the tool
answers, what the world holds, how the customer behaves, and what came before. Their product
is the space of all situations.

The default rules forbid only what a tool can never do, whatever the policy says (see
``default_rules``). No clause is ever forbidden to meet a tool: where the two have nothing to
do with each other, the customer has two needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from difflib import get_close_matches
from math import prod

from whilesim.core.errors import InputError
from whilesim.situations.tools import Tool

TOOL_CONDITIONS = ("success", "timeout", "malformed", "stale", "permission_denied")
WORLD_STATES = ("exists", "missing", "already_acted_on", "duplicate", "partially_completed")
STANCES = (
    "ordinary", "hurried", "unsure", "mistaken", "ambiguous",
    "talkative", "insistent", "upset", "boundary_testing", "adversarial",
)  # fmt: skip
HISTORIES = ("fresh", "prior_failure", "prior_partial_action", "contradicts_earlier", "repeat_visit")
PLAYED = {"tool_condition": TOOL_CONDITIONS, "world_state": WORLD_STATES, "stance": STANCES, "history": HISTORIES}
"""Axes whose values have a behaviour in the inferred world and the templates."""

NO_CLAUSE = "none"
"""The one value of the clause axis where the policy states no rule."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One property of a situation and the values it can take."""

    name: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """A combination of values that cannot happen, over the axes it names."""

    axes: tuple[str, ...]
    forbids: Callable[..., bool]
    """Called with one value per axis in ``axes``; true means: cannot happen."""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Space:
    """All situations: the product of the axes, less what the rules forbid."""

    axes: tuple[Axis, ...]
    forbidden: tuple[Rule, ...] = ()
    notes: tuple[str, ...] = ()
    """What the user should be told: an axis that has one value only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """One value for each axis."""

    id: str
    values: Mapping[str, str]
    """Axis name to value, in axis order."""


def default_space(
    clauses: Sequence[str],
    tools: Sequence[Tool],
    *,
    axes: Mapping[str, Sequence[str] | None] | None = None,
    forbid: Sequence[Rule] = (),
) -> Space:
    """Build the space of a policy and its tools.

    Args:
        clauses: Ids of the policy's clauses. None at all gives a clause axis of one value,
            ``NO_CLAUSE``, and a note.
        tools: The agent's tools; their effects decide the default rules.
        axes: Values by axis name: a known name replaces that axis' values, a new name adds an
            axis behind the others, None removes the axis.
        forbid: More combinations that cannot happen, beside the default ones.

    Raises:
        InputError: An axis has no value, one value, or one value twice; a clause or a tool is
            not among those given; a rule names an axis that is not there.
    """
    if not isinstance(axes or {}, Mapping) or not all(isinstance(name, str) for name in axes or ()):
        raise InputError(f"axes={axes!r} is no mapping from names. Type axes={{'channel': ['chat', 'email']}}.")
    fixed = {"clause": tuple(clauses) or (NO_CLAUSE,), "tool": tuple(tool.name for tool in tools)}
    values: dict[str, tuple[str, ...]] = {**fixed, **PLAYED}
    for name, given in (axes or {}).items():
        if name not in values and (near := _misspelt(name, values)):
            raise InputError(f"axes names {name!r}, which is no axis yet. Did you mean {near!r}? Else rename it.")
        if given is not None:
            values[name] = _checked(name, given, fixed.get(name))
        elif values.pop(name, None) is None:
            raise InputError(f"axes={{{name!r}: None}} removes an axis that is not there. Type one of {[*values]}.")
    if not values.get("tool", ("removed",)):
        raise InputError(
            "no tool was given, so there is nothing that an agent could do. Give tools=[...], "
            "or take the axis out: axes={'tool': None}."
        )
    for rule in forbid:
        require_axes(rule, values)
    rules = [rule for rule in default_rules(tools) if all(name in values for name in rule.axes)]
    return Space(
        axes=tuple(Axis(name, given) for name, given in values.items()), forbidden=(*rules, *forbid),
        notes=tuple(note for name, given in values.items() for note in _notes(name, given)),
    )  # fmt: skip


def default_rules(tools: Sequence[Tool]) -> tuple[Rule, ...]:
    """Return what no tool can do by its effect alone, each rule with its reason.

    1. A tool that does not read cannot give a stale answer: it has no earlier state to show.
    2. A tool that computes, or hands the conversation to a person, and is given no record's id,
       meets no record: it cannot be missing, already acted on, doubled or half done. The world
       then simply ``exists``.
    """
    no_read = {tool.name for tool in tools if tool.effect != "read"}
    no_record = {tool.name for tool in tools if tool.effect in ("compute", "handoff") and not tool.id_arguments}
    return (
        Rule(("tool", "tool_condition"), lambda tool, condition: condition == "stale" and tool in no_read,
             "only a tool that reads can answer with an older state"),
        Rule(("tool", "world_state"), lambda tool, state: state != "exists" and tool in no_record,
             "a tool that only computes or hands off touches no record, so none can be missing, doubled or half done"),
    )  # fmt: skip


def forbid(*axes: str | Callable[..., bool], predicate: Callable[..., bool] | None = None, why: str = "") -> Rule:
    """Forbid a combination: ``forbid("tool_condition", "tool", lambda condition, tool: ...)``.

    Args:
        axes: Names of axes, and last the predicate (or give it by name): it is called with one
            value of each axis, in that order, and answers true where they cannot meet.
        predicate: The same, by name.
        why: The reason in words, shown beside what it makes infeasible.

    Raises:
        InputError: No axis, no predicate, or an axis twice.
    """
    names = tuple(name for name in axes if isinstance(name, str))
    tests = [test for test in (*axes, predicate) if callable(test)]
    if not names or len(tests) != 1 or len(set(names)) < len(names) or len(names) + 1 < len(axes):
        raise InputError(
            f"forbid() needs different axis names and then one predicate, but got {axes!r}. "
            "Type forbid('tool_condition', 'tool', lambda condition, tool: ...)."
        )
    return Rule(names, tests[0], why)


def space_size(space: Space) -> int:
    """Return how many situations there are, forbidden ones included: the plain product."""
    return prod(len(axis.values) for axis in space.axes)


def require_axes(rule: Rule, names: Mapping[str, Sequence[str]]) -> None:
    """Raise InputError where a rule names an axis that is not among ``names``."""
    if unknown := [name for name in rule.axes if name not in names]:
        raise InputError(f"a rule over {rule.axes} names {unknown[0]!r}, which is no axis. Type one of {list(names)}.")


def _checked(name: str, given: Sequence[str], known: tuple[str, ...] | None) -> tuple[str, ...]:
    """Return the values that a user gave an axis, or say what is wrong with them."""
    values = tuple(given) if isinstance(given, Iterable) and not isinstance(given, (str, Set)) else (None,)
    if not all(isinstance(value, str) and value for value in values):
        msg = f"axis {name!r} was given {given!r}, but needs a list of words. Type {name!r}: ['one', 'another']."
        raise InputError(msg)
    if len(values) < 2:
        raise InputError(
            f"axis {name!r} has {len(values)} value(s) and needs at least 2. Add a value, or take the axis "
            f"out, {name!r}: None: an axis that never differs covers nothing."
        )
    if twice := [value for value in values if values.count(value) > 1]:
        raise InputError(f"axis {name!r} has the value {twice[0]!r} twice. Name each value once.")
    if strange := [value for value in values if known is not None and value not in known]:
        raise InputError(f"axis {name!r} has the value {strange[0]!r}, which is no {name}. Type some of {known}.")
    for value in (v for v in values if v not in PLAYED.get(name, values)):
        if near := _misspelt(value, PLAYED[name]):
            raise InputError(f"axis {name!r} has the value {value!r}. Did you mean {near!r}? Else call it otherwise.")
    return values


def _misspelt(word: str, known: Iterable[str]) -> str:
    """Return the known word that this one is a slip of; a syllable before it makes another: 'unhurried'."""
    near = get_close_matches(word, [k for k in known if not (word.endswith(k) or k.endswith(word))], n=1, cutoff=0.85)
    return near[0] if near else ""


def _notes(name: str, values: Sequence[str]) -> Iterator[str]:
    """Yield what the user should be told of an axis."""
    if (name, *values) == ("clause", NO_CLAUSE):
        yield (
            "no clause was found in the policy, so the clause axis has the one value 'none': "
            "situations differ in the other axes only."
        )
    elif len(values) == 1:
        yield f"the {name} axis has the one value {values[0]!r}: it covers nothing by itself."
    if own := [value for value in values if value not in PLAYED.get(name, values)]:
        yield (
            f"the {name} axis has values of your own, {', '.join(own)}: they stand in rows and count in coverage, but "
            f"neither the inferred world nor the templates act on them. A world or a writer of your own can."
        )
