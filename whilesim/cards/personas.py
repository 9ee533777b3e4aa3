"""Personas: how a customer types, in prose for a model and in deed for a script.

Lower case, missing punctuation, run-on sentences and typos work in any language that has
them. Fragments, and whatever tone, length and pressure add, are English: other texts are left
without. Codes, numbers, e-mail addresses, dates and the protected texts always survive.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, cast

from whilesim.cards.speech import spans_of
from whilesim.core.seeds import between, chance, derive, pick
from whilesim.core.templates import load_words, render_prompt
from whilesim.core.text import words

Texture = Literal["ordinary", "lowercase", "no_punctuation", "clipped", "typos", "run_on"]
Tone = Literal["neutral", "friendly", "terse", "worried", "irritated"]
Length = Literal["short", "medium", "long"]
Pressure = Literal["none", "deadline", "money", "complaint"]

_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|sept|oct|nov|dec)[a-z]*\.?"
_LATIN = r"[^\s,;:!?()\u3000-\uffef]"  # a character of a word, in scripts that have spaces
_FIXED = re.compile(
    rf"(?i:\b{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?|\b\d{{1,2}}(?:st|nd|rd|th)?\.? {_MONTH}(?: \d{{4}})?\b)"
    r"|https?://\S*[\w/]|[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+"  # addresses
    rf"|{_LATIN}{{0,60}}\d(?:(?:{_LATIN}|[,:])*{_LATIN}(?<!\.))?"  # whatever holds a digit
    r"|[A-Za-z]{1,60}(?:_[A-Za-z]+)+|\b(?=[^\W\d_]*[A-Z][^\W\d_]*[A-Z])[^\W\d_]+\b"  # snake_case, SIM, iPhoneXS
    r"|[\U000F0000-\U0010FFFF]+"
)  # fmt: skip
_HOLD = 0xF0000  # a private character stands for each protected piece while the rest is retyped
_ENDS = r"[.!?…。！？؟]"
_MARKS = re.compile(r"[.,;:!?…。、，；：！？؟؛¿¡]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Persona:
    """One way of typing."""

    texture: Texture
    tone: Tone
    length: Length
    pressure: Pressure

    def describe(self) -> str:
        """Return the persona as prose, as ``persona_prose`` does."""
        return persona_prose(self)


def draw_persona(seed: int, name: str, *moods: str) -> Persona:
    """Draw a persona; the seed and the name decide it. Two in five write ordinary prose.

    Args:
        moods: The customer's stance, and what the tool does: nobody in a hurry writes long messages, nobody
            who is fed up sends warm greetings, nobody is short of money because of a look-up. A terse
            customer never writes long messages either.
    """
    drawn = {part: _draw(part, seed, name) for part in ("texture", "tone", "length", "pressure")}
    clashes: Mapping[str, Mapping[str, str]] = load_words("personas")["clashes"]
    for cause in (*moods, drawn["texture"], drawn["tone"]):
        drawn = {part: clashes.get(cause, {}).get(value, value) for part, value in drawn.items()}
    return Persona(**cast(Any, drawn))


@cache
def persona_prose(persona: Persona) -> str:
    """Return one sentence for each part of a persona, spoken to the one who plays it; no labels."""
    return render_prompt("persona", persona=persona)


def type_like(text: str, persona: Persona, seed: int, *names: str | int, protect: Sequence[str] = ()) -> str:
    """Return the text as this persona would type it.

    Args:
        text: What the customer means to say.
        persona: How the customer types.
        seed: Decides, with ``names``, which phrases are added and where typos fall.
        names: Say which message this is. With "opening" among them it gets all that tone, length
            and pressure add; later messages get at most a word or two, now and then.
        protect: Texts that must survive letter by letter where they stand as whole words: names,
            ids, products. Whatever holds a digit, e-mail addresses, dates and words in capitals
            survive without being named.
    """
    held, pieces = _hold(text, protect)
    english = _is_english(text)
    if english:
        bare = _trimmed(held, persona)
        held = _added(bare, persona, seed, *names, plain=bare == held)
    typed = _TEXTURES[persona.texture](held, english, (seed, *names))
    typed = re.sub(r"[ \t]+(?=[.,;!?])|(?<=[ \t])[ \t]+", "", typed).strip()
    restored = typed.translate({ord(mark): piece for mark, piece in pieces.items()})
    return restored or text


def _draw(part: str, seed: int, name: str) -> str:
    return pick(_lots(part), seed, "persona", name, part)


@cache
def _lots(part: str) -> tuple[str, ...]:
    shares: Mapping[str, int] = load_words("personas")["shares"][part]
    return tuple(value for value, share in shares.items() for _ in range(share))


def _hold(text: str, protect: Sequence[str]) -> tuple[str, dict[str, str]]:
    """Put one private character in place of each protected piece; return the text and the pieces."""
    spans = [m.span() for m in _FIXED.finditer(text)]
    for word in dict.fromkeys(w for w in protect if w.strip()):
        spans += spans_of(word, text)
    pieces: dict[str, str] = {}
    held, done = "", 0
    for start, end in _merged(spans):
        char = chr(_HOLD + len(pieces))
        pieces[char] = text[start:end]
        held += text[done:start] + char
        done = end
    return held + text[done:], pieces


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


@cache
def _english_words() -> frozenset[str]:
    return frozenset(load_words("personas")["english"].split())


def _is_english(text: str) -> bool:
    found = words(text)
    common = len([w for w in found if w in _english_words()])
    foreign = [c.isascii() for c in text if c.isalpha()] if not text.isascii() else []
    return common * 12 >= len(found) > 0 and sum(foreign) >= 0.9 * len(foreign) and common > 0


def _trimmed(text: str, persona: Persona) -> str:
    """Leave out what a terse customer, or one who writes short messages, does not say."""
    for part in (persona.tone, persona.length):
        if part in ("terse", "short"):
            text = _rewritten(text, part)
    return text


def _added(text: str, persona: Persona, seed: int, *names: str | int, plain: bool) -> str:
    """Add what tone, length and pressure say, around the text: one sentence for tone and pressure together.

    Who is terse only says so where the text is ``plain``: with nothing in it to leave out.
    """
    lists = load_words("personas")

    def say(group: str, value: str) -> list[str]:
        options = lists[group].get(value)
        return [pick(options, seed, "persona", group, *names)] if options else []

    if "opening" not in names:
        nod = say("nod", persona.tone) if chance(0.25, seed, "nod", *names) else []
        return " ".join([*nod, text])
    greets = re.match(r"(?:hi|hello|hey|good \w+)\b", text, re.IGNORECASE)
    before = [] if greets else say("greeting", persona.tone)
    before += say("aside", persona.length)
    together = say("both", f"{persona.tone} {persona.pressure}")
    apart = say("pressure", persona.pressure) + (
        say("closing", persona.tone) if persona.tone != "terse" or plain else []
    )
    return " ".join([*before, text, *(together or apart)])


@cache
def _patterns(name: str) -> list[tuple[re.Pattern[str], str]]:
    return [(re.compile(pattern, re.IGNORECASE), new) for pattern, new in load_words("personas")[name]]


def _rewritten(text: str, name: str) -> str:
    """Apply a list of replacements, then set sentences right: a capital first, single spaces."""
    for pattern, new in _patterns(name):
        text = pattern.sub(new, text)
    text = re.sub(r",\s*(?=[.?!]|$)| {2,}", lambda m: " " if m[0].isspace() else "", text).strip()
    return re.sub(rf"(^|{_ENDS} )([a-z])", lambda m: m[1] + m[2].upper(), text)


def _run_on(text: str, english: bool, key: tuple[Any, ...]) -> str:
    """Join the sentences: the last full stop goes, and the others become commas and 'and'."""
    joints = [", ", " and ", ", and "] if english else [", "]
    sentences = [s for s in re.split(rf"(?:{_ENDS}+\s+|(?<=[。！？])\s*)", text.strip()) if s]
    joined = sentences[0] if sentences else ""
    for number, sentence in enumerate(sentences[1:]):
        kept = re.match(r"I\b", sentence) is not None
        seed, *names = key
        joint = pick(joints, seed, "joint", number, *names)
        joined = re.sub(rf"{_ENDS}+$", "", joined) + joint + (sentence if kept else sentence[:1].lower() + sentence[1:])
    return re.sub(rf"{_ENDS}+$", "", joined)


def _typos(text: str, _english: bool, key: tuple[Any, ...]) -> str:
    """Mistype one word in nine, and at least one: two letters swapped, one dropped, one doubled."""
    seed, *names = key
    places = [m for m in re.finditer(r"(?<!\w)[^\W\d_]{4,}(?!\w)", text) if m[0].islower() and m[0].upper() != m[0]]
    if not places:
        return text
    wrong = [m for n, m in enumerate(places) if derive(seed, "typo", n, *names) % 9 == 0]
    wrong = wrong or [pick(places, seed, "typo", *names)]
    for match in reversed(wrong):
        text = text[: match.start()] + _mistyped(match[0], seed, match.start(), *names) + text[match.end() :]
    return text


def _mistyped(word: str, seed: int, *names: str | int) -> str:
    at = between(1, len(word) - 2, seed, "letter", *names)
    kind = pick(("swap", "drop", "double"), seed, "kind", *names)
    if kind == "swap" and word[at] != word[at + 1]:
        return word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    return word[:at] + word[at + 1 :] if kind == "drop" else word[: at + 1] + word[at:]


_TEXTURES: dict[Texture, Callable[[str, bool, tuple[Any, ...]], str]] = {
    "ordinary": lambda text, _english, _key: text,
    "lowercase": lambda text, _english, _key: text.lower(),
    "no_punctuation": lambda text, _english, _key: re.sub(r" {2,}", " ", _MARKS.sub(" ", text)),
    "clipped": lambda text, english, _key: _rewritten(text, "clipped") if english else text,
    "typos": _typos,
    "run_on": _run_on,
}
