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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from whilesim.chat.messages import Message, ToolCall, read_messages
from whilesim.core.text import fold
from whilesim.grading.outcome import observe_end
from whilesim.keeping.grades import failed_calls
from whilesim.keeping.manifest import Pair
from whilesim.keeping.rows import Row
from whilesim.situations.tools import Tool

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
    def build(
        cls,
        axes: Mapping[str, Sequence[str]],
        feasible: Iterable[Pair],
        rows: Iterable[Row],
        *,
        tools: Sequence[Tool] = (),
    ) -> Certificate:
        """Count pairs over rows.

        Args:
            axes: Axis name to values, in axis order.
            feasible: Pairs that can happen, both values in axis order.
            rows: All rows of the run, failed ones included.
            tools: For the effect of each call; without them nothing counts as refused.
        """
        wanted = sorted(set(feasible))
        counts: dict[Pair, Counter[str]] = {pair: Counter() for pair in wanted}
        for row in rows:
            _count(row, [a for a in axes if a in row.situation], counts, tools)
        holes = [Hole(pair=p, why=_why(counts[p])) for p in wanted if not counts[p]["kept"]]
        tables: dict[str, list[int]] = {}
        for pair in wanted:
            table = tables.setdefault(f"{pair[0][0]} x {pair[1][0]}", [0, 0])
            table[0] += counts[pair]["kept"] > 0
            table[1] += 1
        return cls(
            feasible=len(wanted),
            planned=sum(c["planned"] > 0 for c in counts.values()),
            played=sum(c["played"] > 0 for c in counts.values()),
            met=sum(c["met"] > 0 for c in counts.values()),
            kept=sum(c["kept"] > 0 for c in counts.values()),
            holes=tuple(holes),
            by_axes={name: (kept, all_) for name, (kept, all_) in tables.items()},
        )

    def to_json(self) -> dict[str, Any]:
        """Return the certificate as a JSON object; a hole is axis, value, axis, value, why."""
        columns = {n: getattr(self, n) for n in ("feasible", "planned", "played", "met", "kept")}
        holes = [[*h.pair[0], *h.pair[1], h.why] for h in self.holes]
        return {**columns, "by_axes": {k: list(v) for k, v in self.by_axes.items()}, "holes": holes}

    def __str__(self) -> str:
        names = ("feasible", "planned", "played", "met", "kept")
        head = "".join(f"{name:>10}" for name in names)
        counts = "".join(f"{getattr(self, name):>10}" for name in names)
        whys = Counter(hole.why for hole in self.holes).most_common()
        lines = [f"{'pairs':<10}{head}", f"{'':<10}{counts}"]
        lines += [f"{len(self.holes)} pairs are missing from the kept rows:"] if whys else []
        return "\n".join([*lines, *(f"  {n:>6}  {why}" for why, n in whys)])


def happened(row: Row, tools: Sequence[Tool]) -> dict[str, bool]:
    """Say for each axis of a row's situation whether its value happened in the conversation."""
    values = row.situation
    met = dict.fromkeys(values, True)
    if "tool" not in values:
        return met
    messages = read_messages(row.messages)
    calls = [c for m in messages for c in m.tool_calls]
    failed = set(failed_calls(messages, tools, row.failed_calls))
    mine = [c for c in calls if c.name == values["tool"]]
    refused = not mine and _rightly_refused(row, messages, tools, failed)
    served = [c for c in mine if (c.id in failed or values.get("tool_condition") not in _FAILING)]
    touched = bool(mine) or any(_names(c, row) for c in calls)
    met |= {"tool": bool(mine) or refused}
    met |= {"tool_condition": bool(served)} if "tool_condition" in values else {}
    return met | ({"world_state": touched} if "world_state" in values else {})


def _count(row: Row, axes: Sequence[str], counts: Mapping[Pair, Counter[str]], tools: Sequence[Tool]) -> None:
    values = [(axis, row.situation[axis]) for axis in axes]
    played = row.state != "failed"
    met = happened(row, tools) if played else {}
    for pair in combinations(values, 2):
        found = counts.get(pair)
        if found is None:
            continue
        found["planned"] += 1
        missing = [axis for axis, _ in pair if not met.get(axis)]
        if not played:
            found[f"failed {row.stop if row.failure is None else row.failure.reason}"] += 1
        elif missing:
            found["played"] += 1
            found[f"missing {_NOT_MET[missing[0]]}"] += 1
        else:
            found.update(["played", "met"])
            found["kept" if row.state == "kept" else f"lost {_fate(row)}"] += 1


def _fate(row: Row) -> str:
    return "not judged" if row.verdict is None else f"dropped by {row.verdict.rule}"


def _why(found: Counter[str]) -> str:
    """Say why no kept row holds a pair: the commonest reason at the last stage that it reached."""
    if not found["planned"]:
        return "in no card"
    stages = {"lost ": "met, and then ", "missing ": "played, but ", "failed ": "every conversation failed: "}
    for mark, told in stages.items():
        reasons = [(n, key) for key, n in found.items() if key.startswith(mark)]
        if reasons:
            _, key = min(reasons, key=lambda pair: (-pair[0], pair[1]))
            return told + key.removeprefix(mark)
    raise AssertionError("a planned pair was played or failed")


def _rightly_refused(row: Row, messages: Sequence[Message], tools: Sequence[Tool], failed: set[str]) -> bool:
    oracle = row.to_oracle()
    if oracle is None or not tools:
        return False
    end = observe_end(messages, tools, failed)
    return (end == "refused" and "refused" in oracle.ends) or (end == "handed_off" and oracle.handoff_wanted is True)


def _names(call: ToolCall, row: Row) -> bool:
    """Say whether a call's arguments hold something that the customer or the oracle knows the record by."""
    oracle = row.to_oracle()
    rules = (*oracle.must_call, *oracle.must_not_call) if oracle else ()
    known = [*row.card.facts.values(), *(v for rule in rules for v in rule.arguments.values())]
    names = {fold(str(value)) for value in known}
    return any(len(said) > 2 and said in names for said in map(fold, _leaves(call.parsed)))


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    elif value is not None:
        yield str(value)
