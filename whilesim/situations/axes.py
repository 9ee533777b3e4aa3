"""Axes: what a situation is made of, and which values cannot meet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Axis:
    """One property of a situation and the values it can take."""

    name: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """A combination of values that cannot happen, over the axes it names."""

    axes: tuple[str, ...]
    forbids: Callable[..., bool]
    """Called with one value per axis in ``axes``; true means: cannot happen."""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Space:
    """All situations: the product of the axes, less what the rules forbid."""

    axes: tuple[Axis, ...]
    forbidden: tuple[Rule, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """One value for each axis."""

    id: str
    values: Mapping[str, str]
    """Axis name to value, in axis order."""
