"""Embeddings: texts as vectors, so that cards can be chosen far apart.

With sentence-transformers installed and its model already on disk, vectors by meaning; else
counts of character 3- to 5-grams hashed into 512 places, which need no model, know no meaning,
and say in their name what they are. Nothing is ever downloaded.

Source of the hashing: Weinberger et al. (2009). Feature hashing for large scale multitask
learning. ICML, 1113-1120.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from whilesim.core.errors import InputError, MissingExtra
from whilesim.core.text import digest, fold

Matrix = npt.NDArray[np.float64]
Embedder = str | Callable[[list[str]], Any]

HASHED = "hashed-ngrams-3-5/512"
MODEL = "sentence-transformers/all-MiniLM-L6-v2"
_PLACES = 512
_BATCH = 2_000  # texts: the counts of one batch take 8 MB
_CACHED = 50_000  # vectors: about 150 MB of a small model's
_Known = dict[tuple[str, str], Matrix]
_vectors: _Known = {}


@dataclass(frozen=True, slots=True)
class Vectors:
    """One vector for each text, and what made them."""

    matrix: Matrix
    """Shape ``(n, d)``, rows of length 1; ``(0, d)`` for no text."""
    name: str
    """The embedder's name, as it stands in the manifest."""


def embed(texts: Sequence[str], embedder: Embedder = "auto") -> Vectors:
    """Return one vector of length 1 for each text, in the order of the texts.

    Args:
        texts: Any texts, the empty one included.
        embedder: "auto" takes the sentence-transformers model that is on disk, else the built-in
            hashing; "hashed" the built-in hashing; another string a sentence-transformers model
            by name or path; a callable gets a list of texts and returns ``(n, d)`` numbers.

    Returns:
        The vectors. A model is asked once for each text in the life of the process; the same
        text gets the same vector.

    Raises:
        MissingExtra: A model is named, and sentence-transformers is not installed.
        InputError: The model is not on disk, or a callable returned something other than one
            finite vector, not all zero, for each text.
    """
    if callable(embedder):
        name = getattr(embedder, "__name__", type(embedder).__name__)
        return Vectors(_asked(texts, embedder, name, {}), name)
    if embedder == "auto":
        embedder = choose_embedder()
    if embedder in ("hashed", HASHED):
        return Vectors(_hashed(texts), HASHED)
    encode = partial(_load(embedder).encode, show_progress_bar=False)
    return Vectors(_asked(texts, encode, embedder, _vectors), embedder)


def _asked(texts: Sequence[str], ask: Callable[[list[str]], Any], name: str, known: _Known) -> Matrix:
    """Ask an embedder for the texts that it has not seen; ``known`` is what it has."""
    keys = [(name, digest(text, 32)) for text in texts]
    if len(known) + len(keys) > _CACHED:
        known.clear()
    fresh = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
    if fresh:
        known.update(zip(fresh, _checked(ask(list(fresh.values())), len(fresh), name), strict=True))
    return np.vstack([known[key] for key in keys]) if keys else np.zeros((0, 0))


def choose_embedder() -> str:
    """Return what "auto" takes: the default model if it can be loaded without a network, which is not done here."""
    if find_spec("sentence_transformers") is None:
        return HASHED
    from huggingface_hub import try_to_load_from_cache

    return MODEL if isinstance(try_to_load_from_cache(MODEL, "modules.json"), str) else HASHED


@cache
def _load(name: str) -> Any:
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise MissingExtra("sentence-transformers", "embeddings") from error
    try:
        return SentenceTransformer(name, device="cpu", local_files_only=True)
    except (OSError, ValueError) as error:
        raise InputError(
            f"embedder {name!r} is not on this disk, and nothing is downloaded here. Type "
            f"embedder='hashed', or fetch it first: hf download {name}"
        ) from error


def _checked(found: Any, count: int, name: str) -> Matrix:
    try:
        matrix = np.asarray(found, dtype=np.float64)
    except (TypeError, ValueError):  # rows of different lengths, or no numbers
        matrix = np.zeros(0)
    norms = np.linalg.norm(matrix, axis=1) if matrix.ndim == 2 else np.zeros(0)
    if norms.shape != (count,) or not np.isfinite(norms).all() or not norms.all():
        raise InputError(
            f"embedder {name!r} returned an array of shape {matrix.shape} for {count} text(s), or a vector "
            "that is zero or not finite. Return one finite vector, not all zero, for each text."
        )
    return np.asarray(matrix / norms[:, None])


def _hashed(texts: Sequence[str]) -> Matrix:
    batches = [_hashed_batch(texts[i : i + _BATCH]) for i in range(0, len(texts), _BATCH)]
    return np.vstack(batches) if batches else np.zeros((0, _PLACES))


def _hashed_batch(texts: Sequence[str]) -> Matrix:
    """Hash all texts at once: one long array of code points, and which text each belongs to."""
    framed = [f"\x02 {fold(text)} \x03" for text in texts]  # even the empty text has n-grams
    codes = [np.frombuffer(t.encode("utf-32-le", "surrogatepass"), dtype="<u4") for t in framed]
    points = np.concatenate(codes).astype(np.uint64)
    owner = np.repeat(np.arange(len(texts)), [len(c) for c in codes])
    counts = np.zeros(len(texts) * _PLACES)
    for size in (3, 4, 5):
        ends = len(points) - size + 1
        inside = owner[:ends] == owner[size - 1 :]
        hashes = np.full(ends, size, dtype=np.uint64)
        for step in range(size):
            hashes = _mixed(hashes ^ points[step : step + ends])
        hashes, owners = hashes[inside], owner[:ends][inside]
        signs = np.where(hashes >> np.uint64(63), 1.0, -1.0)
        counts += np.bincount(owners * _PLACES + (hashes % np.uint64(_PLACES)).astype(np.int64), signs, len(counts))
    matrix = counts.reshape(len(texts), _PLACES)
    norms = np.sqrt((matrix * matrix).sum(axis=1))
    matrix[norms == 0, 0] = 1.0  # every n-gram met its negative
    norms[norms == 0] = 1.0
    return np.asarray(matrix / norms[:, None])


def _mixed(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Scramble 64-bit integers (the finaliser of splitmix64), the same on every machine."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        values = (values ^ (values >> np.uint64(shift))) * np.uint64(factor)
    return values
