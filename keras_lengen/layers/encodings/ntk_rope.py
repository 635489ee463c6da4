"""Rotary position embedding whose slow pairs are slowed down further."""

import keras
import numpy as np
from keras import ops

from keras_lengen.arguments import check_integer, check_number
from keras_lengen.layers.encodings.rope import RoPE
from keras_lengen.layers.encodings.sinusoidal_encoding import frequencies


@keras.saving.register_keras_serializable(package="keras_lengen")
class NTKRoPE(RoPE):
    """Slows the rotation of slow pairs for longer sequences (NTK-aware RoPE).

    `RoPE` with the base `max_wavelength * s ** (R / (R - 2))`: the fastest
    pair turns as before, the slowest one `s` times slower, so that positions
    `s` times larger give angles that were seen in training. Fixed,
    `s = scaling_factor`. Dynamic, with an `original_length` `L`,
    `s = scaling_factor * length / L - (scaling_factor - 1)` for sequences
    longer than `L`, and 1 for the others.

    Stage: `rotate`, `(B, T, H, D)` to the same. No weights.
    Positions: any numbers; only differences matter.

    Args:
        scaling_factor: At least 1.
        original_length: Longest trained sequence in tokens, or `None` for the
            fixed form.
        max_wavelength: Base of the geometric series of frequencies.
        rotary_fraction: Share of each head's features that turn, above 0 and
            at most 1.
        layout: `"interleaved"` or `"halves"`, as for `RoPE`.
        sampler: `PositionSampler`, `None` for 0, 1, 2, ...

    Raises:
        ValueError: If fewer than 4 features turn, or an argument is out of
            range.

    Differs from the released code: the base follows the length of every call,
    and falls again when a short sequence follows a long one.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import NTKRoPE
    >>> encoding = NTKRoPE(original_length=2048)
    >>> encoding(ops.ones((2, 5, 4, 8)), length=4096).shape
    TensorShape([2, 5, 4, 8])

    Reference: bloc97, 2023, as described by Peng et al., 2024, section 3.1 and
    appendix A.2. https://arxiv.org/abs/2309.00071
    """

    uses_length = True

    def __init__(self, *, scaling_factor=1.0, original_length=None, **kwargs):
        super().__init__(**kwargs)
        self.scaling_factor = check_scaling_factor(scaling_factor)
        self.original_length = check_original_length(
            original_length, optional=True
        )

    def build(self, query_shape, key_shape=None):
        super().build(query_shape, key_shape)
        width = self._find_rotary_width(query_shape[-1])
        if width < 4:
            raise ValueError(
                f"{type(self).__name__} needs at least 4 rotated features, "
                f"but {width} of a head turn: raise the width of the heads or "
                "rotary_fraction."
            )

    def _find_rates(self, width, length):
        rates = frequencies(width, self.max_wavelength)
        if self.original_length is None:
            scale = self.scaling_factor
        else:
            scale = self.scaling_factor * find_relative_length(
                length, self.original_length
            )
            scale = ops.maximum(scale - (self.scaling_factor - 1), 1.0)
        # Pair m slows by s ** (2 m / (R - 2)).
        exponents = np.arange(0, width, 2) / (width - 2)
        slowing = -ops.log(ops.cast(scale, "float32"))
        slowing = ops.multiply(slowing, exponents.astype("float32"))
        return ops.multiply(rates, ops.exp(slowing))

    def get_config(self):
        return {
            **super().get_config(),
            "scaling_factor": self.scaling_factor,
            "original_length": self.original_length,
        }


def find_relative_length(length, original_length):
    """Float32 length over the trained one, a scalar or `(B, 1, 1)`."""
    length = ops.cast(length, "float32") / original_length
    return length if len(length.shape) == 0 else ops.reshape(length, (-1, 1, 1))


def check_scaling_factor(scaling_factor, *, optional=False):
    """Returns a valid factor, or raises `ValueError`."""
    return check_number(
        "scaling_factor", scaling_factor, least=1, optional=optional
    )


def check_original_length(original_length, *, optional=False):
    """Returns a valid length, or raises `ValueError`."""
    return check_integer(
        "original_length",
        original_length,
        optional=optional,
        what="the longest trained sequence in tokens",
    )
