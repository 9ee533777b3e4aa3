"""Effects: whether a tool reads, writes, hands the customer to a person, or only computes.

The evidence is asked in a fixed order, strongest first; what nothing decides is called a write,
because a write taken for a read would go unchecked. The order was settled by measuring
on public tool sets: words are looked for in names and at the start of descriptions, never
anywhere in a description ('which allows users to create, view and manage ...' says nothing).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise, takewhile
from typing import Any, Literal, cast, get_args

from whilesim.core.errors import InputError
from whilesim.core.templates import load_words
from whilesim.core.text import name_words
from whilesim.situations.dialects import Draft

Effect = Literal["read", "write", "handoff", "compute"]


def infer_effect(draft: Draft, description: str, *, keyed: bool) -> tuple[Effect, str]:
    """Return a tool's effect and which evidence decided it; a guess ends in ``(unsure)``.

    Args:
        draft: What the source says of the tool.
        description: Its description without what all descriptions of the set begin with
            (``own_descriptions``).
        keyed: Whether an argument names a record: what computes with a record reads it.

    Raises:
        InputError: The source states an effect that is none of the four.
    """
    if draft.effect is not None:
        return stated_effect(draft.effect, f"tool {draft.name!r}"), "given"
    words = [word for word in name_words(draft.name) if not word.isdecimal()]
    case = _Case(draft, words, _opened(description).lower())
    for rule in (_handoff_name, _hint, _handoff_text, _http, _named, _later_word, _tail, _described, _foreign):
        found = rule(case)
        if found is not None:
            effect, why = found
            return ("read", f"{why}, of a record") if effect == "compute" and keyed else (effect, why)
    if _is_noun_phrase(case):
        return "read", "the description is a noun phrase (unsure)"
    return "write", "nothing says that it only reads (unsure)"


def stated_effect(effect: Any, where: str) -> Effect:
    """Return an effect that somebody stated.

    Raises:
        InputError: It is none of the four.
    """
    word = str(effect).lower()
    if word not in get_args(Effect):
        msg = f"{where}: effect {effect!r} is not known. Type 'read', 'write', 'handoff' or 'compute'."
        raise InputError(msg)
    return cast(Effect, word)


def own_descriptions(descriptions: Sequence[str]) -> list[str]:
    """Return the descriptions without the opening that at least three of them share.

    An opening counts from 25 characters on, and is cut after its last sentence or colon.
    """
    own = list(descriptions)
    for start, count in Counter(text[:25] for text in own if len(text) > 25).items():
        if count >= 3:
            alike = [text for text in descriptions if text.startswith(start)]
            same = takewhile(lambda chars: len(set(chars)) == 1, zip(*alike, strict=False))
            cut = max((m.end() for m in re.finditer(r"[.:!]\s+", "".join(c[0] for c in same))), default=0)
            own = [text[cut:] if text.startswith(start) else text for text in own]
    return own


@dataclass(frozen=True, slots=True)
class _Case:
    draft: Draft
    words: list[str]
    """The words of the name, lower case, in order."""
    text: str
    """The description from its first telling word on, lower case."""


_Found = tuple[Effect, str] | None


def _is_noun_phrase(case: _Case) -> bool:
    opening = case.text.split(" ", 2)
    return opening[0] in _words("nouns") or bool(_words("behind_nouns") & set(opening[1:2]))


@cache
def _words(group: str) -> frozenset[str]:
    return frozenset(load_words("verbs")[group].split())


@cache
def _verbs() -> dict[str, Effect]:
    kinds: tuple[Effect, ...] = ("write", "read", "compute")
    return {verb: kind for kind in kinds for verb in _words(kind)}


@cache
def _pattern(name: str) -> re.Pattern[str]:
    words = load_words("verbs")
    if name == "openers":
        return re.compile(r"\s*(?:" + "|".join(words["openers"]) + r")[\s:,-]*", re.IGNORECASE)
    if name in words["patterns"]:
        return re.compile(words["patterns"][name], re.IGNORECASE)
    # German nouns in -ung are no verbs: 'Bestellung' orders nothing. Scripts from CJK on have no spaces.
    stems = [
        rf"(?<![^\W_]){re.escape(s)}(?!\w{{0,4}}ung)" if s[0] < "\u3000" else re.escape(s) for s in words[name].split()
    ]
    return re.compile("|".join(stems), re.IGNORECASE)


def _opened(description: str) -> str:
    """Cut everything before the first telling word: 'Use this tool to get' is get."""
    text = description.strip().lstrip("*#-• ")
    while (match := _pattern("openers").match(text)) and match.end() < len(text):
        text = text[match.end() :]
    return text


def _handoff_name(case: _Case) -> _Found:
    """A verb of handing off and a person; or an escalation, unless it is only looked at."""
    words, handing = case.words, _words("handing")
    if _pattern("handoff_foreign").search(f"{case.draft.name} {case.text[:80]}"):
        return "handoff", "words for handing over to a person"
    looked_at = bool(words) and _verbs().get(words[0]) in ("read", "compute") and words[0] not in handing
    if not words or looked_at or words[-1] in _words("tails"):
        return None
    if re.search(r"hand_?(off|over)", "_".join(words)) or _words("handoff") & set(words):
        return "handoff", "the name says hand-off"
    start = next((i for i, word in enumerate(words) if word in handing), len(words))
    rest = words[start + 1 :]
    if not rest or _words("goods") & set(rest) or (words[start] in _words("handing_only_to") and rest[0] != "to"):
        return None
    if _words("persons") & set(rest):
        return "handoff", f"{words[start]!r} and a person in the name"
    if words[start] in _words("handing_to") and (rest[0] == "to" or rest[-1] in _words("conversations")):
        return "handoff", f"{words[start]!r} of a conversation in the name"
    return None


def _hint(case: _Case) -> _Found:
    hints = case.draft.annotations
    if hints.get("readOnlyHint") is True:
        return "read", "annotation readOnlyHint"
    if hints.get("readOnlyHint") is False or hints.get("destructiveHint") is True:
        return _handoff_text(case) or ("write", "annotation readOnlyHint or destructiveHint")
    return None


def _handoff_text(case: _Case) -> _Found:
    sentence = re.split(r"[.!?]\s|\n", case.text, maxsplit=1)[0]
    if _pattern("handoff").match(sentence) and not _pattern("not_handoff").search(sentence):
        return "handoff", "the description starts with handing over to a person"
    return None


def _http(case: _Case) -> _Found:
    method = case.draft.method
    if method in ("GET", "HEAD"):
        return "read", f"HTTP {method}"
    if method in ("PUT", "PATCH", "DELETE"):
        return "write", f"HTTP {method}"
    return None  # a POST may well search: the words decide


def _named(case: _Case) -> _Found:
    """Read the effect off the first word of the name; where that may be a noun, the description decides."""
    found = _leading(case.words, "name")
    if _words("getters") & set(case.words[:1]):
        return _got_by_deed(case) or found
    if not _words("either") & set(case.words[:1]):
        return found
    told = _described(case)
    if told is None and found and _is_noun_phrase(case) and not re.match(r"\w+ \w+ \w+s (?:an?|the) ", case.text):
        return "read", "the name may be a noun, and the description is a noun phrase"
    acts = case.draft.method == "POST" or told is None or (found and told[1].startswith(repr(case.words[0])))
    return found if found and acts else told


def _got_by_deed(case: _Case) -> _Found:
    """Find the deed by which a thing is got: 'orders a replacement card', 'issues the refund'."""
    words = _text_words(case.text)[:12]
    stems = [next((s for s in _stems(word) if s in _words("acts")), "") for word in words]
    places = [0, *(i + 1 for i, word in enumerate(words) if word == "and")]
    deeds = [stems[i] for i in places if stems[i : i + 1] > [""] and set(words[i + 1 : i + 2]) & _words("articles")]
    return ("write", f"{deeds[0]!r} in the description") if deeds else None


def _described(case: _Case) -> _Found:
    return _leading(_text_words(case.text), "description")


def _leading(words: Sequence[str], place: str) -> _Found:
    """Read the effect off a first word that is a verb there."""
    first, rest = (words[0], words[1:]) if words else ("", ())
    pair = load_words("verbs")["phrases"].get("_".join(words[:2]))
    if pair is not None and not _words("phrase_nouns") & set(words[2:3]):
        return pair, f"{' '.join(words[:2])!r} opens the {place}"
    verbs = _verbs()
    also = [b for a, b in pairwise(rest) if a in ("and", "or") and verbs.get(b) == "write"]
    if also and verbs.get(first) == "read":
        return "write", f"{first!r} and {also[0]!r} in the {place}"
    if first in _words("vague") and _words("question_nouns") & {*rest[:1], *rest[-1:]}:
        return "read", f"{first!r} and a question in the {place}"
    if first in verbs:
        return verbs[first], f"{first!r} opens the {place}"
    if first in _words("either") and rest and rest[0] not in _words("tails") and not verbs.keys() & set(rest[:2]):
        return "write", f"{first!r} opens the {place}"
    return None


def _later_word(case: _Case) -> _Found:
    """Look for a verb behind a noun: at the end ('mailing_list_create'), else the first one."""
    later = case.words[1:]
    verb = next((word for word in later[-1:] + later if word in _verbs()), None)
    return None if verb is None else (_verbs()[verb], f"{verb!r} in the name")


def _tail(case: _Case) -> _Found:
    words = [word for word in case.words if word not in ("tool", "api", "function")]
    return ("read", f"the name ends in {words[-1]!r}") if words and words[-1] in _words("tails") else None


def _foreign(case: _Case) -> _Found:
    """Look for verbs of other languages in the name and the first sentence: the first one counts."""
    text = f"{case.draft.name} {re.split(r'[.。!！]', case.text, maxsplit=1)[0]}"
    kinds: tuple[Effect, ...] = ("read", "write")
    hits = [(m.start(), kind, m[0]) for kind in kinds if (m := _pattern(f"foreign_{kind}").search(text))]
    return (min(hits)[1], f"{min(hits)[2]!r} in name or description") if hits else None


def _text_words(text: str) -> list[str]:
    """Return the first words of a description, its verb in the form of the word list."""
    words = re.findall(r"[\w'-]+", text[:160])
    while words and words[0] in _words("adverbs"):
        del words[0]
    if words and words[0] in ("returns", "returning"):
        words[0] = "get"  # 'Returns the status of an order.'
    if words:
        known = (stem for stem in _stems(words[0]) if stem in _verbs() or stem in _words("either"))
        words[0] = next(known, words[0])
    return words


def _stems(word: str) -> Iterator[str]:
    yield word
    for end in ("s", "es", "ing", "ling", "ting", "ging", "ping"):
        if word.endswith(end):
            yield from (word[: -len(end)], word[: -len(end)] + "e")
    if word.endswith("ies"):
        yield word[:-3] + "y"
