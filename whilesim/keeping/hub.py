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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

from whilesim.core.errors import InputError
from whilesim.core.templates import load_words, render_page
from whilesim.core.text import shorten
from whilesim.keeping.arrow import from_cells, write_parquet
from whilesim.keeping.folders import lighten, share_tools
from whilesim.keeping.manifest import Manifest
from whilesim.keeping.rows import STATES, Row
from whilesim.keeping.splits import split_rows

REPO = re.compile(r"(?!.*(--|\.\.|\.git$))\w([\w.-]*\w)?/\w([\w.-]{0,94}\w)?", re.ASCII)  # the Hub's own rules
_NEVER_OURS = {".gitattributes", "README.md", "LICENSE"}  # files that any repository may have
_PART = re.compile(r"data/.*\.parquet")
_HOLES = 50  # holes that a card names; the manifest has them all
_ROLES = ("agent", "customer", "writer", "judge")
_PATIENCE = 5.0  # seconds for the first word of a Hub; its client would try for half a minute to reach one
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
    if not (fit := {place: lighten(row) for place, row in enumerate(rows) if not row.loose_calls}):
        msg = f"none of {len(rows)} rows can be published: there is nothing to train on. Look at data.ledger."
        raise InputError(msg)
    light, places = list(fit.values()), list(fit)
    parts = split_rows(light, splits, manifest.seed)
    counts = {name: len(part) for name, part in parts.items()}
    present = [] if dry_run else make_repo(repo, private)
    if (foreign := sorted(set(present) - _NEVER_OURS)) and "manifest.json" not in present:
        msg = f"{repo!r} holds {foreign[0]!r}, which whilesim did not write and would replace. Push to another name."
        raise InputError(msg)
    replaced, pushes = "", []
    if "manifest.json" in present:
        replaced = str(_info(repo).sha)
        pushes = _read_manifest(repo).record.get("pushes", [])
    pushes = [*pushes, {"rows": counts, "whilesim": manifest.whilesim, "replaced": replaced}]
    manifest = manifest.model_copy(update={"record": {**manifest.record, "pushes": pushes}})
    card, out = _card(light, manifest, repo, counts), len(rows) - len(fit)
    done = Push(repo=repo, revision="", replaced=replaced, rows=counts, left_out=out, card=card)
    if dry_run:
        return done
    with tempfile.TemporaryDirectory() as folder:
        shown = {name: (_shown(rows[places[i]], reasoning=reasoning) for i in part) for name, part in parts.items()}
        files = _write_files(Path(folder), shown, manifest, card)
        old = [path for path in present if _PART.fullmatch(path)]
        return replace(done, revision=commit(repo, files, old, f"Push {len(pushes)}: {len(fit)} rows"))


def pull(repo: str) -> tuple[list[Row], Manifest]:
    """Read the rows of all splits, in the order of their ids, and the manifest.

    Raises:
        InputError: There is no such dataset, or its files are not ours.
    """
    if not REPO.fullmatch(repo):
        raise InputError(f"{repo!r} is no folder, and names no dataset on the Hub. Type 'owner/name'.")
    present = list_files(repo, told=f"there is no folder {repo!r} here, and ")
    paths = [path for path in present if _PART.fullmatch(path)]
    if "manifest.json" not in present or not paths:
        raise InputError(f"{repo!r} was not pushed by whilesim: it holds no manifest.json beside data/*.parquet.")
    manifest = _read_manifest(repo)
    return sorted(share_tools(row for path in paths for row in _read_rows(repo, path)), key=_in_order), manifest


def make_repo(repo: str, private: bool) -> list[str]:
    """Make a dataset that is not there, and return the paths in it."""
    patiently(repo, lambda hub: hub.create_repo(repo, repo_type="dataset", private=private, exist_ok=True))
    return list_files(repo)


def commit(repo: str, files: Mapping[str, Path | bytes], old: Iterable[str], told: str) -> str:
    """Write files in place of old ones in one commit, and return its revision."""
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    operations: list[Any] = [CommitOperationAdd(path, file) for path, file in files.items()]
    operations += [CommitOperationDelete(path) for path in sorted(old) if path not in files]
    made = patiently(repo, lambda hub: hub.create_commit(repo, operations, commit_message=told, repo_type="dataset"))
    return str(made.oid)


def list_files(repo: str, revision: str | None = None, told: str = "") -> list[str]:
    """Return the paths in a dataset, or say that there is none; ``told`` opens what is said."""
    return [file.rfilename for file in _info(repo, revision, told).siblings or ()]


def fetch(repo: str, path: str) -> str:
    """Bring a file of a dataset here, and return where it lies."""
    return patiently(repo, lambda hub: str(hub.hf_hub_download(repo, path, repo_type="dataset")))


def patiently(repo: str, call: Callable[[Any], T], told: str = "") -> T:
    """Call the Hub, again where the server failed; what else keeps us from a repository is said in words, ``told`` first.

    Raises:
        InputError: It is not there, there is no token, it may not write there, or no Hub answers.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, RepositoryNotFoundError, RevisionNotFoundError

    # what the Hub's client raises where nobody answers: by its version that is requests, httpx or httpx2
    silence: Any = HfHubHTTPError.__mro__[HfHubHTTPError.__mro__.index(OSError) - 1]
    for wait in _WAITS:
        try:
            return call(HfApi())
        except (RepositoryNotFoundError, RevisionNotFoundError) as error:
            msg = f"{told}there is no dataset {repo!r} on the Hub that you may read. Check the name, and HF_TOKEN."
            raise InputError(msg) from error
        except HfHubHTTPError as error:
            status = error.response.status_code if error.response is not None else 0
            if status in (401, 403):
                msg = f"the Hub refused ({status}): there is no token, or it may not write there. Type hf auth login, or set HF_TOKEN."
                raise InputError(msg) from error
            if status < 500 or not wait:
                raise
            time.sleep(wait)
        except (ConnectionError, silence) as error:  # the first: HF_HUB_OFFLINE is set
            msg = f"{told or f'{repo!r}: '}the Hub cannot be reached ({shorten(str(error), 120)}). Look at the network, or at HF_ENDPOINT; a folder needs neither."
            raise InputError(msg) from error
    raise AssertionError("the last try returns or raises")


def _info(repo: str, revision: str | None = None, told: str = "") -> Any:
    return patiently(repo, lambda hub: hub.dataset_info(repo, revision=revision, timeout=_PATIENCE), told)


def _read_manifest(repo: str) -> Manifest:
    return Manifest.read(fetch(repo, "manifest.json"), f"{repo!r}: manifest.json")


def _read_rows(repo: str, path: str) -> Iterator[Row]:
    """Read a part of the rows; whoever may write to a repository may have changed it."""
    import pyarrow.parquet as parquet

    file = fetch(repo, path)
    try:
        held = parquet.ParquetFile(file)
        if odd := sorted(held.schema_arrow.names ^ Row.model_fields.keys()):
            raise InputError(f"its columns differ in {', '.join(odd)}")
        for some in held.iter_batches(1_000):
            yield from map(from_cells, some.to_pylist())
    except (ValueError, AttributeError) as error:
        msg = f"{repo!r}: {path} holds no rows of ours ({shorten(str(error), 200)}). "
        raise InputError(msg + f"Read it with load_dataset({repo!r}), or push again.") from error


def _write_files(folder: Path, parts: Mapping[str, Iterable[Row]], manifest: Manifest, card: str) -> dict[str, Path]:
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


def _shown(row: Row, *, reasoning: bool) -> Row:
    quiet = [{name: value for name, value in m.items() if name != "reasoning"} for m in row.messages]
    return row if reasoning else row.model_copy(update={"messages": quiet})


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
        holes=manifest.record.get("certificate", {}).get("holes", [])[:_HOLES],
        models=sorted((role, name, _terms(name, manifest)) for role, name in named if name),
        kinds={name: Counter(values).most_common() for name, values in kinds.items() if any(values)},
        messages=median(len(row.messages) for row in rows),
        **{name: getattr(manifest, name) for name in ("record", "axes", "seed", "notes")},
    )


def _terms(model: str, manifest: Manifest) -> str:
    """Return under which terms a model's words stand: as the user says, or as its family is known for."""
    known = load_words("model_terms")
    fits = (terms for part, terms in known["families"].items() if part in model.lower())
    return manifest.licences.get(model) or str(next(fits, known["unknown"]))
