"""Weights that a run takes over from a checkpoint of another run."""

import dataclasses
import pathlib

from trainers.errors import ConfigError
from trainers.options.layers import build_encoding
from trainers.options.option import options
from trainers.records.checkpoints import read_weights
from trainers.records.variable_names import name_variables, split_number

SHAPELESS = ("num_heads", "normalization")
"""Flags that change the model, but not the shapes of its weights."""


@dataclasses.dataclass(frozen=True)
class InitialWeights:
    """Weights of a checkpoint that a model begins with.

    Attributes:
        source: `pathlib.Path` of the checkpoint.
        loaded: Dict from the model's names of weights to arrays.
        new: List of str. Weights that only the model has.
        left_out: List of str. Weights that only the checkpoint has.
    """

    source: pathlib.Path
    loaded: dict
    new: list
    left_out: list

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
    encoding, and the reverse. Only weights of the encodings may be left over.

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
    stored = _match(weights, variables)
    new = [name for name in variables if name not in stored]
    left_out = [name for name in weights if name not in stored.values()]
    encodings = {_find_layer(before), _find_layer(config)}
    for name in (*new, *left_out):
        if encodings.isdisjoint(_list_layers(name)):
            raise ConfigError(
                f"{opened.checkpoint} does not fit this model: {name} "
                f"{_describe_shape(weights.get(name))} there and "
                f"{_describe_shape(variables.get(name))} here; only the "
                f"encoding may differ{_describe_changes(before, config)}."
            )
    loaded = {name: weights[other] for name, other in stored.items()}
    return InitialWeights(opened.checkpoint, loaded, new, left_out)


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
        and name not in ("encoding", "sampler")
        and getattr(before, name) != getattr(config, name)
    ]
    return f" ({'; '.join(changed)})" if changed else ""
