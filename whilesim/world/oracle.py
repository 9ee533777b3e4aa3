"""Oracle: what a right agent does in a situation, known before anyone speaks.

It is made of the tool's effect, its condition, the state of the record and what the customer
knows. A clause that cannot be executed here widens what is fine and never narrows it: it
then stands in ``open``, for a reader.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from whilesim.core.templates import load_words
from whilesim.core.text import name_words, shorten, words
from whilesim.situations.policy import Clause
from whilesim.situations.tools import Tool
from whilesim.world.deeds import Deed
from whilesim.world.entities import infer_world
from whilesim.world.focus import Focus
from whilesim.world.kinds import role_of
from whilesim.world.model import WorldModel

End = Literal["resolved", "refused", "handed_off", "honest_failure"]
Applies = Literal["yes", "no", "unknown"]

_WORDS: Mapping[str, Any] = load_words("oracle")
_NUMBERED = re.compile(r"_\d+$")
"""What a second tool of the same name is told apart by."""


_STATE = re.compile(r"(?<!\bbe)(?<!\bnever)(?<!\bnot) \w+ed\b")
"""What something is, not what is done to it: 'a suspended line', but 'may be suspended'."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRule:
    """Calls that a rule speaks of."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Arguments that matter: a call matches when it has these values, whatever else it has."""
    other_than: Mapping[str, Any] = field(default_factory=dict)
    """A call matches only when one of these arguments is there with another value."""
    at_most: int = 0
    """For a forbidden call: how many successful ones are still fine; -1: not even a try is."""
    instead: tuple[str, ...] = ()
    """For a demanded read: tools that show the same; a successful call of one of them will do as well."""
    shows: str = ""
    """What the reply of such a tool must name: the key of the record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Oracle:
    """Acceptable ends, calls and claims of one situation; what it cannot know stands in ``open``."""

    must_call: tuple[CallRule, ...] = ()
    may_call: tuple[str, ...] = ()
    must_not_call: tuple[CallRule, ...] = ()
    must_not_claim: tuple[str, ...] = ()
    """Names of tools whose deed must not be said to be done."""
    ends: tuple[End, ...] = ("resolved", "refused", "handed_off", "honest_failure")
    handoff_wanted: bool | None = None
    """True: hand off; False: do not; None: either is fine."""
    open: tuple[str, ...] = ()
    """What only a reader can decide, one sentence each."""
    why: str = ""
    """One sentence: why this is right."""


def build_oracle(
    values: Mapping[str, str], *, clause: Clause | None, tools: Sequence[Tool], focus: Focus, applies: Applies = "unknown",
    model: WorldModel | None = None, clauses: Sequence[Clause] = (), later: bool = False,
) -> Oracle:  # fmt: skip
    """Say what a right agent does.

    Args:
        values: The situation's axis values.
        clause: The situation's clause; None for none.
        tools: The agent's tools.
        focus: What the situation is about, from its world.
        applies: Whether the clause bears on the customer's request, where the card knows.
        model: The inferred world; inferred from the tools when left out.
        clauses: All rules of the policy: what another one limits or forbids is not demanded.
        later: The clause is brought up only when the first request is settled.
    """
    world = model or infer_world(tools)
    people = [t for t in tools if t.effect == "handoff"]
    handoffs = tuple(t.name for t in people)
    oracle = _of_world(values, focus, world, [world.deeds[t.name] for t in tools], bool(handoffs))
    reads = tuple(t.name for t in tools if t.effect in ("read", "compute"))
    if oracle.handoff_wanted and "honest_failure" in oracle.ends and _fails_otherwise(clauses):
        oracle = replace(oracle, handoff_wanted=None, why=oracle.why.replace(" and hands over", ""))
    if oracle.handoff_wanted and focus.tool in handoffs and _asks_more(clauses):
        ends: tuple[End, ...] = ("handed_off", "refused", "resolved")
        oracle = replace(oracle, must_call=(), ends=ends, handoff_wanted=None, open=(_why("reserved"),))
    oracle = replace(oracle, may_call=(*reads, *(handoffs if oracle.handoff_wanted is not False else ())))
    clause = None if applies == "no" else clause
    mine = [c for c in dict.fromkeys((*clauses, *([clause] if clause else ()))) if _bears_on(c, focus, tools)]
    if clause and not later and clause not in mine and _stops_all(clause, clauses):
        others = (t.name for t in tools if applies == "yes" and t.effect != "handoff" and t.name not in clause.tools)
        never = tuple(CallRule(name=name, at_most=-1) for name in others)
        return Oracle(may_call=handoffs, must_not_call=never, open=(_opened(clause),), why=_why("halt"))
    for other in mine if oracle.must_call and world.deeds[focus.tool].writes and clauses else ():
        kept, no = _kept(other, focus, world), _ends("refused", "handed_off" if handoffs else "")
        if kept is None:
            oracle = _widen(oracle, _opened(other), no)
        elif not kept:
            oracle = _forbid(oracle, other, focus.tool, no)
    oracle = _with_stance(oracle, values)
    if clause is None:
        return oracle
    apart = later if clause.kind == "handoff" else clause not in mine
    return _with_clause(oracle, clause, applies, focus.tool, people, apart=apart)


def _of_world(values: Mapping[str, str], focus: Focus, world: WorldModel, agents: list[Deed], handoff: bool) -> Oracle:
    deed, condition = world.deeds[focus.tool], values.get("tool_condition", "success")
    unnamed = deed.action != "create" and focus.arguments.get(deed.key, focus) in ("", None)  # a kind without records
    state = "missing" if unnamed else values.get("world_state", "exists")
    if deed.action == "handoff":
        end: End = "handed_off" if focus.reachable else "honest_failure"
        told = _why("person" if focus.reachable else "no_person")
        person = (CallRule(name=focus.tool),)
        return Oracle(must_call=person, ends=(end,), handoff_wanted=focus.reachable or None, why=told)
    called = CallRule(
        name=focus.tool, arguments={deed.key: focus.arguments[deed.key]} if deed.key in focus.arguments else {},
        instead=_same_reads(deed, agents), shows=str(focus.arguments.get(deed.key) or focus.id or "") if deed.reads else "",
    )  # fmt: skip
    right = Oracle(must_call=(replace(called, arguments={}),), must_not_call=_forbidden(deed, focus, agents))
    gone, unsure = state in ("missing", "already_acted_on"), condition in ("timeout", "malformed")
    works = condition == "success" or focus.reachable or (condition == "stale" and gone)
    claim, handed = (focus.tool,) if deed.writes else (), "handed_off" if handoff else ""
    if state == "missing" and deed.action not in ("answer", "compute"):
        alone = deed.action == "create" and deed.owner not in world.tools[focus.tool].parameters["required"]
        ends = _ends("refused", handed, "honest_failure", "resolved" if alone else "")  # it can be made for nobody
        return replace(right, must_call=(), must_not_claim=() if alone else claim, ends=ends, why=_why("missing"))
    if state == "already_acted_on" and deed.writes:
        blocked = ("honest_failure", handed) if unsure or condition == "permission_denied" else ()
        return _done_already(right, called, deed, agents, blocked, focus)
    if not works:
        shown = bool(called.instead) or (condition == "malformed" and world.can_show(deed, agents))
        how = _WORDS["how"]["malformed" if condition == "malformed" else "any"]
        return replace(
            right, must_not_claim=() if shown else claim, ends=_ends(handed, "honest_failure", "resolved" if shown else ""),
            handoff_wanted=True if handoff and not shown else None,
            why=_why("shown" if shown else "broken", " and hands over" if handoff else "", how),
        )  # fmt: skip
    if unsure and (deed.action == "create" or deed.piles):
        return replace(right, ends=_ends("resolved", handed, "honest_failure"), why=_why("unsure"))
    right = replace(right, must_call=(called,))
    if condition == "stale":
        ends = _ends("resolved", "honest_failure", handed)
        return replace(right, ends=ends, open=(_why("newer"),), why=_why("stale"))
    why = _why("works", " on a second try" if unsure else "")
    return replace(right, ends=("resolved",), handoff_wanted=False, why=why)


def _why(reason: str, more: str = "", how: str = "") -> str:
    return str(_WORDS[reason]).format(more=more, how=how)


def _done_already(
    right: Oracle, call: CallRule, deed: Deed, agents: Sequence[Deed], blocked: Sequence[str], focus: Focus
) -> Oracle:
    """What is already done is not done again, where the agent could see that it is; ``blocked``: ends of a tool that fails."""
    creates = deed.action == "create"
    lists = any(d.kind == deed.kind and d.action in ("list", "find") and d.owner == deed.owner for d in agents)
    listed = lists or any(d.action == "get" and deed.owner and d.key == deed.owner for d in agents)  # names its own
    given, seen = focus.arguments, any(d.reads and d.kind == deed.kind for d in agents)
    new = {} if deed.after or creates else {a: given[a] for a in deed.written if a in given}  # the very same values
    copies = creates and deed.verb in _WORDS["copied"] and not any(role_of(a) == "money" for a in given)
    once = (listed and not copies) if creates else (deed.after or (new and seen)) and call.arguments
    again = (CallRule(name=call.name, arguments={**call.arguments, **new}),) if once else ()
    return replace(
        right, must_call=(), must_not_call=(*right.must_not_call, *again), ends=_ends("refused", "resolved", *blocked),
        handoff_wanted=None if blocked else False, open=(_why("seen"),) if creates and not listed else (), why=_why("copied_why" if copies else "already"),
    )  # fmt: skip


def _same_reads(deed: Deed, agents: Sequence[Deed]) -> tuple[str, ...]:
    """Return the other tools that show what a reading tool shows, or that go by the same name."""
    base = _NUMBERED.sub("", deed.tool)
    others = [d for d in agents if d.tool != deed.tool]
    if not deed.reads:
        return tuple(d.tool for d in others if _NUMBERED.sub("", d.tool) == base)
    whole = not deed.kind or not deed.shows
    reads = [d for d in others if d.reads and (not deed.kind or d.kind in (deed.kind, ""))]
    return tuple(d.tool for d in reads if not d.shows or (not whole and set(deed.shows) <= set(d.shows)))


def _ends(*ends: str) -> tuple[End, ...]:
    return tuple(e for e in ends if e)  # type: ignore[misc]


def _forbidden(deed: Deed, focus: Focus, agents: Sequence[Deed]) -> tuple[CallRule, ...]:
    """No write of any tool on another record of the kind, and nothing done twice that adds up."""
    key = focus.arguments.get(deed.key, focus.id)
    writes = [d for d in agents if d.action in ("change", "delete") and d.kind == deed.kind and d.key]
    rules = [CallRule(name=d.tool, other_than={d.key: key}) for d in writes if key and deed.kind]
    if deed.action == "create" or deed.piles:
        rules.append(CallRule(name=focus.tool, at_most=1))
    return tuple(rules)


def _with_stance(oracle: Oracle, values: Mapping[str, str]) -> Oracle:
    """What a customer wants beside the rules may be refused; one who is wrong or unclear can still be helped."""
    stance = values.get("stance", "")
    met = f"Whether the customer's way ({stance.replace('_', ' ')}) was met rightly."
    if stance in ("boundary_testing", "adversarial"):
        return _widen(oracle, met, ("refused",))
    return replace(oracle, open=(*oracle.open, met)) if stance in ("ambiguous", "mistaken") else oracle


def _kept(clause: Clause, focus: Focus, world: WorldModel) -> bool | None:
    """Say whether the call that the card asks for keeps the limits that a rule sets; None where the card cannot tell."""
    text, deed, hangs = clause.text, world.deeds[focus.tool], re.compile(_WORDS["depends"], re.IGNORECASE)
    strict, wide = clause.kind in ("must_not", "handoff"), clause.kind != "must"  # what a duty hangs on is no limit
    found = [*re.finditer(_WORDS["limit"] + _WORDS["conditions"] * wide, text, re.IGNORECASE)]
    ends = [*(m.start() for m in found[1:]), len(text)]
    bare = [not strict and hangs.search(text[: m.start()]) for m in found]
    said = [(m[0].lower(), "" if b else text[m.end() : end]) for m, end, b in zip(found, ends, bare, strict=False)]
    least = {limit: 6 if limit in _WORDS["negative"] else 3 for limit, _ in said}
    sums = {
        t for t in said if re.match(_WORDS["amount"], t[1], re.IGNORECASE)
    }  # 'at most €15. Anything above needs ...'
    whole = [t for t in said if t is said[-1] or t in sums or len(words(t[1])) > least[t[0]]]
    whole = [t for t in whole if not re.match(_WORDS["consent"], t[1], re.IGNORECASE)]  # the agent can ask for it
    told = [_holds(*each, strict, focus, world) for each in whole]  # 'never pay more than' is one limit
    made = deed.action == "create" and re.search(_WORDS["sized"].format(noun=deed.kind.split("_")[-1]), text)
    if made and not hangs.search(text[: made.start()]) and _holds("up to", made[1], strict, focus, world) is False:
        return False
    if clause.kind == "condition" and "will" in words(text):
        return True  # it tells what comes of the deed
    no = False in told and not any(limit in _WORDS["exceptions"] for limit, _ in said)
    return False if no else None if None in told or False in told or (strict and not told) else True


def _holds(limit: str, said: str, strict: bool, focus: Focus, world: WorldModel) -> bool | None:
    """Say whether one limit is kept: by the record's status, or by the one amount that the card tells."""
    deed, found = world.deeds[focus.tool], re.match(_WORDS["amount"], said, re.IGNORECASE)
    kind = world.kinds.get(deed.kind)
    named = {s for s in (kind.statuses if kind else ()) if re.search(rf"\b{re.escape(s)}\b", said, re.IGNORECASE)}
    if named and deed.before:  # the record was chosen to be in one of these
        return (named.isdisjoint(deed.before) if limit in _WORDS["negative"] else bool(named & {*deed.before})) or None
    upper = re.fullmatch(_WORDS["upper"], limit) or (strict and limit in _WORDS["beyond"])
    if not found or not (upper or found["high"]):
        once = limit.startswith("once ") and deed.kind and deed.kind.split("_")[-1] in said
        return True if once else None  # that it was done before is a state of its own
    unit, money = found["unit"].lower(), found["money"] or found["unit"].lower() in _WORDS["currencies"]
    told = [v for n, v in focus.facts.items() if (role_of(n) == "money" if money else unit in n.split())]
    if len(told) != 1 or not re.fullmatch(r"[\d,]+(?:\.\d+)?", told[0]):
        return None
    low, high, value = (float(v.replace(",", "")) for v in (found["low"], found["high"] or found["low"], told[0]))
    return (low if found["high"] else 0) <= value <= high


def _fails_otherwise(clauses: Sequence[Clause]) -> bool:
    """Say whether the policy tells what to do when a tool fails, and that it is something else than to hand over."""
    told = [i for i, c in enumerate(clauses) if re.search(_WORDS["fails"], c.text, re.IGNORECASE)]
    said = [" ".join(c.text.lower() for c in clauses[i : i + 2] if c.span[0] - clauses[i].span[1] <= 3) for i in told]
    person = any(clauses[i].kind == "handoff" for i in told) or any(re.search(_WORDS["person_named"], t) for t in said)
    return not person and any(re.search(_WORDS["instead"], t) for t in said)


def _asks_more(clauses: Sequence[Clause]) -> bool:
    """Say whether the policy keeps people for certain cases, so that a wish for one is not enough."""
    return any(re.search(_WORDS["only_for"], c.text, re.IGNORECASE) for c in clauses)


def _stops_all(clause: Clause, clauses: Sequence[Clause]) -> bool:
    """Say whether a rule, or the sentence behind it, says to go on with nothing else."""
    behind = [c for c in clauses if 0 <= c.span[0] - clause.span[1] <= 3]
    return any(re.search(_WORDS["stops"], c.text, re.IGNORECASE) for c in (clause, *behind[:1]))


def _with_clause(
    oracle: Oracle, clause: Clause, applies: Applies, tool: str, handoffs: Sequence[Tool], *, apart: bool
) -> Oracle:
    """Add what the situation's clause changes; ``apart``: the first request is none of its business."""
    no = _ends("refused", "handed_off" if handoffs else "")
    if clause.kind == "handoff" and applies == "yes" and handoffs:
        first, *others = handoffs
        person = CallRule(name=first.name, arguments=_team(clause, first), instead=tuple(t.name for t in others))
        told = f"A clause wants a person here: {shorten(clause.text, 160)}"
        if oracle.ends == ("honest_failure",):  # the one way to a person fails here, whatever is brought up
            return replace(oracle, must_call=(person,))
        return replace(oracle, must_call=(person,), ends=("handed_off",), handoff_wanted=True, why=told)
    if clause.kind == "must_not" and applies == "yes" and tool in clause.tools:
        return _forbid(oracle, clause, tool, no)
    if clause.kind in ("must_not", "condition", "handoff"):
        wide, wanted = _widen(oracle, _opened(clause), no[clause.kind == "handoff" :]), oracle.handoff_wanted
        if not apart:
            return wide
        return replace(wide, must_call=oracle.must_call, handoff_wanted=wanted or wide.handoff_wanted)
    return replace(oracle, open=tuple(dict.fromkeys((*oracle.open, _opened(clause)))))


def _team(clause: Clause, tool: Tool) -> Mapping[str, Any]:
    """Return the argument of a hand-off that a clause names: 'hand over to Payroll Security' is ``payroll_security``."""
    for name, schema in (tool.parameters.get("properties") or {}).items():
        values = schema.get("enum") or () if isinstance(schema, Mapping) else ()
        ways = {v: r"\W+".join(map(re.escape, name_words(v))) for v in values if isinstance(v, str)}
        hands = r"\b(?:hand|transfer|escalat|rout|refer|forward|pass|send|sent|go|goes)\w*\b[^.;:]{0,40}?\bto (?:the |our )?"
        to = [v for v, w in ways.items() if w and re.search(rf"{hands}{w}\b", clause.text, re.IGNORECASE)]
        whole = [v for v in to if not any(v != w and ways[w].startswith(ways[v]) for w in to)]
        if len(whole) == 1:
            return {name: whole[0]}
    return {}


def _opened(clause: Clause) -> str:
    return f"Whether this was kept: {shorten(clause.text, 160)}"


def _forbid(oracle: Oracle, clause: Clause, tool: str, ends: tuple[End, ...]) -> Oracle:
    never, told = CallRule(name=tool, at_most=-1), f"A clause forbids this here: {shorten(clause.text, 160)}"
    rules = (*oracle.must_not_call, never)
    return replace(oracle, must_call=(), must_not_call=rules, ends=ends, handoff_wanted=None, why=told)


def _bears_on(clause: Clause, focus: Focus, tools: Sequence[Tool]) -> bool:
    """Say whether a clause speaks of the tool's own deed, so that it may forbid the deed itself.

    It does when it names the tool, the first word of its name with another, all others, or one that
    no other tool has, or an argument that the card says yes to; not when it forbids some other deed,
    stands under the heading of one ('Change cabin: ...'), or says another tool's verb of the same thing.
    """
    said, barred = words(_STATE.sub(" ", clause.text)), re.findall(_WORDS["forbids"], clause.text.lower())
    mine, others = _ways(focus.tool), [t for t in tools if t.name != focus.tool]
    if focus.tool in clause.tools or (clause.kind == "must_not" and barred and not _met(mine, barred)):
        return focus.tool in clause.tools
    theirs, hits = [w for t in others for w in name_words(t.name)], _met(mine, said)
    flags = [name_words(name) for name, value in focus.arguments.items() if value is True]
    agreed = [[[w] for w in flag if len(w) > 3 and w not in _WORDS["carriers"]] for flag in flags]
    if any(each and _met(each, words(clause.text)) == each for each in agreed):
        return True
    if _headed_for_another(clause, mine, focus, others) or (hits[:1] != mine[:1] and _said_of(hits, others, said)):
        return False
    named = len(hits) > 1 and (hits[0] == mine[0] or hits == mine[1:])
    return named or len(_met(hits, theirs)) < len(hits)


def _ways(tool: str) -> list[Sequence[str]]:
    """Return for each telling word of a tool's name the words that say the same."""
    parts = [w for w in name_words(tool) if len(w) > 2 and w not in _WORDS["idle"]]
    return [next((group for group in _WORDS["same"] if w in group), [w]) for w in parts]


def _said_of(hits: Sequence[Sequence[str]], others: Sequence[Tool], said: Sequence[str]) -> bool:
    """Say whether another tool's verb is said with a noun of this one: claims are submitted, not withdrawn."""
    verbs = [s for s in said if not s.endswith(("tion", "tions", "ment", "ments"))]  # a reservation is no reserving
    return any(_met([name_words(t.name)[:1]], verbs) and any(h in _ways(t.name)[1:] for h in hits) for t in others)


def _headed_for_another(clause: Clause, mine: Sequence[Sequence[str]], focus: Focus, others: Sequence[Tool]) -> bool:
    """Say whether a heading before the rule has the tool's verb, and an object that only other tools know."""
    head = re.match(r"(\w+) (\w+)(?: \w+)?: ", clause.text)
    if not head or not mine or head[1].lower() not in mine[0]:
        return False
    theirs = [n for t in others for n in (t.name, *(t.parameters.get("properties") or ()))]
    noun, own = [head[2].lower()], (focus.tool, *focus.arguments)
    return bool(_met([name_words(n) for n in theirs], noun)) and not _met([name_words(n) for n in own], noun)


def _met(ways: Sequence[Sequence[str]], said: Sequence[str]) -> list[Sequence[str]]:
    return [each for each in ways if any(_alike(w, s) for w in each for s in said)]


def _alike(word: str, said: str) -> bool:
    """Say whether a word that is said is a form of another: waive, waived; fee, fees."""
    stem = word[:-1] if len(word) > 4 and word[-1] in "esy" else word
    if word.endswith("y") and stem != word and said[len(stem) : len(stem) + 1] not in ("y", "i"):
        return said == stem
    return said.startswith(stem) and len(said) - len(stem) <= (6 if len(stem) > 3 else 1)


def _widen(oracle: Oracle, opened: str, ends: tuple[End, ...]) -> Oracle:
    """Add acceptable ends; what had to be done may then be left undone."""
    both = {None, False, *([True] if "refused" in ends else ())}  # who refuses rightly need not hand over
    return replace(
        oracle, ends=tuple(dict.fromkeys((*oracle.ends, *ends))), must_call=(), open=tuple(dict.fromkeys((*oracle.open, opened))),
        handoff_wanted=None if "handed_off" in ends and oracle.handoff_wanted in both else oracle.handoff_wanted,
    )  # fmt: skip
