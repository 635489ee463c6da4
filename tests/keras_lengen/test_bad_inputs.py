"""Bad inputs raise errors that name them, and give no number but NaN.

Where a call knows that an argument is bad it raises `ValueError`, and where
only a run of a program knows, that ends with an assertion; programs of XLA and
of JAX, which have none, return nothing but NaN.
"""

import dataclasses
import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_lengen.layers import (
    ATTENTIONS,
    ENCODINGS,
    SAMPLERS,
    MultiHeadAttention,
    RandomizedRoPE,
)
from keras_lengen.layers.encodings.randomized import FixedSampler
from keras_lengen.models import TransformerEncoder
from tests.keras_lengen import (
    bad_inputs_analysis,
    bad_inputs_layers,
    bad_inputs_models,
)
from tests.keras_lengen.bad_inputs import (
    SIZES,
    Case,
    described,
    faults,
    is_void,
)
from tests.keras_lengen.bad_inputs_constructors import (
    CLASSES,
    constructor_cases,
    list_arguments,
)
from tests.keras_lengen.bad_inputs_programs import PROGRAMS
from tests.keras_lengen.layers.encodings.table import FAMILIES
from tests.products import product
from tests.shell import run_on_jax

CALLS = {
    **bad_inputs_layers.CALLS,
    **bad_inputs_models.CALLS,
    "analysis": bad_inputs_analysis.analysis_calls,
}


def report(found):
    return f"{len(found)} bad inputs are not refused:\n" + "\n".join(found)


def no_encoding_or_family(name):
    """Whether the default run tests it."""
    return name in FAMILIES or name not in (
        *ENCODINGS,
        # Its parts are tested.
        "EncoderDecoder",
        "LoopedDecoder",
        "TransformerDecoder.generate",
        "EncoderDecoder.generate",
    )


@pytest.mark.parametrize(
    "name",
    product(
        CLASSES,
        keep=lambda name: (
            no_encoding_or_family(name) and not name.startswith("Transformer")
        ),
    ),
)
def test_constructors(name):
    cls, right = CLASSES[name]
    cls(**right)
    wrong, odd = [], []
    for case, admitted in constructor_cases(name):
        (odd if admitted else wrong).append(case)
    found = faults(wrong)
    found += [line for line in faults(odd) if not line.endswith(": no error")]
    assert not found, report(found)


def test_there_are_thousands_of_them():
    wrong = [
        case
        for name in CLASSES
        for case, admitted in constructor_cases(name)
        if not admitted
    ]
    assert len(wrong) > 5000


@pytest.mark.parametrize("name", CLASSES)
def test_every_argument_is_declared(name):
    cls, _ = CLASSES[name]
    fixed = {"sampler"} if issubclass(cls, FixedSampler) else set()
    assert set(cls.arguments()) == list_arguments(cls) - fixed


@pytest.mark.parametrize("name", product(CALLS, keep=no_encoding_or_family))
def test_calls(name):
    found = []
    for call in CALLS[name]():
        call.function(**call.right)
        found += faults(call.cases())
    assert not found, report(found)


def irregular(array):
    """Tensors of the shape of an array that hold no real numbers in rows."""
    if array.ndim > 1:
        yield tf.RaggedTensor.from_tensor(array)
        yield tf.sparse.from_dense(array)
    yield tf.fill(array.shape, "x")
    yield tf.zeros(array.shape, "complex64")


def test_no_regular_tensors():
    """One call of each kind, because layers check all tensors together."""
    found = []
    for name in (
        *("RoPE", "ALiBi", "NoPE", "SinusoidalEncoding", "RandomizedPositions"),
        *("AxialEncoding of bias", "AbacusPositions", "CoupledPositions"),
        *(*ATTENTIONS, "TransformerBlock", "TransformerEncoder"),
        *("TransformerDecoder with memory", "LoopedDecoder"),
    ):
        for call in CALLS[name]():
            call.function(**call.right)
            # The argument of a call that a change of another one breaks.
            named = dict(each for each in call.wrong if isinstance(each, tuple))
            wrong = {
                (name, f"{name}|{named.get(name, name)}"): [*irregular(array)]
                for name, array in call.arrays.items()
                if isinstance(array, np.ndarray)
            }
            found += faults(dataclasses.replace(call, wrong=wrong).cases())
    assert not found, report(found)
    for kind in ({"ragged": True}, {"sparse": True}, {"dtype": "string"}):
        inputs = keras.Input((None, 4), **kind)
        with pytest.raises(ValueError, match=r"^query must be a tensor"):
            MultiHeadAttention(2, 2)(inputs, inputs)


def test_plots(tmp_path):
    pytest.importorskip("matplotlib")
    for call in bad_inputs_analysis.plot_calls(tmp_path):
        call.function(**call.right)
        found = faults(call.cases())
        assert not found, report(found)


def program(call, jit_compile):
    """A call's function, compiled for arrays of any sizes."""
    arrays = call.arrays
    others = {
        name: value for name, value in call.right.items() if name not in arrays
    }
    compiled = tf.function(
        lambda arrays: call.function(**arrays, **others),
        input_signature=[keras.tree.map_structure(any_size, arrays)],
        jit_compile=jit_compile,
    )

    def run(**arguments):
        return compiled(
            {
                name: keras.tree.map_structure(tf.constant, arguments[name])
                for name in arrays
            }
        )

    return run


def any_size(array):
    """The signature of arrays of all sizes, but for their features."""
    features = array.shape[2:] if array.dtype.kind == "f" else ()
    sizes = [None] * (array.ndim - len(features))
    return tf.TensorSpec([*sizes, *features], array.dtype)


QUICK = {
    *(f"{name} in attention" for name in FAMILIES),
    "LearnedEncoding in attention",
    "RelativeEncoding-sampled in attention",
    "LearnedEncoding of few positions",
    "RandomizedRoPE of few positions",
    *(name for name in PROGRAMS if " of " not in name and " in " not in name),
}
"""Programs that differ in their checks, one of each kind."""

QUICK_COMPILED = {
    # Each encoding makes something else of NaN; presets only add a sampler.
    *(
        f"{name} in attention"
        for name, encoding in ENCODINGS.items()
        if not issubclass(encoding, FixedSampler)
    ),
    "ALiBi-sampled in attention",
    "RelativeEncoding-sampled in attention",
    "LearnedEncoding of few positions",
    "RandomizedRoPE of few positions",
    *SAMPLERS,
    "caches",
    "TransformerEncoder",
    "target",
}


def quick(names, keep):
    """All programs; those beside `names` are slow tests."""
    return product(
        [
            pytest.param(name, marks=[] if name in names else pytest.mark.slow)
            for name in PROGRAMS
        ],
        keep,
    )


@pytest.mark.parametrize(
    "name",
    quick(
        QUICK,
        keep=[
            "SinusoidalEncoding in attention",
            "RelativeEncoding in attention",
            "RandomizedPositions",
            "TransformerDecoder",
        ],
    ),
)
def test_programs(name):
    found = []
    for call in PROGRAMS[name]():
        run = program(call, jit_compile=False)
        for leaf in keras.tree.flatten(run(**call.right)):
            assert np.isfinite(leaf).all()
        found += faults(call.cases(run), tf.errors.InvalidArgumentError)
    assert not found, report(found)


@pytest.mark.parametrize(
    "name",
    quick(
        QUICK_COMPILED,
        keep=["RelativeEncoding in attention", "RandomizedPositions"],
    ),
)
def test_compiled_programs(name):
    check_compiled(name, most=1)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_programs_by_all_values(name):
    check_compiled(name)


def check_compiled(name, most=None):
    """Asserts that XLA's programs raise, or return nothing but NaN.

    Args:
        name: Key of `PROGRAMS`.
        most: Largest number of values for an argument, `None` for all.
    """
    found = []
    for call in PROGRAMS[name]():
        run = program(call, jit_compile=True)
        if most is not None:
            wrong = {name: values[:most] for name, values in call.wrong.items()}
            call = dataclasses.replace(call, wrong=wrong)
        for changed, named, value in call.changes():
            if named in call.idle:
                continue
            try:
                result = run(**{**call.right, changed: value})
            except (tf.errors.InvalidArgumentError, ValueError):
                continue
            if not is_void(result):
                found.append(f"{call.subject}({changed}={described(value)})")
    assert not found, report(found)


def test_saved_model(tmp_path):
    encoding = RandomizedRoPE(max_position=6, evaluation="even")
    model = TransformerEncoder(**SIZES, encoding=encoding)
    model.export(
        tmp_path,
        input_signature=[
            {
                "token_ids": keras.InputSpec(
                    shape=(None, None), dtype="int32", name="token_ids"
                ),
                "lengths": keras.InputSpec(
                    shape=(None,), dtype="int32", name="lengths"
                ),
            }
        ],
        verbose=False,
    )
    # Its variables live as long as it does.
    saved = tf.saved_model.load(str(tmp_path))

    def call(tokens=6, token_id=0, length=3):
        return saved.serve(
            {
                "token_ids": tf.fill((2, tokens), token_id),
                "lengths": tf.fill((2,), length),
            }
        )

    assert np.isfinite(call()).all()
    cases = [
        Case("saved", "max_position", "7", lambda: call(tokens=7)),
        Case("saved", "token_ids", "7", lambda: call(token_id=7)),
        Case("saved", "lengths", "7", lambda: call(length=7)),
    ]
    found = faults(cases, tf.errors.InvalidArgumentError)
    assert not found, report(found)


@pytest.mark.process
def test_jax(tmp_path):
    pytest.importorskip("jax")
    path = tmp_path / "faults.json"
    run_on_jax("tests.keras_lengen.bad_inputs_jax", path)
    result = json.loads(path.read_text())
    assert not result["faults"], report(result["faults"])
    assert result["count"] > 2000
