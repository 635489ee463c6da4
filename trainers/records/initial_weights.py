"""Weights that a run takes over from a checkpoint of another run."""

import dataclasses
import pathlib

import numpy as np

from trainers.errors import ConfigError
from trainers.options.layers import build_encoding, find_longest_trained
from trainers.options.option import options
from trainers.records.checkpoints import read_weights
from trainers.records.variable_names import name_variables, split_number

SHAPELESS = ("num_heads", "normalization")
"""Flags that change the model, but not the shapes of its weights."""

FACTOR = "score_factor"
"""Flag of a factor of the scores, and the name of its weights."""


@dataclasses.dataclass(frozen=True)
class InitialWeights:
    """Weights of a checkpoint that a model begins with.

    Attributes:
        source: `pathlib.Path` of the checkpoint.
        loaded: Dict from the model's names of weights to arrays.
        new: List of str. Weights that only the model has.
        left_out: List of str. Weights that only the checkpoint has.
        adjusted: Dict from names of new weights to the arrays that they begin
            with in place of their initial values.
    """

    source: pathlib.Path
    loaded: dict
    new: list
    left_out: list
    adjusted: dict = dataclasses.field(default_factory=dict)

    @property
    def values(self):
        """Dict from names of weights to the arrays that they begin with."""
        return {**self.loaded, **self.adjusted}

    def describe(self):
        """Returns lines on what is loaded, new and left out."""
        count = sum(values.size for values in self.loaded.values())
        lines = [
            f"  begins with {self.source}: {len(self.loaded)} weights "
            f"({count:,} parameters) loaded"
        ]
        for title, names in (
            ("new, with initial values", self.new),
            ("left out", self.left_out),
        ):
            if names:
                lines.append(f"  {title}: {', '.join(names)}")
        return "\n".join(lines)


def read_initial_weights(opened, config, model):
    """Reads the weights that a model takes over from a run.

    Weights match by name and shape. A randomized form takes the weights of its
    encoding, and the reverse. Only weights of the encodings, and of factors of
    the scores, may be left over. A new factor is 1 at first; one that grows
    with the logarithm of the number of keys is 1 on average over 1 to as many
    keys as the longest training sequences have. The weights of an adaptive one
    are 0, which makes it `1 + log(2)`.

    Args:
        opened: The `OpenedRun`.
        config: Configuration of the model.
        model: Built Keras model.

    Returns:
        `InitialWeights`.

    Raises:
        ConfigError: If the checkpoint is damaged, or another weight is missing
            or has another shape.
    """
    before = opened.config
    for name in SHAPELESS:
        value, other = (getattr(of, name, None) for of in (before, config))
        if value != other:
            raise ConfigError(
                f"{opened.path} has --{name}={value}, which --initialize_from "
                f"cannot change; got {other}."
            )
    weights, _ = read_weights(opened.checkpoint, opened.digest)
    variables = name_variables(model)
    if getattr(before, FACTOR) != getattr(config, FACTOR):
        stored = _match(_drop_factors(weights), _drop_factors(variables))
    else:
        stored = _match(weights, variables)
    new = [name for name in variables if name not in stored]
    left_out = [name for name in weights if name not in stored.values()]
    encodings = {_find_layer(before), _find_layer(config)}
    for name in (*new, *left_out):
        layers = _list_layers(name)
        if encodings.isdisjoint(layers) and layers[-1] != FACTOR:
            raise ConfigError(
                f"{opened.checkpoint} does not fit this model: {name} "
                f"{_describe_shape(weights.get(name))} there and "
                f"{_describe_shape(variables.get(name))} here; only the "
                f"encoding and --score_factor may differ"
                f"{_describe_changes(before, config)}."
            )
    loaded = {name: weights[other] for name, other in stored.items()}
    adjusted = {
        name: np.full(variables[name].shape, _find_start(config), "float32")
        for name in new
        if _list_layers(name)[-1] == FACTOR
    }
    return InitialWeights(opened.checkpoint, loaded, new, left_out, adjusted)


def _drop_factors(weights):
    """Leaves out factors of the scores of a dict of weights."""
    return {
        name: values
        for name, values in weights.items()
        if _list_layers(name)[-1] != FACTOR
    }


def _find_start(config):
    """Returns what a new factor of the scores begins with."""
    if config.score_factor != "log_length":
        return 0.0 if config.score_factor == "adaptive" else 1.0
    keys = np.arange(1, max(find_longest_trained(config), 2) + 1)
    return 1 / np.log(keys).mean()


def _match(weights, variables):
    """Returns names in the checkpoint by names of the model's variables."""
    plain = {_plain(name): name for name in weights if name not in variables}
    pairs = {
        name: name if name in weights else plain.get(_plain(name))
        for name in variables
    }
    return {
        name: other
        for name, other in pairs.items()
        if other and weights[other].shape == tuple(variables[name].shape)
    }


def _plain(name):
    """Returns the name that a weight has without randomized positions."""
    return name.replace("/randomized_", "/")


def _list_layers(name):
    """Returns the names, without numbers, of the layers that own a weight."""
    return [split_number(part)[0] for part in _plain(name).split("/")]


def _find_layer(config):
    """Returns the name of the layer that is the encoding of a model."""
    return _list_layers(f"/{build_encoding(config).name}")[1]


def _describe_shape(values):
    return "is missing" if values is None else f"has shape {values.shape}"


def _describe_changes(before, config):
    """Describes other flags of the model that differ, if there are any."""
    changed = [
        f"--{name} was {getattr(before, name)!r}, is {getattr(config, name)!r}"
        for name, known in options(config).items()
        if known.changes_program
        and name not in ("encoding", "sampler", FACTOR)
        and getattr(before, name) != getattr(config, name)
    ]
    return f" ({'; '.join(changed)})" if changed else ""
