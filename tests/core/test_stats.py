"""Rates, intervals and tests, against scipy, brute force and values worked out by hand."""

from __future__ import annotations

import math
from itertools import combinations, product

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from whilesim.core.errors import InputError
from whilesim.core.stats import (
    Estimate,
    bootstrap,
    fisher,
    kappa,
    mcnemar,
    minimum_detectable_effect,
    pass_at,
    pass_at_k,
    pass_hat_k,
    permutation,
    proportion,
    sample_size,
    wilson,
)


@pytest.mark.parametrize(
    ("n", "c", "k"), [(n, c, k) for n in range(1, 7) for c in range(n + 1) for k in range(1, n + 1)]
)
def test_pass_at_k_and_pass_hat_k_are_the_share_of_all_draws_of_k_tries(n: int, c: int, k: int) -> None:
    draws = list(combinations([True] * c + [False] * (n - c), k))
    assert pass_at_k(n, c, k) == pytest.approx(sum(map(any, draws)) / len(draws))
    assert pass_hat_k(n, c, k) == pytest.approx(sum(map(all, draws)) / len(draws))


@pytest.mark.parametrize(("n", "c", "k"), [(4, 5, 1), (4, -1, 1), (4, 2, 5), (4, 2, 0), (0, 0, 1)])
def test_a_k_that_the_tries_cannot_answer_is_refused(n: int, c: int, k: int) -> None:
    with pytest.raises(InputError, match="leave it out, and count it"):
        pass_at_k(n, c, k)
    with pytest.raises(InputError, match="c runs from 0 to n"):
        pass_hat_k(n, c, k)


@pytest.mark.parametrize(
    ("a", "b", "p"),
    [((12, 40), (2, 40), 0.0064), ((12, 40), (7, 40), 0.293), ((7, 40), (2, 40), 0.154)],
)
def test_fisher_gives_the_published_p_values(a: tuple[int, int], b: tuple[int, int], p: float) -> None:
    found = fisher(*a, *b)
    assert found.p == pytest.approx(p, abs=0.0005)
    assert found.difference == pytest.approx(b[0] / 40 - a[0] / 40)


@given(st.integers(1, 300), st.data())
@settings(max_examples=30, deadline=None)
def test_wilson_solves_its_own_equation(n: int, data: st.DataObject) -> None:
    c = data.draw(st.integers(0, n))
    low, high = wilson(c, n)
    z = scipy.stats.norm.isf(0.025)
    assert 0 <= low <= c / n <= high <= 1
    for edge in {low, high} - {0.0, 1.0}:
        assert abs(c / n - edge) == pytest.approx(z * math.sqrt(edge * (1 - edge) / n), abs=1e-9)


def test_a_share_of_nothing_is_not_zero() -> None:
    assert proportion(0, 0).value is None
    assert str(proportion(0, 0)) == "n/a (nothing to count)"
    assert str(proportion(12, 40)) == "0.30 [0.18..0.45]"
    with pytest.raises(InputError, match="n=0 tries"):
        wilson(0, 0)


@pytest.mark.parametrize(("only_a", "only_b", "p"), [(0, 5, 0.0625), (3, 9, 0.1460), (4, 4, 1.0), (0, 0, 1.0)])
def test_mcnemar_counts_only_the_tasks_that_one_passed(only_a: int, only_b: int, p: float) -> None:
    found = mcnemar(only_a, only_b, pairs=40)
    assert found.p == pytest.approx(p, abs=5e-5)
    assert found.difference == pytest.approx((only_b - only_a) / 40)


@pytest.mark.parametrize("counts", [(-1, 2, 40), (30, 11, 40)])
def test_mcnemar_refuses_counts_that_cannot_be(counts: tuple[int, int, int]) -> None:
    with pytest.raises(InputError, match="cannot be: counts are 0 or more"):
        mcnemar(*counts[:2], pairs=counts[2])


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=9))
@settings(max_examples=40, deadline=None)
def test_a_small_permutation_test_is_all_sign_patterns(pairs: list[tuple[int, int]]) -> None:
    gaps = [b - a for a, b in pairs]
    sums = [abs(sum(s * g for s, g in zip(signs, gaps, strict=True))) for signs in product((1, -1), repeat=len(gaps))]
    expected = sum(s >= abs(sum(gaps)) for s in sums) / len(sums)
    assert permutation([a for a, _ in pairs], [b for _, b in pairs]).p == pytest.approx(expected)


def test_a_large_permutation_test_agrees_with_mcnemar_and_is_never_zero() -> None:
    a, b = [0] * 30 + [1] * 10, [1] * 22 + [0] * 18
    drawn = permutation(a, b, seed=1)
    assert drawn.p == pytest.approx(mcnemar(10, 22).p, abs=0.01)
    assert drawn == permutation(a, b, seed=1)
    assert drawn.p != permutation(a, b, seed=2).p
    assert 0 < permutation([0.0] * 60, [1.0] * 60).p < 1e-4


@pytest.mark.parametrize(("a", "b"), [([], []), ([1.0], [1.0, 0.0])])
def test_paired_values_must_pair(a: list[float], b: list[float]) -> None:
    with pytest.raises(InputError, match="one value per task"):
        permutation(a, b)


def test_values_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(InputError, match="leave the task out"):
        bootstrap([0.5, math.nan])
    with pytest.raises(InputError, match="NaN or infinite"):
        permutation([0.5], [math.inf])


def test_a_bootstrap_over_single_values_has_the_textbook_width() -> None:
    values = [i % 5 == 0 for i in range(500)]
    found = bootstrap(values)
    half = 1.96 * math.sqrt(0.2 * 0.8 / 500)
    assert found.value == pytest.approx(0.2)
    assert found.low == pytest.approx(0.2 - half, abs=0.006)
    assert found.high == pytest.approx(0.2 + half, abs=0.006)


def test_values_that_stand_together_are_drawn_together() -> None:
    values = [float(i // 10 % 2) for i in range(400)]
    alone, grouped = bootstrap(values), bootstrap(values, [i // 10 for i in range(400)])
    assert alone.low is not None
    assert grouped.low is not None
    assert grouped.n == 40
    assert 0.5 - grouped.low == pytest.approx((0.5 - alone.low) * math.sqrt(10), rel=0.2)
    with pytest.raises(InputError, match="one label per value"):
        bootstrap(values, ["one"])


def test_an_interval_is_the_same_everywhere_and_another_seed_gives_another() -> None:
    values = [(i * 7 % 13) / 13 for i in range(60)]
    assert bootstrap(values, seed=3) == bootstrap(values, seed=3)
    assert bootstrap(values, seed=3).low != bootstrap(values, seed=4).low
    found = bootstrap(values, seed=3)
    assert (found.value, found.low, found.high) == pytest.approx((0.451282, 0.378205, 0.526923), abs=1e-6)


def test_ninety_five_in_a_hundred_intervals_hold_the_truth() -> None:
    rng, held = np.random.default_rng(5), 0
    for _ in range(200):
        found = bootstrap((rng.random(80) < 0.3).astype(float).tolist())
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 0.3 <= found.high
    assert 180 <= held <= 198


def test_where_all_agree_the_interval_still_has_a_width() -> None:
    found = bootstrap([1.0] * 10)
    assert (found.value, found.low) == (1.0, pytest.approx(wilson(10, 10)[0]))
    assert "all groups agree" in found.why
    assert bootstrap([0.4]).low is None
    assert "no spread" in str(bootstrap([0.4]))
    assert bootstrap([]).value is None


def test_pass_at_leaves_out_and_counts_tasks_with_too_few_tries() -> None:
    found = pass_at([(2, 1), (2, 2), (1, 1), (2, 0)])
    assert found.at[1].value == pytest.approx((0.5 + 1 + 1 + 0) / 4)
    assert found.at[2].value == pytest.approx(2 / 3)
    assert found.hat[2].value == pytest.approx(1 / 3)
    assert (found.at[1].n, found.at[2].n) == (4, 3)
    assert found.left_out == {1: 0, 2: 1}
    line = str(found)
    assert line.startswith("pass@1 0.62 [")
    assert "| pass@2 0.67 [" in line
    assert line.endswith("1 with fewer than 2 tries left out")
    assert 1 not in found.hat


def test_pass_at_of_nothing_says_so() -> None:
    assert str(pass_at([])) == "pass@k n/a (no task was tried)"
    assert str(pass_at([(0, 0)])) == "pass@k n/a (no task was tried)"


@pytest.mark.parametrize(("tries", "ks"), [(1, [1]), (2, [1, 2]), (3, [1, 2, 3]), (5, [1, 2, 4, 5])])
def test_pass_at_doubles_k_up_to_all_tries(tries: int, ks: list[int]) -> None:
    found = pass_at([(tries, 1), (tries, 0)])
    assert list(found.at) == ks
    assert list(found.hat) == ks[1:]


def test_pass_at_handles_ten_thousand_tasks_with_eight_tries() -> None:
    found = pass_at([(8, i % 9) for i in range(10_000)])
    assert list(found.at) == [1, 2, 4, 8]
    assert found.at[1].value == pytest.approx(0.5, abs=0.001)


def test_kappa_of_a_worked_table() -> None:
    a = ["yes"] * 25 + ["no"] * 25
    b = ["yes"] * 20 + ["no"] * 5 + ["yes"] * 10 + ["no"] * 15
    found = kappa(a, b)
    assert found.value == pytest.approx(0.4)  # agreement 0.70, by chance 0.50
    assert found.low == pytest.approx((wilson(35, 50)[0] - 0.5) / 0.5)
    assert found.n == 50


def test_kappa_knows_what_it_cannot_know() -> None:
    assert kappa([True] * 9, [True] * 9) == Estimate(None, n=9, why="both gave one and the same label to everything")
    assert kappa([True] * 9, [True] * 8 + [False]).value == 0
    assert kappa([], []).value is None
    perfect = kappa([True, False] * 5, [True, False] * 5)
    assert perfect.value == 1
    assert perfect.low is not None
    assert perfect.low < 0.7
    with pytest.raises(InputError, match="one label from each rater"):
        kappa([True], [])


def test_a_planned_comparison_needs_what_the_article_needed() -> None:
    assert sample_size(0.30, 0.175) == 181
    assert sample_size(0.175, 0.30) == 181


@given(st.floats(0.02, 0.9), st.integers(30, 2000))
@settings(max_examples=25, deadline=None)
def test_the_smallest_gain_that_can_be_told_needs_just_that_many_tasks(p1: float, n: int) -> None:
    found = minimum_detectable_effect(p1, n)
    if found.value is None:
        assert sample_size(p1, 1.0) > n
    else:
        assert sample_size(p1, min(1.0, p1 + found.value)) <= n
        assert sample_size(p1, p1 + found.value * 0.97) >= n


def test_too_few_tasks_can_tell_no_gain() -> None:
    assert "cannot tell any gain" in minimum_detectable_effect(0.9, 10).why
    assert minimum_detectable_effect(1, 10).value is None


@pytest.mark.parametrize("wrong", [(0.3, 0.3), (1.2, 0.3), (0.3, -0.1), (math.nan, 0.3)])
def test_rates_that_cannot_be_planned_for_are_refused(wrong: tuple[float, float]) -> None:
    with pytest.raises(InputError, match="rates lie from 0 to 1 and differ"):
        sample_size(*wrong)
