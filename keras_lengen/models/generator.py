"""Compiled programs that generate tokens."""

from collections.abc import Callable
from typing import Any, TypeAlias

import keras
from keras import ops

from keras_lengen.models.base import Transformer
from keras_lengen.models.programs import compile_function
from keras_lengen.models.token_choice import (
    Options,
    add_seen,
    are_valid,
    is_end,
    penalize,
    sample_tokens,
)
from keras_lengen.types import Size, Tensor, TensorLike

State: TypeAlias = dict[str, Any]
"""State or constants of a run; see `Generator`."""


class Generator:
    """Two compiled programs that generate tokens: `start` and `advance`.

    `start` reads the prompts and generates the first token. `advance`
    generates further tokens from the state that either program returned.

    The constants of a run are a dict with the entries `"positions"`, a list
    of different tensors, the positions of all `S` slots of the cache;
    `"mask"`, bool `(B, S)`, true for the real tokens in these slots, or
    `None`; `"length"`, the length of the whole sequence; `"first"`, the slot
    of the first token of the prompts, or `None` for 0; `"last"`, int32 `(B,)`,
    the index of the last token of each prompt; `"memory"`, the call arguments
    for cross-attention; `"end_tokens"`, int32 `(E,)`, of which the first fills
    rows that have ended; `"temperature"`; `"top_p"`; `"penalty"` and `"seen"`,
    bool `(B, V)`, the tokens of the text that it concerns, or `None`; and
    `"numbers"`, random integers `(B, max_new_tokens)`, or `None` if tokens are
    not sampled.

    The state is a dict with the entries `"cache"`, of all layers; `"token"`,
    int32 `(B,)`, the newest token; `"step"`, its index among the new tokens;
    `"tokens"`, int32 `(B, max_new_tokens)`; `"ended"`, bool `(B,)`; `"seen"`,
    if tokens are penalized; and `"logits"`, if they are returned.

    Args:
        model: `TransformerDecoder`.
        slots: int. Number of tokens that the cache has room for.
        layers: tuple of ints. Indices in `"positions"` of those of each layer.
        max_new_tokens: int. Number of new tokens.
        options: `Options`, of which those that are no constants are used.
    """

    def __init__(
        self,
        model: Transformer,
        *,
        slots: int,
        layers: tuple[int, ...],
        max_new_tokens: int,
        options: Options,
    ) -> None:
        self.model = model
        self.slots = slots
        self.layers = layers
        self.max_new_tokens = max_new_tokens
        self.options = options
        self.start, self.advance = (
            compile_function(program, model.variables, options.jit_compile)
            for program in (self._start, self._advance)
        )

    def _start(
        self, constants: State, token_ids: Tensor, cache: Any = None
    ) -> State:
        """Returns the state after the first new token."""
        batch_size = token_ids.shape[0]
        features, cache = self.read_prompts(constants, token_ids, cache)
        shape = (batch_size, self.max_new_tokens)
        state = {
            "cache": cache,
            "ended": ops.zeros((batch_size,), dtype="bool"),
            "invalid": ops.full((batch_size,), -1, dtype="int32"),
            "tokens": ops.broadcast_to(constants["end_tokens"][0], shape),
        }
        if constants["seen"] is not None:
            state["seen"] = constants["seen"]
        if self.options.return_logits:
            state["logits"] = ops.zeros(
                (*shape, self.model.output_size), dtype="float32"
            )
        return self._choose(constants, state, features, cast_to_int32(0))

    def read_prompts(
        self, constants: State, token_ids: Tensor, cache: Any
    ) -> tuple[Tensor, Any]:
        """Returns features `(B, 1, M)` of the last tokens, and the cache."""
        memory = constants["memory"]
        if cache is None:
            cache = self.model.make_cache(
                token_ids.shape[0], self.slots, memory.get("memory")
            )
        first = constants["first"]
        features, cache = self.compute_features(
            constants, memory, token_ids, cache, 0 if first is None else first
        )
        last = ops.reshape(constants["last"], (-1, 1, 1))
        return ops.take_along_axis(features, last, axis=1), cache

    def _advance(self, constants: State, state: State, steps: Tensor) -> State:
        """Returns the state `steps` tokens later.

        Fewer tokens are generated if all sequences end before.
        """
        goal = state["step"] + steps

        def is_unfinished(state: State) -> Tensor:
            ended = ops.all(state["ended"])
            return ops.logical_and(state["step"] < goal, ops.logical_not(ended))

        def generate_token(state: State) -> State:
            features, cache = self.read_token(
                constants, state["token"], state["cache"], state["step"]
            )
            state = {**state, "cache": cache}
            return self._choose(constants, state, features, state["step"] + 1)

        return repeat_while(is_unfinished, generate_token, state)

    def read_token(
        self, constants: State, token: Tensor, cache: Any, step: Tensor
    ) -> tuple[Tensor, Any]:
        """Returns features `(B, 1, M)` of a new token, and the cache."""
        # The cache already has the keys and values of the memory.
        memory = {**constants["memory"]}
        if memory:
            memory["memory"] = None
        return self.compute_features(
            constants,
            memory,
            ops.expand_dims(token, 1),
            cache,
            constants["next"] + step,
        )

    def compute_features(
        self,
        constants: State,
        memory: dict[str, Any],
        token_ids: Tensor,
        cache: Any,
        index: Size,
    ) -> Any:
        positions = constants["positions"]
        return self.model.features(
            token_ids,
            [positions[index] for index in self.layers],
            cache=cache,
            cache_update_index=index,
            mask=constants["mask"],
            length=constants["length"],
            **memory,
        )

    def compute_logits(
        self, constants: State, state: State, features: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Computes the logits of the tokens that follow.

        Args:
            constants: Constants of the run.
            state: State, with or without `"seen"`.
            features: `(B, 1, M)`.

        Returns:
            Tuple of float32 `(B, V)`, the logits to choose from, zeros in rows
            that are not valid; the same before penalties; and whether they
            are valid, bool `(B,)`.
        """
        kept = self.model.logits(features)[:, 0]
        valid = are_valid(kept)
        logits = ops.where(ops.expand_dims(valid, -1), kept, 0.0)
        if "seen" in state:
            logits = penalize(logits, state["seen"], constants["penalty"])
        return logits, kept, valid

    def _choose(
        self, constants: State, state: State, features: Tensor, step: Tensor
    ) -> State:
        """Adds to the state the token that follows `features` `(B, 1, M)`."""
        logits, kept, valid = self.compute_logits(constants, state, features)
        if constants["numbers"] is None:
            token = ops.cast(ops.argmax(logits, axis=-1), "int32")
        else:
            token = sample_tokens(
                logits,
                ops.take(constants["numbers"], step, axis=1),
                temperature=constants["temperature"],
                top_k=self.options.top_k,
                top_p=constants["top_p"],
            )
        ends = constants["end_tokens"]
        fails = ops.logical_not(ops.logical_or(state["ended"], valid))
        ended = ops.logical_or(state["ended"], fails)
        token = ops.where(ended, ends[0], token)
        state = {
            **state,
            "step": step,
            "token": token,
            "ended": ops.logical_or(ended, is_end(token, ends)),
            "invalid": ops.where(fails, step, state["invalid"]),
            "tokens": write_entries(state["tokens"], token, step),
        }
        if "seen" in state:
            state["seen"] = add_seen(state["seen"], token)
        if "logits" in state:
            state["logits"] = write_entries(state["logits"], kept, step)
        return state


def repeat_while(
    condition: Callable[[State], Tensor],
    body: Callable[[State], State],
    state: State,
) -> State:
    """Applies a function to a dict of tensors as long as a condition holds."""

    def pack(flat: tuple[Tensor, ...]) -> Any:
        return keras.tree.pack_sequence_as(state, flat)

    return pack(
        ops.while_loop(
            lambda *flat: condition(pack(flat)),
            lambda *flat: tuple(keras.tree.flatten(body(pack(flat)))),
            tuple(keras.tree.flatten(state)),
        )
    )


def write_entries(rows: Tensor, entries: Tensor, step: Tensor) -> Tensor:
    """Returns `rows` `(B, N, ...)` with `entries` `(B, ...)` at one step."""
    start = (0, step) + (0,) * (len(rows.shape) - 2)
    return ops.slice_update(rows, start, ops.expand_dims(entries, 1))


def cast_to_int32(value: TensorLike) -> Tensor:
    """Converts a number or numbers to an int32 tensor."""
    return ops.cast(ops.convert_to_tensor(value), "int32")
