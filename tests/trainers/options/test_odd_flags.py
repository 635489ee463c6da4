"""Odd texts of a command line: those to refuse, and those that look odd."""

import typing

import pytest
from absl import flags

from keras_lengen.checks.arguments import fits_float32
from trainers.algorithmic import EXPERIMENT
from trainers.errors import ConfigError
from trainers.options.fields import resolve
from trainers.options.layers import (
    build,
    check_attention,
    with_max_position,
)
from trainers.options.lengths import parse_lengths
from trainers.options.option import options

TEXTS = (
    *("", " ", "x", "1.5", "nan", "inf", "-1", "0", "1e400", "1e-46", "1e35"),
    *("99999999999999999999", "9" * 5000, "None", "1,2", "1\0", "\udcff", "1e"),
)
"""Values that are wrong for almost every flag."""

SYNTAX = (
    *("(", "()", "NAME(", "NAME)", "NAME()()", "NAME NAME", "NAME.x", "NAME=1"),
    *("-" * 5000 + "1", "(" * 5000, "NAME(" + "(" * 300, "\0", "NAME()#"),
    *("NAME(x=" + "-" * 900 + "1)", "NAME(x=1, x=1)", "NAME(**{'x': 1}, x=1)"),
    *("NAME(*[])", "NAME(3)", "NAME(x=open('x'))", "NAME(self=1)", "lambda: 0"),
    *("NAME(__class__=1)", "NAME(name='x')", "NAME(dtype='float16')", "NAME?"),
    *("x.py:NAME", "no_such_module:NAME", "json:NAME", ".:NAME", ":NAME(x=1)"),
    *("x" * 300 + ".py:NAME", "\0.py:NAME", "../x:NAME", "os.path:join"),
    *("NAME(x='\\d')", "NAME(x='\0')", "NAME(x=0777)", "NAME\udcff", "-NAME"),
)
"""Values that are no call that a flag takes; `NAME` is a name that it takes."""

LENGTHS = (
    *("0", "0-5", "5-1", "1-", "-", ":", "1-5:0", "1-5:-1", "1-5-9", "1,,2"),
    *("1,", "1 - 5", "1.5", "1e3", "+5", "1_0", "\uff11", "²", "1-1000000"),
    *("99999999999", "1048577", "1-5001", "1-5000,5001", "1" * 5000, "[1]", ""),
)
"""Values that are no lengths."""

PATHS = (
    *("a\0b", " ", "\n", "~nobody_here/x", "s3://x", "gs://b/c", "x" * 300),
    *("é" * 150, "x/" * 3000, "\udcff", "\ud800"),
)
"""Values that are no path."""

TOGETHER = (
    {"sampler": "OrdinalPositions", "encoding": ""},
    {"curriculum": "ReverseExponential(tau=0)"},
    {"encoding": "RoPE(max_wavelength=1e400)"},
    {"encoding": "RandomizedRoPE(ordered='no')"},
)
"""Flags that are wrong together, and arguments that a class refuses."""

SANE = (
    *({"train_length": lengths} for lengths in ("9,3-5,4", " 1 , 3-5 ", "01")),
    *({"test_lengths": lengths} for lengths in ("1-5000", "1-1048576:300")),
    *({"encoding": call} for call in ("RoPE ( )", "RoPE(\n)", "NoPE")),
    {"encoding": "RoPE(max_wavelength=0x20, layout='halves',)"},
    {"encoding": "LearnedEncoding", "sampler": "RandomizedPositions"},
    {"learning_rate_schedule": "Cosine(end=1e-4)", "warmup_steps": "1499"},
    *({"seed": seed} for seed in ("2147483647", "0x10", "+3", " 3")),
    *({"dropout": rate} for rate in ("0", "5e-1", ".999")),
    *({"workdir": path} for path in ("", "~/x", "/tmp/x y", "ü/😀", "a~b")),
    {"preset": "paper", "encoding": "RandomizedRelativeEncoding"},
)
"""Flags that may look odd, but are right."""

TYPES = typing.get_type_hints(EXPERIMENT.config)
PARSERS = {
    int: flags.IntegerParser().parse,
    float: flags.FloatParser().parse,
    str: str,
}
OPTIONS = options(EXPERIMENT.config)
CALLED = [name for name, known in OPTIONS.items() if known.registry]


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
        check_attention(config)
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


# The value of two flags may be almost any text.
@pytest.mark.parametrize(
    "name", sorted({*OPTIONS} - {"initialize_from", "workdir"})
)
def test_values_of_every_flag(name):
    found = list_accepted({name: text} for text in TEXTS)
    right = [text for text in TEXTS if is_right(name, text)]
    assert [texts[name] for texts in found] == right


@pytest.mark.parametrize(
    ("flag", "texts"),
    [
        *((flag, SYNTAX) for flag in CALLED),
        ("test_lengths", LENGTHS),
        ("workdir", PATHS),
    ],
)
def test_texts_of_no_value(flag, texts):
    name = next(iter(OPTIONS[flag].registry), "")
    cases = [{flag: text.replace("NAME", name)} for text in texts]
    assert not list_accepted(cases)


def test_what_only_looks_odd():
    assert not list_accepted(TOGETHER)
    cases = [
        {flag: name}
        for flag in CALLED
        for name in OPTIONS[flag].registry
        if name not in ("AxialEncoding", "GridPositions")
    ]
    cases += SANE
    assert list_accepted(cases) == cases


def test_lengths():
    assert parse_lengths("--test_lengths", "9,3-5,4") == (3, 4, 5, 9)
