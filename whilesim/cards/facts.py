"""Facts: what a customer knows, said in sentences.

A fact has the name that the world gives it ('new item ids'); how it is said goes by the kind
of the name. Values stay as the world holds them, set off by spaces and marks, since an agent
looks them up; only a fixed option loses its underscores.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from whilesim.cards.speech import describes, is_plural, listed, word_set
from whilesim.core.templates import load_words
from whilesim.world.verbs import deed_of_verb


def say_fact(name: str, value: str) -> str:
    """Say one fact as a clause without a stop: 'my user id is u_77', 'the new zip code would be 85718'."""
    if value in ("yes", "no"):  # as the world writes a boolean; a country code NO is a value
        return _say_flag(name.removeprefix("new "), value == "yes")
    acts = (
        deed_of_verb().get(name.removesuffix("s"), "read") != "read"
        and name[:-1] not in load_words("world_verbs")["nouns_too"]
    )
    if acts and name.endswith("s") and re.search(r"\d", value):
        return f"it {name} {value}"  # replaces C12
    frame, match = next((f, m) for pattern, f in _frames() if (m := pattern.search(name)))
    called = match.groupdict().get("of") or name
    several = match.groupdict().get("ids") or called in ("item", "product") or is_plural(called)
    parts = list(dict.fromkeys(v for v in re.split(r",\s+", value) if v)) if several else [value]
    if not re.search(r"\b(?:id|ids|name|username|password|code|key|login)\b", name):
        parts = [p.replace("_", " ") if re.fullmatch(r"[a-z]+(?:_[a-z]+)+", p) else p for p in parts]
    many = len(parts) > 1 or is_plural(called)
    if match.groupdict().get("ids"):
        called = f"{called}s" if many else called
    return frame.format(**{**match.groupdict(), "of": called, "value": listed(parts), "are": "are" if many else "is"})


def _say_flag(name: str, yes: bool) -> str:
    """Say what is so or not: 'it hasn't been opened', 'the deposit is available', 'it has no warranty'."""
    verb, _, rest = name.partition(" ") if re.match(r"(?:is|are|was|has|have|can) ", name) else ("", "", name)
    *of, last = rest.split()
    what, many = (f"the {' '.join(of)}", is_plural(of[-1])) if of else ("it", False)
    n_t = "" if yes else "n't"
    if verb == "can":
        return f"it can{n_t[1:]} {rest}"
    if verb in ("has", "have"):
        return f"it has{n_t} {last}" if not of and describes(last) else f"it has {'' if yes else 'no '}{rest}"
    if last in word_set("adjectives") or (verb and not describes(last)):
        return f"{what} {'are' if many else 'is'}{n_t} {last}"
    if describes(last) and of and all(map(describes, of)):
        return f"it has{n_t} been {last} {' '.join(of)}"
    if describes(last):
        return f"{what} {'have' if many else 'has'}{n_t} been {last}"
    return f"{rest}: {'yes' if yes else 'no'}"


def say_facts(facts: Iterable[tuple[str, str]]) -> str:
    """Say some facts in one or two sentences; nothing for none."""
    sentences: list[str] = []
    for name, value in facts:
        said = say_fact(name, value)
        apart = bool(sentences) and ("would be" in said) != ("would be" in sentences[-1])
        if sentences and " and " not in sentences[-1] and not apart and not sentences[-1].endswith((".", "!", "?")):
            sentences[-1] += f" and {said}"
        else:
            sentences.append(said)
    return " ".join(s[:1].upper() + s[1:] + ("" if s.endswith((".", "!", "?")) else ".") for s in sentences)


@cache
def _frames() -> list[tuple[re.Pattern[str], str]]:
    return [(re.compile(pattern), frame) for pattern, frame in load_words("cards_en")["facts"]]
