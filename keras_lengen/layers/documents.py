"""Several documents packed into one row of tokens."""

from typing import NamedTuple

from keras import ops

from keras_lengen.types import Size, Tensor


class Documents(NamedTuple):
    """The documents that the tokens of each row belong to.

    Attributes:
        ids: int32 `(B, T)`. Tokens see each other only if their ids are equal.
        ranks: Number of real tokens before a token in its document, int32
            `(B, T)`; padding has the rank of the last real token before it in
            its document, at least 0.
        lengths: Number of real tokens of a token's document, int32 `(B, T)`.
    """

    ids: Tensor
    ranks: Tensor
    lengths: Tensor


def find_documents(
    segment_ids: Tensor, mask: Tensor | None = None, *, numbered: bool = True
) -> Documents:
    """Finds the documents of the tokens of each row.

    Args:
        segment_ids: Integers `(B, T)`. A document begins at the first token and
            wherever the number changes.
        mask: Boolean tensor `(B, T)`, true for real tokens, or `None`.
        numbered: bool, whether documents are numbered in their order. If not,
            their ids are the `segment_ids`, to be compared with those of
            another sequence.

    Returns:
        `Documents`.
    """
    tokens = ops.shape(segment_ids)[1]
    indices = ops.arange(tokens, dtype="int32")
    changes = segment_ids[:, 1:] != segment_ids[:, :-1]
    numbers = _number(changes)
    begins = ops.pad(changes, [[0, 0], [1, 0]], constant_values=True)
    # The index of the first token of each document, then the number of tokens.
    starts = ops.sort(ops.where(begins, indices, tokens), axis=-1)
    starts = ops.concatenate(
        [starts, ops.full_like(starts[:, :1], tokens)], axis=-1
    )
    first = ops.take_along_axis(starts, numbers, axis=-1)
    end = ops.take_along_axis(starts, numbers + 1, axis=-1)
    if mask is None:
        ranks, lengths = indices - first, end - first
    else:
        counts = ops.cumsum(ops.cast(mask, "int32"), axis=-1)
        counts = ops.pad(counts, [[0, 0], [1, 0]])
        before = ops.take_along_axis(counts, first, axis=-1)
        ranks = ops.maximum(counts[:, 1:] - 1 - before, 0)
        lengths = ops.take_along_axis(counts, end, axis=-1) - before
    ids = numbers if numbered else ops.cast(segment_ids, "int32")
    return Documents(ids, ranks, lengths)


def find_runs(attention_mask: Tensor, batch_size: Size) -> Tensor:
    """Finds the runs of tokens that see the token before them.

    Args:
        attention_mask: Boolean tensor `(1 or B, 1 or H, T, T)`, true where a
            token may attend to another.
        batch_size: Number of examples `B`.

    Returns:
        int32 `(B, T)`, the number of the run of each token.
    """
    seen = ops.diagonal(
        ops.all(attention_mask, axis=1), offset=-1, axis1=1, axis2=2
    )
    runs = _number(ops.logical_not(seen))
    return ops.broadcast_to(runs, (batch_size, ops.shape(runs)[1]))


def _number(begins: Tensor) -> Tensor:
    """Counts the beginnings up to each token, after the first token.

    Args:
        begins: Boolean tensor `(B, T - 1)`, whether something begins at the
            second token, the third one, and so on.

    Returns:
        int32 `(B, T)`.
    """
    begins = ops.pad(ops.cast(begins, "int32"), [[0, 0], [1, 0]])
    return ops.cumsum(begins, axis=-1)


def compare_documents(ids: Tensor, key_ids: Tensor) -> Tensor:
    """Finds which keys belong to the document of each query.

    Args:
        ids: Document of each query, int32 `(B, T)`.
        key_ids: Document of each key, int32 `(B, S)`.

    Returns:
        Boolean tensor `(B, 1, T, S)`.
    """
    same = ops.expand_dims(ids, -1) == ops.expand_dims(key_ids, -2)
    return ops.expand_dims(same, 1)


def convolve_tokens(
    features: Tensor, kernel: Tensor, ids: Tensor | None = None
) -> Tensor:
    """Sums the features of each token and of those before it, weighted.

    Args:
        features: float32 `(B, T, heads, width)`.
        kernel: float32 `(number of tokens, heads, width)`, the weights of a
            token, of the one before it, and so on.
        ids: Document of each token, int32 `(B, T)`, beyond which there are no
            earlier tokens; or `None`.

    Returns:
        float32 `(B, T, heads, width)`.
    """
    tokens = ops.shape(features)[1]
    before = kernel.shape[0] - 1
    padded = ops.pad(features, [[0, 0], [before, 0], [0, 0], [0, 0]])
    if ids is not None:
        # No document has this number.
        padded_ids = ops.pad(ids, [[0, 0], [before, 0]], constant_values=-1)
    total = kernel[0] * features
    for lag in range(1, before + 1):
        part = slice(before - lag, before - lag + tokens)
        moved = padded[:, part]
        if ids is not None:
            same = padded_ids[:, part] == ids
            moved = ops.where(ops.expand_dims(same, (-1, -2)), moved, 0.0)
        total = total + kernel[lag] * moved
    return total
