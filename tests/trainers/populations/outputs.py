"""What populations compute, beside what other programs do; on JAX.

KERAS_BACKEND=jax python -m tests.trainers.populations.outputs outputs.json
"""

import dataclasses
import json
import pathlib
import sys
import tempfile

import jax
import numpy as np

import trainers.populations.members
from datasets.jax_tasks import JAX_TASKS
from trainers.algorithmic import EXPERIMENT
from trainers.engine.backend import EvaluationStep, make_strategy
from trainers.engine.jax_draws import fold_in
from trainers.errors import TrainingError
from trainers.experiment import make_training_step
from trainers.options.layers import with_max_position
from trainers.population import make_population
from trainers.populations.options import PopulationConfig
from trainers.populations.population import DATA
from trainers.populations.run import PopulationRun

TOY = {
    "task": "reverse_string",
    "encoding": "RandomizedRelativeEncoding",
    "num_layers": 1,
    "num_heads": 2,
    "model_dim": 8,
    "batch_size": 8,
    "train_length": "1-4",
    "test_lengths": "6",
    "buckets": 2,
    "evaluation_examples": 20,
    "steps": 4,
    "max_position": 32,
}
OF_POPULATION = {
    **TOY,
    "seeds": "0,5",
    "learning_rates": "1e-3,1e-2",
    "steps_per_loop": 3,
}
OTHER = {"task": "bucket_sort", "encoding": "LearnedEncoding"}
DIVERGING = 1e30
"""A learning rate with which the second step has no finite loss."""
STEPS = 5


def toy_population(**changes):
    return make_population(
        PopulationConfig(**{**OF_POPULATION, **changes}), on_cpu=False
    )


def train(population):
    """Losses, weights and sums of each member, after some steps."""
    losses = []
    begin = [np.array(value) for value in population.weights.variables]
    for first_step, steps in ((0, 3), (3, 2)):
        population.run(None, first_step, steps)
        losses.append(population.losses)
    weights = [np.array(value) for value in population.weights.variables]
    sums = population.evaluate(6, 20)
    return [
        {
            "losses": [float(loss[number]) for loss in losses],
            "begin": join([value[number] for value in begin]),
            "weights": join([value[number] for value in weights]),
            "sums": sums[number].tolist(),
        }
        for number in range(len(population.members))
    ]


def train_apart(member, **changes):
    """The same of a population of one member."""
    alone = {
        "seeds": str(member.seed),
        "learning_rates": str(member.learning_rate),
    }
    (found,) = train(toy_population(**alone, **changes))
    return found


def train_by_trainer(member, population, **changes):
    """The same of the steps of `trainers.algorithmic`, on the same batches."""
    seed = member.seed
    config = EXPERIMENT.config(**{**TOY, **changes, **vars(member)})
    config = with_max_position(config)
    strategy = make_strategy("one_device")
    model, made, problem = EXPERIMENT.make_parts(config, strategy)
    step = make_training_step(config, model, made, problem, strategy)
    begin = join(model.trainable_variables)
    task = JAX_TASKS[config.task]
    state = tuple(
        [variable.value for variable in variables]
        for variables in (model.trainable_variables, made.variables)
    )
    losses = []
    for number in range(STEPS):
        length = int(population.length_at(number))
        tokens = task.total_length(length)
        padded = min(n for n in population.buckets if n >= tokens)
        batch = task.draw_batch(fold_in(DATA, seed, number), 8, length, padded)
        loss, state = step.update(state, batch, number)
        losses.append(float(loss))
    for variable, value in zip(
        model.trainable_variables, state[0], strict=True
    ):
        variable.assign(value)
    measured = EvaluationStep(
        model=model,
        problem=problem,
        strategy=strategy,
        seed=seed,
        compiled=True,
    )
    batch = task.draw_batch(
        fold_in(DATA, seed, jax.numpy.asarray(-6), 0),
        *(20, 6, population.evaluation_buckets[-1]),
    )
    sums = measured.run(6, 0, {**batch, "used": np.ones(20, bool)})
    return {
        "begin": begin,
        "losses": [np.mean(losses[:3]).item(), np.mean(losses[3:]).item()],
        "weights": join(state[0]),
        "sums": sums.tolist(),
    }


def join(variables):
    """All numbers of variables, in a list."""
    arrays = [np.ravel(np.array(value)) for value in variables]
    return np.concatenate(arrays).tolist()


def run_in_pieces(path, **changes):
    """Results of a run, and how often it was started."""
    config = PopulationConfig(
        **{
            **OF_POPULATION,
            "encoding": "NoPE",
            "learning_rates": "1e-2",
            "train_length": "2",
            "test_lengths": "3",
            "checkpoint_every": 2,
            "steps_per_loop": 2,
            **changes,
        }
    )
    config = dataclasses.replace(config, workdir=str(path))
    task = JAX_TASKS[config.task]
    starts, results = 0, None
    while results is None:
        starts += 1
        results = PopulationRun(config, path, task, make_population).run()
    names = ("members", "all", "by_learning_rate", "final")
    return {"starts": starts, **{name: results[name] for name in names}}


def train_with_diverging(member):
    """A member that does not diverge, and in which steps the others do."""
    rates = f"{member.learning_rate},{DIVERGING}"
    population = toy_population(learning_rates=rates)
    found = train(population)[population.members.index(member)]
    return {**found, "diverged": population.find_diverged(STEPS)}


def find_error(**changes):
    """The message of the error that a population raises."""
    try:
        toy_population(**changes).run(None, 0, 3)
    except TrainingError as error:
        return str(error)
    return ""


def main(path):
    # No learning rate that is allowed lets so small a model diverge.
    trainers.populations.members.LEARNING_RATES = (1e-10, DIVERGING)
    population = toy_population()
    members = population.members
    outputs = {
        "together": train(population),
        "two at once": train(toy_population(members_at_once=2)),
        "apart": [train_apart(members[0]), train_apart(members[3])],
        "trainer": train_by_trainer(members[3], population),
        "beside diverging": train_with_diverging(members[3]),
        "error": find_error(learning_rates=f"{DIVERGING}"),
    }
    population = toy_population(**OTHER)
    outputs["others together"] = train(population)
    outputs["others apart"] = [
        train_apart(population.members[number], **OTHER) for number in (0, 3)
    ]
    outputs["other trainer"] = train_by_trainer(members[3], population, **OTHER)
    with tempfile.TemporaryDirectory() as directory:
        runs = pathlib.Path(directory)
        outputs["whole"] = run_in_pieces(runs / "whole")
        outputs["pieces"] = run_in_pieces(runs / "pieces", minutes=1e-6)
        rates = {"learning_rates": f"1e-2,{DIVERGING}"}
        outputs["diverging"] = [
            run_in_pieces(runs / "diverging", **rates),
            run_in_pieces(runs / "in pieces", **rates, minutes=1e-6),
        ]
    pathlib.Path(path).write_text(json.dumps(outputs))


if __name__ == "__main__":
    main(sys.argv[1])
