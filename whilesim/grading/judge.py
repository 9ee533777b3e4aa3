"""Judge: a model's reading of one conversation, or an error, never a guess.

The judge sees the policy, the tools, facts from the world, findings and the numbered
transcript. What people and programs said stands between marks that nobody who spoke could
know, each of its lines behind a bar, so that no line can pass for one of ours.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from pydantic import BaseModel, StrictBool, ValidationError

from whilesim.chat.actions import closed
from whilesim.chat.messages import Message
from whilesim.chat.models import CallKey, Chat
from whilesim.chat.usage import Usage
from whilesim.core.errors import JudgeError
from whilesim.core.jsontext import dumps, first_fault
from whilesim.core.seeds import derive
from whilesim.core.templates import render_prompt
from whilesim.core.text import digest, shorten
from whilesim.grading.checks.findings import Finding
from whilesim.grading.rubric import Rubric, Score, Words
from whilesim.situations.policy import Clause, Policy
from whilesim.situations.tools import Tool

WINDOW = 60_000
"""Characters of policy that a judge is shown unless told otherwise: about 15,000 tokens."""
_FENCE = re.compile(r"```(?:json)?\s*\n(?P<inside>.*)\n?\s*```", re.DOTALL | re.IGNORECASE)
_NAMES = {"system": "system", "user": "customer", "assistant": "agent", "tool": "tool result"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a judge may know of one conversation."""

    policy: Policy
    tools: Sequence[Tool]
    messages: Sequence[Message]
    """The agent's view; a system message in front is the policy, and not shown twice."""
    clause: Clause | None = None
    """The clause of the situation: what is shown of a policy that is too long."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Facts from the world, by plain name: records, changes, what a call would have found."""
    findings: Sequence[Finding] = ()
    failed: Sequence[str] = ()
    """Ids of the calls that failed."""
    open: Sequence[str] = ()
    """What the oracle leaves open: questions to the reader."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What a judge said of one conversation."""

    keep: bool
    reason: str
    scores: Mapping[str, Score]
    """Criterion to score, in the rubric's order."""
    judge: str = ""
    """Model and prompt digest."""
    policy_seen: str = "whole"
    """``whole``, or in words which part of the policy the judge was shown."""
    usage: Usage = Usage()


async def judge(
    chat: Chat, rubric: Rubric, evidence: Evidence, *, key: CallKey, model: str = "", window: int = WINDOW
) -> Judgement:
    """Have one conversation judged.

    Args:
        chat: The judging model.
        rubric: What it is asked.
        evidence: What it may know.
        key: Which call this is; ``turn`` counts the re-ask, and another ``sample`` is a retest.
        model: The judge's name, for the judgement's ``judge``.
        window: Characters of policy to show at most.

    Raises:
        JudgeError: It answered twice in a form that cannot be read; ``raw`` is the last answer. The
            conversation then stays unjudged.
        ModelError: The endpoint failed.
    """
    policy, seen = _policy_part(evidence, window)
    blank = _user_prompt(evidence, policy, seen, "")  # the mark depends on all that is told: no speaker can know it
    mark = f"{derive(0, 'judge mark', key.case, digest(blank)):016x}"
    asked = _user_prompt(evidence, policy, seen, mark)
    messages = [Message(role="system", content=_system_prompt(rubric)), Message(role="user", content=asked)]
    usage = Usage()
    for turn in range(2):
        reply = await chat.reply(messages, schema=reply_schema(rubric), key=replace(key, turn=key.turn + turn))
        usage, answer = usage + reply.usage, reply.message.content or ""
        try:
            read = read_judgement(answer, rubric)
            return replace(read, judge=judge_name(model, rubric), policy_seen=seen, usage=usage)
        except JudgeError as error:
            fault = str(error)
        again = render_prompt("judge_reask", error=fault, shape=_shape(rubric))
        messages += [Message(role="assistant", content=answer or "(nothing)"), Message(role="user", content=again)]
    raise JudgeError(fault, raw=answer, usage=usage)


def read_judgement(answer: str, rubric: Rubric) -> Judgement:
    """Read a judge's answer: one JSON object with ``scores``, ``reason`` and ``keep``.

    A fence around the whole object, and one wrapper ``{"final": ...}``, are taken off.

    Raises:
        JudgeError: The answer is anything else: prose around the object, a key twice, a
            criterion missing or unknown, a score that is no number from 0 to 1, an empty reason.
            An answer that cannot be read says nothing about the conversation.
    """
    try:
        found = _Reply.model_validate(_unwrapped(answer))
        _check_names([c.name for c in rubric.criteria], found.scores)
    except ValidationError as error:
        raise JudgeError(first_fault(error, given=True), raw=answer) from error
    except (ValueError, RecursionError) as error:
        msg = f"it must be one JSON object and nothing else, but was {shorten(answer, 300)!r}: {error}."
        raise JudgeError(msg, raw=answer) from error
    scores = {c.name: found.scores[c.name] for c in rubric.criteria}
    return Judgement(keep=found.keep, reason=found.reason, scores=scores)


def reply_schema(rubric: Rubric) -> dict[str, Any]:
    """Return the JSON schema of an answer: reasons stand before the numbers they explain."""
    score = closed({"reason": {"type": "string"}, "score": {"type": "number", "minimum": 0, "maximum": 1}})
    scores = closed({c.name: score for c in rubric.criteria})
    return closed({"scores": scores, "reason": {"type": "string"}, "keep": {"type": "boolean"}})


@cache
def judge_name(model: str, rubric: Rubric) -> str:
    """Return the judge's name: model, and a digest of everything it is told that is not the case."""
    blank = Evidence(policy=Policy(text="", clauses=()), tools=(), messages=(), open=("",))
    told = [_system_prompt(rubric), _user_prompt(blank, "", "whole", "")]
    told.append(render_prompt("judge_reask", error="", shape=_shape(rubric)))
    return f"{model}@{digest(chr(10).join(told), 12)}"


class _Reply(BaseModel, extra="forbid"):
    scores: dict[str, Score]
    reason: Words
    keep: StrictBool


def _check_names(wanted: Sequence[str], found: Iterable[str]) -> None:
    missing, unknown = set(wanted) - set(found), set(found) - set(wanted)
    if missing or unknown:
        raise ValueError(f"'scores' must hold {list(wanted)}; missing {sorted(missing)}, unknown {sorted(unknown)}")


def _unwrapped(answer: str) -> Any:
    text = answer.strip()
    if fence := _FENCE.fullmatch(text):
        text = fence["inside"]
    found = json.loads(text, object_pairs_hook=_once)
    if isinstance(found, dict) and list(found) == ["final"]:
        found = found["final"]
        found = json.loads(found, object_pairs_hook=_once) if isinstance(found, str) else found
    if not isinstance(found, dict):
        raise ValueError(f"found {type(found).__name__}")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice")
    return found


def _shape(rubric: Rubric) -> str:
    inner = ", ".join(f'{dumps(c.name)}: {{"reason": "...", "score": 0 to 1}}' for c in rubric.criteria)
    return f'{{"scores": {{{inner}}}, "reason": "...", "keep": true or false}}'


def _system_prompt(rubric: Rubric) -> str:
    shape, told = _shape(rubric), rubric.instructions
    return render_prompt("judge_system", instructions=told, criteria=rubric.criteria, shape=shape)


def _user_prompt(evidence: Evidence, policy: str, seen: str, mark: str) -> str:
    return render_prompt(
        "judge",
        policy=policy,
        policy_seen=seen,
        tools=[_tool_line(tool) for tool in evidence.tools],
        facts=[_barred(f"{k}: {v if isinstance(v, str) else dumps(v)}") for k, v in evidence.facts.items()],
        findings=[_barred(f"[{f.message_index}] {f.check}: {f.reason} {f.quote!r}") for f in evidence.findings],
        transcript=_transcript(evidence),
        questions=[" ".join(question.split()) for question in evidence.open],
        mark=mark,
    )


def _policy_part(evidence: Evidence, window: int) -> tuple[str, str]:
    """Return what is shown of the policy, and in words which part that is."""
    policy, clause = evidence.policy, evidence.clause
    if len(policy.text) <= window:
        return policy.text, "whole"
    if clause is None:
        return policy.text[:window], f"only the first {window:,} of the policy's {len(policy.text):,} characters"
    spans = [c.span for c in policy.clauses if c.section == clause.section] or [clause.span]
    section = policy.text[min(start for start, _ in spans) : max(end for _, end in spans)]
    name = f"the policy's section {clause.section!r}" if clause.section else "the policy's section"
    head = f"{clause.section}\n\n" if clause.section else ""
    if section and len(section) <= window:
        return f"{head}{section}\n\nThe rule of this case: {clause.text}", f"only {name}"
    return f"{head}{clause.text}", "only the policy's clause of this case"


def _transcript(evidence: Evidence) -> list[str]:
    failed, lines = set(evidence.failed), []
    for i, message in enumerate(evidence.messages):
        if i == 0 and message.role == "system":  # the policy itself, shown above
            continue
        lines.append(f"[{i}] {_NAMES[message.role]}" + (" (failed)" if message.tool_call_id in failed else ""))
        if message.content:
            lines.append(_barred(message.content))
        lines += [_barred(f"calls {c.name} {c.arguments}") for c in message.tool_calls]
    return lines


def _barred(text: str) -> str:
    return "\n".join(f"| {line}" for line in text.splitlines())


def _tool_line(tool: Tool) -> str:
    arguments = dumps(tool.parameters.get("properties", {}))
    return f"{tool.name} ({tool.effect}): {' '.join(tool.description.split())} {arguments}"
