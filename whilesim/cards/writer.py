"""Writer: a chat model that phrases the cards, one request for each situation.

The model says the same things in other words: what it writes is held against the facts, the
tool names and the policy's own sentences. Where it breaks one of these rules it is told so and
asked once more, and then the template's words stay. How many stayed is told.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

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

_CODE = re.compile(r"#?\b(?=[\w-]{0,60}\d)[A-Za-z0-9][\w-]{3,}\b")


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
        return render_prompt(
            "writer",
            card=first,
            clause=self.clause,
            tool=self.tool,
            count=len(self.cards),
            proses=[c.prose for c in self.cards],
            stance=first.situation.values.get("stance", ""),
            history=first.situation.values.get("history", ""),
        )


async def phrase_cards(requests: Sequence[Request], chat: Chat, book: Phrasebook) -> tuple[list[tuple[Card, ...]], int]:
    """Let a model phrase the cards of many situations.

    Returns:
        The candidates of each situation, in order, and how many kept the template's words.
    """
    written = await asyncio.gather(*(_phrase(r, chat, book) for r in requests))
    return [cards for cards, _ in written], sum(kept for _, kept in written)


async def _phrase(request: Request, chat: Chat, book: Phrasebook) -> tuple[tuple[Card, ...], int]:
    messages = [Message(role="user", content=request.prompt())]
    done: dict[int, Card] = {}
    for attempt in range(2):
        key = CallKey(case=request.cards[0].id, role="writer", turn=attempt)
        try:
            reply = await chat.reply(messages, schema=SCHEMA, key=key)
        except ModelError as error:
            if error.reason in ("auth", "budget", "interrupt"):
                raise
            break
        drafts = _read(reply.message.content or "")
        wrong = []
        for number, card in enumerate(request.cards):
            found = _accept(card, drafts[number], book) if number < len(drafts) else "it is not there"
            if isinstance(found, Card):
                done.setdefault(number, found)
            elif number not in done:
                wrong.append(f"{number + 1}. {found}")
        if not wrong:
            break
        said = Message(role="assistant", content=reply.message.content)
        messages += [said, Message(role="user", content=render_prompt("writer_again", wrong=wrong))]
    return tuple(done.get(n, card) for n, card in enumerate(request.cards)), len(request.cards) - len(done)


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


_CARD = _object({name: {"type": "string"} for name in _Draft.model_fields})
SCHEMA = _object({"cards": {"type": "array", "items": _CARD}})


def _read(text: str) -> list[_Draft]:
    inner = re.search(r"\{.*\}", text, re.DOTALL)
    found = parse_object(inner.group()) if inner else None
    try:
        return _Drafts.model_validate(found).cards
    except ValidationError:
        return []


def _accept(card: Card, draft: _Draft, book: Phrasebook) -> Card | str:
    """Take a model's words, or say why not: they quote, name a tool, or invent a code."""
    opening, second = draft.opening.strip(), draft.second.strip()
    keep = list(card.facts.values())
    known = " ".join([*keep, card.opening, card.goal, card.second])
    invented = [c for c in _CODE.findall(f"{opening} {second}") if c not in known]
    if not opening or bool(second) != bool(card.second):
        return "opening or second is empty, or there where it should be empty"
    if invented:
        return f"{invented[0]!r} stands nowhere in what the customer knows"
    if any(book.clean(text, keep) != text for text in (opening, second)):
        return "it repeats the rule, or names a function or a label"
    return replace(card, opening=opening, second=second)
