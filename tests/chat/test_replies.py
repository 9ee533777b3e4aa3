"""The reply cache on disk."""

from __future__ import annotations

from dataclasses import replace

import pytest

from whilesim.chat.models import CallKey
from whilesim.chat.replies import Replies, reply_key
from whilesim.core.errors import InputError

KEY = CallKey(case="c1", rollout=1, role="agent", turn=2)


def test_what_was_put_is_found_now_and_by_another_process_that_did_not_wait_for_a_close(tmp_path):
    replies = Replies(tmp_path / "r.sqlite")
    replies.put(b"k" * 16, b"answer")
    other = Replies(tmp_path / "r.sqlite")
    for reader in (replies, other):
        assert reader.get(b"k" * 16) == b"answer"
        assert reader.get(b"x" * 16) is None
        reader.close()


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
    replies._file.execute("PRAGMA query_only=ON")  # stands for a full disk: each insert fails
    replies.put(b"k" * 16, b"answer")
    replies.close()
    assert "a reply could not be kept" in caplog.text
