"""Labelled examples as inputs and targets of a model.

A label is read at a token after the input, a tag at each token, and an answer
is predicted token by token:

    kind        label         tags        answer
    example     a b, yes      a b, X Y    a b, c d
    token_ids   a b [ANSWER]  a b         a b [ANSWER] c d
    targets     - - yes       X Y         - - c        d [END]
    scored          x         x x             x        x x
"""

import numpy as np
import tensorflow as tf

from datasets.indexed import shuffled_dataset
from datasets.labelled.tokens import ANSWER, END


def training_dataset(data, *, batch_size, seed, padded_length, **steps):
    """Returns batches of training examples, one for each replica.

    Every epoch has each example once, in another random order.

    Args:
        data: `LabelledData`.
        batch_size: int. Number of examples in a global batch.
        seed: int. Seed of the order.
        padded_length: int. Number of tokens that examples are padded to.
        **steps: `first_step`, `last_step` and `context` of
            `indexed_dataset`.

    Returns:
        `tf.data.Dataset` of batches in the format of `read_batch`.
    """

    def read(places):
        return read_batch(
            data, lambda length: data.training, 0, places, padded_length
        )

    return shuffled_dataset(
        read, len(data.training), batch_size=batch_size, seed=seed, **steps
    )


def evaluation_batch(data, *, index, batch_size, length, padded_length):
    """Returns one batch of the examples of an evaluated length.

    After the last example, the first one follows again.

    Args:
        data: `LabelledData`.
        index: int or scalar int tensor. Number of the batch.
        batch_size: int or scalar int tensor. Number of examples.
        length: int or scalar int tensor.
        padded_length: int or scalar int tensor. Number of tokens that examples
            are padded to.

    Returns:
        Dict in the format of `read_batch`.
    """
    places = tf.cast(index * batch_size + tf.range(batch_size), tf.int64)
    return read_batch(data, data.evaluated.get, length, places, padded_length)


def read_batch(data, numbers_at, length, places, padded_length):
    """Reads examples as padded inputs and targets.

    Args:
        data: `LabelledData`.
        numbers_at: Function from a length, an int, to the numbers of its
            examples.
        length: int or scalar int tensor.
        places: int64 tensor `(B,)`. Places in these numbers.
        padded_length: int or scalar int tensor P. Number of tokens that
            examples are padded to, at least those of the longest one.

    Returns:
        A dict: `"token_ids"` and `"targets"`, int32 `(B, P)`; `"scored"`, bool
        `(B, P)`, true where a target counts; `"lengths"`, int32 `(B,)`,
        numbers of tokens.
    """

    def read(length, places, padded_length):
        numbers = numbers_at(int(length))
        shape = len(places), padded_length
        tokens, targets = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
        counts = np.zeros((2, len(places)), np.int32)
        for row, place in enumerate(places.tolist()):
            example = data.read(numbers[place % len(numbers)])
            ids, answers = arrange(data.kind, *example)
            tokens[row, : len(ids)] = ids
            first = len(ids) - len(answers)
            targets[row, first : len(ids)] = answers
            counts[:, row] = first, len(ids)
        return tokens, targets, counts

    tokens, targets, counts = tf.numpy_function(
        read,
        [length, places, padded_length],
        (tf.int32, tf.int32, tf.int32),
    )
    rows = places.shape[0]
    shape = (rows, tf.get_static_value(padded_length))
    first, lengths = tf.unstack(tf.ensure_shape(counts, (2, rows)))
    order = tf.range(padded_length)
    scored = (order >= first[:, None]) & (order < lengths[:, None])
    return {
        "token_ids": tf.ensure_shape(tokens, shape),
        "targets": tf.ensure_shape(targets, shape),
        "scored": tf.ensure_shape(scored, shape),
        "lengths": lengths,
    }


def arrange(kind, tokens, target):
    """Arranges an example as inputs and targets of a model.

    Args:
        kind: str, of `KINDS`.
        tokens: int32 array. Tokens of the input.
        target: int32 array. Its label, its tags, or the tokens of its answer.

    Returns:
        Two int32 arrays: the token ids, and the targets of the last of them.
    """
    if kind == "tags":
        return tokens, target
    prompt = np.append(tokens, ANSWER)
    if kind == "label":
        return prompt, target
    return np.append(prompt, target), np.append(target, END)
