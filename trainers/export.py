"""Writes a trained model to a file that needs no trainer.

    python -m trainers.export RUN --format=keras
    python -m trainers.export RUN --format=onnx --evaluation=even

RUN is the working directory of a run, or one of its checkpoints. A `.keras`
file loads with `keras`, `keras_lengen` and your own classes, if it has any; a
SavedModel loads with TensorFlow alone, an ONNX file with ONNX Runtime, and a
`.tflite` file with LiteRT. Beside it, `*_example.npz` has inputs and, where the
model draws no positions, the outputs for them. For examples of your own, it has
the texts of the token ids, `tokens`, and the labels, `classes`, too.
"""

import contextlib
import dataclasses
import importlib.util
import pathlib
import shutil

import keras
import numpy as np
import tensorflow as tf

from trainers.engine.backend import make_strategy
from trainers.errors import ConfigError, OtherDataError, as_config_errors
from trainers.options.command import run
from trainers.options.evaluation import with_evaluation
from trainers.options.fields import RunConfig
from trainers.options.option import option
from trainers.options.own_classes import name_module
from trainers.records.files import writing
from trainers.records.opened_run import open_run
from trainers.records.workdir import find_sources

FILES = {
    "keras": "model.keras",
    "saved_model": "saved_model",
    "onnx": "model.onnx",
    "litert": "model.tflite",
}
"""Name of the file or directory of each format."""

EXAMPLES = 4
"""Number of examples in `*_example.npz`."""


@dataclasses.dataclass(frozen=True)
class ExportConfig(RunConfig):
    """Flags of this command."""

    format: str = option(
        "keras", "Kind of file to write.", choices=tuple(FILES)
    )
    output: str = option(
        "", "Directory to write to (empty: RUN/export).", is_path=True
    )

    def validate(self):
        """Raises `ConfigError` for the first value that cannot work."""
        super().validate()
        if self.format != "keras" and keras.backend.backend() == "jax":
            raise ConfigError(
                f"--format={self.format} needs KERAS_BACKEND=tensorflow, which "
                "also reads the checkpoints of JAX."
            )
        if self.format == "onnx" and not importlib.util.find_spec("tf2onnx"):
            raise ConfigError(
                "--format=onnx needs tf2onnx: pip install -e '.[onnx]'."
            )


def main(config, text):
    """Exports the model of a run."""
    opened = open_run(text, config.checkpoint, config.data_dir)
    exported = with_evaluation(opened.config, config.evaluation)
    strategy = make_strategy("one_device")
    model, _, problem = opened.experiment.make_parts(exported, strategy)
    note, names = "", {}
    try:
        opened.prepare(problem)
        names = problem.names()
    except OtherDataError:
        # The model is the same, and the example shows how to call it.
        note = "  note: the example is of data that have changed since training"
    opened, step = opened.load(model)

    inputs = draw_inputs(problem)
    outputs = keras.ops.convert_to_numpy(model(inputs, training=False))
    again = keras.ops.convert_to_numpy(model(inputs, training=False))
    example = {**inputs, "outputs": outputs, **names}
    is_random = not np.array_equal(outputs, again)
    if is_random:
        del example["outputs"]

    directory = pathlib.Path(config.output or opened.path / "export")
    with writing(directory, "nothing was exported"):
        directory.mkdir(parents=True, exist_ok=True)
        path = save_model(model, directory, config.format, inputs, example)
    example_path = name_example(path)

    print(f"exported {opened.checkpoint}, step {step}, to {path}")
    for name, values in inputs.items():
        print(f"  input {name}: {values.dtype} {describe_shape(values)}")
    print(f"  output: {outputs.dtype} {describe_shape(outputs)}")
    print(f"  example: {example_path}")
    if config.format == "keras":
        own = {name_module(name) for name in find_sources(opened.config)}
        modules = ["keras_lengen", *sorted(own)]
        print(f"  load: import {', '.join(modules)}; keras.saving.load_model")
    if note:
        print(note)
    if is_random:
        print(
            "  positions are drawn anew in every call: where the file must be "
            "deterministic, choose --evaluation=even or ordinal"
        )


def draw_inputs(problem):
    """Returns a few inputs of the longest trained length, NumPy arrays."""
    length = problem.longest_trained
    batch = problem.evaluation_batch(
        index=tf.constant(0),
        batch_size=EXAMPLES,
        length=tf.constant(length),
        padded_length=problem.tokens(length),
    )
    inputs = {name: np.asarray(v) for name, v in problem.inputs(batch).items()}
    # A scalar holds for all examples; a file takes one number for each.
    return {
        name: values if values.ndim else np.full(EXAMPLES, values)
        for name, values in inputs.items()
    }


def save_model(model, directory, file_format, inputs, example):
    """Writes a model and its example; returns the path of the model.

    Raises:
        ConfigError: If the format lacks an operation that the model needs.
        OSError: If they cannot be written.
    """
    path = directory / FILES[file_format]
    with replacing_export(path, example) as beside:
        if file_format == "keras":
            model.save(beside)
        else:
            _export(model, beside, file_format, inputs)
    return path


def _export(model, path, file_format, inputs):
    signature = {
        name: keras.InputSpec(
            shape=(None,) * values.ndim, dtype=values.dtype.name, name=name
        )
        for name, values in inputs.items()
    }
    with as_config_errors(ValueError):
        model.export(
            path,
            format={"saved_model": "tf_saved_model"}.get(
                file_format, file_format
            ),
            input_signature=[signature],
            verbose=False,
        )


@contextlib.contextmanager
def replacing_export(path, example):
    """Gives the path of a model that takes the place of `path` at the end.

    Args:
        path: `pathlib.Path` of the exported file or directory.
        example: Dict of arrays, the content of the example beside it.

    Raises:
        OSError: If it cannot be written. Then nothing remains of it.
    """
    partial = path.with_name(f"{path.name}.partial")
    if partial.exists():
        # A killed export has left it.
        shutil.rmtree(partial)
    partial.mkdir()
    try:
        beside = partial / path.name
        try:
            yield beside
        except tf.errors.OpError as error:
            # It begins with the names of the operation and the file.
            reason = error.message.rpartition("; ")[2]
            raise OSError(reason.partition(" [Op:")[0]) from None
        with open(name_example(beside), "xb") as file:
            np.savez(file, **example)
        if path.is_dir():
            # A directory takes the place of an empty one only.
            path.rename(partial / "before")
        beside.rename(path)
        name_example(beside).replace(name_example(path))
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def name_example(path):
    """Returns the path of the example of an exported model."""
    return path.with_name(f"{path.name}_example.npz")


def describe_shape(values):
    """Describes a shape whose batch size and length are free."""
    free = ("batch", "length")[: values.ndim]
    return f"({', '.join(map(str, (*free, *values.shape[2:])))})"


if __name__ == "__main__":
    run(ExportConfig, {}, main, operands="RUN")
