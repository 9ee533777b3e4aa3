"""The same calls work in a script, a notebook, a web handler and inside a running loop."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

import whilesim as ws
from whilesim.showcase import demo_policy, demo_tools

JOB = """
import whilesim as ws
from whilesim.showcase import demo_policy, demo_tools
data = ws.simulate(tools=demo_tools(), system_prompt=demo_policy(), situations=2, rollouts=1, progress=False)
print(len(data.grade().rows), data.ledger.planned)
"""
HERE = "|".join(
    re.escape(str(p)) for p in (Path(__file__).parents[1], Path.home(), Path(tempfile.gettempdir()), Path(sys.prefix))
)
NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))


def simulate() -> ws.Simulation:
    plan = ws.plan(tools=demo_tools(), system_prompt=demo_policy(), situations=2)
    return ws.simulate(plan=plan, rollouts=1, progress=False).grade()


def test_in_a_script() -> None:
    done = subprocess.run([sys.executable, "-c", JOB], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("2 2\n", "")


def test_inside_a_running_loop_with_others_waiting() -> None:
    """What a notebook cell, an async handler and an async test are; ``asimulate`` lets the others go on."""

    async def handler() -> tuple[int, int]:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0.001)

        ticking = asyncio.ensure_future(tick())
        data = await ws.asimulate(
            tools=demo_tools(), system_prompt=demo_policy(), situations=2, rollouts=1, progress=False
        )
        meanwhile = ticks
        ticking.cancel()
        return len(data.grade().rows) + len(simulate().rows), meanwhile

    rows, meanwhile = asyncio.run(handler())
    assert rows == 4
    assert meanwhile > 1


def test_many_handlers_at_once() -> None:
    async def handlers() -> list[int]:
        found = await asyncio.gather(*(asyncio.to_thread(simulate) for _ in range(3)))
        return [len(data.rows) for data in found]

    assert asyncio.run(handlers()) == [2, 2, 2]


@pytest.mark.notebooks
@pytest.mark.filterwarnings("ignore")  # what the clients of others warn of is not ours to mend
class TestWithTheirOwnPackages:
    def test_in_a_fastapi_handler(self) -> None:
        fastapi = pytest.importorskip("fastapi")
        from fastapi.testclient import TestClient

        app = fastapi.FastAPI()

        @app.get("/awaited")
        async def awaited() -> dict[str, int]:
            data = await ws.asimulate(
                tools=demo_tools(), system_prompt=demo_policy(), situations=2, rollouts=1, progress=False
            )
            return {"rows": len(data.rows)}

        @app.get("/blocking")
        async def blocking() -> dict[str, int]:
            return {"rows": len(simulate().rows)}

        @app.get("/threaded")
        def threaded() -> dict[str, int]:
            return {"rows": len(simulate().rows)}

        with TestClient(app) as client:
            found = {path: client.get(path).json() for path in ("/awaited", "/blocking", "/threaded")}
        print(f"\nFastAPI: {found}")
        assert found == {path: {"rows": 2} for path in found}

    def test_in_a_notebook_cell(self) -> None:
        nbformat = pytest.importorskip("nbformat")
        nbclient = pytest.importorskip("nbclient")
        cells = [nbformat.v4.new_code_cell(JOB), nbformat.v4.new_code_cell("await ws.asimulate(plan=plan)")]
        cells[1].source = (
            "plan = ws.plan(tools=demo_tools(), system_prompt=demo_policy(), situations=2)\n" + cells[1].source
        )
        notebook = nbformat.v4.new_notebook(cells=cells)
        nbclient.NotebookClient(notebook, timeout=300).execute()
        # libraries at hand may write to stderr while they load
        said = "".join(out.text for out in notebook.cells[0].outputs if out.get("name") == "stdout")
        shown = [out.data["text/plain"] for out in notebook.cells[1].outputs if out.output_type == "execute_result"]
        print(f"\nnotebook: {said!r}, {shown}")
        assert said == "2 2\n"
        assert "Simulation of 4 rows" in shown[0]

    @pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
    def test_our_own_notebooks_print_what_stands_in_them(
        self, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """``python tests/test_places.py`` writes what they print now."""
        nbformat = pytest.importorskip("nbformat")
        pytest.importorskip("nbclient")
        if path.stem == "04_train":
            pytest.importorskip("trl")
        monkeypatch.setenv("HF_HUB_OFFLINE", "1")
        monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))  # no model that happens to be here chooses cards
        committed = nbformat.read(path, as_version=4)
        assert shown(execute(path, tmp_path)) == shown(committed)

    @pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
    def test_our_own_notebooks_are_short_and_name_no_machine(self, path: Path) -> None:
        nbformat = pytest.importorskip("nbformat")
        notebook = nbformat.read(path, as_version=4)
        assert notebook == neutral(nbformat.read(path, as_version=4))
        assert len(notebook.cells) < 15
        assert not re.search(rf"/home/|/Users/|site-packages|{HERE}", path.read_text(encoding="utf-8"))


def execute(path: Path, folder: Path) -> Any:
    """Run a notebook in a folder, offline, and return it as it may be committed."""
    import nbclient
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    where = {"metadata": {"path": str(folder)}}
    nbclient.NotebookClient(
        notebook, timeout=300, resources=where, record_timing=False, coalesce_streams=True
    ).execute()
    return neutral(notebook)


def neutral(notebook: Any) -> Any:
    """Take out of a notebook what depends on the machine: its Python, and what libraries say while they load."""
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook.metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [out for out in cell.outputs if out.get("name") != "stderr"]
    return notebook


def shown(notebook: Any) -> list[str]:
    """Return what each code cell shows as text; losses are those of a machine, and left out."""
    cells = [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]
    texts = ["".join(out.get("text") or out.get("data", {}).get("text/plain", "") for out in outs) for outs in cells]
    return [re.sub(r"(loss.*) \d+\.\d+ -> \d+\.\d+", r"\1", text) for text in texts]


if __name__ == "__main__":
    import nbformat

    for name in NOTEBOOKS:
        with tempfile.TemporaryDirectory() as place:
            os.environ.update(HF_HUB_OFFLINE="1", HF_HOME=f"{place}/hub")
            nbformat.write(execute(name, Path(place)), name)
            print(name)
