"""Layers, schedules and curricula that a flag names or calls."""

import contextlib
import dataclasses
import math

from keras_lengen.checks.constructors import constructor_arguments
from keras_lengen.layers import (
    ENCODINGS,
    SAMPLERS,
    TOKEN_SAMPLERS,
    AxialEncoding,
    GridPositions,
    Recipe,
)
from keras_lengen.layers.attention.fused import find_backend_obstacle
from keras_lengen.layers.attention.fused_devices import find_device_obstacle
from keras_lengen.layers.positions.base import check_reach
from keras_lengen.layers.transformer import AttentionRecipe
from trainers.errors import ConfigError, as_config_errors
from trainers.options.calls import construct, parse_call
from trainers.options.option import options

# With the encoding and the sampler that are made of two others.
ALL_ENCODINGS = {**ENCODINGS, "AxialEncoding": AxialEncoding}
ALL_SAMPLERS = {**SAMPLERS, "GridPositions": GridPositions}

READING = tuple(TOKEN_SAMPLERS.values())
"""Samplers that read tokens."""

FROM_FLAGS = {
    "max_position": "--max_position",
    "train_length": "--train_length",
    "original_length": "--train_length",
    "max_shift": "--max_position and --train_length",
    **dict.fromkeys(
        ("items", "end_of_prompt", "separators", "order"), "--task"
    ),
    "digits": "--task",
}
"""Flags that set arguments that a call leaves out."""


def build(config, flag):
    """Makes the object of its `registry` that a flag names or calls.

    Arguments that the call leaves out come from other flags where these know
    them: those of `FROM_FLAGS`.
    """
    return _make(config, *_parse(config, flag))


def build_encoding(config):
    """Makes the encoding that the flags describe, with its sampler.

    Raises:
        ConfigError: If the encoding or the sampler does not exist, or the
            encoding does not accept the sampler.
    """
    kind, arguments = _parse(config, "--encoding")
    if config.sampler:
        arguments["sampler"] = build(config, "--sampler")
    return _make(config, kind, arguments)


def build_attention(config):
    """Makes the recipe of the attention that the flags describe.

    Raises:
        ConfigError: If there is no such attention, it does not accept an
            argument, or another flag sets the argument.
    """
    kind, arguments = _parse(config, "--attention")
    of_flags = _list_attention_flags(config)
    for name in arguments.keys() & of_flags:
        flag, _ = of_flags[name]
        raise ConfigError(
            f"--attention={config.attention} and {flag} both set {name}: "
            "remove one of them."
        )
    arguments |= {name: value for name, (_, value) in of_flags.items()}
    with as_config_errors(ValueError):
        recipe = Recipe(kind, **arguments)
        return AttentionRecipe().check("--attention", recipe)


def _list_attention_flags(config):
    """Lists the arguments of attention that other flags set.

    Returns:
        Dict from names of arguments to the flag and the value.
    """
    found = {}
    if config.score_factor == "evaluation_log_length":
        # The logarithm of one token is 0.
        trained = max(find_longest_trained(config), 2)
        found["train_length"] = "--score_factor", trained
    elif config.score_factor != "none":
        found["score_factor"] = "--score_factor", config.score_factor
    if config.attention_normalizer == "entmax":
        found["use_entmax"] = "--attention_normalizer", True
    if config.chunk_size:
        found["chunk_size"] = "--chunk_size", config.chunk_size
    if config.fused != "auto":
        found["fused"] = "--fused", config.fused == "always"
    return found


def model_arguments(config):
    """Returns the arguments of a model that flags of all trainers set."""
    return {
        "num_layers": config.num_layers,
        "num_heads": config.num_heads,
        "model_dim": config.model_dim,
        "dropout": config.dropout,
        "encoding": build_encoding(config),
        "attention": build_attention(config),
        "share_positions": config.share_positions,
        "dtype": config.precision,
    }


def merge_arguments(preset, config):
    """Returns the arguments of a model of a preset, with those of flags.

    Attention keeps the options of the preset that flags leave out.

    Args:
        preset: Dict of arguments, as in `keras_lengen.models.presets`.
        config: Configuration of the run.
    """
    of_flags = model_arguments(config)
    if "attention" in preset:
        given = of_flags["attention"]
        options = preset["attention"].arguments | given.arguments
        of_flags["attention"] = Recipe(given.layer, **options)
    return {**preset, **of_flags}


def check_attention(config):
    """Raises `ConfigError` if there is no such attention here.

    That is for wrong arguments, and if fused kernels are required but
    impossible.
    """
    if build_attention(config).arguments.get("fused") is not True:
        return
    obstacle = find_backend_obstacle() or find_device_obstacle(
        config.batch_size
    )
    if obstacle is not None:
        raise ConfigError(
            f"--fused=always is not possible because {obstacle}: choose "
            "--fused=auto."
        )


def find_longest_trained(config):
    """Returns the number of tokens of the longest training sequences."""
    return max(map(config.total_length, config.trained_lengths))


def with_max_position(config):
    """Returns the configuration with positions for the longest sequence.

    Raises:
        ConfigError: If there are positions for shorter ones only.
    """
    lengths = config.evaluated_lengths
    needed = _count_positions(config, lengths)
    if not config.max_position:
        # A quarter more, so that positions stay random at the longest length.
        share = 1 if _reads_tokens(config) else 1.25
        reach = 2 ** math.ceil(math.log2(share * needed))
        config = dataclasses.replace(config, max_position=reach)
    encoding = build_encoding(config)
    check_length(encoding, max(map(config.total_length, lengths)))
    with as_config_errors(ValueError):
        check_reach(encoding, needed, "positions")
    return config


def _reads_tokens(config):
    return config.sampler and _parse(config, "--sampler")[0] in READING


def _count_positions(config, lengths):
    """Returns how many positions the longest sequence needs."""
    if _reads_tokens(config):
        # The largest is that of the answer's last token; it is 1 for the
        # separators.
        return max(map(config.longest_answer, lengths)) + 2
    return max(map(config.total_length, lengths))


def check_length(encoding, tokens):
    """Raises `ConfigError` unless an encoding has positions for all tokens."""
    with as_config_errors(ValueError):
        encoding.check_length(tokens)


@contextlib.contextmanager
def range_of_run(remedy):
    """Replaces the advice to raise `max_position`, which a run has fixed.

    Args:
        remedy: str. What to do instead.
    """
    try:
        yield
    except ConfigError as error:
        problem, _, advice = str(error).partition(": ")
        if "max_position" not in advice:
            raise
        raise ConfigError(
            f"{problem}, which the run has fixed: {remedy}, or train a run "
            "with a larger --max_position."
        ) from None


def _parse(config, flag):
    name = flag.removeprefix("--")
    known = options(config)[name]
    return parse_call(flag, getattr(config, name), known.registry, known.base)


def _make(config, kind, arguments):
    """Makes a layer; arguments that are not given come from other flags."""
    known = _known_arguments(config)
    parameters = constructor_arguments(kind)
    missing = (parameters.keys() & known) - set(arguments)
    arguments = {**{n: known[n] for n in missing}, **arguments}
    if kind in READING and any(
        parameter.default is parameter.empty
        for name, parameter in parameters.items()
        if name not in arguments
    ):
        raise ConfigError(
            f"--task={config.task} does not say which words {kind.__name__} "
            "should read: choose another task, such as aligned_copy."
        )
    return construct(kind, arguments)


def _known_arguments(config):
    """Returns arguments of encodings and samplers that other flags set."""
    trained = find_longest_trained(config)
    taken = _count_positions(config, config.trained_lengths)
    return {
        "max_position": config.max_position,
        "train_length": trained,
        "original_length": trained,
        "max_shift": max(config.max_position - taken, 1),
        **config.token_meanings,
    }
