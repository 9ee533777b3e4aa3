"""Recipe: what is trained and how, a frozen value with a source for each default.

[1] Hu et al. (2022). LoRA: Low-rank adaptation of large language models. ICLR.
[2] Dettmers et al. (2023). QLoRA: Efficient finetuning of quantized LLMs. NeurIPS.
[3] Schulman, Thinking Machines Lab (2025). LoRA without regret.
[4] Zhou et al. (2023). LIMA: Less is more for alignment. NeurIPS.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from whilesim.core.errors import InputError

CHATML = Path(__file__).parent / "chatml.jinja"
"""A chat template of ours, with tools and with marks around what the agent writes."""
Where = Literal["model", "chatml"]


def _from(default: Any, source: str) -> Any:
    return field(default=default, metadata={"source": source})


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How a LoRA adapter is trained; :meth:`sources` says why each default is what it is."""

    rank: int = _from(32, "[3]: enough while the adapter has more parameters than the data have trained tokens")
    alpha: int = _from(32, "[3]: 32 for every rank, so that the learning rate need not follow the rank")
    dropout: float = _from(0.0, "[3]: none; [2] uses 0.1 up to 13B and finds it of use on small data only")
    targets: str = _from("all-linear", "[2] section 4 and [3]: all linear layers; attention alone falls behind")
    learning_rate: float = _from(2e-4, "[2] table 9, and [3]: ten times that of full fine-tuning")
    schedule: str = _from("constant", "[2] and [3]: constant")
    batch: int = _from(16, "[2] table 9; [3]: large batches cost LoRA more than full fine-tuning")
    at_once: int = _from(1, "ours: a row of 4,096 tokens at a time fits a 24 GB card with a 4B model")
    epochs: float = _from(2.0, "ours, between one pass and the many of [4]; look at the loss of the eval rows")
    steps: int = _from(-1, "ours: -1 lets epochs decide")
    max_length: int = _from(4096, "ours: verify_for() tells what it cuts")
    eval_share: float = _from(0.1, "ours: situations and twins stay together; 0 for none")
    template: Where = _from("model", "ours: what the model was trained with; chatml where that has no tools")
    seed: int = _from(0, "ours: decides the split, the adapter's first weights and the order of rows")

    def __post_init__(self) -> None:
        for name in ("rank", "alpha", "batch", "at_once", "max_length"):
            if getattr(self, name) < 1:
                raise InputError(f"{name}={getattr(self, name)!r} trains nothing. Type a whole number from 1.")
        if self.batch % self.at_once:
            msg = f"batch={self.batch} is no multiple of at_once={self.at_once}, so no steps make it up."
            raise InputError(f"{msg} Type at_once=1.")
        if not 0 <= self.eval_share < 1:
            msg = f"eval_share={self.eval_share!r} leaves nothing to train on. Type a share from 0 to below 1."
            raise InputError(msg)
        if self.template not in ("model", "chatml"):
            raise InputError(f"there is no template {self.template!r}. Type 'model' or 'chatml'.")

    @classmethod
    def sources(cls) -> dict[str, str]:
        """Return name to the source of its default."""
        return {f.name: f.metadata["source"] for f in fields(cls)}
