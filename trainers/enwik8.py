"""Trains a decoder of bytes on text and tests it at longer lengths.

    python -m trainers.enwik8 --dataset=python_source
    python -m trainers.enwik8 --data_dir=~/data --preset=paper --encoding=ALiBi

`--dataset=enwik8` needs the file, of which the first start says where to get
it; `python_source` is on every machine.
"""

import dataclasses
import math

from datasets.text import BYTES, TEXTS
from keras_lengen.models import TransformerDecoder
from trainers.engine.problem import Metric
from trainers.experiment import Experiment
from trainers.options.layers import model_arguments
from trainers.options.option import option
from trainers.text.options import WindowsConfig
from trainers.text.problem import TextProblem


@dataclasses.dataclass(frozen=True)
class Enwik8Config(WindowsConfig):
    """Options of this trainer; every field is a flag."""

    dataset: str = option(
        "enwik8", "Text.", choices=tuple(TEXTS), names_data=True
    )

    @property
    def unused(self):
        """Dict from flags that have no effect beside the others to reasons."""
        if self.dataset != "python_source":
            return super().unused
        reason = "with --dataset=python_source, which is in Python itself"
        return {**super().unused, "data_dir": reason}


PRESETS = {
    "small": {"steps": 1500, "dropout": 0.0, "evaluate_every": 500},
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


class ByteProblem(TextProblem):
    """The next byte of a text."""

    vocabulary = BYTES
    metrics = (
        Metric(
            "nats_per_byte",
            "nats per byte",
            higher_is_better=False,
            second_unit=("bits per byte", 1 / math.log(2)),
        ),
        Metric("bits_per_character", "bits per byte", higher_is_better=False),
        Metric("loss", "nats per sequence", higher_is_better=False),
    )

    def __init__(self, config):
        super().__init__(config)
        self.title = config.dataset
        if config.dataset != "python_source":
            self.hint = (
                " Or train on text that every machine has: "
                "--dataset=python_source."
            )

    def open(self):
        return TEXTS[self.config.dataset](self.config.data_dir)

    def convert(self, nats, tokens):
        return {
            "nats_per_byte": nats,
            "bits_per_character": nats / math.log(2),
            "loss": nats * tokens,
        }


def build_model(config):
    """Builds the model of a configuration."""
    return TransformerDecoder(
        vocabulary_size=BYTES.size,
        output_size=BYTES.begin,
        normalization=config.normalization,
        **model_arguments(config),
    )


EXPERIMENT = Experiment(
    "enwik8", Enwik8Config, PRESETS, build_model, ByteProblem
)

if __name__ == "__main__":
    EXPERIMENT.run()
