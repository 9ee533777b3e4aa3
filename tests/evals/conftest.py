"""A suite of three tickets on disk."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from shop import ticket

import whilesim as ws
from whilesim.showcase import demo_policy, demo_tools


@pytest.fixture(scope="session")
def demo() -> ws.Simulation:
    """A small graded run of the bundled policy."""
    return ws.simulate(tools=demo_tools(), system_prompt=demo_policy(), situations=16, progress=False).grade()


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    path = tmp_path / "golden_tickets.jsonl"
    path.write_text("".join(json.dumps(ticket(n)) + "\n" for n in (1, 2, 3)))
    return path
