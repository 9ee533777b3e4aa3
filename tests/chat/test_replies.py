"""The reply cache on disk."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import pytest

from whilesim.chat.models import CallKey
from whilesim.chat.replies import Replies, reply_key
from whilesim.core.errors import InputError

KEY = CallKey(case="c1", rollout=1, role="agent", turn=2)


def test_what_was_put_is_found_now_and_by_another_process_a_little_later(tmp_path):
    async def go():
        replies = Replies(tmp_path / "r.sqlite")
        replies.put(b"k" * 16, b"answer")
        assert replies.get(b"k" * 16) == b"answer"
        assert replies.get(b"x" * 16) is None
        other, end = Replies(tmp_path / "r.sqlite"), time.monotonic() + 30
        while (found := other.get(b"k" * 16)) is None and time.monotonic() < end:
            await asyncio.sleep(0.05)
        other.close()
        replies.close()
        return found

    assert asyncio.run(go()) == b"answer"


def test_what_was_put_last_is_kept_by_a_close(tmp_path):
    async def go():
        replies = Replies(tmp_path / "r.sqlite")
        replies.put(b"k" * 16, b"answer")
        replies.close()

    asyncio.run(go())
    again = Replies(tmp_path / "r.sqlite")
    assert again.get(b"k" * 16) == b"answer"
    again.close()


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
    async def go():
        replies = Replies(tmp_path / "r.sqlite")
        replies._file.execute("PRAGMA query_only=ON")  # stands for a full disk: each insert fails
        replies.put(b"k" * 16, b"answer")
        replies.close()

    asyncio.run(go())
    assert "replies could not be kept: attempt to write a readonly database" in caplog.text
