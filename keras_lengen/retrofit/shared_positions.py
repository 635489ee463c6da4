"""Positions that all layers of a backbone and all its calls share."""

import contextlib
import contextvars
import dataclasses
from collections.abc import Iterator
from typing import Any

import keras
from keras import ops

from keras_lengen.layers.positions.base import PositionSampler
from keras_lengen.layers.random_layer import draw_state, find_seed_generators
from keras_lengen.types import Positions, Size, Tensor


@dataclasses.dataclass
class Pass:
    """What the layers share while a backbone computes a whole sequence.

    Attributes:
        positions: Positions `(T,)` or `(B, T)`.
        lengths: int32 `(B,)`, lengths of the sequences without padding at the
            end, or `None`.
        prepared: Dict of what encodings prepared, by the id of the encoding.
    """

    positions: Positions
    lengths: Tensor | None = None
    prepared: dict[int, Any] = dataclasses.field(default_factory=dict)


# A context variable, because replicas of a strategy run in threads.
_passes: contextvars.ContextVar[dict[int, Pass] | None] = (
    contextvars.ContextVar("passes", default=None)
)

# The number of sequences that a task generates at a time.
_prompts: contextvars.ContextVar[Size | None] = contextvars.ContextVar(
    "prompts", default=None
)


class SharedPositions(keras.layers.Layer):
    """Takes the same positions from a sampler until `refresh` is called.

    The draw is a function of the state of the sampler's random generators,
    which only `refresh` advances. All layers, and all steps of generation,
    therefore compute the same positions, also in separate programs.

    Args:
        sampler: `PositionSampler`.
    """

    def __init__(self, sampler: PositionSampler, **kwargs: Any) -> None:
        super().__init__(autocast=False, **kwargs)
        self.sampler = sampler
        self.built = True

    def refresh(self) -> None:
        """Changes the draw."""
        for generator in find_seed_generators(self.sampler):
            generator.next()

    def sample(
        self,
        inputs: Tensor,
        *,
        lengths: Tensor | None = None,
        training: bool | None = None,
    ) -> Positions:
        """Computes the positions of whole sequences.

        Args:
            inputs: Tensor `(B, T, ...)`; only its shape is read.
            lengths: int32 `(B,)`, as of `Pass`, or `None` for `T`.
            training: bool or `None`, whether the call belongs to training.

        Returns:
            Positions `(T,)` or `(B, T)`.
        """
        states = [each.state for each in find_seed_generators(self.sampler)]
        with self._states(states, [ops.copy(state) for state in states]):
            # A state of its own: a sampler that draws several times would
            # otherwise use the states that follow, those of the next draws.
            drawn = [
                draw_state(generator)
                for generator in find_seed_generators(self.sampler)
            ]
        with self._states(states, drawn):
            return self.sampler.sample(
                inputs, lengths=lengths, training=training
            )

    def sample_steps(self, inputs: Tensor) -> Positions:
        """Computes the positions of sequences, new tokens of which are read.

        Args:
            inputs: Tensor `(B, T, ...)`; only its shape is read. Within
                `generate_from`, there may be several sequences in a row for
                each prompt, as in a beam search; they have its positions.

        Returns:
            Positions `(T,)` or `(B, T)`.
        """
        rows, prompts = inputs.shape[0], _prompts.get()
        if prompts is None or rows == prompts:
            return self.sample(inputs)
        rows, tokens, *_ = ops.shape(inputs)
        positions = self.sample(ops.zeros((prompts, tokens)))
        if len(positions.shape) == 1:
            return positions
        return ops.take(positions, ops.arange(rows) * prompts // rows, axis=0)

    @contextlib.contextmanager
    def generate_from(self, token_ids: Tensor) -> Iterator[None]:
        """Gives new tokens of all layers the positions of these prompts."""
        token = _prompts.set(ops.shape(token_ids)[0])
        try:
            yield
        finally:
            _prompts.reset(token)

    def _states(self, states: list[Any], values: list[Tensor]) -> Any:
        if not states:
            return contextlib.nullcontext()
        mapping = list(zip(states, values, strict=True))
        return keras.StatelessScope(state_mapping=mapping)

    @contextlib.contextmanager
    def whole_pass(self, current: Pass) -> Iterator[None]:
        """Gives all layers these positions while the backbone is called."""
        token = _passes.set({**(_passes.get() or {}), id(self): current})
        try:
            yield
        finally:
            _passes.reset(token)

    def find_pass(self) -> Pass | None:
        """Finds what the layers share, or `None` outside of `whole_pass`."""
        return (_passes.get() or {}).get(id(self))


def find_lengths(padding_mask: Tensor) -> Tensor:
    """Counts the tokens `(B,)` of `(B, T)`, up to the last real one.

    KerasHub numbers tokens by their indices, so padding before a real token
    counts too.
    """
    real = ops.cast(padding_mask, "int32")
    return ops.max(real * (1 + ops.arange(ops.shape(real)[1])), axis=-1)
