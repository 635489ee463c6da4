"""Bias that a small network adapts to the scores."""

from typing import Any

import keras
from keras import ops

from keras_lengen.checks.arguments import (
    LARGEST_WIDTH,
    Integer,
    OrDefault,
)
from keras_lengen.checks.constructors import argument
from keras_lengen.layers.encodings.alibi import ALiBi
from keras_lengen.layers.encodings.base import (
    AttentionSpec,
    EncodingArgument,
    pass_on,
)
from keras_lengen.layers.encodings.bias import BiasEncoding
from keras_lengen.layers.encodings.distances import HIDDEN
from keras_lengen.layers.encodings.log_kerple import LogKERPLE
from keras_lengen.layers.positions.base import PositionSampler
from keras_lengen.layers.positions.ordinal_positions import OrdinalPositions
from keras_lengen.types import InputShape, Positions, Tensor, TensorLike


@keras.saving.register_keras_serializable(package="keras_lengen")
class DAPE(BiasEncoding):
    """Adapts another bias to the content of queries and keys (DAPE).

    With the scaled products `S` of queries and keys and the bias `B` of
    another encoding, the bias is `B + f([S, B])`. For each pair of tokens, the
    network `f` maps the `2 H` numbers of all heads to one number for each
    head, by a hidden layer with leaky ReLU. A key that `B` hides in a head
    stays hidden in that head, and `f` gets 0 for this bias.

    Stage: `attention_bias`, float32 `(B, H, T, S)`, added to scaled scores.
    Weights: two dense layers, by default in each attention layer, and those of
    the other encoding.
    Positions: those that the other encoding takes.

    Args:
        encoding: `PositionalEncoding` that adds a bias, without a sampler of
            its own; `None` for `LogKERPLE()`.
        hidden_dim: int, from 1 to `2 ** 16`. Width of the hidden layer.
        share_layers: bool, whether all layers share the weights.
        sampler: `PositionSampler`, or `None` for positions 0, 1, 2, ...

    Raises:
        ValueError: If an argument is out of range, or `encoding` adds no bias
            or has a sampler.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import ALiBi, DAPE
    >>> DAPE()(ops.ones((2, 3, 8, 4))).shape
    TensorShape([2, 8, 3, 3])
    >>> DAPE(encoding=ALiBi())(ops.ones((2, 3, 8, 4))).shape
    TensorShape([2, 8, 3, 3])

    Reference: Zheng et al., 2024, section 3. https://arxiv.org/abs/2405.14722
    """

    encoding: EncodingArgument = argument(
        OrDefault(EncodingArgument(example=ALiBi)), default=None
    )
    hidden_dim: int = argument(
        Integer(most=LARGEST_WIDTH, example=16), default=32
    )
    share_layers: bool = argument(default=False)

    def assign(self, values: dict[str, Any]) -> None:
        if values["encoding"] is None:
            default = LogKERPLE(dtype=self.dtype_policy)
            values = {**values, "encoding": default}
        super().assign(values)

    def __post_init__(self) -> None:
        super().__post_init__()
        encoding = self.encoding
        if encoding.stage != "bias" or encoding.position_axes == 2:
            raise ValueError(
                f"encoding={type(encoding).__name__} does not add a bias to "
                "scores at positions of tokens, which DAPE adapts: choose "
                "another one, such as ALiBi() or FIRE()."
            )
        if not isinstance(encoding.sampler, OrdinalPositions):
            raise ValueError(
                f"encoding={type(encoding).__name__} brings a sampler: pass "
                "the plain encoding, and the sampler to DAPE."
            )
        self.combine_traits(encoding)

    def build(
        self, query_shape: InputShape, key_shape: InputShape | None = None
    ) -> None:
        super().build(query_shape, key_shape)
        heads = query_shape[-2]
        if not self.encoding.built:
            self.encoding.build(query_shape, key_shape)
        widths = (2 * heads, self.hidden_dim, heads)
        for name, inputs, outputs in zip(
            ("hidden", "output"), widths[:-1], widths[1:], strict=True
        ):
            # The initial values of linear layers in PyTorch.
            limit = inputs**-0.5
            for part, shape in (
                ("kernel", (inputs, outputs)),
                ("bias", (outputs, 1, 1)),
            ):
                weight = self.add_weight(
                    name=f"{name}_{part}",
                    shape=shape,
                    initializer=keras.initializers.RandomUniform(-limit, limit),
                    autocast=False,
                )
                setattr(self, f"{name}_{part}", weight)

    def check_length(
        self,
        tokens: int,
        *,
        sampler: PositionSampler | None = None,
        unit: str = "tokens",
    ) -> None:
        super().check_length(tokens, sampler=sampler, unit=unit)
        self.encoding.check_length(
            tokens,
            sampler=self.sampler if sampler is None else sampler,
            unit=unit,
        )

    def given_positions(
        self, positions: TensorLike, inputs: Tensor, *, name: str = "positions"
    ) -> Positions:
        return self.encoding.given_positions(positions, inputs, name=name)

    def check_positions(self, positions: Tensor) -> None:
        self.encoding.check_positions(positions)

    def prepare(
        self,
        query_positions: Positions,
        key_positions: Positions,
        spec: AttentionSpec,
    ) -> Any:
        return self.encoding.prepare(query_positions, key_positions, spec)

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
        bias = self.encoding.attention_bias(
            query,
            key,
            query_positions,
            key_positions,
            causal=causal,
            **pass_on(prepared),
        )
        scores = ops.einsum(
            "bthd,bshd->bhts",
            ops.cast(query, "float32") * query.shape[-1] ** -0.5,
            ops.cast(key, "float32"),
        )
        shown = bias
        if self.masks_keys:
            # HIDDEN is so large that it would drown everything else.
            shown = ops.where(ops.less(bias, HIDDEN / 2), 0.0, bias)
        pairs = ops.concatenate(
            [scores, ops.broadcast_to(shown, ops.shape(scores))], axis=1
        )
        hidden = ops.leaky_relu(
            self._apply(pairs, self.hidden_kernel, self.hidden_bias),
            negative_slope=0.01,
        )
        return bias + self._apply(hidden, self.output_kernel, self.output_bias)

    def _apply(self, features: Tensor, kernel: Tensor, bias: Tensor) -> Tensor:
        """Applies a dense layer to the second axis of `(B, N, T, S)`."""
        kernel, bias = (ops.cast(w, "float32") for w in (kernel, bias))
        return ops.einsum("bnts,nm->bmts", features, kernel) + bias
