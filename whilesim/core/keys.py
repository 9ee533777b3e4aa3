"""Keys: what must never be seen, taken out of texts before anyone keeps them.

What stands in a variable or an address is known and is replaced wherever it turns up; so are a
provider's keys by what they look like. A key that nobody here was told of cannot be recognised.
"""

from __future__ import annotations

import os
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

_NAME = re.compile(r"api[-_]?key|authorization|password|secret|access[-_]?token|(?:^|[-_])(?:key|token|auth)$", re.I)
_LOOKS = re.compile(r"\b(?:sk-[\w-]{8,}|hf_\w{8,}|AKIA\w{12,}|Bearer\s+[\w.-]{8,})")
_LEAST = 8  # characters: what is shorter (ollama, EMPTY) is a word that a local server is content with
HIDDEN = "***"


def known_keys(*given: Any, url: str | None = None, named: Mapping[str, Any] | None = None) -> tuple[str, ...]:
    """Return what must not be seen, the longest first.

    Args:
        given: Keys; what is no text is left out.
        url: An address that may hold a password, or a key in its query.
        named: Headers or variables: those whose name says that they hold a key.
    """
    parts = urlsplit(url or "")
    query = [pair.partition("=")[::2] for pair in parts.query.split("&")]
    pairs = [*(named or {}).items(), *parse_qsl(parts.query), *query]
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    basic = b64encode(f"{user}:{password}".encode()).decode() if password else ""  # as it stands in a header
    found = [*given, parts.password, password, basic, *(v for n, v in pairs if _NAME.search(n))]
    texts = {v.removeprefix("Bearer ") for v in found if isinstance(v, str)}
    return tuple(sorted((v for v in texts if len(v) >= _LEAST), key=lambda v: (-len(v), v)))


def hide(text: str, keys: Iterable[str] | None = None) -> str:
    """Return a text without keys; None for those of the environment."""
    for key in known_keys(named=os.environ) if keys is None else keys:
        text = text.replace(key, HIDDEN)
    return text


def place_of(url: str) -> str:
    """Return an address without password and query: what may be shown."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def scrub(value: Any, levels: int = 100) -> Any:
    """Take keys out of nested values: by the name they stand under, and by what they look like.

    What lies deeper than so many levels is hidden whole.
    """
    if levels < 0:
        return HIDDEN
    if isinstance(value, Mapping):
        named = {k for k, v in value.items() if v and isinstance(v, str) and _NAME.search(str(k))}
        return {k: HIDDEN if k in named else scrub(v, levels - 1) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [scrub(v, levels - 1) for v in value]
    return _LOOKS.sub(HIDDEN, value) if isinstance(value, str) else value
