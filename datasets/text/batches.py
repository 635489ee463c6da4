"""Windows of a corpus as inputs and targets of a decoder of bytes.

The model predicts every byte of a window from the bytes before it, the first
one from the symbol `BEGIN`:

    window     a b c d
    token_ids  > a b c      > is BEGIN
    targets    a b c d
"""

import tensorflow as tf

from datasets.indexed import indexed_dataset
from datasets.seeds import fold_in
from datasets.text.corpus import CorpusError

BEGIN = 256
"""Id of the symbol before the first byte of a window."""


def training_dataset(
    corpus, *, length_at, batch_size, seed, padded_length, **steps
):
    """Returns batches of windows at random places, one for each replica.

    Args:
        corpus: `Corpus` of the training bytes.
        length_at: Function from a step to the length of its windows, a scalar
            int32 tensor.
        batch_size: int. Number of windows in a global batch.
        seed: int. Seed of the places.
        padded_length: int. Number of tokens that windows are padded to.
        **steps: `first_step`, `last_step` and `context` of
            `indexed_dataset`.

    Returns:
        `tf.data.Dataset` of batches in the format of `assemble`.

    Raises:
        CorpusError: If the corpus is shorter than a window.
    """
    if len(corpus) < padded_length:
        raise CorpusError(
            f"the text has {len(corpus)} bytes for training, fewer than one "
            f"window of {padded_length}: choose a longer text."
        )

    def draw(step, number, size):
        length = length_at(step)
        last = len(corpus) - tf.cast(length, tf.int64)
        starts = tf.random.stateless_uniform(
            (size,), fold_in(seed, step, number), 0, last + 1, tf.int64
        )
        windows = corpus.read_windows(starts, length)
        return assemble(windows, tf.fill((size,), length), padded_length)

    return indexed_dataset(draw, batch_size=batch_size, **steps)


def count_windows(corpus, length, most=0):
    """Returns the number of windows that an evaluation reads.

    Args:
        corpus: `Corpus`.
        length: int. Number of bytes of a window.
        most: int. Number of bytes to evaluate; 0: all.
    """
    return -(-min(len(corpus), most or len(corpus)) // length)


def evaluation_batch(
    corpus, *, index, batch_size, length, padded_length, most=0
):
    """Returns a batch of windows that cover a corpus without overlap.

    Args:
        corpus: `Corpus`.
        index: int or scalar int tensor, at least 0. Index of the batch.
        batch_size: int or scalar int tensor. Number of windows.
        length: int or scalar int tensor. Number of bytes of a window; the last
            one may be shorter.
        padded_length: int or scalar int tensor. Number of tokens that windows
            are padded to.
        most: int. Number of bytes to evaluate, from the first on; 0: all.

    Returns:
        Dict in the format of `assemble`. Windows beyond the end have no token
        that counts.
    """
    total = min(len(corpus), most or len(corpus))
    length = tf.cast(length, tf.int64)
    numbers = tf.cast(index * batch_size + tf.range(batch_size), tf.int64)
    starts = numbers * length
    counts = tf.clip_by_value(total - starts, 0, length)
    windows = corpus.read_windows(starts, length)
    return assemble(windows, tf.cast(counts, tf.int32), padded_length)


def assemble(windows, counts, padded_length):
    """Arranges windows as padded inputs and targets.

    Args:
        windows: int32 tensor `(B, T)`, bytes.
        counts: int32 tensor `(B,)`. Number of bytes of each that count.
        padded_length: int or scalar int tensor P, at least T.

    Returns:
        A dict: `"token_ids"` and `"targets"`, int32 `(B, P)`; `"scored"`, bool
        `(B, P)`, true where the loss is measured.
    """
    static = tf.get_static_value(padded_length)
    after = padded_length - tf.shape(windows)[1]

    def pad(values):
        values = tf.pad(values, [[0, 0], [0, after]])
        return tf.ensure_shape(values, (None, static))

    shifted = tf.pad(windows[:, :-1], [[0, 0], [1, 0]], constant_values=BEGIN)
    inside = tf.range(padded_length) < counts[:, None]
    return {
        "token_ids": pad(shifted),
        "targets": pad(windows),
        "scored": tf.ensure_shape(inside, (None, static)),
    }
