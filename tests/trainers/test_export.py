"""Exported models answer without the trainers."""

import importlib.util

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.shell import run_python
from trainers import export
from trainers.errors import ConfigError
from trainers.export import FILES, ExportConfig
from trainers.options.fields import resolve

CHECK = """
import pathlib, sys
import numpy as np
path = pathlib.Path(sys.argv[1])
def check(name, compute):
    with np.load(path / f"{name}_example.npz") as example:
        inputs = dict(example)
    outputs = inputs.pop("outputs")
    np.testing.assert_allclose(compute(inputs), outputs, atol=1e-5)
def only(outputs):
    (output,) = outputs
    return output
import tensorflow as tf
model = tf.saved_model.load(path / "saved_model")
check("saved_model", model.serve)
assert not any(name.startswith("keras_lengen") for name in sys.modules)
import keras, keras_lengen.layers
program = tf.lite.Interpreter(str(path / "model.tflite"))
run = program.get_signature_runner()
check("model.tflite", lambda inputs: only(run(**inputs).values()))
if (path / "model.onnx").exists():
    import onnxruntime
    session = onnxruntime.InferenceSession(path / "model.onnx")
    check("model.onnx", lambda inputs: only(session.run(None, inputs)))
check("model.keras", keras.saving.load_model(path / "model.keras"))
assert not any(n.split(".")[0] in ("trainers", "datasets") for n in sys.modules)
"""


@pytest.fixture
def export_run(finished, tmp_path):
    """A function that exports a run to `tmp_path`, and returns the run."""

    def run(**flags):
        path, _ = finished()
        flags = {"output": str(tmp_path), **flags}
        export.main(resolve(ExportConfig, {}, flags), str(path))
        return path

    return run


@pytest.mark.process
# tf2onnx warns.
@pytest.mark.filterwarnings("ignore")
def test_files_load_without_trainers_and_data(export_run, tmp_path):
    for kind in FILES:
        if kind != "onnx" or importlib.util.find_spec("tf2onnx"):
            export_run(format=kind, evaluation="even")
    run_python("-c", CHECK, tmp_path)


def test_a_file_of_the_weights_of_the_run(export_run, tmp_path):
    run = export_run(evaluation="even")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    with np.load(run / "checkpoints" / "checkpoint-2.npz") as arrays:
        saved = [arrays[n] for n in arrays.files if n.startswith("model/")]
    for weight, values in zip(loaded.weights, saved, strict=True):
        np.testing.assert_array_equal(weight, values)
    # A model that draws positions has no outputs to compare with.
    for flags, names in (({"evaluation": "even"}, {"outputs"}), ({}, set())):
        export_run(**flags)
        with np.load(tmp_path / "model.keras_example.npz") as example:
            assert {*example} == {"token_ids", "lengths", *names}


def test_saved_models_need_tensorflow(monkeypatch):
    monkeypatch.setattr("keras.backend.backend", lambda: "jax")
    with pytest.raises(ConfigError, match="KERAS_BACKEND=tensorflow"):
        resolve(ExportConfig, {}, {"format": "saved_model"})


def make_model():
    return keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])


def fail_to_export(self, path, **_):
    (path / "variables").mkdir(parents=True)
    (path / "variables" / "half").write_text("half")
    raise tf.errors.ResourceExhaustedError(
        None, None, "{{a node}} a path; No space left [Op:SaveV2]"
    )


def test_a_full_disk_leaves_what_was_exported(tmp_path, monkeypatch):
    (tmp_path / "saved_model").mkdir()
    (tmp_path / "saved_model" / "before").write_text("before")
    before = {*tmp_path.rglob("*")}
    # As a killed export leaves it.
    (tmp_path / "saved_model.partial").mkdir()
    monkeypatch.setattr(keras.Model, "export", fail_to_export)
    with pytest.raises(OSError, match=r"No space left$"):
        export.save_model(make_model(), tmp_path, "saved_model", {}, {})
    assert {*tmp_path.rglob("*")} == before


def test_an_export_takes_the_place_of_another(tmp_path):
    for size in (1, 2):
        example = {"x": np.zeros(size)}
        path = export.save_model(make_model(), tmp_path, "keras", {}, example)
        with np.load(export.name_example(path)) as found:
            assert found["x"].size == size
    assert {*tmp_path.iterdir()} == {path, export.name_example(path)}
