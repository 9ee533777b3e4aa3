"""Policy: a policy text as clauses, one for each rule that an agent can keep or break.

A clause is a normative statement, self-contained: a bullet that needs its lead-in or heading
carries it, and an exception stays with its rule. Facts, greetings, examples, scripts and
descriptions of tools are no clauses. What cannot be decided without understanding (facts against
rules in lists of noun phrases, a distant exception, irony) is guessed by structure; a chat model
can read instead (:func:`extract_policy`), and each of its clauses is checked against the text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from whilesim.chat.messages import Message
from whilesim.chat.models import CallKey, Chat
from whilesim.core.errors import InputError
from whilesim.core.templates import render_prompt
from whilesim.core.text import name_words, shorten
from whilesim.situations.documents import Document, read_document
from whilesim.situations.drafts import Draft, draft_clauses
from whilesim.situations.norms import ClauseKind, language_of
from whilesim.situations.quotes import Answer, check_clauses, parts_of, read_answer

__all__ = ["Clause", "ClauseKind", "Policy", "extract_policy", "name_tools", "parse_policy"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """One rule, self-contained, with the exception that belongs to it."""

    id: str
    """``c01``, ``c02`` ... in the order of the text: a value of the clause axis."""
    text: str
    section: str = ""
    """The headings above it, outermost first, joined by `` > ``."""
    kind: ClauseKind = "must"
    tools: tuple[str, ...] = ()
    """Names of tools that the clause names, as the policy spells them."""
    span: tuple[int, int] = (0, 0)
    """Start and end of its source in ``Policy.text``, in characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A policy text and the clauses read from it."""

    text: str
    clauses: tuple[Clause, ...]
    language: str = "en"
    """Two-letter code of most of the text."""
    notes: tuple[str, ...] = ()
    """What the reader of the policy should be told: nothing found, duplicates merged, a fallback."""


class Named(Protocol):
    """Anything with a name: a parsed tool."""

    @property
    def name(self) -> str: ...


def parse_policy(text: str, *, tools: Sequence[Named] = ()) -> Policy:
    """Read a policy text as clauses, by rules and word lists: no model, no network.

    Args:
        text: Markdown, plain text, HTML or JSX, in any language; read best in English, German,
            Spanish, Portuguese, Chinese, Japanese and Arabic.
        tools: Parsed tools; see :func:`name_tools`.

    Returns:
        Clauses in the order of the text, equal ones merged. A text without a rule gives no
        clauses and a note that says so.

    Raises:
        InputError: ``text`` is not text, or is empty.
    """
    document = _document(text)
    return name_tools(_policy(text, document, draft_clauses(document.text)), [t.name for t in tools])


def _document(text: str) -> Document:
    if not isinstance(text, str):
        msg = f"the policy is {type(text).__name__}, and must be text. Type: Path('policy.md').read_text(encoding='utf-8')"
        raise InputError(msg)
    if not text.strip():
        msg = "the policy is empty, so there is nothing for an agent to follow. Give the text of the system prompt."
        raise InputError(msg)
    return read_document(text)


def _policy(text: str, document: Document, drafts: Sequence[Draft], notes: Sequence[str] = ()) -> Policy:
    clauses: list[Clause] = []
    seen: dict[str, str] = {}
    merged: list[str] = []
    width = max(2, len(str(len(drafts))))
    for draft in drafts:
        key = re.sub(r"\W+", " ", draft.text.casefold()).strip()
        if key in seen:
            merged.append(f"{seen[key]} stands in the text again: {shorten(draft.core, 60)!r}, merged")
            continue
        seen[key] = f"c{len(clauses) + 1:0{width}d}"
        section = " > ".join(h for h in draft.headings if h)
        clauses.append(
            Clause(
                id=seen[key],
                text=draft.text,
                section=section,
                kind=draft.kind,
                span=document.span(draft.start, draft.end),
            )
        )
    nothing = (
        () if clauses else ("no rule was found in this text; situations will have no clause to exercise",)
    )
    policy = Policy(
        text=text,
        clauses=tuple(clauses),
        language=language_of(document.text),
        notes=(*notes, *nothing, *merged),
    )
    return name_tools(
        policy, sorted(set(re.findall(r"\b[a-z][a-z0-9]*(?:_[a-z0-9]+)+\b", _PLACEHOLDERS.sub(" ", text))))
    )


_PLACEHOLDERS = re.compile(r"\{+[^{}\n]*\}+|\[[^\[\]\n]*\]|<[^<>\n]*>|https?://\S+|(?<!\S)[^\s@]{1,80}@\S+")


def name_tools(policy: Policy, names: Sequence[str]) -> Policy:
    """Return the policy with ``Clause.tools`` filled from the given names.

    A clause names a tool when the name stands in its text as it is, in another case, or in words
    before "tool" or "function" ("the send payment request tool"). Without names given, the policy's
    own words with underscores are taken for tools.
    """
    if not names:
        return policy
    patterns = {n: re.compile(_spellings(n), re.IGNORECASE) for n in dict.fromkeys(names)}
    clauses = tuple(
        replace(c, tools=tuple(n for n, p in patterns.items() if p.search(c.text))) for c in policy.clauses
    )
    return replace(policy, clauses=clauses)


def _spellings(name: str) -> str:
    exact = rf"(?<![\w-]){re.escape(name)}(?![\w-])"
    if name.isalpha() and name.islower():  # a plain word is a tool only when it is marked as one
        exact = rf"[`'\"]{name}[`'\"(]|(?<![\w-]){name}\("
    spoken = r"[\s_-]+".join(map(re.escape, name_words(name)))
    return rf"{exact}|\b{spoken}['\"`]?\s+(?:tool|function|api)\b"


async def extract_policy(text: str, chat: Chat) -> Policy:
    """Let a chat model read the clauses, and hold each against the text.

    One request for every few thousand characters. A clause whose quote does not stand in the text,
    or that adds or drops a number, a name or a negation, is replaced by the one that
    :func:`parse_policy` reads there; a duty that the model passed over is put back. The notes count
    all of it.

    Args:
        text: As for :func:`parse_policy`.
        chat: The model; asked with a JSON schema.

    Raises:
        InputError: ``text`` is not text, or is empty.
        ModelError: The endpoint failed, after its retries.
    """
    document = _document(text)
    drafts = draft_clauses(document.text)
    answers: list[Answer] = []
    unread = 0
    for number, (part, headings) in enumerate(parts_of(document.text)):
        prompt = render_prompt("policy_extract", text=part.strip(), headings=headings)
        key = CallKey(role="policy", turn=number)
        reply = await chat.reply(
            [Message(role="user", content=prompt)], schema=Answer.model_json_schema(), key=key
        )
        answer = read_answer(reply.message.content or "")
        unread += answer is None
        answers += [answer] if answer else []
    checked = check_clauses(document.text, drafts, answers)
    notes = [
        f"{checked.taken} clauses read by the model, {len(checked.refused)} of its clauses refused, "
        f"{checked.restored} read by word lists instead"
    ]
    notes += [f"refused {reason}" for reason in checked.refused]
    if unread:
        notes.append(f"{unread} answers of the model could not be read; those parts were read by word lists")
    return _policy(text, document, checked.drafts, notes)
