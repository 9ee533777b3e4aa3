"""Model: the whole inferred world as a value, and the same as YAML for a user to edit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from whilesim.core.jsontext import dumps
from whilesim.situations.axes import Rule
from whilesim.situations.tools import Tool
from whilesim.world.deeds import UNFOUND, Deed
from whilesim.world.fitting import allows, fit
from whilesim.world.kinds import TELLING, Kind, Row, properties
from whilesim.world.spec import WorldSpec


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WorldModel:
    """What a world is made of: the same for all situations."""

    tools: Mapping[str, Tool]
    kinds: Mapping[str, Kind]
    deeds: Mapping[str, Deed]
    party: str
    """Kind of whoever the customer is; empty for none."""
    now: datetime
    locale: str
    spec: WorldSpec = field(default_factory=WorldSpec)
    sentences: tuple[str, ...] = ()
    """What a knowledge base can answer with."""

    def rules(self) -> tuple[Rule, ...]:
        """Return the combinations of tool, condition and state that cannot happen in this world."""
        return (
            Rule(("tool", "tool_condition"), self._no_condition, "only a read of one record can be stale"),
            Rule(("tool", "world_state"), self._no_state, "the tool touches no record that could be in this state"),
        )

    def _no_condition(self, tool: str, condition: str) -> bool:
        deed = self.deeds.get(tool)
        one = deed is not None and deed.action == "get" and bool(deed.kind) and not self.kinds[deed.kind].catalogue
        return deed is not None and condition == "stale" and not one

    def _no_state(self, tool: str, state: str) -> bool:
        deed = self.deeds.get(tool)
        if deed is None or state == "exists":
            return False
        if deed.action in ("answer", "handoff", "compute") or not deed.kind:
            return True
        kind = self.kinds[deed.kind]
        if state == "missing":
            found = deed.action == "find" and (kind.catalogue or deed.kind == self.party)
            return not (deed.key or deed.owner or found) or (kind.catalogue and found)
        if (kind.single and not deed.after) or (kind.catalogue and not deed.writes) or deed.action == "list":
            return True
        if state == "partially_completed":
            return deed.action != "change"
        if state == "already_acted_on":
            again = deed.action != "create" or self.listable(deed.kind)
            return deed.piles or not (deed.writes and again)
        told = any(f.role in TELLING or (f.role == "links" and f.link != kind.name) for f in kind.fields.values())
        apart = told and deed.key and self.listable(deed.kind) and deed.action in ("get", "change", "delete")
        return state == "duplicate" and not apart

    def arguments(self, tool: str) -> dict[str, Row]:
        """Return a tool's arguments and their schemas."""
        return properties(self.tools[tool])

    def listable(self, kind: str) -> bool:
        """Whether an agent that knows who the customer is can find the customer's records of a kind."""
        if kind not in self.kinds or not self.party or kind == self.party:
            return False
        hangs = self.kinds[kind].parent == self.party  # and so shows with the customer
        shown = (d.kind == self.party and hangs and d.shows != ("id",) for d in self.deeds.values() if d.reads)
        return any(shown) or any(d.kind == kind and d.action == "list" for d in self.deeds.values())

    def can_show(self, deed: Deed, by: Iterable[Deed]) -> bool:
        """Whether one of these tools shows what a deed wrote: the record, or what it belongs to where none shows such records."""
        kind = self.kinds.get(deed.kind)
        home = kind.parent if kind and kind.outbox else deed.kind
        return deed.writes and any(d.reads and (d.kind == deed.kind or (d.kind == home and not d.shows)) for d in by)

    def notes(self) -> tuple[str, ...]:
        """Return what a user should hear of: tools whose records cannot be found, arguments that nothing is allowed for."""
        told = "{}: {}. Name the key where there is one: WorldSpec(entities={{KIND: {{'key': ARGUMENT}}}})"
        lost = (told.format(d.tool, d.why) for d in self.deeds.values() if d.why.startswith(UNFOUND))
        given = ((tool, a, s) for tool in self.tools for a, s in self.arguments(tool).items())
        told_of = "{}: no value was found that the schema of {!r} allows: its right call is refused. Give examples in the schema"
        return (*lost, *(told_of.format(t, a) for t, a, s in given if not allows(s, fit("", s, 0, a))))

    def describe(self) -> str:
        """Return the world as YAML, the rule that fired beside each line; ``WorldSpec.from_yaml`` reads it back."""
        kinds, deeds, guessed = self._kind_lines(), self._deed_lines(), self._guess_lines()
        return "\n".join([f"locale: {self.locale}", "entities:", *kinds, "tools:", *deeds, *guessed, ""])

    def _kind_lines(self) -> list[str]:
        lines = []
        for kind in self.kinds.values():
            lines.append(f"  {kind.name}:  # {kind.why}")
            lines += [f"    {word}: {_scalar(v)}" for word, v in (("key", kind.key), ("parent", kind.parent)) if v]
            if kind.statuses:
                lines.append(f"    status: {dumps(list(kind.statuses))}  # {kind.fields[kind.status].why}")
            lines += [f"    {word}: true" for word in ("catalogue", "single") if getattr(kind, word)]
            lines += [f"    count: {kind.count}", "    fields:" if kind.fields else "    fields: {}"]
            for told in kind.fields.values():
                what = f"{told.link}[]" if told.role == "links" else told.link or told.role
                lines.append(f"      {_scalar(told.name)}: {what}  # {told.why}")
        return lines or ["  {}"]

    def _deed_lines(self) -> list[str]:
        lines = []
        for deed in self.deeds.values():
            tool = self.tools[deed.tool]
            told = {"entity": deed.kind, "pre": list(deed.before), "post": deed.after, "sets": dict(deed.sets)}
            lines.append(f"  {_scalar(deed.tool)}:  # {' '.join(deed.why.split())}")
            lines += [f"    effect: {tool.effect}  # {tool.effect_rule}", f"    action: {deed.action}"]
            lines += [f"    {word}: {dumps(value)}" for word, value in told.items() if value]
        return lines or ["  {}"]

    def _guess_lines(self) -> list[str]:
        unsure = [d for d in self.deeds.values() if d.guessed or self.tools[d.tool].effect_rule.endswith("(unsure)")]
        told = [f"{d.tool}: {d.why}" for d in unsure]
        told += [f"{k.name}: nothing says which fields it has" for k in self.kinds.values() if not k.fields]
        return ["guessed:  # please check", *[f"  - {dumps(u)}" for u in told]] if told else ["guessed: []"]


def _scalar(text: str) -> str:
    plain = text.isidentifier() and text.lower() not in ("on", "off", "yes", "no", "y", "n", "true", "false", "null")
    return text if plain else dumps(text)
