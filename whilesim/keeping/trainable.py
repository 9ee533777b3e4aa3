"""Trainable: whether a tokenizer's chat template makes of a row what a trainer needs.

A template can lose a row without a word: tools that it does not know, calls that it drops,
a mask that marks no token, marked tokens that all lie behind the cut. So every row is rendered
and looked at: what was said, called and answered stands in the text; a conversation up to a
turn is the beginning of the whole one, as the model will meet it in use; no reasoning shows;
and some tokens of the agent's carry loss, before and after truncation.

The agent's tokens are those that the template marks with ``{% generation %}``. Where it marks
none, they are what each agent turn adds to the text before it.
"""

from __future__ import annotations

import re
from bisect import bisect, bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median
from typing import Any

from whilesim.core.errors import InputError, MissingExtra
from whilesim.core.jsontext import dumps
from whilesim.core.text import shorten
from whilesim.grading.checks.identifiers import leaves
from whilesim.keeping.export import wire_message
from whilesim.keeping.rows import Row

Wire = Sequence[Mapping[str, Any]]
"""Messages or tools as a row holds them."""
_GENERATION = re.compile(r"\{%-?\s*generation\b")
_THOUGHT = re.compile(r"<think(?:ing)?>\s*(?!</think)\S")
_QUOTING = re.compile(r"[\s\"'\\]+")
_EDGES = (0, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768)
_BAR = 40  # characters of the longest bar


@dataclass(frozen=True, slots=True)
class Tokens:
    """A conversation as a model reads it: ``mask`` is 1 where loss counts."""

    ids: Sequence[int]
    mask: Sequence[int]
    reasons: tuple[str, ...] = ()
    """Why it cannot be trained on; none: it can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowTokens:
    """Tokens of one row: all, those that carry loss, and those that still do after truncation."""

    tokens: int
    trained: int
    trained_after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainReport:
    """Which rows a model can be trained on with this tokenizer, and what breaks the others."""

    tokenizer: str
    max_length: int
    mask: str
    """Where the mask comes from: ``generation`` marks, or ``prefix`` difference."""
    rows: Mapping[str, RowTokens]
    """Id of each row that renders to its tokens."""
    reasons: Mapping[str, tuple[str, ...]]
    """Id of each row that breaks to why: a kind, a colon, and what it was seen by."""
    trainable: Any = None
    """The rows that do not break, as a simulation."""

    @property
    def histogram(self) -> tuple[tuple[int, int | None, int], ...]:
        """Rows by tokens: from, below (None: no end), and how many."""
        bounds = (*pairwise(_EDGES), (_EDGES[-1], None))
        found = Counter(bisect(_EDGES, r.tokens) - 1 for r in self.rows.values())
        return tuple((low, high, found[place]) for place, (low, high) in enumerate(bounds))

    def __str__(self) -> str:
        broken, cut = len(self.reasons), sum(r.trained_after < r.trained for r in self.rows.values())
        total = len(self.rows.keys() | self.reasons.keys())
        kinds = Counter(kind for why in self.reasons.values() for kind in {w.split(":")[0] for w in why})
        lines = [f"{total - broken} of {total} rows can be trained on with {self.tokenizer} ({self.mask} mask)"]
        for kind, n in kinds.most_common():
            row_id, said = next((i, w) for i, why in self.reasons.items() for w in why if w.startswith(kind))
            lines.append(f"  {n:>6} {said}  ({row_id})")
        if self.rows:
            tokens, trained = ([getattr(r, name) for r in self.rows.values()] for name in ("tokens", "trained"))
            lines.append(f"tokens: {_middle(tokens)}; with loss: {_middle(trained)}")
            lines.append(f"cut at {self.max_length} tokens: {cut} rows lose tokens that carry loss")
        shown = [(f"{low}-{high - 1}" if high else f"{low} and more", n) for low, high, n in self.histogram if n]
        most = max((n for _, n in shown), default=0)
        lines += [f"{name:>15}{n:>7} {'#' * round(_BAR * n / most)}" for name, n in shown]
        return "\n".join(lines)

    __repr__ = __str__  # a notebook shows the value of a cell


def check_trainable(rows: Iterable[Row], model: Any, max_length: int) -> TrainReport:
    """Render every row and say what breaks; ``model`` is a name, a path or a tokenizer.

    Raises:
        InputError: It has no chat template, or ``max_length`` is below 1.
    """
    if max_length < 1:
        raise InputError(f"max_length={max_length!r} leaves no token to train on. Type a number of tokens, like 4096.")
    template = Template(open_tokenizer(model))
    counted: dict[str, RowTokens] = {}
    reasons: dict[str, tuple[str, ...]] = {}
    for row in rows:
        if row.loose_calls:
            reasons[row.id] = (f"arguments are no object: call {row.loose_calls[0]!r}",)
            continue
        thoughts = [m["reasoning"] for m in row.messages if m.get("reasoning")]
        found = find_problems([wire_message(m) for m in row.messages], row.tools, template, max_length, thoughts)
        if found.ids:
            trained, after = sum(found.mask), sum(found.mask[:max_length])
            counted[row.id] = RowTokens(tokens=len(found.ids), trained=trained, trained_after=after)
        if found.reasons:
            reasons[row.id] = found.reasons
    mask = "generation" if template.marks else "prefix"
    return TrainReport(tokenizer=template.name, max_length=max_length, mask=mask, rows=counted, reasons=reasons)


def open_tokenizer(model: Any) -> Any:
    """Return the tokenizer of a model by name or path; a tokenizer as it is.

    Raises:
        MissingExtra: A name is given, and transformers is not installed.
        InputError: There is no such model, here or on the Hub.
    """
    if not isinstance(model, str):
        return model
    try:
        from transformers import AutoTokenizer
    except ImportError as error:
        raise MissingExtra("transformers", "train") from error
    try:
        return AutoTokenizer.from_pretrained(model)
    except (OSError, ValueError) as error:
        msg = f"{model!r} has no tokenizer that can be loaded: {shorten(str(error), 200)} "
        raise InputError(msg + "Type a model's name on the Hub, a folder, or give the tokenizer itself.") from error


class Template:
    """A tokenizer's chat template, and what it makes of conversations.

    Raises:
        InputError: The tokenizer has none.
    """

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        self.name = str(getattr(tokenizer, "name_or_path", "") or type(tokenizer).__name__)
        if not (source := getattr(tokenizer, "chat_template", None)):
            msg = f"{self.name!r} has no chat template, so nobody knows how it writes a conversation. "
            raise InputError(msg + "Take the instruct version of the model, or set tokenizer.chat_template.")
        named = source if isinstance(source, Mapping) else {"default": source}
        self.source = str(named.get("tool_use") or next(iter(named.values())))
        self.marks = bool(_GENERATION.search(self.source))
        self.special = tuple(token for token in getattr(tokenizer, "all_special_tokens", ()) if len(token) > 1)
        """Tokens that mean something to the model wherever they stand."""
        self.special_ids = frozenset[int](getattr(tokenizer, "all_special_ids", ()))
        """The numbers of these tokens."""

    def render(self, messages: Wire, tools: Any, *, prompt: bool = False) -> str:
        """Return the text of a conversation; with ``prompt``, as the agent's next turn is asked for."""
        asked = {"tools": tools or None, "tokenize": False, "add_generation_prompt": prompt}
        return str(self.tokenizer.apply_chat_template(list(messages), **asked))

    def turns(self, messages: Wire, tools: Any) -> Iterator[tuple[int, str, str]]:
        """Yield for each agent turn its index, the text that asks for it, and the text that ends with it."""
        for i, message in enumerate(messages):
            if message["role"] == "assistant":
                yield i, self.render(messages[:i], tools, prompt=True), self.render(messages[: i + 1], tools)

    def tokens(self, messages: Wire, tools: Any) -> Tokens:
        """Return a conversation's tokens, the agent's marked.

        Raises:
            InputError: The tokenizer does not say where in the text its tokens stand.
        """
        if self.marks:
            asked = {"tokenize": True, "return_dict": True, "return_assistant_tokens_mask": True}
            made = self.tokenizer.apply_chat_template(list(messages), tools=tools or None, **asked)
            return Tokens(made["input_ids"], made["assistant_masks"])
        text = self.render(messages, tools)
        turns = self.turns(messages, tools)
        spans = [(shared_length(before, text), shared_length(after, text)) for _, before, after in turns]
        try:
            made = self.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        except NotImplementedError as error:
            msg = f"{self.name!r} does not say where its tokens stand, so the agent's cannot be found. "
            raise InputError(msg + "Take its fast version, or a template with {% generation %}.") from error
        inside = (any(start <= a < b <= end for start, end in spans) for a, b in made["offset_mapping"])
        return Tokens(made["input_ids"], [int(one) for one in inside])


def shared_length(first: str, second: str) -> int:
    """Return how many characters two texts begin with together."""
    lengths = range(1, min(len(first), len(second)) + 1)
    return bisect_left(lengths, True, key=lambda length: first[:length] != second[:length])


def find_problems(
    messages: Wire, tools: Wire, template: Template, max_length: int, thoughts: Sequence[str] = ()
) -> Tokens:
    """Return a conversation's tokens and what its text lacks or shows, one reason of a kind.

    ``messages`` hold arguments as objects; ``thoughts`` is reasoning that must not be seen.
    """
    try:
        text = template.render(messages, tools)
        turns = list(template.turns(messages, tools))
    except Exception as error:  # a template is somebody's program, and may raise anything
        return Tokens((), (), (f"does not render: {type(error).__name__}: {shorten(str(error), 160)}",))
    bare = _bare(text)
    lost = list(_lost(messages, bare, turns))
    absent = [name for tool in tools if not _stands(name := tool["function"]["name"], bare)]
    if absent or (tools and text == template.render(messages, None)):
        lost.append(f"tools are lost: {', '.join(absent) or 'the template never shows them'}")
    changed = next((i for i, before, after in turns if not (text.startswith(before) and text.startswith(after))), None)
    if changed is not None:
        lost.append(f"prefix changes: what is asked before turn [{changed}] is not what was trained on")
    if _THOUGHT.search(text) or any(_stands(thought, bare) for thought in thoughts):
        lost.append("reasoning shows: a model would learn to think aloud")
    said = "\n".join(str(m["content"]) for m in messages)
    lost += [f"special token in a message: {token!r}" for token in template.special if token in said][:1]
    made = template.tokens(messages, tools)
    return replace(made, reasons=(*lost, *_untrained(made, template, max_length)))


def _untrained(made: Tokens, template: Template, max_length: int) -> Iterator[str]:
    special = template.special_ids
    if not (trained := sum(made.mask)):
        yield "nothing to train on: no token of the agent's is marked"
        return
    if not sum(made.mask[:max_length]):
        yield f"nothing left after truncation: the agent's {trained} tokens lie behind the cut"
    last = len(made.mask) - 1 - list(reversed(made.mask)).index(1)
    after = made.ids[last + 1 : last + 2]
    if special.intersection(after) and not special.intersection(made.ids[max(0, last - 1) : last + 1]):
        yield "the end of a turn is not trained: the model would not learn to stop"


def _lost(messages: Wire, bare: str, turns: Sequence[tuple[int, str, str]]) -> Iterator[str]:
    """Yield what was said or called, and does not stand in the text."""
    for index, message in enumerate(messages):
        if not _stands(message["content"] or "", bare):
            yield f"a message is lost: [{index}] {message['role']}"
            break
    added = {i: _bare(after[shared_length(before, after) :]) for i, before, after in turns}
    for index, message in enumerate(messages):
        for call in message.get("tool_calls") or ():
            told, bare = call["function"], added[index]
            # a template spells booleans and null as it likes
            values = (v for _, v in leaves(told["arguments"]) if v is not None and not isinstance(v, bool))
            spelt = (value if isinstance(value, str) else dumps(value) for value in (told["name"], *values))
            if not all(_stands(value, bare) for value in spelt):
                yield f"a call is lost: {told['name']} at [{index}]"
                return


def _stands(text: str, bare: str) -> bool:
    """Say whether a text stands in another, quoted or escaped as JSON or not."""
    return _bare(text) in bare or _bare(dumps(text)) in bare


def _bare(text: str) -> str:
    return _QUOTING.sub("", text)


def _middle(numbers: Sequence[int]) -> str:
    return f"median {median(numbers):g}, most {max(numbers)}"
