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
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from whilesim.cards.embeddings import HASHED, embed
from whilesim.core.jsontext import dumps
from whilesim.core.templates import read_page, render_page
from whilesim.core.text import shorten
from whilesim.grading.outcome import HandoffTable
from whilesim.keeping.certificate import Certificate
from whilesim.keeping.folders import lighten
from whilesim.keeping.ledger import Ledger, count_handoffs, count_passes
from whilesim.keeping.manifest import Manifest
from whilesim.keeping.rows import STATES, Row
from whilesim.situations.tools import Tool

Count = Callable[[Iterable[Row]], Ledger]
_CHUNK = 200  # conversations that are compressed together
_DRAWN = 1500  # openings that the script draws
_STAGES = {"met": 1, "played": 2, "every": 3, "in": 4}  # first word of why a pair is missing, to a stage
_INFEASIBLE = 5


def write_report(
    path: Path, rows: Iterable[Row], manifest: Manifest, tools: Sequence[Tool], *, count: Count, graded: bool
) -> Path:
    """Write the page and return its path.

    Args:
        rows: All of them are on the page. Each is read once and let go.
        tools: For the effect of each call.
        count: Makes a ledger of the rows, which come to it without what was said.
        graded: Whether there are passes to tell.
    """
    from markupsafe import Markup

    seen, script, here = _Seen(tools), read_page("report.js"), "<!-- here -->"  # texts are escaped: none is this
    certificate = Certificate.build(manifest, seen.passing(rows), tools)
    passes = str(count_passes(seen.light, manifest.seed)).replace(" | ", "\n")  # many rollouts are wider than a page
    tables = {"Passes": passes} if graded else {}
    page = render_page(
        "report",
        ledger=count(seen.light),
        states=STATES,
        tables=tables | {"Hand-offs": str(seen.handoffs), "Pairs": str(certificate)},
        index=_pack(_index(seen, certificate, manifest)).decode(),
        chunks=[Markup(here)] * len(seen.chunks),  # noqa: S704  our own mark
        script=Markup(script),  # noqa: S704  our own file
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as out:
        for chunk, part in zip([b"", *seen.chunks], page.split(here), strict=True):
            # a lone surrogate has no bytes: the page shows a question mark
            out.writelines([chunk, part.encode("utf-8", "replace")])
    return path


class _Seen:
    """What the page needs of rows, taken while they pass by."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self.tools, self.system, self.handoffs = tools, "", count_handoffs([], tools)
        self.light: list[Row] = []
        self.lines: list[dict[str, Any]] = []
        self.chunks: list[bytes] = []

    def passing(self, rows: Iterable[Row]) -> Iterator[Row]:
        waiting = iter(rows)
        while some := list(islice(waiting, _CHUNK)):
            self.system = self.system if self.chunks else str(some[0].messages[0]["content"])
            a, b = self.handoffs, count_handoffs(some, self.tools)
            self.handoffs = HandoffTable(counts=a.counts + b.counts, early=a.early + b.early, late=a.late + b.late)
            self.light += map(lighten, some)
            self.lines += map(_line, some)
            self.chunks.append(_pack([_told(row, self.system) for row in some]))
            yield from some


def _pack(value: Any) -> bytes:
    return base64.b64encode(gzip.compress(dumps(value).encode("utf-8", "surrogatepass"), compresslevel=6, mtime=0))


def _index(seen: _Seen, certificate: Certificate, manifest: Manifest) -> dict[str, Any]:
    """What the lists, the filters, the map and the charts need; conversations are elsewhere."""
    holes = [[*h.pair[0], *h.pair[1], _STAGES[h.why.split()[0].rstrip(",")], h.why] for h in certificate.holes]
    holes += [[*pair, _INFEASIBLE, "cannot happen"] for pair in manifest.infeasible]
    for line, at in zip(seen.lines, _spread([row.card.opening for row in seen.light[:_DRAWN]]), strict=False):
        line["at"] = at
    names = {clause.id: shorten(clause.text, 140) for clause in manifest.clauses}
    told = {"axes": manifest.axes, "names": names, "holes": holes, "states": list(STATES), "chunk": _CHUNK}
    return told | {"system": seen.system, "rows": seen.lines}


def _line(row: Row) -> dict[str, Any]:
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
    }


def _told(row: Row, system: str) -> dict[str, Any]:
    left_out = ("tools", "situation", "messages", "id", "situation_id")
    told = {name: value for name, value in row.to_json().items() if name not in left_out}
    first, *messages = row.messages
    return told | {"messages": messages, "system": None if first["content"] == system else first["content"]}


def _spread(texts: Sequence[str]) -> list[tuple[float, float]]:
    """Lay texts out in a unit square, alike ones near each other: two principal components."""
    if len(set(texts)) < 3:
        return [(0.5, 0.5)] * len(texts)
    centred = (vectors := embed(texts, HASHED).matrix) - vectors.mean(axis=0)
    turns = np.arange(len(texts))
    axes = centred.T @ np.column_stack([turns % 7, turns % 5])
    for _ in range(12):  # power iteration: near enough for a picture, and far quicker than all components
        axes, _ = np.linalg.qr(centred.T @ (centred @ axes))
    places = centred @ axes
    places = (places - places.min(axis=0)) / np.maximum(np.ptp(places, axis=0), 1e-9)
    return [(round(float(x), 3), round(float(y), 3)) for x, y in places]
