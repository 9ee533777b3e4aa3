"""Checks on labelled real conversations: false alarms, hits, and errors planted in them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

import bench_checks as bench

pytestmark = pytest.mark.corpus


@pytest.fixture(scope="module")
def gold(shared):
    return bench.load(shared)


@pytest.mark.parametrize("schemas", [True, False])
def test_real_conversations_give_at_most_one_false_alarm_a_check(gold, schemas):
    conversations, labels, tools = gold
    for check, count in bench.score_gold(conversations, labels, tools if schemas else None).items():
        assert count["false"] <= (1 if check in bench.THREE else 0), check


def test_what_the_labels_call_clear_is_found(gold):
    score = bench.score_gold(*gold)
    assert all(score[check]["missed"] == 0 for check in bench.THREE)
    assert score["acted_without_confirmation"]["hit"] >= 4
    assert score["text_with_tool_call"]["missed"] == score["repeated_failing_call"]["missed"] == 0


def test_errors_planted_in_real_conversations_are_found(gold):
    conversations, _, tools = gold
    for kind, (found, planted) in bench.planted(conversations[::4], tools).items():
        assert found / planted >= 0.95, kind
