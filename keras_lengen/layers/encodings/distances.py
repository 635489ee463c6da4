"""Signed distances from queries to keys, by position or by rank."""

from typing import Any, Literal

from keras import ops

from keras_lengen.checks.arguments import (
    LARGEST_POSITION,
    Boolean,
    Number,
    OrDefault,
)
from keras_lengen.checks.constructors import argument
from keras_lengen.layers.encodings.base import expand_positions
from keras_lengen.layers.encodings.gathers import avoids_gathers, exact_products
from keras_lengen.layers.encodings.randomized import Randomized
from keras_lengen.types import Tensor

FEW_ENTRIES = 128
"""Largest number of entries that are compared with each index instead of being
gathered, which takes TPUs a thousand times as long."""

RANKED = 64
"""Number of sorted positions that are compared at a time to find a rank."""

HIDDEN = -1e9
"""Bias of keys that a query does not see: softmax gives them exactly 0."""


class SampledDistances(Randomized):
    """Mixin that gives an encoding randomized distances.

    List it before the class of the encoding among the base classes.
    """

    distances: Literal["positions", "sampled"] = argument(default="sampled")
    include_zero: OrDefault[bool] = argument(OrDefault(Boolean()), default=None)

    def assign(self, values: dict[str, Any]) -> None:
        if values["include_zero"] is None:
            # With position 0, distances from the first position are drawn as
            # in the code of Ruoss et al., 2023.
            sampled = values["distances"] == "sampled"
            values = {**values, "include_zero": sampled}
        super().assign(values)


class Asymmetry(Number):
    """How much nearer past keys are than future ones at the same distance."""

    def __init__(self, *, example: float) -> None:
        super().__init__(
            -LARGEST_POSITION, LARGEST_POSITION, example=example, variant=True
        )


def find_signed_distances(
    query_positions: Tensor, key_positions: Tensor, distances: str
) -> Tensor:
    """Computes the distances from queries to keys, negative for past keys.

    Args:
        query_positions: Integer or float tensor `(T,)` or `(B, T)`.
        key_positions: Integer or float tensor `(S,)` or `(B, S)`.
        distances: str. `"positions"`: the key's position minus the query's.
            `"sampled"`: the key positions `p`, sorted, are a table of
            distances that is read by rank. If `i` and `j` are the ranks of the
            query's and of the key's position among the key positions, the
            distance is `sign(j - i) * (p[|j - i|] - p[0])`: all pairs with the
            same number of tokens between them have the same distance. Every
            query position must be among the key positions.

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


def add_head_axis(distances: Tensor) -> Tensor:
    """Adds axes to distances, to broadcast over heads.

    Args:
        distances: float32 `(T, S)` or `(B, T, S)`.

    Returns:
        float32 `(1 or B, 1, T, S)`.
    """
    if len(distances.shape) == 2:
        distances = ops.expand_dims(distances, 0)
    return ops.expand_dims(distances, 1)


def as_indices(steps: Tensor) -> Tensor:
    """Casts distances to int32 indices; NaN becomes 0."""
    return ops.cast(ops.where(ops.isnan(steps), 0, steps), "int32")


def make_nan_factor(steps: Tensor) -> Tensor:
    """Makes a factor that turns the bias of pairs with a NaN distance to NaN.

    Args:
        steps: Distances, float32 `(T, S)` or `(B, T, S)`.

    Returns:
        float32 `(1 or B, 1, T, S)`: NaN where the distance is NaN, else 1.
    """
    return add_head_axis(ops.where(ops.isnan(steps), steps, 1.0))


def find_asymmetric_distances(
    query_positions: Tensor,
    key_positions: Tensor,
    *,
    asymmetry: float,
    causal: bool,
    distances: str = "positions",
) -> Tensor:
    """Computes unsigned distances, less `asymmetry` for past keys.

    Args:
        query_positions: Integer or float tensor `(T,)` or `(B, T)`.
        key_positions: Integer or float tensor `(S,)` or `(B, S)`.
        asymmetry: float, subtracted from the distance of past keys.
        causal: bool, whether keys at larger positions are masked; `asymmetry`
            is then ignored.
        distances: As for `find_signed_distances`.

    Returns:
        float32 `(1 or B, 1, T, S)`, to broadcast over heads. The result is
        negative for past keys nearer than `asymmetry`.
    """
    steps = find_signed_distances(query_positions, key_positions, distances)
    asymmetry = 0.0 if causal else asymmetry
    return add_head_axis(shorten_past(steps, asymmetry=asymmetry))


def shorten_past(steps: Tensor, *, asymmetry: float) -> Tensor:
    """Computes unsigned distances, less `asymmetry` for past keys.

    Args:
        steps: Distances from queries to keys, float32, negative for past keys.
        asymmetry: float, subtracted from the distance of past keys.

    Returns:
        float32 like `steps`.
    """
    lengths = ops.abs(steps)
    if not asymmetry:
        return lengths
    return lengths - asymmetry * ops.cast(steps < 0, "float32")


def make_distance_table(
    query_positions: Tensor, key_positions: Tensor
) -> tuple[Tensor, Tensor]:
    """Makes a table of sampled distances and finds the entry of each pair.

    Args:
        query_positions: Integer or float tensor `(T,)` or `(B, T)`.
        key_positions: Integer or float tensor `(S,)` or `(B, S)`.

    Returns:
        The index of each pair's entry, int32 `(T, S)` or `(B, T, S)`, and the
        table, float32 `(2 S - 1,)` or `(B, 2 S - 1)`. Entry `S - 1 + n` is the
        distance of a key whose rank is `n` above the query's.
    """
    queries = expand_positions(query_positions, 0)
    keys = expand_positions(key_positions, 0)
    ordered = ops.sort(keys, axis=-1)
    steps = ops.expand_dims(_find_ranks(keys, ordered), -2) - ops.expand_dims(
        _find_ranks(queries, ordered), -1
    )
    # Only a query beyond all keys, such as padding, has a larger difference of
    # ranks; it is clipped below.
    reach = ops.shape(ordered)[-1] - 1
    further = ordered - ordered[..., :1]
    table = ops.concatenate(
        [-ops.flip(further, axis=-1)[..., :-1], further], axis=-1
    )
    # The rank of a NaN position is meaningless, so the whole table becomes NaN.
    valid = ops.all(ops.isfinite(queries), axis=-1, keepdims=True)
    if len(queries.shape) > len(table.shape):
        valid = ops.all(valid)
    table = ops.where(valid, table, float("nan"))
    return ops.clip(steps, -reach, reach) + reach, table


def read_scores(scores: Tensor, indices: Tensor) -> Tensor:
    """Reads the score of every pair from the scores of its query.

    Args:
        scores: Scores of the queries for all `R` entries of a table, float32
            `(B, T, R, H)`.
        indices: Index of each pair's entry, int32 `(T, S)` or `(B, T, S)`.

    Returns:
        float32 `(B, H, T, S)`.
    """
    # Unknown in a program for all lengths.
    known = scores.shape[2]
    few = known is not None and known <= FEW_ENTRIES
    if few and len(indices.shape) == 2:
        return _multiply_scores(scores, indices)
    if few and avoids_gathers():
        return _pick_scores(ops.transpose(scores, (0, 3, 1, 2)), indices)
    # Reading rows, with all heads, is faster than reading single numbers.
    batch_size, tokens, entries, heads = ops.shape(scores)
    first = entries * ops.arange(batch_size * tokens, dtype="int32")
    rows = ops.reshape(first, (batch_size, tokens, 1)) + indices
    scores = ops.take(ops.reshape(scores, (-1, heads)), rows, axis=0)
    return ops.transpose(scores, (0, 3, 1, 2))


def _multiply_scores(scores: Tensor, indices: Tensor) -> Tensor:
    """Reads scores `(B, T, R, H)` by a product with zeros and ones.

    The whole batch shares the indices `(T, S)`, so that the product takes no
    longer than a gather on a CPU, and a tenth of the bytes on a TPU.
    """
    entries = ops.arange(scores.shape[2], dtype="int32")
    chosen = ops.expand_dims(indices, 1) == ops.expand_dims(entries, -1)
    chosen = ops.cast(chosen, "float32")
    if avoids_gathers():
        with exact_products():
            return ops.einsum("btrh,trs->bhts", scores, chosen)
    # The gradient of an einsum would transpose the scores of all pairs twice.
    tokens, heads = ops.shape(indices)[0], scores.shape[3]
    scores = ops.transpose(scores, (1, 0, 3, 2))
    scores = ops.reshape(scores, (tokens, -1, entries.shape[0]))
    scores = ops.matmul(scores, chosen)
    scores = ops.reshape(scores, (tokens, -1, heads, ops.shape(indices)[1]))
    return ops.transpose(scores, (1, 2, 0, 3))


def _pick_scores(scores: Tensor, indices: Tensor) -> Tensor:
    """Reads scores `(B, H, T, R)` by indices `(B, T, S)` without a gather."""
    entries = ops.arange(scores.shape[-1], dtype="int32")
    indices = ops.expand_dims(indices, (1, -2))
    chosen = indices == ops.expand_dims(entries, -1)
    # XLA computes the sum without the tensor of its terms.
    return ops.sum(ops.where(chosen, ops.expand_dims(scores, -1), 0.0), axis=-2)


def _find_ranks(positions: Tensor, ordered: Tensor) -> Tensor:
    """Counts the entries of the sorted `(..., S)` below each position."""
    positions = ops.expand_dims(positions, -1)
    # Sizes in JAX may also be symbols, which do not take a remainder.
    if len(ordered.shape) > 1 or not isinstance(
        ordered.shape[0], int | type(None)
    ):
        return _count(ops.expand_dims(ordered, -2) < positions)
    # In two steps, for which no tensor of all pairs is needed. ONNX and LiteRT
    # have no operation for searchsorted.
    padding = RANKED - ops.shape(ordered)[0] % RANKED
    ordered = ops.pad(ordered, [[0, padding]], constant_values=float("inf"))
    rows = ops.reshape(ordered, (-1, RANKED))
    smaller = _count(rows[:, -1] < positions)
    within = ops.take(rows, smaller, axis=0)
    return RANKED * smaller + _count(within < positions)


def _count(conditions: Tensor) -> Tensor:
    """Counts what is true along the last axis."""
    return ops.sum(ops.cast(conditions, "int32"), axis=-1)


def _read(table: Tensor, indices: Tensor) -> Tensor:
    """Reads `table[indices]`, per example if each has its own table."""
    if len(table.shape) == 1:
        return ops.take(table, indices)
    shape = ops.shape(indices)
    flat = ops.reshape(indices, (shape[0], -1))
    return ops.reshape(ops.take_along_axis(table, flat, axis=-1), shape)
