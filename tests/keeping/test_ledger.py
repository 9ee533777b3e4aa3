"""Ledger: every planned row is somewhere, with a reason."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from whilesim.chat.messages import Failure
from whilesim.chat.usage import Usage
from whilesim.keeping.ledger import Ledger


def a_row(make, kind):
    if kind == "failed":
        return make.row(stop="agent_error", failure=Failure(role="agent", reason="timeout", message="slow"))
    return make.row(verdict={"kept": True, "dropped": False, "unjudged": None}[kind])


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.sampled_from(["kept", "dropped", "failed", "unjudged"])), st.integers(0, 3))
def test_planned_rows_are_conserved(make, kinds, missing):
    rows = {kind: a_row(make, kind) for kind in set(kinds)}
    ledger = Ledger.build([rows[kind] for kind in kinds], planned=len(kinds) + missing)
    assert ledger.planned == len(kinds) + missing
    assert ledger.kept == kinds.count("kept")
    assert ledger.dropped == kinds.count("dropped")
    assert ledger.failed == kinds.count("failed") + missing
    assert ledger.unjudged == kinds.count("unjudged")
    for state in ("kept", "dropped", "failed", "unjudged"):
        assert sum(ledger.reasons[state].values()) == getattr(ledger, state)
    assert ledger.reasons["failed"].get("not_played", 0) == missing


def test_max_turns_and_call_limit_are_no_failures(make):
    ledger = Ledger.build([make.row(stop="max_turns"), make.row(stop="call_limit"), make.row(stop="budget")])
    assert (ledger.unjudged, ledger.failed) == (2, 1)


def test_it_prints_reasons_cost_and_how_many_nobody_read(make):
    rows = [make.row(verdict=True), make.row(verdict=True), make.row(verdict=False), a_row(make, "failed")]
    text = str(Ledger.build(rows, planned=5))
    for line in (
        "planned   5",
        "kept   2",
        "unopposed   2",
        "check:refusal   1",
        "agent:timeout   1",
        "not_played   1",
    ):
        assert line in "\n".join("   ".join(each.split()) for each in text.splitlines())
    assert "nobody read 2 of the 2 kept rows" in text
    assert "$0.0040" in text


def test_one_unknown_price_makes_the_cost_unknown(make):
    rows = [make.row(), make.row(usage={"agent": Usage(calls=1, usd=None)})]
    ledger = Ledger.build(rows)
    assert ledger.usd is None
    assert ledger.to_json()["usd"] is None
    assert "cost        unknown" in str(ledger)
