"""Language: the words of each language that checks can read, and a text as tagged sentences.

English, Spanish and German have a lexicon (``words/checks_en.yaml`` and so on): verbs by
what they do, cues of a claim, and gates that drop one. What is said in another language is
not read for claims.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache

from whilesim.core.templates import load_words

LANGUAGES = ("en", "es", "de")
_TOKEN = re.compile(
    r"[$€£]?\d[\d,.]*\d(?!\w)|[$€£]\d|[€£]|'(?:s|ve|re|m|ll|d)\b|[,:;?()—–]|"
    r"\w+(?:[-./@_]\w+|'(?!(?:s|ve|re|m|ll|d)\b)\w+)*"
)
_ENDS = re.compile(  # the look ahead rules out most places at once
    r"(?=[\s\"')\]*_])(?:(?<=[.!?…])[\"')\]*_]*\s+|(?<=;)\s+|(?<!\s)\s+(?:—|–|--)\s+|(?<=[✅✔☑🎉✓])\s+)"
)
_ABBREVIATION = re.compile(r"\b(?:mr|mrs|ms|dr|no|st|vs|approx|e\.g|i\.e|z\.b|bzw|nr|sra?|núm|ca|[ap]\.m|\w)\.$", re.I)
_BULLET = re.compile(r"^(\s*)(?:[-*•–+▪●]|\d{1,2}[.)])\s+")
_LETTERS = re.compile(r"[^\W\d_]+")
_CODE = re.compile(r"```.*?(?:```|\Z)", re.S)
_FOREIGN = re.compile(r"[^\W\d\x00-\u024f]")
_MARKS = str.maketrans(dict.fromkeys('*`#>“”"', " "))


Gate = tuple[str, list[str], str, re.Pattern[str]]
"""Name, families it drops, region it reads, and what must stand there."""


@dataclass(frozen=True)
class Sentence:
    """One sentence of a message, as it stands there."""

    quote: str
    items: tuple[str, ...] = ()
    """Heads of the list items under a sentence that ends in a colon."""

    @cached_property
    def text(self) -> str:
        """The sentence cleaned for reading."""
        return clean(self.quote)

    def says(self, words: Set[str]) -> bool:
        """Say quickly whether it holds one of some words in lower case."""
        text = self.quote if self.quote.isascii() else self.text
        return not words.isdisjoint(_LETTERS.findall(text.lower()))


class Lexicon:
    """One language's words, ready to look up.

    ``forms`` maps a word to the way it says a deed and the senses of that deed. Ways are V
    base form, P participle, Q past only, G gerund, O noun, S state. Each of ``verbs`` that
    the language does not know becomes a sense of its own, ``=verb``.
    """

    def __init__(self, code: str, verbs: Iterable[str] = ()) -> None:
        self.code, self.data = code, load_words(f"checks_{code}")
        self.forms: dict[str, tuple[str, frozenset[str]]] = {}
        lines = [(s, line) for s, some in self.data["verbs"].items() for line in some]
        lines += [("light", line) for line in self.data["light"]] + [(f"={v}", v) for v in verbs]
        for sense, line in lines:
            for kind, word in self._inflect(line):
                self._add(word, kind, sense)
        for sense, states in self.data["states"].items():
            self.forms.update((w, ("S", frozenset([sense]))) for w in states)
        for noun, sense in self.data["nouns"].items():
            self._add(noun, "O", sense)
        self.light = frozenset(w for w, (_, senses) in self.forms.items() if "light" in senses)
        self.tags = dict.fromkeys(self.data["deixis"], "d") | {w: k for w, (k, _) in self.forms.items() if k == "V"}
        self.tags |= {w: tag for tag, words in self.data["tags"].items() for w in words.split()}
        self.tags |= {w: kind for w, (kind, _) in self.forms.items() if kind in "PQGS"}
        self.phrases = [(re.compile(p), r) for p, r in self.data["phrases"]]
        words = [p[2:] for p, _ in self.data["phrases"] if p.startswith(r"\b")]  # most places begin no word
        others = [p for p, _ in self.data["phrases"] if not p.startswith(r"\b")]
        self.rewritten = [re.compile(p) for p in (rf"\b(?=[\w'])(?:{'|'.join(words)})", *others)]
        self.cues = [(family, re.compile(p)) for family, ps in self.data["cues"].items() for p in ps]
        self.gates: list[Gate] = [(n, f.split(), where, re.compile(p)) for n, f, where, p in self.data["gates"]]
        self.triggers = {w for w, (kind, _) in self.forms.items() if kind in "PQSG"} | set(self.data["triggers"])

    def _add(self, word: str, kind: str, sense: str) -> None:
        known, senses = self.forms.get(word, (kind, frozenset()))
        self.forms[word] = (min(known, kind, key="PSQGVO".index), senses | {sense})

    def _inflect(self, line: str) -> Iterator[tuple[str, str]]:
        left, _, nouns = line.partition(">")
        base, *given = left.split()
        for rule, *endings in self.data["inflect"]:
            if re.search(rule, base):
                for kind, some in zip("PQGSV", endings, strict=False):
                    if kind != "P" or not given:
                        yield from ((kind, re.sub(rule, e, base, count=1)) for e in some.split())
                break
        yield "V", base
        yield from (("Q" if w[0] == "~" else "P", w.lstrip("~")) for w in given)
        yield from (("O", w) for w in nouns.split())

    def pattern(self, name: str) -> re.Pattern[str]:
        """Return one named pattern of the word list."""
        return pattern(self.code, name)

    def senses(self, words: Iterable[str], kinds: str = "VPQGOS") -> frozenset[str]:
        """All senses that some words have, said in one of the ways."""
        found = (self.forms.get(w) for w in words)
        return frozenset(s for f in found if f and f[0] in kinds for s in f[1]) - {"light"}

    def tokens(self, text: str) -> tuple[list[str], str]:
        """Return the words of a sentence, lower case, and a tag for each."""
        low = text.lower()
        if any(one.search(low) for one in self.rewritten):
            for phrase, replacement in self.phrases:
                low = phrase.sub(replacement, low)
        found = _TOKEN.findall(low)
        return found, "".join(map(self._tag, found))

    def _tag(self, word: str) -> str:
        if word in self.tags:
            return self.tags[word]
        if not word[0].isalnum() and word[0] not in "$€£":
            return word[0] if word[0] in ",:;?()" else "-"
        return "v" if self.code == "en" and word.endswith("ed") else "w"


lexicon = lru_cache(maxsize=256)(Lexicon)
"""The lexicon of a language in ``LANGUAGES``, with verbs of the tools at hand; made once."""


@cache
def pattern(file: str, name: str) -> re.Pattern[str]:
    """Return one pattern of ``words/checks_<file>.yaml``; case does not count."""
    return re.compile(load_words(f"checks_{file}")[name], re.IGNORECASE)


@cache
def _stopwords() -> dict[str, frozenset[str]]:
    return {code: frozenset(words.split()) for code, words in load_words("checks_languages").items()}


@lru_cache(maxsize=4096)
def language_of(text: str) -> str | None:
    """Return ``en``, ``es``, ``de``, ``other``, or None where a text is too short to tell."""
    text = text[:4000]
    if len(_FOREIGN.findall(text)) * 4 > len(text):
        return "other"
    words = set(_LETTERS.findall(text.lower()))
    counts = {code: len(words & known) for code, known in _stopwords().items()}
    code = max(LANGUAGES, key=counts.__getitem__)
    if (most := max(counts.values())) > 2 and most > counts[code] * 1.5:
        return "other"
    return code if counts[code] > 1 else None


def sentences(content: str) -> list[Sentence]:
    """Split a message into sentences: lines first, then ends of sentences; code is left out."""
    found: list[Sentence] = []
    head = -1  # the sentence ending in a colon that the list items below belong to
    for line in _CODE.sub("\n", content).split("\n"):
        mark = _BULLET.match(line)
        body = line[mark.end() :] if mark else line
        if mark and not mark[1] and head >= 0:
            found[head] = replace(found[head], items=(*found[head].items, clean(body)[:60]))
        parts = [Sentence(p.strip()) for p in _parts(body) if p.strip()]
        found += parts
        if parts and not mark:
            head = len(found) - 1 if parts[-1].text.endswith(":") else -1
    return found


def _parts(line: str) -> Iterator[str]:
    start = 0
    for end in _ENDS.finditer(line):
        if not _ABBREVIATION.search(line[max(start, end.start() - 9) : end.start()]):
            yield line[start : end.start()]
            start = end.end()
    yield line[start:]


def clean(text: str) -> str:
    """Return the text in compatibility form, quotes straight, emphasis gone, on one line."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).replace("’", "'").replace("‘", "'")
    text = text.translate(_MARKS)
    return " ".join((re.sub(r"(?<!\w)_+|_+(?!\w)", " ", text) if "_" in text else text).split())
