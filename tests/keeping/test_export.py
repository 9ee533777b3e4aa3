"""Export: each trainer's form, loaded by datasets; nothing that should stay out goes in."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from whilesim.chat.messages import Message, read_messages
from whilesim.core.errors import InputError
from whilesim.core.jsontext import read_lines
from whilesim.keeping.simulation import Simulation


def loaded(path, tmp_path):
    from datasets import load_dataset

    return load_dataset("json", data_files=str(path), split="train", cache_dir=str(tmp_path / "cache"))


def lines(path):
    return [value for _, value in read_lines(path)]


def said(text, **more):
    return Message(role="assistant", content=text, **more)


@pytest.fixture
def data(make):
    two = make.talk(
        Message(
            role="assistant",
            content="Let me look.",
            tool_calls=(
                make.call("get_order", '{"order_id": "W1", "at": [1, "b"]}', "a").tool_calls
                + make.call("get_order", '{"order_id": "W2", "deep": {"x": null}}', "b").tool_calls
            ),
        ),
        Message(role="tool", content='{"status": "open"}', tool_call_id="a"),
        Message(role="tool", content='{"status": 3}', tool_call_id="b"),
        said("Both are open.", reasoning="They asked for two."),
    )
    rows = [
        make.row(card="s1", verdict=True),
        make.row(
            card="s1",
            rollout=1,
            verdict=False,
            messages=make.talk(said("I will not.")),
            findings=[make.finding(index=2)],
        ),
        make.row(card="s2", verdict=True, messages=two),
        make.row(card="s3", verdict=True, messages=make.talk(make.call("get_order", "{oops"), said("Sorry."))),
        make.row(card="s4", stop="budget"),
        make.row(card="s5", verdict=False),
        make.row(card="s6", verdict=True, messages=make.talk(said("Hi."), Message(role="user", content="Bye."))),
    ]
    return Simulation(rows)


LEFT = {
    "rows dropped": 2,
    "rows failed": 1,
    "rows that do not end with the agent": 1,
    "rows with arguments that are no object": 1,
}


def test_trl_holds_kept_rows_with_arguments_as_objects_and_reads_back_exactly(data, tmp_path):
    done = data.export(tmp_path / "x" / "train.jsonl")
    assert done.lines == 2
    assert done.left_out == LEFT
    assert str(done).endswith("train.jsonl: 2 lines of trl; left out: 2 rows dropped; 1 rows failed; "
                              "1 rows that do not end with the agent; 1 rows with arguments that are no object")  # fmt: skip
    found = lines(done.path)
    assert [set(line) for line in found] == [{"messages", "tools"}] * 2
    assert found[0]["messages"][2]["tool_calls"][0] == {
        "id": "call_1", "type": "function", "function": {"name": "cancel_order", "arguments": {"order_id": "W2210"}},
    }  # fmt: skip
    rows = [data.rows[0], data.rows[2]]
    for line, row in zip(found, rows, strict=True):
        assert read_messages(line["messages"])[:-1] == read_messages(row.messages)[:-1]
        assert line["tools"] == row.tools
    assert "reasoning" not in json.dumps(found)
    shown = loaded(done.path, tmp_path)
    assert shown[0]["messages"][2]["tool_calls"][0]["function"]["arguments"] == {"order_id": "W2210"}
    assert shown[1]["messages"][-1]["content"] == "Both are open."


def test_openai_keeps_arguments_as_text(data, tmp_path):
    done = data.export(tmp_path / "train.jsonl", format="openai")
    assert done.left_out == LEFT
    calls = lines(done.path)[1]["messages"][2]["tool_calls"]
    assert [c["function"]["arguments"] for c in calls] == [
        '{"order_id": "W1", "at": [1, "b"]}',
        '{"order_id": "W2", "deep": {"x": null}}',
    ]
    assert len(loaded(done.path, tmp_path)) == 2


def test_sharegpt_has_calls_and_their_results_as_turns(data, tmp_path):
    done = data.export(tmp_path / "train.jsonl", format="sharegpt")
    found = lines(done.path)
    assert [turn["from"] for turn in found[0]["conversations"]] == [
        *("system", "human", "function_call", "observation", "gpt", "human", "gpt")
    ]
    assert json.loads(found[0]["conversations"][2]["value"]) == {
        "name": "cancel_order",
        "arguments": {"order_id": "W2210"},
    }
    assert [t["name"] for t in json.loads(found[0]["tools"])] == ["cancel_order", "get_order", "transfer_to_human"]
    both = found[1]["conversations"]
    assert [turn["from"] for turn in both] == ["system", "human", "gpt", "function_call", "observation", "gpt"]
    assert [call["arguments"]["order_id"] for call in json.loads(both[3]["value"])] == ["W1", "W2"]
    assert both[4]["value"] == '{"status": "open"}\n{"status": 3}'
    assert loaded(done.path, tmp_path)[0]["conversations"][0]["from"] == "system"


def test_dpo_writes_pairs_and_counts_what_gave_none(make, tmp_path):
    right, wrong = said("That I cannot do, sorry."), said("Done, it is cancelled!")
    rows = [
        make.row(messages=make.talk(right), verdict=True),
        make.row(messages=make.talk(wrong), rollout=1, verdict=False),
        make.row(messages=make.talk(right), rollout=2, verdict=False),
    ]
    done = Simulation(rows).export(tmp_path / "dpo.jsonl", format="dpo")
    (line,) = lines(done.path)
    assert line["chosen"] == [{"role": "assistant", "content": right.content}]
    assert line["rejected"] == [{"role": "assistant", "content": wrong.content}]
    assert [m["role"] for m in line["prompt"]] == ["system", "user"]
    assert (line["reason"], line["cause"], line["rows"]) == ("because", "rollouts", ["s001/r0", "s001/r1"])
    assert line["rule"] == "check:refusal"
    assert done.left_out == {"candidate pairs: never differ": 1}
    assert loaded(done.path, tmp_path)[0]["chosen"][0]["content"] == right.content


def test_kto_labels_how_a_kept_row_ended_and_where_a_dropped_one_went_wrong(data, tmp_path):
    done = data.export(tmp_path / "kto.jsonl", format="kto")
    found = {line["row"]: line for line in lines(done.path)}
    assert {name: line["label"] for name, line in found.items()} == {
        "s1/r0": True,
        "s1/r1": False,
        "s2/r0": True,
        "s6/r0": True,
    }
    assert found["s1/r1"]["completion"] == [{"role": "assistant", "content": "I will not."}]
    assert found["s1/r0"]["completion"][0]["content"] == "Order W2210 is cancelled."  # no farewell
    assert len(found["s1/r0"]["prompt"]) == 4
    assert done.left_out["rows dropped for no turn of the agent's"] == 1
    assert len(loaded(done.path, tmp_path)) == 4


def test_kto_labels_the_turn_that_an_oracle_forbids_and_none_where_a_call_is_missing(make, tmp_path):
    from whilesim.world.oracle import CallRule, Oracle

    forbidden = Oracle(must_not_call=(CallRule(name="cancel_order"),), why="It has shipped.")
    missing = Oracle(must_call=(CallRule(name="get_order"),), why="Nobody looked.")
    data = Simulation(
        [
            make.row(card="s1", oracle=forbidden),
            make.row(card="s2", oracle=missing),
            make.row(card="s3", oracle=missing, findings=[make.finding("broke_persona", index=1)]),
        ]
    ).grade()
    done = data.export(tmp_path / "kto.jsonl", format="kto")
    found = {line["row"]: line for line in lines(done.path)}
    assert found["s1/r0"]["completion"][0]["tool_calls"][0]["function"]["name"] == "cancel_order"
    assert (found["s1/r0"]["label"], found["s1/r0"]["rule"]) == (False, "oracle:must_not_call")
    assert set(found) == {"s1/r0"}  # the last words of the others may be right
    assert done.left_out["rows dropped for no turn of the agent's"] == 2


def test_rl_gives_each_card_once_with_its_oracle(data, tmp_path):
    done = data.export(tmp_path / "rl.jsonl", format="rl")
    found = lines(done.path)
    assert [line["case"] for line in found] == ["s1", "s2", "s4", "s5", "s6"]
    assert [m["role"] for m in found[0]["prompt"]] == ["system", "user"]
    assert found[0]["oracle"]["must_call"][0]["name"] == "cancel_order"
    assert found[0]["card"]["goal"] == "Cancel order W2210"
    assert len(loaded(done.path, tmp_path)) == 5


def test_reasoning_goes_out_only_when_it_is_asked_for(data, tmp_path):
    for name in ("trl", "openai", "sharegpt", "dpo", "kto", "rl"):
        quiet = data.export(tmp_path / "quiet.jsonl", format=name)
        assert "asked for two" not in Path(quiet.path).read_text(encoding="utf-8")
    told = lines(data.export(tmp_path / "told.jsonl", reasoning=True).path)
    assert told[1]["messages"][-1]["reasoning_content"] == "They asked for two."
    told = lines(data.export(tmp_path / "told.jsonl", format="sharegpt", reasoning=True).path)
    assert told[1]["conversations"][-1]["value"] == "<think>\nThey asked for two.\n</think>\n\nBoth are open."


def test_views_write_their_own_rows_and_ungraded_rows_are_written_as_they_are(data, make, tmp_path):
    assert data.kept.export(tmp_path / "a.jsonl").lines == 2
    assert data.dropped.export(tmp_path / "a.jsonl").lines == 2
    assert data.dropped.filter(lambda r: r.card_id == "s1").export(tmp_path / "a.jsonl").lines == 1
    assert Simulation([make.row(), make.row(rollout=1)]).export(tmp_path / "a.jsonl").lines == 2


def test_an_unknown_format_is_refused_and_leaves_no_file(data, tmp_path):
    with pytest.raises(InputError, match="no format 'csv': type one of trl, openai, sharegpt, dpo, kto, rl"):
        data.export(tmp_path / "a.csv", format="csv")
    assert list(tmp_path.iterdir()) == []


def test_hostile_rows_do_not_keep_datasets_from_reading_the_file(make, tmp_path):
    fine = make.talk(
        make.call("get_order", '{"s": "\\\\ud800 is no character", "l": [], "o": {}, "n": 18446744073709551615}'),
        Message(role="tool", content="\x00\u202e 👩‍👩‍👧 \u2028\r\\ud800", tool_call_id="call_1"),
        said("x" * 200_000),
    )
    big = make.talk(make.call("get_order", '{"n": 1180591620717411303424}'), said("Well."))
    half = make.talk(said("half \ud83d a character"))
    talks = [make.talk(), fine, big, half, make.talk()]
    rows = [make.row(card=f"s{i}", verdict=True, messages=talk) for i, talk in enumerate(talks)]
    for name, count in {"trl": 3, "openai": 4, "sharegpt": 4, "kto": 3, "rl": 5}.items():
        done = Simulation(rows).export(tmp_path / f"{name}.jsonl", format=name)
        assert done.lines == count, name
        assert sum(done.left_out.values()) == 5 - count
        assert len(loaded(done.path, tmp_path)) == count, name
    calls = loaded(tmp_path / "trl.jsonl", tmp_path)[1]["messages"][2]["tool_calls"]
    arguments = {"s": "\\ud800 is no character", "l": [], "o": {}, "n": 2**64 - 1}
    assert calls[0]["function"]["arguments"] == arguments


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no such pipes")
def test_a_pipe_such_as_dev_stdout_is_not_replaced_by_a_file(data, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="names no file to write"):
        data.export(tmp_path / "pipe")
    assert (tmp_path / "pipe").is_fifo()


def test_a_folder_is_no_file_to_write_and_no_row_is_told(data, tmp_path):
    with pytest.raises(InputError, match="names no file to write"):
        data.export(tmp_path)
    assert str(data.filter(lambda row: False).export(tmp_path / "none.jsonl")).endswith(
        "left out: nothing, as there is no row"
    )
