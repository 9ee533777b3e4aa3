"""The taxonomy of failures, and what a pause means."""

from __future__ import annotations

import time
from email.utils import formatdate

import pytest

from whilesim.chat.failures import LONGEST_PAUSE, read_failure, read_retry_after


@pytest.mark.parametrize(
    ("status", "text", "reason", "final"),
    [
        (429, "slow down", "rate_limit", False),
        (429, '{"error": {"code": "insufficient_quota"}}', "rate_limit", True),
        (402, "You have used up your credits", "rate_limit", True),
        (401, "bad key", "auth", True),
        (403, "not yours", "auth", True),
        (400, "This model's maximum context length is 8192 tokens", "context_window", True),
        (500, "the request exceeds the available context size", "context_window", True),
        (400, '{"error": {"code": "content_filter"}}', "content_filter", True),
        (400, "unknown field", "bad_request", True),
        (404, "no such model", "bad_request", True),
        (422, "temperature must be a number", "bad_request", True),
        (408, "", "timeout", False),
        (504, "gateway", "timeout", False),
        (500, "oops", "server", False),
        (503, "overloaded", "server", False),
        (529, "overloaded_error", "server", False),
    ],
)
def test_an_error_answer_has_one_reason(status, text, reason, final):
    failure = read_failure("'m' at host", status, text, {})
    assert (failure.reason, failure.final) == (reason, final)
    assert f"'m' at host answered {status}" in str(failure)


def test_a_long_error_is_shortened_and_says_what_to_do():
    message = str(read_failure("'m' at host", 401, "x" * 5000, {}))
    assert len(message) < 600
    assert "Check the key" in message


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.25"}, 0.25),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "86400"}, LONGEST_PAUSE),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, 0.0),
        (
            {"retry-after": "Wed, 21 Oct 2026 07:28:30 GMT", "date": "Wed, 21 Oct 2026 07:28:00 GMT"},
            30.0,
        ),
        (
            {"retry-after": "Wed, 21 Oct 2026 07:27:00 GMT", "date": "Wed, 21 Oct 2026 07:28:00 GMT"},
            0.0,
        ),
    ],
)
def test_a_pause_is_read_from_seconds_milliseconds_and_dates(headers, seconds):
    assert read_retry_after(headers) == seconds


def test_a_date_without_a_date_of_the_answer_is_compared_with_our_clock():
    found = read_retry_after({"retry-after": formatdate(time.time() + 60, usegmt=True)})
    assert found is not None
    assert 50 < found <= 60
