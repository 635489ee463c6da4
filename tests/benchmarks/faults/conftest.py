import random

import pytest

from benchmarks.faults.reference import Reference
from benchmarks.faults.run import STEPS, Run
from benchmarks.faults.run_files import read_state
from tests.benchmarks.faults.toy import save


@pytest.fixture
def run(tmp_path):
    path, steps = tmp_path / "undisturbed", (4, STEPS)
    states = {step: read_state(save(path, step, step)) for step in steps}
    reference = Reference({}, states, seconds={})
    path = tmp_path / "run"
    return Run(path, tmp_path / "logs", reference, random.Random(0))
