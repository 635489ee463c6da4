"""Positions shared by the tokens of a prompt and an answer."""

from collections.abc import Sequence
from typing import Literal

import keras
from keras import ops

from keras_lengen.checks.arguments import (
    LARGEST_POSITION,
    Integer,
    Optional,
)
from keras_lengen.checks.constructors import argument
from keras_lengen.layers.positions.token_positions import (
    NEW,
    TokenId,
    TokenIds,
    TokenPositions,
    find_borders,
    is_among,
)
from keras_lengen.types import Size, Tensor


@keras.saving.register_keras_serializable(package="keras_lengen")
class CoupledPositions(TokenPositions):
    """Gives tokens that belong together the same position.

    A sequence has *items*, such as digits, *separators*, such as the plus
    sign, and one token that *ends the prompt*, such as the equals sign. The
    items between two other tokens are a run. With a start `s`:

    - separators and the end of the prompt have position `s`;
    - the items of the answer, which follow the end of the prompt, have
      positions `s + 1`, `s + 2`, ...;
    - the items of every run in the prompt have the same positions: counted
      from its last item with `order="descending"`, from its first one with
      `"ascending"`;
    - all other tokens, such as a token that begins the sequence, have
      position 0.

    If numbers are written with their most significant digit first, and the
    answer with its least significant digit first, digits of the same
    significance share a position with `"descending"`, which is for addition and
    reversal. `"ascending"` is for copies and for the running results of a
    sequence. An answer token attends to fixed distances, however long the
    sequence.

    While a model generates, all new tokens count as items.

    Args:
        items: Tuple of ints from 0 to `2 ** 31 - 1`, the ids of the items.
        end_of_prompt: int from 0 to `2 ** 31 - 1`, id of the token that ends
            the prompt.
        separators: Tuple of ints from 0 to `2 ** 31 - 1`, ids of other tokens
            with position `s`; it may be empty.
        order: str, `"descending"` or `"ascending"`.
        max_position: int, from 1 to `2 ** 24`, or `None`. In training, the
            start is drawn uniformly from all numbers from 1 on for which the
            positions of the example stay below `max_position`, so that every
            row of a table of `max_position` rows is trained. With `None`, and
            in evaluation, the start is 1.
        resample: str. `"example"`: one start for each example, as in the
            authors' code. `"batch"`: one for the batch, for its longest run.
        seed: int from 0 to `2 ** 31 - 1`, seed of the draws, or `None`.

    Raises:
        ValueError: If an argument is out of range, an id has two meanings, or
            the inputs are not token ids.

    Returns:
        int32 positions `(B, T)`.

    Differs from the paper: the answer counts upwards and numbers downwards, as
    in the authors' newer code.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import CoupledPositions
    >>> sampler = CoupledPositions(
    ...     items=range(10), end_of_prompt=11, separators=[10],
    ...     max_position=30)
    >>> plus, equals = 10, 11
    >>> ids = ops.array([[6, 5, 3, plus, 0, 4, 9, equals, 2, 0, 7, 0]])
    >>> sampler(ids).numpy().tolist()
    [[4, 3, 2, 1, 4, 3, 2, 1, 2, 3, 4, 5]]

    Reference: Cho et al., 2024, section 3. https://arxiv.org/abs/2405.20671
    """

    items: Sequence[int] = argument(TokenIds(example=tuple(range(10))))
    end_of_prompt: int = argument(TokenId(example=11))
    separators: Sequence[int] = argument(
        TokenIds(empty=True, example=(10,)), default=()
    )
    order: Literal["descending", "ascending"] = argument(default="descending")
    max_position: int | None = argument(
        Optional(Integer(most=LARGEST_POSITION, example=60)), default=None
    )
    resample: Literal["batch", "example"] = argument(default="example")

    def __post_init__(self) -> None:
        super().__post_init__()
        known = (*self.items, self.end_of_prompt, *self.separators)
        for each in known:
            if known.count(each) > 1:
                raise ValueError(
                    f"id {each} has two meanings: an id can be one of items, "
                    "separators and end_of_prompt only."
                )
        self.is_random = self.max_position is not None

    def check_length(self, tokens: int, *, unit: str = "tokens") -> None:
        # The number of tokens does not say how long the longest run is.
        pass

    def number_tokens(
        self, token_ids: Tensor, *, training: bool | None = None
    ) -> Tensor:
        inside = is_among(token_ids, (*self.items, NEW))
        before, after = find_borders(inside)
        indices = ops.arange(ops.shape(token_ids)[1], dtype="int32")
        places = indices - before
        if self.order == "descending":
            ends = ops.cast(token_ids == self.end_of_prompt, "int32")
            in_answer = ops.logical_or(
                ops.cumsum(ends, axis=-1) > 0, token_ids == NEW
            )
            places = ops.where(in_answer, places, after - indices)
        places = ops.where(inside, places, 0)
        marks = is_among(token_ids, (*self.separators, self.end_of_prompt))
        start = self._draw_start(places) if training else 1
        return ops.where(ops.logical_or(inside, marks), places + start, 0)

    def _draw_start(self, places: Tensor) -> Size:
        """Draws a start for each example, int32 `(B or 1, 1)`."""
        if self.max_position is None:
            return 1
        axis = -1 if self.resample == "example" else None
        longest = ops.max(places, axis=axis, keepdims=True)
        count = ops.maximum(self.max_position - 1 - longest, 1)
        share = keras.random.uniform(
            ops.shape(count), dtype="float32", seed=self.seed_generator
        )
        return 1 + ops.cast(share * ops.cast(count, "float32"), "int32")
