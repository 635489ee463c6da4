import glob
import importlib.metadata
import shutil
import subprocess
import sys

import pytest

from colab.helpers import install
from tests.test_readme import ROOT
from trainers.cluster import strategy

LIBRARY = {"keras": "3.15.0", "numpy": "2.1.3"}
PLOTS_AND_IMAGES = {
    "matplotlib": "3.11.1",
    "pillow": "13.0.0",
    "scikit-learn": "1.9.0",
}
OTHERS = {**LIBRARY, **PLOTS_AND_IMAGES, "tensorboard": "2.20.0"}


@pytest.fixture
def machine(monkeypatch):
    """A function that sets what is installed, and the hardware."""
    monkeypatch.chdir(ROOT)

    def set_machine(versions, *, tpus=(), gpu=False):
        def find_version(name):
            if name not in versions:
                raise importlib.metadata.PackageNotFoundError(name)
            return versions[name]

        monkeypatch.setattr(importlib.metadata, "version", find_version)
        monkeypatch.setattr(install, "find_local_tpus", lambda: list(tpus))
        monkeypatch.setattr(shutil, "which", {"nvidia-smi": gpu}.get)

    return set_machine


@pytest.mark.parametrize(
    "tensorflow",
    [
        {"tensorflow": "2.21.0"},
        {"tensorflow": "2.100.0rc1"},
        {"tensorflow-cpu": "2.21"},
        {"tensorflow-tpu": "2.20.0"},
    ],
    ids=str,
)
@pytest.mark.parametrize("tpus", [[], ["/dev/accel0"]])
def test_nothing_is_installed_where_all_is_there(tensorflow, tpus, machine):
    machine({**OTHERS, **tensorflow}, tpus=tpus, gpu=True)
    assert install.choose_extras() == []


@pytest.mark.parametrize("name", [*LIBRARY, *PLOTS_AND_IMAGES])
@pytest.mark.parametrize("version", [None, "1.3.9"])
def test_a_missing_or_old_package_is_noticed(name, version, machine):
    there = {**OTHERS, "tensorflow": "2.21.0", name: version}
    machine({name: version for name, version in there.items() if version})
    assert install.choose_extras() == ["images", "plots"]


@pytest.mark.parametrize(
    "tensorflow",
    [
        {},
        {"tensorflow": "2.19.1"},
        {"tensorflow": "2.9.3"},
        {"tensorflow-cpu": "2.20.0"},
        {"tensorflow": "2.21.0", "tensorboard": "2.19.0"},
    ],
    ids=str,
)
@pytest.mark.parametrize(
    ("hardware", "extra"),
    [
        ({}, "tensorflow"),
        ({"gpu": True}, "gpu"),
        ({"tpus": ["/dev/vfio/0"]}, "tpu"),
        ({"tpus": ["/dev/accel0"], "gpu": True}, "tpu"),
    ],
    ids=str,
)
def test_a_missing_or_old_tensorflow(tensorflow, hardware, extra, machine):
    machine({**OTHERS, **tensorflow}, **hardware)
    assert install.choose_extras() == ["images", "plots", extra]


def test_the_compiler_of_jax_is_not_replaced(machine):
    machine({**OTHERS, "libtpu": "0.0.51"}, tpus=["/dev/vfio/0"])
    assert install.choose_extras() == ["images", "plots", "tensorflow"]


def test_the_library_alone_lacks_the_extras(machine):
    # As after `pip install keras_lengen`.
    machine({**LIBRARY, "keras_lengen": "0.1.0"})
    extras = ["images", "plots", "tensorflow"]
    assert install.choose_extras() == extras


def test_tpus_are_those_of_the_trainers(monkeypatch):
    chips = {"/dev/accel*": ["accel0"], "/dev/vfio/[0-9]*": ["vfio/0"]}
    monkeypatch.setattr(glob, "glob", chips.__getitem__)
    assert install.find_local_tpus() == ["accel0", "vfio/0"]
    assert strategy.find_local_tpus() == install.find_local_tpus()


@pytest.fixture
def pip(machine, monkeypatch):
    """A function that installs these versions; returns the commands of pip."""
    modules = {"toy_images": ["pillow"], "toy_keras": ["keras"]}
    monkeypatch.setattr(
        importlib.metadata, "packages_distributions", lambda: modules
    )
    # Keras is not imported.
    monkeypatch.setitem(sys.modules, "toy_images", object())

    def install_missing(before, after):
        commands = []

        def run(command, check):
            commands.append(command)
            machine(after)

        monkeypatch.setattr(subprocess, "run", run)
        machine(before)
        install.install_missing()
        return commands

    return install_missing


NEW = {**OTHERS, "tensorflow": "2.21.0"}


def test_pip_is_not_started_where_all_is_there(pip, capsys):
    assert pip(NEW, NEW) == []
    assert capsys.readouterr().out == ""


def test_the_sources_are_installed_with_the_extras(pip, capsys):
    old = {**NEW, "keras": "3.10.0", "tensorflow": "2.19.0"}
    (command,) = pip(old, NEW)
    assert command[0] == sys.executable
    assert command[-2:] == ["--editable", ".[images,plots,tensorflow]"]
    assert capsys.readouterr().out == ""


def test_imported_packages_that_were_replaced_need_a_restart(pip, capsys):
    assert pip({**NEW, "pillow": "11.3.0"}, NEW)
    output = capsys.readouterr().out
    assert "Restart" in output
    assert "(pillow)" in output


def test_the_extra_test_has_all_that_notebooks_need(monkeypatch):
    monkeypatch.chdir(ROOT)
    assert install.choose_extras() == []
