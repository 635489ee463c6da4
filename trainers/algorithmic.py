"""Trains a Transformer on an algorithmic task and tests it at every length.

Without `--encoding`, trains the demonstration: the same model with a plain
encoding and with its randomized form, both curves in one plot.

    python -m trainers.algorithmic
    python -m trainers.algorithmic --task=reverse_string --encoding=ALiBi
    python -m trainers.algorithmic --task=mqar --model=decoder --encoding=NAPE
"""

import dataclasses
import functools

from datasets.curricula import CURRICULA, Curriculum
from datasets.tasks import TASKS, Task, batches
from keras_lengen.models import TransformerDecoder
from trainers.engine.losses import sum_answer_losses, sum_answer_metrics
from trainers.engine.problem import Metric, Problem
from trainers.experiment import Experiment
from trainers.options.calls import construct, parse_call
from trainers.options.fields import LengthsConfig, option
from trainers.options.layers import build, model_arguments
from trainers.options.own_classes import split_name
from trainers.populations import model


@functools.cache
def make_task(text):
    """Makes the task that a value of `--task` names."""
    if text in TASKS:
        return TASKS[text]
    return construct(*parse_call("--task", text, {}, Task))


@dataclasses.dataclass(frozen=True)
class AlgorithmicConfig(LengthsConfig):
    """Options of this trainer; every field is a flag."""

    task: str = option(
        "even_pairs",
        "Task, by name.",
        choices=TASKS,
        base=Task,
        changes_program=True,
    )
    model: str = option(
        "encoder",
        "encoder: attention in both directions, and an empty token for each "
        "output; decoder: causal attention, and each output is predicted from "
        "the input and the correct outputs before it.",
        choices=("encoder", "decoder"),
        changes_program=True,
    )
    curriculum: str = option(
        "Uniform",
        "Length of each training step, by name or call.",
        registry=CURRICULA,
        base=Curriculum,
    )

    def validate(self):
        """Raises `ConfigError` for the first value that cannot work."""
        super().validate()
        build(self, "--curriculum")

    def total_length(self, length):
        """Returns the tokens of a problem that the model reads."""
        task = make_task(self.task)
        if self.model == "decoder":
            return task.causal_length(length)
        return task.total_length(length)


PRESETS = {
    "small": {},
    "paper": {**model.PAPER, "learning_rate": 3e-4, "evaluate_every": 100_000},
}


def build_model(config):
    """Builds the model of a configuration."""
    task = make_task(config.task)
    if config.model == "encoder":
        return model.build_model(config, task)
    return TransformerDecoder(
        vocabulary_size=batches.count_causal_ids(task),
        output_size=task.output_vocabulary_size,
        **model_arguments(config),
    )


class TaskProblem(Problem):
    """Answers to an algorithmic task."""

    metrics = (
        Metric("accuracy"),
        Metric("exact_match"),
        Metric("loss", "nats", higher_is_better=False),
    )
    examples_sum = 3
    floor_labels = {
        "floor": "order-blind baseline",
        "position_only": "input-blind baseline",
    }

    def __init__(self, config):
        super().__init__(config)
        _, self.title = split_name(config.task)
        self.task = make_task(config.task)
        self.is_causal = config.model == "decoder"
        self.drawing = {
            "seed": config.seed,
            "lengths": config.trained_lengths,
            "curriculum": build(config, "--curriculum"),
        }

    def training_batches(self, **steps):
        size = self.config.batch_size
        return batches.training_dataset(
            self.task,
            batch_size=size,
            causal=self.is_causal,
            **self.drawing,
            **steps,
        )

    def tokens_at(self, step):
        return self.tokens(batches.length_at(step=step, **self.drawing))

    def loss(self, outputs, batch):
        return sum_answer_losses(outputs, batch)

    def evaluation_batch(self, **which):
        return batches.evaluation_batch(
            self.task, seed=self.config.seed, causal=self.is_causal, **which
        )

    def sums(self, outputs, batch):
        return sum_answer_metrics(outputs, batch)

    def floors(self):
        task, lengths = self.task, self.lengths
        return {
            "floor": {n: task.floor_accuracy(n) for n in lengths},
            "position_only": {
                n: task.position_only_accuracy(n) for n in lengths
            },
        }


EXPERIMENT = Experiment(
    "algorithmic", AlgorithmicConfig, PRESETS, build_model, TaskProblem
)

if __name__ == "__main__":
    EXPERIMENT.run()
