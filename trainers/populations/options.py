"""Options of `python -m trainers.population`."""

import dataclasses
import functools

from datasets.jax_tasks import JAX_TASKS
from trainers.errors import ConfigError
from trainers.options.choices import check_choice
from trainers.options.fields import LengthsConfig
from trainers.options.option import check_options, option, select_options
from trainers.populations.members import (
    Member,
    parse_learning_rates,
    parse_seeds,
)
from trainers.populations.model import PAPER

SHARED = (
    *("preset", "encoding", "sampler", "attention", "score_factor"),
    *("attention_normalizer", "max_position", "chunk_size", "fused"),
    "share_positions",
    *("num_layers", "num_heads", "model_dim", "dropout"),
    *("train_length", "test_lengths"),
    *("evaluation_examples", "steps", "batch_size", "clip_norm", "buckets"),
    *("steps_per_loop", "checkpoint_every", "keep_checkpoints", "workdir"),
)
"""Options that the models of a population have like any others."""


@functools.cache
def find_task(name):
    """Returns the `JaxTask` or `TaskForJax` of a value of `--task`.

    Raises:
        ConfigError: If there is none, or it needs TensorFlow, which is missing.
    """
    if name in JAX_TASKS:
        return JAX_TASKS[name]
    try:
        from datasets.tasks import TASKS
        from datasets.tasks.for_jax import TaskForJax
    except ImportError as error:
        raise ConfigError(
            f"--task={name} needs TensorFlow ({error}): install it, or choose "
            f"one of {', '.join(JAX_TASKS)}."
        ) from None
    check_choice("--task", name, TASKS)
    return TaskForJax(TASKS[name])


@dataclasses.dataclass(frozen=True)
class PopulationConfig(
    select_options(
        LengthsConfig, *SHARED, encoding="RandomizedRelativeEncoding"
    )
):
    """Options of this program; every field is a flag."""

    task: str = option(
        "even_pairs",
        f"Task, by name; all but {', '.join(JAX_TASKS)} need TensorFlow.",
    )
    seeds: str = option(
        "0-2", "Seeds of weights, data, positions and dropout, as 0-9."
    )
    learning_rates: str = option(
        "1e-3", "Learning rates of Adam, each with every seed, as 1e-4,3e-4."
    )
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
        "Minutes after which to save and stop; 0: no limit.",
        least=0,
        changes_result=False,
    )

    token_meanings = {}

    def validate(self):
        """Raises `ConfigError` for the first invalid value."""
        check_options(self)
        find_task(self.task)
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
        return find_task(self.task).total_length(length)


PRESETS = {
    "small": {},
    "paper": {
        **PAPER,
        "seeds": "0-9",
        "learning_rates": "1e-4,3e-4,5e-4",
        "test_lengths": "41-500",
    },
}
