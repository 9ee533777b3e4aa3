"""Data that broke other libraries, as rows: kept exactly, or left out and counted, never mended in silence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from whilesim.chat.messages import Message
from whilesim.core.errors import InputError, RunError
from whilesim.core.jsontext import read_lines
from whilesim.keeping.loading import load
from whilesim.keeping.rows import Row
from whilesim.keeping.simulation import Simulation

FORMATS = ("trl", "openai", "sharegpt")


def said(text: str, **more: Any) -> Message:
    return Message(role="assistant", content=text, **more)


def lines(done: Any) -> list[Any]:
    return [value for _, value in read_lines(done.path)]


def strict(path: str) -> None:
    """Every line is JSON as the standard says, in UTF-8."""
    for line in Path(path).read_bytes().splitlines():
        json.loads(line.decode("utf-8"), parse_constant=lambda c: pytest.fail(f"{c} is no JSON"))


@pytest.mark.parametrize(
    "arguments", ['{"order_id": "ORD-1", "reason": "dama', "", "null", "[1]", "plain words", '{"n": NaN}']
)
@pytest.mark.parametrize("form", FORMATS)
def test_half_a_call_is_kept_as_it_came_and_never_exported(
    make: Any, tmp_path: Path, arguments: str, form: Any
) -> None:
    talk = make.talk(make.call("get_order", arguments), said("Sorry."))
    data = Simulation([make.row(verdict=True), make.row(card="s2", messages=talk, verdict=True)])
    data.save(tmp_path)
    assert load(tmp_path).rows[1].messages[2]["tool_calls"][0]["function"]["arguments"] == arguments
    done = data.export(tmp_path / "x.jsonl", format=form)
    assert (done.lines, done.left_out) == (1, {"rows with arguments that are no object": 1})


def test_columns_may_change_their_type_from_row_to_row(make: Any, tmp_path: Path) -> None:
    from datasets import load_dataset

    states: list[Any] = [
        {"order": {"1": {"amount": 5}}},
        {"order": {"1": {"amount": "five", "items": ["a"]}}},
        {"order": {}},
        {},
    ]
    replies = ['{"a": 5}', '{"a": "five"}', "[]", "no JSON at all"]
    rows = []
    for n, (state, reply) in enumerate(zip(states, replies, strict=True)):
        arguments = json.dumps({"x": [n, str(n), None, {"deep": n}][n]})
        talk = make.talk(
            make.call("get_order", arguments), Message(role="tool", content=reply, tool_call_id="call_1"), said("So.")
        )
        rows.append(make.row(card=f"s{n}", messages=talk, final_state=state, verdict=True))
    data = Simulation(rows)
    data.save(tmp_path / "run")
    assert [row.final_state for row in load(tmp_path / "run")] == states
    for form in (*FORMATS, "rl", "kto"):
        done = data.export(tmp_path / f"{form}.jsonl", format=form)
        found = load_dataset("json", data_files=done.path, split="train", cache_dir=str(tmp_path / "cache"))
        assert len(found) == 4
    calls = [row["messages"][2]["tool_calls"][0]["function"]["arguments"] for row in data.to_dataset()]
    assert calls == [{"x": 0}, {"x": "1"}, {"x": None}, {"x": {"deep": 3}}]


def test_a_number_that_is_none_becomes_null_and_the_file_stays_strict(make: Any, tmp_path: Path) -> None:
    row = make.row(verdict=True, final_state={"account": {"1": {"balance": float("inf"), "rate": float("nan")}}})
    assert row.final_state == {"account": {"1": {"balance": None, "rate": None}}}
    data = Simulation([row])
    data.save(tmp_path)
    strict(str(tmp_path / "rows.jsonl"))
    for form in ("rl", *FORMATS):
        strict(data.export(tmp_path / "x.jsonl", format=form).path)


@pytest.mark.parametrize("text", ["thanks \ud83d bye \udc00", "Tr\x00ansfer", "\u2028\u2029\x85\x0b", "a\r\nb\rc"])
def test_any_text_survives_and_gives_the_same_bytes_each_time(make: Any, tmp_path: Path, text: str) -> None:
    talk = make.talk(said(text), Message(role="user", content=text), said("Yes."))
    data = Simulation([make.row(messages=talk, verdict=True)])
    for name in ("a", "b"):
        data.save(tmp_path / name)
    assert (tmp_path / "a" / "rows.jsonl").read_bytes() == (tmp_path / "b" / "rows.jsonl").read_bytes()
    assert (tmp_path / "a" / "rows.jsonl").read_bytes().count(b"\n") == 1
    assert list(load(tmp_path / "a").rows) == list(data.rows)
    done = data.export(tmp_path / "x.jsonl")
    strict(done.path)
    if "\ud83d" in text:  # datasets would stop at it
        assert (done.lines, sum(done.left_out.values())) == (0, 1)
    else:
        assert lines(done)[0]["messages"][2]["content"] == text


def test_identical_calls_in_one_message_all_stay(make: Any, tmp_path: Path) -> None:
    calls = tuple(make.call("cancel_order", '{"order_id":"1"}', f"c{n}").tool_calls[0] for n in range(9))
    answers = [Message(role="tool", content="ok", tool_call_id=f"c{n}") for n in range(9)]
    talk = make.talk(Message(role="assistant", tool_calls=calls), *answers, said("Done."))
    data = Simulation([make.row(messages=talk, verdict=True)])
    (line,) = lines(data.export(tmp_path / "x.jsonl"))
    assert [c["id"] for c in line["messages"][2]["tool_calls"]] == [f"c{n}" for n in range(9)]
    (line,) = lines(data.export(tmp_path / "x.jsonl", format="sharegpt"))
    assert len(json.loads(line["conversations"][2]["value"])) == 9
    assert line["conversations"][3]["value"] == "\n".join(["ok"] * 9)


@pytest.mark.parametrize("content", [None, ""])
def test_a_call_without_words_is_written_as_null_or_empty_and_is_no_empty_reply(
    make: Any, tmp_path: Path, content: Any
) -> None:
    called = make.call("cancel_order", '{"order_id": "1"}')
    talk = make.talk(Message(role="assistant", content=content, tool_calls=called.tool_calls),
                     Message(role="tool", content="ok", tool_call_id="call_1"), said("Done."))  # fmt: skip
    data = Simulation([make.row(messages=talk)]).grade()
    assert len(data.kept) == 1
    for form in ("trl", "openai"):
        (line,) = lines(data.export(tmp_path / "x.jsonl", format=form))
        assert line["messages"][2]["content"] in (None, "")
        assert line["messages"][2]["tool_calls"]
    (line,) = lines(data.export(tmp_path / "x.jsonl", format="sharegpt"))
    assert [turn["from"] for turn in line["conversations"][2:4]] == ["function_call", "observation"]


def test_one_bad_row_keeps_its_place_and_stops_no_other(make: Any, tmp_path: Path) -> None:
    from whilesim.chat.messages import Failure

    failure = Failure(role="agent", reason="malformed_reply", message="raw text of what came")
    rows = [
        make.row(card="s0", verdict=True),
        make.row(card="s1", stop="agent_error", failure=failure),
        make.row(card="s2", verdict=True),
    ]
    data = Simulation(rows)
    data.save(tmp_path)
    again = load(tmp_path)
    assert [row.id for row in again] == ["s0/r0", "s1/r0", "s2/r0"]
    assert again.rows[1].failure.message == "raw text of what came"
    assert (again.ledger.kept, again.ledger.failed) == (2, 1)
    done = again.export(tmp_path / "x.jsonl")
    assert (done.lines, done.left_out) == (2, {"rows failed": 1})


def test_a_stop_word_of_one_s_own_is_text_like_any_other(make: Any, tmp_path: Path) -> None:
    talk = make.talk(said("Fine."), Message(role="user", content="That is all. [[DONE]]"), said("Goodbye."))
    (line,) = lines(Simulation([make.row(messages=talk, verdict=True)]).export(tmp_path / "x.jsonl"))
    assert line["messages"][3]["content"] == "That is all. [[DONE]]"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda row: row.update(version=2), "a row has version 2, and this whilesim reads version 1"),
        (lambda row: row.update(colour="red"), "colour: Extra inputs are not permitted"),
        (lambda row: row.pop("messages"), "messages: Field required"),
        (lambda row: row.update(messages="hello"), "messages: Input should be a valid list"),
        (lambda row: row["messages"][1].update(role="customer"), "messages.1.role"),
        (lambda row: row.update(rollout="0"), "rollout: Input should be a valid integer"),
        (lambda row: row["persona"].update(mood="sour"), "persona"),
    ],
)
def test_a_row_of_another_make_is_refused_with_its_line_and_nothing_is_written(
    make: Any, tmp_path: Path, change: Any, why: str
) -> None:
    wire = [make.row().to_json(), make.row(card="s2").to_json()]
    change(wire[1])
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in wire), encoding="utf-8")
    with pytest.raises(InputError, match=r"rows\.jsonl, line 2 cannot be read") as raised:
        load(tmp_path)
    assert why in str(raised.value)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["rows.jsonl"]


@pytest.mark.parametrize(
    ("name", "line", "why"),
    [
        ("rows", b'{"version": 1, "id": "s0\n', r"Invalid control character.*\. Restore the line, or delete it\.$"),
        ("rows", b"\xff\xfe{\x00\n", r"can't decode byte 0xff.*\. Restore the line, or delete it\.$"),
        ("verdicts", b'{"id": "s001/r0", "verd\n', r"\. Restore the line, or delete it\.$"),
        ("verdicts", b'{"verdict": null, "findings": []}\n', r"id: Field required\. Restore the line, or delete it\.$"),
        ("verdicts", b'{"id": "a", "findings": [{"check": "x"}]}\n', r"verdict: Field required\. Restore the line"),
    ],
)
def test_a_torn_or_foreign_line_is_named_with_what_to_do_and_nothing_is_written(
    make: Any, tmp_path: Path, name: str, line: bytes, why: str
) -> None:
    Simulation([make.row(verdict=True)]).save(tmp_path)
    with (tmp_path / f"{name}.jsonl").open("ab") as file:
        file.write(line)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(InputError, match=rf"{name}\.jsonl, line 2 cannot be read: .*{why}"):
        load(tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("form", ["dpo", "kto"])
def test_pairs_and_labels_of_rows_without_any_verdict_are_refused(make: Any, tmp_path: Path, form: Any) -> None:
    with pytest.raises(RunError, match=r"these rows have no verdicts yet.* Type data\.grade\(\) first"):
        Simulation([make.row()]).export(tmp_path / "x.jsonl", form)
    assert not list(tmp_path.iterdir())


def test_an_export_that_fails_leaves_the_old_file(make: Any, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    Simulation([make.row(verdict=True)]).export(path)
    before = path.read_bytes()

    def torn() -> Any:
        yield make.row(verdict=True)
        raise OSError("the disk is gone")

    from whilesim.keeping.export import export_rows

    with pytest.raises(OSError, match="disk is gone"):
        export_rows(torn(), path, states=("kept",))
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path], "half a file is left beside it"


def test_rows_without_a_verdict_are_no_training_rows_once_others_have_one(make: Any, tmp_path: Path) -> None:
    done = Simulation([make.row(verdict=True), make.row(rollout=1)]).export(tmp_path / "x.jsonl")
    assert (done.lines, done.left_out) == (1, {"rows unjudged": 1})


def test_rows_read_from_a_dataset_with_a_wrong_column_are_refused(make: Any) -> None:
    from whilesim.keeping.arrow import from_dataset

    dataset = Simulation([make.row()]).to_dataset()
    with pytest.raises(InputError, match="Field required"):
        list(from_dataset(dataset.remove_columns("messages")))
    with pytest.raises(InputError, match="a row has version None"):
        list(from_dataset(dataset.remove_columns("version")))
    assert Row.model_fields.keys() == set(dataset.column_names)
