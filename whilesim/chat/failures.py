"""Failures: what went wrong with a call, in one word, and whether trying again can help.

Endpoints say the same thing in many ways: a full context is a 400 here and a 500 there, an
empty account is a 429. The phrases that tell them apart are in ``words/failures.yaml``.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

from whilesim.core.errors import ModelError
from whilesim.core.templates import load_words
from whilesim.core.text import shorten

RETRIED = frozenset({"rate_limit", "timeout", "connection", "server", "malformed_reply"})
"""Reasons after which the same request may succeed. All others are deterministic."""

LONGEST_PAUSE = 120.0
"""Seconds that a Retry-After is obeyed at most."""


class CallFailed(ModelError):  # noqa: N818  it names an event, as GateFailed does
    """One attempt at a call that failed.

    ``retry_after`` is what the endpoint asked for, in seconds; ``final`` says that no further
    attempt can help in this run; ``billed`` that the provider may have counted it.
    """

    def __init__(
        self, message: str, *, reason: str, retry_after: float | None = None, final: bool = False, billed: bool = False
    ) -> None:
        super().__init__(message, reason=reason)
        self.retry_after = retry_after
        self.final = final or reason not in RETRIED
        self.billed = billed
        self.seconds = 0.0
        """How long the request was under way."""


def read_failure(where: str, status: int, text: str, headers: Mapping[str, str]) -> CallFailed:
    """Sort an endpoint's error answer into the taxonomy.

    Args:
        where: Model and host, for the message.
        status: The HTTP status; 0 when there is none.
        text: The answer's body.
        headers: Its headers.
    """
    reason = _sort(status, text)
    named = (what for what in ("no_tools", "many_tools") if reason in ("bad_request", "server") and says(text, what))
    hint = load_words("failures")["hints"].get(next(named, reason), "")
    message = f"{where} answered {status}: {shorten(text, 300) or 'nothing'}. {hint}"
    empty = reason == "rate_limit" and (status == 402 or says(text, "quota"))
    pause = read_retry_after({name.lower(): value for name, value in headers.items()})
    return CallFailed(message.strip(), reason=reason, retry_after=pause, final=empty)


def says(text: str, what: str) -> bool:
    """Whether an error text holds one of the phrases listed under ``what``."""
    return any(phrase in text.casefold() for phrase in load_words("failures")[what])


def read_retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the pause an answer asks for by its headers, names in lower case: seconds, or None when it names none.

    ``retry-after-ms``, seconds and HTTP dates are understood. A date is compared with the
    answer's own ``date`` where there is one, so that a wrong clock on either side does no
    harm; a date that has passed is 0.
    """
    wanted = headers.get("retry-after", "")
    try:
        seconds = float(headers["retry-after-ms"]) / 1000 if "retry-after-ms" in headers else float(wanted)
    except ValueError:
        then, now = _read_date(wanted), _read_date(headers.get("date", ""))
        if then is None:
            return None
        seconds = then - (time.time() if now is None else now)
    return min(max(0.0, seconds), LONGEST_PAUSE)  # in this order NaN is 0


def _sort(status: int, text: str) -> str:
    if status in (402, 429):
        return "rate_limit"
    if status in (401, 403):
        return "auth"
    if named := next((reason for reason in ("context_window", "content_filter") if says(text, reason)), None):
        return named
    if status in (408, 504):
        return "timeout"
    return "server" if status >= 500 or status in (0, 409, 425) else "bad_request"


def _read_date(text: str) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp()
    except ValueError:
        return None
