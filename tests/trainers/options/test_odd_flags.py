import typing

import pytest
from absl import flags

from keras_lengen.checks.arguments import fits_float32
from tests.trainers.options import odd_flags
from trainers.algorithmic import EXPERIMENT
from trainers.errors import ConfigError
from trainers.options.fields import resolve
from trainers.options.layers import build, with_max_position
from trainers.options.lengths import parse_lengths
from trainers.options.option import options

TYPES = typing.get_type_hints(EXPERIMENT.config)
PARSERS = {
    int: flags.IntegerParser().parse,
    float: flags.FloatParser().parse,
    str: str,
}
OPTIONS = options(EXPERIMENT.config)
CALLED = [name for name, known in OPTIONS.items() if known.registry]
FREE = ("initialize_from", "workdir")
"""Flags whose value may be almost any text."""


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
    assert "~" not in config.workdir or texts["workdir"] == "a~b"
    return None


def list_accepted(cases):
    """The cases that are not refused."""
    return [texts for texts in cases if not find_refusal(texts)]


def is_right(name, text):
    """Whether the text of a flag is right, by the flag's type and bounds."""
    known, kind = OPTIONS[name], TYPES[name]
    if kind is str:
        # Flags without bounds.
        of_lengths = name.endswith(("_length", "_lengths")) and text == "1,2"
        return text.strip() == known.default or of_lengths
    try:
        value = kind(text)
    except ValueError:
        return False
    return (
        fits_float32(value)
        and (known.least is None or value >= known.least)
        and (known.above is None or value > known.above)
        and (known.most is None or value <= known.most)
        and (known.below is None or value < known.below)
    )


@pytest.mark.parametrize("name", sorted({*OPTIONS} - {*FREE}))
def test_values_of_every_flag(name):
    found = list_accepted({name: text} for text in odd_flags.TEXTS)
    right = [text for text in odd_flags.TEXTS if is_right(name, text)]
    assert [texts[name] for texts in found] == right


@pytest.mark.parametrize(
    ("flag", "texts"),
    [
        *((flag, odd_flags.SYNTAX) for flag in CALLED),
        ("test_lengths", odd_flags.LENGTHS),
        ("workdir", odd_flags.PATHS),
    ],
)
def test_texts_of_no_value(flag, texts):
    name = next(iter(OPTIONS[flag].registry), "")
    cases = [{flag: text.replace("NAME", name)} for text in texts]
    assert not list_accepted(cases)


def test_what_only_looks_odd():
    assert not list_accepted(odd_flags.TOGETHER)
    cases = [
        {flag: name}
        for flag in CALLED
        for name in OPTIONS[flag].registry
        if name not in ("AxialEncoding", "GridPositions")
    ]
    cases += odd_flags.SANE
    assert list_accepted(cases) == cases


@pytest.mark.parametrize(
    ("text", "lengths"),
    [("1-500:20", tuple(range(1, 501, 20))), ("9,3-5,4", (3, 4, 5, 9))],
)
def test_lengths(text, lengths):
    assert parse_lengths("--test_lengths", text) == lengths
