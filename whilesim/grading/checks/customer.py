"""Customer: what is wrong with the customer's side of a conversation, held against its card."""

from __future__ import annotations

import re
from collections.abc import Sequence

from whilesim.cards.cards import Card
from whilesim.chat.messages import Message
from whilesim.core.templates import load_words
from whilesim.core.text import shorten
from whilesim.grading.checks.claims import find_ids
from whilesim.grading.checks.deeds import stems
from whilesim.grading.checks.findings import Finding
from whilesim.grading.checks.identifiers import normal
from whilesim.grading.checks.language import clean, language_of, lexicon, pattern


def check_customer(card: Card, messages: Sequence[Message], customer_done: bool) -> list[Finding]:
    """Find where the customer left its card: leaks, new goals, the agent's voice, an early end.

    Args:
        card: What the customer was to know and want.
        messages: The conversation, from the agent's side.
        customer_done: Whether the customer ended it.

    Returns:
        ``customer_leak``, ``broke_persona``, ``invented_goal`` and ``ended_early``, in the order
        of the messages. They speak of the customer, so a row that has one says little of the agent.
    """
    wrong: list[Finding] = []
    customers = [i for i, m in enumerate(messages) if m.role == "user"]
    for index in customers:
        text = clean(messages[index].content or "")
        if leak := pattern("conduct", "customer_leak").search(messages[index].content or ""):
            wrong.append(Finding("customer_leak", index, leak.group(), "tells what only the player knows"))
        if voice := pattern("conduct", "agent_voice").search(text):
            wrong.append(Finding("broke_persona", index, voice.group(), "speaks as the agent"))
        if index != customers[0] and (reason := _new_wish(card, text, messages[:index])):
            wrong.append(Finding("invented_goal", index, shorten(text), reason))
    if customer_done and customers and (reason := _early(messages, customers[-1])):
        wrong.append(Finding("ended_early", customers[-1], shorten(messages[customers[-1]].content or ""), reason))
    return wrong


def _new_wish(card: Card, text: str, earlier: Sequence[Message]) -> str | None:
    """An id that neither card nor conversation holds, or a request for what neither speaks of."""
    said = [m.content or "" for m in earlier if m.role != "system"]
    known = " ".join([card.goal, card.opening, card.second, card.exit, *card.facts.values(), *said]).lower()
    for value in find_ids(text):
        if normal(value) not in normal(known):
            return f"{value} stands neither on the card nor in the conversation"
    words = lexicon(code if (code := language_of(known)) in ("es", "de") else "en")
    heard = re.findall(r"[\w'-]+", known)
    mail = stems(load_words("checks_deeds")["entailed_mail"])
    for verb, thing in words.pattern("wish").findall(text.lower()):
        deed, things = words.senses([verb], "VG"), stems(re.findall(r"[\w'-]+", thing))
        if deed - words.senses(heard) == deed != frozenset() and things - stems(heard) - mail:
            return f"asks to {verb} {thing}, of which neither card nor conversation speaks"
    return None


def _early(messages: Sequence[Message], last: int) -> str | None:
    if not any(m.role == "assistant" for m in messages):
        return "ended before the agent said a word"
    heard = next((m.content for m in reversed(messages[:last]) if m.role == "assistant" and m.content), "")
    answered = any(m.role == "assistant" for m in messages[last + 1 :])
    asked = pattern("conduct", "proposes").search(heard)
    agreed = pattern("conduct", "yes").match(clean(messages[last].content or ""))
    return "agreed to a step and left before it was taken" if asked and agreed and not answered else None
