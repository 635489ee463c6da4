"""Every recipe of the guide continues a run with RoPE, with all its weights."""

import json
import pathlib
import re
import shlex

import numpy as np
import pytest

from keras_lengen.layers import ENCODINGS, SAMPLERS
from tests.trainers.test_finetune import finetune_toy, make_parts
from tests.trainers.toy import final_weights, toy_config
from trainers.enwik8 import EXPERIMENT
from trainers.records.initial_weights import read_initial_weights
from trainers.records.opened_run import open_run

# A model of each recipe.
pytestmark = pytest.mark.product

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "guides"
TEXT = (PAGE / "after_training.md").read_text()
(TABLE,) = re.findall(r"<!-- recipes -->\n\n(.*?)\n\n", TEXT, re.DOTALL)
ROWS = [
    re.fullmatch(r"\| (.*) \| `(.*)` \|", row).groups()
    for row in TABLE.splitlines()[2:]
]
RECIPES = {
    recipe: dict(
        flag.removeprefix("--").split("=", 1) for flag in shlex.split(flags)
    )
    for recipe, flags in ROWS
}


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """The directory of a run with RoPE."""
    path = tmp_path_factory.mktemp("source")
    _, checkpoints = make_parts(path, toy_config("enwik8"), EXPERIMENT)
    with checkpoints:
        checkpoints.save(2, 0.0)
    return path


def test_recipes_are_of_all_kinds():
    named = " ".join(flags for _, flags in ROWS)
    for name in (
        *("SkippedPositions", "RandomizedPositions", "InterpolatedPositions"),
        *("WarpedPositions", "NTKRoPE", "YaRN", "Llama3RoPE", "LongRoPE"),
        *("SelfExtend", "STRING", "ReRoPE", "NoPE", "ALiBi"),
    ):
        assert name in {**ENCODINGS, **SAMPLERS} and name in named


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


def test_a_recipe_with_a_factor_of_scores(source, tmp_path):
    flags = {"sampler": "SkippedPositions", "encoding": "YaRN"}
    finetune_toy(source, tmp_path, steps=1, score_factor="head", **flags)
    weights = final_weights(tmp_path)
    factor = weights["model/transformer_decoder/block/attention/score_factor"]
    # Adam's first step is as long as the learning rate.
    np.testing.assert_allclose(factor, 1, atol=1.1e-3)
    assert (factor != 1).all()
    assert (tmp_path / "length_generalization_positions.png").exists()
    final = json.loads((tmp_path / "results.json").read_text())["final"]
    assert {*final["nats_per_byte_by_position"]} == {"8", "32"}
