"""Export: rows in the forms that trainers read, one JSON object a line.

    trl        messages with arguments as objects, and tools: conversational SFT
    openai     messages with arguments as text, and tools: OpenAI's fine-tuning
    sharegpt   conversations of from and value, tools as one text
    dpo        prompt, chosen, rejected: preference pairs
    kto        prompt, completion, label: single turns known to be right or wrong
    rl         prompt and oracle, one a card: an environment's tasks

Reasoning is left out unless it is asked for. A row in which a call's arguments are no JSON
object is never written, and neither is a line at which the ``datasets`` package would stop:
one that holds a lone surrogate or an integer beyond 64 bits. Both are counted.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from whilesim.core.errors import InputError
from whilesim.core.jsontext import dumps, parse_object, write_lines
from whilesim.keeping.arrow import is_readable
from whilesim.keeping.pairs import build_pairs
from whilesim.keeping.rows import STATES, Row, State

Format = Literal["trl", "openai", "sharegpt", "dpo", "kto", "rl"]
Lines = Iterator[dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """What was written, and what was left out and why."""

    path: str
    format: Format
    lines: int
    left_out: Mapping[str, int]

    def __str__(self) -> str:
        out = "; ".join(f"{n} {why}" for why, n in self.left_out.items()) or "nothing"
        return f"{self.path}: {self.lines} lines of {self.format}; left out: {out}"


def export_rows(
    rows: Iterable[Row],
    path: str | os.PathLike[str],
    *,
    format: Format = "trl",  # noqa: A002  the public name of the argument
    states: Sequence[State],
    reasoning: bool = False,
) -> Export:
    """Write rows as JSONL for a trainer, whole or not at all.

    Args:
        format: As in the module's docstring.
        states: States of the rows that the first three formats write. Pairs and labels take
            kept and dropped rows, ``rl`` takes all: a task does not depend on how it went.
        reasoning: Write what the agent thought as ``reasoning_content``.

    Raises:
        InputError: The format is unknown.
    """
    if format not in get_args(Format):
        msg = f"no format {format!r}: type one of {', '.join(get_args(Format))}."
        raise InputError(msg)
    left_out: Counter[str] = Counter()
    wanted = _STATES.get(format, tuple(states))
    chosen = _choose(rows, wanted, left_out)
    lines = _readable(_WRITERS[format](chosen, left_out, reasoning), left_out)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    count = write_lines(path, lines)
    return Export(path=os.fspath(path), format=format, lines=count, left_out=dict(sorted(left_out.items())))


def wire_message(message: Mapping[str, Any], *, objects: bool, reasoning: bool) -> dict[str, Any]:
    """Return a row's message for a trainer: arguments as objects or text, reasoning asked for or gone."""
    wire = {k: v for k, v in message.items() if k not in ("reasoning", "finish", "tool_calls")}
    if "tool_calls" in message:
        wire["tool_calls"] = [_wire_call(c, objects=objects) for c in message["tool_calls"]]
    if reasoning and "reasoning" in message:
        wire["reasoning_content"] = message["reasoning"]
    return wire


def _wire_call(call: Mapping[str, Any], *, objects: bool) -> dict[str, Any]:
    function = dict(call["function"])
    if objects:
        function["arguments"] = parse_object(function["arguments"])
    return {**call, "function": function}


def _choose(rows: Iterable[Row], states: Sequence[str], left_out: Counter[str]) -> Iterator[Row]:
    for row in rows:
        if row.state not in states:
            left_out[f"rows {row.state}"] += 1
        elif row.loose_calls:
            left_out["rows with arguments that are no object"] += 1
        else:
            yield row


def _readable(lines: Lines, left_out: Counter[str]) -> Lines:
    """Leave out what would keep the ``datasets`` package from reading the whole file."""
    for line in lines:
        if is_readable(dumps(line)):
            yield line
        else:
            left_out["lines with half a character or a number beyond 64 bits"] += 1


def _trl(rows: Iterable[Row], left_out: Counter[str], reasoning: bool) -> Lines:
    for row in _trainable(rows, left_out):
        messages = [wire_message(m, objects=True, reasoning=reasoning) for m in row.messages]
        yield {"messages": messages, "tools": row.tools}


def _openai(rows: Iterable[Row], left_out: Counter[str], reasoning: bool) -> Lines:
    for row in _trainable(rows, left_out):
        messages = [wire_message(m, objects=False, reasoning=reasoning) for m in row.messages]
        yield {"messages": messages, "tools": row.tools} if row.tools else {"messages": messages}


def _sharegpt(rows: Iterable[Row], left_out: Counter[str], reasoning: bool) -> Lines:
    for row in _trainable(rows, left_out):
        tools = dumps([tool["function"] for tool in row.tools]) if row.tools else ""
        yield {"conversations": _turns(row.messages, reasoning=reasoning), "tools": tools}


def _turns(messages: Sequence[Mapping[str, Any]], *, reasoning: bool) -> list[dict[str, str]]:
    """Return from-value turns; calls made together, and their results, are one turn each."""
    turns: list[dict[str, str]] = []
    names = {"system": "system", "user": "human", "assistant": "gpt", "tool": "observation"}
    for i, message in enumerate(messages):
        said = message["content"] or ""
        if reasoning and message.get("reasoning"):
            said = f"<think>\n{message['reasoning']}\n</think>\n\n{said}"
        together = message["role"] == "tool" and i and messages[i - 1]["role"] == "tool"
        if together:
            turns[-1]["value"] += "\n" + said
        elif said or not message.get("tool_calls"):
            turns.append({"from": names[message["role"]], "value": said})
        if message.get("tool_calls"):
            calls = [_bare_call(call) for call in message["tool_calls"]]
            turns.append({"from": "function_call", "value": dumps(calls[0] if len(calls) == 1 else calls)})
    return turns


def _bare_call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call["function"]
    return {"name": function["name"], "arguments": parse_object(function["arguments"])}


def _dpo(rows: Iterable[Row], left_out: Counter[str], reasoning: bool) -> Lines:
    found = build_pairs(rows)
    for why, count in found.left_out.items():
        left_out[f"candidate pairs: {why}"] += count
    for pair in found.pairs:
        yield {
            "prompt": [wire_message(m, objects=True, reasoning=False) for m in pair.prompt],
            "chosen": [wire_message(pair.chosen, objects=True, reasoning=reasoning)],
            "rejected": [wire_message(pair.rejected, objects=True, reasoning=reasoning)],
            "tools": list(pair.tools),
            "cause": pair.cause,
            "reason": pair.reason,
            "rows": list(pair.rows),
        }


def _kto(rows: Iterable[Row], left_out: Counter[str], reasoning: bool) -> Lines:
    for row in rows:
        cut = _telling_turn(row)
        if cut is None:
            left_out["rows dropped for no single turn"] += 1
            continue
        yield {
            "prompt": [wire_message(m, objects=True, reasoning=False) for m in row.messages[:cut]],
            "completion": [wire_message(row.messages[cut], objects=True, reasoning=reasoning)],
            "label": row.state == "kept",
            "tools": row.tools,
            "reason": "" if row.verdict is None else row.verdict.reason,
            "row": row.id,
        }


def _telling_turn(row: Row) -> int | None:
    """Return the agent turn a label speaks of: the last of a kept row, the first wrong one of a dropped."""
    turns = [i for i, m in enumerate(row.messages) if m["role"] == "assistant"]
    if row.state == "kept":
        return turns[-1] if turns else None
    wrong = [f.message_index for f in row.findings if f.severity == "drop"]
    return min((i for i in wrong if i in turns), default=None)


def _rl(rows: Iterable[Row], left_out: Counter[str], reasoning: bool) -> Lines:
    del reasoning  # a prompt holds none
    seen: set[str] = set()
    for row in rows:
        if row.card_id in seen:
            left_out["further rollouts of a card"] += 1
            continue
        seen.add(row.card_id)
        opening = next((i for i, m in enumerate(row.messages) if m["role"] == "user"), len(row.messages) - 1)
        yield {
            "prompt": [wire_message(m, objects=True, reasoning=False) for m in row.messages[: opening + 1]],
            "tools": row.tools,
            "case": row.card_id,
            "seed": row.seed,
            "situation": row.situation,
            "card": row.card.to_json(),
            "persona": row.persona.to_json(),
            "twin_of": row.twin_of,
            "oracle": row.oracle,
        }


def _trainable(rows: Iterable[Row], left_out: Counter[str]) -> Iterator[Row]:
    """Yield rows that end with the agent: a trainer has nothing to learn after its last word."""
    for row in rows:
        if row.messages and row.messages[-1]["role"] == "assistant":
            yield row
        else:
            left_out["rows that do not end with the agent"] += 1


_STATES: Mapping[str, tuple[State, ...]] = {"dpo": ("kept", "dropped"), "kto": ("kept", "dropped"), "rl": STATES}
_WRITERS: Mapping[Format, Callable[[Iterable[Row], Counter[str], bool], Lines]] = {
    "trl": _trl,
    "openai": _openai,
    "sharegpt": _sharegpt,
    "dpo": _dpo,
    "kto": _kto,
    "rl": _rl,
}
