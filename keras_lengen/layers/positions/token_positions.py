"""Base class of samplers that read token ids."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_lengen.checks.arguments import (
    Integer,
    InvalidArgument,
    Tuple,
    described,
)
from keras_lengen.checks.guards import is_integer
from keras_lengen.layers.positions.base import RandomSampler
from keras_lengen.types import Tensor, TensorLike

PADDING = -1
"""Id that stands for padding while positions are computed."""

NEW = -2
"""Id that stands for a token that is yet to be generated."""


class TokenPositions(RandomSampler):
    """Base class of samplers whose positions depend on the tokens.

    Models pass their token ids to the sampler. Attention layers and encodings
    outside of a model have no token ids: call the sampler, and pass its result
    as `positions`.

    Subclasses implement `number_tokens`. In causal models, too, an earlier
    token may have a larger position than a later one.

    Call arguments:
        inputs: Integer tensor `(B, T)`, token ids.
        lengths, reference_length, training: As for `PositionSampler`.

    Returns:
        int32 positions `(B, T)`; 0 for padding.
    """

    reads_tokens = True
    is_increasing = False

    def check_inputs(self, inputs: TensorLike) -> None:
        super().check_inputs(inputs)
        if len(inputs.shape) != 2 or not is_integer(inputs):
            dtype = keras.backend.standardize_dtype(inputs.dtype)
            raise ValueError(
                f"{type(self).__name__} reads token ids, integers of shape "
                "(B, T), which attention and encodings do not have: pass the "
                "encoding to a model, or call the sampler with the ids and "
                f"pass its result as `positions`; got inputs of dtype {dtype} "
                f"and shape {tuple(inputs.shape)}."
            )

    def sample(
        self,
        inputs: Tensor,
        *,
        lengths: Tensor | None = None,
        reference_length: Tensor | None = None,
        training: bool | None = None,
    ) -> Tensor:
        token_ids = ops.cast(inputs, "int32")
        if 0 in token_ids.shape:
            return token_ids
        if lengths is not None:
            indices = ops.arange(ops.shape(token_ids)[1], dtype="int32")
            real = indices < ops.reshape(lengths, (-1, 1))
            token_ids = ops.where(real, token_ids, PADDING)
        return self.number_tokens(token_ids, training=training)

    def number_tokens(
        self, token_ids: Tensor, *, training: bool | None = None
    ) -> Tensor:
        """Computes the positions of tokens.

        Args:
            token_ids: int32 `(B, T)`; `PADDING` after the end of a sequence,
                and `NEW` for tokens that generation has yet to add.
            training: bool or `None`, whether the call belongs to training.

        Returns:
            int32 positions `(B, T)`.
        """
        raise NotImplementedError(
            f"{type(self).__name__} must implement `number_tokens`."
        )


class TokenId(Integer):
    """A token id.

    Args:
        **kwargs: Arguments of `Argument`.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(0, 2**31 - 1, what="a token id", **kwargs)


class TokenIds(Tuple[int]):
    """A tuple of token ids in any order, none of them twice.

    Args:
        empty: bool, whether there may be none.
        **kwargs: Arguments of `Argument`.
    """

    def __init__(self, *, empty: bool = False, **kwargs: Any) -> None:
        super().__init__(TokenId(), empty=empty, **kwargs)

    def convert(self, value: Any) -> tuple[int, ...]:
        ids = super().convert(value)
        if len(set(ids)) < len(ids):
            raise InvalidArgument(
                sentence=f" has an id twice: {described(ids)}."
            )
        return ids


def is_among(token_ids: Tensor, ids: Sequence[int]) -> Tensor:
    """Finds the tokens that have one of some ids.

    Args:
        token_ids: int32 `(B, T)`.
        ids: Tuple of ints.

    Returns:
        bool `(B, T)`.
    """
    if not ids:
        return ops.zeros_like(token_ids, dtype="bool")
    return ops.any(
        ops.expand_dims(token_ids, -1)
        == ops.convert_to_tensor(ids, dtype="int32"),
        axis=-1,
    )


def find_borders(inside: Tensor) -> tuple[Tensor, Tensor]:
    """Finds the ends of the run of tokens that each token belongs to.

    Args:
        inside: bool `(B, T)`, true for the tokens of runs.

    Returns:
        Two int32 tensors `(B, T)`: for each token of a run, the index of the
        last token before the run, -1 if it is the first, and the index of the
        first token after it, `T` if it is the last.
    """
    tokens = ops.shape(inside)[1]
    indices = ops.arange(tokens, dtype="int32")
    outside = ops.sort(ops.where(inside, tokens, indices), axis=-1)
    outside = ops.pad(outside, [[0, 0], [1, 0]], constant_values=-1)
    passed = ops.cumsum(ops.cast(ops.logical_not(inside), "int32"), axis=-1)
    before = ops.take_along_axis(outside, passed, axis=-1)
    after = ops.take_along_axis(
        outside, ops.minimum(passed + 1, tokens), axis=-1
    )
    return before, after
