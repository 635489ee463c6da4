"""Chunks of queries: their sizes, and what they read."""

import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_lengen.layers import ALiBi, MultiHeadAttention
from keras_lengen.layers.attention import computation
from keras_lengen.layers.attention.scores import ScoreRule
from tests.covering import cover
from tests.keras_lengen.layers.encodings.table import make_axial

TOKENS, WIDTH = 13, 16
STATES = np.random.default_rng(3).normal(size=(2, TOKENS, WIDTH))
STATES = STATES.astype("float32")


def assert_chunks_change_nothing(layer, chunk_size=4, **options):
    outputs = []
    for size in (None, chunk_size):
        layer.chunk_size = size
        outputs.append(layer(STATES, STATES, **options))
    np.testing.assert_allclose(*outputs, atol=1e-5)


def test_rows_and_columns():
    encoding = make_axial(ALiBi, width=5)
    assert_chunks_change_nothing(MultiHeadAttention(2, 8, encoding=encoding))


@pytest.mark.parametrize(
    ("window", "sinks", "chunk_size", "causal"),
    cover([1, 4, 5, 20], [0, 3], [1, 2, 12], [True, False]),
)
def test_windows_of_all_sizes(window, sinks, chunk_size, causal):
    layer = MultiHeadAttention(2, 8, sliding_window=window, sink_tokens=sinks)
    assert_chunks_change_nothing(layer, chunk_size, use_causal_mask=causal)


AUTO = [("auto", 10, 10), ("auto", 11, 4), ("auto", 13, 3)]


@pytest.fixture
def shapes(monkeypatch):
    """A set that fills with the shapes of scores computed together."""
    shapes, compute = set(), ScoreRule.__call__

    def compute_scores(*arguments):
        scores = compute(*arguments)
        shapes.add(tuple(scores.shape)[2:])
        return scores

    monkeypatch.setattr(ScoreRule, "__call__", compute_scores)
    return shapes


@pytest.mark.parametrize(
    ("chunk_size", "tokens", "expected"), [(13, 13, 13), (5, 13, 5), *AUTO]
)
def test_the_size_of_chunks(shapes, chunk_size, tokens, expected, monkeypatch):
    monkeypatch.setattr(computation, "DIRECT_PAIRS", 100)
    monkeypatch.setattr(computation, "CHUNK_PAIRS", 44)
    layer = MultiHeadAttention(2, 8, chunk_size=chunk_size)
    inputs = ops.convert_to_tensor(STATES[:, :tokens])
    layer(inputs, inputs)
    assert shapes == {(expected, tokens)}
    shapes.clear()
    layer(inputs, inputs, return_attention_scores=True)
    assert shapes == {(tokens, tokens)}


def test_automatic_chunks_need_a_known_length(shapes, monkeypatch):
    monkeypatch.setattr(computation, "DIRECT_PAIRS", 1)
    layer = MultiHeadAttention(2, 8)
    signature = [tf.TensorSpec((2, None, WIDTH))]
    tf.function(lambda x: layer(x, x), signature)(STATES)
    assert shapes == {(None, None)}


def test_chunks_of_a_window_do_not_read_all_keys(shapes):
    layer = MultiHeadAttention(
        2, 4, sliding_window=5, sink_tokens=1, chunk_size=8
    )
    x = np.ones((1, 64, 8), "float32")
    layer(x, x, use_causal_mask=True)
    assert shapes == {(8, 1 + 4 + 8)}
    shapes.clear()
    layer(x, x, use_causal_mask=True, attention_mask=np.ones((64, 64), bool))
    assert shapes == {(8, 64)}
    auto = MultiHeadAttention(2, 4, sliding_window=512)
    assert auto.find_chunk_size(16384, 16384, sliced=True) == 512
    assert auto.find_chunk_size(16384, 16384) == 128
    assert auto.find_chunk_size(1024, 1024, sliced=True) is None
