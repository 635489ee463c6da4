import importlib.util
import shlex

import pytest

from tests.colab.cells import find_cell
from trainers import algorithmic, tpu_compile
from trainers.options.fields import resolve
from trainers.options.layers import with_max_position
from trainers.tpu import requests, table

WITH_TPU = {
    "HAS_TPU": True,
    "SMOKE": False,
    "RUNS": "runs",
    "importlib": importlib,
}


def run_cells(**changed):
    """The commands of the training and of the compilation, two lists."""
    commands = []
    names = {**WITH_TPU, "run": commands.append, **changed}
    exec(find_cell("tpu", "MODEL = "), names)
    trained = commands.copy()
    exec(find_cell("tpu", "if HAS_TPU:"), names)
    return trained, commands[len(trained) :]


def resolve_flags(command, config, presets):
    """The configuration of a command."""
    flags = [word[2:].split("=") for word in shlex.split(command)[1:]]
    kinds = {name: type(default) for name, default in vars(config()).items()}
    given = {name: kinds[name](value) for name, value in flags}
    return resolve(config, presets, given)


def set_installed(monkeypatch, *packages):
    found = {name: object() for name in packages}
    monkeypatch.setattr(importlib.util, "find_spec", found.get)


def test_the_step_of_the_run_on_a_tpu_is_compiled(monkeypatch):
    set_installed(monkeypatch, "jax", "libtpu")
    (trained,), _ = run_cells()
    _, (compiled,) = run_cells(HAS_TPU=False)
    trained = with_max_position(
        resolve_flags(
            trained, algorithmic.AlgorithmicConfig, algorithmic.PRESETS
        )
    )
    (program,) = requests.list_programs(
        resolve_flags(
            compiled, tpu_compile.TpuCompileConfig, tpu_compile.PRESETS
        )
    )
    assert program.mode == "train"
    for name in table.list_program_fields():
        if hasattr(trained, name):
            assert getattr(program.config, name) == getattr(trained, name), name


@pytest.mark.parametrize("packages", [(), ("jax",), ("libtpu",)])
def test_what_to_install_for_the_compiler(packages, monkeypatch, capsys):
    set_installed(monkeypatch, *packages)
    _, compiled = run_cells(HAS_TPU=False)
    assert compiled == []
    assert "'..[tpu-compile]'" in capsys.readouterr().out


@pytest.mark.parametrize("packages", [(), ("jax", "libtpu")])
def test_nothing_is_compiled_or_asked_for_on_a_tpu(
    packages, monkeypatch, capsys
):
    set_installed(monkeypatch, *packages)
    _, compiled = run_cells()
    assert compiled == []
    assert "install" not in capsys.readouterr().out
