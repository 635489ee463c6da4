"""Options of trainers: fields of a frozen dataclass, each of them a flag."""

import dataclasses
import difflib

import keras

from keras_lengen.layers import ATTENTIONS
from trainers.errors import ConfigError
from trainers.options.lengths import parse_lengths


@dataclasses.dataclass(frozen=True)
class Option:
    """Properties of a flag beside its name, type and default.

    Attributes:
        help: str. Text for `--help`.
        choices: Tuple of allowed values; empty: any.
        least: Smallest allowed value, or `None`.
        above: Number that values must be above, or `None`.
        below: Number that values must be below, or `None`.
        changes_result: bool. Whether the result depends on the flag: a run
            cannot resume with another value.
        changes_program: bool. Whether compiled programs depend on the flag.
    """

    help: str
    choices: tuple = ()
    least: float | None = None
    above: float | None = None
    below: float | None = None
    changes_result: bool = True
    changes_program: bool = False

    def check(self, flag, value):
        """Raises `ConfigError` for a value that cannot work."""
        if self.choices:
            check_choice(flag, value, self.choices)
        bounds = {
            "at least": (self.least, lambda bound: value >= bound),
            "above": (self.above, lambda bound: value > bound),
            "below": (self.below, lambda bound: value < bound),
        }
        given = {
            words: (bound, holds)
            for words, (bound, holds) in bounds.items()
            if bound is not None
        }
        # NaN is within no bound.
        if not all(holds(bound) for bound, holds in given.values()):
            allowed = " and ".join(
                f"{words} {bound}" for words, (bound, _) in given.items()
            )
            raise ConfigError(f"{flag} must be {allowed}; got {value}.")


def option(default, help_text, **known):
    """Returns a field of a configuration.

    Args:
        default: Default value of the flag.
        help_text: Text for `--help`.
        **known: Further attributes of `Option`. Integers are at least 1 unless
            `least` says otherwise.
    """
    if type(default) is int:
        known.setdefault("least", 1)
    return dataclasses.field(
        default=default, metadata={"option": Option(help_text, **known)}
    )


def options(config):
    """Returns the `Option`s of a configuration or its class, by name."""
    return {
        field.name: field.metadata["option"]
        for field in dataclasses.fields(config)
    }


def check_options(config):
    """Raises `ConfigError` for the first value that cannot work by itself."""
    for name, known in options(config).items():
        known.check(f"--{name}", getattr(config, name))


@dataclasses.dataclass(frozen=True)
class DeviceConfig:
    """Options of every program that computes with a model."""

    strategy: str = option(
        "auto",
        "Devices to train on.",
        choices=("auto", "one_device", "mirrored", "multi_worker", "tpu"),
        changes_result=False,
    )
    tpu: str = option(
        "local",
        "TPU: local, or its name or address.",
        changes_result=False,
    )
    compile: str = option(
        "auto",
        "Whether XLA compiles the model; auto: not on CPUs.",
        choices=("auto", "true", "false"),
    )


@dataclasses.dataclass(frozen=True)
class TrainerConfig(DeviceConfig):
    """Options common to all trainers; every field is a flag."""

    preset: str = option(
        "small", "Set of defaults.", choices=("small", "paper")
    )
    encoding: str = option(
        "",
        "Positional encoding, by name or call; none: compare RoPE with "
        "RandomizedRoPE.",
        changes_program=True,
    )
    sampler: str = option(
        "", "Position sampler, by name or call.", changes_program=True
    )
    attention: str = option(
        "MultiHeadAttention",
        "Attention, by name.",
        choices=tuple(ATTENTIONS),
        changes_program=True,
    )
    max_position: int = option(
        0,
        "Range of positions of encodings and samplers that have one; 0: a "
        "power of two above the longest sequence.",
        least=0,
        changes_program=True,
    )
    draw: str = option(
        "model",
        "Draw positions once per model, or once per layer.",
        choices=("model", "layer"),
        changes_program=True,
    )
    num_layers: int = option(
        3, "Number of Transformer blocks.", changes_program=True
    )
    num_heads: int = option(
        8, "Number of attention heads.", changes_program=True
    )
    model_dim: int = option(64, "Width of the model.", changes_program=True)
    dropout: float = option(
        0.1,
        "Dropout rate of each residual branch.",
        least=0,
        below=1,
        changes_program=True,
    )
    steps: int = option(1500, "Training steps.")
    batch_size: int = option(
        128, "Examples in a global batch.", changes_program=True
    )
    gradient_accumulation_steps: int = option(
        1,
        "Number of parts that each replica splits its batch into, to save "
        "memory.",
        changes_program=True,
    )
    learning_rate: float = option(1e-3, "Peak learning rate of Adam.", above=0)
    learning_rate_schedule: str = option(
        "Constant", "Constant, Polynomial or Cosine, by name or call."
    )
    warmup_steps: int = option(
        0, "Steps in which the learning rate rises from 0.", least=0
    )
    weight_decay: float = option(
        0.0, "Decoupled decay of weight matrices.", least=0
    )
    clip_norm: float = option(
        1.0, "Largest global norm of the gradients.", above=0
    )
    seed: int = option(
        0, "Seed of weights, data, positions and dropout.", least=0
    )
    train_length: str = option("1-20", "Trained lengths.", changes_program=True)
    test_lengths: str = option(
        "21-100", "Lengths to evaluate in addition to the trained ones."
    )
    buckets: int = option(
        4, "Number of padded lengths in training, each a program."
    )
    evaluate_every: int = option(
        0, "Steps between evaluations; 0: at the end only.", least=0
    )
    evaluation_examples: int = option(
        200, "Examples of each length in an evaluation.", changes_program=True
    )
    precision: str = option(
        "float32",
        "Dtype policy of the model.",
        choices=("float32", "mixed_bfloat16", "mixed_float16"),
        changes_program=True,
    )
    steps_per_loop: int = option(
        50, "Steps between reports.", changes_result=False
    )
    checkpoint_every: int = option(
        500, "Steps between checkpoints.", changes_result=False
    )
    keep_checkpoints: int = option(
        3, "Checkpoints to keep in addition to the best.", changes_result=False
    )
    workdir: str = option(
        "",
        "Directory for results; by default below runs/.",
        changes_result=False,
    )

    def validate(self):
        """Raises `ConfigError` for the first value that cannot work."""
        check_options(self)
        if self.sampler and not self.encoding:
            raise ConfigError("--sampler needs an --encoding to go with.")
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
        """Returns the number of tokens of a sequence of a length."""
        return length

    @property
    def trained_lengths(self):
        """Tuple of int, the lengths that training draws from, increasing."""
        return parse_lengths("--train_length", self.train_length)

    @property
    def evaluated_lengths(self):
        """Tuple of int, trained lengths and test lengths, increasing."""
        tested = parse_lengths("--test_lengths", self.test_lengths)
        return tuple(sorted({*self.trained_lengths, *tested}))


def check_choice(name, value, choices):
    """Raises `ConfigError` with the nearest match unless a value is allowed."""
    if value in choices:
        return
    close = difflib.get_close_matches(value, choices, n=1, cutoff=0.4)
    hint = f" Did you mean {close[0]}?" if close else ""
    raise ConfigError(
        f"{name} must be one of {', '.join(choices)}; got {value!r}.{hint}"
    )


def resolve(config_class, presets, given):
    """Makes a valid configuration of given values, a preset and defaults.

    Args:
        config_class: Class of the configuration.
        presets: Dict from the name of a preset to the fields it sets.
        given: Dict of the fields that the user set.

    Raises:
        ConfigError: For the first value that cannot work.
    """
    preset = given.get("preset", "small")
    check_choice("--preset", preset, tuple(presets))
    config = config_class(**{"preset": preset, **presets[preset], **given})
    config.validate()
    return config
