"""Certificate: which pairs of values the kept rows really hold, and why others are missing.

A plan may cover every pair and its rows still lack many: a tool was never called, the fault
never served, the good rows dropped. So a pair is counted five times over: it can happen
(feasible), stands in a card (planned), in a conversation that reached an end (played), both
its values happened there (met), and that in a kept row (kept).

Met is read from the row alone. The tool was called, or asked for and rightly refused; its
condition was served by a call; the record in that state was touched, by a call of the
situation's tool or one that names what the customer or the oracle knows of it. Clause,
stance, history and axes of the user's own count by the card.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Any

from whilesim.chat.messages import read_messages
from whilesim.core.jsontext import parse_object
from whilesim.core.text import fold
from whilesim.grading.checks.identifiers import leaves
from whilesim.grading.outcome import observe_end
from whilesim.keeping.manifest import Manifest, Pair
from whilesim.keeping.rows import Row
from whilesim.situations.tools import Tool
from whilesim.world.oracle import Oracle

_COLUMNS = ("feasible", "planned", "played", "met", "kept")
_FAILING = frozenset({"timeout", "permission_denied"})  # conditions that a call meets by failing
_NOT_MET = {
    "tool": "the tool was not called",
    "tool_condition": "the condition was not served",
    "world_state": "the record was not touched",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Hole:
    """A feasible pair that no kept row holds."""

    pair: Pair
    why: str

    def __str__(self) -> str:
        (a, u), (b, v) = self.pair
        return f"{a}={u} with {b}={v}: {self.why}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """How many feasible pairs were planned, played, met and kept, and the holes."""

    feasible: int
    planned: int
    played: int
    met: int
    kept: int
    holes: tuple[Hole, ...]
    by_axes: Mapping[str, tuple[int, int]]
    """Two axes, joined by `` x ``, to (kept, feasible) pairs of their values."""

    @classmethod
    def build(cls, manifest: Manifest, rows: Iterable[Row], tools: Sequence[Tool] = ()) -> Certificate:
        """Count pairs over rows.

        Args:
            manifest: For the axes and the pairs that can happen.
            rows: All rows of the run, failed ones included.
            tools: For the effect of each call; without them nothing counts as refused.
        """
        counts: dict[Pair, Counter[str]] = {pair: Counter(feasible=1) for pair in sorted(manifest.feasible())}
        for row in rows:
            _count(row, manifest.axes, counts, tools)
        tables: dict[str, Counter[str]] = {}
        for ((first, _), (second, _)), found in counts.items():
            tables.setdefault(f"{first} x {second}", Counter()).update(name for name in _COLUMNS if found[name])
        columns = {name: sum(table[name] for table in tables.values()) for name in _COLUMNS}
        holes = tuple(Hole(pair=pair, why=_why(found)) for pair, found in counts.items() if not found["kept"])
        by_axes = {name: (table["kept"], table["feasible"]) for name, table in tables.items()}
        return cls(**columns, holes=holes, by_axes=by_axes)

    def to_json(self) -> dict[str, Any]:
        """Return the certificate as a JSON object; a hole is axis, value, axis, value, why."""
        holes = [[*h.pair[0], *h.pair[1], h.why] for h in self.holes]
        by_axes = {name: list(pairs) for name, pairs in self.by_axes.items()}
        return {**{name: getattr(self, name) for name in _COLUMNS}, "by_axes": by_axes, "holes": holes}

    def __str__(self) -> str:
        head = "".join(f"{name:>10}" for name in _COLUMNS)
        counts = "".join(f"{getattr(self, name):>10}" for name in _COLUMNS)
        lines = [f"{'pairs':<10}{head}", f"{'':<10}{counts}"]
        lines += [f"{len(self.holes)} pairs are missing from the kept rows:"] if self.holes else []
        whys = Counter(hole.why for hole in self.holes).most_common()
        return "\n".join([*lines, *(f"  {n:>6}  {why}" for why, n in whys)])

    __repr__ = __str__  # a notebook shows the value of a cell


def happened(row: Row, tools: Sequence[Tool]) -> dict[str, bool]:
    """Say for each axis of a row's situation whether its value happened in the conversation."""
    values = row.situation
    if "tool" not in values:
        return dict.fromkeys(values, True)
    mine = [c["id"] for c in row.calls if c["function"]["name"] == values["tool"]]
    fails = values.get("tool_condition") in _FAILING
    met = {
        "tool": bool(mine) or _rightly_refused(row, tools),
        "tool_condition": any(not fails or call in row.failed_calls for call in mine),
        "world_state": bool(mine) or any(_names_record(c["function"]["arguments"], row) for c in row.calls),
    }
    return {axis: met.get(axis, True) for axis in values}


def _count(row: Row, axes: Iterable[str], counts: Mapping[Pair, Counter[str]], tools: Sequence[Tool]) -> None:
    met = happened(row, tools) if row.state != "failed" else {}
    for pair in combinations([(axis, row.situation[axis]) for axis in axes if axis in row.situation], 2):
        missing = next((axis for axis, _ in pair if not met.get(axis)), None)
        if row.state == "failed":
            found = ["planned", f"failed {row.stop if row.failure is None else row.failure.reason}"]
        elif missing is not None:
            found = ["planned", "played", f"missing {_NOT_MET[missing]}"]
        else:
            fate = "not judged" if row.verdict is None else f"dropped by {row.verdict.rule}"
            found = ["planned", "played", "met", "kept" if row.state == "kept" else f"lost {fate}"]
        if pair in counts:
            counts[pair].update(found)


def _why(found: Counter[str]) -> str:
    """Say why no kept row holds a pair: the commonest reason at the last stage that it reached."""
    stages = {"lost ": "met, and then ", "missing ": "played, but ", "failed ": "every conversation failed: "}
    for mark, told in stages.items():
        if reasons := sorted((-n, key) for key, n in found.items() if key.startswith(mark)):
            return told + reasons[0][1].removeprefix(mark)
    return "in no card"


def _rightly_refused(row: Row, tools: Sequence[Tool]) -> bool:
    if (oracle := row.to_oracle()) is None or not tools:
        return False
    end = observe_end(read_messages(row.messages), tools, row.failed_calls)
    return (end == "refused" and "refused" in oracle.ends) or (end == "handed_off" and oracle.handoff_wanted is True)


def _names_record(arguments: str, row: Row) -> bool:
    """Say whether a call's arguments hold something that the customer or the oracle knows the record by."""
    oracle = row.to_oracle() or Oracle()
    rules = (rule.arguments.values() for rule in (*oracle.must_call, *oracle.must_not_call))
    names = {fold(str(value)) for value in chain(row.card.facts.values(), *rules)}
    told = (fold(str(leaf)) for _, leaf in leaves(parse_object(arguments)) if leaf is not None)
    return any(len(said) > 2 and said in names for said in told)
