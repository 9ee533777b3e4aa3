"""Shards on a Ray cluster give the bytes of one machine."""

from __future__ import annotations

import hashlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from chaos import answer
from stub import Stub, refuse

import whilesim as ws
from whilesim.scale.ray import simulate_on_ray
from whilesim.showcase import demo_policy, demo_tools


@pytest.fixture(scope="module")
def plan() -> ws.Plan:
    return ws.plan(tools=demo_tools(), system_prompt=demo_policy(), situations=10)


def rows_hash(folder: Path) -> str:
    return hashlib.sha256((folder / "rows.jsonl").read_bytes()).hexdigest()


@pytest.mark.parametrize("shards", [1, 3, 10])
def test_shards_joined_have_the_bytes_of_the_single_run(plan: ws.Plan, tmp_path: Path, shards: int) -> None:
    ws.simulate(plan=plan, run_dir=tmp_path / "whole", progress=False)
    folders = [tmp_path / str(i) for i in range(shards)]
    for i, folder in enumerate(folders):
        ws.simulate(plan=plan.shard(i, shards), run_dir=folder, progress=False)
    joined = ws.concat(folders)
    joined.save(tmp_path / "joined")
    assert rows_hash(tmp_path / "joined") == rows_hash(tmp_path / "whole")
    assert joined.ledger.planned == 20


@pytest.mark.parametrize(
    ("options", "words"),
    [({"shards": 0}, "shards=0"), ({"rollout": 3}, "Did you mean 'rollouts'"), ({"turns": 0}, "turns=0")],
)
def test_what_cannot_be_played_is_refused_before_a_cluster_is_looked_for(plan, tmp_path, options, words) -> None:
    with pytest.raises(ws.InputError, match=words):
        simulate_on_ray(plan, run_dir=tmp_path, **options)


def test_a_client_cannot_be_sent(plan: ws.Plan, tmp_path: Path) -> None:
    import openai

    model = ws.Model("m", client=openai.AsyncOpenAI(base_url="http://127.0.0.1:1/v1", api_key="k"))
    with pytest.raises(ws.InputError, match="a client cannot be sent"):
        simulate_on_ray(plan, agent=model, run_dir=tmp_path)


@pytest.mark.ray
@pytest.mark.filterwarnings("ignore")  # what Ray does inside is not ours to mend
class TestOnACluster:
    @pytest.fixture(scope="class", autouse=True)
    def cluster(self) -> Iterator[None]:
        import ray

        here = os.pathsep.join([str(Path(ws.__file__).parents[1]), str(Path(__file__).parents[1])])
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        ray.init(num_cpus=2, log_to_driver=False, runtime_env={"env_vars": {"PYTHONPATH": here}})
        yield
        ray.shutdown()

    def test_a_run_has_the_bytes_of_a_local_one(self, plan: ws.Plan, tmp_path: Path) -> None:
        ws.simulate(plan=plan, run_dir=tmp_path / "local", progress=False)
        data = simulate_on_ray(plan, shards=3, run_dir=tmp_path / "ray")
        print("\nlocal", rows_hash(tmp_path / "local"), "\nray  ", rows_hash(tmp_path / "ray"))
        assert rows_hash(tmp_path / "ray") == rows_hash(tmp_path / "local")
        assert len(data.rows) == 20
        assert data.grade().ledger.planned == 20
        ws.simulate(plan=plan, run_dir=tmp_path / "ray", progress=False)  # one machine can go on in that folder

    def test_a_killed_worker_costs_no_row(self, plan: ws.Plan, tmp_path: Path) -> None:
        killed: list[int] = []
        with Stub(answer, latency=0.1) as stub:
            model = ws.Model("stub", base_url=stub.url, timeout=5, max_tokens=100)
            ws.simulate(model, plan=plan, turns=3, run_dir=tmp_path / "local", progress=False)
            local = stub.count
            killer = threading.Thread(target=_kill_a_worker, args=(tmp_path / "ray", killed))
            killer.start()
            simulate_on_ray(plan, agent=model, turns=3, shards=2, concurrency=4, run_dir=tmp_path / "ray")
            killer.join()
        print("\nlocal ", rows_hash(tmp_path / "local"), "\nkilled", rows_hash(tmp_path / "ray"), killed)
        assert killed
        assert rows_hash(tmp_path / "ray") == rows_hash(tmp_path / "local")
        assert stub.count < 2 * local + 100  # the shard went on from its journal

    def test_an_error_about_the_run_comes_out_as_itself(self, plan: ws.Plan, tmp_path: Path) -> None:
        with Stub(plan=lambda *_: refuse(401, "no")) as stub, pytest.raises(ws.RunError, match="auth"):
            simulate_on_ray(plan, agent=ws.Model("m", base_url=stub.url), shards=2, run_dir=tmp_path)


def _kill_a_worker(run_dir: Path, killed: list[int]) -> None:
    """Kill -9 the process that plays a shard, once a row of it is on the disk."""
    end = time.monotonic() + 120
    while not killed and time.monotonic() < end:
        time.sleep(0.05)
        for rows in run_dir.glob("shards/*/rows.jsonl"):
            if rows.stat().st_size and (owner := _who_writes(rows)):
                os.kill(owner, signal.SIGKILL)
                killed.append(owner)
                break


def _who_writes(path: Path) -> int | None:
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if any(os.readlink(f) == str(path) for f in (process / "fd").iterdir()):
                return int(process.name)
        except OSError:  # it has ended, or is not ours
            continue
    return None
