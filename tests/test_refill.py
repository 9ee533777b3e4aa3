"""Refilling: what the kept rows lack is played again, and what cannot be had is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import whilesim as ws
from whilesim.showcase import demo_policy, demo_tools

POLICY, TOOLS = demo_policy(), demo_tools()


def run(agent: Any = "scripted") -> ws.Simulation:
    return ws.simulate(agent, tools=TOOLS, system_prompt=POLICY, situations=12, rollouts=1, progress=False).grade()


def test_refilled_rows_hold_pairs_that_were_missing() -> None:
    data = run()
    before, passed = data.certificate, str(data.pass_at)
    data.refill(rows=20)
    assert data.certificate.kept > before.kept
    assert len(data.rows) == 32
    assert {row.wave for row in data.rows} == {0, 1}
    ledger = data.ledger
    assert ledger.planned == ledger.kept + ledger.dropped + ledger.failed + ledger.unjudged == 32
    assert str(data.pass_at) == passed


def test_it_goes_on_until_as_many_are_kept_as_were_asked_for() -> None:
    data = run()
    wanted, planned = len(data.kept.rows) + 10, len(data.rows)
    assert wanted <= len(data.refill(kept=wanted).kept.rows) < wanted + 5
    assert len(data.rows) < planned + 20


def test_an_agent_that_only_refuses_ends_with_a_certificate_that_says_so() -> None:
    data = run(lambda messages: {"tool_calls": [{"id": "x", "function": {"name": "nothing", "arguments": "{"}}]})
    data.refill(kept=5, rows=6)
    assert len(data.kept.rows) == 0
    assert data.certificate.kept == 0
    assert "asked for 5 kept rows, kept 0" in " ".join(data.manifest.notes)


def test_loaded_rows_cannot_be_refilled(tmp_path: Any) -> None:
    run().save(tmp_path)
    with pytest.raises(ws.RunError, match="loaded"):
        ws.load(tmp_path).refill()


def test_refilled_rows_are_in_the_folder_and_the_same_call_goes_on_with_them(tmp_path: Any) -> None:
    def begin() -> ws.Simulation:
        how: dict[str, Any] = {"situations": 12, "rollouts": 1, "progress": False, "run_dir": tmp_path}
        return ws.simulate(tools=TOOLS, system_prompt=POLICY, **how).grade()

    data = begin().refill(rows=5)
    ids = [row.id for row in data.rows]
    assert len(ids) == 17
    assert [row.id for row in ws.load(tmp_path).rows] == ids
    again = begin()
    assert list(again.rows) == list(data.rows)
    assert again.certificate == data.certificate


@pytest.mark.parametrize("room", [0, 30_000])
def test_a_disk_that_takes_no_more_leaves_the_rows_in_memory_and_the_file_whole(tmp_path: Any, room: int) -> None:
    resource = pytest.importorskip("resource")  # Windows has no limit to set
    how: dict[str, Any] = {"situations": 12, "rollouts": 1, "progress": False, "run_dir": tmp_path}
    data = ws.simulate(tools=TOOLS, system_prompt=POLICY, **how).grade()
    path, limits = tmp_path / "rows.jsonl", resource.getrlimit(resource.RLIMIT_FSIZE)
    before = path.read_bytes()
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + room, limits[1]))
    try:
        with pytest.raises(ws.RunError, match=rf"in memory only, .*Make room and type data\.save\('{tmp_path}'\)"):
            data.refill(rows=5)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == before
    assert (len(data.rows), data.ledger.planned, data.ledger.unjudged) == (17, 17, 5)
    data.save(tmp_path)
    assert list(ws.load(tmp_path).rows) == list(data.rows)
    assert len(data.refill(rows=3).rows) == len(ws.load(tmp_path).rows) == 20


def test_a_shard_without_rows_can_be_refilled() -> None:
    empty = ws.plan(tools=TOOLS, system_prompt=POLICY, situations=2).shard(0, 100)
    data = ws.simulate(plan=empty, progress=False).grade()
    assert len(data.rows) == 0
    assert len(data.refill(kept=1, rows=4).rows) > 0


def test_what_could_not_be_had_stands_in_the_folder(tmp_path: Any) -> None:
    refusing: Any = lambda messages: "I cannot."  # noqa: E731
    how: dict[str, Any] = {"situations": 4, "rollouts": 1, "progress": False, "run_dir": tmp_path}
    data = ws.simulate(refusing, tools=TOOLS, system_prompt=POLICY, **how).grade().refill(kept=50, rows=2)
    assert "asked for 50 kept rows" in " ".join(data.manifest.notes)
    assert ws.load(tmp_path).manifest.notes == data.manifest.notes


def test_a_rubric_that_nobody_reads_is_told_once_and_not_again_by_each_wave() -> None:
    data = ws.simulate(tools=TOOLS, system_prompt=POLICY, situations=12, rollouts=1, progress=False).grade()
    with pytest.warns(UserWarning, match="a rubric is read by a judge") as told:
        data.grade(rubric=["Is kind."]).refill(rows=70)
    assert max(row.wave for row in data.rows) > 1
    assert [Path(each.filename).name for each in told] == [Path(__file__).name]
