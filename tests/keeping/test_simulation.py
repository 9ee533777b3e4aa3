"""Simulation: views, files, figures and what it says of itself."""

from __future__ import annotations

import json
from array import array

import pytest

from whilesim.chat.messages import Failure, Message
from whilesim.core.errors import InputError, RunError
from whilesim.keeping import folders
from whilesim.keeping.folders import RowFile
from whilesim.keeping.loading import concat, load
from whilesim.keeping.manifest import Manifest, join_manifests
from whilesim.keeping.simulation import Simulation
from whilesim.situations.axes import Axis
from whilesim.situations.policy import Clause, Policy


@pytest.fixture
def data(make):
    rows = [
        make.row(
            card=f"s{i:02}",
            rollout=r,
            findings=[make.finding()] if (i + r) % 3 == 0 else [],
            values={"stance": ["upset", "hurried"][i % 2]},
        )
        for i in range(4)
        for r in range(2)
    ]
    rows.append(
        make.row(card="s04", stop="agent_error", failure=Failure(role="agent", reason="timeout", message="slow"))
    )
    return Simulation(rows, Manifest(counts={"planned": 10}, seed=3, axes={"stance": ["upset", "hurried"]}))


def test_before_grading_kept_and_dropped_are_refused_and_the_rest_is_known(data):
    for view in ("kept", "dropped", "pass_at"):
        with pytest.raises(RunError, match=rf"data\.{view} is\. Type data\.grade\(\) first"):
            getattr(data, view)
    assert len(data.unjudged) == 8
    assert [row.id for row in data.failed] == ["s04/r0"]
    assert repr(data).startswith("Simulation of 10 rows: 8 played, 2 failed, not graded yet (data.grade())")


def test_the_four_views_are_disjoint_and_whole(data):
    data.grade()
    views = [data.kept, data.dropped, data.failed, data.unjudged]
    assert sorted(row.id for view in views for row in view) == sorted(row.id for row in data)
    assert [len(v) for v in views] == [5, 3, 1, 0]
    assert data.kept.ledger.planned == data.kept.ledger.kept == 5
    assert repr(data) == (
        "Simulation of 10 rows: 5 kept, 3 dropped, 2 failed, 0 unjudged\n"
        "  dropped: 3 check:refusal\n"
        "  failed: 1 agent:timeout, 1 not_played\n"
        "  s00/r0 dropped: 'Cancel W2210 please' > cancel_order > 'You are welcome.'\n"
        "  s00/r1 kept: 'Cancel W2210 please' > cancel_order > 'You are welcome.'\n"
        "  s01/r0 kept: 'Cancel W2210 please' > cancel_order > 'You are welcome.'"
    )
    assert "<pre>Simulation of 10 rows" in data._repr_html_()
    assert data._repr_html_().count("<details") == 3
    assert data.kept.kept.rows == data.kept.rows
    assert len(data.kept.dropped) == 0


def test_when_all_failed_the_causes_are_told(make):
    failure = Failure(role="agent", reason="auth", message="the key was refused by <host>")
    rows = [make.row(rollout=i, stop="agent_error", failure=failure) for i in range(3)]
    data = Simulation(rows)
    assert "3 times: the key was refused by <host>" in repr(data)
    assert "&lt;host&gt;" in data._repr_html_()
    assert "of 0 rows" in repr(Simulation([]))


def test_saved_and_loaded_it_is_the_same(data, tmp_path):
    data.grade()
    data.save(tmp_path / "run")
    again = load(tmp_path / "run")
    assert list(again.rows) == list(data.rows)
    assert again.manifest == data.manifest
    assert repr(again) == repr(data)
    assert str(again.pass_at) == str(data.pass_at)
    first = (tmp_path / "run" / "rows.jsonl").read_bytes()
    again.save(tmp_path / "run")
    assert (tmp_path / "run" / "rows.jsonl").read_bytes() == first
    assert all(json.loads(line)["verdict"] is None for line in first.splitlines())


def test_a_saved_part_knows_the_ledger_of_the_whole(data, tmp_path):
    data.grade()
    data.kept.save(tmp_path)
    part = load(tmp_path)
    assert part.ledger.planned == 5
    assert part.manifest.record["ledger"]["planned"] == 10
    assert part.grade().manifest.record == {}
    assert (part.ledger.planned, part.ledger.failed) == (5, 0)


def test_rows_of_a_large_file_are_read_when_they_are_looked_at(data, tmp_path, monkeypatch):
    data.grade()
    data.save(tmp_path)
    small = load(tmp_path)
    monkeypatch.setattr(folders, "WHOLE", 0)
    large = load(tmp_path)
    assert isinstance(large.rows, RowFile)
    assert large.rows.offsets[0] == 0
    assert list(large.rows) == list(small.rows)
    assert list(large.rows[2:4]) == list(small.rows[2:4])
    assert large.rows[-1] == small.rows[-1]
    assert isinstance(large.kept.rows, RowFile)
    assert list(large.kept.rows) == list(small.kept.rows)
    assert large.ledger == small.ledger
    assert str(large.pass_at) == str(small.pass_at)
    assert large.report(tmp_path / "a.html").read_bytes() == small.report(tmp_path / "b.html").read_bytes()
    first, second = large.rows[:2]
    assert first.tools is second.tools
    large.grade(severity={"refusal": "warn"})
    assert len(large.kept) == 8
    assert len(load(tmp_path).kept) == 8


def test_a_torn_last_line_is_no_row_and_a_broken_one_is_named(data, tmp_path):
    data.save(tmp_path)
    path = tmp_path / "rows.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"version": 1, "id": "s0')
    assert len(load(tmp_path)) == 9
    lines = whole.splitlines(keepends=True)
    path.write_bytes(lines[0] + b"{}\n")
    with pytest.raises(InputError, match=r"rows\.jsonl, line 2 cannot be read: a row has version None"):
        load(tmp_path)
    path.write_bytes(b"oops\n")
    with pytest.raises(InputError, match=r"rows\.jsonl, line 1 cannot be read"):
        load(tmp_path)


def test_what_is_no_run_is_refused_in_words(tmp_path):
    with pytest.raises(InputError, match="holds no rows: no conversation of a run has ended there"):
        load(tmp_path)
    with pytest.raises(InputError, match=r"there is no folder '\./nowhere'"):
        load("./nowhere")


def test_an_empty_view_that_was_saved_is_loaded(data, tmp_path):
    data.filter(lambda _: False).save(tmp_path)
    assert len(load(tmp_path)) == 0


def test_passes_count_the_first_wave_without_spoiled_failed_and_unjudged_rows(make):
    spoiled = make.finding("broke_persona")
    rows = [
        *[make.row(card="s1", rollout=i, verdict=i < 2) for i in range(4)],
        make.row(card="s1", rollout=4, verdict=False, findings=[spoiled]),
        make.row(card="s1", rollout=5, stop="budget"),
        make.row(card="s1", rollout=6),
        make.row(card="s2", rollout=0, verdict=True),
        make.row(card="s3", rollout=0, verdict=True, wave=1),
    ]
    found = Simulation(rows).pass_at
    assert found.at[1].value == pytest.approx((0.5 + 1) / 2)
    assert found.at[2].value == pytest.approx(1 - 1 / 6)
    assert found.hat[2].value == pytest.approx(1 / 6)
    assert found.left_out[2] == 1
    assert str(found).startswith("pass@1 0.75 [")


def test_hand_offs_are_counted_by_want(make):
    from whilesim.world.oracle import Oracle

    over = make.talk(make.call("transfer_to_human", "{}"), Message(role="tool", content="ok", tool_call_id="call_1"))
    rows = [
        make.row(messages=over, oracle=Oracle(handoff_wanted=True)),
        make.row(messages=over, oracle=Oracle(handoff_wanted=False)),
        make.row(oracle=Oracle(handoff_wanted=True)),
        make.row(oracle=None),
        make.row(messages=over, stop="deadline"),
    ]
    table = Simulation(rows).handoffs
    assert {k: n for k, n in table.counts.items() if n} == {
        (True, True): 1,
        (False, True): 1,
        (True, False): 1,
        (None, False): 1,
    }
    assert table.early == 1


def test_filters_and_samples_are_parts(data):
    data.grade()
    assert {row.situation["stance"] for row in data.filter(stance="upset")} == {"upset"}
    assert len(data.filter(lambda row: row.rollout == 1, stance="upset")) == 2
    with pytest.raises(InputError, match="no axis 'mood'"):
        data.filter(mood="bad")
    some = data.sample(4, seed=1)
    assert [row.id for row in some] == [row.id for row in data if row.id in {r.id for r in some}]
    assert [r.id for r in some] == [r.id for r in data.sample(4, seed=1)]
    assert len({tuple(r.id for r in data.sample(4, seed=s)) for s in range(8)}) > 1
    with pytest.raises(InputError, match="n=10 is no sample of 9 rows"):
        data.sample(10)


def test_joined_shards_are_the_whole_run(data):
    parts = [Simulation(data.rows[:5], data.manifest), Simulation(data.rows[5:], data.manifest)]
    joined = concat(parts)
    assert joined.rows == tuple(data.rows)
    assert joined.manifest.counts["planned"] == 20
    with pytest.raises(InputError, match=r"row 's00/r0' stands in two simulations"):
        concat([data, data])
    with pytest.raises(InputError, match="at least one"):
        concat([])


def test_joined_views_are_graded_and_plan_no_more_than_they_hold(data, tmp_path):
    data.grade()
    joined = concat([data.dropped, data.kept])
    assert (joined.ledger.planned, joined.ledger.kept, joined.ledger.dropped) == (8, 5, 3)
    joined.save(tmp_path)
    assert list(load(tmp_path).rows) == list(joined.rows)


def test_joining_runs_that_differ_is_noted():
    joined = join_manifests([Manifest(seed=1, counts={"planned": 2}), Manifest(seed=2, counts={"planned": 3})])
    assert joined.counts == {"planned": 5}
    assert joined.notes == ["joined from 2 runs that differ in seed"]


def test_explaining_a_row_tells_all_that_is_known_of_it(data):
    data.grade()
    told = data.explain("s00/r0")
    for words in ("dropped, stopped by customer_done, seed 7", "stance=upset", "card goal: Cancel order W2210",
                  'calls cancel_order({"order_id": "W2210"})', "change order W2210: status 'open' -> 'cancelled'",
                  "drop refusal at [4] 'cancelled': It is wrong.", "verdict: dropped by check:refusal, reward 0.0",
                  "agent: scripted"):  # fmt: skip
        assert words in told
    assert "failed: agent, timeout: slow" in data.explain("s04/r0")
    with pytest.raises(InputError, match=r"no row 's99/r0' here\. Ids look like 's00/r0'"):
        data.explain("s99/r0")


def test_a_manifest_gives_back_policy_axes_and_pairs(tmp_path):
    clause = Clause(id="c01", text="Be kind.", tools=("get_order",), span=(0, 8))
    policy = Policy(text="Be kind.", clauses=(clause,))
    axes = (Axis("a", ("x", "y")), Axis("b", ("u", "v")))
    made = Manifest.describe(
        policy=policy, tools=(), axes=axes, infeasible=[(("a", "x"), ("b", "u"))], fingerprint={"seed": 5}
    )
    made.write(tmp_path / "manifest.json")
    read = Manifest.read(tmp_path / "manifest.json")
    assert read == made
    assert read.policy("Be kind.") == policy
    assert read.feasible() == {(("a", u), ("b", v)) for u in "xy" for v in "uv"} - {(("a", "x"), ("b", "u"))}
    (tmp_path / "manifest.json").write_text('{"version": 1, "colour": "red"}', encoding="utf-8")
    with pytest.raises(InputError, match=r"manifest\.json cannot be read: colour: Extra inputs"):
        Manifest.read(tmp_path / "manifest.json")
    (tmp_path / "manifest.json").write_text("{", encoding="utf-8")
    with pytest.raises(InputError, match=r"manifest\.json is not JSON"):
        Manifest.read(tmp_path / "manifest.json")


def test_a_large_file_is_saved_as_it_stands_and_never_replaced_by_a_part_of_it(data, tmp_path, monkeypatch):
    data.grade()
    data.save(tmp_path / "a")
    monkeypatch.setattr(folders, "WHOLE", 0)
    large = load(tmp_path / "a")
    large.save(tmp_path / "a")
    large.save(tmp_path / "b")
    for name in ("rows.jsonl", "verdicts.jsonl"):
        assert (tmp_path / "b" / name).read_bytes() == (tmp_path / "a" / name).read_bytes()
    large.kept.save(tmp_path / "kept")
    assert list(load(tmp_path / "kept").rows) == list(data.kept.rows)
    with pytest.raises(InputError, match=r"holds more rows than these 3, which are read from it\. Type another folder"):
        large.sample(3).save(tmp_path / "a")
    assert len(load(tmp_path / "a")) == len(data)


@pytest.mark.parametrize("line", [b'{"version": 1, "id": "s0\n', b'{"version": 2}\n', b"[]\n"])
def test_a_torn_line_of_a_large_file_is_named_and_nothing_is_saved(data, tmp_path, monkeypatch, line):
    data.save(tmp_path / "run")
    path = tmp_path / "run" / "rows.jsonl"
    first, second, *others = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([first, b"\n", second, line, *others]))
    monkeypatch.setattr(folders, "WHOLE", 0)
    torn = load(tmp_path / "run")
    for use in (lambda: list(torn.rows), lambda: torn.save(tmp_path / "other"), lambda: torn.export(tmp_path / "x")):
        with pytest.raises(InputError, match=r"rows\.jsonl, line 4 cannot be read"):
            use()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run"]


def test_offsets_are_kept_small(data, tmp_path):
    data.save(tmp_path)
    assert isinstance(RowFile.open(tmp_path / "rows.jsonl").offsets, array)


def test_calls_are_filtered_by_pattern_in_their_order(make):
    def row(card, *calls, failed=()):
        talk = []
        for n, name in enumerate(calls):
            talk += [make.call(name, "{}", f"c{n}"), Message(role="tool", content="{}", tool_call_id=f"c{n}")]
        return make.row(card=card, messages=make.talk(*talk), failed_calls=tuple(f"c{n}" for n in failed))

    data = Simulation([
        row("s1", "find_name", "find_phone", "get_order", "transfer_to_human", failed=(0, 1)),
        row("s2", "find_name", "find_phone", "transfer_to_human", failed=(0,)),
        row("s3", "transfer_to_human", "find_name", "find_name", failed=(1, 2)),
        row("s4"),
    ])  # fmt: skip
    assert [r.card_id for r in data.filter(calls=["find_*:error", "find_*:error", "transfer_*"])] == ["s1"]
    assert [r.card_id for r in data.filter(calls=["find_*:error", "find_*:ok"])] == ["s2"]
    assert [r.card_id for r in data.filter(calls=["*", "find_*"])] == ["s1", "s2", "s3"]
    assert len(data.filter(calls=[])) == 4
    with pytest.raises(InputError, match=r"'find_\*:bad': a call went ok or error, not 'bad'"):
        data.filter(calls=["find_*:bad"])


def test_messages_are_explained_whole_or_cut(make):
    long = "word " * 200 + "end"
    data = Simulation([make.row(messages=make.talk(Message(role="assistant", content=long)))])
    assert long in data.explain("s001/r0")
    assert "end" not in data.explain("s001/r0", limit=80)
    assert "…" in data.explain("s001/r0", limit=80)


def test_a_split_gives_simulations_and_an_axis_its_shares(data):
    parts = data.split({"train": 0.5, "test": 0.5}, by="stance")
    assert sorted(row.id for part in parts.values() for row in part) == sorted(row.id for row in data)
    assert list(parts) == ["train", "test"]


def test_rows_that_come_later_are_in_the_folder_at_once(data, make, tmp_path):
    data.grade().save(tmp_path)
    rows, manifest = list(data.rows), data.manifest
    live = Simulation(rows, manifest, folder=tmp_path)
    live.extend([make.row(card="w1s0001", wave=1)])
    again = load(tmp_path)
    assert [row.id for row in again.rows] == [*(row.id for row in rows), "w1s0001/r0"]
    assert again.manifest.counts["planned"] == live.manifest.counts["planned"] == 11
