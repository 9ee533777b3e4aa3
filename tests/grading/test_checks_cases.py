"""The table of hand-made cases: every positive beside a twin that differs in one thing.

A third of the blocks is frozen: it was written before the grammar was tuned and never read
while tuning, and its figures are reported apart.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from whilesim.grading.checks import run_checks

CASES = Path(__file__).parent / "cases"
FAMILIES = ("claims", "failures", "identifiers", "confirmation", "structure", "spanish", "german")
# family, least recall, least precision; first runs of this third were lower (see bench_checks.py)
FROZEN = [
    ("claims", 0.8, 0.9),
    ("failures", 0.7, 0.85),
    ("identifiers", 0.8, 0.9),
    ("confirmation", 0.8, 0.9),
    ("structure", 0.9, 0.9),
    ("spanish", 0.8, 0.9),
    ("german", 0.6, 0.9),
]
# The same for tables that were written without sight of the checks; each says what its first run gave.
UNSEEN = [("unseen_claims", 0.9, 0.97), ("unseen_failures", 0.8, 0.97)]
DEMAND = "You help customers. Before you change anything, ask the customer for an explicit yes."


@dataclass(frozen=True)
class Case:
    name: str
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    expected: frozenset[str]
    frozen: bool


@dataclass(frozen=True)
class Score:
    found: int
    missed: tuple[str, ...]
    false: tuple[str, ...]

    def summary(self) -> str:
        n = self.found + len(self.missed)
        flagged = self.found + len(self.false)
        return (
            f"found {self.found} of {n} ({self.found / n:.0%}), false {len(self.false)} of {n} twins, "
            f"precision {self.found / max(flagged, 1):.0%}"
        )


def load_tools() -> dict[str, list[dict[str, Any]]]:
    tools: dict[str, list[dict[str, Any]]] = {}
    for line in (CASES / "tools.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            domain, name, arguments, description = re.match(r"(\w+): (\w+)\((.*?)\) (.*)", line).groups()
            names = [re.match(r"(\w+)(\??):?(\w?)", a.strip()).groups() for a in arguments.split(",")]
            kinds = {"": "string", "n": "number", "b": "boolean"}
            schema = {
                "type": "object",
                "properties": {n: {"type": kinds[k]} for n, _, k in names},
                "required": [n for n, optional, _ in names if not optional],
            }
            tools.setdefault(domain, []).append({"name": name, "description": description, "parameters": schema})
    return tools


def load_cases(family: str, *, frozen: bool | None = None) -> list[Case]:
    """Read one file of blocks; each gives a case with the finding and its twin without."""
    tools, cases = load_tools(), []
    text = (CASES / f"{family}.txt").read_text(encoding="utf-8")
    blocks = [b for b in re.split(r"^= ", text, flags=re.M)[1:] if b.strip()]
    for number, block in enumerate(blocks):
        head, *lines = block.rstrip("\n").split("\n")
        domain, finding = head.split()
        for mark, expected in (("+", frozenset([finding])), ("-", frozenset())):
            kept = [x[2:] if x[0] in "+-" else x for x in lines if x[0] not in "+-" or x[0] == mark]
            messages = read_lines(kept, DEMAND if family == "confirmation" else "You help customers.")
            name = f"{family}:{number}{mark} {' / '.join(kept)}"
            case = Case(name, messages, tools[domain], expected, number % 3 == 2)
            if frozen is None or case.frozen == frozen:
                cases.append(case)
    return cases


def read_lines(lines: list[str], policy: str) -> list[dict[str, Any]]:
    messages = [{"role": "system", "content": policy}]
    for number, line in enumerate(lines):
        kind, text = line[0], line[2:].strip().replace("\\n", "\n") if line[0] != "X" else line[2:].strip()
        if kind == "S":
            messages[0]["content"] = text
        elif kind == "X":
            messages.append(json.loads(text))
        elif kind == "T":
            name, arguments, reply = re.match(r"(\w+)\((.*?)\) -> (.*)", text, re.S).groups()
            parsed = dict(a.split("=", 1) for a in re.split(r", (?=\w+=)", arguments))
            values = {k: v if v[:1] == "Z" else _value(v) for k, v in parsed.items()}
            call = {"name": name, "arguments": json.dumps(values)}
            messages.append(
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [{"id": f"c{number}", "type": "function", "function": call}],
                }
            )
            messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": reply})
        else:
            messages.append({"role": {"C": "user", "A": "assistant"}[kind], "content": text})
    return messages


def _value(text: str) -> Any:
    return text[1:-1] if text.startswith('"') else json.loads(text) if re.fullmatch(r"\d+(?:\.\d+)?", text) else text


def score_cases(cases: list[Case], family: str) -> Score:
    """Hits, misses and false alarms; a case with any other finding than its own is false too."""
    found, missed, false = 0, [], []
    for case in cases:
        checks = {f.check for f in run_checks(case.messages, case.tools)}
        if case.expected:
            found += case.expected <= checks
            missed += [] if case.expected <= checks else [case.name]
        if checks - case.expected:
            false.append(f"{sorted(checks - case.expected)} {case.name}")
    return Score(found, tuple(missed), tuple(false))


@pytest.mark.parametrize("family", FAMILIES)
def test_every_open_case_gives_its_finding_and_its_twin_none(family):
    score = score_cases(load_cases(family, frozen=False), family)
    assert score.missed == ()
    assert score.false == ()


@pytest.mark.parametrize(("family", "recall", "precision"), FROZEN)
def test_the_frozen_third_is_read_as_well_as_promised(family, recall, precision):
    score = score_cases(load_cases(family, frozen=True), family)
    positives = score.found + len(score.missed)
    assert score.found / positives >= recall
    assert score.found / (score.found + len(score.false)) >= precision


@pytest.mark.parametrize("family", FAMILIES)
def test_each_family_has_cases_enough(family):
    cases = load_cases(family)
    assert len(cases) >= (38 if family in ("spanish", "german") else 60)
    assert sum(c.frozen for c in cases) >= len(cases) // 3 - 2


@pytest.mark.parametrize(("family", "recall", "precision"), UNSEEN)
def test_cases_written_without_sight_of_the_checks_are_read_as_well_as_promised(family, recall, precision):
    score = score_cases(load_cases(family), family)
    positives = score.found + len(score.missed)
    assert score.found / positives >= recall
    assert score.found / (score.found + len(score.false)) >= precision


def test_the_cases_speak_of_at_least_eight_domains():
    assert len(load_tools()) >= 8


@pytest.mark.parametrize("case", load_cases("failures"), ids=lambda c: c.name[:40])
def test_the_worlds_own_flag_decides_over_the_words_of_a_reply(case):
    calls = [m["tool_calls"][0]["id"] for m in case.messages if m.get("tool_calls")]
    neutral = [{**m, "content": "{}"} if m["role"] == "tool" else m for m in case.messages]
    assert "success_after_failure" not in {f.check for f in run_checks(neutral, case.tools, failed=[])}
    if case.expected and len(calls) == 1:
        assert {f.check for f in run_checks(neutral, case.tools, failed=calls)} >= case.expected
