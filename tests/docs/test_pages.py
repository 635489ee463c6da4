"""Programs and commands on the pages run, and tables are complete."""

import importlib
import importlib.util
import os
import pathlib
import re
import shlex
import shutil
import typing

import numpy as np
import pytest
from PIL import Image

from tests.checkout import ROOT
from tests.shell import run_python
from tests.trainers.programs import find_config_class
from trainers import EXPERIMENTS
from trainers.options.fields import resolve

OTHERS = {
    "docs/guides/after_training.md",
    "docs/guides/distributed_training.md",
    "docs/guides/retrofit.md",
    "docs/guides/sweeps.md",
}
"""Pages whose programs and commands have tests of their own."""
TEXTS = {
    path.relative_to(ROOT).as_posix(): path.read_text()
    for paths in (
        ROOT.glob("*.md"),
        (ROOT / "docs").rglob("*.md"),
        (ROOT / "benchmarks").glob("*.md"),
        (ROOT / "benchmarks" / "published").glob("*.md"),
    )
    for path in sorted(paths)
    if "_build" not in path.parts
}
PAGES = {
    name: text
    for name, text in TEXTS.items()
    if name in ("README.md", "DESCRIPTION.md")
    or (re.match("docs/(?!notebooks/)", name) and name not in OTHERS)
}


def find_blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.M)


# README's programs are tested together with README.
PROGRAMS = {
    name: "".join(find_blocks(text, "python"))
    for name, text in PAGES.items()
    # The reference has signatures, which are no programs.
    if name not in ("README.md", "docs/reference/index.md")
    and find_blocks(text, "python")
}
COMMANDS = [
    (name, command)
    for name, text in PAGES.items()
    for block in find_blocks(text, "bash")
    for command in block.splitlines()
    if re.search(r"python -m (trainers|benchmarks)\.", command)
]
INLINE = [
    (name, command)
    for name, text in PAGES.items()
    for command in re.findall(
        r"`(python -m (?:trainers|benchmarks)\.\w+[^`]*)`", text
    )
    # Names of programs, without the flags and runs that they need.
    if " --" in command
]
LONG = ("extending.md", "first_model.md", "measuring.md", "windows.md")
"""Pages whose programs train a model, or generate with a large one."""


def parse(command):
    """Returns the module of a command, its flags and its operands."""
    command = re.search(r"python -m ((?:trainers|benchmarks)\..*)", command)[1]
    words = shlex.split(command)
    flags = [word for word in words[1:] if word.startswith("--")]
    pairs = [flag.removeprefix("--").partition("=") for flag in flags]
    operands = [word for word in words[1:] if word not in flags]
    return words[0], {name: value for name, _, value in pairs}, operands


def make_config(module, flags):
    """Makes the configuration of a command, which refuses wrong flags."""
    config, presets = find_config_class(module)
    types = typing.get_type_hints(config)
    assert flags.keys() <= types.keys()
    given = {flag: types[flag](value) for flag, value in flags.items()}
    return resolve(config, presets, given)


def check_flags(name, flags, operands):
    module = importlib.import_module(name)
    # Programs that train need no RUN.
    trains = hasattr(module, "EXPERIMENT") or hasattr(module, "PRESETS")
    assert bool(operands) != (trains or "grid" in flags)
    make_config(module, flags)


SHORT = {
    "steps": "3",
    "batch_size": "8",
    "warmup_steps": "0",
    "evaluation_examples": "2",
    "generated_examples": "1",
}
"""Flags that shorten a program that has them."""
DEVICES = ("--strategy=mirrored", "--strategy=tpu")
"""Flags of commands that need devices which this machine may lack."""
TRAINED = [
    command
    for command in dict.fromkeys(command for _, command in COMMANDS)
    if "python -m trainers." in command
    and not any(flag in command for flag in DEVICES)
]


def find_workdir(command):
    """Returns the directory that a command trains in; `None`: in none."""
    name, flags, _ = parse(command)
    module = importlib.import_module(name)
    if not hasattr(module, "EXPERIMENT") or "help" in flags:
        return None
    config = make_config(module, flags)
    title = module.EXPERIMENT.make_problem(config).title
    variant = config.encoding.partition("(")[0] or "demonstration"
    return config.workdir or f"runs/{title}/{variant}"


def shorten(command):
    """Returns the words of a short form of a command, and its variables."""
    name, flags, operands = parse(command)
    module = importlib.import_module(name)
    known = typing.get_type_hints(find_config_class(module)[0])
    if "help" not in flags:
        short = {flag: value for flag, value in SHORT.items() if flag in known}
        if flags.get("preset") == "addition":
            # Writing hundreds of digits takes minutes.
            short["test_lengths"] = "20"
        if operands:
            # The flag of a tool that not every RUN has.
            short.pop("generated_examples", None)
        flags = {**flags, **short}
        if name == "trainers.sweep":
            # Cells have tests of their own.
            flags = {**flags, "measure": False, "dry_run": True}
    before = command.partition("python -m")[0].rpartition("&&")[2].split()
    variables = dict(word.split("=", 1) for word in before)
    words = [
        f"--{flag}={value}" if value else f"--{flag}"
        for flag, value in flags.items()
    ]
    return ["-m", name, *operands, *words], variables


def run_short(command, directory):
    """Runs a command with few steps, after those that train its runs."""
    name, flags, operands = parse(command)
    for run in operands if name != "trainers.choose" else ():
        if not (directory / run).exists():
            (before, *_) = (
                other
                for other in TRAINED
                if (found := find_workdir(other))
                and (found == run or found == os.path.dirname(run))
            )
            run_short(before, directory)
    if "grid" in flags:
        root = f"runs/sweeps/{flags['grid']}-{flags.get('size', 'small')}"
        (directory / root).mkdir(parents=True, exist_ok=True)
    words, variables = shorten(command)
    run_python(*words, cwd=directory, HOME=str(directory), **variables)


def make_home(path):
    """Writes the files below ~ that commands name."""
    (path / "docs" / "guides").mkdir(parents=True)
    shutil.copy(ROOT / "docs/guides/number_words.py", path / "docs/guides")
    (path / "books").mkdir()
    (path / "books" / "book.txt").write_text("".join(TEXTS.values()))
    rng = np.random.default_rng(0)
    for number in range(40):
        folder = path / "photos" / "ab"[number % 2]
        folder.mkdir(parents=True, exist_ok=True)
        pixels = rng.integers(0, 256, (30, 30, 3), "uint8")
        Image.fromarray(pixels).save(folder / f"{number}.png")


def find_benchmark_flags(name):
    text = pathlib.Path(importlib.util.find_spec(name).origin).read_text()
    if "define_flags" in text:
        text += (ROOT / "benchmarks/runs.py").read_text()
    if "published_example" in text:
        text += (ROOT / "benchmarks/published_example.py").read_text()
    # A benchmark may have the flags of another one, with other defaults.
    return re.findall(r'(?:DEFINE_\w+|set_default)\(\s*"(\w+)"', text)


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            page, marks=[pytest.mark.product] if page.endswith(LONG) else []
        )
        for page in PROGRAMS
    ],
)
def test_programs_run(page, monkeypatch):
    monkeypatch.chdir(ROOT)
    exec(PROGRAMS[page], {})


@pytest.mark.parametrize(("page", "command"), [*COMMANDS, *INLINE])
def test_flags_of_commands(page, command):
    name, flags, operands = parse(command)
    if name.startswith("benchmarks."):
        assert flags.keys() <= {*find_benchmark_flags(name)}
    elif "help" not in flags:
        check_flags(name, flags, operands)


@pytest.mark.slow
@pytest.mark.parametrize("command", TRAINED, ids=str)
def test_commands_run(command, tmp_path):
    make_home(tmp_path)
    run_short(command, tmp_path)


def test_every_trainer_has_a_row():
    table, _, _ = PAGES["docs/trainers/index.md"].partition("## ")
    rows = re.findall(r"^\| `(\w+)` \|", table, re.M)
    assert sorted(rows) == sorted(EXPERIMENTS)
