"""Page: all rows as one file to look at, in any browser and without a network.

What a customer, a model or a world said is text on it, never markup: a strict content
security policy lets the page's own script run and nothing else, and that script sets texts.
Conversations stand in it compressed, a few hundred together, and are drawn when looked at,
so that thousands stay quick.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from whilesim.cards.embeddings import HASHED, embed
from whilesim.core.jsontext import dumps
from whilesim.core.templates import read_page, render_page
from whilesim.core.text import shorten
from whilesim.keeping.certificate import Certificate
from whilesim.keeping.ledger import Ledger
from whilesim.keeping.manifest import Manifest
from whilesim.keeping.rows import STATES, Row

_CHUNK = 200  # conversations that are compressed together
_STAGES = {"met": 1, "played": 2, "every": 3, "in": 4}  # first word of why a pair is missing, to a stage
_INFEASIBLE = 5


def write_report(
    path: Path,
    rows: Sequence[Row],
    ledger: Ledger,
    certificate: Certificate,
    manifest: Manifest,
    *,
    tables: Mapping[str, str],
) -> Path:
    """Write the page and return its path.

    Args:
        rows: All of them are on the page.
        certificate: Gives the map of pairs.
        tables: Heading to a table in plain text, in the order of the page.
    """
    from markupsafe import Markup

    system = str(rows[0].messages[0]["content"]) if rows else ""
    script = read_page("report.js")
    talks = (_told(row, system) for row in rows)
    page = render_page(
        "report",
        ledger=ledger,
        states=STATES,
        tables=tables,
        index=_pack(_index(rows, certificate, manifest, system)),
        chunks=[_pack(some) for some in iter(lambda: list(islice(talks, _CHUNK)), [])],
        script=Markup(script),  # noqa: S704  our own file
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    # a lone surrogate has no bytes: the page shows a question mark
    path.write_bytes(page.encode("utf-8", "replace"))
    return path


def _pack(value: Any) -> str:
    packed = gzip.compress(dumps(value).encode("utf-8", "surrogatepass"), compresslevel=6, mtime=0)
    return base64.b64encode(packed).decode()


def _index(rows: Sequence[Row], certificate: Certificate, manifest: Manifest, system: str) -> dict[str, Any]:
    """What the lists, the filters, the map and the charts need; conversations are elsewhere."""
    holes = [[*h.pair[0], *h.pair[1], _STAGES[h.why.split()[0].rstrip(",")], h.why] for h in certificate.holes]
    holes += [[*pair, _INFEASIBLE, "cannot happen"] for pair in manifest.infeasible]
    spread = _spread([row.card.opening for row in rows])
    return {
        "axes": manifest.axes,
        "names": {clause.id: shorten(clause.text, 140) for clause in manifest.clauses},
        "holes": holes,
        "states": list(STATES),
        "chunk": _CHUNK,
        "system": system,
        "rows": [_line(row, at) for row, at in zip(rows, spread, strict=True)],
    }


def _line(row: Row, at: tuple[float, float]) -> dict[str, Any]:
    said = sum(len(m["content"] or "") + len(dumps(m.get("tool_calls", ""))) for m in row.messages)
    verdict = [row.verdict.rule] if row.verdict and row.state == "dropped" else []
    return {
        "id": row.id,
        "state": row.state,
        "situation": dict(row.situation),
        "reasons": sorted({*verdict, *(f.check for f in row.findings)}),
        "texture": row.persona.texture,
        "opening": shorten(row.card.opening, 90),
        "tokens": said // 4,  # about four characters each, in English
        "at": at,
    }


def _told(row: Row, system: str) -> dict[str, Any]:
    wire = row.to_json()
    left_out = ("tools", "situation", "messages", "id", "situation_id")
    told = {name: value for name, value in wire.items() if name not in left_out}
    first, *messages = wire["messages"]
    return told | {"messages": messages, "system": None if first["content"] == system else first["content"]}


def _spread(texts: Sequence[str]) -> list[tuple[float, float]]:
    """Lay texts out in a unit square, alike ones near each other: two principal components."""
    if len(set(texts)) < 3:
        return [(0.5, 0.5)] * len(texts)
    vectors = embed(texts, HASHED).matrix
    centred = vectors - vectors.mean(axis=0)
    turns = np.arange(len(texts))
    axes = centred.T @ np.column_stack([turns % 7, turns % 5])
    for _ in range(12):  # power iteration: near enough for a picture, and far quicker than all components
        axes, _ = np.linalg.qr(centred.T @ (centred @ axes))
    places = centred @ axes
    places = (places - places.min(axis=0)) / np.maximum(np.ptp(places, axis=0), 1e-9)
    return [(round(float(x), 3), round(float(y), 3)) for x, y in places]
