"""Programs and commands on the pages run, or have flags that exist."""

import dataclasses
import importlib
import importlib.util
import pathlib
import re
import shlex
import typing

import pytest

from trainers import EXPERIMENTS
from trainers.options.fields import resolve

ROOT = pathlib.Path(__file__).parents[2]
OTHERS = {"after_training.md", "distributed_training.md", "sweeps.md"}
"""Pages whose programs and commands have tests of their own."""
PAGES = {
    path.name: path.read_text()
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    if path.name not in OTHERS
}


def find_blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.M)


# README's programs are tested together with README.
PROGRAMS = {
    name: "".join(find_blocks(text, "python"))
    for name, text in PAGES.items()
    # The reference has signatures, which are no programs.
    if name not in ("README.md", "reference.md") and find_blocks(text, "python")
}
COMMANDS = [
    (name, command)
    for name, text in PAGES.items()
    for block in find_blocks(text, "bash")
    for command in block.splitlines()
    if re.search(r"python -m (trainers|benchmarks)\.", command)
]
BENCHMARKS = [
    (name, command)
    for name, text in PAGES.items()
    for command in re.findall(r"`(python -m benchmarks\.[^`]*)`", text)
]
TYPES = {int: int, float: float, str: str}


def parse(command):
    """Returns the module of a command, its flags and its operands."""
    command = re.search(r"python -m ((?:trainers|benchmarks)\..*)", command)[1]
    words = shlex.split(command)
    flags = [word for word in words[1:] if word.startswith("--")]
    pairs = [flag.removeprefix("--").partition("=") for flag in flags]
    operands = [word for word in words[1:] if word not in flags]
    return words[0], {name: value for name, _, value in pairs}, operands


def make_tool_config(module):
    """Returns the class of the flags of a tool."""
    if module.__name__ == "trainers.sweep":
        return module.SweepConfig
    if module.__name__ == "trainers.finetune":
        made = importlib.import_module("trainers.algorithmic").EXPERIMENT
        return module.make_config_class(made.config(encoding="RoPE"))
    (found,) = (
        value
        for value in vars(module).values()
        if dataclasses.is_dataclass(value)
        and value.__name__.endswith("Config")
        and value.__module__ == module.__name__
    )
    return found


def check_flags(name, flags, operands):
    """Makes the configuration of a command, which refuses wrong flags."""
    module = importlib.import_module(name)
    if hasattr(module, "EXPERIMENT"):
        config, presets = module.EXPERIMENT.config, module.EXPERIMENT.presets
        assert not operands
    else:
        config = make_tool_config(module)
        presets = getattr(module, "PRESETS", {})
        # Programs that train need no RUN.
        assert operands or presets or name == "trainers.sweep"
    types = typing.get_type_hints(config)
    assert flags.keys() <= types.keys()
    resolve(
        config,
        presets,
        {flag: TYPES[types[flag]](value) for flag, value in flags.items()},
    )


def find_benchmark_flags(name):
    text = pathlib.Path(importlib.util.find_spec(name).origin).read_text()
    return re.findall(r'DEFINE_\w+\(\s*"(\w+)"', text)


def test_programs_and_commands_are_found():
    assert len(PROGRAMS) > 4
    assert len(COMMANDS) > 25
    assert len(BENCHMARKS) > 8


@pytest.mark.parametrize("page", PROGRAMS)
def test_programs_run(page, monkeypatch):
    monkeypatch.chdir(ROOT)
    exec(PROGRAMS[page], {})


@pytest.mark.parametrize(("page", "command"), COMMANDS)
def test_flags_of_commands(page, command):
    name, flags, operands = parse(command)
    if name.startswith("benchmarks."):
        assert flags.keys() <= {*find_benchmark_flags(name)}
    elif "help" not in flags:
        check_flags(name, flags, operands)


@pytest.mark.parametrize(("page", "command"), BENCHMARKS)
def test_benchmarks_exist(page, command):
    name, flags, _ = parse(command)
    assert flags.keys() <= {*find_benchmark_flags(name)}


def test_every_trainer_has_a_row():
    rows = re.findall(r"^\| `(\w+)` \|", PAGES["trainers.md"], re.M)
    assert sorted(rows) == sorted(EXPERIMENTS)


def test_every_table_of_results_has_a_command():
    rows = re.findall(
        r"^\| .* \| `python -m [\w.]+.*?` \| `(.*?)` \|$",
        PAGES["reproducing.md"],
        re.M,
    )
    for pattern in rows:
        assert list(ROOT.glob(pattern)), pattern
    marked = {
        table
        for path in (ROOT / "README.md", ROOT / "benchmarks" / "README.md")
        for table in re.findall(r"<!-- results: (\w+) -->", path.read_text())
    }
    # Second tables of a report.
    marked -= {"finetuning", "addition_changes", "frontier_lengths"}
    stems = {pathlib.Path(row).stem for row in rows} - {"results"}
    assert stems | {"demonstration"} == marked
