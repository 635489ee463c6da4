"""Relative positional encoding of Transformer-XL."""

import math
from typing import Any, Literal

import keras
from keras import ops

from keras_lengen.checks.constructors import argument
from keras_lengen.layers.encodings.base import AttentionSpec
from keras_lengen.layers.encodings.bias import BiasEncoding
from keras_lengen.layers.encodings.distances import (
    SampledDistances,
    find_signed_distances,
    make_distance_table,
    read_scores,
)
from keras_lengen.layers.encodings.gathers import avoids_gathers
from keras_lengen.layers.encodings.sinusoidal_encoding import (
    MaxWavelength,
    check_even,
    make_sinusoid,
)
from keras_lengen.types import InputShape, Positions, Tensor

LARGEST_TABLE = 2**26
"""Largest number of entries in a table of the mapped distances of all pairs.
"""


@keras.saving.register_keras_serializable(package="keras_lengen")
class RelativeEncoding(BiasEncoding):
    """Scores keys by a learned map of their distance (Transformer-XL).

    `(u . k + (q + v) . W R(d)) / sqrt(D)` is added to the scaled score of a
    query `q` and a key `k` at signed distance `d`. Here `R` is a sinusoid of
    the model's width `M = H * D`, and `u`, `v` and `W` are learned per head.
    It distinguishes past from future keys. The bias depends only on the pair of
    tokens, not on the length of the sequence, so it is the same in causal and
    in bidirectional attention.

    Stage: `attention_bias`, float32 `(B, H, T, S)`, added to scaled scores.
    Weights, in every layer: `W (M, H, D)`, `u` and `v (H, D)`.
    Positions: any numbers; only differences matter.

    Args:
        max_wavelength: float above 1, at most `2 ** 40`. Base of the geometric
            series of the sinusoid's frequencies.
        distances: str. `"positions"`: distances are differences of positions.
            `"sampled"`: the sampled positions are read as a table of distances
            whose index is a number of tokens, as in the code of Ruoss et al.,
            2023.
        sampler: `PositionSampler`, or `None` for positions 0, 1, 2, ...

    Raises:
        ValueError: If `H * D` is odd or an argument is out of range.

    Differs from the paper: every layer has its own `u` and `v`, as in the code
    of Ruoss et al., 2023, and `d` is the key's position minus the query's.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import RelativeEncoding
    >>> RelativeEncoding()(ops.ones((2, 3, 8, 4))).shape
    TensorShape([2, 8, 3, 3])

    Reference: Dai et al., 2019, section 3.3.
    https://arxiv.org/abs/1901.02860
    """

    max_wavelength: float = argument(MaxWavelength(), default=10000)
    distances: Literal["positions", "sampled"] = argument(default="positions")

    share_layers = False
    shift_invariant = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.reads_ranks = self.distances == "sampled"

    def build(
        self, query_shape: InputShape, key_shape: InputShape | None = None
    ) -> None:
        super().build(query_shape, key_shape)
        heads, width = query_shape[-2:]
        check_even(heads * width, "the width of all heads together")
        self.content_bias, self.position_bias = (
            self.add_weight(
                name=name,
                shape=(heads, width),
                initializer=keras.initializers.RandomNormal(stddev=0.02),
                autocast=False,
            )
            for name in ("content_bias", "position_bias")
        )
        self.kernel = self.add_weight(
            name="kernel",
            shape=(heads * width, heads, width),
            initializer=keras.initializers.TruncatedNormal(
                stddev=(heads * width) ** -0.5
            ),
            autocast=False,
        )

    def prepare(
        self,
        query_positions: Positions,
        key_positions: Positions,
        spec: AttentionSpec,
    ) -> Any:
        as_table = self._is_table_cheaper(spec, query_positions, key_positions)
        # For a single query, mapping the distances of its keys is cheaper.
        by_rank = self.distances == "sampled" and not (
            as_table and (avoids_gathers() or query_positions.shape[0] == 1)
        )
        if by_rank:
            # One distance for each difference of ranks, not for each pair.
            indices, table = make_distance_table(query_positions, key_positions)
            name = "rows" if as_table else "ranks"
            return {name: self._make_sinusoid(table), "indices": indices}
        if as_table:
            distances = find_signed_distances(
                query_positions, key_positions, self.distances
            )
            return {"table": self._make_sinusoid(distances)}
        queries = self._make_sinusoid(query_positions)
        if key_positions is query_positions:
            return {"queries": queries, "keys": queries}
        return {"queries": queries, "keys": self._make_sinusoid(key_positions)}

    def bias_at(self, prepared: Any, query: Tensor, key: Tensor) -> Tensor:
        query, key = ops.cast(query, "float32"), ops.cast(key, "float32")
        # Scaled here, before there is a number for each pair of tokens.
        scale = query.shape[-1] ** -0.5
        content_bias = scale * ops.cast(self.content_bias, "float32")
        # Not an einsum, of which LiteRT makes other shapes.
        content = ops.transpose(ops.sum(content_bias * key, axis=-1), (0, 2, 1))
        query = scale * (query + ops.cast(self.position_bias, "float32"))
        if "table" in prepared:
            position = self._score_by_table(query, prepared["table"])
        elif "rows" in prepared:
            position = self._score_by_row(query, **prepared)
        elif "ranks" in prepared:
            position = self._score_by_rank(query, **prepared)
        else:
            position = self._score_by_angle(query, **prepared)
        return ops.expand_dims(content, -2) + position

    def _is_table_cheaper(
        self,
        spec: AttentionSpec,
        query_positions: Tensor,
        key_positions: Tensor,
    ) -> bool:
        """Whether mapping the distances of all pairs costs the least.

        Multiplications per pair of tokens: the table takes `M * M`, shared by
        the batch, and `M` for each example; angles take `H * M` for each
        example. By rank, far fewer distances are mapped, but reading one
        number per pair is slow, so ranks are only used for tables that are too
        large or would be made again for every chunk of queries.
        """
        if len(query_positions.shape) + len(key_positions.shape) > 2:
            return False
        batch_size, heads, width = spec.batch_size, spec.heads, spec.width
        pairs = (query_positions.shape[0], key_positions.shape[0])
        size = heads * width * math.prod(pairs) if None not in pairs else 0
        if size > LARGEST_TABLE:
            return False
        if self.distances == "sampled":
            # A chunk of the queries of a long sequence reads few distances
            # more than once, but there are many chunks. A single example would
            # read a row for each pair of tokens, and use it once.
            if batch_size == 1 and pairs[0] != 1 and not avoids_gathers():
                return False
            return None in pairs or pairs[0] in (1, pairs[1])
        if batch_size is None:
            return False
        return heads * width + batch_size < heads * batch_size

    def _score_by_rank(
        self, query: Tensor, indices: Tensor, ranks: Tensor
    ) -> Tensor:
        table = self._project(ranks)
        batch = "b" if len(table.shape) == 4 else ""
        scores = ops.einsum(f"bthd,{batch}rhd->btrh", query, table)
        return read_scores(scores, indices)

    def _score_by_row(
        self, query: Tensor, rows: Tensor, indices: Tensor
    ) -> Tensor:
        # Few distances are mapped, and each pair of tokens reads one of them.
        rows = ops.transpose(self._project(rows), (1, 0, 2))
        query = ops.transpose(query, (2, 1, 0, 3))
        scores = ops.einsum(
            "htbd,htsd->htbs", query, ops.take(rows, indices, axis=1)
        )
        return ops.transpose(scores, (2, 0, 1, 3))

    def _score_by_table(self, query: Tensor, table: Tensor) -> Tensor:
        table = self._project(table)
        if avoids_gathers():
            return ops.einsum("bthd,tshd->bhts", query, table)
        # The gradient of an einsum would transpose all scores twice.
        query = ops.transpose(query, (2, 1, 0, 3))
        scores = ops.matmul(query, ops.transpose(table, (2, 0, 3, 1)))
        return ops.transpose(scores, (2, 0, 1, 3))

    def _project(self, sinusoid: Tensor) -> Tensor:
        """Maps sinusoids `(..., M)` by `W`, to float32 `(..., H, D)`."""
        model_width, heads, width = self.kernel.shape
        # A product of two matrices is faster than one of tensors with more
        # axes.
        flat = ops.reshape(sinusoid, (-1, model_width))
        kernel = ops.reshape(
            ops.cast(self.kernel, "float32"), (model_width, heads * width)
        )
        return ops.reshape(
            ops.matmul(flat, kernel), (*ops.shape(sinusoid)[:-1], heads, width)
        )

    def _score_by_angle(
        self, query: Tensor, queries: Tensor, keys: Tensor
    ) -> Tensor:
        # The sine and cosine of a difference are sums of products of sines and
        # cosines: rotate the mapped query by its position, then multiply it by
        # the sinusoid of the key.
        kernel = ops.cast(self.kernel, "float32")
        query = ops.einsum("bthd,mhd->bhtm", query, kernel)
        at_sine, at_cosine = ops.split(query, 2, axis=-1)
        sine, cosine = (
            ops.expand_dims(part, -3) for part in ops.split(queries, 2, axis=-1)
        )
        turned = ops.concatenate(
            [
                at_sine * cosine + at_cosine * sine,
                at_cosine * cosine - at_sine * sine,
            ],
            axis=-1,
        )
        batch = "b" if len(keys.shape) == 3 else ""
        return ops.einsum(f"bhtm,{batch}sm->bhts", turned, keys)

    def _make_sinusoid(self, positions: Tensor) -> Tensor:
        return make_sinusoid(
            positions,
            self.kernel.shape[0],
            max_wavelength=self.max_wavelength,
        )


@keras.saving.register_keras_serializable(package="keras_lengen")
class RandomizedRelativeEncoding(SampledDistances, RelativeEncoding):
    """`RelativeEncoding` with randomized distances.

    Takes the arguments of `RandomizedPositions` and `RelativeEncoding`. Unless
    `distances="positions"`, distances are sampled: in all runs of
    `benchmarks/results/randomized_forms.md`, sampled distances generalized
    better. `include_zero=None` stands for `True` if distances are sampled and
    for `False` otherwise.

    Differs from the authors' code: their code uses one row of its table for
    the token itself and all future keys; here the distances of past and of
    future keys keep their sign.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import RandomizedRelativeEncoding
    >>> encoding = RandomizedRelativeEncoding(max_position=2048)
    >>> encoding(ops.ones((2, 5, 4, 8))).shape
    TensorShape([2, 4, 5, 5])

    Reference: Ruoss et al., 2023. https://arxiv.org/abs/2305.16843
    """
