import numpy as np
import tensorflow as tf

from keras_lengen.layers import RandomizedRoPE
from tests.trainers.engine.small import small_model
from trainers.devices.tensorflow_strategy import make_strategy
from trainers.engine.draws import set_seeds
from trainers.engine.seed_states import find_seed_states


def test_parts_of_a_batch_draw_their_own_positions_and_masks():
    model = small_model(RandomizedRoPE(max_position=1000), dropout=0.5)
    states = []
    for numbers in ((7, 0), (7, 0, 0), (7, 0, 1)):
        tf.distribute.OneDeviceStrategy("CPU:0").run(
            lambda numbers=numbers: set_seeds(model, *numbers)
        )
        states.append(
            [state.numpy().tolist() for state in find_seed_states(model)]
        )
    assert states[0] != states[1] != states[2] != states[0]


def test_replicas_draw_different_masks_and_positions():
    distribution = make_strategy("mirrored").distribution
    with distribution.scope():
        model = small_model(RandomizedRoPE(max_position=1000), dropout=0.5)
    ones = tf.ones((2, 30, 8))

    @tf.function
    def draw(step):
        def on_replica():
            set_seeds(model, 7, step)
            positions = model.encoding.sample_positions(ones, training=True)
            return positions, model.dropout_layer(ones, training=True)

        return distribution.run(on_replica)

    def draws(step):
        positions, masks = draw(tf.constant(step))
        return [
            np.concatenate([np.ravel(position), np.ravel(mask)])
            for position, mask in zip(
                distribution.experimental_local_results(positions),
                distribution.experimental_local_results(masks),
                strict=True,
            )
        ]

    first, second = draws(0)
    positions, masks = slice(0, 30), slice(30, None)
    for drawn in (positions, masks):
        assert (first[drawn] != second[drawn]).any()
        assert (first[drawn] != draws(1)[0][drawn]).any()
    np.testing.assert_array_equal(first, draws(0)[0])


def test_every_generator_of_a_model_gets_a_state_of_its_own():
    model = small_model(RandomizedRoPE(max_position=50), dropout=0.5)
    with tf.distribute.OneDeviceStrategy("CPU:0").scope():
        tf.distribute.get_strategy().run(lambda: set_seeds(model, 3, 4))
    states = {tuple(state.numpy()) for state in find_seed_states(model)}
    # Positions, the embeddings' dropout and the block's.
    assert len(states) == len(find_seed_states(model)) == 3
