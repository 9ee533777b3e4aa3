"""Personas: how a customer types."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Persona:
    """One way of typing."""

    texture: str
    tone: str
    length: str
    pressure: str
