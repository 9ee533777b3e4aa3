"""A persona can be seen in the words, and never damages a fact."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from itertools import product
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whilesim.cards.personas import Length, Persona, Pressure, Texture, Tone, draw_persona, persona_prose, type_like

PARTS = {"texture": Texture, "tone": Tone, "length": Length, "pressure": Pressure}
PLAIN = Persona(texture="ordinary", tone="neutral", length="medium", pressure="none")
TEXT = (
    "I would like to return the green lamp from order #W-2210. I really think the plug is broken, and please "
    "write to Mina.Ode@example.org by May 5, 2024. The price was $1,299.50, I believe. My name is Ada McKay."
)
KEPT = ["green lamp", "Ada McKay"]
FACTS = ["#W-2210", "Mina.Ode@example.org", "May 5, 2024", "$1,299.50", *KEPT]


def typed(text: str = TEXT, seed: int = 0, **parts: str) -> str:
    values = {"texture": "ordinary", "tone": "neutral", "length": "medium", "pressure": "none", **parts}
    return type_like(text, Persona(**values), seed, "opening", protect=KEPT)  # type: ignore[arg-type]


def test_ordinary_neutral_text_is_left_alone():
    assert typed() == TEXT


@pytest.mark.parametrize(("part", "value"), [(p, v) for p, kind in PARTS.items() for v in get_args(kind)])
def test_every_value_shows_in_the_words(part, value):
    changed = typed(**{part: value}) != TEXT
    assert changed == (value not in ("ordinary", "neutral", "medium", "none"))


def test_each_texture_is_what_its_name_says():
    free = re.compile("|".join(map(re.escape, FACTS)))
    lower, bare = (free.sub("", typed(texture=t)) for t in ("lowercase", "no_punctuation"))
    assert lower == lower.lower()
    assert not re.search(r"[.,;:!?]", bare)
    assert len(typed(texture="clipped")) < 0.9 * len(TEXT)
    assert not re.search(r"\b(the|I would)\b", typed(texture="clipped"), re.IGNORECASE)
    wrong = sum(a != b for a, b in zip(typed(texture="typos").split(), TEXT.split(), strict=True))
    assert 1 <= wrong <= 6
    assert not re.search(r"[.!?](\s|$)", typed(texture="run_on"))
    assert len(typed(length="short")) < len(TEXT) < len(typed(length="long"))
    assert "please" not in typed(tone="terse")
    terse = replace(PLAIN, tone="terse")
    assert type_like("Could you cancel order W1, please?", terse, 1, "opening") == "Can you cancel order W1?"


def test_pressure_says_what_presses():
    said = {p: {typed(seed=seed, pressure=p) for seed in range(20)} for p in get_args(Pressure)}
    assert len(said["none"]) == 1
    assert all(len(texts) > 2 for p, texts in said.items() if p != "none")


def test_a_short_answer_in_the_middle_is_not_padded():
    answer = "Yes, go ahead."
    loud = Persona(texture="ordinary", tone="neutral", length="long", pressure="complaint")
    assert {type_like(answer, loud, seed, "say") for seed in range(50)} == {answer}


def test_a_greeting_is_not_said_twice():
    text = "Hello, I want to know what my plan costs in the months after the first year."
    assert all(type_like(text, Persona(texture="ordinary", tone="friendly", length="medium", pressure="none"), s, "opening").count("ello") == 1 for s in range(20))  # fmt: skip


OTHER = {
    "de": "Ich möchte meine Bestellung W123 stornieren. Können Sie mir bitte dabei helfen, weil sie nicht ankam?",
    "ja": "注文W123をキャンセルしたいです。理由は届かないからです。お願いします。",
    "ar": "أريد إلغاء الطلب W123 من فضلك. هل يمكنك مساعدتي في ذلك اليوم؟",
}


@pytest.mark.parametrize("language", OTHER)
def test_other_languages_get_no_english_and_keep_their_facts(language):
    text = OTHER[language]
    for texture, tone in product(get_args(Texture), get_args(Tone)):
        persona = Persona(texture=texture, tone=tone, length="long", pressure="money")
        written = type_like(text, persona, 1, "opening")
        assert "W123" in written
        assert not re.search(r"money|budget|afford|Hello|Thank", written)
    assert (
        type_like(text, Persona(texture="no_punctuation", tone="neutral", length="medium", pressure="none"), 1) != text
    )


PROTECTED = st.one_of(
    st.from_regex(r"[A-Z]{1,3}-?[0-9]{2,6}", fullmatch=True),
    st.from_regex(r"[a-z]{2,8}\.[a-z]{2,8}@[a-z]{2,8}\.(com|org)", fullmatch=True),
    st.from_regex(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", fullmatch=True),
    st.from_regex(r"[$€][0-9]{1,3}(,[0-9]{3})?\.[0-9]{2}", fullmatch=True),
    st.from_regex(r"[A-Z][a-z]{2,8} (Mc|O')?[A-Z][a-z]{2,8}", fullmatch=True),
    st.from_regex(r"[a-z]{3,8}_[a-z]{3,8}", fullmatch=True),
    st.text(st.characters(categories=["L", "N", "P"]), min_size=1, max_size=12).filter(lambda t: t.strip() == t),
)
PERSONAS = st.builds(Persona, **{part: st.sampled_from(get_args(kind)) for part, kind in PARTS.items()})


@settings(max_examples=300, deadline=None)
@given(PERSONAS, st.integers(0, 2**40), st.lists(PROTECTED, min_size=1, max_size=4), st.sampled_from(["My order is {}. Please check it, I'd like to know where the {} went!", "Hello, I am {} and I want {}?", "{} / {}", "好的，{}。谢谢{}！"]))  # fmt: skip
def test_every_protected_text_survives(persona, seed, protected, frame):
    text = frame.format(protected[0], ", ".join(protected))
    written = type_like(text, persona, seed, "opening", protect=protected)
    assert all(word in written for word in protected)


@settings(max_examples=100, deadline=None)
@given(PERSONAS, st.integers(0, 2**40), st.text(max_size=60))
def test_any_text_can_be_typed_and_the_seed_decides_how(persona, seed, text):
    written = type_like(text, persona, seed, "opening")
    assert written == type_like(text, persona, seed, "opening")
    assert bool(written) == bool(text)


def test_codes_dates_and_addresses_survive_without_being_named():
    text = (
        "Call 555-0142, order_ref AB12, 10:30 on 3 March 2025 at https://example.org/a?b=c, zip 02-137, 5 GB, my SIM."
    )
    for texture in get_args(Texture):
        persona = Persona(texture=texture, tone="irritated", length="long", pressure="deadline")
        written = type_like(text, persona, 3, "opening")
        for fact in (
            "555-0142",
            "order_ref",
            "AB12",
            "10:30",
            "3 March 2025",
            "https://example.org/a?b=c",
            "02-137",
            "5",
            "GB",
            "SIM",
        ):
            assert fact in written


def test_two_in_five_write_ordinary_prose_and_every_value_occurs():
    drawn = [draw_persona(0, f"s{n}") for n in range(2_000)]
    ordinary = sum(p.texture == "ordinary" for p in drawn) / len(drawn)
    assert 0.36 < ordinary < 0.44
    for part, kind in PARTS.items():
        assert set(Counter(getattr(p, part) for p in drawn)) == set(get_args(kind))
    assert not any(p.tone == "terse" and p.length == "long" for p in drawn)


def test_a_persona_depends_on_seed_and_name_alone():
    assert draw_persona(7, "s1") == draw_persona(7, "s1")
    assert len({draw_persona(7, f"s{n}") for n in range(50)}) > 20
    assert len({draw_persona(n, "s1") for n in range(50)}) > 20


def test_prose_has_one_sentence_for_each_part_and_no_labels():
    seen = {part: {persona_prose(Persona(**{"texture": "ordinary", "tone": "neutral", "length": "medium", "pressure": "none", part: v})) for v in get_args(kind)} for part, kind in PARTS.items()}  # fmt: skip
    assert [len(seen[part]) for part in PARTS] == [len(get_args(kind)) for kind in PARTS.values()]
    for text in set().union(*seen.values()):
        assert not re.search(r"no_punctuation|run_on|texture|tone:|[{}]", text)
        assert text.count(". ") == 3
    assert PLAIN.describe() == persona_prose(PLAIN)
