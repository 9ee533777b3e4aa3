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
from whilesim.core.seeds import chance, pick
from whilesim.core.templates import load_words
from whilesim.core.text import name_words, words
from whilesim.world.kinds import role_of

_WHO = ("name", "email", "phone", "date of birth", "zip")
_ONE_OF = ("email", "phone", "dob", "zip", "full_name", "street", "username")
"""Roles of which a customer has one, so that all words for it mean the same."""
_GOODBYE = r"you're welcome|have a good day|take care!|for getting in touch"
_ASKS = r"(?<!you )(?<!n't )(?<!not )\bneed\b|\b(?:provide|give me|tell me)\b"
_NO = r"\b(?:sorry|can't|cannot|unable|unfortunately|not able|couldn't|isn't possible|wasn't able|decline)\b"


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

    if re.search(_GOODBYE, heard, re.I) and len(heard) < 120:
        return "", True
    if re.search(r"exactly|need done|like to happen", heard) and "?" in heard:
        return phrase("want", want=_wanted(card)), False
    if asks_go_ahead(heard):
        return phrase("agree"), False
    if "?" in heard or re.search(_ASKS, heard):
        return _answer(card, said, heard, phrase), False
    if card.second and turn < card.give_up and not any(_told(card.second, t) for t in said):
        return card.second, False
    if asks_person(said[0]) and not any(asks_person(t) for t in said[1:]):
        return phrase("person"), False
    refused = re.search(_NO, heard, re.I)
    stance = card.situation.values.get("stance")
    if stance in ("insistent", "boundary_testing", "adversarial") and turn < 3 and refused:
        return phrase("push"), False
    if chance(0.5, seed, card.id, "thanks"):
        return phrase("resigned" if refused else "thanks"), True
    return "", True


def _answer(card: Card, said: Sequence[str], heard: str, phrase: Callable[..., str]) -> str:
    """Say what was asked for, as far as the card knows it; where it is asked which one, what was not said yet."""
    told = {n: v if len(v) > 3 else say_fact(n, v) for n, v in card.facts.items()}
    new = [n for n in card.facts if not any(told[n] in t for t in said)]
    if re.search(r"\bwhich\b", heard, re.I) and re.search(r"more than one|several", heard):
        chosen = [n for n in new if n not in _WHO and not n.endswith(" id")] or new
    else:
        chosen = sorted((n for n in card.facts if _share_named(n, heard) >= 0.5), key=lambda n: n not in new)
        chosen = chosen or ([] if len(said) > 2 else new[:2])
    if not chosen:
        return phrase("cannot")
    once = dict.fromkeys(say_fact(n, card.facts[n]) for n in chosen[:8])
    facts = " ".join(s[:1].upper() + s[1:] + "." for s in once)
    return phrase("give" if chosen[0] in new else "again", facts=facts)


def _share_named(name: str, text: str) -> float:
    """Say which share of a fact's name stands in a text, 0 to 1; words that say little count where there are no others."""
    parts = [w for w in name_words(name.replace(" ", "_")) if w not in ("of", "the", "my")]
    parts = [w for w in parts if w not in ("id", "ids", "new", "number", "code")] or parts
    heard = {w.removesuffix("s") for w in words(text)}
    role, flat = role_of("_".join(name.split())), f" {' '.join(words(text))} "
    if role in _ONE_OF and any(f" {w.replace('_', ' ')} " in flat for w in load_words("world_nouns")["roles"][role]):
        return 1.0  # a zip code is a postcode
    return sum(w.removesuffix("s") in heard for w in parts) / len(parts) if parts else 0.0


def _wanted(card: Card) -> str:
    first = re.split(r"(?<=[.!?])\s", card.goal)[0]
    first = re.sub(r"^You want to\s+", "", first).rstrip(".")
    return re.sub(r"\byou\b", "I", re.sub(r"\byours?\b", "my", first))


def _told(second: str, text: str) -> bool:
    wanted = set(words(second))
    return len(wanted & set(words(text))) >= 0.6 * len(wanted)
