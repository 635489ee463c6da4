"""Generation of tokens, one at a time, with a cache of keys and values."""

import keras
import numpy as np
from keras import ops

from keras_lengen.arguments import check_boolean, check_integer, check_number
from keras_lengen.models.base import numbers_as_tensors
from keras_lengen.models.programs import compiled


def generate(model, inputs, max_new_tokens, *, return_logits=False, **options):
    """New tokens; `TransformerDecoder.generate` says what the arguments are."""
    generator, constants, token_ids = _prepare(
        model, inputs, max_new_tokens, return_logits=return_logits, **options
    )
    state = generator.start(constants, token_ids)
    state = generator.advance(constants, state, _int32(max_new_tokens - 1))
    tokens = ops.convert_to_numpy(state["tokens"])
    if not return_logits:
        return tokens
    return tokens, ops.convert_to_numpy(state["logits"])


def stream(model, inputs, max_new_tokens, **options):
    """An iterator over new tokens `(B,)`, one by one."""
    # Not in the iterator, which would raise no error before it is read.
    generator, constants, token_ids = _prepare(
        model, inputs, max_new_tokens, **options
    )
    return _stream(generator, constants, token_ids, max_new_tokens)


def _stream(generator, constants, token_ids, max_new_tokens):
    state = generator.start(constants, token_ids)
    for step in range(max_new_tokens):
        if step > 0:
            state = generator.advance(constants, state, _int32(1))
        yield ops.convert_to_numpy(state["token"])
        if np.all(ops.convert_to_numpy(state["ended"])):
            return


class _Generator:
    """The two programs that generate tokens: to start, and to go on.

    Args:
        model: `TransformerDecoder`.
        max_new_tokens: Room for new tokens in the cache.
        top_k: Number of likeliest tokens to choose from, or `None`.
        return_logits: Whether logits are kept.
        jit_compile: Whether XLA compiles the programs.

    The constants of a run are a dict of the `"positions"` of every layer, the
    `"mask"` of the padding in the cache, the `"length"` of the whole sequence,
    the index of the `"last"` token of each prompt, what the model attends to
    as `"memory"`, the `"end_token"`, `"temperature"`, `"top_p"`, and random
    `"numbers"` `(B, max_new_tokens)` if tokens are sampled. The state is a
    dict of the `"cache"`, the number of the last `"token"` as `"step"`, all
    `"tokens"`, whether sequences have `"ended"`, and `"logits"` if kept.
    """

    def __init__(
        self, model, *, max_new_tokens, top_k, return_logits, jit_compile
    ):
        self.model = model
        self.max_new_tokens = max_new_tokens
        self.top_k = top_k
        self.return_logits = return_logits
        self.start = compiled(self._start, model.variables, jit_compile)
        self.advance = compiled(self._advance, model.variables, jit_compile)

    def _start(self, constants, token_ids):
        """The state after the first new token."""
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
        features, state["cache"] = self._features(
            constants, memory, token_ids, state["cache"], 0
        )
        features = ops.take_along_axis(
            features, ops.reshape(constants["last"], (-1, 1, 1)), axis=1
        )
        return self._choose(constants, state, features, _int32(0))

    def _advance(self, constants, state, steps):
        """The state some tokens later, or when all sequences have ended."""
        structure, goal = state, state["step"] + steps
        # The cache holds what there is to know of the memory.
        memory = {**constants["memory"]}
        if memory:
            memory["memory"] = None
        slots = state["cache"][0]["attention"][0].shape[1]

        def pack(flat):
            return keras.tree.pack_sequence_as(structure, flat)

        def going(*flat):
            state = pack(flat)
            ended = ops.all(state["ended"])
            return ops.logical_and(state["step"] < goal, ops.logical_not(ended))

        def step(*flat):
            state = pack(flat)
            features, state["cache"] = self._features(
                constants,
                memory,
                ops.expand_dims(state["token"], 1),
                state["cache"],
                slots - self.max_new_tokens + state["step"],
            )
            state = self._choose(constants, state, features, state["step"] + 1)
            return tuple(keras.tree.flatten(state))

        flat = ops.while_loop(going, step, tuple(keras.tree.flatten(state)))
        return pack(flat)

    def _features(self, constants, memory, token_ids, cache, index):
        return self.model.features(
            token_ids,
            constants["positions"],
            cache=cache,
            cache_update_index=index,
            mask=constants["mask"],
            length=constants["length"],
            **memory,
        )

    def _choose(self, constants, state, features, step):
        """The state with the token that follows `features` `(B, 1, M)`."""
        logits = self.model.logits(features)[:, 0]
        if constants["numbers"] is None:
            token = ops.cast(ops.argmax(logits, axis=-1), "int32")
        else:
            token = _sampled(
                logits / constants["temperature"],
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
            "tokens": _written(state["tokens"], token, step),
        }
        if self.return_logits:
            state["logits"] = _written(state["logits"], logits, step)
        return state


def _prepare(
    model,
    inputs,
    max_new_tokens,
    *,
    temperature=0.0,
    top_k=None,
    top_p=None,
    end_token=None,
    seed=None,
    return_logits=False,
    jit_compile=True,
):
    """What runs the model, and the constants and prompts of one run."""
    max_new_tokens = check_integer(
        "max_new_tokens", max_new_tokens, what="the number of tokens to add"
    )
    temperature = check_number("temperature", temperature, least=0)
    top_k = check_integer("top_k", top_k, most=model.output_size, optional=True)
    top_p = check_number("top_p", top_p, above=0, most=1, optional=True)
    end_token = check_integer(
        "end_token",
        end_token,
        least=0,
        most=model.output_size - 1,
        optional=True,
    )
    check_integer("seed", seed, least=0, most=2**31 - 1, optional=True)
    check_boolean("return_logits", return_logits)
    check_boolean("jit_compile", jit_compile)
    if max_new_tokens > 1 and model.output_size > model.vocabulary_size:
        raise ValueError(
            f"the model has {model.output_size} outputs, but reads only "
            f"{model.vocabulary_size} token ids: what it returns cannot be its "
            "next input."
        )
    inputs, _ = model._unpack(
        numbers_as_tensors(inputs), new_tokens=max_new_tokens
    )
    token_ids = _int32(inputs["token_ids"])
    batch_size, prompt_tokens = token_ids.shape
    if prompt_tokens == 0:
        raise ValueError(
            f"{model.input_name('token_ids')} must have at least one token, "
            "which generation starts from; got none."
        )
    mask = model.padding_mask(inputs)
    in_cache = last = None
    if mask is None:
        last = ops.full((batch_size,), prompt_tokens - 1, dtype="int32")
        length = prompt_tokens + max_new_tokens
    else:
        mask = ops.broadcast_to(ops.cast(mask, "bool"), token_ids.shape)
        _check_prompts(model, mask)
        last = prompt_tokens - 1 - ops.argmax(ops.flip(mask, axis=1), axis=1)
        new = ops.ones((batch_size, max_new_tokens), dtype="bool")
        in_cache = ops.concatenate([mask, new], axis=1)
        length = ops.sum(_int32(in_cache), axis=-1)
    reference_length = inputs.get("reference_length")
    positions = inputs.get("positions")
    if positions is None:
        whole = ops.pad(token_ids, [[0, 0], [0, max_new_tokens]])
        positions = model.sample_positions(
            {
                "token_ids": whole,
                "padding_mask": in_cache,
                "reference_length": reference_length,
            },
            training=False,
        )
    positions = keras.tree.map_structure(ops.convert_to_tensor, positions)
    for of_layer in model.by_layer(positions):
        model.encoding.check_positions(of_layer)
    constants = {
        "positions": model.by_layer(positions),
        "mask": in_cache,
        "length": length if reference_length is None else reference_length,
        "last": _int32(last),
        "memory": model.memory(inputs),
        "end_token": _int32(-1 if end_token is None else end_token),
        "temperature": ops.cast(temperature, "float32"),
        "top_p": top_p,
        "numbers": None,
    }
    if temperature > 0:
        # One number per token: the loop itself draws nothing.
        constants["numbers"] = keras.random.uniform(
            (batch_size, max_new_tokens), dtype="float32", seed=seed
        )
    constants = keras.tree.map_structure(
        lambda value: value if value is None else ops.convert_to_tensor(value),
        constants,
    )
    options = {
        "max_new_tokens": max_new_tokens,
        "top_k": top_k,
        "return_logits": return_logits,
        "jit_compile": jit_compile,
    }
    generator = model.programs.get(
        model, tuple(options.values()), lambda: _Generator(model, **options)
    )
    return generator, constants, token_ids


def _check_prompts(model, mask):
    tokens = ops.convert_to_numpy(ops.sum(_int32(mask), axis=1))
    if tokens.min() == 0:
        raise ValueError(
            f"{model.input_name('lengths')} or "
            f"{model.input_name('padding_mask')} leave prompt "
            f"{int(tokens.argmin())} without a token: generation starts from "
            "at least one."
        )


def _sampled(logits, uniforms, top_k, top_p):
    """Tokens `(B,)` of logits `(B, V)`, chosen by `uniforms` `(B,)`."""
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
    # Less than all, for no rounding to choose a token without probability.
    goals = ops.expand_dims(uniforms * (1 - 1e-6), -1) * summed[:, -1:]
    return ops.sum(_int32(summed <= goals), axis=-1)


def _written(rows, entries, step):
    """`rows` `(B, N, ...)` with the entries `(B, ...)` of one step."""
    start = (0, step) + (0,) * (len(rows.shape) - 2)
    return ops.slice_update(rows, start, ops.expand_dims(entries, 1))


def _int32(value):
    return ops.cast(ops.convert_to_tensor(value), "int32")
