"""Help of a program, of its flags and of the names that these take."""

import dataclasses
import re
import shlex

import pytest

from keras_lengen.checks.arguments import constructor_arguments
from tests.products import product
from tests.shell import run_python
from trainers import tpu_compile
from trainers.algorithmic import EXPERIMENT
from trainers.errors import ConfigError
from trainers.options.fields import LengthsConfig, resolve
from trainers.options.help import make_help
from trainers.options.layers import build, with_max_position
from trainers.options.option import option, options
from trainers.options.parsing import find_request

CONFIG, PRESETS = EXPERIMENT.config, EXPERIMENT.presets
NAMES = [
    (flag, name)
    for flag, known in options(CONFIG).items()
    for name in known.names
]


def assert_readable(text):
    for line in text.splitlines():
        assert len(line) < 80, line
        assert line == line.rstrip()
    assert "None\n" not in text.partition("Arguments")[0]


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["--help"], ""),
        (["-h"], ""),
        (["--steps=3", "--help=RoPE", "--task=x"], "RoPE"),
        (["--steps=3"], None),
        (["--", "--help"], None),
        ([], None),
    ],
)
def test_what_is_asked_for(arguments, wanted):
    assert find_request(["program", *arguments]) == wanted


def test_help_lists_flags_names_and_presets():
    text = make_help(CONFIG, PRESETS)
    assert_readable(text)
    for flag, known in options(CONFIG).items():
        assert f"\n  --{flag}={known.default}\n      " in text
        for name in known.names:
            assert re.search(rf"^  {name}  +\S", text, re.MULTILINE), name
    assert {flag for flag, _ in NAMES} == {
        "encoding",
        "sampler",
        "attention",
        "task",
        "curriculum",
        "learning_rate_schedule",
    }
    for field, value in PRESETS["paper"].items():
        assert f"--{field}={value}" in text.partition("--preset=paper sets")[2]


@pytest.mark.parametrize(
    ("flag", "name"),
    product(NAMES, lambda flag, name: name in ("RoPE", "AxialEncoding")),
)
def test_help_of_a_name_has_its_arguments_and_an_example(flag, name):
    text = make_help(CONFIG, PRESETS, name)
    assert_readable(text)
    assert text.startswith(f"{name}, for --{flag}\n\n")
    text, _, example = text.rpartition("Example:\n")
    known = options(CONFIG)[flag]
    if known.registry:
        for argument, parameter in constructor_arguments(
            known.registry[name]
        ).items():
            if argument == "sampler":
                continue
            found = re.search(rf"^  {argument}(.*)\n      \S", text, re.M)
            assert found, argument
            if parameter.default is not parameter.empty:
                assert found[1].startswith("=")
    assert example.startswith(f"  --{flag}=")
    flags = dict(flag[2:].split("=", 1) for flag in shlex.split(example))
    if name == "GridPositions":
        flags["encoding"] = "AxialEncoding(row=RoPE, column=RoPE)"
    config = resolve(CONFIG, PRESETS, {"encoding": "RoPE", **flags})
    with_max_position(config)
    build(config, "--curriculum")


def test_arguments_of_a_fixed_sampler_and_those_that_flags_set():
    text = make_help(CONFIG, PRESETS, "RandomizedRoPE")
    assert "  max_position=2048 (if not given: from --max_position)" in text
    assert "  rotary_fraction=1.0\n      float above 0" in text
    assert "  sampler" not in text


def test_help_of_a_flag_has_its_bounds_and_presets():
    for name in ("steps", "--steps"):
        text = make_help(CONFIG, PRESETS, name)
        assert "  --steps=1500\n      Number of training steps." in text
        assert "at least 1 and at most 2147483647" in text
        assert "With --preset=paper: 2000000." in text
    assert "  ALiBi " in make_help(CONFIG, PRESETS, "encoding")


def test_the_defaults_are_those_of_the_default_preset():
    presets = {
        "small": {"dropout": 0.0},
        "paper": {"steps": 7},
        "other": {"dropout": 0.2, "steps": 8},
    }
    text = make_help(CONFIG, presets)
    assert "defaults, those of --preset=small:\n" in text
    assert (
        "  --steps=1500\n"
        "      Number of training steps. With --preset=paper: 7; "
        "--preset=other: 8.\n"
    ) in text
    # `paper` does not set the rate, and leaves it at that of the class.
    words = " ".join(make_help(CONFIG, presets, "dropout").split())
    assert words.startswith("--dropout=0.0 Dropout rate of each residual br")
    assert "With --preset=paper: 0.1; --preset=other: 0.2." in words


def test_help_of_presets_with_fields_as_choices():
    @dataclasses.dataclass(frozen=True)
    class PresetConfig(LengthsConfig):
        """Options of this trainer; every field is a flag."""

        preset: str = option("small", "Defaults.", choices={"small": {}})

    text = make_help(PresetConfig, {"small": {}})
    assert "Defaults. One of small.\n" in text
    assert "Names for --preset" not in text


def test_help_of_a_preset():
    text = make_help(CONFIG, PRESETS, "paper")
    assert_readable(text)
    assert "--num_layers=5 --steps=2000000" in text
    text = make_help(CONFIG, PRESETS, "small")
    assert text == "--preset=small keeps the defaults."


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("rope", "RoPE"),
        ("evenpairs", "even_pairs"),
        ("--step", "steps"),
        ("papr", "paper"),
    ],
)
def test_help_of_nothing_has_the_nearest_name(name, nearest):
    with pytest.raises(ConfigError, match=rf"{name}'.*Did you mean {nearest}"):
        make_help(CONFIG, PRESETS, name)


def test_help_of_what_is_like_no_name_guesses_none():
    with pytest.raises(ConfigError, match=r"'Foo'\. --help without"):
        make_help(CONFIG, PRESETS, "Foo")


def test_help_of_an_experiment_with_a_registry_of_its_own():
    class Mosaic:
        """Cuts images into tiles.

        Args:
            tiles: int, at least 1. Number of tiles.
        """

        def __init__(self, *, tiles=9):
            self.tiles = tiles

    @dataclasses.dataclass(frozen=True)
    class ImageConfig(LengthsConfig):
        """Options of this trainer; every field is a flag."""

        cut: str = option("Mosaic", "Cut.", registry={"Mosaic": Mosaic})

    presets = {"small": {"cut": "Mosaic(tiles=4)"}}
    text = make_help(ImageConfig, presets)
    assert "Names for --cut:\n  Mosaic  Cuts images into tiles.\n" in text
    assert "--preset=small sets\n  --cut=Mosaic(tiles=4)" in text
    text = make_help(ImageConfig, presets, "Mosaic")
    assert "  tiles=9\n      int, at least 1. Number of tiles." in text
    assert text.endswith("  --cut='Mosaic(tiles=9)'")
    config = resolve(ImageConfig, presets, {"encoding": "RoPE"})
    assert build(config, "--cut").tiles == 4


def test_help_of_a_tool():
    config, presets = tpu_compile.TpuCompileConfig, tpu_compile.PRESETS
    text = make_help(config, presets)
    assert_readable(text)
    assert "  --topology=v5e:2x2\n" in text
    assert "  RandomizedALiBi " in text
    assert "--preset=" not in text.partition("Names for")[2]
    assert make_help(config, presets, "ALiBi").startswith("ALiBi, for --enc")


@pytest.mark.process
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["trainers.algorithmic", "--help"], "Names for --curriculum:"),
        (["trainers.algorithmic", "--help=RoPE"], "--encoding='RoPE("),
        (["trainers.tpu_compile", "--help"], "--topology=v5e:2x2"),
        # Its flags are described in another module.
        (["trainers.sweep", "--help"], "Trains all models of a table"),
    ],
)
def test_help_of_a_command(arguments, expected):
    done = run_python("-m", *arguments)
    assert done.returncode == 0
    assert expected in done.stdout
    assert not done.stderr
