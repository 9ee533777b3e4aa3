"""Norms: is a piece of text a rule, and of which kind; by word lists, in a dozen languages.

Each language is a file ``words/policy_<code>.yaml`` of cues: what says must, must not, may, only,
hand over; how an order begins; how a persona or an introduction begins. A text in a language
without a file is read by structure, numbers and units alone.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import islice, pairwise
from typing import Literal

from whilesim.core.templates import load_words

ClauseKind = Literal["must", "must_not", "may", "condition", "handoff"]

_LATIN = ("en", "de", "es", "pt", "fr", "it", "nl")
_UNSPACED = ("zh", "ja", "ko")
_SCRIPTS = {code: re.compile(letters) for code, letters in load_words("policy_marks")["scripts"].items()}
_WORDS = re.compile(r"[^\W\d_]+")
_WIDE = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]")
_PLAIN_WORD = re.compile(r"[^\W_\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af][\w'’-]*")
_TOKEN = re.compile(r"[^\W\d][\w'’-]*")
_OPENING = " *_\"'“”‘’«»（(`"
_ALONE = re.compile(r"(?s)\W*(?:https?://|www\.)\S+(?:\s\W*)?|\W{0,3}[\"“«„「『].*[\"”»“」』]\W{0,2}|.*[?？؟][\"”»)*]*")
_KEY = re.compile(r"\W{0,4}([^:：\n]{1,40}?)[*_\s]*(?:[:：]|-+>|=>|→)[*_\s\ufe0f]*(.*)", re.DOTALL)
_REACH = re.compile(r"[,.;:，。；]|->|=>|→|\s[-–—]\s|\b(?:and|then|und|by|y|e|et)\b")
_FORM = re.compile(r"\W*(?:[^\W\d_][\w -]{0,30}[:：][^\w\0]*\0\W*)+")  # 'Name: {name}, plan: {plan}'
PLACEHOLDER = re.compile(r"\$?(?<!\{)\{+[^{}\n]{1,60}\}+|\[[^\[\]\n]{1,60}\](?!\()|<[a-z][\w -]{0,40}>|%\(?\w+\)?s")


@cache
def shared(name: str) -> re.Pattern[str]:
    """Return a list of ``policy_shared.yaml`` as one pattern; the role of a heading is ``roles.NAME``."""
    lists = load_words("policy_shared")
    pieces = lists["roles"][name[6:]] if name.startswith("roles.") else lists[name]
    return re.compile(rf"(?<![A-Za-zÀ-ɏ])(?:{'|'.join(pieces)})", re.IGNORECASE)


@cache
def cue(language: str, name: str) -> re.Pattern[str]:
    """Return the cue ``name`` of a language as one pattern; it never matches where the language has none."""
    joined = "|".join(load_words(f"policy_{language}").get(name) or ["(?!)"])
    if language in _UNSPACED:
        return re.compile(joined)
    prefix = "[وفبل]?" if language == "ar" else ""
    return re.compile(rf"(?<![\w-]){prefix}(?:{joined})(?!\w)", re.IGNORECASE)


@cache
def _small_words() -> dict[str, tuple[str, ...]]:
    lists = {code: frozenset(load_words(f"policy_{code}")["stopwords"]) for code in _LATIN}
    return {w: tuple(c for c in _LATIN if w in lists[c]) for w in sorted(frozenset().union(*lists.values()))}


def language_of(text: str, default: str = "en") -> str:
    """Return the two-letter code of the text's language: by script, then by small words; else ``default``."""
    words = _WORDS.findall(text.casefold())
    if not text.isascii():
        letters = sum(map(len, words))
        for code, script in _SCRIPTS.items():
            if len(script.findall(text)) > 0.3 * letters:
                return "ja" if default == "ja" and code == "zh" else str(code)
    fallback = default if default in _LATIN else "en"
    counts = Counter(code for word in words for code in _small_words().get(word, ()))
    best = max(_LATIN, key=lambda code: counts[code])
    return best if counts[best] > counts[fallback] + (default == fallback) else fallback


@lru_cache(maxsize=16384)
def unit(text: str, default: str = "en") -> Unit:
    """Return the text as a unit in its own language, or in ``default`` where it is too short to tell."""
    return Unit(text, language_of(text, default))


@dataclass(frozen=True)
class Unit:
    """A sentence, an item, a heading, and what its words say; each answer is worked out once."""

    text: str
    language: str

    def has(self, *cues: str) -> bool:
        """Say whether one of the cues stands anywhere in the text."""
        return any(cue(self.language, name).search(self.text) for name in cues)

    def main_has(self, *cues: str) -> bool:
        """Say the same of the main clause: what a condition denies is not what the sentence forbids."""
        return any(cue(self.language, name).search(self._main) for name in cues)

    def starts(self, *cues: str) -> bool:
        """Say whether the text begins with one of the cues, marks of emphasis and quotation aside."""
        return any(cue(self.language, name).match(self.text.lstrip(_OPENING)) for name in cues)

    @cached_property
    def _main(self) -> str:
        return self._main_of(self.text)

    def _main_of(self, text: str) -> str:
        main = cue(self.language, "subordinate").sub(" ", text)
        return main if _WORDS.search(main) else text  # no comma tells where the condition ends

    @cached_property
    def length(self) -> int:
        """Words, placeholders not counted; two characters of a script without spaces are one."""
        bare = PLACEHOLDER.sub(" ", self.text)
        return len(_PLAIN_WORD.findall(bare)) + (len(_WIDE.findall(bare)) + 1) // 2

    @cached_property
    def amount(self) -> bool:
        """A number with a unit, or a placeholder in its place."""
        return any(shared(name).search(self.text) for name in ("money", "times", "amounts"))

    @cached_property
    def key(self) -> tuple[str, str] | None:
        """Key and value of ``Key: value``."""
        found = _KEY.match(self.text)
        return (found[1].strip("*_ "), found[2].strip()) if found else None

    @cached_property
    def orders(self) -> str:
        """The part that is an order, or nothing: ``Ask for``, ``If it fails, try again``, ``Verifique``."""
        text = self.text.lstrip(_OPENING)
        if self.language == "en":
            return next(filter(_orders_in_english, _PARTS.split(text)), "")
        parts = [text, *re.split(r"[,，、،;；:：]\s*", text)[1:3]]
        return next(filter(cue(self.language, "imperative").match, parts), "")

    @cached_property
    def hands_off(self) -> bool:
        """The agent is to hand the customer to a person or a team."""
        text = cue(self.language, "not_handoff").sub(" ", self.text)
        starts = [found.start() for found in cue(self.language, "handoff").finditer(text)]
        before = (_REACH.split(text[max(0, at - 60) : at])[-1][-40:] for at in starts)
        meant = not all(map(shared("denials").search, before))
        return meant or (self.has("handoff_noun") and (self.has("if") or self.amount))

    @cached_property
    def firm(self) -> bool:
        """A duty, a prohibition or a hand-off."""
        return self.main_has("must", "must_not") or self.hands_off

    @cached_property
    def strong(self) -> bool:
        """A rule beyond doubt: firm, a permission or an order."""
        return self.firm or self.has("may", "needless") or self.orders != ""

    @cached_property
    def condition(self) -> str:
        """The condition in front of an order or a duty: ``If gas is smelt`` of ``If gas is smelt, call``."""
        text = self.key[1] if self.key and unit(self.key[1]).starts("opens") else self.text.lstrip(_OPENING)
        opens = cue(self.language, "opens")
        head = [text[s:e] for s, e in sentences(text) if opens.match(text[s:e])][-1] if opens.match(text) else ""
        for comma in () if self.has("contrary") else islice(re.finditer(r",\s+", head), 4):
            rest = head[comma.end() :]
            if unit(rest, self.language).begins_order or unit(rest.split(", ")[0], self.language).firm:
                return head[: comma.start()]
        return ""

    @property
    def begins_order(self) -> bool:
        """Say whether its first words are an order, or tell the agent what to do; known of English only."""
        return self.starts("follows") or (self.language == "en" and _is_order(self.text.lstrip(_OPENING), lone=True))

    def continues(self, before: str, *, opened: bool) -> bool:
        """Say whether it goes on under the condition of the rule before it; ``opened`` if that began the block.

        A prohibition too many is asked of every conversation, one too few is missed in some: what says
        that it holds always, keeps a secret or has a condition of its own stands alone, other orders do not.
        """
        follows = opened and self.begins_order and not self.has("apart", "opens")
        return (follows or self.starts("carries", "anaphor")) and not unit(before, self.language).has("contrary")

    def stands_beside(self, second: Unit) -> bool:
        """Say whether the halves of a sentence are rules of their own, and not steps or one rule with its sequel.

        Each has a subject and a modal of its own, or is an order. What the agent is to do instead or besides
        leans on the first half, and so does what has a pronoun or a condition. Known of English only.
        """
        denied = second.starts("denies") and second.length > 3
        framed = second.starts("follows") and not denied and not self.begins_order
        ruled = (self.begins_order or self.starts("own_modal")) and (denied or second.starts("own_modal"))
        tied = (h.has("opens") or h.starts("leading", "carries", "anaphor", "hard_exception") for h in (self, second))
        return ruled and not (framed or any(tied) or second.has("leaning") or _opens(self.text, second.text))

    def excluded(self, *, fragment: bool = False) -> bool:
        """Say whether it cannot be a rule: persona, fact, question, speech, placeholder.

        Args:
            fragment: One word is enough, because a lead-in or a list of prohibitions completes it.
        """
        bare = self.text.lstrip(_OPENING)
        if self.length < 2 - fragment or _ALONE.fullmatch(self.text) or shared("greetings").match(bare):
            return True
        if self.key:
            name, value = self.key
            form = _FORM.fullmatch(PLACEHOLDER.sub("\0", self.text))
            shown = shared("verdicts").fullmatch(name) and _ALONE.fullmatch(value)
            empty = not unit(value).length and not cue(self.language, "only").search(name)
            dropped = any(shared(kind).fullmatch(name) for kind in ("fact_keys", "dropped_keys"))
            if form or shown or empty or dropped or shared("jumps").fullmatch(value):
                return True
        if self.starts("persona"):
            return not self.main_has("must", "must_not", "only")
        return (self.starts("intro") or self.has("history")) and not self.main_has("must", "must_not")

    def kind(self, fallback: ClauseKind = "condition") -> ClauseKind:
        """Return the kind of what is known to be a rule; ``fallback`` decides a fragment."""
        if self.hands_off:
            return "handoff"
        if self.orders and not self.starts("needless"):
            return "must_not" if self._forbids_first else "must"
        if self.main_has("needless"):
            return "may"
        if self.main_has("must_not"):
            return "must_not"
        if not self.main_has("must"):
            only = cue(self.language, "only").search(self._main)
            stated = only and cue(self.language, "statement").search(self._main, 0, only.start())
            if only and (self.has("may") or self.amount or stated):  # 'Vehicles are admitted only ...'
                return "condition"
            if self.main_has("may"):
                return "may"
        return "must" if self.has("must") else fallback

    @property
    def _forbids_first(self) -> bool:
        parts = ((self._main, 2 if self.language == "en" else 4), (self._main_of(self.orders), 2))
        found = ((m, far, cue(self.language, name).search(m)) for m, far in parts for name in ("must_not", "nothing"))
        return any(first and len(main[: first.start()].split()) <= far for main, far, first in found)


@cache
def _english() -> dict[str, frozenset[str]]:
    sets = {name: frozenset(words) for name, words in load_words("policy_en").items()}
    return sets | {"verbs": sets["verbs"] | sets["noun_verbs"]}


_COMMA = re.compile(r",\s+(?!and\b|or\b)")
_PARTS = re.compile(r"[;:]\s|\s[-–—]\s|[.!]\s+(?=[A-Z])|, (?:so|then) |(?:-+>|=>|→\ufe0f?) | (?:then|THEN|else|ELSE) ")


def _orders_in_english(text: str) -> bool:
    """Say whether the text begins with an order, or has one behind the commas of a condition."""
    text = (text.lower() if text.isupper() else text).lstrip(_OPENING)
    commas = list(_COMMA.finditer(text))[:4] if cue("en", "leading").match(text) else []
    lone = cue("en", "if").match(text) is not None  # 'If the code is wrong, stop.'
    return _is_order(text) or any(_is_order(text[comma.end() :].lstrip(_OPENING), lone=lone) for comma in commas)


def _is_order(text: str, *, lone: bool = False) -> bool:
    lists, text = _english(), cue("en", "beside").sub("", text).lstrip()
    tokens = list(_TOKEN.finditer(text[:200]))
    while tokens and cue("en", "adverbs").fullmatch(tokens[0][0]) and tokens[0][0].lower() not in lists["verbs"]:
        tokens.pop(0)
    if len(tokens) < 2:
        return lone and text.strip(_OPENING + ".!").lower() in lists["verbs"]
    first, second, third = ([t[0].lower() for t in tokens] + [""])[:3]
    if third in lists["finite"] and second not in lists["determiners"] | lists["not_verbs"]:
        return False
    if first not in lists["verbs"]:
        inflected = first.endswith(("ing", "ed", "ly", "s"))
        return second in lists["determiners"] and not inflected and first not in lists["not_verbs"]
    if first not in lists["noun_verbs"]:
        return second not in lists["finite"]
    names = tokens[1][0][0].isupper() and third[:1].isalpha() and tokens[2][0][0].isupper()
    most = second == "at" and third in ("most", "least", "no", "once")
    return (most or second not in lists["tail_nouns"]) and not text[tokens[0].end() :].startswith(",") and not names


RUN_IN = re.compile(r"(\*\*|__)((?:[^\s*_.]+ ){0,5}[^\s*_.]+)\.\1")
"""``**Bold words.**`` at the start of a text: the label of what follows."""
_END = re.compile(r"(?<![.!?…])[.!?…]+[\"'”’»)\]*_`]*(?=\s|$)|[。！？；؟]+[”’」』）)】*]*|(?<=[a-z])\.(?=[A-Z][a-z])")


_QUOTATION = 1_000  # characters of a quotation or bracket at most


def sentences(text: str) -> list[tuple[int, int]]:
    """Return start and end of each sentence, white space around it left out.

    A full stop inside brackets or a quotation, or after an abbreviation, ends nothing.
    """
    cuts = [0]
    for end in _END.finditer(text):
        near = max(cuts[-1], end.start() - _QUOTATION)
        after = text[end.end() : end.end() + _QUOTATION].lstrip()
        joined = after[:1].islower() or shared("abbreviations").search(text[near : end.start() + 1][-20:])
        noted = RUN_IN.fullmatch(text[near : end.end()].lstrip()) or re.fullmatch(r"\([^().!?]*\)", after)
        ends = end[0][0] in "。！？；؟" or not (joined or noted)
        if ends and not _opens(text[near : end.end()], after[:300]):
            cuts.append(end.end())
    found = pairwise([*cuts, len(text)])
    trimmed = [(s + len(text[s:e]) - len(text[s:e].lstrip()), s + len(text[s:e].rstrip())) for s, e in found]
    return [(s, e) for s, e in trimmed if s < e and re.search(r"\w", text[s:e])]


def _opens(said: str, after: str) -> bool:
    """Say whether a bracket or a quotation is open that closes later."""
    pairs = ("()", "[]", "（）", "“”", "「」", "«»")
    quoted = said.count('"') % 2 and '"' in after
    if quoted or any(said.count(p[0]) > said.count(p[1]) and p[1] in after for p in pairs):
        return True
    singles = len(re.findall(r"(?<!\w)'(?=\w)", said)) - len(re.findall(r"(?<=[\w.!?])'(?!\w)", said))
    return singles > 0 and re.search(r"[\w.!?]'(?!\w)", after) is not None
