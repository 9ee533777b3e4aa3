"""Desk: cards written and chosen for the rows of a covering, in the worlds that they will be played in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from whilesim.cards.cards import Card, write_cards
from whilesim.cards.embeddings import embed
from whilesim.cards.needs import Phrasebook
from whilesim.cards.plan import WorldFactory
from whilesim.cards.selection import choose_candidates, spread
from whilesim.cards.writer import Request, phrase_cards
from whilesim.chat.endpoint import Endpoint
from whilesim.chat.loop import run
from whilesim.chat.models import Chat
from whilesim.core.seeds import derive
from whilesim.situations.axes import Situation, Space
from whilesim.situations.covering import Wish
from whilesim.situations.policy import Clause, Policy
from whilesim.situations.tools import Tool
from whilesim.world.mock import Focus, MockWorld
from whilesim.world.model import WorldModel
from whilesim.world.oracle import Oracle, build_oracle

T = TypeVar("T")

_TRIES = ("balance 1", "balance 2", "balance 3")
"""Situations that are asked: how long a tool's failure lasts, and what brings a clause up, is drawn by id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """What a card is written from."""

    policy: Policy
    tools: tuple[Tool, ...]
    customer_tools: tuple[Tool, ...]
    model: WorldModel | None
    factory: WorldFactory | None
    seed: int

    def tool(self, situation: Situation) -> Tool:
        wanted = situation.values.get("tool")
        return next((t for t in self.tools if t.name == wanted), self.tools[0])

    def clause(self, situation: Situation) -> Clause | None:
        wanted = situation.values.get("clause")
        return next((c for c in self.policy.clauses if c.id == wanted), None)

    def focus(self, situation: Situation) -> Focus:
        seed = derive(self.seed, "world")
        if self.factory is None:
            return MockWorld(self.tools, self.policy, situation, seed, model=self.model).focus
        world: Any = self.factory(situation.values, derive(seed, situation.id))
        found = getattr(world, "focus", None)
        found = found(situation.values) if callable(found) else found
        if isinstance(found, Focus):
            return found
        return Focus(tool=self.tool(situation).name, arguments={}, facts=dict(found or {}))

    def oracle(self, situation: Situation, focus: Focus, card: Card | None) -> Oracle:
        return build_oracle(
            situation.values, clause=self.clause(situation), tools=self.tools, focus=focus, model=self.model,
            applies=card.clause_applies if card else "unknown", clauses=self.policy.clauses,
            later=card is not None and card.form == "second_request",
        )  # fmt: skip

    def look(self, situation: Situation, card: Card | None = None) -> tuple[Focus, Oracle]:
        focus = self.focus(situation)
        return focus, self.oracle(situation, focus, card)

    def wish(self, share: float) -> Wish:
        """Wish for a share of rows in which a hand-off is wanted.

        A hand-off clause wants one where the customer's words make it apply. Else it hangs on what the
        tool does, its condition and the record's state: the oracle is asked for each combination of
        these, and tools that do the same count as one.
        """
        book, handoffs = Phrasebook(self.policy, self.tools, ()), any(t.effect == "handoff" for t in self.tools)
        applies = {
            c.id: sum(book.need(c, self.seed, at).applies == "yes" for at in _TRIES) / len(_TRIES)
            for c in self.policy.clauses
            if c.kind == "handoff" and handoffs
        }
        alike: dict[Any, str] = {}
        doing = {t.name: self.model.deeds[t.name].action if self.model else t.name for t in self.tools}
        stands_for = {
            t.name: alike.setdefault((doing[t.name], t.effect, bool(t.id_arguments)), t.name) for t in self.tools
        }

        @cache
        def wanted(values: tuple[tuple[str, str], ...]) -> float:
            looks = [self.look(Situation(id=name, values=dict(values)))[1] for name in _TRIES]
            return sum(oracle.handoff_wanted is True for oracle in looks) / len(looks)

        def fits(row: Mapping[str, str]) -> float:
            asked = {name: row[name] for name in ("tool", "tool_condition", "world_state") if name in row}
            if "tool" in asked:
                asked["tool"] = stands_for[asked["tool"]]
            return max(wanted(tuple(asked.items())), applies.get(row.get("clause", ""), 0.0))

        return Wish(share, fits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafts:
    """The candidate cards of every row, of which one each will be chosen."""

    cards: Sequence[tuple[Card, ...]]
    focuses: Sequence[Focus]
    apart: Sequence[str]
    """For each candidate in turn, the words by which it is told from the others.

    A template's card counts without what brings its clause up, so that no clause's text decides
    which candidate another clause's row takes; what a model has written counts whole.
    """
    notes: tuple[str, ...] = ()


def draft_cards(
    desk: Desk, space: Space, rows: Sequence[Mapping[str, str]], candidates: int, writer: Any, prefix: str = "s"
) -> Drafts:
    """Write several cards for every row."""
    values = [v for axis in space.axes if axis.name not in ("clause", "tool") for v in axis.values]
    book = Phrasebook(desk.policy, desk.tools, values)
    requests: list[Request] = []
    focuses: list[Focus] = []
    apart: list[str] = []
    for number, row in enumerate(rows):
        situation = Situation(id=f"{prefix}{number + 1:04d}", values=row)
        focus, clause, tool = desk.focus(situation), desk.clause(situation), desk.tool(situation)
        cards = write_cards(situation, clause, tool, focus, book, seed=desk.seed, count=candidates)
        later = clause is None or cards[0].form == "second_request"  # the opening is without the clause already
        bare = cards if later else write_cards(situation, None, tool, focus, book, seed=desk.seed, count=candidates)
        requests.append(Request(cards=cards, clause=clause, tool=tool))
        focuses.append(focus)
        apart += [card.opening for card in bare]
    if writer is None:
        return Drafts(cards=[r.cards for r in requests], focuses=focuses, apart=apart)
    written, kept = run(with_chat(writer, lambda chat: phrase_cards(requests, chat, book)))
    note = f"{kept} of {len(apart)} cards keep the template's words: the writer's could not be used"
    apart = [f"{card.opening} {card.second}" for cards in written for card in cards]
    return Drafts(cards=written, focuses=focuses, apart=apart, notes=(note,) if kept else ())


def choose_cards(
    desk: Desk, drafts: Drafts, embedder: Any
) -> tuple[tuple[Card, ...], dict[str, Oracle], str, Mapping[str, float | None]]:
    """Keep one card of every row, so that the kept ones are far apart; also say by what, and how far."""
    flat = [card for cards in drafts.cards for card in cards]
    groups = [number for number, cards in enumerate(drafts.cards) for _ in cards]
    chosen = tuple(flat[int(i)] for i in choose_candidates(embed(drafts.apart, embedder).matrix, groups))
    oracles = {c.id: desk.oracle(c.situation, f, c) for c, f in zip(chosen, drafts.focuses, strict=True)}
    vectors = embed([f"{card.opening} {card.second}" for card in chosen], embedder)
    return chosen, oracles, vectors.name, spread(vectors.matrix) if flat else {}


async def with_chat(model: Any, use: Callable[[Chat], Awaitable[T]]) -> T:
    """Open a model for one use; anything with a ``reply`` method is used as it is."""
    if hasattr(model, "reply"):
        return await use(model)
    async with Endpoint(model) as chat:
        return await use(chat)
