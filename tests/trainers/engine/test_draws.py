import tensorflow as tf

from tests.trainers.toy import toy_config
from trainers.algorithmic import EXPERIMENT
from trainers.devices.tensorflow_strategy import make_strategy
from trainers.engine.draws import set_seeds
from trainers.engine.seed_states import find_seed_states

CONFIG = toy_config(encoding="RandomizedRoPE", dropout=0.5)


def test_parts_of_a_batch_and_generators_have_states_of_their_own():
    model, states = EXPERIMENT.build_model(CONFIG), []
    for numbers in ((7, 0), (7, 0, 0), (7, 0, 1), (7, 1), (8, 0)):
        tf.distribute.OneDeviceStrategy("CPU:0").run(
            lambda numbers=numbers: set_seeds(model, *numbers)
        )
        states += [tuple(found.numpy()) for found in find_seed_states(model)]
    # Positions, the embeddings' dropout and the block's.
    assert len({*states}) == len(states) == 5 * 3


def test_replicas_have_states_of_their_own():
    distribution = make_strategy("mirrored").distribution
    with distribution.scope():
        model = EXPERIMENT.build_model(CONFIG)

    @tf.function
    def draw():
        def on_replica():
            set_seeds(model, 7, 0)
            return tf.stack([*map(tf.identity, find_seed_states(model))])

        return distribution.run(on_replica)

    first, second = distribution.experimental_local_results(draw())
    assert (first.numpy() != second.numpy()).any(axis=-1).all()
