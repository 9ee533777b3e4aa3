"""Mock world: answers tool calls from seeded records, and remembers what was written.

The same tools, policy, situation and seed give the same records, the same faults and, for
the same calls, the same replies to the byte. The wording and the shape of errors are drawn once
per world: a fault belongs to one tool, passes on retry or persists by seed, and its error reads
like the tool's other errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Protocol

from whilesim.chat.messages import Change
from whilesim.core.errors import InputError
from whilesim.core.jsontext import copied, dumps, parse_object
from whilesim.core.seeds import chance, derive, pick
from whilesim.core.templates import load_words
from whilesim.situations.axes import Situation
from whilesim.situations.policy import Policy, parse_policy
from whilesim.situations.tools import Tool, parse_tools
from whilesim.world.deeds import Deed
from whilesim.world.effects import Effects
from whilesim.world.entities import infer_world
from whilesim.world.focus import Focus, build_focus
from whilesim.world.kinds import is_number
from whilesim.world.lookups import Shelf
from whilesim.world.model import WorldModel
from whilesim.world.records import build_records
from whilesim.world.replies import check_of, shape_reply
from whilesim.world.rows import Refusal
from whilesim.world.spec import WorldSpec

__all__ = ["Focus", "MockWorld", "World", "WorldCall"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldCall:
    """One call that a world answered."""

    name: str
    arguments: str
    reply: str
    failed: bool | None
    """Whether the call failed, in the world's own knowledge; None where nobody knows."""
    changes: tuple[Change, ...] = ()


class World(Protocol):
    """What answers the agent's calls: ours, or one of the user's own."""

    def call(self, name: str, arguments: Mapping[str, Any] | str) -> str:
        """Answer one call; a string of arguments is read as JSON, and refused where it is none."""
        ...

    @property
    def state(self) -> Mapping[str, Any]:
        """The records now, as JSON."""
        ...


def word_error(seed: int, problem: str, **values: Any) -> str:
    """Return an error as a world's API would send it; the seed decides how that world words and shapes its errors."""
    words = load_words("world_errors")
    kind = str(values.get("kind", "record")).replace("_", " ")
    party = str(values.get("party", "customer")).replace("_", " ")
    told = {"field": "id", "value": "", **values, "party": party, "kind": kind, "Kind": kind.capitalize()}
    text = " ".join(pick(words[problem], seed, "error", problem).format(**told).split())
    shape = str(pick(words["shapes"], seed, "error shape"))
    return shape.format(text=text, quoted=dumps(text), code=words["codes"][problem])


@dataclass(frozen=True, slots=True)
class FaultPlan:
    """When one tool of a situation fails."""

    tool: str
    condition: str
    failures: int
    """How many calls fail before one works; -1 for all."""
    applied: bool
    """Whether the tool's work is done although the caller is not told."""

    @property
    def persists(self) -> bool:
        """Whether no call of this tool ever works."""
        return self.failures < 0

    def at(self, tool: str, earlier: int) -> str:
        """Return the condition that the tool's next call meets, after ``earlier`` calls of it: ``success`` or what fails."""
        return self.condition if tool == self.tool and (self.persists or earlier < self.failures) else "success"


def plan_faults(values: Mapping[str, str], seed: int, *, readable: bool) -> FaultPlan:
    """Draw how the situation's tool fails.

    Args:
        values: The situation's axis values.
        seed: Decides whether the failure passes on retry, and when.
        readable: Whether the tool changes records, and another one can show what it changed.
    """
    condition = values.get("tool_condition", "success")
    tool = values.get("tool", "")
    shares = {"permission_denied": 1.0, "timeout": 0.35, "malformed": 0.35}
    persists = chance(shares.get(condition, 0), seed, f"{condition} persists")
    lost = condition == "timeout" and readable and not persists and chance(0.3, seed, "timeout applied")
    count = 1 + derive(seed, "stale count") % 2 if condition == "stale" else 1
    return FaultPlan(tool, condition, -1 if persists else count, applied=condition == "malformed" or lost)


def garble(reply: str, seed: int, count: int) -> str:
    """Return a reply that arrived broken: cut off, empty, in another envelope, or not the tool's at all."""
    page, envelope = pick(load_words("world_errors")["html"], seed, "html"), {"data": None, "meta": {"count": 0}}
    broken = [str(page), "", "null", dumps(envelope)]
    if len(reply) > 30 and reply[:1] in "{[":
        cut = reply[: len(reply) // 4 + derive(seed, "cut", count) % (len(reply) // 2)]
        broken += [cut, cut, reply.replace('": ', '" ', 2).replace(", ", " ", 1)]
    return pick(broken, seed, "malformed", count)


class MockWorld:
    """A back-end made of nothing but the tools and the policy, in the state of one situation.

    Args:
        tools: The agent's tools, as ``Tool`` values or in any dialect.
        policy: The policy, parsed or as text; its attribute lists, words and date shape the records.
        situation: Axis values; None for a world in which all works and everything exists.
        seed: With the situation's id, decides every record, fault and wording.
        spec: What overrides inference.
        model: The inferred world, where it was inferred before: it is the same for all situations.
        customer_tools: Tools of the customer's own, which act on the same records.
    """

    def __init__(
        self, tools: Any, policy: Policy | str | None = None, situation: Situation | Mapping[str, str] | None = None, seed: int = 0,
        *, spec: WorldSpec | None = None, model: WorldModel | None = None, customer_tools: Any = (),
    ) -> None:  # fmt: skip
        agent, customer = _tools_of(tools), _tools_of(customer_tools)
        if model is None or any(t.name not in model.deeds for t in (*agent, *customer)):
            text = parse_policy(policy, tools=agent) if isinstance(policy, str) and policy.strip() else policy
            model = infer_world(agent, text if isinstance(text, Policy) else None, spec, customer_tools=customer)
        self.model = model
        self._agent, self._customer = {t.name for t in agent}, {t.name for t in customer}
        values = dict(situation.values) if isinstance(situation, Situation) else dict(situation or {})
        self._seed = derive(seed, "world", situation.id if isinstance(situation, Situation) else "")
        self._shelf = Shelf(model, build_records(model, self._seed), self._seed)
        self._effects = Effects(self._shelf)
        self._faults, self.focus, self._old = _set_up(self._shelf, values, agent, self._seed)
        self._counts: dict[str, int] = {}
        self.log: list[WorldCall] = []

    @property
    def records(self) -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
        """Kind to key to record, as they are now."""
        return self._shelf.records

    @property
    def state(self) -> Mapping[str, Any]:
        """A copy of the records as they are now."""
        return copied({kind: found for kind, found in self._shelf.records.items() if found})

    def call(self, name: str, arguments: Mapping[str, Any] | str) -> str:
        """Answer one call of the agent's; errors are replies, never exceptions."""
        return self._call(name, arguments, self._agent)

    def customer_call(self, name: str, arguments: Mapping[str, Any] | str) -> str:
        """Answer one call of the customer's own tools, on the same records."""
        return self._call(name, arguments, self._customer)

    def _call(self, name: str, arguments: Mapping[str, Any] | str, known: set[str]) -> str:
        text = arguments if isinstance(arguments, str) else dumps(arguments)
        given = parse_object(arguments) if isinstance(arguments, str) else dict(arguments)
        reply, failed, changes = self._answer(name, given, known)
        self.log.append(WorldCall(name=name, arguments=text, reply=reply, failed=failed, changes=changes))
        return reply

    def _answer(self, name: str, given: dict[str, Any] | None, known: set[str]) -> tuple[str, bool, tuple[Change, ...]]:
        if name not in known:
            return word_error(self._seed, "unknown_tool", name=name), True, ()
        if given is None:
            return word_error(self._seed, "not_json"), True, ()
        if wrong := check_of(self.model, name)(given):
            return word_error(self._seed, "invalid", field=wrong[0], detail=wrong[1]), True, ()
        count = self._counts.get(name, 0)
        self._counts[name] = count + 1
        met = self._faults.at(name, count) if name in self._agent else "success"
        if met in ("timeout", "permission_denied") and not self._faults.applied:
            return word_error(self._seed, "timeout" if met == "timeout" else "permission"), True, ()
        try:
            result = self._effects.run(self.model.deeds[name], given)
        except Refusal as refused:
            return word_error(self._seed, refused.problem, **refused.values), True, ()
        changes, old = tuple(self._effects.changes), self._old if met == "stale" else None
        if old and isinstance(result, dict) and result.get(old[0]) == old[1]:
            result |= {f: v for f, v in old[2].items() if f in result}
        reply = shape_reply(self.model, self._seed, name, result, given)
        if met == "timeout":
            return word_error(self._seed, "timeout"), True, changes
        if met == "malformed":
            return garble(reply, self._seed, count), True, changes
        return reply, False, changes


def _tools_of(tools: Any) -> tuple[Tool, ...]:
    parsed = isinstance(tools, Sequence) and all(isinstance(t, Tool) for t in tools)
    return tuple(tools if parsed else parse_tools(tools))


def _set_up(shelf: Shelf, values: dict[str, str], agent: Sequence[Tool], seed: int) -> tuple[FaultPlan, Focus, Any]:
    """Bring about the situation: its focus, its faults, and the older reply of a stale read."""
    model = shelf.model
    if not agent:
        raise InputError("a world needs at least one tool, and none was given. Type: MockWorld(tools=[...])")
    if values.get("tool", agent[0].name) not in model.deeds:
        msg = f"the situation's tool is {values['tool']!r}, and no such tool was given. Use one of: {', '.join(t.name for t in agent)}."
        raise InputError(msg)
    values.setdefault("tool", agent[0].name)
    deed = model.deeds[values["tool"]]
    focus = build_focus(shelf, values, seed)
    faults = plan_faults(values, seed, readable=model.can_show(deed, model.deeds.values()))
    stale = faults.condition == "stale" and focus.id in shelf.records.get(deed.kind, {})
    old = _older(shelf, deed, focus.id or "", seed) if stale else None
    return faults, replace(focus, reachable=focus.reachable and not faults.persists), old


def _older(shelf: Shelf, deed: Deed, key: str, seed: int) -> tuple[str, Any, dict[str, Any]] | None:
    """Let the focal record change shortly before the conversation, and keep what it said before."""
    kind, record = shelf.model.kinds[deed.kind], shelf.records[deed.kind][key]
    shown = shelf.cut(deed, shelf.view(deed.kind, key), deed.kind)
    options = kind.statuses if kind.status in shown else ()
    at = options.index(record[kind.status]) if record.get(kind.status) in options else 0
    options = options[at - 1 : at] or options[1:2]  # the one before it
    numbers = [f for f, v in record.items() if is_number(v) and f != kind.key and f in shown][:1]
    other = {f: type(record[f])(record[f] + 1 + derive(seed, "older") % 9) for f in numbers}
    before: dict[str, Any] = {kind.status: options[0]} if options else other
    if not before:
        return None
    before["updated_at"] = record.get("updated_at")
    changed = shelf.model.now - timedelta(minutes=20 + derive(seed, "changed") % 200)
    record["updated_at"] = f"{changed:%Y-%m-%d %H:%M:%S}"
    return kind.key, record.get(kind.key), before
