"""Reading: what a scripted player makes of a conversation, from its messages alone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from whilesim.chat.messages import Message, ToolCall
from whilesim.core.templates import load_words

Trouble = Literal["transient", "garbled", "denied", "not_found", "refused", "invalid"]

_ERRORS = ("error", "errors", "error_message", "fault", "detail", "exception")
_TROUBLES: Mapping[Trouble, re.Pattern[str]] = {
    kind: re.compile(look, re.I) for kind, look in load_words("scripted_reading")["troubles"].items()
}

_GO_AHEAD = re.compile(f"(.*?)(?:{'|'.join(load_words('scripted_reading')['go_ahead'])})", re.I | re.S)
_OPEN = re.compile(r"\b(?:what|which|when|where|who|how|why)\b", re.I)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One call and what came back."""

    call: ToolCall
    arguments: Mapping[str, Any]
    text: str
    data: Any
    """The reply as JSON, or its text where it is none."""
    trouble: Trouble | None
    """What was wrong with it, as far as its words say."""


def read_results(messages: Sequence[Message]) -> list[Result]:
    """Return all answered calls in order."""
    replies = {m.tool_call_id: m.content or "" for m in messages if m.role == "tool"}
    found = []
    for call, text in ((c, replies[c.id]) for m in messages for c in m.tool_calls if c.id in replies):
        data, trouble = read_reply(text)
        bare = isinstance(data, (str, int)) and not trouble and re.fullmatch(r"\S+", str(data))
        if bare and (key := re.search(r"_((?:[a-z]+_)*id)(?:_|$)", call.name)):
            data = {key[1]: data}
        found.append(Result(call=call, arguments=call.parsed or {}, text=text, data=data, trouble=trouble))
    return found


def read_reply(text: str) -> tuple[Any, Trouble | None]:
    """Read a tool's reply: its data, and the trouble it speaks of."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        data = text
        if text.lstrip()[:1] in ("{", "[", "<") or not text.strip():
            return data, "transient" if "504" in text or "503" in text else "garbled"
        if re.match(r"\s*(?:\w*error|failed|failure|timeout|\d{3}\b)|.*\b(?:timed out|denied|not found)\b", text, re.I):
            return data, _trouble(text)
        return data, None
    if data is None or (isinstance(data, Mapping) and data.get("data", text) is None):
        return data, "garbled"
    if isinstance(data, Mapping):
        worst = any(data.get(k) not in (None, [], {}, "", False, 0) for k in _ERRORS)
        status = str(data.get("status", data.get("code", ""))).lower()
        short = len(data) <= 3 and status in ("error", "failed", "failure")  # a longer one may be a refund that failed
        if worst or data.get("success") is False or data.get("ok") is False or short:
            return data, _trouble(text)
    return data, None


def _trouble(text: str) -> Trouble:
    return next((kind for kind, pattern in _TROUBLES.items() if pattern.search(text)), "refused")


def reason_of(result: Result) -> str:
    """Return the words of a refusal, without braces and keys."""
    data = result.data
    for _ in range(3):
        if not isinstance(data, Mapping):
            break
        texts = [v for v in data.values() if isinstance(v, (str, Mapping)) and v]
        named = next((data[k] for k in ("message", "error", "detail", "reason") if data.get(k)), None)
        data = named if isinstance(named, (str, Mapping)) else max(texts, key=lambda t: len(str(t)), default="")
    words = re.sub(r"^(?:\w*Error|Error)\s*:\s*", "", str(data)).strip().rstrip(".")
    return words[:200] or "it was refused"


def leaves(data: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield every scalar of a reply with the keys above it; list positions are left out."""
    if isinstance(data, Mapping):
        for key, value in data.items():
            yield from leaves(value, (*path, str(key)))
    elif isinstance(data, list):
        for value in data:
            yield from leaves(value, path)
    else:
        yield path, data


def asks_go_ahead(text: str) -> bool:
    """Say whether an agent asks for a yes before it acts; 'which one shall I cancel?' takes more than a yes."""
    parts = re.split(r"(?<=[.!?;:,])\s+", text)
    return any(asked and not _OPEN.search(asked[1]) for asked in map(_GO_AHEAD.match, parts))
