"""Stub: a chat model's endpoint on loopback, which fails as it is told to.

It speaks the OpenAI chat completion protocol over a small HTTP server of its own (an asyncio
protocol: some 20,000 requests a second, so that a benchmark measures the client).

    with Stub(plan=[refuse(429, retry_after=1)]) as stub:     # the first request is refused
        Model("m", base_url=stub.url)

    python tests/stub.py --latency 0.05                       # a process of its own; prints its address
"""

from __future__ import annotations

import argparse
import asyncio
import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["status", "hang", "reset", "disconnect", "cut", "truncated", "drip", "raw"]


@dataclass(frozen=True)
class Fault:
    """What to do to a request instead of answering it."""

    kind: Kind
    status: int = 500
    headers: Mapping[str, str] = field(default_factory=dict)
    text: str = ""
    seconds: float = 0.5
    """Between two bytes of a drip."""


HANG, RESET, DISCONNECT = Fault("hang"), Fault("reset"), Fault("disconnect")
CUT, TRUNCATED, DRIP = Fault("cut"), Fault("truncated"), Fault("drip")
"""Reset in the middle of the body; half a body as if it were whole; a byte now and then."""
Plan = Callable[[int, dict[str, Any]], Fault | None] | Sequence[Fault | None]
Answer = Callable[[dict[str, Any]], Any]


def refuse(status: int, text: str = "no", *, retry_after: Any = None, **headers: str) -> Fault:
    """Answer with a status and an error in OpenAI's form."""
    if retry_after is not None:
        headers["Retry-After"] = str(retry_after)
    return Fault("status", status, headers, json.dumps({"error": {"message": text, "code": None}}))


def say_raw(text: str, **headers: str) -> Fault:
    """Answer with status 200 and this body."""
    return Fault("raw", 200, headers, text=text)


def answer_plainly(body: dict[str, Any]) -> Any:
    """Answer a schema with a value that fits it, a customer with a call, everything else with a sentence."""
    wanted = body.get("response_format")
    if wanted and "json_schema" in wanted:
        return json.dumps(fit(wanted["json_schema"]["schema"]))
    messages = body["messages"]
    if body.get("tools") and messages and messages[-1]["role"] == "user":
        function = body["tools"][0]["function"]
        arguments = json.dumps(fit(function.get("parameters") or {"type": "object"}))
        call = {"id": f"call_{len(messages)}", "type": "function"}
        return {"tool_calls": [{**call, "function": {"name": function["name"], "arguments": arguments}}]}
    return f"This is answer {len(messages)}."


def fit(schema: Mapping[str, Any]) -> Any:
    """Return the smallest value that fits a simple schema."""
    for word in ("anyOf", "oneOf"):
        if word in schema:
            return fit(schema[word][0])
    if "enum" in schema:
        return schema["enum"][0]
    if "const" in schema:
        return schema["const"]
    kind = schema.get("type", "object")
    if kind == "object":
        fields = schema.get("properties", {})
        return {name: fit(fields[name]) for name in schema.get("required", ()) if name in fields}
    return {"string": "text", "integer": 1, "number": 1.5, "boolean": True, "array": [], "null": None}[kind]


class Stub:
    """The server. What it saw is in ``bodies`` (parsed), ``headers``, ``times`` and ``count``.

    Args:
        answer: From a request's body to a content, or to a message's fields (``finish`` is its
            finish_reason), or bytes: a whole body that is ready.
        plan: What goes wrong: for the n-th request (from 0), or a list used up one by one.
        latency: Seconds before each answer; a callable gets the number of requests under way.
        capacity: More requests than this at a time are refused with 429.
        key: When given, any other key is refused with 401.
        record: Keep the bodies; a long benchmark does not want them.
        ready: From a request's bytes to an answer's: nothing is parsed, and ``answer`` is not used.
    """

    def __init__(
        self,
        answer: Answer | bytes = answer_plainly,
        *,
        plan: Plan = (),
        latency: float | Callable[[int], float] = 0.0,
        capacity: int | None = None,
        key: str | None = None,
        record: bool = True,
        models: Sequence[str] = ("stub",),
        ready: Callable[[bytes], bytes] | None = None,
    ) -> None:
        self.ready = (lambda _: answer) if isinstance(answer, bytes) and not record else ready
        self.answer, self.plan, self.latency, self.capacity = answer, plan, latency, capacity
        self.key, self.record, self.models = key, record, list(models)
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.times: list[float] = []
        self.count = self.answered = self.busy = self.most_busy = 0
        self.tokens = 0
        """Tokens that its answers said were used."""
        self.url = ""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._connections: set[_Connection] = set()

    def __enter__(self) -> Stub:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self.start(), self._loop).result(10)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def start(self, port: int = 0) -> None:
        """Listen; for a loop of one's own."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self), "127.0.0.1", port, backlog=1024)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    async def _stop(self) -> None:
        self._server.close()
        for connection in list(self._connections):
            connection.drop()
        tasks = [t for t in asyncio.all_tasks() if t is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def restart(self, seconds: float) -> None:
        """Drop all connections and listen to nobody for so long; from any thread."""
        asyncio.run_coroutine_threadsafe(self._restart(seconds), self._loop)

    async def _restart(self, seconds: float) -> None:
        self._server.close()
        for connection in list(self._connections):
            connection.drop()
        await asyncio.sleep(seconds)
        await self.start(int(self.url.split(":")[2].split("/")[0]))

    def fault(self, number: int, body: dict[str, Any], headers: Mapping[str, str]) -> Fault | None:
        """Return what goes wrong with this request."""
        if self.key is not None and headers.get("authorization") != f"Bearer {self.key}":
            sent = headers.get("authorization", "").removeprefix("Bearer ")
            return refuse(401, f"Incorrect API key provided: {sent}")
        if self.capacity is not None and self.busy > self.capacity:
            return refuse(429, "too many requests", retry_after=0.2)
        if callable(self.plan):
            return self.plan(number, body)
        return self.plan[number] if number < len(self.plan) else None

    def complete(self, body: dict[str, Any], size: int) -> bytes:
        """Return the body of an answer."""
        found = self.answer(body) if callable(self.answer) else self.answer
        if isinstance(found, bytes):
            return found
        message = {"content": found} if found is None or isinstance(found, str) else dict(found)
        finish = message.pop("finish", "tool_calls" if message.get("tool_calls") else "stop")
        usage = message.pop("usage", {"prompt_tokens": size // 4, "completion_tokens": 12})
        self.tokens += (usage or {}).get("prompt_tokens", 0) + (usage or {}).get("completion_tokens", 0)
        message = {"role": "assistant", "content": None, **message}
        choice = {"index": 0, "message": message, "finish_reason": finish}
        whole = {"id": "x", "object": "chat.completion", "created": 0, "model": body.get("model", "stub")}
        return json.dumps({**whole, "choices": [choice], "usage": usage}).encode()


class _Connection(asyncio.Protocol):
    def __init__(self, stub: Stub) -> None:
        self.stub, self.buffer = stub, b""
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.stub._connections.add(self)

    def connection_lost(self, _: Exception | None) -> None:
        self.transport = None
        self.stub._connections.discard(self)

    def drop(self) -> None:
        if self.transport is not None:
            self.transport.abort()

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            lines = self.buffer[:end].decode("latin-1").split("\r\n")
            headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines[1:])}
            length = int(headers.get("content-length", 0))
            if len(self.buffer) < end + 4 + length:
                return
            raw = self.buffer[end + 4 : end + 4 + length]
            self.buffer = self.buffer[end + 4 + length :]
            self.serve(lines[0].split(" ")[1], headers, raw)

    def serve(self, path: str, headers: dict[str, str], raw: bytes) -> None:
        stub = self.stub
        if path.endswith("/models"):
            listed = [{"id": m, "object": "model", "created": 0, "owned_by": "x"} for m in stub.models]
            self.send(200, json.dumps({"object": "list", "data": listed}).encode())
            return
        if path.endswith("/count"):  # for a benchmark whose clients run in processes of their own
            self.send(200, json.dumps({"count": stub.count, "most_busy": stub.most_busy}).encode())
            return
        number, stub.count = stub.count, stub.count + 1
        stub.busy += 1
        stub.most_busy = max(stub.most_busy, stub.busy)
        body: dict[str, Any] = {} if stub.ready else json.loads(raw)
        if stub.record:
            stub.bodies.append(body)
            stub.headers.append(headers)
            stub.times.append(time.monotonic())
        fault = stub.fault(number, body, headers)
        if fault is not None:
            asyncio.get_running_loop().create_task(self.fail(fault, body, len(raw)))
            return
        wait = stub.latency(stub.busy) if callable(stub.latency) else stub.latency
        if wait:
            asyncio.get_running_loop().call_later(wait, self.succeed, body, raw)
        else:
            self.succeed(body, raw)

    def succeed(self, body: dict[str, Any], raw: bytes) -> None:
        self.stub.busy -= 1
        self.stub.answered += 1
        self.send(200, self.stub.ready(raw) if self.stub.ready else self.stub.complete(body, len(raw)))

    async def fail(self, fault: Fault, body: dict[str, Any], size: int) -> None:
        try:
            if fault.kind == "hang":
                await asyncio.sleep(3600)
            elif fault.kind == "reset":
                self.drop()
            elif fault.kind == "disconnect" and self.transport is not None:
                self.transport.close()
            elif fault.kind == "cut":
                whole = self.stub.complete(body, size)
                self.send(200, whole[: len(whole) // 2], length=len(whole))
                await asyncio.sleep(0.01)
                self.drop()
            elif fault.kind == "truncated":
                whole = self.stub.complete(body, size)
                self.send(200, whole[: len(whole) // 2])
            elif fault.kind == "drip":
                await self.drip(self.stub.complete(body, size), fault.seconds)
            else:
                self.send(fault.status, fault.text.encode(), fault.headers)
        finally:
            self.stub.busy -= 1

    async def drip(self, data: bytes, seconds: float) -> None:
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
        for piece in (head.encode(), *(data[i : i + 1] for i in range(len(data)))):
            if self.transport is None:
                return
            self.transport.write(piece)
            await asyncio.sleep(seconds)

    def send(
        self, status: int, data: bytes, headers: Mapping[str, str] | None = None, length: int | None = None
    ) -> None:
        if self.transport is None:
            return
        told = {"Content-Type": "application/json", "Content-Length": len(data) if length is None else length}
        lines = "".join(f"{name}: {value}\r\n" for name, value in {**told, **(headers or {})}.items())
        self.transport.write(f"HTTP/1.1 {status} X\r\n{lines}\r\n".encode() + data)


class Players:
    """Agent and customer of a whole run, told apart by a request's bytes: quick enough for a benchmark.

    The agent calls the first tool, then speaks; a customer has no tools and goes on asking.
    """

    def __init__(self) -> None:
        says = "I have looked at it, and this is what I can tell you about it for now. " * 3
        self._speech = self._write({"content": says})
        self._question = self._write({"content": "All right, and what about the other thing that I asked you about?"})
        self._calls: dict[bytes, bytes] = {}

    def __call__(self, raw: bytes) -> bytes:
        head = raw[: raw.find(b'"messages"')]
        if b'"tools"' not in head:
            return self._question
        last = raw[raw.rfind(b'{"role"') :].split(b'"', 4)[3]
        if last != b"user":
            return self._speech
        if head not in self._calls:
            self._calls[head] = self._write(answer_plainly(json.loads(raw)))
        return self._calls[head]

    def _write(self, message: dict[str, Any]) -> bytes:
        whole = {"usage": {"prompt_tokens": 900, "completion_tokens": 40}, **message}
        return Stub(lambda _: whole).complete({"messages": []}, 0)


async def _serve(options: argparse.Namespace) -> None:
    text = "This is what the model says. " * (options.tokens // 6)
    whole = {"content": text, "usage": {"prompt_tokens": 900, "completion_tokens": options.tokens}}
    ready = Stub(lambda _: whole).complete({"messages": []}, 0)
    refused = refuse(429, retry_after=options.retry_after)
    stub = Stub(
        latency=options.latency,
        record=False,
        ready=Players() if options.play else lambda _: ready,
        plan=(lambda n, _: refused if n * 0.618034 % 1 < options.refuse else None) if options.refuse else (),
    )
    await stub.start(options.port)
    print(stub.url, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency", type=float, default=0.0)
    parser.add_argument("--tokens", type=int, default=180)
    parser.add_argument("--refuse", type=float, default=0.0, help="share of requests answered with 429")
    parser.add_argument("--retry-after", type=float, default=1.0)
    parser.add_argument("--play", action="store_true", help="be agent and customer of a whole run")
    asyncio.run(_serve(parser.parse_args()))
