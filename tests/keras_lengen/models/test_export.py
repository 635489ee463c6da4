"""Exported programs."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_lengen.layers import (
    SHAPE,
    ALiBi,
    PaTHAttention,
    RandomizedALiBi,
    RoPE,
)
from tests.keras_lengen.layers.encodings import table as encodings
from tests.keras_lengen.models import small

EVEN = {"max_position": 32, "evaluation": "even"}


def exported(model, tmp_path):
    model.export(tmp_path / "model", verbose=False)
    return tf.saved_model.load(tmp_path / "model")


MODELS = {
    "chunks": lambda: small.encoder(
        RandomizedALiBi(**EVEN), attention=small.recipe(chunk_size=4)
    ),
    "decoder": lambda: small.decoder(
        ALiBi(), output_size=small.VOCABULARY_SIZE
    ),
}


@pytest.mark.product
@pytest.mark.parametrize("name", MODELS)
def test_a_trained_model_is_served_integers_of_any_length(name, tmp_path):
    model = MODELS[name]()
    model.compile(
        "sgd",
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        run_eagerly=True,
    )
    model.fit(small.token_ids(), small.token_ids() % 2, verbose=0)
    loaded = exported(model, tmp_path)
    for ids in (small.token_ids(), small.token_ids(11, batch_size=3)):
        np.testing.assert_allclose(
            loaded.serve(tf.constant(ids)), model(ids), atol=1e-5
        )


def with_encoding(name):
    changes = {}
    if "evaluation" in encodings.ENCODINGS[name].arguments():
        changes["evaluation"] = "max" if name == "SHAPE" else "even"
    return small.decoder(encodings.make(name, **changes))


FILES = {
    **{name: functools.partial(with_encoding, name) for name in encodings.ROWS},
    "chunks": lambda: small.decoder(
        ALiBi(), attention=small.recipe(chunk_size=4)
    ),
    "chunks with a window": lambda: small.encoder(
        RoPE(), attention=small.recipe(chunk_size=4, sliding_window=3)
    ),
    "grid": lambda: small.encoder(encodings.make_axial(RoPE)),
}
UNLIKE_TENSORFLOW = (
    *("FIRE", "DAPE", "RandomizedRelativeEncoding"),
    *("chunks", "chunks with a window", "grid"),
)
"""Files with operations that other runtimes lack or compute differently, were
they written as for TensorFlow."""


def run_onnx(path, ids):
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(path)
    (entry,) = session.get_inputs()
    return session.run(None, {entry.name: ids})[0]


def run_litert(path, ids):
    program = tf.lite.Interpreter(str(path))
    ((entry,), (result,)) = (
        program.get_input_details(),
        program.get_output_details(),
    )
    program.resize_tensor_input(entry["index"], ids.shape)
    program.allocate_tensors()
    program.set_tensor(entry["index"], ids)
    program.invoke()
    return program.get_tensor(result["index"])


@pytest.mark.product
# tf2onnx's, and that of TensorFlow about its interpreter.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *(
            pytest.param(
                *("onnx", name),
                marks=() if name in UNLIKE_TENSORFLOW else pytest.mark.slow,
            )
            for name in FILES
        ),
        ("litert", "RandomizedRelativeEncoding"),
    ],
)
def test_files_of_other_runtimes_compute_the_same(kind, name, tmp_path):
    if kind == "onnx":
        pytest.importorskip("tf2onnx")
    model = FILES[name]()
    path = tmp_path / f"model.{'onnx' if kind == 'onnx' else 'tflite'}"
    model.export(path, format=kind, verbose=False)
    for ids in (small.token_ids(), small.token_ids(11, batch_size=3)):
        run = run_onnx if kind == "onnx" else run_litert
        np.testing.assert_allclose(run(path, ids), model(ids), atol=1e-5)


@pytest.mark.product
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("make_model", "operation"),
    [
        (
            lambda: small.decoder(attention=PaTHAttention),
            "MatrixTriangularSolve",
        ),
        (
            lambda: small.encoder(SHAPE(max_shift=9, evaluation="random")),
            "StatelessRandomUniform",
        ),
    ],
)
def test_what_onnx_cannot_compute_is_refused(make_model, operation, tmp_path):
    pytest.importorskip("tf2onnx")
    model = make_model()
    with pytest.raises(ValueError, match=f"no operation for {operation}"):
        model.export(tmp_path / "model.onnx", format="onnx", verbose=False)
    assert not list(tmp_path.iterdir())
