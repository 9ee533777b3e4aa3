"""Arguments: values for a tool's call, from what was said and what was read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any

from whilesim.cards.speech import stem
from whilesim.chat.messages import Message
from whilesim.conversations.reading import Result, asks_go_ahead, leaves
from whilesim.conversations.said import Wanted, is_key, option_said, tokens_in, value_said, values_said, wanted
from whilesim.conversations.wording import plain, split_name, target_key
from whilesim.core.seeds import derive, shuffled
from whilesim.core.templates import load_words
from whilesim.core.text import name_words, shorten, words
from whilesim.situations.schemas import first_form
from whilesim.situations.tools import Tool
from whilesim.world.attributes import singular
from whilesim.world.kinds import is_parameter, role_of
from whilesim.world.targets import named_field
from whilesim.world.verbs import deed_of_verb

_OF_RECORDS = ("money", "email", "phone", "full_name", "first_name", "last_name", "dob")
"""What a write takes from records as they are; any other value is the customer's to say."""
_PLACES = ("street", "unit", "city", "state", "country", "zip")
_NEW_PLACE = re.compile(r"\bnew (?:street|apartment|city|state|country|zip|address)")
_BESIDE = re.compile(
    r"(?:[\w ']{4,25}: )?(?:my|the) [\w ]{2,30}? (?:is|are|would be) |you can reach me|i was born", re.I
)
_GENERAL = {stem(w) for w in ("general", "other", "support", "default", "customer", "service")}
_BY_SHAPE = ("email", "phone", "sum", "url")


@dataclass(frozen=True)
class Known:
    """What a script knows in one conversation: the customer's words and the tools' answers."""

    messages: Sequence[Message]
    results: Sequence[Result]
    said: Sequence[str]
    """The customer's messages, slips of the key put right, the first one first."""
    request: str
    """The sentence that asks for something."""
    filled: dict[str, tuple[dict[str, Any], list[str]]] = field(default_factory=dict)
    """What ``fill`` has found, by tool."""

    @cached_property
    def heard(self) -> str:
        """All that the customer wrote, case folded."""
        return " ".join(self.said).casefold()

    @cached_property
    def read(self) -> list[Result]:
        """The answers that were no trouble."""
        return [r for r in self.results if r.trouble is None]

    def fill(self, tool: Tool) -> tuple[dict[str, Any], list[str]]:
        """Fill a tool's arguments from what was said and read; also name what is missing."""
        if tool.name not in self.filled:
            self.filled[tool.name] = self._fill(tool)
        found, missing = self.filled[tool.name]
        return dict(found), missing

    def _fill(self, tool: Tool) -> tuple[dict[str, Any], list[str]]:
        schema = first_form(dict(tool.parameters))
        wants: Sequence[str] = schema.get("required", ())
        found: dict[str, Any] = {}
        for name, part in schema.get("properties", {}).items():
            if name not in wants and is_parameter(name):
                continue
            value = self.find(name, part, tool)
            twice = isinstance(value, str) and value in found.values()  # one date that was said is not two
            if value is not None and (name in wants or (self.was_said(value) and not twice)):
                found[name] = value
        found = self._apart(found, schema.get("properties", {})) | self._named(schema.get("properties", {}))
        for name in [n for n in found if n.startswith("new_") and found.get(n[4:]) == found[n]]:
            del found[name]  # nobody exchanges a thing for itself
        if tool.effect == "handoff":  # what a person is told is the request itself
            texts = {n: p for n in wants if (p := schema["properties"].get(n, {})).get("type", "string") == "string"}
            found |= {n: self._for_a_person(part) for n, part in texts.items() if n not in found}
        keys = [n for n in schema.get("properties", {}) if is_key(n) or role_of(n) in _OF_RECORDS]
        if (
            tool.effect == "read"
            and not wants
            and not found
            and keys
            and not {"list", "search"} & set(name_words(tool.name))
        ):
            wants = keys[:1]  # everybody's records are nobody's answer
        return found, [name for name in wants if name not in found]

    def _named(self, parts: Mapping[str, Any]) -> dict[str, Any]:
        """Return a field and its new value, where a tool takes them as two arguments: 'my new phone is ...'."""
        for value, says in named_field(parts).items():
            flag, read = (
                parts[value].get("type") == "boolean",
                (k for r in self.read for row in rows(r.data) for k in row),
            )
            for name in parts[says].get("enum") or dict.fromkeys(read):
                want = wanted(f"new_{name}", {})
                named = re.search(rf"\b{'' if flag else 'new '}{want.phrase}", self.heard) and not is_key(name)
                ways = (want, replace(want, shape="word"))  # a size may be a word
                if told := next((v for w in ways if named and (v := value_said(self.said, w))), None):
                    return {says: name, value: told.lower() in ("yes", "true", "on") if flag else told}
        return {}

    def _for_a_person(self, part: Mapping[str, Any]) -> str:
        """Return the request, or the option that shares most words with it: a general one where none does, else any."""
        options, heard = [str(o) for o in part.get("enum") or ()], {stem(w) for w in words(self.heard)}
        told = {o: {stem(w) for w in name_words(o)} for o in shuffled(options, derive(0, self.request))}
        best = max(told, key=lambda o: (len(heard & told[o]), not _GENERAL.isdisjoint(told[o])), default="")
        return best or shorten(self.request, 160)

    def find(self, name: str, part: Mapping[str, Any], tool: Tool) -> Any:
        """Find one argument's value, or None."""
        if ways := [w for w in part.get("oneOf") or part.get("anyOf") or () if w.get("type") == "object"]:
            return next((found for way in ways if (found := self.find(name, way, tool)) is not None), None)
        verb, noun = split_name(tool)
        want = wanted(name, part, noun)
        told_new = role_of(name) in _PLACES and _NEW_PLACE.search(self.heard)
        own = (
            name in noun.split() and deed_of_verb().get(verb) != "create"
        )  # a new name, and a reading that is submitted
        if tool.effect == "write" and (told_new or own):
            want = replace(want, new=True)  # the old address is no part of the new one
        types = part.get("type", "string")
        kind = next((t for t in types if t != "null"), "string") if isinstance(types, list) else types
        if kind == "array":
            return self._many(name, part, tool)
        if kind == "object" and not part.get("properties"):
            return self._free_form(want)
        if kind == "object":
            return self._address(want, part["properties"]) or self._group(name, part, tool)
        if want.options:
            options, chosen = part.get("enum") or want.options, option_said(self.said, want)
            return options[0] if len(options) == 1 else next((o for o in options if str(o) == chosen), None)
        if kind == "boolean":
            return self._truth(want, required=name in tool.parameters.get("required", ()))
        if want.shape == "text":
            return self._told(want)
        value = self._from_words(want)
        if value is None and (is_key(name) or tool.effect != "write" or role_of(name) in _OF_RECORDS):
            value = self._from_results(name, tool)
        if kind in ("number", "integer"):
            return _number(value, kind)
        return None if value is None else str(value)

    def _group(self, name: str, part: Mapping[str, Any], tool: Tool) -> dict[str, Any] | None:
        """Return an argument of several parts, each of which the customer may have said."""
        if tool.effect == "write" and name not in tool.parameters["required"] and plain(name) not in self.heard:
            return None  # the customer's own postcode is no new address
        own = {k: self.find(f"{name}_{k}", p, tool) for k, p in part.get("properties", {}).items()}
        inner = {k: self.find(k, part["properties"][k], tool) if v is None else v for k, v in own.items()}
        found = self._apart({k: v for k, v in inner.items() if v is not None}, part.get("properties", {}))
        return found if found and set(part.get("required", ())) <= set(found) else None

    def _address(self, want: Wanted, parts: Mapping[str, Any]) -> dict[str, str]:
        """Return the parts of an address that was said whole: '2 Elm Road, Leeds, LS1 4AP'."""
        told = value_said(self.said, replace(want, shape="text")) if "street" in map(role_of, parts) else None
        pieces = dict(zip(parts, (told or "").split(", "), strict=False))
        coded = all(re.search(r"\d", v) for k, v in pieces.items() if role_of(k) in ("street", "zip"))
        return pieces if told and len(pieces) == len(parts) and coded else {}

    def _apart(self, found: Mapping[str, Any], parts: Mapping[str, Any]) -> dict[str, Any]:
        """Let no two arguments have one date that was said once: those not named take what is left, as it was said."""
        wants = {k: wanted(k, parts[k]) for k in found if role_of(k) != "dob" and self.was_said(found[k])}
        dates = [k for k, want in wants.items() if want.shape == "date" and isinstance(found[k], str)]
        if len({found[k] for k in dates}) == len(dates):
            return dict(found)
        named = {k: v for k in dates if (v := value_said(self.said, wants[k]))}
        born = value_said(self.said, wanted("date_of_birth", {}))
        left = dict.fromkeys(d for t in self.said for d in tokens_in(t, "date") if d not in (born, *named.values()))
        told = named | dict(zip([k for k in dates if k not in named], left, strict=False))
        return {k: told.get(k, v) for k, v in found.items() if k not in dates or k in told}

    def _free_form(self, want: Wanted) -> dict[str, str]:
        """Return all that the customer named, for an object that may hold anything."""
        pattern = r"(?i)\b(?:my|the) ((?:[a-z]+ ){0,2}[a-z]+) (?:is|are|would be) (\S+?)(?=[.,;!?]?(?:\s|$))"
        named = re.findall(pattern, " ".join(self.said))
        told = value_said(self.said, replace(want, shape="text"))
        return {"_".join(k.split()): v for k, v in named} | ({"details": told} if told else {})

    def _truth(self, want: Wanted, *, required: bool) -> bool | None:
        # 'the deposit hasn't been paid'
        apart = r"(?:n?['’]t)?\W+(?:\S+ (?:been )?)?".join(map(re.escape, name_words(want.name)))
        named = re.search(rf"(?:\S+ ){{0,2}}\b(?:{want.phrase}|{apart})\b(?:.{{0,12}})", self.heard)
        if not (named or required):
            return None
        near = (named[0] if named else "") + " " + self.request.casefold()
        return not re.search(r"\b(?:off|no|false|disable|deactivate|without|not)\b|n['’]t\b", near)

    def _told(self, want: Wanted) -> str | None:
        """Return words of the customer's own: named, or answered; the request itself once they were asked for in vain."""
        if told := value_said(self.said, want) or self._answer(want):
            return told
        if "reason" in want.name and (because := re.search(r"\bbecause ([^.;!?\n]{4,90})", self.heard)):
            return because[1]
        general = not {"summary", "query", "question", "context", "input"}.isdisjoint(name_words(want.name))
        asked = any(m.role == "assistant" and f"the {plain(want.name)}" in (m.content or "") for m in self.messages)
        return shorten(self.request, 160) if general or asked else None

    def _answer(self, want: Wanted) -> str | None:
        """Return what the customer answered when nothing but this was asked for."""
        spoken = [m for m in self.messages if m.content and m.role in ("user", "assistant")]
        asked = plain(want.name)
        for question, answer in reversed(list(pairwise(spoken))):
            text = question.content or ""
            alone = asked in text and " and the " not in text and not asks_go_ahead(text)
            if question.role == "assistant" and answer.role == "user" and alone:
                opening = r"(?i)^(?:\W*(?:sure|of course|here you go|that would be|it's|it is|okay)\b)+\W*"
                said = re.sub(opening, "", answer.content or "")
                hidden = re.search(r"\b(?:don't|do not|no idea|can't|not sure)\b", said, re.I)
                told = [s for s in re.split(r"(?<=[.!?])\s+", said) if not _BESIDE.match(s)]
                said = " ".join(told) or said  # what else the customer gave is no part of it
                return None if hidden or not said else shorten(said.rstrip(".!"), 120)
        return None

    def _many(self, name: str, part: Mapping[str, Any], tool: Tool) -> list[Any] | None:
        items = part.get("items") or {}
        want = wanted(name, {"type": "string"})
        ways = values_said(self.said, replace(want, shape="ids" if want.shape == "id" else "text"))
        if items.get("type") == "object":
            chunked = ([_parts_of(chunk, items) for chunk in re.split(r",\s+| and ", way)] for way in ways)
            things = next((found for chunks in chunked if (found := [t for t in chunks if t])), [])
            one = None if things else self.find(name.removesuffix("s"), {**items, "type": "object"}, tool)
            return things or ([one] if one else None)
        named = next(ways, None)
        told = tokens_in(named, "id") if named and want.shape == "id" else re.split(r",\s*| and ", named or "")
        values: list[Any] = [v.strip() for v in told if v.strip()]
        if want.shape == "id" and not values:
            fits = self.candidates(name)
            marks = self._marks(fits)
            values = [v for v in fits if marks[v]] or (fits if len(fits) == 1 and not want.new else [])
        numeric = items.get("type") in ("number", "integer")
        return [_number(v, str(items["type"])) for v in values] if numeric else values or None

    def _from_words(self, want: Wanted) -> Any:
        """Take a value from the customer's words: named, or of the shape that the name asks for."""
        if told := value_said(self.said, want):
            return told
        parts = name_words(want.name) or [want.name]
        if parts[0] in ("first", "last") and parts[-1] == "name":
            whole = value_said(self.said, wanted("full_name", {})) or ""
            return whole.split()[0 if parts[0] == "first" else -1] if " " in whole else None
        before = load_words("scripted_reading")["before"].get(want.name)
        if want.shape == "code" and before:
            pattern = rf"\b{before} ([A-Z]{{3}})\b"
            return next((m[1] for t in reversed(self.said) if (m := re.search(pattern, t))), None)
        if want.shape in _BY_SHAPE or (want.shape == "date" and role_of(want.name) != "dob"):
            born = value_said(self.said, wanted("date_of_birth", {})) if want.shape == "date" else None
            return next((v for t in reversed(self.said) for v in tokens_in(t, want.shape) if v != born), None)
        if want.like and want.shape == "id":
            like = rf"(?<!\w){want.like}(?!\w)"
            return next((v for t in reversed(self.said) for v in tokens_in(t, "id", like)), None)
        answer = self._answer(want)
        if answer is None or want.shape == "word":
            return answer
        found = tokens_in(answer, want.shape)
        return found[0] if len(found) == 1 and (want.shape != "id" or len(answer.split()) < 5) else None

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
        target = target_key(tool, dict.fromkeys(tool.parameters.get("properties", {}), ""))
        if name == target or tool.effect != "write":
            return self.best(fits)[0]
        now = [row[name] for r in self.read for row in rows(r.data) if target in row and name in row]
        best, sure = self.best([v for v in fits if v not in now] or fits)
        return best if sure else None

    def candidates(self, name: str) -> list[Any]:
        """Return the values that were read and fit an argument best, in the order they were read."""
        bare = name.removeprefix("new_").removeprefix("old_")
        scored: dict[Any, float] = {}
        for path, value in (leaf for result in self.read for leaf in leaves(result.data)):
            if path and isinstance(value, (str, int, float)) and value != "":
                score = _key_fit(bare, path) + 0.3 * self.was_said(value)
                scored[value] = max(score, scored.get(value, 0.0))
        best = max(scored.values(), default=0.0)
        return [v for v, score in scored.items() if score >= max(0.9, best - 1e-9)]

    def best(self, values: Sequence[Any], given: Sequence[Any] = ()) -> tuple[Any, bool]:
        """Return the value whose record agrees best with the customer's words, and whether it stands alone.

        Args:
            values: Keys of records that were read.
            given: What the customer said as another argument, which tells nothing of the record.
        """
        marks = self._marks(values)
        weights = {v: sum(w * len(t) for (_, t), w in found.items() if t not in given) for v, found in marks.items()}
        ranked = sorted(values, key=lambda v: -weights[v])
        return ranked[0], len(values) == 1 or weights[ranked[0]] > weights[ranked[1]] or self.was_said(ranked[0])

    def _marks(self, values: Sequence[Any]) -> dict[Any, dict[tuple[str, str], int]]:
        """Return what the customer said of the record of each value, leaving out what is so of all of them.

        What stands in the record itself weighs more than what stands in a part of it.
        """
        marks: dict[Any, dict[tuple[str, str], int]] = {}
        for value in values:
            told = [(p, t) for p, t in self._told_of(value) if len(t) > 2 and self.was_said(t)]
            marks[value] = {(p[-1], t): 1 + (len(p) == 1) for p, t in told if p}
        common = set.intersection(*map(set, marks.values())) if len(marks) > 1 else set()
        return {v: {k: w for k, w in found.items() if k not in common} for v, found in marks.items()}

    def _told_of(self, value: Any) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield all that was read of the record that a value names."""
        for result in self.read:
            named = value in result.arguments.values()
            about = [result.data] if named else (row for row in rows(result.data) if value in row.values())
            for path, v in (leaf for row in about for leaf in leaves(row)):
                if isinstance(v, (str, int, float)) and not isinstance(v, bool) and v != value:
                    yield path, str(v)

    def was_said(self, value: Any) -> bool:
        """Say whether the customer wrote a value down; of a list or a group, any part of it."""
        if isinstance(value, (list, Mapping)):
            return any(self.was_said(v) for v in (value.values() if isinstance(value, Mapping) else value))
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            return isinstance(value, bool)
        said = str(value).casefold()  # looked for as it is first: most values are not there at all
        return said in self.heard and re.search(rf"(?<![\w.]){re.escape(said)}(?!\w|\.\d)", self.heard) is not None


def rows(data: Any) -> Iterator[Mapping[str, Any]]:
    """Yield every object of a reply that holds no other object, and those that do after them."""
    for inner in data.values() if isinstance(data, Mapping) else data if isinstance(data, list) else ():
        yield from rows(inner)
    if isinstance(data, Mapping):
        yield {k: v for k, v in data.items() if not isinstance(v, (Mapping, list))}


def _parts_of(text: str, schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Read one thing of several parts: 'Ada Low 1990-02-01' is a first name, a last name and a date of birth."""
    found: dict[str, Any] = {}
    left = text
    for name, part in schema.get("properties", {}).items():
        want = wanted(name, part)
        shape = "word" if want.options else want.shape
        value = option_said([left], want) if want.options else None
        if shape == "name" and role_of(name) in ("first_name", "last_name"):
            names = re.findall(r"[^\W\d_][\w'-]*", left)
            value = (names[0] if role_of(name) == "first_name" else names[-1]) if len(names) > 1 else None
        elif shape not in ("word", "text"):
            value = next(iter(tokens_in(left, shape)), None)
            left = left.replace(value, " ", 1) if value else left
        if value is not None:
            found[name] = _number(value, str(part.get("type"))) if part.get("type") in ("integer", "number") else value
    return found if found and set(schema.get("required", ())) <= set(found) else None


@lru_cache(maxsize=4096)
def _key_fit(name: str, path: tuple[str, ...]) -> float:
    """Say how well a field of a reply stands for an argument."""
    key, parts = path[-1], name_words(name)
    if key in (name, name + "s"):
        return 2.0
    if set(parts) < set(name_words(key)) and not is_key(name):
        return 0.95  # amount is total_amount
    if is_key(name) and _noun(name) and _noun(name) == _noun(key) and (is_key(key) or key.endswith(("s", "_list"))):
        return 2.0  # reservation_id is one of reservation_numbers
    if parts[-1:] == ["id"] and key == "id" and len(path) > 1:
        return 1.5 * (_noun(path[-2]) == _noun(name))
    same = _noun(key) == _noun(name) or role_of(key) == role_of(name) in _OF_RECORDS
    return 0.9 * (same and is_key(key) == is_key(name) and len(name_words(key)) > 1)


def _noun(name: str) -> list[str]:
    """Return what a key names: reservation_numbers, reservations and reservation_id are of a reservation."""
    light = ("id", "ids", "number", "numbers", "uuid", "code", "key", "list", "no")
    return [singular(p) for p in name_words(name) if p not in light]


def _number(value: Any, kind: str) -> int | float | None:
    found = re.search(r"-?\d+(?:\.\d+)?", str(value))
    number = float(found[0]) if found else None
    return number if number is None or (kind != "integer" and not number.is_integer()) else int(number)
