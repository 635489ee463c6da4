"""README is short, and its examples run."""

import re

import numpy as np
import pytest

from tests.checkout import ROOT, SETUP
from trainers import EXPERIMENTS

README = (ROOT / "README.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


# Generation takes half a minute.
@pytest.mark.parametrize(
    "example",
    [
        pytest.param(text, marks=[pytest.mark.product] * ("generate" in text))
        for text in EXAMPLES
    ],
)
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


def test_it_is_short_and_names_the_repository_and_every_program():
    assert len(README.splitlines()) <= 200
    assert f"git clone {SETUP['metadata']['url']} keras_lengen" in README
    for name in [*EXPERIMENTS, "population"]:
        assert f"`python -m trainers.{name} " in README


def test_commands_follow_their_markers():
    # `.ci/run` reads them.
    marked = r"<!-- (.*) -->\n```bash\npython3 -m venv \.venv && .*\n```\n"
    found = re.findall(marked, README)
    assert found == ["install and run", "install and test"]
