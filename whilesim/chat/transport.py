"""Transport: a request's bytes out, the answer's bytes in; three ways.

The common one is a small POST of our own: with the same payload it costs a twentieth of the
CPU of an SDK's ``create``. A client that the user hands in is asked through its ``post``,
so that its keys, headers and proxies serve. What does not speak OpenAI's protocol goes
through litellm.
"""

from __future__ import annotations

import asyncio
import json
import os
import urllib.request
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
from yarl import URL

from whilesim.chat.bridge import complete
from whilesim.chat.failures import CallFailed, read_failure
from whilesim.chat.models import THROUGH_LITELLM, Model
from whilesim.core.jsontext import dumps
from whilesim.core.keys import hide, known_keys

_CONNECT = 30.0  # seconds; SDKs give 5, which a busy server exceeds
_KEEP = 4.0  # seconds an idle connection is kept: uvicorn closes it after 5
_JSON = {"Content-Type": "application/json"}


class Transport:
    """Sends bytes to one model's endpoint, over connections that are kept until ``close``."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.where = f"{model.name!r} at {model.host}"
        self.place = str(model.base_url or (model.client and id(model.client)) or model.provider)
        """What models behind the same endpoint have in common."""
        self._keys = _keys_of(model)
        self._session: aiohttp.ClientSession | None = None
        self._post: Callable[[bytes, float], Awaitable[bytes]] = self._directly
        url = URL(model.base_url or "")
        self._url = url.with_path(f"{url.raw_path.rstrip('/')}/chat/completions", encoded=True).with_query(url.query)
        if model.client is not None:
            self._post = self._through_client
            self._client = model.client.with_options(max_retries=0, timeout=None)  # ours holds
        elif model.provider in THROUGH_LITELLM:
            self._post = self._through_litellm

    async def send(self, body: bytes, seconds: float) -> bytes:
        """Send a request and return the whole answer, ``seconds`` being the limit for both.

        Raises:
            CallFailed: It did not come back as status 200 in time.
        """
        try:
            return self._without_keys(await self._post(body, seconds))
        except (TimeoutError, asyncio.TimeoutError) as error:
            msg = f"{self.where} did not answer within {seconds:.4g} s."
            raise CallFailed(msg, reason="timeout", billed=True) from error
        except CallFailed as failure:
            failure.args = (hide(str(failure), self._keys),)
            raise failure from None

    async def close(self) -> None:
        """Close the connections; the next request opens new ones."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _directly(self, body: bytes, seconds: float) -> bytes:
        if self._session is None:
            key = self._model.api_key or ""
            named = {"api-key": key} if self._model.provider == "azure" else {"Authorization": f"Bearer {key}"}
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=300, keepalive_timeout=_KEEP),
                trust_env=bool(urllib.request.getproxies()),  # looking for proxies costs time on each call
                cookie_jar=aiohttp.DummyCookieJar(),
                headers=_JSON | (named if key else {}),
            )
        limit = aiohttp.ClientTimeout(total=seconds, sock_connect=min(_CONNECT, seconds))
        try:
            async with self._session.post(self._url, data=body, timeout=limit) as answer:
                data, status = await answer.read(), answer.status
        except asyncio.TimeoutError:
            raise
        except (aiohttp.ClientError, OSError) as error:
            raise CallFailed(f"{self.where}: {type(error).__name__}: {error}", reason="connection") from error
        if status == 200:
            return data
        raise read_failure(self.where, status, self._without_keys(data).decode("utf-8", "replace"), answer.headers)

    async def _through_client(self, body: bytes, seconds: float) -> bytes:
        import openai

        # A deployment's path is made from the body's fields, so Azure needs them as a mapping.
        azure = isinstance(self._client, openai.AsyncAzureOpenAI)
        told: dict[str, Any] = {"body": json.loads(body)} if azure else {"content": body}
        told |= {"cast_to": openai.HttpxBinaryResponseContent, "options": {"headers": _JSON}}
        sent = self._client.post("/chat/completions", **told)
        try:
            return bytes((await asyncio.wait_for(sent, seconds)).content)
        except openai.APIConnectionError as error:
            raise CallFailed(f"{self.where}: {error.__cause__ or error}", reason="connection") from error
        except openai.APIStatusError as error:
            text = hide(error.response.text, self._keys)
            raise read_failure(self.where, error.status_code, text, error.response.headers) from error

    async def _through_litellm(self, body: bytes, seconds: float) -> bytes:
        model, fields = self._model, json.loads(body)
        sent = complete(self.where, fields, api_key=model.api_key, base_url=model.base_url, keys=self._keys)
        return dumps(await asyncio.wait_for(sent, seconds)).encode()

    def _without_keys(self, data: bytes) -> bytes:
        """Return an answer without our keys: some servers repeat the key that they were sent."""
        return hide(data.decode("utf-8", "surrogateescape"), self._keys).encode("utf-8", "surrogateescape")


def _keys_of(model: Model) -> tuple[str, ...]:
    headers = {**getattr(model.client, "default_headers", {}), **(model.extra.get("extra_headers") or {})}
    if model.provider in THROUGH_LITELLM:  # it looks for its keys itself
        headers |= os.environ
    return known_keys(model.api_key, getattr(model.client, "api_key", None), url=model.base_url, named=headers)
