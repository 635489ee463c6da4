import numpy as np
import tensorflow as tf

from keras_lengen.layers import RandomizedRoPE
from tests.trainers.engine.small import small_model
from trainers.devices.tensorflow_strategy import make_strategy
from trainers.engine.draws import set_seeds
from trainers.engine.seed_states import find_seed_states


def make_model():
    return small_model(RandomizedRoPE(max_position=1000), dropout=0.5)


def test_parts_of_a_batch_and_generators_have_states_of_their_own():
    model, states = make_model(), []
    for numbers in ((7, 0), (7, 0, 0), (7, 0, 1), (7, 1), (8, 0)):
        tf.distribute.OneDeviceStrategy("CPU:0").run(
            lambda numbers=numbers: set_seeds(model, *numbers)
        )
        states += [tuple(found.numpy()) for found in find_seed_states(model)]
    # Positions, the embeddings' dropout and the block's.
    assert len({*states}) == len(states) == 5 * 3


def test_replicas_draw_different_masks_and_positions():
    distribution = make_strategy("mirrored").distribution
    with distribution.scope():
        model = make_model()
    ones = tf.ones((2, 30, 8))

    @tf.function
    def draw(step):
        def on_replica():
            set_seeds(model, 7, step)
            states = tf.stack([*map(tf.identity, find_seed_states(model))])
            positions = model.encoding.sample_positions(ones, training=True)
            masks = model.dropout_layer(ones, training=True)
            return states, positions, masks

        return distribution.run(on_replica)

    def draws(step):
        found = map(
            distribution.experimental_local_results, draw(tf.constant(step))
        )
        return [[np.ravel(each) for each in replicas] for replicas in found]

    for before, again, later in zip(draws(0), draws(0), draws(1), strict=True):
        np.testing.assert_array_equal(before, again)
        first, second = before
        assert (first != second).any()
        assert (first != later[0]).any()
