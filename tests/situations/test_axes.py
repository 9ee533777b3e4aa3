"""The space of situations: its axes, its default rules, and what a user can say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from whilesim.core.errors import InputError
from whilesim.situations.axes import (
    NO_CLAUSE,
    TOOL_CONDITIONS,
    WORLD_STATES,
    Rule,
    Space,
    default_rules,
    default_space,
    forbid,
    space_size,
)
from whilesim.situations.covering import cover
from whilesim.situations.tools import Tool, parse_tools

CLAUSES = ("c01", "c02", "c03")


def tool(name: str, effect: Any, ids: tuple[str, ...] = ()) -> Tool:
    return Tool(name=name, description="", parameters={}, effect=effect, id_arguments=ids)


TOOLS = (
    tool("get_order", "read", ("order_id",)),
    tool("cancel_order", "write", ("order_id",)),
    tool("calculate", "compute"),
    tool("quote_refund", "compute", ("order_id",)),
    tool("transfer", "handoff"),
)


def names(space: Space) -> list[str]:
    return [axis.name for axis in space.axes]


def forbidden(space: Space, **values: str) -> bool:
    return any(
        rule.forbids(*(values[name] for name in rule.axes))
        for rule in space.forbidden
        if all(name in values for name in rule.axes)
    )


def test_six_axes_stand_unless_the_user_says_otherwise() -> None:
    space = default_space(CLAUSES, TOOLS)
    assert names(space) == ["clause", "tool", "tool_condition", "world_state", "stance", "history"]
    assert space_size(space) == 3 * 5 * 5 * 5 * 10 * 5
    assert space.notes == ()


def test_the_demo_agent_has_a_covering_at_its_bound(demo_tools: list[dict[str, Any]]) -> None:
    space = default_space([f"c{at:02}" for at in range(1, 17)], parse_tools(demo_tools))
    assert space_size(space) == 260_000
    found = cover(space.axes, forbid=space.forbidden)
    assert (len(found.rows), found.proven_optimal, found.missing) == (208, True, ())


@pytest.mark.parametrize(
    ("name", "stale", "missing"),
    [
        ("get_order", False, False),
        ("cancel_order", True, False),
        ("calculate", True, True),
        ("quote_refund", True, False),
        ("transfer", True, True),
    ],
)
def test_the_default_rules_forbid_only_what_a_tool_cannot_do(name: str, stale: bool, missing: bool) -> None:
    space = default_space(CLAUSES, TOOLS)
    for condition in TOOL_CONDITIONS:
        assert forbidden(space, tool=name, tool_condition=condition) == (stale and condition == "stale")
    for state in WORLD_STATES:
        assert forbidden(space, tool=name, world_state=state) == (missing and state != "exists")


def test_no_clause_is_forbidden_to_meet_a_tool_and_every_rule_says_why() -> None:
    for rule in default_rules(TOOLS):
        assert "clause" not in rule.axes
        assert len(rule.why.split()) > 5


def test_users_replace_add_and_remove_axes() -> None:
    space = default_space(
        CLAUSES, TOOLS, axes={"channel": ["chat", "email"], "stance": None, "history": ["fresh", "repeat_visit"]}
    )
    assert names(space) == ["clause", "tool", "tool_condition", "world_state", "history", "channel"]
    assert dict(zip(names(space), space.axes, strict=True))["history"].values == ("fresh", "repeat_visit")


def test_a_mistyped_axis_is_no_new_one() -> None:
    with pytest.raises(InputError, match=r"axes names 'stanc', which is no axis yet\. Did you mean 'stance'"):
        default_space(CLAUSES, TOOLS, axes={"stanc": ["upset", "calm"]})


def test_rules_over_an_axis_that_was_removed_fall_away() -> None:
    space = default_space(CLAUSES, TOOLS, axes={"tool_condition": None})
    assert {rule.axes for rule in space.forbidden} == {("tool", "world_state")}


def test_users_forbid_more() -> None:
    rule = forbid("stance", "history", lambda stance, history: stance == "upset" and history == "fresh", why="no cause")
    space = default_space(CLAUSES, TOOLS, forbid=[rule])
    assert forbidden(space, stance="upset", history="fresh")
    assert space.forbidden[-1].why == "no cause"


def test_a_predicate_may_come_by_name() -> None:
    assert forbid("a", predicate=bool) == Rule(("a",), bool)


def test_a_policy_without_a_clause_is_a_note_and_never_a_crash() -> None:
    space = default_space((), TOOLS)
    assert space.axes[0].values == (NO_CLAUSE,)
    assert "no clause was found in the policy" in space.notes[0]
    found = cover(space.axes, forbid=space.forbidden)
    assert not found.missing
    assert all(row["clause"] == NO_CLAUSE for row in found.rows)


def test_values_that_nothing_acts_on_are_a_note() -> None:
    space = default_space(CLAUSES, TOOLS, axes={"world_state": ["exists", "frozen"], "channel": ["chat", "email"]})
    (note,) = space.notes
    assert "the world_state axis has values of your own, frozen: they stand in rows" in note


@pytest.mark.parametrize("value", ["unhurried", "sure", "consistent"])
def test_the_opposite_of_a_known_value_is_a_value_of_ones_own_and_no_slip(value: str) -> None:
    space = default_space(CLAUSES, TOOLS, axes={"stance": ["ordinary", value]})
    assert f"values of your own, {value}" in space.notes[0]


def test_one_tool_is_a_note() -> None:
    space = default_space(CLAUSES, TOOLS[:1])
    assert space.notes == ("the tool axis has the one value 'get_order': it covers nothing by itself.",)


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ({"channel": ["chat"]}, r"axis 'channel' has 1 value\(s\) and needs at least 2. Add a value, or take the axis"),
        ({"channel": []}, r"axis 'channel' has 0 value\(s\)"),
        ({"channel": "chat"}, "axis 'channel' was given 'chat', but needs a list of words"),
        ({"channel": ["chat", 3]}, "needs a list of words"),
        ({"channel": ["chat", "chat"]}, "axis 'channel' has the value 'chat' twice. Name each value once"),
        (
            {"channel": 3},
            r"axis 'channel' was given 3, but needs a list of words\. Type 'channel': \['one', 'another'\]",
        ),
        ({"channel": {"chat", "email"}}, "needs a list of words"),
        ({3: ["chat", "email"]}, r"axes=\{3: .* is no mapping from names\. Type axes="),
        (["channel"], "is no mapping from names"),
        ({"chanel": None}, "removes an axis that is not there. Type one of"),
        ({"tool": ["get_order", "get_oder"]}, "axis 'tool' has the value 'get_oder', which is no tool. Type some of"),
        ({"stance": ["upset", "ordinry"]}, r"axis 'stance' has the value 'ordinry'\. Did you mean 'ordinary'\?"),
        ({"clause": ["c01", "c09"]}, "axis 'clause' has the value 'c09', which is no clause"),
    ],
)
def test_axes_that_cannot_work_are_refused(axes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        default_space(CLAUSES, TOOLS, axes=axes)


def test_without_a_tool_the_axis_must_be_taken_out() -> None:
    with pytest.raises(InputError, match="no tool was given"):
        default_space(CLAUSES, ())
    assert "tool" not in names(default_space(CLAUSES, (), axes={"tool": None}))


def test_a_rule_over_an_unknown_axis_is_refused() -> None:
    with pytest.raises(InputError, match=r"names 'tol', which is no axis\. Type one of"):
        default_space(CLAUSES, TOOLS, forbid=[forbid("tol", lambda name: False)])


@pytest.mark.parametrize("given", [(), ("a",), (bool,), ("a", "a", bool), ("a", bool, bool), ("a", 3, bool)])
def test_forbid_needs_axes_and_one_predicate(given: tuple[Any, ...]) -> None:
    with pytest.raises(InputError, match="needs different axis names and then one predicate"):
        forbid(*given)


@pytest.mark.corpus
@pytest.mark.parametrize("domain", ["telecom", "retail", "airline"])
def test_any_domain_is_covered_near_its_bound(shared: Path, domain: str) -> None:
    files = sorted((shared / "tau2" / domain).glob("*tools*.json"))
    if not files:
        pytest.skip("../shared is absent")
    space = default_space([f"c{at:02}" for at in range(1, 19)], parse_tools(json.loads(files[0].read_text())))
    found = cover(space.axes, forbid=space.forbidden)
    assert not found.missing
    assert len(found.rows) <= 1.02 * found.bound
