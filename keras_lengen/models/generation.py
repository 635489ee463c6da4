"""Autoregressive generation with a cache of keys and values."""

from collections.abc import Iterator
from typing import Any, NamedTuple, Unpack, cast

import keras
import numpy as np
from keras import ops

from keras_lengen.checks.arguments import Integer
from keras_lengen.layers.positions.token_positions import NEW
from keras_lengen.models.base import Transformer, convert_numbers
from keras_lengen.models.beam_search import BeamSearch
from keras_lengen.models.generator import Generator, State, cast_to_int32
from keras_lengen.models.token_choice import (
    RANDOM_NUMBERS,
    ChoiceOptions,
    Options,
    check_options,
    find_seen,
)
from keras_lengen.types import Array, Positions, Tensor


def generate(
    model: Transformer,
    inputs: Any,
    max_new_tokens: int,
    **options: Unpack[ChoiceOptions],
) -> Array | tuple[Array, Array]:
    """Generates tokens; see `TransformerDecoder.generate`."""
    run = _prepare(model, inputs, max_new_tokens, options)
    state = run.finish()
    tokens = ops.convert_to_numpy(state["tokens"])
    if "logits" not in state:
        return tokens
    return tokens, ops.convert_to_numpy(state["logits"])


def stream(
    model: Transformer,
    inputs: Any,
    max_new_tokens: int,
    **options: Unpack[ChoiceOptions],
) -> Iterator[Array]:
    """Returns an iterator over tokens; see `TransformerDecoder.stream`."""
    # Checked here: errors in a generator are only raised when it is read.
    check_streamed(options)
    run = _prepare(model, inputs, max_new_tokens, options)
    return (ops.convert_to_numpy(state["token"]) for state in run.states())


def check_streamed(options: ChoiceOptions) -> None:
    """Raises `ValueError` if tokens cannot be generated one at a time."""
    if options.get("num_beams", 1) != 1:
        raise ValueError(
            f"num_beams={options['num_beams']} finds the first token with the "
            "last one: use `generate`, or leave num_beams out."
        )


class Run(NamedTuple):
    """A run of generation that can begin.

    Attributes:
        generator: `Generator` or `BeamSearch`.
        constants: Dict of its constants.
        token_ids: int32 `(B, T)`, the prompts.
        cache: List of the caches of the blocks, or `None` for empty ones.
    """

    generator: Any
    constants: State
    token_ids: Tensor
    cache: Any = None

    def finish(self) -> State:
        """Generates all tokens and returns the last state."""
        state = self.generator.start(self.constants, self.token_ids, self.cache)
        steps = cast_to_int32(self.generator.max_new_tokens - 1)
        state = self.generator.advance(self.constants, state, steps)
        _check_logits(state)
        return state

    def states(self) -> Iterator[State]:
        """Yields the state after each token."""
        state = self.generator.start(self.constants, self.token_ids, self.cache)
        _check_logits(state)
        yield state
        for _ in range(self.generator.max_new_tokens - 1):
            if np.all(ops.convert_to_numpy(state["ended"])):
                return
            state = self.generator.advance(
                self.constants, state, cast_to_int32(1)
            )
            _check_logits(state)
            yield state


def _check_logits(state: State) -> None:
    """Raises `ValueError` if there was no token to choose in a state."""
    steps = ops.convert_to_numpy(state["invalid"])
    if (steps >= 0).any():
        row = np.where(steps < 0, np.inf, steps).argmin()
        raise ValueError(
            f"the logits of new token {steps[row]} of row {row} are "
            "NaN or infinite, so no token can be chosen: check the weights of "
            "the model and the inputs. Invalid inputs can make them NaN; "
            "jit_compile=False shows which input is invalid."
        )


def _prepare(
    model: Transformer,
    inputs: Any,
    max_new_tokens: int,
    options: ChoiceOptions,
) -> Run:
    """Checks the arguments and prepares a run.

    Raises:
        ValueError: If an argument is invalid.
    """
    checked = check_arguments(model, max_new_tokens, options)
    inputs = model._unpack(convert_numbers(inputs), new_tokens=max_new_tokens)
    token_ids = inputs["token_ids"]
    constants = {
        **_place_tokens(model, inputs, max_new_tokens),
        "memory": model.memory(inputs),
    }
    seen = None
    if checked.repetition_penalty != 1:
        mask = model.padding_mask(inputs)
        seen = find_seen(
            ops.convert_to_numpy(token_ids),
            None if mask is None else ops.convert_to_numpy(mask),
            cast(int, model.output_size),
        )
    return make_run(
        *(model, token_ids, constants, max_new_tokens, checked),
        slots=token_ids.shape[1] + max_new_tokens,
        seen=seen,
    )


def check_arguments(
    model: Transformer, max_new_tokens: int, options: ChoiceOptions
) -> Options:
    """Checks arguments that do not depend on the prompts.

    Raises:
        ValueError: If one is invalid.
    """
    max_new_tokens = Integer(what="the number of tokens to add").check(
        "max_new_tokens", max_new_tokens
    )
    output_size = cast(int, model.output_size)  # Decoders have outputs.
    checked = check_options(output_size, **options)
    if max_new_tokens > 1 and output_size > model.vocabulary_size:
        raise ValueError(
            f"output_size={output_size} is larger than "
            f"vocabulary_size={model.vocabulary_size}: the model cannot read "
            "every token that it may generate. Make a model with equal sizes, "
            "or pass max_new_tokens=1."
        )
    return checked


def make_run(
    model: Transformer,
    token_ids: Tensor,
    constants: State,
    max_new_tokens: int,
    options: Options,
    *,
    slots: int,
    seen: Array | None,
    cache: Any = None,
) -> Run:
    """Makes a run, with the compiled programs that the model keeps.

    Args:
        model: `TransformerDecoder`.
        token_ids: int32 `(B, T)`, the prompts.
        constants: Dict of the constants `"positions"`, here of all layers,
            `"mask"`, `"length"`, `"last"`, `"memory"`, and `"first"` unless
            it is 0.
        max_new_tokens: int. Number of new tokens.
        options: `Options`.
        slots: int. Number of tokens that the cache has room for.
        seen: bool `(B, output_size)`, tokens to penalize, or `None`.
        cache: List of the caches of the blocks, or `None` for empty ones.

    Returns:
        `Run`.
    """
    positions, layers = _find_different(constants["positions"])
    first, prompt_tokens = constants.get("first"), token_ids.shape[1]
    constants = {
        **constants,
        "positions": positions,
        "first": first,
        "next": cast_to_int32((first or 0) + prompt_tokens),
        "end_tokens": cast_to_int32(options.end_tokens),
        "temperature": ops.cast(options.temperature, "float32"),
        # 1 is every token, also those that sums would leave out.
        "top_p": None if options.top_p == 1 else options.top_p,
        "penalty": ops.cast(options.repetition_penalty, "float32"),
        # Larger ones, which have the same effect, may overflow.
        "length_penalty": ops.cast(
            min(options.length_penalty, 1e30), "float32"
        ),
        "seen": seen,
        "numbers": None,
    }
    if options.temperature > 0:
        # One number per token, because the loop draws no random numbers.
        constants["numbers"] = keras.random.randint(
            (token_ids.shape[0], max_new_tokens),
            *(0, RANDOM_NUMBERS),
            seed=options.seed,
        )
    constants = keras.tree.map_structure(
        lambda value: value if value is None else ops.convert_to_tensor(value),
        constants,
    )
    programs = _find_programs(model, slots, layers, max_new_tokens, options)
    return Run(programs, constants, token_ids, cache)


def _find_programs(
    model: Transformer,
    slots: int,
    layers: tuple[int, ...],
    max_new_tokens: int,
    options: Options,
) -> Generator | BeamSearch:
    """Finds the programs for some options, which the model keeps."""
    # Options that programs are compiled for; the others are constants.
    fixed = options._replace(
        temperature=0.0,
        top_p=None,
        repetition_penalty=1.0,
        length_penalty=1.0,
        end_tokens=(),
        seed=None,
    )
    kind = Generator if options.num_beams == 1 else BeamSearch
    return model.programs.get(
        model,
        (kind, slots, layers, max_new_tokens, fixed),
        lambda: kind(
            model,
            slots=slots,
            layers=layers,
            max_new_tokens=max_new_tokens,
            options=fixed,
        ),
    )


def _find_different(
    positions: list[Positions],
) -> tuple[list[Positions], tuple[int, ...]]:
    """Lists different positions, and the index of those of each layer."""
    found = {id(each): each for each in positions}
    keys = [*found]
    return [*found.values()], tuple(keys.index(id(each)) for each in positions)


def _place_tokens(
    model: Transformer, inputs: dict[str, Any], max_new_tokens: int
) -> State:
    """Finds where prompts and new tokens stand.

    Args:
        model: `TransformerDecoder`.
        inputs: Dict of its checked inputs.
        max_new_tokens: int.

    Returns:
        Dict of the constants `"positions"`, of all layers, `"mask"`,
        `"length"` and `"last"` of a `Generator`.

    Raises:
        ValueError: If a prompt has no token, or there are too few positions.
    """
    token_ids = inputs["token_ids"]
    mask = model.padding_mask(inputs)
    last = find_last(model, token_ids, mask)
    batch_size, prompt_tokens = token_ids.shape
    in_cache, length = None, prompt_tokens + max_new_tokens
    if mask is not None:
        new = ops.ones((batch_size, max_new_tokens), dtype="bool")
        in_cache = ops.concatenate([mask, new], axis=1)
        length = ops.sum(cast_to_int32(in_cache), axis=-1)
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
    positions = model.by_layer(positions)
    for encoding, of_layer in zip(
        model.list_encodings(), positions, strict=True
    ):
        encoding.check_positions(of_layer)
    return {
        "positions": positions,
        "mask": in_cache,
        "length": length if reference_length is None else reference_length,
        "last": last,
    }


def find_last(
    model: Transformer, token_ids: Tensor, mask: Tensor | None
) -> Tensor:
    """Finds the index of the last real token of each prompt, int32 `(B,)`.

    Raises:
        ValueError: If there is no prompt, or a prompt has no token.
    """
    batch_size, prompt_tokens = token_ids.shape
    name = model.input_name("token_ids")
    if batch_size == 0:
        raise ValueError(
            f"{name} must have at least one prompt; got shape "
            f"{tuple(token_ids.shape)}."
        )
    if prompt_tokens == 0:
        raise ValueError(
            f"{name} must have at least one token, from which generation "
            "starts; got none."
        )
    if mask is None:
        return ops.full((batch_size,), prompt_tokens - 1, dtype="int32")
    tokens = ops.convert_to_numpy(ops.sum(cast_to_int32(mask), axis=1))
    if tokens.min() == 0:
        raise ValueError(
            f"{model.input_name('lengths')} or "
            f"{model.input_name('padding_mask')} leave prompt "
            f"{int(tokens.argmin())} without a token: generation needs at "
            "least one token to start from."
        )
    last = prompt_tokens - 1 - ops.argmax(ops.flip(mask, axis=1), axis=1)
    return cast_to_int32(last)
