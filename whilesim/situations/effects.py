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
from functools import cache, partial
from itertools import pairwise, takewhile
from typing import Any, Literal, cast, get_args

from whilesim.core.errors import InputError
from whilesim.core.templates import load_words
from whilesim.core.text import name_words
from whilesim.situations.dialects import Draft
from whilesim.situations.schemas import mapping

Effect = Literal["read", "write", "handoff", "compute"]
_KINDS: tuple[Effect, ...] = ("write", "read", "compute")
_METHODS: dict[str, Effect] = {"GET": "read", "HEAD": "read", "PUT": "write", "PATCH": "write", "DELETE": "write"}
"""Of HTTP, without POST: it may well search, and the words decide."""


def infer_effect(draft: Draft, description: str, *, keyed: bool) -> tuple[Effect, str]:
    """Return a tool's effect and which evidence decided it; a guess ends in ``(unsure)``.

    Args:
        draft: What the source says of the tool, its arguments as a plain schema.
        description: Its description without what all descriptions of the set begin with
            (``own_descriptions``).
        keyed: Whether an argument names a record: what computes with a record reads it.

    Raises:
        InputError: The source states an effect that is none of the four.
    """
    if draft.effect is not None:
        return stated_effect(draft.effect, f"tool {draft.name!r}"), "given"
    words = [w for w in name_words(draft.name) if not w.isdecimal() and w not in ("tool", "api", "function")]
    case = _Case(draft, words, _opened(description).lower(), keyed)
    rules = (_handoff_name, _hint, _handoff_text, _http, _named, _later_word, _described, _tail, _foreign, _guess)
    effect, why = next(found for rule in rules if (found := rule(case)))
    return ("read", f"{why}, of a record") if effect == "compute" and keyed else (effect, why)


def stated_effect(effect: Any, where: str) -> Effect:
    """Return an effect that somebody stated.

    Raises:
        InputError: It is none of the four.
    """
    word = str(effect).lower()
    if word not in get_args(Effect):
        raise InputError(f"{where}: effect {effect!r} is not known. Type 'read', 'write', 'handoff' or 'compute'.")
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
    keyed: bool


_Found = tuple[Effect, str] | None


@cache
def _words(group: str) -> frozenset[str]:
    return frozenset(load_words("verbs")[group].split())


@cache
def _verbs() -> dict[str, Effect]:
    return {verb: kind for kind in _KINDS for verb in _words(kind)}


@cache
def word_pattern(lists: str, name: str) -> re.Pattern[str]:
    """Return a pattern of a word list; ``%(persons)s`` in it is any word of the list's group ``persons``."""
    words = load_words(lists)
    groups = {group: "|".join(text.split()) for group, text in words.items() if isinstance(text, str)}
    return re.compile(words["patterns"][name] % groups)


_pattern = partial(word_pattern, "verbs")


@cache
def _foreign_stems(kind: Effect) -> re.Pattern[str]:
    # German nouns in -ung are no verbs: 'Bestellung' orders nothing. Scripts from CJK on have no spaces.
    stems = load_words("verbs")[f"foreign_{kind}"].split()
    bounded = (rf"(?<![^\W_]){re.escape(s)}(?!\w{{0,4}}ung)" if s[0] < "\u3000" else re.escape(s) for s in stems)
    return re.compile("|".join(bounded), re.IGNORECASE)


def _opened(description: str) -> str:
    """Cut everything before the first telling word: 'Use this tool to get' is get."""
    text = description.strip().lstrip("*#-• ")
    while (match := _pattern("openers").match(text)) and match.end() < len(text):
        text = text[match.end() :]
    return text


def _handoff_name(case: _Case) -> _Found:
    """A verb of handing off and a person; or an escalation, unless it is only looked at."""
    words = case.words
    if _pattern("handoff_foreign").search(f"{case.draft.name} {case.text[:80]}"):
        return "handoff", "words for handing over to a person"
    looked_at = _verbs().get(words[0] if words else "") == "read" and words[0] not in _words("handing")
    if looked_at or not _words("tails").isdisjoint(words[-1:]) or _given_away(case):
        return None
    match = _pattern("handoff_name").search("_".join(words)[:200])
    if match and match["alone"]:
        return "handoff", "the name says hand-off"
    return ("handoff", f"{match[0].split('_')[0]!r} and a person in the name") if match else None


def _given_away(case: _Case) -> bool:
    """Say whether the arguments name who gets something: a ticket for a friend is no conversation."""
    names = [name_words(name)[:1] for name in case.draft.parameters["properties"]]
    return case.keyed and any(_words("receivers").intersection(first) for first in names)


def _hint(case: _Case) -> _Found:
    hints = case.draft.annotations
    if hints.get("readOnlyHint") is True:
        return "read", "annotation readOnlyHint"
    if hints.get("readOnlyHint") is False or hints.get("destructiveHint") is True:
        return _handoff_text(case) or ("write", "annotation readOnlyHint or destructiveHint")
    return None


def _handoff_text(case: _Case) -> _Found:
    sentence = re.split(r"[.!?]\s|\n", case.text, maxsplit=1)[0]
    if _pattern("handoff").match(sentence) and not _pattern("not_handoff").search(sentence) and not _given_away(case):
        return "handoff", "the description starts with handing over to a person"
    return ("handoff", "the description says who takes over") if _pattern("takeover").search(case.text) else None


def _http(case: _Case) -> _Found:
    effect = _METHODS.get(case.draft.method)
    return (effect, f"HTTP {case.draft.method}") if effect else None


def _named(case: _Case) -> _Found:
    """Read the effect off the first word of the name; where that may be a noun, the description decides."""
    if _pattern("worked_out").match(case.text):
        return "compute", "worked out from what is given"
    last = name_words(re.split(r"[./:]|__", case.draft.name)[-1])
    words = last if _leading(last, "name") else case.words  # 'display.set_brightness' sets
    found = _leading(words, "name")
    if _words("getters") & set(words[:1]):
        return _by_deed(case) or found
    if not _words("either") & set(words[:1]):
        return found
    told = _described(case)
    if told is None and found and _pattern("noun_phrase").match(case.text):
        return "read", "the name may be a noun, and the description is a noun phrase"
    acts = case.draft.method == "POST" or told is None or (found and told[1].startswith(repr(words[0])))
    return found if found and acts else told


def _by_deed(case: _Case) -> _Found:
    """Find the deed by which a thing is got, or that follows: 'issues the refund', 'finds a song and plays it'."""
    words, deeds = ["", *_text_words(case)[:16]], _words("acts")
    for before, word, after in zip(words, words[1:], words[2:], strict=False):
        deed = next((stem for stem in _stems(word) if stem in deeds), "")
        if deed and before in ("", "and", "or") and after in _words("articles"):
            return "write", f"{deed!r} in the description"
        deeds = (_words("acts") | _words("write")) - _words("vague")
    return None


def _described(case: _Case) -> _Found:
    if re.match(r"asks? (?:the |an? )?(?:customer|user|client|guest|member|patient|caller)s?\b", case.text):
        return None  # who asks a person reads nothing
    found = _leading(_text_words(case), "description")
    return _by_deed(case) or found if found and found[0] == "read" else found


def _leading(words: Sequence[str], place: str) -> _Found:
    """Read the effect off a first word that is a verb there."""
    first, rest = (words[0], words[1:]) if words else ("", ())
    phrases = load_words("verbs")["phrases"].items()
    pair = next((effect for effect, opens in phrases if "_".join(words[:2]) in opens), None)
    if pair is not None and not _words("phrase_nouns") & set(words[2:3]):
        return pair, f"{' '.join(words[:2])!r} opens the {place}"
    verbs = _verbs()
    also = [b for a, b in pairwise(rest) if a in ("and", "or") and verbs.get(b) == "write"]
    if also and verbs.get(first) == "read" and place == "name":
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
    last = "".join(case.words[-1:])
    return ("read", f"the name ends in {last!r}") if last in _words("tails") else None


def _foreign(case: _Case) -> _Found:
    """Look for verbs of other languages in the name and the first sentence: the first one counts."""
    text = f"{case.draft.name} {re.split(r'[.。!！]', case.text, maxsplit=1)[0]}"
    hits = [(m.start(), kind, m[0]) for kind in _KINDS if (m := _foreign_stems(kind).search(text))]
    return (min(hits)[1], f"{min(hits)[2]!r} in name or description") if hits else None


def _guess(case: _Case) -> _Found:
    if _pattern("noun_phrase").match(case.text):
        return "read", "the description is a noun phrase (unsure)"
    given = [mapping(schema).get("type") for schema in case.draft.parameters["properties"].values()]
    if not case.keyed and len(given) > 1 and all(kind in ("number", "integer") for kind in given):
        return "compute", "only numbers go in (unsure)"
    return "write", "nothing says that it only reads (unsure)"


def _text_words(case: _Case) -> list[str]:
    """Return the first words of a description, its verb in the form of the word list."""
    words = re.findall(r"[\w'-]+", case.text[:160])
    while words and words[0] in _words("adverbs"):
        del words[0]
    gives = {"return", "returns", "returning"}.difference(case.words)  # 'Return the status', and no goods by the name
    first = "get" if gives.intersection(words[:1]) else "".join(words[:1])
    known = (stem for stem in _stems(first) if stem in _verbs() or stem in _words("either"))
    return [next(known, first), *words[1:]]


def _stems(word: str) -> Iterator[str]:
    yield word
    for end in ("s", "es", "ing", "ling", "ting", "ging", "ping"):
        if word.endswith(end):
            yield from (word[: -len(end)], word[: -len(end)] + "e")
    if word.endswith("ies"):
        yield word[:-3] + "y"
