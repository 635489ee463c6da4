"""Positions of the tokens of padded and packed rows."""

import keras
from keras import ops

from keras_lengen.checks.guards import guard, mark_like
from keras_lengen.checks.inputs import (
    read_index,
    read_lengths,
    read_mask,
    read_reference_length,
)
from keras_lengen.layers.documents import Documents
from keras_lengen.layers.positions.base import PositionSampler, count_tokens
from keras_lengen.layers.real_tokens import (
    number_real_tokens,
    order_real_tokens,
)
from keras_lengen.types import Positions, Size, Tensor, TensorLike


def sample_positions(
    sampler: PositionSampler,
    inputs: Tensor,
    *,
    start_index: Size = 0,
    mask: TensorLike | None = None,
    lengths: TensorLike | None = None,
    reference_length: TensorLike | None = None,
    training: bool | None = None,
) -> Positions:
    """Takes the positions of tokens from a sampler.

    Args:
        sampler: `PositionSampler`.
        inputs: Tensor `(B, T, ...)`; only its shape is read, unless the
            sampler reads token ids.
        start_index: int or scalar integer tensor, from 0 to `2 ** 24`.
            Index of the first token in the whole sequence.
        mask: Boolean tensor `(B, T)`, true for real tokens. Real tokens
            are numbered in order, wherever the padding is.
        lengths: Integer tensor `()` or `(B,)`, true lengths of sequences
            that are padded at the end. Give at most one of `mask` and
            `lengths`.
        reference_length: Length in tokens by which interpolating samplers
            scale, a number or a tensor `()` or `(B,)`; `None` for the true
            length.
        training: bool or `None`, whether the call belongs to training.

    Returns:
        int32 or float32 positions `(T,)`, or `(B, T)` if they differ
        between examples; a pair of these if the sampler gives pairs.

    Raises:
        ValueError: If `start_index` is not 0 and the sampler draws
            positions or does not space them by one, because positions then
            depend on the whole sequence; if `mask` or `lengths` do not fit
            the tokens.
    """
    sampler.check_inputs(inputs)
    start_index = read_index("start_index", start_index)
    if mask is not None and lengths is not None:
        raise ValueError(
            "give at most one of mask and lengths: both say which tokens "
            "are padding."
        )
    # Positions are marked by a number that is marked itself.
    mask, marked = (
        read_mask(mask, ops.zeros((), "int32"), inputs=inputs, name="mask")
        if mask is not None
        else (None, None)
    )
    lengths = read_lengths(lengths, inputs)
    positions = place_tokens(
        sampler,
        inputs,
        mask=mask,
        lengths=lengths,
        reference_length=read_reference_length(reference_length, inputs),
        training=training,
    )
    positions = mark_like(mark_like(positions, marked), lengths)
    if isinstance(start_index, int) and start_index == 0:
        return positions
    if sampler.is_random or sampler.stretches or sampler.reads_tokens:
        start = start_index if isinstance(start_index, int) else "a tensor"
        raise ValueError(
            f"start_index={start} needs the positions of the whole "
            f"sequence, which {type(sampler).__name__} cannot compute "
            "from a part of it: call the sampler once for the whole "
            "sequence and pass `positions`."
        )
    if isinstance(start_index, int):
        return positions + start_index
    start_index = ops.cast(start_index, "int32")
    return guard(
        positions + start_index,
        start_index >= 0,
        "start_index must be at least 0; got ",
        start_index,
        ".",
    )


def place_tokens(
    sampler: PositionSampler,
    inputs: Tensor,
    *,
    mask: Tensor | None = None,
    lengths: Tensor | None = None,
    reference_length: Tensor | None = None,
    documents: Documents | None = None,
    training: bool | None = None,
) -> Positions:
    """Takes positions from a sampler for arguments that are checked.

    Args:
        sampler: `PositionSampler`.
        inputs: Tensor `(B, T, ...)`.
        mask: Boolean tensor `(B, T)`, true for real tokens, or `None`.
        lengths: int32 tensor `()` or `(B,)`, or `None`.
        reference_length: float32 tensor `()` or `(B,)`, or `None`.
        documents: `Documents`, each of which gets positions of its own;
            or `None`. They already exclude padding.
        training: bool or `None`, whether the call belongs to training.

    Returns:
        Positions as `sample_positions` returns them.
    """
    if documents is not None:
        return place_documents(sampler, inputs, documents, training)
    if mask is not None:
        lengths = ops.sum(ops.cast(mask, "int32"), axis=-1)
        if sampler.reads_tokens:
            inputs = ops.take_along_axis(
                inputs, order_real_tokens(mask), axis=-1
            )
    positions = sampler.sample(
        inputs,
        lengths=lengths,
        reference_length=reference_length,
        training=training,
    )
    if mask is None:
        return positions
    # A pair of rows and columns is a structure of two tensors.
    return keras.tree.map_structure(
        lambda axis: number_real_tokens(axis, mask), positions
    )


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
    if sampler.position_axes == 2 or sampler.reads_tokens:
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
