"""Properties of positional encodings."""

from typing import Any

import keras
import numpy as np
from keras import ops

from keras_lengen.conformance.requirements import (
    Check,
    check_arguments,
    check_config,
    rebuild,
    require,
    require_truth,
    restart,
    save_and_load,
)
from keras_lengen.layers.encodings.base import (
    AttentionSpec,
    PositionalEncoding,
    pass_on,
)
from keras_lengen.layers.encodings.distances import HIDDEN
from keras_lengen.types import Array, Tensor

BATCH, TOKENS, HEADS, WIDTH = 2, 6, 2, 8
POSITIONS = np.array([1, 4, 5, 11, 30, 47], "int32")
FAR = 20_000
"""Positions larger than those of any training."""

ALL = slice(None)


def make_inputs(
    stage: str | None, tokens: int = TOKENS, batch_size: int = BATCH
) -> list[Array]:
    """Makes embeddings, or queries and keys, float32.

    Args:
        stage: `stage` of an encoding.
        tokens: int, number of tokens.
        batch_size: int, number of examples.

    Returns:
        One array `(B, T, M)`, or two arrays `(B, T, H, D)`.
    """
    generator = np.random.default_rng(0)
    shapes: list[Any] = [(batch_size, tokens, HEADS, WIDTH)] * 2
    if stage == "embeddings":
        shapes = [(batch_size, tokens, HEADS * WIDTH)]
    return [generator.normal(size=shape).astype("float32") for shape in shapes]


def encode(
    encoding: PositionalEncoding,
    inputs: Any,
    positions: Any,
    *,
    queries: slice = ALL,
    keys: slice = ALL,
    causal: bool = False,
    prepare: bool = False,
) -> Tensor:
    """Computes encoded embeddings, or the scores of an attention.

    Calls the stages as models do.

    Args:
        encoding: A built encoding.
        inputs: What `make_inputs` returns.
        positions: `(T,)` or `(B, T)`; rows and columns alike if the encoding
            takes pairs.
        queries: slice, the tokens to encode, or that attend.
        keys: slice, the tokens that are attended to.
        causal: bool, whether later keys are going to be masked.
        prepare: bool, whether `prepare` is called once for all layers.

    Returns:
        `(B, T, M)`, or float32 `(B, H, T, S)`.
    """
    query = ops.convert_to_tensor(inputs[0])[:, queries]
    positions = ops.convert_to_tensor(positions)
    places = key_places = _pair(encoding, positions[..., queries])
    if encoding.stage == "embeddings":
        return encoding.add_to_embeddings(query, places)
    key = ops.convert_to_tensor(inputs[1])[:, keys]
    if keys != queries:
        key_places = _pair(encoding, positions[..., keys])
    known, length = {}, {}
    if encoding.uses_length:
        length = {"length": TOKENS}
    if prepare:
        spec = AttentionSpec.of(query, causal=causal, **length)
        known = pass_on(encoding.prepare(places, key_places, spec))
    if encoding.reads_inputs:
        # The features of the tokens are the queries of all heads.
        features = ops.reshape(inputs[0], (*inputs[0].shape[:2], -1))
        steps = encoding.angle_increments(features)[:, keys]
        indices = np.arange(inputs[0].shape[1], dtype="int32")[queries]
        query, key = encoding.rotate_by(query, key, steps, indices)
    elif encoding.stage == "rotation":
        query, key = encoding.rotate(
            query, key, places, key_places, **length, **known
        )
    scores = encoding.multiply(
        ops.cast(query, "float32"), ops.cast(key, "float32"), places, key_places
    )
    scores = scores * WIDTH**-0.5
    if encoding.stage != "bias":
        return scores
    return scores + encoding.attention_bias(
        query, key, places, key_places, causal=causal, **known
    )


def _pair(encoding: PositionalEncoding, positions: Any) -> Any:
    return (positions, positions) if encoding.position_axes == 2 else positions


class _Trial:
    """A copy of an encoding with weights, and inputs for it."""

    def __init__(self, original: PositionalEncoding, **changes: Any) -> None:
        self.original = original
        self.encoding = rebuild(original)
        if changes:
            config = {**original.get_config(), **changes}
            self.encoding = type(original).from_config(config)
        self.stage = self.encoding.stage
        self.inputs: Any = make_inputs(self.stage)
        self.encoding.build(*(each.shape for each in self.inputs))
        generator = np.random.default_rng(1)
        for weight in self.encoding.trainable_weights:
            # No table of zeros; and no number leaves the range of a weight.
            weight.assign(weight + generator.uniform(0, 0.1, weight.shape))

    def require(self, condition: Any, promise: str) -> None:
        require(self.original, condition, promise)

    def encode(self, positions: Any, inputs: Any = None, **how: Any) -> Array:
        """Computes `encode` as an array."""
        inputs = self.inputs if inputs is None else inputs
        found = encode(self.encoding, inputs, positions, **how)
        return ops.convert_to_numpy(found)

    def call(self, **arguments: Any) -> list[Array]:
        """Calls the encoding as a layer, from its first draw on."""
        restart(self.encoding)
        return _as_arrays(self.encoding(*self.inputs, **arguments))

    def is_defined(self, positions: Array) -> bool:
        try:
            return bool(np.isfinite(self.encode(positions)).all())
        except Exception:  # Backends raise errors of their own.
            return False

    def pick(self, result: Array, tokens: Any) -> Array:
        """Returns the part of what `encode` returns of some tokens only."""
        if self.stage == "embeddings":
            return result[:, tokens]
        return result[:, :, tokens][..., tokens]


def _as_arrays(tensors: Any) -> list[Array]:
    return [
        ops.convert_to_numpy(ops.cast(each, "float32"))
        for each in keras.tree.flatten(tensors)
    ]


def _are_near(found: Any, expected: Any, atol: float = 1e-5) -> bool:
    return all(
        np.shape(one) == np.shape(other)
        and np.allclose(one, other, rtol=1e-5, atol=atol)
        for one, other in zip(found, expected, strict=True)
    )


def _check_built_config(encoding: PositionalEncoding) -> None:
    check_config(_Trial(encoding).encoding)


def _check_tokens(encoding: PositionalEncoding) -> None:
    """Checks what the encoding of a token depends on."""
    trial = _Trial(encoding)
    equal = [np.repeat(each[:1], BATCH, axis=0) for each in trial.inputs]
    short = [each[:, :4] for each in trial.inputs]
    own = np.stack([POSITIONS, 3 * POSITIONS])
    for causal in (False, True):
        whole = trial.encode(POSITIONS, causal=causal)
        trial.require(np.isfinite(whole).all(), "must give finite numbers")
        prepared = trial.encode(POSITIONS, causal=causal, prepare=True)
        trial.require(
            _are_near(whole, prepared),
            "must give the same with what `prepare` returned",
        )
        earlier = trial.encode(POSITIONS[:4], short, causal=causal)
        trial.require(
            _are_near(earlier, trial.pick(whole, slice(4))),
            "must encode earlier tokens whatever tokens follow",
        )
        rows = trial.encode(own, equal, causal=causal)
        alone = [trial.encode(row, equal, causal=causal)[0] for row in own]
        trial.require(
            _are_near(rows, alone),
            "must treat positions (B, T) as those of each example",
        )
    for token in range(TOKENS):
        this, before = slice(token, token + 1), slice(token + 1)
        part = {"queries": this, "keys": before, "prepare": True}
        step = trial.encode(POSITIONS, causal=True, **part)
        embedded = trial.stage == "embeddings"
        trial.require(
            _are_near(
                step, whole[:, this] if embedded else whole[:, :, this, before]
            ),
            "must treat every query alone, as generation needs it",
        )


def _check_numbers(encoding: PositionalEncoding) -> None:
    """Checks what the class attributes say about positions."""
    trial = _Trial(encoding)
    near = trial.encode(POSITIONS)
    past = max(FAR, 2 * getattr(encoding, "max_position", 0))
    for attribute, positions, what in (
        ("takes_fractions", POSITIONS + np.float32(0.5), "fractions"),
        ("takes_negative", POSITIONS - 9, "negative positions"),
        ("defined_past_training", POSITIONS + past, "large positions"),
    ):
        defined = trial.is_defined(positions)
        require_truth(encoding, attribute, defined, f"is defined at {what}")
    moved = trial.encode(POSITIONS + 953)
    invariant = _are_near(moved, near, atol=1e-3)
    what = "depends on differences of positions only"
    require_truth(encoding, "shift_invariant", invariant, what)
    for top in (2**18, 2**22, 2**24):
        far = POSITIONS + (top - POSITIONS[-1])
        if invariant and trial.is_defined(far):
            trial.require(
                _are_near(trial.encode(far), near, atol=1e-4),
                f"must be exact at positions up to {top}: compute angles and "
                "distances in float32",
            )
    used = not _are_near(trial.encode(3 * POSITIONS), near, atol=1e-3)
    expected = trial.stage is not None and not encoding.uses_token_index
    promise = "must use positions" if expected else "must not use positions"
    trial.require(used == expected, promise)
    for top in (1001, 100_000):
        last = top - np.array([9, 7, 5, 3, 2, 0], "int32")
        if used and trial.is_defined(last):
            found, other = map(trial.encode, (last, last - (last == top)))
            trial.require(
                not _are_near(found, other, atol=1e-3),
                f"must tell position {top} from {top - 1}",
            )
    equal = [np.repeat(x[:, :1], TOKENS, axis=1) for x in trial.inputs]
    scores = trial.encode(POSITIONS, equal)
    later, sooner = (
        trial.pick(scores, each) for each in (slice(1, None), slice(-1))
    )
    if used:
        ranks = _are_near(later, sooner, atol=1e-3)
        what = "reads positions by their rank"
        require_truth(encoding, "reads_ranks", ranks, what)
    if not (encoding.uses_token_index or encoding.reads_ranks):
        inputs, tokens = make_inputs(trial.stage, 12), np.array([1, 4, 6, 11])
        ordinal = trial.encode(np.arange(12, dtype="int32"), inputs)
        some = [each[:, tokens] for each in inputs]
        trial.require(
            _are_near(trial.encode(tokens, some), trial.pick(ordinal, tokens)),
            "must give tokens at some positions what they get among all",
        )
    if trial.stage == "bias":
        trial.require(
            (scores > HIDDEN / 2).all() or encoding.masks_keys,
            "hides keys and must say so: `masks_keys = True`",
        )


def _check_precision(encoding: PositionalEncoding) -> None:
    trial = _Trial(encoding)
    half = _Trial(encoding, dtype="mixed_bfloat16")
    half.encoding.set_weights(trial.encoding.get_weights())
    halves = [ops.cast(each, "bfloat16") for each in trial.inputs]
    trial.inputs = half.inputs = halves
    top = FAR if encoding.defined_past_training else 1001
    places = _pair(encoding, np.linspace(0, top, TOKENS).astype("int32"))
    wanted = "float32" if trial.stage == "bias" else "bfloat16"
    outputs = half.encoding(*halves, positions=places)
    trial.require(
        all(
            keras.backend.standardize_dtype(each.dtype) == wanted
            for each in keras.tree.flatten(outputs)
        ),
        f"must return {wanted} with the policy mixed_bfloat16",
    )
    for one, other in zip(
        half.call(positions=places), trial.call(positions=places), strict=True
    ):
        trial.require(
            np.allclose(one, other, rtol=0.02, atol=0.02),
            "must be as exact in half precision as its inputs: compute in "
            "float32 and cast the result",
        )
    inside = _Caller(half.encoding, dtype="mixed_bfloat16")
    trial.require(
        np.array_equal(
            _as_arrays(inside([*halves, POSITIONS])),
            _as_arrays(encode(half.encoding, halves, POSITIONS)),
        ),
        "must read its weights in float32 inside of layers of half precision: "
        "make them with `autocast=False`",
    )


def _check_layer(encoding: PositionalEncoding) -> None:
    """Checks the encoding called as a layer."""
    trial, sampler = _Trial(encoding), encoding.sampler
    places = _pair(encoding, ops.convert_to_tensor(POSITIONS))
    inputs = [ops.convert_to_tensor(each) for each in trial.inputs]
    shapes = [each.shape for each in trial.inputs]
    if trial.stage == "embeddings":
        stage = trial.encoding.add_to_embeddings(*inputs, places)
    elif trial.stage == "bias":
        stage = trial.encoding.attention_bias(*inputs, places, places)
        # The batch and the heads may be 1, if they share the bias.
        shapes = [(*stage.shape[:2], TOKENS, TOKENS)]
    else:
        stage = trial.encoding.rotate(*inputs, places, places)
        width = trial.encoding.num_rotations * WIDTH
        shapes = [(BATCH, TOKENS, HEADS, width)] * 2
    outputs = trial.call(positions=places)
    trial.require(
        _are_near(_as_arrays(stage), outputs),
        "must apply its stage when it is called as a layer",
    )
    trial.require(
        [each.shape for each in outputs] == shapes,
        f"must return the shapes {shapes}",
    )
    if sampler.is_random or sampler.stretches or sampler.reads_tokens:
        trial.require(
            not _runs(lambda: trial.call(start_index=5)),
            "must refuse a start index: its sampler needs the whole sequence",
        )
    elif encoding.position_axes == 1:
        numbers = np.arange(5, 5 + TOKENS, dtype="int32")
        trial.require(
            _are_near(trial.call(start_index=5), trial.call(positions=numbers)),
            "must number tokens from a start index on",
        )
    longest = getattr(encoding, "max_position", None)
    trial.require(
        longest is None
        or (
            _runs(lambda: trial.encoding.check_length(longest))
            and not _runs(lambda: trial.encoding.check_length(longest + 1))
        ),
        "must refuse sequences longer than `max_position`, and no others",
    )
    if (
        trial.stage != "embeddings"
        or sampler.reads_tokens
        or sampler.position_axes == 2
    ):
        return
    mask = np.array([[0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0]], "bool")
    (padded,), (embeddings,) = trial.call(mask=mask), trial.inputs
    for example, real in enumerate(mask):
        trial.inputs = [embeddings[:, real]]
        trial.require(
            _are_near(padded[example, real], trial.call()[0][example]),
            "must not number tokens that are masked",
        )


def _runs(function: Any) -> bool:
    try:
        function()
    except ValueError:
        return False
    return True


def _check_functional_model(encoding: PositionalEncoding) -> None:
    trial = _Trial(encoding)
    batch = np.tile(POSITIONS, (BATCH, 1))
    expected = trial.call(positions=_pair(encoding, batch))
    for tokens in (TOKENS, None):
        symbols = [
            keras.Input((tokens, *each.shape[2:])) for each in trial.inputs
        ]
        places = keras.Input((tokens,), dtype="int32")
        found = [trial.encoding(*symbols, positions=_pair(encoding, places))]
        if encoding.sampler.position_axes == encoding.position_axes:
            found.append(trial.encoding(*symbols))
        model = keras.Model([*symbols, places], keras.tree.flatten(found))
        outputs = _as_arrays(model([*trial.inputs, batch]))
        trial.require(
            _are_near(outputs[: len(expected)], expected),
            "must give the same in a functional model",
        )
        trial.require(
            all(
                output.ndim == len(symbol.shape)
                and all(map(_fits, output.shape, symbol.shape))
                for output, symbol in zip(outputs, model.outputs, strict=True)
            ),
            "must tell the shapes of its outputs: `compute_output_shape`",
        )
    loaded = save_and_load(model)
    outputs = _as_arrays(loaded([*trial.inputs, batch]))
    trial.require(
        all(map(np.array_equal, outputs, expected)),
        "must give the same in a model that was saved and loaded",
    )


def _fits(size: int, known: int | None) -> bool:
    # A bias that heads share has one entry for all of them.
    return size == 1 or known in (None, size)


class _Caller(keras.Model):
    """Calls the stages from a model with a policy of its own."""

    def __init__(self, encoding: PositionalEncoding, **kwargs: Any) -> None:
        super().__init__(name="caller", **kwargs)
        self.encoding = encoding
        self.factors = self.add_weight((WIDTH,), initializer="ones")

    def call(self, inputs: Any) -> Tensor:
        *features, positions = inputs
        factors = ops.tile(self.factors, features[0].shape[-1] // WIDTH)
        features = [each * factors for each in features]
        return encode(self.encoding, features, positions)


def _check_program(encoding: PositionalEncoding) -> None:
    """Checks one step of training, eager and compiled."""
    trial = _Trial(encoding)
    model = _Caller(trial.encoding)
    shape, start = trial.encode(POSITIONS).shape, model.get_weights()
    shares = np.random.default_rng(2).normal(size=shape).astype("float32")
    steps = []
    for how in ("run_eagerly", "jit_compile"):
        model.set_weights(start)
        # Its slope magnifies no rounding, however large the result.
        model.compile(
            keras.optimizers.SGD(1.0),
            lambda shares, found: ops.sum(shares * ops.arcsinh(found)),
            **{how: True},
        )
        loss = model.train_on_batch([*trial.inputs, POSITIONS], shares)
        steps.append([loss, *model.get_weights()])
    eager, compiled = steps
    finite = all(np.isfinite(each).all() for each in eager)
    trial.require(finite, "must have finite gradients")
    trial.require(
        _are_near(compiled, eager, atol=1e-4),
        "must give the same in a compiled program",
    )


def checks_of(encoding: PositionalEncoding) -> tuple[Check, ...]:
    """Returns the checks of an encoding."""
    return (
        check_config,
        check_arguments,
        _check_built_config,
        _check_tokens,
        _check_numbers,
        _check_precision,
        _check_layer,
        _check_functional_model,
        _check_program,
    )
