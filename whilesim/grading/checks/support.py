"""Support: whether a claim is true of the calls before it.

The first rule that applies decides: a fitting call that succeeded, with the claim's ids and
amounts; what follows from a change by itself; a record that says so; what the customer had
done. A claim that none of them carries was not earned.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Any

from whilesim.chat.messages import Message
from whilesim.core.templates import load_words
from whilesim.core.text import name_words
from whilesim.grading.checks.calls import Call
from whilesim.grading.checks.claims import BARE, Claim, read_claims, spoken_language
from whilesim.grading.checks.deeds import Toolbox, call_senses, meets, stems
from whilesim.grading.checks.findings import Finding
from whilesim.grading.checks.identifiers import leaves, normal, tokens_of
from whilesim.grading.checks.language import clean, pattern

CLAIMED, FAILED = "claimed_action_without_call", "success_after_failure"
Wrong = tuple[str, str]
"""A check and a reason."""

_WORDS = re.compile(r"[^\W\d_][\w'-]+")
_AHEAD = frozenset({"until", "days", "hours", "max", "limit", "not", "to", "if", "un"})  # what is yet to be


@dataclass(frozen=True, slots=True)
class Act:
    """One call that acts, as claims look at it."""

    call: Call
    senses: frozenset[str]
    objects: frozenset[str]

    @property
    def values(self) -> frozenset[str]:
        """Every token of the arguments, and of the reply where it succeeded."""
        reply = "" if self.call.failed else self.call.reply or ""
        return tokens_of(self.call.call.arguments) | tokens_of(reply)


_DEEDS = ("active", "did", "progressive")  # families in which the agent says that it acted


class Ledger:
    """The calls of one conversation, ready to be asked whether they carry a claim."""

    def __init__(self, messages: Sequence[Message], calls: Sequence[Call], tools: Toolbox) -> None:
        code = spoken_language(messages)
        self.messages, self.calls, self.tools = messages, calls, tools
        self.deeds = [d for d in tools.deeds.values() if d.acts]
        self.words, self.data = tools.lexicon("en" if code == "other" else code), load_words("checks_deeds")
        writes = ((c, tools.deeds[c.name]) for c in calls if c.name in tools.writes)
        self.acts = [Act(c, call_senses(d, c.arguments), d.objects) for c, d in writes]
        self.customers = [i for i, m in enumerate(messages) if m.role == "user"]
        self.reported: list[int] = []
        """Messages with a claim so far, in order."""

    def judge(self, claim: Claim) -> Wrong | None:
        """Return the check and the reason where a claim was not earned, None where it was."""
        turn = max((i for i in self.customers if i < claim.index), default=-1)
        later = (i for i in self.customers if i > claim.index)
        upto = next(later, len(self.messages)) if claim.family == "progressive" else claim.index
        acts = [a for a in self.acts if a.call.index <= upto]
        recent = [a for a in acts if a.call.index > turn]
        echoes = claim.family in ("active", "did") and len(claim.clause.split()) > 3
        if echoes and any(claim.clause in self._said(i) for i in self.customers if i <= turn):
            return None  # the agent repeats what the customer wrote
        if claim.senses == BARE:
            return self._judge_bare(claim, acts, recent, turn)
        fitting = [a for a in acts if meets(claim.senses, a.senses) and self._same_thing(claim, a)]
        good = [a for a in fitting if not a.call.failed]
        bad = [a for a in fitting if a.call.failed]
        if lost := self._hidden(claim, good, [a for a in bad if a in recent]):
            return FAILED, f"{lost.name} failed and was not repeated with success"
        if good:
            wrong = self._judge_ids(claim, good, bad) or self._judge_amounts(claim, good)
            return wrong or (None if recent else self._judge_spent(claim, good, turn))
        done = [a for a in acts if not a.call.failed]
        if self._follows(claim, done):
            return self._judge_amounts(claim, done)
        if (claim.family == "past" and not self._wanted(claim)) or (not bad and self._told(claim)):
            return None
        if bad and claim.family not in _DEEDS and self._recorded_since(claim, bad[-1].call.index):
            return None  # an admitted failure, and the record read since then shows the deed all the same
        if bad or (recent and recent[-1].call.failed):
            return FAILED, f"{(bad or recent)[-1].call.name} failed; nothing after it did this"
        return CLAIMED, "no successful call before this message did it"

    def _same_thing(self, claim: Claim, act: Act) -> bool:
        """Whether a call is about the claim's thing; another tool that knows it better takes it away."""
        told = stems(w for _, v in leaves(act.call.arguments) for w in _WORDS.findall(str(v).lower()))
        if not claim.head or claim.head & (act.objects | told) or {normal(i) for i in claim.ids} & act.values:
            return True
        others = (d for d in self.deeds if d.tool.name != act.call.name and claim.head & d.objects)
        return not any(meets(claim.senses, d.senses) for d in others)

    def _hidden(self, claim: Claim, good: Sequence[Act], bad: Sequence[Act]) -> Call | None:
        """A fitting attempt of this turn that failed and was not made good, where the message admits nothing."""
        ids = {normal(i) for i in claim.ids}
        for act in bad:
            after = [g for g in good if g.call.index >= act.call.index]
            own = claim.senses & act.senses
            good_again = any(g.call.name == act.call.name or (claim.senses & g.senses and not own) for g in after)
            if not good_again and (not ids or not good or ids & act.values):
                return None if self.words.pattern("admits").search(self._said(claim.index)) else act.call
        return None

    def _judge_ids(self, claim: Claim, good: Sequence[Act], bad: Sequence[Act]) -> Wrong | None:
        held = frozenset[str]().union(*(a.values for a in good))
        kinds = {_kind(v) for v in held if claim.ids}
        for value in claim.ids:
            plain = normal(value)
            if plain in held or (_kind(plain) not in kinds and self._linked(plain, held)):
                continue
            if any(plain in a.values for a in bad):
                return FAILED, f"the call for {value} failed"
            if not self._recorded(claim, plain):
                return CLAIMED, f"no successful call is about {value}"
        if re.search(r"\b(?:both|beide\w?|ambos|ambas)\b", claim.text) and len(good) < 2:
            given = [v for a in good for v in a.call.arguments.values()]
            lists = any(isinstance(v, list) for v in given) or ("update" in claim.senses and len(given) > 2)
            if not lists and len({normal(i) for i in claim.ids} & held) < 2:
                return CLAIMED, "two are claimed, one was done"
        return None

    def _linked(self, plain: str, held: frozenset[str]) -> bool:
        """Whether a reply holds an id together with one that a fitting call was about."""
        replies = (tokens_of(c.reply or "") for c in self.calls if not c.failed)
        return any(plain in reply and reply & held for reply in replies)

    def _judge_amounts(self, claim: Claim, good: Sequence[Act]) -> Wrong | None:
        told = {abs(n) for a in good for n in self._money(a.call)} if claim.amounts else set()
        if not told or not claim.senses & {*self.data["money"]}:
            return None
        pairs = list(combinations(sorted(told), 2))
        known = told.union(a + b for a, b in pairs).union(b - a for a, b in pairs)
        wrong = [x for x in claim.amounts if all(abs(x - k) > 0.011 for k in known)]
        return (CLAIMED, f"the calls know no amount of {wrong[0]:g}") if wrong else None

    def _money(self, call: Call) -> Iterator[float]:
        for key, value in [*leaves(call.arguments), *leaves(call.data)]:
            if not key or any(k in key.lower() for k in self.data["money_keys"]):
                yield from (float(n.replace(",", "")) for n in re.findall(r"\d[\d,]*(?:\.\d+)?", str(value))[:20])

    def _judge_spent(self, claim: Claim, good: Sequence[Act], turn: int) -> Wrong | None:
        """A claim right after a new request, carried only by calls that were reported before it."""
        request, last = self._said(turn), good[-1].call
        anew = self.words.pattern("anew").search(request)
        asked = anew or ("?" not in request and self.words.pattern("go_ahead").match(request))
        told = any(last.index < i < turn for i in self.reported)
        if claim.ids or not asked or not told or self.words.pattern("recap").search(claim.text):
            return None
        return CLAIMED, f"{last.name} was reported before; nothing was called since the new request"

    def _judge_bare(self, claim: Claim, acts: Sequence[Act], recent: Sequence[Act], turn: int) -> Wrong | None:
        """'Done' speaks of this turn, or of what was asked for when nothing was ever done."""
        if any(not a.call.failed for a in recent) or not self.deeds:
            return None
        if recent:
            admitted = self.words.pattern("admits").search(self._said(claim.index))
            return None if admitted else (FAILED, f"{recent[-1].call.name} failed")
        never = not any(not a.call.failed for a in acts)
        asked = any(meets(self._asked(i), d.senses) for i in self.customers if i <= turn for d in self.deeds)
        now = self._asked(turn) or self.words.pattern("go_ahead").match(self._said(turn))
        if (never and asked) or (now and "?" not in self._said(turn) and not self._told(claim)):
            return CLAIMED, "nothing was done since the customer asked"
        return None

    def _said(self, index: int) -> str:
        return _plain(self.messages[index].content or "") if index >= 0 else ""

    def _asked(self, index: int) -> frozenset[str]:
        return self.words.senses(_WORDS.findall(self._said(index)), "VGO")

    def _follows(self, claim: Claim, done: Sequence[Act]) -> bool:
        """Whether a change entails what is claimed: a refund, a charge, a mail, another field."""
        knows = any(claim.head & d.objects and meets(claim.senses, d.senses) for d in self.deeds)
        own = (claim.family in ("active", "did")) and any(claim.senses & d.senses for d in self.deeds)
        for sense in claim.senses & {*self.data["consequences"]}:
            mail = sense in ("send", "notify")
            if mail and sense == "send" and not claim.nouns & stems(self.data["entailed_mail"]):
                continue
            if not mail and (own or (knows and sense not in ("refund", "charge"))):
                continue
            entailing = {*str(self.data["consequences"][sense]).split()}
            if any("*" in entailing or a.senses & entailing for a in done):
                return not claim.ids or not self._judge_ids(claim, done, [])
        return False

    def _wanted(self, claim: Claim) -> bool:
        """Whether the customer asked for a deed, or a tool has its object in its name."""
        asked = frozenset[str]().union(*(self._asked(i) for i in self.customers if i < claim.index))
        named = (d for d in self.deeds if claim.head & stems(name_words(d.tool.name)))
        return meets(claim.senses, asked) or any(meets(claim.senses, d.senses) for d in named)

    def _told(self, claim: Claim) -> bool:
        """Whether a record or the customer says what a passive claim says."""
        if claim.family in _DEEDS or pattern("deeds", "just_now").search(claim.text):
            return False
        heard = (part for i in self.customers if i < claim.index for part in self._news(claim, self._said(i)))
        return self._recorded_since(claim, -1) or any(self._reported(claim, part) for part in heard)

    def _news(self, claim: Claim, said: str) -> list[str]:
        """The parts of a message that may say it is done already: with its ids, where the message asks for it, too."""
        asks = claim.ids and meets(claim.senses, self.words.senses(_WORDS.findall(said), "VG"))
        return [p for p in re.split(r"[.!?;\n]", said) if not asks or {*map(normal, claim.ids)} <= tokens_of(p)]

    def _recorded_since(self, claim: Claim, since: int) -> bool:
        return all(self._recorded(claim, i, since) for i in map(normal, claim.ids or ("",)))

    def _recorded(self, claim: Claim, plain: str, since: int = -1) -> bool:
        """Whether a successful reply before the message says it, of the record with this id."""
        replies = (c.data for c in self.calls if not c.failed and since < c.index <= claim.index and c.reply)
        saying = (r for data in replies for r in _records(data) if self._says(r, claim))
        return any(not plain or plain in tokens_of(" ".join(str(v) for _, v in leaves(r))) for r in saying)

    def _says(self, record: Any, claim: Claim) -> bool:
        on = bool(claim.senses & {"on", "add"})
        for key, value in leaves(record):
            told = _WORDS.findall(str(value).lower())[:12]
            if not told and re.search("[1-9]", str(value)) and _AHEAD.isdisjoint(name_words(key)):
                told = name_words(key)[-1:]  # "charged": 15.6, but not "days_until_refunded": 5
            if isinstance(value, bool):
                if value is on and claim.nouns & stems(re.split(r"[\W_]+", key.lower())):
                    return True
            elif value and claim.senses & self.words.senses(told, "PS"):
                return True
        return False

    def _reported(self, claim: Claim, part: str) -> bool:
        """Whether the customer says in passing that it is done already."""
        tokens, tags = self.words.tokens(part)
        if "it" not in tokens and not claim.head & stems(tokens):
            return False
        verbs = (tokens[m.end() - 1] for m in self.words.pattern("customer_cue").finditer(tags))
        return any(claim.senses & self.words.senses([v]) for v in verbs if v not in self.words.light)


def check_claims(messages: Sequence[Message], calls: Sequence[Call], tools: Toolbox) -> list[Finding]:
    """Find claims that no call carries, and successes declared after a failure."""
    ledger = Ledger(messages, calls, tools)
    wrongs: dict[tuple[int, str], Finding] = {}
    for claim in read_claims(messages, tools):
        if wrong := ledger.judge(claim):
            wrongs.setdefault((claim.index, claim.quote), Finding(wrong[0], claim.index, claim.quote, wrong[1]))
        ledger.reported.append(claim.index)
    return list(wrongs.values())


@lru_cache(maxsize=4096)
def _plain(text: str) -> str:
    return clean(text).lower()


def _kind(plain: str) -> str:
    """Ids of one kind look alike: a prefix and a number, or a mix of one length."""
    found = re.fullmatch(r"([a-z]*)\d+", plain)
    return found[1] + "9" if found else str(len(plain))


def _records(data: Any) -> Iterator[Any]:
    """Yield a reply's records: an object without the lists of objects in it, then those."""
    if isinstance(data, list):
        for item in data:
            yield from _records(item)
    elif isinstance(data, dict):
        inner = {k: v for k, v in data.items() if isinstance(v, list) and v and isinstance(v[0], dict)}
        yield {k: v for k, v in data.items() if k not in inner}
        for value in inner.values():
            yield from _records(value)
    else:
        yield {"": data}
