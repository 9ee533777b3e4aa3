"""Report: one page in which nothing that anybody said is anything but text."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

import whilesim
from whilesim.chat.messages import Message
from whilesim.keeping.report import SHOWN, mark
from whilesim.keeping.simulation import Simulation

EVIL = "</td></details><script>alert(1)</script><img src=x onerror=alert(2)>{{ 7*7 }}\ud800\x00"


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in ("meta", "link", "br", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def page_of(data, tmp_path):
    page = data.report(tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    tags = Tags()
    tags.feed(page)
    tags.close()
    assert tags.open == []
    return page, tags


def test_what_was_said_is_text_and_never_markup(make, tmp_path):
    talk = make.talk(
        make.call(f"get{EVIL}", f'{{"x": "{EVIL}"'),
        Message(role="tool", content=EVIL, tool_call_id="call_1"),
        Message(role="assistant", content=f"{EVIL} here"),
    )
    findings = [make.finding(index=4, quote="<script>alert(1)</script>"), make.finding(index=2, quote="")]
    row = make.row(card=f"s{EVIL}", messages=talk, findings=findings, verdict=False, values={"stance": EVIL})
    page, tags = page_of(Simulation([row]), tmp_path)
    assert {"script", "img"}.isdisjoint(tag for tag, _ in tags.seen)
    assert not [a for _, attrs in tags.seen for a in attrs if a.startswith("on")]
    assert "".join(tags.text).count("<script>alert(1)</script>") >= 5
    assert "{{ 7*7 }}" in "".join(tags.text)
    policy = next(a for t, a in tags.seen if t == "meta" and "http-equiv" in a)
    assert policy["http-equiv"] == "Content-Security-Policy"
    assert policy["content"].startswith("default-src 'none'")
    assert not re.search(r"""(src|href)\s*=|url\(|@import""", page.replace("img src=x", ""))


def test_findings_are_marked_at_their_words(make, tmp_path):
    row = make.row(findings=[make.finding(index=4, quote="W2210 is cancelled")], verdict=False)
    page, _ = page_of(Simulation([row]), tmp_path)
    assert '<mark title="drop: refusal. It is wrong.">W2210 is cancelled</mark>.' in page


def test_it_shows_ledger_passes_hand_offs_and_ten_conversations(make, tmp_path):
    rows = [make.row(card=f"s{i:02}", verdict=i % 4 > 0) for i in range(30)]
    page, tags = page_of(Simulation(rows), tmp_path)
    assert [tag for tag, _ in tags.seen].count("details") == SHOWN
    assert page.count('<summary><b class="dropped">') == 5
    for words in ("pass@1 0.7", "hand-off", "Ledger", "8 check:refusal"):
        assert words in page


def test_an_ungraded_and_an_empty_simulation_have_a_page(make, tmp_path):
    assert "Passes" not in page_of(Simulation([make.row()]), tmp_path)[0]
    assert "There are no rows." in page_of(Simulation([]), tmp_path)[0]


@given(
    st.text("abc ", max_size=12), st.lists(st.tuples(st.text("abc ", max_size=3), st.sampled_from("xyz")), max_size=4)
)
def test_pieces_are_the_text_and_every_quote_is_marked(text, found):
    pieces = mark(text, found)
    assert "".join(piece.text for piece in pieces) == text
    for quote, reason in found:
        wanted = quote if quote and quote in text else text
        assert wanted in "".join(piece.text for piece in pieces if reason in piece.reasons)


def test_the_template_is_short():
    template = Path(whilesim.__path__[0]) / "pages" / "report.jinja"
    assert len(template.read_text(encoding="utf-8").splitlines()) < 150
