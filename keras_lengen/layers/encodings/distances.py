"""Signed distances from queries to keys: of positions, or sampled."""

from keras import ops

from keras_lengen.arguments import check_choice
from keras_lengen.layers.encodings.base import Randomized, expand_positions


class SampledDistances(Randomized):
    """Makes the randomized form of an encoding whose distances are sampled.

    Mixed in before the encoding's class.
    """

    def __init__(self, *, distances="sampled", include_zero=None, **kwargs):
        check_distances(distances)
        if include_zero is None:
            # The distances from a first position at 0 are the published draw.
            include_zero = distances == "sampled"
        super().__init__(
            distances=distances, include_zero=include_zero, **kwargs
        )


def check_distances(distances):
    """Returns a valid kind of distances, or raises `ValueError`."""
    return check_choice("distances", distances, ("positions", "sampled"))


def find_signed_distances(query_positions, key_positions, distances):
    """Distances from queries to keys, negative for past keys.

    Args:
        query_positions: `(T,)` or `(B, T)`.
        key_positions: `(S,)` or `(B, S)`.
        distances: `"positions"`: the difference of the positions `p`.
            `"sampled"`: the positions are a table of distances, read by rank;
            with `i` and `j` the ranks of the query's and the key's position
            among the key positions, the distance is
            `sign(j - i) * (p[|j - i|] - p[0])`. Pairs equally many tokens
            apart are then equally far apart. Queries must be among the keys.

    Returns:
        float32 `(T, S)` or `(B, T, S)`.

    Reference: for `"sampled"`, the code of Ruoss et al., 2023.
    """
    if distances == "positions":
        queries = expand_positions(query_positions, 1)
        keys = ops.expand_dims(expand_positions(key_positions, 0), -2)
        return keys - queries
    indices, table = make_distance_table(query_positions, key_positions)
    return _read(table, indices)


def as_indices(steps):
    """Steps as int32; those that are NaN give some index in their range."""
    return ops.cast(ops.where(ops.isnan(steps), 0, steps), "int32")


def make_nan_factor(steps):
    """1, or NaN for pairs whose distance is NaN, to multiply a bias by.

    Args:
        steps: Distances, float32 `(T, S)` or `(B, T, S)`.

    Returns:
        float32 `(1 or B, 1, T, S)`.
    """
    factor = ops.where(ops.isnan(steps), steps, 1.0)
    if len(factor.shape) == 2:
        factor = ops.expand_dims(factor, 0)
    return ops.expand_dims(factor, 1)


def find_asymmetric_distances(
    query_positions, key_positions, *, asymmetry, causal, distances="positions"
):
    """How far keys are from queries, past keys nearer than future ones.

    Args:
        query_positions: `(T,)` or `(B, T)`.
        key_positions: `(S,)` or `(B, S)`.
        asymmetry: What the distance of a past key is less by.
        causal: Whether future keys are masked, so that there is no asymmetry.
        distances: As for `find_signed_distances`.

    Returns:
        float32 `(1 or B, 1, T, S)`, to broadcast over heads. Of past keys
        nearer than `asymmetry` it is negative.
    """
    steps = find_signed_distances(query_positions, key_positions, distances)
    lengths = ops.abs(steps)
    if not causal:
        past = ops.cast(steps < 0, "float32")
        lengths = lengths - asymmetry * past
    if len(lengths.shape) == 2:
        lengths = ops.expand_dims(lengths, 0)
    return ops.expand_dims(lengths, 1)


def make_distance_table(query_positions, key_positions):
    """Which entry of a table of sampled distances each pair reads.

    Args:
        query_positions: `(T,)` or `(B, T)`.
        key_positions: `(S,)` or `(B, S)`.

    Returns:
        The entries, int32 `(T, S)` or `(B, T, S)`, and the table, float32
        `(2 S - 1,)` or `(B, 2 S - 1)`: the distance of a key that is `n` keys
        further than the query is entry `S - 1 + n`.
    """
    queries = expand_positions(query_positions, 0)
    keys = expand_positions(key_positions, 0)
    ordered = ops.sort(keys, axis=-1)
    steps = ops.expand_dims(_find_ranks(keys, ordered), -2) - ops.expand_dims(
        _find_ranks(queries, ordered), -1
    )
    # Only a query beyond all keys, which padding may be, steps further.
    reach = ops.shape(ordered)[-1] - 1
    further = ordered - ordered[..., :1]
    table = ops.concatenate(
        [-ops.flip(further, axis=-1)[..., :-1], further], axis=-1
    )
    # The rank of NaN is some number: let all that is read be NaN.
    valid = ops.all(ops.isfinite(queries), axis=-1, keepdims=True)
    if len(queries.shape) > len(table.shape):
        valid = ops.all(valid)
    table = ops.where(valid, table, float("nan"))
    return ops.clip(steps, -reach, reach) + reach, table


def read_scores(scores, indices):
    """For every pair, the score that it reads among those of its query.

    Args:
        scores: Scores of the queries at every entry of a table, float32
            `(B, T, R, H)`.
        indices: Entries to read, int32 `(T, S)` or `(B, T, S)`.

    Returns:
        float32 `(B, H, T, S)`.
    """
    # Rows of all heads are faster to read than single numbers.
    batch_size, tokens, entries, heads = ops.shape(scores)
    first = entries * ops.arange(batch_size * tokens, dtype="int32")
    rows = ops.reshape(first, (batch_size, tokens, 1)) + indices
    scores = ops.take(ops.reshape(scores, (-1, heads)), rows, axis=0)
    return ops.transpose(scores, (0, 3, 1, 2))


def _find_ranks(positions, ordered):
    """How many entries of the sorted `(..., S)` are smaller."""
    # Keras searches one sequence, which takes no table of all pairs, but not
    # one of JAX's symbolic sizes.
    if len(ordered.shape) == 1 and isinstance(
        ordered.shape[0], int | type(None)
    ):
        ranks = ops.searchsorted(ordered, ops.reshape(positions, (-1,)))
        return ops.reshape(ops.cast(ranks, "int32"), ops.shape(positions))
    smaller = ops.expand_dims(positions, -1) > ops.expand_dims(ordered, -2)
    return ops.sum(ops.cast(smaller, "int32"), axis=-1)


def _read(table, indices):
    """`table[indices]`, for every example where there are several tables."""
    if len(table.shape) == 1:
        return ops.take(table, indices)
    shape = ops.shape(indices)
    flat = ops.reshape(indices, (shape[0], -1))
    return ops.reshape(ops.take_along_axis(table, flat, axis=-1), shape)
