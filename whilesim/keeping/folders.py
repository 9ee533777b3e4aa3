"""Folders: a run on disk, as rows that are read when they are looked at.

``rows.jsonl`` holds the rows without verdicts, ``verdicts.jsonl`` the grades, joined here by
id. A file of more than 32 MB is not read whole: its lines are found once, read again each time
they are asked for, and saved as they stand.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import compress
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter

from whilesim.chat.usage import Usage
from whilesim.core.errors import InputError
from whilesim.core.jsontext import dumps, first_fault, loads, write_lines, write_whole
from whilesim.keeping.grades import Grade, Grades
from whilesim.keeping.manifest import Manifest
from whilesim.keeping.rows import Row

T = TypeVar("T")
WHOLE = 32 << 20
"""Bytes of ``rows.jsonl`` up to which rows are kept in memory."""
_GRADE = TypeAdapter(Grade)
_FILES = ("rows.jsonl", "manifest.json", "verdicts.jsonl")
Recalled = tuple[list[str], dict[str, Grade] | None]
"""Judges that a folder has admitted, and its grades, None where it has not been graded."""


class RowFile(Sequence[Row]):
    """Rows that stay in their file; slices and selections share it."""

    def __init__(self, path: Path, offsets: array[int], grades: Grades) -> None:
        self.path, self.offsets, self.grades = path, offsets, grades

    @classmethod
    def open(cls, path: Path) -> RowFile:
        """Find the rows of a file; a last line that was not finished is none."""
        offsets, at = array("q"), 0
        with path.open("rb") as lines:
            for line in lines:
                if line.endswith(b"\n") and line.strip():
                    offsets.append(at)
                at += len(line)
        return cls(path, offsets, {})

    def __len__(self) -> int:
        return len(self.offsets)

    def __getitem__(self, index: Any) -> Any:  # a row, or for a slice another of these
        if isinstance(index, slice):
            return RowFile(self.path, self.offsets[index], self.grades)
        return next(iter(RowFile(self.path, array("q", [self.offsets[index]]), self.grades)))

    def __iter__(self) -> Iterator[Row]:
        for row in share_tools(self.read(Row.from_text)):
            yield self.grades[row.id].apply(row) if row.id in self.grades else row

    def read(self, parse: Callable[[bytes], T]) -> Iterator[T]:
        """Yield what ``parse`` makes of each line; raises InputError with the line's number where it cannot."""
        with self.path.open("rb") as lines:
            for offset in self.offsets:
                lines.seek(offset)
                try:
                    yield parse(lines.readline())
                except ValueError as error:
                    lines.seek(0)
                    number = lines.read(offset).count(b"\n") + 1
                    wrong = first_fault(error)
                    wrong += "" if isinstance(error, InputError) else ". Restore the line, or delete it."
                    raise InputError(f"{os.fspath(self.path)}, line {number} cannot be read: {wrong}") from error


def share_tools(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield the rows, equal tools as one object: a third of what a row weighs, and the same in all of a run."""
    tools: list[dict[str, Any]] = []
    for row in rows:
        tools = tools if row.tools == tools else row.tools
        yield row.model_copy(update={"tools": tools})


def join_grades(played: Sequence[Row], grades: Grades) -> Sequence[Row]:
    """Return the rows with their grades; rows without one stay as they were played."""
    if isinstance(played, RowFile):
        return RowFile(played.path, played.offsets, grades)
    return tuple(grades[row.id].apply(row) if row.id in grades else row for row in played)


def lighten(row: Row) -> Row:
    """Return the row with empty messages, as many, and without its largest parts: an eighth of it, to count with."""
    return row.model_copy(update={"messages": [{}] * len(row.messages), "tools": [], "oracle": None, "final_state": {}})


def select_rows(played: Sequence[Row], chosen: Iterable[bool]) -> Sequence[Row]:
    """Return the rows for which ``chosen`` is true, without reading them where they stay in a file."""
    if isinstance(played, RowFile):
        return RowFile(played.path, array("q", compress(played.offsets, chosen)), {})
    return tuple(compress(played, chosen))


def read_folder(folder: Path) -> tuple[Sequence[Row], Manifest | None, dict[str, Grade] | None]:
    """Read a run's folder: rows as played, manifest, and the grades, None where it has not been graded.

    Raises:
        InputError: It holds no rows, or a line cannot be read; names the line.
    """
    path, manifest, verdicts = (folder / name for name in _FILES)
    begun = (folder / "log.jsonl").exists() and not verdicts.exists()  # an empty view that was saved is no such run
    if not path.exists() or (begun and not path.stat().st_size):
        msg = f"{os.fspath(folder)!r} holds no rows: no conversation of a run has ended there. Run simulate on it, or type another folder."
        raise InputError(msg)
    rows: Sequence[Row] = RowFile.open(path)
    if path.stat().st_size <= WHOLE:
        rows = tuple(rows)
    return rows, Manifest.read(manifest) if manifest.exists() else None, _read_grades(verdicts)


def recall(folder: str | os.PathLike[str] | None) -> Recalled:
    """Return what a folder that is played again knows of its rows: the judges admitted there, and the grades.

    Where it holds no rows, what else stands in it is of others.
    """
    rows, manifest, verdicts = (Path(folder or ".") / name for name in _FILES)
    if folder is None or not rows.exists() or not rows.stat().st_size:
        return [], None
    return Manifest.read(manifest).admitted if manifest.exists() else [], _read_grades(verdicts)


def _read_grades(path: Path) -> dict[str, Grade] | None:
    """Return grades by row id, None where nothing has been graded."""
    if not path.exists():
        return None
    return {grade.id: grade for grade in RowFile.open(path).read(lambda line: _GRADE.validate_python(loads(line)))}


def write_folder(folder: Path, played: Sequence[Row], manifest: Manifest, grades: Grades | None) -> None:
    """Write a folder that :func:`read_folder` reads.

    Raises:
        InputError: A row cannot be read, or some rows of a file would be written over all of them.
    """
    rows, ids = folder / "rows.jsonl", [row.id for row in played]
    if not isinstance(played, RowFile):
        write_rows(rows, played)
    elif not rows.exists() or not rows.samefile(played.path):
        write_whole(rows, played.read(bytes))
    elif len(ids) < len(RowFile.open(rows)):
        msg = f"{os.fspath(folder)!r} holds more rows than these {len(ids)}, which are read from it. "
        raise InputError(msg + "Type another folder.")
    if grades is not None:
        write_grades(folder / "verdicts.jsonl", (grades[row_id] for row_id in ids if row_id in grades))
    manifest.write(folder / "manifest.json")


def write_rows(path: Path, played: Iterable[Row]) -> int:
    """Write ``rows.jsonl``, verdicts left to ``verdicts.jsonl``, whole or not at all; return how many."""
    return write_lines(path, (row.with_verdict(None, usage=Usage()).to_json() for row in played))


def write_grades(path: Path, grades: Iterable[Grade]) -> None:
    """Write ``verdicts.jsonl`` in the order given."""
    write_lines(path, map(asdict, grades))


def append_lines(path: Path, values: Iterable[Mapping[str, Any]]) -> None:
    """Add lines to either file at once, all or none: rows played later, or a paid answer while grading lasts."""
    lines = b"".join(dumps(value).encode() + b"\n" for value in values)
    with path.open("ab", buffering=0) as out:
        size = out.seek(0, os.SEEK_END)
        if out.write(lines) != len(lines):
            out.truncate(size)  # a torn line would swallow the next one
            raise OSError(f"{os.fspath(path)!r} took only a part of {len(lines)} bytes")
