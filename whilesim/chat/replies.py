"""Replies: the reply cache, so that what was paid once is not paid again.

``replies.sqlite`` holds the answers as they were received. The key is a digest of the
request (model, parameters, messages, tools) and of which call it is (case, rollout, role,
turn, sample): the same request in another rollout is another call. Hosts and keys are in
no key.

Each answer is written at once, which costs some 25 microseconds: a killed process loses none.
"""

from __future__ import annotations

import hashlib
import logging
import os
import sqlite3

from whilesim.chat.models import CallKey
from whilesim.core.errors import InputError

log = logging.getLogger(__name__)

_SET_UP = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=NORMAL",
    "CREATE TABLE IF NOT EXISTS replies (key BLOB PRIMARY KEY, reply BLOB NOT NULL)",
)


class Replies:
    """The reply cache of one run folder.

    Args:
        path: The file; made when absent.

    Raises:
        InputError: The file cannot be opened or is no reply cache.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        try:
            self._file = _connect(path)
        except sqlite3.Error as error:
            msg = (
                f"the reply cache {os.fspath(path)!r} cannot be opened ({error}). "
                "Delete it: its answers are asked for again, and nothing else is lost."
            )
            raise InputError(msg) from error

    def get(self, key: bytes) -> bytes | None:
        """Return the answer under a key of :func:`reply_key`, or None."""
        row = self._file.execute("SELECT reply FROM replies WHERE key = ?", (key,)).fetchone()
        return None if row is None else bytes(row[0])

    def put(self, key: bytes, reply: bytes) -> None:
        """Keep an answer."""
        try:
            self._file.execute("INSERT OR REPLACE INTO replies VALUES (?, ?)", (key, reply))
        except sqlite3.Error as error:  # a full disk must not end the run: the answer is asked for again
            log.warning("a reply could not be kept: %s", error)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def reply_key(request: bytes, key: CallKey) -> bytes:
    """Return the 16 bytes under which the answer to a request, given as its body, is kept."""
    which = repr((key.case, key.rollout, key.role, key.turn, key.sample))
    return hashlib.sha256(request + which.encode()).digest()[:16]


def _connect(path: str | os.PathLike[str]) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=30)
    try:
        for statement in _SET_UP:
            connection.execute(statement)
    except sqlite3.Error:
        connection.close()
        raise
    return connection
