"""Relative encoding of Transformer-XL."""

import math

import keras
from keras import ops

from keras_lengen.layers.encodings.base import BiasEncoding
from keras_lengen.layers.encodings.distances import (
    SampledDistances,
    check_distances,
    find_signed_distances,
    make_distance_table,
    read_scores,
)
from keras_lengen.layers.encodings.sinusoidal_encoding import (
    check_even,
    check_max_wavelength,
    make_sinusoid,
)

LARGEST_TABLE = 2**26
"""Numbers up to which a table of all pairs' mapped distances is made."""


@keras.saving.register_keras_serializable(package="keras_lengen")
class RelativeEncoding(BiasEncoding):
    """Scores keys by a learned map of their distance (Transformer-XL).

    The scaled score of a query `q` and a key `k` at signed distance `d` gains
    `(u . k + (q + v) . W R(d)) / sqrt(D)`, where `R` is a sinusoid of the
    model's width `M = H * D`, and `u`, `v` and `W` are learned per head. Both
    directions are told apart; a causal mask needs nothing else, for the
    score depends on the pair alone and never on the length.

    Stage: `attention_bias`, float32 `(B, H, T, S)`. Weights, in every layer:
    `W (M, H, D)`, `u` and `v (H, D)`.
    Positions: any numbers; only differences matter.

    Args:
        max_wavelength: Base of the sinusoid's frequencies.
        distances: `"positions"`: differences of positions. `"sampled"`: the
            positions are a table of distances by number of tokens, as in the
            code of Ruoss et al., 2023.
        sampler: `PositionSampler`, `None` for 0, 1, 2, ...

    Raises:
        ValueError: If `H * D` is odd or an argument is out of range.

    Differs from the paper: `u` and `v` belong to each layer, as in the code
    of Ruoss et al., 2023; and `d` is the key's position less the query's.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import RelativeEncoding
    >>> RelativeEncoding()(ops.ones((2, 3, 8, 4))).shape
    TensorShape([2, 8, 3, 3])

    Reference: Dai et al., 2019, section 3.3.
    https://arxiv.org/abs/1901.02860
    """

    share_layers = False

    def __init__(
        self, *, max_wavelength=10000, distances="positions", **kwargs
    ):
        super().__init__(**kwargs)
        self.max_wavelength = check_max_wavelength(max_wavelength)
        self.distances = check_distances(distances)
        self.reads_ranks = self.distances == "sampled"

    def build(self, query_shape, key_shape=None):
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

    def attention_bias(
        self, query, key, query_positions, key_positions, *, causal=False
    ):
        query, key = ops.cast(query, "float32"), ops.cast(key, "float32")
        content_bias = ops.cast(self.content_bias, "float32")
        content = ops.einsum("hd,bshd->bhs", content_bias, key)
        query = query + ops.cast(self.position_bias, "float32")
        if self._is_table_cheaper(query, query_positions, key_positions):
            position = self._score_by_table(
                query, query_positions, key_positions
            )
        elif self.distances == "sampled":
            position = self._score_by_rank(
                query, query_positions, key_positions
            )
        else:
            position = self._score_by_angle(
                query, query_positions, key_positions
            )
        scale = query.shape[-1] ** -0.5
        return scale * (ops.expand_dims(content, -2) + position)

    def _is_table_cheaper(self, query, query_positions, key_positions):
        """Whether a map of all pairs' distances costs less than the others.

        Products per pair of tokens: `M * M` for the table, shared by the
        batch, and `M` to read it for each example; `H * M` for each example
        by angles. By rank there are far fewer distances, but reading them pair
        by pair is slow: that is for those that would not fit in memory.
        """
        if len(query_positions.shape) + len(key_positions.shape) > 2:
            return False
        batch_size, _, heads, width = query.shape
        pairs = (query_positions.shape[0], key_positions.shape[0])
        size = heads * width * math.prod(pairs) if None not in pairs else 0
        if size > LARGEST_TABLE:
            return False
        if self.distances == "sampled":
            # A block of the queries of a long sequence reads few distances
            # more than once, but there are many blocks.
            return None in pairs or pairs[0] in (1, pairs[1])
        if batch_size is None:
            return False
        return heads * width + batch_size < heads * batch_size

    def _score_by_rank(self, query, query_positions, key_positions):
        # As many distances as ranks differ, not as there are pairs.
        indices, table = make_distance_table(query_positions, key_positions)
        table = self._project(table)
        batch = "b" if len(table.shape) == 4 else ""
        scores = ops.einsum(f"bthd,{batch}rhd->btrh", query, table)
        return read_scores(scores, indices)

    def _score_by_table(self, query, query_positions, key_positions):
        table = self._project(
            find_signed_distances(
                query_positions, key_positions, self.distances
            )
        )
        batch = "b" if len(table.shape) == 5 else ""
        return ops.einsum(f"bthd,{batch}tshd->bhts", query, table)

    def _project(self, distances):
        """What the map makes of distances, float32 `(..., H, D)`."""
        model_width, heads, width = self.kernel.shape
        # One product of matrices, which is faster than one with more axes.
        flat = ops.reshape(self._make_sinusoid(distances), (-1, model_width))
        kernel = ops.reshape(
            ops.cast(self.kernel, "float32"), (model_width, heads * width)
        )
        return ops.reshape(
            ops.matmul(flat, kernel), (*ops.shape(distances), heads, width)
        )

    def _score_by_angle(self, query, query_positions, key_positions):
        # sin and cos of a difference are products of sines and cosines: turn
        # the query's side by its position, then multiply by the key's sines.
        kernel = ops.cast(self.kernel, "float32")
        query = ops.einsum("bthd,mhd->bhtm", query, kernel)
        at_sine, at_cosine = ops.split(query, 2, axis=-1)
        sine, cosine = (
            ops.expand_dims(part, -3)
            for part in ops.split(
                self._make_sinusoid(query_positions), 2, axis=-1
            )
        )
        turned = ops.concatenate(
            [
                at_sine * cosine + at_cosine * sine,
                at_cosine * cosine - at_sine * sine,
            ],
            axis=-1,
        )
        keys = self._make_sinusoid(key_positions)
        batch = "b" if len(keys.shape) == 3 else ""
        return ops.einsum(f"bhtm,{batch}sm->bhts", turned, keys)

    def _make_sinusoid(self, positions):
        return make_sinusoid(
            positions,
            self.kernel.shape[0],
            max_wavelength=self.max_wavelength,
        )

    def get_config(self):
        return {
            **super().get_config(),
            "max_wavelength": self.max_wavelength,
            "distances": self.distances,
        }


@keras.saving.register_keras_serializable(package="keras_lengen")
class RandomizedRelativeEncoding(SampledDistances, RelativeEncoding):
    """`RelativeEncoding` over randomized distances.

    Takes the arguments of `RandomizedPositions` and `RelativeEncoding`.
    Distances are sampled unless `distances="positions"`: in all runs of
    `benchmarks/results/randomized_forms.md` they generalized better. Draws
    then have position 0, unless `include_zero` says otherwise.

    Differs from the authors' code: that reads future keys and the token
    itself from one clamped row; here both directions keep their sign.

    Reference: Ruoss et al., 2023. https://arxiv.org/abs/2305.16843
    """
