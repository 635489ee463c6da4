"""Autoregressive generation with a cache of keys and values."""

from collections.abc import Iterator
from typing import Any, TypeAlias, cast

import keras
import numpy as np
from keras import ops

from keras_lengen.checks.arguments import (
    Boolean,
    Integer,
    Number,
    Optional,
    Seed,
)
from keras_lengen.layers.positions.token_positions import NEW
from keras_lengen.models.base import Transformer, convert_numbers
from keras_lengen.models.programs import compile_function
from keras_lengen.types import Array, Size, Tensor, TensorLike

State: TypeAlias = dict[str, Any]
"""State or constants of a run; see `_Generator`."""


def generate(
    model: Transformer,
    inputs: Any,
    max_new_tokens: int,
    *,
    return_logits: bool = False,
    **options: Any,
) -> Array | tuple[Array, Array]:
    """Generates tokens; see `TransformerDecoder.generate`."""
    generator, constants, token_ids = _prepare(
        model, inputs, max_new_tokens, return_logits=return_logits, **options
    )
    state = generator.start(constants, token_ids)
    state = generator.advance(
        constants, state, _cast_to_int32(max_new_tokens - 1)
    )
    tokens = ops.convert_to_numpy(state["tokens"])
    if not return_logits:
        return tokens
    return tokens, ops.convert_to_numpy(state["logits"])


def stream(
    model: Transformer, inputs: Any, max_new_tokens: int, **options: Any
) -> Iterator[Array]:
    """Returns an iterator over tokens; see `TransformerDecoder.stream`."""
    # Checked here: errors in a generator are only raised when it is read.
    generator, constants, token_ids = _prepare(
        model, inputs, max_new_tokens, **options
    )
    return _stream(generator, constants, token_ids, max_new_tokens)


def _stream(
    generator: "_Generator",
    constants: State,
    token_ids: Tensor,
    max_new_tokens: int,
) -> Iterator[Array]:
    state = generator.start(constants, token_ids)
    for step in range(max_new_tokens):
        if step > 0:
            state = generator.advance(constants, state, _cast_to_int32(1))
        yield ops.convert_to_numpy(state["token"])
        if np.all(ops.convert_to_numpy(state["ended"])):
            return


class _Generator:
    """Two compiled programs that generate tokens: `start` and `advance`.

    `start` reads the prompts and generates the first token. `advance`
    generates further tokens from the state that either program returned.

    The constants of a run are a dict with the entries `"positions"`, a list
    for all layers; `"mask"`, bool `(B, S)`, true for the real tokens among the
    `S` slots of the cache, or `None`; `"length"`, the length of prompt and new
    tokens; `"last"`, int32 `(B,)`, the index of the last token of each prompt;
    `"memory"`, the call arguments for cross-attention; `"end_token"`, -1 for
    none; `"temperature"`; `"top_p"`; and `"numbers"`, uniform random numbers
    `(B, max_new_tokens)`, or `None` if tokens are not sampled.

    The state is a dict with the entries `"cache"`, of all layers; `"token"`,
    int32 `(B,)`, the newest token; `"step"`, its index among the new tokens;
    `"tokens"`, int32 `(B, max_new_tokens)`; `"ended"`, bool `(B,)`; and
    `"logits"` if they are returned.

    Args:
        model: `TransformerDecoder`.
        max_new_tokens: int. Number of new tokens that the cache has room for.
        top_k: int or `None`. Number of most likely tokens to sample from.
        return_logits: bool. Whether to keep the logits of new tokens.
        jit_compile: bool. Whether XLA compiles the programs.
    """

    def __init__(
        self,
        model: Transformer,
        *,
        max_new_tokens: int,
        top_k: int | None,
        return_logits: bool,
        jit_compile: bool,
    ) -> None:
        self.model = model
        self.max_new_tokens = max_new_tokens
        self.top_k = top_k
        self.return_logits = return_logits
        self.start = compile_function(self._start, model.variables, jit_compile)
        self.advance = compile_function(
            self._advance, model.variables, jit_compile
        )

    def _start(self, constants: State, token_ids: Tensor) -> State:
        """Returns the state after the first new token."""
        batch_size, prompt_tokens = token_ids.shape
        shape = (batch_size, self.max_new_tokens)
        memory = constants["memory"]
        state = {
            "cache": self.model.make_cache(
                batch_size,
                prompt_tokens + self.max_new_tokens,
                memory.get("memory"),
            ),
            "ended": ops.zeros((batch_size,), dtype="bool"),
            "tokens": ops.broadcast_to(constants["end_token"], shape),
        }
        if self.return_logits:
            state["logits"] = ops.zeros(
                (*shape, self.model.output_size), dtype="float32"
            )
        features, state["cache"] = self._compute_features(
            constants, memory, token_ids, state["cache"], 0
        )
        features = ops.take_along_axis(
            features, ops.reshape(constants["last"], (-1, 1, 1)), axis=1
        )
        return self._choose(constants, state, features, _cast_to_int32(0))

    def _advance(self, constants: State, state: State, steps: Tensor) -> State:
        """Returns the state `steps` tokens later.

        Fewer tokens are generated if all sequences end before.
        """
        structure, goal = state, state["step"] + steps
        # The cache already has the keys and values of the memory.
        memory = {**constants["memory"]}
        if memory:
            memory["memory"] = None
        # Not the size of a cache, which may hold the latest tokens only.
        slots = keras.tree.flatten(constants["positions"][0])[0].shape[-1]

        def pack(flat: tuple[Tensor, ...]) -> Any:
            return keras.tree.pack_sequence_as(structure, flat)

        def is_unfinished(*flat: Tensor) -> Tensor:
            state = pack(flat)
            ended = ops.all(state["ended"])
            return ops.logical_and(state["step"] < goal, ops.logical_not(ended))

        def generate_token(*flat: Tensor) -> tuple[Tensor, ...]:
            state = pack(flat)
            features, state["cache"] = self._compute_features(
                constants,
                memory,
                ops.expand_dims(state["token"], 1),
                state["cache"],
                slots - self.max_new_tokens + state["step"],
            )
            state = self._choose(constants, state, features, state["step"] + 1)
            return tuple(keras.tree.flatten(state))

        flat = ops.while_loop(
            is_unfinished, generate_token, tuple(keras.tree.flatten(state))
        )
        return pack(flat)

    def _compute_features(
        self,
        constants: State,
        memory: dict[str, Any],
        token_ids: Tensor,
        cache: Any,
        index: Size,
    ) -> Any:
        return self.model.features(
            token_ids,
            constants["positions"],
            cache=cache,
            cache_update_index=index,
            mask=constants["mask"],
            length=constants["length"],
            **memory,
        )

    def _choose(
        self, constants: State, state: State, features: Tensor, step: Tensor
    ) -> State:
        """Adds to the state the token that follows `features` `(B, 1, M)`."""
        logits = self.model.logits(features)[:, 0]
        if constants["numbers"] is None:
            token = ops.cast(ops.argmax(logits, axis=-1), "int32")
        else:
            token = _sample_tokens(
                _divide(logits, constants["temperature"]),
                ops.take(constants["numbers"], step, axis=1),
                self.top_k,
                constants["top_p"],
            )
        token = ops.where(state["ended"], constants["end_token"], token)
        state = {
            **state,
            "step": step,
            "token": token,
            "ended": ops.logical_or(
                state["ended"], token == constants["end_token"]
            ),
            "tokens": _write_entries(state["tokens"], token, step),
        }
        if self.return_logits:
            state["logits"] = _write_entries(state["logits"], logits, step)
        return state


def _prepare(
    model: Transformer, inputs: Any, max_new_tokens: int, **options: Any
) -> tuple["_Generator", State, Tensor]:
    """Checks the arguments and prepares a run.

    Returns:
        Tuple of the `_Generator`, the constants of the run, and the prompts,
        int32 `(B, T)`.

    Raises:
        ValueError: If an argument is invalid.
    """
    max_new_tokens = Integer(what="the number of tokens to add").check(
        "max_new_tokens", max_new_tokens
    )
    options = _check_options(model, **options)
    output_size = cast(int, model.output_size)  # Decoders have outputs.
    if max_new_tokens > 1 and output_size > model.vocabulary_size:
        raise ValueError(
            f"output_size={output_size} is larger than "
            f"vocabulary_size={model.vocabulary_size}: the model cannot read "
            "every token that it may generate. Make a model with equal sizes, "
            "or pass max_new_tokens=1."
        )
    inputs = model._unpack(convert_numbers(inputs), new_tokens=max_new_tokens)
    token_ids = inputs["token_ids"]
    constants = _place_tokens(model, inputs, max_new_tokens)
    end_token, temperature = options["end_token"], options["temperature"]
    constants |= {
        "memory": model.memory(inputs),
        "end_token": _cast_to_int32(-1 if end_token is None else end_token),
        "temperature": ops.cast(temperature, "float32"),
        "top_p": options["top_p"],
        "numbers": None,
    }
    if temperature > 0:
        # One number per token, because the loop draws no random numbers.
        constants["numbers"] = keras.random.uniform(
            (token_ids.shape[0], max_new_tokens),
            dtype="float32",
            seed=options["seed"],
        )
    constants = keras.tree.map_structure(
        lambda value: value if value is None else ops.convert_to_tensor(value),
        constants,
    )
    fixed = {
        "max_new_tokens": max_new_tokens,
        "top_k": options["top_k"],
        "return_logits": options["return_logits"],
        "jit_compile": options["jit_compile"],
    }
    generator = model.programs.get(
        model, tuple(fixed.values()), lambda: _Generator(model, **fixed)
    )
    return generator, constants, token_ids


def _check_options(
    model: Transformer,
    *,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float | None = None,
    end_token: int | None = None,
    seed: int | None = None,
    return_logits: bool = False,
    jit_compile: bool = True,
) -> dict[str, Any]:
    """Checks how tokens are chosen, and returns it as a dict."""
    temperature = Number(0).check("temperature", temperature)
    output_size = cast(int, model.output_size)  # Decoders have outputs.
    top_k = Optional(Integer(most=output_size)).check("top_k", top_k)
    top_p = Optional(Number(most=1, above=0)).check("top_p", top_p)
    for name, value in (("top_k", top_k), ("top_p", top_p)):
        if temperature == 0 and value not in (None, 1):
            raise ValueError(
                f"{name}={value} has no effect at temperature=0: pass a "
                f"temperature above 0, such as 1.0, or leave {name} out."
            )
    return {
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
        "end_token": Optional(Integer(0, output_size - 1)).check(
            "end_token", end_token
        ),
        "seed": Seed().check("seed", seed),
        "return_logits": Boolean().check("return_logits", return_logits),
        "jit_compile": Boolean().check("jit_compile", jit_compile),
    }


def _place_tokens(
    model: Transformer, inputs: dict[str, Any], max_new_tokens: int
) -> State:
    """Finds where prompts and new tokens stand.

    Args:
        model: `TransformerDecoder`.
        inputs: Dict of its checked inputs.
        max_new_tokens: int.

    Returns:
        Dict of the constants `"positions"`, `"mask"`, `"length"` and `"last"`
        of a `_Generator`.

    Raises:
        ValueError: If a prompt has no token, or there are too few positions.
    """
    token_ids = inputs["token_ids"]
    batch_size, prompt_tokens = token_ids.shape
    if batch_size == 0:
        raise ValueError(
            f"{model.input_name('token_ids')} must have at least one prompt; "
            f"got shape {tuple(token_ids.shape)}."
        )
    if prompt_tokens == 0:
        raise ValueError(
            f"{model.input_name('token_ids')} must have at least one token, "
            "from which generation starts; got none."
        )
    mask = model.padding_mask(inputs)
    in_cache = None
    last = ops.full((batch_size,), prompt_tokens - 1, dtype="int32")
    length = prompt_tokens + max_new_tokens
    if mask is not None:
        _check_prompts(model, mask)
        last = prompt_tokens - 1 - ops.argmax(ops.flip(mask, axis=1), axis=1)
        new = ops.ones((batch_size, max_new_tokens), dtype="bool")
        in_cache = ops.concatenate([mask, new], axis=1)
        length = ops.sum(_cast_to_int32(in_cache), axis=-1)
    reference_length = inputs.get("reference_length")
    positions = inputs.get("positions")
    if positions is None:
        padded = ops.pad(
            token_ids, [[0, 0], [0, max_new_tokens]], constant_values=NEW
        )
        positions = model.sample_positions(
            {
                "token_ids": padded,
                "padding_mask": in_cache,
                "reference_length": reference_length,
            },
            training=False,
        )
    positions = keras.tree.map_structure(ops.convert_to_tensor, positions)
    for of_layer in model.by_layer(positions):
        model.encoding.check_positions(of_layer)
    return {
        "positions": model.by_layer(positions),
        "mask": in_cache,
        "length": length if reference_length is None else reference_length,
        "last": _cast_to_int32(last),
    }


def _check_prompts(model: Transformer, mask: Tensor) -> None:
    tokens = ops.convert_to_numpy(ops.sum(_cast_to_int32(mask), axis=1))
    if tokens.min() == 0:
        raise ValueError(
            f"{model.input_name('lengths')} or "
            f"{model.input_name('padding_mask')} leave prompt "
            f"{int(tokens.argmin())} without a token: generation needs at "
            "least one token to start from."
        )


def _divide(logits: Tensor, temperature: Tensor) -> Tensor:
    """Divides logits `(B, V)`, less their maximum, by a temperature."""
    # A quotient may then overflow to the probability 0, but never to NaN.
    most = ops.max(logits, axis=-1, keepdims=True)
    return (logits - most) / temperature


def _sample_tokens(
    logits: Tensor, uniforms: Tensor, top_k: int | None, top_p: Tensor | None
) -> Tensor:
    """Samples tokens by inverting the cumulative distribution.

    Args:
        logits: float32 `(B, V)`.
        uniforms: float32 `(B,)`, in `[0, 1)`.
        top_k: int or `None`. Number of most likely tokens to sample from.
        top_p: float or `None`. Probability of the most likely tokens to
            sample from.

    Returns:
        int32 `(B,)`.
    """
    if top_k is not None:
        least = ops.top_k(logits, top_k)[0][:, -1:]
        logits = ops.where(logits < least, -1e30, logits)
    if top_p is not None:
        ordered = ops.flip(ops.sort(logits, axis=-1), axis=-1)
        shares = ops.softmax(ordered, axis=-1)
        before = ops.cumsum(shares, axis=-1) - shares
        kept = ops.where(before < top_p, ordered, np.inf)
        least = ops.min(kept, axis=-1, keepdims=True)
        logits = ops.where(logits < least, -1e30, logits)
    summed = ops.cumsum(ops.softmax(logits, axis=-1), axis=-1)
    # Slightly below the total, so that rounding never selects a token of
    # probability zero.
    goals = ops.expand_dims(uniforms * (1 - 1e-6), -1) * summed[:, -1:]
    return ops.sum(_cast_to_int32(summed <= goals), axis=-1)


def _write_entries(rows: Tensor, entries: Tensor, step: Tensor) -> Tensor:
    """Returns `rows` `(B, N, ...)` with `entries` `(B, ...)` at one step."""
    start = (0, step) + (0,) * (len(rows.shape) - 2)
    return ops.slice_update(rows, start, ops.expand_dims(entries, 1))


def _cast_to_int32(value: TensorLike) -> Tensor:
    return ops.cast(ops.convert_to_tensor(value), "int32")
