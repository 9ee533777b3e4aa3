"""Speech: the grammar of a customer's English: I and you, articles, lists, noun phrases."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache

from whilesim.core.templates import load_words

_TOKEN = re.compile(r"[$€£#]?\w(?:[\w'’-]*\w)?%?")
NOUN = re.compile(r"(?:tion|sion|ment|ness|ity|ance|ence|ship|age|ure|ware)s?$")
"""How many nouns end, and few verbs."""
_BREAK = re.compile(r"[.,;:!?()\[\]{}\"“”‘`\n/|→+&=*。、，；：！？（）「」]+|(?<=\s)[-–—](?=\s)")


def as_me(text: str) -> str:
    """Put a rule about 'the customer' into the first person: I where it acts, me where it is acted on."""
    names = "|".join(p for p in word_set("parties") if p != "they")
    text = re.sub(rf"\b(?:an)?other (?:{names})(?P<own>['’]s)?\b", r"somebody else\g<own>", text, flags=re.I)
    text = re.sub(rf"\b(?:the |a |an |any |one |their |your )?(?:{names})['’]s\b", "my", text, flags=re.I)
    text = re.sub(r"\b(?:their|his or her|his/her)\b", "my", text, flags=re.I)
    text = re.sub(r"\b(?:themsel(?:ves|f)|him(?:self)? or herself)\b", "myself", text, flags=re.I)
    party = re.compile(
        rf"\b(?P<before>\w+ )?(?:(?:the|a|an|any) (?:{names})|they|them)\b(?!['’])(?P<after> \w+(?:['’]t)?)?", re.I
    )

    def swap(match: re.Match[str]) -> str:
        before, after = match["before"] or "", match["after"] or ""
        last = match.group().lower().split()[-1 if not after else -2]
        if last == "them" or (last != "they" and not _acts(match, text)):
            return f"{before}me{after}"
        return f"{before}I{' ' + first_person(after.strip()) if after else ''}"

    mine = r"\b(?:(?:the|any|all) (?P<of>\w+ )?)?(?P<what>\w+s|history|record|profile) of me\b"
    return re.sub(mine, lambda m: f"my {m['of'] or ''}{m['what']}", party.sub(swap, text))


def _acts(match: re.Match[str], text: str) -> bool:
    """Say whether a party is the subject: at the start, or behind a conjunction or comma."""
    before = (match["before"] or "").strip().lower()
    if before:
        return before in word_set("openers")
    return match.start() == 0 or text[: match.start()].rstrip().endswith((",", ":", ";"))


def first_person(text: str) -> str:
    """Make the verb that follows 'I' agree: travels is travel, is is am, has is have."""
    adverb = re.match(r"(?:already|also|still|only|never|always|\w+ly)\s+", text)
    if adverb:
        return adverb.group() + first_person(text[adverb.end() :])
    first, _, rest = text.partition(" ")
    irregular = {"is": "am", "are": "am", "has": "have", "was": "was", "were": "was"}
    irregular |= {"doesn't": "don't", "isn't": "am not", "hasn't": "haven't"}
    return f"{irregular.get(first.lower()) or base_form(first)} {rest}".strip()


def base_form(verb: str) -> str:
    """Take the ending of the third person off a verb: retrieves is retrieve, goes is go."""
    if verb.endswith("ies") and len(verb) > 4:
        return verb[:-3] + "y"
    if re.search(r"(?:ss|sh|ch|x|z|go|do)es$", verb):
        return verb[:-2]
    return verb[:-1] if verb.endswith("s") and not verb.endswith("ss") else verb


def second_person(text: str) -> str:
    """Turn what a customer says into what the customer is told to want."""
    swaps = {"i": "you", "my": "your", "me": "you", "mine": "yours", "i'm": "you are", "i'd": "you would"}
    swaps |= {"am": "are", "you": "they", "your": "their", "i've": "you have"}

    def swap(match: re.Match[str]) -> str:
        found = swaps.get(match.group().lower().replace("’", "'"))
        if found is None:
            return match.group()
        return found.capitalize() if match.start() == 0 else found

    return re.sub(r"(?<![\w#])[A-Za-z]+(?:['’][a-z]+)?(?![\w-])", swap, text)


def spans_of(piece: str, text: str) -> Iterator[tuple[int, int]]:
    """Yield where a piece stands as a whole, not within a longer word."""
    if piece and piece in text:
        ends = (r"(?<!\w)" if piece[0].isalnum() else "", r"(?!\w)" if piece[-1].isalnum() else "")
        yield from (match.span() for match in re.finditer(re.escape(piece).join(ends), text))


def lowered(text: str) -> str:
    """Lower the first letter, unless the word is I or holds further capitals."""
    first = re.split(r"[ ,]", text, maxsplit=1)[0]
    kept = re.match(r"I(?:['’]|$)", first) or sum(c.isupper() for c in first) > 1
    return text if kept else text[:1].lower() + text[1:]


def listed(parts: Sequence[str]) -> str:
    """Join as one says it: a, b and c."""
    return ", ".join(parts[:-1]) + " and " + parts[-1] if len(parts) > 1 else "".join(parts)


def is_plural(nouns: str) -> bool:
    """Say whether a phrase ends like a plural."""
    return re.search(r"(?:(?<![sui'’])s|children)$", nouns) is not None


def describes(word: str) -> bool:
    """Say whether a word describes and names nothing: paid, cancelled, active, the customer's."""
    done = r"(?<!e)ed$|^(?:made|given|sent|paid|done|lost|stolen|broken)$|['’]s$"
    return word in word_set("adjectives") or re.search(done, word) is not None


def a_or_the(nouns: str) -> str:
    """Put 'the' before a plural and 'a' or 'an' before anything else."""
    if not nouns or is_plural(nouns):
        return nouns and f"the {nouns}"
    vowel = re.match(r"(?!one\b|once|uni(?![dmn])|us[aeiu]|eu)[aeiou]|hour|hono", nouns, re.I)
    return f"{'an' if vowel else 'a'} {nouns}"


def the(nouns: str) -> str:
    """Name a thing that both know of: 'the price difference', but 'gift cards' and 'MMS'."""
    own = re.match(r"(?:my|your|our|this|that|the)\b", nouns) or nouns.isupper() or not nouns.isascii()
    if " of " in nouns and not own:
        return f"the {nouns}"
    return nouns if own or is_plural(nouns) or nouns.split()[-1] in word_set("mass") else f"the {nouns}"


@lru_cache(maxsize=8192)
def names_in(text: str, language: str = "en") -> tuple[str, ...]:
    """Return the runs of words that name something, four words at most each, in the order of the text.

    Function words, verbs, adverbs and what only an agent speaks of stand between them. Other
    languages are cut at their function words, Chinese at
    function characters and Japanese at its syllables.
    """
    if language != "en":
        return _foreign_phrases(text, language)
    found: list[str] = []
    text = re.sub(r"`[^`]*`|\bhttps?://\S+|\b\w+_\w+\b(?:\([^)]*\))?|\b[A-Z]{2,}(?:[ ,.]+[A-Z]{2,}){2,}", ".", text)
    for pattern, said in _grammar():
        text = pattern.sub(said, text)
    for part in _BREAK.split(text):
        run: list[str] = []
        before = opener = ""
        for word in [*_TOKEN.findall(part), ""]:
            low = word.casefold().replace("’", "'")
            if not word or _between(low, before):
                found.append(_name(run, opener, whole=opener == "" and (not word or low in word_set("finite"))))
                run, opener = [], low
            else:
                run.append(word if sum(c.isupper() for c in word) > 1 else low)
            before = low
    return tuple(dict.fromkeys(p for p in found if len(p) > 2 and re.search(r"[^\W\d]", p)))


@cache
def _grammar() -> list[tuple[re.Pattern[str], str]]:
    """Return what shows that a word is a noun or a verb, as patterns with what makes it plain."""
    told = load_words("cards_en")["grammar"]
    return [(re.compile(re.sub("LIST-([a-z_]+)", lambda m: "|".join(word_set(m[1])), p), re.I), s) for p, s in told]


def _foreign_phrases(text: str, language: str) -> tuple[str, ...]:
    if re.search("[\u3041-\u30ff]", text):
        return tuple(dict.fromkeys(re.findall("[\u30a1-\u30f6ー]{3,12}|[\u4e00-\u9fff]{2,6}", text)))
    if re.search("[\u4e00-\u9fff]", text):
        cut = re.split(f"[{''.join(word_set('characters'))}\\W]+", text)
        return tuple(dict.fromkeys(p if p.isascii() else p[:6] for p in cut if len(p) > 1))
    pattern = rf"(?<!\w)(?:{'|'.join(word_set('foreign'))})(?!\w)"
    bits = [re.sub(r"^\s*\w+ (?=\w+ \w)", "", b) for b in _BREAK.split(text)]  # an order opens with its verb
    parts = [p for b in bits for p in re.split(pattern, b, flags=re.I)]
    if language == "de":  # its nouns are written with capitals
        parts = [p for p in parts if re.search(r"\b[A-ZÄÖÜ]", p)]
    return tuple(dict.fromkeys(" ".join(p.split()[:3]) for p in parts if len(p.strip()) > 3))


@lru_cache(maxsize=8192)
def _between(word: str, before: str) -> bool:
    """Say whether a word stands between names: a function word, a verb, an adverb, a number."""
    if word in word_set("ing_names"):
        return False
    idle = word_set("stop") | word_set("inner") | word_set("parties") | word_set("verbs")
    bases = {word, base_form(word), word.removesuffix("'s")}
    bases |= {word[:-3], f"{word[:-3]}e", word[:-4]} if len(word) > 5 and word.endswith("ing") else set()
    named = word.endswith("ing") and before in ("a", "an", "any", "every")  # 'a reading'
    if bases & idle or (word.endswith("ing") and bases & word_set("verb_or_noun") and not named):
        return True
    if before:
        starts = before in word_set("before_verbs") or (before in word_set("parties") and word.endswith("s"))
    else:
        starts = not word.endswith("s")
    starts = starts and bool(bases & word_set("verb_or_noun"))
    return starts or re.fullmatch(r"\w+ly|\d+(?:th|st|nd|rd)?", word) is not None


def _name(run: list[str], opener: str, *, whole: bool) -> str:
    """Leave out describing words at the end ('reservation modified'); a single word must stand where names do."""
    while run and run[-1].isascii() and run[-1] not in word_set("mass") and describes(run[-1].casefold()):
        run = run[:-1]
    if len(run) > 1 and is_plural(run[-2]) and run[-1] in word_set("verb_or_noun"):
        run = run[:-1]  # 'late cancellations cost ...'
    if len(run) == 1 and run[0].isascii() and not run[0].isupper():
        named = whole or opener in word_set("before_names") or NOUN.search(run[0])
        if not named or re.search(r"(?:ous|ful|able|ible|less|ish|ed)$", run[0]):
            return ""
    return " ".join(run[-4:]).replace("-of-", " of ")


@cache
def word_set(name: str) -> frozenset[str]:
    """Return one list of ``cards_en`` as a set."""
    found = load_words("cards_en")[name]
    return frozenset(map(str, found.split() if isinstance(found, str) else found))


@cache
def stems(name: str) -> frozenset[str]:
    """Return the stems of one list of ``cards_en``."""
    return frozenset(map(stem, word_set(name)))


@lru_cache(maxsize=8192)
def stem(word: str) -> str:
    """Cut the commonest English endings off a word."""
    for ending in ("ings", "ing", "ied", "ies", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word.rstrip("e") if len(word) > 4 else word
