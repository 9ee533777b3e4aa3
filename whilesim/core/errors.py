"""Errors: every error this package raises on purpose.

    WhilesimError
      InputError     the policy, the tools or an argument cannot be used (also a ValueError)
      ModelError     a model endpoint failed, after its retries
      JudgeError     a judge answered, but not in a form that can be read
      RunError       the run cannot go on, or is not at the step that was asked for
      GateFailed     an evaluation is below what the gate asks
      MissingExtra   an optional package is not installed; names the extra

A message says what was found, why it cannot work, and what to type instead. One
conversation that fails is a row with a reason, not an exception: only an error that makes
the whole run pointless reaches the caller.
"""

from __future__ import annotations

from typing import Any


class WhilesimError(Exception):
    """Catch every error that this package raises on purpose."""


class InputError(WhilesimError, ValueError):
    """The policy, the tools or an argument cannot be used."""


class ModelError(WhilesimError):
    """A model endpoint failed, after its retries; ``reason`` is one word of the taxonomy.

    Reasons: ``rate_limit``, ``timeout``, ``connection``, ``server``, ``context_window``,
    ``content_filter``, ``bad_request``, ``auth``, ``malformed_reply``, ``budget``,
    ``deadline``, ``interrupt``, ``player`` (a callable that raised).
    """

    def __init__(self, message: str, *, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


class JudgeError(WhilesimError):
    """A judge answered, but not in a form that can be read: ``raw``; ``usage`` is what asking cost, where known."""

    def __init__(self, message: str, *, raw: str = "", usage: Any = None) -> None:
        super().__init__(message)
        self.raw = raw
        self.usage = usage


class RunError(WhilesimError):
    """The run cannot go on, or is not at the step that was asked for."""


class GateFailed(WhilesimError):  # noqa: N818  the name is part of the public contract
    """An evaluation is below what the gate asks."""


class MissingExtra(WhilesimError):  # noqa: N818  the name is part of the public contract
    """An optional package is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f'{package!r} is not installed, and this step needs it. Type: pip install "whilesim[{extra}]"')
