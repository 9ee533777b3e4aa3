"""A little of the fuzzing in every run; ``python tests/fuzz.py --cases 20000`` does more."""

from __future__ import annotations

from typing import Any

import fuzz
import pytest
from hypothesis import HealthCheck, given, settings

from whilesim.situations.policy import parse_policy

CASES = 450


@pytest.mark.fuzz
@pytest.mark.parametrize("aim", fuzz.TARGETS, ids=lambda aim: aim.name)
def test_a_door_keeps_its_promise_whatever_comes(aim: fuzz.Target) -> None:
    @settings(
        max_examples=round(CASES * aim.share),
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(aim.inputs)
    def hold(given_: Any) -> None:
        aim.hold(given_.value)

    hold()


def test_the_shares_are_a_whole() -> None:
    assert sum(aim.share for aim in fuzz.TARGETS) == pytest.approx(1)


def test_a_case_that_takes_too_long_is_seen_inside_a_regular_expression() -> None:
    import re

    with pytest.raises(fuzz.Slow, match="processor time"), fuzz.quick(0.05):
        re.match(r"(?:a|a)*b", "a" * 40)


def test_a_failure_is_counted_once_with_its_shortest_input() -> None:
    def hold(number: int) -> None:
        assert number < 0 or number % 3, "a multiple"

    from hypothesis import strategies as st

    count = fuzz.attack(fuzz.Target("numbers", st.integers(0, 99).map(fuzz.Given), hold, 1.0), 60, 1)
    [(kind, (times, shortest, where))] = count.kinds.items()
    assert kind.startswith("AssertionError in test_fuzz.py")
    assert times > 1
    assert len(shortest) == 1
    assert "a multiple" in where


@pytest.mark.fuzz
@pytest.mark.parametrize(
    "unit",
    [
        "{",
        "{{",
        "{%",
        "<!--",
        "<script",
        "![",
        "a_",
        "1.",
        "𝟘",
        "```a\n",
        "(a. ",
        "<a1>\n</a1>\n",
        "!",
        "!../```",
        "# a" + 9_000 * " ",
    ],
)
def test_a_pattern_over_and_over_costs_by_its_length_and_not_by_its_square(unit: str) -> None:
    with fuzz.quick(6):  # of processor time; each of these took up to 18 s once, and takes 0.1 to 0.6 s
        parse_policy(unit * (fuzz.LONG // len(unit)))
