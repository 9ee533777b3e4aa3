"""Publish: tickets and results as datasets on the Hub, where no push replaces an older one.

A run is one parquet file of the split and one small JSON file beside it, so that two nightly
jobs never write the same file, and ``load_dataset`` reads all runs as one table.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from whilesim.core.errors import InputError
from whilesim.core.jsontext import dumps, loads
from whilesim.keeping.hub import REPO, commit, fetch, list_files, make_repo

_OURS = re.compile(r"data/.+\.parquet|runs/.+\.json|README\.md|LICENSE|\.gitattributes")


def check_place(repo: str, split: str) -> None:
    """Raise InputError where a name is none that the Hub has."""
    if not REPO.fullmatch(repo) or not re.fullmatch(r"\w+", split):
        raise InputError(f"{repo!r} and {split!r} name no dataset and split. Type 'owner/name' and split=\"nightly\".")


def push_table(
    rows: Sequence[Mapping[str, Any]], repo: str, *, split: str, private: bool, run: Mapping[str, Any] | None = None
) -> str:
    """Publish rows as a split in one commit, and return its revision.

    Args:
        private: Of a repository that is made; one that exists keeps its visibility.
        run: What is known of an evaluation, its ``run_id`` first: its rows then stand beside
            those of the runs before; without it they replace the split's.

    Raises:
        InputError: The name is none, the repository holds files or columns that are not ours, or the
            Hub does not let this user in.
    """
    check_place(repo, split)
    present = make_repo(repo, private)
    mine = [path for path in present if re.fullmatch(rf"data/{split}-.*\.parquet", path)]
    runs = [_split_of(path) for path in present if path.startswith("runs/")]
    # tickets and results have other columns, and no dataset can be read that holds both
    other = [path for path in present if path.startswith("data/") and (_split_of(path) in runs) is (run is None)]
    if foreign := [path for path in present if not _OURS.fullmatch(path)] + other:
        msg = f"{repo!r} holds {foreign[0]!r}, which has other columns than ours and would be mixed up with them. Push to another name."
        raise InputError(msg)
    name = f"{split}-00000-of-00001" if run is None else f"{split}-{runs.count(split):05d}-{run['run_id']}"
    splits = {split, *(_split_of(path) for path in present if path.startswith("data/"))}
    with tempfile.TemporaryDirectory() as folder:
        parquet, card = Path(folder, "part.parquet"), _card(repo, sorted(splits)).encode()
        _write(rows, parquet)
        files: dict[str, Path | bytes] = {f"data/{name}.parquet": parquet, "README.md": card}
        files |= {f"runs/{name}.json": dumps(run, indent=1).encode()} if run is not None else {}
        return commit(repo, files, mine if run is None else (), f"{len(rows)} rows: {name}")


def read_history(repo: str, split: str = "nightly") -> list[dict[str, Any]]:
    """Read what is known of each run that was pushed, the oldest first.

    Raises:
        InputError: There is no such dataset, or nothing of ours in this split.
    """
    if not (paths := [p for p in list_files(repo) if re.fullmatch(rf"runs/{split}-.*\.json", p)]):
        msg = f"{repo!r} holds no run in split {split!r}. Push one: result.push_to_hub({repo!r}, split={split!r})."
        raise InputError(msg)
    # of one second: as they were pushed, which is how the files are named
    return sorted((loads(Path(fetch(repo, path)).read_bytes()) for path in sorted(paths)), key=lambda run: run["date"])


def read_table(repo: str, split: str, revision: str | None = None) -> list[dict[str, Any]]:
    """Read a split of any dataset as plain rows; its name stands for no file and no folder.

    Raises:
        InputError: There is no such dataset or split.
    """
    list_files(repo, revision, told=f"there is no file or folder {repo!r} here, and ")
    from datasets import load_dataset

    try:
        return [dict(row) for row in load_dataset(repo, split=split, revision=revision)]
    except ValueError as error:
        raise InputError(f"{repo!r} has no split {split!r} that can be read: {error}") from error


def _split_of(path: str) -> str:
    return path.split("/")[1].split("-")[0]


def _write(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Write parquet: texts and numbers as they are, all else as ``Json``, so that nothing is padded."""
    from datasets import Dataset, Features, Json, Value

    kinds = {"str": Value("string"), "bool": Value("bool"), "int": Value("int64"), "float": Value("float64")}
    features: dict[str, Any] = {}
    for name in rows[0]:
        found = {type(row[name]).__name__ for row in rows} - {"NoneType"}
        unknown = "" if name == "oracle" else "bool"  # nothing else than these two is None everywhere
        kind = "float" if found == {"int", "float"} else next(iter(found), unknown) if len(found) < 2 else ""
        features[name] = kinds.get(kind) or Json()
    Dataset.from_list([dict(row) for row in rows], features=Features(features)).to_parquet(str(path))


def _card(repo: str, splits: Sequence[str]) -> str:
    import yaml

    files = [{"split": split, "path": f"data/{split}-*.parquet"} for split in splits]
    front = {"tags": ["whilesim", "evaluation"], "configs": [{"config_name": "default", "data_files": files}]}
    return f"---\n{yaml.safe_dump(front, sort_keys=False)}---\n\n# {repo}\n\nTickets or results of an agent's evaluation.\n"
