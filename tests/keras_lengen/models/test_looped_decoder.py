import contextlib

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_lengen.layers import ALiBi, RandomizedSinusoidalEncoding
from keras_lengen.models import LoopedDecoder, TransformerDecoder
from tests.keras_lengen.models.small import eagerly
from tests.products import product

IDS = np.random.default_rng(0).integers(0, 7, (3, 6))
SIZES = {
    "vocabulary_size": 7,
    "num_layers": 2,
    "num_heads": 2,
    "model_dim": 8,
    "dropout": 0.0,
}


def make(loops=4, **arguments):
    keras.utils.set_random_seed(1)
    return LoopedDecoder(loops=loops, **{**SIZES, **arguments})


def repeat(model, ids, loops):
    """Logits after some loops, block by block."""
    first = x = model._begin(ids, None)
    for number in range(loops):
        x = x if number == 0 else x + first
        for block in model.blocks:
            x = block(x, positions=np.arange(ids.shape[1]))
    return np.asarray(model.logits(model._end(x)))


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


def test_one_loop_is_a_decoder():
    model = make(loops=1)
    plain = TransformerDecoder(**SIZES)
    plain.set_weights(model.get_weights())
    np.testing.assert_allclose(model(IDS), plain(IDS), atol=1e-6)


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


@pytest.mark.parametrize(
    "loops",
    [pytest.param(None, marks=pytest.mark.product), np.array([1, 3, 4])],
)
def test_generation_is_the_full_pass(loops):
    model = make(encoding=ALiBi())
    more = {} if loops is None else {"loops": loops}
    with contextlib.nullcontext() if loops is None else eagerly():
        tokens, logits = model.generate(
            {"token_ids": IDS, **more}, 4, return_logits=True
        )
    whole = np.concatenate([IDS, tokens], axis=1)
    full = np.asarray(model({"token_ids": whole, **more}))[:, 5:-1]
    np.testing.assert_allclose(logits, full, atol=1e-4)


@pytest.mark.product
@pytest.mark.parametrize("scored", [None, IDS < 4])
@pytest.mark.parametrize("lengths", [None, np.array([6, 2, 4])])
def test_settling_finds_the_most_certain_answer(scored, lengths):
    model = make()
    inputs = {"token_ids": IDS}
    if lengths is not None:
        inputs["lengths"] = lengths
    counted = (
        np.ones(IDS.shape, bool)
        if lengths is None
        else (np.arange(6) < lengths[:, None])
    )
    counted = counted if scored is None else scored
    with contextlib.nullcontext() if lengths is None else eagerly():
        logits, loops = model.settle(inputs, 7, scored=scored)
    every = [
        np.asarray(model({**inputs, "loops": count})) for count in range(1, 8)
    ]
    log_shares = [
        logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        for logits in every
    ]
    certain = [(each.max(-1) * counted).sum(-1) for each in log_shares]
    best = np.argmax(certain, axis=0)
    assert (np.asarray(loops) == best + 1).all()
    for row, count in enumerate(best):
        np.testing.assert_allclose(logits[row], every[count][row], atol=1e-4)


@pytest.mark.parametrize(
    "most",
    product([None, 7, np.array([1, 4, 7])], keep=lambda most: most is None),
)
def test_a_call_settles_the_outputs_that_are_scored(most):
    model, scored = make(), IDS < 4
    inputs = {"token_ids": IDS, "scored": scored}
    logits = model(inputs if most is None else {**inputs, "loops": most})
    counts = np.broadcast_to(4 if most is None else most, 3)
    for row, count in enumerate(counts.tolist()):
        with eagerly():
            expected, _ = model.settle(IDS, count, scored=scored)
        np.testing.assert_allclose(logits[row], expected[row], atol=1e-4)


def test_only_an_evaluation_settles():
    model = make()
    inputs = {"token_ids": IDS, "scored": IDS < 4}
    with pytest.raises(ValueError, match="only in evaluation: leave"):
        model(inputs, training=True)
    with pytest.raises(ValueError, match="only in evaluation: leave"):
        model.generate(inputs, 2)
    with pytest.raises(ValueError, match='"scored" as an argument'):
        model.settle(inputs, 2)


def test_positions_are_drawn_once_for_all_loops():
    encoding = RandomizedSinusoidalEncoding(max_position=64, seed=2)
    model = make(encoding=encoding)
    positions = np.array([3, 9, 20, 21, 40, 63])
    found = model({"token_ids": IDS, "positions": positions})
    again = model({"token_ids": IDS, "positions": positions, "loops": 4})
    np.testing.assert_allclose(found, again, atol=1e-5)


def test_a_saved_model_is_the_same(tmp_path, loading):
    model = make(loops=3)
    loading.check(model, tmp_path / "model.keras", IDS)


@pytest.mark.parametrize(
    ("loops", "message"),
    [
        (0, r"loops must be at least 1 and .*; got 0"),
        (np.array([1, 0, 2]), "loops must be at least 1"),
        (1.5, "loops must be integers"),
        (np.ones((3, 1), int), r"got int.* of shape \(3, 1\)"),
        (np.array([1, 2]), "loops"),
    ],
)
def test_wrong_numbers_raise(loops, message):
    model = make()
    with pytest.raises(ValueError, match=message):
        model({"token_ids": IDS, "loops": loops})
    with pytest.raises(ValueError, match=r"loops .* got 0"):
        make(loops=0)
