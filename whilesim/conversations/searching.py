"""Searching: which read brings a script nearer to a call, and what the reads have shown.

A read is worth making when its arguments are known and it speaks of the record that is
wanted, or of the customer, whose records are found that way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from whilesim.cards.speech import listed, stem
from whilesim.conversations.arguments import Known, rows
from whilesim.conversations.reading import Result, leaves
from whilesim.conversations.said import is_key, wanted
from whilesim.conversations.wording import PARTIES, participle, plain, required_of, split_name, spoken, target_key
from whilesim.core.templates import load_words
from whilesim.core.text import name_words, shorten, words
from whilesim.situations.tools import Tool
from whilesim.world.targets import named_field
from whilesim.world.verbs import deed_of_verb

RETRIES = 1
LOOKUPS = 9
_STAMPS = re.compile(r"(?:^|_)(?:at|time|timestamp|notes?|history)$|updated|modified", re.I)
_PERSONAL = ("email", "phone", "name")

Read = tuple[Tool, dict[str, Any]]


@dataclass(frozen=True)
class Search:
    """The reads of one conversation: those made, and those that could be."""

    tools: Mapping[str, Tool]
    known: Known

    def toward(self, tool: Tool, missing: Sequence[str]) -> Read | None:
        """Return the read that is most likely to give what is missing and can be filled."""
        goal = {stem(w) for m in (missing or [tool.name]) for w in name_words(m)} - {"id", "number", "new"}
        scored: list[tuple[float, Read]] = []
        reads = list(self._open_reads(tool))
        known = self.identified() or any(_is_party(a) for _, arguments in reads for a in arguments)
        for other, arguments in reads:
            nouns = _nouns(other)
            told = set(map(stem, name_words(other.description.split(".")[0].replace(" ", "_"))))
            party = bool((nouns | {stem(k.split("_")[0]) for k in arguments}) & set(map(stem, PARTIES)))
            keyed = any(is_key(a) or self.known.was_said(v) for a, v in arguments.items())
            near = len(nouns & goal)
            if known and not near and not any(map(is_key, arguments)) and nouns & set(map(stem, PARTIES)):
                continue  # who the customer is needs no second look
            if (keyed and (near or party or told & goal)) or (near and not arguments):
                scored.append((2.0 * near + party + 0.1 * len(told & goal) + 2.0 * keyed, (other, arguments)))
        return max(scored, key=lambda s: s[0])[1] if scored else None

    def of_record(self, key: str, value: Any) -> Iterator[Read]:
        """Yield the reads that show the record under a key, those that name its kind first."""
        noun = _kind(key)
        found: list[tuple[float, Read]] = []
        for other in self.tools.values():
            properties = list(other.parameters.get("properties", {})) if other.effect == "read" else []
            mine = next((a for a in properties if a == key or (is_key(a) and _kind(a) == noun)), None)
            mine = mine or ("id" if properties == ["id"] else None)
            if mine is None:
                continue
            arguments, lacking = self.known.fill(other)
            if set(lacking) <= {mine}:
                said = _nouns(other)
                rank = 2.0 * (not noun & said) - 1.5 * bool({"detail", "info"} & said) + (mine != key)
                found.append((rank + 0.5 * len(arguments), (other, {**arguments, mine: value})))
        yield from (read for _, read in sorted(found, key=lambda f: f[0]))

    def unread(self, key: str, value: Any) -> Read | None:
        """Return a read of the record under a key that has not been made; None where it was read, or cannot be."""
        read = next(self.of_record(key, value), None)
        made = read and self.called(read[0].name, read[1])
        return read if not made and len(self.known.results) < LOOKUPS + 2 else None

    def called(self, name: str, arguments: Mapping[str, Any]) -> bool:
        """Say whether a call was answered, or tried as often as makes sense."""
        same = [r for r in self.known.results if r.call.name == name and dict(r.arguments) == dict(arguments)]
        tries = [r for r in same if r.trouble in ("transient", "garbled")]
        return len(same) > len(tries) or len(tries) > RETRIES

    def changed_since(self, call: Result) -> str:
        """Name the fields of the record that read otherwise after a call than before it; empty where none does."""
        at = self.known.results.index(call)
        before = {(r.call.name, r.call.arguments): r.data for r in self.known.results[:at] if r.trouble is None}
        for after in self.known.results[at + 1 :]:
            old = before.get((after.call.name, after.call.arguments))
            if old is None or after.trouble is not None:
                continue
            known = list(leaves(old))
            new = [(p, v) for p, v in leaves(after.data) if (p, v) not in known and p and not _STAMPS.search(p[-1])]
            if new:
                return ", ".join(f"{plain(p[-1])} {spoken(v, p[-1])}" for p, v in new[:3])
        return ""

    def ways_in(self, tool: Tool) -> list[str]:
        """Name what else a customer can be found by: what the reads take that are about customers."""
        others = (o for o in self.about_customers() if o.name != tool.name and not self.known.fill(o)[0])
        return list(dict.fromkeys(required_of(o) for o in others))[:3]

    def about_customers(self) -> list[Tool]:
        """Return the reads that find a customer by what a customer knows."""
        found = []
        for tool in self.tools.values():
            required = tool.parameters.get("required", ()) if tool.effect == "read" else ()
            shapes = {"name" if _is_party(a) else wanted(a, {}).shape for a in required}
            asks = split_name(tool)[0] in ("verify", "authenticate", "identify") and not any(map(is_key, required))
            if (shapes <= {*_PERSONAL, "zip", "date"} and shapes & set(_PERSONAL)) or (required and asks):
                found.append(tool)
        return found

    def proofs(self) -> list[Tool]:
        """Return the reads that show who a customer is: by more than a key, or else a customer's record."""
        found = self.about_customers()
        personal = [t for t in found if not all(map(_is_party, t.parameters["required"]))]
        return personal or [t for t in found if _nouns(t) & set(map(stem, PARTIES))]

    def identified(self) -> bool:
        """Say whether it was read who the customer is."""
        found = self.known.read
        names = [*(k for r in found for k in r.arguments), *(p[-1] for r in found for p, _ in leaves(r.data) if p)]
        return any(map(_is_party, names))

    def shown(self, tools: Sequence[Tool]) -> bool:
        """Say whether one of some tools has answered."""
        return bool({r.call.name for r in self.known.read} & {t.name for t in tools})

    def verified(self, call: Result) -> bool:
        """Say whether anything was read since a call."""
        return any(self.effect(r) == "read" for r in self.known.results[self.known.results.index(call) + 1 :])

    def tried(self, effect: str) -> list[Result]:
        """Return the calls of tools with one effect."""
        return [r for r in self.known.results if self.effect(r) == effect]

    def effect(self, result: Result) -> str:
        """Return the effect of the tool that was called; empty for one that is not there."""
        tool = self.tools.get(result.call.name)
        return tool.effect if tool else ""

    def already(self, tool: Tool, arguments: Mapping[str, Any]) -> str:
        """Say in which words what was read shows a write as done before it is made; empty where it does not."""
        key, nouns = target_key(tool, arguments), _nouns(tool)
        named = {
            k for k in arguments if k != key and nouns & set(map(stem, name_words(k)))
        }  # the plan of 'change plan'
        new = {k for k in arguments if not is_key(k) or name_words(k)[0] == "new" or k in named}
        verbs, after = split_name(tool)[0].split()[:1], load_words("world_verbs")["status"]
        done = [[*map(stem, w.split())] for v in verbs for w in (v, participle(v), after.get(v, v))]
        mine = arguments.get(key)
        bare = {k.removeprefix("new_"): arguments[k] for k in arguments if k in new and wanted(k, {}).shape != "text"}
        for value, says in named_field(tool.parameters.get("properties", {})).items():
            bare = {str(arguments.get(says)): arguments.get(value)}
        deed = deed_of_verb().get(verbs[0] if verbs else "")
        bare = {} if deed == "delete" else bare  # what is to be taken out is still there
        told = (k for k in arguments if k != key and wanted(k, {}).shape != "text" and deed == "update")
        row = {k.removeprefix("new_"): arguments[k] for k in told}
        for result in (r for r in reversed(self.known.read) if self.effect(r) == "read"):
            if deed == "create" and (made := _made(result.data, nouns, arguments)):
                return made
            whole = {k: v for path, v in leaves(result.data) for k in path[-1:]}
            about = key and (str(mine) in map(str, result.arguments.values()) or mine == whole.get(key))
            for name, value in whole.items() if about else ():
                parts = name_words(name) or [name]
                said = [*map(stem, name_words(str(value)))]
                states = {"status", "state"} & set(parts) and any(said[: len(d)] == d for d in done)
                if states and (len(parts) == 1 or not nouns or nouns & set(map(stem, parts)) or parts[0] in key):
                    return f"{plain(name)} {spoken(value, name)}"
            inside = any(_says(r, row) for r in rows(result.data)) if len(row) > 1 else False
            if about and bare and (inside or _says(whole, bare)):
                return ", ".join(f"{plain(k)} {spoken(v, k)}" for k, v in bare.items())
        return ""

    def _open_reads(self, tool: Tool) -> Iterator[Read]:
        """Yield the reads that can be filled and were not made."""
        for other in self.tools.values() if len(self.known.results) < LOOKUPS else ():
            if other.effect == "read" and other.name != tool.name:
                arguments, lacking = self.known.fill(other)
                loose = any(wanted(a, {}).shape == "text" for a in other.parameters.get("required", ()))
                if not lacking and not loose and not self.called(other.name, arguments):
                    yield other, arguments


def facts_of(data: Any, request: str, known: Known) -> str:
    """Name up to five plain facts of a reply, those first that the request speaks of."""
    if isinstance(data, list) and data and not isinstance(data[0], Mapping):
        data = listed([spoken(v) for v in data[:8]])
    if not isinstance(data, (Mapping, list)):
        return shorten(spoken(data), 200)
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
            seen.setdefault(plain(path[-1]), spoken(value, path[-1]))
    heard = set(words(request))
    first = sorted(seen, key=lambda k: -len(heard & set(words(k))))
    return ", ".join(f"{k} {seen[k]}" for k in first[:5])


def _made(data: Any, nouns: Set[str], arguments: Mapping[str, Any]) -> str:
    """Name the record that a write would make once more: one of the lists of a reply that holds the same values."""
    for name, listed_rows in data.items() if isinstance(data, Mapping) else ():
        about = isinstance(listed_rows, list) and nouns & set(map(stem, name_words(name)))
        for row in rows(listed_rows) if about else ():
            same = [k for k, v in arguments.items() if k in row and str(row[k]) == str(v)]
            if not all(map(is_key, same)) and not any(k in row and k not in same for k in arguments):
                return ", ".join(f"{plain(k)} {spoken(v, k)}" for k, v in list(row.items())[:2])
    return ""


def _says(record: Mapping[str, Any], values: Mapping[str, Any]) -> bool:
    return all(str(record.get(k)) == str(v) for k, v in values.items())


def _nouns(tool: Tool) -> set[str]:
    return set(map(stem, split_name(tool)[1].split()))


def _kind(key: str) -> set[str]:
    return set(map(stem, name_words(key)[:-1]))


def _is_party(name: str) -> bool:
    return is_key(name) and name_words(name)[0] in PARTIES
