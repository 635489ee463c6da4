"""Batches by index: what step 7 sees depends on nothing else.

A global batch is a fixed number of sub-batches, each a pure function of the
step and of its number, so the same data is seen under every strategy, and a
resumed run needs no state of an iterator.
"""

import math

import tensorflow as tf

SUB_BATCHES = 8
"""Number of parts that a global batch is drawn in, where they divide it."""


def indexed_dataset(draw, *, batch_size, first_step, last_step, context=None):
    """Returns the batches of steps `first_step` to `last_step - 1`.

    Args:
        draw: Called with a step and the number of a sub-batch, scalar int64
            tensors, and its size; returns a dict of tensors, examples first,
            or scalars that are the same for all sub-batches of a step. A pure
            function of its arguments, made of TensorFlow operations.
        batch_size: Examples in a global batch.
        first_step: Number of the first step, from 0.
        last_step: Number of the step to end before.
        context: `tf.distribute.InputContext` that tells the number of
            replicas and which of them this pipeline feeds; `None` for one
            replica.

    Returns:
        A `tf.data.Dataset` of batches of one replica each, those of a step for
        all replicas of the process one after the other.

    Raises:
        ValueError: If the replicas cannot share a global batch equally.
    """
    context = context or tf.distribute.InputContext()
    replicas = context.num_replicas_in_sync
    if batch_size % replicas:
        raise ValueError(
            f"{replicas} replicas cannot share a global batch of {batch_size} "
            f"examples equally: choose a multiple of {replicas}."
        )
    local = replicas // context.num_input_pipelines
    share = local * batch_size // replicas
    first = context.input_pipeline_id * share
    sub_batch = batch_size // math.gcd(batch_size, SUB_BATCHES)
    # Those that hold the share: its ends may lie within them.
    numbers = range(first // sub_batch, -(-(first + share) // sub_batch))
    before = first - numbers[0] * sub_batch

    def batches_at(step):
        parts = [draw(step, number, sub_batch) for number in numbers]

        def join(name):
            if not parts[0][name].shape.rank:
                return tf.repeat(parts[0][name], local)
            values = tf.concat([part[name] for part in parts], axis=0)
            values = values[before : before + share]
            shape = (local, share // local, *values.shape[1:])
            return tf.reshape(values, shape)

        return {name: join(name) for name in parts[0]}

    dataset = tf.data.Dataset.range(first_step, last_step)
    # Batches in order: the options keep runs repeatable under parallel maps.
    dataset = dataset.map(batches_at, num_parallel_calls=tf.data.AUTOTUNE)
    return dataset.prefetch(2).unbatch()


def shuffled_index(seed, number, size):
    """Returns which of `size` items comes as number `number`.

    Items come in epochs, each item once an epoch, in an order of its own for
    each epoch. Needs no buffer and no state.

    Args:
        seed: Integer seed of the orders.
        number: Number of the item from the start of the first epoch on, an
            integer tensor of any shape.
        size: Number of items, below 2**31.

    Returns:
        int64 tensor of the shape of `number`.
    """
    number = tf.cast(number, tf.int64)
    flat = tf.reshape(number, (-1,))
    epochs = flat // size
    # The function that takes two words of a seed takes one seed alone.
    words = [tf.fill(tf.shape(flat), tf.constant(seed, tf.int64)), epochs]
    words.append(tf.zeros_like(flat))
    indices = tf.raw_ops.RandomIndexShuffle(
        index=flat % size,
        seed=tf.stack(words, axis=1),
        max_index=tf.fill(tf.shape(flat), tf.constant(size - 1, tf.int64)),
    )
    return tf.reshape(indices, tf.shape(number))
