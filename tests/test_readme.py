"""README tells the truth: its examples run, its tables are the results."""

import pathlib
import re

import numpy as np
import pytest

from benchmarks.readme_tables import render
from datasets.tasks import TASKS
from keras_lengen.layers import ENCODINGS, SAMPLERS

README = (pathlib.Path(__file__).parent.parent / "README.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES)
def test_example_makes_a_model_that_trains(example):
    names = {}
    exec(example, names)
    model = names["model"]
    token_ids = np.random.default_rng(0).integers(0, 10, (4, 12))
    if not model.compiled:
        model.compile("adam", "mse")
        targets = np.zeros((4, 12, model.output_size))
    else:
        targets = token_ids
    assert model.fit(token_ids, targets, verbose=0).history["loss"]


def test_tables_are_the_committed_results():
    assert render(README) == README


@pytest.mark.parametrize("name", [*ENCODINGS, *SAMPLERS, *TASKS])
def test_everything_is_listed(name):
    assert f"`{name}`" in README
