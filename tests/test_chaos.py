"""Every case of the chaos table holds."""

from __future__ import annotations

from collections.abc import Callable

import chaos
import pytest


@pytest.mark.chaos
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # a restarted stub leaves its old sockets to the collector
@pytest.mark.parametrize("case", chaos.CASES, ids=lambda case: case.__name__)
def test_a_run_ends_as_it_should(case: Callable[[], chaos.Result]) -> None:
    result = case()
    print(result)
    assert result.problems == []
