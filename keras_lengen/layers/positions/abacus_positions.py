"""Positions of digits within their numbers."""

from collections.abc import Sequence
from typing import Literal

import keras
from keras import ops

from keras_lengen.checks.arguments import (
    LARGEST_POSITION,
    Integer,
)
from keras_lengen.checks.constructors import argument
from keras_lengen.layers.positions.token_positions import (
    NEW,
    TokenIds,
    TokenPositions,
    find_borders,
    is_among,
)
from keras_lengen.types import Tensor


@keras.saving.register_keras_serializable(package="keras_lengen")
class AbacusPositions(TokenPositions):
    """Numbers each digit within its own number (Abacus).

    The first digit of every number has position `1 + k`, the next one `2 + k`,
    and so on; all other tokens have position 0. Numbers that are written with
    their least significant digit first therefore have the same position for
    digits of the same significance. In training, the offset `k` is uniform
    over `0 .. max_shift - 1`, so that a number begins at one of the positions
    `1 .. max_shift`; in evaluation it is 0. A model that is trained on numbers
    of `n` digits sees the positions up to `n + max_shift - 1`. Two numbers with
    no other token between them count as one.

    While a model generates, all new tokens count as digits: they continue the
    number at the end of the prompt, or begin a new one.

    Args:
        digits: Tuple of ints from 0 to `2 ** 31 - 1`, the ids of the digits.
        max_shift: int, from 1 to `2 ** 24`. Number of possible offsets, the
            paper's `k`; with 1, the offset is always 0.
        resample: str. `"batch"`: one offset for the batch, as in the authors'
            code. `"example"`: one for each example.
        seed: int from 0 to `2 ** 31 - 1`, seed of the draws, or `None`.

    Raises:
        ValueError: If an argument is out of range, or the inputs are not
            token ids.

    Returns:
        int32 positions `(B, T)`.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import AbacusPositions
    >>> sampler = AbacusPositions(digits=range(10), max_shift=20)
    >>> ids = ops.array([[3, 2, 1, 10, 7, 6]])  # 10 is the plus sign.
    >>> sampler(ids).numpy().tolist()
    [[1, 2, 3, 0, 1, 2]]

    Reference: McLeish et al., 2024, section 3. https://arxiv.org/abs/2405.17399
    The authors' `abacus.py` calls the largest offset, `max_shift - 1`, `max_k`.
    """

    digits: Sequence[int] = argument(TokenIds(example=tuple(range(10))))
    max_shift: int = argument(
        Integer(
            most=LARGEST_POSITION,
            example=7,
            what="the number of offsets to draw from",
        ),
        default=100,
    )
    resample: Literal["batch", "example"] = argument(default="batch")

    is_random = True

    def number_tokens(
        self, token_ids: Tensor, *, training: bool | None = None
    ) -> Tensor:
        inside = is_among(token_ids, (*self.digits, NEW))
        before, _ = find_borders(inside)
        places = ops.arange(ops.shape(token_ids)[1], dtype="int32") - before
        if training:
            draws = ops.shape(token_ids)[0] if self.resample == "example" else 1
            places = places + keras.random.randint(
                (draws, 1),
                0,
                self.max_shift,
                dtype="int32",
                seed=self.seed_generator,
            )
        return ops.where(inside, places, 0)
