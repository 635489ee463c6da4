"""Odd command lines: each is refused in one line, or is right after all."""

import dataclasses
import typing

import pytest
from absl import flags

from tests.products import product
from tests.shell import run_python
from tests.trainers.options import odd_flags
from trainers.algorithmic import EXPERIMENT
from trainers.errors import ConfigError
from trainers.options.fields import resolve
from trainers.options.layers import build, with_max_position
from trainers.options.option import options

TYPES = typing.get_type_hints(EXPERIMENT.config)
PARSERS = {
    int: flags.IntegerParser().parse,
    float: flags.FloatParser().parse,
    str: str,
}
NAMES = [field.name for field in dataclasses.fields(EXPERIMENT.config)]
CALLS = [
    (flag, name)
    for flag, registry in odd_flags.REGISTRIES.items()
    for name in registry
]


def find_refusal(texts):
    """Message that refuses flags, in all that precedes the work, or `None`."""
    texts = {"encoding": "RoPE", **texts}
    try:
        given = {
            name: PARSERS[TYPES[name]](text) for name, text in texts.items()
        }
    except ValueError as error:
        # absl refuses what its parsers do not take.
        return str(error)
    try:
        config = resolve(EXPERIMENT.config, EXPERIMENT.presets, given)
        if config.encoding:
            with_max_position(config)
        for flag in ("--curriculum", "--learning_rate_schedule"):
            build(config, flag)
    except ConfigError as error:
        message = str(error)
        assert len(message.splitlines()) == 1, message
        assert 20 < len(message) < 1200, message
        return message
    return None


def assert_outcomes(lines):
    """Asserts that flags are refused, or not, as the second item says."""
    wrong = [
        f"{'refused' if right else 'accepted'}: {texts} {refusal or ''}"
        for texts, right in lines
        for refusal in [find_refusal(texts)]
        if right == bool(refusal)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "name", [name for name in NAMES if name not in odd_flags.FREE]
)
def test_values_of_every_flag(name):
    known = options(EXPERIMENT.config)[name]
    assert_outcomes(
        ({name: text}, odd_flags.is_right(name, known, TYPES[name], text))
        for text in odd_flags.TEXTS
    )


@pytest.mark.parametrize("flag", odd_flags.REGISTRIES)
def test_what_is_no_call(flag):
    name = next(iter(odd_flags.REGISTRIES[flag]))
    assert_outcomes(
        ({flag: text.replace("NAME", name)}, False) for text in odd_flags.SYNTAX
    )


@pytest.mark.parametrize("flag", ["train_length", "test_lengths"])
def test_what_is_no_length(flag):
    assert_outcomes(({flag: text}, False) for text in odd_flags.LENGTHS)


def test_what_is_no_path():
    assert_outcomes(({"workdir": text}, False) for text in odd_flags.PATHS)


def test_what_is_wrong_together():
    assert_outcomes((texts, False) for texts in odd_flags.TOGETHER)


@pytest.mark.parametrize(
    ("flag", "name"),
    product(
        CALLS,
        lambda flag, name: flag != "encoding" or name in ("RoPE", "ALiBi"),
    ),
)
def test_arguments_of_every_call(flag, name):
    assert_outcomes(odd_flags.calls(flag, name))


def test_what_only_looks_odd():
    assert_outcomes((texts, True) for texts in odd_flags.SANE)


def test_there_are_many():
    lines = [line for call in CALLS for line in odd_flags.calls(*call)]
    lines += [name for name in NAMES for _ in odd_flags.TEXTS]
    assert len(lines) > 5000
    assert len(odd_flags.SANE) > 100


def test_a_home_directory_is_found(monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    config = resolve(
        EXPERIMENT.config, EXPERIMENT.presets, {"workdir": "~/runs"}
    )
    assert config.workdir == "/home/me/runs"


COMMANDS = {
    "a flag given twice": ["--steps=3", "--steps=4"],
    "a seed of 33 bits": ["--seed=4294967296"],
    "a negative stride": ["--train_length=1-5:-1"],
    "a million lengths": ["--train_length=1-1000000"],
    "a very long length": ["--test_lengths=99999999999"],
    "no lengths": ["--train_length="],
    "steps of 64 bits": ["--steps=9223372036854775808"],
    "steps of 60 bits": [f"--steps={10**18}"],
    "digits without end": ["--steps=" + "9" * 5000],
    "a batch of a trillion": [f"--batch_size={10**12}"],
    "no number": ["--learning_rate=nan"],
    "an infinite number": ["--clip_norm=inf"],
    "a number that is 0 in float32": ["--clip_norm=5e-324"],
    "an empty number": ["--steps="],
    "a newline": ["--steps=1\n2"],
    "no text": ["--encoding=\udcff"],
    "a power that is text": ["--learning_rate_schedule=Polynomial(power='x')"],
    "a negative end": ["--learning_rate_schedule=Polynomial(end=-5)"],
    "a rising schedule": ["--learning_rate_schedule=Cosine(end=5)"],
    "a fraction of a step": ["--curriculum=RegularIncrease(every=1.5)"],
    "text for a bool": ["--curriculum=RegularIncrease(shorter='no')"],
    "an argument twice": ["--encoding=RoPE(max_wavelength=2,max_wavelength=9)"],
    "positions of 31 bits": ["--encoding=RandomizedRoPE(max_position=2**31)"],
    "too many positions": [
        "--encoding=RandomizedRoPE(max_position=2147483648)"
    ],
    "an infinite wavelength": ["--encoding=RoPE(max_wavelength=1e400)"],
    "text for another bool": ["--encoding=RandomizedRoPE(ordered='no')"],
    "signs": ["--encoding=" + "-" * 5000 + "1"],
    "nested signs": ["--encoding=RoPE(max_wavelength=" + "-" * 900 + "1)"],
    "brackets": ["--encoding=" + "(" * 5000],
    "nested brackets": ["--encoding=RoPE(max_wavelength=" + "(" * 900 + ")"],
    "an escape": ["--encoding=RoPE(layout='\\d')"],
    "heads that do not divide": ["--num_heads=7", "--encoding=RoPE"],
    "too many heads": ["--num_heads=1000", "--encoding=RoPE"],
    "a bucket in a cloud": ["--workdir=s3://bucket/x"],
    "an empty path": ["--workdir= "],
    "nobody's home": ["--workdir=~nobody_here/x"],
    "a long path": ["--workdir=" + "x" * 5000, "--encoding=RoPE"],
    "an unknown preset": ["--preset=big"],
    "help for nothing": ["--help=Foo"],
    "a file of flags that is none": ["--flagfile=/nonexistent"],
    "a bool that is none": ["--nosteps"],
    "a flag without a value": ["--steps"],
    "no backend": ["KERAS_BACKEND=foo"],
    "a backend without training": ["KERAS_BACKEND=numpy"],
}
"""Mistakes for the command itself, each with a process of its own."""

FRESH = ("no backend", "a backend without training", "a flag given twice")
"""Mistakes for a new process; the others are forks of one."""

REFUSED_IN_PROCESS = [
    name
    for name, (first, *_) in COMMANDS.items()
    if first.startswith(("--learning_rate_schedule", "--curriculum"))
    or (first.startswith("--encoding") and "\udcff" not in first)
]
"""Mistakes in calls, which the tests above find without a process."""


def run_command(arguments):
    """Runs the command as from a shell."""
    variables = {}
    while "=" in arguments[0] and not arguments[0].startswith("-"):
        name, value = arguments[0].split("=")
        variables[name] = value
        arguments = [*arguments[1:], "--encoding=RoPE"]
    return run_python("-m", "trainers.algorithmic", *arguments, **variables)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name,
            marks=pytest.mark.slow
            if name in REFUSED_IN_PROCESS
            else pytest.mark.process,
        )
        for name in COMMANDS
    ],
)
def test_a_command_ends_with_one_line(name, nursery, tmp_path):
    if name in FRESH:
        done = run_command(COMMANDS[name])
        status, output = done.returncode, done.stderr
    else:
        process = nursery.start(COMMANDS[name], tmp_path / "log")
        status, output = process.wait(), process.output
    assert status == 2, output
    assert len(output.splitlines()) == 1, output
    assert output.startswith("error: ")
    assert len(output) < 1200


def test_there_are_forty_commands():
    assert len(COMMANDS) >= 40
