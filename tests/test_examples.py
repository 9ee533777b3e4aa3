"""Every example runs, offline, against a loopback server where it needs a model."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest
from stub import Stub

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))
_QUIET = pytest.mark.filterwarnings("ignore")  # what other packages warn of is not ours to mend
NEEDY = {  # more than the light install
    "langchain_agent": [pytest.mark.notebooks, _QUIET],
    "lora": [pytest.mark.train, _QUIET],
    "ray_cluster": [pytest.mark.ray, _QUIET],
}
MODULES = {"langchain_agent": "langchain_openai", "lora": "trl", "ray_cluster": "ray"}


def arguments_of(name: str, address: str, folder: Path) -> list[str]:
    if name == "lora":
        from training.conftest import make_model

        return [str(make_model(folder / "tiny", ["You help the readers of a town library."])), "adapter"]
    return [address, "stub"] if name == "local_server" else []


@pytest.mark.parametrize("path", [pytest.param(p, marks=NEEDY.get(p.stem, ())) for p in EXAMPLES], ids=lambda p: p.stem)
@pytest.mark.filterwarnings("ignore:.*judges its own")
def test_an_example_runs(
    path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if path.stem in MODULES:
        pytest.importorskip(MODULES[path.stem])
    monkeypatch.chdir(tmp_path)
    with Stub() as stub:
        monkeypatch.setenv("OPENAI_BASE_URL", stub.url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        monkeypatch.setattr(sys, "argv", [str(path), *arguments_of(path.stem, stub.url, tmp_path)])
        runpy.run_path(str(path), run_name="__main__")
        asked = stub.count
    assert capsys.readouterr().out.strip()
    assert bool(asked) is (path.stem in ("langchain_agent", "local_server", "openai_model"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_an_example_is_one_idea(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 60
