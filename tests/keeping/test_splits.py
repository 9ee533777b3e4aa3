"""Splits: no situation and no twin on both sides."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from whilesim.core.errors import InputError
from whilesim.keeping.splits import near_duplicates, split_rows


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


def test_each_part_gets_its_share_of_every_value_of_an_axis(make):
    values = ["get_order"] * 80 + ["cancel_order"] * 15 + ["transfer_to_human"] * 5
    rows = [make.row(card=f"s{i:03}", values={"clause": f"c{i}", "tool": tool}) for i, tool in enumerate(values)]
    parts = split_rows(rows, {"train": 0.8, "test": 0.2}, by="tool")
    assert [sum(values[i] == name for i in parts["test"]) for name in dict.fromkeys(values)] == [16, 3, 1]
    with pytest.raises(InputError, match="row 's000/r0' has no axis 'colour' to split by"):
        split_rows(rows, {"train": 1.0}, by="colour")


def test_rows_that_nearly_repeat_another_are_found_and_others_are_not(make):
    pytest.importorskip("datasketch")
    from whilesim.chat.messages import Message
    from whilesim.keeping.simulation import Simulation

    said = " ".join(f"word{i}" for i in range(60))

    def row(card, text):
        return make.row(card=card, messages=make.talk(Message(role="assistant", content=text)), verdict=True)

    rows = [row("s1", said), row("s2", said + " indeed"), row("s3", " ".join(reversed(said.split()))), row("s4", said)]
    assert near_duplicates(rows) == {"s2/r0": "s1/r0", "s4/r0": "s1/r0"}
    assert near_duplicates(rows, 1.0) == {"s4/r0": "s1/r0"}
    part = Simulation(rows).distinct()
    assert [r.id for r in part] == ["s1/r0", "s3/r0"]
    assert part.manifest.notes == ["2 of 4 rows nearly repeated another"]
    with pytest.raises(InputError, match="threshold=0 is no likeness"):
        near_duplicates(rows, 0)
