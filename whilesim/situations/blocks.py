"""Blocks: a document as headings, paragraphs, items, table rows and quotes.

Read line by line, not as CommonMark: prompts indent as they like, number paragraphs by hand, and
write headings in capitals, in bold or as a label. Each block keeps its place, so that every word of
a clause can be shown in the source.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Literal

from whilesim.core.templates import load_words
from whilesim.situations.norms import RUN_IN, Unit, language_of, shared, unit

BlockKind = Literal["heading", "paragraph", "item", "row", "quote"]


@dataclass(slots=True, eq=False)
class Block:
    """One piece of a document: ``text[start:end]``, mark of list or quote left out."""

    kind: BlockKind
    start: int
    end: int
    headings: tuple[str, ...] = ()
    """Headings above it, outermost first; a heading's own text is the last."""
    mark: str = ""
    """An item's bullet or number."""
    level: int = 0
    """Of a heading: 1 to 6 as in markdown, above that a heading without a mark."""
    parent: Block | None = None
    """The item that an item stands under."""
    children: list[Block] = field(default_factory=list)
    group: int = 0
    """Blocks of one list, table or paragraph share it."""
    header: tuple[str, ...] = ()
    """A row's column names; empty where the table has none."""


_LISTS = load_words("policy_marks")
_PICTURE = "|".join(_LISTS["bullets"][1:])  # '- ❌ ...' has two marks, and so has '6.1 (a) ...'
_ITEM = re.compile(
    rf"(?P<mark>(?:{'|'.join(_LISTS['bullets'] + _LISTS['numbers'])})(?:\s+(?:{_PICTURE})(?=\s))?)"
    r"(?:\s*(?P<letter>\([a-z\d]{1,2}\)))?\s*(?=\S)",
    re.IGNORECASE,
)
_EMOJI = "\U0001f000"  # pictures stand from here on: bullets to some, ornaments of headings to others
_HEADING = re.compile(r"(#{1,6}|\x02{1,6})(?:[ \t]+|(?<=##)(?=[^\s#\d])|(?<=\x02)|$)(.*)$")
_BREAK = re.compile(r"([-*_=~])(?:[ \t]*\1){2,}[ \t]*$")
_SEPARATOR = re.compile(r"(?=.*\|)(?=.*--)[\s:|-]+$|-{2,}(?:[ \t]{2,}-{2,})+$|={2,}(?:[ \t]{2,}={2,})+$")
_GAP = re.compile(r"\s{2,}|\t")  # between the columns of a table without bars
_BOLD = re.compile(r"(?:\W{0,3}\s)?(\*\*|__)(?=\S)(?:(?!\1).)+\1[:：]?$|【[^】]+】$")
_ENDED = re.compile(r"[.!?:;,。！？：；؟…][\"'”’」』)）*_`]*$")
_COLON = (":", "：")
_KEYED = re.compile(r"(?:\*\*)?[^\W\d_][\w ]{0,20}:(?:\*\*)?\s")


def read_blocks(text: str) -> list[Block]:
    """Return the blocks of a document's text, in order."""
    reader = _Reader(text)
    for number in range(len(reader.lines)):
        reader.read(number)
    return reader.blocks


@dataclass(slots=True)
class _Reader:
    text: str
    lines: list[tuple[int, str]] = field(default_factory=list)
    """Start of each line's first word, and the line stripped."""
    widths: list[int] = field(default_factory=list)
    """Characters of the longest line in each line's paragraph."""
    blocks: list[Block] = field(default_factory=list)
    above: list[tuple[int, str]] = field(default_factory=list)
    marks: dict[int, str] = field(default_factory=dict)
    """The numbers of the headings above, by level."""
    items: list[tuple[int, bool, Block]] = field(default_factory=list)
    """Open items: indent, whether it has a number, block."""
    header: tuple[str, ...] = ()
    group: int = 0
    fresh: bool = True
    """The line before is blank, or there is none."""
    language: str = "en"

    def __post_init__(self) -> None:
        self.language = language_of(self.text)
        at = 0
        for line in f"{self.text}\n".split("\n"):  # an empty line at the end: each has one behind it
            self.lines.append((at + len(line) - len(line.lstrip()), line.strip()))
            at += len(line) + 1
        for _, run in groupby((len(line) for _, line in self.lines), key=bool):
            lengths = list(run)
            self.widths += [max(lengths)] * len(lengths)

    def read(self, number: int) -> None:
        start, line = self.lines[number]
        indent = start - self.text.rfind("\n", 0, start) - 1
        item = _ITEM.match(line)
        if line and not self._mark(number, line, start):
            barred = line.count("|") > 1 and (line[0] == "|" or self.header)
            spaced = self.header and not self.fresh and "|" not in self.lines[number - 1][1] and _GAP.search(line)
            if barred or spaced or _SEPARATOR.match(self.lines[number + 1][1]):
                self._row(number, line, start)
            elif line[0] == ">":
                self._quote(line, start)
            elif item and not (item["mark"] and self._is_numbered_title(number, item)):
                self._item(item, start, indent)
            elif item:
                self._head(8 + item["mark"].rstrip(".").count("."), start + item.end(), start + len(line), item["mark"])
            else:
                self._text(number, line, start, indent)
        self.fresh = not line

    def _add(self, kind: BlockKind, start: int, end: int, **more: Any) -> Block:
        headings = tuple(heading for _, heading in self.above)
        parent = self.items[-1][2] if self.items and kind == "item" else None
        block = Block(kind, start, end, headings, group=self.group, parent=parent, **more)
        self.blocks.append(block)
        if parent:
            parent.children.append(block)
        return block

    def _leave(self) -> None:
        """End the open list or table: what follows stands at the margin again."""
        self.items, self.header = [], ()
        self.group += 1

    def _head(self, level: int, start: int, end: int, mark: str = "") -> None:
        self._leave()
        self.marks = {n: above for n, above in self.marks.items() if n < level} | {level: mark}
        self.above = [*(a for a in self.above if a[0] < level), (level, clean(self.text[start:end]).rstrip(":： "))]
        self._add("heading", start, end, level=level)

    def _mark(self, number: int, line: str, start: int) -> bool:
        """Read a line that is a heading or a break; false when it is none."""
        if heading := _HEADING.match(line):
            said = heading[2].rstrip(" \t").rstrip("#").rstrip(" \t")
            self._head(len(heading[1]), start + heading.start(2), start + heading.start(2) + len(said))
        elif _BREAK.match(line) and not _SEPARATOR.match(line):
            self._leave()
            self.above = [a for a in self.above if a[0] < 7]
        elif re.match(r"={3,}$", self.lines[number + 1][1]):
            self._head(1, start, start + len(line))
        else:
            return False
        return True

    def _row(self, number: int, line: str, start: int) -> None:
        # its mark of a header; else a cell is empty
        wiki = re.fullmatch(r"\|\|(?:.*\|\||(?:[^|]+\|\|)+[^|]+\|?)", line)
        if _SEPARATOR.match(self.lines[number + 1][1]) or wiki:
            self._leave()
            self.header = tuple(clean(cell) for cell in cells(line.replace("||", "|") if wiki else line))
        elif not _SEPARATOR.match(line):
            self._add("row", start, start + len(line), header=self.header)

    def _quote(self, line: str, start: int) -> None:
        skip = len(line) - len(line.lstrip("> \t"))
        if self.blocks and self.blocks[-1].kind == "quote" and not self.fresh:
            self.blocks[-1].end = start + len(line)
        elif skip < len(line):
            self._leave()
            self._add("quote", start + skip, start + len(line))

    def _item(self, item: re.Match[str], start: int, indent: int) -> None:
        numbered = re.search(r"\w", item["mark"]) is not None and "[" not in item["mark"]
        self.group += not self.items or (self.items[0][0] > indent and self.items[0][1] != numbered)
        # bullets at the indent of an open number stand under it
        self.items = [i for i in self.items if i[0] < indent or (i[0] == indent and i[1] and not numbered)]
        block = self._add("item", start + item.end(), start + len(item.string), mark=item["mark"])
        self.items.append((indent + max(0, item.start("letter")), numbered, block))  # '6.1 (a)' stands beside '(b)'

    def _text(self, number: int, line: str, start: int, indent: int) -> None:
        if self.blocks and not self.fresh and self._joins(self.blocks[-1], line, indent, self.widths[number]):
            self.blocks[-1].end = start + len(line)
        elif self._is_title(number, line):
            self._head(7, start, start + len(line))
        else:
            self._leave()
            # 'Q: ...' behind the heading 'Q: ...?'
            again = any(h.partition(":")[0] == clean(line).partition(":")[0] for _, h in self.above[-1:])
            if again or (clean(line).endswith(_COLON) and (_BOLD.match(line) or _shouts(line))):
                self.above = [a for a in self.above if a[0] < 7]
            self._add("paragraph", start, start + len(line))

    def _joins(self, last: Block, line: str, indent: int, width: int) -> bool:
        """Say whether a line goes on with the block before: the writer broke a line, not a thought."""
        written = self.text[last.start : last.end]
        ifs = all(map(shared("conditional").match, (line, written)))  # 'IF ... THEN ...' below another
        apart = ifs and line[0].isupper() and not _ENDED.search(written)
        if _KEYED.match(line) or apart or last.kind not in ("item", "paragraph", "quote"):
            return False
        if last.kind == "item" and self.items and indent > self.items[-1][0]:
            return True
        caseless = not (line[0].isascii() or line[0].isupper() or line[0].islower())
        wide = 55 if not caseless else 40 if line[0] < "\u2e80" else 26 if last.kind == "item" else 20
        flows = width >= wide and len(written.rsplit("\n", 1)[-1].strip()) > 0.72 * width
        begun = line[0].islower() and not written[0].islower()  # who writes all in lower case begins lines so
        return (flows and not written.endswith(_COLON)) or begun

    def _is_numbered_title(self, number: int, item: re.Match[str]) -> bool:
        """Say whether ``6. REFUNDS`` is a heading: what follows is not its neighbour in a list."""
        mark, body = item["mark"], item.string[item.end() :]
        later = next((n for n in range(number + 1, len(self.lines)) if self.lines[n][1]), None)
        picture, named = mark[0] > _EMOJI, mark.lstrip("(（")
        chapter = picture or named[0] in "一二三四五六七八九十第§" or mark[:2].isalpha()
        listed = any(_follows(block.mark, mark) for block in self.blocks[-1:])
        if later is None or not (mark[0].isalnum() or chapter) or listed:
            return False
        next_one = _follows(self.marks.get(8 + mark.rstrip(".").count("."), ""), mark)  # after the heading before it
        start, follows = self.lines[later]
        below = _shouts(body) and follows.startswith(f"{mark.rstrip('.')}.")  # '1. WHAT YOU MAY DO' before '1.1'
        apart = self.fresh and later > number + 1
        firm = mark[0] in "§第" or (_shouts(body) and (chapter or apart)) or next_one or below
        if not self._is_title_like(body, firm=firm):
            return False
        indented = self.text[start - 1 : start] in (" ", "\t") and not (_shouts(body) and apart)
        if after := _ITEM.match(follows):
            dotted = re.match(r"\d+\.\d", after["mark"]) and not re.match(r"\d+\.\d", mark)
            alone = (apart or (self.fresh and next_one)) and not (indented or _follows(mark, after["mark"]))
            return bool(dotted or alone) or (chapter and after["mark"][:1] != mark[:1] and after["mark"][:1] < _EMOJI)
        numbered = mark[0] == "§" or any(level == 8 for level, _ in self.above)  # as the heading before it
        return not indented and (numbered or follows[0] not in "#|")

    def _is_title(self, number: int, line: str) -> bool:
        """Say whether a line is a heading without a mark: bold, in capitals, or short and alone."""
        said = unit(clean(line), self.language)
        if not said.length or said.length > 12 or shared("dated").match(said.text):
            return False
        later = next(filter(None, (self.lines[n][1] for n in range(number + 1, len(self.lines)))), "")
        if said.text.endswith(_COLON) and (said.strong or _ITEM.match(later)):
            return False
        if _BOLD.match(line):
            return True
        if _shouts(said.text) or not later or self.lines[number + 1][1] or (self.blocks and not self.fresh):
            return _shouts(said.text)
        if said.text.endswith(_COLON):
            return later[0] not in "|>"
        first = not self.blocks and not (said.orders or said.hands_off or said.main_has("must"))
        return self._is_title_like(line, firm=first) and (line[0].isupper() or not line[0].isascii())

    def _is_title_like(self, body: str, *, firm: bool = False) -> bool:
        """Say whether a text could be a heading; with ``firm`` its mark says so, whatever its words order."""
        said: Unit = unit(clean(body), self.language)
        ended = _ENDED.search(said.text) or re.search(r"[:：]\s", said.text)
        return 0 < said.length <= 8 and not ended and (firm or not (said.strong or said.has("if")))


def _follows(before: str, mark: str) -> bool:
    """Say whether a number is the next one after another, and written as that."""
    first = re.fullmatch(r"(.*?)(\d{1,9}|[a-zA-Z])([^\da-zA-Z]?)", before)
    number = first[2] if first else "0"
    after = f"{int(number) + 1:0{len(number)}d}" if number.isdecimal() else chr(ord(number) + 1)
    return first is not None and mark == f"{first[1]}{after}{first[3]}"


def _shouts(body: str) -> bool:
    letters = [c for c in body if c.isalpha()]
    return len(letters) >= 4 and all(c.isupper() for c in letters) and not body.endswith((".", "!"))


_LINK = re.compile(r"\[([^\[\]]*)\]\([^()\s]*(?:\([^()]*\)[^()]*)*\)")
_MARKUP = re.compile(r"\*\*|__(?=\S)|(?<=\S)__|(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w)|\\$", re.MULTILINE)
_QUOTED = re.compile(r"\n[ \t]*>")


def clean(text: str) -> str:
    """Return the text on one line, emphasis and link targets left out; names with underscores stay."""
    labelled = re.sub(rf"\A{RUN_IN.pattern}(?=\s)", r"\2:", _QUOTED.sub(" ", _LINK.sub(r"\1", text)))
    return " ".join(_MARKUP.sub("", labelled).split())


def cells(line: str) -> list[str]:
    """Split a table line at its bars, or else at its gaps."""
    parts = re.split(r"(?<!\\)\|", line.strip().strip("|")) if "|" in line else _GAP.split(line.strip())
    return [cell.strip() for cell in parts]
