"""Transport: a request's bytes out, the answer's bytes in; three ways.

The common one is a small POST of our own: with the same payload it costs a twentieth of the
CPU of an SDK's ``create``. A client that the user hands in is asked through its ``post``,
so that its keys, headers and proxies serve. What does not speak OpenAI's protocol goes
through litellm.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import urllib.request
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from typing import Any

import aiohttp
from yarl import URL

from whilesim.chat.bridge import complete
from whilesim.chat.failures import CallFailed, read_failure
from whilesim.chat.models import THROUGH_LITELLM, Model
from whilesim.core.jsontext import dumps

_CONNECT = 30.0  # seconds; SDKs give 5, which a busy server exceeds
_KEEP = 4.0  # seconds an idle connection is kept: uvicorn closes it after 5


class Transport:
    """Sends bytes to one model's endpoint.

    ``aiohttp`` sessions belong to an event loop: a transport that is used from another loop
    opens a new one.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self.where = f"{model.name!r} at {model.host}"
        self.place = str(model.base_url or (model.client and id(model.client)) or model.provider)
        """What models behind the same endpoint have in common."""
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._post: Callable[[bytes, float], Awaitable[bytes]]
        if model.client is not None:
            self._post = self._through_client
            self._client = model.client.with_options(max_retries=0)
        elif model.provider in THROUGH_LITELLM:
            self._post = self._through_litellm
        else:
            self._post = self._directly
        self._url = URL(f"{model.base_url}/chat/completions")
        self._headers = {"Content-Type": "application/json"}
        if model.api_key:
            name, value = (
                ("api-key", model.api_key)
                if model.provider == "azure"
                else ("Authorization", f"Bearer {model.api_key}")
            )
            self._headers[name] = value

    async def send(self, body: bytes, seconds: float) -> bytes:
        """Send a request and return the whole answer, ``seconds`` being the limit for both.

        Raises:
            CallFailed: It did not come back as status 200 in time.
        """
        try:
            return await self._post(body, seconds)
        except CallFailed as failure:
            raise self._without_key(failure) from None

    async def close(self) -> None:
        """Close the session, if it belongs to the running loop; the others went with theirs."""
        session, self._session = self._session, None
        if session is not None and self._loop is asyncio.get_running_loop():
            await session.close()

    async def _directly(self, body: bytes, seconds: float) -> bytes:
        session = self._open()
        limit = aiohttp.ClientTimeout(total=seconds, sock_connect=min(_CONNECT, seconds))
        try:
            try:
                return await self._once(session, body, limit)
            except aiohttp.ServerDisconnectedError:  # a kept connection that the server had just closed
                return await self._once(session, body, limit)
        except (TimeoutError, asyncio.TimeoutError) as error:
            raise self._too_slow(seconds) from error
        except (aiohttp.ClientError, OSError) as error:
            msg = f"{self.where}: {type(error).__name__}: {error}"
            raise CallFailed(msg, reason="connection") from error

    async def _once(self, session: aiohttp.ClientSession, body: bytes, limit: aiohttp.ClientTimeout) -> bytes:
        async with session.post(self._url, data=body, timeout=limit) as answer:
            data = await answer.read()
            if answer.status == 200:
                return data
            headers = {k.lower(): v for k, v in answer.headers.items()}
            raise read_failure(self.where, answer.status, data.decode("utf-8", "replace"), headers)

    def _open(self) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        if self._session is None or self._loop is not loop:
            self._loop = loop
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=300, keepalive_timeout=_KEEP),
                trust_env=bool(urllib.request.getproxies()),  # looking for proxies costs time on each call
                cookie_jar=aiohttp.DummyCookieJar(),
                headers=self._headers,
            )
        return self._session

    async def _through_client(self, body: bytes, seconds: float) -> bytes:
        import openai

        # A deployment's path is made from the body's fields, so Azure needs them as a mapping.
        azure = isinstance(self._client, openai.AsyncAzureOpenAI)
        content: dict[str, Any] = {"body": json.loads(body)} if azure else {"content": body}
        options = {"headers": {"Content-Type": "application/json"}}
        sent = self._client.post("/chat/completions", cast_to=_response_type(), options=options, **content)
        try:
            answer = await asyncio.wait_for(sent, seconds)
        except (openai.APITimeoutError, TimeoutError, asyncio.TimeoutError) as error:
            if "disconnected" in str(error.__cause__):  # its aiohttp transport calls a reset a timeout
                raise CallFailed(f"{self.where}: {error.__cause__}", reason="connection") from error
            raise self._too_slow(seconds) from error
        except openai.APIConnectionError as error:
            raise CallFailed(f"{self.where}: {error.__cause__ or error}", reason="connection") from error
        except openai.APIStatusError as error:
            headers = {k.lower(): v for k, v in error.response.headers.items()}
            raise read_failure(self.where, error.status_code, error.response.text, headers) from error
        return bytes(answer.content)

    async def _through_litellm(self, body: bytes, seconds: float) -> bytes:
        fields: Mapping[str, Any] = json.loads(body)
        model = self._model
        sent = complete(self.where, fields, api_key=model.api_key, base_url=model.base_url, timeout=model.timeout)
        try:
            return dumps(await asyncio.wait_for(sent, seconds)).encode()
        except (TimeoutError, asyncio.TimeoutError) as error:
            raise self._too_slow(seconds) from error

    def _too_slow(self, seconds: float) -> CallFailed:
        msg = f"{self.where} did not answer within {seconds:.4g} s."
        return CallFailed(msg, reason="timeout", billed=True)

    def _without_key(self, failure: CallFailed) -> CallFailed:
        key = self._model.api_key or getattr(self._model.client, "api_key", None)
        if key and len(key) > 5 and key in str(failure):  # some servers repeat the key they refuse
            failure.args = (str(failure).replace(key, "***"),)
        return failure


@cache
def _response_type() -> Any:
    """Return the response class of the HTTP library that the installed openai stands on."""
    import openai

    return importlib.import_module("httpx2" if int(openai.VERSION.split(".")[0]) >= 3 else "httpx").Response
