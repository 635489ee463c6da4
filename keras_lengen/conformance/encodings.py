"""Properties of positional encodings."""

import pathlib
import tempfile
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_lengen.conformance.requirements import (
    Check,
    check_config,
    rebuild,
    require,
)
from keras_lengen.layers.encodings.base import (
    AttentionSpec,
    PositionalEncoding,
    pass_on,
)
from keras_lengen.models.decoder import TransformerDecoder
from keras_lengen.types import Array, Tensor

BATCH, TOKENS, HEADS, WIDTH = 2, 6, 2, 8
POSITIONS = np.array([0, 3, 4, 10, 11, 900], "int32")
IDS = np.array([[3, 1, 4, 1, 5, 2], [2, 6, 5, 3, 5, 0]], "int32")


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
    copy, positions = rebuild(encoding), POSITIONS
    if copy.stage is None:
        return
    inputs = _make_inputs(copy)
    whole = _apply_stage(copy, inputs, positions, positions)
    require(
        all(np.isfinite(each).all() for each in whole.values()),
        encoding,
        "must give finite numbers",
    )
    prepared = _apply_stage(copy, inputs, positions, positions, prepare=True)
    require(
        _are_near(whole, prepared),
        encoding,
        "must give the same with what `prepare` returned",
    )
    each = np.stack([positions, positions[::-1]])
    if not (copy.needs_order or copy.counts_tokens):
        rows = _apply_stage(copy, inputs, each, each)
        alone = _apply_stage(copy, inputs, each[1], each[1])
        require(
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
        require(
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
    copy = rebuild(encoding)
    if copy.stage is None:
        return
    inputs = _make_inputs(copy)
    for positions, what, attribute in (
        (POSITIONS + np.float32(0.5), "fractions", "takes_fractions"),
        (POSITIONS - 9, "negative positions", "takes_negative"),
    ):
        require(
            _is_defined(copy, inputs, positions)
            or not getattr(copy, attribute),
            encoding,
            f"is not defined at {what} and must say so: `{attribute} = False`",
        )
    scores, shifted = (
        _find_scores(copy, inputs, positions)
        for positions in (POSITIONS, POSITIONS + 100)
    )
    require(
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
        require(
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
        require(
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
    require(
        np.array_equal(ops.convert_to_numpy(loaded(near)), logits),
        encoding,
        "must give the same in a model that was saved and loaded",
    )
    model.compile(jit_compile=True)
    require(
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
    require(
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


def checks_of(encoding: PositionalEncoding) -> tuple[Check, ...]:
    """Returns the checks of an encoding."""
    if encoding.takes_pairs:
        return (check_config,)
    return (check_config, _check_stage, _check_numbers, _check_model)
