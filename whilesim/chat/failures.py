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
        self,
        message: str,
        *,
        reason: str,
        retry_after: float | None = None,
        final: bool = False,
        billed: bool = False,
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
        headers: Its headers, names in lower case.
    """
    reason, final = _sort(status, text.casefold())
    hint = load_words("failures")["hints"].get(reason, "")
    return CallFailed(
        f"{where} answered {status}: {shorten(text, 300) or 'nothing'!s}. {hint}".strip(),
        reason=reason,
        retry_after=read_retry_after(headers),
        final=final,
    )


def says(text: str, what: str) -> bool:
    """Whether an error text holds one of the phrases listed under ``what``."""
    folded = text.casefold()
    return any(phrase in folded for phrase in load_words("failures")[what])


def read_retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the pause an answer asks for, in seconds, or None when it names none.

    ``retry-after-ms``, seconds and HTTP dates are understood. A date is compared with the
    answer's own ``date`` where there is one, so that a wrong clock on either side does no
    harm; a date that has passed is 0.
    """
    try:
        if "retry-after-ms" in headers:
            return _bounded(float(headers["retry-after-ms"]) / 1000)
        if "retry-after" not in headers:
            return None
        return _bounded(float(headers["retry-after"]))
    except ValueError:
        return _until(headers.get("retry-after", ""), headers.get("date", ""))


def _sort(status: int, text: str) -> tuple[str, bool]:
    if status == 402 or (status == 429 and says(text, "quota")):
        return "rate_limit", True
    if status == 429:
        return "rate_limit", False
    if status in (401, 403):
        return "auth", True
    for reason in ("context_window", "content_filter"):
        if status != 0 and says(text, reason):
            return reason, True
    if status in (408, 504):
        return "timeout", False
    if status >= 500 or status in (0, 409, 425):
        return "server", False
    return "bad_request", True


def _until(date: str, now: str) -> float | None:
    try:
        then = parsedate_to_datetime(date).timestamp()
    except ValueError:
        return None
    try:
        start = parsedate_to_datetime(now).timestamp()
    except ValueError:
        start = time.time()
    return _bounded(then - start)


def _bounded(seconds: float) -> float | None:
    if seconds != seconds:  # NaN
        return None
    return min(max(seconds, 0.0), LONGEST_PAUSE)
