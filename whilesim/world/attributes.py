"""Attributes: what a policy says about records: their fields, their words, and what time it is.

Read are lists under 'Each order has:', vocabularies such as 'There are four line status
types: ...', and the current time. Of rules only the statuses are read that they print in bold.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import parsedate
from functools import cache

from whilesim.core.templates import load_words


@dataclass(frozen=True, slots=True)
class Attribute:
    """One field as a policy lists it."""

    name: str
    inner: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    nullable: bool = False
    number: bool = False
    """Whether the policy gives its unit: 'data used (in GB)'."""
    each: bool = False
    """Whether it is a list of things that each have these parts: 'items (each with a dish and a price)'."""


@dataclass(frozen=True, slots=True)
class PolicyFacts:
    """What a policy says about records."""

    now: datetime | None = None
    attributes: Mapping[str, tuple[Attribute, ...]] = field(default_factory=dict)
    """Kind, as the policy spells it, singular, words joined by ``_``."""
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """``line_status`` to its values."""
    spread: tuple[tuple[str, tuple[str, ...], str], ...] = ()
    """(kind, its fields, vocabulary): the fields hold a number for each word of it."""
    sections: tuple[tuple[str, str], ...] = ()
    """(heading, body) in order."""
    rules: tuple[tuple[bool, str, frozenset[str], frozenset[str]], ...] = ()
    """(whether it says only, the deed, the statuses, all its words) of each rule that names the statuses for a deed."""


@cache
def pattern(name: str) -> re.Pattern[str]:
    """Return a pattern of the word list, compiled."""
    return re.compile(load_words("world_patterns")[name], re.IGNORECASE)


def singular(word: str) -> str:
    """Return an English noun in the singular; other words as they are."""
    if len(word) < 4 or word.endswith(("ss", "us", "is")) or not word.endswith("s"):
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-2] if word.endswith(("sses", "xes", "ches", "shes")) else word[:-1]


def plural(word: str) -> str:
    """Return an English noun in the plural: deliveries, addresses, days."""
    if re.search(r"[^aeiou]y$", word):
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("s", "x", "z", "ch", "sh")) else "s")


def snake(text: str) -> str:
    """Return a phrase as an identifier: ``data usage`` is ``data_usage``."""
    return "_".join(re.findall(r"\w+", text.lower().replace("'s", "").replace("e-mail", "email")))


def read_policy_facts(text: str) -> PolicyFacts:
    """Read the attribute lists, vocabularies and the current time of a policy."""
    attributes: dict[str, tuple[Attribute, ...]] = {}
    options: dict[str, tuple[str, ...]] = {}
    spread, sections = [], _sections(re.sub(r"(?<=[.!])\s+(?=(?:Each|Every) )", "\n", text).splitlines())
    for heading, index, line, lines in ((h, n, line, body) for h, body in sections for n, line in enumerate(body)):
        if found := pattern("lead").match(line):
            noun = "_".join(map(singular, snake(found["noun"]).split("_")))  # as keys are read
            below = list(_bullets(lines, index + 1)) if line.rstrip(" *").endswith(":") else []
            if told := below or (noun not in attributes and _in_prose("\n".join([found["rest"], *lines[index + 1 :]]))):
                attributes[noun] = tuple(a for bullet in told for a in _attributes(bullet))
        elif found := pattern("for_each").match(line.strip(" -*")):
            what = split_list(found["what"]) or [found["what"]]
            spread.append((snake(heading), tuple(map(snake, what)), snake(found["of"])))
        _read_options(line, heading, options)
    bodies = tuple((heading, "\n".join(body)) for heading, body in sections)
    return PolicyFacts(_read_now(text), attributes, options, tuple(spread), bodies, tuple(_rules(text)))


def _read_now(text: str) -> datetime | None:
    """Return the time that a policy says it is; None where it says none, or no time there is."""
    found = pattern("now").search(text)
    moment = f"{found['day']} {found['clock'] or '12:00'}" if found else ""
    with suppress(ValueError):
        return datetime(*told[:6]) if (told := parsedate(moment)) else datetime.fromisoformat(moment)  # 12 May 2026
    return None


def _rules(text: str) -> Iterator[tuple[bool, str, frozenset[str], frozenset[str]]]:
    for rule in filter(re.compile("only|n.t be").search, re.split(r"(?<=[.;])\s+|\n\s*\n|\n\s*[-*\d]", text.lower())):
        if said := pattern("only_in").search(rule) or pattern("never_in").search(rule):
            only, lead = "only" in said[0], pattern("when_one").search(rule[: said.start()])  # 'once an order is ...'
            around = rule[: (lead or said).start()] + rule[said.end() :]
            if not pattern("hedged_only" if only else "hedged").search(around):
                listed = re.split(r",?\s+or\s+|,\s+|\s+and\s+", said["list"].strip(" *\"'"))
                words = [lead[1]] if lead else re.findall(r"\w+", rule)
                yield only, said["deed"], frozenset(listed), frozenset(map(singular, words))


def ruled_statuses(facts: PolicyFacts, verb: str, nouns: set[str], statuses: Sequence[str]) -> tuple[str, ...]:
    """Return the statuses in which the rules of a policy let a deed be done: those of an 'only while', or what a 'cannot' leaves."""
    left, stem = [*statuses], re.compile(rf"\b{re.escape(verb[:5])}")
    for only, deed, listed, words in facts.rules if verb else ():
        told = [s for s in left if s.lower().replace("_", " ") in listed] if words & nouns and stem.search(deed) else []
        if only and told:
            return tuple(told)
        left = [s for s in left if s not in told]
    return tuple(left)


def split_list(text: str) -> tuple[str, ...]:
    """Return the values of a list in prose: bold or quoted ones where there are any, else between commas."""
    for pattern in (r"\*\*(.+?)\*\*", r"[\"“](.+?)[\"”]", r"(?<!\w)'(.+?)'(?!\w)", r"`(.+?)`"):
        if found := re.findall(pattern, text):
            return tuple(dict.fromkeys(f.strip() for f in found))
    parts = re.split(r",\s*(?:(?:and|or|und|y|o)\s+)?|\s+(?:and|or|und|oder)\s+", re.split(r"[.;](?:\s|$)", text)[0])
    kept = tuple(dict.fromkeys(p.strip(" .*") for p in parts if p.strip(" .*")))
    return kept if all(len(p.split()) <= 3 for p in kept) and len(kept) > 1 else ()


def _bullets(lines: list[str], start: int) -> Iterator[str]:
    for line in lines[start:]:
        if found := pattern("bullet").match(line):
            yield found["text"]
        elif line.strip():
            return


def _in_prose(rest: str) -> list[str]:
    """Return the attributes that one sentence lists: three and more, or a key among them; none for another sentence."""
    first = " ".join(re.split(r"\.(?:\s|$)|\n\s*(?:\n|[-*•+]|\d+[.)])", rest)[0].split())
    told = re.sub(r"\b(status|type|level|priority)(?:: | of )([^():]+)$", r"\1 (\2)", first)
    parts = [p.strip(" :*") for p in re.split(r"(?:,\s*(?:and\s+)?|\s+and\s+)(?![^(]*\))", told)]
    short = all(0 < len(p.partition("(")[0].split()) <= 6 for p in parts)
    known = sum(bool(pattern("attribute").search(p)) for p in parts)
    least = 1 if len(parts) > 2 or re.search(r"\bID\b", told) else 2
    return parts if short and known >= least and not pattern("no_list").match(told) else []


def _attributes(bullet: str) -> Iterator[Attribute]:
    outside, _, inside = bullet.replace("*", "").replace("`", "").strip(" .").partition("(")
    inside = re.sub(r"\b(?:an?|the|number of)\s+", "", inside.partition(")")[0]).strip()
    name = pattern("tail").sub("", pattern("drop").sub("", re.split(r"[:;]|\. ", outside)[0].strip()))
    name = pattern("drop").sub("", name).strip()
    if not name or len(name.split()) > 5:
        return
    pair = re.fullmatch(r"(.*?)(\w+) and (\w+) (times?|dates?)", name)
    if pair or (not inside and " and " in name):
        halves = [f"{pair[1]} {h} {singular(pair[4])}" for h in (pair[2], pair[3])] if pair else name.split(" and ")
        yield from (Attribute(snake(half)) for half in halves)
        return
    parts = (pattern("drop").sub("", p) for p in split_list(pattern("drop").sub("", inside)))
    words = tuple(p for p in parts if not re.search(r"\bif\b|\boptional|format", p))
    nullable = bool(re.search(r"applicable|optional|if any", inside))
    if re.fullmatch(r"(\w+) and (\w+) (\w+s)", inside) and len(words) == 2 and " " not in words[0]:
        words = (f"{words[0]} {singular(words[1].split()[-1])}", " ".join(singular(w) for w in words[1].split()))
    if words and (" or " in inside or re.search(r"\b(type|status|level|priority)$", name)):
        yield Attribute(snake(name), options=words, nullable=nullable)
    else:
        number, name = bool(re.match(r"in \w+$", inside)) or "number of " in name, name.removeprefix("number of ")
        yield Attribute(snake(name), tuple(map(snake, words)), (), nullable, number, inside.startswith("each "))


def _read_options(line: str, heading: str, options: dict[str, tuple[str, ...]]) -> None:
    plain = pattern("bullet").sub(lambda m: m["text"], line).strip()
    if found := pattern("there_are").match(plain):
        named = f"{found['of'] or ''} {found['phrase']}".lower()
        phrase = re.sub(r"(?<![^\W_])(status|level)s?[\W_]+types?\W*$", r"\1", named)
    elif found := pattern("can_be").match(plain):
        phrase = found["phrase"] or f"{found['noun']} {found['field']}"
    if found and (values := split_list(found["list"])):
        options["_".join(singular(w) for w in snake(phrase).split("_"))] = values
    if (found := pattern("if_status").search(line)) and heading:
        name = f"{singular(snake(heading).split('_')[-1])}_{found[1]}"
        options[name] = tuple(dict.fromkeys((*options.get(name, ()), *split_list(found[2]))))


def _sections(lines: list[str]) -> list[tuple[str, list[str]]]:
    found: list[tuple[str, list[str]]] = [("", [])]
    for line in lines:
        if heading := pattern("heading").match(line):
            found.append((heading["text"], []))
        else:
            found[-1][1].append(line)
    return found
