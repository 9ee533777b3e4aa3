"""A person labels conversations at a terminal, and stops and goes on as they like."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from judges import called, said

from whilesim.cli import main
from whilesim.core.errors import InputError
from whilesim.grading.label import label
from whilesim.grading.trust import read_labels
from whilesim.showcase import demo_policy, demo_tools
from whilesim.street import simulate

CONVERSATIONS = {
    "a": said("Cancel 7", called("cancel_order", '{"ok": true}', order_id="7"), "Done."),
    "b": said("Hello \x1b[2Jthere\x07\nsecond line", "Hi."),
    "c": said("Bye", "Bye."),
}


def session(path: Path, typed: str) -> tuple[int, str]:
    screen = io.StringIO()
    count = label(CONVERSATIONS, path, answers=io.StringIO(typed), screen=screen)
    return count, screen.getvalue()


def on_disk(path: Path) -> list[tuple[str, bool, str]]:
    return [(x["id"], x["keep"], x["reason"]) for x in map(json.loads, path.read_text(encoding="utf-8").splitlines())]


def test_every_answer_becomes_a_line_that_trust_can_read(tmp_path: Path) -> None:
    file = tmp_path / "labels.jsonl"
    count, screen = session(file, "k\nkind and right\nd\n\nkeep\nüber\n")
    assert count == 3
    assert on_disk(file) == [("a", True, "kind and right"), ("b", False, ""), ("c", True, "über")]
    assert read_labels(file, CONVERSATIONS) == {"a": True, "b": False, "c": True}
    assert "=== a: 1 of 3 ===" in screen


def test_a_session_goes_on_where_the_last_one_stopped(tmp_path: Path) -> None:
    file = tmp_path / "labels.jsonl"
    assert session(file, "k\nfine\nq\n")[0] == 1
    count, screen = session(file, "s\nd\nrude\n")
    assert count == 2
    assert "=== a" not in screen
    assert on_disk(file) == [("a", True, "fine"), ("c", False, "rude")]
    assert session(file, "")[0] == 2


def test_a_file_that_holds_no_labels_of_these_conversations_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "labels.jsonl"
    for line, message in [('{"id": "z", "keep": true}', "no such row"), ('{"name": "a"}', "must say which and what")]:
        file.write_text(line, encoding="utf-8")
        with pytest.raises(InputError, match=message):
            session(file, "k\n\n")
        assert file.read_text(encoding="utf-8") == line


def test_undo_takes_back_the_last_answer_and_asks_again(tmp_path: Path) -> None:
    file = tmp_path / "labels.jsonl"
    session(file, "u\nk\nfine\nu\nd\nrude after all\nq\n")
    assert on_disk(file) == [("a", False, "rude after all")]
    other = tmp_path / "other.jsonl"
    session(other, "k\nfine\nu\nq\n")
    assert on_disk(other) == []


def test_an_answer_that_is_none_of_the_commands_is_asked_again(tmp_path: Path) -> None:
    count, screen = session(tmp_path / "labels.jsonl", "what?\n\nk\n\n")
    assert count == 1
    assert screen.count("=== a: 1 of 3 ===") == 3


def test_the_screen_shows_calls_and_nothing_that_could_drive_a_terminal(tmp_path: Path) -> None:
    _, screen = session(tmp_path / "labels.jsonl", "s\ns\ns\n")
    assert '-> cancel_order {"order_id": "7"}' in screen
    assert "RESULT" in screen
    assert "second line" in screen
    assert not {c for c in screen if not c.isprintable()} - {"\n"}
    assert "Ask before you cancel" not in screen


def test_the_command_asks_first_about_rows_that_a_judge_may_read_and_goes_on_where_it_ended(tmp_path: Path) -> None:
    data = simulate("scripted", tools=demo_tools(), system_prompt=demo_policy(), situations=18, rollouts=1).grade()
    data.save(tmp_path)
    told = CliRunner().invoke(main, ["label", str(tmp_path)], input="s\n" * 18)
    shown = re.findall(r"=== (\S+): ", told.output)
    assert set(shown[: len(data.kept)]) == {row.id for row in data.kept.rows}
    assert {row.id for row in data.dropped.rows} == set(shown[len(data.kept) :]) != set()
    for count in (1, 2):
        told = CliRunner().invoke(main, ["label", str(tmp_path)], input="k\nfine\nq\n")
        assert (told.exit_code, f"{count} of 18 labelled" in told.output) == (0, True)
    assert on_disk(tmp_path / "labels.jsonl") == [(row_id, True, "fine") for row_id in shown[:2]]
