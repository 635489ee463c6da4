"""Prompts and answers as inputs and targets of a decoder.

The model predicts every word of an answer, and its end, from those before it:

    prompt a b, answer c d, end $
    token_ids  a b c d
    targets    b c d $
    scored       x x x
"""

import numpy as np
import tensorflow as tf

from datasets.indexed import shuffled_dataset


def training_dataset(
    examples, vocabulary, *, batch_size, seed, padded_length, **steps
):
    """Returns batches of training examples, one for each replica.

    Every epoch has each example once, in another random order; examples
    without end come up once each.

    Args:
        examples: `Examples` of training.
        vocabulary: `WordVocabulary`.
        batch_size: int. Number of examples in a global batch.
        seed: int. Seed of the order.
        padded_length: int. Number of tokens that examples are padded to.
        **steps: `first_step`, `last_step` and `context` of
            `indexed_dataset`.

    Returns:
        `tf.data.Dataset` of batches in the format of `read_batch`.
    """

    def read(indices):
        return read_batch(
            lambda length: examples, vocabulary, 0, indices, padded_length
        )

    return shuffled_dataset(
        read, len(examples), batch_size=batch_size, seed=seed, **steps
    )


def read_batch(examples_at, vocabulary, length, indices, padded_length):
    """Reads examples as padded inputs and targets.

    Args:
        examples_at: Function from a length, an int, to its `Examples`.
        vocabulary: `WordVocabulary`.
        length: int or scalar int tensor.
        indices: int64 tensor `(B,)`. Numbers of the examples.
        padded_length: int or scalar int tensor P. Number of tokens that
            examples are padded to, at least those of the longest one.

    Returns:
        A dict: `"token_ids"` and `"targets"`, int32 `(B, P)`; `"scored"`, bool
        `(B, P)`, true where the target belongs to an answer;
        `"prompt_lengths"` and `"lengths"`, int32 `(B,)`, numbers of tokens of
        the prompts, and of the prompts with answers and end tokens;
        `"problem_lengths"`, int32 `(B,)`.
    """

    def tokenize(length, indices, padded_length):
        examples = examples_at(int(length))
        tokens = np.zeros((len(indices), padded_length + 1), np.int32)
        counts = np.zeros((3, len(indices)), np.int32)
        for row, index in enumerate(indices.tolist()):
            texts = examples.write(examples.problem(index))
            prompt, answer = map(vocabulary.tokenize, texts)
            ids = [*prompt, *answer, vocabulary.end]
            counts[:, row] = len(prompt), len(ids), examples.length(index)
            tokens[row, : len(ids)] = ids
        return tokens, counts

    tokens, counts = tf.numpy_function(
        tokenize, [length, indices, padded_length], (tf.int32, tf.int32)
    )
    rows = indices.shape[0]
    shape = (rows, tf.get_static_value(padded_length))
    prompt_lengths, lengths, problem_lengths = tf.unstack(
        tf.ensure_shape(counts, (3, rows))
    )
    places = tf.range(padded_length) + 1
    scored = (places >= prompt_lengths[:, None]) & (places < lengths[:, None])
    return {
        "token_ids": tf.ensure_shape(tokens[:, :-1], shape),
        "targets": tf.ensure_shape(tokens[:, 1:], shape),
        "scored": tf.ensure_shape(scored, shape),
        "prompt_lengths": prompt_lengths,
        "lengths": lengths,
        "problem_lengths": problem_lengths,
    }
