"""Writer: a chat model that phrases the cards, one request for each situation.

The model says the same things in other words: what it writes is held against the facts, the
tool names and the policy's own sentences, and where it breaks one of these rules the
template's words stay. How many stayed is told.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pydantic import BaseModel, ConfigDict, ValidationError

from whilesim.cards.cards import Card
from whilesim.cards.needs import Phrasebook
from whilesim.chat.messages import Message
from whilesim.chat.models import CallKey, Chat
from whilesim.core.errors import ModelError
from whilesim.core.jsontext import parse_object
from whilesim.core.templates import render_prompt
from whilesim.situations.policy import Clause
from whilesim.situations.tools import Tool

_CODE = re.compile(r"#?\b(?=[\w-]*\d)[A-Za-z0-9][\w-]{3,}\b")


class _Draft(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)

    opening: str
    second: str = ""


class _Drafts(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)

    cards: list[_Draft]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The candidates of one situation, and what they are about."""

    cards: tuple[Card, ...]
    clause: Clause | None
    tool: Tool

    def prompt(self) -> str:
        """Return what the model is asked."""
        first = self.cards[0]
        mood = {k: v for k, v in first.situation.values.items() if k in ("stance", "history")}
        return render_prompt(
            "writer",
            card=first,
            clause=self.clause,
            tool=self.tool,
            count=len(self.cards),
            proses=[c.prose for c in self.cards],
            mood=", ".join(f"{k}: {v.replace('_', ' ')}" for k, v in mood.items()) or "nothing special",
        )


async def phrase_cards(requests: Sequence[Request], chat: Chat, book: Phrasebook) -> tuple[list[tuple[Card, ...]], int]:
    """Let a model phrase the cards of many situations.

    Returns:
        The candidates of each situation, in order, and how many kept the template's words.
    """
    written = await asyncio.gather(*(_phrase(r, chat, book) for r in requests))
    return [cards for cards, _ in written], sum(kept for _, kept in written)


async def _phrase(request: Request, chat: Chat, book: Phrasebook) -> tuple[tuple[Card, ...], int]:
    key = CallKey(case=request.cards[0].id, role="writer")
    try:
        reply = await chat.reply([Message(role="user", content=request.prompt())], schema=SCHEMA, key=key)
        drafts = _read(reply.message.content or "")
    except ModelError as error:
        if error.reason in ("auth", "budget", "interrupt"):
            raise
        drafts = []
    cards = [_accept(card, drafts[i], book) if i < len(drafts) else None for i, card in enumerate(request.cards)]
    return tuple(new or old for new, old in zip(cards, request.cards, strict=True)), cards.count(None)


SCHEMA = {
    "type": "object",
    "properties": {
        "cards": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"opening": {"type": "string"}, "second": {"type": "string"}},
                "required": ["opening", "second"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["cards"],
    "additionalProperties": False,
}


def _read(text: str) -> list[_Draft]:
    inner = re.search(r"\{.*\}", text, re.DOTALL)
    found = parse_object(inner.group()) if inner else None
    if found is None:
        return []
    try:
        return _Drafts.model_validate(found).cards
    except ValidationError:
        return []


def _accept(card: Card, draft: _Draft, book: Phrasebook) -> Card | None:
    """Take a model's words, unless they quote, name a tool, or invent a code."""
    opening, second = draft.opening.strip(), draft.second.strip()
    keep = list(card.facts.values())
    known = " ".join([*keep, card.opening, card.goal, card.second])
    invented = [c for c in _CODE.findall(f"{opening} {second}") if c not in known]
    quoted = any(book.clean(text, keep) != text for text in (opening, second))
    if not opening or invented or quoted or bool(second) != bool(card.second):
        return None
    return replace(card, opening=opening, second=second)
