"""How far heads attend, and how unlike those of another run."""

import numpy as np

from keras_lengen.analysis import (
    attention_distance,
    attention_divergence,
    attention_weights,
)
from keras_lengen.layers import GeometricAttention
from trainers.analyses.loaded import find_counted, read
from trainers.errors import ConfigError
from trainers.records.markdown import table
from trainers.records.workdir import write_json


class UnsuitableError(ConfigError):
    """A model whose attention has no distances and divergences."""


def write_attention(config, loaded):
    """Writes and prints what one model attends to, or two models.

    Raises:
        UnsuitableError: If a model has weights that do not sum to 1.
        ConfigError: If the models cannot be compared.
    """
    first, *further = loaded
    problem = first.problem
    if len({find_words(one) for one in loaded}) > 1:
        raise ConfigError(
            f"{further[0].opened.path} reads other words than "
            f"{first.opened.path}: compare runs of one task and scratchpad."
        )
    length = config.length or problem.longest_trained
    first.check_lengths("--length", [length])
    batch = read(problem, length, config.examples)
    inputs = problem.inputs(batch)
    for one in loaded:
        _check_suitable(one)
    try:
        layers, *compared = (find_layers(one.model, inputs) for one in loaded)
        for other, found in zip(further, compared, strict=True):
            if len(found) != len(layers):
                raise ValueError(
                    f"{first.opened.path} has {len(layers)} layers, and "
                    f"{other.opened.path} has {len(found)}."
                )
        shape = next(iter(layers.values())).shape[::2]
        queries = find_counted(problem, batch, length, shape)
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
    measured = ("least_divergence", "mean_divergence") if further else ()
    head = [
        "layer",
        "mean distance by head, in tokens",
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


def describe_attention(layers, queries, other_layers=None):
    """Describes what the heads of each layer attend to.

    Args:
        layers: Dict from names of layers to weights `(B, H, T, T)`.
        queries: bool `(B, T)`. Queries that count.
        other_layers: The same of another model, with as many layers; `None`:
            there is none.

    Returns:
        List of dicts, one for each layer: its `"layer"`, a name; `"distance"`,
        a number for each head, in tokens; and with `other_layers`
        `"divergence"`, rows of numbers in nats, one for each pair of heads,
        with their `"least_divergence"` and their `"mean_divergence"`.

    Raises:
        ValueError: If weights are not probabilities, or those of the other
            model are of other tokens.
    """
    compared = list((other_layers or {}).values())
    described = []
    for number, (name, weights) in enumerate(layers.items()):
        distance = attention_distance(weights, queries=queries)
        found = {"layer": name, "distance": distance.round(4).tolist()}
        if compared:
            pairs = attention_divergence(
                weights, compared[number], queries=queries
            )
            found |= {
                "least_divergence": round(float(np.min(pairs)), 6),
                "mean_divergence": round(float(np.mean(pairs)), 6),
                "divergence": pairs.round(6).tolist(),
            }
        described.append(found)
    return described


def _check_suitable(loaded):
    layers = loaded.model._flatten_layers()
    if any(isinstance(layer, GeometricAttention) for layer in layers):
        raise UnsuitableError(
            f"{loaded.path} has GeometricAttention, whose weights of a query "
            "do not sum to 1."
        )


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
