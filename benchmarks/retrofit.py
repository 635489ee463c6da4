"""Losses of a model of KerasHub beyond its trained length, by recipe.

Trains a small Llama of KerasHub on bytes of Python's standard library, which
every machine has, and evaluates it on held-out files with each recipe of
`docs/guides/retrofit.md`. The recipes with training start from the weights of
the trained model. The report is written after every recipe; run the same
command again to resume.

    pip install -e '.[tensorflow,retrofit,plots]'
    python -m benchmarks.retrofit
"""

import functools
import json
import pathlib
import time

import keras
import numpy as np
import tensorflow as tf
from absl import app, flags

from benchmarks.measure import DEFINE_count, measure_rows
from datasets.text.files import open_python_source
from keras_lengen.layers import (
    STRING,
    ALiBi,
    InterpolatedPositions,
    LongRoPE,
    NoPE,
    NTKRoPE,
    RandomizedPositions,
    ReRoPE,
    SelfExtend,
    SkippedPositions,
    YaRN,
)
from keras_lengen.retrofit import RetrofittedModel
from trainers.records.plot import add_legend, draw_curves, save_figure
from trainers.records.styles import choose_styles

FLAGS = flags.FLAGS
DEFINE_count("train_length", 128, "Length of the training windows in bytes.")
DEFINE_count("steps", 3000, "Training steps of the model.")
DEFINE_count("finetuning_steps", 300, "Training steps of a recipe.")
DEFINE_count("batch_size", 32, "Windows of a training step.")
DEFINE_count("width", 128, "Width of the model.")
DEFINE_count("num_layers", 4, "Number of layers.")
DEFINE_count("windows", 64, "Windows of the longest evaluated length.")
flags.DEFINE_list("test_lengths", ["128", "256", "512", "1024"], "Lengths.")
flags.DEFINE_list("recipes", [], "Names of recipes; none: all.")
flags.DEFINE_string("root", "runs/retrofit", "Directory for the weights.")
flags.DEFINE_string(
    "output", "benchmarks/results/retrofit.json", "File for the report."
)
OPTIONS = (
    *("train_length", "steps", "finetuning_steps", "batch_size"),
    *("width", "num_layers", "windows", "test_lengths"),
)
"""Flags that change results."""


def make_recipes(length, longest):
    """Makes the arguments of `RetrofittedModel` of each recipe.

    Args:
        length: int, the trained length.
        longest: int, the longest evaluated length.

    Returns:
        Dict from a name to whether the recipe has training, and a function
        that makes the arguments.
    """
    factor = longest / length
    yarn = functools.partial(
        YaRN, original_length=length, scaling_factor=factor
    )
    return {
        "original": (False, dict),
        "truncated": (False, dict),
        "position interpolation": (
            False,
            lambda: {"sampler": InterpolatedPositions(train_length=length)},
        ),
        "NTK": (
            False,
            lambda: {"encoding": NTKRoPE(original_length=length)},
        ),
        "YaRN": (False, lambda: {"encoding": YaRN(original_length=length)}),
        "LongRoPE": (
            False,
            lambda: {
                "encoding": LongRoPE(
                    original_length=length, scaling_factor=factor
                )
            },
        ),
        "Self-Extend": (
            False,
            lambda: {
                "encoding": SelfExtend(
                    group_size=int(2 * factor), window=length // 2
                )
            },
        ),
        "ReRoPE": (False, lambda: {"encoding": ReRoPE(window=length // 2)}),
        "STRING": (
            False,
            lambda: {"encoding": STRING(original_length=length)},
        ),
        "no rotation": (False, lambda: {"encoding": NoPE()}),
        "more training": (True, dict),
        "skipped positions": (
            True,
            lambda: {"sampler": SkippedPositions(max_position=longest)},
        ),
        "YaRN with skipped positions": (
            True,
            lambda: {
                "sampler": SkippedPositions(max_position=longest),
                "encoding": yarn(),
            },
        ),
        "randomized positions": (
            True,
            lambda: {"sampler": RandomizedPositions(max_position=longest)},
        ),
        "no rotation after training": (True, lambda: {"encoding": NoPE()}),
        "ALiBi": (True, lambda: {"encoding": ALiBi()}),
    }


def make_backbone():
    """Makes the small Llama with random weights."""
    import keras_hub

    return keras_hub.models.LlamaBackbone(
        vocabulary_size=256,
        num_layers=FLAGS.num_layers,
        num_query_heads=4,
        num_key_value_heads=4,
        hidden_dim=FLAGS.width,
        intermediate_dim=2 * FLAGS.width,
        layer_norm_epsilon=1e-5,
    )


def train(model, steps, learning_rate, seed):
    """Trains a `RetrofittedModel` model on windows of the trained length."""
    import keras_hub

    corpus = open_python_source()["train"]
    starts = np.random.default_rng(seed).integers(
        len(corpus) - FLAGS.train_length, size=(steps, FLAGS.batch_size)
    )

    def make_batch(starts):
        windows = corpus.read_windows(starts, FLAGS.train_length + 1)
        tokens = windows[:, :-1]
        inputs = {"token_ids": tokens, "padding_mask": tf.ones_like(tokens)}
        return inputs, windows[:, 1:]

    batches = tf.data.Dataset.from_tensor_slices(starts).map(make_batch)
    task = model.make_task(keras_hub.models.LlamaCausalLM)
    schedule = keras.optimizers.schedules.CosineDecay(learning_rate, steps)
    task.compile(
        optimizer=keras.optimizers.Adam(schedule, clipnorm=1.0),
        weighted_metrics=None,
        jit_compile=False,
    )
    task.fit(batches.prefetch(4), epochs=1, verbose=2)


def make_windows(lengths):
    """Reads windows of held-out text, so that all lengths end at one place.

    Its last bytes, half of `train_length`, are scored. So all lengths have the
    same targets, and differ in how much context comes before them.
    """
    corpus = open_python_source()["test"]
    longest = max(lengths)
    starts = np.linspace(0, len(corpus) - longest - 1, FLAGS.windows)
    return np.stack(
        [corpus.read(int(start), longest + 1) for start in starts]
    ).astype("int32")


def evaluate(model, windows, lengths, most):
    """Computes the loss of the last bytes of windows, with longer contexts.

    Args:
        model: `RetrofittedModel`.
        windows: Bytes of held-out text, from `make_windows`.
        lengths: Numbers of bytes of a window.
        most: int, number of bytes that the model sees at most, the last ones.

    Returns:
        Dict from the length, a str, to nats per byte.
    """
    embedding = model.backbone.token_embedding
    scored = FLAGS.train_length // 2

    @tf.function
    def compute(tokens):
        inputs = tokens[:, :-1]
        hidden = model(
            {"token_ids": inputs, "padding_mask": tf.ones_like(inputs)}
        )
        logits = embedding(hidden[:, -scored:], reverse=True)
        return keras.ops.sparse_categorical_crossentropy(
            tokens[:, -scored:], logits, from_logits=True
        )

    return {
        str(length): float(
            np.mean(
                [
                    compute(tf.constant(batch[:, -min(length, most) - 1 :]))
                    for batch in np.split(windows, range(8, len(windows), 8))
                ]
            )
        )
        for length in lengths
    }


def load_trained():
    """Trains the model, or reads the weights that an earlier command left.

    Returns:
        The backbone, and the seconds of its training.
    """
    backbone = make_backbone()
    options = "-".join(
        str(getattr(FLAGS, name))
        for name in (
            *("num_layers", "width", "train_length", "steps", "batch_size"),
        )
    )
    path = pathlib.Path(FLAGS.root) / f"{options}.weights.h5"
    record = path.with_suffix(".json")
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        begin = time.time()
        model = RetrofittedModel(backbone)
        train(model, FLAGS.steps, 1e-3, seed=0)
        model.restore()
        record.write_text(json.dumps({"seconds": time.time() - begin}))
        unfinished = path.with_name(f"unfinished-{path.name}")
        backbone.save_weights(unfinished)
        unfinished.rename(path)
    backbone.load_weights(path)
    return backbone, json.loads(record.read_text())["seconds"]


def plot(rows, path):
    """Plots the loss of every recipe against the length."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.5))
    panels = figure.subplots(1, 2, sharey=True)
    titles = ("without training", "with a short training")
    styles = choose_styles(row["recipe"] for row in rows)
    for axes, title, trained in zip(panels, titles, (False, True), strict=True):
        axes.set(title=title, xlabel="length in bytes", xscale="log")
        curves = {
            row["recipe"]: row["nats_per_byte_by_length"]
            for row in rows
            if row["trained"] == trained or row["recipe"] == "original"
        }
        draw_curves(axes, curves, styles)
        lengths = curves["original"]
        axes.set_xticks(list(map(int, lengths)), lengths, minor=False)
        axes.set_xticks([], minor=True)
        axes.grid(alpha=0.3)
        add_legend(axes)
    panels[0].set_ylabel("nats per byte")
    save_figure(figure, path)
    print(f"picture: {path}")


def main(_):
    """Measures every recipe."""
    keras.utils.set_random_seed(0)
    lengths = [int(length) for length in FLAGS.test_lengths]
    backbone, seconds = load_trained()
    windows = make_windows(lengths)
    weights = [np.array(weight) for weight in backbone.weights]
    recipes = make_recipes(FLAGS.train_length, max(lengths))

    def measure(name):
        trains, make_arguments = recipes[name]
        for weight, value in zip(backbone.weights, weights, strict=True):
            weight.assign(value)
        keras.utils.set_random_seed(0)
        begin = time.time()
        model = RetrofittedModel(backbone, **make_arguments())
        if trains:
            train(model, FLAGS.finetuning_steps, 5e-4, seed=1)
        row = {
            "recipe": name,
            "trained": trains,
            "nats_per_byte_by_length": evaluate(
                model,
                windows,
                lengths,
                FLAGS.train_length if name == "truncated" else max(lengths),
            ),
            "seconds": time.time() - begin,
        }
        model.restore()
        return row

    rows = measure_rows(
        FLAGS.output,
        "benchmarks.retrofit",
        {name: getattr(FLAGS, name) for name in OPTIONS},
        recipes,
        FLAGS.recipes or recipes,
        measure,
        training_seconds=seconds,
    )
    plot(rows, pathlib.Path(FLAGS.output).with_suffix(".png"))


if __name__ == "__main__":
    app.run(main)
