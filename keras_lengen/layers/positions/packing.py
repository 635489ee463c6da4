"""Positions of several documents packed into one row of tokens."""

from keras import ops

from keras_lengen.layers.documents import Documents
from keras_lengen.layers.positions.base import PositionSampler, count_tokens
from keras_lengen.types import Positions, Tensor


def place_documents(
    sampler: PositionSampler,
    inputs: Tensor,
    documents: Documents,
    training: bool | None,
) -> Positions:
    """Takes the positions of each document of packed rows from a sampler.

    Documents get the positions of sequences of their lengths. Documents of
    equal length get the same draw, also if they are in different rows.

    Args:
        sampler: `PositionSampler`.
        inputs: Tensor `(B, T, ...)`; only its shape is read.
        documents: `Documents` of the tokens.
        training: bool or `None`, whether the call belongs to training.

    Returns:
        int32 or float32 positions `(B, T)`.

    Raises:
        ValueError: If the sampler numbers images or reads token ids.
    """
    if sampler.pairs or sampler.reads_tokens:
        what = "reads token ids" if sampler.reads_tokens else "numbers an image"
        raise ValueError(
            f"{type(sampler).__name__} {what} and does not know where packed "
            "documents begin: pass `positions` with segment_ids, or give each "
            "document a row of its own."
        )
    tokens = count_tokens(inputs)
    if not (sampler.is_random or sampler.stretches):
        table = sampler.sample(inputs[:1], training=training)
        table = ops.reshape(table, (-1,))
        return ops.take(table, documents.ranks)
    # Row n has the positions of a sequence of n + 1 tokens.
    table = sampler.sample(
        ops.zeros((tokens, tokens)),
        lengths=ops.arange(1, tokens + 1, dtype="int32"),
        training=training,
    )
    if len(table.shape) == 1:
        return ops.take(table, documents.ranks)
    rows = ops.maximum(documents.lengths - 1, 0)
    return ops.take(ops.reshape(table, (-1,)), rows * tokens + documents.ranks)
