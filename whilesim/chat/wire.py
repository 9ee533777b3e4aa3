"""Wire: chat completion requests and replies, as bytes.

Messages are only ever added to a conversation, so the bytes of those already written are
kept and the new ones appended: with 20 messages and 8 tools that is a tenth of the work of
writing everything again, and the server sees the same prefix for its own cache.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import is_
from typing import Any

from whilesim.chat.actions import action_schema, explain_actions, read_action, rewrite
from whilesim.chat.failures import CallFailed, read_failure
from whilesim.chat.messages import Message, read_message
from whilesim.chat.models import Reply
from whilesim.chat.usage import Price, Usage
from whilesim.core.errors import InputError
from whilesim.core.jsontext import dumps

_fast = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode  # json.dumps makes an encoder each time
_KEPT = 512  # conversations whose bytes are kept: about 10 MB at 18 KB each
_THINK = re.compile(r"<(think|thinking)>(.*?)</\1>", re.DOTALL)
_OPEN = re.compile(r"<think(?:ing)?>")
_CLOSE = re.compile(r"</think(?:ing)?>")


@dataclass(slots=True)
class _Written:
    messages: list[Message] = field(default_factory=list)
    data: bytearray = field(default_factory=bytearray)
    digest: Any = field(default_factory=hashlib.sha256)


class Writer:
    """Writes request bodies.

    Args:
        fields: Model and parameters, the first fields of each body.
        json_actions: Ask for tools as a JSON action instead (``chat.actions``).
        schemas: Whether the endpoint takes ``response_format``.
    """

    def __init__(self, fields: Mapping[str, Any], *, json_actions: bool = False, schemas: bool = True) -> None:
        self._fields = dict(fields)
        self._json_actions = json_actions
        self._schemas = schemas
        self._conversations: OrderedDict[Any, _Written] = OrderedDict()
        self._heads: OrderedDict[tuple[int, int], tuple[Any, Any, tuple[bytes, bytes]]] = OrderedDict()

    def write(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]],
        schema: Mapping[str, Any] | None,
        conversation: Any = None,
    ) -> tuple[bytes, bytes]:
        """Return the body and a digest of it; ``conversation`` names whose earlier bytes may serve again."""
        as_actions = self._json_actions and bool(tools)
        if as_actions:
            messages = explain_actions(messages, tools, schema=self._schemas)
        written = self._written(messages, conversation if not as_actions else None)
        for message in messages[len(written.messages) :]:
            wires = rewrite(message, written.messages) if as_actions else [to_wire(message)]
            for wire in wires:
                piece = (b"," if written.data else b"") + _encode(wire)
                written.data += piece
                written.digest.update(piece)
            written.messages.append(message)
        head, head_digest = self._head(tools, schema)
        digest = hashlib.sha256(head_digest + written.digest.digest()).digest()
        return b"".join((head, written.data, b"]}")), digest

    def _written(self, messages: Sequence[Message], conversation: Any) -> _Written:
        if conversation is None:
            return _Written()
        known = self._conversations.get(conversation)
        if known is None or len(known.messages) > len(messages) or not all(map(is_, known.messages, messages)):
            known = self._conversations[conversation] = _Written()
        self._conversations.move_to_end(conversation)
        if len(self._conversations) > _KEPT:
            self._conversations.popitem(last=False)
        return known

    def _head(self, tools: Sequence[Mapping[str, Any]], schema: Mapping[str, Any] | None) -> tuple[bytes, bytes]:
        known = self._heads.get((id(tools), id(schema)))
        if known is not None and known[0] is tools and known[1] is schema:
            return known[2]
        fields = dict(self._fields)
        if tools and self._json_actions:
            schema = action_schema(tools)
        elif tools:
            fields["tools"] = list(tools)
        if schema is not None and self._schemas:
            fields["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "answer", "schema": schema, "strict": _is_strict(schema)},
            }
        text = _encode(fields)[:-1] + b',"messages":['
        head = (text, hashlib.sha256(text).digest())
        if isinstance(tools, tuple):  # a list may be changed under us
            self._heads[id(tools), id(schema)] = (tools, schema, head)
            if len(self._heads) > _KEPT:
                self._heads.popitem(last=False)
        return head


def to_wire(message: Message) -> dict[str, Any]:
    """Return a message as endpoints take it: no empty text beside calls, no null without."""
    wire = message.to_openai()
    if not wire["content"]:
        wire["content"] = None if message.tool_calls else ""
    return wire


def read_reply(
    raw: bytes, *, where: str, price: Price | None, earlier: Sequence[Message] = (), action: bool = False
) -> Reply:
    """Read an endpoint's answer.

    Args:
        raw: The body: one chat completion.
        where: Model and host, for messages.
        price: None when it is unknown; so are the dollars then.
        earlier: The messages that were sent: a call gets an id that none of theirs has.
        action: Whether the content is a JSON action, to be turned into an ordinary tool call.

    Raises:
        CallFailed: It is no chat completion (``malformed_reply``), or the endpoint says that
            it filtered the answer (``content_filter``).
    """
    try:
        answer = json.loads(raw)
    except (ValueError, RecursionError):
        answer = None
    choices = answer.get("choices") if isinstance(answer, dict) else None
    if not (isinstance(choices, list) and choices and isinstance(choices[0], Mapping)):
        raise _unreadable(where, raw, answer)
    choice = choices[0]
    wire = choice.get("message")
    if not isinstance(wire, Mapping):
        raise _unreadable(where, raw, answer)
    finish = choice.get("finish_reason")
    if finish == "content_filter":
        msg = f"{where} filtered its answer (finish_reason 'content_filter')."
        raise CallFailed(msg, reason="content_filter")
    try:
        message = _read_message(wire, finish if isinstance(finish, str) else None)
    except (InputError, AttributeError) as error:
        raise _unreadable(where, raw, answer) from error
    text = message.content or ""
    message = split_reasoning(message)
    taken = {c.id for m in earlier for c in m.tool_calls}
    if action:
        message = read_action(message, where=where, number=len(taken))
    return Reply(message=_own_ids(message, taken), usage=_read_usage(answer, price), raw=text)


def split_reasoning(message: Message) -> Message:
    """Move what stands between think tags from the content to ``reasoning``.

    A close tag alone ends reasoning that the chat template opened. An open tag alone means that
    the tokens ran out while the model was thinking: there is no visible answer, and ``finish``
    says ``length``.
    """
    text = message.content
    if not text or ("think>" not in text and "thinking>" not in text):
        return message
    thoughts = [m.group(2) for m in _THINK.finditer(text)]
    rest, finish = _THINK.sub("", text), message.finish
    if found := _CLOSE.search(rest):
        thoughts.insert(0, rest[: found.start()])
        rest = rest[found.end() :]
    if found := _OPEN.search(rest):
        thoughts.append(rest[found.end() :])
        rest, finish = rest[: found.start()], "length"
    reasoning = "\n\n".join(t.strip() for t in (message.reasoning or "", *thoughts) if t.strip())
    return replace(message, content=rest.strip() or None, reasoning=reasoning or None, finish=finish)


def _read_message(wire: Mapping[str, Any], finish: str | None) -> Message:
    refusal = wire.get("refusal")
    message = read_message({**wire, "role": "assistant", "finish": finish})
    if not message.content and isinstance(refusal, str) and refusal:
        return replace(message, content=refusal, finish="refusal")
    if finish == "length" and message.tool_calls and message.tool_calls[-1].parsed is None:
        message = replace(message, tool_calls=message.tool_calls[:-1])  # half a call: it must not be played
    if not message.content and message.tool_calls:
        return replace(message, content=None)
    return message


def _own_ids(message: Message, taken: Collection[str]) -> Message:
    """Give a call whose id is missing or was used before a new one; results are found by it."""
    used, calls = set(taken), []
    for call in message.tool_calls:
        number = len(used)
        while call.id in used or not call.id:
            call = replace(call, id=f"call_{number}")
            number += 1
        used.add(call.id)
        calls.append(call)
    return replace(message, tool_calls=tuple(calls)) if calls else message


def _encode(value: Mapping[str, Any]) -> bytes:
    try:
        return _fast(value).encode()
    except ValueError:  # a number or a surrogate that needs care
        return dumps(value).encode()


def _read_usage(answer: Mapping[str, Any], price: Price | None) -> Usage:
    usage = answer.get("usage")
    usage = usage if isinstance(usage, Mapping) else {}
    into, out = usage.get("prompt_tokens"), usage.get("completion_tokens")
    if not isinstance(into, int) or not isinstance(out, int):
        return Usage(calls=1, usd=None)
    return Usage(calls=1, tokens_in=into, tokens_out=out, usd=price.of(into, out) if price else None)


def _unreadable(where: str, raw: bytes, answer: Any) -> CallFailed:
    error = answer.get("error") if isinstance(answer, dict) else None
    if error:  # some gateways put an error into an answer of status 200
        code = error.get("code") if isinstance(error, Mapping) else None
        return read_failure(where, code if isinstance(code, int) else 0, json.dumps(error), {})
    shown = raw[:200].decode("utf-8", "replace")
    msg = f"{where} answered what is no chat completion: {shown!r}."
    return CallFailed(msg, reason="malformed_reply", billed=True)


def _is_strict(schema: Any) -> bool:
    """Whether a schema closes every object and requires every field, as OpenAI's strict mode asks."""
    if isinstance(schema, Mapping):
        fields = schema.get("properties")
        if schema.get("type") == "object" and (
            schema.get("additionalProperties") is not False or set(schema.get("required", ())) != set(fields or ())
        ):
            return False
        return all(_is_strict(v) for v in schema.values())
    return all(_is_strict(v) for v in schema) if isinstance(schema, (list, tuple)) else True
