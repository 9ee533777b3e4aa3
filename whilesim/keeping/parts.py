"""Parts: the values that a row is made of, and the types that let hostile text through.

Each is read strictly: an unknown key or a number where text belongs is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, PlainValidator, WithJsonSchema, WrapValidator

from whilesim.chat.messages import Role
from whilesim.core.jsontext import canonical, dumps, loads


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"must be text, not {type(value).__name__}")
    return value


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"must be an object, not {type(value).__name__}")
    return value


# pydantic's own text type refuses lone surrogates, which models do produce.
Text = Annotated[str, PlainValidator(_text), WithJsonSchema({"type": "string"})]
Object = Annotated[dict[str, Any], PlainValidator(_object), WithJsonSchema({"type": "object"})]


class Part(BaseModel):
    """A frozen value with known keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    def to_json(self) -> dict[str, Any]:
        """Return the value as a JSON object, keys in the order of the schema."""
        return {name: _opened(getattr(self, name)) for name in type(self).model_fields}


class RowFunction(Part):
    """What is called, with which arguments, as text."""

    name: Text
    arguments: Text


class RowCall(Part):
    """One tool call, as OpenAI writes it."""

    id: Text
    type: Literal["function"]
    function: RowFunction


class RowMessage(Part):
    """One chat message; keys that say nothing are left out, but for ``content``."""

    role: Role
    content: Text | None
    tool_calls: list[RowCall] = []
    tool_call_id: Text = ""
    reasoning: Text = ""
    """What the model thought before it spoke."""
    finish: Text = ""
    """Why the model stopped, where it did not end of itself: ``length``, ``content_filter``."""


def _message(value: Any, check: Callable[[Any], RowMessage]) -> dict[str, Any]:
    calls = value.get("tool_calls") if isinstance(value, dict) else None
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        arguments = function.get("arguments") if isinstance(function, dict) else None
        if isinstance(function, dict) and isinstance(arguments, (dict, str)):
            text = arguments if isinstance(arguments, str) else dumps(arguments)
            function["arguments"] = canonical(text)
    check(value)
    return {name: value[name] for name in RowMessage.model_fields if name in value}


if TYPE_CHECKING:
    ChatMessage = dict[str, Any]
else:  # checked as a RowMessage, kept as the mapping that it is
    ChatMessage = Annotated[RowMessage, WrapValidator(_message)]


class RowCustomerCall(Part):
    """One tool call of the customer's own."""

    after_message: int
    name: Text
    arguments: Text
    reply: Text


class RowPersona(Part):
    """How the customer types."""

    texture: Text
    tone: Text
    length: Text
    pressure: Text


class RowCard(Part):
    """What the customer knew and wanted."""

    goal: Text
    form: Text
    facts: Object
    clause_applies: Text
    opening: Text
    exit: Text
    give_up: int
    prose: Text


class RowChange(Part):
    """One field of one record that a call changed."""

    call: Text
    kind: Text
    id: Text
    field: Text
    before: Any
    after: Any


class RowFailure(Part):
    """Why the conversation has no ending."""

    role: Text
    reason: Text
    message: Text


class RowFinding(Part):
    """One thing that a check found."""

    check: Text
    message_index: int
    quote: Text
    reason: Text
    severity: Literal["drop", "warn"]


class RowScore(Part):
    """One criterion's score, 0 to 1, with the judge's reason."""

    score: float
    reason: Text


class RowVerdict(Part):
    """Keep or drop, and why."""

    keep: bool
    reward: float | None
    scores: dict[Text, RowScore]
    reason: Text
    rule: Text
    judge: Text | None


class RowUsage(Part):
    """What one role used; unknown dollars are null."""

    calls: int
    tokens_in: int
    tokens_out: int
    usd: float | None


class RowRoles(Part):
    """Usage by role."""

    agent: RowUsage
    customer: RowUsage
    judge: RowUsage


class RowProvenance(Part):
    """Which models and which version wrote the row; null where nothing took part."""

    agent: Text | None = None
    customer: Text | None = None
    writer: Text | None = None
    judge: Text | None = None
    embedder: Text | None = None
    prompts: Text | None = None
    whilesim: Text | None = None


def through_json(value: Any) -> Any:
    """Return what a reader of the value's JSON would get."""
    try:
        return loads(dumps(value))
    except TypeError:  # a world of the user's may hold any values
        return loads(dumps(to_plain(value)))


def _opened(value: Any) -> Any:
    if isinstance(value, Part):
        return value.to_json()
    if isinstance(value, list):
        return [item.to_json() if isinstance(item, Part) else item for item in value]
    if isinstance(value, dict):
        return {k: item.to_json() if isinstance(item, Part) else item for k, item in value.items()}
    return value


def to_plain(value: Any) -> Any:
    """Return the value as JSON's own types; what has none is written as its text."""
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {k if isinstance(k, str) else str(k): to_plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(v) for v in value]
    if isinstance(value, (set, frozenset)):
        return sorted((to_plain(v) for v in value), key=repr)
    return str(value)
