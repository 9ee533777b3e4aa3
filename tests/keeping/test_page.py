"""Page: everything that was said is on it, and none of it is anything but text."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from whilesim.chat.messages import Message
from whilesim.keeping import page as page_module
from whilesim.keeping.ledger import Ledger
from whilesim.keeping.manifest import Manifest
from whilesim.keeping.page import write_report
from whilesim.keeping.simulation import Simulation

EVIL = "</td></script><script>document.title='HIT'</script><img src=x onerror=\"document.title='HIT'\">{{ 7*7 }}\ud800\x00\u202e"
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.seen and self.seen[-1][0] == "script":
            self.scripts.append(data)

    @property
    def own(self) -> str:
        """The script that runs."""
        return next(s for s in self.scripts if "use strict" in s)


def page_of(data: Simulation, tmp_path: Path) -> tuple[str, Tags, list[Any]]:
    """The page, its tags, and what is packed in it: the index, then the conversations."""
    page = data.report(tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    tags = Tags()
    tags.feed(page)
    packed = re.findall(r'<script type="application/octet-stream" id="[^"]*">([^<]*)</script>', page)
    return page, tags, [json.loads(gzip.decompress(base64.b64decode(p)).decode()) for p in packed]


def hostile(make: Any) -> Simulation:
    talk = make.talk(
        make.call(f"get{EVIL}", f'{{"x": "{EVIL}"'),
        Message(role="tool", content=EVIL, tool_call_id="call_1"),
        Message(role="assistant", content=f"{EVIL} here"),
    )
    findings = [make.finding(index=4, quote="</td>"), make.finding(index=2, quote="")]
    row = make.row(card=f"s{EVIL}", messages=talk, findings=findings, verdict=False, values={"stance": EVIL})
    manifest = Manifest(axes={"tool": ["cancel_order", EVIL], "stance": ["upset", EVIL]})
    return Simulation([row], manifest)


def test_only_the_pages_own_script_may_run_and_nothing_is_loaded(make, tmp_path):
    page, tags, _ = page_of(hostile(make), tmp_path)
    runs = [attrs for tag, attrs in tags.seen if tag == "script" and "type" not in attrs]
    assert runs == [{}]
    policy = next(a["content"] for t, a in tags.seen if t == "meta" and "http-equiv" in a)
    digest = base64.b64encode(hashlib.sha256(tags.own.encode()).digest()).decode()
    assert policy.startswith("default-src 'none'")
    assert f"script-src 'sha256-{digest}'" in policy
    assert not [a for _, attrs in tags.seen for a in attrs if a.startswith("on")]
    assert not re.search(r"""(src|href)\s*=|url\(|@import|https?://(?!www\.w3\.org/2000/svg)""", page)
    assert "HIT" not in page


def test_the_script_puts_in_texts_and_never_markup(make, tmp_path):
    _, tags, _ = page_of(Simulation([make.row()]), tmp_path)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval|Function\(", tags.own)


def test_every_conversation_is_packed_whole_and_the_policy_once(make, tmp_path):
    data = Simulation([make.row(card=f"s{i:03}", verdict=i % 4 > 0) for i in range(450)])
    page, _, (index, *chunks) = page_of(data, tmp_path)
    assert [len(chunk) for chunk in chunks] == [200, 200, 50]
    assert index["system"] == data.rows[0].messages[0]["content"]
    told = [row for chunk in chunks for row in chunk]
    assert [row["messages"] for row in told] == [row.to_json()["messages"][1:] for row in data.rows]
    assert {row["system"] for row in told} == {None}
    assert [line["id"] for line in index["rows"]] == [row.id for row in data.rows]
    assert all(0 <= place <= 1 for line in index["rows"] for place in line["at"])
    for words in ("pass@1 0.7", "hand-off", "Ledger", "113 check:refusal"):
        assert words in page


def test_the_passes_of_many_rollouts_are_no_wider_than_the_page(make, tmp_path):
    data = Simulation([make.row(rollout=n, verdict=n % 3 > 0) for n in range(10)])
    table = page_of(data, tmp_path)[0].partition('<pre class="table">')[2].partition("</pre>")[0].splitlines()
    assert [line.split()[0] for line in table] == [line.split()[0] for line in str(data.pass_at).split(" | ")]
    assert len(table) > 8
    assert max(map(len, table)) < 80


def test_rows_are_let_go_once_the_page_has_them(watched, tmp_path):
    rows = watched(600)
    write_report(tmp_path / "r.html", rows, Manifest(), (), count=Ledger.build, graded=False)
    assert len(rows.seen) == 600
    assert rows.most <= 2 * 200


def test_only_openings_that_the_script_draws_have_a_place(make, tmp_path, monkeypatch):
    assert f"index.rows.slice(0, {page_module._DRAWN})" in page_of(Simulation([]), tmp_path)[0]
    monkeypatch.setattr(page_module, "_DRAWN", 5)
    rows = [make.row(card=f"s{i}") for i in range(7)]
    _, _, (index, *_) = page_of(Simulation(rows), tmp_path)
    assert ["at" in line for line in index["rows"]] == [True] * 5 + [False] * 2


def test_the_map_says_how_far_each_missing_pair_came(make, tmp_path):
    axes = {"tool": ["cancel_order", "get_order"], "stance": ["upset", "hurried"]}
    manifest = Manifest(axes=axes, infeasible=[["tool", "get_order", "stance", "hurried"]])
    rows = [make.row(card="s1", verdict=True), make.row(card="s2", verdict=False, values={"stance": "hurried"})]
    _, _, (index, *_) = page_of(Simulation(rows, manifest), tmp_path)
    assert {tuple(hole[:5]) for hole in index["holes"]} == {
        ("tool", "cancel_order", "stance", "hurried", 1),
        ("tool", "get_order", "stance", "upset", 4),
        ("tool", "get_order", "stance", "hurried", 5),
    }


def test_an_ungraded_and_an_empty_simulation_have_a_page(make, tmp_path):
    assert "Passes" not in page_of(Simulation([make.row()]), tmp_path)[0]
    assert page_of(Simulation([]), tmp_path)[2][0]["rows"] == []


@pytest.mark.browser
@pytest.mark.skipif(BROWSER is None, reason="no Chromium here")
def test_hostile_rows_are_inert_in_a_real_browser(make, tmp_path):
    page_of(hostile(make), tmp_path)
    flags = [
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--virtual-time-budget=20000",
    ]
    url = (tmp_path / "out" / "report.html").as_uri()
    found = subprocess.run([BROWSER, *flags, "--dump-dom", url], capture_output=True, timeout=120, check=True)
    dom = found.stdout.decode("utf-8", "replace")
    assert 'data-ready="yes"' in dom
    assert "<title>whilesim</title>" in dom
    assert "<img" not in dom
    assert "&lt;img src=x" in dom
    assert "<mark title=" in dom
