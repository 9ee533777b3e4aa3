"""Endpoint: a chat model that can be asked.

One call is: write the body, look into the reply cache, reserve the budget, wait for a slot,
send, read, settle. What fails for a passing reason is tried again with growing, jittered
pauses until the call's time budget is spent; what would fail again is not.

An endpoint that does not know a field (tools, a JSON schema, ``max_tokens``, a temperature)
is asked again without it; that is logged once and holds for the rest of the run.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from whilesim.chat.bridge import find_price
from whilesim.chat.failures import CallFailed, says
from whilesim.chat.messages import Message
from whilesim.chat.models import CallKey, Chat, Model, Reply, resolve_model
from whilesim.chat.replies import Replies, reply_key
from whilesim.chat.throttle import Throttle, bound_of
from whilesim.chat.transport import Transport
from whilesim.chat.usage import Price, Usage
from whilesim.chat.wire import Writer, read_reply
from whilesim.core.errors import InputError, ModelError, RunError
from whilesim.core.seeds import derive

log = logging.getLogger(__name__)

_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0  # seconds; doubled at each attempt
_UNREADABLE = 3  # attempts at an answer that cannot be read; a broken server rarely mends itself
_SOME_CALL = CallKey()
_PREFLIGHT = 10.0  # seconds for failed attempts at a role's first call


class Endpoint:
    """A model behind an address, as a ``Chat``.

    Args:
        model: What ``resolve_model`` takes.
        throttle: Shared by the endpoints of a run; a new one by default.
        replies: The reply cache; none by default.

    Raises:
        InputError: The model cannot be used, or the budget needs a price or a ``max_tokens``
            that is unknown. Nothing has been sent.
    """

    def __init__(self, model: str | Model, *, throttle: Throttle | None = None, replies: Replies | None = None) -> None:
        self.model = resolve_model(model)
        self.price = price_of(self.model)
        self.throttle = throttle or Throttle()
        self._replies = replies
        self._transport = Transport(self.model)
        self._slots = self.throttle.slots(self._transport.place)
        self._lacks: set[str] = {"tools"} if self.model.tool_mode == "json" else set()
        self._writer = self._new_writer()
        self._check_budget()

    def __repr__(self) -> str:
        return f"Endpoint({self.model.name!r}, host={self.model.host!r})"

    async def reply(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]] = (),
        *,
        schema: Mapping[str, Any] | None = None,
        key: CallKey = _SOME_CALL,
    ) -> Reply:
        """Answer the messages; see :class:`whilesim.chat.models.Chat`."""
        return await self._ask(messages, tools, schema, key)

    async def probe(self, tools: Sequence[Mapping[str, Any]] = ()) -> Reply:
        """Ask for a word, past the reply cache, and give up early: is anybody there?

        Raises:
            ModelError: Nobody is.
        """
        greeting = Message(role="user", content="Say OK.")
        return await self._ask([greeting], tools, None, CallKey(role="preflight"), probing=True)

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.close()

    async def _ask(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]],
        schema: Mapping[str, Any] | None,
        key: CallKey,
        *,
        probing: bool = False,
    ) -> Reply:
        conversation = (key.case, key.rollout, key.role) if key.case else None
        cache = None if probing else self._replies
        while True:
            lacks = frozenset(self._lacks)
            body, digest = self._writer.write(messages, tools, schema, conversation)
            read = partial(self._read, messages, "tools" in lacks and bool(tools))
            name = b"" if cache is None else reply_key(digest, key)
            if cache is not None and (kept := cache.get(name)) is not None:
                self.throttle.counts.cached += 1
                return read(kept)
            try:
                raw, reply = await self._insist(body, read, key, _PREFLIGHT if probing else None)
            except CallFailed as failure:
                if not self._adapt(failure, lacks, tools=bool(tools), schema=schema is not None):
                    raise
                continue
            if cache is not None:
                cache.put(name, raw)
            return reply

    async def _insist(
        self, body: bytes, read: Callable[[bytes], Reply], key: CallKey, retry_for: float | None
    ) -> tuple[bytes, Reply]:
        """Try until there is an answer that can be read, or no time for another attempt."""
        usd, tokens = bound_of(body, self.model.max_tokens, self.price)
        patience = self.throttle.retry_for if retry_for is None else retry_for
        spent, attempt, unreadable = 0.0, 0, 0
        while True:
            await self.throttle.reserve(usd, tokens)
            used, billed = None, False
            try:
                raw = await self._send(body)
                reply = read(raw)
                used = reply.usage
                self.throttle.answered(used)
                return raw, reply
            except CallFailed as error:
                failure, billed = error, error.billed
            finally:
                self.throttle.settle(usd, tokens, used, billed=billed)
            unreadable += failure.reason == "malformed_reply"
            pause = self._pause(failure, attempt, key, may_repeat=unreadable < _UNREADABLE)
            spent += failure.seconds + pause
            if spent > patience:
                msg = f"{failure} Given up after {attempt + 1} attempts."
                raise ModelError(msg, reason=failure.reason) from failure
            await self.throttle.sleep(pause)
            attempt += 1

    async def _send(self, body: bytes) -> bytes:
        """Send once, in a slot; the time limit begins there: waiting for a slot is not asking."""
        self.throttle.check()
        await self._slots.take()
        began = time.monotonic()
        try:
            left = self.throttle.check()
            raw = await self._transport.send(body, min(self.model.timeout, left))
        except CallFailed as failure:
            failure.seconds = time.monotonic() - began
            if failure.reason == "timeout":
                self.throttle.check()  # a deadline that cut the request short is not the endpoint's fault
            refused = failure.reason == "rate_limit" and not failure.final
            if refused or failure.reason == "timeout":
                self._slots.strained(refused=refused, retry_after=failure.retry_after)
            raise
        finally:
            self._slots.give_back()
        self._slots.answered(time.monotonic() - began)
        return raw

    def _read(self, messages: Sequence[Message], action: bool, raw: bytes) -> Reply:
        where = self._transport.where
        return read_reply(raw, where=where, price=self.price, earlier=messages, action=action)

    def _pause(self, failure: CallFailed, attempt: int, key: CallKey, *, may_repeat: bool = True) -> float:
        """Return the seconds to wait before the next attempt, or raise when none can help."""
        if _names_field(failure):  # asked again without it, or a mistake that stays one
            raise failure
        self.throttle.failed(failure)
        if failure.final or not may_repeat:
            raise failure
        names = (key.case, key.rollout, key.role, key.turn, key.sample)
        jitter = derive(self.throttle.seed, "pause", *names, attempt) / (1 << 63)
        if failure.retry_after:
            pause = failure.retry_after * (1 + jitter / 4)
        else:
            pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**attempt) * (0.5 + jitter / 2)
        if self.throttle.check() < pause:
            msg = f"no time is left for another attempt. The last one: {failure}"
            raise ModelError(msg, reason="deadline") from failure
        return pause

    def _new_writer(self) -> Writer:
        model, lacks = self.model, self._lacks
        fields: dict[str, Any] = {"model": model.name}
        if model.temperature is not None and "temperature" not in lacks:
            fields["temperature"] = model.temperature
        if model.max_tokens is not None:
            name = "max_completion_tokens" if "max_tokens" in lacks else "max_tokens"
            fields[name] = model.max_tokens
        fields.update(model.extra)
        return Writer(fields, json_actions="tools" in lacks, schemas="schema" not in lacks)

    def _adapt(self, failure: CallFailed, lacks: frozenset[str], *, tools: bool, schema: bool) -> bool:
        """Leave out the field that an endpoint says it does not know; False when it says no such thing."""
        if not _names_field(failure):
            return False
        sent = {
            "tools": tools and self.model.tool_mode == "auto",
            "schema": schema or (tools and "tools" in lacks),
            "max_tokens": self.model.max_tokens is not None,
            "temperature": self.model.temperature is not None,
        }
        for field in (f for f, was_sent in sent.items() if was_sent and f not in lacks):
            if says(str(failure), f"no_{field}"):
                if field not in self._lacks:  # another call may have found out meanwhile
                    self._lacks.add(field)
                    self._writer = self._new_writer()
                    log.warning("%s is asked without %s: %s", self._transport.where, field, failure)
                return True
        return False

    def _check_budget(self) -> None:
        budget, model = self.throttle.budget, self.model
        if budget.usd is not None and self.price is None:
            msg = (
                f"the price of {model.name!r} is unknown, so a budget in dollars cannot be kept. "
                f"Type: ws.Model({model.name!r}, price=(0.1, 0.4)), dollars per million tokens in and out."
            )
            raise InputError(msg)
        if (budget.usd is not None or budget.tokens is not None) and model.max_tokens is None:
            msg = (
                f"max_tokens of {model.name!r} is None, so no call's cost is bounded and the budget "
                "cannot be kept. Type: ws.Model(..., max_tokens=1024)."
            )
            raise InputError(msg)


def _names_field(failure: CallFailed) -> bool:
    return failure.reason in ("bad_request", "server") and any(
        says(str(failure), f"no_{field}") for field in ("tools", "schema", "max_tokens", "temperature")
    )


def open_chat(spec: Any, *, throttle: Throttle | None = None, replies: Replies | None = None) -> Endpoint:
    """Open an endpoint for a model string, a ``Model`` or an ``AsyncOpenAI`` client.

    Raises:
        InputError: It is none of these, or cannot be used (see ``resolve_model``).
    """
    if is_client(spec):
        msg = (
            f"a {type(spec).__name__} says where to ask, and not which model. "
            'Type: ws.Model("name-of-the-model", client=client).'
        )
        raise InputError(msg)
    return Endpoint(spec, throttle=throttle, replies=replies)


def is_client(value: Any) -> bool:
    """Whether a value is a client of the openai package, told without importing it."""
    return any(cls.__module__.split(".")[0] == "openai" for cls in type(value).__mro__)


async def identify(client: Any) -> Model:
    """Return the model behind an ``AsyncOpenAI`` client whose endpoint serves exactly one.

    Raises:
        InputError: It serves several, cannot say which, or the client is not async.
    """
    import openai

    if not isinstance(client, openai.AsyncOpenAI):
        msg = f"{type(client).__name__} cannot be awaited. Type: openai.AsyncOpenAI(...), with the same arguments."
        raise InputError(msg)
    try:
        names = [model.id for model in (await client.models.list()).data]
    except openai.OpenAIError as error:
        names, why = [], f"cannot be asked for its models ({type(error).__name__})"
    else:
        why = f"serves {len(names)} models ({', '.join(names[:5])}{', ...' if len(names) > 5 else ''})"
    if len(names) == 1:
        return Model(names[0], client=client)
    msg = f"the client's endpoint {why}. Type which: ws.Model({(names or ['name'])[0]!r}, client=client)."
    raise InputError(msg)


def price_of(model: Model) -> Price | None:
    """Return a resolved model's price: its own, else the listed one of its provider, else None."""
    if model.price is not None:
        return Price(tokens_in=model.price[0], tokens_out=model.price[1])
    if model.provider == "openai":
        return find_price(model.name)
    if model.provider == "azure":
        return find_price(f"azure/{model.name}")
    if model.provider in ("anthropic", "litellm"):
        return find_price(model.name, model.name.partition("/")[2])
    return None  # a server of one's own may give any name to any model


async def preflight(roles: Mapping[str, Chat], tools: Sequence[Mapping[str, Any]] = ()) -> Usage:
    """Ask each role's endpoint once, so that a run that cannot work fails before it begins.

    Args:
        roles: Role to chat; what is no ``Endpoint`` is left alone.
        tools: Sent with the call to the ``agent``: an endpoint without tools is found out here.

    Returns:
        What the calls used.

    Raises:
        RunError: A role's endpoint does not answer; names the role and the cause.
    """
    used = Usage()
    for role, chat in roles.items():
        if not isinstance(chat, Endpoint):
            continue
        try:
            reply = await chat.probe(tools if role == "agent" else ())
        except ModelError as error:
            msg = f"the {role}'s model does not answer, so nothing was played ({error.reason}). {error}"
            raise RunError(msg) from error
        used += reply.usage
    return used
