"""How a training goes through its rows, and what is made of the model that it starts from."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

from stscurate.errors import InputError
from stscurate.services.encoder import Pooling
from stscurate.services.precision import default_device, default_precision
from stscurate.training.batches import Order

LoadIn = Literal["4bit", "8bit"]


@dataclass(frozen=True)
class Schedule:
    """How the rows are gone through: passes, rows a step, peak learning rate, tokens a text is cut to, the seed.

    The learning rate rises over the first tenth of the steps and falls linearly to 0 over the rest.
    save_steps: steps between checkpoints, which is what a kill may cost; it doesn't shape the result.
    precision: of the matrix products; weights and losses stay in float32. auto: services.precision. fp16 needs a GPU.
    batches: as in batches.Batches. eval_steps: steps between two looks at the validation set (and one at the end);
    five looks in all unless given. patience: looks without a new best after which the training stops; None: never.
    micro_batch: texts that are encoded at once under a gradient cache (losses.cache); None: no cache.
    """

    epochs: int = 1
    batch_size: int = 32
    learning_rate: float = 2e-5
    max_tokens: int = 128
    seed: int = 0
    save_steps: int = 100
    precision: Literal["auto", "fp32", "bf16", "fp16"] = "auto"
    batches: Order = "random"
    eval_steps: int | None = None
    patience: int | None = None
    micro_batch: int | None = None

    def __post_init__(self) -> None:
        """Refuse what this machine can't do."""
        if self.precision == "fp16" and default_device() == "cpu":
            raise InputError("--precision fp16 needs a GPU: give bf16 or fp32.")

    @property
    def arithmetic(self) -> str:
        """The precision that `auto` stands for."""
        return default_precision() if self.precision == "auto" else self.precision

    @property
    def settings(self) -> dict[str, Any]:
        """What shapes the result."""
        shaping = {name: value for name, value in asdict(self).items() if name not in ("seed", "save_steps")}
        return shaping | {"precision": self.arithmetic}


@dataclass(frozen=True)
class Backbone:
    """What is made of the model that is started from.

    pooling: of its tokens' vectors; None leaves it to the model. prompt: the name of one of its prompts, or NAME=TEXT
    for a new one, which stands before every text in training and, by default, ever after. lora: rank of the low-rank
    updates that are trained in place of all weights, and merged into them at the end; None trains all weights.
    load_in: the weights that the updates are trained beside in so many bits (QLoRA, arXiv 2305.14314; bitsandbytes),
    which takes an eighth or a quarter of the memory; at the end they are merged into the whole weights. InputError
    without lora.
    """

    pooling: Pooling | None = None
    prompt: str | None = None
    lora: int | None = None
    load_in: LoadIn | None = None

    def __post_init__(self) -> None:
        """Refuse what can't be trained."""
        if self.load_in is not None and self.lora is None:
            raise InputError(
                f"--load-in {self.load_in}: weights of so few bits can't be trained. Add --lora, as in --lora 16, "
                "which trains low-rank updates beside them."
            )

    @property
    def settings(self) -> dict[str, Any]:
        """What was asked for; nothing where all is left to the model."""
        return {name: value for name, value in asdict(self).items() if value is not None}
