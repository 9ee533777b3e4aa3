"""Wire: chat completion requests and replies, as bytes.

Messages are only ever added to a conversation, so the bytes of those already written are
kept and the new ones appended: with 20 messages and 8 tools that is a tenth of the work of
writing everything again, and the server sees the same prefix for its own cache.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import is_
from typing import Any

from whilesim.chat.actions import action_schema, explain_actions, read_action
from whilesim.chat.failures import CallFailed, read_failure
from whilesim.chat.messages import Message, read_message
from whilesim.chat.models import Reply, Schema, Tools
from whilesim.chat.usage import Price, Usage
from whilesim.core.errors import InputError
from whilesim.core.jsontext import dumps, parse_object

_KEPT = 512  # conversations whose bytes are kept: about 10 MB at 18 KB each
_THINK = re.compile(r"<(think|thinking)>(.*?)</\1>", re.DOTALL)
_OPEN = re.compile(r"<think(?:ing)?>")
_CLOSE = re.compile(r"</think(?:ing)?>")


class Writer:
    """Writes request bodies.

    Args:
        fields: Model and parameters, the first fields of each body.
        json_actions: Ask for tools as a JSON action instead (``chat.actions``).
        schemas: Whether the endpoint takes ``response_format``.
    """

    def __init__(self, fields: Mapping[str, Any], *, json_actions: bool = False, schemas: bool = True) -> None:
        self._fields, self._json_actions, self._schemas = fields, json_actions, schemas
        self._conversations: dict[Any, tuple[list[Message], bytearray]] = {}
        self._heads: dict[Any, tuple[bytes, Any, Any]] = {}

    def write(self, messages: Sequence[Message], tools: Tools, schema: Schema | None, talk: Any = None) -> bytes:
        """Return the body; ``talk`` names the conversation whose earlier bytes may serve again."""
        if self._json_actions and tools:
            written: bytes | bytearray = dumps(explain_actions(messages, tools))[1:-1].encode()
        else:
            written = self._write_messages(messages, talk)
        return b"".join((self._write_head(tools, schema), written, b"]}"))

    def _write_messages(self, messages: Sequence[Message], talk: Any) -> bytearray:
        sent, data = self._conversations.pop(talk, ([], bytearray()))
        if len(sent) > len(messages) or not all(map(is_, sent, messages)):
            sent, data = [], bytearray()
        for message in messages[len(sent) :]:
            data += (b"," if data else b"") + dumps(to_wire(message)).encode()
            sent.append(message)
        if talk is not None:
            _keep(self._conversations, talk, (sent, data))
        return data

    def _write_head(self, tools: Tools, schema: Schema | None) -> bytes:
        key = id(tools), id(schema)  # what is kept holds both, so that no other object gets their ids
        if kept := self._heads.get(key):
            return kept[0]
        fields, wanted = dict(self._fields), schema
        if tools and self._json_actions:
            wanted = action_schema(tools)
        elif tools:
            fields["tools"] = tools
        if wanted is not None and self._schemas:
            form = {"name": "answer", "schema": wanted, "strict": _is_strict(wanted)}
            fields["response_format"] = {"type": "json_schema", "json_schema": form}
        head = dumps(fields)[:-1].encode() + b',"messages":['
        if isinstance(tools, tuple):  # a list may be changed under us
            _keep(self._heads, key, (head, tools, schema))
        return head


def to_wire(message: Message) -> dict[str, Any]:
    """Return a message as endpoints take it: no empty text beside calls, no null without."""
    return {**message.to_openai(), "content": message.content or (None if message.tool_calls else "")}


def read_reply(raw: bytes, *, where: str, price: Price | None, action: bool = False) -> Reply:
    """Read an endpoint's answer.

    Args:
        raw: The body: one chat completion.
        where: Model and host, for messages.
        price: None when it is unknown; so are the dollars then.
        action: Whether the content is a JSON action, to be turned into an ordinary tool call.

    Raises:
        CallFailed: It is no chat completion (``malformed_reply``), or the endpoint says that
            it filtered the answer (``content_filter``).
    """
    try:
        answer = json.loads(raw)
    except (ValueError, RecursionError):
        answer = None
    match answer:
        case {"choices": [{"finish_reason": "content_filter"}, *_]}:
            raise CallFailed(f"{where} filtered its answer (finish_reason 'content_filter').", reason="content_filter")
        case {"choices": [{"message": {**wire}, **choice}, *_]}:
            try:
                message = _read_message(wire, choice.get("finish_reason"))
            except (InputError, TypeError) as error:
                raise _unreadable(where, raw, answer) from error
        case _:
            raise _unreadable(where, raw, answer)
    message = split_reasoning(message)
    message = read_action(message, where=where) if action else message
    return Reply(message=message, usage=_read_usage(answer.get("usage"), price))


def split_reasoning(message: Message) -> Message:
    """Move what stands between think tags from the content to ``reasoning``.

    A close tag alone ends reasoning that the chat template opened. An open tag alone means that
    the tokens ran out while the model was thinking: there is no visible answer, and ``finish``
    says ``length``.
    """
    if not (text := message.content) or ("think>" not in text and "thinking>" not in text):
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


def _read_message(wire: Mapping[Any, Any], finish: Any) -> Message:
    message = read_message({**wire, "role": "assistant", "finish": finish})
    calls, refusal = message.tool_calls, wire.get("refusal")
    if not message.content and isinstance(refusal, str) and refusal:
        return replace(message, content=refusal, finish="refusal")
    if finish == "length" and calls and parse_object(calls[-1].arguments) is None:
        calls = calls[:-1]  # half a call: it must not be played
    return replace(message, tool_calls=calls, content=None if calls and not message.content else message.content)


def _read_usage(usage: Any, price: Price | None) -> Usage:
    match usage:
        case {"prompt_tokens": int(into), "completion_tokens": int(out)}:
            return Usage(calls=1, tokens_in=into, tokens_out=out, usd=price.of(into, out) if price else None)
    return Usage(calls=1, usd=None)


def _unreadable(where: str, raw: bytes, answer: Any) -> CallFailed:
    if isinstance(answer, Mapping) and (error := answer.get("error")):  # a gateway's, in an answer of status 200
        code = error.get("code") if isinstance(error, Mapping) else None
        return read_failure(where, code if isinstance(code, int) else 0, json.dumps(error), {})
    shown = raw[:200].decode("utf-8", "replace")
    return CallFailed(f"{where} answered what is no chat completion: {shown!r}.", reason="malformed_reply", billed=True)


def _is_strict(schema: Any) -> bool:
    """Whether a schema closes every object and requires every field, as OpenAI's strict mode asks."""
    if isinstance(schema, (list, tuple)):
        return all(map(_is_strict, schema))
    if not isinstance(schema, Mapping):
        return True
    closed = schema.get("additionalProperties") is False
    required = set(schema.get("required", ())) == set(schema.get("properties") or ())
    return (schema.get("type") != "object" or (closed and required)) and all(map(_is_strict, schema.values()))


def _keep(cache: dict[Any, Any], key: Any, value: Any) -> None:
    """Put a value behind the others, and forget the first of too many."""
    cache[key] = value
    if len(cache) > _KEPT:
        del cache[next(iter(cache))]
