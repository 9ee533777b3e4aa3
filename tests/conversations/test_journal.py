"""Finished rows on disk."""

from __future__ import annotations

import errno
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whilesim.conversations.journal import PLAYED_AGAIN, Journal
from whilesim.core.errors import InputError, RunError

PRINT = {"policy": "abc", "seed": 0, "models": {"agent": "m"}}


def row(row_id, **fields):
    return {"id": row_id, "text": "two\nlines \u2028 ü \ud83d", **fields}


def failed(row_id, reason):
    return row(row_id, failure={"role": "agent", "reason": reason, "message": "..."})


def lines(folder: Path) -> list[str]:
    return [json.loads(line)["id"] for line in (folder / "rows.jsonl").read_bytes().splitlines()]


def test_rows_are_appended_as_they_finish_and_put_in_order_at_the_end(tmp_path):
    with Journal(tmp_path / "a" / "run", fingerprint=PRINT) as journal:
        for name in "cab":
            journal.append(row(name))
        assert lines(tmp_path / "a" / "run") == ["c", "a", "b"]
        journal.finish(["a", "b", "missing", "c"])
        assert lines(tmp_path / "a" / "run") == ["a", "b", "c"]
        journal.append(row("d"))
        assert [r["id"] for r in map(journal.read, journal.ids)] == ["a", "b", "c", "d"]
        assert journal.read("b") == row("b")
    assert sorted(p.name for p in (tmp_path / "a" / "run").iterdir()) == [
        ".lock",
        "log.jsonl",
        "manifest.json",
        "rows.jsonl",
    ]


@given(st.permutations(list("abcdef")), st.integers(0, 6))
@settings(max_examples=10, deadline=None)
def test_the_finished_file_does_not_depend_on_the_order_of_finishing(tmp_path_factory, order, killed_after):
    folder = tmp_path_factory.mktemp("run")
    for part in (order[:killed_after], order[killed_after:]):
        with Journal(folder) as journal:
            for name in part:
                journal.append(row(name))
    with Journal(folder) as journal:
        journal.finish("abcdef")
    expected = "".join(json.dumps(row(n)) for n in "abcdef")
    found = (folder / "rows.jsonl").read_text(encoding="utf-8")
    assert [json.loads(line) for line in found.split("\n") if line] == [row(n) for n in "abcdef"]
    assert len(found) > len(expected) / 2


@pytest.mark.parametrize("run_dir", [True, False])
def test_rows_that_failed_for_a_passing_reason_are_played_again(tmp_path, run_dir):
    with Journal(tmp_path if run_dir else None) as journal:
        journal.append(row("fine"))
        journal.append(failed("too long", "context_window"))
        for reason in sorted(PLAYED_AGAIN):
            journal.append(failed(reason, reason))
        assert [i for i in journal.ids if i in journal] == ["fine", "too long"]
        journal.append(row("timeout"))
        assert "timeout" in journal
        assert journal.read("timeout") == row("timeout")
        assert len(journal.ids) == 2 + len(PLAYED_AGAIN)


def test_a_row_that_failed_and_was_not_played_again_is_kept(tmp_path):
    with Journal(tmp_path) as journal:
        journal.append(failed("a", "timeout"))
    with Journal(tmp_path) as journal:
        assert "a" not in journal
        journal.finish(["a"])
    assert lines(tmp_path) == ["a"]


def test_a_row_played_again_stands_once_in_the_finished_file(tmp_path):
    with Journal(tmp_path) as journal:
        journal.append(failed("a", "timeout"))
        journal.append(row("b"))
    with Journal(tmp_path) as journal:
        journal.append(row("a"))
        journal.finish(["a", "b"])
    assert lines(tmp_path) == ["a", "b"]
    with Journal(tmp_path) as journal:
        assert "a" in journal


def test_rows_that_the_order_does_not_name_follow(tmp_path):
    with Journal(tmp_path) as journal:
        for name in "zyx":
            journal.append(row(name))
        journal.finish(["x"])
        assert lines(tmp_path) == ["x", "z", "y"]


@pytest.mark.parametrize("cut", range(1, 30, 4))
def test_a_torn_last_line_is_cut_off(tmp_path, cut, caplog):
    with Journal(tmp_path) as journal:
        journal.append(row("a"))
        journal.append(row("b"))
    path = tmp_path / "rows.jsonl"
    path.write_bytes(path.read_bytes()[:-cut])
    with Journal(tmp_path) as journal:
        assert journal.ids == ("a",)
        journal.append(row("c"))
    assert lines(tmp_path) == ["a", "c"]
    assert "1 line(s) were torn" in caplog.text


@pytest.mark.parametrize("rubbish", [b"\x00" * 100, b"\x00" * 100 + b"\n", b'{"no": "id"}\n', b"\xff\xfe\n"])
def test_what_a_crash_left_behind_the_rows_is_cut_off(tmp_path, rubbish):
    with Journal(tmp_path) as journal:
        journal.append(row("a"))
    with (tmp_path / "rows.jsonl").open("ab") as file:
        file.write(rubbish)
    with Journal(tmp_path) as journal:
        journal.append(row("b"))
    assert lines(tmp_path) == ["a", "b"]


def test_an_unreadable_line_among_others_costs_its_row_only(tmp_path):
    with Journal(tmp_path) as journal:
        for name in "abc":
            journal.append(row(name))
    path = tmp_path / "rows.jsonl"
    parts = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([parts[0], parts[1][:9], *parts[2:]]))
    with Journal(tmp_path) as journal:
        assert journal.ids == ("a", "c")
        journal.append(row("b"))
        journal.finish("abc")
    assert lines(tmp_path) == ["a", "b", "c"]


def test_a_folder_without_rows_is_no_other_run_s(tmp_path):
    Journal(tmp_path, fingerprint={"agent": "scriptd"}).close()
    with Journal(tmp_path, fingerprint={"agent": "scripted"}) as journal:
        journal.append(row("a"))
    with pytest.raises(InputError, match="'scripted' is now 'scriptd'"):
        Journal(tmp_path, fingerprint={"agent": "scriptd"})


def test_a_second_writer_is_told_to_wait(tmp_path):
    with Journal(tmp_path), pytest.raises(RunError, match=r"another run is writing to .* choose another run_dir"):
        Journal(tmp_path)
    Journal(tmp_path).close()


def test_a_writer_in_another_process_is_seen_and_its_death_frees_the_folder(tmp_path):
    code = f"from whilesim.conversations.journal import Journal as J; j = J({str(tmp_path)!r}); print('up', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "up\n"
        with pytest.raises(RunError, match="another run is writing"):
            Journal(tmp_path)
        other.kill()
        other.wait()
    Journal(tmp_path).close()


def test_another_runs_rows_are_not_mixed_in_and_the_difference_is_named(tmp_path):
    with Journal(tmp_path, fingerprint=PRINT) as journal:
        journal.append(row("a"))
    changed = {**PRINT, "seed": 7, "models": {"agent": "n"}}
    with pytest.raises(InputError, match=r"seed: 0 is now 7; models: \{'agent': 'm'\} is now \{'agent': 'n'\}"):
        Journal(tmp_path, fingerprint=changed)
    with Journal(tmp_path, fingerprint=PRINT) as journal:
        assert "a" in journal


def test_rows_of_unknown_origin_are_not_added_to(tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"id": "a"}\n')
    with pytest.raises(InputError, match="not what decided them"):
        Journal(tmp_path, fingerprint=PRINT)


def test_the_manifest_keeps_the_fingerprint(tmp_path):
    with Journal(tmp_path, fingerprint=PRINT) as journal:
        journal.write_manifest({"version": 1, "counts": {"rows": 3}})
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest == {"version": 1, "counts": {"rows": 3}, "fingerprint": PRINT}
    Journal(tmp_path, fingerprint=PRINT).close()


def test_a_broken_manifest_is_an_error(tmp_path):
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(InputError, match="is no JSON object"):
        Journal(tmp_path)


def test_a_folder_that_cannot_be_written_is_an_error_before_any_call(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match=r"cannot be written: .* Choose another run_dir"):
        Journal(tmp_path / "file" / "run")


class FullDisk:
    """Stands before a file and takes ``room`` more bytes."""

    def __init__(self, file, room):
        self.file, self.room = file, room

    def write(self, data):
        if self.room < len(data):
            self.file.write(data[: self.room])
            raise OSError(errno.ENOSPC, "No space left on device")
        self.room -= len(data)
        return self.file.write(data)

    def __getattr__(self, name):
        return getattr(self.file, name)


def test_a_full_disk_is_reported_and_later_rows_are_kept_in_memory(tmp_path, caplog):
    with Journal(tmp_path) as journal:
        journal.append(row("a"))
        journal._rows = FullDisk(journal._rows, room=20)
        journal.append(row("b"))
        journal.append(row("c"))
        assert journal.problem is not None
        assert "No space left on device" in journal.problem
        assert len([r for r in caplog.records if r.levelname == "ERROR"]) == 1
        assert [r["id"] for r in map(journal.read, journal.ids)] == ["a", "b", "c"]
        assert lines(tmp_path) == ["a"]  # half of b was taken back
        journal.finish("abc")  # there is room again
        assert journal.problem is None
    assert lines(tmp_path) == ["a", "b", "c"]
    assert not [m for m in caplog.messages if "in memory only, and gone" in m]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_disk_without_room_for_the_rewrite_keeps_the_old_file(tmp_path):
    with Journal(tmp_path) as journal:
        for name in "ba":
            journal.append(row(name))
        (tmp_path / "rows.jsonl.part").symlink_to("/dev/full")
        journal.finish("ab")
        assert journal.problem is not None
        assert lines(tmp_path) == ["b", "a"]
        assert [r["id"] for r in map(journal.read, "ab")] == ["a", "b"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_disk_that_is_still_full_at_the_end_says_how_many_rows_are_not_on_it(tmp_path, caplog):
    with Journal(tmp_path) as journal:
        journal.append(row("a"))
        journal._rows = FullDisk(journal._rows, room=0)
        for name in "bc":
            journal.append(row(name))
        (tmp_path / "rows.jsonl.part").symlink_to("/dev/full")
        journal.finish("abc")
        assert [r["id"] for r in map(journal.read, journal.ids)] == ["a", "b", "c"]
        assert lines(tmp_path) == ["a"]
        (told,) = [m for m in caplog.messages if "in memory only, and gone" in m]
        assert f"{tmp_path}: 2 of 3 rows" in told
        assert f"type data.save({str(tmp_path)!r}); in a shell, the same command again" in told


def test_what_may_differ_between_runs_is_logged_beside_the_rows(tmp_path):
    with Journal(tmp_path) as journal:
        journal.log({"id": "a", "seconds": 1.5})
    assert json.loads((tmp_path / "log.jsonl").read_text()) == {"id": "a", "seconds": 1.5}


def test_without_a_folder_nothing_is_written():
    with Journal(None) as journal:
        journal.append(row("a"))
        journal.log({"x": 1})
        journal.write_manifest({})
        journal.finish("a")
        assert [r["id"] for r in map(journal.read, journal.ids)] == ["a"]
        with pytest.raises(KeyError):
            journal.read("b")


def test_a_row_that_is_changed_later_is_kept_as_it_was():
    with Journal(None) as journal:
        changing = row("a")
        journal.append(changing)
        changing["text"] = "other"
        assert journal.read("a") == row("a")


def test_a_line_is_strict_json_whatever_a_model_said(tmp_path):
    with Journal(tmp_path) as journal:
        journal.append(row("a", score=float("nan"), name="Ann\x00a"))
        assert journal.read("a") == row("a", score=None, name="Ann\x00a")
    assert b"NaN" not in (tmp_path / "rows.jsonl").read_bytes()


KILLED = """
import sys, itertools
from whilesim.conversations.journal import Journal
with Journal(sys.argv[1]) as journal:
    for i in itertools.count():
        if f"r{i}" not in journal:
            journal.append({"id": f"r{i}", "text": "x" * (i * 37 % 5000)})
            print(i, flush=True)
"""


@pytest.mark.chaos
@pytest.mark.parametrize("seed", range(8))
def test_no_row_that_was_finished_is_lost_to_a_kill(tmp_path, seed):
    rng = random.Random(seed)
    done = -1
    for _ in range(4):
        with subprocess.Popen(
            [sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            done = max(done, int(process.stdout.readline()))
            time.sleep(rng.random() * 0.3)
            process.kill()
            done = max([done, *map(int, process.stdout.read().split())])
    with Journal(tmp_path) as journal:
        held = {int(i[1:]) for i in journal.ids}
        assert held >= set(range(done + 1))
        journal.finish([f"r{i}" for i in range(done + 1)])
    assert lines(tmp_path)[: done + 1] == [f"r{i}" for i in range(done + 1)]


@pytest.mark.chaos
def test_a_hundred_thousand_rows_fit_into_little_memory(tmp_path):
    code = """
import sys, resource
from whilesim.conversations.journal import Journal
with Journal(sys.argv[1]) as journal:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for i in range(100_000):
        journal.append({"id": f"row-{i}", "text": "x" * 3000})
    journal.finish([f"row-{i}" for i in reversed(range(100_000))])
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""
    found = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert int(found.stdout) < 100
    assert os.path.getsize(tmp_path / "rows.jsonl") > 300_000_000
