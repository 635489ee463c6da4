"""Methods for decoders in training: on two devices, resumed, and on JAX."""

import functools

import numpy as np
import pytest

from keras_lengen.layers import ATTENTIONS, TOKEN_SAMPLERS
from tests.trainers.engine.test_jax_step import go_back, on_jax
from tests.trainers.toy import assert_same_weights, run_toy, train_losses

RUN = {
    "trainer": "sequence_to_answer",
    "task": "aligned_addition",
    "train_length": "3",
    "test_lengths": "4",
    "evaluation_examples": 4,
    "generated_examples": 0,
    "dropout": 0.0,
    "learning_rate": 1e-2,
    "steps": 6,
    "steps_per_loop": 1,
    "checkpoint_every": 3,
}
# CoPE, whose table is zero at first, changes the last loss by 1.7e-4; between
# one device and two, up to 1.6e-7 was measured.
TOLERANCE = 1e-5
TABLE = {"encoding": "LearnedEncoding"}
METHODS = {
    "AbacusPositions": {**TABLE, "sampler": "AbacusPositions(max_shift=1)"},
    "CoupledPositions": {
        **TABLE,
        "sampler": "CoupledPositions(max_position=None)",
    },
    **{
        name: {"encoding": name}
        for name in ("ClippedBias", "CoPE", "DAPE", "HardALiBi")
    },
    **{
        name: {"encoding": "NoPE", "attention": name}
        for name in ATTENTIONS
        if name != "MultiHeadAttention"
    },
    **{
        f"score_factor={name}": {"score_factor": name}
        for name in ("head", "log_length", "adaptive")
    },
    "loops": {"encoding": "NoPE", "loops": "length", "train_length": "2-3"},
}
# Replicas and backends draw different numbers, so that only resumption gives
# the same losses.
DRAWN = {
    f"{name}, drawn": {**TABLE, "sampler": name, "strategy": "mirrored"}
    for name in TOKEN_SAMPLERS
}
RUNS = {name: {**RUN, **row} for name, row in {**METHODS, **DRAWN}.items()}
# One of each kind, where the rest adds nothing: samplers, encodings with
# weights, attentions, factors and loops.
KINDS = (
    "AbacusPositions",
    "CoPE",
    "ForgettingAttention",
    "score_factor=log_length",
    "loops",
)
OTHERS = tuple(name for name in METHODS if name not in KINDS)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A function that returns the directory of a method's undisturbed run."""

    @functools.cache
    def train(name):
        path = tmp_path_factory.mktemp("run") / "whole"
        run_toy(path, **RUNS[name])
        return path

    return train


def assert_same_losses(path, expected):
    np.testing.assert_allclose(
        train_losses(path), train_losses(expected), rtol=TOLERANCE
    )


def test_methods_have_every_sampler_that_reads_tokens():
    assert set(TOKEN_SAMPLERS) < set(METHODS)


@pytest.mark.product
@pytest.mark.parametrize("name", [*KINDS, *DRAWN])
def test_a_run_goes_on_from_a_checkpoint(whole, name, tmp_path):
    go_back(whole(name), tmp_path / "run", 3)
    run_toy(tmp_path / "run", **RUNS[name])
    assert len(train_losses(whole(name))) == RUN["steps"]
    assert train_losses(tmp_path / "run") == train_losses(whole(name))
    assert_same_weights(tmp_path / "run", whole(name))


@pytest.mark.product
@pytest.mark.parametrize("name", KINDS)
def test_two_devices_train_as_one(whole, name, tmp_path):
    run_toy(tmp_path / "run", **{**RUNS[name], "strategy": "mirrored"})
    assert_same_losses(tmp_path / "run", whole(name))


@pytest.fixture(scope="module")
def gone_on(whole, tmp_path_factory):
    """A function that returns the directory of runs that JAX has finished.

    It takes the names of methods. One process finishes all of their runs.
    """

    @functools.cache
    def train(*names):
        path = tmp_path_factory.mktemp("on_jax")
        for name in names:
            go_back(whole(name), path / name, 3)
        on_jax(*((path / name, RUNS[name]) for name in names))
        return path

    return train


@pytest.mark.process
@pytest.mark.parametrize("name", KINDS)
def test_jax_goes_on_from_a_checkpoint(whole, gone_on, name):
    assert_same_losses(gone_on(*KINDS) / name, whole(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_jax_goes_on_with_the_other_methods(whole, gone_on, name):
    assert_same_losses(gone_on(*OTHERS) / name, whole(name))
