"""Every recipe of the guide continues a run with RoPE, with all its weights."""

import re
import shlex

import pytest

from tests.checkout import ROOT
from tests.trainers.toy import make_parts, toy_config
from trainers.enwik8 import EXPERIMENT
from trainers.records.initial_weights import read_initial_weights
from trainers.records.opened_run import open_run

# A model of each recipe.
pytestmark = pytest.mark.product

TEXT = (ROOT / "docs" / "guides" / "after_training.md").read_text()
(TABLE,) = re.findall(r"<!-- recipes -->\n\n(.*?)\n\n", TEXT, re.DOTALL)
RECIPES = {
    recipe: dict(
        flag.removeprefix("--").split("=", 1) for flag in shlex.split(flags)
    )
    for recipe, flags in re.findall(r"\| (.*) \| `(.*)` \|", TABLE)
}


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """The directory of a run with RoPE."""
    path = tmp_path_factory.mktemp("source")
    _, checkpoints = make_parts(path, toy_config("enwik8"), "enwik8")
    with checkpoints:
        checkpoints.save(2, 0.0)
    return path


@pytest.mark.parametrize("recipe", RECIPES)
def test_all_weights_are_taken_over(recipe, source):
    flags = {
        name: int(value) if name == "max_position" else value
        for name, value in RECIPES[recipe].items()
    }
    config = toy_config("enwik8", **{"max_position": 1024, **flags})
    model = EXPERIMENT.build_model(config)
    found = read_initial_weights(open_run(str(source)), config, model)
    assert not found.new and not found.left_out
    assert len(found.loaded) == len(model.weights)
