"""Fused attention equals attention with all scores in memory."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import pytest

from keras_lengen.layers import ENCODINGS, ShawEncoding
from keras_lengen.layers.encodings.bias import BiasEncoding
from tests.keras_lengen.layers.attention import fused_cases

ROOT = pathlib.Path(__file__).parents[4]
TOLERANCE = 5e-6
"""Relative error of float32 in sums of at most 1,100 terms."""


def find_errors(names, path):
    if importlib.util.find_spec("jax") is None:
        pytest.skip("jax is not installed")
    module = "tests.keras_lengen.layers.attention.fused_outputs"
    subprocess.run(
        [sys.executable, "-m", module, str(path), *names],
        cwd=ROOT,
        env={**os.environ, "KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"},
        check=True,
    )
    return json.loads(path.read_text())


@pytest.mark.process
def test_kernels_equal_the_definition(tmp_path):
    names = [*fused_cases.OPTIONS, *fused_cases.ENCODINGS]
    errors = find_errors(names, tmp_path / "errors.json")
    assert list(errors) == names
    for name, found in errors.items():
        assert max(found) < TOLERANCE, (name, found)


def test_every_bias_of_two_positions_is_compared():
    fusible = {
        cls.bias_of_pair
        for cls in ENCODINGS.values()
        if issubclass(cls, BiasEncoding)
    } - {BiasEncoding.bias_of_pair}
    assert fusible == {
        ENCODINGS[name].bias_of_pair for name in fused_cases.ENCODINGS
    }


@pytest.mark.parametrize("name", fused_cases.ENCODINGS)
def test_encodings_of_two_positions_have_no_obstacle(name):
    assert ENCODINGS[name]().find_pair_obstacle() is None


def test_other_encodings_say_why_not():
    for name in ("CoPE", "DAPE", "RelativeEncoding"):
        assert name in ENCODINGS[name]().find_pair_obstacle()
    sampled = ENCODINGS["RandomizedALiBi"]()
    assert "sampled distances" in sampled.find_pair_obstacle()
    with pytest.raises(NotImplementedError, match="ShawEncoding depends on"):
        ShawEncoding().make_pair_parameters(2)
