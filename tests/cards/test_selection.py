"""What the choice of candidates promises, against brute force."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whilesim.cards import selection
from whilesim.cards.selection import choose_candidates, spread
from whilesim.core.errors import InputError


def vectors_of(seed: int, n: int, d: int = 3) -> Any:
    """Directions, of which some are equal or opposite."""
    drawn = np.random.default_rng(seed).normal(size=(n, d)).round(seed % 3)
    drawn[(drawn == 0).all(axis=1)] = 1.0
    return drawn


def between(vectors: Any, left: Any, right: Any) -> Any:
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.linalg.norm(unit[list(left)][:, None] - unit[list(right)][None], axis=2)


def least(vectors: Any, chosen: Any) -> float:
    return min((float(between(vectors, [a], [b])[0, 0]) for a, b in combinations(chosen, 2)), default=2.0)


@settings(deadline=None)
@given(st.integers(0, 10_000), st.lists(st.integers(0, 5), min_size=1, max_size=12))
def test_one_of_each_group_is_chosen_and_none_is_closer_than_the_first_ones(seed: int, groups: list[int]) -> None:
    vectors = vectors_of(seed, len(groups))
    chosen = choose_candidates(vectors, groups)
    labels = list(dict.fromkeys(groups))
    assert [groups[index] for index in chosen] == labels
    assert least(vectors, chosen) >= least(vectors, [groups.index(label) for label in labels]) - 2e-6


def test_the_choice_makes_up_most_of_what_the_best_one_could() -> None:
    made, possible = 0.0, 0.0
    for seed in range(20):
        vectors, groups = np.random.default_rng(seed).normal(size=(12, 3)), [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
        first = least(vectors, (0, 3, 6, 9))
        best = max(least(vectors, some) for some in product(*(range(at, at + 3) for at in (0, 3, 6, 9))))
        made += least(vectors, choose_candidates(vectors, groups)) - first
        possible += best - first
    assert made > 0.6 * possible


def test_the_same_vectors_give_the_same_choice_whatever_their_last_bits() -> None:
    vectors = np.random.default_rng(3).normal(size=(80, 16))
    groups = [at // 4 for at in range(80)]
    shaken = vectors * (1 + 1e-12 * np.random.default_rng(4).normal(size=vectors.shape))
    assert choose_candidates(vectors, groups).tolist() == choose_candidates(3.0 * shaken, groups).tolist()


def test_ties_go_to_the_lower_index() -> None:
    alike = np.ones((6, 2))
    assert choose_candidates(alike, [0, 0, 1, 1, 2, 2]).tolist() == [0, 2, 4]


def test_groups_need_not_stand_together() -> None:
    assert choose_candidates(np.eye(4), [7, 3, 7, 3]).tolist() in ([0, 1], [0, 3], [2, 1], [2, 3])


def test_blocks_keep_the_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "_AT_ONCE", 3)
    vectors, groups = np.random.default_rng(5).normal(size=(40, 4)), [at // 4 for at in range(40)]
    chosen = choose_candidates(vectors, groups)
    assert [groups[index] for index in chosen] == list(range(10))
    assert least(vectors, chosen) >= least(vectors, range(0, 40, 4)) - 2e-6


def test_spread_says_how_far_the_nearest_ones_are() -> None:
    square = np.array([[1, 0], [0, 1], [-1, 0], [0, -3]])
    assert spread(square) == {"least": pytest.approx(2**0.5, abs=1e-6), "mean": pytest.approx(2**0.5, abs=1e-6)}
    assert spread(square[:1]) == {"least": None, "mean": None}


def test_nothing_to_choose_from_is_nothing_chosen() -> None:
    assert choose_candidates(np.empty((0, 4)), []).tolist() == []
    assert spread(np.empty((0, 4))) == {"least": None, "mean": None}


@pytest.mark.parametrize("wrong", [[[1.0, 0.0], [0.0, 0.0]], [[1.0, 0.0], [np.nan, 1.0]], [[1.0], [np.inf]]])
def test_a_vector_without_a_direction_is_refused(wrong: Any) -> None:
    for call in (lambda v: choose_candidates(v, [0, 1]), spread):
        with pytest.raises(InputError, match="vector 1 is zero or not finite"):
            call(np.array(wrong))


def test_each_vector_needs_its_group() -> None:
    with pytest.raises(InputError, match=r"1 groups were given for 3 vectors\. Give each vector its group"):
        choose_candidates(np.eye(3), [0])
