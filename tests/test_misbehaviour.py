"""What models do that breaks other libraries' runs: each kind once, through the whole street."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from stub import Stub

import whilesim as ws
from whilesim.grading.checks.run import run_checks
from whilesim.situations.tools import parse_tools

POLICY = "# Desk\n- Confirm the amount before you refund an order.\n- Never promise a delivery date.\n"


def tool(name: str, description: str, **fields: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": fields, "required": list(fields)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


TOOLS = [
    tool("refund_order", "Refund an order.", order_id={"type": "string"}),
    tool("get_order", "Get an order by its ID.", order_id={"type": "string"}),
    tool("list_open_days", "List the days on which the desk is open."),
]
BYE = "That is all I can do. Goodbye."


def call(name: str, arguments: Any, call_id: str = "c1") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def calling(*calls: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"content": None, "tool_calls": list(calls), **fields}


def play(
    *said: Any, customer: Any = ("Thanks. [[DONE]]",), folder: Path | None = None, cards: int = 1
) -> ws.Simulation:
    """Let the agent say one thing after another, then goodbye; and the customer likewise."""

    def answer(body: dict[str, Any]) -> Any:
        spoken = sum(m["role"] == "assistant" for m in body["messages"])
        lines, place = (said, spoken) if body.get("tools") else (customer, spoken - 1)  # the opening was its own
        return lines[place] if place < len(lines) else BYE

    with Stub(answer) as stub:
        plan = ws.plan(tools=TOOLS, system_prompt=POLICY, situations=cards)
        model = ws.Model("stub", base_url=stub.url, timeout=5)
        return ws.simulate(model, plan=plan, rollouts=1, turns=3, run_dir=folder, progress=False)


def only(data: ws.Simulation) -> ws.Row:
    [row] = data.rows
    assert row.failure is None
    return row


def replies(row: ws.Row) -> dict[str, str]:
    return {m["tool_call_id"]: m["content"] for m in row.messages if m["role"] == "tool"}


def checks(row: ws.Row) -> set[str]:
    return {finding.check for finding in row.findings}


def test_arguments_that_break_off_are_answered_with_an_error_and_nothing_is_done() -> None:
    broken = '{"order_id": "A-1", "reason": "dama'
    row = only(play(calling(call("refund_order", broken)), "I am sorry, let me try that again."))
    assert row.messages[2]["tool_calls"][0]["function"]["arguments"] == broken
    assert "error" in replies(row)["c1"].casefold()
    assert row.failed_calls == ["c1"]
    assert row.changes == []
    assert row.loose_calls == ("c1",)
    assert "invalid_arguments" in checks(row)


@pytest.mark.parametrize("nothing", ["", "null", None, "{}"])
def test_no_arguments_are_none_where_none_are_needed_and_missing_where_some_are(nothing: Any) -> None:
    row = only(play(calling(call("list_open_days", nothing, "free")), calling(call("refund_order", nothing, "bound"))))
    assert row.failed_calls == ["bound"]
    assert "order_id" in replies(row)["bound"] or "argument" in replies(row)["bound"].casefold()


def test_a_tool_that_does_not_exist_is_answered_so_and_its_answer_is_not_invented() -> None:
    row = only(play(calling(call("run_python", '{"code": "print(1)"}'))))
    assert "run_python" in replies(row)["c1"]
    assert row.failed_calls == ["c1"]
    assert "unknown_tool" in checks(row)


def test_half_a_call_at_the_token_limit_is_never_played() -> None:
    half = calling(call("refund_order", '{"order_id": "A'), finish="length")
    row = only(play(half, "Where were we?"))
    assert not replies(row)
    assert row.changes == []
    assert "truncated" in checks(row)


def test_nothing_said_and_a_refusal_are_two_things() -> None:
    silent = only(play(""))
    refusing = only(play({"content": None, "refusal": "I cannot help with that."}))
    assert "empty_reply" in checks(silent)
    assert "refusal" in checks(refusing) - checks(silent)


def test_a_call_beside_an_empty_text_is_no_empty_reply() -> None:
    parts = [{"type": "text", "text": ""}]
    row = only(play(calling(call("get_order", '{"order_id": "A-1"}'), content=parts)))
    assert row.messages[2]["content"] is None
    assert "empty_reply" not in checks(row)


def test_nine_times_the_same_write_is_seen_and_answered_each_time_alike() -> None:
    same = [call("refund_order", '{"order_id": "A-1"}', f"c{i}") for i in range(9)]
    one, other = only(play(calling(*same))), only(play(calling(*same)))
    assert len(replies(one)) == 9
    assert replies(one) == replies(other)
    done = [m for m in one.messages if m["role"] == "tool"]
    for message in done:  # the desk may have refused the eight others: the check is about those that went through
        message["content"] = '{"status": "refunded"}'
    found = run_checks(ws_messages(one), tools=parse_tools(TOOLS), failed=())
    assert "duplicate_write" in {finding.check for finding in found}


def ws_messages(row: ws.Row) -> Any:
    from whilesim.chat.messages import read_messages

    return read_messages(row.messages)


def test_thoughts_stay_out_of_what_is_said_with_and_without_their_tags() -> None:
    row = only(play("<think>They want money.</think>Which order is it?", "<think>Now the tokens ran"))
    assert row.messages[2]["content"] == "Which order is it?"
    assert row.messages[2]["reasoning"] == "They want money."
    said = [m["content"] or "" for m in row.messages if m["role"] == "assistant"]
    assert "tokens ran" not in " ".join(said)
    assert "truncated" in checks(row)


@pytest.mark.parametrize("said", ["thanks \ud83d bye \udc00", "Tr\x00ansfer", "a\u2028b\x85c\r\nd", "\u202ereversed"])
def test_any_text_comes_back_from_the_disk_as_it_was(said: str, tmp_path: Path) -> None:
    data = play(said, customer=(said, "[[DONE]]"), folder=tmp_path)
    row = only(data)
    assert row.messages[2]["content"] == row.messages[3]["content"] == said
    assert ws.load(tmp_path).rows[0] == row
    for line in (tmp_path / "rows.jsonl").read_bytes().decode("utf-8").split("\n")[:-1]:
        json.loads(line)


def test_numbers_that_json_does_not_know_are_null_on_disk(tmp_path: Path) -> None:
    class Bank:
        def __init__(self, situation: Any, seed: int) -> None:
            self.state = {"account": {"A-1": {"balance": float("inf"), "rate": float("nan")}}}

        def call(self, name: str, arguments: Any) -> str:
            return "ok"

    data = ws.simulate(
        lambda messages: BYE,
        tools=TOOLS,
        system_prompt=POLICY,
        world=Bank,
        situations=1,
        run_dir=tmp_path,
        progress=False,
    )
    assert data.rows[0].final_state == {"account": {"A-1": {"balance": None, "rate": None}}}
    assert b"Infinity" not in (tmp_path / "rows.jsonl").read_bytes()


def test_a_customer_that_says_nothing_is_asked_once_more_and_then_has_left() -> None:
    row = only(play("What can I do for you?", customer=("", "")))
    assert row.stop == "customer_done"
    assert [m["role"] for m in row.messages] == ["system", "user", "assistant"]
    again = only(play("What can I do?", customer=({"content": ""},)))
    assert again.usage.customer.calls == 2


def test_words_before_the_customers_sign_are_heard_and_answered_once() -> None:
    row = only(play("Shall I close it?", "It is closed.", customer=("Yes, please close it. [[DONE]]",)))
    assert [m["content"] for m in row.messages[3:]] == ["Yes, please close it.", "It is closed."]
    assert "[[DONE]]" not in json.dumps(row.to_json())


def test_one_answer_that_cannot_be_read_costs_its_own_row_only() -> None:
    def answer(body: dict[str, Any]) -> Any:
        bad = body.get("tools") and plan.cards[1].opening in json.dumps(body["messages"], ensure_ascii=False)
        return b"<html>no</html>" if bad else "Done. [[DONE]]"

    plan = ws.plan(tools=TOOLS, system_prompt=POLICY, situations=3)
    with Stub(answer) as stub:
        data = ws.simulate(ws.Model("stub", base_url=stub.url), plan=plan, rollouts=1, turns=2, progress=False)
    assert [row.card_id for row in data.rows] == [card.id for card in plan.cards]
    assert [row.failure.reason if row.failure else None for row in data.rows] == [None, "malformed_reply", None]
    assert "<html>no</html>" in str(data.rows[1].failure)
    assert data.ledger.reasons["failed"] == {"agent:malformed_reply": 1}
