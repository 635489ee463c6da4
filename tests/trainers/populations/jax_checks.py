"""Checks that populations compute what other programs do; on JAX.

KERAS_BACKEND=jax python -m tests.trainers.populations.jax_checks
"""

import pathlib
import tempfile

import jax
import numpy as np
import pytest

from tests.trainers.populations.toy import TOY
from trainers.algorithmic import EXPERIMENT
from trainers.engine.backend import EvaluationStep, make_strategy
from trainers.engine.jax_draws import fold_in
from trainers.errors import TrainingError
from trainers.experiment import make_training_step
from trainers.options.layers import with_max_position
from trainers.population import make_population
from trainers.populations import members
from trainers.populations.options import PopulationConfig, find_task
from trainers.populations.population import DATA
from trainers.populations.run import PopulationRun

DIVERGING = 1e30
"""A learning rate with which the second step has no finite loss."""
STEPS = 5


def make_toy(**changes):
    """Makes a population of two seeds with two learning rates each."""
    varied = {"seeds": "0,5", "learning_rates": "1e-3,1e-2"}
    fields = {**TOY, "steps_per_loop": 3, **varied, **changes}
    return make_population(PopulationConfig(**fields), on_cpu=False)


def train(population):
    """Returns losses, weights and sums of each member, after some steps."""
    losses = []
    begin = [np.array(value) for value in population.weights.variables]
    for first_step, steps in ((0, 3), (3, 2)):
        population.run(None, first_step, steps)
        losses.append(population.losses)
    weights = [np.array(value) for value in population.weights.variables]
    sums = population.evaluate(6, 20)
    return [
        {
            "losses": [loss[number] for loss in losses],
            "begin": join([value[number] for value in begin]),
            "weights": join([value[number] for value in weights]),
            "sums": sums[number],
        }
        for number in range(len(population.members))
    ]


def train_by_trainer(population, **changes):
    """Returns the same of `trainers.algorithmic`, for the last member."""
    member = population.members[-1]
    config = EXPERIMENT.config(**{**TOY, **changes, **vars(member)})
    config = with_max_position(config)
    strategy = make_strategy("one_device")
    model, made, problem = EXPERIMENT.make_parts(config, strategy)
    step = make_training_step(config, model, made, problem, strategy)
    begin = join(model.trainable_variables)
    task = find_task(config.task)
    state = tuple(
        [variable.value for variable in variables]
        for variables in (model.trainable_variables, made.variables)
    )
    losses = []
    for number in range(STEPS):
        length = int(population.length_at(number))
        tokens = task.total_length(length)
        padded = min(n for n in population.buckets if n >= tokens)
        key = fold_in(DATA, member.seed, number)
        batch = task.draw_batch(key, 8, length, padded)
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
        seed=member.seed,
        compiled=True,
    )
    key = fold_in(DATA, member.seed, jax.numpy.asarray(-6), 0)
    batch = task.draw_batch(key, 20, 6, population.evaluation_buckets[-1])
    return {
        "begin": begin,
        "losses": [np.mean(losses[:3]), np.mean(losses[3:])],
        "weights": join(state[0]),
        "sums": measured.run(6, 0, {**batch, "used": np.ones(20, bool)}),
    }


def join(variables):
    """Returns all numbers of variables, in one array."""
    return np.concatenate([np.ravel(np.array(value)) for value in variables])


def assert_alike(found, expected):
    np.testing.assert_allclose(found["losses"], expected["losses"], rtol=2e-6)
    np.testing.assert_array_equal(found["begin"], expected["begin"])
    # Relative to what training has changed. Both round differently, and
    # processors differ in how.
    one, other = (x["weights"] - x["begin"] for x in (found, expected))
    assert np.linalg.norm(one - other) < 1e-4 * np.linalg.norm(other)
    np.testing.assert_allclose(found["sums"], expected["sums"], rtol=1e-5)


def check_members():
    """Each member is trained as it would be alone, however many at once."""
    population = make_toy()
    together = train(population)
    for name in ("losses", "weights"):
        assert len({tuple(one[name]) for one in together}) == 4
    assert_alike(together[-1], train_by_trainer(population))
    other = {"task": "flip_flop", "encoding": "LearnedEncoding", "buckets": 2}
    population = make_toy(**other, members_at_once=1)
    assert_alike(train(population)[-1], train_by_trainer(population, **other))
    # Members train on where others diverge.
    population = make_toy(learning_rates=f"1e-2,{DIVERGING}", members_at_once=2)
    for found, expected in zip(train(population), together[2:], strict=False):
        assert_alike(found, expected)
    assert population.find_diverged(STEPS) == {2: 2, 3: 2}
    # Until all have diverged.
    population.find_diverged = lambda step: {0: 1, 1: 2, 2: 1, 3: 1}
    message = "the last to diverge, in step 2, was seed 5, learning rate 0.01"
    with pytest.raises(TrainingError, match=message):
        population.run(None, STEPS, 1)


def check_runs(path):
    """A run in pieces ends as a whole one, without diverging members."""
    fields = {
        **{"train_length": "2", "test_lengths": "3", "checkpoint_every": 2},
        **{"steps_per_loop": 2, "seeds": "0,5", "encoding": "NoPE"},
        "learning_rates": f"1e-2,{DIVERGING}",
    }
    found = []
    for minutes, pieces in ((0.0, 1), (1e-6, 5)):
        workdir = path / str(pieces)
        config = PopulationConfig(
            **{**TOY, **fields, "minutes": minutes, "workdir": str(workdir)}
        )
        task = find_task(config.task)
        for piece in range(1, pieces + 1):
            run = PopulationRun(config, workdir, task, make_population)
            results = run.run()
            assert (results is None) == (piece < pieces)
        names = ("members", "all", "by_learning_rate", "final")
        found.append({name: results[name] for name in names})
    assert found[0] == found[1]
    third, fourth = found[0]["members"][2:]
    assert third["diverged_in_step"] == fourth["diverged_in_step"] == 2


if __name__ == "__main__":
    # No learning rate that is allowed lets so small a model diverge.
    members.LEARNING_RATES = (1e-10, DIVERGING)
    check_members()
    with tempfile.TemporaryDirectory() as directory:
        check_runs(pathlib.Path(directory))
