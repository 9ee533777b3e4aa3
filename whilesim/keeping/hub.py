"""Hub: rows as a published dataset, with a card that says what is in it.

A push is one commit: parquet files, the manifest, and a card with the ledger, certificate
and pass rates of the whole run. The commit before it stays in the repository's history, and
the card lists each push with the revision that it replaced.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whilesim.core.errors import InputError
from whilesim.core.templates import load_words, render_page
from whilesim.keeping.arrow import from_cells, write_parquet
from whilesim.keeping.manifest import Manifest
from whilesim.keeping.rows import STATES, Row
from whilesim.keeping.splits import split_rows

_REPO = re.compile(r"[\w.-]+/[\w.-]+")
_PUSH = re.compile(r"^\| (\d+) \|.*\|$", re.MULTILINE)
_PUSHES = "## Pushes"  # the card's last heading
_HOLES = 50  # holes that a card names; the manifest has them all


@dataclass(frozen=True, slots=True, kw_only=True)
class Push:
    """One push to the Hub."""

    repo: str
    revision: str
    replaced: str
    """The revision before it; empty for a new repository."""
    rows: Mapping[str, int]
    """Split to rows."""
    left_out: int
    """Rows in which a call's arguments are no JSON object."""

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {count}" for name, count in self.rows.items())
        out = f"; {self.left_out} rows with arguments that are no object left out" if self.left_out else ""
        return f"{self.repo} at {self.revision}: {parts}{out}"


def push(
    rows: Sequence[Row],
    manifest: Manifest,
    repo: str,
    *,
    private: bool,
    splits: Mapping[str, float],
    reasoning: bool = False,
) -> Push:
    """Publish rows as a dataset in one commit.

    Args:
        manifest: Its ``record`` holds the ledger and the rest of what the card says.
        private: Of a repository that is made; one that exists keeps its visibility.

    Raises:
        InputError: The repository's name is none, it holds other things, or no row can be published.
    """
    if not _REPO.fullmatch(repo):
        raise InputError(f"{repo!r} names no dataset on the Hub. Type 'owner/name'.")
    fit = [row for row in rows if not row.loose_calls]
    if not fit:
        raise InputError(
            f"none of {len(rows)} rows can be published: there is nothing to train on. Look at data.ledger."
        )
    parts = split_rows(fit, splits, manifest.seed)
    from huggingface_hub import HfApi

    hub = HfApi()
    hub.create_repo(repo, repo_type="dataset", private=private, exist_ok=True)
    present = _present(hub, repo)
    replaced = hub.repo_info(repo, repo_type="dataset").sha or "" if "manifest.json" in present else ""
    pushes = _earlier_pushes(repo) if replaced else []
    counts = {name: len(indices) for name, indices in parts.items()}
    pushes.append(_push_line(len(pushes) + 1, counts, manifest, replaced))
    card = _card(fit, manifest, repo, counts, pushes)
    told = _without_reasoning(fit, reasoning)
    files = {f"data/{name}-00000-of-00001.parquet": [told[i] for i in part] for name, part in parts.items()}
    with tempfile.TemporaryDirectory() as folder:
        operations = _operations(card, manifest, files, present, Path(folder))
        message = f"Push {len(pushes)}: {len(fit)} rows"
        commit = hub.create_commit(repo, operations, commit_message=message, repo_type="dataset")
    return Push(repo=repo, revision=commit.oid, replaced=replaced, rows=counts, left_out=len(rows) - len(fit))


def _present(hub: Any, repo: str) -> list[str]:
    """Return the paths in a repository, refusing one whose files are not ours to replace."""
    present: list[str] = hub.list_repo_files(repo, repo_type="dataset")
    foreign = sorted(set(present) - {".gitattributes", "README.md", "LICENSE"})
    if foreign and "manifest.json" not in present:
        msg = f"{repo!r} holds {foreign[0]!r}, which whilesim did not write and would replace. Push to another name."
        raise InputError(msg)
    return present


def _operations(
    card: str, manifest: Manifest, files: Mapping[str, Sequence[Row]], present: Sequence[str], folder: Path
) -> list[Any]:
    """Write the files of a commit to ``folder`` and return what the commit does."""
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    manifest.write(folder / "manifest.json")
    # a lone surrogate has no bytes: the card shows a question mark
    (folder / "README.md").write_bytes(card.encode("utf-8", "replace"))
    operations: list[Any] = [CommitOperationAdd(name, folder / name) for name in ("README.md", "manifest.json")]
    for number, (path, rows) in enumerate(files.items()):
        write_parquet(rows, folder / f"{number}.parquet")
        operations.append(CommitOperationAdd(path, folder / f"{number}.parquet"))
    old = [p for p in present if p.startswith("data/") and p.endswith(".parquet") and p not in files]
    return operations + [CommitOperationDelete(path) for path in old]


def pull(repo: str) -> tuple[list[Row], Manifest]:
    """Read the rows of all splits, in the order of their ids, and the manifest.

    Raises:
        InputError: There is no such dataset, or its files are not ours.
    """
    import pyarrow.parquet as parquet
    from huggingface_hub import HfApi, hf_hub_download
    from huggingface_hub.errors import RepositoryNotFoundError

    try:
        present = HfApi().list_repo_files(repo, repo_type="dataset")
    except RepositoryNotFoundError as error:
        msg = f"there is no dataset {repo!r} on the Hub that you may read. Check the name, and HF_TOKEN."
        raise InputError(msg) from error
    paths = [p for p in present if p.startswith("data/") and p.endswith(".parquet")]
    if "manifest.json" not in present or not paths:
        raise InputError(f"{repo!r} was not pushed by whilesim: it holds no manifest.json beside data/*.parquet.")
    local = {p: hf_hub_download(repo, p, repo_type="dataset") for p in [*paths, "manifest.json"]}
    rows = [from_cells(cells) for p in paths for cells in parquet.read_table(local[p]).to_pylist()]
    return sorted(rows, key=_in_order), Manifest.read(local["manifest.json"])


def _in_order(row: Row) -> tuple[Any, ...]:
    """Return a key that sorts ids as people count: r2 before r10."""
    return tuple((int(s), "") if s.isdigit() else (-1, s) for s in re.split(r"(\d+)", row.id))


def _without_reasoning(rows: Sequence[Row], reasoning: bool) -> Sequence[Row]:
    if reasoning:
        return rows
    quiet = [[{k: v for k, v in m.items() if k != "reasoning"} for m in row.messages] for row in rows]
    return [row.model_copy(update={"messages": m}) for row, m in zip(rows, quiet, strict=True)]


def _earlier_pushes(repo: str) -> list[str]:
    from huggingface_hub import hf_hub_download

    card = Path(hf_hub_download(repo, "README.md", repo_type="dataset")).read_text(encoding="utf-8")
    listed = card.rpartition(_PUSHES)[2]
    return [match.group(0) for match in _PUSH.finditer(listed)]


def _push_line(number: int, counts: Mapping[str, int], manifest: Manifest, replaced: str) -> str:
    told = ", ".join(f"{name} {count}" for name, count in counts.items())
    return f"| {number} | {told} | {manifest.whilesim} | {replaced or 'none'} |"


def _card(rows: Sequence[Row], manifest: Manifest, repo: str, counts: Mapping[str, int], pushes: Sequence[str]) -> str:
    import yaml

    configs = [{"split": name, "path": f"data/{name}-*.parquet"} for name in counts]
    front = {
        "language": [manifest.language],
        "task_categories": ["text-generation"],
        "tags": ["whilesim", "tool-use", "synthetic", "conversational"],
        "configs": [{"config_name": "default", "data_files": configs}],
    }
    models = sorted(
        {(role, name) for r in rows for role, name in r.provenance.to_json().items() if name and role in _ROLES}
    )
    return render_page(
        "dataset_card",
        front=yaml.safe_dump(front, sort_keys=False, allow_unicode=True),
        repo=repo,
        counts=counts,
        states={s: n for s in STATES if (n := sum(row.state == s for row in rows))},
        record=manifest.record,
        holes=manifest.record.get("certificate", {}).get("holes", [])[:_HOLES],
        models=[(role, name, _terms(name, manifest)) for role, name in models],
        axes=manifest.axes,
        seed=manifest.seed,
        notes=manifest.notes,
        heading=_PUSHES,
        pushes=pushes,
    )


_ROLES = ("agent", "customer", "writer", "judge")


def _terms(model: str, manifest: Manifest) -> str:
    """Return under which terms a model's words stand: as the user says, or as its family is known for."""
    if model in manifest.licences:
        return manifest.licences[model]
    known = load_words("model_terms")
    fits = (terms for part, terms in known["families"].items() if part in model.lower())
    return str(next(fits, known["unknown"]))
