"""Documents: any policy text as plain markdown, each character with its place in the source.

Markdown, plain text, HTML and JSX all become lines with ``#``, ``- ``, ``1. `` and ``|``. What no
reader of rules needs (front matter, comments, template statements, code, imports, quoted speech in
a block of code) becomes spaces of the same length, so that places survive; HTML is rewritten, and
each character remembers where it came from. Placeholders such as ``{{limit}}`` stay: a rule may
hang on them.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from whilesim.core.templates import load_words
from whilesim.situations.norms import shared, unit
from whilesim.situations.roles import key_role, role_of


@dataclass(frozen=True, slots=True)
class Document:
    """A text as markdown; ``offsets`` holds each character's place in the source, None for the same."""

    text: str
    offsets: Sequence[int] | None = None

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the place in the source of ``text[start:end]``."""
        if self.offsets is None or start >= end:
            return start, end
        return self.offsets[start], self.offsets[end - 1] + 1


_Found = re.Match[str]
_MARKS = load_words("policy_marks")
_BLANKED = re.compile("|".join(_MARKS["blanked"]), re.DOTALL | re.MULTILINE | re.IGNORECASE)
_EDGE = re.compile("|".join(_MARKS["edges"]), re.MULTILINE)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_YAML_KEY = re.compile(r"^( *)([\w-]+):[ \t]*(?:[>|][+-]?)?[ \t]*$", re.MULTILINE)
_ODD = {c: " " for c in range(32) if c not in (9, 10)} | {0x2028: "\n", 0x2029: "\n", 0x27A1: "→"}
_ODD |= {ord(c): " " for c in "\u00a0\u200b\u200c\u200d\u200e\u200f\u202f\u2060\u3000\ufeff"}
_PAIRED = re.compile("|".join(f"({head})" for head in _MARKS["paired"]), re.IGNORECASE)
_CLOSERS = [re.compile(tail, re.IGNORECASE) for tail in _MARKS["paired"].values()]
_TAG = re.compile(r"<(/?)([A-Za-z][\w.:-]*)(\s[^<>]*|/?)>")
_BLOCKS, _INLINE = (frozenset(_MARKS[name].split()) for name in ("block", "inline"))
_REGION = re.compile(r"^[ \t]*<(/?)([a-zA-Z][\w-]*)>[ \t]*$", re.MULTILINE)
_PAGE = "|".join(sorted(_BLOCKS | _INLINE))
_ELEMENT = re.compile(rf"(?m)^[ \t]*<(?!(?:{_PAGE})[\s>])([a-z][\w-]*)(?:\s[^<>]*)?>([^<>\s][^<>]*)</\1>[ \t]*$")
_TITLE = re.compile(r"\b(?:title|question|label|summary|header)\s*=\s*\{?([\"'])(.+?)\1")
_FENCE = re.compile(r"^[ \t]*(```+|~~~+)[ \t]*([\w-]*)[^\n]*\n", re.MULTILINE)
_SPOKEN = re.compile(r"[\"“«][^\"”»]*(?:[\"”»]|\Z)")
_FORMS = {name: re.compile(form, re.MULTILINE) for name, form in _MARKS["forms"].items()}
_TURN = rf"[ \t>*_]*(?:{'|'.join(n for n in load_words('policy_shared')['speakers'] if len(n) > 1)})(?: \([^()\n]*\))?[*_ \t]*"
_DIALOGUE = re.compile(_MARKS["dialogue"].replace("TURN", _TURN), re.MULTILINE | re.IGNORECASE)
_SPEAKER = re.compile(r"^[^\w\n]*([^\W\d_][\w ]{0,20})\s*[:：]", re.MULTILINE)


def read_document(source: str) -> Document:
    """Return the source as markdown with the place of each character; never fails on a text."""
    text = _unwrapped(source.replace("\r\n", " \n").replace("\r", "\n").translate(_ODD))
    if re.search(r"^h[1-6]\. \w", text, re.MULTILINE):
        for pattern, mark in _MARKS["wiki"].items():
            text = re.sub(pattern, lambda found: found.expand(mark).ljust(len(found[0])), text, flags=re.MULTILINE)  # noqa: B023 (called at once)
    text = _EDGE.sub(lambda edge: "---".ljust(len(edge[0]))[: len(edge[0])], text)
    text = _between(_BLANKED.sub(_blank, text), _PAIRED, lambda head: _CLOSERS[(head.lastindex or 0) - 1], _blank)
    text = _between(text, _FENCE, lambda fence: re.compile(rf"(?m)^[ \t]*{fence[1]}[ \t]*$"), _open_fence)
    text = _DIALOGUE.sub(_blank_dialogue, _name_regions(text))
    closed = {tag[2] for tag in _TAG.finditer(text) if tag[1] or tag[0].endswith("/>")}
    tags = [tag for tag in _TAG.finditer(text) if _is_markup(tag[2], closed)]
    if sum(1 for tag in tags if tag[2].lower() not in _INLINE) >= 3:
        return _from_markup(text, tags)
    return Document(_TAG.sub(lambda tag: _blank(tag) if tag[1] or _is_markup(tag[2], closed) else tag[0], text))


def _unwrapped(text: str) -> str:
    """Take a prompt out of JSON or YAML that it is a value of, each character in its place."""
    head = re.match(r'\s*[\[{](?:[\s\[{]*"[^"\n]*"\s*[:,\]])?', text)
    if head and (head[0][-1] in ":,]" or text.count("\\n") > 3):
        return _from_json(text)
    whole = len(_YAML_KEY.findall(text)) > 1 and _FORMS["yaml"].fullmatch(f"{text}\n")
    if whole or len(_FORMS["yaml_text"].findall(text)) > 1:
        text = _FORMS["yaml_data"].sub(_blank, text)
        text = re.sub(r'^( *- )"([^"\n]+)"[ \t]*$', r"\1\2  ", text, flags=re.MULTILINE)
        return _YAML_KEY.sub(lambda k: ("\x02" * min(6, len(k[1]) // 2 + 1) + k[2]).ljust(len(k[0])), text)
    return text


def _from_json(text: str) -> str:
    """Write what stands in JSON as headings, items and ``key: value``, each value in its place."""
    levels: list[int] = []  # of the boxes that are open, 0 without a key

    def line(part: re.Match[str]) -> str:
        room, key, value = part["room"] or "", part["key"] or "", part["value"] or ""
        if part["close"]:
            said = "\n" + "\x02" * (levels or [0]).pop()
        elif part["box"]:
            levels.append(min(len(room) or 1, 6, len(levels)) if key else 0)
            return ("\n" * bool(room) + "\x02" * levels[-1] + key.replace("_", " ")).ljust(len(part[0]) - 1) + "\n"
        elif " " not in value or key == "name":
            return _blank(part)
        else:
            told = "\\n" in value or (key and re.search(r"[.!?] ", value))
            item = not key or (len(levels) > 1 and not levels[-1] and not key_role(key))
            before = part.start("value") - part.start()
            said = ("\n" if told else "\n•"[-before:] if item else f"\n{key}:").ljust(before)
            said += _ESCAPED.sub(lambda m: " \n" if m[1] == "n" else f" {m[1]}", value)
        return said.ljust(len(part[0]))[: len(part[0])]

    return _FORMS["json"].sub(line, text)


def _between(
    text: str,
    opens: re.Pattern[str],
    closes: Callable[[_Found], re.Pattern[str]],
    write: Callable[[_Found, _Found], str],
) -> str:
    """Write anew what stands from each ``opens`` to the next that closes it; what is never closed is looked for once."""
    out, at, never = [], 0, set()
    for head in opens.finditer(text):
        close = closes(head)
        if head.start() < at or close in never:
            continue
        tail = close.search(text, head.end())
        if tail is None:
            never.add(close)
        else:
            out += [text[at : head.start()], write(head, tail)]
            at = tail.end()
    return "".join([*out, text[at:]])


def _blank(head: re.Match[str], tail: re.Match[str] | None = None) -> str:
    """Write spaces in place of a match, or of all from one match to the end of another."""
    return re.sub(r"[^\n]", " ", head.string[head.start() : (tail or head).end()])


def _blank_dialogue(turns: re.Match[str]) -> str:
    """Blank turns of speech; three headings that happen to be called like speakers are none."""
    names = [re.sub(r"\s*\(.*|\W+", "", name).casefold() for name in re.findall(rf"^{_TURN}", turns[0], re.M | re.I)]
    return _blank(turns) if 1 < len(set(names)) < len(names) else turns[0]


def _is_markup(name: str, closed: Collection[str]) -> bool:
    """Say whether a tag is HTML or a component; ``<Customer Name>`` is a placeholder, and never closed."""
    return name.lower() in _BLOCKS | _INLINE or (name[0].isupper() and name in closed)


def _open_fence(fence: re.Match[str], end: re.Match[str]) -> str:
    """Blank a fence that is code, dialogue or an example; of any other only the marks and the speech."""
    text, body = fence.string, fence.string[fence.end() : end.start()]
    before = text[max(0, fence.start() - 500) : fence.start()].rstrip().rsplit("\n", 1)[-1]
    announced = before.endswith((":", "：")) and re.search(shared("roles.example"), before)
    prose = fence[2].lower() in ("", "text", "txt", "markdown", "md") and not re.match(r"\s*[\[{<]", body)
    speakers = [name for name in _SPEAKER.findall(body) if shared("speakers").fullmatch(name.strip())]
    if not prose or announced or len(speakers) > 1:
        return _blank(fence, end)
    told = body if fence[2] in ("markdown", "md") else _SPOKEN.sub(_silence, body)
    return _blank(fence) + told + _blank(end)


def _silence(speech: re.Match[str]) -> str:
    """Blank a quotation but for the sentences that grant a right in law: they bind whoever says them."""

    def keep(said: re.Match[str]) -> str:
        return said[0] if unit(said[0]).amount and shared("law").search(said[0]) else _blank(said)

    return re.sub(r"[\"“”«»]", " ", re.sub(r"[^.!?]+[.!?]*", keep, speech[0]))


def _name_regions(text: str) -> str:
    """Make ``<rules>`` on a line of its own a heading, and ``</rules>`` the end of it; blank the example regions."""
    closed = set(re.findall(r"</([a-zA-Z][\w-]*)>", text)) - _BLOCKS
    paired = {m[2] for m in _REGION.finditer(text) if m[2] in closed and m[2].lower() not in _BLOCKS}
    for name in sorted(paired):
        if shared("roles.example").match(re.sub(r"[_-]", " ", name)):
            text = re.sub(rf"<{name}>.*?</{name}>", _blank, text, flags=re.DOTALL)

    text = _ELEMENT.sub(_item_of, text)
    return _REGION.sub(lambda t: f"# {'' if t[1] else t[2]}".ljust(len(t[0])) if t[2] in paired else t[0], text)


def _item_of(tag: re.Match[str]) -> str:
    """Write ``<rule id="pin">...</rule>`` as an item, and ``<condition>...</condition>`` with its name as a key."""
    name = re.sub(r"[_-]", " ", tag[1])
    if role_of(name) == "example":
        return _blank(tag)
    keyed = (key_role(name) or role_of(name) in ("forbid", "handoff")) and not shared("generic").fullmatch(name)
    return ((f"{name}: " if keyed else "- ").ljust(tag.start(2) - tag.start()) + tag[2]).ljust(len(tag[0]))


@dataclass(slots=True)
class _Markdown:
    """Markdown under construction, with each character's place."""

    flowing: bool
    """White space is collapsed: the source is a web page, not markdown with components."""
    chars: list[str] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    lists: list[str] = field(default_factory=list)
    in_cell: bool = False
    in_header: bool = False

    def put(self, text: str, place: int) -> None:
        self.chars.extend(text)
        self.places.extend([place] * len(text))

    def copy(self, text: str, place: int) -> None:
        for token in re.finditer(r"&#?\w{2,8};|\s+|[^\s&]+|&", text):
            at, piece = place + token.start(), token[0]
            if piece.isspace() and (self.flowing or self.in_cell):
                self.put("" if self.chars[-1:] and self.chars[-1] in " \n" else " ", at)
            elif piece[0] == "&":
                self.put(html.unescape(piece).replace("\n", " "), at)
            else:
                self.chars.extend(piece)
                self.places.extend(range(at, at + len(piece)))

    def tag(self, tag: re.Match[str]) -> None:
        name, closing, title = tag[2].lower(), bool(tag[1]), _TITLE.search(tag[3])
        mark = _MARKS["marks"].get(name, ("", "") if name in _INLINE else ("\n\n", "\n\n"))[closing]
        if name in ("ul", "ol"):
            self.lists = self.lists[:-1] if closing else [*self.lists, "1. " if name == "ol" else "- "]
        elif name == "li":
            mark = "" if closing else "\n" + "  " * (len(self.lists[:20]) - 1) + (self.lists or ["- "])[-1]
        elif name == "tr" and closing and self.in_header:
            mark, self.in_header = "\n|---|\n", False
        elif title and not closing and name not in _INLINE:
            mark = f"\n\n**{title[2]}**\n\n"
        self.in_header |= name == "th"
        self.in_cell = not closing if name in ("td", "th") else self.in_cell
        self.put(mark.replace("\n", " ") if self.in_cell else mark, tag.start())


def _from_markup(text: str, tags: Sequence[re.Match[str]]) -> Document:
    page = text.lstrip().startswith("<") and not re.search(r"^\s*(?:#{1,6} |[-*] |\d+[.)] )", text, re.MULTILINE)
    out, at = _Markdown(flowing=page), 0
    for tag in tags:
        out.copy(text[at : tag.start()], at)
        out.tag(tag)
        at = tag.end()
    out.copy(text[at:], at)
    return Document("".join(out.chars), out.places)
