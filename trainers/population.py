"""Trains many small models at once: all seeds and learning rates of a cell.

Computes with JAX and needs no TensorFlow. The same command resumes.

    python -m trainers.population --task=reverse_string --seeds=0-9
    python -m trainers.population --preset=paper --minutes=8
"""

import dataclasses
import functools
import pathlib

import keras

from datasets.buckets import length_buckets
from datasets.jax_tasks import JAX_TASKS
from keras_lengen.models import TransformerEncoder
from trainers.engine.evaluation_sizes import PROGRAMS
from trainers.engine.optimizer import Constant, make_optimizer
from trainers.engine.population import Member, Population
from trainers.errors import ConfigError, as_config_errors
from trainers.options.command import run
from trainers.options.fields import LengthsConfig
from trainers.options.layers import model_arguments, with_max_position
from trainers.options.option import check_options, option, with_default
from trainers.populations.members import parse_learning_rates, parse_seeds
from trainers.records.population_run import PopulationRun

_shared = {
    field.name: with_default(LengthsConfig, field.name, field.default)
    for field in dataclasses.fields(LengthsConfig)
}


@dataclasses.dataclass(frozen=True)
class PopulationConfig:
    """Options of this program; every field is a flag."""

    preset: str = _shared["preset"]
    task: str = option("even_pairs", "Task.", choices=JAX_TASKS)
    seeds: str = option(
        "0-2", "Seeds of weights, data, positions and dropout, as 0-9."
    )
    learning_rates: str = option(
        "1e-3", "Learning rates of Adam, each with every seed, as 1e-4,3e-4."
    )
    encoding: str = with_default(
        LengthsConfig, "encoding", "RandomizedRelativeEncoding"
    )
    sampler: str = _shared["sampler"]
    attention: str = _shared["attention"]
    score_factor: str = _shared["score_factor"]
    max_position: int = _shared["max_position"]
    chunk_size: int = _shared["chunk_size"]
    draw: str = _shared["draw"]
    num_layers: int = _shared["num_layers"]
    num_heads: int = _shared["num_heads"]
    model_dim: int = _shared["model_dim"]
    dropout: float = _shared["dropout"]
    train_length: str = _shared["train_length"]
    test_lengths: str = _shared["test_lengths"]
    evaluation_examples: int = _shared["evaluation_examples"]
    steps: int = _shared["steps"]
    batch_size: int = option(
        128, "Examples in the batch of a model.", most=2**20
    )
    clip_norm: float = _shared["clip_norm"]
    buckets: int = _shared["buckets"]
    precision: str = option(
        "float32",
        "Dtype policy of the models.",
        choices=("float32", "mixed_bfloat16"),
    )
    members_at_once: int = option(
        0,
        "Number of models that are computed at once; 0: one on CPUs, else all. "
        "Fewer save memory.",
        least=0,
        changes_result=False,
    )
    minutes: float = option(
        0.0,
        "Minutes after which to save and stop; 0: not before the end.",
        least=0,
        changes_result=False,
    )
    steps_per_loop: int = _shared["steps_per_loop"]
    checkpoint_every: int = _shared["checkpoint_every"]
    keep_checkpoints: int = _shared["keep_checkpoints"]
    workdir: str = _shared["workdir"]

    token_meanings = {}

    def validate(self):
        """Raises `ConfigError` for the first value that cannot work."""
        check_options(self)
        max(self.evaluated_lengths), self.members  # They raise errors.

    @property
    def members(self):
        """Tuple of `Member`, every seed with every learning rate."""
        return tuple(
            Member(seed, rate)
            for rate in parse_learning_rates(self.learning_rates)
            for seed in parse_seeds(self.seeds)
        )

    trained_lengths = LengthsConfig.trained_lengths
    evaluated_lengths = LengthsConfig.evaluated_lengths

    def total_length(self, length):
        """Returns the tokens of a problem: its input and its output slots."""
        return JAX_TASKS[self.task].total_length(length)


PRESETS = {
    "small": {},
    # Ruoss et al., 2023, section 4 and appendix A.
    "paper": {
        "seeds": "0-9",
        "learning_rates": "1e-4,3e-4,5e-4",
        "max_position": 2048,
        "num_layers": 5,
        "steps": 2_000_000,
        "train_length": "1-40",
        "test_lengths": "41-500",
        "evaluation_examples": 500,
        "steps_per_loop": 100,
        "checkpoint_every": 10_000,
    },
}


def build_model(config, seed):
    """Builds a model of the population with the weights of a seed."""
    keras.utils.set_random_seed(seed)
    task = JAX_TASKS[config.task]
    return TransformerEncoder(
        # One id more for the empty output tokens.
        vocabulary_size=task.input_vocabulary_size + 1,
        output_size=task.output_vocabulary_size,
        **model_arguments(config),
    )


def make_population(config, on_cpu):
    """Makes the population that a configuration describes."""
    members = config.members

    def find_buckets(lengths, count):
        return length_buckets([config.total_length(n) for n in lengths], count)

    with as_config_errors(ValueError):
        return Population(
            build_model=functools.partial(build_model, config),
            # Every member has a learning rate of its own.
            make_optimizer=functools.partial(
                make_optimizer,
                learning_rate=members[0].learning_rate,
                schedule=Constant(),
                steps=config.steps,
            ),
            task=JAX_TASKS[config.task],
            members=members,
            lengths=config.trained_lengths,
            buckets=find_buckets(config.trained_lengths, config.buckets),
            evaluation_buckets=find_buckets(config.evaluated_lengths, PROGRAMS),
            batch_size=config.batch_size,
            clip_norm=config.clip_norm,
            steps_per_loop=config.steps_per_loop,
            at_once=config.members_at_once or (1 if on_cpu else len(members)),
        )


def main(config):
    """Trains a population, or resumes it."""
    if keras.backend.backend() != "jax":
        raise ConfigError(
            "populations are trained by JAX, but Keras is set to "
            f"{keras.backend.backend()}: set KERAS_BACKEND=jax."
        )
    config = with_max_position(config)
    name = config.encoding.partition("(")[0]
    path = pathlib.Path(
        config.workdir or pathlib.Path("runs", "population", config.task, name)
    )
    PopulationRun(config, path, JAX_TASKS[config.task], make_population).run()


if __name__ == "__main__":
    run(PopulationConfig, PRESETS, main)
