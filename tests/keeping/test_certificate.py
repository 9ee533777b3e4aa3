"""Certificate: a pair counts when it happened, and a hole says why."""

from __future__ import annotations

from itertools import combinations

import pytest

from whilesim.chat.messages import Failure, Message
from whilesim.keeping.certificate import Certificate, happened
from whilesim.keeping.manifest import Manifest
from whilesim.world.oracle import CallRule, Oracle

AXES = {
    "clause": ["c01", "c02"],
    "tool": ["cancel_order", "get_order"],
    "tool_condition": ["success", "timeout"],
    "world_state": ["exists", "missing"],
    "stance": ["upset", "ordinary"],
}
SAY = Message(role="assistant", content="I am afraid I cannot cancel this order, as the policy does not allow it.")
FAILED = Message(role="tool", content='{"error": "timed out"}', tool_call_id="call_1")
REFUSE = Oracle(ends=("refused",), must_not_call=(CallRule(name="cancel_order"),))


def pairs_of(values):
    return set(combinations([(axis, values[axis]) for axis in AXES], 2))


def certify(make, rows, axes=AXES):
    return Certificate.build(Manifest(axes=axes), rows, make.tools)


def test_every_pair_of_a_kept_row_in_which_all_happened_is_kept(make):
    found = certify(make, [make.row(verdict=True)])
    assert (found.feasible, found.planned, found.played, found.met, found.kept) == (40, 10, 10, 10, 10)
    assert {h.pair for h in found.holes} == Manifest(axes=AXES).feasible() - pairs_of(make.values)
    assert {h.why for h in found.holes} == {"in no card"}
    assert found.by_axes["clause x tool"] == (1, 4)
    assert sum(k for k, _ in found.by_axes.values()) == 10


@pytest.mark.parametrize(
    ("condition", "failed", "served"),
    [("success", (), True), ("timeout", (), False), ("timeout", ("call_1",), True), ("stale", (), True)],
)
def test_a_failing_condition_is_served_by_a_failed_call(make, condition, failed, served):
    row = make.row(values={"tool_condition": condition}, failed_calls=failed)
    assert happened(row, make.tools)["tool_condition"] is served


def test_a_tool_that_was_not_called_leaves_its_pairs_unmet(make):
    row = make.row(messages=make.talk(Message(role="assistant", content="One moment.")), verdict=True)
    met = happened(row, make.tools)
    assert met == {"clause": True, "tool": False, "tool_condition": False, "world_state": False, "stance": True}
    found = certify(make, [row])
    assert (found.played, found.met, found.kept) == (10, 1, 1)
    whys = {h.pair: h.why for h in found.holes}
    assert whys[("clause", "c01"), ("tool", "cancel_order")] == "played, but the tool was not called"
    assert whys[("clause", "c01"), ("world_state", "exists")] == "played, but the record was not touched"


def test_a_right_refusal_meets_the_tool_and_a_look_at_the_record_meets_its_state(make):
    look = make.call("get_order", '{"order_id": "w2210"}')
    refused = make.row(messages=make.talk(look, FAILED, SAY), failed_calls=("call_1",), oracle=REFUSE)
    met = happened(refused, make.tools)
    assert met["tool"]
    assert met["world_state"]
    assert not met["tool_condition"]
    wrong = make.row(messages=make.talk(look, FAILED, SAY), failed_calls=("call_1",), oracle=Oracle(ends=("resolved",)))
    assert not happened(wrong, make.tools)["tool"]


def test_a_number_that_anything_could_have_names_no_record(make):
    look = make.call("get_order", '{"page": "2", "deep": [{"of": null}]}')
    row = make.row(messages=make.talk(look, FAILED, SAY), facts={"how many": "2"}, oracle=REFUSE)
    assert not happened(row, make.tools)["world_state"]


def test_failed_and_dropped_rows_say_why_their_pairs_are_missing(make):
    dropped = make.row(verdict=False)
    slow = Failure(role="agent", reason="timeout", message="slow")
    failed = make.row(card="s002", values={"stance": "ordinary"}, stop="agent_error", failure=slow)
    found = certify(make, [dropped, failed])
    whys = {h.pair: h.why for h in found.holes}
    assert found.kept == 0
    assert (found.planned, found.played) == (14, 10)
    assert whys[("clause", "c01"), ("stance", "upset")] == "met, and then dropped by check:refusal"
    assert whys[("clause", "c01"), ("stance", "ordinary")] == "every conversation failed: timeout"
    assert "clause=c01 with stance=ordinary: every" in "\n".join(map(str, found.holes))
    assert "26  in no card" in str(found)


def test_pairs_that_cannot_meet_are_not_in_the_denominator(make):
    manifest = Manifest(axes=AXES, infeasible=[["tool", "get_order", "tool_condition", "timeout"]])
    feasible = manifest.feasible()
    assert len(feasible) == 39
    found = Certificate.build(manifest, [make.row(verdict=True)], make.tools)
    assert (found.feasible, found.kept) == (39, 10)


def test_axes_of_the_users_own_and_removed_ones_count_by_the_card(make):
    axes = {"clause": ["c01"], "channel": ["chat", "email"]}
    row = make.row(verdict=True, values={"channel": "email"})
    found = certify(make, [row], axes)
    assert (found.feasible, found.kept) == (2, 1)
