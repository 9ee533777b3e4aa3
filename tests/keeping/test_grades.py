"""Grades: findings and oracle first, then the judge; what cannot be read stays unjudged."""

from __future__ import annotations

import json
import warnings

import pytest

from whilesim.chat.messages import Message
from whilesim.chat.models import Model, Reply
from whilesim.chat.usage import Usage
from whilesim.core.errors import InputError, JudgeError, ModelError, RunError
from whilesim.keeping.judging import choose_judge
from whilesim.keeping.loading import load
from whilesim.keeping.manifest import Manifest
from whilesim.keeping.simulation import Simulation

RUBRIC = {"policy": "Follows the policy.", "manners": "Is polite."}


class FakeJudge:
    """Answers by the case; counts what it was asked."""

    name = "fake-judge"

    def __init__(self, answers=None, keep=True):
        self.answers, self.keep, self.asked = answers or {}, keep, []

    async def reply(self, messages, tools=(), *, schema=None, key=None):
        self.asked.append(f"{key.case}/r{key.rollout}")
        answer = self.answers.get(f"{key.case}/r{key.rollout}")
        if isinstance(answer, Exception):
            raise answer
        if answer is None:
            scores = {name: {"score": 0.5, "reason": "so so"} for name in RUBRIC}
            answer = json.dumps({"scores": scores, "reason": "fine", "keep": self.keep})
        return Reply(message=Message(role="assistant", content=answer), usage=Usage(calls=1, tokens_in=5, usd=0.01))


@pytest.fixture
def data(make):
    rows = [make.row(card=f"s{i:02}", findings=[make.finding()] if i == 0 else []) for i in range(6)]
    rows.append(make.row(card="s90", stop="deadline"))
    return Simulation(rows, Manifest(counts={"planned": 7}))


def test_the_judge_reads_every_survivor_and_nothing_else(data):
    judge = FakeJudge(keep=False)
    assert data.grade(RUBRIC, judge=judge) is data
    assert sorted(judge.asked) == [f"s{i:02}/r0" for i in range(1, 6)]
    ledger = data.ledger
    assert (ledger.dropped, ledger.failed, ledger.kept, ledger.unjudged) == (6, 1, 0, 0)
    assert ledger.reasons["dropped"] == {"judge": 5, "check:refusal": 1}
    assert ledger.usage["judge"] == Usage(calls=5, tokens_in=25, usd=0.05)
    verdict = data.find("s01/r0").verdict
    assert (verdict.reward, verdict.reason, verdict.scores["manners"].score) == (0.5, "fine", 0.5)
    assert verdict.judge.startswith("fake-judge@")


def test_an_oracle_violation_drops_without_a_call(make):
    never = make.row(messages=make.talk(Message(role="assistant", content="Hello.")))
    judge = FakeJudge()
    graded = Simulation([never]).grade(RUBRIC, judge=judge)
    assert judge.asked == []
    assert graded.rows[0].verdict.rule.startswith("oracle:must_call")
    assert graded.rows[0].verdict.reward == 0.0


def test_without_a_judge_survivors_are_kept_unopposed(data):
    data.grade()
    assert data.ledger.reasons["kept"] == {"unopposed": 5}
    assert {row.verdict.judge for row in data.kept} == {None}


def test_an_unreadable_answer_leaves_the_row_unjudged_with_its_words(data, tmp_path):
    data.save(tmp_path)
    run = load(tmp_path)
    run.grade(RUBRIC, judge=FakeJudge({"s02/r0": "I like it!", "s03/r0": ModelError("busy", reason="server")}))
    assert [row.id for row in run.unjudged] == ["s02/r0", "s03/r0"]
    assert run.ledger.reasons["unjudged"] == {"judge failed: server": 1, "judge unreadable": 1}
    lines = {v["id"]: v for v in map(json.loads, (tmp_path / "verdicts.jsonl").read_text("utf-8").splitlines())}
    assert list(lines) == [row.id for row in run.rows if row.state != "failed"]
    assert lines["s02/r0"]["raw"] == "I like it!"
    assert lines["s02/r0"]["verdict"] is None
    assert "I like it!" in run.explain("s02/r0")
    again = load(tmp_path)
    assert list(again.rows) == list(run.rows)
    assert again.ledger == run.ledger


def test_grading_again_asks_only_about_the_rows_this_judge_has_not_read(data, tmp_path):
    data.save(tmp_path)
    load(tmp_path).grade(RUBRIC, judge=FakeJudge({"s02/r0": "hm"}))
    second = FakeJudge()
    run = load(tmp_path).grade(RUBRIC, judge=second)
    assert second.asked == ["s02/r0"]
    assert run.ledger.usage["judge"].calls == 7
    other = FakeJudge()
    run.grade({"honesty": "Tells the truth."}, judge=other)
    assert len(set(other.asked)) == 5


@pytest.mark.parametrize("loaded", [False, True])
def test_a_judge_that_read_the_rows_before_another_did_is_not_paid_twice(data, tmp_path, loaded):
    first, second = FakeJudge(), FakeJudge(keep=False)
    second.name = "other-judge"
    data.save(tmp_path)
    run = load(tmp_path)
    run.grade(RUBRIC, judge=first)
    before = list(run.rows)
    run.grade(RUBRIC, judge=second)
    assert run.ledger.kept == 0
    run.grade()  # no judge at all: what was paid for is not thrown away either
    run = load(tmp_path) if loaded else run
    run.grade(RUBRIC, judge=first)
    assert (len(first.asked), len(second.asked)) == (5, 5)
    assert [r.verdict for r in run.rows] == [r.verdict for r in before]
    assert run.ledger.usage["judge"].calls == 10  # both stay on the bill
    run.grade({**RUBRIC, "policy": "Follows it."}, judge=second)  # another rubric is another question
    assert len(second.asked) == 10
    assert [len(g.earlier) for g in run.grades.values() if g.id != "s00/r0"] == [2] * 5


def test_what_was_judged_before_a_stop_is_not_paid_for_again(data, tmp_path):
    data.save(tmp_path)
    with pytest.raises(ModelError, match="no key"):
        load(tmp_path).grade(RUBRIC, judge=FakeJudge({"s05/r0": ModelError("no key", reason="auth")}))
    paid = FakeJudge()
    load(tmp_path).grade(RUBRIC, judge=paid)
    assert paid.asked == ["s05/r0"]


@pytest.mark.parametrize("folder", [True, False])
def test_what_was_judged_before_a_stop_is_not_paid_for_again_by_the_same_process(data, tmp_path, folder):
    data.save(tmp_path)
    run, first = load(tmp_path) if folder else data, FakeJudge({"s05/r0": ModelError("no key", reason="auth")})
    with pytest.raises(ModelError, match="no key"):
        run.grade(RUBRIC, judge=first)
    assert (run.graded, run.ledger.unjudged) == (False, 6)  # half a judgement is none
    paid = FakeJudge()
    assert run.grade(RUBRIC, judge=paid).ledger.kept == 5
    assert paid.asked == ["s05/r0"]


def test_a_torn_line_of_a_killed_process_spoils_no_later_one(data, tmp_path):
    data.save(tmp_path)
    path = tmp_path / "verdicts.jsonl"
    load(tmp_path).grade(RUBRIC, judge=FakeJudge())
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[1] + lines[2][:40])
    with pytest.raises(ModelError, match="no key"):
        load(tmp_path).grade(RUBRIC, judge=FakeJudge({"s05/r0": ModelError("no key", reason="auth")}))
    judge = FakeJudge()
    load(tmp_path).grade(RUBRIC, judge=judge)
    assert judge.asked == ["s05/r0"]
    assert path.read_bytes() == b"".join(lines)


def test_a_judge_of_the_users_own_is_left_open(data):
    judge = FakeJudge()
    judge.close = None  # calling it would raise
    assert data.grade(RUBRIC, judge=judge).ledger.kept == 5


def test_a_judge_that_is_never_readable_stops_with_one_answer(make):
    rows = [make.row(card=f"s{i:02}") for i in range(30)]
    judge = FakeJudge({row.id: "As a language model..." for row in rows})
    data = Simulation(rows)
    with pytest.raises(JudgeError, match=r"no verdict on its first 10 rows.*'As a language model\.\.\.'.*judge=\.\.\."):
        data.grade(RUBRIC, judge=judge)
    assert len(set(judge.asked)) == 10
    with pytest.raises(RunError, match=r"Type data\.grade\(\) first"):
        _ = data.kept


@pytest.mark.parametrize(("fraction", "read"), [(0.0, 0), (0.5, 3), (0.25, 2), (1.0, 5)])
def test_a_fraction_of_the_survivors_is_read_and_the_others_stay_unjudged(data, fraction, read):
    judge = FakeJudge()
    data.grade(RUBRIC, judge=judge, fraction=fraction)
    assert len(judge.asked) == read
    assert data.ledger.kept == read
    assert data.ledger.reasons["unjudged"] == ({"not in the fraction": 5 - read} if read < 5 else {})


def test_severities_turn_drops_into_warnings_and_warnings_into_drops(make):
    rows = [
        make.row(findings=[make.finding(severity="drop")]),
        make.row(card="s2", findings=[make.finding("truncated", severity="warn")]),
    ]
    data = Simulation(rows).grade(severity={"refusal": "warn", "truncated": "drop"})
    assert [row.state for row in data.rows] == ["kept", "dropped"]
    assert [row.findings[0].severity for row in data.rows] == ["warn", "drop"]
    data.grade(severity={"refusal": "ignore"})
    assert [len(row.findings) for row in data.rows] == [0, 1]
    data.grade()
    assert [(row.state, row.findings[0].severity) for row in data.rows] == [("dropped", "drop"), ("kept", "warn")]
    with pytest.raises(InputError, match=r"severity has .'refusal': 'loud'.*drop, warn or ignore"):
        data.grade(severity={"refusal": "loud"})
    with pytest.raises(InputError, match="fraction is 2"):
        data.grade(fraction=2)


def test_the_customers_model_judges_else_the_agents_and_scripts_do_not():
    assert choose_judge({"agent": "openai:a", "customer": "openai:b"}, {}) == "openai:b"
    assert choose_judge({"agent": "openai:a", "customer": "openai:a"}, {}) == "openai:a"
    assert choose_judge({"agent": "openai:a", "customer": "scripted"}, {}) == "openai:a"
    assert choose_judge({"agent": print, "customer": "scripted"}, {}) is None
    assert choose_judge({"agent": "function:reply", "customer": "scripted"}, {}) is None
    assert choose_judge({}, {}) is None


def test_a_model_of_which_only_the_name_is_left_is_not_asked_at_its_provider():
    where_is_it = {"agent": {"name": "openai:a", "temperature": 0.7}}
    with pytest.raises(InputError, match=r"'openai:a' played these rows.*could go to the wrong host.*--base-url"):
        choose_judge({"agent": "openai:a", "customer": "scripted"}, where_is_it)
    both = {"agent": Model("openai:a", temperature=0.2), "customer": "openai:a"}
    assert choose_judge(both, where_is_it | {"customer": "openai:a"}) == "openai:a"  # the customer was given by name
    model = Model("openai:a", base_url="http://127.0.0.1:9/v1")
    assert choose_judge({"agent": model, "customer": "scripted"}, where_is_it) is model


def test_judging_its_own_words_warns_once(data):
    judge = FakeJudge()
    data.players = {"agent": judge, "customer": judge}
    with pytest.warns(UserWarning, match="fake-judge judges its own conversations"):
        data.grade(RUBRIC)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data.grade(RUBRIC)


def test_a_judge_that_nobody_admitted_can_be_refused(data):
    with pytest.raises(RunError, match=r"'fake-judge@.*' has not been admitted.*data\.trust\(labels\)"):
        data.grade(RUBRIC, judge=FakeJudge(), require_admitted=True)


def test_calls_that_a_world_does_not_speak_of_are_guessed_from_their_replies(make):
    said = make.talk(
        make.call("cancel_order", '{"order_id": "W1"}'),
        Message(role="tool", content='{"error": "not allowed"}', tool_call_id="call_1"),
        Message(role="assistant", content="I am sorry, this failed."),
    )
    assert make.row(messages=said, failed_calls=None).failed_calls == ["call_1"]
    assert make.row(messages=said, failed_calls=()).failed_calls == []


def test_more_of_the_survivors_can_be_read_later(data):
    first, second = FakeJudge(), FakeJudge()
    data.grade(RUBRIC, judge=first, fraction=0.5).grade(RUBRIC, judge=second)
    assert sorted(first.asked + second.asked) == [f"s{i:02}/r0" for i in range(1, 6)]
    third = FakeJudge()
    data.grade(RUBRIC, judge=third, fraction=0.2)
    assert third.asked == []
    assert data.ledger.kept == 5


def test_a_judge_is_admitted_by_labels_and_then_may_be_required(make, tmp_path):
    rows = [make.row(card=f"s{i:02}") for i in range(30)]
    Simulation(rows).save(tmp_path)
    data = load(tmp_path)
    sure = FakeJudge()
    sure.reply = _by_card(sure)
    data.grade(RUBRIC, judge=sure)
    labels = {row.id: row.verdict.keep for row in data.rows}
    report = data.trust(labels, rubric=RUBRIC, judge=sure)
    assert report.admitted, report
    assert report.kappa.value == 1
    assert load(tmp_path).manifest.admitted == [data.rows[0].verdict.judge]
    load(tmp_path).grade(RUBRIC, judge=sure, require_admitted=True)
    with pytest.raises(InputError, match="has read none of the labelled rows"):
        data.trust(labels, rubric={"other": "Is short."}, judge=sure)
    with pytest.raises(InputError, match="'s99/r0', and no such row"):
        data.trust({"s99/r0": True}, rubric=RUBRIC, judge=sure)


def _by_card(judge):
    async def reply(messages, tools=(), *, schema=None, key=None):
        judge.keep = int(key.case[1:]) % 2 == 0
        return await FakeJudge.reply(judge, messages, key=key)

    return reply


def test_rows_that_were_loaded_cannot_be_refilled(data):
    with pytest.raises(RunError, match=r"what data\.refill is\. Type data\.grade"):
        data.refill()
    with pytest.raises(RunError, match="nobody here can play more"):
        data.grade().refill()


def test_a_simulation_is_refilled_and_graded_the_same_way(make):
    def play(data, rows, kept):
        data.extend(make.row(card=f"w{i}", wave=1) for i in range(rows))
        return data.grade(**data.asked)

    judge = FakeJudge()
    data = Simulation([make.row()], Manifest(counts={"planned": 2}), refiller=play).grade(RUBRIC, judge=judge)
    assert data.refill(rows=3) is data
    assert sorted(judge.asked) == ["s001/r0", "w0/r0", "w1/r0", "w2/r0"]
    assert (data.ledger.planned, data.ledger.kept, data.ledger.failed) == (5, 4, 1)
    assert data.pass_at.left_out[1] == 0


def test_a_rubric_that_nobody_reads_is_not_passed_over_in_silence(make):
    with pytest.warns(UserWarning, match="a rubric is read by a judge, and there is none"):
        data = Simulation([make.row()]).grade(rubric=RUBRIC)
    assert data.kept.rows[0].verdict.rule == "unopposed"
