"""Hub: pushed for real to a fake hub on loopback, loaded back equal, by us and by datasets."""

from __future__ import annotations

import os
import subprocess
import sys
from io import BytesIO
from pathlib import Path

import pyarrow.parquet as parquet
import pytest
from fake_hub import FakeHub

from whilesim.core.errors import InputError
from whilesim.core.seeds import shuffled
from whilesim.keeping.hub import REPO, _in_order, push
from whilesim.keeping.loading import load
from whilesim.keeping.manifest import Manifest
from whilesim.keeping.simulation import Simulation

PUSH = """
import sys
sys.path.insert(0, sys.argv[1])
from conftest import call, make_finding, make_row, talk
from whilesim.chat.messages import Message
from whilesim.keeping.manifest import Manifest
from whilesim.keeping.simulation import Simulation
from whilesim.keeping.loading import load
from whilesim.core.errors import InputError
from datasets import Dataset, load_dataset
from whilesim.keeping.references import read_items

Dataset.from_list([{"task_id": "q7", "question": "where is my kayak"}]).push_to_hub("you/tasks", split="test")
(item,) = read_items("you/tasks")
assert (item.id, item.texts) == ("q7", ("where is my kayak",)), item
try:
    read_items("you/none")
except InputError as error:
    assert "is no file, and no dataset on the Hub that can be read" in str(error), error
else:
    raise AssertionError("read")

thought = talk(Message(role="assistant", content="No. \\ud800 | <b>", reasoning="Secret."))
rows = [
    make_row(card=f"s{i}", rollout=r, messages=thought if i == 3 else (), oracle=None, final_state={"n": 2**70, "x": 0.1 + i},
             values={"clause": f"c{i:02}"}, findings=[make_finding()] if (i + r) % 3 == 0 else [])
    for i in range(12) for r in range(2)
]
broken = make_row(card="s12", messages=talk(call("get_order", "{oops"), Message(role="assistant", content="Sorry.")), oracle=None)
axes = {"clause": [f"c{i:02}" for i in range(12)], "stance": ["upset", "ordinary"]}
manifest = Manifest(whilesim="0.1.0", axes=axes, counts={"planned": 26}, effects={"cancel_order": "write"},
                    notes=["a note with <script>alert(1)</script> and \\ud800"], licences={"scripted": "CC0-1.0 | by me"})
data = Simulation([*rows, broken], manifest).grade()

first = data.kept.push_to_hub("you/support", splits={"train": 0.75, "test": 0.25})
assert first.left_out == 1 and sum(first.rows.values()) == 16, first
seen = load_dataset("you/support")
assert list(seen) == ["train", "test"]
assert not {r["situation"]["clause"] for r in seen["train"]} & {r["situation"]["clause"] for r in seen["test"]}
assert seen["train"][0]["messages"][2]["tool_calls"][0]["function"]["arguments"] == {"order_id": "W2210"}
again = load("you/support")
wanted = {r.id: r for r in data.kept.rows if not r.loose_calls}
assert [r.id for r in again.rows] == list(wanted)
for row in again.rows:
    quiet = [{k: v for k, v in m.items() if k != "reasoning"} for m in wanted[row.id].messages]
    assert row == wanted[row.id].model_copy(update={"messages": quiet})
assert again.ledger.planned == 16 and again.manifest.record["ledger"]["planned"] == 26
assert "Secret" not in str(again.rows)

second = data.push_to_hub("you/support", reasoning=True)
assert second.replaced == first.revision and dict(second.rows) == {"train": 24}
back = load("you/support")
assert list(back) == [r for r in data if not r.loose_calls]
assert back.kept.pass_at.at[1].value == data.filter(lambda r: not r.loose_calls).kept.pass_at.at[1].value
try:
    load("you/nothing")
except InputError as error:
    assert "no dataset 'you/nothing'" in str(error)
from huggingface_hub import HfApi
HfApi().create_repo("you/other", repo_type="dataset")
HfApi().upload_file(path_or_fileobj=b"1", path_in_repo="data/mine.csv", repo_id="you/other", repo_type="dataset")
try:
    data.push_to_hub("you/other")
except InputError as error:
    assert "'you/other' holds 'data/mine.csv'" in str(error)
else:
    raise AssertionError("it pushed over somebody's files")
print("fine", second)
"""

SPOIL = """
import io, os, sys
import pyarrow as pa, pyarrow.parquet as parquet
from click.testing import CliRunner
from whilesim.cli import main

hub, data = HfApi(), Simulation([make_row(verdict=True)])
data.push_to_hub("you/ours")
path = "data/train-00000-of-00001.parquet"
table = parquet.read_table(hub.hf_hub_download("you/ours", path, repo_type="dataset"))

def put(repo, name, what):
    if not isinstance(what, bytes):
        parquet.write_table(what, out := io.BytesIO())
        what = out.getvalue()
    hub.upload_file(path_or_fileobj=what, path_in_repo=name, repo_id=repo, repo_type="dataset")

def refused(words, call):
    try:
        call()
    except InputError as error:
        assert words in str(error), error
    else:
        raise AssertionError(words)

for words, odd in (
    ("its columns differ in messages", table.drop(["messages"])),
    ("its columns differ in mine", table.append_column("mine", pa.array([1]))),
    ("its columns differ in answer, card, ", pa.table({"question": ["a"], "answer": ["b"]})),
    ("line 1 column 1", table.set_column(table.column_names.index("card"), "card", pa.array(["no JSON"]))),
    ("seed: Input should be a valid integer", table.set_column(table.column_names.index("seed"), "seed", pa.array(["7"]))),
    ("holds no rows of ours (", b"no parquet"),
):
    put("you/ours", path, odd)
    refused(words, lambda: load("you/ours"))
    refused("'you/ours': data/train-00000-of-00001.parquet holds no rows of ours (", lambda: load("you/ours"))
put("you/ours", "manifest.json", b'{"version": 2}')
for call in (lambda: load("you/ours"), lambda: data.push_to_hub("you/ours")):
    refused("'you/ours': manifest.json cannot be read: version: Input should be 1. Restore it, ", call)

data.save("run")
del os.environ["HF_TOKEN"]
refused("the Hub refused (401): there is no token, or it may not write there. Type hf auth login", lambda: data.push_to_hub("you/more"))
told = CliRunner().invoke(main, ["push", "run", "you/more"])
assert (told.exit_code, told.output.count("the Hub refused (401)")) == (2, 1), told.output
refused("there is no dataset 'you/more'", lambda: load("you/more"))
print("fine")
"""


@pytest.fixture(scope="module")
def pushed(tmp_path_factory):
    """The hub after both scripts, what they said, and the folder they ran in: one process, for it loads much."""
    folder = tmp_path_factory.mktemp("hub")
    with FakeHub() as hub:
        script = [sys.executable, "-c", PUSH + SPOIL, str(Path(__file__).parent)]
        env = {**os.environ, **hub.env(folder / "home")}
        done = subprocess.run(script, env=env, cwd=folder, capture_output=True, text=True, check=False, timeout=240)
    return hub, done, folder


def test_a_push_is_one_commit_that_reads_back_equal_and_a_benchmark_there_is_read_whole(pushed):
    hub, done, _ = pushed
    assert done.stdout.startswith("fine you/support at "), done.stderr[-3000:]
    repo = hub.repos["you/support"]
    assert repo.private
    assert [title for _, _, title in repo.commits] == ["initial commit", "Push 1: 16 rows", "Push 2: 24 rows"]
    assert sorted(repo.commits[1][1]) == [
        ".gitattributes", "README.md", "data/test-00000-of-00001.parquet", "data/train-00000-of-00001.parquet", "manifest.json",
    ]  # fmt: skip
    assert [path for path in repo.files if path.startswith("data/")] == ["data/train-00000-of-00001.parquet"]
    kept = [parquet.read_table(BytesIO(data)) for path, data in repo.commits[1][1].items() if path.startswith("data/")]
    assert sum(table.num_rows for table in kept) == 16
    card = repo.files["README.md"].decode()
    assert "| 26 | 17 | 8 | 1 | 0 |" in card
    assert "pass@1 0.6" in card
    assert "## Certificate" in card
    assert "<script>" not in card
    assert "| agent | scripted | CC0-1.0" in card
    assert f"| 2 | train 24 | 0.1.0 | {repo.commits[1][0]} |" in card
    assert card.count("| 1 | train ") == 1


def test_what_is_not_ours_there_and_whoever_may_not_write_is_said_in_words_and_nothing_changes(pushed):
    hub, done, folder = pushed
    assert (done.returncode, done.stdout.splitlines()[1:]) == (0, ["fine"]), done.stderr[-3000:]
    assert list(hub.repos) == ["you/tasks", "you/support", "you/other", "you/ours"]
    assert len(hub.repos["you/ours"].commits) == 9  # made, pushed, spoiled seven times: no push after that
    assert sorted(path.name for path in folder.iterdir()) == ["home", "run"]


NO_NAMES = ["support", "you/", "/x", "you/a/b", "you/a b", "you/-x", "you/x-", ".you/x", "you/a..b", "you/a--b", "you/x.git",
            "you/ü", "https://hub/you/x", f"you/{'a' * 97}"]  # fmt: skip


@pytest.mark.parametrize("name", NO_NAMES)
def test_a_name_that_the_hub_would_not_take_is_refused_before_it_is_asked(make, name):
    data = Simulation([make.row(verdict=True)])
    with pytest.raises(InputError, match=r"names no dataset on the Hub\. Type 'owner/name'"):
        data.push_to_hub(name, dry_run=True)
    with pytest.raises(InputError, match=r"names no dataset on the Hub|there is no folder"):
        load(name)


def test_our_rule_for_names_is_the_hub_s():
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id

    for name in (
        "you/x",
        "a/b",
        "_a/_b",
        "You.1/a_b-c.d",
        f"you/{'a' * 96}",
        *(n for n in NO_NAMES if n.count("/") == 1),
    ):
        try:
            validate_repo_id(name)
        except HFValidationError:
            assert not REPO.fullmatch(name), name
        else:
            assert REPO.fullmatch(name), name


def test_ids_sort_as_people_count(make):
    rows = [make.row(card=c, rollout=r) for c in ("s2", "s10", "s10t") for r in (0, 9, 10)]
    assert sorted(shuffled(rows, 1), key=_in_order) == rows


def test_what_cannot_be_pushed_is_refused_before_any_call(make):
    broken = make.row(messages=make.talk(make.call("get_order", "{oops")))
    with pytest.raises(InputError, match="none of 1 rows can be published"):
        push([broken], Manifest(), "you/support", private=True, splits={"train": 1.0}, reasoning=False)


def test_a_dry_run_asks_nobody_and_shows_the_card(make, monkeypatch):
    import huggingface_hub

    monkeypatch.setattr(huggingface_hub, "HfApi", lambda: pytest.fail("it asked the Hub"))
    data = Simulation([make.row(verdict=True), make.row(card="s2", verdict=True, values={"clause": "c02"})])
    done = data.push_to_hub("you/support", splits={"train": 0.5, "test": 0.5}, dry_run=True)
    assert (done.revision, dict(done.rows)) == ("", {"train": 1, "test": 1})
    assert str(done) == "you/support not pushed (dry run): train 1, test 1"
    for words in ("datasets>=4.7", "| texture | 2 ordinary |", "| clause | 1 c01, 1 c02 |", "## Limits", "whilesim train you/support",
                  "A row has 7 messages in the median"):  # fmt: skip
        assert words in done.card, words


class _Answer:
    def __init__(self, status):
        self.status_code, self.headers, self.request = status, {}, None


def test_a_hub_that_is_not_there_is_said_in_words(monkeypatch):
    monkeypatch.setenv("HF_HUB_DISABLE_TELEMETRY", "1")
    from huggingface_hub import HfApi

    from whilesim.keeping import hub

    api = HfApi(endpoint="http://127.0.0.1:9", token="hf_none")
    with pytest.raises(InputError, match=r"the Hub cannot be reached .* HF_ENDPOINT"):
        hub.patiently("you/data", lambda _: api.create_repo("you/data", repo_type="dataset"))


@pytest.mark.parametrize(
    ("statuses", "calls"), [((500, 503), 3), ((401,), 1), ((403,), 1), ((404,), 1), ((500, 500, 500), 3)]
)
def test_a_server_s_error_is_tried_again_and_a_refusal_is_said_in_words(monkeypatch, statuses, calls):
    from huggingface_hub.errors import HfHubHTTPError

    from whilesim.keeping import hub

    monkeypatch.setattr(hub.time, "sleep", lambda seconds: None)
    left, made = list(statuses), []

    def call(_):
        made.append(1)
        if left:
            raise HfHubHTTPError("no", response=_Answer(left.pop(0)))
        return "done"

    if statuses[0] in (401, 403):
        with pytest.raises(
            InputError, match=r"the Hub refused \(40[13]\): there is no token, or it may not write there"
        ):
            hub.patiently("you/data", call)
    elif len(statuses) == 2:
        assert hub.patiently("you/data", call) == "done"
    else:
        with pytest.raises(HfHubHTTPError):
            hub.patiently("you/data", call)
    assert len(made) == calls
