"""Journal: finished rows on disk, so that a killed run loses none of them.

A row is any mapping with an ``id``; one that failed has a ``failure`` with a ``reason``.
While a run lasts, rows are appended to ``rows.jsonl`` in the order in which they finish and
a thread forces them to the disk twice a second; ``finish`` rewrites the file in the order
that the caller gives. What must not be in a row (seconds, hosts, retries) goes to
``log.jsonl``.

The folder remembers in ``manifest.json`` what decides its rows (the fingerprint). Without
a folder, or when its disk is full, rows are kept in memory.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from whilesim.core.errors import InputError, RunError
from whilesim.core.jsontext import dumps, loads, parse_object

log = logging.getLogger(__name__)

PLAYED_AGAIN = frozenset({"rate_limit", "timeout", "connection", "server", "auth", "budget", "deadline", "interrupt"})
"""Reasons of failure that say nothing about the row: a resumed run plays it again."""

_EVERY = 0.5  # seconds between two fsyncs


class Journal:
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
        self._offsets: dict[str, int] = {}
        self._memory: dict[str, bytes] = {}
        self._again: set[str] = set()
        self._rows: BinaryIO | None = None
        self._reader: BinaryIO | None = None
        self._log: BinaryIO | None = None
        self._lock: BinaryIO | None = None
        self._closing = threading.Event()
        self._guard = threading.Lock()  # a file that is being forced to the disk must not be closed
        self._syncer: threading.Thread | None = None
        if self.folder is not None:
            self._open(self.folder, fingerprint or {})

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __contains__(self, row_id: str) -> bool:
        """Whether the row is finished and need not be played again."""
        return (row_id in self._offsets or row_id in self._memory) and row_id not in self._again

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of all rows held, also of those to be played again, in the order they finished."""
        return (*self._offsets, *(i for i in self._memory if i not in self._offsets))

    def append(self, row: Mapping[str, Any]) -> None:
        """Write a finished row; a later row of the same id takes the place of an earlier one."""
        line, row_id = dumps(row).encode() + b"\n", str(row["id"])
        offset = self._write(line)
        if offset is None:
            self._memory[row_id] = line
        else:
            self._offsets.pop(row_id, None)
            self._offsets[row_id] = offset
        if _plays_again(row):
            self._again.add(row_id)
        else:
            self._again.discard(row_id)

    def read(self, row_id: str) -> dict[str, Any]:
        """Return a row; KeyError when there is none of that id."""
        return dict(loads(self._line(row_id)))

    def rows(self, order: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
        """Yield the rows in the given order, or as they finished; ids without a row are left out."""
        for row_id in self.ids if order is None else order:
            if row_id in self._memory or row_id in self._offsets:
                yield self.read(row_id)

    def log(self, entry: Mapping[str, Any]) -> None:
        """Add a line to ``log.jsonl``: what may differ between two runs of the same rows."""
        if self._log is not None and self.problem is None:
            try:
                self._log.write(dumps(entry).encode() + b"\n")
            except OSError as error:
                self._report(error)

    def finish(self, order: Sequence[str]) -> None:
        """Rewrite ``rows.jsonl`` in the given order, whole or not at all.

        Rows whose id is not in ``order`` follow in the order they finished: nothing is deleted.
        """
        if self._rows is None:
            return
        named = set(order)
        ordered = [i for i in dict.fromkeys(order) if i in self._offsets or i in self._memory]
        ordered += [i for i in self.ids if i not in named]
        target = self._folder / "rows.jsonl"
        temporary, offsets, place = target.with_name("rows.jsonl.part"), {}, 0
        try:
            with temporary.open("wb") as out:
                for row_id in ordered:
                    line = self._line(row_id)
                    out.write(line)
                    offsets[row_id] = place
                    place += len(line)
                out.flush()
                os.fsync(out.fileno())
            self._close_rows()  # Windows does not replace a file that is open
            temporary.replace(target)
            _sync_folder(self._folder)
        except OSError as error:
            self._report(error)
        else:
            self._offsets, self._memory, self.problem = offsets, {}, None
        self._close_rows()
        self._rows = target.open("r+b", buffering=0)

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Write ``manifest.json``, whole or not at all; the fingerprint in it is kept."""
        if self.folder is None:
            return
        path = self.folder / "manifest.json"
        kept = _read_manifest(path).get("fingerprint")
        whole = dict(manifest) if kept is None else {**manifest, "fingerprint": kept}
        try:
            _replace(path, dumps(whole, indent=2).encode() + b"\n")
        except OSError as error:
            self._report(error)

    def close(self) -> None:
        """Force everything to the disk and let another process write."""
        if self._closing.is_set():
            return
        self._closing.set()
        if self._syncer is not None:
            self._syncer.join()
        self._sync()
        self._close_rows()
        for file in (self._log, self._lock):
            if file is not None:
                file.close()

    def _open(self, folder: Path, fingerprint: Mapping[str, Any]) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = (folder / ".lock").open("a+b")
            (folder / "rows.jsonl").touch()
        except OSError as error:
            msg = f"the run folder {os.fspath(folder)!r} cannot be written: {error}. Choose another run_dir."
            raise InputError(msg) from error
        _take_lock(self._lock, folder)
        try:
            self._compare(folder, fingerprint)
            self._rows = (folder / "rows.jsonl").open("r+b", buffering=0)
            self._load(self._rows)
            self._log = (folder / "log.jsonl").open("ab")
        except BaseException:
            self.close()
            raise
        self._syncer = threading.Thread(target=self._keep_syncing, name="whilesim-journal", daemon=True)
        self._syncer.start()

    def _compare(self, folder: Path, fingerprint: Mapping[str, Any]) -> None:
        path = folder / "manifest.json"
        manifest = _read_manifest(path)
        old, new = manifest.get("fingerprint"), loads(dumps(fingerprint))
        if old is None and (folder / "rows.jsonl").stat().st_size:
            msg = f"{os.fspath(folder)!r} holds rows, but not what decided them. Choose another run_dir."
            raise InputError(msg)
        if old is None:
            _replace(path, dumps({**manifest, "fingerprint": new}, indent=2).encode() + b"\n")
        elif old != new:
            names = [n for n in {**old, **new} if old.get(n) != new.get(n)]
            changes = "; ".join(f"{n}: {old.get(n)!r} is now {new.get(n)!r}" for n in names)
            msg = (
                f"{os.fspath(folder)!r} holds the rows of another run: {changes}. "
                "Choose another run_dir, or give what it was begun with."
            )
            raise InputError(msg)

    def _load(self, file: BinaryIO) -> None:
        offset, broken = 0, 0
        end = 0  # behind the last line that can be read
        with (self._folder / "rows.jsonl").open("rb") as lines:
            for line in lines:
                row = parse_object(line.decode("utf-8", "replace")) if line.endswith(b"\n") else None
                if row is None or "id" not in row:
                    broken += 1
                else:
                    row_id = str(row["id"])
                    self._offsets.pop(row_id, None)
                    self._offsets[row_id], end = offset, offset + len(line)
                    (self._again.add if _plays_again(row) else self._again.discard)(row_id)
                offset += len(line)
        if broken:
            log.warning("%s: %d line(s) were torn by a crash; their rows are played again", file.name, broken)
        file.truncate(end)
        file.seek(end)

    def _write(self, line: bytes) -> int | None:
        """Append a line whole and return its offset, or None when the disk does not take it."""
        if self._rows is None or self.problem is not None:
            return None
        try:
            offset = self._rows.seek(0, os.SEEK_END)
            written = self._rows.write(line)
            if written != len(line):
                raise OSError(f"only {written} of {len(line)} bytes were written")
        except OSError as error:
            self._report(error)
            try:
                self._rows.truncate(offset)  # else the torn line would swallow the next one
            except OSError:
                log.warning("the last line of %s is torn; the next run repairs it", self._rows.name)
            return None
        return offset

    def _line(self, row_id: str) -> bytes:
        if row_id in self._memory:
            return self._memory[row_id]
        offset = self._offsets[row_id]
        if self._reader is None:
            self._reader = (self._folder / "rows.jsonl").open("rb")
        self._reader.seek(offset)
        return self._reader.readline()

    @property
    def _folder(self) -> Path:
        assert self.folder is not None, "only a journal with a folder has files"
        return self.folder

    def _close_rows(self) -> None:
        with self._guard:
            for file in (self._rows, self._reader):
                if file is not None:
                    file.close()
            self._reader = None

    def _report(self, error: OSError) -> None:
        if self.problem is None:
            self.problem = f"{self.folder}: {error}. Rows that finish from now on are kept in memory only."
            log.error(self.problem)

    def _keep_syncing(self) -> None:
        while not self._closing.wait(_EVERY):
            self._sync()

    def _sync(self) -> None:
        try:
            if self._log is not None:
                self._log.flush()
            with self._guard:
                if self._rows is not None and not self._rows.closed:
                    os.fsync(self._rows.fileno())
        except OSError as error:
            self._report(error)


def _plays_again(row: Mapping[str, Any]) -> bool:
    failure = row.get("failure")
    return isinstance(failure, Mapping) and failure.get("reason") in PLAYED_AGAIN


def _read_manifest(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    found = parse_object(path.read_text(encoding="utf-8"))
    if found is None:
        msg = f"{os.fspath(path)!r} is no JSON object. Restore it, or choose another run_dir."
        raise InputError(msg)
    return found


def _replace(path: Path, data: bytes) -> None:
    temporary = path.with_name(path.name + ".part")
    with temporary.open("wb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())
    temporary.replace(path)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    if os.name != "posix":  # elsewhere a folder cannot be opened, and a rename is durable by itself
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


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
        file.close()
        msg = f"another run is writing to {os.fspath(folder)!r}. Wait for it, or choose another run_dir."
        raise RunError(msg) from error
