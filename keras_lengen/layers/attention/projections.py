"""Projections of attention: from features to heads, and back."""

import math
from typing import Any

import keras
from keras import ops

from keras_lengen.checks.inputs import find_width
from keras_lengen.layers.attention.context import Context
from keras_lengen.layers.initializers import copy_initializer
from keras_lengen.layers.random_layer import RandomLayer
from keras_lengen.layers.sublayer_policies import SublayerPolicies
from keras_lengen.types import Shape, Tensor


class Projections(SublayerPolicies, RandomLayer):
    """Base class of attention, with its linear maps.

    Subclasses have the attributes `num_heads`, `num_key_value_heads`,
    `key_dim`, `value_width`, `output_axes`, `use_bias`, `use_gate`,
    `scale_scores`, and the initializers, regularizers and constraints.
    """

    def _build_projections(
        self, query_shape: Shape, value_shape: Shape, key_shape: Shape
    ) -> None:
        """Creates the linear maps."""
        heads = self.num_heads
        key_heads = self.key_heads
        self.query_dense = self._make_dense(
            "query",
            heads * self.key_dim,
            query_shape,
            scale=1 if self.scale_scores else self.key_dim**-0.5,
        )
        self.key_dense = self._make_dense(
            "key", key_heads * self.key_dim, key_shape
        )
        # Before the values, as in Keras, whose weights have this order.
        if self.use_gate:
            self.gate_dense = self._make_dense(
                "gate", heads * self.value_width, query_shape
            )
        self.value_dense = self._make_dense(
            "value", key_heads * self.value_width, value_shape
        )
        self.output_dense = self._make_dense(
            "attention_output",
            math.prod(self.find_output_axes(query_shape)),
            (*query_shape[:-1], heads * self.value_width),
        )

    def find_output_axes(self, query_shape: Shape) -> tuple[int, ...]:
        """Finds the sizes of the last axes of the output."""
        axes = self.output_axes
        if axes is None:
            return (find_width(query_shape),)
        return (axes,) if isinstance(axes, int) else axes

    def _make_dense(
        self, name: str, width: int, input_shape: Shape, scale: float = 1
    ) -> keras.layers.Dense:
        initializer = copy_initializer(self.kernel_initializer)

        def scaled(shape: Shape, dtype: Any = None) -> Tensor:
            return initializer(shape, dtype) * scale

        with self.parts_scope():
            dense = keras.layers.Dense(
                width,
                use_bias=self.use_bias,
                kernel_initializer=initializer if scale == 1 else scaled,
                bias_initializer=self.bias_initializer,
                kernel_regularizer=self.kernel_regularizer,
                bias_regularizer=self.bias_regularizer,
                kernel_constraint=self.kernel_constraint,
                bias_constraint=self.bias_constraint,
                dtype=self.dtype_policy,
                name=name,
            )
        dense.build(input_shape)
        return dense

    def _project(
        self, query: Tensor, key: Tensor | None, value: Tensor | None
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """Computes queries, keys and values `(B, T or S, heads, width)`.

        Args:
            query: `(B, T, M)`.
            key: `(B, S, M)`, or `None` for queries alone.
            value: `(B, S, M)`.

        Returns:
            Tuple of queries, keys and values; without a key, the last two are
            `None`.
        """
        if key is None:
            return _split(self.query_dense, query, self.key_dim), None, None
        denses = (self.query_dense, self.key_dense, self.value_dense)
        alike = (
            query is key and key is value and self.key_dim == self.value_width
        )
        if not alike or self.use_bias or any(map(_is_quantized, denses)):
            return (
                _split(self.query_dense, query, self.key_dim),
                _split(self.key_dense, key, self.key_dim),
                _split(self.value_dense, value, self.value_width),
            )
        # One matrix product is faster than three narrow ones.
        kernel = ops.concatenate([dense.kernel for dense in denses], axis=-1)
        kernel = ops.cast(kernel, self.compute_dtype)
        query = ops.cast(query, self.compute_dtype)
        if keras.backend.backend() == "jax" and None not in query.shape:
            sizes = *query.shape[:2], kernel.shape[-1]
            return self._split_flat(
                ops.reshape(_multiply(query, kernel), sizes)
            )
        projected = _multiply_heads(query, kernel, self.key_dim)
        heads = self.num_heads
        # Keras splits into equal parts in fewer operations.
        ends = [heads, heads + self.key_heads]
        return ops.split(projected, 3 if ends[1] == 2 * heads else ends, axis=2)

    def _split_flat(self, projected: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Splits `(B, T, width)` into queries, keys and values.

        Before heads have an axis: TPUs keep the last axis in vectors of 128
        numbers, of which an axis of a head's features would waste the most.
        """
        sizes, width = projected.shape[:2], self.key_dim
        queries = self.num_heads * width
        keys = self.key_heads * width
        parts = ops.split(projected, [queries, queries + keys], axis=-1)
        query, key, value = (
            ops.reshape(part, (*sizes, part.shape[-1] // width, width))
            for part in parts
        )
        return query, key, value

    def _combine(
        self, output: Tensor, inputs: Tensor, context: Context
    ) -> Tensor:
        """Maps the heads' results `(B, T, H, value_dim)` to `(B, T, M)`.

        Args:
            output: The results.
            inputs: `(B, T, M)`, from which the queries were computed.
            context: `Context`.
        """
        dense = self.output_dense
        if self.use_gate:
            gate = _split(self.gate_dense, inputs, self.value_width)
            gate = ops.sigmoid(gate)
            self._add_activity_losses(context, gate)
            output = output * gate
        if _is_quantized(dense):
            shape = (*ops.shape(output)[:2], self.num_heads * self.value_width)
            output = dense(ops.reshape(output, shape))
        else:
            output = _join(dense, output)
        self._add_activity_losses(context, output)
        if isinstance(self.output_axes, tuple):
            output = ops.reshape(
                output, (*ops.shape(output)[:2], *self.output_axes)
            )
        return output

    def _add_activity_losses(
        self, context: Context, *results: Tensor | None
    ) -> None:
        """Adds the losses of results of projections, if they are wanted.

        Args:
            context: `Context`.
            *results: `(B, T, ...)`, or `None`.
        """
        if self.projection_regularizer is None:
            return
        for result in results:
            if result is not None:
                loss = self.projection_regularizer(result)
                # As in Keras, losses are means over the examples.
                examples = ops.shape(result)[0]
                if context.axes is not None:
                    examples = context.axes.batch_size
                examples = ops.cast(examples, loss.dtype)
                self.add_loss(ops.divide_no_nan(loss, examples))


def _is_quantized(dense: keras.layers.Dense) -> bool:
    return dense.quantization_mode is not None


def _split(dense: keras.layers.Dense, features: Tensor, width: int) -> Tensor:
    """Applies a dense layer and splits its results into heads.

    Args:
        dense: `keras.layers.Dense` with `heads * width` units.
        features: `(B, T, M)`.
        width: int, width of a head.

    Returns:
        `(B, T, heads, width)`.
    """
    if _is_quantized(dense):
        flat = dense(features)
        sizes = *ops.shape(flat)[:2], dense.units // width, width
        return ops.reshape(flat, sizes)
    kernel = ops.cast(dense.kernel, dense.compute_dtype)
    features = ops.cast(features, dense.compute_dtype)
    bias = dense.bias
    if bias is not None:
        bias = ops.cast(bias, dense.compute_dtype)
    return _multiply_heads(features, kernel, width, bias)


def _multiply_heads(
    features: Tensor, kernel: Tensor, width: int, bias: Tensor | None = None
) -> Tensor:
    """Multiplies features `(B, T, M)` by a kernel of heads `(M, heads * D)`.

    Args:
        features: `(B, T, M)`.
        kernel: `(M, heads * width)`.
        width: int, width `D` of a head.
        bias: `(heads * width,)`, or `None`.

    Returns:
        `(B, T, heads, D)`.
    """
    inputs, outputs = kernel.shape
    heads = outputs // width, width
    if None in features.shape:
        # No size of the features has to be read to split the kernel.
        kernel = ops.reshape(kernel, (inputs, *heads))
        split = ops.einsum("btm,mhd->bthd", features, kernel)
        return split if bias is None else split + ops.reshape(bias, heads)
    flat = _multiply(features, kernel)
    flat = flat if bias is None else flat + bias
    return ops.reshape(flat, (*features.shape[:2], *heads))


def _multiply(features: Tensor, kernel: Tensor) -> Tensor:
    """Multiplies features of known sizes, whose last axes a kernel sums.

    One product of matrices, and not one for each example, whose gradients of
    the kernel would have to be added up.

    Returns:
        `(B * T, width)`.
    """
    return ops.matmul(ops.reshape(features, (-1, kernel.shape[0])), kernel)


def _join(dense: keras.layers.Dense, heads: Tensor) -> Tensor:
    """Applies a dense layer to the features of all heads `(B, T, H, D)`."""
    kernel = ops.cast(dense.kernel, dense.compute_dtype)
    sizes, (count, width) = heads.shape[:2], heads.shape[2:]
    if None in sizes:
        kernel = ops.reshape(kernel, (count, width, kernel.shape[-1]))
        output = ops.einsum("bthd,hdm->btm", heads, kernel)
    else:
        output = _multiply(heads, kernel)
        output = ops.reshape(output, (*sizes, kernel.shape[-1]))
    if dense.bias is None:
        return output
    return output + ops.cast(dense.bias, dense.compute_dtype)
