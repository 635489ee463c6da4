import random

import pytest

from benchmarks.faults.reference import Reference
from benchmarks.faults.run import STEPS, Run
from benchmarks.faults.run_files import read_state
from tests.benchmarks.faults.toy import save


@pytest.fixture
def run(tmp_path):
    states = {
        step: read_state(save(tmp_path / "undisturbed", step, step))
        for step in (4, STEPS)
    }
    reference = Reference({}, states, seconds={})
    path = tmp_path / "run"
    return Run(path, tmp_path / "logs", reference, random.Random(0))
