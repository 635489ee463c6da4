"""A causal Transformer without positions can count, and compare counts.

The constructions of Kazemnejad et al., 2023, appendix C, as weights of a
decoder without normalization: its first block recovers absolute positions, its
second scores by relative ones. https://arxiv.org/abs/2305.19466
"""

import numpy as np
import pytest
from keras import ops

from keras_lengen.models import TransformerDecoder

TOKENS = 24
START, VOCABULARY_SIZE = 0, 6
MODEL_DIM = 16
HEADS = 2
WIDTH = MODEL_DIM // HEADS

# The features of the residual stream.
ONE, IS_START, RECIPROCAL, POSITION = range(4)
CONTENT = slice(4, 8)

CONTENTS = np.random.default_rng(0).normal(size=(VOCABULARY_SIZE, 4))


def embeddings():
    table = np.zeros((VOCABULARY_SIZE, MODEL_DIM))
    table[:, ONE] = 1
    table[START, IS_START] = 1
    table[:, CONTENT] = CONTENTS
    return table


def counting_network():
    """Weights of a network that adds `1 / x` at `x = 1, 1/2, ..., 1/TOKENS`.

    Between those the sum of rectified lines is a chord of `1 / x`; the
    reciprocal counts from 1.
    """
    knots = 1 / np.arange(TOKENS, 0, -1.0)
    slopes = np.diff(1 / knots) / np.diff(knots)
    hidden = np.zeros((MODEL_DIM, TOKENS))
    hidden[RECIPROCAL, : TOKENS - 1] = 1
    hidden_bias = np.zeros(TOKENS)
    hidden_bias[: TOKENS - 1] = -knots[:-1]
    # The last unit is a constant, where the lines begin.
    hidden[ONE, TOKENS - 1] = 1
    output = np.zeros((TOKENS, MODEL_DIM))
    output[: TOKENS - 1, POSITION] = np.diff(slopes, prepend=0)
    output[TOKENS - 1, POSITION] = 1 / knots[0]
    return hidden, hidden_bias, output


def set_attention(attention, *, query=(), key=(), value=(), output=()):
    """Sets kernels by `(row, column, number)`, to 0 elsewhere."""
    for dense, entries in (
        (attention.query_dense, query),
        (attention.key_dense, key),
        (attention.value_dense, value),
        (attention.output_dense, output),
    ):
        kernel = np.zeros((MODEL_DIM, MODEL_DIM))
        for row, column, number in entries:
            kernel[row, column] = number
        dense.kernel.assign(kernel)


def set_feed_forward(block, hidden=0, hidden_bias=0, output=0):
    for variable, value in (
        (block.hidden_dense.kernel, hidden),
        (block.hidden_dense.bias, hidden_bias),
        (block.output_dense.kernel, output),
        (block.output_dense.bias, 0),
    ):
        variable.assign(np.broadcast_to(value, variable.shape))


@pytest.fixture(scope="module")
def model():
    """A decoder of two blocks: one counts, one compares."""
    model = TransformerDecoder(
        vocabulary_size=VOCABULARY_SIZE,
        num_layers=2,
        num_heads=HEADS,
        model_dim=MODEL_DIM,
        feedforward_dim=TOKENS,
        dropout=0.0,
        normalization=None,
        scale_scores=False,
        embedding_scale=1.0,
    )
    model.embedding.embeddings.assign(embeddings())
    counting, comparing = model.blocks
    # Queries and keys of 0 attend to all earlier tokens alike: what is 1 at
    # the start and 0 elsewhere becomes 1 / t.
    set_attention(
        counting.attention_layer,
        value=[(IS_START, 0, 1)],
        output=[(0, RECIPROCAL, 1)],
    )
    set_feed_forward(counting, *counting_network())
    # The first head: (1, -t, content) by (t, 1, content).
    content = range(2, 6)
    features = range(CONTENT.start, CONTENT.stop)
    contents = [
        (row, col, 1) for row, col in zip(features, content, strict=True)
    ]
    set_attention(
        comparing.attention_layer,
        query=[(ONE, 0, 1), (POSITION, 1, -1), *contents],
        key=[(POSITION, 0, 1), (ONE, 1, 1), *contents],
    )
    set_feed_forward(comparing)
    return model


@pytest.fixture(scope="module")
def tokens():
    generator = np.random.default_rng(1)
    tokens = generator.integers(1, VOCABULARY_SIZE, size=(3, TOKENS))
    tokens[:, 0] = START
    return tokens


def after_the_first_block(model, tokens):
    return ops.convert_to_numpy(model.blocks[0](model.embedding(tokens)))


def test_the_first_block_recovers_absolute_positions(model, tokens):
    features = after_the_first_block(model, tokens)
    counts = np.arange(1, TOKENS + 1)
    for example in features:
        np.testing.assert_allclose(
            example[:, RECIPROCAL], 1 / counts, rtol=1e-6
        )
        np.testing.assert_allclose(example[:, POSITION], counts, rtol=1e-4)


def test_the_second_block_scores_by_content_and_distance(model, tokens):
    features = after_the_first_block(model, tokens)
    _, weights = model.blocks[1].attention_layer(
        ops.convert_to_tensor(features),
        ops.convert_to_tensor(features),
        use_causal_mask=True,
        return_attention_scores=True,
    )
    index = np.arange(TOKENS)
    distances = index - index[:, None]
    contents = CONTENTS[tokens]
    scores = contents @ np.swapaxes(contents, 1, 2) + distances
    scores[:, distances > 0] = -np.inf
    expected = np.exp(scores - scores.max(axis=-1, keepdims=True))
    expected /= expected.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(weights[:, 0], expected, atol=2e-3)


def test_without_a_start_there_is_nothing_to_count(model, tokens):
    features = after_the_first_block(
        model, np.where(tokens == START, 1, tokens)
    )
    np.testing.assert_array_equal(features[:, :, RECIPROCAL], 0)
