"""Export: rows in the forms that trainers read, one JSON object a line.

    trl        messages with arguments as objects, and tools: conversational SFT
    openai     messages with arguments as text, and tools: OpenAI's fine-tuning
    sharegpt   conversations of from and value, tools as one text
    dpo        prompt, chosen, rejected: preference pairs
    kto        prompt, completion, label: the turn that ended a kept row, the turn at which a dropped
               one is seen to be wrong; a row that only lacks a call has no such turn
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
from typing import Any, Literal, get_args

from whilesim.core.errors import InputError
from whilesim.core.jsontext import dumps, parse_object, write_lines
from whilesim.keeping.arrow import is_readable
from whilesim.keeping.ledger import is_spoiled
from whilesim.keeping.pairs import Preference, build_pairs, first_wrong
from whilesim.keeping.rows import STATES, Row, State
from whilesim.situations.tools import Tool

Format = Literal["trl", "openai", "sharegpt", "dpo", "kto", "rl"]
Line = dict[str, Any]
Writer = Callable[[Row, bool], Line]
_Placed = tuple[int, Row]
_LABELLED: Sequence[State] = ("kept", "dropped")
_STATES: Mapping[Format, Sequence[State]] = {"dpo": _LABELLED, "kto": _LABELLED, "rl": STATES}
_SPEAKERS = {"system": "system", "user": "human", "assistant": "gpt", "tool": "observation"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """What was written, and what was left out and why."""

    path: str
    format: Format
    lines: int
    left_out: Mapping[str, int]

    def __str__(self) -> str:
        none = "nothing" if self.lines else "nothing, as there is no row"
        out = "; ".join(f"{n} {why}" for why, n in self.left_out.items()) or none
        return f"{self.path}: {self.lines} lines of {self.format}; left out: {out}"


def export_rows(
    rows: Sequence[Row],
    path: str | os.PathLike[str],
    *,
    format: Format = "trl",  # noqa: A002  the public name of the argument
    states: Sequence[State],
    tools: Sequence[Tool] = (),
    reasoning: bool = False,
) -> Export:
    """Write rows as JSONL for a trainer, whole or not at all.

    Args:
        format: As in the module's docstring.
        states: States of the rows that the first three formats write. Pairs and labels take
            kept and dropped rows, ``rl`` takes all: a task does not depend on how it went.
        tools: For the effect of each call: where a row went wrong by its oracle.
        reasoning: Write what the agent thought as ``reasoning_content``.

    Raises:
        InputError: The format is unknown.
    """
    if format not in get_args(Format):
        raise InputError(f"no format {format!r}: type one of {', '.join(get_args(Format))}.")
    left_out: Counter[str] = Counter()
    chosen = _choose(rows, format, _STATES.get(format, states), left_out)
    if format == "dpo":
        lines = _pairs(build_pairs(rows, chosen, left_out, tools), reasoning)
    elif format == "kto":
        lines = _labels((row for _, row in chosen), left_out, tools, reasoning)
    else:
        lines = (_WRITERS[format](row, reasoning) for _, row in chosen)
    count = write_lines(path, _readable(lines, left_out))
    return Export(path=os.fspath(path), format=format, lines=count, left_out=dict(sorted(left_out.items())))


def wire_message(message: Mapping[str, Any], *, objects: bool = True, reasoning: bool = False) -> dict[str, Any]:
    """Return a row's message for a trainer: arguments as objects or text, reasoning asked for or gone."""
    wire = {name: value for name, value in message.items() if name not in ("reasoning", "finish")}
    if objects and "tool_calls" in message:
        wire["tool_calls"] = [{**call, "function": _opened(call)} for call in message["tool_calls"]]
    if reasoning and "reasoning" in message:
        wire["reasoning_content"] = message["reasoning"]
    return wire


def _opened(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call["function"]
    return {**function, "arguments": parse_object(function["arguments"])}


def _choose(rows: Iterable[Row], kind: Format, states: Sequence[State], left_out: Counter[str]) -> Iterator[_Placed]:
    """Yield the rows to write, each with its place, and count the others by why."""
    seen: set[str] = set()
    for place, row in enumerate(rows):
        if row.state not in states:
            left_out[f"rows {row.state}"] += 1
        elif row.loose_calls:
            left_out["rows with arguments that are no object"] += 1
        elif kind not in _STATES and row.messages[-1]["role"] != "assistant":
            left_out["rows that do not end with the agent"] += 1  # nothing to learn after its last word
        elif kind == "rl" and row.card_id in seen:
            left_out["further rollouts of a card"] += 1
        else:
            seen.add(row.card_id)
            yield place, row


def _readable(lines: Iterable[Line], left_out: Counter[str]) -> Iterator[Line]:
    """Leave out what would keep the ``datasets`` package from reading the whole file."""
    for line in lines:
        if is_readable(dumps(line)):
            yield line
        else:
            left_out["lines with half a character or a number beyond 64 bits"] += 1


def _trl(row: Row, reasoning: bool) -> Line:
    return {"messages": [wire_message(m, reasoning=reasoning) for m in row.messages], "tools": row.tools}


def _openai(row: Row, reasoning: bool) -> Line:
    messages = [wire_message(m, objects=False, reasoning=reasoning) for m in row.messages]
    return {"messages": messages, "tools": row.tools} if row.tools else {"messages": messages}


def _sharegpt(row: Row, reasoning: bool) -> Line:
    """Return from-value turns; calls made together, and their results, are one turn each."""
    turns: list[dict[str, str]] = []
    for message in row.messages:
        said, calls = message["content"] or "", message.get("tool_calls", ())
        if reasoning and message.get("reasoning"):
            said = f"<think>\n{message['reasoning']}\n</think>\n\n{said}"
        if message["role"] == "tool" and turns[-1]["from"] == "observation":
            turns[-1]["value"] += "\n" + said
        elif said or not calls:
            turns.append({"from": _SPEAKERS[message["role"]], "value": said})
        if calls:
            opened = [_opened(call) for call in calls]
            turns.append({"from": "function_call", "value": dumps(opened[0] if len(opened) == 1 else opened)})
    return {"conversations": turns, "tools": dumps([tool["function"] for tool in row.tools]) if row.tools else ""}


def _pairs(pairs: Iterable[Preference], reasoning: bool) -> Iterator[Line]:
    for pair in pairs:
        yield {
            "prompt": [wire_message(m) for m in pair.prompt],
            "chosen": [wire_message(pair.chosen, reasoning=reasoning)],
            "rejected": [wire_message(pair.rejected, reasoning=reasoning)],
            **{name: getattr(pair, name) for name in ("tools", "cause", "rule", "reason", "rows")},
        }


def _labels(rows: Iterable[Row], left_out: Counter[str], tools: Sequence[Tool], reasoning: bool) -> Iterator[Line]:
    for row in rows:
        if (cut := _telling_turn(row, tools)) is None:
            left_out["rows dropped for no turn of the agent's"] += 1
            continue
        yield {
            "prompt": [wire_message(m) for m in row.messages[:cut]],
            "completion": [wire_message(row.messages[cut], reasoning=reasoning)],
            "label": row.state == "kept",
            "tools": row.tools,
            **{name: getattr(row.verdict, name) for name in ("rule", "reason")},
            "row": row.id,
        }


def _telling_turn(row: Row, tools: Sequence[Tool]) -> int | None:
    """Return the agent turn a label speaks of: how a kept row ended, where a dropped one went wrong.

    A call that was never made makes no turn wrong: the last may be right for all that.
    """
    spoken = ((i, m) for i, m in enumerate(row.messages) if m["content"] or m.get("tool_calls"))  # silence has no label
    turns = [i for i, message in spoken if message["role"] == "assistant"]
    if row.state != "kept":
        place = None if is_spoiled(row) else first_wrong(row, tools, shown=True)
        return place if place in turns else None
    asked = max((i for i, message in enumerate(row.messages) if message["role"] == "user"), default=0)
    farewell = turns[-1:] == [asked + 1] and row.stop == "customer_done"
    return max((i for i in turns if i < asked or not farewell), default=max(turns, default=None))


def _rl(row: Row, _: bool) -> Line:  # a prompt holds no reasoning
    wire = row.to_json()
    opening = next((i for i, m in enumerate(row.messages) if m["role"] == "user"), len(row.messages) - 1)
    return {
        "prompt": [wire_message(m) for m in row.messages[: opening + 1]],
        "tools": row.tools,
        "case": row.card_id,
        **{name: wire[name] for name in ("seed", "situation", "card", "persona", "twin_of", "oracle")},
    }


_WRITERS: Mapping[Format, Writer] = {"trl": _trl, "openai": _openai, "sharegpt": _sharegpt, "rl": _rl}
