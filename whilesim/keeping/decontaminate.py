"""Decontaminate: rows that hold what a benchmark asks, and by which layer that shows.

    exact        a text of the benchmark stands in a row, whole
    13-, 8-gram  so many words in a row stand in both, in the same order
    embedding    what the customer says is near to a text of the benchmark
    identifiers  both name the same record or person
    structure    the row makes the calls that an item wants, on the same records

No layer sees everything. Thousands of tasks may share a dozen texts and differ in what is to
be done, or ask the same thing in other words; so each layer says whether it could run, and
what it found that no other did. What the policy and the tools of a row say is no evidence:
both sides have read it.

Sources: Brown et al. (2020), Language models are few-shot learners, appendix C, for 13-grams;
Wei et al. (2022), Finetuned language models are zero-shot learners, appendix C, for removing
whole examples.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice
from typing import Any

import numpy as np

from whilesim.cards.embeddings import HASHED, embed
from whilesim.core.errors import InputError
from whilesim.core.jsontext import dumps, parse_object
from whilesim.core.text import shorten
from whilesim.keeping.references import FREE, Call, Item, identifiers, read_call, read_items, tokens
from whilesim.keeping.rows import Row
from whilesim.situations.tools import Tool

NEAR = {HASHED: 0.65}
"""Embedder to the cosine from which two texts are near."""
_NEAR = 0.82  # of a model; clean rows came up to 0.75, the same request said in the first person to 0.9 in nine of ten
_SHARED = 5  # words in a row that stand in policy or tools as well are theirs
_STOCK = (10, 0.1)  # words that the agent says for so many cards, and such a share of them, are its own
_LONG = 8  # words of a text that nobody says by chance
_BARE = 3  # calls without a record that are evidence only together


@dataclass(frozen=True, slots=True)
class Evidence:
    """What one layer saw in one row."""

    layer: str
    item: str
    """Id of the first item of the benchmark that shows it, its position where it has none."""
    items: int
    """How many items show the same."""
    quote: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """Whether a layer could run, and what it found."""

    name: str
    could: str
    """What it compared with; where it could not run, why not."""
    ran: bool
    found: int
    alone: int
    """Rows that no other layer found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decontamination:
    """What the layers found in rows, and the rows that they left."""

    rows: int
    items: int
    layers: tuple[Layer, ...]
    evidence: Mapping[str, tuple[Evidence, ...]]
    """Row id to what was seen in it, the first of each layer."""
    clean: Any = None
    """The rows in which nothing was seen, as a simulation."""

    def __str__(self) -> str:
        lines = [f"{len(self.evidence)} of {self.rows} rows share something with {self.items} items"]
        lines.append(f"  {'layer':<12}{'rows':>7}{'alone':>7}  compared with")
        for layer in self.layers:
            counts = f"{layer.found:>7}{layer.alone:>7}" if layer.ran else f"{'-':>7}{'-':>7}"
            lines.append(f"  {layer.name:<12}{counts}  {layer.could}")
        for row_id, seen in islice(self.evidence.items(), 3):
            told = "; ".join(f"{e.layer} with {e.item!r}: {e.quote!r}" for e in seen)
            lines.append(f"  {row_id}: {shorten(told, 200)}")
        return "\n".join(lines)

    __repr__ = __str__  # a notebook shows the value of a cell


def find_overlaps(
    rows: Sequence[Row], against: Any, tools: Sequence[Tool], *, ngram: int = 8, embedder: Any = "auto"
) -> Decontamination:
    """Look in rows for what a benchmark holds; ``tools`` tell which calls change something.

    Raises:
        InputError: The benchmark cannot be read, or ``ngram`` is below 4.
    """
    if isinstance(ngram, bool) or not isinstance(ngram, int) or ngram < 4:
        raise InputError(f"ngram={ngram!r}: fewer than 4 words in a row are shared by chance. Type ngram=8.")
    items = read_items(against)
    layers: dict[str, _Found] = {"exact": _exact(rows, items)}
    for size in sorted({13, ngram}, reverse=True):
        layers[f"{size}-gram"] = _ngrams(rows, items, size)
    layers["embedding"] = _near(rows, items, embedder)
    layers["identifiers"] = _same_names(rows, items)
    layers["structure"] = _same_calls(rows, items, tools)
    shown = [found for _, found in layers.values() if found]
    seen = {row.id: tuple(found[row.id] for found in shown if row.id in found) for row in rows}
    alone = Counter(some[0].layer for some in seen.values() if len(some) == 1)
    told = tuple(
        Layer(name=name, could=could, ran=found is not None, found=len(found or ()), alone=alone[name])
        for name, (could, found) in layers.items()
    )
    evidence = {row_id: some for row_id, some in seen.items() if some}
    return Decontamination(rows=len(rows), items=len(items), layers=told, evidence=evidence)


class _Index(dict[Any, tuple[str, int]]):
    """Things of a benchmark's items, each with the first item that has it and how many do."""

    def __init__(self, pairs: Iterable[tuple[Any, str]]) -> None:
        for thing, item in pairs:
            first, count = self.get(thing, (item, 0))
            self[thing] = (first, count + 1)

    def evidence(self, layer: str, thing: Any, quote: str) -> Evidence:
        item, count = self[thing]
        return Evidence(layer, item, count, shorten(quote, 160))


_Found = tuple[str, Mapping[str, Evidence] | None]  # what was compared with, and what was seen; None: nothing could be


def _exact(rows: Sequence[Row], items: Sequence[Item]) -> _Found:
    """Look for whole texts: long ones anywhere, short ones where a customer opens with them and says nothing else."""
    index = _Index((tokens(text), item.id) for item in items for text in dict.fromkeys(item.texts))
    starts: dict[tuple[str, ...], list[tuple[str, ...]]] = defaultdict(list)
    for text in index:
        if len(text) >= FREE:
            starts[text[:FREE]].append(text)

    def hits(said: tuple[str, ...], opening: bool) -> Iterator[tuple[str, ...]]:
        for place in range(len(said)):
            for text in starts.get(said[place : place + FREE], ()):
                if said[place : place + len(text)] == text and (len(text) >= _LONG or (opening and text == said)):
                    yield text

    found = _seen(rows, index, "exact", hits)
    count = sum(map(len, starts.values()))
    return (f"{count} texts", found) if count else (f"no text of {FREE} words or more", None)


def _ngrams(rows: Sequence[Row], items: Sequence[Item], size: int) -> _Found:
    texts = ((tokens(text), item.id) for item in items for text in item.texts)
    index = _Index(dict.fromkeys((gram, item) for text, item in texts for gram in _grams(text, size)))
    found = _seen(rows, index, f"{size}-gram", lambda said, _: (g for g in _grams(said, size) if g in index))
    return (f"{len(index)} runs of words", found) if index else (f"no text of {size} words or more", None)


_Hits = Callable[[tuple[str, ...], bool], Iterable[tuple[str, ...]]]  # words of a message, and whether it opens


def _seen(rows: Sequence[Row], index: _Index, layer: str, hits: _Hits) -> dict[str, Evidence]:
    """Return the first hit of each row that is neither policy nor what the agent says to everybody."""
    cards: dict[tuple[str, ...], set[str]] = defaultdict(set)  # what the agent says, and for which cards
    all_hits: list[tuple[Row, tuple[str, ...], str]] = []
    for row in rows:
        mine = _short_runs(_common(row))
        opening = next((m for m in row.messages if m["role"] == "user"), None)
        for message in (m for m in row.messages if m["role"] in ("user", "assistant") and m["content"]):
            for words in hits(tokens(message["content"]), message is opening):
                if not _is_shared(words, mine):
                    all_hits.append((row, words, message["role"]))
                    if message["role"] == "assistant":
                        cards[words].add(row.card_id)
    few = max(_STOCK[0], _STOCK[1] * len({row.card_id for row in rows}))
    found: dict[str, Evidence] = {}
    for row, words, role in all_hits:
        if role == "user" or len(cards[words]) < few:
            found.setdefault(row.id, index.evidence(layer, words, " ".join(words)))
    return found


def _near(rows: Sequence[Row], items: Sequence[Item], embedder: Any) -> _Found:
    """Compare what a customer opens with, and all that a customer says, with every text."""
    index = _Index((text, item.id) for item in items for text in dict.fromkeys(item.texts) if len(tokens(text)) >= FREE)
    if not index or not rows:
        return f"no text of {FREE} words or more", None
    theirs = embed(list(index), embedder)
    said = [(row, text) for row in rows for text in _asked(row) if len(tokens(text)) >= FREE]
    limit, texts = NEAR.get(theirs.name, _NEAR), list(index)
    found: dict[str, Evidence] = {}
    for start in range(0, len(said), 1000):
        some = said[start : start + 1000]
        likeness = embed([text for _, text in some], embedder).matrix @ theirs.matrix.T
        for (row, text), best, cosine in zip(some, np.argmax(likeness, axis=1), likeness.max(axis=1), strict=True):
            if cosine >= limit:
                quote = f"{cosine:.2f}: {text} ~ {texts[best]}"
                found.setdefault(row.id, index.evidence("embedding", texts[best], quote))
    how = "by spelling only: no model is at hand" if theirs.name == HASHED else f"by {theirs.name}"
    return f"{len(index)} texts, {how}, from cosine {limit}", found


def _same_names(rows: Sequence[Row], items: Sequence[Item]) -> _Found:
    index = _Index((name, item.id) for item in items for name in sorted(item.names))
    found = {}
    for row in rows if index else ():
        told = [m["content"] or "" for m in row.messages[1:]] + [dumps(row.card.facts)]
        told += [call["function"]["arguments"] for call in row.calls]
        both = identifiers("\n".join(told), index)
        if both and (both := both - identifiers(_common(row), index)):
            found[row.id] = index.evidence("identifiers", min(both), ", ".join(sorted(both)))
    return (f"{len(index)} identifiers", found) if index else ("nothing that names a record or a person", None)


def _same_calls(rows: Sequence[Row], items: Sequence[Item], tools: Sequence[Tool]) -> _Found:
    """Compare sets of calls: all that an item wants on named records, or exactly these where it names none."""
    changing = {tool.name for tool in tools if tool.effect in ("write", "handoff")}
    reading = {tool.name for tool in tools} - changing
    by_customer = {call.name for item in items for call in item.calls if call.customer}
    asked = ((frozenset(call for call in item.calls if call.name not in reading), item.id) for item in items)
    wanted = _Index((deeds, item) for deeds, item in asked if deeds)
    known = {deeds for deeds in wanted if {d.name for d in deeds} & (changing | by_customer)}
    telling = {deeds for deeds in known if any(d.named for d in deeds) or len(deeds) >= _BARE}
    by_deed: dict[Call, list[frozenset[Call]]] = defaultdict(list)
    for deeds in telling:
        by_deed[min(deeds, key=lambda d: d.told)].append(deeds)
    found = {}
    for row in rows if telling else ():
        done = frozenset(_done(row, changing, by_customer))
        some = chain.from_iterable(by_deed[deed] for deed in done)
        fits = (deeds for deeds in some if deeds == done or (deeds < done and any(d.named for d in deeds)))
        best = max(fits, key=lambda deeds: (len(deeds), sorted(d.told for d in deeds)), default=None)
        if best is not None:
            found[row.id] = wanted.evidence("structure", best, ", ".join(sorted(d.told for d in best)))
    if not telling:
        return "no expected call that changes a record of these tools", None
    silent = sum(wanted[deeds][1] for deeds in wanted if deeds not in telling)
    without = len(items) - sum(count for _, count in wanted.values())
    return f"{len(telling)} sets of calls; {silent + without} items expect none, or none that would tell", found


def _done(row: Row, changing: set[str], by_customer: set[str]) -> Iterator[Call]:
    for call in row.calls:
        told = call["function"]
        if told["name"] in changing and call["id"] not in row.failed_calls:
            yield read_call(told["name"], parse_object(told["arguments"]) or {})
    for made in row.customer_calls:
        if made.name in by_customer:
            yield read_call(made.name, parse_object(made.arguments) or {}, customer=True)


def _asked(row: Row) -> Iterator[str]:
    said = [m["content"] for m in row.messages if m["role"] == "user" and m["content"]]
    yield from dict.fromkeys([*said[:1], "\n".join(said)])


def _grams(words: tuple[str, ...], size: int) -> Iterator[tuple[str, ...]]:
    return (words[i : i + size] for i in range(len(words) - size + 1))


@lru_cache(maxsize=64)
def _short_runs(text: str) -> frozenset[tuple[str, ...]]:
    return frozenset(_grams(tokens(text), _SHARED))


def _common(row: Row) -> str:
    """Return what a row's policy and tools say."""
    return "\n".join([*(m["content"] or "" for m in row.messages[:1]), dumps(row.tools)])


def _is_shared(words: tuple[str, ...], mine: frozenset[tuple[str, ...]]) -> bool:
    """Say whether half of the words or more stand in the policy or the tools."""
    theirs = [False] * len(words)
    for place, gram in enumerate(_grams(words, _SHARED)):
        if gram in mine:
            theirs[place : place + _SHARED] = [True] * _SHARED
    return 2 * sum(theirs) >= len(words)
