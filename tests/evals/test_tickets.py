"""Tickets: what is read, what is refused with its line, what becomes of rows and traces."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from shop import ticket

from whilesim.core.errors import InputError
from whilesim.evals.tickets import load_tickets
from whilesim.evals.traces import AgentTrace
from whilesim.keeping.loading import load
from whilesim.keeping.simulation import Simulation


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_the_tutorials_line_is_a_ticket(suite: Path) -> None:
    first = load_tickets(str(suite))[0]
    assert first.expected_tools == ("lookup_order", "cancel_order")
    assert first.customer_context["order_id"] == "84920"


@pytest.mark.parametrize(
    ("lines", "match"),
    [
        (['{"user_message": "hi"}'], "line 1 has no 'ticket_id'"),
        ([json.dumps(ticket(1)), "", '{"ticket_id": "x"}'], "line 3 has no 'user_message'"),
        ([json.dumps(ticket(1)), json.dumps(ticket(1))], "line 2 has the id 'CS-001', which line 1 has already"),
        ([json.dumps(ticket(1)), '{"ticket_id": '], "line 2: not JSON"),
        (["[1]"], "line 1 is list, and must be a mapping"),
        ([json.dumps(ticket(1, oracle={"must_call": 3}))], "line 1: the oracle's field 'must_call' is 3"),
        ([json.dumps(ticket(1, expected_tools=[1]))], "line 1: 'expected_tools.0' is 1"),
        ([], "there is no ticket in it"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path: Path, lines: list[str], match: str) -> None:
    with pytest.raises(InputError, match=match):
        load_tickets(write(tmp_path / "t.jsonl", *lines))


def test_all_faulty_lines_are_told_at_once(tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", '{"ticket_id": "a"}', json.dumps(ticket(2)), '{"ticket_id": "c"}')
    with pytest.raises(InputError, match=r"2 of the tickets(?s:.*)line 1(?s:.*)line 3"):
        load_tickets(path)


@pytest.mark.parametrize(
    ("field", "meant"),
    [
        ("expected_tool", "expected_tools"),
        ("must_no_do", "must_not_do"),
        ("followups", "follow_ups"),
        ("hand_off", "handoff"),
    ],
)
def test_a_misspelt_field_is_refused_with_the_nearest(field: str, meant: str) -> None:
    with pytest.raises(InputError, match=f"ticket 1: the field '{field}' is unknown. Did you mean '{meant}'"):
        load_tickets([{**ticket(), field: ["x"]}])


@pytest.mark.parametrize(
    ("oracle", "place", "meant"),
    [
        ({"must_cal": [{"name": "x"}]}, "must_cal", "must_call"),
        ({"must_call": [{"name": "x", "argumnts": {}}]}, r"must_call\.0\.argumnts", "arguments"),
        ({"handoff_wantd": True}, "handoff_wantd", "handoff_wanted"),
    ],
)
def test_a_misspelt_key_inside_an_oracle_is_refused_with_the_nearest(oracle: Any, place: str, meant: str) -> None:
    with pytest.raises(InputError, match=f"ticket 1: the oracle's field '{place}' is .*Did you mean '{meant}'"):
        load_tickets([ticket(oracle=oracle)])
    with pytest.raises(InputError, match=r"'zzz' is 1: .*There are: must_call, .*at_most"):
        load_tickets([ticket(oracle={"zzz": 1})])


def test_an_oracle_says_as_much_as_its_row_knows(demo: Simulation) -> None:
    row = next(t.source for t in load_tickets(demo.kept))
    told = load_tickets(demo.kept.filter(lambda r: r.id == row))[0].oracle
    assert load_tickets([ticket(oracle=told)])[0].oracle == told
    assert load_tickets([ticket(oracle={"why": "It is so.", "ends": ["refused"]})])[0].oracle


@pytest.mark.parametrize("field", ["channel", "source_id", "ticket_type", "customer_name"])
def test_a_column_of_the_users_own_is_left_out_with_a_warning(field: str) -> None:
    with pytest.warns(UserWarning, match=f"ticket 1: the field '{field}' is unknown and was left out; the fields are"):
        assert len(load_tickets([{**ticket(), field: "x"}])) == 1


def test_a_column_of_many_tickets_is_told_once(recwarn: pytest.WarningsRecorder) -> None:
    load_tickets([{**ticket(n), "channel": "x", "shop": 1} for n in range(3)])
    told = [str(w.message).partition(";")[0] for w in recwarn.list]
    assert told == [f"ticket 1 and 2 more: the field '{n}' is unknown and was left out" for n in ("channel", "shop")]


def test_rows_to_train_on_are_no_tickets_and_the_way_to_make_some_is_told(demo: Simulation, tmp_path: Path) -> None:
    demo.kept.export(tmp_path / "kept.jsonl")
    with pytest.raises(
        InputError,
        match=r"kept.jsonl: line 1 is a row to train on, and no ticket\. Type ws\.load_tickets\(ws\.load\(RUN\)\.kept\)\.save",
    ):
        load_tickets(tmp_path / "kept.jsonl")
    with pytest.raises(InputError, match=r"there is no file '.*' of tickets\. Type ws\.load_tickets\(ws\.load\(RUN\)"):
        load_tickets(tmp_path)
    with pytest.raises(InputError, match=r"there is no file '.*none' of tickets\. Type: whilesim eval --init"):
        load_tickets(tmp_path / "none")


def test_a_csv_reads_lists_and_json_and_leaves_out_an_empty_row(tmp_path: Path) -> None:
    head = "ticket_id,user_message,customer_context,expected_tools,handoff"
    path = write(
        tmp_path / "t.csv", head, 'a,"Hi, you","{""order_id"": 7}",lookup_order;cancel_order,true', ",,,,", "b,Hello,,,"
    )
    with pytest.warns(UserWarning, match=r"t\.csv, line 3 is empty"):
        first, second = load_tickets(path)
    assert first.expected_tools == ("lookup_order", "cancel_order")
    assert first.handoff is True
    assert first.customer_context == {"order_id": 7}
    assert second.handoff is None


@pytest.mark.parametrize(
    ("row", "match"),
    [('a,b,{"x":,', "line 2, column 'customer_context' starts like JSON"), ("a,b,c,d,e,f", "line 2 has 6 cells")],
)
def test_a_broken_csv_is_refused_with_its_line(tmp_path: Path, row: str, match: str) -> None:
    with pytest.raises(InputError, match=match):
        load_tickets(write(tmp_path / "t.csv", "ticket_id,user_message,customer_context,expected_tools", row))


def test_a_csv_that_names_no_columns_is_refused_and_a_byte_order_mark_is_none_of_the_text(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"t\.csv, line 1 names the columns a, Cancel it\.: ticket_id and user_message"
    ):
        load_tickets(write(tmp_path / "t.csv", "a,Cancel it."))
    assert len(load_tickets(write(tmp_path / "t.jsonl", "\ufeff" + json.dumps(ticket())))) == 1


def test_a_text_may_start_like_json_and_so_may_an_id(tmp_path: Path) -> None:
    head = "ticket_id,user_message,customer_context,goal,handoff"
    (first,) = load_tickets(write(tmp_path / "t.csv", head, 'true,[urgent] Cancel it,"{""a"": 1}",{later},TRUE'))
    assert (first.ticket_id, first.user_message, first.goal) == ("true", "[urgent] Cancel it", "{later}")
    assert (first.customer_context, first.handoff) == ({"a": 1}, True)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        (None, "no tickets were given. Type the path of a file.*whilesim eval --init"),
        (3, "ticket 1 is int, and must be a mapping"),
        (
            [ticket(expected_arguments={"cancl_order": {}})],
            "names the tool 'cancl_order'.* Did you mean 'cancel_order'",
        ),
        ([AgentTrace("x"), {}], r"(?s)2 of the tickets.*of 'x' holds no word.*ticket 2 has no 'ticket_id'"),
    ],
)
def test_what_no_ticket_can_be_read_from_is_said(given: Any, match: str) -> None:
    with pytest.raises(InputError, match=match):
        load_tickets(given)


def test_a_ticket_of_a_trace_of_a_row_keeps_the_row_out(demo: Simulation) -> None:
    row = demo.rows[0]
    (made,) = load_tickets([AgentTrace(row.card_id, turns=[{"role": "user", "content": "Hi"}])])
    left = load_tickets([made]).keep_out(demo)
    assert len(left.rows) < len(demo.rows)
    assert row.card_id not in {r.card_id for r in left.rows}


def test_a_file_that_is_not_there_says_what_to_type() -> None:
    with pytest.raises(InputError, match=r"there is no file 'nowhere\.jsonl'.*whilesim eval --init"):
        load_tickets("nowhere.jsonl")


@pytest.mark.parametrize("read", [load_tickets, load])
def test_a_name_of_nothing_is_told_at_once_where_no_hub_answers(read: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr("time.sleep", lambda seconds: pytest.fail(f"it waits {seconds} s for another try"))
    with pytest.raises(InputError, match=r"there is no .*folder 'runs/typo' here, and the Hub cannot be reached \("):
        read("runs/typo")


def test_saved_tickets_read_back_equal(tmp_path: Path, suite: Path) -> None:
    tickets = load_tickets(suite)
    tickets.save(tmp_path / "again.jsonl")
    again = load_tickets(tmp_path / "again.jsonl")
    assert list(again) == list(tickets)
    assert again.digest == tickets.digest


def test_rows_become_tickets_and_leave_the_training_rows(demo: Simulation) -> None:
    data, tickets = demo, load_tickets(demo.kept)
    assert len(tickets) >= 5
    assert all(t.expected_tools or t.handoff for t in tickets)
    seconds = {t.ticket_id for t in tickets if t.second}
    assert {r.card.form for r in data.kept.rows if r.card_id in seconds} == {"second_request"}
    left = tickets.keep_out(data.kept)
    assert not {r.id for r in left.rows} & {t.source for t in tickets}
    cells = [dict(t.cell) for t in tickets]
    assert not [r for r in left.rows if dict(r.situation) in cells]
    assert len(left.rows) < len(data.kept.rows)


def test_it_is_said_how_many_rows_became_no_ticket_and_why(demo: Simulation, caplog: pytest.LogCaptureFixture) -> None:
    tickets, rows = load_tickets(demo.kept), demo.kept.rows
    twice = len(rows) - len({r.card_id for r in rows})
    (told,) = caplog.messages
    assert told.startswith(f"{len(tickets)} of {len(rows)} rows became tickets; left out: ")
    assert f"{twice} further rollouts of a card" in told
    assert f"{len(rows) - len(tickets) - twice} that ask for no call and no hand-off" in told
    caplog.clear()
    mine = {t.source for t in tickets}
    assert len(load_tickets(demo.kept.filter(lambda r: r.id in mine))) == len(tickets)
    assert load_tickets(list(tickets))
    assert not caplog.messages  # nothing was left out


def test_tickets_are_saved_into_a_folder_that_is_not_there_yet(tmp_path: Path) -> None:
    tickets = load_tickets([ticket()])
    tickets.save(tmp_path / "eval" / "new" / "tickets.jsonl")
    assert list(load_tickets(tmp_path / "eval" / "new" / "tickets.jsonl")) == list(tickets)


def test_a_card_whose_first_rollout_was_dropped_is_a_ticket_by_its_second(demo: Simulation) -> None:
    some = load_tickets(demo)[0]
    (made,) = load_tickets(demo.filter(lambda r: r.card_id == some.ticket_id and r.rollout == 1))
    assert (made.ticket_id, made.source) == (some.ticket_id, f"{some.ticket_id}/r1")


def test_a_failing_trace_becomes_a_ticket_with_the_customers_words() -> None:
    turns = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "?"},
        {"role": "user", "content": "Cancel it"},
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (made,) = load_tickets([AgentTrace("CS-9", turns=turns, trial=2)])
    assert (made.user_message, made.follow_ups, made.source) == ("Hi", ("Cancel it",), "CS-9")
    with pytest.raises(InputError, match="the trace of 'x' holds no word of a customer"):
        load_tickets([AgentTrace("x")])


def test_the_traces_of_a_runs_folder_become_tickets(tmp_path: Path) -> None:
    AgentTrace("CS-9", turns=[{"role": "user", "content": "Hi"}]).save(tmp_path / "traces.jsonl")
    (made,) = load_tickets(tmp_path / "traces.jsonl")
    assert (made.ticket_id, made.user_message) == ("CS-9-trial0", "Hi")


@pytest.mark.parametrize(
    "turn", [{"role": "user"}, "hi", {"role": "user", "content": [{"text": "hi"}]}, {"content": None}]
)
def test_a_trace_that_is_written_otherwise_is_refused_in_words(turn: Any) -> None:
    with pytest.raises(InputError, match="the trace of 'x' holds no word of a customer"):
        load_tickets([AgentTrace("x", turns=[turn])])


def test_a_hand_off_that_is_not_wanted_is_saved(tmp_path: Path) -> None:
    made = load_tickets([{"ticket_id": "1", "user_message": "Hi", "handoff": False}])
    made.save(tmp_path / "t.jsonl")
    assert load_tickets(tmp_path / "t.jsonl")[0].handoff is False


@pytest.mark.parametrize("content", [b"0", b"{}", b'"text"', b"\xef\xbb\xbf0"])
def test_a_json_file_that_holds_no_list_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "t.json").write_bytes(content)
    with pytest.raises(InputError, match="must hold a list of tickets"):
        load_tickets(tmp_path / "t.json")


@pytest.mark.parametrize("content", [b"\xff\xfe{\x00", b"[" * 100_000])
def test_a_line_that_is_no_text_or_too_deep_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "t.jsonl").write_bytes(content)
    with pytest.raises(InputError, match=r"t\.jsonl, line 1: not JSON"):
        load_tickets(tmp_path / "t.jsonl")


def test_a_csv_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"ticket_id,user_message\nCS-1,\xff\xfeHello\n")
    with pytest.raises(InputError, match=r"t\.csv is no CSV file in UTF-8"):
        load_tickets(tmp_path / "t.csv")
