"""Configuration of trainers: a frozen dataclass, its flags and its errors."""

import ast
import dataclasses
import difflib
import inspect
import os
import signal
import sys
import time
import typing

import keras
import tensorflow as tf
from absl import app, flags, logging
from keras import ops

from keras_lengen.layers import (
    ATTENTIONS,
    ENCODINGS,
    SAMPLERS,
    AxialEncoding,
    GridPositions,
    LearnedEncoding,
)
from keras_lengen.layers.encodings.base import Preset

# With those that are made of two others.
ALL_ENCODINGS = {**ENCODINGS, "AxialEncoding": AxialEncoding}
ALL_SAMPLERS = {**SAMPLERS, "GridPositions": GridPositions}
_ROWS_AND_COLUMNS = {"--encoding": ENCODINGS, "--sampler": SAMPLERS}


class ConfigError(Exception):
    """A mistake that can be known before work starts: exit status 2."""


class TrainingError(Exception):
    """A failure during work, told in one message: exit status 1."""


class StoppedError(Exception):
    """A signal stopped a run, which is saved: exit status 128 + its number."""

    def __init__(self, number):
        super().__init__(number)
        self.number = number


class WorkerLostError(Exception):
    """Another worker of the run is gone, and may come back."""


def option(default, help_text):
    """A field of a configuration, with the help text of its flag."""
    return dataclasses.field(default=default, metadata={"help": help_text})


@dataclasses.dataclass(frozen=True)
class TrainerConfig:
    """What all trainers are told; every field is a flag."""

    preset: str = option("small", "Set of defaults: small or paper.")
    encoding: str = option("NoPE", "Encoding, by name or call.")
    sampler: str = option("", "Position sampler, by name or call.")
    attention: str = option(
        "MultiHeadAttention", "MultiHeadAttention or GeometricAttention."
    )
    max_position: int = option(
        0,
        "Range of positions of encodings and samplers that have one; 0: a "
        "power of two beyond the longest sequence.",
    )
    draw: str = option("model", "Draws of positions: per model or per layer.")
    num_layers: int = option(3, "Number of blocks.")
    num_heads: int = option(8, "Number of attention heads.")
    model_dim: int = option(64, "Width of the model.")
    dropout: float = option(0.1, "Share of features dropped in training.")
    steps: int = option(1500, "Training steps.")
    batch_size: int = option(128, "Examples in a global batch.")
    gradient_accumulation_steps: int = option(
        1, "Parts that each replica divides its batch into, to save memory."
    )
    learning_rate: float = option(1e-3, "Learning rate of Adam, at its top.")
    learning_rate_schedule: str = option(
        "Constant", "Constant, Polynomial or Cosine, by name or call."
    )
    warmup_steps: int = option(0, "Steps in which the learning rate rises.")
    weight_decay: float = option(0.0, "Decoupled decay of weight matrices.")
    clip_norm: float = option(1.0, "Largest global norm of the gradients.")
    seed: int = option(0, "Seed of weights, data, positions and dropout.")
    train_length: str = option("1-20", "Trained lengths.")
    test_lengths: str = option("21-100", "Further evaluated lengths.")
    buckets: int = option(4, "Padded lengths, each a program, in training.")
    evaluate_every: int = option(0, "Steps between evaluations; 0: at the end.")
    evaluation_examples: int = option(200, "Examples for each length.")
    precision: str = option(
        "float32", "float32, mixed_bfloat16 or mixed_float16."
    )
    strategy: str = option(
        "auto", "auto, one_device, mirrored, multi_worker or tpu."
    )
    tpu: str = option("local", "TPU: local, or its name or address.")
    compile: str = option("auto", "XLA: true, false, or auto (not on CPUs).")
    steps_per_loop: int = option(50, "Steps between reports.")
    checkpoint_every: int = option(500, "Steps between checkpoints.")
    keep_checkpoints: int = option(3, "Checkpoints to keep, beside the best.")
    workdir: str = option("", "Where results go; by default below runs/.")

    def validate(self):
        """Raises `ConfigError` for the first value that cannot work."""
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            least = 0 if field.name in _MAY_BE_ZERO else 1
            if field.type is int and value < least:
                raise ConfigError(
                    f"--{field.name} must be at least {least}; got {value}."
                )
        for name, choices in _CHOICES.items():
            check_choice(f"--{name}", getattr(self, name), choices)
        if not 0 <= self.dropout < 1:
            raise ConfigError(
                f"--dropout must be at least 0 and below 1; got {self.dropout}."
            )
        for name in ("learning_rate", "clip_norm"):
            if not getattr(self, name) > 0:
                raise ConfigError(
                    f"--{name} must be above 0; got {getattr(self, name)}."
                )
        if not self.weight_decay >= 0:
            raise ConfigError(
                f"--weight_decay must be at least 0; got {self.weight_decay}."
            )
        if self.warmup_steps >= self.steps:
            raise ConfigError(
                f"--warmup_steps must be below --steps={self.steps}; got "
                f"{self.warmup_steps}."
            )
        if "://" in self.workdir:
            raise ConfigError(
                f"--workdir is a path of a file system; got {self.workdir!r}: "
                "use a disk, or mount the bucket."
            )
        if self.strategy == "tpu":
            self._validate_tpu()
        if self.compile == "false" and keras.backend.backend() == "jax":
            raise ConfigError(
                "JAX runs compiled programs alone: leave --compile=false out."
            )

    def _validate_tpu(self):
        if self.precision == "mixed_float16":
            raise ConfigError(
                "TPUs compute in bfloat16: --precision=mixed_bfloat16."
            )
        if self.compile == "false":
            raise ConfigError(
                "TPUs run compiled programs alone: leave --compile=false out."
            )

    def total_length(self, length):
        """Tokens that a model reads of a sequence of some length."""
        return length

    @property
    def trained_lengths(self):
        """The lengths that training draws from."""
        return parse_lengths("--train_length", self.train_length)

    @property
    def evaluated_lengths(self):
        """The trained lengths and the further ones, increasing."""
        tested = parse_lengths("--test_lengths", self.test_lengths)
        return tuple(sorted({*self.trained_lengths, *tested}))


MAX_RESTARTS = 100
"""How often a worker waits for others to come back."""

_RESTARTS = "KERAS_LENGEN_RESTARTS"
_MAY_BE_ZERO = ("seed", "evaluate_every", "max_position", "warmup_steps")
_CHOICES = {
    "attention": tuple(ATTENTIONS),
    "draw": ("model", "layer"),
    "precision": ("float32", "mixed_bfloat16", "mixed_float16"),
    "strategy": ("auto", "one_device", "mirrored", "multi_worker", "tpu"),
    "compile": ("auto", "true", "false"),
}


def check_choice(name, value, choices):
    """Raises `ConfigError`, with the nearest match, unless among choices."""
    if value in choices:
        return
    close = difflib.get_close_matches(value, choices, n=1, cutoff=0.4)
    hint = f" Did you mean {close[0]}?" if close else ""
    raise ConfigError(
        f"{name} must be one of {', '.join(choices)}; got {value!r}.{hint}"
    )


def parse_lengths(name, text):
    """Lengths of `256,1024`, `1-500` or `1-500:20`, increasing.

    >>> parse_lengths("--test_lengths", "3,10-20:5")
    (3, 10, 15, 20)
    """
    lengths = set()
    for part in text.split(","):
        try:
            span, _, stride = part.partition(":")
            first, dash, last = span.partition("-")
            first, last = int(first), int(last if dash else first)
            lengths.update(range(first, last + 1, int(stride or 1)))
            if not 1 <= first <= last:
                raise ValueError
        except ValueError:
            raise ConfigError(
                f"{name} takes lengths from 1 up, as 256,1024 or 1-500 or "
                f"1-500:20; got {text!r}."
            ) from None
    return tuple(sorted(lengths))


def parse_call(flag, text, registry):
    """Class and arguments of `Name` or `Name(argument=value, ...)`.

    Values are literals, but `row` and `column` are names or calls themselves,
    as in `GridPositions(width=5, row=RandomizedPositions(max_position=9))`.
    All of their arguments must be given: the other flags count tokens.
    """
    try:
        return _read(flag, ast.parse(text.strip(), mode="eval").body, registry)
    except (SyntaxError, TypeError, ValueError):
        raise ConfigError(
            f"{flag} takes a name or a call with literal keyword arguments, "
            f"as RoPE(rotary_fraction=0.25); got {text!r}."
        ) from None


def _read(flag, tree, registry):
    call = tree if isinstance(tree, ast.Call) else ast.Call(tree, [], [])
    if call.args or not isinstance(call.func, ast.Name):
        raise ValueError
    check_choice(flag, call.func.id, tuple(registry))
    return registry[call.func.id], {
        keyword.arg: _read_value(flag, keyword) for keyword in call.keywords
    }


def _read_value(flag, keyword):
    if keyword.arg == "sampler":
        raise ConfigError(f"{flag} takes no sampler: give it by --sampler.")
    if keyword.arg in ("row", "column") and flag in _ROWS_AND_COLUMNS:
        registry = _ROWS_AND_COLUMNS[flag]
        return _construct(*_read(flag, keyword.value, registry))
    return ast.literal_eval(keyword.value)


def build(config, flag, registry):
    """What a flag names, made with the arguments of its call.

    Unless the call sets them, `--max_position`, the tokens of the longest
    trained sequence, and the room for shifts that is left between the two
    reach whatever takes them.
    """
    return _make(config, *parse_call(flag, _value(config, flag), registry))


def build_encoding(config):
    """The encoding that the flags describe, with its sampler.

    Raises:
        ConfigError: If there is no such encoding, or sampler, or the two do
            not go together.
    """
    flag = "--encoding"
    made, arguments = parse_call(flag, _value(config, flag), ALL_ENCODINGS)
    if config.sampler:
        arguments["sampler"] = build(config, "--sampler", ALL_SAMPLERS)
    encoding = _make(config, made, arguments)
    in_pairs = isinstance(encoding.sampler, GridPositions)
    if isinstance(encoding, AxialEncoding) != in_pairs:
        raise ConfigError(
            "AxialEncoding needs --sampler=GridPositions(width=...), and that "
            f"needs it; got {made.__name__} with "
            f"{type(encoding.sampler).__name__}."
        )
    for part in (encoding.row, encoding.column) if in_pairs else ():
        if isinstance(part, Preset):
            raise ConfigError(
                "AxialEncoding has no use for the sampler that "
                f"{type(part).__name__} brings: take the plain encoding, and "
                "--sampler=GridPositions(row=..., column=...) to draw."
            )
    return encoding


def check_positions(encoding, tokens):
    """Raises `ConfigError` unless an encoding has positions for all tokens.

    Args:
        encoding: A `PositionalEncoding`.
        tokens: Number of tokens of the longest sequence.
    """
    parts = [("tokens", tokens, encoding, encoding.sampler)]
    if isinstance(encoding, AxialEncoding):
        grid = encoding.sampler
        rows = -(-tokens // grid.width)
        parts = [
            ("rows", rows, encoding.row, grid.row),
            ("columns", grid.width, encoding.column, grid.column),
        ]
    for unit, count, part, sampler in parts:
        for layer in (part, sampler):
            reach = getattr(layer, "max_position", count)
            if reach < count:
                raise ConfigError(
                    f"the longest sequence has {count} {unit}, but "
                    f"{type(layer).__name__} has max_position={reach}: raise "
                    f"it to {count} at least, or evaluate shorter lengths."
                )
        if isinstance(part, LearnedEncoding):
            _check_table(part, sampler, count)


def _check_table(encoding, sampler, count):
    positions = sampler(ops.zeros((1, count)), training=False)
    top = max(int(ops.max(positions)), getattr(sampler, "max_position", 0) - 1)
    if top >= encoding.max_position:
        raise ConfigError(
            f"positions of {type(sampler).__name__} reach {top}, but "
            f"{type(encoding).__name__} has {encoding.max_position} rows: "
            f"give it max_position={top + 1}."
        )
    try:
        encoding.check_positions(positions)
    except ValueError as error:
        raise ConfigError(str(error)) from None


def _value(config, flag):
    return getattr(config, flag.removeprefix("--"))


def _make(config, made, arguments):
    """A layer, with what the flags say of arguments that are not given."""
    known = _known_arguments(config)
    missing = (accepted_arguments(made) & set(known)) - set(arguments)
    return _construct(made, {**{n: known[n] for n in missing}, **arguments})


def _construct(made, arguments):
    accepted = accepted_arguments(made)
    unknown = set(arguments) - accepted
    if unknown:
        raise ConfigError(
            f"{made.__name__} has no argument {sorted(unknown)[0]!r}; it "
            f"takes {', '.join(sorted(accepted)) or 'none'}."
        )
    try:
        return made(**arguments)
    except (TypeError, ValueError) as error:
        raise ConfigError(str(error)) from None


def _known_arguments(config):
    """What the other flags say of the arguments of encodings and samplers."""
    trained = config.total_length(max(config.trained_lengths))
    return {
        "max_position": config.max_position,
        "train_length": trained,
        "original_length": trained,
        "max_shift": max(config.max_position - trained, 1),
    }


def accepted_arguments(made):
    """Names of the constructor arguments of a class of ours."""
    names = set()
    for parent in made.__mro__:
        if parent.__module__.startswith("keras."):
            break
        if "__init__" in vars(parent):
            names.update(
                parameter.name
                for parameter in inspect.signature(
                    parent.__init__
                ).parameters.values()
                if parameter.kind is parameter.KEYWORD_ONLY
            )
    return names


def run(config_class, presets, main):
    """Parses the flags, calls `main(config)` and turns errors into statuses.

    Args:
        config_class: A `TrainerConfig`; each field becomes a flag.
        presets: Dict from the name of a preset to the fields it sets.
        main: Called with the configuration.
    """
    types = typing.get_type_hints(config_class)
    define = {
        str: flags.DEFINE_string,
        int: flags.DEFINE_integer,
        float: flags.DEFINE_float,
    }
    fields = dataclasses.fields(config_class)
    for field in fields:
        # None: not given, so that a preset can tell its own defaults apart.
        define[types[field.name]](
            field.name,
            None,
            f"{field.metadata['help']} (default: {field.default!r})",
            # The name that absl knows the main program by: --help lists its
            # flags alone.
            module_name=sys.argv[0],
        )

    # TensorFlow warns of many programs, which are here on purpose, one per
    # bucket, and reports on every file it saves.
    tf.get_logger().setLevel("ERROR")
    logging.set_verbosity(logging.WARNING)

    def parse(argv):
        try:
            return flags.FLAGS(argv)
        except flags.Error as error:
            _fail(error, 2)

    def start(argv):
        if len(argv) > 1:
            _fail(f"unexpected argument {argv[1]!r}: flags start with --.", 2)
        given = {
            field.name: getattr(flags.FLAGS, field.name)
            for field in fields
            if getattr(flags.FLAGS, field.name) is not None
        }
        try:
            if keras.backend.backend() not in ("tensorflow", "jax"):
                raise ConfigError(
                    "trainers run on TensorFlow and JAX, but Keras is set to "
                    f"{keras.backend.backend()}: change KERAS_BACKEND."
                )
            config = resolve(config_class, presets, given)
            main(config)
        except ConfigError as error:
            _fail(error, 2)
        except TrainingError as error:
            _fail(error, 1)
        except WorkerLostError as error:
            _start_again(error)
        except StoppedError as error:
            name = signal.Signals(error.number).name
            status = 128 + error.number
            _fail(f"stopped by {name}: the same command goes on.", status)
        except KeyboardInterrupt:
            _fail(
                "interrupted: the same command goes on from the last "
                "checkpoint.",
                128 + signal.SIGINT,
            )

    app.run(start, flags_parser=parse)


def resolve(config_class, presets, given):
    """A valid configuration: what was given, then the preset, then defaults."""
    preset = given.get("preset", "small")
    check_choice("--preset", preset, tuple(presets))
    config = config_class(**{"preset": preset, **presets[preset], **given})
    config.validate()
    return config


def _start_again(error):
    """Becomes a new process, as the collective operations are broken."""
    restarts = int(os.environ.get(_RESTARTS, 0)) + 1
    if restarts > MAX_RESTARTS:
        _fail(f"gave up after {MAX_RESTARTS} restarts: {error}", 1)
    os.environ[_RESTARTS] = str(restarts)
    print(
        "another worker was lost: going on from the last checkpoint when all "
        f"are back (restart {restarts})",
        flush=True,
    )
    # Time for the others to notice, too.
    time.sleep(1)
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def _fail(message, status):
    print(f"error: {message}", file=sys.stderr)
    sys.exit(status)
