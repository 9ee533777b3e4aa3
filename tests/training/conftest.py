"""A few graded rows, and a tiny random model with a tokenizer and a chat template, made on the spot."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import whilesim as ws
from whilesim.training.recipe import CHATML

POLICY = "You help with orders. You may cancel an order only when the customer asks for it. Never promise a date."
TOOLS = [
    {"name": "get_order", "description": "Look up an order.",
     "parameters": {"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]}},
    {"name": "cancel_order", "description": "Cancel an order.",
     "parameters": {"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]}},
    {"name": "transfer_to_human", "description": "Hand over.", "parameters": {"type": "object", "properties": {}}},
]  # fmt: skip


def make_model(folder: Path, texts: list[str]) -> Path:
    """Save a random model of a few thousand weights, and a byte-level tokenizer trained on the texts."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, set_seed

    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer, raw.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    special = ["<|im_start|>", "<|im_end|>", "<|pad|>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    raw.train_from_iterator(
        texts,
        trainers.BpeTrainer(vocab_size=600, special_tokens=special, initial_alphabet=alphabet, show_progress=False),
    )
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, eos_token="<|im_end|>", pad_token="<|pad|>")
    tokenizer.chat_template = CHATML.read_text(encoding="utf-8")
    tokenizer.save_pretrained(folder)
    set_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=8192,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def play() -> Callable[..., ws.Simulation]:
    """What plays and grades so many situations, so often, with so many of the three tools."""

    def run(situations: int, rollouts: int, tools: int = 3) -> ws.Simulation:
        size = {"situations": situations, "rollouts": rollouts}
        return ws.simulate(tools=TOOLS[:tools], system_prompt=POLICY, progress=False, **size).grade()

    return run


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from whilesim.showcase import demo_policy

    return make_model(tmp_path_factory.mktemp("model") / "tiny", [demo_policy()])
