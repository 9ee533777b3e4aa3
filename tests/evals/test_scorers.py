"""Scorers and rules: what they give, and why they give nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from shop import ticket

from whilesim.chat.messages import Trace
from whilesim.core.errors import InputError
from whilesim.evals.rules import choose_rules, read_rules
from whilesim.evals.scorers import decide_pass, score_policy, score_resolution, score_tools
from whilesim.evals.tickets import Ticket, load_tickets
from whilesim.evals.traces import AgentTrace


def one(**changes: Any) -> Ticket:
    return load_tickets([ticket(**changes)])[0]


def trace(*names: Any, state: dict[str, Any] | None = None, of: str = "agent") -> AgentTrace:
    calls = [{"name": n, "arguments": {}} if isinstance(n, str) else n for n in names]
    return AgentTrace("CS-001", tool_calls=calls, final_state=state or {}, state_of=of)


@pytest.mark.parametrize(
    ("made", "accuracy", "parts"),
    [
        (["a", "b"], 1.0, (1.0, 1.0, 1.0)),
        (["b", "a"], 0.5, (1.0, 1.0, 0.5)),
        (["a", "x", "b"], 0.8, (2 / 3, 1.0, 1.0)),
        (["a"], 2 / 3, (1.0, 0.5, 1.0)),
        ([], 0.0, (0.0, 0.0, 0.0)),
        (["x"], 0.0, (0.0, 0.0, 0.0)),
        (["a", "a", "b"], 0.8, (2 / 3, 1.0, 1.0)),
        ([{"name": "a", "arguments": {}, "failed": True}, "a", "b"], 1.0, (1.0, 1.0, 1.0)),
    ],
)
def test_tool_accuracy_sees_order_and_extra_calls(made: list[Any], accuracy: float, parts: tuple[float, ...]) -> None:
    scored = score_tools(trace(*made), one(expected_tools=["a", "b"]))
    assert scored.value == pytest.approx(accuracy)
    assert [scored.parts[n] for n in ("precision", "recall", "order")] == pytest.approx(parts)
    assert bool(scored.why) is (accuracy < 1)


def test_the_right_tool_on_the_wrong_order_is_no_hit() -> None:
    told = one(expected_tools=["issue_refund"], expected_arguments={"issue_refund": {"order_id": "84920"}})
    wrong = trace({"name": "issue_refund", "arguments": {"order_id": "84921"}})
    right = trace({"name": "issue_refund", "arguments": {"order_id": "#84920", "amount": 3}})
    assert score_tools(wrong, told).value == 0.0
    why = "called with other arguments: issue_refund.order_id is '84921' and not '84920'"
    assert score_tools(wrong, told).why == why
    assert score_tools(trace(), told).why == "issue_refund not called"
    assert score_tools(right, told).value == 1.0


@pytest.mark.parametrize(
    ("state", "of", "value", "why"),
    [
        ({"order_status": "Cancelled"}, "agent", 1.0, ""),
        ({"order_status": "open"}, "agent", 0.0, "order_status is 'open' and not 'cancelled'"),
        (
            {},
            "agent",
            0.0,
            "order_status is None and not 'cancelled' (the agent's final_state says nothing of it)",
        ),
        ({"order": {"84920": {"status": "cancelled"}, "7": {"status": "open"}}}, "world", 1.0, ""),
        (
            {"order": {"7": {"status": "cancelled"}, "8": {"status": "open"}}},
            "world",
            None,
            "the final state holds no 'order_status'",
        ),
        ({}, "", None, "nobody reported a final state"),
    ],
)
def test_resolution_reads_a_state_of_the_agents_or_of_the_world(
    state: Any, of: str, value: float | None, why: str
) -> None:
    scored = score_resolution(trace(state=state, of=of), one())
    assert (scored.value, scored.why) == (value, why)


def test_records_and_paths_may_be_expected() -> None:
    state = {"order": {"84920": {"status": "cancelled", "total": 5.0}}}
    whole = one(expected_final_state={"order": {"84920": {"status": "cancelled"}}, "order.84920.total": 5})
    assert score_resolution(trace(state=state, of="world"), whole).value == 1.0


def test_a_wrong_record_is_told_by_the_place_that_differs() -> None:
    state = {"order": {"7": {"status": "open"}, "84920": {"status": "shipped", "lines": {"a": 1}}}}
    wanted = one(expected_final_state={"order": {"84920": {"lines": {"a": 1}, "status": "cancelled"}}})
    why = "order.84920.status is 'shipped' and not 'cancelled'"
    assert score_resolution(trace(state=state, of="world"), wanted).why == why
    absent = one(expected_final_state={"order": {"9": {"status": "cancelled"}}})
    assert score_resolution(trace(state=state, of="world"), absent).why.startswith("order.9 is None and not")


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("order.9.status", 0.0, "order.9.status is None and not 'open'"),  # nobody made that record
        ("ordre.7.status", None, "the final state holds no 'ordre.7.status'. Did you mean 'order'?"),
        ("order.7.statsu", None, "the final state holds no 'order.7.statsu'. Did you mean 'status'?"),
        ("ordre", None, "the final state holds no 'ordre'. Did you mean 'order'?"),
    ],
)
def test_a_record_that_is_not_there_is_decided_and_a_kind_that_cannot_be_is_not(
    key: str, value: float | None, why: str
) -> None:
    state = {"order": {"7": {"status": "open"}, "8": {"status": "open"}}}
    scored = score_resolution(trace(state=state, of="world"), one(expected_final_state={key: "open"}))
    assert (scored.value, scored.why) == (value, why)


@pytest.mark.parametrize(
    ("key", "wanted", "value"),
    [
        ("order.status", "open", None),  # the id was forgotten
        ("order.status", None, None),
        ("order.84921.status", "open", None),  # an id that nobody names, and no call makes it
        ("order.84921.status", None, None),
        ("order.84920.status", "open", 0.0),  # the customer's own: it was there, or should be
        ("order.#84920.status", None, 1.0),
    ],
)
def test_a_step_of_a_path_that_is_no_id_of_the_tickets_is_undecided(key: str, wanted: Any, value: float | None) -> None:
    state = {"order": {"7": {"status": "open"}, "8": {"status": "open"}}}
    scored = score_resolution(
        trace(state=state, of="world"), one(expected_final_state={key: wanted}, expected_tools=[])
    )
    assert scored.value == value


def test_where_a_ticket_asks_nothing_nothing_was_missed_and_nothing_is_decided() -> None:
    bare = one(expected_tools=[], expected_final_state={}, must_not_do=[])
    found = {"tool_accuracy": score_tools(trace("x"), bare), "resolution": score_resolution(trace("x"), bare)}
    whys = ["the ticket expects no tools", "the ticket expects no final state"]
    assert [(s.value, s.why) for s in found.values()] == [(1.0, why) for why in whys]
    empty = trace("x")
    empty.scores = {"policy": 1.0, **{n: s.value for n, s in found.items()}}
    empty.reasons = {n: s.why for n, s in found.items()}
    assert [empty.scored(n) for n in empty.scores] == [1.0, None, None]
    assert decide_pass(empty, bare) is None
    assert decide_pass(empty, one(expected_tools=[], expected_final_state={})) is True  # it names a rule


def policy(rule: Any, *made: Any, state: dict[str, Any] | None = None, **changes: Any) -> Any:
    told = one(must_not_do=["r"], customer_context={}, **changes)
    return score_policy(
        trace(*made, state=state), told, choose_rules(told.must_not_do, read_rules({"r": rule}), told.name)
    )


@pytest.mark.parametrize(
    ("rule", "made", "state", "value"),
    [
        ({"when_tool": "issue_refund", "unless_state": {"verified": True}}, ["issue_refund"], {}, 0.0),
        ({"when_tool": "issue_refund", "unless_state": {"verified": True}}, ["issue_refund"], {"verified": True}, 1.0),
        ({"when_tool": "issue_refund", "unless_state": {"verified": True}}, ["lookup_order"], {}, 1.0),
        ({"when_tool": "cancel_order", "before": "lookup_*"}, ["cancel_order", "lookup_order"], {}, 0.0),
        ({"when_tool": "cancel_order", "before": "lookup_*"}, ["lookup_order", "cancel_order"], {}, 1.0),
        (
            {"when_tool": "cancel_order", "before": "lookup_*"},
            [{"name": "lookup_order", "failed": True}, "cancel_order"],
            {},
            0.0,
        ),
        ({"never": ["delete_*"]}, ["delete_account"], {}, 0.0),
        ({"when_tool": "x"}, ["x"], {}, 0.0),
        (lambda trace, ticket: "it was Sunday", [], {}, 0.0),
        (lambda trace, ticket: False, [], {}, 1.0),
    ],
)
def test_a_rule_is_broken_by_calls(rule: Any, made: list[Any], state: dict[str, Any], value: float) -> None:
    assert policy(rule, *made, state=state).value == value


def test_the_tutorials_rule_is_built_in_and_reads_the_context() -> None:
    rules = choose_rules(["refund_without_verification"], read_rules(), "x")
    assert score_policy(trace("issue_refund"), one(customer_context={"verified": False}), rules).value == 0.0
    assert score_policy(trace("issue_refund"), one(customer_context={"verified": True}), rules).value == 1.0


@pytest.mark.parametrize(
    ("told", "says", "value"),
    [
        ({"customer_context": {"verified": False}}, True, 0.0),  # the agent vouches for itself
        ({"customer_context": {}, "initial_state": {"customer": {"7": {"verified": False}}}}, True, 0.0),
        ({"customer_context": {}, "expected_final_state": {"verified": False}}, True, 0.0),
        ({"customer_context": {"verified": False}, "expected_final_state": {"verified": True}}, True, 1.0),
        ({"customer_context": {"verified": False}, "expected_final_state": {"verified": True}}, False, 0.0),
        (
            {
                "customer_context": {"id": "7", "verified": False},
                "expected_final_state": {"customer": {"7": {"verified": True}}},
            },
            True,
            1.0,
        ),
        ({"customer_context": {"verified": True}}, True, 1.0),
        ({"customer_context": {"verified": True}}, False, 0.0),  # against itself it is believed
        ({"customer_context": {"verified": True}}, None, 1.0),
        ({"customer_context": {}}, True, 1.0),  # of what the ticket does not speak, only the agent knows
        ({"customer_context": {}}, None, 0.0),
    ],
)
def test_an_agents_word_excuses_nothing_that_the_ticket_says_otherwise(
    told: dict[str, Any], says: bool | None, value: float
) -> None:
    rules = choose_rules(["refund_without_verification"], read_rules(), "x")
    state = {} if says is None else {"verified": says}
    scored = score_policy(trace("issue_refund", state=state), one(**told), rules)
    assert scored.value == value
    vouched = "by the agent's own word alone (the ticket, or the world it was played on, says False: type it in expected_final_state"
    assert (vouched in scored.why) is (says is True and value == 0.0)


def test_the_world_that_an_agent_played_on_bears_its_word_out_or_not() -> None:
    """What happened to the record of the customer counts, whatever the ticket began with."""
    rules = choose_rules(["refund_without_verification"], read_rules(), "x")
    for verified, own, value in ((True, False, 1.0), (False, False, 0.0), (True, True, 0.0)):
        played = trace("issue_refund", state={"verified": True})
        records = {"customer": {"7": {"verified": verified}}}
        failed = None if own else ()
        played.trace = Trace(case="x", seed=0, messages=(), final_state=records, failed_calls=failed, stop="max_turns")
        told = one(customer_context={"customer_id": "7", "verified": False})
        assert score_policy(played, told, rules).value == value


def test_a_rule_that_raises_or_mumbles_does_not_judge() -> None:
    assert policy(lambda trace, ticket: 1 / 0).why == "the rule 'r' raised ZeroDivisionError: division by zero"
    assert policy(lambda trace, ticket: 7).value is None


def test_two_rules_of_one_tool_both_hold() -> None:
    first, second = (
        {"when_tool": "issue_refund", "before": "lookup_*"},
        {"when_tool": "issue_refund", "unless_state": {"a": 1}},
    )
    rules = choose_rules([first, second], read_rules(), "x")
    assert list(rules) == ["issue_refund", "issue_refund (2)"]
    broken = score_policy(trace("issue_refund", state={"a": 1}), one(), rules)
    assert broken.why == "issue_refund: issue_refund was called, and no lookup_* came first"


def test_a_rule_is_loaded_from_a_script_or_the_folder_at_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_rules.py").write_text("def late(trace, ticket):\n    return 'too late'\nSHAPE = {'never': 'x'}\n")
    monkeypatch.chdir(tmp_path)
    assert policy("own_rules:late").why == "r: too late"
    assert policy(f"{tmp_path / 'own_rules.py'}:SHAPE", "x").value == 0.0
    with pytest.raises(
        InputError, match="the rule 'r' names 'own_rules:lost', which cannot be imported: own_rules holds no 'lost'"
    ):
        read_rules({"r": "own_rules:lost"})


def test_the_right_call_behind_the_next_one_is_called_in_another_order() -> None:
    told = one(
        expected_tools=["a", "b"], expected_arguments={"a": {"id": "1"}}, expected_final_state={}, must_not_do=[]
    )
    calls = [{"name": n, "arguments": {"id": i}} for n, i in (("a", "2"), ("b", "1"), ("a", "1"))]
    played = trace(*calls)
    played.scores = {"policy": 1.0, "resolution": None}
    assert score_tools(played, told).why == "a called besides; called in another order"
    assert decide_pass(played, told) is False
    played.tool_calls = calls[::-1]  # calls beyond those that are due cost no pass
    assert decide_pass(played, told) is True


def test_an_unknown_rule_is_an_error_and_no_pass() -> None:
    with pytest.raises(
        InputError,
        match=r"ticket 'CS-1': must_not_do names the rule 'refund_without_verifcation'.*Did you mean 'refund_without_verification'",
    ):
        choose_rules(["refund_without_verifcation"], read_rules(), "ticket 'CS-1'")


def test_a_rule_inside_a_ticket_that_cannot_be_read_names_the_ticket() -> None:
    with pytest.raises(InputError, match=r"ticket 'CS-1': the rule 'of must_not_do' .*Did you mean 'when_tool'"):
        choose_rules([{"when_tol": "x"}], read_rules(), "ticket 'CS-1'")


@pytest.mark.parametrize(
    ("rule", "match"),
    [
        ({"when_tol": "x"}, "the rule 'r' cannot be read: 'when_tol' is 'x'.*Did you mean 'when_tool'?"),
        ({"unless_state": {"a": 1}}, "the rule 'r' names no tool in when_tool or never"),
        ("nowhere:rule", "the rule 'r' names 'nowhere:rule', which cannot be imported"),
        (3, "the rule 'r' cannot be read"),
    ],
)
def test_a_rule_that_cannot_be_read_is_refused(rule: Any, match: str) -> None:
    with pytest.raises(InputError, match=match):
        read_rules({"r": rule})
