"""Properties of position samplers."""

import keras
import numpy as np
from keras import ops

from keras_lengen.conformance.requirements import Check, check_config, require
from keras_lengen.layers.positions.base import PositionSampler

BATCH, TOKENS = 2, 6
INPUTS = np.zeros((BATCH, TOKENS), "int32")


def _check_positions(sampler: PositionSampler) -> None:
    for training in (False, True):
        positions = sampler(INPUTS, training=training)
        axes = positions if sampler.pairs else (positions,)
        for axis in axes:
            dtype = keras.backend.standardize_dtype(axis.dtype)
            numbers = ops.convert_to_numpy(axis)
            require(
                tuple(axis.shape) in ((TOKENS,), (BATCH, TOKENS))
                and dtype in ("int32", "float32")
                and np.isfinite(numbers).all(),
                sampler,
                "must return finite positions (T,) or (B, T), int32 or float32",
            )
            require(
                sampler.negative or (numbers >= 0).all(),
                sampler,
                "returns negative positions and must say so: `negative = True`",
            )
        rising = (np.diff(ops.convert_to_numpy(axes[0]), axis=-1) >= 0).all()
        require(
            rising or not sampler.keeps_order,
            sampler,
            "does not keep the order of the tokens and must say so: "
            "`keeps_order = False`",
        )


def _check_padding(sampler: PositionSampler) -> None:
    if sampler.draws or sampler.pairs:
        return
    padded = sampler(INPUTS, lengths=np.array([4, 6]), training=False)
    short = ops.convert_to_numpy(sampler(INPUTS[:1, :4], training=False))
    padded = np.broadcast_to(ops.convert_to_numpy(padded), (BATCH, TOKENS))
    require(
        np.allclose(padded[:1, :4], np.broadcast_to(short, (1, 4))),
        sampler,
        "must give a padded sequence the positions of the sequence alone",
    )


def checks_of(sampler: PositionSampler) -> tuple[Check, ...]:
    """Returns the checks of a sampler."""
    return (check_config, _check_positions, _check_padding)
