"""Many conversations at once, bounded."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from stub import HANG, RESET, Stub, refuse
from virtual import virtual_time

from whilesim.chat.endpoint import Endpoint
from whilesim.chat.failures import CallFailed
from whilesim.chat.loop import run
from whilesim.chat.messages import Message
from whilesim.chat.models import CallKey, Model
from whilesim.chat.replies import Replies
from whilesim.chat.throttle import Budget, Throttle
from whilesim.conversations import engine
from whilesim.conversations.engine import run_jobs
from whilesim.conversations.journal import Journal
from whilesim.core.errors import InputError, ModelError, RunError


@dataclass(frozen=True)
class Job:
    id: str


def jobs(count):
    return [Job(f"j{i}") for i in range(count)]


def play(work, count=10, **options):
    journal = options.pop("journal", None) or Journal(None)
    options.setdefault("throttle", Throttle(concurrency=options.pop("concurrency", 64)))
    return run(run_jobs(jobs(count), work, journal=journal, **options)), journal


async def quickly(job):
    await asyncio.sleep(0)
    return {"id": job.id}


def test_every_job_has_one_row():
    summary, journal = play(quickly, 50, concurrency=7)
    assert sorted(journal.ids) == sorted(j.id for j in jobs(50))
    assert (summary.played, summary.failed, summary.clean, summary.unplayed, summary.ending) == (50, 0, 50, 0, "done")


def test_no_jobs_are_a_result():
    summary, _ = play(quickly, 0)
    assert (summary.played, summary.ending) == (0, "done")


def test_no_more_than_the_concurrency_is_under_way():
    busy, most = 0, 0

    async def work(job):
        nonlocal busy, most
        busy += 1
        most = max(most, busy)
        await asyncio.sleep(0.001)
        busy -= 1
        return {"id": job.id}

    play(work, 40, concurrency=5)
    assert most == 5


def test_finished_jobs_are_not_played_again(tmp_path):
    with Journal(tmp_path) as journal:
        play(quickly, 6, journal=journal)
    played = []

    async def work(job):
        played.append(job.id)
        return {"id": job.id}

    with Journal(tmp_path) as journal:
        summary, _ = play(work, 8, journal=journal)
    assert played == ["j6", "j7"]
    assert (summary.kept, summary.played) == (6, 2)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ModelError("slow", reason="timeout"), "timeout"),
        (ZeroDivisionError("by zero"), "player"),
    ],
)
def test_a_job_that_raises_is_a_row_with_a_reason_and_the_others_go_on(error, reason, caplog):
    async def work(job):
        if job.id == "j1":
            raise error
        return {"id": job.id}

    summary, journal = play(work, 3)
    assert (summary.played, summary.failed, summary.clean) == (3, 1, 2)
    assert journal.read("j1")["failure"]["reason"] == reason
    assert str(error) in journal.read("j1")["failure"]["message"]


def test_an_error_about_the_whole_run_reaches_the_caller():
    async def work(job):
        if job.id == "j3":
            raise InputError("the price is unknown")
        await asyncio.sleep(60)

    with pytest.raises(InputError, match="the price is unknown"):
        play(work, 10)


def test_a_job_that_hangs_is_named_and_ends_at_the_deadline():
    async def work(job):
        await asyncio.sleep(60 if job.id == "j2" else 0)
        return {"id": job.id}

    summary, journal = play(work, 4, throttle=Throttle(deadline=0.2))
    assert (summary.played, summary.failed) == (4, 1)
    assert journal.read("j2")["failure"]["reason"] == "deadline"
    assert "took longer than its 0.2 seconds" in journal.read("j2")["failure"]["message"]


def converse(chat, calls=4):
    async def work(job):
        messages = [Message(role="user", content=f"I am {job.id}.")]
        for turn in range(calls):
            reply = await chat.reply(messages, key=CallKey(case=job.id, role="agent", turn=turn))
            messages += [reply.message, Message(role="user", content="And?")]
        return {"id": job.id, "said": [m.content for m in messages]}

    return work


def talk(stub, count, *, journal=None, replies=None, throttle=None, concurrency=16, calls=4, **model):
    """Play so many conversations against the stub; return the summary and the journal."""
    throttle = throttle or Throttle(concurrency=concurrency)
    journal = journal or Journal(None)

    async def go():
        chat = Endpoint(Model("m", base_url=stub.url, **{"timeout": 5, **model}), throttle=throttle, replies=replies)
        try:
            return await run_jobs(jobs(count), converse(chat, calls), journal=journal, throttle=throttle)
        finally:
            await chat.close()

    return run(go()), journal


def test_no_conversation_is_lost_to_passing_faults():
    def plan(n, _):
        if n % 10 in (1, 4, 7):
            return refuse(429, retry_after=0.05)
        return RESET if n % 50 == 3 else refuse(500) if n % 50 == 13 else None

    with Stub(plan=plan) as stub:
        summary, journal = talk(stub, 30)
    assert (summary.played, summary.failed) == (30, 0)
    assert all(len(r["said"]) == 9 for r in map(journal.read, journal.ids))


def test_conversations_asleep_let_others_begin():
    alive = set()

    def plan(n, body):
        alive.add(body["messages"][0]["content"])
        return refuse(429, retry_after=2.0) if n < 4 else None

    with Stub(plan=plan, latency=0.01) as stub:
        talk(stub, 40, concurrency=4)
    order = [body["messages"][0]["content"] for body in stub.bodies]
    again = next(n for n in range(4, len(order)) if order[n] in order[:4])  # the first of those asleep is awake
    assert len(set(order[:again])) > 8


def test_the_rows_do_not_depend_on_the_concurrency_or_the_faults(tmp_path):
    files = []
    for i, (concurrency, plan) in enumerate(((1, ()), (13, lambda n, _: refuse(500) if n % 9 == 5 else None))):
        with Stub(plan=plan) as stub, Journal(tmp_path / str(i)) as journal:
            talk(stub, 15, journal=journal, concurrency=concurrency)
            journal.finish([j.id for j in jobs(15)])
        files.append((tmp_path / str(i) / "rows.jsonl").read_bytes())
    assert files[0] == files[1]


def test_a_used_up_budget_ends_the_run_and_a_larger_one_goes_on(tmp_path):
    with Stub() as stub:
        with Journal(tmp_path) as journal:
            tight = Throttle(concurrency=4, budget=Budget(tokens=4_500))
            summary, _ = talk(stub, 30, journal=journal, throttle=tight, max_tokens=50)
        assert stub.tokens <= 4_500
        assert (summary.ending, summary.clean > 0, summary.unplayed > 0) == ("budget", True, True)
        assert summary.played + summary.unplayed == 30
        assert summary.played - summary.clean == summary.failed <= 4
        with Journal(tmp_path) as journal:
            summary, _ = talk(stub, 30, journal=journal)
    assert (summary.ending, summary.played + summary.kept, summary.failed) == ("done", 30, 0)


def test_a_dead_endpoint_is_an_error_with_its_causes_when_nothing_was_played():
    with Stub(plan=lambda *_: refuse(500, "out of memory")) as stub, pytest.raises(RunError) as failed:
        talk(stub, 1000, throttle=Throttle(concurrency=16, patience=0.5))
    assert "out of memory" in str(failed.value)
    assert stub.count < 300


def test_an_endpoint_that_dies_in_the_middle_ends_the_run_and_keeps_the_rows():
    with Stub(plan=lambda n, _: refuse(500, "gone") if n > 120 else None) as stub:
        summary, journal = talk(stub, 1000, throttle=Throttle(concurrency=16, patience=0.5))
    assert summary.ending == "dead"
    assert "gone" in summary.why
    assert summary.clean > 10
    assert summary.played + summary.unplayed == 1000
    assert {r["failure"]["reason"] for r in map(journal.read, journal.ids) if "failure" in r} == {"server"}


def test_calls_under_way_do_not_keep_a_dead_run_alive(monkeypatch):
    monkeypatch.setattr(engine, "_LAST", 0.2)

    def plan(n, _):
        return HANG if n % 6 == 5 else refuse(500)

    began = time.monotonic()
    with Stub(plan=plan) as stub, pytest.raises(RunError, match="given up"):
        talk(stub, 100, throttle=Throttle(concurrency=16, patience=0.5), timeout=600)
    assert time.monotonic() - began < 30


def interrupt(after):
    timer = threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    return timer


def test_ctrl_c_finishes_what_is_under_way_and_returns_what_exists(tmp_path):
    def plan(n, _):
        if n == 16:
            interrupt(0)

    with Stub(plan=plan, latency=0.1) as stub, Journal(tmp_path) as journal:
        summary, _ = talk(stub, 500, journal=journal, concurrency=8)
    assert summary.ending == "interrupt"
    assert 0 < summary.clean < 100
    assert summary.failed == 0
    assert summary.played + summary.unplayed == 500


def test_after_the_grace_conversations_end_as_interrupted_and_are_played_again(tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "GRACE", 0.2)
    monkeypatch.setattr(engine, "_LAST", 0.2)

    def plan(n, _):
        if n == 27:  # eight hang
            interrupt(0)
        return HANG if n >= 20 else None

    with Stub(plan=plan) as stub, Journal(tmp_path) as journal:
        summary, _ = talk(stub, 20, journal=journal, concurrency=8, timeout=600)
    assert summary.ending == "interrupt"
    assert summary.failed == 8
    with Stub() as stub, Journal(tmp_path) as journal:
        summary, _ = talk(stub, 20, journal=journal)
    assert (summary.ending, summary.failed, summary.kept + summary.played) == ("done", 0, 20)


def test_a_cancelled_run_leaves_no_row_of_what_was_under_way():
    async def go():
        journal = Journal(None)

        async def work(job):
            await asyncio.sleep(60)

        task = asyncio.ensure_future(run_jobs(jobs(5), work, journal=journal, throttle=Throttle()))
        await asyncio.sleep(0.1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return journal.ids, len(asyncio.all_tasks())

    assert asyncio.run(go()) == ((), 1)


def test_nothing_is_printed_in_a_short_run(capfd, monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    play(quickly, 20)
    assert capfd.readouterr() == ("", "")


def test_without_a_terminal_a_line_now_and_then_says_how_far_it_is(capfd, monkeypatch):
    from whilesim.conversations import progress

    monkeypatch.setattr(progress, "_EVERY", 0.0)
    with Stub() as stub:
        throttle = Throttle()

        async def go():
            chat = Endpoint(Model("m", base_url=stub.url, price=(1, 1)), throttle=throttle)
            await run_jobs(jobs(5), converse(chat), journal=Journal(None), throttle=throttle, progress=True)
            await chat.close()

        run(go())
    last = capfd.readouterr().err.splitlines()[-1]
    for part in ("whilesim: 5/5 rows", "5 clean", "calls/s", "tokens", "$0.00", "min left"):
        assert part in last


def test_a_bar_is_shown_on_request_in_a_terminal(capfd, monkeypatch):
    from whilesim.conversations import progress

    monkeypatch.setattr(progress, "_has_screen", lambda: True)
    play(quickly, 5, progress=True)
    assert "5/5" in capfd.readouterr().err


def test_ci_sees_nothing_unless_it_asks(capfd, monkeypatch):
    from whilesim.conversations import progress

    monkeypatch.setattr(progress, "_has_screen", lambda: True)
    monkeypatch.setenv("CI", "true")
    play(quickly, 5)
    assert capfd.readouterr().err == ""


KILLED = f"""
import sys
sys.path[:0] = [{str(Path(__file__).parent.parent)!r}, {str(Path(__file__).parent)!r}]
from test_engine import talk, jobs
from whilesim.chat.replies import Replies
from whilesim.conversations.journal import Journal

class Address:
    url = sys.argv[1]

folder = sys.argv[2]
with Journal(folder) as journal:
    replies = Replies(folder + "/replies.sqlite")
    summary, _ = talk(Address, 400, journal=journal, replies=replies, calls=6)
    replies.close()
    journal.finish([j.id for j in jobs(400)])
    assert summary.failed == 0
"""


@pytest.mark.chaos
@pytest.mark.parametrize("seed", range(4))
def test_a_killed_run_resumes_to_the_same_bytes_and_pays_the_last_second_again(tmp_path, seed):
    def plan(n, _):
        return refuse(429, retry_after=0.1) if n % 11 == 4 else RESET if n % 97 == 5 else None

    with Stub(latency=0.02) as stub:
        subprocess.run([sys.executable, "-c", KILLED, stub.url, str(tmp_path / "calm")], check=True)
    with Stub(latency=0.02, plan=plan) as stub:
        for attempt in range(3):
            process = subprocess.Popen([sys.executable, "-c", KILLED, stub.url, str(tmp_path / "killed")])
            before = stub.count
            while process.poll() is None and stub.count < before + 300 + 100 * seed + 50 * attempt:
                time.sleep(0.02)
            process.kill()
            process.wait()
        subprocess.run([sys.executable, "-c", KILLED, stub.url, str(tmp_path / "killed")], check=True)
    calm, killed = ((tmp_path / n / "rows.jsonl").read_bytes() for n in ("calm", "killed"))
    assert calm == killed
    assert stub.answered < 400 * 6 + 3 * 1500  # each kill costs what was answered in about a second


@pytest.mark.chaos
@pytest.mark.parametrize("fault", [refuse(500), RESET, HANG], ids=["500", "reset", "hang"])
def test_a_three_second_outage_loses_no_conversation(fault):
    begun = []

    def plan(n, _):
        begun.append(time.monotonic())
        return fault if begun[0] + 1 < begun[-1] < begun[0] + 4 else None

    with Stub(latency=0.05, plan=plan) as stub:
        summary, _ = talk(stub, 600, concurrency=64, timeout=2)
    assert (summary.played, summary.failed) == (600, 0)


@pytest.mark.chaos
def test_a_replay_from_the_cache_asks_nobody(tmp_path):
    replies = Replies(tmp_path / "replies.sqlite")
    with Stub() as stub:
        talk(stub, 200, replies=replies)
        asked = stub.count
        summary, _ = talk(stub, 200, replies=replies)
        assert stub.count == asked
    replies.close()
    assert summary.clean == 200


class Service:
    """Answers like an endpoint, on a virtual clock: refusals come back at once, answers after a while."""

    place = where = "service"

    def __init__(self, *, refuses=lambda n, busy: None, latency=lambda busy: 0.05):
        self.refuses, self.latency = refuses, latency
        self.asked = self.busy = self.most = 0
        self.answered = []

    async def send(self, body, seconds):
        self.asked += 1
        self.busy += 1
        self.most = max(self.most, self.busy)
        try:
            pause = self.refuses(self.asked, self.busy)
            await asyncio.sleep(0.002 if pause is not None else self.latency(self.busy))
        finally:
            self.busy -= 1
        if pause is not None:
            raise CallFailed("slow down", reason="rate_limit", retry_after=pause)
        self.answered.append(time.monotonic())
        return COMPLETION

    async def close(self):
        pass


COMPLETION = b'{"choices": [{"message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}]}'


def rate_of(service, count=1536, calls=6):
    """Play so many conversations, 128 at a time; return the answers a second once all is under way."""
    with virtual_time() as loop:
        throttle = Throttle(concurrency=128)
        chat = Endpoint(Model("m", base_url="http://127.0.0.1:1/v1"), throttle=throttle)
        chat._transport = service
        work = run_jobs(jobs(count), converse(chat, calls), journal=Journal(None), throttle=throttle, progress=False)
        summary = loop.run_until_complete(work)
    assert summary.failed == 0
    first, last = (service.answered[len(service.answered) * n // 100] for n in (20, 50))
    return len(service.answered) * 0.3 / (last - first)


@pytest.mark.chaos
def test_three_refusals_in_ten_leave_most_of_the_rate():
    clean = rate_of(Service())
    refused = rate_of(Service(refuses=lambda n, _: 1.0 if n * 0.618034 % 1 < 0.3 else None))
    assert clean == pytest.approx(128 / 0.05, rel=0.02)
    assert refused > 0.6 * clean


@pytest.mark.chaos
def test_a_server_that_takes_half_as_many_is_asked_for_most_of_what_it_takes():
    service = Service(refuses=lambda _, busy: 0.2 if busy > 64 else None)
    assert rate_of(service) > 0.65 * 64 / 0.05


@pytest.mark.chaos
def test_a_local_server_that_only_gets_slower_is_asked_less_and_answers_no_fewer():
    service = Service(latency=lambda busy: 0.05 * max(1.0, busy / 20))
    busy = []
    plain, service.latency = service.latency, lambda now: busy.append(now) or plain(now)
    assert rate_of(service) > 0.95 * 20 / 0.05
    assert sum(busy[4000:6000]) / 2000 < 90


@pytest.mark.chaos
def test_one_burst_of_refusals_is_one_cool_down():
    refused = []

    def refuses(_, busy):
        if time.monotonic() - 1000.0 < 1.0:
            refused.append(time.monotonic())
            return 1.0
        return None

    service = Service(refuses=refuses)
    rate_of(service, count=300)
    assert len(refused) < 130  # each of those under way is refused once, then all wait


def test_what_failed_on_the_way_is_logged_by_reason(tmp_path):
    with Stub(plan=[refuse(500), None, RESET]) as stub, Journal(tmp_path) as journal:
        talk(stub, 3, journal=journal)
    last = json.loads((tmp_path / "log.jsonl").read_text().splitlines()[-1])
    assert last["failures"] == {"server": 1, "connection": 1}
    assert (last["retries"], last["usage"]["calls"], last["run"]["played"]) == (2, 12, 3)
