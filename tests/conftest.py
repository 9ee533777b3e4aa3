"""Fixtures that more than one house's tests use."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

SHARED = Path(__file__).parent.parent.parent / "shared"
DEMO = Path(__file__).parent.parent / "whilesim" / "demo"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of measuring material beside the project; tests skip where it is absent."""
    if not SHARED.is_dir():
        pytest.skip("../shared is absent")
    return SHARED


@pytest.fixture(scope="session")
def demo_policy() -> str:
    return (DEMO / "policy.md").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def demo_tools() -> list[dict[str, Any]]:
    return json.loads((DEMO / "tools.json").read_text(encoding="utf-8"))
