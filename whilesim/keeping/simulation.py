"""Simulation: all rows of a run, to grade, look at, keep and give away."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from whilesim.cards.planning import refuse_unknown, whole_number
from whilesim.core.errors import InputError, RunError
from whilesim.core.seeds import shuffled
from whilesim.core.stats import PassAt
from whilesim.grading.outcome import HandoffTable
from whilesim.grading.rubric import read_rubric
from whilesim.grading.trust import Trust
from whilesim.keeping.arrow import to_dataset, to_pandas
from whilesim.keeping.certificate import Certificate
from whilesim.keeping.decontaminate import Decontamination, find_overlaps
from whilesim.keeping.export import Export, Format, export_rows
from whilesim.keeping.folders import RowFile, append_lines, join_grades, select_rows, write_folder
from whilesim.keeping.grades import Grade, Grades, Grading, Weights, grades_of
from whilesim.keeping.hub import Push, push
from whilesim.keeping.judging import choose_judge, doubt_judge, grade_played, hold_against, open_grading
from whilesim.keeping.ledger import Ledger, count_handoffs, count_passes, summarise
from whilesim.keeping.manifest import Manifest
from whilesim.keeping.page import write_report
from whilesim.keeping.report import explain_row, glance, tell_few
from whilesim.keeping.rows import Row, State
from whilesim.keeping.splits import near_duplicates, split_rows
from whilesim.keeping.trainable import TrainReport, check_trainable
from whilesim.situations.tools import Tool

Source = str | os.PathLike[str]
Wanted = Callable[[Row], bool]
Refiller = Callable[["Simulation", int | None, int | None], "Simulation"]
"""Plays more rows for a simulation: at most so many, until so many are kept."""


class Simulation:
    """Rows and what they were made of; the one object here that changes, when it is graded.

    Args:
        rows: Each once, in card order, then rollout.
        manifest: What the run was made of.
        folder: Where verdicts are written as they are made, or None.
        players: Role (agent, customer) to the model that played it, as ``simulate`` was given
            it: the judge is one of them unless another is named. None: by the manifest's names.
        refiller: Plays more rows for :meth:`refill`; None for rows that were loaded.
        grades: What grading made of the rows, by id; None: what the rows themselves carry.
    """

    def __init__(
        self,
        rows: Sequence[Row],
        manifest: Manifest | None = None,
        *,
        folder: Source | None = None,
        players: Mapping[str, Any] | None = None,
        refiller: Refiller | None = None,
        grades: Grades | None = None,
    ) -> None:
        self._played = rows
        self.manifest = manifest or Manifest()
        self.folder = None if folder is None else Path(folder)
        self.players = dict(self.manifest.models if players is None else players)
        self.whole: Simulation = self
        """The simulation that this one is a part of; itself, where it is all there is."""
        self.states: tuple[State, ...] | None = None
        """States of the rows that an export writes; None: kept when graded, else unjudged."""
        self.asked: dict[str, Any] = {}
        """What ``grade`` was given last, for :meth:`refill` to grade the same way."""
        self.refiller = refiller
        self._warned = set[str]()
        self._paid = dict[str, Grade]()  # what a judge said before it stopped, for the next to go on with
        carried = {} if isinstance(rows, RowFile) else grades_of(rows)  # verdicts stand in a file of their own
        self.grades: Grades = carried if grades is None else grades
        """What grading made of each row, by id."""
        self.graded = bool(carried) or grades is not None
        """Whether ``grade`` has run."""
        self.rows = join_grades(rows, self.grades)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __repr__(self) -> str:
        return "\n".join([summarise(self.rows, self.ledger, graded=self.graded), *tell_few(self.rows)])

    def _repr_html_(self) -> str:
        return glance(self.rows, summarise(self.rows, self.ledger, graded=self.graded))

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The agent's tools, with the effects that the run knew."""
        return self.manifest.tools(self.rows[0].tools) if len(self.rows) else ()

    @property
    def kept(self) -> Simulation:
        """The rows to train on; before ``grade`` nobody knows them."""
        return self._in_state("kept")

    @property
    def dropped(self) -> Simulation:
        """The rows that a finding, the oracle or the judge spoke against."""
        return self._in_state("dropped")

    @property
    def failed(self) -> Simulation:
        """The rows without an ending: an error, the deadline, the budget, an interrupt."""
        return self._in_state("failed")

    @property
    def unjudged(self) -> Simulation:
        """The rows that reached an end and have no verdict."""
        return self._in_state("unjudged")

    @property
    def is_part(self) -> bool:
        """Whether the run has more rows than stand here."""
        return self.whole is not self or bool(self.manifest.record)

    @property
    def ledger(self) -> Ledger:
        """What became of every planned row, and what it cost."""
        return self._count(self.rows)

    @property
    def pass_at(self) -> PassAt:
        """pass@k and pass^k over the first wave; prints as one line."""
        self._need_grades("pass_at")
        return count_passes(self.rows, self.manifest.seed)

    @property
    def handoffs(self) -> HandoffTable:
        """Hand-offs wanted and made, too early and too late."""
        return count_handoffs(self.rows, self.tools)

    @property
    def certificate(self) -> Certificate:
        """Pairs feasible, planned, played, met and kept, and why some are missing."""
        return Certificate.build(self.manifest, self.rows, self.tools)

    def find(self, row_id: str) -> Row:
        """Return one row by its id; raises InputError where there is none."""
        if found := next((row for row in self.rows if row.id == row_id), None):
            return found
        some = ", ".join(repr(row.id) for row in self.rows[:3])
        hint = f"Ids look like {some}." if some else "There are no rows here at all."
        raise InputError(f"there is no row {row_id!r:.60} here. {hint}")

    def explain(self, row_id: str, *, limit: int | None = None) -> str:
        """Return all that is known of one row, to read; ``limit`` cuts messages to so many characters."""
        return explain_row(self.find(row_id), self.grades.get(row_id), limit=limit)

    def grade(
        self,
        rubric: Any = None,
        judge: Any = None,
        *,
        fraction: float = 1.0,
        severity: Weights | None = None,
        require_admitted: bool = False,
    ) -> Simulation:
        """Give every row that reached an end a verdict, and return this simulation.

        Args:
            rubric: A text, list, mapping or path; None for the built-in one.
            judge: A model; None for the customer's model, or the agent's when there is no
                other. Scripted players have none: their rows are kept as ``unopposed``.
            fraction: Share of the survivors that the judge reads; the others stay unjudged.
            severity: Check to ``drop``, ``warn`` or ``ignore``.
            require_admitted: Refuse a judge that :meth:`trust` has not admitted.

        Raises:
            JudgeError: The first 10 answers could not be read.
            RunError: The judge has not been admitted.
        """
        how = self._grading(rubric, judge, fraction, severity)
        if require_admitted and how.judge not in self.manifest.admitted:
            msg = f"the judge {how.judge or None!r} has not been admitted, so its verdicts may be worth nothing. "
            raise RunError(msg + "Type data.trust(labels) with a few dozen rows labelled by people, then grade again.")
        self.asked = {"rubric": rubric, "judge": judge, "fraction": fraction, "severity": severity}
        made = self._paid = self._paid or dict(self.grades)
        grade_played(self._played, made, how, self.folder)
        self.grades, self.graded, self._paid = made, True, {}
        self.rows = join_grades(self._played, self.grades)
        if self.manifest.record:  # it told of older verdicts
            self.manifest = self.manifest.of_part()
        return self

    def trust(self, labels: Any, *, rubric: Any = None, judge: Any = None) -> Trust:
        """Hold a judge against people's labels, probe it, and admit it if it deserves that.

        Args:
            labels: Row id to keep, a list of ``{"id", "keep"}``, or a path of such lines.
            rubric, judge: As they were given to ``grade``.

        Raises:
            InputError: A label cannot be read, or this judge has read none of the labelled rows.
        """
        report = hold_against(labels, self.rows, self._grading(rubric, judge))
        if report.admitted:
            self.describe(admitted=[*self.manifest.admitted, report.judge])
        return report

    def refill(self, rows: int | None = None, kept: int | None = None, **misspelt: Any) -> Simulation:
        """Play what the kept rows lack, grade it the same way, and return this simulation.

        Args:
            rows: Rows to play at most; None: 200, with ``kept`` three times as many.
            kept: Go on until so many rows are kept.

        Raises:
            InputError: ``rows`` or ``kept`` asks for nothing.
            RunError: These rows were loaded, are a part of a run, or are not graded; or the disk takes no more.
        """
        refuse_unknown("refill", misspelt, self.refill)
        rows, kept = (n if n is None else whole_number(name, n) for name, n in (("rows", rows), ("kept", kept)))
        self._need_grades("refill")
        if self.refiller is None:
            what = "were loaded" if self.whole is self else "are a part of a run"
            msg = f"these rows {what}, and nobody here can play more. Refill what simulate(...) returned, before you choose among its rows; "
            raise RunError(msg + "in a shell: whilesim refill RUN")
        try:
            return self.refiller(self, rows, kept)
        except OSError as error:
            msg = f"{error}. What was played and judged since is in memory only, and gone with this process. Make room and type "
            raise RunError(f"{msg}data.save({str(self.folder)!r}); in a shell, the same command again.") from error

    def extend(self, rows: Iterable[Row]) -> None:
        """Add rows that were planned and played later; they have no verdicts yet."""
        more = tuple(rows)
        counts = {**self.manifest.counts, "planned": self.ledger.planned + len(more)}
        self._played = (*self._played, *more)  # first of all: they were paid for, and nobody else has them
        self.rows = join_grades(self._played, self.grades)
        self.manifest = self.manifest.model_copy(update={"counts": counts})
        if self.folder is not None:
            append_lines(self.folder / "rows.jsonl", (row.to_json() for row in more))
            self.describe()

    def filter(self, wanted: Wanted | None = None, *, calls: Sequence[str] = (), **values: str) -> Simulation:
        """Return the rows for which ``wanted`` is true and whose situation has these ``values``.

        ``calls`` are patterns of calls made in this order, others between them or not:
        ``["find_*:error", "transfer_*"]``; ``:error`` failed, ``:ok`` did not.
        """
        axes = self.manifest.axes
        for axis in values:
            if axes and axis not in axes:
                raise InputError(f"there is no axis {axis!r} to filter by. The axes are {list(axes)}.")
        fits = wanted or (lambda _: True)
        return self._part(lambda row: values.items() <= row.situation.items() and row.has_calls(calls) and fits(row))

    def sample(self, n: int, seed: int = 0) -> Simulation:
        """Return ``n`` rows in their order; the seed decides which."""
        have = len(self.rows)
        n = whole_number("n", n, 0, f"is no sample of {have} rows. Type a whole number from 0 to {have}", have)
        chosen = set(shuffled((row.id for row in self.rows), seed, "sample")[:n])
        return self._part(lambda row: row.id in chosen)

    def split(self, shares: Mapping[str, float], *, by: str | None = None, seed: int = 0) -> dict[str, Simulation]:
        """Return parts by name that share no situation and no twin; of ``by``'s values each gets its share."""
        parts = {name: set(places) for name, places in split_rows(self.rows, shares, seed, by=by).items()}
        return {name: self._select(n in places for n in range(len(self.rows))) for name, places in parts.items()}

    def distinct(self, threshold: float = 0.8) -> Simulation:
        """Return the rows that nearly repeat no earlier one; how many were left out stands in its notes."""
        twice = near_duplicates(self.rows, threshold)
        part = self._part(lambda row: row.id not in twice)
        part.describe(notes=[*self.manifest.notes, f"{len(twice)} of {len(self)} rows nearly repeated another"])
        return part

    def decontaminate(self, against: Any, *, ngram: int = 8, embedder: Any = "auto") -> Decontamination:
        """Look for what a benchmark holds, layer by layer; ``.clean`` is the rows without it.

        Args:
            against: A path (JSONL, JSON, lines of text), a list or a dataset on the Hub, of tasks, talks or rows.
            ngram: Words in a row that are evidence, besides 13.
            embedder: As for ``plan``.
        """
        report = find_overlaps(self.rows, against, self.tools, ngram=ngram, embedder=embedder)
        return replace(report, clean=self._part(lambda row: row.id not in report.evidence))

    def verify_for(self, model: Any, max_length: int = 4096) -> TrainReport:
        """Render every row with a chat template; ``.trainable`` is the rows that survive it.

        ``model`` is a name on the Hub, a folder or a tokenizer; a row is cut at ``max_length`` tokens.
        """
        report = check_trainable(self.rows, model, max_length)
        return replace(report, trainable=self._part(lambda row: row.id not in report.reasons))

    def to_dataset(self) -> Any:
        """Return all rows as a ``datasets.Dataset``, every key of a row a column."""
        return to_dataset(self.rows)

    def to_pandas(self) -> Any:
        """Return all rows as a ``pandas.DataFrame``."""
        return to_pandas(self.rows)

    def export(self, path: Source, format: Format = "trl", *, reasoning: bool = False) -> Export:  # noqa: A002  the public name
        """Write the rows that a trainer should see; what is returned tells what was left out.

        Kept rows, once the simulation is graded; of a view (``data.dropped``) its own. Pairs
        and labels (``dpo``, ``kto``) take kept and dropped rows.
        """
        needs = {"dpo": "a pair needs a kept and a dropped row", "kto": "a label is of a kept or a dropped row"}
        if format in needs:
            self._need_grades("kept")
        alone = self.states[0] if self.states else None
        if (format == "dpo" and alone) or (format == "kto" and alone in ("failed", "unjudged")):
            raise InputError(f'{needs[format]}, and these are {alone} ones. Type data.export(path, format="{format}")')
        states = self.states or (("kept",) if self.graded else ("unjudged",))
        return export_rows(self.rows, path, format=format, states=states, tools=self.tools, reasoning=reasoning)

    def save(self, path: Source) -> None:
        """Write the simulation as a folder that ``load`` reads: rows, verdicts, manifest."""
        manifest = self._recorded() if self.is_part else self.manifest
        write_folder(Path(path), self._played, manifest, self.grades if self.graded else None)

    def push_to_hub(
        self,
        repo: str,
        *,
        private: bool = True,
        splits: Mapping[str, float] | None = None,
        reasoning: bool = False,
        dry_run: bool = False,
    ) -> Push:
        """Publish the rows as a dataset with its card; earlier pushes stay in its history.

        Args:
            repo: ``owner/name``.
            splits: Name to share of the rows, summing to 1; situations and twins stay together.
            reasoning: Publish what the agent thought, too.
            dry_run: Push nothing, and return the counts and the card.
        """
        parts, manifest = splits or {"train": 1.0}, self._recorded()
        return push(self.rows, manifest, repo, private=private, splits=parts, reasoning=reasoning, dry_run=dry_run)

    def report(self, path: Source) -> Path:
        """Write one HTML page to look at, and return its path."""
        return write_report(Path(path), self.rows, self.manifest, self.tools, count=self._count, graded=self.graded)

    def _count(self, rows: Iterable[Row]) -> Ledger:
        planned = None if self.is_part else self.manifest.counts.get("planned")
        why = {row_id: grade.why for row_id, grade in self.grades.items() if grade.verdict is None}
        return Ledger.build(rows, planned=planned, why=why)

    def describe(self, **changes: Any) -> None:
        """Change fields of the manifest, in the run's folder too."""
        self.manifest = self.manifest.model_copy(update=changes)
        if self.folder is not None:
            self.manifest.write(self.folder / "manifest.json")

    def _recorded(self) -> Manifest:
        """Return the manifest with ledger, certificate and pass rates of the whole run, as its card tells them."""
        if self.manifest.record:
            return self.manifest
        whole = self.whole
        record: dict[str, Any] = {"ledger": whole.ledger.to_json(), "certificate": whole.certificate.to_json()}
        if whole.asked:
            record["rubric"] = [[c.name, c.weight] for c in read_rubric(whole.asked["rubric"]).criteria]
        record |= {"pass_at": str(whole.pass_at)} if whole.graded else {}
        return self.manifest.model_copy(update={"record": record})

    def _grading(self, rubric: Any, judge: Any, fraction: float = 1.0, severity: Weights | None = None) -> Grading:
        if judge is None:
            judge = choose_judge(self.players, self.manifest.fingerprint)
            told = doubt_judge(judge, self.players, rubric)
            if told and told not in self._warned:  # each wave of a refill grades again
                self._warned.add(told)
                warnings.warn(told, stacklevel=3)
        return open_grading(self.manifest, self.tools, rubric, judge, fraction, severity or {})

    def _in_state(self, state: State) -> Simulation:
        if state in ("kept", "dropped"):
            self._need_grades(state)
        part = self._part(lambda row: row.state == state)
        part.states = (state,)
        return part

    def _part(self, wanted: Wanted) -> Simulation:
        return self._select(map(wanted, self.rows))

    def _select(self, chosen: Iterable[bool]) -> Simulation:
        rows, grades = select_rows(self._played, chosen), self.grades if self.graded else None
        part = Simulation(rows, self.manifest, players=self.players, grades=grades)
        part.whole, part.states = self.whole, self.states
        return part

    def _need_grades(self, name: str) -> None:
        if not self.graded:
            msg = f"these rows have no verdicts yet, so nobody knows what data.{name} is. Type data.grade() first; in a shell: whilesim grade RUN"
            raise RunError(msg)
