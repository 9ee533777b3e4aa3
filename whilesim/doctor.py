"""Doctor: what is here: versions, keys, endpoints, embedder, prices. A key is set or not, and never shown."""

from __future__ import annotations

import os
import platform
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib import metadata
from typing import Any

from whilesim import __version__
from whilesim.cards.embeddings import MODEL, choose_embedder
from whilesim.chat.endpoint import Endpoint, price_of
from whilesim.chat.loop import run
from whilesim.chat.messages import Message
from whilesim.chat.models import PROVIDERS, Model, resolve_model
from whilesim.chat.throttle import Throttle
from whilesim.core.errors import InputError, ModelError

_PATIENCE = 10.0  # seconds for one request
_TOKENS = 16  # of an answer: fewer are refused by some endpoints


def examine(models: Sequence[Model] = ()) -> dict[str, Any]:
    """Look around, and ask each model once; without models, each provider that the environment names for one it lacks."""
    from huggingface_hub import get_token

    known = [n for n, p in PROVIDERS.items() if os.environ.get(p.url_from) or os.environ.get(p.key_from)]
    return {
        "whilesim": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(terse=True),
        "packages": dict(_packages()),
        "keys": {p.key_from: bool(os.environ.get(p.key_from)) for p in PROVIDERS.values() if p.key_from},
        "hub_token": get_token() is not None,
        "embedder": choose_embedder(),
        "models": [run(_ask(m)) for m in models] or [run(_ask(Model(f"{n}:any"), named=False)) for n in known],
    }


def tell(found: Mapping[str, Any]) -> str:
    """Return what ``examine`` found as a table."""
    lines = [f"whilesim {found['whilesim']}, Python {found['python']}, {found['platform']}", "", "packages"]
    for name, told in found["packages"].items():
        absent = f'not installed; pip install "whilesim[{told["extra"]}]"' if told["extra"] else "NOT INSTALLED"
        lines.append(f"  {name:<24}{told['version'] or absent}")
    lines += ["", "keys", *(f"  {name:<24}{'set' if there else 'not set'}" for name, there in found["keys"].items())]
    lines.append(f"  {'token for the Hub':<24}{'there' if found['hub_token'] else 'none; type hf auth login'}")
    by = "by meaning" if found["embedder"] == MODEL else "by spelling; sentence-transformers and its model are not here"
    lines += ["", f"embedder  {found['embedder']} ({by})", "", "models"]
    for one in found["models"]:
        lines += [f"  {one['model']} at {one['where']}", f"    {one['said']}"]
        if one["named"]:
            cost = "${:g} in, ${:g} out per million tokens".format(*one["price"]) if one["price"] else "unknown"
            lines.append(f"    price: {cost}")
    return "\n".join(lines if found["models"] else [*lines, "  none is known; type --agent openai:gpt-4.1-mini"])


def _packages() -> Iterator[tuple[str, dict[str, str]]]:
    """Yield what the package needs, then what its extras need, each with its version or an empty text."""
    for line in metadata.requires("whilesim") or ():
        name, extra = re.findall(r"^[\w.-]+|(?<=extra == .)\w+|$", line)[:2]
        version = ""
        with suppress(metadata.PackageNotFoundError):
            version = metadata.version(name)
        if extra not in ("test", "dev"):
            yield name, {"version": version, "extra": extra}


async def _ask(asked: Model, *, named: bool = True) -> dict[str, Any]:
    """Send one short request; an endpoint that answers 'no such model' is there and takes the key."""
    told = {"model": asked.name, "where": "nowhere", "named": named, "answers": False, "price": None}
    try:
        model = replace(resolve_model(asked), max_tokens=_TOKENS, timeout=_PATIENCE)
    except InputError as error:
        return {**told, "said": str(error)}
    price = price_of(model)
    told |= {"where": model.host, "price": price and [round(price.tokens_in, 6), round(price.tokens_out, 6)]}
    began = time.monotonic()
    try:
        async with Endpoint(model, throttle=Throttle(retry_for=0.0)) as endpoint:
            await endpoint.reply([Message(role="user", content="Say OK.")])
            return {**told, "answers": True, "said": f"answers in {time.monotonic() - began:.1f} s"}
    except ModelError as error:
        if error.reason == "bad_request" and not named:
            return {**told, "answers": True, "said": "is there, and takes the key"}
        return {**told, "said": f"does not answer ({error.reason}): {error}"}
