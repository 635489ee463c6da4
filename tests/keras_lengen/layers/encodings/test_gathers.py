"""Forms of formulas without gathers, which TPUs compute faster."""

import contextlib

import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_lengen.layers.encodings import cope
from keras_lengen.layers.encodings.distances import read_scores
from keras_lengen.layers.encodings.gathers import avoids_gathers, described_tpu

RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize("entries", [7, 200])
@pytest.mark.parametrize("shape", [(4, 6), (2, 4, 6)])
@pytest.mark.parametrize("on_tpu", [False, True])
def test_reads_the_score_of_every_pair(shape, entries, on_tpu):
    scores = RANDOM.normal(size=(2, 4, entries, 3)).astype("float32")
    indices = RANDOM.integers(0, entries, shape).astype("int32")
    with described_tpu() if on_tpu else contextlib.nullcontext():
        found = read_scores(ops.array(scores), ops.array(indices))
    of_heads = np.broadcast_to(indices, (2, 4, 6))[..., None]
    expected = np.take_along_axis(scores, of_heads, axis=2)
    expected = np.moveaxis(expected, -1, 1)
    np.testing.assert_array_equal(ops.convert_to_numpy(found), expected)


def test_interpolation_of_programs_for_tpus():
    logits = tf.constant(RANDOM.normal(size=(2, 3, 4, 7)), "float32")
    positions = RANDOM.uniform(0, 6, (2, 3, 4, 5)).astype("float32")
    positions[..., :2] = [6, 3]  # The last vector, and a whole position.
    positions = tf.constant(positions)

    def differentiate():
        with tf.GradientTape() as tape:
            tape.watch([logits, positions])
            values = cope._interpolate(logits, positions)
            total = tf.reduce_sum(tf.sin(values))
        return [values, *tape.gradient(total, [logits, positions])]

    assert not avoids_gathers()
    expected = differentiate()
    with described_tpu():
        assert avoids_gathers()
        found = differentiate()
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-6)
