"""Properties of position samplers."""

from typing import Any

import keras
import numpy as np
from keras import ops

from keras_lengen.conformance.requirements import (
    Check,
    check_arguments,
    check_config,
    rebuild,
    require,
    require_truth,
    restart,
)
from keras_lengen.layers.positions.base import PositionSampler
from keras_lengen.types import Array, Positions, Tensor

BATCH, TOKENS, DRAWS = 3, 8, 20
INPUTS = np.zeros((BATCH, TOKENS), "int32")
LENGTHS = np.array([5, 8, 1], "int32")
ALONE = "must give a padded sequence the positions of the sequence alone"


def draw(layer: PositionSampler, inputs: Any = INPUTS, **how: Any) -> Array:
    """Returns the positions `(B, T)` that a sampler draws first.

    The rows follow those of the columns if it gives pairs.
    """
    restart(layer)
    return _unite(layer(inputs, **how), inputs.shape[:2])


def _unite(positions: Any, shape: Any) -> Array:
    return np.concatenate(
        [
            np.broadcast_to(ops.convert_to_numpy(axis), shape)
            for axis in keras.tree.flatten(positions)
        ]
    )


def _check_positions(sampler: PositionSampler) -> None:
    for training in (False, True):
        axes = keras.tree.flatten(sampler(INPUTS, training=training))
        kinds = {keras.backend.standardize_dtype(axis.dtype) for axis in axes}
        require(
            sampler,
            all(
                tuple(axis.shape) in ((TOKENS,), (BATCH, TOKENS))
                and np.isfinite(ops.convert_to_numpy(axis)).all()
                for axis in axes
            )
            and kinds <= {"int32", "float32"}
            and ("float32" in kinds) == sampler.fractional,
            "must return finite positions (T,) or (B, T), int32, or float32 if "
            "`fractional = True`",
        )
    draws = [
        _unite(sampler(INPUTS, training=True), INPUTS.shape)
        for _ in range(DRAWS)
    ]
    steps = np.diff(draws, axis=-1)
    require(
        sampler,
        sampler.negative or np.min(draws) >= 0,
        "returns negative positions and must say so: `negative = True`",
    )
    require(
        sampler,
        (steps[:, :BATCH] >= 0).all() or not sampler.is_increasing,
        "does not keep the order of the tokens and must say so: "
        "`is_increasing = False`",
    )
    drawn = bool(np.ptp(draws, axis=0).any())
    require_truth(sampler, "is_random", drawn, "draws positions")
    require(
        sampler,
        (steps == 1).all() or sampler.is_random or sampler.stretches,
        "gives neighbouring tokens other distances than 1 and must say so: "
        "`stretches = True`",
    )


def _check_seed(sampler: PositionSampler) -> None:
    """Checks that draws depend on nothing but the seed and the shape."""
    if sampler.reads_tokens:
        return
    if getattr(sampler, "seed", None) is not None:
        first, second = (
            [_unite(copy(INPUTS, training=True), INPUTS.shape) for _ in "12"]
            for copy in (rebuild(sampler), rebuild(sampler))
        )
        require(
            sampler,
            np.array_equal(first, second),
            "must draw the same again with the same seed",
        )
    others = np.zeros((*INPUTS.shape, 4), "float16"), np.ones_like(INPUTS, bool)
    plain = draw(sampler)
    require(
        sampler,
        all(np.array_equal(draw(sampler, other), plain) for other in others),
        "must read nothing but the shape of its inputs",
    )
    tokens = keras.layers.Embedding(2, 4, mask_zero=True)(INPUTS)
    require(
        sampler,
        all(
            getattr(axis, "_keras_mask", None) is None
            for axis in keras.tree.flatten(sampler(tokens))
        ),
        "must return positions without a mask",
    )


def _check_shapes(sampler: PositionSampler) -> None:
    if sampler.position_axes == 2 or sampler.reads_tokens:
        return
    for lengths in (None, LENGTHS):
        shapes = () if lengths is None else (LENGTHS.shape,)
        told = sampler.compute_output_shape(INPUTS.shape, *shapes)
        found = sampler(INPUTS, lengths=lengths).shape
        require(
            sampler,
            tuple(told) == tuple(found),
            "must tell the shape of its positions",
        )


def _check_padding(sampler: PositionSampler) -> None:
    if sampler.position_axes == 2:
        return
    for training in (False, True):
        for lengths in (np.array(5, "int32"), LENGTHS):
            padded = draw(sampler, training=training, lengths=lengths)
            for example, length in enumerate(np.broadcast_to(lengths, BATCH)):
                real, padding = np.split(padded[example], [length])
                short = draw(sampler, INPUTS[:, :length], training=training)
                require(sampler, np.array_equal(real, short[example]), ALONE)
                require(
                    sampler,
                    sampler.reads_tokens
                    or not sampler.is_increasing
                    or (padding >= real.max()).all(),
                    "must give padding the largest positions, which do not "
                    "change the ranks of others",
                )


class _Caller(keras.layers.Layer):
    """Calls a sampler in training or in evaluation, whatever the model does."""

    def __init__(self, sampler: PositionSampler, training: bool) -> None:
        super().__init__()
        self.sampler = sampler
        self.training = training

    def call(self, tokens: Tensor, lengths: Tensor) -> Positions:
        return self.sampler(tokens, lengths=lengths, training=self.training)


def _check_programs(sampler: PositionSampler) -> None:
    """Checks graphs of any length, and a compiled program."""
    tokens = keras.Input((None,), dtype="int32")
    lengths = keras.Input((), dtype="int32")

    def predict(model: Any, inputs: Array, lengths: Array) -> Array:
        restart(sampler)
        found = model.predict_on_batch([inputs, lengths])
        return _unite(found, inputs.shape)

    for training in (False, True):
        positions = _Caller(sampler, training)(tokens, lengths)
        model = keras.Model([tokens, lengths], positions)
        # XLA draws other numbers.
        model.compile(jit_compile=training and not sampler.is_random)
        require(
            sampler,
            # Graphs may add floats in another order.
            np.allclose(
                predict(model, INPUTS, LENGTHS),
                draw(sampler, lengths=LENGTHS, training=training),
                rtol=1e-6,
                atol=1e-6,
            ),
            "must give the same in a graph",
        )
    if sampler.is_random:
        model.compile(jit_compile=True)
        padded = predict(model, INPUTS, LENGTHS)
        alone = predict(model, INPUTS[:, :5], np.full(BATCH, 5, "int32"))
        require(sampler, np.isfinite(padded).all(), "must draw under XLA")
        require(sampler, np.array_equal(padded[0, :5], alone[0]), ALONE)


def checks_of(sampler: PositionSampler) -> tuple[Check, ...]:
    """Returns the checks of a sampler."""
    return (
        check_config,
        check_arguments,
        _check_positions,
        _check_seed,
        _check_shapes,
        _check_padding,
        _check_programs,
    )
