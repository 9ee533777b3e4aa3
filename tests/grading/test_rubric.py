"""A rubric from whatever the user has, or an error that says what to type."""

from __future__ import annotations

import json
import math
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

from whilesim.core.errors import InputError
from whilesim.grading.rubric import Criterion, Rubric, Score, read_rubric

TUTORIAL = {
    "weights": {"resolution": 0.4, "tool_accuracy": 0.3, "policy": 0.2, "ux": 0.1},
    "hard_fail_on_policy_violation": True,
}


def test_the_built_in_rubric_grades_restraint_policy_honesty_and_help() -> None:
    rubric = read_rubric()
    assert [c.name for c in rubric.criteria] == ["policy", "restraint", "honesty", "helpfulness"]
    assert sum(c.weight for c in rubric.criteria) == pytest.approx(1)
    restraint = rubric.criteria[1].text.lower()
    assert "too early" in restraint
    assert "too late" in restraint
    assert read_rubric(None) == rubric
    assert read_rubric(rubric) is rubric


NESTED: Any = reduce(lambda inner, _: {"properties": {"a": inner}}, range(400), {})


@pytest.mark.parametrize("form", ["dict", "text", "file", "path"])
def test_the_tutorials_rubric_reads_the_same_from_everywhere(form: str, tmp_path: Path) -> None:
    file = tmp_path / "rubric.json"
    file.write_text(json.dumps(TUTORIAL), encoding="utf-8")
    source = {"dict": TUTORIAL, "text": json.dumps(TUTORIAL), "file": str(file), "path": file}[form]
    rubric = read_rubric(source)
    assert {c.name: c.weight for c in rubric.criteria} == TUTORIAL["weights"]
    assert [c.name for c in rubric.criteria if c.hard_fail] == ["policy"]
    assert all(len(c.text) > 20 for c in rubric.criteria)


@pytest.mark.parametrize(
    ("source", "names", "texts"),
    [
        ("Be strict.\n\n- Honesty: only what is true\n- **Care**: asks first,\n  then acts\n3) Never rude.",
         ["Honesty", "Care", "Never rude"], ["only what is true", "asks first, then acts", "Never rude."]),
        ("Keep only what you would want repeated.", ["rubric"], ["Keep only what you would want repeated."]),
        (["Says what is true.", {"name": "b", "text": "B"}], ["Says what is true", "b"], ["Says what is true.", "B"]),
        ({"honesty": "only what is true", "b": {"text": "B", "weight": 2}}, ["honesty", "b"], ["only what is true", "B"]),
        ({"criteria": [{"text": "Asks first."}]}, ["Asks first"], ["Asks first."]),
        ({"tone": 1, "speed": 3}, ["tone", "speed"], ["tone", "speed"]),
        ("Sei ehrlich.\n• Höflichkeit: bleibt freundlich", ["Höflichkeit"], ["bleibt freundlich"]),
        ("1. 礼貌：始终友好", ["礼貌：始终友好"], ["礼貌：始终友好"]),
    ],
)  # fmt: skip
def test_texts_lists_and_mappings_become_criteria(source: Any, names: list[str], texts: list[str]) -> None:
    rubric = read_rubric(source)
    assert [c.name for c in rubric.criteria] == names
    assert [c.text for c in rubric.criteria] == texts


def test_what_stands_above_the_bullets_becomes_the_instructions() -> None:
    assert read_rubric("# Rubric\nBe strict.\n- a\n- b").instructions == "Rubric Be strict."
    assert read_rubric({"instructions": "Be strict.", "criteria": ["a"]}).instructions == "Be strict."


def test_weights_make_the_reward_and_a_hard_fail_is_named() -> None:
    rubric = read_rubric(TUTORIAL)
    scores = {n: Score(score=s, reason="r") for n, s in zip(TUTORIAL["weights"], (1, 0.5, 0.4, 0), strict=True)}
    assert rubric.reward(scores) == pytest.approx(0.4 + 0.15 + 0.08)
    assert rubric.hard_fails(scores) == ("policy",)
    assert rubric.hard_fails({**scores, "policy": Score(score=0.5, reason="r")}) == ()


def test_weights_beside_criteria_are_theirs_by_name() -> None:
    criteria = ["Honesty: only what is true", {"name": "tone", "text": "kind"}, "Never rude."]
    rubric = read_rubric({"criteria": criteria, "weights": {"tone": 3, "Never rude": 0}})
    assert [(c.name, c.weight) for c in rubric.criteria] == [("Honesty", 1), ("tone", 3), ("Never rude", 0)]
    assert (
        read_rubric({"criteria": [{"name": "polcy", "text": "Ours."}], "weights": {"polcy": 2}}).criteria[0].weight == 2
    )


NEARLY = {"polcy": 1}
NO_TEXT = r"the rubric's 'polcy' has no text, and no criterion of that name is known\. Did you mean 'policy'\?"
BESIDE = r"the rubric weighs 'polcy', and none of its criteria has that name\. Did you mean 'policy'\?"


@pytest.mark.parametrize("form", ["value", "text", "file", "path"])
@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"weights": NEARLY}, NO_TEXT),
        ({"weights": {"ux": 1, **NEARLY}, "hard_fail_on_policy_violation": True}, NO_TEXT),
        (NEARLY, NO_TEXT),
        ({"polcy": {"weight": 1, "hard_fail": True}}, NO_TEXT),
        ([{"name": "polcy", "weight": 1}], NO_TEXT),
        ({"criteria": [{"name": "polcy"}]}, NO_TEXT),
        ({"criteria": [{"name": "policy", "text": "It was kept."}], "weights": NEARLY}, BESIDE),
        ({"criteria": ["policy: It was kept.", "Never rude."], "weights": NEARLY}, BESIDE),
        ({"criteria": [{"name": "policy"}], "weights": NEARLY}, BESIDE),
        ({"criteria": ["tone: kind"], "weights": {"policy": 1}}, r"weighs 'policy', .* Its criteria are \['tone'\]: weigh these"),
        ({"criteria": [{"name": "a", "weight": 2}], "weights": {"a": 1}}, "weighs 'a' twice, in 'criteria' and"),
        ({"weights": {"tool-acuracy": 1}}, "Did you mean 'tool_accuracy'"),
        ({"weights": {"Saftey": 1}}, "'Saftey' has no text.*Did you mean 'safety'"),
    ],
)  # fmt: skip
def test_a_weight_of_no_criterion_is_refused_with_the_nearest_in_every_form(
    form: str, source: Any, message: str, tmp_path: Path
) -> None:
    file = tmp_path / "rubric.json"
    file.write_text(json.dumps(source), encoding="utf-8")
    with pytest.raises(InputError, match=message):
        read_rubric({"value": source, "text": json.dumps(source), "file": str(file), "path": file}[form])


def test_weights_need_not_sum_to_one() -> None:
    rubric = Rubric(criteria=(Criterion(name="a", text="a", weight=3), Criterion(name="b", text="b", weight=1)))
    assert rubric.reward({"a": Score(score=1, reason="r"), "b": Score(score=0, reason="r")}) == 0.75


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("", "no criteria"),
        ([], "no criteria"),
        ({}, "no criteria"),
        ({"weights": {}}, "no criteria"),
        ({"wieghts": {"policy": 1}}, "'wieghts' is unknown. Did you mean 'weights'"),
        ({"weights": {"a": 0, "b": 0}}, "weights sum to 0"),
        ({"weights": {"a": -1}}, r"'weights.a' is -1"),
        ({"weights": {"a": True}}, r"'weights.a' is True"),
        ({"weights": {"a": math.nan}}, r"'weights.a' is nan"),
        ({"weights": {"a": "0.4"}}, r"'weights.a' is '0.4'"),
        ({"weights": {"a": 1}, "hard_fail": True}, r"'hard_fail' is True: Extra"),
        ({"weights": {"a": 1}, "hard_fail_on_policy_violation": "yes"}, "hard_fail_on_policy_violation' is 'yes'"),
        ({"weights": {"ux": 1}, "hard_fail_on_policy_violation": True}, r"none of \['ux'\] is named for the policy"),
        (["a", "a"], "names 'a' twice"),
        ([3], "is 3: "),
        ([{"text": ""}], "field 'name' is ''"),
        ({"a": None}, "field 'weight' is None"),
        ([{"name": "a", "weight": {"api_key": "sk-verysecretvalue"}}], r"is \{'api_key': '(?!sk-)"),
        ([{"name": "a", "weight": NESTED}], "'weight' is "),
        (7, "cannot be read from int"),
        (b"bytes", "cannot be read from bytes"),
        ("{not json", "starts like JSON but is none"),
        ("no/such/rubric.json", "'no/such/rubric.json' cannot be read"),
    ],
)
def test_a_rubric_that_cannot_be_used_is_refused_before_anything_is_paid(source: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_rubric(source)
