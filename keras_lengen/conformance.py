"""Check of the properties that every encoding and sampler must have."""

import pathlib
import tempfile
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_lengen.checks.arguments import described
from keras_lengen.layers.encodings.base import (
    AttentionSpec,
    PositionalEncoding,
    pass_on,
)
from keras_lengen.layers.positions.base import PositionSampler
from keras_lengen.models.decoder import TransformerDecoder
from keras_lengen.types import Array, Tensor

BATCH, TOKENS, HEADS, WIDTH = 2, 6, 2, 8
POSITIONS = np.array([0, 3, 4, 10, 11, 900], "int32")
IDS = np.array([[3, 1, 4, 1, 5, 2], [2, 6, 5, 3, 5, 0]], "int32")


def check_conformance(layer: PositionalEncoding | PositionSampler) -> None:
    """Checks the properties that an encoding or a sampler must have.

    An encoding can be made again from its configuration. Its stage keeps shapes
    and dtypes, treats examples and queries independently, returns the same
    result with and without `prepare`, and is defined at fractional, negative
    and shifted positions as its attributes state. A model with the encoding
    computes the same result when it is compiled and after it is saved, and
    distinguishes positions 1000 and 1001 in half precision. A sampler can be
    made again from its configuration, returns the right shapes and dtypes, and
    keeps the positions of real tokens in padded sequences.

    Args:
        layer: `PositionalEncoding` or `PositionSampler` that takes integer
            positions from 0 to 1001, or sequences of 6 tokens.

    Raises:
        ValueError: If the layer is neither.
        AssertionError: If a property is violated; the message describes it.

    Example:

    >>> from keras_lengen.conformance import check_conformance
    >>> from keras_lengen.layers import RoPE, ShiftedPositions
    >>> check_conformance(RoPE(sampler=ShiftedPositions(max_shift=9)))
    """
    checks: tuple[Callable[[Any], None], ...]
    if isinstance(layer, PositionSampler):
        checks = (_check_config, _check_positions, _check_padding)
    elif isinstance(layer, PositionalEncoding):
        checks = (_check_config, _check_stage, _check_numbers, _check_model)
        if layer.takes_pairs:
            checks = (_check_config,)
    else:
        raise ValueError(
            "layer must be a PositionalEncoding or a PositionSampler; got "
            f"{described(layer)}."
        )
    for check in checks:
        check(layer)


def _require(condition: Any, layer: Any, promise: str) -> None:
    if not condition:
        raise AssertionError(f"{type(layer).__name__} {promise}.")


def _check_config(layer: Any) -> None:
    copy = _copy(layer)
    _require(
        type(copy) is type(layer) and copy.get_config() == layer.get_config(),
        layer,
        "must be made again from its configuration: return all arguments from "
        "`get_config`",
    )


def _copy(layer: Any) -> Any:
    try:
        config = keras.saving.serialize_keras_object(layer)
        return keras.saving.deserialize_keras_object(config)
    except (TypeError, ValueError) as error:
        raise AssertionError(
            f"{type(layer).__name__} cannot be made from its configuration: "
            "decorate it with keras.saving.register_keras_serializable, and "
            "return the arguments of its constructor from `get_config` "
            f"({error})"
        ) from error


def _make_inputs(encoding: PositionalEncoding) -> list[Tensor]:
    """Makes queries and keys, or embeddings twice, and builds the encoding."""
    generator = np.random.default_rng(0)
    shape: tuple[int, ...] = (BATCH, TOKENS, HEADS, WIDTH)
    if encoding.stage == "embeddings":
        shape = (BATCH, TOKENS, HEADS * WIDTH)
    encoding.build(
        *([shape] if encoding.stage == "embeddings" else [shape, shape])
    )
    return [
        ops.convert_to_tensor(generator.normal(size=shape).astype("float32"))
        for _ in range(2)
    ]


def _check_stage(encoding: PositionalEncoding) -> None:
    copy, positions = _copy(encoding), POSITIONS
    if copy.stage is None:
        return
    inputs = _make_inputs(copy)
    whole = _apply_stage(copy, inputs, positions, positions)
    _require(
        all(np.isfinite(each).all() for each in whole.values()),
        encoding,
        "must give finite numbers",
    )
    prepared = _apply_stage(copy, inputs, positions, positions, prepare=True)
    _require(
        _are_near(whole, prepared),
        encoding,
        "must give the same with what `prepare` returned",
    )
    each = np.stack([positions, positions[::-1]])
    if not (copy.needs_order or copy.counts_tokens):
        rows = _apply_stage(copy, inputs, each, each)
        alone = _apply_stage(copy, inputs, each[1], each[1])
        _require(
            _are_near(_take(whole, 0), _take(rows, 0))
            and _are_near(_take(alone, 1), _take(rows, 1)),
            encoding,
            "must treat positions (B, T) as those of each example",
        )
    if not (
        copy.stage == "embeddings" or copy.uses_length or copy.reads_inputs
    ):
        query, key = inputs
        last = _apply_stage(
            copy, [query[:, -1:], key], positions[-1:], positions
        )
        axis = 2 if copy.stage == "bias" else 1
        _require(
            np.allclose(
                np.take(whole["query"], [-1], axis=axis),
                last["query"],
                atol=1e-5,
            ),
            encoding,
            "must treat every query alone, as generation needs it",
        )


def _check_numbers(encoding: PositionalEncoding) -> None:
    """Checks at which numbers the encoding is defined, and which are alike."""
    copy = _copy(encoding)
    if copy.stage is None:
        return
    inputs = _make_inputs(copy)
    for positions, what, attribute in (
        (POSITIONS + np.float32(0.5), "fractions", "takes_fractions"),
        (POSITIONS - 9, "negative positions", "takes_negative"),
    ):
        _require(
            _is_defined(copy, inputs, positions)
            or not getattr(copy, attribute),
            encoding,
            f"is not defined at {what} and must say so: `{attribute} = False`",
        )
    scores, shifted = (
        _find_scores(copy, inputs, positions)
        for positions in (POSITIONS, POSITIONS + 100)
    )
    _require(
        np.allclose(scores, shifted, atol=1e-3) or not copy.shift_invariant,
        encoding,
        "depends on more than differences of positions and must say so: "
        "`shift_invariant = False`",
    )


def _is_defined(
    encoding: PositionalEncoding, inputs: list[Tensor], positions: Array
) -> bool:
    try:
        found = _apply_stage(encoding, inputs, positions, positions)
    except Exception:  # Backends raise errors of their own.
        return False
    return all(np.isfinite(each).all() for each in found.values())


def _find_scores(
    encoding: PositionalEncoding, inputs: list[Tensor], positions: Array
) -> Array:
    """Returns the scores of rotated queries and keys, or a stage's result."""
    found = _apply_stage(encoding, inputs, positions, positions)
    if "key" not in found:
        return found["query"]
    scores = encoding.multiply(
        *map(ops.convert_to_tensor, (*found.values(), positions, positions))
    )
    return ops.convert_to_numpy(scores)


def _apply_stage(
    encoding: PositionalEncoding,
    inputs: list[Tensor],
    positions: Array,
    key_positions: Array,
    *,
    prepare: bool = False,
) -> dict[str, Array]:
    """Computes what a stage returns, by the name of its input."""
    positions, key_positions = map(
        ops.convert_to_tensor, (positions, key_positions)
    )
    if encoding.stage == "embeddings":
        found = encoding.add_to_embeddings(inputs[0], positions)
        return {"query": ops.convert_to_numpy(found)}
    known = {}
    if prepare:
        spec = AttentionSpec.of(inputs[0])
        known = pass_on(encoding.prepare(positions, key_positions, spec))
    query, key = inputs
    if encoding.stage == "bias":
        bias: Tensor = encoding.attention_bias(
            query, key, positions, key_positions, **known
        )
        _require(
            bias is not None
            and keras.backend.standardize_dtype(bias.dtype) == "float32",
            encoding,
            "must return a bias of float32",
        )
        shape = (BATCH, HEADS, inputs[0].shape[1], inputs[1].shape[1])
        return {"query": ops.convert_to_numpy(ops.broadcast_to(bias, shape))}
    query, key = encoding.rotate(query, key, positions, key_positions, **known)
    for given, rotated in zip(inputs, (query, key), strict=True):
        shape = (*given.shape[:-1], encoding.rotations * given.shape[-1])
        _require(
            shape == tuple(rotated.shape) and given.dtype == rotated.dtype,
            encoding,
            "must keep shapes and dtypes of queries and keys, but for "
            "`rotations` times their width",
        )
    return {
        "query": ops.convert_to_numpy(query),
        "key": ops.convert_to_numpy(key),
    }


def _take(found: dict[str, Array], example: int) -> dict[str, Array]:
    return {name: each[example] for name, each in found.items()}


def _are_near(found: dict[str, Array], expected: dict[str, Array]) -> bool:
    return all(
        np.allclose(found[name], each, atol=1e-5, rtol=1e-5)
        for name, each in expected.items()
    )


def _make_model(encoding: PositionalEncoding, **arguments: Any) -> Any:
    return TransformerDecoder(
        vocabulary_size=7,
        num_layers=2,
        num_heads=HEADS,
        model_dim=HEADS * WIDTH,
        encoding=encoding,
        dropout=0,
        **arguments,
    )


def _check_model(encoding: PositionalEncoding) -> None:
    model = _make_model(encoding)
    near = {"token_ids": IDS, "positions": np.array([0, 1, 3, 4, 9, 10])}
    if encoding.sampler.reads_tokens:
        near = {"token_ids": IDS}
    logits = ops.convert_to_numpy(model(near))
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "model.keras")
        model.save(path)
        loaded = keras.saving.load_model(path)
    _require(
        np.array_equal(ops.convert_to_numpy(loaded(near)), logits),
        encoding,
        "must give the same in a model that was saved and loaded",
    )
    model.compile(jit_compile=True)
    _require(
        np.allclose(model.predict_on_batch(near), logits, atol=1e-4),
        encoding,
        "must give the same in a compiled program",
    )
    if encoding.stage is None or encoding.counts_tokens:
        return
    half = _make_model(encoding, dtype="mixed_bfloat16")
    far = np.array([990, 992, 994, 996, 999, 1000])
    outputs = [
        ops.convert_to_numpy(half({"token_ids": IDS, "positions": positions}))
        for positions in (far, far + (far == 1000))
    ]
    _require(
        not np.array_equal(*outputs) or _is_blind(encoding),
        encoding,
        "must tell position 1000 from 1001 in half precision: compute in "
        "float32",
    )


def _is_blind(encoding: PositionalEncoding) -> bool:
    """Whether the encoding treats large distances or neighbours alike."""
    model = _make_model(encoding)
    outputs = [
        ops.convert_to_numpy(
            model({"token_ids": IDS, "positions": np.array([990, *rest])})
        )
        for rest in ([992, 994, 996, 999, 1000], [992, 994, 996, 999, 1001])
    ]
    return np.array_equal(*outputs)


def _check_positions(sampler: PositionSampler) -> None:
    for training in (False, True):
        positions = sampler(IDS, training=training)
        axes = positions if sampler.pairs else (positions,)
        for axis in axes:
            dtype = keras.backend.standardize_dtype(axis.dtype)
            numbers = ops.convert_to_numpy(axis)
            _require(
                tuple(axis.shape) in ((TOKENS,), (BATCH, TOKENS))
                and dtype in ("int32", "float32")
                and np.isfinite(numbers).all(),
                sampler,
                "must return finite positions (T,) or (B, T), int32 or float32",
            )
            _require(
                sampler.negative or (numbers >= 0).all(),
                sampler,
                "returns negative positions and must say so: `negative = True`",
            )
        rising = (np.diff(ops.convert_to_numpy(axes[0]), axis=-1) >= 0).all()
        _require(
            rising or not sampler.keeps_order,
            sampler,
            "does not keep the order of the tokens and must say so: "
            "`keeps_order = False`",
        )


def _check_padding(sampler: PositionSampler) -> None:
    if sampler.draws or sampler.pairs:
        return
    padded = sampler(IDS, lengths=np.array([4, 6]), training=False)
    short = ops.convert_to_numpy(sampler(IDS[:1, :4], training=False))
    padded = np.broadcast_to(ops.convert_to_numpy(padded), (BATCH, TOKENS))
    _require(
        np.allclose(padded[:1, :4], np.broadcast_to(short, (1, 4))),
        sampler,
        "must give a padded sequence the positions of the sequence alone",
    )
