"""JSON text: strict JSON, in and out.

What is written here can be read by every JSON parser: no NaN, no bare lone surrogates.
What is read here is JSON as the standard says; anything else is an error, not a guess.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from pathlib import Path
from typing import Any, TypeVar, cast

from whilesim.core.errors import InputError
from whilesim.core.keys import scrub
from whilesim.core.text import shorten

T = TypeVar("T")

_DEEPEST = 200  # brackets within brackets that YAML is read with: its time grows with the square


def dumps(value: Any, *, indent: int | None = None) -> str:
    """Write a value as strict JSON on one line, key order kept.

    Numbers that JSON does not know become null. Text stays readable, but a text that cannot
    be encoded as UTF-8 (a lone surrogate) is written with escapes, so that it survives.
    """
    write = _write if indent is None else json.JSONEncoder(ensure_ascii=False, allow_nan=False, indent=indent).encode
    try:
        text = write(value)
    except ValueError:
        text = write(_finite(value))
    try:
        text.isascii() or text.encode("utf-8")
    except UnicodeEncodeError:
        text = json.dumps(_finite(value), allow_nan=False, indent=indent)
    return text


def loads(text: str | bytes) -> Any:
    """Read strict JSON; a number beyond the range of floats is null, as it would be written.

    Raises:
        ValueError: The text is not JSON, or holds NaN or Infinity.
    """
    try:
        return _read(text if isinstance(text, str) else text.decode("utf-8"))
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def read_yaml(text: str) -> Any:
    """Read YAML as plain data: no tag makes an object.

    Raises:
        ValueError: The text is not YAML, is nested so deeply that reading it would take for ever, or says so
            often that something comes again that the whole would fill the memory.
    """
    import yaml

    depth = accumulate(1 if mark in "[{" else -1 for mark in re.findall(r"[\[\]{}]", text))
    if max(depth, default=0) > _DEEPEST:
        raise ValueError("it is nested too deeply")
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if _unfolded(node, {}) > 20_000 + 10 * len(text):
            raise ValueError("what its anchors stand for comes again too often")
        return None if node is None else loader.construct_document(node)
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(f"it is not YAML: {error}") from error


def _unfolded(node: Any, known: dict[int, int]) -> int:
    """Count what a node of YAML holds, each time that it comes again."""
    if id(node) not in known:
        known[id(node)] = 1  # it may hold itself
        value = getattr(node, "value", ())
        parts = () if isinstance(value, str) else value
        known[id(node)] += sum(_unfolded(p, known) for n in parts for p in (n if isinstance(n, tuple) else (n,)))
    return known[id(node)]


def copied(value: T) -> T:
    """Copy nested mappings and lists; what stands in them is shared. Five times as fast as ``deepcopy``."""
    if isinstance(value, dict):  # a call for each plain value would take most of the time
        return cast(T, {key: copied(v) if isinstance(v, (dict, list)) else v for key, v in value.items()})
    if isinstance(value, list):
        return cast(T, [copied(v) if isinstance(v, (dict, list)) else v for v in value])
    return value


def parse_object(text: str) -> dict[str, Any] | None:
    """Return the JSON object that the text is, or None when it is anything else."""
    try:
        found = loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def first_fault(error: ValueError, *, given: bool = False) -> str:
    """Return the first thing that is wrong, after the key that it is wrong with; ``given`` shows what stands there."""
    from pydantic import ValidationError

    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors(include_url=False)[0]
    place = ".".join(map(str, first["loc"]))
    if given:
        missing = first["type"].startswith("missing")  # what would be shown then is all that stands around it
        wrong = "not there" if missing else f"{shorten(repr(scrub(first['input'])), 200)}: {first['msg']}"
        return f"{repr(place) if place else 'it'} is {wrong}."
    return f"{place}{': ' * bool(place)}{shorten(first['msg'], 200)}"


def read_lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, Any]]:
    """Yield line number (from 1) and value of each line of a JSONL file.

    Raises:
        InputError: A line is not JSON; names the file and the line.
    """
    with Path(path).open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                if line.strip():
                    yield number, loads(line.removeprefix(b"\xef\xbb\xbf"))
            except ValueError as error:
                msg = f"{os.fspath(path)}, line {number}: not JSON ({error}). Mend or delete the line."
                raise InputError(msg) from error


def write_lines(path: str | os.PathLike[str], values: Iterable[Mapping[str, Any]]) -> int:
    """Write mappings as JSONL, whole or not at all; return how many."""
    return write_whole(path, (dumps(value).encode() + b"\n" for value in values))


def write_whole(path: str | os.PathLike[str], chunks: Iterable[bytes]) -> int:
    """Write a file, and the folders that it lacks, whole or not at all; return how many chunks.

    The bytes go to a temporary file beside the target, which replaces it once they are on disk.

    Raises:
        InputError: The path names no file.
    """
    if not (target := Path(path)).name or (target.exists() and not target.is_file()):
        raise InputError(f"{os.fspath(path)!r} names no file to write. Type a file's name.")
    temporary = target.with_name(target.name + ".part")
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with temporary.open("wb") as out:
            count = sum(1 for _ in map(out.write, chunks))
            out.flush()
            os.fsync(out.fileno())
        temporary.replace(target)
        return count
    finally:
        temporary.unlink(missing_ok=True)


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def _number(text: str) -> float | None:
    found = float(text)
    return found if math.isfinite(found) else None


_write = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode  # json.dumps makes an encoder for each call
_read = json.JSONDecoder(parse_constant=_refuse, parse_float=_number).decode


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, (list, tuple)) else value
