"""Shows where a trained model looks, and how unlike another one.

    python -m trainers.analyze RUN
    python -m trainers.analyze RUN OTHER --length=40
    python -m trainers.analyze RUN --evaluation=even --examples=8

RUN and OTHER are working directories of runs, or checkpoints. For each layer of
self-attention, RUN/attention.json has the mean distance that each head attends
to, in tokens, and with OTHER, which reads the same tokens, the Jensen-Shannon
divergence between each of its heads and each head of RUN.

Of a run that is trained on images, RUN/images.png shows test images at every
size, as the model reads them, with the attention of the query that finds the
class: the mean over heads and layers of the decoder's attention to the pixels
or, of an encoder alone, of the last block's attention, averaged over all its
queries. Above an image stand its class and, if another one is found, that one.
"""

import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf
from keras import ops

from keras_lengen.analysis import attention_weights
from keras_lengen.models import EncoderDecoder
from trainers.engine.backend import make_strategy
from trainers.errors import ConfigError, TrainingError
from trainers.options.command import run
from trainers.options.evaluation import with_evaluation
from trainers.options.fields import CheckpointConfig
from trainers.options.option import option
from trainers.records.attention import describe_attention
from trainers.records.checkpoints import load_weights
from trainers.records.markdown import table
from trainers.records.opened_run import OpenedRun, open_run
from trainers.records.pictures import draw_pictures
from trainers.records.workdir import write_json


@dataclasses.dataclass(frozen=True)
class AnalyzeConfig(CheckpointConfig):
    """Flags of this command."""

    examples: int = option(4, "Number of sequences.", most=64)
    length: int = option(
        0,
        "Length of the sequences of attention.json, one that the run "
        "evaluates; 0: the longest trained.",
        least=0,
    )
    evaluation: str = option(
        "",
        "How samplers choose positions, such as even or ordinal; none: as in "
        "the run.",
    )


@dataclasses.dataclass(frozen=True)
class Loaded:
    """A trained model and its data.

    Attributes:
        opened: The `OpenedRun`.
        model: Keras model, with the weights of the checkpoint.
        problem: Its `Problem`.
    """

    opened: OpenedRun
    model: Any
    problem: Any


def main(config, *texts):
    """Writes what a model attends to, and draws its images if it has any."""
    if len(texts) > 2:
        raise ConfigError(f"expected RUN or RUN OTHER; got {' '.join(texts)}.")
    first, *others = (load(config, text) for text in texts)
    shortest = first.problem.lengths[0]
    blank = np.zeros((1, first.problem.tokens(shortest)))
    if first.problem.lay_out(blank, shortest) is not None:
        draw(first, config.examples)
    write_attention(config, [first, *others])


def load(config, text):
    """Loads the model and the data of a run."""
    opened = open_run(text, config.checkpoint)
    analyzed = with_evaluation(opened.config, config.evaluation)
    strategy = make_strategy("one_device")
    model, _, problem = opened.experiment.make_parts(analyzed, strategy)
    problem.prepare()
    load_weights(model, opened.checkpoint, opened.digest)
    return Loaded(opened, model, problem)


def write_attention(config, loaded):
    """Writes and prints what one model attends to, or two models."""
    first, *others = loaded
    problem = first.problem
    if len({find_words(one) for one in loaded}) > 1:
        raise ConfigError(
            f"{others[0].opened.path} reads other words than "
            f"{first.opened.path}: compare runs of one task and scratchpad."
        )
    length = config.length or problem.longest_trained
    if length not in problem.lengths:
        raise ConfigError(
            f"--length={length} is not a length that {first.opened.path} "
            "evaluates."
        )
    batch = read(problem, length, config.examples)
    tokens = problem.tokens(length)
    counts = np.asarray(batch.get("lengths", tokens)).reshape(-1, 1)
    inputs = problem.inputs(batch)
    try:
        layers, *compared = (find_layers(one.model, inputs) for one in loaded)
        for other, found in zip(others, compared, strict=True):
            if len(found) != len(layers):
                raise ValueError(
                    f"{first.opened.path} has {len(layers)} layers, and "
                    f"{other.opened.path} has {len(found)}."
                )
        shape = next(iter(layers.values())).shape[::2]
        queries = np.broadcast_to(np.arange(shape[1]) < counts, shape)
        described = describe_attention(layers, queries, *compared)
    except (ValueError, TypeError, KeyError) as error:
        raise ConfigError(f"cannot compare attention: {error}") from None
    path = first.opened.path / "attention.json"
    names = ("checkpoint", "other")
    write_json(
        path,
        {
            **{
                name: str(one.opened.checkpoint)
                for name, one in zip(names, loaded, strict=False)
            },
            "length": length,
            "examples": config.examples,
            "layers": described,
        },
    )
    measured = ("least_divergence", "mean_divergence") if others else ()
    head = [
        "layer",
        "distance by head",
        *(n.replace("_", " ") for n in measured),
    ]
    rows = [
        (
            layer["layer"],
            ", ".join(f"{distance:.2f}" for distance in layer["distance"]),
            *(f"{layer[name]:.4f}" for name in measured),
        )
        for layer in described
    ]
    print(table(tuple(head), rows))
    print(f"attention: {path}")


def find_words(loaded):
    """Returns the words that token ids stand for, if they stand for words."""
    vocabulary = getattr(loaded.problem, "vocabulary", None)
    return vocabulary and tuple(vocabulary.words)


def find_layers(model, inputs):
    """Returns the weights of self-attention, by the names of its layers."""
    return {
        name: weights
        for name, weights in attention_weights(model, inputs).items()
        # Not of cross-attention, nor of a single query.
        if weights.shape[-1] == weights.shape[-2] > 1
    }


def read(problem, length, examples):
    """Returns a batch of test sequences of a length."""
    return problem.evaluation_batch(
        index=tf.constant(0),
        batch_size=examples,
        length=tf.constant(length),
        padded_length=problem.tokens(length),
    )


def draw(loaded, examples):
    """Draws the images of a run."""
    problem = loaded.problem
    columns = [
        look(loaded.model, problem, length, examples)
        for length in problem.lengths
    ]
    shapes = (column["images"].shape[1:] for column in columns)
    titles = [f"{height} x {width}" for height, width in shapes]
    path = loaded.opened.path / "images.png"
    if not draw_pictures(path, columns, titles):
        raise TrainingError(
            "matplotlib, which draws, is not installed (extra: plots)."
        )
    print(f"plot: {path}")


def look(model, problem, length, examples):
    """Returns what a model reads and attends to at a length.

    Args:
        model: The model.
        problem: Its `Problem`.
        length: int. Length of the sequences.
        examples: int. Number of images.

    Returns:
        Dict of NumPy arrays: `"images"` and `"attention"`, `(B, H, W)`;
        `"classes"` and `"found"`, int `(B,)`.
    """
    batch = read(problem, length, examples)
    name = "cross_attention"
    if not isinstance(model, EncoderDecoder):
        name = model.blocks[-1].attention_layer.path
    inputs, attention, classes = problem.inputs(batch), [], []
    # One image at a time: the weights of many would not fit in memory.
    for number in range(examples):
        one = {
            key: values[number : number + 1] for key, values in inputs.items()
        }
        found, outputs = attention_weights(
            model, one, name=name, return_outputs=True
        )
        weights = np.mean(list(found.values()), axis=0)
        attention.append(weights.mean(axis=(1, 2))[0])
        classes.append(int(ops.argmax(problem.logits(outputs)[0])))
    return {
        "images": problem.lay_out(batch["token_ids"], length),
        "attention": problem.lay_out(np.stack(attention), length),
        "classes": np.asarray(batch["targets"]),
        "found": np.array(classes),
    }


if __name__ == "__main__":
    run(AnalyzeConfig, {}, main, operands="RUN...")
