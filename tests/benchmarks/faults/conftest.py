import random

import pytest

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
