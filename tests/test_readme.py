"""What the README shows is run."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest
from click.testing import CliRunner
from stub import Stub

from whilesim.cli import main

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_the_two_commands_are_the_ones_that_ci_runs() -> None:
    script = (Path(__file__).parent.parent / ".ci" / "run").read_text(encoding="utf-8")
    commands = re.search(r"```sh\n(.*?)```", README, re.DOTALL)
    assert commands is not None
    for command in commands.group(1).strip().splitlines():
        assert f"stage '{command}'" in script or f'stage "{command}"' in script


def test_the_first_block_is_four_lines_of_work(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from whilesim.showcase import demo_policy, demo_tools

    pushed: list[str] = []
    names = {"TOOLS": demo_tools(), "POLICY": demo_policy(), "RUBRIC": "honesty: nothing false was said"}
    block = BLOCKS[0].replace("POLICY)", "POLICY, situations=2, rollouts=1, progress=False)")
    block = block.replace("data.kept.push_to_hub(", "pushed.append(").replace(
        "data.grade(rubric=RUBRIC)", "data.grade(rubric=RUBRIC, fraction=0.0)"
    )
    with Stub() as stub:
        monkeypatch.setenv("OPENAI_BASE_URL", stub.url)
        monkeypatch.setenv("OPENAI_API_KEY", "x")
        with pytest.warns(UserWarning, match="judge"):
            exec(block, {**names, "pushed": pushed})
    assert pushed == ["you/support-sft"]
    assert stub.count > 2


@pytest.mark.parametrize("number", range(1, len(BLOCKS)))
def test_a_block_runs_offline(number: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    exec(textwrap.dedent(BLOCKS[number]), {"__name__": "readme"})


@pytest.mark.notebooks
def test_the_demo_prints_what_is_shown_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shown = re.search(r"```text\n(policy  .*?)```", README, re.DOTALL)
    assert shown is not None
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("whilesim.cards.embeddings.choose_embedder", lambda: "hashed")  # whatever model is here
    monkeypatch.setenv("CI", "1")  # no progress between the lines, whatever ran here before
    assert CliRunner().invoke(main, ["demo"]).output.startswith(shown.group(1).rstrip())
