"""Rubric: what a judge is asked, criterion by criterion.

Weights make the reward and never the keep. A criterion that is a hard fail drops the row
when its score is below 0.5, whatever the others say.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StringConstraints, TypeAdapter, ValidationError

from whilesim.core.errors import InputError
from whilesim.core.jsontext import first_fault, loads
from whilesim.core.templates import load_words
from whilesim.core.text import name_words, shorten

T = TypeVar("T")
_adapter: Any = cache(TypeAdapter)  # making one takes longer than reading with it
_FIELD = "the rubric's field "
_TYPED = 'Type: {"weights": {"policy": 0.6, "ux": 0.4}, "hard_fail_on_policy_violation": true}'
_BULLET = re.compile(r"\s*(?:[-*+•]|\(?\d{1,2}[.)])\s+(?P<text>\S.*)")
_NAMED = re.compile(r"[*_]{0,2}(?P<name>[^:*_.]{2,40}?)[*_]{0,2}\s*(?::[*_]{0,2}|\s[-–—])\s+(?P<text>\S.*)")
_PATH = re.compile(r"(?:.*[/\\])?[^\s/\\]+\.(?:json|md|txt)")

Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Share = Annotated[float, Field(strict=True, ge=0, le=1, allow_inf_nan=False)]
Weight = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One criterion's score, 0 to 1, with the judge's reason."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    score: Share
    reason: Words


@dataclass(frozen=True, slots=True, kw_only=True)
class Criterion:
    """One question to the judge, answered by a score from 0 (not at all) to 1 (fully)."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    name: Words
    text: Words
    weight: Weight = 1.0
    hard_fail: StrictBool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Rubric:
    """All criteria, in the order in which the judge reads them."""

    criteria: tuple[Criterion, ...]
    instructions: str = ""

    def reward(self, scores: Mapping[str, Score]) -> float:
        """Return the weighted mean of the criteria's scores, 0 to 1."""
        total = sum(c.weight for c in self.criteria)
        return sum(c.weight * scores[c.name].score for c in self.criteria) / total

    def hard_fails(self, scores: Mapping[str, Score]) -> tuple[str, ...]:
        """Return the names of the hard-fail criteria that scored below 0.5."""
        return tuple(c.name for c in self.criteria if c.hard_fail and scores[c.name].score < 0.5)


class _Sheet(BaseModel, extra="forbid"):
    """A rubric as a file holds it."""

    instructions: str = ""
    criteria: list[str | dict[str, Any]] = []
    weights: dict[Words, Weight] = {}
    hard_fail_on_policy_violation: StrictBool = False
    rules: dict[str, Any] = {}
    """Read by ``evaluate``: no judge is asked about them."""


def read_rubric(source: str | os.PathLike[str] | Sequence[Any] | Mapping[str, Any] | Rubric | None = None) -> Rubric:
    """Read a rubric from whatever the user has.

    Args:
        source: None for the built-in rubric (policy, restraint, honesty, helpfulness); a text,
            whose bullets become criteria, or which is one criterion when it has none; a list of
            texts or of ``{"name", "text", "weight", "hard_fail"}``; a mapping of names to texts,
            to weights or to such mappings; ``{"criteria": [...], "instructions": "..."}``; the
            tutorial's ``{"weights": {...}, "hard_fail_on_policy_violation": true}``; or the path
            of a file with any of these. A bullet may open with its name and a colon. Weights beside
            criteria are theirs, by name; alone, each is a criterion of the name's known meaning.

    Raises:
        InputError: No criteria, two of one name, a weight that is negative or no number, weights
            that sum to 0, a weight of no criterion, a name without text that is nearly a known one,
            an unknown field, a hard fail on policy without a policy criterion, or a file that
            cannot be read.
    """
    if isinstance(source, Rubric):
        return source
    if isinstance(source, os.PathLike) or (isinstance(source, str) and _PATH.fullmatch(source)):
        source = read_rubric_file(Path(source))
    if isinstance(source, str):
        source = _read_text(source)
    if source is None:
        source = load_words("rubric")["builtin"]
    if isinstance(source, Sequence) and not isinstance(source, bytes):
        source = {"criteria": list(source)}
    if not isinstance(source, Mapping):
        raise InputError(f"a rubric cannot be read from {type(source).__name__}: give a text, list, mapping or path.")
    return _build(source)


def checked(kind: type[T], value: Any, told: str, typed: str = "") -> T:
    """Return a value as pydantic reads it.

    Raises:
        InputError: It cannot be; the message opens with ``told`` and ends with ``typed``.
    """
    try:
        return cast(T, _adapter(kind).validate_python(value))
    except ValidationError as error:
        hint = _nearest(kind, error.errors()[0])
        raise InputError(f"{told}{first_fault(error, given=True)} {hint}{typed}".rstrip()) from error


def _nearest(kind: Any, fault: Mapping[str, Any]) -> str:
    """Ask for the nearest field of a shape, parts of it included, where a fault is that there is no such field."""
    if fault["type"] not in ("extra_forbidden", "unexpected_keyword_argument"):
        return ""
    whole = _adapter(kind).json_schema()
    known = [name for part in (whole, *whole.get("$defs", {}).values()) for name in part.get("properties", ())]
    found = get_close_matches(str(fault["loc"][-1]), known, 1)
    return f"Did you mean {found[0]!r}? " if found else f"There are: {', '.join(known)}. "


def _build(source: Mapping[str, Any]) -> Rubric:
    for name, value in source.items():
        near = get_close_matches(str(name), _Sheet.model_fields, n=1, cutoff=0.7)
        if near and near[0] != name and not isinstance(value, (str, int, float)):
            raise InputError(f"the rubric's field {name!r} is unknown. Did you mean {near[0]!r}?")
    if not set(source) & set(_Sheet.model_fields):  # nothing but names with their texts or weights
        source = {"criteria": [{"name": name, **_details(value)} for name, value in source.items()]}
    sheet = checked(_Sheet, dict(source), _FIELD, _TYPED)
    alone = [{"name": name, "weight": weight} for name, weight in sheet.weights.items()]
    criteria = tuple(map(_criterion, sheet.criteria or alone))
    criteria = _weighed(criteria, sheet) if sheet.criteria else criteria
    _check(criteria)
    if sheet.hard_fail_on_policy_violation:
        criteria = _failing_on_policy(criteria)
    return Rubric(criteria=criteria, instructions=sheet.instructions.strip())


def _weighed(criteria: Sequence[Criterion], sheet: _Sheet) -> tuple[Criterion, ...]:
    """Give the criteria the weights that stand beside them, each by its name."""
    names, items = [c.name for c in criteria], zip(criteria, sheet.criteria, strict=True)
    own = {c.name for c, item in items if isinstance(item, Mapping) and "weight" in item}
    for name in sheet.weights:
        if name not in names:
            near = get_close_matches(name, names, 1)
            hint = f"Did you mean {near[0]!r}?" if near else f"Its criteria are {names}: weigh these, or add it."
            raise InputError(f"the rubric weighs {name!r}, and none of its criteria has that name. {hint}")
        if name in own:
            raise InputError(f"the rubric weighs {name!r} twice, in 'criteria' and 'weights': delete one of them.")
    return tuple(replace(c, weight=sheet.weights.get(c.name, c.weight)) for c in criteria)


def _details(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {"text" if isinstance(value, str) else "weight": value}


def _criterion(item: str | Mapping[str, Any]) -> Criterion:
    """Read one criterion; a text alone is its own name, a name alone says what it is known for, or itself."""
    if isinstance(item, str):
        named = _NAMED.match(item)
        item = named.groupdict() if named else {"text": item}
    if "name" in item:
        known, name = load_words("rubric")["known"], "_".join(name_words(str(item["name"])))
        near = [] if "text" in item or name in known else get_close_matches(name, known, 1, cutoff=0.8)
        if near:
            msg = f"the rubric's {item['name']!r} has no text, and no criterion of that name is known. Did you mean {near[0]!r}? "
            raise InputError(msg + "Else say what it asks: give it a text.")
        item = {"text": known.get(name, item["name"]), **item}
    else:
        item = {"name": shorten(str(item.get("text", "")).rstrip("."), 40), **item}
    return checked(Criterion, item, _FIELD, _TYPED)


def _read_text(text: str) -> Any:
    if text.lstrip()[:1] in ("{", "["):
        try:
            return loads(text)
        except ValueError as error:
            msg = f"the rubric starts like JSON but is none ({error}): mend it, or write '- ' before each line."
            raise InputError(msg) from error
    lead, items = list[str](), list[str]()
    for line in filter(str.strip, text.splitlines()):
        if bullet := _BULLET.match(line):
            items.append(bullet["text"])
        elif items and line[0].isspace():
            items[-1] += " " + line.strip()
        else:
            lead.append(line.strip().lstrip("# "))
    if items:
        return {"criteria": items, "instructions": " ".join(lead)}
    return [{"name": "rubric", "text": " ".join(lead)}] if lead else []


def _check(criteria: Sequence[Criterion]) -> None:
    names = [c.name for c in criteria]
    twice = [name for name in names if names.count(name) > 1]
    if not names:
        raise InputError("the rubric has no criteria, so nothing can be scored. Type: rubric=['Says what is true.']")
    if twice:
        raise InputError(f"the rubric names {twice[0]!r} twice, and scores are kept by name: rename or merge them.")
    if sum(c.weight for c in criteria) == 0:
        raise InputError("the rubric's weights sum to 0, so they make no reward: give a criterion a weight above 0.")


def _failing_on_policy(criteria: Sequence[Criterion]) -> tuple[Criterion, ...]:
    found = [c for c in criteria if {"policy", "compliance"} & set(name_words(c.name))]
    if not found:
        msg = f"hard_fail_on_policy_violation is set, but none of {[c.name for c in criteria]} is named for the policy."
        raise InputError(f'{msg} Add "policy" to the weights, or give a criterion "hard_fail": true.')
    return tuple(replace(c, hard_fail=True) if c in found else c for c in criteria)


def read_rubric_file(path: Path) -> str:
    """Return a rubric's file as text; raises InputError for one that is no text."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        msg = f"the rubric {os.fspath(path)!r} cannot be read ({error}): give a text or JSON file."
        raise InputError(msg) from error
