"""Facts are said in sentences, and no name of a schema is."""

from __future__ import annotations

import pytest

from whilesim.cards.facts import say_fact, say_facts


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("name", "Honey Allison", "my name is Honey Allison"),
        ("product name", "desk lamp", "the product is called desk lamp"),
        ("user id", "bee_suarez_466", "my user id is bee_suarez_466"),
        ("phone", "555-0182", "you can reach me at 555-0182"),
        ("date of birth", "1984-01-02", "I was born on 1984-01-02"),
        ("item", "office chair, office chair", "it's the one with the office chair"),
        ("total", "213.56", "it came to 213.56 in total"),
        ("item ids", "77, 78", "the items are 77 and 78"),
        ("new item ids", "77, 78", "the new items would be 77 and 78"),
        ("new item ids", "77", "the new item would be 77"),
        ("new zip code", "85718", "the new zip code would be 85718"),
        ("payment method id", "card_9", "the payment should go through card_9"),
        ("reason", "no longer needed", "my reason: no longer needed"),
        ("flight type", "round_trip", "the flight type is round trip"),
        ("opened", "yes", "it has been opened"),
        ("deposit paid", "no", "the deposit hasn't been paid"),
        ("late reported", "no", "it hasn't been reported late"),
        ("effective", "2026-01-05", "it's effective 2026-01-05"),
        ("is active", "yes", "it is active"),
        ("is fragile", "no", "it isn't fragile"),
        ("items damaged", "yes", "the items have been damaged"),
        ("windows open", "no", "the windows aren't open"),
        ("has insurance", "yes", "it has insurance"),
        ("has warranty", "no", "it has no warranty"),
        ("has arrived", "no", "it hasn't arrived"),
        ("can cancel", "no", "it can't cancel"),
        ("new insurance", "no", "insurance: no"),
        ("wants refund", "yes", "wants refund: yes"),
        ("country code", "NO", "the country code is NO"),
        ("last name", "No", "my last name is No"),
        ("by", "555-0182", "you'll find it under 555-0182"),
        ("new to", "a@b.co", "it goes to a@b.co"),
        ("from", "2026-03-01", "it's from 2026-03-01"),
        ("new died on", "2026-03-01", "it died on 2026-03-01"),
        ("created at", "2026-03-01", "it was created at 2026-03-01"),
        ("move out on", "2026-03-01", "the move out is on 2026-03-01"),
        ("username", "ann_lee", "my username is ann_lee"),
        ("new street address", "12 Hill Road, Unit 4", "the new street address would be 12 Hill Road, Unit 4"),
        ("passengers", "Al Bo 1990-01-02, Cy Di 1991-02-03", "the passengers are Al Bo 1990-01-02 and Cy Di 1991-02-03"),
    ],
)  # fmt: skip
def test_each_kind_of_fact_has_its_sentence(name: str, value: str, said: str) -> None:
    assert say_fact(name, value) == said


def test_facts_come_two_to_a_sentence_and_what_ends_stands_alone() -> None:
    facts = [("name", "Ann Lee"), ("zip", "02137"), ("details", "It broke."), ("date", "2026-01-02")]
    said = "My name is Ann Lee and my zip code is 02137. It's like this: It broke. The date is 2026-01-02."
    assert say_facts(facts) == said
    assert say_facts([]) == ""


@pytest.mark.parametrize(
    ("name", "said"),
    [("replaces", "it replaces C12"), ("orders", "the orders are C12"), ("credits", "the credits are C12")],
)
def test_a_name_that_is_a_verb_is_said_as_one(name: str, said: str) -> None:
    assert say_fact(name, "C12") == said
