"""Examples: conversations as tokens, those that a chat template breaks left out and counted.

Tokens and the mask of what the agent wrote are made here, not by the trainer, so that any
template with stable prefixes can be trained on and what is trained is what ``verify_for`` saw.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whilesim.core.errors import InputError
from whilesim.core.jsontext import read_lines
from whilesim.keeping.export import wire_message
from whilesim.keeping.loading import load
from whilesim.keeping.simulation import Simulation
from whilesim.keeping.trainable import Template, find_problems
from whilesim.training.recipe import Recipe

UNTRAINED = -100
"""The label of a token that carries no loss."""


_Example = dict[str, list[int]]
_Talk = tuple[list[dict[str, Any]], list[dict[str, Any]]]  # messages and tools


@dataclass(frozen=True, slots=True, kw_only=True)
class Examples:
    """Rows to train on and to evaluate on, as ``input_ids`` and ``labels``."""

    train: list[_Example]
    held_out: list[_Example]
    left_out: Mapping[str, int]
    """Why a row was left out to how many were."""


def build_examples(data: Any, template: Template, recipe: Recipe) -> Examples:
    """Turn kept rows, or lines of an export, into tokens and labels.

    Args:
        data: A simulation, a run folder, a dataset of ours on the Hub, or the path of
            ``export(..., format="trl")``.
        recipe: Says where a row is cut, and which share of the rows is held out; situations
            and twins stay together.

    Raises:
        InputError: Nothing is left to train on; says why each row was left out.
    """
    left_out: Counter[str] = Counter()
    shares = {"train": 1 - recipe.eval_share, "eval": recipe.eval_share} if recipe.eval_share else {"train": 1.0}
    parts = _talks(data, shares, recipe.seed, left_out)
    made = {name: list(_labelled(talks, template, recipe.max_length, left_out)) for name, talks in parts.items()}
    if not made["train"]:
        why = "; ".join(f"{n} {reason}" for reason, n in left_out.most_common()) or "there are no rows"
        raise InputError(f"nothing is left to train {template.name!r} on: {why}. Look at data.verify_for(...).")
    return Examples(train=made["train"], held_out=made.get("eval", []), left_out=dict(left_out.most_common()))


def _talks(data: Any, shares: Mapping[str, float], seed: int, left_out: Counter[str]) -> dict[str, list[_Talk]]:
    if isinstance(data, (str, os.PathLike)) and Path(data).is_file():
        talks = [_line(value, f"{os.fspath(data)}, line {n}") for n, value in read_lines(data)]
        held = round(len(talks) * shares.get("eval", 0.0))  # an export knows no situations: the last lines
        return {"train": talks[: len(talks) - held], "eval": talks[len(talks) - held :]}
    rows = data if isinstance(data, Simulation) else load(data)
    kept = rows.kept if rows.graded and rows.states is None else rows
    if len(fit := kept.filter(lambda row: not row.loose_calls)) < len(kept):
        left_out["arguments are no object"] = len(kept) - len(fit)
    parts = fit.split(shares, seed=seed) if len(fit) > 1 else {"train": fit}
    return {name: [([wire_message(m) for m in r.messages], r.tools) for r in part.rows] for name, part in parts.items()}


def _line(value: Any, where: str) -> _Talk:
    if not isinstance(value, Mapping) or not isinstance(value.get("messages"), list):
        msg = f"{where}: a conversation needs a key 'messages'. Write it with data.export(path, format='trl')."
        raise InputError(msg)
    return value["messages"], value.get("tools") or []


def _labelled(talks: Iterable[_Talk], template: Template, most: int, left_out: Counter[str]) -> Iterator[_Example]:
    for messages, tools in talks:
        if (made := find_problems(messages, tools, template, most)).reasons:
            left_out[made.reasons[0].split(":")[0]] += 1
            continue
        ids = list(made.ids[:most])
        yield {"input_ids": ids, "labels": [i if one else UNTRAINED for i, one in zip(ids, made.mask, strict=False)]}
