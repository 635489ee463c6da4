"""The tests of `Retrofitted` and of `convert` on other backends."""

import pytest

from tests.keras_lengen.test_backends import run

pytest.importorskip("keras_hub")
FILE = "tests/keras_lengen/retrofit/test_retrofitted.py"
# Exactness, its undoing and generation, of both kinds of seams.
NARROW = [
    *("ordinal_positions_change_nothing[Llama]", "restore[GPT2]"),
    *("restore[Llama]", "ordinal_positions_change_nothing[GPT2]"),
    "cached_steps_compute_what_one_pass_computes[Llama-YaRN-NoneType]",
    "cached_steps_compute_what_one_pass_computes[GPT2-LearnedEncoding-"
    "RandomizedPositions]",
]


CONVERTED = (
    "tests/keras_lengen/retrofit/test_conversion.py::"
    "test_without_an_encoding_nothing_changes"
)


@pytest.mark.process
@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_backends(backend):
    paths = [CONVERTED, *(f"{FILE}::test_{name}" for name in NARROW)]
    marks = ("-m", "not slow")
    run(backend, "pytest", "-q", "-n", "0", *marks, *paths)
