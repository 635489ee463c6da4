"""Help of a program, of its flags and of the names that these take."""

import dataclasses
import re
import shlex

import pytest

from keras_lengen.checks.arguments import constructor_arguments
from trainers import tpu_compile
from trainers.algorithmic import EXPERIMENT
from trainers.errors import ConfigError
from trainers.options.fields import LengthsConfig, resolve
from trainers.options.help import make_help
from trainers.options.layers import build, with_max_position
from trainers.options.option import option, options
from trainers.options.parsing import find_request

CONFIG, PRESETS = EXPERIMENT.config, EXPERIMENT.presets


def make_readable_help(*arguments):
    text = make_help(*arguments)
    for line in text.splitlines():
        assert len(line) < 80, line
        assert line == line.rstrip()
    assert "None\n" not in text.partition("Arguments")[0]
    return text


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
    text = make_readable_help(CONFIG, PRESETS)
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
        text = make_readable_help(CONFIG, PRESETS, name)
        assert text.startswith(f"{name}, for --{flag}\n\n")
        text, _, example = text.rpartition("Example:\n")
        arguments = (
            constructor_arguments(known.registry[name])
            if known.registry
            else {}
        )
        arguments.pop("sampler", None)
        for argument, parameter in arguments.items():
            found = re.search(rf"^  {argument}(.*)\n      \S", text, re.M)
            assert found, argument
            if parameter.default is not parameter.empty:
                assert found[1].startswith("=")
        assert example.startswith(f"  --{flag}=")
        flags = dict(each[2:].split("=", 1) for each in shlex.split(example))
        if name == "GridPositions":
            flags["encoding"] = "AxialEncoding(row=RoPE, column=RoPE)"
        config = resolve(CONFIG, PRESETS, {"encoding": "RoPE", **flags})
        with_max_position(config)
        build(config, "--curriculum")


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        (
            "RandomizedRoPE",
            [
                "  max_position=2048 (if not given: from --max_position)",
                "  rotary_fraction=1.0\n      float above 0",
            ],
        ),
        *(
            (
                name,
                [
                    "  --steps=1500\n      Number of training steps.",
                    "at least 1 and at most 2147483647",
                    "With --preset=paper: 2000000.",
                ],
            )
            for name in ("steps", "--steps")
        ),
        ("encoding", ["  ALiBi "]),
        ("paper", ["--num_layers=5 --steps=2000000"]),
        ("small", ["--preset=small keeps the defaults."]),
    ],
)
def test_help_of(name, parts):
    text = make_readable_help(CONFIG, PRESETS, name)
    for part in parts:
        assert part in text
    assert "  sampler" not in text


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


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("rope", "rope'.*Did you mean RoPE"),
        ("evenpairs", "Did you mean even_pairs"),
        ("--step", "Did you mean steps"),
        ("papr", "Did you mean paper"),
        ("Foo", r"'Foo'\. --help without"),
    ],
)
def test_help_of_nothing(name, message):
    with pytest.raises(ConfigError, match=message):
        make_help(CONFIG, PRESETS, name)


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

        preset: str = option("small", "Defaults.", choices={"small": {}})
        cut: str = option("Mosaic", "Cut.", registry={"Mosaic": Mosaic})

    presets = {"small": {"cut": "Mosaic(tiles=4)"}}
    text = make_help(ImageConfig, presets)
    assert "Names for --cut:\n  Mosaic  Cuts images into tiles.\n" in text
    assert "--preset=small sets\n  --cut=Mosaic(tiles=4)" in text
    assert "Defaults. One of small.\n" in text
    assert "Names for --preset" not in text
    text = make_help(ImageConfig, presets, "Mosaic")
    assert "  tiles=9\n      int, at least 1. Number of tiles." in text
    assert text.endswith("  --cut='Mosaic(tiles=9)'")
    config = resolve(ImageConfig, presets, {"encoding": "RoPE"})
    assert build(config, "--cut").tiles == 4


def test_help_of_a_tool():
    config, presets = tpu_compile.TpuCompileConfig, tpu_compile.PRESETS
    text = make_readable_help(config, presets)
    assert "  --topology=v5e:2x2\n" in text
    assert "  RandomizedALiBi " in text
    assert "--preset=" not in text.partition("Names for")[2]
    assert make_help(config, presets, "ALiBi").startswith("ALiBi, for --enc")
