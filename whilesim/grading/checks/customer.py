"""Customer: what is wrong with the customer's side of a conversation, held against its card."""

from __future__ import annotations

import re
from collections.abc import Sequence

from whilesim.cards.cards import Card
from whilesim.chat.messages import Message
from whilesim.core.text import shorten
from whilesim.grading.checks.claims import find_ids
from whilesim.grading.checks.deeds import stems
from whilesim.grading.checks.findings import Finding, found
from whilesim.grading.checks.identifiers import normal
from whilesim.grading.checks.language import language_of, lexicon, pattern


def check_customer(card: Card, messages: Sequence[Message], customer_done: bool) -> list[Finding]:
    """Find where the customer left its card: leaks, new goals, the agent's voice, an early end.

    Args:
        card: What the customer was to know and want.
        messages: The conversation, from the agent's side.
        customer_done: Whether the customer ended it.
    """
    wrong: list[Finding] = []
    customers = [(i, m.content or "") for i, m in enumerate(messages) if m.role == "user"]
    for order, (index, text) in enumerate(customers):
        if leak := pattern("conduct", "customer_leak").search(text):
            wrong.append(found("customer_leak", index, leak.group(), "tells what only the player knows"))
        if voice := pattern("conduct", "agent_voice").search(text):
            wrong.append(found("broke_persona", index, voice.group(), "speaks as the agent"))
        if order and (wish := _new_wish(card, text, messages[:index])):
            wrong.append(found("invented_goal", index, shorten(text), wish))
    if customer_done and customers and (reason := _early(messages, customers[-1][0])):
        wrong.append(found("ended_early", customers[-1][0], shorten(customers[-1][1]), reason))
    return wrong


def _new_wish(card: Card, text: str, earlier: Sequence[Message]) -> str | None:
    """An id that neither card nor conversation holds, or a request for a deed that neither knows."""
    known = " ".join(
        [card.goal, card.opening, card.second, card.exit, *card.facts.values(), *(m.content or "" for m in earlier)]
    )
    plain = normal(known)
    for value in find_ids(text):
        if normal(value) not in plain:
            return f"{value} stands neither on the card nor in the conversation"
    words = lexicon(code if (code := language_of(known)) in ("es", "de") else "en")
    asked = re.findall(r"\b(?:want|like|need|please|could you|can you) (?:you )?(?:to )?(?:also )?(\w+)", text.lower())
    new = words.senses(asked, "V") - words.senses(re.findall(r"[\w'-]+", known.lower()))
    if new and not stems(re.findall(r"\w+", known.lower())) & stems(asked):
        return "asks for something that is neither on the card nor was offered"
    return None


def _early(messages: Sequence[Message], last: int) -> str | None:
    spoken = [m.content or "" for m in messages[:last] if m.role == "assistant" and m.content]
    answered = any(m.role == "assistant" for m in messages[last + 1 :])
    if not spoken:
        return "ended before the agent said a word"
    if (
        not answered
        and pattern("conduct", "yes").match((messages[last].content or "").strip())
        and spoken[-1].rstrip().endswith("?")
    ):
        return "agreed to a step and left before it was taken"
    return None
