"""Replies: the reply cache, so that what was paid once is not paid again.

``replies.sqlite`` holds the answers as they were received. The key is a digest of the
request (model, parameters, messages, tools) and of which call it is (case, rollout, role,
turn, sample): the same request in another rollout is another call. Hosts and keys are in
no key.

Answers are committed twice a second: a killed process loses those of the last half second.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import sqlite3
from collections.abc import Callable
from dataclasses import astuple

from whilesim.chat.models import CallKey
from whilesim.core.errors import InputError

log = logging.getLogger(__name__)

_EVERY = 0.5  # seconds from the first answer to the commit
_SET_UP = """
PRAGMA journal_mode=WAL;
PRAGMA synchronous=NORMAL;
CREATE TABLE IF NOT EXISTS replies (key BLOB PRIMARY KEY, reply BLOB NOT NULL)
"""


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
            self._timer: asyncio.TimerHandle | None = None
        except sqlite3.Error as error:
            msg = f"the reply cache {os.fspath(path)!r} cannot be opened ({error}). "
            raise InputError(msg + "Delete it: its answers are asked for again, and nothing else is lost.") from error

    def get(self, key: bytes) -> bytes | None:
        """Return the answer under a key of :func:`reply_key`, or None."""
        row = self._file.execute("SELECT reply FROM replies WHERE key = ?", (key,)).fetchone()
        return None if row is None else bytes(row[0])

    def put(self, key: bytes, reply: bytes) -> None:
        """Keep an answer; a running loop commits it."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_EVERY, self._commit)
        self._try(lambda: self._file.execute("INSERT OR REPLACE INTO replies VALUES (?, ?)", (key, reply)))

    def close(self) -> None:
        """Commit what is left and close the file."""
        if self._timer is not None:
            self._timer.cancel()
            self._commit()
        self._file.close()

    def _commit(self) -> None:
        self._timer = None
        self._try(self._file.commit)

    def _try(self, write: Callable[[], object]) -> None:
        try:
            write()
        except sqlite3.Error as error:  # they are asked for again; it must not end the run
            log.warning("replies could not be kept: %s", error)


def reply_key(request: bytes, key: CallKey) -> bytes:
    """Return the 16 bytes under which the answer to a request, given as its body, is kept."""
    return hashlib.sha256(request + repr(astuple(key)).encode()).digest()[:16]


def _connect(path: str | os.PathLike[str]) -> sqlite3.Connection:
    connection = sqlite3.connect(path, check_same_thread=False, timeout=30)
    try:
        connection.executescript(_SET_UP)
    except sqlite3.Error:
        connection.close()
        raise
    return connection
