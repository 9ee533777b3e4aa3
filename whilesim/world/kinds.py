"""Kinds: a kind of record and its fields, and how names and schemas are read as such."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from typing import Any, TypeGuard

from whilesim.core.templates import load_words
from whilesim.core.text import fold, name_words
from whilesim.situations.schemas import first_form
from whilesim.situations.tools import Tool, names_record
from whilesim.world.attributes import pattern, singular, split_list

MADE_UP = re.compile(r"\bmock|dummy|\bsome_|placeholder|^\.\.\.$", re.IGNORECASE)
"""What says of an example that nobody would ever see it."""
A_CODE = "A0000-0000-0000"
TELLING = ("phone", "money", "date", "future", "title", "airport", "place")
"""Roles of the fields by which a customer tells one record from another."""
_ADDRESS = frozenset({"street", "unit", "city", "state", "country", "zip"})
_FILLERS = frozenset({"status", "type", "class", "total", "full", "default", "travel", "scheduled", "promised", "list"})
BUNDLES = ("updates", "changes", "details", "fields")
"""Arguments whose parts are the fields to write."""
OWN_KEYS = ("id", "key", "uuid", "code", "name")
"""Arguments that are a key of whatever their tool is about."""
WHO = {"proof": ("dob", "code", "last4"), "person": ("email", "phone", "first_name", "last_name", "full_name", "zip")}
"""Roles of what a customer says to show who they are: only for that, or as whose record it is."""
_WAYS = ("from", "to", "source", "destination")
_VALUE_PREFIX = ("new", "old", "target", "original", "current", "updated", "desired", "replacement")


Row = Mapping[str, Any]
"""A record, or a part of one, as it is read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of a kind of record."""

    name: str
    role: str = "word"
    """What stands in it: a row of ``roles`` in the word list, or id, choice, link, links, group, items."""
    type: str = ""
    """JSON type, where a schema states one."""
    options: tuple[str, ...] = ()
    example: str = ""
    seen: tuple[str, ...] = ()
    """Values that an example reply shows."""
    link: str = ""
    """Kind that the field points at."""
    inner: tuple[Field, ...] = ()
    nullable: bool = False
    schema: Row = field(default_factory=dict, repr=False)
    """What schemas say of its values."""
    why: str = ""

    @property
    def before(self) -> int:
        """The hour that a time must be before, as its description says; 0 for none."""
        clock = pattern("clock").search(str(self.schema.get("description", "")))
        return int((clock and clock[1]) or 0)

    @property
    def is_address(self) -> bool:
        """Whether it holds an address with parts."""
        parts = self.role == "group" and any(role_of(i.name) in _ADDRESS for i in self.inner)
        return not self.link and self.type != "string" and (self.role == "address" or parts)

    def joined(self, new: Field) -> Field:
        """Return what two sources say of one field; a schema's spelling of the options wins."""
        strong = new if new.type and not self.type else self
        role = new.role if self.role == "word" or (new.role == "choice" and not self.link) or new.inner else self.role
        names = ("type", "example", "seen", "link", "inner")
        rest = {n: getattr(self, n) or getattr(new, n) for n in names} | {"schema": {**new.schema, **self.schema}}
        return replace(self, role=role, options=strong.options or self.options or new.options, **rest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of record."""

    name: str
    key: str
    parent: str = ""
    """Kind that it belongs to; empty for the party and for what belongs to nobody."""
    fields: Mapping[str, Field] = field(default_factory=dict)
    status: str = ""
    """Name of its status field."""
    catalogue: bool = False
    single: bool = False
    """One for each parent, or one in all: a cart, a device, a session."""
    outbox: bool = False
    """Only ever written: starts empty, and shows in what it belongs to."""
    key_like: Field = Field(name="")
    """How a key looks: example and type, from the arguments that take one."""
    people: bool = False
    """Whether its records are of people."""
    count: int = 0
    """Records in the world at the start; for a child, records for each parent."""
    why: str = ""

    @property
    def statuses(self) -> tuple[str, ...]:
        """The words of its status field; empty where it has none, or any will do."""
        return self.fields[self.status].options if self.status else ()

    def first_status(self, *words: str) -> str:
        """Return its first status that is one of these words, else its very first one; empty where it has none."""
        return next((o for o in self.statuses if o.lower() in words), next(iter(self.statuses), ""))

    def find(self, name: str) -> str:
        """Return the field that goes by this name or one that means the same; empty for none.

        A part of an address inside a record is ``address.city``.
        """
        if name in self.fields:
            return name
        part, homes = role_of(name), (f for f in self.fields if self.fields[f].is_address)
        if part in _ADDRESS and (home := next(homes, "")):
            inner = next((i.name for i in self.fields[home].inner if role_of(i.name) == part), name)
            return f"{home}.{inner}"
        table = load_words("world_nouns")["synonyms"]
        if not (wanted := _stems(table.get(name, name))):
            return ""  # a name without a word means nothing but itself
        noun = _FILLERS | set(self.name.split("_"))
        same = (f for f in self.fields if _stems(table.get(f, f)) == wanted)
        more = ((f, _stems(f) - wanted) for f in self.fields if wanted < _stems(f))
        longer = (f for f, extra in more if len(extra) == 1 and (extra < noun or min(extra).startswith(self.name)))
        return next(same, "") or next(longer, "")

    def replaced_by(self, name: str, options: Sequence[str] = ()) -> str:
        """Return the policy's field that a schema's stands for: a shorter name, or the same options in other spelling."""
        wanted, same = _stems(name), sorted(folded(o) for o in options)
        free = (f for f in self.fields.values() if not f.link and f.name != self.status)
        for told in (f for f in free if f.why.startswith(("attribute", "vocabulary"))):
            shorter = _stems(told.name) < wanted and wanted - _stems(told.name) <= _FILLERS
            if shorter or (same and same == sorted(map(folded, told.options))):
                return told.name
        return ""

    def bound(self, argument: str) -> tuple[str, str]:
        """Return which side of what an argument such as ``min_price`` or ``created_after`` bounds; empty for none."""
        parts, sides = name_words(argument), load_words("world_nouns")["sides"]
        word = next((w for w in parts[:1] + parts[-1:] if w in sides), "") if argument not in self.fields else ""
        rest = "_".join(w for w in parts if w != word)
        return (sides[word], self.find(rest) or rest) if word and role_of(rest) in ORDERED else ("", "")

    def named_by(self, arguments: Mapping[str, Row]) -> dict[str, str]:
        """Return what object arguments name a record by: ``by.phone`` to its field; no period, and nothing that is not known."""
        found = ((path, n, n if n == self.key else self.find(n)) for path, n, _ in parts_of(arguments))
        return {path: field or n for path, n, field in found if field or role_of(n) not in ("word", *ORDERED)}


def kind_of_key(argument: str, kinds: Mapping[str, Kind]) -> tuple[str, bool]:
    """Return the kind among ``kinds`` that an argument names, and whether it names several.

    It names it by its words (``booking_ref``), or is what the kind's own tools call its key (``pnr``).
    """
    noun, many = key_noun(argument)
    if noun in kinds:
        return noun, many
    words = _bare(argument)
    told = [n for n in (f"{noun}_method", "_".join(words[:-1])) if n in kinds and names_record(argument)]
    told = told or [n for n, k in kinds.items() if k.key == argument and argument not in ("", *OWN_KEYS)]
    way, _, thing = "_".join(name_words(argument)).partition("_")
    told = told or [n for n in kinds if n == thing and way in _WAYS and role_of(n) == "word"]
    return (told[0], singular(words[-1]) != words[-1]) if told else ("", many)


def _bare(argument: str) -> list[str]:
    """Return the words of an argument without those that say which end or which value of a thing it is."""
    parts = name_words(argument)
    ends = {word for pair in load_words("world_nouns")["ends"] for word in pair}
    while len(parts) > 1 and (parts[0] in _VALUE_PREFIX or (len(parts) > 2 and parts[0] in ends)):
        parts = parts[1:]
    return parts


@cache
def key_noun(argument: str) -> tuple[str, bool]:
    """Return the kind that an argument tells of by itself and whether it names several; ``('', False)`` for none."""
    parts = _bare(argument)
    last = parts[-1] if parts else ""
    many = last in ("ids", "uuids", "numbers", "keys")
    if last in ("id", "ids", "uuid", "uuids", "guid"):
        return "_".join(singular(p) for p in parts[:-1]), many
    if last in ("number", "numbers", "no", "code") and "_".join(parts[:-1]) in load_words("world_nouns")["numbered"]:
        return "_".join(parts[:-1]), many
    return "", False


def is_value(argument: str, schema: Mapping[str, Any]) -> bool:
    """Whether a key argument names the new value rather than the record to work on."""
    return name_words(argument)[:1] == ["new"] or " new " in f" {str(schema.get('description', '')).lower()[:40]} "


def properties(tool: Tool) -> dict[str, Mapping[str, Any]]:
    """Return a tool's arguments and their schemas, in the first of the forms that it takes."""
    return mappings(first_form(dict(tool.parameters)).get("properties"))


def branches(schema: Mapping[str, Any]) -> list[Row]:
    """Return the forms that an object argument may take: its own, and those of its branches that have properties."""
    ways = (schema, *(way for word in ("anyOf", "oneOf") for way in schema.get(word) or ()))
    return [way for way in ways if isinstance(way, Mapping) and way.get("properties")]


def mappings(found: Mapping[Any, Any] | None) -> dict[str, Row]:
    """Return schemas by name, an empty one where there is none."""
    return {str(k): v if isinstance(v, Mapping) else {} for k, v in (found or {}).items()}


def parts_of(arguments: Mapping[str, Row]) -> Iterator[tuple[str, str, Row]]:
    """Yield the parts of object arguments: where it stands, such as ``by.phone``, its name, its schema."""
    for argument, schema in arguments.items():
        for way in branches(schema):
            yield from ((f"{argument}.{n}", n, told) for n, told in mappings(way["properties"]).items())


def walk_schemas(found: Mapping[str, Any], depth: int = 0) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the arguments and their schemas, those of nested objects too."""
    for name, told in mappings(found).items():
        yield name, told
        inner = told.get("items", told)
        if depth < 4 and isinstance(inner, Mapping) and isinstance(inner.get("properties"), Mapping):
            yield from walk_schemas(inner["properties"], depth + 1)


def walk_values(found: Row) -> Iterator[tuple[str, Any]]:
    """Yield the arguments of a call and their values, those of nested objects too."""
    for name, value in found.items():
        yield name, value
        for inner in value if isinstance(value, list) else [value]:
            yield from walk_values(inner) if isinstance(inner, Mapping) else ()


def is_parameter(argument: str) -> bool:
    """Whether an argument says how to answer, or is a code that was sent to the customer a moment ago; it is no field."""
    return argument.lower() in load_words("world_nouns")["parameters"] or role_of(argument) == "sent"


@cache
def partners(names: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Return the pairs of fields that are the two ends of one thing: where from and to, who gives and gets, start and end."""
    spelled = {"_".join(name_words(name)): name for name in names}
    others = ((n, re.sub(f"(?<![^_]){a}(?![^_])", b, n)) for n in spelled for a, b in load_words("world_nouns")["ends"])
    return tuple((spelled[n], spelled[other]) for n, other in others if n != other and other in spelled)


def other_ends(name: str, names: Iterable[str]) -> list[str]:
    """Return the fields whose other end a field is."""
    return [b if a == name else a for a, b in partners(tuple(names)) if name in (a, b)]


def way_of(fields: Mapping[str, Field]) -> tuple[str, ...]:
    """Return the fields that say where a thing leads from and to; empty for one that leads nowhere."""
    places = ("airport", "place", "city", "word", "choice")
    return next((pair for pair in partners(tuple(fields)) if all(fields[f].role in places for f in pair)), ())


@cache
def role_of(name: str) -> str:
    """Return what a field of this name holds; ``word`` where nothing is known."""
    roles = load_words("world_nouns")["roles"]
    plain = unicodedata.normalize("NFKD", name.translate({ord("ß"): "ss", ord("ı"): "i"}))
    parts = name_words("".join(c for c in plain if not unicodedata.combining(c)))
    parts = parts[: parts.index("per")] if "per" in parts[1:] else parts  # a price per unit is a price
    lasts = (parts[-1], singular(parts[-1])) if parts else ()
    ends = ([*parts[-n:-1], last] for n in range(min(4, len(parts)), 0, -1) for last in lasts)
    if found := next((str(role) for end in ends for role, names in roles.items() if "_".join(end) in names), ""):
        return found
    if len(parts) > 1 and parts[-1] in ("at", "on"):
        return "moment"
    if len(parts) > 1 and parts[-1] == "history":
        return "ledger" if parts[0] in ("payment", "transaction", "billing") else "word"
    if parts and parts[-1] == "name":
        people = {*load_words("world_nouns")["party"], *load_words("world_nouns")["persons"]}
        return (
            "full_name"
            if len(parts) > 1 and (people & {parts[0], parts[-2]} or parts[-2].endswith("holder"))
            else "name"
        )
    return next((r for r in ("money", "count") if any(p in roles[r] for p in parts)), "word")


ORDERED = ("date", "future", "moment", "time", "expiry", "money", "small", "count", "percent")
"""Roles of what is earlier or later, smaller or larger."""
BIRTH = re.compile("creat|joined|registered|opened|since|activation|purchase|order_date")
_UUID = "^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"
Described = dict[tuple[str, int, int], tuple[Row, Field]]
_FORMATS = {"date-time": "moment", "date": "date", "time": "time", "email": "email", "uri": "url"}


def describe_field(name: str, schema: Row, why: str, depth: int = 0, known: Described | None = None) -> Field:
    """Make a field of an argument's or a reply's schema; what is nested more than four deep is left out.

    ``known`` are the parts described before: a schema that stands in many places is described once for each name.
    """
    known = {} if known is None else known
    told = str(schema.get("description", ""))
    ways = [s for s in (schema, *(schema.get("anyOf") or ())) if isinstance(s, Mapping)]
    enums = (tuple(str(o) for o in s["enum"] if o is not None) for s in ways if s.get("enum"))
    options = next(enums, _options_of(told))
    kind = schema.get("type")
    kind = next((k for k in kind if k != "null"), "string") if isinstance(kind, list) else str(kind or "")
    noun, many = key_noun(name)
    whole = schema.get("items") if kind == "array" else schema
    parts = mappings(whole.get("properties")) if isinstance(whole, Mapping) and depth < 4 else {}
    places = {(k, id(v), depth): v for k, v in parts.items()}
    for at, part in places.items():
        known[at] = known.get(at) or (part, describe_field(at[0], part, why, depth + 1, known))
    inner = tuple(known[at][1] for at in places)
    role = "choice" if options else "links" if noun and (many or kind == "array") else "link" if noun else role_of(name)
    if inner and not noun:
        role = "items" if kind == "array" else "group"
    clock = pattern("clock").search(told)
    example = example_of(schema) or ("10:00" if clock else "")
    if role in ("word", "time", "date", "name") and (dated := pattern("dated").match(example)):
        role = "moment" if dated[1] else "date"
    if role in ("word", "moment", "date"):
        said = pattern("moment").search(told) if role == "word" else None
        spoken = "time" if clock and role == "word" else role if not said else "moment" if said[1] else "date"
        role = _FORMATS.get(str(schema.get("format", "")).lower(), spoken)
    seen = tuple(map(str, schema.get("examples") or ()))
    schema = {"pattern": _UUID, **schema} if schema.get("format") == "uuid" else schema
    return Field(
        name=name, role=role, type=kind, options=options, example=example, seen=seen, link=noun, inner=inner, why=why, schema=schema,
    )  # fmt: skip


def happened(name: str) -> bool:
    """Whether a date of this name is of something that was done to a record, such as ``returned_at``."""
    known, words = load_words("world_values")["happened"], name_words(name)
    said = (w for w in words if w in known or (len(w) > 4 and w.endswith("ed")))
    last = pattern("last_done").search("_".join(words))  # the last login, and not the last day
    return not BIRTH.search(name) and (next(said, "updated") != "updated" or bool(last))


def example_of(schema: Mapping[str, Any]) -> str:
    """Return the example that a schema shows, as text; a code for one that nobody would ever see, empty for none."""
    listed = schema.get("examples")
    shown = (schema.get("example"), schema.get("example_value"), *(listed if isinstance(listed, list) else ()))
    found = next((str(e) for e in shown if isinstance(e, (str, int))), "")
    if not found and (told := pattern("example").search(str(schema.get("description", "")))):
        found = told[1].strip()
    if not found and (long := re.search(r"\b(\d{1,2})[ -]digits?\b", str(schema.get("description", "")))):
        found = "1" + "0" * (int(long[1]) - 1)
    return A_CODE if MADE_UP.search(found) else found


@lru_cache(maxsize=4096)
def folded(text: str) -> str:
    """Return a word in the one spelling in which words are compared."""
    return fold(text).replace("_", " ")


def is_number(value: Any) -> TypeGuard[float]:
    """Whether a value can be added up."""
    return type(value) in (int, float)


@cache
def _stems(name: str) -> frozenset[str]:
    return frozenset(singular(w) for w in name_words(name))


def _options_of(told: str) -> tuple[str, ...]:
    span = pattern("span").search(told)
    if span and int(span[1]) < int(span[2]) <= 10:
        return tuple(map(str, range(int(span[1]), int(span[2]) + 1)))
    found = pattern("either").search(told) or pattern("opens_quoted").match(told)
    if not found or re.search(r"such as|e\.g\.", told):
        return ()
    quoted = tuple(pattern("quoted").findall(found[1]))
    if len(quoted) > 1:
        return tuple(dict.fromkeys(quoted))
    values = split_list(found[1]) if "," in found[1] or " or " in found[1] else ()
    return values if len(values) > 1 and all(re.fullmatch(r"[\w -]{1,24}", v) for v in values) else ()


def match_kind(nouns: Sequence[str], known: Container[str]) -> str:
    """Return the known kind nearest to the right end of an object phrase, the longest there; empty for none."""
    ends = range(len(nouns), 0, -1)
    return next((n for end in ends for at in range(end) if (n := "_".join(nouns[at:end])) in known), "")
