"""Chaos: whole runs that are killed, refused, starved and lied to, and what must come of each.

Each case plays the bundled policy against the stub, agent and customer both models, and
returns a line of the table that ``tests/benchmarks/bench_chaos.py`` prints. What speaks
against it stands in ``problems``.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from stub import CUT, DRIP, HANG, TRUNCATED, Stub, answer_plainly, refuse, say_raw

import whilesim as ws
from whilesim.showcase import demo_policy, demo_tools

CARDS, ROLLOUTS, TURNS = 12, 2, 3
ROWS = CARDS * ROLLOUTS
WEB_PAGE = say_raw("<html>We will be back soon.</html>", **{"Content-Type": "text/html"})
CALM = "undisturbed"


@dataclass
class Result:
    """One line of the table."""

    case: str
    planned: int = ROWS
    kept: int = 0
    """Rows that reached an end."""
    failed: int = 0
    requests: int = 0
    seconds: float = 0.0
    reasons: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def expect(self, holds: bool, otherwise: str) -> None:
        if not holds:
            self.problems.append(otherwise)

    def __str__(self) -> str:
        numbers = f"{self.planned:>7} {self.kept:>5} {self.failed:>6} {self.requests:>8} {self.seconds:>7.1f}"
        verdict = "; ".join(self.problems) or ("holds" + (f" ({_told(self.reasons)})" if self.reasons else ""))
        return f"{self.case:<44}{numbers}  {verdict}"


HEAD = f"{'case':<44}{'planned':>7} {'kept':>5} {'failed':>6} {'requests':>8} {'seconds':>7}  verdict"


def _told(reasons: dict[str, int]) -> str:
    return ", ".join(f"{n} {reason}" for reason, n in reasons.items())


@cache
def plan() -> ws.Plan:
    return ws.plan(tools=demo_tools(), system_prompt=demo_policy(), situations=CARDS)


def answer(body: dict[str, Any]) -> Any:
    """Agent and customer of a few turns; the same request has the same answer."""
    return answer_plainly(body) if body.get("tools") else f"Yes, go ahead with number {len(body['messages'])}."


def model(stub: Stub, **options: Any) -> ws.Model:
    return ws.Model("stub", base_url=stub.url, **{"timeout": 2.0, "max_tokens": 100, **options})


def play(
    stub: Stub, folder: Path | None, *, concurrency: int = 8, budget: Any = None, customer: Any = None, **options: Any
) -> ws.Simulation:
    return ws.simulate(
        model(stub, **options),
        customer=customer,
        plan=plan(),
        rollouts=ROLLOUTS,
        turns=TURNS,
        concurrency=concurrency,
        budget=budget,
        run_dir=folder,
        progress=False,
    )


def rows_hash(folder: Path) -> str:
    return hashlib.sha256((folder / "rows.jsonl").read_bytes()).hexdigest()


@cache
def calm() -> tuple[str, int]:
    """The hash of an undisturbed run's rows, and the requests it makes."""
    with tempfile.TemporaryDirectory() as folder, Stub(answer) as stub:
        play(stub, Path(folder))
        return rows_hash(Path(folder)), stub.count


def count(result: Result, data: ws.Simulation) -> None:
    """Fill in what became of the rows; each must stand once."""
    ledger = data.ledger
    result.failed, result.kept = ledger.failed, ledger.planned - ledger.failed
    result.reasons = dict(ledger.reasons["failed"])
    ids = Counter(row.id for row in data.rows)
    result.expect(ledger.planned == ROWS, f"{ledger.planned} rows are on the ledger")
    result.expect(set(ids.values()) <= {1}, "a row stands twice")


@contextmanager
def measured(result: Result, stub: Stub, most: float) -> Iterator[None]:
    """Note seconds and requests; more than ``most`` seconds are no bounded time."""
    began = time.monotonic()
    yield
    result.seconds, result.requests = time.monotonic() - began, stub.count
    result.expect(result.seconds < most, f"it took {result.seconds:.0f} s")


def passing(name: str, fault: Any, *, most: float = 120.0, times: float = 3.0, **options: Any) -> Result:
    """Play against passing faults: every row ends, and the file is that of an undisturbed run."""
    calm()
    result = Result(name)
    with tempfile.TemporaryDirectory() as top, Stub(answer, plan=fault) as stub:
        with measured(result, stub, most):
            count(result, play(stub, Path(top), **options))
        result.expect(rows_hash(Path(top)) == calm()[0], "the file differs from the undisturbed one")
        result.expect(result.failed == 0, "rows failed")
        result.expect(result.requests < calm()[1] * times, "too many requests")
    return result


def every(n: int, fault: Any) -> Callable[[int, Any], Any]:
    """Break one request of ``n``."""
    return lambda number, _: fault if number % n == n // 2 else None


def share(part: float, fault: Any) -> Callable[[int, Any], Any]:
    return lambda number, _: fault if number * 0.618034 % 1 < part else None


def undisturbed() -> Result:
    return passing(CALM, ())


def refused() -> Result:
    return passing("30 % 429 with Retry-After", share(0.3, refuse(429, retry_after=0.3)))


def broken() -> Result:
    return passing("20 % 500", share(0.2, refuse(500)))


def hung() -> Result:
    return passing("hung sockets, one in 20", every(20, HANG))


def cut() -> Result:
    return passing("resets in mid-body, one in 8", every(8, CUT))


def truncated() -> Result:
    return passing("truncated JSON, one in 8", every(8, TRUNCATED))


def malformed() -> Result:
    return passing("malformed JSON, one in 8", every(8, say_raw('{"choices": [{"message": {"content"')))


def web_page() -> Result:
    return passing("wrong content type, one in 8", every(8, WEB_PAGE))


def dripping() -> Result:
    return passing("endless slow drip, one in 30", every(30, DRIP))


def restarting() -> Result:
    name = "the stub restarts in mid-run"
    calm()
    with tempfile.TemporaryDirectory() as top, Stub(answer, latency=0.05) as stub:
        result = Result(name)
        threading.Timer(1.0, stub.restart, [1.0]).start()
        with measured(result, stub, 60):
            count(result, play(stub, Path(top), concurrency=4))
        result.expect(rows_hash(Path(top)) == calm()[0], "the file differs from the undisturbed one")
        result.expect(result.failed == 0, "rows failed")
    return result


def empty() -> Result:
    """Say nothing to one request in five: that is an answer, and asked for once more by nobody but the customer."""

    def say(body: dict[str, Any]) -> Any:
        silent = int(hashlib.sha256(json.dumps(body).encode()).hexdigest(), 16) % 5 == 0
        return "" if silent else answer(body)

    result = Result("empty content, one answer in 5")
    with tempfile.TemporaryDirectory() as top, Stub(say) as stub:
        with measured(result, stub, 60):
            data = play(stub, Path(top) / "a")
        count(result, data)
        play(stub, Path(top) / "b", concurrency=1)
        result.expect(rows_hash(Path(top) / "a") == rows_hash(Path(top) / "b"), "the file depends on the concurrency")
        result.expect(result.failed == 0, "an empty answer failed a row")
        found = {f.check for row in data.rows for f in row.findings}
        result.expect("empty_reply" in found, "no check saw an empty reply")
    return result


def dead() -> Result:
    """Nothing ever answers: an error in seconds, which names the cause."""
    result = Result("100 % dead")
    with Stub(plan=lambda *_: refuse(500, "out of memory")) as stub, measured(result, stub, 30):
        try:
            play(stub, None)
        except ws.RunError as error:
            result.expect("out of memory" in str(error), "the cause is not named")
            result.reasons = {"RunError: server": 1}
        else:
            result.expect(False, "no error")
    result.expect(result.requests < 30, "it went on asking")
    return result


def dies() -> Result:
    """The endpoint dies in mid-run: rows that ended are kept, the rest is played by the next call."""
    calm()
    result = Result("100 % dead from the 60th request on")
    with tempfile.TemporaryDirectory() as top:
        fault = lambda n, _: refuse(500, "gone") if n >= 60 else None  # noqa: E731  it is read once
        with Stub(answer, plan=fault) as stub, measured(result, stub, 60):
            count(result, play(stub, Path(top)))
        result.expect(result.kept > 0 and result.failed > 0, "nothing ended, or all of it")
        result.expect(result.requests < 400, "it went on asking")
        _resume(result, Path(top))
    return result


def wrong_key() -> Result:
    result = Result("auth failure")
    with Stub(answer, key="right") as stub, measured(result, stub, 10):
        try:
            play(stub, None, api_key="sk-wrong-key")
        except ws.RunError as error:
            result.expect("(auth)" in str(error) and "sk-wrong" not in str(error), "reason missing, or key told")
            result.reasons = {"RunError: auth": 1}
        else:
            result.expect(False, "no error")
    result.expect(result.requests == 1, "it asked again")
    return result


def revoked() -> Result:
    calm()
    result = Result("auth failure from the 60th request on")
    with tempfile.TemporaryDirectory() as top:
        fault = lambda n, _: refuse(401, "revoked") if n >= 60 else None  # noqa: E731  it is read once
        with Stub(answer, plan=fault) as stub, measured(result, stub, 20):
            count(result, play(stub, Path(top)))
        result.expect(result.requests < 90, "it went on asking")
        _resume(result, Path(top))
    return result


def overflow() -> Result:
    """Some cards are too long: these rows fail once, say why, and are not played again."""
    long = {card.opening for card in plan().cards[::3]}

    def fault(_: int, body: dict[str, Any]) -> Any:
        first = next((m["content"] for m in body["messages"] if m["role"] == "user"), "")
        full = body.get("tools") and first in long and len(body["messages"]) > 4
        return refuse(400, "This model's maximum context length is 8192 tokens") if full else None

    result = Result("context overflow on a third of the cards")
    with tempfile.TemporaryDirectory() as top, Stub(answer, plan=fault) as stub:
        with measured(result, stub, 60):
            count(result, play(stub, Path(top)))
        before = stub.count
        play(stub, Path(top))
        result.expect(stub.count == before, "it was played again")
        wanted = sum(card.opening in long for card in plan().cards) * ROLLOUTS
        result.expect(result.reasons == {"agent:context_window": wanted}, f"{wanted} rows should have failed")
    return result


def disk_full() -> Result:
    """The disk takes 150 KB: every row is returned, and the next call with room makes the folder whole."""
    calm()
    code = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))
data = ws.simulate(MODEL, plan=PLAN, rollouts=%d, turns=%d, run_dir=FOLDER, concurrency=8, progress=False)
print(len(data.rows), data.ledger.failed)
"""
    result = Result("disk full after 150 KB")
    with tempfile.TemporaryDirectory() as top, Stub(answer) as stub:
        with measured(result, stub, 90):
            done = _child(code % (ROLLOUTS, TURNS), stub, Path(top), wait=True)
        found = done.stdout.split() if done.returncode == 0 else []
        result.expect(len(found) == 2, f"it ended with {done.returncode}: {done.stderr[-200:]}")
        if found:
            result.failed, result.kept = int(found[1]), int(found[0]) - int(found[1])
            result.expect(found == [str(ROWS), "0"], "rows are missing")
        result.expect("kept in memory only" in done.stderr, "nobody was told")
        _resume(result, Path(top) / "run")
    return result


def two_runs() -> Result:
    """A second run on the folder of a running one is told to wait; the first does not notice."""
    calm()
    result = Result("two runs on one folder")
    told: list[str] = []
    with tempfile.TemporaryDirectory() as top, Stub(answer, latency=0.05) as stub:

        def second() -> None:
            try:
                play(stub, Path(top))
            except ws.RunError as error:
                told.append(str(error))

        timer = threading.Timer(0.7, second)
        timer.start()
        with measured(result, stub, 60):
            count(result, play(stub, Path(top), concurrency=4))
        timer.join()
        result.expect("another run is writing" in " ".join(told), f"the second run was told {told}")
        result.expect(rows_hash(Path(top)) == calm()[0], "the file differs from the undisturbed one")
    return result


def ten_calls() -> Result:
    """A budget that pays for the ten cheapest calls, 64 at a time; the customer is a script, so that calls cost alike."""
    result = Result("tokens for 10 calls, 64 at a time")
    with tempfile.TemporaryDirectory() as top:
        whole, cut = Path(top, "whole"), Path(top, "cut")
        with Stub(answer) as first:
            play(first, whole, customer="scripted")
            least = min(len(json.dumps(body, ensure_ascii=False)) // 4 + 12 for body in first.bodies)
        with Stub(answer, latency=0.02) as stub, measured(result, stub, 30):
            budget = ws.Budget(tokens=10 * least)
            count(result, play(stub, cut, concurrency=64, budget=budget, customer="scripted"))
        result.expect(0 < result.requests <= 10, f"{result.requests} calls were made")
        result.expect(stub.tokens <= 10 * least, f"{stub.tokens} tokens were used")
        result.expect(set(result.reasons) <= {"run:budget", "not_played"}, "another reason")
        with Stub(answer) as stub:
            play(stub, cut, customer="scripted")
        result.expect(rows_hash(cut) == rows_hash(whole), "resumed, the file differs from the undisturbed one")
    return result


def killed(kills: int = 20, seed: int = 0) -> Result:
    """Kill -9 at random moments, then let it end: no row is lost or doubled, and hardly a call is paid twice."""
    calm()
    rng = random.Random(seed)
    result = Result(f"kill -9 at {kills} random moments, then resume")
    code = "ws.simulate(MODEL, plan=PLAN, rollouts=%d, turns=%d, run_dir=FOLDER, concurrency=4, progress=False)"
    code %= (ROLLOUTS, TURNS)
    with tempfile.TemporaryDirectory() as top, Stub(answer, latency=0.08) as stub:
        with measured(result, stub, 600):
            for _ in range(kills):
                before = _ids(Path(top) / "run")
                process = _child(code, stub, Path(top))
                asked = stub.count
                while stub.count == asked and process.poll() is None:
                    time.sleep(0.01)
                time.sleep(rng.random())
                process.kill()
                process.communicate()
                result.expect(before <= _ids(Path(top) / "run"), "a finished row was lost")
            done = _child(code, stub, Path(top), wait=True)
        result.expect(done.returncode == 0, done.stderr[-300:])
        count(result, ws.load(Path(top) / "run"))
        result.expect(rows_hash(Path(top) / "run") == calm()[0], "the file differs from the undisturbed one")
        result.expect(result.requests < calm()[1] + kills * 60, "too much was paid twice")
    return result


def at_random() -> Result:
    """Answers that are never the same: rollouts differ, and a killed and resumed run equals its own journal."""

    def say(body: dict[str, Any]) -> Any:
        found = answer(body)
        return f"{found} ({uuid.uuid4()})" if isinstance(found, str) else found

    result = Result("answers at random, kill -9, resume")
    code = "ws.simulate(MODEL, plan=PLAN, rollouts=%d, turns=%d, run_dir=FOLDER, concurrency=4, progress=False)"
    code %= (ROLLOUTS, TURNS)
    with tempfile.TemporaryDirectory() as top, Stub(say, latency=0.05) as stub:
        folder = Path(top) / "run"
        with measured(result, stub, 120):
            process = _child(code, stub, Path(top))
            while len(_ids(folder)) < ROWS // 4 and process.poll() is None:
                time.sleep(0.02)
            process.kill()
            process.communicate()
            journal = {json.loads(line)["id"]: line for line in _lines(folder)}
            data = play(stub, folder, concurrency=4)
        count(result, data)
        after = {json.loads(line)["id"]: line for line in _lines(folder)}
        result.expect(journal.items() <= after.items(), "a row that was finished before the kill has changed")
        pairs = [[m["content"] for m in row.messages] for row in data.rows]
        twins = zip(pairs[::2], pairs[1::2], strict=True)
        result.expect(all(a != b for a, b in twins), "two rollouts are the same")
        before, rows = stub.count, rows_hash(folder)
        play(stub, folder)
        result.expect(stub.count == before and rows_hash(folder) == rows, "a finished run was not left alone")
    return result


CASES: tuple[Callable[[], Result], ...] = (
    undisturbed,
    refused,
    broken,
    hung,
    cut,
    truncated,
    malformed,
    empty,
    web_page,
    dripping,
    dead,
    dies,
    wrong_key,
    revoked,
    overflow,
    restarting,
    disk_full,
    two_runs,
    ten_calls,
    killed,
    at_random,
)


def _resume(result: Result, folder: Path) -> None:
    """Go on against a healthy endpoint: the file is that of an undisturbed run."""
    with Stub(answer) as stub:
        play(stub, folder)
    result.expect(rows_hash(folder) == calm()[0], "resumed, the file differs from the undisturbed one")


def _child(code: str, stub: Stub, top: Path, *, wait: bool = False) -> Any:
    """Run code in a process of its own, which knows MODEL, PLAN and FOLDER."""
    plan().save(top / "plan.json")
    start = (
        "import whilesim as ws\n"
        f"MODEL = ws.Model('stub', base_url={stub.url!r}, timeout=2.0, max_tokens=100)\n"
        f"PLAN, FOLDER = ws.load_plan({os.fspath(top / 'plan.json')!r}), {os.fspath(top / 'run')!r}\n"
    )
    command = [sys.executable, "-c", start + code]
    if wait:
        return subprocess.run(command, capture_output=True, text=True, timeout=300)
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _lines(folder: Path) -> list[str]:
    path = folder / "rows.jsonl"
    found = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return [line.decode() for line in found]


def _ids(folder: Path) -> set[str]:
    return {found.group(1) for line in _lines(folder) if (found := re.search(r'"id": "([^"]+)"', line))}
