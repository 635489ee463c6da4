"""Properties of models."""

import warnings
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_lengen.conformance.requirements import (
    Check,
    check_config,
    rebuild,
    require,
    restart,
    save_and_load,
)
from keras_lengen.layers.encodings.base import PositionalEncoding
from keras_lengen.models.base import TokenModel, Transformer
from keras_lengen.types import Array

TOKENS, NEW_TOKENS = 6, 3
LENGTHS = np.array([4, 6], "int32")


def _copy(model: TokenModel, **changes: Any) -> Any:
    """Makes a model with the same weights, which checks may change."""
    copy = rebuild(model)
    if changes:
        copy = type(model).from_config({**model.get_config(), **changes})
    copy.set_weights(model.get_weights())
    return copy


def _list_stacks(model: TokenModel) -> list[Any]:
    """Lists the encoder and the decoder of a model, or the model itself."""
    return [
        each
        for each in model._flatten_layers()
        if isinstance(each, Transformer)
    ]


def _list_encodings(model: TokenModel) -> list[PositionalEncoding]:
    return [
        each for stack in _list_stacks(model) for each in stack.list_encodings()
    ]


def _make_ids(model: TokenModel) -> Array:
    """Makes two rows of tokens that every stack of a model can read."""
    sizes = [stack.vocabulary_size for stack in _list_stacks(model)]
    shape = (len(LENGTHS), TOKENS)
    return np.random.default_rng(0).integers(min(sizes), size=shape)


def _make_inputs(model: TokenModel, ids: Array, **others: Any) -> Any:
    """Makes inputs of a model, alike for source and target."""
    inputs = {"token_ids": ids, **others}
    if model.id_inputs is not None:
        for name in [*inputs]:
            if not name.startswith("target_"):
                target = f"target_{name.removeprefix('token_')}"
                inputs.setdefault(target, inputs[name])
    if getattr(model, "cross_attention", False):
        shape = (len(ids), TOKENS, _list_stacks(model)[0].model_dim)
        memory = np.random.default_rng(1).normal(size=shape)
        inputs["memory"] = memory.astype("float32")
    return inputs


def _compute(model: TokenModel, ids: Array, **others: Any) -> Array:
    """Computes outputs with the same draws in every call."""
    restart(model)
    found = model(_make_inputs(model, ids, **others))
    return ops.convert_to_numpy(ops.cast(found, "float32"))


def _draw(model: TokenModel, ids: Array) -> dict[str, Any]:
    """Draws the positions that a model gives to tokens, by input name."""
    restart(model)
    return {
        f"{stack.input_prefix}positions": stack.sample_positions(
            stack._unpack({"token_ids": ids}), training=False
        )
        for stack in _list_stacks(model)
    }


def _are_near(found: Array, expected: Array) -> bool:
    return np.allclose(found, expected, rtol=1e-4, atol=1e-4)


def _check_padding(model: TokenModel) -> None:
    copy, ids = _copy(model), _make_ids(model)
    expected = np.concatenate(
        [_compute(copy, ids[:, : LENGTHS[0]])[0], _compute(copy, ids)[1]]
    )
    mask = np.arange(TOKENS + 2) < LENGTHS[:, None]
    right = np.where(mask, np.pad(ids, [(0, 0), (0, 2)]), 0)
    for what, padded, others in (
        ("at the end, by lengths", right, {"lengths": LENGTHS}),
        ("at the end, by a mask", right, {"padding_mask": mask}),
        (
            "at the start",
            np.stack(
                [
                    np.roll(row, -length)
                    for row, length in zip(right, LENGTHS, strict=True)
                ]
            ),
            {"padding_mask": mask[:, ::-1]},
        ),
    ):
        real = others.get("padding_mask", mask)
        require(
            model,
            _are_near(_compute(copy, padded, **others)[real], expected),
            f"must give the same with padding {what}",
        )


def _check_positions(model: TokenModel) -> None:
    copy, ids = _copy(model), _make_ids(model)
    require(
        model,
        _are_near(_compute(copy, ids, **_draw(copy, ids)), _compute(copy, ids)),
        "must give the same with the positions of its samplers as inputs",
    )
    if not _uses_positions(model):
        return
    near, far = np.arange(TOKENS), np.arange(TOKENS) ** 2
    require(
        model,
        not np.array_equal(
            _compute(copy, ids, positions=near),
            _compute(copy, ids, positions=far),
        ),
        "must use the positions among its inputs",
    )


def _uses_positions(model: TokenModel) -> bool:
    encodings = _list_encodings(model)
    return not any(each.position_axes == 2 for each in encodings) and any(
        each.stage is not None and not each.uses_token_index
        for each in encodings
    )


def _check_causality(model: TokenModel) -> None:
    if not _list_stacks(model)[-1].causal:
        return
    copy, ids = _copy(model), _make_ids(model)
    later = np.concatenate([ids[:, :3], ids[:, :2:-1]], axis=1)
    name = "token_ids" if model.id_inputs is None else "target_ids"
    require(
        model,
        _are_near(
            _compute(copy, **{"ids": ids, name: later})[:, :3],
            _compute(copy, ids)[:, :3],
        ),
        "must give outputs that do not depend on later tokens",
    )


def _check_generation(model: TokenModel) -> None:
    stack = _list_stacks(model)[-1]
    if (
        not hasattr(model, "generate")
        or stack.output_size > stack.vocabulary_size
        or any(each.sampler.reads_tokens for each in _list_encodings(model))
    ):
        return
    copy, ids = _copy(model), _make_ids(model)
    restart(copy)
    tokens, logits = copy.generate(
        _make_inputs(copy, ids, lengths=LENGTHS),
        NEW_TOKENS,
        return_logits=True,
        jit_compile=False,
    )
    whole = np.pad(ids, [(0, 0), (0, NEW_TOKENS)])
    steps = LENGTHS[:, None] + np.arange(NEW_TOKENS)
    np.put_along_axis(whole, steps, tokens, axis=1)
    prefix = "" if model.id_inputs is None else "target_"
    texts = {
        "lengths": LENGTHS,
        f"{prefix}ids" if prefix else "token_ids": whole,
        f"{prefix}lengths": LENGTHS + NEW_TOKENS,
    }
    found = _compute(copy, **{"ids": ids, **texts})
    expected = np.take_along_axis(found, steps[..., None] - 1, axis=1)
    require(
        model,
        np.allclose(logits, expected, rtol=1e-3, atol=1e-3),
        "must generate tokens with the logits of a call with all tokens",
    )
    require(
        model,
        np.array_equal(tokens, logits.argmax(axis=-1)),
        "must generate the most likely tokens",
    )


def _check_compiled(model: TokenModel) -> None:
    copy, ids = _copy(model), _make_ids(model)
    # Given, because XLA may draw other random numbers.
    positions = _draw(copy, ids)
    expected = _compute(copy, ids, **positions)
    copy.compile(jit_compile=True)
    found = copy.predict_on_batch(_make_inputs(copy, ids, **positions))
    require(
        model,
        np.allclose(found, expected, rtol=1e-3, atol=1e-3),
        "must give the same in a compiled program",
    )


def _check_saved(model: TokenModel) -> None:
    copy, ids = _copy(model), _make_ids(model)
    loaded = save_and_load(copy)
    require(
        model,
        np.array_equal(_compute(loaded, ids), _compute(copy, ids)),
        "must give the same after it was saved and loaded",
    )


def _check_half_precision(model: TokenModel) -> None:
    if not _uses_positions(model):
        return
    ids = _make_ids(model)
    near = np.array([990, 992, 994, 996, 999, 1000])
    differ = []
    for dtype in ("float32", "mixed_bfloat16"):
        copy = _copy(model, dtype=dtype)
        first, second = (
            _compute(copy, ids, positions=positions)
            for positions in (near, near + (near == 1000))
        )
        differ.append(not np.array_equal(first, second))
    require(
        model,
        differ[1] or not differ[0],
        "must tell position 1000 from 1001 in half precision",
    )


def _check_training(model: TokenModel) -> None:
    copy, ids = _copy(model), _make_ids(model)
    shape = _compute(copy, ids).shape
    copy.compile(keras.optimizers.SGD(0.1), "mse", run_eagerly=True)
    old = [ops.convert_to_numpy(each) for each in copy.trainable_weights]
    targets = np.random.default_rng(2).normal(size=shape)
    with warnings.catch_warnings(action="ignore"):  # Weights not trained.
        loss = copy.train_on_batch(
            _make_inputs(copy, ids), targets.astype("float32")
        )
    require(model, np.isfinite(loss), "must have a finite loss")
    for weight, before in zip(copy.trainable_weights, old, strict=True):
        after = ops.convert_to_numpy(weight)
        require(
            model,
            not np.array_equal(after, before) or _is_idle(copy, weight, ids),
            f"must train every weight, but {weight.path} did not move",
        )
        require(model, np.isfinite(after).all(), "must keep weights finite")


def _is_idle(model: TokenModel, weight: Any, ids: Array) -> bool:
    """Whether a weight changes no output, such as an offset of all scores."""
    before, value = _compute(model, ids), ops.convert_to_numpy(weight)
    change = np.random.default_rng(3).normal(size=value.shape) / 100
    weight.assign(value + change)
    after = _compute(model, ids)
    weight.assign(value)
    return _are_near(after, before)


def _check_longest(model: TokenModel) -> None:
    limits = [
        part.max_position
        for each in _list_encodings(model)
        for part in (each, each.sampler)
        if isinstance(getattr(part, "max_position", None), int)
        and not each.sampler.reads_tokens
        # Between two integers there is room for any number of tokens.
        and not getattr(part, "fractional", False)
    ]
    if not limits or min(limits) > 10_000:
        return
    try:
        _compute(_copy(model), np.zeros((1, min(limits) + 1), "int32"))
    except ValueError:
        return
    require(
        model, False, f"must refuse more tokens than {min(limits)} positions"
    )


def checks_of(model: TokenModel) -> tuple[Check, ...]:
    """Returns the checks of a model."""
    return (
        check_config,
        _check_causality,
        _check_padding,
        _check_positions,
        _check_generation,
        _check_half_precision,
        _check_training,
        _check_longest,
        _check_saved,
        _check_compiled,
    )
