"""Help of a program, of its flags and of the names that these take."""

import re
import shlex

import pytest

from keras_lengen.checks.arguments import constructor_arguments
from trainers import tpu_compile
from trainers.algorithmic import EXPERIMENT
from trainers.errors import ConfigError
from trainers.options.fields import resolve
from trainers.options.help import make_help
from trainers.options.layers import build, with_max_position
from trainers.options.option import options

CONFIG, PRESETS = EXPERIMENT.config, EXPERIMENT.presets


def make_readable_help(*arguments):
    text = make_help(*arguments)
    for line in text.splitlines():
        assert len(line) < 80, line
        assert line == line.rstrip()
    assert "None\n" not in text.partition("Arguments")[0]
    return text


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


def test_help_of_a_tool():
    config, presets = tpu_compile.TpuCompileConfig, tpu_compile.PRESETS
    text = make_readable_help(config, presets)
    assert "  --topology=v5e:2x2\n" in text
    assert "  RandomizedALiBi " in text
    assert "--preset=" not in text.partition("Names for")[2]
    assert make_help(config, presets, "ALiBi").startswith("ALiBi, for --enc")
