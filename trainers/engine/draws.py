"""The random draws of a model as functions of integers such as the step."""

import tensorflow as tf

from trainers.engine.seed_states import find_seed_states


def set_seeds(model, *numbers):
    """Makes the next draws of a model a function of integers and replica.

    Every generator of the model gets a state of its own. TensorFlow alone;
    called on a replica, before anything compiled, which reads the states.

    Args:
        model: Keras model.
        *numbers: Integers or scalar integer tensors that name the draw.
    """
    states = find_seed_states(model)
    if not states:
        return
    replica = tf.distribute.get_replica_context().replica_id_in_sync_group
    key = tf.constant([0, 0], tf.int64)
    for number in (*numbers, replica):
        key = tf.random.fold_in(key, tf.cast(number, tf.int64), alg="philox")
    values = tf.random.stateless_uniform(
        (len(states), 2), key, maxval=2**31 - 1, dtype=tf.int32, alg="philox"
    )
    for state, value in zip(states, tf.unstack(values), strict=True):
        state.assign(tf.cast(value, state.dtype))
