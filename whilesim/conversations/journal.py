"""Journal: finished rows on disk, so that a killed run loses none of them.

A row is any mapping with an ``id``; one that failed has a ``failure`` with a ``reason``.
While a run lasts, rows are appended to ``rows.jsonl`` in the order in which they finish, and
``sync`` forces them to the disk; ``finish`` rewrites the file in the order that the caller
gives. What must not be in a row (seconds, hosts, retries) goes to ``log.jsonl``.

The folder remembers in ``manifest.json`` what decides its rows (the fingerprint). Without
a folder, or when its disk is full, rows are kept in memory.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, BinaryIO

from whilesim.core.errors import InputError, RunError
from whilesim.core.jsontext import dumps, loads, parse_object, write_whole

log = logging.getLogger(__name__)

PLAYED_AGAIN = frozenset({"rate_limit", "timeout", "connection", "server", "auth", "budget", "deadline", "interrupt"})
"""Reasons of failure that say nothing about the row: a resumed run plays it again."""

_EVERY = 0.5  # seconds between two fsyncs


class Journal(AbstractContextManager["Journal"]):
    """The rows of one run folder, with a lock against a second writer.

    Args:
        run_dir: The folder, made when absent; None keeps the rows in memory.
        fingerprint: What decides the rows, as a JSON object. Leave out what may change between
            two attempts: concurrency, budget, prices, keys, hosts.

    Raises:
        InputError: The folder cannot be written, or holds the rows of another run; names what
            differs.
        RunError: Another process is writing to it.
    """

    def __init__(self, run_dir: str | os.PathLike[str] | None, *, fingerprint: Mapping[str, Any] | None = None) -> None:
        self.folder = None if run_dir is None else Path(run_dir)
        self.problem: str | None = None
        """What went wrong with the disk, once something has; later rows are in memory."""
        self._held: dict[str, bytes | tuple[int, int]] = {}  # a line, or where it begins in the file and how long it is
        self._again: set[str] = set()
        self._rows: BinaryIO | None = None
        self._log: BinaryIO | None = None
        self._lock: BinaryIO | None = None
        self._synced = 0.0
        if self.folder is not None:
            self._open(self.folder, fingerprint or {})

    def __exit__(self, *_: object) -> None:
        self.close()

    def __contains__(self, row_id: str) -> bool:
        """Whether the row is finished and need not be played again."""
        return row_id in self._held and row_id not in self._again

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of all rows held, also of those to be played again, in the order they finished."""
        return tuple(self._held)

    def append(self, row: Mapping[str, Any]) -> None:
        """Write a finished row; a later row of the same id takes the place of an earlier one."""
        line = dumps(row).encode() + b"\n"
        self._hold(row, self._write(line) or line)

    def read(self, row_id: str) -> dict[str, Any]:
        """Return a row; KeyError when there is none of that id."""
        return dict(loads(self._line(row_id)))

    def log(self, entry: Mapping[str, Any]) -> None:
        """Add a line to ``log.jsonl``: what may differ between two runs of the same rows."""
        if self._log is not None and self.problem is None:
            with self._reporting():
                self._log.write(dumps(entry).encode() + b"\n")

    def sync(self) -> None:
        """Force to the disk what was written, twice a second at most."""
        if self._rows is None or self._log is None or time.monotonic() - self._synced < _EVERY:
            return
        with self._reporting():
            self._log.flush()
            os.fsync(self._rows.fileno())
        self._synced = time.monotonic()

    def finish(self, order: Sequence[str]) -> None:
        """Put the rows in the given order, and rewrite ``rows.jsonl`` so, whole or not at all.

        Rows whose id is not in ``order`` follow in the order they finished: nothing is deleted.
        """
        held = self._held
        self._held = {row_id: held[row_id] for row_id in dict.fromkeys((*order, *held)) if row_id in held}
        if self.folder is None or self._rows is None:
            return
        path, rows, places = self.folder / "rows.jsonl", self._rows, {}

        def lines() -> Iterator[bytes]:
            place = 0
            for row_id in self._held:
                line = self._line(row_id)
                places[row_id] = (place, len(line))
                place += len(line)
                yield line
            rows.close()  # Windows does not replace a file that is open

        with self._reporting():
            write_whole(path, lines())
            self._held, self.problem = dict(places), None
        rows.close()
        self._rows = path.open("r+b", buffering=0)
        if lost := sum(isinstance(held, bytes) for held in self._held.values()):
            told = f"{self.folder}: {lost} of {len(self._held)} rows are in memory only, and gone with this process"
            typed = f"type data.save({str(self.folder)!r}); in a shell, the same command again plays them anew"
            log.error("%s. Make room and %s.", told, typed)

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Write ``manifest.json``, whole or not at all; the fingerprint in it is kept, and the judges admitted there."""
        if self.folder is None:
            return
        path = self.folder / "manifest.json"
        with self._reporting():
            told = {"fingerprint": None, **_read_manifest(path)}
            _write_json(path, {**manifest, **{n: v for n, v in told.items() if n in ("fingerprint", "admitted")}})

    def close(self) -> None:
        """Force everything to the disk and let another process write."""
        self._synced = 0.0
        self.sync()
        for file in (self._rows, self._log, self._lock):
            if file is not None:
                file.close()
        self._rows = self._log = self._lock = None

    def _open(self, folder: Path, fingerprint: Mapping[str, Any]) -> None:
        path = folder / "rows.jsonl"
        claim(folder)
        self._lock = (folder / ".lock").open("a+b")
        path.touch()
        try:
            _take_lock(self._lock, folder)
            self._compare(folder, fingerprint)
            self._rows = path.open("r+b", buffering=0)
            self._load(path, self._rows)
            self._log = (folder / "log.jsonl").open("ab")
        except BaseException:
            self.close()
            raise

    def _compare(self, folder: Path, fingerprint: Mapping[str, Any]) -> None:
        manifest, played = _read_manifest(folder / "manifest.json"), (folder / "rows.jsonl").stat().st_size
        old: Any = manifest.get("fingerprint")
        new = loads(dumps(fingerprint))
        if old is None and played:
            raise InputError(f"{os.fspath(folder)!r} holds rows, but not what decided them. Choose another run_dir.")
        if not played:  # what another run left there decides nothing, its verdicts of no rows least of all
            (folder / "verdicts.jsonl").unlink(missing_ok=True)
            _write_json(folder / "manifest.json", {"fingerprint": new})
        elif old != new:
            names = [n for n in {**old, **new} if old.get(n) != new.get(n)]
            changes = "; ".join(f"{n}: {old.get(n)!r} is now {new.get(n)!r}" for n in names)
            msg = f"{os.fspath(folder)!r} holds the rows of another run: {changes}."
            raise InputError(f"{msg} Choose another run_dir, or give what it was begun with.")

    def _load(self, path: Path, file: BinaryIO) -> None:
        offset = end = broken = 0  # the end is behind the last line that can be read
        with path.open("rb") as lines:
            for line in lines:
                row = parse_object(line.decode("utf-8", "replace")) if line.endswith(b"\n") else None
                if row is None or "id" not in row:
                    broken += 1
                else:
                    self._hold(row, (offset, len(line)))
                    end = offset + len(line)
                offset += len(line)
        if broken:
            log.warning("%s: %d line(s) were torn by a crash; their rows are played again", path, broken)
        file.truncate(end)

    def _hold(self, row: Mapping[str, Any], place: bytes | tuple[int, int]) -> None:
        row_id, failure = str(row["id"]), row.get("failure")
        self._held.pop(row_id, None)
        self._held[row_id] = place
        self._again.discard(row_id)
        if isinstance(failure, Mapping) and failure.get("reason") in PLAYED_AGAIN:
            self._again.add(row_id)

    def _write(self, line: bytes) -> tuple[int, int] | None:
        """Append a line whole and return its place, or None when the disk does not take it."""
        if self._rows is None or self.problem is not None:
            return None
        offset = self._rows.seek(0, os.SEEK_END)
        with self._reporting():
            written = self._rows.write(line)
            if written == len(line):
                return offset, written
            raise OSError(f"only {written} of {len(line)} bytes were written")
        with suppress(OSError):  # a torn line would swallow the next one; what stays, the next run repairs
            self._rows.truncate(offset)
        return None

    def _line(self, row_id: str) -> bytes:
        held = self._held[row_id]
        if isinstance(held, bytes):
            return held
        assert self._rows is not None, "only a journal with a file has rows in it"
        self._rows.seek(held[0])
        return self._rows.read(held[1])

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        """Remember and say, once, what the disk does not take."""
        try:
            yield
        except OSError as error:
            if self.problem is None:
                self.problem = f"{self.folder}: {error}. Rows that finish from now on are kept in memory only."
                log.error(self.problem)


def claim(folder: Path) -> None:
    """Make a run's folder, and raise InputError where nothing can be written there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        TemporaryFile(dir=folder).close()
    except OSError as error:
        msg = f"the run folder {os.fspath(folder)!r} cannot be written: {error}. Choose another run_dir."
        raise InputError(msg) from error


def _read_manifest(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    found = parse_object(path.read_text(encoding="utf-8"))
    if found is None:
        raise InputError(f"{os.fspath(path)!r} is no JSON object. Restore it, or choose another run_dir.")
    return found


def _write_json(path: Path, value: Mapping[str, Any]) -> None:
    write_whole(path, [dumps(value, indent=2).encode() + b"\n"])


def _take_lock(file: BinaryIO, folder: Path) -> None:
    """Lock the file for this process; the system lets go when the process dies, however it dies."""
    try:
        if os.name == "posix":
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            import msvcrt

            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]  # Windows only
    except OSError as error:
        msg = f"another run is writing to {os.fspath(folder)!r}. Wait for it, or choose another run_dir."
        raise RunError(msg) from error
