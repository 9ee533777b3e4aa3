"""Fixtures that more than one house's tests use, and what a run says at its end."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import whilesim

SHARED = Path(__file__).parent.parent.parent / "shared"
DEMO = Path(whilesim.__file__).parent / "demo"
ABSENT = "../shared is absent"
STRAY = (
    "FORCE_COLOR", "GITHUB_STEP_SUMMARY", "OLLAMA_HOST", "OPENAI_API_BASE", "OPENAI_API_KEY", "OPENAI_BASE_URL", "PYTEST_ADDOPTS",
    "PY_COLORS", "TQDM_DISABLE", "VLLM_API_KEY", "VLLM_BASE_URL",
)  # fmt: skip


@pytest.fixture(scope="session", autouse=True)
def _ctrl_c_is_heard() -> Iterator[None]:
    """A script in the background is started with Ctrl-C ignored, and some tests press it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session", autouse=True)
def _nobodys_environment() -> Iterator[None]:
    """What whoever runs the tests has set for other programs decides nothing here, and no test calls their servers."""
    proxies = [name for word in ("HTTP", "HTTPS", "ALL") for name in (f"{word}_PROXY", f"{word}_proxy".lower())]
    with pytest.MonkeyPatch.context() as patch:
        for name in (*proxies, *STRAY):
            patch.delenv(name, raising=False)
        yield


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of measuring material beside the project; tests skip where it is absent."""
    if not SHARED.is_dir():
        pytest.skip(ABSENT)
    return SHARED


@pytest.fixture(scope="session")
def demo_policy() -> str:
    return (DEMO / "policy.md").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def demo_tools() -> list[dict[str, Any]]:
    return json.loads((DEMO / "tools.json").read_text(encoding="utf-8"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[Any]:
    """Where skips are not allowed, a skipped test is a failed one: nothing goes untested in silence."""
    report = yield
    if report.skipped and os.environ.get("WHILESIM_NO_SKIPS") and ABSENT not in str(report.longrepr):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped, and skips are not allowed here: {report.longrepr}"
    return report


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say which tests were left out because they need more than the light install."""
    needy = set(re.findall(r"not (\w+)", config.option.markexpr or ""))
    marked = [{m.name for m in item.iter_markers()} & needy for item in terminalreporter.stats.get("deselected", [])]
    names = sorted(set().union(*marked)) if marked else []
    if names:
        hint = ", ".join(f"pytest -m {name}" for name in names)
        terminalreporter.write_line(f"left out by default: {sum(map(bool, marked))} tests that need more ({hint})")
