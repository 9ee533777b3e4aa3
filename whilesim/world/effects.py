"""Effects: what a tool does: reads, writes with their preconditions, and safe arithmetic."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from whilesim.chat.messages import Change
from whilesim.core.seeds import derive, pick
from whilesim.core.templates import load_words
from whilesim.core.text import words as words_of
from whilesim.world.attributes import pattern
from whilesim.world.deeds import Deed
from whilesim.world.kinds import BUNDLES, Kind, Row, is_number, kind_of_key, walk_values, way_of
from whilesim.world.lookups import Shelf, at_path, put_at
from whilesim.world.records import recount, timetable
from whilesim.world.rows import Refusal, change_rows, write_named
from whilesim.world.targets import debt_of

_PAID = ("paid", "settled", "paid off")
_SUM = re.compile("expr|formula|sum|equation|input")
_OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv, ast.Mod: operator.mod,
    ast.FloorDiv: operator.floordiv, ast.USub: operator.neg, ast.UAdd: operator.pos,
}  # fmt: skip


class Effects:
    """What the deeds do to one shelf of records."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf, self.model = shelf, shelf.model
        self.changes: list[Change] = []
        self.done: set[tuple[str, str]] = set()
        self._minutes = 0

    def run(self, deed: Deed, arguments: Mapping[str, Any]) -> Any:
        """Do what a tool does and return the value to show. ``changes`` holds what changed.

        Raises:
            Refusal: The tool does not do it.
        """
        self.changes = []
        for value in [v for a, v in arguments.items() if a == deed.body and isinstance(v, Mapping)]:
            arguments = {**arguments, **value}
        self._minutes += deed.writes
        if deed.action != "handoff":  # a person is told of what cannot be found, too
            self._check_keys(deed, arguments)
        return getattr(self, f"_{deed.action}")(deed, arguments)

    def _refusal(self, problem: str, deed: Deed, value: Any = "", **values: Any) -> Refusal:
        party = self.model.kinds[deed.kind].parent if deed.kind in self.model.kinds else ""
        party = party or self.model.party or "customer"
        return Refusal(problem, kind=deed.kind or "record", value=value, party=party, **values)

    def _check_keys(self, deed: Deed, arguments: Mapping[str, Any]) -> None:
        """Refuse a call that names records which are not there."""
        for name, value in walk_values(arguments):
            kind, _ = kind_of_key(name, self.model.kinds)
            if not kind or name == deed.key or self.model.kinds[kind].outbox or not self.shelf.records[kind]:
                continue
            if deed.action == "create" and kind == deed.kind and name == self.model.kinds[kind].key:
                continue  # the new record's own
            named = (k for k in (value if isinstance(value, list) else [value]) if k not in (None, "", [], {}))
            if lost := [k for k in named if not isinstance(k, (dict, list)) and not self.shelf.key(kind, k)]:
                raise Refusal("not_found", kind=kind, value=lost[0], field=name)

    def _record(self, deed: Deed, arguments: Mapping[str, Any]) -> str:
        """Return the key of the record that a call names."""
        kind = self.model.kinds[deed.kind]
        if not deed.key:
            owner = self.shelf.key(kind.parent, arguments[deed.owner]) if deed.owner and deed.owner in arguments else ""
            owned = [*self.shelf.children(deed.kind, kind.parent, owner)] if owner else self.shelf.mine(deed.kind)
            status = {k: str(self.shelf.records[deed.kind][k].get(kind.status)) for k in owned}
            waiting = (k for k in owned if (status[k] in deed.before if deed.before else status[k] != deed.after))
            if not (key := next(waiting, "") or next(iter(owned if owner or not deed.before else ()), "")):
                raise self._refusal("none" if deed.before else "not_found", deed, expected=" or ".join(deed.before))
            return key
        key = self.shelf.key(deed.kind, arguments.get(deed.key, ""))
        if not key:
            raise self._refusal("not_found", deed, arguments.get(deed.key, ""), field=deed.key)
        parent = kind_of_key(deed.owner, self.model.kinds)[0] if deed.owner in arguments else ""
        record = self.shelf.records[deed.kind][key]
        mine = record.get(self.model.kinds[parent].key) if parent else None
        if mine is not None and str(mine) != self.shelf.key(parent, arguments[deed.owner]):
            raise self._refusal("wrong_owner", deed, key)
        if wrong := self.shelf.unlike(deed, key, arguments):
            raise self._refusal("mismatch", deed, key, field=wrong)
        return key

    def _get(self, deed: Deed, arguments: Mapping[str, Any]) -> Any:
        if deed.key == "id" and not deed.kind:
            for kind in self.model.kinds:
                if found := self.shelf.key(kind, arguments.get("id", "")):
                    return self.shelf.view(kind, found)
            raise Refusal("not_found", kind="record", value=arguments.get("id", ""))
        if not deed.kind:
            return self._answer(deed, arguments)
        if deed.key and not arguments.get(deed.key):
            return self._find(deed, arguments)  # by who asks, or by whose it is
        key = self._record(deed, arguments)
        shown = self.shelf.cut(deed, self.shelf.view(deed.kind, key), deed.kind)
        return {**arguments, **shown} if deed.kind == "session" else shown

    def _list(self, deed: Deed, arguments: Mapping[str, Any]) -> Any:
        kind = self.model.kinds[deed.kind]
        if kind.single:
            return self._get(deed, arguments)
        said = pattern("one_stop").search(f"{deed.tool} {self.model.tools[deed.tool].description.split('.')[0]}")
        if said and (way := way_of(kind.fields)) and {*way} <= {*deed.by.values()}:
            return self._one_stop(deed, arguments, way)
        limit = arguments.get(deed.limit)
        found = self.shelf.find(deed, arguments)[: limit if isinstance(limit, int) and limit > 0 else 50]
        shown = [self.shelf.cut(deed, self.shelf.view(deed.kind, k), deed.kind) for k in found]
        if kind.catalogue and not deed.by:
            short = (kind.key, "name", "title", "price", "monthly_price")
            brief = [{f: v for f, v in row.items() if f in short} for row in shown]
            long = brief and (len(shown[0]) > 6 or any(isinstance(v, (list, dict)) for v in shown[0].values()))
            return brief if long and len(brief[0]) > 1 else shown
        return shown

    def _one_stop(self, deed: Deed, arguments: Mapping[str, Any], way: Sequence[str]) -> list[list[dict[str, Any]]]:
        """Return a journey of two legs that meet where records of the kind do, the second after the first; none where a leg is not to be had."""
        records = self.shelf.records[deed.kind]
        start, end = (next(a for a, f in deed.by.items() if f == name) for name in way)
        ends = [str(arguments.get(a)) for a in (start, end)]
        hubs = {str(r[f]) for r in records.values() for f in way if r.get(f)} - {*ends}
        hub = min(hubs, key=lambda place: derive(self.shelf.seed, "hub", place, *ends), default="")
        legs = [k for side in (end, start) for k in self.shelf.find(deed, {**arguments, side: hub})[:1] if hub]
        times = [f for f, told in self.model.kinds[deed.kind].fields.items() if told.role == "time"]
        timetable([records[k] for k in legs], times, derive(self.shelf.seed, "clock", *legs))
        return [[self.shelf.view(deed.kind, k) for k in legs]] if len(legs) == len(way) else []

    def _find(self, deed: Deed, arguments: Mapping[str, Any]) -> Any:
        ways = [a for a in dict.fromkeys((deed.key, *deed.by, *deed.proofs, deed.owner)) if a]
        given = [a for a in ways if at_path(arguments, a)]
        if deed.action == "get" and not given:
            raise Refusal("invalid", field=deed.key, detail=f"give {' or '.join(ways)}")
        found = self._list(deed, arguments)
        if self.model.kinds[deed.kind].catalogue or not isinstance(found, list):
            return found
        if not found:
            named = " and ".join(given if deed.action == "get" else given[:1])
            raise self._refusal("not_found", deed, field=named or "details")
        return found[0] if len(found) == 1 else found

    def _answer(self, _deed: Deed, arguments: Mapping[str, Any]) -> Any:
        asked = {w for v in arguments.values() for w in words_of(str(v)) if len(w) > 3}
        told = [s for s in self.model.sentences if asked & set(words_of(s))]
        told.sort(key=lambda s: -len(asked & set(words_of(s))))
        return {"results": told[:3]} if told else {"results": [], "message": load_words("world_values")["kb"]}

    def _handoff(self, _deed: Deed, _arguments: Mapping[str, Any]) -> Any:
        return pick(load_words("world_errors")["handoff"], self.shelf.seed, "handoff")

    def _compute(self, deed: Deed, arguments: Mapping[str, Any]) -> Any:
        told = [v for _, v in walk_values(arguments)]
        sums = [v for n, v in arguments.items() if isinstance(v, str) and _SUM.search(n)]
        if len(self.model.arguments(deed.tool)) > 1 and not sums:  # no sum, but a quote: more of it costs more
            usual = 5 + derive(self.shelf.seed, deed.tool, *(v for v in told if isinstance(v, str))) % 2000 / 100
            return {"result": round(usual * (1 + sum(abs(v) for v in told if is_number(v)) / 20), 2)}
        text = next((str(v) for v in (*sums, *arguments.values()) if isinstance(v, (str, int, float))), "")
        try:
            value = round(float(_evaluate(ast.parse(text.strip(), mode="eval").body)), 2)
            return str(int(value) if value.is_integer() else value)
        except (ValueError, SyntaxError, ZeroDivisionError, OverflowError, MemoryError, RecursionError):
            raise Refusal("expression") from None

    def _create(self, deed: Deed, arguments: Mapping[str, Any]) -> Any:
        kind = self.model.kinds[deed.kind]
        body = given if isinstance(given := arguments.get(deed.body), Mapping) else {}
        named = arguments.get(deed.key) or body.get(kind.key)
        if self.shelf.key(deed.kind, named or ""):
            raise self._refusal("exists", deed, named)
        if wrong := [v for a, v in arguments.items() if "amount" in a and is_number(v) and v <= 0]:
            raise self._refusal("positive", deed, wrong[0])
        owner = ""
        if above := self.model.kinds.get(kind.parent):
            owners = [self.shelf.party] if above.name == self.model.party else [*self.shelf.records[above.name]]
            owner = self.shelf.key(above.name, arguments.get(deed.owner or above.key, "")) or next(iter(owners), "")
        self._move(deed, arguments)
        made = len(self.shelf.records[deed.kind]) + self.shelf.gone
        defaults = {a: s["default"] for a, s in self.model.arguments(deed.tool).items() if s.get("default") is not None}
        told = {t: source[a] for source in (defaults, arguments) for a, t in deed.sets.items() if a in source}
        given = {**{t: v for t, v in told.items() if "." not in t}, **body, **({kind.key: named} if named else {})}
        key = self.shelf.add(kind, owner, derive(self.shelf.seed, "created", made), given)
        record = self.shelf.records[deed.kind][key]
        self.shelf.fill_links(kind, made, record, given=tuple(given))
        record |= {"notes": []} if "notes" in record else {}
        for target, value in told.items():
            put_at(record, target, value)
        record |= body
        for name in self._unsaid(deed, told) - {*body, kind.key, above.key if above else ""}:
            record.pop(name, None)
        if kind.status:
            usual = (o for w in load_words("world_values")["opening"] for o in kind.statuses if o.lower() == w)
            opening = next(usual, next(iter(kind.statuses), "open"))
            record[kind.status] = deed.after or (told.get(kind.status) or opening)
        now, days = self._now(), next((v for a, v in arguments.items() if a.endswith("days") and type(v) is int), 0)
        roles = {f.name: f.role for f in kind.fields.values() if f.name not in (*deed.sets.values(), *body)}
        for name in record:
            if roles.get(name) == "moment" or name in ("created_date", "updated_at"):
                record[name] = now[:10] if name == "created_date" else now
            elif days and roles.get(name) in ("expiry", "future"):
                record[name] = f"{self.model.now + timedelta(days=days):%Y-%m-%d}"
        self.changes.append(Change(call="", kind=deed.kind, id=key, field="", before=None, after=dict(record)))
        return self.shelf.view(deed.kind, key)

    def _move(self, deed: Deed, arguments: Row) -> None:
        """Move the balance of the record that a new one is of; more than is due is refused."""
        of = kind_of_key(deed.moved, self.model.kinds)[0]
        if key := self.shelf.key(of, arguments.get(deed.moved, "")):
            record = self.shelf.records[of][key]
            self._check_amounts(deed, record, arguments)
            self._write(of, key, self._balance(deed, self.model.kinds[of], record, arguments))

    def _balance(self, deed: Deed, kind: Kind, record: Row, arguments: Row) -> dict[str, Any]:
        """Return the amounts of a record as a call moves them, and its status where all that was owed is paid."""
        new: dict[str, Any] = {}
        for argument, target in {**deed.adds, **deed.lowers}.items():
            present, sign = found if is_number(found := record.get(target)) else 0, -1 if argument in deed.lowers else 1
            more = arguments.get(argument, present if sign < 0 and deed.after else None)  # all of it
            new |= {target: round(present + sign * more, 2)} if is_number(more) else {}
        if deed.after.lower() in _PAID and not deed.lowers and (owed := debt_of(kind, record)[0]):
            new[owed] = 0
        if left := [new[t] for t in deed.lowers.values() if t in new]:
            paid = next((o for o in kind.statuses if o.lower() in _PAID), "") if max(left) <= 0.004 else ""
            new |= {kind.status: paid or record.get(kind.status)} if paid or (deed.after and max(left) > 0.004) else {}
        return new

    def _write(self, kind: str, key: str, new: Mapping[str, Any]) -> None:
        record, seen = self.shelf.records[kind][key], len(self.changes)
        for target, value in new.items():
            before = at_path(record, target)
            if before != value:
                put_at(record, target, value)
                self.changes.append(Change(call="", kind=kind, id=key, field=target, before=before, after=value))
        if len(self.changes) > seen and "updated_at" in record:
            record["updated_at"] = self._now()

    def _unsaid(self, deed: Deed, told: Mapping[str, Any]) -> set[str]:
        """Return the fields that a call could say and did not: they are not made up, but where a reply's schema requires them."""
        homes, asked = ({t.partition(".")[0] for t in targets} for targets in (told, deed.sets.values()))
        shown = (self.model.tools[d.tool].returns or {} for d in self.model.deeds.values() if d.kind == deed.kind)
        whole = (s for reply in shown for s in (reply, reply.get("items")) if isinstance(s, Mapping))
        return asked - homes - {name for s in whole for name in s.get("required") or ()}

    def _delete(self, deed: Deed, arguments: Mapping[str, Any]) -> Any:
        for key in [self._record(deed, arguments)] if deed.key else list(self.shelf.records[deed.kind]):
            gone = self.shelf.records[deed.kind].pop(key)
            self.shelf.gone += 1
            self.changes.append(Change(call="", kind=deed.kind, id=key, field="", before=gone, after=None))
        return {"status": "success"}

    def _change(self, deed: Deed, arguments: Mapping[str, Any]) -> Any:
        key = self._record(deed, arguments)
        self._check_change(deed, key, arguments)
        record = self.shelf.records[deed.kind][key]
        new = self.outcome(deed, record, arguments)
        self._write(deed.kind, key, new)
        if deed.once:
            self.done.add((deed.tool, key))
        return {f: record.get(f) for f in new} if deed.kind == "session" else self.shelf.view(deed.kind, key)

    def _check_change(self, deed: Deed, key: str, arguments: Mapping[str, Any]) -> None:
        """Refuse a change that the record's status or the amounts do not allow now."""
        kind, record = self.model.kinds[deed.kind], self.shelf.records[deed.kind][key]
        status = str(record.get(kind.status, "")) if kind.status else ""
        if deed.after and status == deed.after and deed.after not in deed.before:
            raise self._refusal("already", deed, key, status=status)
        if deed.before and status not in deed.before:
            raise self._refusal("bad_status", deed, key, status=status, expected=" or ".join(deed.before))
        if (deed.tool, key) in self.done:
            raise self._refusal("once", deed, key)
        switched = {f: switch(kind, f, v) for f, v in deed.fixed.items() if str(v).startswith("@switch")}
        if switched and all(record.get(f) == v for f, v in switched.items()) and not deed.sets:
            raise self._refusal("already", deed, key, status=str(next(iter(switched.values()))))
        mine = self.shelf.owned(kind.name, record) if deed.sole else ()
        if any(k != key and self.shelf.records[kind.name][k].get(kind.status) == deed.sole for k in mine):
            raise self._refusal("sole", deed, key, status=deed.sole)
        self._check_amounts(deed, record, arguments)

    def _check_amounts(self, deed: Deed, record: Mapping[str, Any], arguments: Mapping[str, Any]) -> None:
        limits = {**deed.checks, **deed.lowers}
        for argument in (*limits, *deed.adds):
            given, due = arguments.get(argument), record.get(limits.get(argument, ""))
            if is_number(given) and given <= 0:
                raise self._refusal("positive", deed, given)
            part = "refund" in deed.verb or argument in deed.lowers
            if is_number(given) and is_number(due) and (given - due if part else abs(given - due)) > 0.005:
                field = limits[argument].replace("_", " ")
                raise self._refusal("excess" if part else "amount", deed, given, field=field, expected=due)

    def outcome(self, deed: Deed, record: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return field to value as they are after a change."""
        kind = self.model.kinds[deed.kind]
        new: dict[str, Any] = {}
        for argument, target in deed.sets.items():
            value = arguments.get(argument)
            if isinstance(value, Mapping) and (target not in kind.fields or argument in BUNDLES):
                new |= value
            elif isinstance(value, list) and argument.endswith(("_to_add", "_to_remove")):
                base, _, way = argument.rpartition("_to_")
                new[base] = _listed(list(new.get(base, record.get(base)) or ()), value, way)
            elif argument in arguments:
                new[target] = value
        if deed.rows:
            new[deed.rows] = change_rows(self.shelf, deed, record, arguments)
        new |= write_named(deed, kind, record, arguments)
        for argument, target in deed.swaps.items():
            now = dict(zip(arguments.get(argument[4:]) or (), arguments.get(argument) or (), strict=False))
            new[target] = [now.pop(k, k) for k in record.get(target) or ()]
        stamp = self._now() if "@now" in deed.fixed.values() else ""
        for name, value in deed.fixed.items():
            new[name] = (stamp[:10] if "date" in name else stamp) if value == "@now" else switch(kind, name, value)
        if deed.toggles:
            on, off = switch(kind, deed.toggles, "@switch_on"), switch(kind, deed.toggles, "@switch_off")
            new[deed.toggles] = off if record.get(deed.toggles) == on else on
        if deed.after:
            new[kind.status or "status"] = deed.after
        new |= self._balance(deed, kind, record, arguments)
        return {**new, **recount(kind, record, new)}

    def _now(self) -> str:
        return f"{self.model.now + timedelta(minutes=self._minutes):%Y-%m-%d %H:%M:%S}"


def switch(kind: Kind, name: str, value: Any) -> Any:
    """Return ``@switch_on`` or ``@switch_off`` in the spelling of the field; any other value as it is."""
    if not str(value).startswith("@switch"):
        return value
    told = kind.fields.get(name)
    if told and (told.type == "boolean" or told.role == "flag"):
        return bool(value == "@switch_on")
    wanted = load_words("world_values")["switched"][value]
    return next((o for o in (told.options if told else ()) if o.lower() in wanted), wanted[0])


def _listed(present: list[Any], given: list[Any], way: str) -> list[Any]:
    """Add to a list, or take out what has one of the values given."""
    if way == "add":
        return [*present, *given]
    gone = {str(v) for g in given for v in (g.values() if isinstance(g, Mapping) else [g])}
    return [x for x in present if not gone & set(map(str, x.values() if isinstance(x, Mapping) else [x]))]


def _evaluate(node: ast.AST) -> float:
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return value
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return float(_OPERATORS[type(op)](_evaluate(left), _evaluate(right)))
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _OPERATORS:
            return float(_OPERATORS[type(op)](_evaluate(operand)))
    raise ValueError("only numbers and + - * / are computed")
