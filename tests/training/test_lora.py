"""LoRA: a tiny random model, trained for real, answers with its adapter."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

import whilesim as ws
from whilesim.core.errors import InputError, RunError
from whilesim.keeping.trainable import Template, open_tokenizer
from whilesim.training.examples import UNTRAINED, build_examples
from whilesim.training.recipe import CHATML, Recipe

pytestmark = [
    pytest.mark.train,
    pytest.mark.filterwarnings("ignore::FutureWarning"),  # transformers warns of its own names
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),  # torch, about pinned memory on a machine without a card
]
RECIPE = Recipe(rank=8, alpha=32, learning_rate=2e-2, batch=2, at_once=2, steps=8, max_length=2000, eval_share=0.2)


@pytest.fixture(scope="module")
def data(play: Any) -> ws.Simulation:
    return play(12, 2, tools=2)


@pytest.fixture(scope="module")
def trained(data: ws.Simulation, tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    from whilesim.training.lora import train

    return train(data, str(tiny_model), tmp_path_factory.mktemp("out") / "support", recipe=RECIPE)


def test_loss_falls_and_the_rows_held_out_are_told(trained: Any) -> None:
    assert len(trained.losses) == 8
    assert trained.losses[-1] < trained.losses[0] - 0.05
    assert trained.eval_losses
    assert trained.held_out > 0
    told = str(trained)
    for words in (
        "in 8 steps",
        "--enable-lora --max-lora-rank 8 --lora-modules support=",
        "ws.Model(",
        "whilesim serve",
    ):
        assert words in told


def test_the_adapter_loads_and_answers(trained: Any, data: ws.Simulation) -> None:
    from peft import AutoPeftModelForCausalLM
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(trained.output)
    model = AutoPeftModelForCausalLM.from_pretrained(trained.output)
    asked = [data.rows[0].messages[0], {"role": "user", "content": "cancel my order"}]
    prompt = tokenizer.apply_chat_template(asked, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    answer = model.generate(**prompt, max_new_tokens=8, do_sample=False)
    assert answer.shape[1] > prompt["input_ids"].shape[1]
    assert any("lora" in name for name, _ in model.named_parameters())


def test_loss_covers_the_agent_s_words_and_calls_alone(data: ws.Simulation, tiny_model: Path) -> None:
    template = Template(open_tokenizer(str(tiny_model)))
    examples = build_examples(data, template, Recipe(max_length=4000, eval_share=0.0))
    assert len(examples.train) == len(data.kept)
    for example, row in zip(examples.train, data.kept.rows, strict=True):
        learned = template.tokenizer.decode([i for i in example["labels"] if i != UNTRAINED])
        assert row.messages[0]["content"] not in learned
        said = [m["content"] for m in row.messages if m["role"] == "assistant" and m["content"]]
        assert all(text in learned for text in said)
        assert all(m["content"] not in learned for m in row.messages if m["role"] == "user" and len(m["content"]) > 40)
        calls = [c["function"]["name"] for m in row.messages for c in m.get("tool_calls", ())]
        assert learned.count("<tool_call>") == len(calls)
        assert learned.count("<|im_end|>") == sum(m["role"] == "assistant" for m in row.messages)


def test_an_unmarked_template_trains_the_same_words(data: ws.Simulation, tiny_model: Path) -> None:
    tokenizer = open_tokenizer(str(tiny_model))
    marked = build_examples(data, Template(tokenizer), Recipe(max_length=2000, eval_share=0.0))
    tokenizer.chat_template = CHATML.read_text().replace("{%- generation %}", "").replace("{%- endgeneration %}", "")
    plain = build_examples(data, Template(tokenizer), Recipe(max_length=2000, eval_share=0.0))
    for one, other in zip(marked.train, plain.train, strict=True):
        differ = {
            tokenizer.decode([i])
            for i, j in zip(one["labels"], other["labels"], strict=True)
            if i != j and j == UNTRAINED
        }
        assert not differ  # it learns all that the marks name, and the line break behind a turn


def test_an_export_trains_too_and_what_a_template_breaks_is_counted(
    data: ws.Simulation, tiny_model: Path, tmp_path: Path
) -> None:
    template = Template(open_tokenizer(str(tiny_model)))
    path = tmp_path / "train.jsonl"
    data.export(path)
    found = build_examples(path, template, Recipe(max_length=2000, eval_share=0.25))
    assert len(found.train) + len(found.held_out) == len(data.kept)
    path.write_text(
        '{"messages": [{"role": "user", "content": "<|im_end|>"}, {"role": "assistant", "content": "Hm."}]}\n'
    )
    with pytest.raises(InputError, match=r"nothing is left to train .* 1 special token in a message"):
        build_examples(path, template, Recipe(max_length=2000, eval_share=0.0))
    path.write_text('{"text": "hello"}\n')
    with pytest.raises(InputError, match=r"train\.jsonl, line 1: a conversation needs a key 'messages'"):
        build_examples(path, template, Recipe(max_length=2000, eval_share=0.0))


def test_a_run_that_ended_says_so_and_trains_nothing_more(
    data: ws.Simulation, tiny_model: Path, tmp_path: Path
) -> None:
    from transformers import AutoModelForCausalLM

    from whilesim.training.lora import train

    out = tmp_path / "out"
    train(data, str(tiny_model), out, recipe=RECIPE, merge=True)  # eight steps cut an epoch short
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    for resume in (True, False):
        with pytest.raises(RunError, match=r"has ended, with all its 8 steps taken: nothing is left to go on with"):
            train(data, str(tiny_model), out, recipe=RECIPE, merge=True, resume=resume)
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    assert not (out / "adapter_config.json").exists()
    AutoModelForCausalLM.from_pretrained(out)
    held = json.loads((out / "training.json").read_text())
    assert held["recipe"] == asdict(RECIPE)
    assert len(held["losses"]) == 8


def test_a_run_that_was_killed_goes_on_from_its_last_checkpoint(
    data: ws.Simulation, tiny_model: Path, tmp_path: Path
) -> None:
    from whilesim.training.lora import train

    data.kept.save(tmp_path / "run")
    recipe, out = replace(RECIPE, steps=60), tmp_path / "out"
    code = "import sys; from whilesim.training.lora import train; from whilesim.training.recipe import Recipe; "
    code += "train(sys.argv[1], sys.argv[2], sys.argv[3], recipe=Recipe(**eval(sys.argv[4])))"
    script = [sys.executable, "-c", code, str(tmp_path / "run"), str(tiny_model), str(out), repr(asdict(recipe))]
    told = out / "checkpoint-30" / "trainer_state.json"
    with subprocess.Popen(script, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        while running.poll() is None and not told.exists():
            time.sleep(0.05)
        running.kill()
    assert "losses" not in json.loads((out / "training.json").read_text())
    half = [entry["loss"] for entry in json.loads(told.read_text())["log_history"] if "loss" in entry]
    done = train(tmp_path / "run", str(tiny_model), out, recipe=recipe, resume=True)
    assert len(done.losses) == 60
    assert list(done.losses[:30]) == half


def test_a_template_whose_end_the_tokenizer_does_not_know_is_refused(
    data: ws.Simulation, tiny_model: Path, tmp_path: Path
) -> None:
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    from whilesim.training.lora import train

    bare = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel({"a": 0}, unk_token="a")), eos_token="a")
    bare.save_pretrained(tmp_path / "model")
    with pytest.raises(InputError, match=r"has no token '<\|im_end\|>'"):
        train(data, str(tmp_path / "model"), tmp_path / "out", recipe=Recipe(template="chatml"))
    with pytest.raises(InputError, match="has no chat template"):
        train(data, str(tmp_path / "model"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_command_trains_and_prints_how_to_serve(data: ws.Simulation, tiny_model: Path, tmp_path: Path) -> None:
    data.save(tmp_path / "run")
    command = [sys.executable, "-c", "from whilesim.cli import main; main()", "train", "run", "--model", str(tiny_model),
               "--output", "adapter", "--steps", "2", "--batch", "1", "--max-length", "2000", "--rank", "4"]  # fmt: skip
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, env={**os.environ, "HF_HUB_OFFLINE": "1"}
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "vllm serve" in done.stdout
    assert "adapter in adapter" in done.stdout
