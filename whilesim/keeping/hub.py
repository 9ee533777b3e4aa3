"""Hub: rows as a published dataset, with a card that says what is in it.

A push is one commit: parquet files, the manifest, and a card with the ledger, certificate
and pass rates of the whole run. The commit before it stays in the repository's history, and
manifest and card list each push with the revision that it replaced.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

from whilesim.core.errors import InputError
from whilesim.core.templates import load_words, render_page
from whilesim.core.text import shorten
from whilesim.keeping.arrow import from_cells, write_parquet
from whilesim.keeping.manifest import Manifest
from whilesim.keeping.rows import STATES, Row
from whilesim.keeping.splits import split_rows

REPO = re.compile(r"[\w.-]+/[\w.-]+")
_NEVER_OURS = {".gitattributes", "README.md", "LICENSE"}  # files that any repository may have
_HOLES = 50  # holes that a card names; the manifest has them all
_ROLES = ("agent", "customer", "writer", "judge")
_WAITS = (1.0, 4.0, 0.0)  # seconds after a server's error, before the next try; after the last there is none
T = TypeVar("T")


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
    card: str
    """The dataset card."""

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {count}" for name, count in self.rows.items())
        out = f"; {self.left_out} rows with arguments that are no object left out" if self.left_out else ""
        where = f"at {self.revision}" if self.revision else "not pushed (dry run)"
        return f"{self.repo} {where}: {parts}{out}"


def push(
    rows: Sequence[Row],
    manifest: Manifest,
    repo: str,
    *,
    private: bool,
    splits: Mapping[str, float],
    reasoning: bool,
    dry_run: bool = False,
) -> Push:
    """Publish rows as a dataset in one commit.

    Args:
        manifest: Its ``record`` holds the ledger and the rest of what the card says.
        private: Of a repository that is made; one that exists keeps its visibility.
        dry_run: Ask the Hub nothing, and return what would be pushed.

    Raises:
        InputError: The repository's name is none, it holds other things, no row can be published,
            or the Hub does not let this user in.
    """
    if not REPO.fullmatch(repo):
        raise InputError(f"{repo!r} names no dataset on the Hub. Type 'owner/name'.")
    fit = [row for row in rows if not row.loose_calls]
    if not fit:
        raise InputError(
            f"none of {len(rows)} rows can be published: there is nothing to train on. Look at data.ledger."
        )
    told = fit if reasoning else [_without_reasoning(row) for row in fit]
    parts = {name: [told[i] for i in part] for name, part in split_rows(fit, splits, manifest.seed).items()}
    counts = {name: len(part) for name, part in parts.items()}
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi

    hub = None if dry_run else HfApi()
    if hub is not None:
        patiently(lambda: hub.create_repo(repo, repo_type="dataset", private=private, exist_ok=True))
    present = [] if hub is None else _present(hub, repo)
    replaced, pushes = "", []
    if hub is not None and "manifest.json" in present:
        replaced = str(hub.repo_info(repo, repo_type="dataset").sha)
        pushes = Manifest.read(hub.hf_hub_download(repo, "manifest.json", repo_type="dataset")).record.get("pushes", [])
    pushes = [*pushes, {"rows": counts, "whilesim": manifest.whilesim, "replaced": replaced}]
    manifest = manifest.model_copy(update={"record": {**manifest.record, "pushes": pushes}})
    card, out = _card(fit, manifest, repo, counts), len(rows) - len(fit)
    done = Push(repo=repo, revision="", replaced=replaced, rows=counts, left_out=out, card=card)
    if hub is None:
        return done
    with tempfile.TemporaryDirectory() as folder:
        files = _write_files(Path(folder), parts, manifest, card)
        old = {path for path in present if re.fullmatch(r"data/.*\.parquet", path)} - set(files)
        operations: list[Any] = [CommitOperationAdd(path, file) for path, file in files.items()]
        operations += [CommitOperationDelete(path) for path in sorted(old)]
        message = f"Push {len(pushes)}: {len(fit)} rows"
        commit = patiently(lambda: hub.create_commit(repo, operations, commit_message=message, repo_type="dataset"))
    return replace(done, revision=commit.oid)


def pull(repo: str) -> tuple[list[Row], Manifest]:
    """Read the rows of all splits, in the order of their ids, and the manifest.

    Raises:
        InputError: There is no such dataset, or its files are not ours.
    """
    import pyarrow.parquet as parquet
    from huggingface_hub import HfApi
    from huggingface_hub.errors import RepositoryNotFoundError

    hub = HfApi()
    try:
        present = hub.list_repo_files(repo, repo_type="dataset")
    except RepositoryNotFoundError as error:
        msg = f"there is no dataset {repo!r} on the Hub that you may read. Check the name, and HF_TOKEN."
        raise InputError(msg) from error
    paths = [path for path in present if re.fullmatch(r"manifest\.json|data/.*\.parquet", path)]
    if "manifest.json" not in paths or len(paths) == 1:
        raise InputError(f"{repo!r} was not pushed by whilesim: it holds no manifest.json beside data/*.parquet.")
    local = {path: hub.hf_hub_download(repo, path, repo_type="dataset") for path in paths}
    manifest = Manifest.read(local.pop("manifest.json"))
    rows = [from_cells(cells) for file in local.values() for cells in parquet.read_table(file).to_pylist()]
    return sorted(rows, key=_in_order), manifest


def patiently(call: Callable[[], T]) -> T:
    """Call again where the server failed; a refusal is said in words.

    Raises:
        InputError: There is no token, or it may not write there.
    """
    from huggingface_hub.errors import HfHubHTTPError

    for wait in _WAITS:
        try:
            return call()
        except HfHubHTTPError as error:
            status = error.response.status_code if error.response is not None else 0
            if status in (401, 403):
                msg = f"the Hub refused ({status}): there is no token, or it may not write there. Type huggingface-cli login, or set HF_TOKEN."
                raise InputError(msg) from error
            if status < 500 or not wait:
                raise
            time.sleep(wait)
        except Exception as error:  # the client speaks through requests or httpx, by its version
            if type(error).__name__ not in ("ConnectError", "ConnectTimeout", "ConnectionError", "ProxyError"):
                raise
            msg = f"the Hub cannot be reached ({shorten(str(error), 120)}). Look at the network, or at HF_ENDPOINT; or type: data.save('folder')"
            raise InputError(msg) from error
    raise AssertionError("the last try returns or raises")


def _present(hub: Any, repo: str) -> list[str]:
    """Return the paths in a repository, refusing one whose files are not ours to replace."""
    present: list[str] = patiently(lambda: hub.list_repo_files(repo, repo_type="dataset"))
    foreign = sorted(set(present) - _NEVER_OURS)
    if foreign and "manifest.json" not in present:
        msg = f"{repo!r} holds {foreign[0]!r}, which whilesim did not write and would replace. Push to another name."
        raise InputError(msg)
    return present


def _write_files(folder: Path, parts: Mapping[str, Sequence[Row]], manifest: Manifest, card: str) -> dict[str, Path]:
    """Write what a commit adds, and return path in the repository to file."""
    manifest.write(folder / "manifest.json")
    # a lone surrogate has no bytes: the card shows a question mark
    (folder / "README.md").write_bytes(card.encode("utf-8", "replace"))
    files = {name: folder / name for name in ("README.md", "manifest.json")}
    for number, (name, rows) in enumerate(parts.items()):
        files[f"data/{name}-00000-of-00001.parquet"] = folder / f"{number}.parquet"
        write_parquet(rows, folder / f"{number}.parquet")
    return files


def _in_order(row: Row) -> tuple[Any, ...]:
    """Return a key that sorts ids as people count: r2 before r10."""
    return tuple((int(s), "") if s.isdigit() else (-1, s) for s in re.split(r"(\d+)", row.id))


def _without_reasoning(row: Row) -> Row:
    quiet = [{name: value for name, value in m.items() if name != "reasoning"} for m in row.messages]
    return row.model_copy(update={"messages": quiet})


def _card(rows: Sequence[Row], manifest: Manifest, repo: str, counts: Mapping[str, int]) -> str:
    import yaml

    configs = [{"split": name, "path": f"data/{name}-*.parquet"} for name in counts]
    front = {
        "language": [manifest.language],
        "task_categories": ["text-generation"],
        "tags": ["whilesim", "tool-use", "synthetic", "conversational"],
        "configs": [{"config_name": "default", "data_files": configs}],
    }
    states = [row.state for row in rows]
    kinds: dict[str, list[str]] = {"texture": [row.persona.texture for row in rows]}
    kinds |= {axis: [row.situation.get(axis, "") for row in rows] for axis in ("stance", "clause")}
    named = {(role, getattr(row.provenance, role)) for row in rows for role in _ROLES}
    return render_page(
        "dataset_card",
        front=yaml.safe_dump(front, sort_keys=False, allow_unicode=True),
        repo=repo,
        counts=counts,
        states={state: states.count(state) for state in STATES if state in states},
        record=manifest.record,
        holes=manifest.record.get("certificate", {}).get("holes", [])[:_HOLES],
        models=sorted((role, name, _terms(name, manifest)) for role, name in named if name),
        axes=manifest.axes,
        kinds={name: Counter(values).most_common() for name, values in kinds.items() if any(values)},
        messages=median(len(row.messages) for row in rows),
        seed=manifest.seed,
        notes=manifest.notes,
    )


def _terms(model: str, manifest: Manifest) -> str:
    """Return under which terms a model's words stand: as the user says, or as its family is known for."""
    known = load_words("model_terms")
    fits = (terms for part, terms in known["families"].items() if part in model.lower())
    return manifest.licences.get(model) or str(next(fits, known["unknown"]))
