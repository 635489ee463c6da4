"""What tests of processes and of finished runs share."""

import functools

import pytest

from tests.trainers.toy import run_toy
from tests.trainers.workers import Nursery


@pytest.fixture(scope="module")
def nursery():
    with Nursery() as started:
        yield started


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A function that returns directory and results of a trainer's toy run.

    Tests read these runs, and write nothing there but evaluations.
    """

    @functools.cache
    def train(trainer="algorithmic"):
        path = tmp_path_factory.mktemp(trainer) / "run"
        flags = {"steps_per_loop": 1, "checkpoint_every": 1}
        if trainer == "algorithmic":
            flags["evaluate_every"] = 1
        encoding = "RandomizedRoPE"
        return path, run_toy(path, trainer=trainer, encoding=encoding, **flags)

    return train
