"""Whom a case is referred to makes it a hand-off: a desk or a name, and no page."""

from __future__ import annotations

import pytest

from whilesim.situations.policy import parse_policy


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Suspected scams must be passed on to loss prevention.", "handoff"),
        ("Urgent prescriptions have to be referred to Dr. Lee.", "handoff"),
        ("Claims above $900 should be referred up to regional claims.", "handoff"),
        ("Reports of bites must be escalated to animal control.", "handoff"),
        ("Savings must be passed on to the customer.", "must"),
        ("Customers must be referred to the FAQ page.", "must"),
        ("Guests must be referred to as guests.", "must"),
        ("Price changes must be passed on to subscribers within 5 days.", "must"),
        ("Personal data must never be passed on to third parties.", "must_not"),
    ],
)
def test_what_must_be_referred_to_a_desk_is_handed_off_and_to_a_page_is_not(text: str, kind: str) -> None:
    assert [c.kind for c in parse_policy(f"- {text}\n").clauses] == [kind]
