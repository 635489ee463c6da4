"""Windows of a corpus as inputs and targets of a decoder.

The model predicts every item of a window, such as a byte, from those before it,
the first one from the symbol `begin` of its vocabulary:

    window     a b c d
    token_ids  > a b c      > is begin
    targets    a b c d
"""

import tensorflow as tf

from datasets.indexed import indexed_dataset
from datasets.seeds import fold_in
from datasets.text.corpus import CorpusError


def training_dataset(
    corpus, *, length_at, batch_size, seed, padded_length, **steps
):
    """Returns batches of windows at random places, one for each replica.

    Args:
        corpus: `Corpus` of the training text.
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
            f"the text has {len(corpus)} tokens for training, fewer than one "
            f"window of {padded_length}: choose a longer text."
        )

    begin = corpus.vocabulary.begin

    def draw(step, number, size):
        length = length_at(step)
        last = len(corpus) - tf.cast(length, tf.int64)
        starts = tf.random.stateless_uniform(
            (size,),
            fold_in(seed, step, number),
            0,
            last + 1,
            tf.int64,
            alg="philox",
        )
        windows = corpus.read_windows(starts, length)
        counts = tf.fill((size,), length)
        return assemble(windows, counts, padded_length, begin=begin)

    return indexed_dataset(draw, batch_size=batch_size, **steps)


def count_windows(corpus, length, *, most=0, stride=0):
    """Returns the number of windows that an evaluation reads.

    Args:
        corpus: `Corpus`.
        length: int. Number of items of a window.
        most: int. Number of items to evaluate; 0: all.
        stride: int. As of `evaluation_batch`.
    """
    total = min(len(corpus), most or len(corpus))
    return 1 + max(-(-(total - length) // min(stride or length, length)), 0)


def evaluation_batch(
    corpus, *, index, batch_size, length, padded_length, most=0, stride=0
):
    """Returns a batch of windows in which every item is scored once.

    Windows begin every `stride` items. All items of the first window are
    scored. In every later window, only the items after the end of the previous
    window are scored, so that each has at least `length - stride` items before
    it.

    Args:
        corpus: `Corpus`.
        index: int or scalar int tensor, at least 0. Index of the batch.
        batch_size: int or scalar int tensor. Number of windows.
        length: int or scalar int tensor. Number of items of a window; the last
            one may be shorter.
        padded_length: int or scalar int tensor. Number of tokens that windows
            are padded to.
        most: int. Number of items to evaluate, from the first on; 0: all.
        stride: int, the largest number of items between the beginnings of two
            windows; 0: windows do not overlap.

    Returns:
        Dict in the format of `assemble`. Windows beyond the end have no token
        that counts.
    """
    total = min(len(corpus), most or len(corpus))
    length = tf.cast(length, tf.int64)
    step = tf.minimum(tf.cast(stride or length, tf.int64), length)
    numbers = tf.cast(index * batch_size + tf.range(batch_size), tf.int64)
    starts = numbers * step
    counts = tf.clip_by_value(total - starts, 0, length)
    before = tf.where(numbers > 0, length - step, 0)
    windows = corpus.read_windows(starts, length)
    return assemble(
        windows,
        tf.cast(counts, tf.int32),
        padded_length,
        begin=corpus.vocabulary.begin,
        before=tf.cast(before, tf.int32),
    )


def assemble(windows, counts, padded_length, *, begin, before=0):
    """Arranges windows as padded inputs and targets.

    Args:
        windows: int32 tensor `(B, T)`, ids of items.
        counts: int32 tensor `(B,)`. Number of items in each window.
        padded_length: int or scalar int tensor P, at least T.
        begin: int. Id of the symbol before the first item.
        before: int32 tensor `(B,)`, or int. Number of items at the beginning of
            each window that are not scored.

    Returns:
        A dict: `"token_ids"` and `"targets"`, int32 `(B, P)`; `"scored"`, bool
        `(B, P)`, true where the loss is measured.
    """
    static = tf.get_static_value(padded_length)
    after = padded_length - tf.shape(windows)[1]

    def pad(values):
        values = tf.pad(values, [[0, 0], [0, after]])
        return tf.ensure_shape(values, (None, static))

    shifted = tf.pad(windows[:, :-1], [[0, 0], [1, 0]], constant_values=begin)
    places = tf.range(padded_length)
    first = tf.broadcast_to(before, tf.shape(counts))[:, None]
    inside = (places >= first) & (places < counts[:, None])
    return {
        "token_ids": pad(shifted),
        "targets": pad(windows),
        "scored": tf.ensure_shape(inside, (None, static)),
    }
