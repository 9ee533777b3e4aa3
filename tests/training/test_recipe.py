"""Recipe: frozen, sourced, and refusing what trains nothing; and the command line around it."""

from __future__ import annotations

import dataclasses
import json
from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import CliRunner

from whilesim.cli import main
from whilesim.core.errors import InputError, MissingExtra, RunError
from whilesim.training import lora
from whilesim.training.lora import serving
from whilesim.training.recipe import CHATML, Recipe


def test_every_default_has_a_source() -> None:
    sources = Recipe.sources()
    assert list(sources) == [field.name for field in dataclasses.fields(Recipe)] == list(dataclasses.asdict(Recipe()))
    assert all(sources.values())
    for source in sources.values():
        assert source.startswith(("ours", "[")), source


def test_a_recipe_does_not_change() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Recipe().rank = 8  # type: ignore[misc]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"rank": 0}, "rank=0 trains nothing"),
        ({"max_length": 0}, "max_length=0 trains nothing"),
        ({"batch": 3, "at_once": 2}, "batch=3 is no multiple of at_once=2"),
        ({"eval_share": 1.0}, "eval_share=1.0 leaves nothing to train on"),
        ({"template": "alpaca"}, "there is no template 'alpaca'"),
    ],
)
def test_what_trains_nothing_is_refused(change: dict[str, object], why: str) -> None:
    with pytest.raises(InputError, match=why):
        Recipe(**change)  # type: ignore[arg-type]


def test_the_commands_name_base_adapter_parser_and_template() -> None:
    ours = serving(
        "org/base", Path("out/support"), Recipe(template="chatml"), merged=False, template=CHATML.read_text()
    )
    assert ours == (
        "vllm serve org/base --enable-lora --max-lora-rank 32 --lora-modules support=out/support --max-model-len 8192 "
        "--enable-auto-tool-choice --tool-call-parser hermes --chat-template out/support/chat_template.jinja --port 8000",
        'ws.Model("support", base_url="http://localhost:8000/v1")',
        "whilesim serve --agent support --base-url http://localhost:8000/v1",
    )
    merged = serving("org/base", Path("out/support"), Recipe(), merged=True, template="{{ messages }}")
    assert merged[0] == "vllm serve out/support --served-model-name support --max-model-len 8192 --port 8000"


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(lora, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r'pip install "whilesim\[train\]"'):
        lora.train("run", "org/base", tmp_path / "out")
    done = CliRunner().invoke(main, ["train", "run", "--model", "org/base", "--output", str(tmp_path / "out")])
    assert done.exit_code == 2
    assert "MissingExtra" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_command_shows_the_recipe_s_defaults() -> None:
    told = CliRunner().invoke(main, ["train", "--help"]).output
    assert "Example: whilesim train run --model Qwen/Qwen3-4B-Instruct-2507 --output lora" in " ".join(told.split())
    assert "default: 0.0002" in told


def test_a_folder_with_another_training_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(lora, "find_spec", find_spec if find_spec("torch") else lambda name: True)
    held = {"model": "org/base", "recipe": dataclasses.asdict(Recipe())}
    (tmp_path / "training.json").write_text(json.dumps(held), encoding="utf-8")
    with pytest.raises(InputError, match=r"holds a training already\. Type resume=True"):
        lora.train("run", "org/base", tmp_path)
    with pytest.raises(InputError, match="was begun with another model and recipe"):
        lora.train("run", "org/other", tmp_path, recipe=Recipe(rank=4), resume=True)
    (tmp_path / "training.json").write_text(json.dumps({**held, "losses": [2.0, 1.5]}), encoding="utf-8")
    for resume in (True, False):
        with pytest.raises(RunError, match=r"has ended, with all its 2 steps taken.* name another folder"):
            lora.train("run", "org/base", tmp_path, resume=resume)
    assert [path.name for path in tmp_path.iterdir()] == ["training.json"]
