"""Options of trainers: fields of a frozen dataclass, each of them a flag."""

import dataclasses
import shlex

import keras

from keras_lengen.checks.arguments import LARGEST_POSITION, LARGEST_WIDTH
from keras_lengen.layers import (
    ATTENTIONS,
    MultiHeadAttention,
    PositionalEncoding,
    PositionSampler,
)
from trainers.engine.optimizer import SCHEDULES
from trainers.errors import ConfigError, as_config_errors
from trainers.options.choices import check_choice
from trainers.options.layers import ALL_ENCODINGS, ALL_SAMPLERS, build
from trainers.options.lengths import parse_lengths
from trainers.options.option import (
    check_options,
    check_unused,
    format_flag,
    option,
    options,
)


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
        "Which TPU, with --strategy=tpu: local, or a name or address.",
        changes_result=False,
    )
    compile: str = option(
        "auto",
        "Whether XLA compiles the model; auto: not on CPUs.",
        choices=("auto", "always", "never"),
    )

    def validate(self):
        """Raises `ConfigError` for the first invalid value."""
        check_options(self)
        for name, reason in self.unused.items():
            check_unused(self, [name], reason)

    @property
    def unused(self):
        """Dict from flags that have no effect beside the others to reasons."""
        return (
            {} if self.strategy == "tpu" else {"tpu": "without --strategy=tpu"}
        )


@dataclasses.dataclass(frozen=True)
class CheckpointConfig:
    """Options of every program that reads a checkpoint of RUN."""

    checkpoint: str = option(
        "newest", "Checkpoint of RUN to use.", choices=("newest", "best")
    )

    def validate(self):
        """Raises `ConfigError` for the first invalid value."""
        check_options(self)


@dataclasses.dataclass(frozen=True)
class RunConfig(CheckpointConfig):
    """Options common to programs that apply the model of RUN to data."""

    data_dir: str = option(
        "",
        "Directory of the data of RUN, if they have moved (empty: the "
        "directory that the run used).",
        is_path=True,
    )
    evaluation: str = option(
        "",
        "How samplers choose positions, such as even or ordinal (empty: as "
        "in the run).",
    )


@dataclasses.dataclass(frozen=True)
class TrainerConfig(DeviceConfig):
    """Options common to all trainers; every field is a flag.

    A subclass has the options for lengths and these attributes:

    Attributes:
        trained_lengths: Tuple of int, the lengths that training draws from,
            increasing. Raises `ConfigError` if an option is wrong.
        evaluated_lengths: The same, with those that are only tested.
    """

    preset: str = option(
        "small", "Set of defaults.", choices=("small", "paper")
    )
    encoding: str = option(
        "",
        "Positional encoding, by name or call (empty: a demonstration that "
        "compares RoPE with RandomizedRoPE).",
        registry=ALL_ENCODINGS,
        base=PositionalEncoding,
        changes_program=True,
    )
    sampler: str = option(
        "",
        "Position sampler, by name or call.",
        registry=ALL_SAMPLERS,
        base=PositionSampler,
        changes_program=True,
    )
    attention: str = option(
        "MultiHeadAttention",
        "Attention, by name or call.",
        registry=ATTENTIONS,
        base=MultiHeadAttention,
        changes_program=True,
    )
    score_factor: str = option(
        "none",
        "Factor of attention scores. head: a learned scalar for each head; "
        "log_length: that times log(n), with n visible keys (scalable "
        "softmax); adaptive: a learned function of each token and its index; "
        "evaluation_log_length: at evaluation only, log(n) / "
        "log(train_length) once n exceeds the trained length.",
        choices=(
            *("none", "head", "log_length", "adaptive"),
            "evaluation_log_length",
        ),
        changes_program=True,
    )
    attention_normalizer: str = option(
        "softmax",
        "How attention scores become weights: softmax; or entmax, which is "
        "sparse: keys with low scores have the weight 0.",
        choices=("softmax", "entmax"),
        changes_program=True,
    )
    max_position: int = option(
        0,
        "Range of positions of encodings and samplers that have one; 0: the "
        "next power of two above the longest sequence.",
        least=0,
        most=LARGEST_POSITION,
        changes_program=True,
    )
    chunk_size: int = option(
        0,
        "Number of queries whose attention scores are in memory at a time, "
        "which saves memory; 0: every query, up to 2,048 x 2,048 scores.",
        least=0,
        changes_program=True,
    )
    fused: str = option(
        "auto",
        "Whether attention uses fused kernels, which need JAX and a TPU.",
        choices=("auto", "always", "never"),
        changes_program=True,
    )
    share_positions: str = option(
        "model",
        "model: all layers share the random positions of a sampler; layer: "
        "each layer has its own.",
        choices=("model", "layer"),
        changes_program=True,
    )
    num_layers: int = option(
        3, "Number of Transformer blocks.", most=1000, changes_program=True
    )
    num_heads: int = option(
        8, "Number of attention heads.", most=1024, changes_program=True
    )
    model_dim: int = option(
        64, "Width of the model.", most=LARGEST_WIDTH, changes_program=True
    )
    dropout: float = option(
        0.1,
        "Dropout rate of each residual branch.",
        least=0,
        below=1,
        changes_program=True,
    )
    steps: int = option(1500, "Number of training steps.")
    batch_size: int = option(
        128, "Global batch size.", most=2**20, changes_program=True
    )
    gradient_accumulation_steps: int = option(
        1,
        "Number of parts that each replica splits its batch into, to save "
        "memory.",
        changes_program=True,
    )
    learning_rate: float = option(
        1e-3, "Peak learning rate of Adam.", least=1e-10, most=100.0
    )
    learning_rate_schedule: str = option(
        "Constant",
        "Schedule of the learning rate after the warm-up, by name or call.",
        registry=SCHEDULES,
    )
    warmup_steps: int = option(
        0,
        "Number of warm-up steps, in which the learning rate rises from 0.",
        least=0,
    )
    weight_decay: float = option(
        0.0, "Decoupled weight decay of weight matrices.", least=0, most=100.0
    )
    clip_norm: float = option(
        1.0, "Largest global norm of the gradients.", least=1e-6, most=1e30
    )
    seed: int = option(
        0, "Seed of weights, data, positions and dropout.", least=0
    )
    buckets: int = option(
        4, "Number of padded lengths in training; each compiles once.", most=64
    )
    evaluate_every: int = option(
        0, "Number of steps between evaluations; 0: only at the end.", least=0
    )
    evaluation_examples: int = option(
        200,
        "Number of examples of each length in an evaluation.",
        most=2**20,
        changes_program=True,
    )
    precision: str = option(
        "float32",
        "Dtype policy of the model.",
        choices=("float32", "mixed_bfloat16", "mixed_float16"),
        changes_program=True,
    )
    steps_per_loop: int = option(
        50, "Number of steps between reports.", changes_result=False
    )
    checkpoint_every: int = option(
        500, "Number of steps between checkpoints.", changes_result=False
    )
    keep_checkpoints: int = option(
        3,
        "Number of checkpoints to keep in addition to the best.",
        changes_result=False,
    )
    initialize_from: str = option(
        "",
        "Run, or one of its checkpoints, to take initial weights from; the "
        "encoding may differ (empty: random weights).",
        is_path=True,
    )
    workdir: str = option(
        "",
        "Directory for results; by default below runs/.",
        is_path=True,
        changes_result=False,
    )

    def validate(self):
        """Raises `ConfigError` for the first invalid value."""
        super().validate()
        if self.sampler and not self.encoding:
            raise ConfigError("--sampler requires --encoding.")
        if self.warmup_steps >= self.steps:
            raise ConfigError(
                f"--warmup_steps must be below --steps={self.steps}; got "
                f"{self.warmup_steps}."
            )
        self._validate_schedule()
        max(self.evaluated_lengths)  # Raises the error of a wrong one.
        if self.strategy == "tpu":
            self._validate_tpu()
        if self.compile == "never" and keras.backend.backend() == "jax":
            raise ConfigError(
                "JAX can only run compiled programs: remove --compile=never."
            )

    def _validate_schedule(self):
        schedule = build(self, "--learning_rate_schedule")
        with as_config_errors(ValueError):
            schedule(self.learning_rate, self.steps)

    def _validate_tpu(self):
        if self.precision == "mixed_float16":
            raise ConfigError(
                "TPUs compute in bfloat16: --precision=mixed_bfloat16."
            )
        if self.compile == "never":
            raise ConfigError(
                "TPUs can only run compiled programs: remove --compile=never."
            )

    @property
    def resolved(self):
        """The configuration with what the data say in place of `auto`."""
        return self

    @property
    def token_meanings(self):
        """Arguments of samplers that read token ids, as far as known."""
        return {}

    def total_length(self, length):
        """Returns the number of tokens of a sequence of a length."""
        return length


@dataclasses.dataclass(frozen=True)
class LengthsConfig(TrainerConfig):
    """Options of trainers whose lengths are numbers."""

    train_length: str = option(
        "1-20", "Training lengths.", changes_program=True
    )
    test_lengths: str = option(
        "21-100", "Lengths to evaluate in addition to the training lengths."
    )

    @property
    def trained_lengths(self):
        return parse_lengths("--train_length", self.train_length)

    @property
    def evaluated_lengths(self):
        tested = parse_lengths("--test_lengths", self.test_lengths)
        return tuple(sorted({*self.trained_lengths, *tested}))


def normalization_option():
    """Returns the field of trainers whose models know both normalizations."""
    return option(
        "pre",
        "Normalization before or after each residual branch.",
        choices=("pre", "post"),
        changes_program=True,
    )


def resolve(config_class, presets, given):
    """Makes a valid configuration of given values, a preset and defaults.

    Args:
        config_class: Class of the configuration.
        presets: Dict from the name of a preset to the fields it sets; empty:
            there is no flag `--preset`.
        given: Dict of the fields that the user set.

    Raises:
        ConfigError: For the first value that cannot work.
    """
    known = options(config_class)
    given = {
        name: known[name].normalize(value) for name, value in given.items()
    }
    if presets:
        preset = given.get("preset", "small")
        check_choice("--preset", preset, presets)
        given = {"preset": preset, **presets[preset], **given}
    config = config_class(**given)
    config.validate()
    return config


def describe_changes(config, presets):
    """Returns the flags that differ from those of the preset, as on a shell.

    Args:
        config: Configuration, with a `preset`.
        presets: Dict from the name of a preset to the fields it sets.
    """
    preset = dataclasses.asdict(type(config)(**presets.get(config.preset, {})))
    return " ".join(
        format_flag(
            name, shlex.quote(value) if isinstance(value, str) else value
        )
        for name, value in dataclasses.asdict(config).items()
        if value != preset[name]
    )
