"""What encodings, attentions and models compute under every dtype policy.

Imports no backend. python -m tests.keras_lengen.policy_outputs outputs.npz
"""

import contextlib
import functools
import sys

import keras
import numpy as np
from keras import ops

from keras_lengen.layers import (
    ENCODINGS,
    AxialEncoding,
    GeometricAttention,
    GridPositions,
    MultiHeadAttention,
)
from tests.keras_lengen.layers.encodings import table as encodings
from tests.keras_lengen.layers.positions import table as samplers
from tests.keras_lengen.models import small

PURE = ("float64", "bfloat16", "float16")
MIXED = ("mixed_bfloat16", "mixed_float16")
POLICIES = (*PURE, *MIXED)
"""All policies but float32, which they are compared with."""

POSITIONS = np.array([0, 1, 500, 997, 999, 1000], "int32")
"""Of `TOKENS` tokens: far apart, and so near that bfloat16 merges them."""


def axial(name, **kwargs):
    """An encoding of rows and one of columns, of one class."""
    row, column = (encodings.make(name, **kwargs) for _ in range(2))
    sampler = GridPositions(width=3)
    return AxialEncoding(row=row, column=column, sampler=sampler, **kwargs)


CASES = {
    **{name: functools.partial(encodings.make, name) for name in ENCODINGS},
    **{
        f"AxialEncoding of {name}": functools.partial(axial, name)
        for name in ("SinusoidalEncoding", "RoPE", "RelativeEncoding")
    },
    "GeometricAttention": functools.partial(encodings.make, "NoPE"),
}
"""Functions that make the encoding of every case, given its `dtype`."""

FEW = (
    *encodings.FAMILIES,
    "CAPE",
    "T5Bias",
    "AxialEncoding of RoPE",
    "GeometricAttention",
)
"""One case of each kind."""


def layers(case, policy, **changes):
    """A functional model of an encoding, with inputs for it.

    The encoding is in it by itself and, where it has a place there, in
    attention.

    Args:
        case: Key of `CASES`.
        policy: The layers' dtype policy, `None` for the global one.
        **changes: Arguments of the attention.
    """
    encoding = CASES[case](dtype=policy)
    arrays = encodings.random_inputs(encoding.stage)
    symbols = [keras.Input(x.shape[1:], dtype="float32") for x in arrays]
    positions = keras.Input(POSITIONS.shape, dtype="int32")
    given = (positions, positions) if encoding.takes_pairs else positions
    outputs = {
        "given": encoding(*symbols, positions=given),
        "sampled": encoding(*symbols),
    }
    if encoding.stage != "embeddings":
        attention = attention_class(case)(
            encodings.HEADS,
            encodings.WIDTH,
            encoding=CASES[case](dtype=policy),
            dtype=policy,
            **changes,
        )
        arrays += encodings.random_inputs("embeddings")
        x = keras.Input(arrays[-1].shape[1:], dtype="float32")
        symbols.append(x)
        outputs["attention"] = attention(
            x, x, positions=given, use_causal_mask=encoding.causal_only
        )
    return (
        keras.Model([*symbols, positions], outputs),
        [*arrays, np.tile(POSITIONS, (encodings.BATCH, 1))],
    )


def model(case, policy, **changes):
    """A small model, an encoder if it may be one, with inputs for it."""
    encoding = CASES[case](dtype=policy)
    make = small.decoder if encoding.causal_only else small.encoder
    positions = (POSITIONS,) * 2 if encoding.takes_pairs else POSITIONS
    arguments = {
        "encoding": encoding,
        "attention": attention_class(case),
        # Embeddings large enough for attention to tell tokens apart.
        "embedding_scale": 48.0,
        "dtype": policy,
        **changes,
    }
    return make(**arguments), {
        "token_ids": small.token_ids(),
        "positions": positions,
    }


def attention_class(case):
    if case == "GeometricAttention":
        return GeometricAttention
    return MultiHeadAttention


def outputs(make, policies):
    """Results under some policies, with the weights of float32, cast.

    Args:
        make: Function of a policy that returns a model and its inputs.
        policies: Names of dtype policies; there is float32 beside them.

    Returns:
        By `policy/name`, the results as float32 arrays and, with `/dtypes`
        behind it, the dtypes of symbol and result.
    """
    keras.utils.set_random_seed(0)
    arrays, weights = {}, None
    for policy in ("float32", *policies):
        ours, inputs = make(policy)
        weights = ours.get_weights() if weights is None else weights
        ours.set_weights(weights)
        for name, (dtypes, result) in results(ours, inputs).items():
            arrays[f"{policy}/{name}"] = result
            arrays[f"{policy}/{name}/dtypes"] = dtypes
    return arrays


def results(model, inputs):
    """The results of a model by name: dtypes, and float32 arrays."""
    called, symbols = model(inputs), getattr(model, "output", None)
    if symbols is None:
        specs = keras.tree.map_structure(_symbol, inputs)
        symbols, called = {"model": model(specs)}, {"model": called}
    return {
        f"{name} {index}": (
            np.array([symbol.dtype, standard_dtype(result)]),
            as_array(result),
        )
        for name in called
        for index, (symbol, result) in enumerate(
            zip(
                keras.tree.flatten(symbols[name]),
                keras.tree.flatten(called[name]),
                strict=True,
            )
        )
    }


def _symbol(array):
    return keras.KerasTensor(array.shape, dtype=str(array.dtype))


def standard_dtype(tensor):
    return keras.backend.standardize_dtype(tensor.dtype)


def as_array(tensor):
    return np.asarray(ops.cast(tensor, "float32"))


def training_changes(case, policy):
    """What a step of training adds to each weight of a model."""
    ours, inputs = model(case, policy)
    before = [as_array(weight) for weight in ours.weights]
    ours.compile(
        optimizer=keras.optimizers.SGD(0.1),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        run_eagerly=True,
    )
    ours.train_on_batch(*batch(inputs))
    return {
        weight.path: as_array(weight) - old
        for weight, old in zip(ours.weights, before, strict=True)
    }


def batch(inputs):
    """Inputs and labels of a step of training, with positions per example."""
    positions = keras.tree.map_structure(
        lambda axis: np.tile(axis, (encodings.BATCH, 1)), inputs["positions"]
    )
    labels = inputs["token_ids"] % small.OUTPUT_SIZE
    return {**inputs, "positions": positions}, labels


@contextlib.contextmanager
def globally(policy):
    """Makes a policy the global one, and the dtype of a pure one floatx."""
    before = keras.config.floatx(), keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy)
    if not policy.startswith("mixed_"):
        keras.config.set_floatx(policy)
    try:
        yield
    finally:
        keras.config.set_floatx(before[0])
        keras.config.set_dtype_policy(before[1])


def global_outputs(make, policy):
    """Results of a global policy, and of the same as an argument.

    Args:
        make: Function of a policy that returns a model and its inputs.
        policy: Name of a dtype policy.
    """
    local, inputs = make(policy)
    with globally(policy):
        ours, _ = make(None)
        ours.set_weights(local.get_weights())
        return results(ours, inputs), results(local, inputs)


def positions(variant):
    """What a sampler of the table gives under global policies."""
    arrays = {}
    for policy in ("float32", *PURE):
        with globally(policy):
            sampler = samplers.make(variant)
            inputs = ops.zeros((64, 8))
            lengths = ops.arange(64, dtype="int32") % 9
            results = (
                sampler(inputs, training=True),
                sampler(inputs, lengths=lengths, training=True),
                sampler(inputs, training=False),
            )
        for index, result in enumerate(results):
            arrays[f"{policy}/{index}"] = np.asarray(result)
    return arrays


def main(path, everything):
    """Saves arrays whose names begin with a kind and a case."""
    arrays = {}
    quick = ("float64", "bfloat16")
    for case in CASES:
        for make in (layers, model):
            name = f"{make.__name__}/{case}"
            make = functools.partial(make, case)
            if everything or case in FEW:
                policies = POLICIES if everything else quick
                _add(arrays, name, outputs(make, policies))
            elif "layers" in name:
                _add(arrays, name, outputs(make, ("bfloat16",)))
    for case in FEW:
        # Few, and no models: with a floatx of bfloat16, Keras on JAX takes
        # numbers without a dtype and NumPy's integers for the widest floats.
        found, expected = global_outputs(
            functools.partial(layers, case), "bfloat16"
        )
        for name, (dtypes, result) in found.items():
            arrays[f"global/{case}/{name}/dtypes"] = dtypes
            arrays[f"global/{case}/{name}/found"] = result
            arrays[f"global/{case}/{name}/expected"] = expected[name][1]
    for case in CASES if everything else FEW:
        for policy in ("bfloat16", "float16") if everything else ("bfloat16",):
            name = f"training/{case}/{policy}"
            _add(arrays, name, training_changes(case, policy))
    for variant in samplers.ROWS:
        _add(arrays, f"positions/{variant}", positions(variant))
    np.savez(path, **arrays)


def _add(arrays, prefix, others):
    arrays.update({f"{prefix}/{name}": others[name] for name in others})


if __name__ == "__main__":
    main(sys.argv[1], everything="everything" in sys.argv[2:])
