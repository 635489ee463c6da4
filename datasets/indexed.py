"""Data sets whose batches are a function of the step number.

A global batch consists of a fixed number of sub-batches, each a pure function
of the step and the index of the sub-batch. The data is therefore the same
under every distribution strategy, and a resumed run does not need the state of
an iterator.
"""

import math

import tensorflow as tf

SUB_BATCHES = 8
"""Number of sub-batches of a global batch, if it divides the batch size."""


def indexed_dataset(draw, *, batch_size, first_step, last_step, context=None):
    """Returns the batches of steps `first_step` to `last_step - 1`.

    Args:
        draw: Pure function of TensorFlow operations. Its arguments are a step,
            scalar int64 tensor; the index of a sub-batch, too; and the number
            of its examples, int. It returns a dict of tensors whose first axis
            is the examples, or scalars that are the same for all sub-batches
            of a step.
        batch_size: int. Number of examples in a global batch; a multiple of
            the number of replicas.
        first_step: int, at least 0. The first step.
        last_step: int. One more than the last step.
        context: `tf.distribute.InputContext` with the number of replicas and
            the index of this pipeline; `None`: a single replica.

    Returns:
        `tf.data.Dataset` whose elements are each the batch of one replica. The
        batches of a step for all replicas of this process follow one another.

    Raises:
        ValueError: If the number of replicas does not divide `batch_size`.
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
    # The share of this process may begin and end inside a sub-batch.
    numbers = range(first // sub_batch, -(-(first + share) // sub_batch))
    before = first - numbers[0] * sub_batch

    # A function in the graph, which is built once for all sub-batches.
    @tf.function(autograph=False)
    def draw_part(step, number):
        return draw(step, number, sub_batch)

    def make_batches(step):
        parts = [
            draw_part(step, tf.constant(number, tf.int64)) for number in numbers
        ]

        def join(name):
            if not parts[0][name].shape.rank:
                return tf.repeat(parts[0][name], local)
            values = tf.concat([part[name] for part in parts], axis=0)
            values = values[before : before + share]
            shape = (local, share // local, *values.shape[1:])
            return tf.reshape(values, shape)

        return {name: join(name) for name in parts[0]}

    dataset = tf.data.Dataset.range(first_step, last_step)
    # By default, a parallel map returns batches in order.
    dataset = dataset.map(make_batches, num_parallel_calls=tf.data.AUTOTUNE)
    return dataset.prefetch(2).unbatch()


def shuffled_dataset(read, size, *, batch_size, seed, **steps):
    """Returns batches of examples of which every epoch has each one once.

    Each epoch has another random order.

    Args:
        read: Function of the indices of examples, an int64 tensor `(B,)`;
            returns a dict of tensors.
        size: int. Number of examples; 0: they have no end, and come in order.
        batch_size: int. Number of examples in a global batch.
        seed: int. Seed of the orders.
        **steps: `first_step`, `last_step` and `context` of
            `indexed_dataset`.
    """

    def draw(step, number, count):
        indices = example_numbers(step, number, count, batch_size)
        return read(shuffled_index(seed, indices, size) if size else indices)

    return indexed_dataset(draw, batch_size=batch_size, **steps)


def example_numbers(step, number, size, batch_size):
    """Returns the numbers of the examples of a sub-batch, from the first step.

    Args:
        step: Scalar int64 tensor. The step.
        number: Scalar int64 tensor. Index of the sub-batch.
        size: int. Number of its examples.
        batch_size: int. Number of examples in a global batch.

    Returns:
        int64 tensor `(size,)`.
    """
    return step * batch_size + number * size + tf.range(size, dtype=tf.int64)


def shuffled_index(seed, number, size):
    """Returns the index of the item at place `number` of a shuffled sequence.

    The sequence consists of epochs. Each epoch contains every item once, in a
    different random order. No buffer and no state are needed.

    Args:
        seed: int. Seed of the random orders.
        number: int tensor of any shape, at least 0. Place in the sequence,
            counted from the start of the first epoch.
        size: int from 1 to `2**31 - 1`. Number of items.

    Returns:
        int64 tensor of the shape of `number`, from 0 to `size - 1`.
    """
    number = tf.cast(number, tf.int64)
    flat = tf.reshape(number, (-1,))
    epochs = flat // size
    # tf.random.experimental.index_shuffle accepts only a single seed.
    words = [tf.fill(tf.shape(flat), tf.constant(seed, tf.int64)), epochs]
    words.append(tf.zeros_like(flat))
    indices = tf.raw_ops.RandomIndexShuffle(
        index=flat % size,
        seed=tf.stack(words, axis=1),
        max_index=tf.fill(tf.shape(flat), tf.constant(size - 1, tf.int64)),
    )
    return tf.reshape(indices, tf.shape(number))
