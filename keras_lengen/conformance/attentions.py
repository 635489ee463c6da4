"""Properties of attention."""

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
    save_and_load,
)
from keras_lengen.layers.attention.multi_head import MultiHeadAttention
from keras_lengen.types import Array, Tensor

BATCH, TOKENS, WIDTH = 2, 6, 16
POSITIONS = np.array([0, 3, 4, 10, 11, 900], "int32")
REAL = np.array([[0, 1, 1, 0, 1, 1], [1, 1, 1, 1, 0, 0]], "bool")
"""Which tokens of the padded sequences are real."""


def _make_inputs() -> Tensor:
    shape = (BATCH, TOKENS, WIDTH)
    inputs = np.random.default_rng(0).normal(size=shape)
    return ops.convert_to_tensor(inputs.astype("float32"))


def _make_copy(attention: MultiHeadAttention) -> Any:
    """Makes a layer with the same arguments and random weights."""
    copy = rebuild(attention)
    copy.build((BATCH, TOKENS, WIDTH), (BATCH, TOKENS, WIDTH))
    generator = np.random.default_rng(1)
    for weight in copy.trainable_weights:
        noise = generator.normal(size=weight.shape) / 2
        weight.assign(weight + ops.cast(noise, weight.dtype))
    return copy


def _list_masks(attention: MultiHeadAttention) -> list[bool]:
    """Lists the values of `use_causal_mask` that the layer takes."""
    only = attention.causal_only or attention.encoding.causal_only
    return [True] if only else [True, False]


def _place(layer: MultiHeadAttention, tokens: Any) -> dict[str, Array]:
    """Makes positions for tokens whose sampler would draw them anew."""
    draws = (
        layer.encoding.stage is not None and layer.encoding.sampler.is_random
    )
    return {"positions": POSITIONS[tokens]} if draws else {}


def _attend(layer: Any, inputs: Tensor, **options: Any) -> Array:
    options = {"use_causal_mask": True, **options}
    return ops.convert_to_numpy(layer(inputs, inputs, **options))


def _are_near(layer: Any, found: Array, expected: Array) -> bool:
    """Whether numbers are equal but for the rounding of the compute dtype."""
    tolerance = 1e-4 if layer.compute_dtype == "float32" else 0.1
    found, expected = (each.astype("float32") for each in (found, expected))
    scale = max(1.0, float(np.abs(expected).max()))
    return np.allclose(found, expected, atol=tolerance * scale)


def _check_causal_mask(attention: MultiHeadAttention) -> None:
    layer, inputs = _make_copy(attention), _make_inputs()
    places = _place(layer, slice(None))
    changed = ops.concatenate([inputs[:, :4], 9 - inputs[:, 4:]], axis=1)
    outputs = [_attend(layer, each, **places) for each in (inputs, changed)]
    require(
        attention,
        _are_near(layer, outputs[0][:, :4], outputs[1][:, :4]),
        "must hide later tokens if `use_causal_mask` is true",
    )


def _check_padding(attention: MultiHeadAttention) -> None:
    layer, inputs = _make_copy(attention), _make_inputs()
    for causal in _list_masks(attention):
        # Padding between tokens may change which of two is nearer.
        mask = REAL if causal else np.sort(REAL, axis=1)
        padded = _attend(
            layer,
            inputs,
            query_mask=mask,
            value_mask=mask,
            use_causal_mask=causal,
            # Padding may have any positions.
            **_place(layer, np.maximum(mask.cumsum(axis=1) - 1, 0)),
        )
        for example, real in enumerate(mask):
            alone = _attend(
                layer,
                ops.convert_to_tensor(
                    ops.convert_to_numpy(inputs)[example : example + 1, real]
                ),
                **_place(layer, slice(4)),
                use_causal_mask=causal,
            )
            require(
                attention,
                _are_near(layer, padded[example, real], alone[0]),
                "must give a padded sequence what the sequence gives alone",
            )


def _check_cache(attention: MultiHeadAttention) -> None:
    layer, inputs = _make_copy(attention), _make_inputs()
    whole = _attend(layer, inputs, **_place(layer, slice(None)))
    cache = layer.make_cache(BATCH, TOKENS)
    for index in range(TOKENS):
        token, places = inputs[:, index : index + 1], _place(layer, [index])
        if places:
            places["key_positions"] = POSITIONS
        output, cache = layer(
            token,
            token,
            cache=cache,
            cache_update_index=index,
            use_causal_mask=True,
            **places,
        )
        require(
            attention,
            _are_near(
                layer, ops.convert_to_numpy(output)[:, 0], whole[:, index]
            ),
            "must give one token at a time, with a cache, what it gives the "
            "whole sequence",
        )


def _check_chunks(attention: MultiHeadAttention) -> None:
    layer, inputs = _make_copy(attention), _make_inputs()
    chunked = type(layer).from_config({**layer.get_config(), "chunk_size": 4})
    chunked.build(inputs.shape, inputs.shape)
    chunked.set_weights(layer.get_weights())
    places = _place(layer, slice(None))
    for causal in _list_masks(attention):
        outputs = [
            _attend(each, inputs, **places, use_causal_mask=causal)
            for each in (layer, chunked)
        ]
        require(
            attention,
            _are_near(layer, outputs[1], outputs[0]),
            "must give the same in chunks of queries",
        )


def _check_model(attention: MultiHeadAttention) -> None:
    layer, inputs = _make_copy(attention), _make_inputs()
    places = _place(layer, slice(None))
    symbol = keras.Input((None, WIDTH))
    model = keras.Model(
        symbol, layer(symbol, symbol, use_causal_mask=True, **places)
    )
    outputs = ops.convert_to_numpy(model(inputs))
    loaded = save_and_load(model)
    require(
        attention,
        _are_near(layer, ops.convert_to_numpy(loaded(inputs)), outputs),
        "must give the same in a model that was saved and loaded",
    )
    model.compile(jit_compile=True)
    require(
        attention,
        _are_near(layer, model.predict_on_batch(inputs), outputs),
        "must give the same in a compiled program",
    )


def checks_of(attention: MultiHeadAttention) -> tuple[Check, ...]:
    """Returns the checks of an attention, the longest last."""
    return (
        check_config,
        check_arguments,
        _check_causal_mask,
        _check_padding,
        _check_cache,
        _check_chunks,
        _check_model,
    )
