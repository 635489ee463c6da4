"""Plain Keras methods of models under a strategy of TensorFlow."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_lengen.layers import RandomizedPositions, RoPE
from keras_lengen.layers.random_layer import Dropout
from tests.keras_lengen.models import small
from trainers.devices.tensorflow_strategy import make_strategy

IDS = small.token_ids(batch_size=4)
LENGTHS = np.array([6, 2, 4, 6])
EXTRAS = {
    "ids": {},
    "lengths": {"lengths": LENGTHS},
    "mask": {"padding_mask": np.arange(6) < LENGTHS[:, None]},
    "positions": {"positions": np.tile(2 * np.arange(6), (4, 1))},
}


def two_replicas():
    # The one of the process: sums of a second would be mixed up with its own.
    return make_strategy("mirrored").distribution


def compile_and_fit(model, inputs):
    model.compile(
        "sgd",
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=False,
    )
    targets = IDS % small.OUTPUT_SIZE
    fitted = model.fit(inputs, targets, verbose=0).history["loss"][0]
    assert np.isfinite(
        [fitted, model.evaluate(inputs, targets, verbose=0)]
    ).all()
    assert model.predict(inputs, verbose=0).shape == (4, 6, small.OUTPUT_SIZE)


@pytest.mark.product
@pytest.mark.parametrize(
    ("name", "extra"), [*itertools.product(small.MODELS, EXTRAS)][::3]
)
def test_models_take_arrays(name, extra):
    with two_replicas().scope():
        model = small.MODELS[name](RoPE())
    compile_and_fit(model, small.inputs(model, IDS, **EXTRAS[extra]))


DRAWS = {
    "positions": lambda: RandomizedPositions(max_position=2**20, seed=1),
    "dropout": lambda: Dropout(0.5, seed=1),
}


@pytest.mark.product
@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize("name", DRAWS)
def test_replicas_draw_differently(name, jit_compile):
    def make_draw():
        layer = DRAWS[name]()
        return tf.function(
            lambda inputs: layer(inputs, training=True), jit_compile=jit_compile
        )

    strategy = two_replicas()
    alone = make_draw()(tf.ones((2, 64)))
    with strategy.scope():
        draw = make_draw()
    # The inputs are made on the replica, where the compiled function then runs.
    drawn = tf.function(lambda: strategy.run(lambda: draw(tf.ones((2, 64)))))()
    first, second = strategy.experimental_local_results(drawn)
    np.testing.assert_array_equal(first, alone)
    assert not np.array_equal(first, second)
