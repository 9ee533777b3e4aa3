"""What a user sees first: the names, and what importing them costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import whilesim as ws


def test_every_public_name_is_there_and_has_a_docstring() -> None:
    for name in ws.__all__:
        assert getattr(ws, name).__doc__, name


def test_a_name_stays_itself_however_it_is_reached() -> None:
    from whilesim.street import simulate

    assert ws.simulate is simulate
    assert ws.simulate is simulate


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'simulte'"):
        ws.simulte  # noqa: B018


def test_importing_loads_no_client_no_datasets_no_torch() -> None:
    code = (
        "import whilesim, sys; "
        "print(sorted({'openai', 'litellm', 'datasets', 'torch', 'pandas', 'scipy', 'aiohttp'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_names_are_few() -> None:
    assert len(ws.__all__) <= 30
    assert sorted(ws.__all__) == ws.__all__
