"""Spec: what a user knows better about the world than inference can.

A spec is a handful of mappings, as Python or as YAML. ``WorldModel.describe`` prints the
same form, so that a user edits what was inferred instead of writing it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args

from whilesim.core.errors import InputError
from whilesim.core.jsontext import read_yaml
from whilesim.situations.tools import Effect

Action = Literal["get", "list", "find", "answer", "create", "change", "delete", "handoff", "compute"]
_ALLOWED = {"effect": get_args(Effect), "action": get_args(Action)}


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldSpec:
    """What overrides inference; everything left out is inferred."""

    examples: Mapping[str, Any] | None = None
    """Tool name to one example reply, or to a list of ``(arguments, reply)`` pairs: shape, spelling
    and id format of the real thing. The strongest evidence there is."""
    returns: Mapping[str, Mapping[str, Any]] | None = None
    """Tool name to the JSON Schema of its reply; every reply is validated against it."""
    entities: Mapping[str, Mapping[str, Any]] | None = None
    """Kind of record to ``key``, ``parent``, ``status`` (a list), ``fields`` (name to type), ``count``."""
    tools: Mapping[str, Mapping[str, Any]] | None = None
    """Tool name to ``effect`` (read, write, handoff, compute), ``action``, ``entity``, ``pre``, ``post``, ``sets``."""
    records: Mapping[str, Sequence[Mapping[str, Any]]] | None = None
    """Kind of record to records that stand in the world as given, before any is invented."""
    locale: str = "en_US"
    """Language and country of invented names and addresses: ``de_DE``."""

    def __post_init__(self) -> None:
        for name in ("examples", "returns", "entities", "tools", "records"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, Mapping):
                what = type(value).__name__
                msg = f"the world's {name!r} is {what}, and must map names to values. Type: WorldSpec({name}={{...}})"
                raise InputError(msg)
        for name in ("returns", "entities", "tools"):
            for key, value in (getattr(self, name) or {}).items():
                if not isinstance(value, Mapping):
                    msg = f"the world's {name!r} has {value!r} for {key!r}, which is no mapping. Type: {{{key!r}: {{...}}}}"
                    raise InputError(msg)
        for tool, told in (self.tools or {}).items():
            for word, allowed in _ALLOWED.items():
                if told.get(word) not in (None, *allowed):
                    msg = f"the {word} of {tool!r} is {told[word]!r}; it must be one of {', '.join(allowed)}."
                    raise InputError(msg)

    @classmethod
    def from_yaml(cls, path: str | os.PathLike[str]) -> WorldSpec:
        """Read a spec from a YAML file, in the form that ``WorldModel.describe`` prints.

        Raises:
            InputError: The file is not YAML, or holds a word that a spec does not have.
        """
        try:
            found = read_yaml(Path(path).read_text(encoding="utf-8"))
        except ValueError as error:
            msg = f"{os.fspath(path)} cannot be read ({error}). Print a spec with plan.world.describe() and edit that."
            raise InputError(msg) from error
        known = {f.name for f in fields(cls)}
        if not isinstance(found, Mapping) or not set(found) <= known | {"guessed"}:
            told = ", ".join(map(repr, sorted(set(found) - known))) if isinstance(found, Mapping) else repr(found)
            raise InputError(f"{os.fspath(path)} holds {told}, which no world has. Use: {', '.join(sorted(known))}.")
        return cls(**{key: value for key, value in found.items() if key in known and value is not None})
