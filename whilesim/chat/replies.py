"""Replies: the reply cache, so that what was paid once is not paid again.

``replies.sqlite`` holds the answers as they were received. The key is a digest of the
request (model, parameters, messages, tools) and of which call it is (case, rollout, role,
turn, sample): the same request in another rollout is another call. Hosts and keys are in
no key.

Answers are written by one thread, twice a second: a killed process loses those of the last
second. Known keys are held in memory, 16 bytes each, so that a miss costs no look-up.
"""

from __future__ import annotations

import hashlib
import logging
import os
import queue
import sqlite3
import threading
from pathlib import Path

from whilesim.chat.models import CallKey
from whilesim.core.errors import InputError

log = logging.getLogger(__name__)

_EVERY = 0.5  # seconds between commits
_TABLE = "CREATE TABLE IF NOT EXISTS replies (key BLOB PRIMARY KEY, reply BLOB NOT NULL)"


class Replies:
    """The reply cache of one run folder.

    Args:
        path: The file; made when absent.

    Raises:
        InputError: The file cannot be opened or is no reply cache.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        try:
            self._reader = _connect(self.path)
            self._reader.execute(_TABLE)
            self._keys = {bytes(row[0]) for row in self._reader.execute("SELECT key FROM replies")}
        except sqlite3.Error as error:
            msg = (
                f"the reply cache {os.fspath(path)!r} cannot be opened ({error}). "
                "Delete it: its answers are asked for again, and nothing else is lost."
            )
            raise InputError(msg) from error
        self._fresh: dict[bytes, bytes] = {}  # not committed yet
        self._queue: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._write, name="whilesim-replies", daemon=True)
        self._thread.start()

    def __len__(self) -> int:
        return len(self._keys)

    def get(self, key: bytes) -> bytes | None:
        """Return the answer under a key of :func:`reply_key`, or None."""
        if key not in self._keys:
            return None
        fresh = self._fresh.get(key)
        if fresh is not None:
            return fresh
        row = self._reader.execute("SELECT reply FROM replies WHERE key = ?", (key,)).fetchone()
        return None if row is None else bytes(row[0])

    def put(self, key: bytes, reply: bytes) -> None:
        """Keep an answer; it is on disk within a second."""
        self._keys.add(key)
        self._fresh[key] = reply
        self._queue.put(key)

    def close(self) -> None:
        """Write what is left and close the file."""
        if self._closing.is_set():
            return
        self._closing.set()
        self._thread.join()
        self._reader.close()

    def _write(self) -> None:
        connection = _connect(self.path)
        try:
            while not self._closing.wait(_EVERY):
                self._commit(connection)
            self._commit(connection)
        finally:
            connection.close()

    def _commit(self, connection: sqlite3.Connection) -> None:
        batch = []
        while not self._queue.empty():
            key = self._queue.get()
            batch.append((key, self._fresh[key]))
        try:
            with connection:
                connection.executemany("INSERT OR REPLACE INTO replies VALUES (?, ?)", batch)
        except sqlite3.Error as error:  # a full disk must not end the run: these answers are asked for again
            log.warning("%d replies could not be written to %s: %s", len(batch), self.path, error)
        for key, _ in batch:
            self._fresh.pop(key, None)


def reply_key(request: bytes, key: CallKey) -> bytes:
    """Return the 16 bytes under which the answer to a request, given by its digest, is kept."""
    which = repr((key.case, key.rollout, key.role, key.turn, key.sample))
    return hashlib.sha256(request + which.encode()).digest()[:16]


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, check_same_thread=False, timeout=30)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")
    return connection
