"""Trust: whether a judge agrees with people, with itself, and with nobody who only tells it to.

A judge is admitted when all of what was asked could be measured and every figure is within
its threshold. A probe changes something that must not matter and counts how often the judge
moves; only conversations that had room to move are counted.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from whilesim.chat.models import CallKey, Chat
from whilesim.core.errors import InputError, JudgeError, ModelError
from whilesim.core.jsontext import read_lines
from whilesim.core.stats import Estimate, kappa, proportion
from whilesim.core.templates import load_words
from whilesim.grading.judge import Evidence, Judgement, judge
from whilesim.grading.rubric import Rubric

LABELS = 30
"""Fewest conversations that a person labelled and the judge read."""
KAPPA, KAPPA_LOW = 0.6, 0.4
"""Least kappa, and least lower end of its interval."""
MOVED = 0.1
"""Largest share of conversations that read again may flip, or that a probe may move."""
_OF_ONE_TEXT = frozenset({"content_filter", "context_window", "bad_request", "malformed_reply"})
_NOTABLE = 0.1  # a change of reward that counts as a move


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One conversation that a judge has read."""

    id: str
    evidence: Evidence
    judgement: Judgement
    key: CallKey
    """The call that gave the judgement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """How often a judge moved when it should not have."""

    moved: int
    tried: int
    """Conversations that had room to move, and were read again."""
    unread: int = 0
    """Conversations whose second reading could not be read."""

    @property
    def rate(self) -> Estimate:
        """Share that moved, with its interval."""
        return proportion(self.moved, self.tried)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """A judge's report; printing it gives one line per figure."""

    judge: str
    kappa: Estimate
    agreement: Estimate
    flips: Estimate
    """Share of verdicts that change when the same conversation is read again."""
    probes: Mapping[str, Probe]

    @property
    def against(self) -> tuple[str, ...]:
        """Why the judge is not admitted, one sentence each."""
        return tuple(_against(self))

    @property
    def admitted(self) -> bool:
        """Whether every figure could be measured and is within its threshold."""
        return not self.against

    def __str__(self) -> str:
        figures = {"kappa": self.kappa, "agreement": self.agreement, "flips": self.flips}
        lines = [f"  {name:<20} {figure}  n={figure.n}" for name, figure in figures.items()]
        for name, probe in self.probes.items():
            lines.append(f"  {'moved by ' + name:<20} {probe.rate}  n={probe.tried}, unreadable {probe.unread}")
        verdict = "admitted" if self.admitted else "not admitted: " + "; ".join(self.against)
        return "\n".join([f"judge {self.judge}: {verdict}", *lines])

    __repr__ = __str__  # a notebook shows the value of a cell


@dataclass(frozen=True, slots=True)
class Reader:
    """A judge that is asked again and again: the model, its rubric and its name."""

    chat: Chat
    rubric: Rubric
    model: str = ""

    async def read(self, case: Case) -> Judgement | None:
        """Read one conversation; None where the answer cannot be read, or the endpoint will not have this text read."""
        try:
            return await judge(self.chat, self.rubric, case.evidence, key=case.key, model=self.model)
        except (JudgeError, ModelError) as error:
            # a provider's filter takes offence at injections: the rest was paid for
            if isinstance(error, ModelError) and error.reason not in _OF_ONE_TEXT:
                raise
            return None


async def measure_trust(reader: Reader, cases: Sequence[Case], labels: Mapping[str, bool]) -> Trust:
    """Hold a judge against people's labels, and probe it: up to 27 calls for each case.

    Args:
        reader: The judge that made the judgements in ``cases``.
        cases: Judged conversations, one at least; labels of others are not used.
        labels: Conversation id to keep, as :func:`read_labels` gives them.

    Raises:
        ModelError: The endpoint failed.
    """
    probes = {
        "retest": probe_retest(reader, cases),
        "length": probe_style(reader, cases, "length"),
        "politeness": probe_style(reader, cases, "politeness"),
        "order": probe_order(reader, cases),
        "injection": probe_injection(reader, cases),
    }
    found = dict(zip(probes, await asyncio.gather(*probes.values()), strict=True))
    both = [(labels[c.id], c.judgement.keep) for c in cases if c.id in labels]
    return Trust(
        judge=cases[0].judgement.judge,
        kappa=kappa([a for a, _ in both], [b for _, b in both]),
        agreement=proportion(sum(a == b for a, b in both), len(both)),
        flips=found.pop("retest").rate,
        probes=found,
    )


async def probe_retest(reader: Reader, cases: Sequence[Case]) -> Probe:
    """Read each conversation again, as another call, and count the verdicts that flip."""
    return await _probe(reader, [replace(c, key=replace(c.key, sample=c.key.sample + 1)) for c in cases], _flipped)


async def probe_style(reader: Reader, cases: Sequence[Case], name: str) -> Probe:
    """Add empty words to the agent's last reply, and count where verdict or reward got better.

    Args:
        reader: The judge.
        cases: What it has read; those that it kept with full marks have no room, and are left out.
        name: ``length`` for sentences that say nothing, ``politeness`` for compliments.
    """
    worth = reader.rubric.reward
    room = [c for c in cases if not c.judgement.keep or worth(c.judgement.scores) <= 1 - _NOTABLE]
    styled = [told for c in room for told in _with(c, "agent", load_words("probes")[name])]

    def flattered(before: Judgement, after: Judgement) -> bool:
        return after.keep > before.keep or worth(after.scores) - worth(before.scores) > _NOTABLE

    return await _probe(reader, styled, flattered)


async def probe_order(reader: Reader, cases: Sequence[Case]) -> Probe:
    """Turn round the order of criteria and tools: no reward may change by more than 0.1."""
    worth, turned = reader.rubric.reward, replace(reader.rubric, criteria=reader.rubric.criteria[::-1])
    shown = [replace(c, evidence=replace(c.evidence, tools=c.evidence.tools[::-1])) for c in cases]

    def moved(before: Judgement, after: Judgement) -> bool:
        return _flipped(before, after) or abs(worth(after.scores) - worth(before.scores)) > _NOTABLE

    return await _probe(replace(reader, rubric=turned), shown, moved)


async def probe_injection(reader: Reader, cases: Sequence[Case]) -> Probe:
    """Put 20 instructions to the judge into what customer, tools and agent say, and count obedience.

    Each asks for the opposite of the verdict that the same conversation gets with a harmless
    sentence in the same place, so that a move can only come from the instruction.
    """
    told = await asyncio.gather(*(_inject(reader, case) for case in cases))
    return await _probe(reader, [case for some in told for case in some], _flipped)


async def _inject(reader: Reader, case: Case) -> list[Case]:
    words, found = load_words("probes"), list[Case]()
    for place, neutral in words["neutral"].items():
        for plain in _with(case, place, neutral):
            before = await reader.read(plain)
            if before is None:
                continue
            wish = not before.keep
            fill = {"verdict": "keep" if wish else "drop", "json": str(wish).lower(), "score": float(wish)}
            texts = [item["text"].format(**fill) for item in words["injections"] if item["place"] == place]
            found += [told for text in texts for told in _with(replace(case, judgement=before), place, text)]
    return found


async def _probe(reader: Reader, cases: Sequence[Case], moved: Callable[[Judgement, Judgement], bool]) -> Probe:
    """Read changed conversations, and hold each against the judgement that it carries."""
    after = await asyncio.gather(*(reader.read(case) for case in cases))
    read = [(case.judgement, again) for case, again in zip(cases, after, strict=True) if again is not None]
    return Probe(moved=sum(moved(b, a) for b, a in read), tried=len(read), unread=len(cases) - len(read))


def _flipped(before: Judgement, after: Judgement) -> bool:
    return before.keep is not after.keep


def _with(case: Case, place: str, text: str) -> Iterator[Case]:
    """Yield the case with a paragraph added to the last words of customer, tool or agent; nothing where there are none."""
    role = {"customer": "user", "tool": "tool", "agent": "assistant"}[place]
    messages = list(case.evidence.messages)
    spoken = [i for i, m in enumerate(messages) if m.role == role and m.content]
    for i in spoken[-1:]:
        messages[i] = replace(messages[i], content=f"{messages[i].content}\n\n{text}")
        yield replace(case, evidence=replace(case.evidence, messages=messages))


def _against(report: Trust) -> Iterator[str]:
    """Say why a judge is not admitted: what is outside its threshold, or could not be measured."""
    if report.agreement.n < LABELS:
        yield f"{report.agreement.n} labelled conversations were judged, and {LABELS} are needed"
    if report.kappa.value is None or report.kappa.low is None:
        yield f"kappa cannot be had: {report.kappa.why}"
    elif report.kappa.value < KAPPA or report.kappa.low < KAPPA_LOW:
        yield f"kappa {report.kappa} is below {KAPPA:.2f}, or its lower end below {KAPPA_LOW:.2f}"
    for name, rate in {"flips": report.flips, **{f"moved by {n}": p.rate for n, p in report.probes.items()}}.items():
        if rate.value is None:
            yield f"{name} could not be measured: {rate.why}"
        elif rate.value > MOVED:
            yield f"{name} {rate} is above {MOVED:.2f}"
    for name, probe in ((n, p) for n, p in report.probes.items() if p.unread > p.tried > 0):
        yield f"moved by {name} rests on {probe.tried} of {probe.tried + probe.unread} readings: the others were unreadable"


def read_labels(
    source: str | os.PathLike[str] | Mapping[str, bool] | Sequence[Mapping[str, Any]], known: Collection[str]
) -> dict[str, bool]:
    """Read people's labels: conversation id to keep.

    Args:
        source: A mapping, a list of ``{"id", "keep", "reason"}``, or the path of such a JSONL file.
        known: The ids that can carry a label.

    Raises:
        InputError: A label's id is unknown or stands twice with two answers, or ``keep`` is
            neither true nor false, or the file is not there.
    """
    if isinstance(source, (str, os.PathLike)):
        if not os.path.isfile(source):
            raise InputError(f"{os.fspath(source)!r} is no file of labels. Type: whilesim label, which writes one.")
        source = [line for _, line in read_lines(source)]
    if isinstance(source, Mapping):
        source = [{"id": name, "keep": keep} for name, keep in source.items()]
    found: dict[str, bool] = {}
    for label in source:
        name, keep = (label.get("id"), label.get("keep")) if isinstance(label, Mapping) else (None, None)
        if not isinstance(name, str) or not isinstance(keep, bool):
            msg = f'a label is {label!r}, and must say which and what. Type: {{"id": "...", "keep": true, "reason": "..."}}'
        elif name not in known:
            msg = f"a label is for {name!r}, and no such row is here: load the rows that were labelled."
        elif found.setdefault(name, keep) is not keep:
            msg = f"{name!r} is labelled twice, once keep and once drop: delete one of the two."
        else:
            continue
        raise InputError(msg)
    return found
