"""Every example runs, offline, against a loopback server where it needs a model."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest
from stub import Stub

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))
NEEDY = {"ray_cluster": [pytest.mark.ray, pytest.mark.filterwarnings("ignore")]}  # more than the light install


@pytest.mark.parametrize("path", [pytest.param(p, marks=NEEDY.get(p.stem, ())) for p in EXAMPLES], ids=lambda p: p.stem)
@pytest.mark.filterwarnings("ignore:.*judges its own")
def test_an_example_runs(
    path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with Stub() as stub:
        arguments = [stub.url, "stub"] if path.stem == "local_server" else []
        monkeypatch.setattr(sys, "argv", [str(path), *arguments])
        runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out.strip()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_an_example_is_one_idea(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 60
