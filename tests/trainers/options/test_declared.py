"""Flags that are read from the source of a program before its imports."""

import importlib
import typing

import pytest

import trainers
from tests.shell import run_python
from trainers.analyses.options import AnalyzeConfig
from trainers.compare import CompareConfig
from trainers.errors import ConfigError
from trainers.evaluate import EvaluateConfig
from trainers.export import ExportConfig
from trainers.generate import GenerateConfig
from trainers.options import declared
from trainers.options.option import options
from trainers.populations.options import PopulationConfig
from trainers.reports.options import ReportConfig
from trainers.sweeps.options import SweepConfig
from trainers.tpu.options import TpuCompileConfig

CONFIGS = {
    "analyze": AnalyzeConfig,
    "compare": CompareConfig,
    "evaluate": EvaluateConfig,
    "export": ExportConfig,
    "generate": GenerateConfig,
    "population": PopulationConfig,
    "report": ReportConfig,
    "sweep": SweepConfig,
    "tpu_compile": TpuCompileConfig,
    **{
        name: importlib.import_module(module).EXPERIMENT.config
        for name, module in trainers.EXPERIMENTS.items()
    },
}
OPERANDS = {
    **dict.fromkeys(("analyze", "compare"), "RUN..."),
    **dict.fromkeys(("evaluate", "export", "generate"), "RUN"),
    "report": "[RUN...]",
}
COMPUTED = ("default", "help", "choices", "registry")
"""Attributes of options that the source may compute."""


@pytest.mark.parametrize("name", CONFIGS)
def test_the_source_says_what_the_program_says(name):
    config = CONFIGS[name]
    known, kinds = options(config), typing.get_type_hints(config)
    flags, operands = declared.read(f"trainers.{name}")
    assert [*flags] == [*known]
    assert operands == OPERANDS.get(name, "")
    for flag, found in flags.items():
        assert found.kind is kinds[flag]
        expected = known[flag]
        for attribute, value in vars(found.option).items():
            if attribute not in COMPUTED:
                assert value == getattr(expected, attribute), flag
        assert found.option.choices in ((), tuple(expected.choices))
        assert found.called == tuple(expected.registry)


def test_the_names_of_tasks_and_the_defaults_of_text_are_read():
    flags, _ = declared.read("trainers.enwik8")
    assert "python_source" in flags["dataset"].option.choices
    assert flags["train_length"].option.default == "256"
    flags, _ = declared.read("trainers.algorithmic")
    assert "reverse_string" in flags["task"].option.choices
    assert "RoPE" in flags["encoding"].called


def test_what_only_a_run_knows_is_not_read():
    with pytest.raises(declared.UnknownError):
        declared.read("trainers.finetune")
    declared.check("trainers.finetune", ["program", "--anything=3"])


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("--lr=1", r"no flag --lr\. Did you mean --learning_rate\? "),
        ("--epochs=1", r"no flag --epochs\. Did you mean --steps\? "),
        ("--batch=1", r"no flag --batch\. Did you mean --batch_size\? "),
        ("--n_heads=1", r"Did you mean --num_heads\? "),
        ("--d_model=1", r"Did you mean --model_dim\? "),
        ("--zebra=1", r"no flag --zebra\. --help lists all flags\."),
        ("--steps=x", "--steps=x: invalid literal"),
        ("--steps=0", "--steps must be at least 1"),
        ("--dropout=1", "--dropout must be at least 0 and below 1"),
        ("--task=reverse", r"'reverse'\. Did you mean reverse_string\? It "),
        ("--encoding=Rope(x=3)", r"Did you mean RoPE\? It must be one of "),
        ("--workdir=s3://x", "--workdir is a path of a file system"),
    ],
)
def test_mistakes(argument, message):
    with pytest.raises(ConfigError, match=message):
        declared.check("trainers.algorithmic", ["program", argument])


def test_operands():
    for arguments, message in (
        ([], "RUN is missing: see --help"),
        (["a", "b"], "expected one RUN; got a b"),
    ):
        with pytest.raises(ConfigError, match=message):
            declared.check("trainers.evaluate", ["program", *arguments])


def test_what_is_right_or_known_later_passes():
    for encoding in (" RoPE ( )", "AxialEncoding(row=Rope)", "(", ""):
        arguments = [f"--encoding={encoding}", "--steps=3", "--seed", "0x10"]
        declared.check("trainers.algorithmic", ["program", *arguments])


@pytest.mark.process
def test_a_wrong_flag_needs_no_tensorflow():
    done = run_python(
        "-X", "importtime", "-m", "trainers.algorithmic", "--lr=1"
    )
    assert done.returncode == 2
    lines = done.stderr.splitlines()
    imported = {line.rpartition("| ")[2].strip() for line in lines}
    assert "absl.flags" in imported
    assert not {"tensorflow", "keras", "jax", "numpy"} & imported
    (error,) = [line for line in lines if not line.startswith("import time")]
    assert error.startswith("error: there is no flag --lr.")
