"""Base class of the encodings that add a bias to the attention scores."""

from collections.abc import Sequence
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

    Subclasses implement `attention_bias`; or `bias_at` and `prepare`, which it
    calls. `prepare` computes what all layers share, such as distances, and
    `bias_at` receives its result. If the bias of a pair of tokens is a function
    of their positions and of a few numbers per head, subclasses can also
    implement `bias_of_pair` and `make_pair_parameters`, for fused attention.
    Called as a layer, the encoding takes a query `(B, T, H, D)` and a key
    `(B, S, H, D)` and returns the bias, which is float32 with every dtype
    policy and broadcasts to `(B, H, T, S)`. The call argument `causal` (bool)
    states whether the attention masks later keys. If there are fewer queries
    than keys, the queries are the last tokens.
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
        """Computes the bias from what all layers share.

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

    def bias_of_pair(
        self,
        parameters: Sequence[Tensor],
        query_position: Tensor,
        key_position: Tensor,
        *,
        causal: bool = False,
        product: Tensor | None = None,
    ) -> Tensor:
        """Computes the bias of pairs of positions, element by element.

        Fused attention calls it for a head and for blocks of queries and keys,
        inside of its kernel. It therefore consists of functions of `keras.ops`
        that broadcast, without reading from tables.

        Args:
            parameters: The numbers of a head, a float32 scalar for each column
                of `make_pair_parameters`; or of all heads, tensors that
                broadcast against the positions.
            query_position: float32 positions of queries.
            key_position: float32 positions of keys, which broadcast against
                those of the queries.
            causal: bool, as for `attention_bias`.
            product: float32, the products of the features of the pairs, if
                `make_pair_features` makes some.

        Returns:
            float32, the bias of each pair; NaN where a position is NaN.

        Raises:
            NotImplementedError: If the bias is not such a function; see
                `find_pair_obstacle`.
        """
        raise NotImplementedError(self.find_pair_obstacle())

    def make_pair_parameters(self, heads: int) -> Tensor:
        """Makes the parameters of `bias_of_pair` from the weights.

        Args:
            heads: int, number of heads `H`.

        Returns:
            float32 `(H, P)`, the `P` numbers of each head.

        Raises:
            NotImplementedError: As for `bias_of_pair`.
        """
        raise NotImplementedError(self.find_pair_obstacle())

    def make_pair_features(
        self, query_positions: Tensor, key_positions: Tensor
    ) -> tuple[Tensor, Tensor] | None:
        """Makes vectors whose products `bias_of_pair` gets.

        Args:
            query_positions: Tensor `(T,)` or `(B, T)`.
            key_positions: Tensor `(S,)` or `(B, S)`.

        Returns:
            float32 `(1 or B, T, F)` and `(1 or B, S, F)`; or `None` if the
            bias needs no such products.
        """
        return None

    def find_pair_obstacle(self) -> str | None:
        """Finds out why `bias_of_pair` does not compute the bias.

        Returns:
            str, the reason; or `None` if it does.
        """
        name = type(self).__name__
        if type(self).bias_of_pair is BiasEncoding.bias_of_pair:
            return (
                f"the bias of {name} depends on more than the positions of a "
                "query and a key and a few numbers per head"
            )
        if self.reads_ranks:
            return f"{name} reads sampled distances from a table"
        return None

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
        if self.uses_token_index:
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
            causal=causal and self.sampler.is_increasing,
        )

    def compute_mask(self, *args: Any, **kwargs: Any) -> None:
        return None
