import re
import shlex

import pytest

from keras_lengen.checks.constructors import constructor_arguments
from keras_lengen.layers.transformer import OF_BLOCK
from trainers.algorithmic import EXPERIMENT
from trainers.errors import ConfigError
from trainers.options.fields import resolve
from trainers.options.help import make_help
from trainers.options.layers import build, with_max_position
from trainers.options.option import options
from trainers.options.parsing import find_request

CONFIG, PRESETS = EXPERIMENT.config, EXPERIMENT.presets


def test_what_is_asked_for():
    for arguments, wanted in (
        (["--help"], ""),
        (["-h"], ""),
        (["--steps=3", "--help=RoPE", "--task=x"], "RoPE"),
        (["--steps=3"], None),
        (["--", "--help"], None),
        ([], None),
    ):
        assert find_request(["program", *arguments]) == wanted


def test_help_lists_flags_names_and_presets():
    text = make_help(CONFIG, PRESETS)
    for flag, known in options(CONFIG).items():
        assert f"\n  --{flag}={known.default}\n      " in text
        assert (f"Names for --{flag}:" in text) == bool(known.names)
        for name in known.names:
            assert re.search(rf"^  {name}  +\S", text, re.MULTILINE), name
    for field, value in PRESETS["paper"].items():
        assert f"--{field}={value}" in text.partition("--preset=paper sets")[2]


@pytest.mark.parametrize(
    "flag", [flag for flag, known in options(CONFIG).items() if known.names]
)
def test_help_of_a_name_has_its_arguments_and_an_example(flag):
    known = options(CONFIG)[flag]
    for name in known.names:
        text = make_help(CONFIG, PRESETS, name)
        assert text.startswith(f"{name}, for --{flag}\n\n")
        text, _, example = text.rpartition("Example:\n")
        made = known.registry.get(name, object)
        taken = OF_BLOCK if flag == "attention" else ("sampler",)
        for argument in constructor_arguments(made).keys() - {*taken}:
            assert re.search(rf"^  {argument}.*\n      \S", text, re.M)
        assert example.startswith(f"  --{flag}=")
        flags = dict(each[2:].split("=", 1) for each in shlex.split(example))
        if name == "GridPositions":
            flags["encoding"] = "AxialEncoding(row=RoPE, column=RoPE)"
        config = resolve(CONFIG, PRESETS, {"encoding": "RoPE", **flags})
        with_max_position(config)
        build(config, "--curriculum")


def test_the_defaults_are_those_of_the_default_preset():
    presets = {
        "small": {"dropout": 0.0},
        "paper": {"steps": 7},
        "other": {"dropout": 0.2, "steps": 8},
    }
    text = make_help(CONFIG, presets)
    assert "steps. With --preset=paper: 7; --preset=other: 8.\n" in text
    # `paper` does not set the rate, and leaves it at that of the class.
    words = " ".join(make_help(CONFIG, presets, "dropout").split())
    assert words.startswith("--dropout=0.0 Dropout rate of each residual br")
    assert "With --preset=paper: 0.1; --preset=other: 0.2." in words


def test_help_of_nothing():
    for name, message in (
        ("rope", "rope'.*Did you mean RoPE"),
        ("--step", "Did you mean steps"),
        ("Foo", r"'Foo'\. --help without"),
    ):
        with pytest.raises(ConfigError, match=message):
            make_help(CONFIG, PRESETS, name)
