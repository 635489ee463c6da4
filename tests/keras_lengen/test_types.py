"""A type checker accepts right programs of users and finds their mistakes."""

import re

import pytest

from tests.shell import run_python

PROGRAM = """
from typing import assert_type

import numpy as np
from keras import ops

from keras_lengen.analysis import (
    Coverage,
    attention_weights,
    position_coverage,
)
from keras_lengen.checks.arguments import Number
from keras_lengen.checks.constructors import argument
from keras_lengen.layers import PositionSampler, RandomizedRoPE, RoPE
from keras_lengen.layers import GridPositions, RandomizedPositions
from keras_lengen.models import TransformerDecoder, presets
from keras_lengen.types import Positions, Tensor


class EverySecond(PositionSampler):
    stretches = True

    def sample(
        self,
        inputs: Tensor,
        *,
        lengths: Tensor | None = None,
        reference_length: Tensor | None = None,
        training: bool | None = None,
    ) -> Tensor:
        return 2 * ops.arange(ops.shape(inputs)[1], dtype="int32")


class Slow(RoPE):
    slope: float = argument(Number(), default=1.0)
assert_type(Slow(slope=2, layout="halves", name="slow").slope, float)
sampler = RandomizedPositions(max_position=2048, resample="example", seed=0)
assert_type(sampler.max_position, int)
assert_type(sampler.seed, int | None)
assert_type(sampler.is_random, bool)
tokens = np.zeros((2, 4), "int64")
drawn: Positions = sampler(tokens, lengths=[3, 4], training=True)
print(drawn, EverySecond()(tokens))
rows, columns = GridPositions(width=2, column=sampler)(tokens)
coverage = position_coverage(sampler, train_lengths=range(1, 5), test_length=9)
assert_type(coverage, Coverage)
print(coverage.unseen_share.item(), rows.shape, columns.shape)
model = TransformerDecoder(
    vocabulary_size=8, encoding=RandomizedRoPE(), **presets["ruoss"]
)
print(model.generate(tokens, 3, jit_compile=False).shape)
weights, outputs = attention_weights(model, tokens, return_outputs=True)
print(outputs.shape, [each.shape for each in weights.values()])
"""

MISTAKES = """
from keras_lengen.analysis import attention_weights, position_coverage
from keras_lengen.layers import RandomizedPositions, RoPE, ShiftedPositions
from keras_lengen.models import TransformerEncoder, presets

sampler = RandomizedPositions(max_position="2048")  # arg-type
ShiftedPositions(max_shift=8, evaluation=0)  # arg-type
sampler([[1, 2]], length=2)  # call-arg
position_coverage(sampler, train_lengths=8, test_length=9)  # arg-type
attention_weights(None, [[1]])["block"].shapes  # attr-defined
RoPE(layout="half")  # arg-type
sizes = presets["ruoss"]
TransformerEncoder(vocabulary_size="8", output_size=2, **sizes)  # arg-type
"""


def check(text, directory, status):
    """Checks a program of a user, and returns the messages."""
    # Keras has no types, which mypy reports in the program that imports it.
    (directory / "mypy.ini").write_text(
        "[mypy]\n[mypy-keras.*]\nignore_missing_imports = True\n"
    )
    (directory / "program.py").write_text(text)
    command = ("-m", "mypy", "--strict", "program.py")
    return run_python(*command, cwd=directory, status=status).stdout


@pytest.mark.process
def test_right_programs_pass_and_mistakes_are_found(tmp_path):
    check(PROGRAM, tmp_path, status=0)
    exec(compile(PROGRAM, "program.py", "exec"), {"__name__": "program"})
    expected = [
        (str(number), line.partition("  # ")[2])
        for number, line in enumerate(MISTAKES.splitlines(), 1)
        if "  # " in line
    ]
    output = check(MISTAKES, tmp_path, status=1)
    found = re.findall(r"^program.py:(\d+): error: .*\[(.+)\]$", output, re.M)
    assert found == expected, output
