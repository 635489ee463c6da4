"""Trains many small models at once, which differ in seed and learning rate.

Computes with JAX; four tasks need no TensorFlow. The same command resumes.

    python -m trainers.population --task=reverse_string --seeds=0-9
    python -m trainers.population --preset=paper --minutes=8
"""

import functools
import pathlib

import keras

from datasets.buckets import length_buckets
from trainers.engine.evaluation_sizes import PROGRAMS
from trainers.engine.optimizer import Constant, make_optimizer
from trainers.errors import ConfigError, as_config_errors
from trainers.options.command import run
from trainers.options.layers import with_max_position
from trainers.options.own_classes import name_of
from trainers.populations.model import build_model
from trainers.populations.options import (
    PRESETS,
    PopulationConfig,
    find_task,
)
from trainers.populations.population import Population
from trainers.populations.run import PopulationRun


def make_population(config, on_cpu):
    """Makes the population that a configuration describes."""
    members, task = config.members, find_task(config.task)

    def build(seed):
        keras.utils.set_random_seed(seed)
        return build_model(config, task)

    def find_buckets(lengths, count):
        return length_buckets([config.total_length(n) for n in lengths], count)

    with as_config_errors(ValueError):
        return Population(
            build_model=build,
            # Every member has a learning rate of its own.
            make_optimizer=functools.partial(
                make_optimizer,
                learning_rate=members[0].learning_rate,
                schedule=Constant(),
                steps=config.steps,
            ),
            task=task,
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
    name = name_of(config.encoding)
    path = pathlib.Path(
        config.workdir or pathlib.Path("runs", "population", config.task, name)
    )
    PopulationRun(config, path, find_task(config.task), make_population).run()


if __name__ == "__main__":
    run(PopulationConfig, PRESETS, main)
