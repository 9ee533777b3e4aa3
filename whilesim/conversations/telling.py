"""Telling: how a scripted agent asks for an argument, and what it makes of a reply and a message."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from whilesim.conversations.arguments import Known, rows
from whilesim.conversations.intent import sentences
from whilesim.conversations.reading import leaves
from whilesim.conversations.said import wanted
from whilesim.conversations.wording import listed, plain, spoken
from whilesim.core.text import name_words, shorten, words


def asked_for(name: str, schema: Mapping[str, Any]) -> str:
    """Name an argument as one asks a customer for it, with the choices where they are few."""
    want, parts = wanted(name, schema), name_words(name)
    if parts[0] == "new" and parts[-1] in ("id", "ids"):
        return f"the {' '.join(parts[1:-1])}{'s' if parts[-1] == 'ids' else ''} that you would like instead"
    if parts[-1] == "ids":
        return f"the {' '.join(parts[:-1])}s"
    choices = f" ({' or '.join(want.options)})".replace("_", " ") if 1 < len(want.options) < 6 else ""
    return f"the {plain(name)}{choices}"


def asking(text: str) -> str:
    """Return the sentence of a message in which the customer asks for something."""
    parts = sentences(text)
    asks = r"\b(?:can|could|please|want|like|rather|need|check|look)\b"
    return next((p for p in parts if re.search(asks, p, re.I)), max(parts, key=len))


def closes(text: str) -> bool:
    """Say whether an agent's words settle a request: they ask nothing."""
    return "?" not in text and not re.search(r"\bI (?:also )?need (?:the|to know)\b", text)


def facts_of(data: Any, request: str, known: Known) -> str:
    """Name up to five plain facts of a reply, those first that the request speaks of."""
    if not isinstance(data, (Mapping, list)):
        return shorten(spoken(data), 200)
    if isinstance(data, list) and data and not isinstance(data[0], Mapping):
        return shorten(listed([spoken(v) for v in data[:8]]), 200)
    if isinstance(data, list):
        told = [r for r in data if any(len(str(v)) > 2 and known.was_said(v) for row in rows(r) for v in row.values())]
        if not told and len(data) > 1:
            names = [" ".join(spoken(v) for _, v in list(leaves(r))[:2]) for r in data]
            return shorten("; ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else ""), 240)
        data = told[0] if told else data
    seen: dict[str, str] = {}
    for path, value in leaves(data):
        dull = not path or isinstance(value, bool) or value in (None, "") or path[-1].endswith("_at") or "notes" in path
        if not dull:
            seen.setdefault(plain(path[-1]), spoken(value))
    heard = set(words(request))
    first = sorted(seen, key=lambda k: -len(heard & set(words(k))))
    return ", ".join(f"{k} {seen[k]}" for k in first[:5])
