"""Transformer decoder that applies its blocks repeatedly."""

from collections.abc import Callable
from typing import Any, TypeVar

import keras
from keras import ops

from keras_lengen.checks.arguments import Boolean, Integer
from keras_lengen.checks.constructors import argument
from keras_lengen.checks.guards import guard, is_integer, mark_like
from keras_lengen.checks.inputs import (
    as_tensor,
    guard_each,
    guard_same_size,
    read_mask,
)
from keras_lengen.layers.attention.context import Context
from keras_lengen.models.base import BlockCache, Inputs, convert_numbers
from keras_lengen.models.decoder import TransformerDecoder
from keras_lengen.models.programs import compile_function
from keras_lengen.types import Size, Tensor, TensorLike

T = TypeVar("T")


@keras.saving.register_keras_serializable(package="keras_lengen")
class LoopedDecoder(TransformerDecoder):
    """A decoder that repeats its blocks, longer sequences more often.

    Each loop applies all blocks, with the same weights. From the second loop
    on, the embeddings are added to the input of the first block. One block can
    therefore compute a number of sequential steps that grows with the length.

    Args:
        loops: int, at least 1. Number of loops, and in training and generation
            also the largest number.
        **kwargs: Arguments of `TransformerDecoder`.

    Call arguments:
        inputs: As for `TransformerDecoder`. The dict may also have `"loops"`,
            int `()` or `(B,)`, at least 1: how often the blocks are applied to
            each example. In evaluation, it may be larger than the argument
            `loops`; one program serves all numbers. In evaluation the dict may
            also have `"scored"`, bool `(B, T)`: each example then has the
            number of loops, at most `"loops"`, after which the outputs of these
            tokens are most certain; see `settle`.
        training: bool. Whether to apply dropout and to draw positions as in
            training.

    Returns:
        float32 logits `(B, T, output_size)`.

    Raises:
        ValueError: If an argument is out of range, or in training or
            generation `"loops"` is larger than `loops`, or there is
            `"scored"`.

    Differs from the paper: the first input is the embeddings; in the paper, it
    is zero, to which the embeddings are added. The model predicts the next
    token; the paper's model predicts all tokens of an answer at once.

    Example:

    >>> import numpy as np
    >>> from keras_lengen.models import LoopedDecoder
    >>> model = LoopedDecoder(
    ...     vocabulary_size=3, num_layers=1, num_heads=2, model_dim=8, loops=20)
    >>> ids = np.array([[0, 1, 1, 2], [1, 2, 2, 2]])
    >>> model({"token_ids": ids, "loops": np.array([4, 30])}).shape
    TensorShape([2, 4, 3])

    Reference: Fan et al., 2024, section 4. https://arxiv.org/abs/2409.15647
    """

    loops: int = argument(Integer(example=3))

    def __post_init__(self) -> None:
        super().__post_init__()
        self._further_inputs = (*self._further_inputs, "loops", "scored")

    def memory(
        self, inputs: Inputs, training: bool | None = None
    ) -> dict[str, Any]:
        return {
            **super().memory(inputs, training),
            "loops": inputs.get("loops"),
            "scored": inputs.get("scored"),
        }

    def _unpack(self, inputs: Any, *, new_tokens: int = 0) -> Inputs:
        inputs = super()._unpack(inputs, new_tokens=new_tokens)
        ids = inputs["token_ids"]
        if "loops" in inputs:
            loops = _read_loops(inputs["loops"], ids)
            if new_tokens:
                loops = self._guard_number(loops, loops)
            inputs["loops"], ids = loops, mark_like(ids, loops)
        if "scored" in inputs:
            if new_tokens:
                raise ValueError(_NOT_SETTLED)
            inputs["scored"], ids = read_mask(
                inputs["scored"], ids, name="scored"
            )
        return {**inputs, "token_ids": ids}

    def _guard_number(self, guarded: T, loops: Tensor) -> T:
        """Guards tensors by the condition that loops are not too many."""
        return guard(
            guarded,
            loops <= self.loops,
            "training and generation apply the blocks at most loops="
            f"{self.loops} times; got ",
            loops,
            ": raise loops.",
        )

    def make_cache(
        self, batch_size: Size, length: Size, memory: Tensor | None = None
    ) -> list[BlockCache]:
        return [
            of_block
            for _ in range(self.loops)
            for of_block in super(LoopedDecoder, self).make_cache(
                batch_size, length, memory
            )
        ]

    def _apply_blocks(
        self,
        x: Tensor,
        contexts: list[tuple[Context, Context | None]],
        cache: list[BlockCache] | None,
        *,
        loops: Tensor | None = None,
        scored: Tensor | None = None,
        training: bool | None = None,
        **kwargs: Any,
    ) -> tuple[Tensor, list[BlockCache]]:
        first, new_cache = x, []

        def apply(
            x: Tensor, part: list[BlockCache] | None
        ) -> tuple[Tensor, list[BlockCache]]:
            return super(LoopedDecoder, self)._apply_blocks(
                x, contexts, part, training=training, **kwargs
            )

        if scored is not None:
            if training:
                raise ValueError(_NOT_SETTLED)
            loops = self.loops if loops is None else loops
            loops = ops.broadcast_to(loops, ops.shape(x)[:1])
            x, _ = self._repeat_until_certain(
                lambda x: apply(x, None)[0], x, loops, scored
            )
            return x, []
        if loops is not None:
            if cache is None and not training:
                loops = ops.reshape(loops, (-1, 1, 1))
                return _repeat(lambda x: apply(x, None)[0], x, loops), []
            x = self._guard_number(x, loops)
            loops = ops.reshape(loops, (-1, 1, 1))
        for number in range(self.loops):
            part, step = cache, len(self.blocks)
            if cache is not None:
                part = cache[number * step : (number + 1) * step]
            done, of_loop = apply(x if number == 0 else x + first, part)
            x = done if loops is None else ops.where(number < loops, done, x)
            new_cache += of_loop
        return x, new_cache

    def settle(
        self,
        inputs: Any,
        most: int,
        *,
        scored: TensorLike | None = None,
        jit_compile: bool = True,
    ) -> tuple[Tensor, Tensor]:
        """Applies the blocks until the answer is most certain.

        Outputs are certain if the cross-entropy with their most likely classes
        is small.

        Args:
            inputs: As in a call, without `"loops"`.
            most: int, at least 1. Largest number of times.
            scored: Boolean array `(B, T)`, the tokens whose outputs count;
                `None`: all real tokens.
            jit_compile: bool. Whether XLA compiles the program, which serves
                every `most`.

        Returns:
            Tuple of float32 logits `(B, T, output_size)` and int32 `(B,)`, how
            often the blocks were applied to each example.

        Raises:
            ValueError: If an argument is out of range.

        Reference: Fan et al., 2024, section 5 (here for each example instead
        of for the batch). https://arxiv.org/abs/2409.15647
        """
        Integer().check("most", most)
        Boolean().check("jit_compile", jit_compile)
        inputs = self._unpack(convert_numbers(inputs))
        if inputs.pop("loops", None) is not None:
            raise ValueError(
                'inputs have "loops", which `settle` finds itself.'
            )
        if inputs.pop("scored", None) is not None:
            raise ValueError('`settle` has "scored" as an argument.')
        if inputs.get("positions") is None:
            # Drawn here, because the program draws no random numbers.
            inputs["positions"] = self.sample_positions(inputs, training=False)
        if scored is not None:
            scored, inputs["token_ids"] = read_mask(
                scored, inputs["token_ids"], name="scored"
            )
        program = self.programs.get(
            self,
            ("settle", jit_compile, scored is None),
            lambda: compile_function(self._settle, self.variables, jit_compile),
        )
        return program(inputs, ops.convert_to_tensor(most, "int32"), scored)

    def _settle(
        self, inputs: Inputs, most: Tensor, scored: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        mask = self.padding_mask(inputs)
        if scored is None:
            token_ids = inputs["token_ids"]
            scored = ops.ones_like(token_ids) if mask is None else mask
        memory = super().memory(inputs)
        first, contexts = self._enter(
            inputs["token_ids"],
            self.by_layer(inputs["positions"]),
            mask=mask,
            length=inputs.get("reference_length"),
            documents=self.find_documents(inputs),
            training=False,
            **memory,
        )

        def apply(x: Tensor) -> Tensor:
            return super(LoopedDecoder, self)._apply_blocks(
                x, contexts, None, memory=memory.get("memory"), training=False
            )[0]

        most = ops.broadcast_to(most, ops.shape(first)[:1])
        x, loops = self._repeat_until_certain(apply, first, most, scored)
        return self.logits(self._end(x)), loops

    def _repeat_until_certain(
        self,
        apply: Callable[[Tensor], Tensor],
        first: Tensor,
        most: Tensor,
        scored: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Applies blocks until the outputs are as certain as they get.

        Args:
            apply: Function from `(B, T, M)` to the same, all blocks.
            first: `(B, T, M)`, added to their input from the second time on.
            most: int32 `(B,)`. Largest numbers of times.
            scored: `(B, T)`, true for the tokens whose outputs count.

        Returns:
            `(B, T, M)`, and int32 `(B,)`, how often blocks were applied.
        """
        scored = ops.cast(scored, "float32")

        def repeat(
            number: Tensor,
            x: Tensor,
            best: Tensor,
            least: Tensor,
            loops: Tensor,
        ) -> tuple[Tensor, ...]:
            x = apply(_inject(x, first, number))
            logits = self.logits(self._end(x))
            certain = ops.max(ops.log_softmax(logits, axis=-1), axis=-1)
            doubt = -ops.sum(certain * scored, axis=-1)
            # The first loop counts even if its doubt is NaN.
            surer = ((doubt < least) | (number == 0)) & (number < most)
            return (
                number + 1,
                x,
                ops.where(ops.expand_dims(surer, (1, 2)), x, best),
                ops.where(surer, doubt, least),
                ops.where(surer, number + 1, loops),
            )

        count = ops.shape(first)[0]
        start = (
            ops.convert_to_tensor(0, "int32"),
            first,
            first,
            ops.full((count,), float("inf"), "float32"),
            ops.zeros((count,), "int32"),
        )
        _, _, best, _, loops = ops.while_loop(
            lambda number, *_: number < ops.max(most), repeat, start
        )
        return best, loops


_NOT_SETTLED = (
    'inputs with "scored" choose the most confident iteration, which works '
    'only in evaluation: leave "scored" out.'
)


def _repeat(
    apply: Callable[[Tensor], Tensor], first: Tensor, loops: Tensor
) -> Tensor:
    """Applies blocks to each example for its own number of loops.

    Args:
        apply: Function from `(B, T, M)` to the same, all blocks.
        first: `(B, T, M)`, added to their input from the second time on.
        loops: int32 `(1 or B, 1, 1)`.

    Returns:
        `(B, T, M)`.
    """

    def repeat(number: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        done = apply(_inject(x, first, number))
        return number + 1, ops.where(number < loops, done, x)

    _, x = ops.while_loop(
        lambda number, _: number < ops.max(loops),
        repeat,
        (ops.convert_to_tensor(0, "int32"), first),
    )
    return x


def _inject(x: Tensor, first: Tensor, number: Size) -> Tensor:
    """Adds the embeddings to the blocks' input, except in the first loop."""
    return x + ops.where(number > 0, first, ops.zeros_like(first))


def _read_loops(loops: TensorLike, token_ids: Tensor) -> Tensor:
    """Reads how often the blocks are to be applied.

    Returns:
        int32 `()` or `(B,)`. Numbers that are found to be wrong only at run
        time become invalid.
    """
    loops = as_tensor("loops", loops, "integers of shape () or (B,)")
    if not is_integer(loops) or len(loops.shape) > 1:
        raise ValueError(
            "loops must be integers of shape () or (B,), how often the blocks "
            f"are applied; got {keras.backend.standardize_dtype(loops.dtype)} "
            f"of shape {tuple(loops.shape)}."
        )
    if len(loops.shape) == 1:
        loops = guard_same_size(loops, 0, loops=loops, token_ids=token_ids)
    if isinstance(loops, keras.KerasTensor):
        return loops
    loops = guard_each(
        loops,
        ops.logical_and(loops >= 1, loops <= 2**31 - 1),
        "loops must be at least 1 and below 2**31; got ",
        loops,
        ".",
    )
    return ops.cast(loops, "int32")
