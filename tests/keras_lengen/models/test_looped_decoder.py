"""Repeated blocks; `test_base.py` has what all models share."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from scipy.special import log_softmax

from keras_lengen.layers import ALiBi, RandomizedRoPE
from tests.covering import cover
from tests.keras_lengen.models.small import eagerly, looped_decoder
from tests.refusals import refuses

IDS = np.random.default_rng(0).integers(0, 7, (3, 6))
LENGTHS = np.array([6, 2, 4])
SIZES = {"num_layers": 2, "output_size": None, "dropout": 0.0}


def make(loops=4, **arguments):
    keras.utils.set_random_seed(1)
    return looped_decoder(loops=loops, **{**SIZES, **arguments})


def repeat(model, ids, loops):
    """Logits after some loops, block by block."""
    first = x = model._begin(ids, None)
    for number in range(loops):
        x = x if number == 0 else x + first
        for block in model.blocks:
            x = block(x, positions=np.arange(ids.shape[1]))
    return np.asarray(model.logits(model._end(x)))


@pytest.mark.product
@pytest.mark.parametrize("training", [False, True])
def test_loops_are_repeated_blocks(training):
    model = make(encoding=ALiBi(), normalization="pre")
    expected = [repeat(model, IDS, loops) for loops in (1, 2, 4)]
    loops = np.array([1, 2, 4])
    logits = model({"token_ids": IDS, "loops": loops}, training=training)
    for row, (found, wanted) in enumerate(zip(logits, expected, strict=True)):
        np.testing.assert_allclose(found, wanted[row], atol=1e-5)
    np.testing.assert_allclose(model(IDS), expected[2], atol=1e-5)
    together = model({"token_ids": IDS, "loops": 2}, training=training)
    np.testing.assert_allclose(together, expected[1], atol=1e-5)


def test_evaluation_goes_beyond_and_training_does_not():
    model = make(loops=2)
    inputs = {"token_ids": IDS, "loops": np.array([1, 2, 9])}
    expected = repeat(model, IDS, 9)[2]
    np.testing.assert_allclose(model(inputs)[2], expected, atol=1e-5)
    with pytest.raises(ValueError, match="at most loops=2 times"):
        model(inputs, training=True)
    with pytest.raises(ValueError, match="at most loops=2 times"):
        model.generate(inputs, 2)


@pytest.mark.product
def test_one_program_for_all_numbers():
    model = make()
    traces = []

    @tf.function(jit_compile=True, reduce_retracing=True)
    def run(ids, loops):
        traces.append(1)
        return model({"token_ids": ids, "loops": loops})

    for loops in ([1, 1, 1], [3, 2, 20]):
        found = run(tf.constant(IDS), tf.constant(loops))
        for row, count in enumerate(loops):
            expected = repeat(model, IDS, count)[row]
            np.testing.assert_allclose(found[row], expected, atol=1e-4)
    assert len(traces) == 1


@pytest.mark.product
@pytest.mark.parametrize(
    ("lengths", "scored", "most", "compiled"),
    cover((None, LENGTHS), (None, IDS < 4), (1, 7), (False, True)),
)
def test_settling_finds_the_most_certain_answer(
    lengths, scored, most, compiled
):
    even = RandomizedRoPE(max_position=64, evaluation="even")
    model, inputs = make(encoding=even), {"token_ids": IDS}
    counted = np.ones(IDS.shape, bool)
    if lengths is not None:
        inputs["lengths"] = lengths
        counted = np.arange(6) < lengths[:, None]
    counted = counted if scored is None else scored
    if compiled:
        logits, loops = model.settle(inputs, most, scored=scored)
    else:
        with eagerly():
            logits, loops = model.settle(inputs, most, scored=scored)
    every = [
        np.asarray(model({**inputs, "loops": count + 1}))
        for count in range(most)
    ]
    chances = log_softmax(np.array(every, "float64"), axis=-1)
    certain = (chances.max(-1) * counted).sum(-1)
    best = np.argmax(certain, axis=0)
    assert (np.asarray(loops) == best + 1).all()
    for row, count in enumerate(best):
        np.testing.assert_allclose(logits[row], every[count][row], atol=1e-4)


@pytest.mark.product
@pytest.mark.parametrize("most", [None, 7, np.array([1, 4, 7])])
def test_a_call_settles_the_outputs_that_are_scored(most):
    model, scored = make(), IDS < 4
    inputs = {"token_ids": IDS, "scored": scored}
    logits = model(inputs if most is None else {**inputs, "loops": most})
    counts = np.broadcast_to(4 if most is None else most, 3)
    for row, count in enumerate(counts.tolist()):
        with eagerly():
            expected, _ = model.settle(IDS, count, scored=scored)
        np.testing.assert_allclose(logits[row], expected[row], atol=1e-4)


SCORED = {"token_ids": IDS, "scored": IDS < 4}


@refuses(
    (lambda model: model(SCORED, training=True), "only in evaluation: "),
    (lambda model: model.generate(SCORED, 2), "only in evaluation: leave"),
    (lambda model: model.settle(SCORED, 2), '"scored" as an argument'),
    (
        lambda model: model.settle({"token_ids": IDS, "loops": 2}, 2),
        '"loops", which `settle` finds itself',
    ),
    (lambda model: model.settle(IDS, 0), "most .* got 0"),
)
def test_only_an_evaluation_settles(call):
    call(make())


def test_gradients_of_frozen_examples_stop():
    """An example of one loop learns as by one application of the blocks."""
    model, single = make(loops=3), make(loops=1)
    single.set_weights(model.get_weights())
    gradients = []
    for one in (model, single):
        with tf.GradientTape() as tape:
            logits = one(
                {"token_ids": IDS, "loops": np.array(1)}, training=True
            )
            loss = tf.reduce_sum(logits**2)
        weights = [w.value for w in one.trainable_weights]
        gradients.append(tape.gradient(loss, weights))
    for ours, theirs in zip(*gradients, strict=True):
        np.testing.assert_allclose(
            tf.convert_to_tensor(ours), tf.convert_to_tensor(theirs), atol=1e-3
        )


def test_blocks_without_numbers_settle_on_none():
    """An answer of embeddings that passed no block would look certain."""
    model = make(loops=2)
    kernel = model.blocks[0].feedforward_layer.hidden_dense.kernel
    kernel.assign(np.full(kernel.shape, np.nan))
    with eagerly():
        logits, loops = model.settle(IDS, 3)
    assert np.isnan(logits).all()
    assert (np.asarray(loops) == 1).all()
    assert np.isnan(model({"token_ids": IDS, "scored": IDS < 7})).all()
