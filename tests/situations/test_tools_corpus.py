"""On tool sets that others wrote, tools are read as a careful reader reads them."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

BENCH: dict[str, Any] = runpy.run_path(str(Path(__file__).parents[1] / "benchmarks" / "bench_tools.py"))

pytestmark = pytest.mark.corpus


@pytest.mark.parametrize("column", ["names", "effects", "required", "ids"])
def test_at_least_nineteen_in_twenty_are_right(shared: Path, column: str):
    scores = [case[column] for case in BENCH["measure"](shared).values()]
    assert sum(right for right, _ in scores) >= 0.95 * sum(count for _, count in scores)


def test_the_benchmark_tools_split_into_reads_and_writes_as_published(shared: Path):
    assert BENCH["splits"](shared) == BENCH["PUBLISHED"]
