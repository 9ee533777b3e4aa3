"""How the template writer's cards read: what brings the clause up, and what must never be said.

Run: python tests/benchmarks/bench_cards.py [--cards N DOMAIN] [../shared]

'told apart' is a proxy for a reader: of the card's own clause and four others of its policy, the
one that shares most rare stems with the card is taken; a rule on the agent's own conduct, which a
customer can only invite to break, shares few.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from whilesim.cards.cards import Card
from whilesim.cards.needs import RUN, Phrasebook
from whilesim.cards.plan import Plan
from whilesim.cards.planning import plan
from whilesim.cards.speech import stem, word_set
from whilesim.core.seeds import shuffled
from whilesim.core.templates import load_words
from whilesim.core.text import words

ROOT = Path(__file__).parents[2]
CORPUS = (
    "25-openapi-checkout",
    "21-acme-insurance-eva",
    "35-bare-openai-waiter",
    "15-bank-dispute-policy-long",
    "29-chinese-wecom-aftersale",
)
BANK = (
    ("open_dispute", "Open a dispute for a transaction.", ("transaction_id", "reason")),
    ("get_transaction", "Get a transaction.", ("transaction_id",)),
    ("close_card", "Close a card.", ("card_id",)),
    ("escalate_to_human", "Hand over to a person.", ("summary",)),
)
"""Tools for the policies that come without any."""
RULES = """Be polite to every guest.
Never promise a refund on the spot.
Transfer the customer to a supervisor if they report an allergy.
Refunds must stay within 50 dollars.
Ask for confirmation before any payment is voided."""
"""A policy for the tools that come without one."""


def load(name: str, shared: Path) -> tuple[str, Any]:
    """Return policy and tools of a domain; what it lacks is lent."""
    folder = {"demo": ROOT / "whilesim" / "demo"}.get(name, shared / "tau2" / name)
    folder = folder if folder.exists() else shared / "corpus" / name
    policy, tools = folder / "policy.md", folder / "tools.json"
    lent = [
        {"name": n, "description": d, "parameters": {"properties": {a: {"type": "string"} for a in args}, "type": "object", "required": list(args)}}
        for n, d, args in BANK
    ]  # fmt: skip
    text = policy.read_text(encoding="utf-8") if policy.exists() else RULES
    return text, json.loads(tools.read_text(encoding="utf-8")) if tools.exists() else lent


def plan_of(name: str, shared: Path, size: int) -> Plan:
    """Plan ``size`` situations of a domain, one candidate each."""
    policy, tools = load(name, shared)
    return plan(tools=tools, system_prompt=policy, situations=size, candidates=1, embedder="hashed")


def said(card: Card) -> str:
    """Return all that a customer says from a card before anyone asks."""
    return f"{card.opening}\n{card.second}"


def runs_shared(made: Plan) -> int:
    """Count cards that repeat six words of the policy in a row, facts and names of records aside."""
    policy = words(made.system_prompt)
    runs = {tuple(policy[i : i + RUN]) for i in range(len(policy) - RUN + 1)}
    texts = [words(part) for c in made.cards for part in said(c).split("\n")]
    return sum(any(tuple(t[i : i + RUN]) in runs for i in range(len(t) - RUN + 1)) for t in texts)


def forbidden_words(made: Plan) -> tuple[int, int]:
    """Count cards that say a tool's name, and those that say an axis value as it is spelled."""
    tools = re.compile(
        rf"\b(?:{'|'.join(re.escape(t.name) for t in made.tools if '_' in t.name or not t.name.islower())})\b"
    )
    coded = [v for a, vs in made.axes.items() if a not in ("clause", "tool") for v in vs]
    banned = [v for v in coded if "_" in v or v in load_words("cards_en")["instead"]]
    values = re.compile(rf"\b(?:{'|'.join(map(re.escape, banned))})\b", re.IGNORECASE)
    named = coded_said = 0
    for card in made.cards:
        text = said(card)
        for fact in sorted(card.facts.values(), key=len, reverse=True):
            text = text.replace(fact, "")
        named += tools.search(text) is not None
        coded_said += values.search(text) is not None
    return named, coded_said


def add_ons(card: Card) -> int:
    """Count the sentences of an opening beyond the request: history, tone and pressure, an aside."""
    lists = load_words("personas")
    kinds = (
        lists["aside"],
        lists["pressure"],
        lists["both"],
        {k: v for k, v in lists["closing"].items() if k != "friendly"},
    )
    persona = card.persona
    keys = (persona.length, persona.pressure, f"{persona.tone} {persona.pressure}", persona.tone)
    found = [key in kind for kind, key in zip(kinds, keys, strict=True)]
    together = 1 if found[2] else found[1] + found[3]
    return found[0] + together + (card.situation.values.get("history", "fresh") != "fresh")


def told_apart(made: Plan, tries: int = 20) -> tuple[int, int]:
    """Count cards whose own clause shares most rare stems with them, of five drawn."""
    clauses = made.policy.clauses
    if len(clauses) < 5:
        return 0, 0
    stems = {c.id: {stem(w) for w in words(c.text)} - word_set("stop") for c in clauses}
    seen = Counter(s for found in stems.values() for s in found)
    right = 0
    cards = made.cards[:: max(1, len(made.cards) // tries)][:tries]
    for card in cards:
        own = card.situation.values["clause"]
        others = [c.id for c in shuffled(clauses, 0, card.id) if c.id != own][:4]
        mine = {stem(w) for w in words(f"{card.goal} {card.opening} {card.second}")}
        score = {c: sum(1 / seen[s] for s in stems[c] & mine) for c in (own, *others)}
        right += score[own] > max(score[c] for c in others)
    return right, len(cards)


def measure(name: str, shared: Path, size: int = 60) -> dict[str, Any]:
    """Return the figures of one domain."""
    made = plan_of(name, shared, size)
    book = Phrasebook(made.policy, made.tools, [])
    sources = Counter(book.need(c, 0, c.id).source for c in made.policy.clauses)
    named, coded = forbidden_words(made)
    texts = {made.cards[i].goal.split(". ", 1)[-1] for i in range(len(made.cards))}
    return {
        "clauses": len(made.policy.clauses),
        "cards": len(made.cards),
        **{s: sources[s] for s in ("conduct", "circumstance", "request", "theme", "topic")},
        "runs": runs_shared(made),
        "tools": named,
        "values": coded,
        "add-ons": round(sum(map(add_ons, made.cards)) / len(made.cards), 2),
        "goals": f"{len({c.goal for c in made.cards})}",
        "needs": len(texts),
        "apart": "{}/{}".format(*told_apart(made)),
    }


def main(arguments: Sequence[str]) -> None:
    """Print the table, or some cards to read."""
    rest = list(arguments)
    reading: tuple[int, str] | None = None
    if "--cards" in rest:
        at = rest.index("--cards")
        reading = int(rest[at + 1]), rest[at + 2]
        del rest[at : at + 3]
    shared = Path(rest[0]) if rest else ROOT.parent / "shared"
    if reading:
        made = plan_of(reading[1], shared, 60)
        for card in made.cards[:: max(1, len(made.cards) // reading[0])][: reading[0]]:
            clause = made.clause(card)
            print(f"{card.id} {card.situation.values['tool']} | {card.form} | {clause.text[:140] if clause else ''}")
            print(f"   opening: {card.opening}\n   second:  {card.second}\n   goal:    {card.goal}")
        return
    names = ["demo", *(n for n in ("retail", "airline", "telecom") if (shared / "tau2" / n).exists())]
    names += [n for n in CORPUS if (shared / "corpus" / n).exists()]
    for number, name in enumerate(names):
        found = measure(name, shared)
        if number == 0:
            print(f"{'domain':<30}" + "".join(f"{k:>13}" for k in found))
        print(f"{name:<30}" + "".join(f"{v:>13}" for v in found.values()))


if __name__ == "__main__":
    main(sys.argv[1:])
