"""Scripted customer: answers from its card, in its persona's typing, without a model. English only."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from whilesim.cards.cards import Card
from whilesim.cards.facts import say_fact
from whilesim.cards.personas import type_like
from whilesim.chat.messages import Message
from whilesim.conversations.intent import asks_person
from whilesim.conversations.players import Context, Utterance
from whilesim.conversations.reading import asks_go_ahead
from whilesim.conversations.said import SHAPES, tokens_in, value_said, wanted
from whilesim.core.seeds import chance, pick
from whilesim.core.templates import load_words
from whilesim.core.text import name_words, words
from whilesim.world.kinds import role_of

_WHO = ("name", "email", "phone", "date of birth", "zip")
_ONE_OF = ("email", "phone", "dob", "zip", "full_name", "street", "username")
"""Roles of which a customer has one, so that all words for it mean the same."""
_LOOKS = {kind: re.compile(look, re.IGNORECASE) for kind, look in load_words("scripted_customer")["looks"].items()}


@dataclass(frozen=True, slots=True)
class ScriptedCustomer:
    """A customer without a model: it answers from its card, in its persona's typing."""

    async def speak(self, card: Card, messages: Sequence[Message], context: Context) -> Utterance:
        """Say what the card says to the agent's last words."""
        said = [m.content or "" for m in messages if m.role == "user"]
        heard = next((m.content or "" for m in reversed(messages) if m.role == "assistant"), "")
        text, done = _reply(card, said, heard, context.seed)
        if not text:
            return Utterance(done=True)
        kept = [v for fact in card.facts.values() for v in (fact, *re.split(r",\s+", fact))]
        typed = type_like(text, card.persona, context.seed, "say", card.id, len(said), protect=kept)
        return Utterance(text=typed, done=done)


def _reply(card: Card, said: Sequence[str], heard: str, seed: int) -> tuple[str, bool]:
    """Return what a customer answers, and whether it is done after that."""
    phrases: Mapping[str, list[str]] = load_words("scripted_customer")
    turn = len(said)

    def phrase(kind: str, **values: str) -> str:
        return pick(phrases[kind], seed, card.id, kind, turn).format(**values)

    heard, closing = _LOOKS["closing"].subn(" ", heard)  # whether there is anything else asks for nothing
    if _LOOKS["goodbye"].search(heard) and len(heard) < 120 and not closing:
        return "", True
    if _LOOKS["intent"].search(heard) and "?" in heard:
        return phrase("want", want=_wanted(card)), False
    if asks_go_ahead(heard):
        told = re.sub(r"(?<=\d),(?=\d{3}\b)", "", re.sub(r"[\"“”*`(){}]", " ", heard))
        wrong = _say([n for n in card.facts if _is_disputed(card, n, told)], card)
        if wrong and turn >= card.give_up:
            return phrase("resigned"), True
        return phrase("wrong", facts=wrong) if wrong else phrase("agree"), False
    if "?" in heard or _LOOKS["asks"].search(heard):
        return _answer(card, said, heard, phrase), False
    if card.second and not any(_told(card.second, t) for t in said):
        return card.second, False
    if turn < card.give_up and asks_person(said[0]) and not any(asks_person(t) for t in said[1:]):
        return phrase("person"), False
    refused = _LOOKS["refuses"].search(heard)
    stance = card.situation.values.get("stance")
    if stance in ("insistent", "boundary_testing", "adversarial") and turn < 3 and refused:
        return phrase("push"), False
    if closing or chance(0.5, seed, card.id, "thanks"):
        return phrase("resigned" if refused else "closed" if closing else "thanks"), True
    return "", True


def _answer(card: Card, said: Sequence[str], heard: str, phrase: Callable[..., str]) -> str:
    """Say what was asked for, as far as the card knows it; where it is asked which one, what was not said yet."""
    told = {n: v if len(v) > 3 else say_fact(n, v) for n, v in card.facts.items()}
    new = [n for n in card.facts if not any(told[n] in t for t in said)]
    if re.search(r"\bwhich\b", heard, re.I) and re.search(r"more than one|several", heard):
        chosen = [n for n in new if n not in _WHO and not n.endswith(" id")] or new
    else:
        chosen = sorted(_asked(card, heard), key=lambda n: n not in new)
        who = _LOOKS["identifies"].search(heard) is not None  # else the request is what a question is about
        new = sorted(new, key=lambda n: n in _WHO and not who)
        chosen = chosen or ([] if len(said) > 2 else new[:2])
    if not chosen:
        return phrase("cannot")
    return phrase("give" if chosen[0] in new else "again", facts=_say(chosen[:8], card))


def _say(names: Sequence[str], card: Card) -> str:
    once = dict.fromkeys(say_fact(n, card.facts[n]) for n in names)
    return " ".join(s[:1].upper() + s[1:].rstrip(".") + "." for s in once)


def _asked(card: Card, heard: str) -> list[str]:
    """Return the facts that an agent asks for: by their names, or else by what kind of thing they are."""
    found = [n for n in card.facts if _share_named(n, heard) >= 0.5]
    asked = " ".join(re.findall(r"[^.!?]*\?|[^.!?]*\b[Pp]lease\b[^.!?]*", heard))
    for asks, looks in load_words("scripted_customer")["kinds"].items() if asked else ():
        of_kind = [n for n, v in card.facts.items() if re.search(looks, f"{_role(n)}: {v}")]
        if re.search(asks, asked, re.I) and set(of_kind).isdisjoint(found):
            found += [n for n in of_kind if n not in _WHO]
    return found


def _is_disputed(card: Card, name: str, heard: str) -> bool:
    """Say whether an agent names another id, date, number or amount for a fact, and not the right one."""
    value = card.facts[name]
    days, heard_days = tokens_in(value, "date"), tokens_in(heard, "date")
    if len(days) > 1:
        return len(heard_days) >= len(days) and not set(days) <= set(heard_days)
    rest = value.replace(days[0], "").strip() if days else ""
    if rest and (beside := re.search(rf"{re.escape(rest)}\W+(?:\w+\W+)?({SHAPES['date']})", heard, re.I)):
        return beside[1] != days[0]
    number = re.fullmatch(r"\d+(?:\.\d+)?", value)
    want = wanted(name.replace(" ", "_"), {"format": "date"} if days else {"type": "number"} if number else {})
    other = value_said([heard], want) if want.shape in ("id", "date", "number") else None
    amounts = _LOOKS["amount"].findall(heard) if number and [*map(_role, card.facts)].count("money") == 1 else []
    if not other and len(amounts) == 1 and _role(name) == "money" and not _LOOKS["priced"].search(heard):
        other = amounts[0]
    there = re.search(rf"(?<![\w.]){re.escape(value)}(?!\w|\.\d)", heard, re.I)
    if not other or there or (other in card.facts.values() and not days):
        return False
    other = re.sub(r",(?=\d{1,2}$)", ".", other) if number else other  # 12,50
    if number and not re.fullmatch(r"-?\d+(?:\.\d+)?", other):
        return False
    return float(other) != float(value) if number and want.shape == "number" else _outline(other) == _outline(value)


def _outline(value: str) -> str:
    """Return how an id or a date looks: 'W12' and 'w904' are alike."""
    return re.sub(r"[^\W\d_]+", "a", re.sub(r"\d+", "0", value)).lstrip("#")


def _share_named(name: str, text: str) -> float:
    """Say which share of a fact's name stands in a text, 0 to 1; words that say little count where there are no others."""
    parts = [w for w in name_words(name.replace(" ", "_")) if w not in ("of", "the", "my")]
    parts = [w for w in parts if w not in ("id", "ids", "new", "number", "code")] or parts
    heard = {w.removesuffix("s") for w in words(text)}
    role, flat = _role(name), f" {' '.join(words(text))} "
    if role in _ONE_OF and any(f" {w.replace('_', ' ')} " in flat for w in load_words("world_nouns")["roles"][role]):
        return 1.0  # a zip code is a postcode
    if role == "dob":
        return 1.0 * bool(re.search(r"\bborn\b|\bbirth", text, re.I))  # another date is asked for
    return sum(w.removesuffix("s") in heard for w in parts) / len(parts) if parts else 0.0


def _role(name: str) -> str:
    return role_of("_".join(name.split()))


def _wanted(card: Card) -> str:
    first = re.split(r"(?<=[.!?])\s", card.goal)[0]
    first = re.sub(r"^You want to\s+", "", first).rstrip(".")
    return re.sub(r"\byou\b", "I", re.sub(r"\byours?\b", "my", first))


def _told(second: str, text: str) -> bool:
    wanted = set(words(second))
    return len(wanted & set(words(text))) >= 0.6 * len(wanted)
