"""Bridge: litellm, loaded only for what nothing else can do.

It costs 3 seconds and 186 MB to import, so it serves providers that do not speak OpenAI's
protocol. Prices are read from its table without importing it.
"""

from __future__ import annotations

import importlib.util
import json
import logging
import os
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from whilesim.chat.failures import read_failure
from whilesim.chat.usage import Price
from whilesim.core.keys import hide

_TABLE = "model_prices_and_context_window_backup.json"


@cache
def load_litellm() -> Any:
    """Import litellm: no look-up over the network, nothing printed."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # it is read during the import
    import litellm

    litellm.suppress_debug_info, litellm.telemetry = True, False
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # it prints; its errors reach us as exceptions
    return litellm


def find_provider(name: str) -> str | None:
    """Return the provider in a litellm name, or None when litellm does not know it."""
    litellm = load_litellm()
    try:
        return str(litellm.get_llm_provider(name)[1])
    except litellm.exceptions.BadRequestError:
        return None


def missing_keys(name: str) -> list[str]:
    """Return the environment variables that litellm would need for this model and lacks."""
    found = load_litellm().validate_environment(name)
    return [] if found["keys_in_environment"] else [str(k) for k in found["missing_keys"]]


def find_price(*names: str) -> Price | None:
    """Return the listed price of the first of the names that is listed with one, or None."""
    found = ((entry.get("input_cost_per_token"), entry.get("output_cost_per_token")) for entry in _find_entries(*names))
    priced = (Price(tokens_in=i * 1e6, tokens_out=o * 1e6) for i, o in found if i is not None and o is not None)
    return next(priced, None)


def find_window(*names: str) -> int | None:
    """Return the tokens that the first of the names that is listed can read, or None."""
    found = (entry.get("max_input_tokens") or entry.get("max_tokens") for entry in _find_entries(*names))
    return next((tokens for tokens in found if isinstance(tokens, int)), None)


@cache
def _find_entries(*names: str) -> tuple[Mapping[str, Any], ...]:
    """Return what litellm's table says of names; a model newer than the installed release is unknown."""
    origin = getattr(importlib.util.find_spec("litellm"), "origin", "")
    listed = json.loads(Path(origin).with_name(_TABLE).read_text(encoding="utf-8")) if names else {}
    return tuple(listed[name] for name in names if name in listed)


async def complete(
    where: str, fields: Mapping[str, Any], *, api_key: str | None, base_url: str | None, keys: Sequence[str] = ()
) -> dict[str, Any]:
    """Ask a model through litellm; return the answer in the shape of OpenAI's.

    Args:
        fields: The body of a chat completion request, ``model`` as litellm spells it.
        keys: What an error must not repeat.

    Raises:
        CallFailed: It failed; litellm's own retries are off.
    """
    litellm = load_litellm()
    try:
        answer = await litellm.acompletion(**fields, api_key=api_key, api_base=base_url, max_retries=0, num_retries=0)
    except Exception as error:  # its errors share no base class of their own: sorted by status and name
        headers = getattr(getattr(error, "response", None), "headers", None) or {}
        status, text = getattr(error, "status_code", None), hide(f"{type(error).__name__}: {error}", keys)
        raise read_failure(where, status if isinstance(status, int) else 400, text, headers) from error
    return dict(answer.model_dump())
