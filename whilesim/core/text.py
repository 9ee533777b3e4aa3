"""Text: small operations that several houses share."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from functools import lru_cache

_WORD = re.compile(r"\w+(?:['’]\w+)*", re.UNICODE)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def digest(text: str, length: int = 16) -> str:
    """Return the first ``length`` hexadecimal digits of the text's SHA-256."""
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:length]


def fold(text: str) -> str:
    """Return the text in compatibility form, lower case, with single spaces."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def words(text: str) -> list[str]:
    """Return the words of the text in order, lower case, inner apostrophes kept."""
    return _WORD.findall(text.casefold())


def name_words(name: str) -> list[str]:
    """Split an identifier into lower-case words: ``getOrder_byId`` is get, order, by, id."""
    return list(_name_words(name))


def shorten(text: str, limit: int = 80) -> str:
    """Return the text on one line, cut to ``limit`` characters with an ellipsis."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


@lru_cache(maxsize=8192)
def _name_words(name: str) -> tuple[str, ...]:
    return tuple(w.lower() for w in re.split(r"[^A-Za-z0-9]+", _CAMEL.sub("_", name)) if w)
