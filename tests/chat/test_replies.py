"""The reply cache on disk."""

from __future__ import annotations

import sqlite3
import time
from dataclasses import replace

import pytest

from whilesim.chat.models import CallKey
from whilesim.chat.replies import Replies, reply_key
from whilesim.core.errors import InputError

KEY = CallKey(case="c1", rollout=1, role="agent", turn=2)


def test_what_was_put_is_found_now_and_after_closing(tmp_path):
    replies = Replies(tmp_path / "r.sqlite")
    replies.put(b"k" * 16, b"answer")
    assert replies.get(b"k" * 16) == b"answer"
    assert replies.get(b"x" * 16) is None
    replies.close()
    replies.close()
    again = Replies(tmp_path / "r.sqlite")
    assert (len(again), again.get(b"k" * 16)) == (1, b"answer")
    again.close()


def test_an_answer_is_on_disk_within_a_second_or_so(tmp_path):
    replies = Replies(tmp_path / "r.sqlite")
    replies.put(b"k" * 16, b"answer")
    other = sqlite3.connect(tmp_path / "r.sqlite")
    end = time.monotonic() + 30
    while not (found := other.execute("SELECT reply FROM replies").fetchall()) and time.monotonic() < end:
        time.sleep(0.05)
    other.close()
    replies.close()
    assert found == [(b"answer",)]


@pytest.mark.parametrize("change", [{"case": "c2"}, {"rollout": 0}, {"role": "judge"}, {"turn": 3}, {"sample": 1}])
def test_the_same_request_elsewhere_is_another_call(change):
    assert reply_key(b"request", KEY) != reply_key(b"request", replace(KEY, **change))
    assert reply_key(b"request", KEY) == reply_key(b"request", replace(KEY))
    assert reply_key(b"request", KEY) != reply_key(b"other", KEY)


def test_a_file_that_is_no_cache_is_an_error(tmp_path):
    path = tmp_path / "r.sqlite"
    path.write_text("this is no database, and it is long enough to be read as one" * 50)
    with pytest.raises(InputError, match=r"reply cache .* cannot be opened .* Delete it"):
        Replies(path)


def test_a_disk_that_takes_nothing_costs_no_run(tmp_path, caplog):
    replies = Replies(tmp_path / "r.sqlite")
    replies._reader.execute("DROP TABLE replies")  # stands for a full disk: each insert fails
    replies._reader.execute("CREATE TABLE replies (key BLOB, reply BLOB CHECK (length(reply) < 0))")
    replies.put(b"k" * 16, b"answer")
    replies.close()
    assert "1 replies could not be written" in caplog.text
