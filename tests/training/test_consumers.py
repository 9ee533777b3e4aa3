"""Consumers: what is exported and pushed is read by those it is written for."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fake_hub import FakeHub

import whilesim as ws
from whilesim.core.jsontext import read_lines


@pytest.fixture(scope="module")
def data(play: Any) -> ws.Simulation:
    return play(30, 3)


def test_openai_s_rules_for_fine_tuning_hold(data: ws.Simulation, tmp_path: Path) -> None:
    """Roles, ids answered at once and in full, arguments as text, names, ends with the assistant."""
    done = data.export(tmp_path / "x.jsonl", format="openai")
    assert done.lines >= 10
    for _, line in read_lines(done.path):
        assert set(line) <= {"messages", "tools", "parallel_tool_calls"}
        assert len(line["tools"]) <= 128
        for tool in line["tools"]:
            assert set(tool) == {"type", "function"}
            assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", tool["function"]["name"])
        open_calls: list[str] = []
        for message in line["messages"]:
            assert set(message) <= {"role", "content", "tool_calls", "tool_call_id", "name", "weight"}
            if message["role"] == "tool":
                open_calls.remove(message["tool_call_id"])
                assert isinstance(message["content"], str)
                continue
            assert not open_calls
            assert message["role"] in ("system", "user", "assistant")
            assert message["content"] or message.get("tool_calls")
            for call in message.get("tool_calls", ()):
                assert set(call) == {"id", "type", "function"}
                assert isinstance(json.loads(call["function"]["arguments"]), dict)
                open_calls.append(call["id"])
        assert not open_calls
        assert line["messages"][-1]["role"] == "assistant"


TRAIN_FROM_HUB = """
import sys
from datasets import load_dataset
from transformers import AutoTokenizer
from trl import SFTConfig, SFTTrainer

rows = load_dataset("you/support")
talks = rows["train"].select_columns(["messages", "tools"])
config = SFTConfig(output_dir=sys.argv[2], assistant_only_loss=True, max_steps=8, max_length=2000, learning_rate=2e-2,
                   per_device_train_batch_size=2, logging_steps=1, use_cpu=True, bf16=False, report_to="none",
                   save_strategy="no", disable_tqdm=True)
trainer = SFTTrainer(sys.argv[1], args=config, train_dataset=talks)
trainer.train()
labels = trainer.train_dataset[0]["labels"]
learned = AutoTokenizer.from_pretrained(sys.argv[1]).decode([i for i in labels if i != -100])
losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
streamed = next(iter(load_dataset("you/support", split="train", streaming=True)))
assert streamed["id"] == rows["train"][0]["id"]
assert "whilesim" not in sys.modules
print("FIRST", rows["train"][0]["id"], "LOSSES", losses)
print("LEARNED", learned)
"""


@pytest.mark.train
def test_a_pushed_dataset_trains_in_a_process_that_knows_nothing_of_us(
    data: ws.Simulation, tiny_model: Path, tmp_path: Path
) -> None:
    data.save(tmp_path / "run")
    push = "import whilesim as ws; ws.load('run').kept.push_to_hub('you/support', splits={'train': 0.75, 'test': 0.25})"
    with FakeHub() as hub:
        env = {**os.environ, **hub.env(tmp_path / "home"), "HF_HUB_OFFLINE": "0"}
        for script in (["-c", push], ["-c", TRAIN_FROM_HUB, str(tiny_model), str(tmp_path / "out")]):
            done = subprocess.run([sys.executable, *script], cwd=tmp_path, env=env, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr[-3000:]
    print(done.stdout)
    first, learned = done.stdout[done.stdout.index("FIRST") :].split("LEARNED ", 1)
    losses = json.loads(first[first.index("[") :])
    assert len(losses) == 8
    assert losses[-1] < losses[0]
    row = data.find(first.split()[1])
    for message in row.messages:
        if message["role"] == "assistant" and message["content"]:
            assert message["content"] in learned
        elif message["role"] in ("system", "tool"):
            assert message["content"] not in learned
    assert learned.count("<tool_call>") == sum(len(m.get("tool_calls", ())) for m in row.messages)


PREFERENCES = """
import sys
from datasets import load_dataset
import trl
kind, model, path, out = sys.argv[1:]
config, trainer = getattr(trl, f"{kind}Config", None), getattr(trl, f"{kind}Trainer", None)
if config is None or trainer is None:
    from importlib import import_module
    module = import_module(f"trl.experimental.{kind.lower()}")
    config, trainer = getattr(module, f"{kind}Config"), getattr(module, f"{kind}Trainer")
lines = load_dataset("json", data_files=path, split="train")
args = config(output_dir=out, max_steps=1, max_length=3000, per_device_train_batch_size=2, use_cpu=True, bf16=False,
              report_to="none", save_strategy="no", disable_tqdm=True)
from transformers import AutoModelForCausalLM, AutoTokenizer
made = trainer(AutoModelForCausalLM.from_pretrained(model), args=args, train_dataset=lines,
               processing_class=AutoTokenizer.from_pretrained(model))
made.train()
print("STEPS", made.state.global_step, "ROWS", len(made.train_dataset), made.train_dataset.column_names)
"""


@pytest.mark.train
@pytest.mark.parametrize("kind", ["DPO", "KTO"])
def test_pairs_and_labels_are_taken_by_their_trainer(
    data: ws.Simulation, tiny_model: Path, tmp_path: Path, kind: str
) -> None:
    done = data.export(tmp_path / "x.jsonl", format=kind.lower())  # type: ignore[arg-type]
    assert done.lines >= 1, str(done)
    script = [sys.executable, "-c", PREFERENCES, kind, str(tiny_model), done.path, str(tmp_path / "out")]
    ran = subprocess.run(script, capture_output=True, text=True, env={**os.environ, "HF_HUB_OFFLINE": "1"})
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert f"STEPS 1 ROWS {done.lines}" in ran.stdout
