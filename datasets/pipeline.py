"""Batches of a task by index: what step 7 sees depends on nothing else.

A global batch is a fixed number of sub-batches, each a pure function of the
seed, the step and its number, so the same data is seen under every strategy
and a resumed run needs no state of an iterator. A curriculum draws one length
for every step. Sequences are padded to a few lengths, so that a few programs
serve all.

    inputs   1 0 1   targets  1 0 1    at reverse_string, length 3
    ->
    token_ids  1 0 1 2 2 2 0 0         2 is the empty output token
    targets    0 0 0 1 0 1 0 0
    answer     . . . x x x . .         where the loss is measured
    scored     . . . x x x . .         where accuracy is measured
    lengths    6
"""

import math

import numpy as np
import tensorflow as tf

SUB_BATCHES = 8
"""Into how many parts a global batch is drawn, where they divide it."""


def training_dataset(
    task,
    *,
    lengths,
    curriculum,
    batch_size,
    seed,
    padded_length,
    first_step,
    last_step,
    context=None,
):
    """Batches of the steps `first_step` to `last_step - 1`, one per replica.

    Args:
        task: The `Task` to draw from.
        lengths: Lengths to draw from for every step.
        curriculum: The `Curriculum` that draws them.
        batch_size: Examples in a global batch.
        seed: Integer seed of the data.
        padded_length: Number of tokens that every example is padded to.
        first_step: Number of the first step, from 0.
        last_step: Number of the step to end before.
        context: `tf.distribute.InputContext` that tells the number of
            replicas and which of them this pipeline feeds; `None` for one
            replica.

    Returns:
        A `tf.data.Dataset` of batches as `assemble` makes them, those of a
        step for all local replicas one after the other.

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
        length = length_at(seed, step, lengths, curriculum)
        samples = [
            task.sample(fold_in(seed, step, 1 + number), sub_batch, length)
            for number in numbers
        ]
        sample = {
            name: tf.concat([sample[name] for sample in samples], axis=0)[
                before : before + share
            ]
            for name in samples[0]
        }
        return {
            name: tf.reshape(values, (local, share // local, padded_length))
            if values.shape.rank
            else tf.repeat(values, local)
            for name, values in assemble(task, sample, padded_length).items()
        }

    dataset = tf.data.Dataset.range(first_step, last_step)
    # Batches in order: the options keep runs repeatable under parallel maps.
    dataset = dataset.map(batches_at, num_parallel_calls=tf.data.AUTOTUNE)
    return dataset.prefetch(2).unbatch()


def length_at(seed, step, lengths, curriculum):
    """The length of all examples of a step, as a scalar int32 tensor."""
    return curriculum.length_at(fold_in(seed, step, 0), step, lengths)


def evaluation_batch(task, *, seed, index, batch_size, length, padded_length):
    """A batch to evaluate at one length: number `index`, padded."""
    # Negative numbers, which no training step has.
    sample = task.sample(fold_in(seed, -length, index), batch_size, length)
    return assemble(task, sample, padded_length)


def assemble(task, sample, padded_length):
    """Lays a sample out as model inputs and targets, padded at the end.

    Args:
        task: The task of the sample.
        sample: Inputs `(B, n)`, targets and mask `(B, m)`.
        padded_length: Number of tokens P, at least `n + m`; static shapes
            need an int.

    Returns:
        A dict: `"token_ids"`, int32 `(B, P)`: the inputs, an empty token
        `task.input_vocabulary_size` for each output, padding; `"lengths"`,
        the scalar `n + m`; `"targets"`, int32 `(B, P)`, at the empty tokens;
        `"answer"` and `"scored"`, bool `(B, P)`, where loss and accuracy are
        measured.
    """
    inputs, targets = sample["inputs"], sample["targets"]
    before, outputs = tf.shape(inputs)[1], tf.shape(targets)[1]

    def place(values):
        after = padded_length - before - outputs
        values = tf.pad(values, [[0, 0], [before, after]])
        static = tf.get_static_value(padded_length)
        return tf.ensure_shape(values, (None, static))

    empty = tf.fill(tf.shape(targets), task.input_vocabulary_size)
    rest = tf.pad(inputs, [[0, 0], [0, padded_length - before]])
    return {
        "token_ids": place(empty) + rest,
        "lengths": before + outputs,
        "targets": place(targets),
        "answer": place(tf.ones_like(sample["mask"])),
        "scored": place(sample["mask"]),
    }


def length_buckets(lengths, count):
    """At most `count` padded lengths that serve all of `lengths`.

    Each is one of the lengths, and they are chosen so that the pairs of
    tokens computed, a square per length, exceed those needed by as little as
    possible.

    >>> length_buckets([2, 4, 6, 8, 10, 12], 2)
    (6, 12)

    Args:
        lengths: Numbers of tokens, each as often as it will be computed.
        count: Largest number of padded lengths.

    Returns:
        Increasing padded lengths, the last one the largest length.
    """
    values, counts = np.unique(np.asarray(lengths), return_counts=True)
    if len(values) <= count:
        return tuple(int(value) for value in values)
    # cost[k, j]: least cost of the first j values with k buckets; the last
    # of them reaches from value i to value j - 1.
    total = np.concatenate([[0], np.cumsum(counts)])
    number = len(values)
    cost = np.full((count + 1, number + 1), np.inf)
    cost[0, 0] = 0
    start = np.zeros((count + 1, number + 1), int)
    for k in range(1, count + 1):
        for j in range(1, number + 1):
            price = (total[j] - total[:j]) * float(values[j - 1]) ** 2
            start[k, j] = np.argmin(cost[k - 1, :j] + price)
            cost[k, j] = np.min(cost[k - 1, :j] + price)
    buckets, j = [], number
    for k in range(count, 0, -1):
        buckets.append(int(values[j - 1]))
        j = start[k, j]
    return tuple(reversed(buckets))


def bucket_of(length, buckets):
    """Index of the smallest padded length that holds `length` tokens."""
    return tf.searchsorted(
        tf.constant(tuple(buckets), tf.int32), tf.reshape(length, (1,))
    )[0]


def fold_in(seed, *numbers):
    """A seed of its own for every sequence of integers."""
    key = tf.constant([seed, 0], tf.int64)
    for number in numbers:
        key = tf.random.fold_in(key, tf.cast(number, tf.int64), alg="philox")
    return key
