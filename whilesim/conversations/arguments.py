"""Arguments: values for a tool's call, from what was said and what was read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from whilesim.chat.messages import Message
from whilesim.conversations.reading import Result, leaves, overlap, pairs_said, tokens_in, tokens_said
from whilesim.conversations.wording import is_id
from whilesim.core.text import name_words, shorten
from whilesim.situations.tools import Tool


@dataclass(frozen=True)
class Known:
    """What a script knows in one conversation: the customer's words and the tools' answers."""

    messages: Sequence[Message]
    results: Sequence[Result]
    said: Sequence[str]
    """The customer's messages, the first one first."""

    @cached_property
    def heard(self) -> str:
        """All that the customer wrote, case folded."""
        return " ".join(self.said).casefold()

    @cached_property
    def pairs(self) -> list[tuple[str, str]]:
        """What the customer named, the latest first."""
        return pairs_said(self.messages)

    def fill(self, tool: Tool) -> tuple[dict[str, Any], list[str]]:
        """Fill a tool's arguments from what was said and read; also name what is missing."""
        schema = tool.parameters
        wanted: Sequence[str] = schema.get("required", ())
        found: dict[str, Any] = {}
        for name, part in schema.get("properties", {}).items():
            value = self.find(name, part, tool)
            if value is not None and (name in wanted or self.was_said(value)):
                found[name] = value
        if tool.effect == "handoff":  # what a person is told is the request itself
            texts = [n for n in wanted if schema["properties"].get(n, {}).get("type", "string") == "string"]
            found |= {n: shorten(self._request(), 160) for n in texts if n not in found}
        return found, [name for name in wanted if name not in found]

    def find(self, name: str, part: Mapping[str, Any], tool: Tool) -> Any:
        """Find one argument's value, or None."""
        types = part.get("type", "string")
        kind = next((t for t in types if t != "null"), "string") if isinstance(types, list) else types
        if "enum" in part:
            return self._option(name, part["enum"])
        if kind == "array":
            return self._many(name, part, tool)
        if kind == "object":
            inner = {k: self.find(k, p, tool) for k, p in part.get("properties", {}).items()}
            found = {k: v for k, v in inner.items() if v is not None}
            return found if found and set(part.get("required", ())) <= set(found) else None
        if kind == "boolean":
            return True
        if kind == "string" and is_free_text(name):
            return self._told(name) or self._phrased(name) or shorten(self._request(), 160)
        text = self._from_words(name) or self._from_results(name, tool)
        if kind in ("number", "integer"):
            return _number(text, kind)
        return None if text is None else str(text)

    def _option(self, name: str, options: Sequence[Any]) -> Any:
        heard = self.heard
        named = next((v for n, v in self.pairs if overlap(n, name) >= 0.5), "")
        for text in (named.casefold(), heard):
            hits = [
                o
                for o in options
                if text
                and re.search(rf"(?<!\w){re.escape(str(o).casefold().replace('_', ' '))}(?!\w)", text.replace("_", " "))
            ]
            if hits:
                return hits[0]
        return options[0] if len(options) == 1 else None

    def _many(self, name: str, part: Mapping[str, Any], tool: Tool) -> list[Any] | None:
        items = part.get("items", {})
        single = name[:-1] if name.endswith("s") else name
        named = [v for n, v in self.pairs if overlap(n, single) >= 0.5]
        if items.get("type") == "object":
            one = self.find(single, {**items, "type": "object"}, tool)
            return [one] if one else None
        values = [v.strip() for text in named[:1] for v in re.split(r",| and ", text) if v.strip()]
        if not values and (one := self.find(single, items, tool)) is not None:
            values = [one]
        return values or None

    def _phrased(self, name: str) -> str | None:
        """Return what follows an argument's name up to the next comma or stop: 'reason no longer needed'."""
        for text in self.said:
            if found := re.search(rf"\b{re.escape(name)}[: ]+([^,.;!?\n]{{3,80}})", text, re.I):
                return found.group(1).strip()
        return None

    def _request(self) -> str:
        """Return the sentence in which the customer asks for something."""
        parts = re.split(r"(?<=[.!?])\s+", self.said[0])
        asks = r"\b(?:can|could|please|want|like|rather|need|check|look)\b"
        return next((p for p in parts if re.search(asks, p, re.I)), max(parts, key=len))

    def _told(self, name: str) -> str | None:
        """Return what the customer named like an argument: 'reason: travel'."""
        scored = [(overlap(n, name), -i, v) for i, (n, v) in enumerate(self.pairs)]
        best = max(scored, default=(0.0, 0, ""))
        return best[2] if best[0] >= 0.6 else None

    def _from_words(self, name: str) -> str | None:
        """Take a value from the customer's words: named, or of the shape that the name asks for."""
        parts = name_words(name)
        if told := self._told(name):
            shape = next((s for s in ("email", "phone", "date") if s in parts), "date" if "dob" in parts else "")
            return next(iter(tokens_in(told, shape)), told) if shape else told
        if parts[0] in ("first", "last") and parts[-1] == "name" and (whole := self._told("name")) and " " in whole:
            return whole.split()[0 if parts[0] == "first" else -1]
        for shape in ("email", "phone", "date"):
            if shape in parts or (shape == "date" and "dob" in parts):
                return next(iter(tokens_said(self.messages, shape)), None)
        spoken_of = _spoken_of(tuple(parts))
        for text in reversed(self.said):
            if match := spoken_of.search(text):
                return match.group(1).rstrip(".,!")
        if is_id(name):
            return self._id_near(parts)
        return None

    def _id_near(self, parts: Sequence[str]) -> str | None:
        """Find an id that follows the noun of the argument: 'my order W2210' for order_id."""
        nouns = [p for p in parts if p not in ("id", "ids", "number", "code", "new", "old")]
        for text in reversed(self.said):
            for noun in reversed(nouns):
                match = re.search(
                    rf"\b{re.escape(noun)}\w*\s+(?:id|number|code)?\s*(#?(?=[\w-]*\d)[\w-]{{3,}})", text, re.I
                )
                if match:
                    return match.group(1)
        return None

    def _from_results(self, name: str, tool: Tool) -> Any:
        """Take a value from what was read: the same key, or the id of a record of that kind.

        Of several that fit equally, a reading tool takes one that it has not read yet; any
        other takes the one whose record agrees best with what the customer said.
        """
        fits = self.candidates(name)
        if len(fits) < 2:
            return next(iter(fits), None)
        if tool.effect == "read":
            used = [r.arguments.get(name) for r in self.results if r.call.name == tool.name]
            return next((v for v in fits if v not in used), fits[0])
        return max(fits, key=lambda v: (self.agreement(v), -fits.index(v)))

    def candidates(self, name: str) -> list[Any]:
        """Return the values that were read and fit an argument best, in the order they were read."""
        bare = name.removeprefix("new_").removeprefix("old_")
        scored: dict[Any, float] = {}
        for result in self.results:
            if result.trouble is not None:
                continue
            for path, value in leaves(result.data):
                if path and isinstance(value, (str, int, float)) and value != "":
                    score = self._key_fit(bare, path) + 0.3 * self.was_said(value)
                    scored[value] = max(score, scored.get(value, 0.0))
        best = max(scored.values(), default=0.0)
        return [v for v, score in scored.items() if score >= max(0.9, best - 1e-9)]

    def agreement(self, key: Any) -> int:
        """Count how many of the customer's words stand in the record that was read under a key."""
        record = next((r for r in reversed(self.results) if r.trouble is None and key in r.arguments.values()), None)
        if record is None:
            return 0
        values = {str(v) for _, v in leaves(record.data) if isinstance(v, (str, int, float)) and v != key}
        return sum(len(v) > 2 and self.was_said(v) for v in values)

    def _key_fit(self, name: str, path: tuple[str, ...]) -> float:
        key = path[-1]
        if key in (name, name + "s"):
            return 2.0
        if set(name_words(name)) < set(name_words(key)) and not is_id(name):
            return 0.95  # amount is total_amount
        if key in (name.removesuffix("_id") + "s", name.removesuffix("_id") + "_list") and name.endswith("_id"):
            return 1.8
        if name_words(name)[-1:] == ["id"] and key == "id" and len(path) > 1:
            return 1.5 * overlap(path[-2], name[: -len("_id")])
        if name_words(key) == name_words(name)[1:] and len(name_words(name)) > 1 and len(name_words(key)) > 1:
            return 1.0
        return 0.9 if overlap(key, name) == 1.0 and is_id(key) == is_id(name) and len(name_words(key)) > 1 else 0.0

    def was_said(self, value: Any) -> bool:
        """Say whether the customer wrote a value down."""
        return isinstance(value, (str, int, float)) and str(value).casefold() in self.heard


@lru_cache(maxsize=4096)
def _spoken_of(parts: tuple[str, ...]) -> re.Pattern[str]:
    """Return what finds an argument's value behind its name: 'order id W1', 'full name Ada Low'."""
    value = r"([A-Z][\w'-]+(?: [A-Z][\w'-]+){0,2})" if parts[-1] == "name" else r"([#\w@.+-]+)"
    return re.compile(
        rf"\b(?i:{'[ _-]?'.join(map(re.escape, parts))})\b(?: (?:id|code|number))?\s*(?:is\b|:|=|,)?\s*{value}"
    )


def is_free_text(name: str) -> bool:
    """Say whether an argument takes words of one's own: a reason, a summary."""
    return name_words(name)[-1:][0] in (
        "summary", "reason", "description", "message", "note", "notes", "thought", "comment", "details", "text", "query", "question", "content", "subject", "issue", "problem", "body", "title",
    )  # fmt: skip


def _number(text: Any, kind: str) -> int | float | None:
    found = re.search(r"-?\d+(?:\.\d+)?", str(text)) if text is not None else None
    if found is None:
        return None
    value = float(found.group())
    return int(value) if kind == "integer" or value.is_integer() else value
