"""Conduct: what is wrong with how the agent goes about it, whatever it says to be done.

Calls that no tool answers to, replies that are cut or empty, roles that are mixed up,
refusals and leaks that read like a model's own, changes that nobody agreed to.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any
from zlib import compress

from whilesim.chat.messages import Message
from whilesim.core.jsontext import dumps
from whilesim.core.templates import load_words
from whilesim.core.text import name_words, shorten, words
from whilesim.grading.checks.calls import Call
from whilesim.grading.checks.deeds import Deed, Toolbox, stems
from whilesim.grading.checks.findings import Finding
from whilesim.grading.checks.identifiers import is_id, leaves, normal
from whilesim.grading.checks.language import clean, lexicon, pattern
from whilesim.situations.schemas import validator

_LEAK = 25
"""As many words of the prompt in a row are a leak."""
_DENSE = 12  # times that a text gets smaller which only repeats itself


def check_calls(messages: Sequence[Message], calls: Sequence[Call], tools: Toolbox) -> Iterator[Finding]:
    """Find calls of unknown tools, with arguments that do not fit, without answer, or repeated in vain."""
    fails = defaultdict[str, Counter[str]](Counter)
    done: dict[str, int] = {}
    for position, call in enumerate(calls):
        quote = shorten(f"{call.name} {call.call.arguments}", 200)
        same = f"{call.name} {dumps({k: call.arguments[k] for k in sorted(call.arguments)})}"
        if tools.given and call.name not in tools.given:
            yield Finding("unknown_tool", call.index, call.name, f"no tool is called {call.name!r}")
        elif reason := _invalid(call, tools):
            yield Finding("invalid_arguments", call.index, quote, reason)
        if call.reply is None:
            yield Finding("unanswered_call", call.index, quote, f"no reply to {call.name}")
        error = re.sub(r"\w*\d\w*", "", call.reply or "")  # another error is news, and no failure alike
        fails[same][error] += 1
        if not call.failed:
            del fails[same]
        elif fails[same][error] == 3 and call.reply is not None:
            yield Finding("repeated_failing_call", call.index, quote, f"{call.name} failed the third time alike")
        if not call.failed and call.name in tools.writes:
            if same in done and not _between(messages, calls[done[same] : position], call, tools):
                yield Finding("duplicate_write", call.index, quote, f"{call.name} had succeeded just so before")
            done[same] = position


def _between(messages: Sequence[Message], calls: Sequence[Call], call: Call, tools: Toolbox) -> bool:
    """Whether another write touched an id of this call since the first of some, or the customer wanted it once more."""
    heard = " ".join(m.content or "" for m in messages[calls[0].index : call.index] if m.role == "user")
    ids = {normal(str(v)) for k, v in leaves(call.arguments) if is_id(k, v)}
    writes = (c for c in calls[1:] if not c.failed and c.name in tools.writes)
    touched = (normal(str(v)) for c in writes for _, v in leaves(c.arguments))  # whole: an id may have blanks in it
    return bool(pattern("conduct", "anew").search(heard)) or not ids.isdisjoint(touched)


def _invalid(call: Call, tools: Toolbox) -> str | None:
    schema: Mapping[str, Any] = tools.deeds[call.name].tool.parameters if call.name in tools.given else {}
    if call.call.parsed is None:
        return "the arguments are no JSON object"
    extra = sorted({*call.arguments} - {*(schema.get("properties") or {})})
    if schema and extra and not schema.get("additionalProperties"):
        return f"{call.name} has no argument {extra[0]!r}"
    if not schema or ((quick := tools.fits.get(call.name)) and quick(call.arguments)):
        return None
    error = next(validator(schema).iter_errors(dict(call.arguments)), None)
    return None if error is None else shorten(f"{'.'.join(map(str, error.path)) or call.name}: {error.message}", 200)


def check_words(messages: Sequence[Message], tools: Toolbox) -> Iterator[Finding]:
    """Find replies that are empty, cut, in the wrong role, refusing like a model, or leaking the prompt."""
    policy = "\n".join(m.content or "" for m in messages if m.role == "system")
    heard, told = list[str](), list[str]()
    mute = not any(m.tool_calls for m in messages)
    for index, message in enumerate(messages):
        text = (message.content or "").strip()
        heard += [text] if message.role == "user" else []
        if message.role != "assistant":
            continue
        if not text and not message.tool_calls:
            yield Finding("empty_reply", index, "", "neither words nor a call")
        alike = mute and 0 < len(text) < 12 and " " not in text and told.count(text) > 1  # a word, the third time
        if alike or len(text) > 400 + _DENSE * len(compress(text.encode("utf-8", "replace"))):
            yield Finding("empty_reply", index, text[:80], "says one thing over and over")
        told.append(text)
        if text and message.tool_calls and pattern("conduct", "no_text_with_call").search(policy):
            yield Finding("text_with_tool_call", index, shorten(text), "the policy wants words or a call, not both")
        cut = text.count("```") % 2 or pattern("conduct", "dangling").search(text[-10:])
        if message.finish == "length" or (cut and not message.tool_calls):
            yield Finding("truncated", index, text[-80:], "the reply stops in the middle")
        if mixed := _mixed_role(text, heard, tools):
            yield Finding("role_confusion", index, mixed, "a mark, a label, a call as text, or the customer's part")
        if refusal := pattern("conduct", "refusal").search(text):
            yield Finding("refusal", index, refusal.group().strip(), "refuses like a model, not like an agent")
        leak = tools.spelled.search(text) or pattern("conduct", "policy_words").search(text)
        if copied := leak.group() if leak else _copied(text, policy):
            yield Finding("policy_leak", index, copied, "tells a tool's name, its instructions, or their very words")


def _mixed_role(text: str, heard: Sequence[str], tools: Toolbox) -> str | None:
    names = ("template_marks", "call_as_text", "customer_voice")
    found = (m.group().strip(" .!?\n") for n in names if (m := pattern("conduct", n).search(text)))
    marks = [m for m in found if not any(m in words for words in heard)]  # the agent may quote the customer
    labels = pattern("conduct", "role_labels").findall(text)
    called = tools.spelled.search(text) and re.search(tools.spelled.pattern + r"\s*\(", text)
    quotes = [*marks, *(labels if len(labels) > 1 else ()), *([called.group()] if called else ())]
    return quotes[0].strip() if quotes else None


def _copied(text: str, policy: str) -> str | None:
    """The first run of words that stands in the policy, too."""
    return next((run for run in _runs(text) if run in _runs(policy)), None)


@lru_cache(maxsize=128)
def _runs(text: str) -> Mapping[str, None]:
    words = re.findall(r"\w+", text.lower())
    return dict.fromkeys(" ".join(words[i : i + _LEAK]) for i in range(len(words) - _LEAK + 1))


@lru_cache(maxsize=64)
def _held(policy: str, writes: frozenset[str]) -> tuple[frozenset[str], bool]:
    """Return the tools that wait for a go-ahead: those that the rules name where each names one, else all; and whether only if it costs."""

    def says(rule: str, *names: str) -> bool:
        return all(pattern("conduct", name).search(rule) for name in names)

    asking = [x for x in re.split(r"(?<=[.!?])\s+|\n", policy) if says(x, "demand", "demand_act")]
    plain = all(says(x, "named") and not says(x, "general") for x in asking)
    listed = any(re.search(r"(?::|\bbefore)\s*$", x) for x in asking)  # the deeds stand below
    named = [_named(writes, words(x)) for x in asking]
    held = frozenset().union(*named) if plain and not listed and all(named) else writes
    return held if asking else frozenset(), all(says(x, "every", "costs") for x in asking)


def check_confirmation(messages: Sequence[Message], calls: Sequence[Call], tools: Toolbox) -> Iterator[Finding]:
    """Find changes made before a go-ahead that the policy demands: ``acted_without_confirmation``."""
    policy = "\n".join(m.content or "" for m in messages if m.role == "system")
    (held, costly), agreed = _held(policy, tools.writes), set()
    for position, call in enumerate(calls if held else ()):
        deed, same = tools.deeds.get(call.name), (call.name, str(call.arguments))
        if call.name not in held or not deed or deed.tool.effect != "write" or (costly and not _costs(deed)):
            continue
        if same not in agreed and (reason := _missing(messages, calls[:position], call)):
            yield Finding("acted_without_confirmation", call.index, call.call.arguments, f"{call.name} {reason}")
        else:
            agreed.add(same)


def check_order(messages: Sequence[Message], calls: Sequence[Call], tools: Toolbox) -> Iterator[Finding]:
    """Find calls made before another one that the policy wants first: ``acted_out_of_order``."""
    policy = "\n".join(m.content or "" for m in messages if m.role == "system")
    reads = frozenset(tools.deeds) - tools.writes
    for first, later in _orders(policy, reads, tools.writes):  # another look-up may show as much
        fine = first.union(t for t in reads for f in first if stems(name_words(f)[1:]) <= tools.deeds[t].objects)
        call = next((c for c in calls if c.name in fine or (c.name in later and not c.failed)), None)
        if call and call.name not in fine:
            yield Finding("acted_out_of_order", call.index, call.name, f"came before {' or '.join(sorted(first))}")


@lru_cache(maxsize=64)
def _orders(policy: str, reads: frozenset[str], writes: frozenset[str]) -> list[tuple[frozenset[str], frozenset[str]]]:
    """Return the tools that a rule wants called first, with those that wait, where its words leave no doubt of either."""
    told = (pattern("conduct", "order").search(x.strip()) for x in re.split(r"(?<=[.!?])\s+|\n", policy))
    parts = [[" ".join(v for k, v in m.groupdict("").items() if k[0] == part) for part in "fl"] for m in told if m]
    pairs = [(_meant(first, reads | writes, reads), _meant(later, writes)) for first, later in parts]
    return [(first, later) for first, later in pairs if first and later and first.isdisjoint(later)]


def _meant(said: str, tools: frozenset[str], reads: frozenset[str] = frozenset()) -> frozenset[str]:
    """The tools whose every word is said, and nothing beside; of no ``reads``, the one that may be meant will do."""
    told = [w for w in name_words(said) if not pattern("conduct", "links").fullmatch(w)]
    heard = [w for w in told if not pattern("conduct", "looks").fullmatch(w)]
    names = {t: [w for w in name_words(t)[t in reads and heard != told :] if len(w) > 2] for t in tools}
    fits = {t: name for t, name in names.items() if heard and all(any(_is_said(w, [h]) for w in name) for h in heard)}
    whole = {t for t, name in fits.items() if all(_is_said(w, heard) for w in name)}
    return frozenset(whole or (fits if len(fits) == 1 and not reads else ()))


def _named(tools: frozenset[str], said: Sequence[str]) -> frozenset[str]:
    """The tools of whose names a verb is said, or one for the same deed, or a noun that no such tool explains."""
    hits = {tool: {w for w in name_words(tool) if len(w) > 2 and _is_said(w, said)} for tool in tools}
    led = {tool for tool, found in hits.items() if lexicon("en").senses(found, "VPG")}
    return frozenset(led.union(t for t, found in hits.items() if found.difference(*(hits[tool] for tool in led))))


def _is_said(word: str, said: Sequence[str]) -> bool:
    ways = next((group for group in load_words("oracle")["same"] if word in group), [word])
    return any(s.startswith(w[: max(4, len(w) - 1)]) for w in ways for s in said)


def _costs(deed: Deed) -> bool:
    words = load_words("checks_conduct")
    return bool(deed.senses & {*words["spends"]} or deed.objects & {*words["costly"]})


def _missing(messages: Sequence[Message], earlier: Sequence[Call], call: Call) -> str | None:
    """Say what is missing before a change, None where nothing is."""
    turn = max((i for i in range(call.index) if messages[i].role == "user"), default=0)
    spoken = [m.content for m in messages[:turn] if m.role == "assistant" and m.content]
    if not spoken:
        return "was called before the customer was asked"
    said = clean(messages[turn].content or "").lower()
    if pattern("conduct", "hold").search(said):
        return "was called though the customer held back"
    agreed = pattern("conduct", "yes").search(said)
    chosen = pattern("conduct", "choice").search(said) and pattern("conduct", "offered").search(spoken[-1])
    asks = said.endswith("?") and not pattern("conduct", "urges").search(said)
    answers = agreed and agreed.start() < 2 and not pattern("conduct", "thanks").match(said)
    if not (agreed or chosen or _echoes(said, spoken[-1])) or (asks and not answers):
        return "was called without a yes from the customer"
    return _switched(messages[: call.index], [c for c in earlier if c.index > turn], call)


def _echoes(said: str, asked: str) -> bool:
    """Whether a short order repeats what the agent offered to do: 'Place it.' after 'Shall I place it?'."""
    told = [w for w in words(said) if w not in load_words("checks_deeds")["plain"].split()]
    orders = lexicon("en").senses(told[:1], "VPGO") and not re.search(r"\?|\bnot\b", said)
    return bool(orders) and len(told) < 4 and {*told} <= {*words(asked)}


def _switched(messages: Sequence[Message], turn: Sequence[Call], call: Call) -> str | None:
    """After a failure in the same turn, a retry with a payment or account that nobody named."""
    failed = [c for c in turn if c.failed and c.name == call.name]
    said = " ".join(m.content or "" for m in messages if m.role == "user")
    for key, value in leaves(call.arguments):
        before = {v for c in failed for k, v in leaves(c.arguments) if k == key}
        pays = before and isinstance(value, str) and pattern("conduct", "payment_key").search(key)
        if pays and value not in before and value not in said:
            return f"failed and was tried again with another {key}, which nobody agreed to"
    return None
