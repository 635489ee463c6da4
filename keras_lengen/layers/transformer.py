"""Transformer block."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_lengen.checks.arguments import Optional, described
from keras_lengen.checks.constructors import argument
from keras_lengen.checks.inputs import (
    NamedInputs,
    check_rank,
    find_width,
    guard_same_size,
    read_mask,
)
from keras_lengen.layers.attention.call_arguments import Cache
from keras_lengen.layers.attention.context import Context
from keras_lengen.layers.attention.multi_head import (
    MultiHeadAttention,
    check_head_groups,
)
from keras_lengen.layers.block_arguments import BlockArguments
from keras_lengen.layers.encodings.base import (
    EncodingArgument,
    PositionalEncoding,
)
from keras_lengen.layers.initializers import kernel_initializer
from keras_lengen.layers.random_layer import Dropout, RandomLayer
from keras_lengen.layers.recipe import Recipe, RecipeArgument
from keras_lengen.layers.sublayer_policies import SublayerPolicies
from keras_lengen.types import Positions, Shape, Size, Tensor, TensorLike

_OF_ALL_ATTENTION = ("dropout", "scale_scores", "chunk_size", "fused")
"""Arguments of self-attention that cross-attention has too."""

OF_BLOCK = ("num_heads", "num_key_value_heads", "key_dim", "encoding")
"""Arguments of attention that are those of the block or follow from them."""


class AttentionRecipe(RecipeArgument):
    """A recipe of self-attention."""

    def __init__(self) -> None:
        super().__init__(MultiHeadAttention, given=OF_BLOCK)


def make_cross_recipe(attention: Recipe) -> Recipe:
    """Makes the recipe of the cross-attention beside a self-attention."""
    shared = {
        name: value
        for name, value in attention.arguments.items()
        if name in _OF_ALL_ATTENTION
    }
    return Recipe(MultiHeadAttention, **shared)


@keras.saving.register_keras_serializable(package="keras_lengen")
class TransformerBlock(
    NamedInputs, BlockArguments, SublayerPolicies, RandomLayer
):
    """Block of a Transformer, with self-attention and a feed-forward network.

    Each of these two parts is a residual branch, `x + dropout(part(x))`, with
    normalization. With `cross_attention`, a third branch between them attends
    to another sequence, the memory.

    Args:
        num_heads: int, at least 1. Number of attention heads; divides the
            width `M` of the model.
        feedforward_dim: int, at least 1. Width of the hidden layer of the
            feed-forward network, or `None` for `4 * M`.
        dropout: float from 0 to below 1. Dropout rate of each residual branch.
        encoding: `PositionalEncoding` of the self-attention, or `None`.
        attention: `Recipe` of the self-attention, a subclass of
            `MultiHeadAttention` with its options; the class alone; or `None`
            for `MultiHeadAttention`.
        cross_attention: bool, whether the block attends to `memory`, with a
            `MultiHeadAttention` that has the `dropout`, `scale_scores`,
            `chunk_size` and `fused` of `attention`.
        cross_encoding: `PositionalEncoding` of the attention to `memory`, or
            `None`.
        normalization: str or `None`. `"post"`: normalization after each
            residual sum, as in the original Transformer. `"pre"`: at the
            beginning of each residual branch. `None`: no normalization.
        rms_norm: bool, whether to use RMS normalization, without an offset,
            instead of layer normalization.
        norm_epsilon: float above 0. What is added to the variance or mean
            square in a norm, that of queries and keys included, or `None` for
            1e-5 in layer normalization and 1e-6 in RMS normalization.
        feedforward: `Recipe` of the feed-forward network, `FeedForward` or a
            subclass with its options; the class alone; or `None` for
            `FeedForward`.
        use_bias: bool or str. `"feedforward"`: biases in the feed-forward
            network only. `True`: in attention too. `False`: no biases.
        num_key_value_heads: int, at least 1, that divides `num_heads`. Number
            of heads of keys and values, or `None` for `num_heads`.
        kernel_initializer: Initializer of all kernels, or `None` for a
            truncated normal distribution with standard deviation
            `1 / sqrt(inputs)` before truncation, where `inputs` is the number
            of input features of the kernel.
        use_causal_mask: bool, whether tokens attend to no later tokens.

    Call arguments:
        inputs: Float tensor `(B, T, M)`.
        attention_mask: Boolean tensor `(T, T)`, `(B, T, T)` or
            `(B, 1, T, T)`, true where a token may attend to another; or
            `None`.
        positions: Positions of the tokens, tensor `(T,)` or `(B, T)`, or
            `None` to take them from the encoding's sampler.
        key_positions: With a cache, the positions of all its tokens, `(S,)` or
            `(B, S)`; or `None`.
        length: Length of the whole sequence in tokens, a number or a tensor
            `()` or `(B,)`, for encodings that depend on it.
        memory: Float tensor `(B, S, N)`, the sequence to attend to.
        memory_positions: Positions of the memory, tensor `(S,)` or `(B, S)`,
            needed if the sampler of `cross_encoding` draws.
        memory_mask: Boolean tensor `(B, S)`, true for real tokens of the
            memory; or `None`.
        segment_ids: Integers `(B, T)`, the document of each token, if rows are
            packed with several documents, as in `MultiHeadAttention`; or
            `None`.
        memory_segment_ids: Integers `(B, S)`, the same for the memory: tokens
            attend to the part of it with their own number.
        cache: Dict of the caches of the attention layers, with the keys
            `"attention"` and, with `cross_attention`, `"cross_attention"`, as
            `make_cache` makes it; or `None`. The call returns its output and
            the cache with the keys and values of the new tokens. `memory` is
            `None` if the cache already contains its keys and values.
        cache_update_index: int or scalar integer tensor. Index in the cache of
            the first new token.
        return_attention_scores: bool, whether to return the weights of the
            self-attention too, float32 `(B, H, T, S)`.
        training: bool or `None`, whether to apply dropout and to draw
            positions as in training.

    Returns:
        Float tensor `(B, T, M)` in the compute dtype; or a tuple of it and,
        where requested, the attention weights and the updated cache.

    Raises:
        ValueError: If an argument is out of range, or tensors do not fit the
            block or each other.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import ALiBi, TransformerBlock
    >>> block = TransformerBlock(num_heads=4, encoding=ALiBi())
    >>> block(ops.ones((2, 10, 32))).shape
    TensorShape([2, 10, 32])

    With options of attention:

    >>> from keras_lengen.layers import MultiHeadAttention, Recipe
    >>> windowed = Recipe(MultiHeadAttention, sliding_window=4, use_sinks=True)
    >>> block = TransformerBlock(num_heads=4, attention=windowed)
    >>> block(ops.ones((2, 10, 32))).shape
    TensorShape([2, 10, 32])

    Reference: Vaswani et al., 2017, section 3.
    https://arxiv.org/abs/1706.03762
    """

    num_heads: int = argument(kw_only=False)
    encoding: PositionalEncoding | None = argument(
        Optional(EncodingArgument()), default=None
    )
    attention: AttentionRecipe = argument(AttentionRecipe(), default=None)
    cross_attention: bool = argument(default=False)
    cross_encoding: PositionalEncoding | None = argument(
        Optional(EncodingArgument()), default=None
    )
    use_causal_mask: bool = argument(default=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.supports_masking = True
        check_head_groups(self.num_heads, self.num_key_value_heads)
        check_cross_encoding(self.cross_encoding, self.cross_attention)

    def build(
        self, inputs_shape: Shape, memory_shape: Shape | None = None
    ) -> None:
        with self.parts_scope():
            self._build_parts(inputs_shape, memory_shape)
        self.apply_dtype_policies()

    def _build_parts(
        self, inputs_shape: Shape, memory_shape: Shape | None
    ) -> None:
        width = find_width(inputs_shape)
        if width % self.num_heads:
            raise ValueError(
                f"num_heads={self.num_heads} does not divide the width "
                f"{width} of the model."
            )
        self.attention_layer = self._make_attention(
            "attention", self.attention, self.encoding, width
        )
        self.attention_layer.build(inputs_shape, inputs_shape)
        memory_shape = memory_shape or inputs_shape
        self.input_widths = {"inputs": width, "memory": memory_shape[-1]}
        if self.cross_attention:
            self.cross_attention_layer = self._make_attention(
                "cross_attention",
                make_cross_recipe(self.attention),
                self.cross_encoding,
                width,
            )
            self.cross_attention_layer.build(inputs_shape, memory_shape)
        self.feedforward_layer = self.feedforward.make(
            hidden_dim=self.feedforward_dim,
            use_bias=self.use_bias is not False,
            kernel_initializer=self.kernel_initializer,
            dtype=self.dtype_policy,
            name="feedforward",
        )
        self.feedforward_layer.build(inputs_shape)
        self.dropout_layer = Dropout(self.dropout, dtype=self.dtype_policy)
        if self.normalization is not None:
            parts = ["attention", "feedforward"]
            if self.cross_attention:
                parts.insert(1, "cross_attention")
            for part in parts:
                norm = self.make_norm(f"{part}_norm")
                norm.build(inputs_shape)
                setattr(self, norm.name, norm)

    def _make_attention(
        self,
        name: str,
        recipe: Recipe,
        encoding: PositionalEncoding | None,
        width: int,
    ) -> MultiHeadAttention:
        options = {}
        if self.norm_epsilon is not None:
            options["norm_epsilon"] = self.norm_epsilon
        layer: MultiHeadAttention = recipe.make(
            num_heads=self.num_heads,
            num_key_value_heads=self.num_key_value_heads,
            key_dim=width // self.num_heads,
            encoding=encoding,
            use_bias=self.use_bias is True,
            kernel_initializer=kernel_initializer(self.kernel_initializer),
            dtype=self.dtype_policy,
            name=name,
            **options,
        )
        return layer

    def call(
        self,
        inputs: Tensor,
        *,
        attention_mask: TensorLike | None = None,
        positions: Positions | None = None,
        key_positions: Positions | None = None,
        length: TensorLike | None = None,
        memory: Tensor | None = None,
        memory_positions: Positions | None = None,
        memory_mask: TensorLike | None = None,
        segment_ids: TensorLike | None = None,
        memory_segment_ids: TensorLike | None = None,
        mask: TensorLike | None = None,
        inputs_mask: TensorLike | None = None,
        cache: dict[str, Cache] | None = None,
        cache_update_index: Size | None = None,
        context: Context | None = None,
        memory_context: Context | None = None,
        return_attention_scores: bool = False,
        training: bool | None = None,
    ) -> Any:
        to_self: dict[str, Any] = {"context": context}
        to_memory: dict[str, Any] = {"context": memory_context}
        if context is None:
            # Keras has another name for the mask if there are more tensors.
            mask = inputs_mask if mask is None else mask
            inputs, to_self, to_memory = self._read_inputs(
                inputs,
                to_self={
                    "attention_mask": attention_mask,
                    "positions": positions,
                    "key_positions": key_positions,
                    "segment_ids": segment_ids,
                    "length": length,
                },
                memory=(memory, memory_positions, memory_mask),
                memory_segment_ids=memory_segment_ids,
                mask=mask,
                cache=cache,
                index=cache_update_index,
            )
        to_self["return_attention_scores"] = return_attention_scores
        return self._apply(inputs, memory, cache, to_self, to_memory, training)

    def _apply(
        self,
        inputs: Tensor,
        memory: Tensor | None,
        cache: dict[str, Cache] | None,
        to_self: dict[str, Any],
        to_memory: dict[str, Any],
        training: bool | None,
    ) -> Any:
        """Applies the branches to inputs that are checked.

        Args:
            inputs: `(B, T, M)`.
            memory: `(B, S, N)`, or `None`.
            cache: Dict of caches, or `None`.
            to_self: Dict of call arguments of the self-attention.
            to_memory: Dict of those of the cross-attention.
            training: bool or `None`.

        Returns:
            What the block returns.
        """
        new_cache: dict[str, Cache] = {}
        weights: list[Tensor] = []

        def attend(x: Tensor) -> Tensor:
            output, *found = self._attend(
                self.attention_layer, x, x, cache, new_cache, training, to_self
            )
            weights.extend(found)
            return output

        def cross_attend(x: Tensor) -> Tensor:
            layer, source = self.cross_attention_layer, memory
            source = x if source is None else source
            return self._attend(
                layer, x, source, cache, new_cache, training, to_memory
            )[0]

        x = ops.cast(inputs, self.compute_dtype)
        x = self._add_residual(x, attend, "attention_norm", training)
        if self.cross_attention:
            norm = "cross_attention_norm"
            x = self._add_residual(x, cross_attend, norm, training)
        norm, feedforward = "feedforward_norm", self.feedforward_layer
        x = self._add_residual(x, feedforward, norm, training)
        results = (x, *weights, *([] if cache is None else [new_cache]))
        return x if len(results) == 1 else results

    def _attend(
        self,
        layer: MultiHeadAttention,
        x: Tensor,
        source: Tensor,
        caches: dict[str, Cache] | None,
        new_cache: dict[str, Cache],
        training: bool | None,
        options: dict[str, Any],
    ) -> tuple[Tensor, ...]:
        """Calls an attention layer, and adds its cache to `new_cache`.

        Returns:
            Tuple of the output and, where requested, the attention weights.
        """
        cache = None if caches is None else caches[layer.name]
        results = layer(x, source, cache=cache, training=training, **options)
        if not isinstance(results, tuple):
            return (results,)
        if cache is None:
            return results
        *results, new_cache[layer.name] = results
        return tuple(results)

    def _read_inputs(
        self,
        inputs: Tensor,
        *,
        to_self: dict[str, Any],
        memory: tuple[Tensor | None, Positions | None, TensorLike | None],
        memory_segment_ids: TensorLike | None,
        mask: TensorLike | None,
        cache: dict[str, Cache] | None,
        index: Size | None,
    ) -> tuple[Tensor, dict[str, Any], dict[str, Any]]:
        """Checks what the attention layers do not check themselves.

        Args:
            inputs: `(B, T, M)`.
            to_self: Dict of call arguments of the self-attention.
            memory: Tuple of `memory`, `memory_positions` and `memory_mask`.
            memory_segment_ids: Documents of the memory, or `None`.
            mask: Boolean tensor `(B, T)`, or `(B, S)` with a cache, or `None`.
            cache: Dict of caches, or `None`.
            index: Value of `cache_update_index`.

        Returns:
            The inputs, guarded; and two dicts, the call arguments of
            self-attention and of cross-attention.

        Raises:
            ValueError: If an input does not fit the block.
        """
        self._check_widths(inputs=inputs)
        self._check_cache(cache, index)
        slots = inputs if cache is None else cache["attention"]["key"]
        if cache is None or not self.attention_layer.has_rolling_cache:
            mask, _ = read_mask(mask, slots, name="mask")
        if memory_segment_ids is not None and not self.cross_attention:
            raise ValueError(_NO_MEMORY.format("memory_segment_ids"))
        inputs, positions, memory_mask = self._read_memory(
            inputs, memory, cache
        )
        query_mask = mask if cache is None else None
        to_self = {
            **to_self,
            "query_mask": query_mask,
            "value_mask": mask,
            "use_causal_mask": self.use_causal_mask,
            "cache_update_index": index,
        }
        to_memory = {
            "query_mask": query_mask,
            "value_mask": memory_mask,
            "positions": to_self["positions"],
            "key_positions": positions,
            "segment_ids": to_self["segment_ids"],
            "key_segment_ids": memory_segment_ids,
            "cache_update_index": (
                None if memory[0] is None or cache is None else 0
            ),
        }
        return inputs, to_self, to_memory

    def _check_widths(self, **tensors: Tensor) -> None:
        """Raises `ValueError` if the block was built for other widths."""
        for name, tensor in tensors.items():
            check_rank(name, tensor, (3,), "(batch, tokens, width)")
            width, built = tensor.shape[-1], self.input_widths[name]
            if width != built:
                raise ValueError(
                    f"{name} has width {width}, but this TransformerBlock was "
                    f"built for {built}: make another block for it."
                )

    def _check_cache(self, cache: Any, index: Size | None) -> None:
        """Raises `ValueError` unless `make_cache` of this block made a cache.

        Args:
            cache: Dict of caches, or `None`.
            index: Index of the first new token, or `None`.
        """
        if cache is None:
            if index is not None:
                raise ValueError(
                    "cache_update_index is given without a cache: pass "
                    "`cache`, as `make_cache` makes it."
                )
            return
        layers = {"attention": self.attention_layer}
        if self.cross_attention:
            layers["cross_attention"] = self.cross_attention_layer
        if not isinstance(cache, dict) or set(cache) != set(layers):
            raise ValueError(
                "cache must be a dict of the caches of "
                f"{' and '.join(layers)}, as `make_cache` makes it; got "
                f"{described(cache)}."
            )
        for name, layer in layers.items():
            layer.check_cache(cache[name])

    def _read_memory(
        self,
        inputs: Tensor,
        given: tuple[Tensor | None, Positions | None, TensorLike | None],
        cache: dict[str, Cache] | None,
    ) -> tuple[Tensor, Positions | None, Tensor | None]:
        """Checks the memory.

        Returns:
            The inputs, guarded, and the memory's checked positions and mask.
        """
        memory, positions, mask = given
        if not self.cross_attention:
            for name, value in (
                ("memory", memory),
                ("memory_positions", positions),
                ("memory_mask", mask),
            ):
                if value is not None:
                    raise ValueError(_NO_MEMORY.format(name))
            return inputs, None, None
        if memory is not None:
            slots = memory
            self._check_widths(memory=memory)
            inputs = guard_same_size(inputs, 0, memory=memory, inputs=inputs)
        elif cache is not None:
            slots = cache["cross_attention"]["key"]
        else:
            raise ValueError(
                "a block with cross_attention needs `memory`, the sequence to "
                "attend to."
            )
        encoding = self.cross_encoding
        if (
            encoding is not None
            and encoding.stage is not None
            and encoding.sampler.is_random
            and positions is None
        ):
            raise ValueError(
                f"{type(encoding.sampler).__name__} of cross_encoding would "
                "draw positions of `memory` that differ from those its layers "
                "had: pass `memory_positions` and `positions`."
            )
        if positions is not None:
            encoding = self.cross_attention_layer.encoding
            positions = encoding.given_positions(
                positions, slots, name="memory_positions"
            )
        mask, _ = read_mask(mask, slots, name="memory_mask")
        return inputs, positions, mask

    def make_cache(
        self, batch_size: Size, length: Size, memory: Tensor | None = None
    ) -> dict[str, Cache]:
        """Makes an empty cache, to be passed as `cache`.

        Args:
            batch_size: int, at least 1, or scalar integer tensor.
            length: int, at least 1, or scalar integer tensor. Number of tokens
                that the cache has room for.
            memory: Float tensor `(B, S, N)`, needed with `cross_attention`;
                only its shape is read.

        Returns:
            Dict of the caches of the attention layers, with the key
            `"attention"` and, with `cross_attention`, `"cross_attention"`.

        Raises:
            ValueError: If a size is not a positive integer, or `memory` is
                missing or not a tensor `(B, S, N)`.
        """
        cache = {
            "attention": self.attention_layer.make_cache(batch_size, length)
        }
        if self.cross_attention:
            check_rank("memory", memory, (3,), "(B, S, N)")
            _, slots, _ = memory.shape  # type: ignore[union-attr]
            cache["cross_attention"] = self.cross_attention_layer.make_cache(
                batch_size, slots
            )
        return cache

    def _add_residual(
        self,
        x: Tensor,
        part: Callable[[Tensor], Tensor],
        norm: str,
        training: bool | None,
    ) -> Tensor:
        if self.normalization == "pre":
            added = part(getattr(self, norm)(x))
        else:
            added = part(x)
        x = x + self.dropout_layer(added, training=training)
        if self.normalization == "post":
            x = getattr(self, norm)(x)
        return x

    def compute_output_shape(self, inputs_shape: Shape) -> Shape:
        return inputs_shape

    def compute_output_spec(
        self, inputs: keras.KerasTensor, **kwargs: Any
    ) -> Any:
        check_rank("inputs", inputs, (3,), "(B, T, M)")
        results = [keras.KerasTensor(inputs.shape, dtype=self.compute_dtype)]
        cache = kwargs.get("cache")
        if kwargs.get("return_attention_scores"):
            examples, tokens, _ = inputs.shape
            keys = (
                tokens if cache is None else cache["attention"]["key"].shape[1]
            )
            shape = (examples, self.num_heads, tokens, keys)
            results.append(keras.KerasTensor(shape, dtype="float32"))
        if cache is not None:
            results.append(cache)
        return results[0] if len(results) == 1 else tuple(results)


_NO_MEMORY = (
    "{} is for a block that attends to another sequence: set cross_attention."
)


def check_cross_encoding(
    encoding: PositionalEncoding | None, cross_attention: bool
) -> None:
    """Raises `ValueError` for an encoding that cross-attention cannot have.

    Args:
        encoding: Value of the argument `cross_encoding`.
        cross_attention: bool, whether there is cross-attention.
    """
    if encoding is None:
        return
    name = f"cross_encoding={type(encoding).__name__}"
    if not cross_attention:
        raise ValueError(
            f"{name} is for attention to a memory, but there is none: set "
            "cross_attention."
        )
    if encoding.causal_only:
        raise ValueError(
            f"{name} is for causal attention, but cross attention sees all "
            "tokens of the memory: choose another encoding."
        )
    if encoding.reads_inputs:
        raise ValueError(
            f"{name} rotates by the tokens between a query and a key, but "
            "cross attention is between two sequences: choose another encoding."
        )
    if encoding.reads_ranks:
        raise ValueError(
            f"{name} samples distances by the rank of a token among the keys, "
            "but the queries of cross attention are not among the keys: set "
            'distances="positions".'
        )
    if encoding.stage == "embeddings":
        raise ValueError(
            f"{name} is added to the embeddings and does nothing in cross "
            "attention: pass it as `encoding`, or choose another encoding."
        )
