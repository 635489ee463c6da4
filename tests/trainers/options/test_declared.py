"""Flags that are read from the source of a program before its imports."""

import importlib
import sys
import typing

import pytest

import trainers
from tests.shell import run_python
from tests.trainers.programs import find_config_class
from trainers.errors import ConfigError
from trainers.options import declared
from trainers.options.option import options

OPERANDS = {
    **dict.fromkeys(("analyze", "compare"), "RUN..."),
    **dict.fromkeys(("evaluate", "export", "generate"), "RUN"),
    "report": "[RUN...]",
    **dict.fromkeys(("population", "sweep", "tpu_compile"), ""),
    **dict.fromkeys(trainers.EXPERIMENTS, ""),
}
COMPUTED = ("default", "help", "choices", "registry", "base")
"""Attributes of options that the source may compute."""


@pytest.mark.parametrize("name", OPERANDS)
def test_the_source_says_what_the_program_says(name):
    program = f"trainers.{name}"
    config, _ = find_config_class(importlib.import_module(program))
    known, kinds = options(config), typing.get_type_hints(config)
    flags, operands = declared.read(program)
    assert [*flags] == [*known]
    assert operands == OPERANDS[name]
    for flag, found in flags.items():
        assert found.kind is kinds[flag]
        expected = known[flag]
        for attribute, value in vars(found.option).items():
            if attribute not in COMPUTED:
                assert value == getattr(expected, attribute), flag
        assert found.option.choices in ((), tuple(expected.choices))
        assert found.called == tuple(expected.registry)
        assert bool(found.option.base) == bool(expected.base)


def test_what_only_a_run_knows_is_not_read():
    with pytest.raises(declared.UnknownError):
        declared.read("trainers.finetune")
    declared.check("trainers.finetune", ["program", "--anything=3"])
    # What is wrong with a call is known later.
    flags = ["--encoding=(", "--steps=3", "--seed", "0x10"]
    declared.check("trainers.algorithmic", ["program", *flags])


def test_mistakes():
    for arguments, message in (
        ("--lr=1", r"flag --lr\. Did you mean --learning_rate\? "),
        ("--epochs=1", r"Did you mean --steps\? "),
        ("--zebra=1", r"flag --zebra\. --help lists all flags\."),
        ("--steps=3 --steps=4", "--steps=4: already defined as"),
        ("--nosteps", "no flag --nosteps"),
        ("--steps=x", "--steps=x: invalid literal"),
        ("--dropout=1", "--dropout must be at least 0 and below 1"),
        ("--task=reverse", r"'reverse'\. Did you mean reverse_str"),
        ("--encoding=Rope(x=3)", r"Did you mean RoPE\? It must be"),
        ("--workdir=s3://x", "--workdir is a path of a file system"),
        ("reverse_string", "unexpected argument 'reverse_string'"),
        ("\udcff", "must be text in UTF-8"),
        ("--flagfile=none", "No such file or directory"),
        ("--seed=1 --flagfile /dev/zero", "it is not a regular file"),
        (f"--flagfile={sys.executable}", "it is not text"),
    ):
        with pytest.raises(ConfigError, match=message):
            declared.check("trainers.algorithmic", ["x", *arguments.split(" ")])
    with pytest.raises(ConfigError, match=r"RUN\.\.\. is missing: see --help"):
        declared.check("trainers.compare", ["program"])
    with pytest.raises(ConfigError, match="expected one RUN; got a b"):
        declared.check("trainers.evaluate", ["program", "a", "b"])


@pytest.mark.process
def test_a_wrong_flag_needs_no_tensorflow():
    command = ("-X", "importtime", "-m", "trainers.algorithmic", "--lr=1")
    lines = run_python(*command, status=2).stderr.splitlines()
    imported = {line.rpartition("| ")[2].strip() for line in lines}
    assert "absl.flags" in imported
    assert not {"tensorflow", "keras", "jax", "numpy"} & imported
    (error,) = [line for line in lines if not line.startswith("import time")]
    assert error.startswith("error: there is no flag --lr.")
