"""Models: which model, where, with which parameters; and the one seam to it.

A ``Model`` is a value: it opens nothing. ``Chat`` is the seam that players, writers and
judges hold: an endpoint implements it, and so does a fake of a few lines.

``resolve_model`` turns what a person types into a model with an address and a key. A key is
sent to the provider it belongs to, or to the address that it was given with; never elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, get_args
from urllib.parse import urlsplit

from whilesim.chat.bridge import find_provider, missing_keys
from whilesim.chat.messages import Message
from whilesim.chat.usage import Usage
from whilesim.core.errors import InputError
from whilesim.core.keys import place_of, scrub
from whilesim.core.templates import load_words

ToolMode = Literal["auto", "native", "json"]
Tools = Sequence[Mapping[str, Any]]
"""Tools in OpenAI's wrapped form."""
Schema = Mapping[str, Any]
"""A JSON schema."""


@dataclass(frozen=True, slots=True)
class Model:
    """A chat model behind an OpenAI-compatible endpoint, or any that litellm knows.

    Args:
        name: ``"provider:model"``, a litellm name ``"provider/model"``, or with ``base_url``
            the name that the server knows.
        price: Dollars per million tokens, (in, out); None is unknown.
        timeout: Seconds for one request, waiting in our own queue not counted.
        tool_mode: ``native`` sends tools as tools, ``json`` asks for an action as a JSON
            schema, ``auto`` tries native first.
        extra: Further fields of the request's body.
        window: Tokens that the model can read; None looks it up where the model is listed.
        client: An ``AsyncOpenAI`` client to send through, instead of an address and a key.
        provider: Which row of the provider table this is; ``resolve_model`` fills it in.
    """

    name: str
    base_url: str | None = None
    api_key: str | None = None
    temperature: float | None = 0.7
    max_tokens: int | None = 1024
    tool_mode: ToolMode = "auto"
    price: tuple[float, float] | None = None
    timeout: float = 120.0
    extra: Mapping[str, Any] = field(default_factory=dict)
    client: Any = None
    window: int | None = None
    provider: str = ""

    @property
    def fingerprint(self) -> dict[str, Any]:
        """What decides the model's answers, as JSON: never its key, host, price or timeout."""
        names = ("name", "temperature", "max_tokens", "tool_mode")
        return {name: getattr(self, name) for name in names} | {"extra": scrub(self.extra)}

    def __repr__(self) -> str:
        shown = {**self.fingerprint, "host": self.host, "price": self.price}
        return f"Model({', '.join(f'{name}={value!r}' for name, value in shown.items())})"

    @property
    def host(self) -> str:
        """Where the model answers, without a key that the address may hold; for messages."""
        parts = urlsplit(self.base_url or str(getattr(self.client, "base_url", "")))
        return (f"{parts.hostname}:{parts.port}" if parts.port else parts.hostname) or self.provider or "its endpoint"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallKey:
    """Which call of a run this is: with the request's digest, the key of the reply cache."""

    case: str = ""
    rollout: int = 0
    role: str = ""
    turn: int = 0
    sample: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One model's answer: a message, and what it cost."""

    message: Message
    usage: Usage = Usage(calls=1)


class Chat(Protocol):
    """The seam to a model."""

    async def reply(
        self, messages: Sequence[Message], tools: Tools = (), *, schema: Schema | None = None, key: CallKey = CallKey()
    ) -> Reply:
        """Answer the messages.

        Args:
            tools: Wrapped OpenAI tools the model may call.
            schema: A JSON schema that the content must follow, where the endpoint can.
            key: Which call this is; the same request under another key is another call.

        Raises:
            ModelError: The endpoint failed, after its retries.
        """


@dataclass(frozen=True, slots=True)
class Provider:
    """One row of the provider table: where it answers and which variables it reads."""

    url: str = ""
    url_from: str = ""
    """Environment variable with another address."""
    key_from: str = ""
    needs_key: bool = True
    path: str = "/v1"
    """What follows an address from the environment that names a host only."""


PROVIDERS = {name: Provider(**row) for name, row in load_words("endpoints")["providers"].items()}
THROUGH_LITELLM = frozenset({"anthropic", "litellm"})
"""Providers that do not speak OpenAI's protocol; every ``provider/model`` is ``litellm``."""


def resolve_model(spec: str | Model) -> Model:
    """Find a model's address and key; a model that has been resolved comes back equal.

    Args:
        spec: ``"provider:model"``, a litellm name ``"provider/model"``, or a ``Model``. With a
            ``base_url`` its name is what the server knows.

    Raises:
        InputError: The provider is unknown, its key or address is missing, or a parameter
            cannot be used. Nothing has been sent.
    """
    if not isinstance(spec, (str, Model)):
        typed = 'Type: "openai:gpt-4.1-mini", or for a client: ws.Model("name-of-the-model", client=client).'
        raise InputError(f"a model is {type(spec).__name__}; it must be text or ws.Model. {typed}")
    model = Model(spec) if isinstance(spec, str) else spec
    _check(model)
    prefix, colon, rest = model.name.partition(":")
    if model.provider:
        return model
    if model.client is not None:
        return replace(model, provider="client")
    if colon and prefix in PROVIDERS:
        return _from_table(replace(model, name=rest.strip()), prefix)
    if model.base_url is not None and not model.name.startswith("hosted_vllm/"):  # no server has models of that name
        url, owners = _clean(model.base_url), {provider.url: provider.key_from for provider in PROVIDERS.values()}
        key = model.api_key or os.environ.get(owners.get(url, "")) or None
        return replace(model, base_url=url, api_key=key, provider="address")
    if "/" in model.name:
        return _from_litellm(model)
    known = ", ".join(f"{name}:" for name in PROVIDERS)
    typed = f'{known} before it ("openai:gpt-4.1-mini"), a litellm name ("groq/llama-3.3-70b-versatile"), or '
    typed += 'ws.Model(name, base_url="http://host:port/v1").'
    raise InputError(f"the model {model.name!r} names no provider. Type one of {typed}")


def _from_table(model: Model, name: str) -> Model:
    provider = PROVIDERS[name]
    if not model.name:
        raise InputError(f"{name + ':'!r} names no model. Type the model behind the colon.")
    if name == "litellm":
        return _from_litellm(model)
    key = model.api_key or os.environ.get(provider.key_from) or None
    url = model.base_url or _environment_url(provider) or provider.url
    if key is None and provider.needs_key and model.base_url is None:
        typed = f"Type: export {provider.key_from}=..., or pass ws.Model(..., api_key=...)."
        raise InputError(f"{name}:{model.name} needs a key, and {provider.key_from} is not set. {typed}")
    if name in THROUGH_LITELLM:
        model = replace(model, name=f"{name}/{model.name}")
    elif not url:
        raise InputError(f"{name}:{model.name} needs an address. Type: export {provider.url_from}=https://...")
    return replace(model, base_url=_clean(url) if url else None, api_key=key, provider=name)


def _from_litellm(model: Model) -> Model:
    if find_provider(model.name) is None:
        msg = f'no provider is known for the model {model.name!r}. Type provider:model, a litellm name "provider/model"'
        raise InputError(f"{msg}, or give the server's address: ws.Model({model.name!r}, base_url=...).")
    if model.api_key is None and model.base_url is None and (missing := missing_keys(model.name)):
        raise InputError(f"{model.name!r} needs {' and '.join(missing)}. Type: export {missing[0]}=...")
    return replace(model, provider="litellm")


def _environment_url(provider: Provider) -> str:
    url = os.environ.get(provider.url_from, "").strip()
    if url and "://" not in url:  # OLLAMA_HOST is written as host:port
        url = f"http://{url.replace('0.0.0.0', '127.0.0.1')}"  # noqa: S104  a server's address, read as a client
    return url.rstrip("/") + provider.path if url and urlsplit(url).path in ("", "/") else url


def _clean(url: str) -> str:
    if (parts := urlsplit(url)).scheme not in ("http", "https") or not parts.hostname:
        raise InputError(f'the address {place_of(url)!r} is no URL. Type: base_url="http://host:port/v1"')
    return parts._replace(path=parts.path.rstrip("/").removesuffix("/chat/completions")).geturl()


def _check(model: Model) -> None:
    most, price = model.max_tokens, model.price
    rules = [
        ("name", model.name.strip(), 'a name: "openai:gpt-4.1-mini".'),
        ("timeout", model.timeout > 0, "seconds above 0."),
        ("max_tokens", most is None or most >= 1, "1 or more, or None for the endpoint's own limit."),
        ("price", price is None or min(price) >= 0, "dollars per million tokens, in and out: price=(0.1, 0.4)."),
        ("tool_mode", model.tool_mode in get_args(ToolMode), '"auto", "native" or "json".'),
    ]
    for name, holds, wanted in rules:
        if not holds:
            raise InputError(f"{name}={getattr(model, name)!r} cannot be used for a model. Type {wanted}")
