"""Arrow: rows as a dataset and as a data frame, and back, exactly.

A struct type would pad every nested object with the keys of all others, so each nested value
is one JSON text under the ``Json`` feature. The reader of that feature rounds some floats,
drops lone surrogates and stops at integers beyond 64 bits: what it shows is for looking and
training. The texts underneath are exact, and :func:`from_dataset` reads those.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import uuid4

from whilesim.core.jsontext import dumps, loads, parse_object
from whilesim.keeping.rows import Row

PLAIN = dict.fromkeys(("version", "rollout", "wave", "seed"), "int64")
PLAIN |= dict.fromkeys(("id", "situation_id", "twin_of", "stop"), "string")
LISTS = ("messages", "tools", "failed_calls", "customer_calls", "changes", "findings", "planted")
_GROUP = 1000  # rows that a viewer of the file must read at once
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*')  # a JSON string, or a number outside of any


def row_features() -> Any:
    """Return the ``datasets.Features`` of rows, columns in the row's order."""
    from datasets import Features, Json, List, Value

    kinds = {name: Value(kind) for name, kind in PLAIN.items()} | {name: List(Json()) for name in LISTS}
    return Features({name: kinds.get(name, Json()) for name in Row.model_fields})


def to_dataset(rows: Iterable[Row]) -> Any:
    """Return rows as a ``datasets.Dataset``: arguments as objects, tools as wrapped tools.

    It is read from a file where ``datasets`` keeps what it does not cache (below ``TMPDIR``),
    and ``datasets`` removes that when the process ends; ``save_to_disk`` keeps it longer.
    """
    import pyarrow as pa
    from datasets import Dataset
    from datasets.fingerprint import get_temporary_cache_files_directory

    path = f"{get_temporary_cache_files_directory()}/rows-{uuid4().hex}.arrow"
    with pa.OSFile(path, "wb") as file, pa.ipc.new_stream(file, row_features().arrow_schema) as out:
        for table in _tables(rows):
            out.write_table(table)
    return Dataset.from_file(path)


def from_dataset(dataset: Any) -> Iterator[Row]:
    """Yield the rows of a dataset that :func:`to_dataset` made, in its order, wherever it has been.

    Raises:
        InputError: It holds something else.
    """
    raw = dataset.with_format("arrow")
    for start in range(0, len(dataset), _GROUP):
        yield from map(from_cells, raw[start : start + _GROUP].to_pylist())


def write_parquet(rows: Iterable[Row], path: Path) -> None:
    """Write rows as a parquet file that ``datasets`` reads with the features of rows."""
    import pyarrow.parquet as parquet

    with parquet.ParquetWriter(path, row_features().arrow_schema) as out:
        for table in _tables(rows):
            out.write_table(table)


def to_pandas(rows: Iterable[Row]) -> Any:
    """Return rows as a ``pandas.DataFrame``: one column a key, nested values as Python's own.

    ``Row.from_json`` reads each record of it back. Python's objects weigh three times the
    row's JSON; tools that are one object in the rows are one in the frame.
    """
    import pandas as pd

    frame = pd.DataFrame([row.to_json() for row in rows], columns=list(Row.model_fields), dtype=object)
    return frame.astype({name: kind for name, kind in PLAIN.items() if kind == "int64"})


def _tables(rows: Iterable[Row]) -> Iterator[Any]:
    """Yield tables of so many rows each; ``datasets`` would parse every text again to build them."""
    import pyarrow as pa

    schema, waiting = row_features().arrow_schema, iter(rows)
    kinds = PLAIN | dict.fromkeys(LISTS, pa.list_(pa.string()))
    texts = pa.schema([(name, kinds.get(name, "string")) for name in schema.names])
    while some := [to_cells(row) for row in islice(waiting, _GROUP)]:
        yield pa.Table.from_pylist(some, schema=texts).cast(schema)


def to_cells(row: Row) -> dict[str, Any]:
    """Return a row as plain values and JSON texts, column by column."""
    wire = row.to_json() | {"messages": [open_arguments(m) for m in row.messages]}
    return {name: _turned(name, value, _spell) for name, value in wire.items()}


def from_cells(cells: Mapping[str, Any]) -> Row:
    """Read a row from the plain values and JSON texts that :func:`to_cells` gave."""
    # the items of failed_calls are texts
    wire = {name: _turned(name, cell, loads if name == "failed_calls" else _unspell) for name, cell in cells.items()}
    return Row.from_json(wire)


def open_arguments(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message whose calls hold their arguments as objects, where they are objects.

    Arguments that a reader of datasets would stop at (an integer beyond 64 bits, a thousand
    lists in one another) stay text.
    """
    if "tool_calls" not in message:
        return dict(message)
    calls = []
    for call in message["tool_calls"]:
        found = parse_object(call["function"]["arguments"])
        if found is not None and _shown(dumps(found)) is not None:
            call = {**call, "function": {**call["function"], "arguments": found}}
        calls.append(call)
    return {**message, "tool_calls": calls}


def is_readable(line: str) -> bool:
    """Say whether the ``datasets`` package can read this JSON line, which may round its floats."""
    if "\\ud" in line:  # half a character, or six that look like it
        try:
            json.dumps(loads(line), ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError:
            return False
    return _shown(line) is not None


def _turned(name: str, value: Any, way: Callable[[Any], Any]) -> Any:
    """Return a column's value spelt or read: plain ones stay, lists are turned item by item."""
    if name in PLAIN or value is None:
        return value
    return [way(item) for item in value] if name in LISTS else way(value)


def _spell(value: Any) -> str:
    """Return JSON text of which the dataset's reader makes the same value, where it can; else that text as a JSON string."""
    text = dumps(value)
    if _shown(text) == value:
        return text
    spelt = _TOKEN.sub(_spell_number, text)
    return dumps(spelt) if _shown(spelt) is None else spelt


def _spell_number(token: re.Match[str]) -> str:
    """Return a float in a spelling that the dataset's reader gets right; all else as it is."""
    text = token.group()
    if text[0] == '"' or not set(text) & set(".eE"):
        return text
    sign, digits, exponent = Decimal(text).as_tuple()
    number = "-" * sign + "".join(map(str, digits))
    padded = (f"{number}{'0' * zeros}e{int(exponent) - zeros}" for zeros in range(5))
    return next((s for s in (text, *padded) if _shown(s) == float(text)), text)


def _unspell(cell: str) -> Any:
    value = loads(cell)
    return loads(value) if isinstance(value, str) else value


def _shown(text: str) -> Any:
    """Return what the dataset's reader makes of the text, None where it stops."""
    try:
        return _reader()(text)
    except (ValueError, OverflowError, RecursionError):
        return None


@cache
def _reader() -> Any:
    from datasets import Json

    return Json().decode_example
