"""Commands: ``whilesim train``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from whilesim.shell import FOLDER, command, show
from whilesim.training.recipe import Recipe

_defaults = Recipe()
_TEMPLATE = "Chat template: the model's own, or ours, which has tools."


@click.command()
@click.argument("data")
@click.option("--model", required=True, help="Model to train: a name on the Hub, or a folder.")
@click.option("--output", required=True, type=FOLDER, help="Folder for the adapter.")
@click.option("--template", default=_defaults.template, type=click.Choice(["model", "chatml"]), help=_TEMPLATE)
@click.option("--rank", default=_defaults.rank, help="Rank of the adapter.")
@click.option("--learning-rate", default=_defaults.learning_rate, help="Constant.")
@click.option("--batch", default=_defaults.batch, help="Rows that one step learns from.")
@click.option("--epochs", default=_defaults.epochs, help="Passes over the rows.")
@click.option("--steps", default=_defaults.steps, help="Steps; -1 lets --epochs decide.")
@click.option("--max-length", default=_defaults.max_length, help="Tokens from which a row is cut.")
@click.option("--eval-share", default=_defaults.eval_share, help="Share of the rows held out.")
@click.option("--seed", default=_defaults.seed, help="Decides split, weights and order.")
@click.option("--resume", is_flag=True, help="Go on from the last checkpoint in --output.")
@click.option("--merge", is_flag=True, help="Save the whole model, the adapter in it.")
@command
def train(data: str, model: str, output: str, resume: bool, merge: bool, as_json: bool, **recipe: Any) -> None:
    """Train a LoRA adapter on kept rows, and say how to serve it.

    DATA is a run folder, a dataset of ours on the Hub, or a file that export wrote. Loss
    covers the agent's words and calls alone. Needs: pip install "whilesim[train]"

    Example: whilesim train run --model Qwen/Qwen3-4B-Instruct-2507 --output lora
    """
    from whilesim.training.lora import train as train_adapter

    done = train_adapter(data, model, output, recipe=Recipe(**recipe), resume=resume, merge=merge)
    show(asdict(done), str(done), as_json=as_json)
