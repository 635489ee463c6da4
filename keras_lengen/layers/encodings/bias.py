"""Base class of the encodings that add a bias to the attention scores."""

from typing import TYPE_CHECKING, Any

from keras import ops

from keras_lengen.checks.arguments import Boolean
from keras_lengen.layers.encodings.base import (
    AttentionSpec,
    PositionalEncoding,
    check_no_key_positions,
    number_by_index,
)
from keras_lengen.types import Positions, Size, Tensor, TensorLike


class BiasEncoding(PositionalEncoding):
    """Base class of encodings that add a bias to the attention scores.

    Subclasses implement `bias_at`, and `prepare` for what it gets: what layers
    have in common, such as distances. Or they implement `attention_bias`,
    which calls both. Called as a layer, the encoding takes a query
    `(B, T, H, D)` and a key `(B, S, H, D)` and returns the bias, which is
    float32 with every dtype policy and broadcasts to `(B, H, T, S)`. The call
    argument `causal` (bool) says whether the attention masks later keys. If
    there are fewer queries than keys, the queries are the last tokens.
    """

    stage = "bias"

    if TYPE_CHECKING:

        def __call__(
            self,
            query: TensorLike,
            key: TensorLike | None = None,
            *,
            causal: bool = False,
            positions: TensorLike | None = None,
            key_positions: TensorLike | None = None,
            start_index: Size = 0,
            training: bool | None = None,
        ) -> Tensor: ...

    def attention_bias(
        self,
        query: Tensor,
        key: Tensor,
        query_positions: Positions,
        key_positions: Positions,
        *,
        causal: bool = False,
        prepared: Any = None,
    ) -> Tensor:
        if prepared is None:
            spec = AttentionSpec.of(query, causal=causal)
            prepared = self.prepare(query_positions, key_positions, spec)
        return self.bias_at(prepared, query, key)

    def bias_at(self, prepared: Any, query: Tensor, key: Tensor) -> Tensor:
        """Computes the bias from what layers have in common.

        Args:
            prepared: What `prepare` returned.
            query: Float tensor `(B, T, H, D)`.
            key: Float tensor `(B, S, H, D)`.

        Returns:
            float32 tensor that broadcasts to `(B, H, T, S)`.
        """
        raise NotImplementedError(
            f"{type(self).__name__} must implement `bias_at` or "
            "`attention_bias`."
        )

    def call(
        self,
        query: TensorLike,
        key: TensorLike | None = None,
        *,
        causal: bool = False,
        positions: TensorLike | None = None,
        key_positions: TensorLike | None = None,
        start_index: Size = 0,
        training: bool | None = None,
    ) -> Tensor:
        Boolean().check("causal", causal)
        if key is None:
            check_no_key_positions(key_positions)
            key = query
        positions, key_positions = self._find_pair_positions(
            query, key, positions, key_positions, start_index, training
        )
        if self.counts_tokens:
            tokens, keys = ops.shape(query)[1], ops.shape(key)[1]
            positions, key_positions = number_by_index(
                positions,
                key_positions,
                keys - tokens + ops.arange(tokens, dtype="int32"),
            )
        return self.attention_bias(
            query,
            key,
            positions,
            key_positions,
            causal=causal and self.sampler.keeps_order,
        )

    def compute_mask(self, *args: Any, **kwargs: Any) -> None:
        return None
