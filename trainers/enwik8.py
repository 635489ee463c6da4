"""Trains a decoder of bytes on text and tests it at longer lengths.

    python -m trainers.enwik8 --dataset=python_source
    python -m trainers.enwik8 --data_dir=~/data --preset=paper --encoding=ALiBi

`--dataset=enwik8` needs the file, of which the first start says where to get
it; `python_source` is on every machine.
"""

import dataclasses
import functools
import math

import numpy as np
from keras import ops

from datasets.curricula import CURRICULA
from datasets.tasks.batches import length_at
from datasets.text import TEXTS, CorpusError, batches
from keras_lengen.models import TransformerDecoder
from trainers.engine.losses import cross_entropies, sum_counted
from trainers.engine.problem import Metric, Problem
from trainers.errors import ConfigError
from trainers.experiment import Experiment
from trainers.options.fields import TrainerConfig, option
from trainers.options.layers import build, model_arguments


@dataclasses.dataclass(frozen=True)
class Enwik8Config(TrainerConfig):
    """Options of this trainer; every field is a flag."""

    dataset: str = option("enwik8", "Text.", choices=tuple(TEXTS))
    data_dir: str = option(
        "data",
        "Directory of enwik8, or the file or folder of --dataset=files.",
        is_path=True,
        changes_result=False,
    )
    split: str = option(
        "test", "Split to evaluate.", choices=("validation", "test")
    )
    curriculum: str = option(
        "Uniform", "Curriculum, by name or call.", registry=CURRICULA
    )
    normalization: str = option(
        "pre",
        "Normalization before or after each residual branch.",
        choices=("pre", "post"),
        changes_program=True,
    )
    evaluation_examples: int = option(
        64,
        "Windows of the longest length in an evaluation; at other lengths, as "
        "many as these bytes are; 0: the whole split.",
        least=0,
        changes_program=True,
    )
    num_heads: int = option(
        4, "Number of attention heads.", most=1024, changes_program=True
    )
    model_dim: int = option(
        128, "Width of the model.", most=2**16, changes_program=True
    )
    batch_size: int = option(
        16, "Examples in a global batch.", most=2**20, changes_program=True
    )
    train_length: str = option("256", "Trained lengths.", changes_program=True)
    test_lengths: str = option(
        "512,1024", "Lengths to evaluate in addition to the trained ones."
    )


POSITIONS = 64
"""Most positions of a window that the loss is reported at."""

PRESETS = {
    "small": {},
    # On the confounding effects of length generalization with randomized
    # positional encodings, section 4.1.
    "paper": {
        "num_layers": 8,
        "num_heads": 8,
        "model_dim": 256,
        "normalization": "post",
        "batch_size": 64,
        "learning_rate": 1e-4,
        "steps": 1_000_000,
        "max_position": 2048,
        "test_lengths": "1024",
        "evaluation_examples": 0,
        "steps_per_loop": 100,
        "checkpoint_every": 10_000,
        "evaluate_every": 50_000,
    },
}


def build_model(config):
    """Builds the model of a configuration."""
    return TransformerDecoder(
        # One id more for the symbol before the first byte.
        vocabulary_size=257,
        output_size=256,
        normalization=config.normalization,
        **model_arguments(config),
    )


class ByteProblem(Problem):
    """The next byte of a text.

    The bytes of an evaluation are the same at every length, cut into windows
    that do not overlap. Intervals are of 95%, over windows.
    """

    metrics = (
        Metric("nats_per_byte", "nats per byte", higher_is_better=False),
        Metric("bits_per_character", "bits", higher_is_better=False),
        Metric("loss", "nats per sequence", higher_is_better=False),
        Metric("nats_per_byte_interval", "nats", higher_is_better=False),
    )

    def __init__(self, config):
        super().__init__(config)
        self.title = config.dataset
        self.curriculum = build(config, "--curriculum")

    def prepare(self):
        for split in ("train", self.config.split):
            if not len(self.splits[split]):
                raise ConfigError(f"the text has no bytes in split {split}.")

    @functools.cached_property
    def splits(self):
        """Dict from the name of a split to its `Corpus`."""
        try:
            return TEXTS[self.config.dataset](self.config.data_dir)
        except CorpusError as error:
            raise ConfigError(
                f"{error} Or train on text that every machine has: "
                "--dataset=python_source."
            ) from None

    @property
    def _evaluated(self):
        """The corpus of an evaluation, and how many of its bytes."""
        most = self.config.evaluation_examples * self.lengths[-1]
        return {"corpus": self.splits[self.config.split], "most": most}

    def training_batches(self, **steps):
        return batches.training_dataset(
            self.splits["train"],
            length_at=self.tokens_at,
            batch_size=self.config.batch_size,
            seed=self.config.seed,
            **steps,
        )

    def tokens_at(self, step):
        config = self.config
        lengths = config.trained_lengths
        return length_at(config.seed, step, lengths, self.curriculum)

    def inputs(self, batch):
        # No token attends to the padding after it.
        return {"token_ids": batch["token_ids"]}

    def loss(self, outputs, batch):
        losses = cross_entropies(outputs, batch["targets"])
        return sum_counted(losses, batch["scored"])

    def encode(self, text):
        """Returns the token ids of bytes, after the symbol before them."""
        return [batches.BEGIN, *text]

    def decode(self, token_ids):
        """Returns the bytes of token ids."""
        return bytes(n for n in token_ids if n != batches.BEGIN)

    def evaluation_examples(self, length):
        return batches.count_windows(length=length, **self._evaluated)

    def evaluation_batch(self, **which):
        return batches.evaluation_batch(**which, **self._evaluated)

    def sums(self, outputs, batch):
        scored = batch["scored"] & batch["used"][:, None]
        losses = cross_entropies(outputs, batch["targets"])
        losses = ops.where(scored, losses, 0.0)
        counts = ops.sum(ops.cast(scored, "float32"), axis=-1)
        means = ops.sum(losses, axis=-1) / ops.maximum(counts, 1.0)
        windows = ops.sum(ops.cast(counts > 0, "float32"))
        totals = [ops.sum(means), ops.sum(means**2), windows]
        by_position = [ops.sum(losses, axis=0), ops.sum(scored, axis=0)]
        return ops.concatenate(
            [ops.stack(totals), *(ops.cast(n, "float32") for n in by_position)]
        )

    def measure(self, sums):
        means, squares, windows = sums[:3].tolist()
        total, count = np.sum(np.split(sums[3:], 2), axis=1).tolist()
        mean = total / count
        variance = max(squares / windows - (means / windows) ** 2, 0.0)
        return {
            "nats_per_byte": mean,
            "bits_per_character": mean / math.log(2),
            "loss": mean * count / windows,
            "nats_per_byte_interval": 1.96 * math.sqrt(variance / windows),
        }

    def measure_positions(self, sums):
        losses, counts = np.split(sums[3:], 2)
        length = int((counts > 0).sum())
        edges = np.arange(0, length, -(-length // POSITIONS))
        losses, counts = (
            np.add.reduceat(values[:length], edges)
            for values in (losses, counts)
        )
        return dict(zip(edges.tolist(), losses / counts, strict=True))


EXPERIMENT = Experiment(
    "enwik8", Enwik8Config, PRESETS, build_model, ByteProblem
)

if __name__ == "__main__":
    EXPERIMENT.run()
