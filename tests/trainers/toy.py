"""The smallest run of each trainer."""

import csv
import dataclasses
import json
import pathlib
import tempfile
import types

import numpy as np
import tensorflow as tf

from datasets.files import write_whole
from datasets.labelled import KINDS
from trainers.engine.backend import make_strategy
from trainers.engine.problem import Metric
from trainers.options.fields import resolve
from trainers.records.checkpoints import Checkpoints
from trainers.records.opened_run import registered
from trainers.records.workdir import Workdir

SMALLEST = {
    "encoding": "RoPE",
    "steps": 2,
    "num_layers": 1,
    "num_heads": 2,
    "model_dim": 8,
    "batch_size": 8,
    "strategy": "one_device",
}
TOY = {
    **SMALLEST,
    "task": "reverse_string",
    "train_length": "1-3",
    "test_lengths": "5,6",
    "evaluation_examples": 10,
    "max_position": 32,
    "buckets": 1,
}
TOY_OF_TEXT = {
    **SMALLEST,
    "train_length": "8",
    "test_lengths": "32",
    "evaluation_examples": 3,
    "max_position": 64,
}
# Several processes read it, and keep tokens there.
WIKITEXT103 = pathlib.Path(tempfile.gettempdir(), "keras_lengen_wikitext103")
# The same for the examples of a file.
EXAMPLES = pathlib.Path(tempfile.gettempdir(), "keras_lengen_examples")
TOYS = {
    "algorithmic": TOY,
    "enwik8": {
        **TOY_OF_TEXT,
        "dataset": "files",
        "data_dir": str(pathlib.Path(__file__).parents[2] / "docs"),
    },
    "examples": {
        **SMALLEST,
        "data": str(EXAMPLES / "label.jsonl"),
        "data_dir": str(EXAMPLES),
        "evaluation_examples": 5,
        "generated_examples": 2,
    },
    "imagenet": {
        **SMALLEST,
        "dataset": "digits",
        "train_size": "3x3",
        "test_sizes": "5x4",
        "evaluation_examples": 9,
        "max_position": 64,
    },
    "sequence_to_answer": {
        **SMALLEST,
        "task": "summation",
        "train_length": "2,3",
        "test_lengths": "5",
        "evaluation_examples": 5,
        "generated_examples": 2,
        "max_position": 64,
    },
    "wikitext103": {
        **TOY_OF_TEXT,
        "data_dir": str(WIKITEXT103),
        "files": "any",
        "word_pieces": 300,
    },
}
"""Flags of the smallest run of every registered trainer, by its name."""

EACH_STEP = {
    "encoding": "RandomizedRoPE",
    "steps_per_loop": 1,
    "checkpoint_every": 1,
}
"""Flags of a run that is logged and saved after each step."""


def toy_config(trainer="algorithmic", **changes):
    made = registered()[trainer]
    if trainer == "wikitext103":
        make_wikitext103(WIKITEXT103)
    if trainer == "examples":
        make_examples(EXAMPLES)
    flags = {**TOYS[trainer], **changes}
    if flags.get("dataset") == "python_source":
        del flags["data_dir"]
    return resolve(made.config, made.presets, flags)


def make_wikitext103(directory):
    """Writes a text in the format of WikiText-103, unless it is there."""
    directory.mkdir(exist_ok=True)
    for number, (name, lines) in enumerate(
        {"train": 300, "valid": 30, "test": 30}.items()
    ):
        rng = np.random.default_rng(number)
        words = rng.choice(
            ["the", "length", "of", "longer", "text"], (lines, 9)
        )
        text = "".join(f" {' '.join(line)} \n" for line in words)
        path = directory / f"wiki.{name}.raw"
        if not path.exists():
            with write_whole(path) as file:
                file.write(text.encode())


def make_examples(directory):
    """Writes examples of each kind, unless they are there."""
    directory.mkdir(exist_ok=True)
    rng = np.random.default_rng(0)
    texts = ["".join(rng.choice([*"abc"], n % 6 + 1)) for n in range(300)]
    for kind in KINDS:
        path = directory / f"{kind}.jsonl"
        if path.exists():
            continue
        with write_whole(path) as file:
            for text in texts:
                input_, target = {
                    "label": (text, int(text[0] == text[-1])),
                    "answer": (text, f"{text[::-1]}!"),
                    "tags": ([*text], [*text.upper()]),
                }[kind]
                row = {"input": input_, "target": target}
                file.write(f"{json.dumps(row)}\n".encode())


def run_toy(path, unchecked=None, trainer="algorithmic", **changes):
    """Results of a toy run in `path`; no flag has the values `unchecked`."""
    config = toy_config(trainer, **changes)
    return registered()[trainer].train(
        dataclasses.replace(config, **(unchecked or {})), path
    )


def build_toy(trainer="algorithmic", **changes):
    """Makes the model, the optimizer and the problem of a toy run."""
    config = toy_config(trainer, **changes)
    return registered()[trainer].make_parts(config, make_strategy("one_device"))


def make_parts(path, config, trainer="algorithmic", **more):
    """Makes a run without training: a model and its checkpoints."""
    experiment, strategy = registered()[trainer], make_strategy("one_device")
    model, optimizer, problem = experiment.make_parts(config, strategy)
    problem.prepare()
    digest = problem.data_digest
    with Workdir(path, config, trainer, data_digest=digest) as workdir:
        parts = {"model": model, "optimizer": optimizer, "strategy": strategy}
        parts.update(digest=workdir.digest, steps=config.steps, **more)
        return model, Checkpoints(path, **parts)


def change(path, **changes):
    """Changes entries of a JSON file; `...` removes one."""
    content = {**json.loads(path.read_text()), **changes}
    kept = {name: v for name, v in content.items() if v is not ...}
    path.write_text(json.dumps(kept))


def draw(problem, length, size, *, index=0, padded=None):
    """Draws a batch of an evaluation."""
    return problem.evaluation_batch(
        index=tf.constant(index),
        batch_size=size,
        length=tf.constant(length),
        padded_length=padded or problem.tokens(length),
    )


def stand_in_problem(*trained, **fields):
    """Stands in for a problem where its results are described."""
    known = {
        "metrics": (Metric("accuracy"),),
        "title": "reverse_string",
        "trained_lengths": trained,
        "longest_trained": trained[-1],
        "length_name": "length",
        "describe_length": str,
    }
    return types.SimpleNamespace(**{**known, **fields})


def train_losses(path):
    """Training losses that a run logged, in order."""
    with (path / "metrics.csv").open() as file:
        return [
            float(row["value"])
            for row in csv.DictReader(file)
            if row["metric"] == "train_loss"
        ]


def final_weights(path):
    """The last checkpoint of a run: weights, state of the optimizer, step."""
    newest = max(
        (path / "checkpoints").glob("checkpoint-*.npz"),
        key=lambda found: int(found.stem.split("-")[1]),
    )
    with np.load(newest) as arrays:
        return {
            name: arrays[name] for name in arrays.files if name != "seconds"
        }


def assert_same_weights(path, other):
    """Asserts that two runs ended with the same bits."""
    np.testing.assert_equal(final_weights(path), final_weights(other))
