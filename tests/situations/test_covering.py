"""Every promise of a covering, by a verifier that shares no code with it."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from verifier import allowed, covered, every_row, feasible, tuples_in

from whilesim.core.errors import InputError
from whilesim.core.seeds import derive
from whilesim.situations.axes import Axis, Rule, forbid
from whilesim.situations.covering import Covering, Wish, cover
from whilesim.situations.skeleton import exact, squares

S1 = (16, 13, 10, 5, 5, 5)


def axes_of(*sizes: int) -> dict[str, list[str]]:
    return {f"axis{a}": [f"a{a}v{v}" for v in range(size)] for a, size in enumerate(sizes)}


def scattered(sizes: tuple[int, ...], share: float, seed: int, first: float | None = None) -> list[Rule]:
    """Rules that forbid a share of the pairs of every two axes; of the first two, another share."""

    def rule(a: int, b: int, part: float) -> Rule:
        return forbid(f"axis{a}", f"axis{b}", lambda x, y: derive(seed, "rule", x, y) % 1000 < part * 1000)

    pairs = itertools.combinations(range(len(sizes)), 2)
    return [rule(a, b, share if first is None or (a, b) != (0, 1) else first) for a, b in pairs]


def hold(found: Covering, axes: dict[str, list[str]], strength: int, rules: Any = ()) -> None:
    """Check all that a covering says of itself against brute force."""
    wanted, seen = feasible(axes, strength, rules), covered(found.rows, strength)
    assert all(list(row) == list(axes) and allowed(row, rules) for row in found.rows)
    assert seen <= wanted
    assert (found.feasible, found.covered) == (len(wanted), len(seen))
    assert {frozenset(cells) for cells in found.missing} == wanted - seen
    assert {frozenset(cells) for cells in found.infeasible} == feasible(axes, strength) - wanted
    assert found.covered <= found.reachable <= found.feasible
    assert found.proven_optimal == (seen == wanted and len(found.rows) == found.bound)
    assert len(found.rows) >= found.bound or seen < wanted


sizes_of_axes = st.lists(st.integers(1, 6), min_size=1, max_size=5)


@settings(max_examples=40, deadline=None)
@given(sizes_of_axes, st.integers(2, 3), st.integers(0, 2**32))
def test_every_combination_meets(sizes: list[int], strength: int, seed: int) -> None:
    axes = axes_of(*sizes)
    found = cover(axes, strength, seed=seed)
    hold(found, axes, min(strength, len(sizes)))
    assert not found.missing
    assert not found.infeasible


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 5), min_size=2, max_size=4), st.integers(2, 3), st.integers(0, 2**32), st.data())
def test_whatever_is_forbidden_the_rest_meets_and_the_impossible_is_listed(
    sizes: list[int], strength: int, seed: int, data: st.DataObject
) -> None:
    axes = axes_of(*sizes)
    rules = []
    for at in range(data.draw(st.integers(1, 3))):
        names = data.draw(st.lists(st.sampled_from(list(axes)), min_size=1, max_size=3, unique=True))
        share = data.draw(st.integers(1, 6))
        rules.append(forbid(*names, lambda *cells, at=at, share=share: derive(seed, at, *cells) % 10 < share))
    if not any(True for _ in every_row(axes, rules)):
        with pytest.raises(InputError, match="leave no situation"):
            cover(axes, strength, rules, seed=seed)
        return
    found = cover(axes, strength, rules, seed=seed)
    hold(found, axes, min(strength, len(sizes)), rules)
    assert not found.missing


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(2, 5), min_size=2, max_size=5), st.integers(0, 99), st.integers(1, 40), st.integers(0, 6))
def test_fixed_rows_come_first_and_count(sizes: list[int], seed: int, rows: int, kept: int) -> None:
    axes = axes_of(*sizes)
    fixed = list(cover(axes, seed=seed).rows[::2])[:kept]
    found = cover(axes, fixed=fixed, seed=seed + 1)
    hold(found, axes, 2)
    assert not found.missing
    assert list(found.rows[: len(fixed)]) == fixed
    assert len(found.rows) <= len(fixed) + len(cover(axes, seed=seed).rows) + 2
    if rows >= max(1, len(fixed)):
        part = cover(axes, fixed=fixed, rows=rows, seed=seed)
        hold(part, axes, 2)
        assert list(part.rows[: len(fixed)]) == fixed


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(2, 4), min_size=1, max_size=4), st.integers(1, 60), st.integers(0, 99))
def test_rows_are_as_many_as_asked_for_and_different(sizes: list[int], rows: int, seed: int) -> None:
    axes = axes_of(*sizes)
    rules = scattered(tuple(sizes), 0.15, seed)
    there = len(list(every_row(axes, rules)))
    if not there:
        return
    found = cover(axes, forbid=rules, rows=rows, seed=seed)
    hold(found, axes, min(2, len(sizes)), rules)
    assert len(found.rows) == min(rows, there)
    assert len({tuple(row.values()) for row in found.rows}) == len(found.rows)
    assert (f"only {there} different situations" in " ".join(found.notes)) == (rows > there)


@pytest.mark.parametrize(
    ("sizes", "strength", "most"),
    [
        (S1, 2, 208),
        ((30, 20, 10, 5, 5, 5), 2, 600),
        ((60, 50, 10, 5, 5, 5), 2, 3_000),
        ((10,) * 12, 2, 118),
        ((4,) * 20, 2, 28),
        (S1, 3, 2_080),
        ((15, 15, 15, 14, 5, 4), 2, 225),
        ((6,) * 6, 2, 44),
        ((6, 6, 6, 6, 5, 4), 3, 240),
        ((12, 12, 12, 4), 2, 144),
        ((20, 20, 20, 20, 20, 5), 2, 400),
        ((40, 38, 37, 3), 2, 1_520),
    ],
)
def test_coverings_are_as_small_as_known(sizes: tuple[int, ...], strength: int, most: int) -> None:
    axes = axes_of(*sizes)
    found = cover(axes, strength)
    assert len(found.rows) <= most
    assert covered(found.rows, strength) == feasible(axes, strength)


@pytest.mark.parametrize("q", [2, 3, 4, 8, 9, 25, 37, 49, 64, 81])
def test_squares_are_orthogonal_in_every_field(q: int) -> None:
    rows = squares([q] * min(q + 1, 5))
    assert len(rows) == q * q
    for a, b in itertools.combinations(range(rows.shape[1]), 2):
        assert len({(int(row[a]), int(row[b])) for row in rows}) == q * q


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 16), min_size=2, max_size=6), st.integers(2, 3))
def test_algebra_never_leaves_two_of_the_largest_axes_apart(sizes: list[int], strength: int) -> None:
    sizes.sort(reverse=True)
    for rows in exact(sizes, min(strength, len(sizes))):
        assert len({tuple(row[:strength]) for row in rows.tolist()}) == len(rows)
        assert (rows < np.array(sizes)).all()


@pytest.mark.parametrize("seed", range(2))
def test_with_pairs_forbidden_the_flow_bound_is_met(seed: int) -> None:
    rules = scattered(S1, 0.055, seed, first=0.22)
    found = cover(axes_of(*S1), forbid=rules)
    hold(found, axes_of(*S1), 2, rules)
    assert found.proven_optimal


def test_few_rows_cover_as_much_as_so_few_can() -> None:
    found = cover(axes_of(*S1), rows=150)
    assert (len(found.rows), found.covered, found.reachable, found.feasible) == (150, 1090, 1090, 1158)
    assert not found.proven_optimal


def test_a_prefix_covers_nearly_as_much_as_so_few_rows_can() -> None:
    rows = cover(axes_of(*S1)).rows
    assert len(covered(rows[:150], 2)) >= 1079
    for count in (25, 50, 100):
        most = sum(min(count, a * b) for a, b in itertools.combinations(S1, 2))
        assert len(covered(rows[:count], 2)) >= 0.94 * most


def test_rows_beyond_the_covering_begin_another_round() -> None:
    axes = axes_of(6, 5, 4, 3)
    found = cover(axes, rows=90)
    assert len({tuple(row.values()) for row in found.rows}) == 90
    times = [sum(cells in tuples_in(row, 2) for row in found.rows) for cells in feasible(axes, 2)]
    assert min(times) >= 2


def of_the_kind(row: Any) -> bool:
    return row["axis3"] in ("a3v0", "a3v1") and row["axis2"] != "a2v0"


@pytest.mark.parametrize("rows", [None, 30, 200])
@pytest.mark.parametrize("share", [0.0, 0.35, 1.0])
def test_a_wish_turns_rows_toward_its_share_and_never_costs_a_pair(rows: int | None, share: float) -> None:
    axes, rules = axes_of(8, 7, 5, 4, 3), scattered((8, 7, 5, 4, 3), 0.03, 5)
    plain, leaning = cover(axes, 2, rules, rows=rows), cover(axes, 2, rules, rows=rows, wish=Wish(share, of_the_kind))
    hold(leaning, axes, 2, rules)
    assert (leaning.covered, len(leaning.rows)) == (plain.covered, len(plain.rows))
    far, near = (abs(sum(map(of_the_kind, one.rows)) / len(one.rows) - share) for one in (plain, leaning))
    assert near <= far
    assert near < 0.01 or rows != 200 or share in (0.0, 1.0)


@settings(max_examples=12, deadline=None)
@given(st.lists(st.integers(2, 4), min_size=2, max_size=4), st.integers(1, 30), st.floats(0, 1), st.integers(0, 99))
def test_a_wish_changes_neither_what_is_covered_nor_fixed_rows(
    sizes: list[int], rows: int, share: float, seed: int
) -> None:
    axes = axes_of(*sizes)
    fixed = list(cover(axes, seed=seed).rows[1:3])[: rows - 1]
    plain = cover(axes, fixed=fixed, rows=rows, seed=seed)
    wish = Wish(share, lambda row: derive(seed, *row.values()) % 4 / 3)
    found = cover(axes, fixed=fixed, rows=rows, seed=seed, wish=wish)
    hold(found, axes, 2)
    assert found.covered >= plain.covered
    assert (len(found.rows), list(found.rows[: len(fixed)])) == (len(plain.rows), fixed)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=5), st.integers(2, 3), st.integers(0, 99))
def test_the_second_method_is_completed(sizes: list[int], strength: int, seed: int) -> None:
    axes = axes_of(*sizes)
    rules = scattered(tuple(sizes), 0.1, seed)
    if not any(True for _ in every_row(axes, rules)):
        return
    found = cover(axes, strength, rules, method="allpairspy", seed=seed)
    hold(found, axes, min(strength, len(sizes)), rules)
    assert not found.missing


def test_what_the_second_method_loses_is_told() -> None:
    found = cover(axes_of(6, 6, 6, 6), 3, method="allpairspy")
    assert not found.missing
    assert "allpairspy stopped" in found.notes[0]


def test_a_value_that_no_row_can_hold_is_listed_and_told() -> None:
    axes = axes_of(3, 3, 2)
    found = cover(axes, forbid=[forbid("axis0", lambda value: value == "a0v1")])
    hold(found, axes, 2, [forbid("axis0", lambda value: value == "a0v1")])
    assert found.notes == ("no situation has axis0 'a0v1': the rules forbid it.",)


def test_fewer_axes_than_the_strength_are_covered_by_themselves() -> None:
    found = cover({"only": ["x", "y", "z"]})
    assert sorted(row["only"] for row in found.rows) == ["x", "y", "z"]
    assert (found.strength, found.proven_optimal) == (1, True)
    assert found.notes == ("with 1 axes, strength is 1.",)
    assert len(cover(axes_of(3, 2), 3).rows) == 6


def test_a_fixed_row_gets_a_value_where_it_lacks_an_axis() -> None:
    rules = [forbid("axis0", "axis1", lambda x, y: x == "a0v0" and y != "a1v1")]
    found = cover(axes_of(3, 3, 3), forbid=rules, fixed=[{"axis0": "a0v0"}])
    assert found.rows[0]["axis0"] == "a0v0"
    assert found.rows[0]["axis1"] == "a1v1"


def test_axes_may_come_as_axes() -> None:
    axes = [Axis("left", ("a", "b")), Axis("right", ("c", "d"))]
    assert len(cover(axes).rows) == 4
    assert list(cover(axes).rows[0]) == ["left", "right"]


def test_the_seed_decides_and_nothing_else() -> None:
    axes, rules = axes_of(7, 6, 5, 4), scattered((7, 6, 5, 4), 0.1, 3)
    assert cover(axes, forbid=rules, seed=1).rows == cover(axes, forbid=rules, seed=1).rows
    assert cover(axes, forbid=rules, seed=1).rows != cover(axes, forbid=rules, seed=2).rows


def test_every_process_gives_the_same_rows() -> None:
    code = (
        "from whilesim.situations.covering import Wish, cover\n"
        "from whilesim.situations.axes import forbid\n"
        "axes = {n: [n + str(i) for i in range(s)] for n, s in zip('abcd', (7, 6, 5, 4))}\n"
        "rule = forbid('a', 'b', lambda x, y: (int(x[1]) + int(y[1])) % 4 == 0)\n"
        "print(cover(axes, forbid=[rule], rows=50, wish=Wish(0.5, lambda row: row['c'] == 'c0')).rows)\n"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(runs) == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"axes": {}}, "there is no axis"),
        ({"axes": {"a": []}}, "axis 'a' has no value"),
        ({"axes": {"a": ["x", "x"]}}, "axis 'a' has a value twice"),
        ({"axes": [Axis("a", ("x",)), Axis("a", ("y",))]}, "an axis stands twice"),
        ({"strength": 4}, "strength=4: a covering meets pairs or triples. Type 2 or 3"),
        ({"rows": 0}, "rows=0 is fewer than the 1"),
        ({"rows": 1, "fixed": [{"a": "x"}, {"a": "y"}]}, "rows=1 is fewer than the 2"),
        ({"method": "pict"}, "method='pict' is none of ours. Type 'auto' or 'allpairspy'"),
        ({"fixed": [{"c": "x"}]}, "fixed row 0 has 'c', which is no axis or value here"),
        ({"fixed": [{"a": "w"}]}, "fixed row 0 has 'a=w', which is no axis or value here"),
        ({"forbid": [forbid("a", "c", lambda a, c: True)]}, "names 'c', which is no axis. Type one of"),
        ({"forbid": [forbid("a", lambda a, b: True)]}, "its predicate must take one value|Its predicate must take"),
        ({"forbid": [forbid("a", lambda a: True)]}, "the rules leave no situation that can happen"),
        (
            {"forbid": [forbid("a", lambda a: a == "x")], "fixed": [{"a": "x"}]},
            "fixed row 0.*cannot happen by the rules",
        ),
    ],
)
def test_what_cannot_work_is_said(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        cover(**{"axes": {"a": ["x", "y"], "b": ["z", "w"]}, **given})


def test_a_rule_too_large_to_tabulate_is_refused() -> None:
    with pytest.raises(InputError, match="Forbid over fewer axes at a time"):
        cover(axes_of(200, 200, 200), forbid=[forbid("axis0", "axis1", "axis2", lambda x, y, z: False)])
