"""Publish: pushed for real to a fake hub on loopback; nothing replaces history."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fake_hub import FakeHub

from whilesim.core.errors import InputError
from whilesim.evals.publish import push_table

PUSH = """
import sys
sys.path.insert(0, sys.argv[1])
from shop import careless_agent, shop_agent, ticket
import whilesim as ws
from whilesim.cli import main
from whilesim.core.errors import InputError
from whilesim.evals.publish import push_table, read_history
from click.testing import CliRunner
from datasets import Dataset, DatasetDict, load_dataset

suite = ws.load_tickets([ticket(1), ticket(2, customer_context={"order_id": "84920", "verified": False}, handoff=False)])
revision = suite.push_to_hub("you/golden")
ws.load_tickets([ticket(7)]).push_to_hub("you/golden")
assert [t.ticket_id for t in ws.load_tickets("you/golden")] == ["CS-007"]
assert list(ws.load_tickets(f"you/golden@{revision}")) == list(suite)

# the tutorial's own push pads mappings with nulls
DatasetDict({"test": Dataset.from_list([ticket(1), ticket(2, customer_context={"phone": "555"})])}).push_to_hub("you/article")
assert dict(ws.load_tickets("you/article")[1].customer_context) == {"phone": "555"}

Dataset.from_list([{"question": "?", "answer": "!"}]).push_to_hub("you/other", split="test")
for wrong, match in (("you/other", "has the columns question, answer, and no tickets"), ("you/nothing", "there is no file or folder 'you/nothing' here, and there is no dataset")):
    try:
        ws.load_tickets(wrong)
    except InputError as error:
        assert match in str(error), error
    else:
        raise AssertionError(wrong)
try:
    ws.load_tickets("you/golden", split="nope")
except InputError as error:
    assert "has no split 'nope'" in str(error), error

quiet = ws.EvalOptions(floors=False, progress=False)
for agent in (shop_agent, careless_agent):
    result = ws.evaluate(agent, suite, options=quiet)
    result.push_to_hub("you/results", split="nightly")
lost = ws.evaluate("http://127.0.0.1:9/down", suite, options=quiet)
for found in (lost, result):  # what could not be decided anywhere is no text
    found.push_to_hub("you/down")
assert load_dataset("you/down", split="nightly")["passed"][:] == [None, None, True, False]
for run_id in "zam":  # of one second: as they were pushed
    push_table([{"passed": True}], "you/second", split="nightly", private=True, run={"run_id": run_id, "date": "today"})
assert [run["run_id"] for run in read_history("you/second")] == ["z", "a", "m"]
runs = read_history("you/results")
assert [r["agent"] for r in runs] == ["shop_agent", "careless_agent"], runs
assert runs[1]["run_id"] == result.run["run_id"] and runs[1]["scores"]["policy"]["value"] == 0.5, runs[1]["scores"]
rows = load_dataset("you/results", split="nightly")
assert len(rows) == 4 and set(rows["agent"]) == {"shop_agent", "careless_agent"}
assert rows[0]["tool_calls"][0]["name"] == "lookup_order" and rows[0]["scores"]["policy"] == 1.0
told = CliRunner().invoke(main, ["compare", "--hub", "you/results"])
assert told.exit_code == 0 and len(told.output.splitlines()) == 3, told.output
assert CliRunner().invoke(main, ["compare", "--hub", "you/golden"]).exit_code == 2
mixed = [lambda: result.push_to_hub("you/other", split="test"), lambda: result.push_to_hub("you/golden"),
         lambda: suite.push_to_hub("you/results"), lambda: suite.push_to_hub("you/results", split="nightly")]
for push in mixed:
    try:
        push()
    except InputError as error:
        assert "has other columns than ours" in str(error), error
    else:
        raise AssertionError("mixed up")
print("ok")
"""


def test_tickets_and_two_nightly_runs_go_up_and_come_back(tmp_path: Path) -> None:
    with FakeHub() as hub:
        env = {**os.environ, **hub.env(tmp_path / "home")}
        command = [sys.executable, "-c", PUSH, str(Path(__file__).parent.parent)]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        assert hub.repos["you/golden"].private
        assert hub.repos["you/results"].private
        assert sum(p.startswith("data/nightly-") for p in hub.repos["you/results"].files) == 2


@pytest.mark.parametrize(("repo", "split"), [("nightly", "nightly"), ("you/results", "ni-ght/ly")])
def test_a_name_that_is_none_is_refused(repo: str, split: str) -> None:
    with pytest.raises(InputError, match="name no dataset and split"):
        push_table([{}], repo, split=split, private=True)
