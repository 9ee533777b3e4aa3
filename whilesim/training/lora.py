"""LoRA: an adapter trained on kept rows, saved, and told how to be served and evaluated.

Supervised fine-tuning by TRL and PEFT, with loss on the agent's tokens alone. Runs on a CPU
with a tiny model, and on one card with a model of a few billion parameters.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from whilesim.core.errors import InputError, MissingExtra, RunError
from whilesim.core.jsontext import dumps, loads, write_whole
from whilesim.keeping.trainable import Template, open_tokenizer
from whilesim.training.examples import Examples, build_examples
from whilesim.training.recipe import CHATML, Recipe

NEEDED = ("torch", "transformers", "peft", "trl")
_PORT = 8000
_END = "<|im_end|>"
_PARSERS = {"<tool_call>": "hermes", "[TOOL_CALLS]": "mistral", "<|python_tag|>": "llama3_json"}  # template to vLLM's


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """A trained adapter: where it lies, how it went, and how to serve it."""

    model: str
    output: str
    rows: int
    held_out: int
    left_out: Mapping[str, int]
    losses: tuple[float, ...]
    """Of each logged step, in order."""
    eval_losses: tuple[float, ...]
    """Of the rows held out, after each epoch."""
    merged: bool
    commands: tuple[str, ...]
    """Serve it, name it in Python, serve it as an endpoint of ours."""

    def __str__(self) -> str:
        out = "; ".join(f"{n} {why}" for why, n in self.left_out.items() if n) or "none"
        kind = "merged model" if self.merged else "adapter"
        lines = [f"{self.model} trained on {self.rows} rows, {self.held_out} held out; left out: {out}"]
        lines.append(f"loss {_path(self.losses)} in {len(self.losses)} steps")
        lines += [f"loss of the rows held out {_path(self.eval_losses)}"] if self.eval_losses else []
        return "\n".join([*lines, f"{kind} in {self.output}", "", *self.commands])

    __repr__ = __str__  # a notebook shows the value of a cell


def train(
    data: Any,
    model: str,
    output: str | os.PathLike[str],
    *,
    recipe: Recipe | None = None,
    resume: bool = False,
    merge: bool = False,
) -> Trained:
    """Train an adapter on kept rows and return where it is, its losses and how to serve it.

    Args:
        data: A simulation, a run folder, a dataset of ours on the Hub, or a ``trl`` export.
        model: Name on the Hub or folder of the model.
        output: Folder for the adapter, its tokenizer, ``training.json`` and checkpoints.
        recipe: None for :class:`Recipe`'s defaults.
        resume: Go on from the last checkpoint in ``output``.
        merge: Save the model with the adapter in it, instead of the adapter alone.

    Raises:
        MissingExtra: trl, peft, transformers or torch is not installed.
        InputError: Nothing is left to train on, the template cannot be used, or ``output``
            holds another training.
        RunError: The training that should go on has ended.
    """
    if missing := next((name for name in NEEDED if find_spec(name) is None), None):
        raise MissingExtra(missing, "train")
    recipe, folder = recipe or Recipe(), Path(output)
    what = {"model": model, "recipe": asdict(recipe)}
    _refuse_another(folder, what, resume=resume)
    tokenizer = _with_template(open_tokenizer(model), recipe)
    examples = build_examples(data, Template(tokenizer), recipe)
    write_whole(folder / "training.json", [dumps(what, indent=1).encode()])
    trainer = _trainer(model, tokenizer, examples, recipe, folder)
    trainer.train(resume_from_checkpoint=bool(resume and list(folder.glob("checkpoint-*"))))
    (trainer.model.merge_and_unload() if merge else trainer.model).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    history = trainer.state.log_history
    done = Trained(
        model=model,
        output=os.fspath(output),
        rows=len(examples.train),
        held_out=len(examples.held_out),
        left_out=examples.left_out,
        losses=tuple(entry["loss"] for entry in history if "loss" in entry),
        eval_losses=tuple(entry["eval_loss"] for entry in history if "eval_loss" in entry),
        merged=merge,
        commands=serving(model, folder, recipe, merged=merge, template=str(tokenizer.chat_template)),
    )
    told = {**what, "losses": done.losses, "eval_losses": done.eval_losses}
    write_whole(folder / "training.json", [dumps(told, indent=1).encode()])
    return done


def serving(model: str, folder: Path, recipe: Recipe, *, merged: bool, template: str) -> tuple[str, ...]:
    """Return the commands that serve a trained model and the one line that names it in Python."""
    name, url = folder.name, f"http://localhost:{_PORT}/v1"
    parser = next((parser for mark, parser in _PARSERS.items() if mark in template), None)
    tools = ["--enable-auto-tool-choice", f"--tool-call-parser {parser}"] if parser else []
    ours = [f"--chat-template {folder / 'chat_template.jinja'}"] if recipe.template == "chatml" else []
    adapter = ["--enable-lora", f"--max-lora-rank {recipe.rank}", f"--lora-modules {name}={folder}"]
    what = [f"vllm serve {folder}", f"--served-model-name {name}"] if merged else [f"vllm serve {model}", *adapter]
    serve = " ".join([*what, f"--max-model-len {2 * recipe.max_length}", *tools, *ours, f"--port {_PORT}"])
    return serve, f'ws.Model("{name}", base_url="{url}")', f"whilesim serve --agent {name} --base-url {url}"


def _refuse_another(folder: Path, what: Mapping[str, Any], *, resume: bool) -> None:
    """Refuse a folder that holds another training, or one that has ended."""
    told = folder / "training.json"
    before = loads(told.read_text(encoding="utf-8")) if told.exists() else {}
    if "losses" in before:
        msg = f"the training in {os.fspath(folder)!r} has ended, with all its {len(before['losses'])} steps taken: nothing is left to go on with. "
        raise RunError(msg + "Use what lies there, or name another folder to train again.")
    if before and not resume:
        msg = f"{os.fspath(folder)!r} holds a training already. Type resume=True to go on with it, or name another folder."
        raise InputError(msg)
    if differ := [name for name, value in what.items() if before and before.get(name) != value]:
        msg = f"{os.fspath(folder)!r} was begun with another {' and '.join(differ)}. Give the same, or name another folder."
        raise InputError(msg)


def _with_template(tokenizer: Any, recipe: Recipe) -> Any:
    if recipe.template == "chatml":
        if _END not in tokenizer.get_vocab():
            msg = f"{tokenizer.name_or_path!r} has no token {_END!r}, so the chatml template would end no turn. "
            raise InputError(msg + "Type template='model'.")
        tokenizer.chat_template, tokenizer.eos_token = CHATML.read_text(encoding="utf-8"), _END
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def _trainer(model: str, tokenizer: Any, examples: Examples, recipe: Recipe, folder: Path) -> Any:
    import torch
    from datasets import Dataset
    from peft import LoraConfig
    from transformers import AutoModelForCausalLM, set_seed
    from trl import SFTConfig, SFTTrainer

    set_seed(recipe.seed)
    on_card = torch.cuda.is_available()
    base = AutoModelForCausalLM.from_pretrained(model, dtype=torch.bfloat16 if on_card else torch.float32)
    base.generation_config.eos_token_id = tokenizer.eos_token_id
    at_once, often = recipe.at_once, max(1, min(100, recipe.steps // 2 if recipe.steps > 0 else 100))
    adapter = LoraConfig(
        r=recipe.rank,
        lora_alpha=recipe.alpha,
        lora_dropout=recipe.dropout,
        target_modules=recipe.targets,
        task_type="CAUSAL_LM",
    )
    config = SFTConfig(
        output_dir=os.fspath(folder),
        seed=recipe.seed,
        logging_steps=1,
        report_to="none",
        num_train_epochs=recipe.epochs,
        max_steps=recipe.steps,
        learning_rate=recipe.learning_rate,
        lr_scheduler_type=recipe.schedule,
        per_device_train_batch_size=at_once,
        per_device_eval_batch_size=at_once,
        gradient_accumulation_steps=recipe.batch // at_once,
        max_length=None,  # cut when tokens were made
        eval_strategy="epoch" if examples.held_out else "no",
        save_strategy="steps",
        save_steps=often,
        save_total_limit=1,
        gradient_checkpointing=on_card,
        bf16=on_card,
        use_cpu=not on_card,
    )
    rows = {"train_dataset": Dataset.from_list(examples.train)}
    rows |= {"eval_dataset": Dataset.from_list(examples.held_out)} if examples.held_out else {}
    return SFTTrainer(model=base, args=config, processing_class=tokenizer, peft_config=adapter, **rows)


def _path(losses: Sequence[float]) -> str:
    return f"{losses[0]:.3f} -> {losses[-1]:.3f}" if losses else "unknown"
