"""Splits: no situation and no twin on both sides."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from whilesim.core.errors import InputError
from whilesim.keeping.splits import split_rows


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.tuples(st.integers(0, 9), st.booleans(), st.integers(1, 3)), min_size=3, max_size=24),
    st.sampled_from([{"train": 0.9, "test": 0.1}, {"train": 0.5, "val": 0.25, "test": 0.25}, {"train": 1.0}]),
    st.integers(0, 5),
)
def test_cards_twins_and_equal_situations_stay_together(make, cards, shares, seed):
    rows = []
    for i, (value, twin, rollouts) in enumerate(cards):
        for r in range(rollouts):
            rows.append(make.row(card=f"s{i}", rollout=r, values={"clause": f"c{value}"}))
            if twin:
                values = {"clause": f"c{value}", "world_state": f"missing{i}"}
                rows.append(make.row(card=f"s{i}t", rollout=r, twin_of=f"s{i}", values=values))
    groups = len({value for value, _, _ in cards})
    if groups < len(shares):
        with pytest.raises(InputError, match="Ask for fewer"):
            split_rows(rows, shares, seed)
        return
    parts = split_rows(rows, shares, seed)
    assert sorted(i for part in parts.values() for i in part) == list(range(len(rows)))
    assert all(parts.values())
    where = {}
    for name, part in parts.items():
        for i in part:
            assert where.setdefault(rows[i].situation["clause"], name) == name
            assert where.setdefault(rows[i].twin_of or rows[i].card_id, name) == name
    assert parts == split_rows(rows, shares, seed)


def test_shares_are_met_as_nearly_as_groups_allow(make):
    rows = [make.row(card=f"s{i}", rollout=r, values={"clause": f"c{i}"}) for i in range(100) for r in range(2)]
    parts = split_rows(rows, {"train": 0.8, "test": 0.2}, seed=3)
    assert len(parts["train"]) == 160
    assert len(parts["test"]) == 40


@pytest.mark.parametrize(
    ("shares", "words"),
    [
        ({"train": 0.9}, "sum to 1"),
        ({}, "sum to 1"),
        ({"train": 1.5, "test": -0.5}, "above 0"),
        ({"train set": 1.0}, "'train set' cannot be a split's name"),
    ],
)
def test_shares_that_make_no_sense_are_refused(make, shares, words):
    with pytest.raises(InputError, match=words):
        split_rows([make.row()], shares)
