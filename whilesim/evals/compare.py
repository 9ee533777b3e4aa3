"""Compare: two runs on the same tickets, and runs over time.

Tickets are pairs. With single trials Fisher's exact test is told as the headline, as
published comparisons do, and McNemar's beside it; with several, a permutation of the
tickets' own pass rates, exact when few differ.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from whilesim.core.errors import InputError
from whilesim.core.stats import Comparison, fisher, mcnemar, minimum_detectable_effect, permutation, sample_size
from whilesim.evals.results import EvalResult, gather, load_result


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Two sets of tries of the same tasks, side by side."""

    before: float
    """Pass rate, 0 to 1, over the tasks that both tried."""
    after: float
    tasks: int
    p: float
    test: str
    paired: Comparison
    """The paired test: the same as ``p`` where ``test`` says so."""
    regressions: tuple[str, ...]
    """Tasks that pass less often than before, the worst first."""
    improvements: tuple[str, ...]
    left_out: int
    """Tasks that only one of the two tried, or that could not be decided."""
    tags: Mapping[str, Change] = field(default_factory=dict)
    """The same for the tasks of each tag, and by hand-off wanted or not."""
    notes: tuple[str, ...] = ()
    """What differs between the two besides the agent."""

    @property
    def difference(self) -> float:
        """After minus before."""
        return self.after - self.before

    @property
    def needed(self) -> int | None:
        """Tasks per arm that would tell this difference four times in five; None for no difference."""
        return None if self.before == self.after else sample_size(self.before, self.after)

    @property
    def underpowered(self) -> bool:
        """Whether so few tasks could miss the difference that they show, or any that matters."""
        found = minimum_detectable_effect(min(self.before, self.after), self.tasks)
        return self.p >= 0.05 and (found.value is None or abs(self.difference) < found.value)

    def __str__(self) -> str:
        lines = list[str]()
        if self.underpowered:
            more = f"; {self.before:.2f} and {self.after:.2f} take {self.needed} per arm" if self.needed else ""
            lines.append(f"underpowered: {self.tasks} tasks cannot tell these two apart, nor that they are alike{more}")
        lines += [f"not the same: {note}" for note in self.notes]
        change = f"{self.before:.3f} -> {self.after:.3f} ({self.difference:+.3f})"
        lines.append(f"{change} on {self.tasks} tasks, p = {self.p:.3g} ({self.test})")
        if self.test.startswith("Fisher"):
            lines.append(f"  on the same tasks: p = {self.paired.p:.3g} (McNemar, exact; {self.paired.n} tasks differ)")
        for name, tasks in (("worse", self.regressions), ("better", self.improvements)):
            more = f" and {len(tasks) - 20} more" if len(tasks) > 20 else ""
            lines += [f"  {name}: {', '.join(tasks[:20])}{more}"] if tasks else []
        lines += [f"  {self.left_out} tasks left out: not tried or not decided in both"] if self.left_out else []
        for tag, c in self.tags.items():
            lines.append(f"  {tag:<20} {c.before:.2f} -> {c.after:.2f} on {c.tasks}, p = {c.p:.3g}")
        return "\n".join(lines)

    __repr__ = __str__  # a notebook shows the value of a cell


Tries = Mapping[str, Sequence[bool]]
"""Task to whether each of its tries passed."""


def compare(before: Any, after: Any) -> Change:
    """Compare two runs, given as results or as their folders, on the tickets that both played.

    Raises:
        InputError: They have no ticket in common.
    """
    runs = [r if isinstance(r, EvalResult) else load_result(os.fspath(r)) for r in (before, after)]
    tries = [{i: [t.passed for t in ts if t.passed is not None] for i, ts in r.by_ticket.items()} for r in runs]
    firsts = [(ticket, traces[0]) for ticket, traces in runs[0].by_ticket.items()]
    named = {True: "hand-off wanted", False: "hand-off not wanted", None: "hand-off open"}
    wanted = {ticket: named[t.handoff.get("wanted")] for ticket, t in firsts}
    tags = gather((tag, ticket) for ticket, t in firsts for tag in [*t.tags, wanted[ticket]])
    one, two = (r.run["protocol"] for r in runs)
    return compare_tries(*tries, tags=tags, notes=[name for name in one if one[name] != two.get(name)])


def compare_tries(
    before: Tries, after: Tries, *, tags: Mapping[str, Sequence[str]] | None = None, notes: Sequence[str] = ()
) -> Change:
    """Compare the tries of tasks that stand in both, as a whole and by tag.

    Raises:
        InputError: No task stands in both.
    """
    if not (both := [i for i, told in before.items() if told and after.get(i)]):
        raise InputError("the two runs have no task in common that was decided in both: nothing can be compared.")
    rates = [[sum(t[i]) / len(t[i]) for i in both] for t in (before, after)]
    gaps = {i: b - a for i, a, b in zip(both, *rates, strict=True)}
    if all(len(t[i]) == 1 for t in (before, after) for i in both):
        passes = [round(sum(r)) for r in rates]
        paired = mcnemar(sum(g < 0 for g in gaps.values()), sum(g > 0 for g in gaps.values()), pairs=len(both))
        p, test = fisher(passes[0], len(both), passes[1], len(both)).p, "Fisher, exact, single trials"
    else:
        paired = permutation(*rates)
        p, test = paired.p, "permutation of tasks, " + ("exact" if paired.n <= 16 else "10,000 drawn")
    ranked = sorted(both, key=lambda i: gaps[i])
    tagged = {tag: [i for i in ids if i in gaps] for tag, ids in (tags or {}).items()}
    return Change(
        before=sum(rates[0]) / len(both),
        after=sum(rates[1]) / len(both),
        tasks=len(both),
        p=p,
        test=test,
        paired=paired,
        regressions=tuple(i for i in ranked if gaps[i] < 0),
        improvements=tuple(i for i in reversed(ranked) if gaps[i] > 0),
        left_out=len(before.keys() | after.keys()) - len(both),
        tags={g: compare_tries(*({i: t[i] for i in ids} for t in (before, after))) for g, ids in tagged.items() if ids},
        notes=tuple(notes),
    )


def tell_history(runs: Sequence[Mapping[str, Any]]) -> str:
    """Return runs over time as a table, the oldest first."""
    names = list(dict.fromkeys(name for run in runs for name in run["scores"]))
    lines = [f"{'date':<26}{'run':<14}{'commit':<10}{'agent':<24}{'passed':>8}" + "".join(f"{n:>15}" for n in names)]
    for run in runs:
        told = [run["passed"], *(run["scores"].get(n, {}) for n in names)]
        shown = ["n/a" if e.get("value") is None else f"{e['value']:.2f}" for e in told]
        head = f"{run['date']:<26}{run['run_id']:<14}{run['commit'][:8]:<10}{run['agent'][:22]:<24}"
        lines.append(head + f"{shown[0]:>8}" + "".join(f"{s:>15}" for s in shown[1:]))
    return "\n".join(lines)
