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
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import astuple
from typing import Any

from whilesim.chat.bridge import find_price
from whilesim.chat.failures import CallFailed, says
from whilesim.chat.messages import Message
from whilesim.chat.models import THROUGH_LITELLM, CallKey, Model, Reply, Schema, Tools, resolve_model
from whilesim.chat.replies import Replies, reply_key
from whilesim.chat.throttle import Throttle, bound_of
from whilesim.chat.transport import Transport
from whilesim.chat.usage import Price, Usage
from whilesim.chat.wire import Writer, read_reply
from whilesim.core.errors import InputError, ModelError
from whilesim.core.seeds import derive
from whilesim.core.text import shorten

log = logging.getLogger(__name__)

_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0  # seconds; doubled at each attempt
_UNREADABLE = 5  # attempts at an answer that cannot be read: each may be billed
_LEFT_OUT = ("tools", "schema", "max_tokens", "temperature")  # where an endpoint does not know them
PROBE = CallKey(role="preflight")
"""The key of a role's first call: the reply cache is not looked into."""
_SOME_CALL = CallKey()
_PROBING = 10.0  # seconds for failed attempts at a role's first call


class Endpoint(AbstractAsyncContextManager["Endpoint"]):
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

    async def reply(
        self, messages: Sequence[Message], tools: Tools = (), *, schema: Schema | None = None, key: CallKey = _SOME_CALL
    ) -> Reply:
        """Answer the messages; see :class:`whilesim.chat.models.Chat`."""
        conversation = (key.case, key.rollout, key.role) if key.case else None
        # a first call asks whether anybody is there now: what was kept does not say
        replies, patience = (None, _PROBING) if key == PROBE else (self._replies, self.throttle.retry_for)
        reasons, spent = list[str](), 0.0  # of the attempts that failed
        while True:
            lacks = frozenset(self._lacks)
            body = self._writer.write(messages, tools, schema, conversation)
            action = "tools" in lacks and bool(tools)
            name = b"" if replies is None else reply_key(body, key)
            if replies is not None and (kept := replies.get(name)) is not None:
                return self._read(kept, action)
            try:
                raw, reply = await self._attempt(body, action)
            except CallFailed as failure:
                if self._adapt(failure, lacks):
                    continue
                reasons.append(failure.reason)
                pause = self._pause(failure, reasons, key)
                spent += failure.seconds + pause
                if spent > patience:
                    msg = f"{failure} Given up after {len(reasons)} attempts."
                    raise ModelError(msg, reason=failure.reason) from failure
                await self.throttle.sleep(pause)
                continue
            if replies is not None:
                replies.put(name, raw)
            return reply

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.close()

    async def _attempt(self, body: bytes, action: bool) -> tuple[bytes, Reply]:
        """Ask once, within the budget; return the answer as bytes and as read."""
        usd, tokens = bound_of(body, self.model.max_tokens, self.price)
        await self.throttle.reserve(usd, tokens)
        used: Usage | None = Usage(calls=1)  # a call that is cut off may be billed all the same
        try:
            reply = self._read(raw := await self._send(body), action)
            used = reply.usage
        except CallFailed as failure:
            used = used if failure.billed else None
            raise
        finally:
            self.throttle.settle(usd, tokens, used)
        self.throttle.answered(used)
        return raw, reply

    async def _send(self, body: bytes) -> bytes:
        """Send once, in a slot; the time limit begins there: waiting for a slot is not asking."""
        self.throttle.check()
        await self._slots.take()
        began = time.monotonic()
        try:
            raw = await self._transport.send(body, min(self.model.timeout, self.throttle.check()))
        except CallFailed as failure:
            failure.seconds = time.monotonic() - began
            self.throttle.check()  # a budget of seconds that cut the request short is not the endpoint's fault
            refused = failure.reason == "rate_limit" and not failure.final
            if refused or failure.reason == "timeout":
                self._slots.strained(refused=refused, retry_after=failure.retry_after)
            raise
        finally:
            self._slots.give_back()
        self._slots.answered(time.monotonic() - began)
        return raw

    def _read(self, raw: bytes, action: bool) -> Reply:
        return read_reply(raw, where=self._transport.where, price=self.price, action=action)

    def _pause(self, failure: CallFailed, reasons: Sequence[str], key: CallKey) -> float:
        """Return the seconds to wait before the next attempt, or raise when none can help."""
        self.throttle.failed(failure)
        attempt = len(reasons) - 1
        if failure.final or reasons.count("malformed_reply") >= _UNREADABLE:
            raise failure
        jitter = derive(self.throttle.seed, "pause", *astuple(key), attempt) / (1 << 63)
        if failure.retry_after:
            return failure.retry_after * (1 + jitter / 4)
        return min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0**attempt) * (0.5 + jitter / 2)

    def _new_writer(self) -> Writer:
        model, lacks = self.model, self._lacks
        most = "max_completion_tokens" if "max_tokens" in lacks else "max_tokens"
        heat = None if "temperature" in lacks else model.temperature
        told = {"model": model.name, "temperature": heat, most: model.max_tokens}
        fields = {name: value for name, value in told.items() if value is not None}
        return Writer(fields | dict(model.extra), json_actions="tools" in lacks, schemas="schema" not in lacks)

    def _adapt(self, failure: CallFailed, lacks: frozenset[str]) -> bool:
        """Leave out a field that an endpoint says it does not know; False when it says no such thing.

        ``lacks`` is what had been left out already when it was asked.
        """
        for field in _LEFT_OUT if failure.reason in ("bad_request", "server") else ():
            needed = field == "tools" and self.model.tool_mode == "native"
            if field not in lacks and not needed and says(str(failure), f"no_{field}"):
                if field not in self._lacks:  # another call may have found out meanwhile
                    self._lacks.add(field)
                    self._writer = self._new_writer()
                    log.warning("%s is asked without %s: %s", self._transport.where, field, failure)
                return True
        return False

    def _check_budget(self) -> None:
        budget, model = self.throttle.budget, self.model
        if budget.usd is not None and self.price is None:
            typed = f"Type: ws.Model({model.name!r}, price=(0.1, 0.4)), dollars per million tokens in and out."
            raise InputError(f"the price of {model.name!r} is unknown, so a budget in dollars cannot be kept. {typed}")
        if (budget.usd is not None or budget.tokens is not None) and model.max_tokens is None:
            msg = f"max_tokens of {model.name!r} is None, so no call's cost is bounded and the budget cannot be kept. "
            raise InputError(msg + "Type: ws.Model(..., max_tokens=1024).")


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
        why = f"serves {len(names)} models ({shorten(', '.join(names))})"
    except openai.OpenAIError as error:
        names, why = [], f"cannot be asked for its models ({type(error).__name__})"
    if len(names) == 1:
        return Model(names[0], client=client)
    raise InputError(f"the client's endpoint {why}. Type which: ws.Model({(names or ['name'])[0]!r}, client=client).")


def price_of(model: Model) -> Price | None:
    """Return a resolved model's price: its own, else the listed one of its provider, else None."""
    if model.price is not None:
        return Price(tokens_in=model.price[0], tokens_out=model.price[1])
    return find_price(*listed_as(model))


def listed_as(model: Model) -> tuple[str, ...]:
    """Return the names under which litellm's table may list a resolved model."""
    if model.provider not in ("openai", "azure", *THROUGH_LITELLM):
        return ()  # a server of one's own may give any name to any model
    return ("azure/" if model.provider == "azure" else "") + model.name, model.name.partition("/")[2]
