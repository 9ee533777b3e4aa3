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
from whilesim.situations.quotes import Answer, Part, check_clauses, parts_of, read_answer

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
    if not isinstance(text, str) or not text.strip():
        found = "empty" if isinstance(text, str) else f"of type {type(text).__name__}"
        msg = f"the policy is {found}, and must be the text that the agent follows. Type: Path('policy.md').read_text()"
        raise InputError(msg)
    if re.fullmatch(r"\S+\.(?:md|mdx|txt|rst|html?|ya?ml|json|docx?|pdf|j2|jinja2?)", text.strip()):
        raise InputError(f"the policy is {text!r}, the name of a file. Type its text: Path({text!r}).read_text()")
    return read_document(text)


def _policy(text: str, document: Document, drafts: Sequence[Draft], notes: Sequence[str] = ()) -> Policy:
    unique: dict[str, Draft] = {}
    told = list(notes)
    for draft in drafts:
        if unique.setdefault(re.sub(r"\W+", " ", draft.text.casefold()).strip(), draft) is not draft:
            told.append(f"a rule stands in the text twice and is one clause: {shorten(draft.core, 60)!r}")
    if not unique:
        told.append("no rule was found in this text; situations will have no clause to exercise")
    width = max(2, len(str(len(unique))))
    clauses = tuple(
        Clause(id=f"c{n:0{width}d}", text=d.text, section=d.section, kind=d.kind, span=document.span(*d.place))
        for n, d in enumerate(unique.values(), start=1)
    )
    policy = Policy(text=text, clauses=clauses, language=language_of(document.text), notes=tuple(told))
    return name_tools(policy, sorted(set(_IDENTIFIER.findall(_PLACEHOLDERS.sub(" ", text)))))


_IDENTIFIER = re.compile(r"\b[a-z][a-z0-9]*(?:_[a-z0-9]+)+\b")
_PLACEHOLDERS = re.compile(r"\{[^{}\n]*\}|\[[^\[\]\n]*\]|<[^<>\n]*>|https?://\S+|(?<!\S)[^\s@]{1,80}@\S+")


def name_tools(policy: Policy, names: Sequence[str]) -> Policy:
    """Return the policy with ``Clause.tools`` filled from the given names.

    A clause names a tool when the name stands in its text as it is, in another case, or in words
    before "tool" or "function" ("the send payment request tool"). Without names given, the policy's
    own words with underscores are taken for tools.
    """
    if not names:
        return policy
    patterns = {n: re.compile(_spellings(n), re.IGNORECASE) for n in dict.fromkeys(names)}
    clauses = tuple(replace(c, tools=tuple(n for n, p in patterns.items() if p.search(c.text))) for c in policy.clauses)
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
    answers: list[Answer] = []
    unread: list[Part] = []
    for number, part in enumerate(parts_of(document.text)):
        asked = document.text[part.start : part.end].strip()
        prompt = render_prompt("policy_extract", text=asked, headings=part.headings)
        key, schema = CallKey(role="policy", turn=number), Answer.model_json_schema()
        reply = await chat.reply([Message(role="user", content=prompt)], schema=schema, key=key)
        answer = read_answer(reply.message.content or "")
        answers += [answer] if answer else []
        unread += [] if answer else [part]
    drafts, notes = check_clauses(document.text, draft_clauses(document.text), answers, unread)
    if unread:
        notes.append(
            f"{len(unread)} answers of the model were cut short or could not be read; what they lack was read by "
            "word lists. Give the model more max_tokens, or another model"
        )
    return _policy(text, document, drafts, notes)
