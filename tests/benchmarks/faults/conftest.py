import random

import pytest

from benchmarks.faults.demonstration import (
    MODELS,
    Demonstration,
    DemonstrationReference,
)
from benchmarks.faults.demonstration import STEPS as DEMONSTRATION_STEPS
from benchmarks.faults.reference import Reference
from benchmarks.faults.run import STEPS, Run
from benchmarks.faults.run_files import read_state
from tests.benchmarks.faults.toy import save


def read_states(tmp_path, *steps):
    path = tmp_path / "undisturbed"
    return {step: read_state(save(path, step, step)) for step in steps}


@pytest.fixture
def run(tmp_path):
    reference = Reference({}, read_states(tmp_path, 4, STEPS), seconds={})
    path = tmp_path / "run"
    return Run(path, tmp_path / "logs", reference, random.Random(0))


@pytest.fixture
def demonstration_run(tmp_path):
    states = read_states(tmp_path, DEMONSTRATION_STEPS)
    models = {name: Reference({}, states, {}) for name in MODELS}
    reference = DemonstrationReference(models, plot=False, change=0.0)
    path, logs = tmp_path / "demonstration", tmp_path / "demonstration-logs"
    return Demonstration(path, logs, reference, random.Random(0))
