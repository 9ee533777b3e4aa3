"""Rows: what goes in comes out equal, and unknown things are refused."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import whilesim.keeping
from whilesim.chat.messages import Failure, Message, read_messages
from whilesim.chat.usage import Usage
from whilesim.core.errors import InputError
from whilesim.core.jsontext import dumps, loads
from whilesim.grading.checks.findings import Finding
from whilesim.grading.rubric import Score
from whilesim.grading.verdicts import Verdict
from whilesim.keeping.arrow import from_cells, from_dataset, to_cells, to_dataset, to_pandas
from whilesim.keeping.rows import Row
from whilesim.world.oracle import CallRule, Oracle

SCHEMA = Path(whilesim.keeping.__file__).with_name("row.schema.json")
TEXTS = st.text(st.characters(exclude_categories=()), max_size=12) | st.sampled_from(
    [
        "\ud800",
        "\udfff a",
        "\x00",
        "\u202eright to left",
        "אבג",
        "👩‍👩‍👧",
        "\r\n\u2028",
        '"\\',
        "",
        "NaN",
        "null",
        "[1]",
        "x" * 70_000,
    ]
)
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([2**63, 2**64, 2**70, -(2**70), 10**40])
    | st.floats()
    | TEXTS
)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3), max_leaves=8
)
OBJECTS = st.dictionaries(TEXTS, VALUES, max_size=4)


@st.composite
def rows(draw: Any, make: Any) -> Row:
    arguments = draw(OBJECTS.map(dumps) | TEXTS)
    said = (
        make.call("cancel_order", arguments, "call_1"),
        Message(role="tool", content=draw(TEXTS), tool_call_id="call_1"),
        Message(
            role="assistant",
            content=draw(TEXTS),
            reasoning=draw(TEXTS),
            finish=draw(st.sampled_from([None, "stop", "length"])),
        ),
    )
    findings = (Finding(check="refusal", message_index=2, quote=draw(TEXTS), reason=draw(TEXTS)),)
    row: Row = make.row(
        messages=make.talk(*said), final_state=draw(OBJECTS), findings=findings, planted=(draw(OBJECTS),)
    )
    scores = {draw(TEXTS): Score(score=0.3, reason="So so. 👩‍👩‍👧")}
    verdict = Verdict(keep=True, reward=draw(st.floats(0, 1)), scores=scores, reason=draw(TEXTS), rule="judge")
    return row.with_verdict(draw(st.sampled_from([None, verdict])))


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_a_hostile_row_comes_back_equal_from_json_lines_and_from_cells(make, data):
    row = data.draw(rows(make))
    line = dumps(row.to_json())
    line.encode("utf-8")
    assert "\n" not in line
    assert Row.from_json(loads(line)) == row
    assert dumps(Row.from_json(loads(line)).to_json()) == line
    assert from_cells(to_cells(row)) == row


@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_hostile_rows_come_back_equal_from_datasets_parquet_and_pandas(make, tmp_path_factory, data):
    import pyarrow.parquet as parquet
    from datasets import Dataset

    made = [data.draw(rows(make)), make.row(card="s002", twin_of="s001"), data.draw(rows(make))]
    dataset = to_dataset(made)
    assert list(from_dataset(dataset)) == made
    assert list(from_dataset(dataset.select([2, 0]))) == [made[2], made[0]]
    folder = tmp_path_factory.mktemp("rows")
    dataset.to_parquet(folder / "rows.parquet")
    assert [from_cells(c) for c in parquet.read_table(folder / "rows.parquet").to_pylist()] == made
    again = Dataset.from_parquet(str(folder / "rows.parquet"), cache_dir=str(folder / "cache"))
    assert again.features == dataset.features
    assert list(from_dataset(again)) == made
    dataset.save_to_disk(folder / "disk")
    assert list(from_dataset(Dataset.load_from_disk(folder / "disk"))) == made
    assert [Row.from_json(record) for record in to_pandas(made).to_dict("records")] == made


def test_the_first_level_of_hostile_values_survives(make):
    deep: Any = {"end": True}
    for _ in range(200):
        deep = {"in": [deep]}
    state = {"nan": float("nan"), "inf": [float("inf")], "big": 2**70, "pair": ("a", ()), 3: {"x"}, "deep": deep}
    row = make.row(final_state=state, messages=make.talk(Message(role="assistant", content="y" * 1_000_000)))
    assert row.final_state["nan"] is None
    assert row.final_state["inf"] == [None]
    assert row.final_state["big"] == 2**70
    assert row.final_state["pair"] == ["a", []]
    assert row.final_state["3"] == ["x"]
    assert list(from_dataset(to_dataset([row]))) == [row]


def test_no_rows_are_an_empty_dataset_with_the_same_columns(make):
    none, one = to_dataset([]), to_dataset([make.row()])
    assert (len(none), none.features) == (0, one.features)
    assert list(from_dataset(none)) == []


def test_a_dataset_is_read_from_a_file_that_is_gone_with_the_process(watched):
    rows = watched(20)
    dataset = to_dataset(rows)
    assert (len(dataset), rows.most <= 2) == (20, True)
    code = "from whilesim.keeping.arrow import to_dataset; print(to_dataset([]).cache_files[0]['filename'])"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    for path in (Path(told), Path(dataset.cache_files[0]["filename"])):
        assert Path(tempfile.gettempdir()) in path.parents
    assert not Path(told).parent.exists()


def test_a_line_is_read_as_its_object_is_and_a_number_beyond_floats_is_null(make):
    row = make.row(final_state={"a": 1.5, "b": 2})
    assert Row.from_text(dumps(row.to_json())) == row
    held = Row.from_text(dumps(row.to_json()).replace("1.5", "1e999"))
    assert held == make.row(final_state={"a": None, "b": 2})


def test_what_a_dataset_shows_is_what_the_row_holds(make):
    said = make.call("cancel_order", '{"order_id":"W1","amount":0.57,"at":[0.003989,-0.3],"empty":[],"none":null}')
    row = make.row(messages=make.talk(said), final_state={"orders": {"W1": {"total": 0.41, "tags": []}}})
    shown = to_dataset([row, make.row(card="s002")])[0]
    assert shown["messages"][2]["tool_calls"][0]["function"]["arguments"] == {
        "order_id": "W1",
        "amount": 0.57,
        "at": [0.003989, -0.3],
        "empty": [],
        "none": None,
    }
    assert shown["messages"][0] == {"role": "system", "content": row.messages[0]["content"]}
    assert shown["tools"] == row.tools
    assert shown["final_state"] == row.final_state
    assert shown["verdict"] is None
    assert shown["failed_calls"] == []


def test_arguments_are_canonical_where_they_are_an_object_and_untouched_elsewhere(make):
    for given_, stored in [
        ('{ "b":1,\n"a":[2,3]}', '{"b": 1, "a": [2, 3]}'),
        ('{"a": 1', '{"a": 1'),
        ('{"a": NaN}', '{"a": NaN}'),
        ("[1,2]", "[1,2]"),
        ('{}""', '{}""'),
        ("", ""),
        ("[" * 100_000, "[" * 100_000),
    ]:
        row = make.row(messages=make.talk(make.call("cancel_order", given_)))
        assert row.messages[2]["tool_calls"][0]["function"]["arguments"] == stored
        assert row.loose_calls == (() if stored.startswith('{"b"') else ("call_1",))
        assert Row.from_json(row.to_json()) == row


def test_the_first_message_is_the_prompt_and_the_parts_come_back_as_they_were(make):
    failure = Failure(role="agent", reason="timeout", message="slow")
    finding = make.finding()
    row = make.row(stop="agent_error", failure=failure, failed_calls=("call_1",), findings=(finding,))
    assert (row.id, row.card_id, row.state) == ("s001/r0", "s001", "failed")
    assert read_messages(row.messages) == make.talk()
    assert row.messages[0] == {"role": "system", "content": make.policy}
    assert row.failure == failure
    assert row.usage.agent == Usage(calls=2, tokens_in=10, tokens_out=5, usd=0.001)
    assert row.findings == [finding]
    assert row.to_oracle() == Oracle(must_call=(CallRule(name="cancel_order"),), ends=("resolved",), why="It may be.")
    verdict = Verdict(
        keep=True, reward=0.5, scores={"a": Score(score=1.0, reason="x")}, reason="r", rule="judge", judge="j@1"
    )
    assert row.with_verdict(verdict).verdict == verdict
    assert row.with_verdict(verdict).provenance.judge == "j@1"


def test_keys_stand_in_the_order_of_the_schema(make):
    assert list(make.row().to_json()) == [
        *("version", "id", "situation_id", "rollout", "wave", "seed", "messages", "tools", "failed_calls"),
        *("customer_calls", "situation", "persona", "card", "twin_of", "oracle", "final_state", "changes"),
        *("stop", "failure", "findings", "verdict", "usage", "provenance", "planted"),
    ]
    assert list(make.row().card.to_json()) == [
        "goal",
        "form",
        "facts",
        "clause_applies",
        "opening",
        "exit",
        "give_up",
        "prose",
    ]
    assert list(make.row().provenance.to_json()) == [
        *("agent", "customer", "writer", "judge", "embedder", "prompts", "whilesim")
    ]


def test_the_schema_on_disk_is_the_models():
    assert json.loads(SCHEMA.read_text(encoding="utf-8")) == Row.model_json_schema()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": 2}, "has version 2, and this whilesim reads version 1"),
        ({"surprise": 1}, "'s001/r0' cannot be read: surprise: Extra inputs"),
        ({"seed": "7"}, "seed: Input should be a valid integer"),
        ({"seed": 2**63}, "seed: Input should be less than"),
        ({"rollout": True}, "rollout: Input should be a valid integer"),
        ({"stop": "tired"}, "stop: Input should be"),
        ({"messages": [{"role": "boss", "content": "hi"}]}, "messages.0.role: Input should be"),
        ({"messages": [{"role": "user", "content": "hi", "mood": "bad"}]}, "messages.0.mood: Extra inputs"),
        ({"messages": ["hi"]}, "messages.0: Input should be"),
        ({"final_state": []}, "final_state: Input should be a valid dictionary"),
        ({"situation": {"tool": {}}}, "situation.tool: Input should be a valid string"),
        ({"id": 5}, "id: Input should be a valid string"),
        ({"twin_of": 5}, "twin_of: Input should be a valid string"),
        ({"changes": [{"call": "1"}]}, "changes.0.kind: Field required"),
        ({"usage": {role: {} for role in ("agent", "customer", "judge")}}, "usage is .* would be read as"),
        ({"failure": {"role": "run", "reason": True, "message": ""}}, "failure.reason: Input should be a valid string"),
        ({"customer_calls": [{"after_message": "1", "name": "", "arguments": "", "reply": ""}]}, "would be read as"),
        ({"usage": {"agent": {}, "customer": {}, "judge": {"tokens": 3}}}, "usage.judge.tokens: Unexpected keyword"),
    ],
)
def test_what_is_no_row_is_refused_in_words(make, change, words):
    with pytest.raises(InputError, match=words):
        Row.from_json({**make.row().to_json(), **change})


def test_a_row_cannot_be_changed(make):
    with pytest.raises(ValueError, match="frozen"):
        make.row().stop = "budget"
