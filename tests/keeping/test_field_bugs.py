"""What broke the data sets of others, each kind once, from what a model says to what a trainer would read."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import pytest
from judges import Scripted, answer
from stub import Stub

import whilesim as ws
from whilesim.chat.messages import Message
from whilesim.core.jsontext import read_lines
from whilesim.evals.tickets import load_tickets
from whilesim.grading.rubric import read_rubric
from whilesim.keeping.export import Format
from whilesim.keeping.loading import load
from whilesim.keeping.simulation import Simulation

POLICY = "# Desk\n- Confirm the amount before you refund an order.\n"
ORDER = {"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]}
TOOLS = [
    {"type": "function", "function": {"name": "refund_order", "description": "Refund an order.", "parameters": ORDER}},
    {"type": "function", "function": {"name": "list_open_days", "description": "List the days that are open.",
                                      "parameters": {"type": "object", "properties": {}}}},
]  # fmt: skip
FINE_TUNING: tuple[Format, ...] = ("trl", "openai", "sharegpt")


def call(name: str, arguments: Any, call_id: str = "c1") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


class Willing:
    """A world in which every call goes through."""

    def __init__(self, situation: Mapping[str, str], seed: int) -> None:
        self.state: dict[str, Any] = {}

    def call(self, name: str, arguments: Any) -> str:
        return '{"status": "done"}'


def played(*said: Any, customer: str = "Thanks. [[DONE]]", **options: Any) -> Simulation:
    """One conversation: the agent says one thing after another and then goodbye, the customer always the same."""

    def reply(body: dict[str, Any]) -> Any:
        spoken = sum(message["role"] == "assistant" for message in body["messages"])
        if not body.get("tools"):
            return customer
        return said[spoken] if spoken < len(said) else "That is all I can do. Goodbye."

    with Stub(reply) as stub:
        model = ws.Model("stub", base_url=stub.url, timeout=5)
        size = {"situations": 1, "rollouts": 1, "turns": 3, "progress": False}
        return ws.simulate(model, tools=TOOLS, system_prompt=POLICY, **size, **options)


def exported(data: Simulation, folder: Path) -> dict[str, list[Any]]:
    """Export in every form, and read back what was written."""
    told = {}
    for form in get_args(Format):
        done = data.export(folder / f"{form}.jsonl", form)
        told[form] = [value for _, value in read_lines(done.path)]
        assert len(told[form]) == done.lines
        assert done.lines or done.left_out, f"{form}: nothing was written, and nobody says why"
    return told


HALF = {"content": None, "tool_calls": [call("refund_order", '{"order_id": "A')], "finish": "length"}
NINE = {"content": None, "tool_calls": [call("refund_order", '{"order_id": "A-1"}', f"c{i}") for i in range(9)]}
WRONG: dict[str, tuple[list[Any], str, dict[str, Any]]] = {
    # what goes wrong: what the agent says, the check that must see it, how it is played
    "arguments break off": ([{"tool_calls": [call("refund_order", '{"order_id": "A-1", "why": "dama')]}, "Sorry."], "invalid_arguments", {}),
    "arguments are missing": ([{"tool_calls": [call("refund_order", "")]}], "invalid_arguments", {}),
    "arguments are a list": ([{"tool_calls": [call("refund_order", '["A-1"]')]}], "invalid_arguments", {}),
    "a tool that nobody offered": ([{"tool_calls": [call("run_python", '{"code": "1"}')]}], "unknown_tool", {}),
    "it never stops thinking": (["<think>They want money, and"], "truncated", {}),
    "it says nothing": ([""], "empty_reply", {}),
    "it refuses": ([{"content": None, "refusal": "I cannot help with that."}], "refusal", {}),
    "half a call at the token limit": ([HALF], "truncated", {}),
    "the same write nine times": ([NINE], "duplicate_write", {"world": Willing}),
    "a stop sign of somebody else's": (["What else?"], "customer_leak", {"customer": "Nothing. ###STOP###"}),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:stub judges its own conversations")
@pytest.mark.parametrize("kind", WRONG)
def test_a_conversation_that_goes_wrong_is_dropped_by_name_and_no_model_learns_it(kind: str, tmp_path: Path) -> None:
    said, check, how = WRONG[kind]
    data = played(*said, run_dir=tmp_path / "run", **how).grade()
    [row] = data.rows
    assert row.state == "dropped"
    found = {finding.check for finding in row.findings}
    assert check in found
    assert not {"refusal", "empty_reply"} <= found, "to refuse is not to be silent"
    assert list(load(tmp_path / "run").rows) == [row]
    lines = exported(data, tmp_path)
    assert not any(lines[form] for form in FINE_TUNING)
    for line in lines["kto"]:
        assert line["label"] is False
        assert line["completion"][0]["content"] or line["completion"][0]["tool_calls"], "silence is labelled"


@pytest.mark.filterwarnings("ignore:stub judges its own conversations")
@pytest.mark.parametrize("nothing", ["", "null", None, "{}"])
def test_a_tool_that_needs_nothing_may_be_called_with_nothing(nothing: Any, tmp_path: Path) -> None:
    [row] = played({"tool_calls": [call("list_open_days", nothing)]}).grade().rows
    assert row.failed_calls == []
    assert "invalid_arguments" not in {finding.check for finding in row.findings}


NAMES = [criterion.name for criterion in read_rubric().criteria]
GOOD = answer(NAMES)
MISREAD = {
    "no verdict at all": "{}",
    "an empty list of verdicts": '{"results": []}',
    "one verdict for several questions": answer(NAMES[:1]),
    "its own scale before its rating": "On a scale from 0 to 5, this is a 5",
    "a rating without its parts": '{"score": 8, "reason": "good"}',
    "the rating as text within another key": json.dumps({"final": '{"score": 8, "reason": "good"}'}),
    "a key that lost its quote": '{"keep{": true, "reason": "as it is"}',
    "a backslash that escapes nothing": GOOD.replace("as it is", r"it cost \$5 in C:\Users"),
    "a number that is none": GOOD.replace("1.0", "NaN", 1),
}


@pytest.mark.parametrize("kind", MISREAD)
def test_a_judge_that_cannot_be_read_keeps_nothing_and_its_words_stay(make: Any, tmp_path: Path, kind: str) -> None:
    data = Simulation([make.row(oracle=None)], folder=tmp_path)
    data.save(tmp_path)
    judge: Any = Scripted([MISREAD[kind]] * 2 + [GOOD])
    data.grade(judge=judge)
    assert len(judge.asked) == 2, "it is asked once more"
    assert [row.state for row in data.rows] == ["unjudged"]
    assert data.grades[data.rows[0].id].raw == MISREAD[kind]
    assert load(tmp_path).ledger.unjudged == 1
    assert not any(
        lines for form, lines in exported(data, tmp_path / "x").items() if form != "rl"
    )  # a task needs no verdict
    data.grade(judge=judge)
    assert [row.state for row in data.rows] == ["kept"]


@pytest.mark.parametrize("wrapped", [GOOD, json.dumps({"final": GOOD}), f"```json\n{GOOD}\n```"])
def test_a_judge_s_one_wrapper_is_taken_off(make: Any, wrapped: str) -> None:
    judge: Any = Scripted([wrapped])
    assert len(Simulation([make.row(oracle=None)]).grade(judge=judge).kept) == 1


def test_tickets_may_expect_another_type_each_time_and_an_empty_list_is_no_state(tmp_path: Path) -> None:
    states: list[Any] = [{"amount": 5}, {"amount": "five", "items": ["a"]}, [], {}, None]
    path = tmp_path / "t.jsonl"
    wire = [{"ticket_id": str(n), "user_message": "hi", "expected_final_state": s} for n, s in enumerate(states)]
    path.write_text("".join(json.dumps(line) + "\n" for line in wire), encoding="utf-8")
    tickets = load_tickets(path)
    assert [ticket.expected_final_state for ticket in tickets] == [*states[:2], {}, {}, {}]
    tickets.save(tmp_path / "again.jsonl")
    assert list(load_tickets(tmp_path / "again.jsonl")) == list(tickets)


@pytest.mark.parametrize("form", get_args(Format))
@pytest.mark.parametrize("arguments", ['{"order_id": "A', "", "[1]"])
def test_a_call_without_an_object_is_in_no_form_and_counted(
    make: Any, tmp_path: Path, form: Any, arguments: str
) -> None:
    talk = make.talk(make.call("get_order", arguments), Message(role="assistant", content="Sorry."))
    data = Simulation([make.row(messages=talk, verdict=kept, rollout=n) for n, kept in enumerate((True, False))])
    done = data.export(tmp_path / "x.jsonl", form)
    assert done.lines == 0
    assert done.left_out["rows with arguments that are no object"] >= 1


def test_a_nul_stands_in_no_table_that_is_made_of_rows(make: Any) -> None:
    talk = make.talk(Message(role="assistant", content="Tr\x00ansfer"))
    text = Simulation([make.row(messages=talk, final_state={"order": {"1": {"name": "A\x00B"}}})]).to_pandas().to_csv()
    assert "\x00" not in text
    csv.field_size_limit(sys.maxsize)
    head, cells = csv.reader(io.StringIO(text))
    assert "ansfer" in cells[head.index("messages")]
