"""The wheel contains the library alone, and works without the checkout."""

import email
import os
import re
import sys
import sysconfig
import tarfile
import zipfile

import pytest

import keras_lengen
from keras_lengen import layers
from tests.checkout import ROOT, copy_checkout
from tests.shell import WITHOUT_TENSORFLOW, run, run_python
from tests.test_readme import EXAMPLES

NAME = f"keras_lengen-{keras_lengen.__version__}"

# Runs without `site`, so that it sees neither the checkout nor an editable
# installation of it.
PROGRAM = """
import importlib.metadata
import importlib.util
import sys

target, *packages, example = sys.argv[1:]
sys.path += [target, *packages]

import keras_lengen
import numpy as np

assert keras_lengen.__file__.startswith(target), keras_lengen.__file__
assert importlib.metadata.version("keras_lengen") == keras_lengen.__version__
assert importlib.util.find_spec("trainers") is None

names = {}
exec(example, names)
tokens = np.random.default_rng(0).integers(0, 10, (4, 12))
(loss,) = names["model"].fit(tokens, tokens, verbose=0).history["loss"]
assert np.isfinite(loss)
print(keras_lengen.__version__, names["keras"].backend.backend())
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The directory of a wheel and of the source archive that it is made of."""
    # A copy, since a build leaves files in the checkout, which the next reads.
    source = tmp_path_factory.mktemp("source")
    copy_checkout(source)
    # Not isolated: isolation downloads setuptools.
    run(sys.executable, "-m", "build", "--no-isolation", cwd=source)
    return source / "dist"


@pytest.fixture(scope="module")
def wheel(built):
    (wheel,) = built.glob("*.whl")
    return wheel


def library():
    """The files of the library, as they are named in the checkout."""
    package = ROOT / "keras_lengen"
    files = {*package.rglob("*.py"), package / "py.typed"}
    return {file.relative_to(ROOT).as_posix() for file in files}


@pytest.mark.process
def test_the_wheel_contains_the_library_alone_and_its_metadata(wheel):
    assert wheel.name == f"{NAME}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        text = archive.read(f"{NAME}.dist-info/METADATA").decode()
    described = {name for name in names if name.startswith(f"{NAME}.dist-info")}
    assert set(names) - described == library()
    metadata = email.message_from_string(text)
    required = metadata.get_all("Requires-Dist")
    always = [line for line in required if "extra ==" not in line]
    assert [line.partition(">=")[0] for line in always] == ["keras", "numpy"]
    # What a package index shows, where paths of the repository lead nowhere.
    assert metadata["Description-Content-Type"] == "text/markdown"
    shown = metadata.get_payload()
    assert shown.strip() == (ROOT / "DESCRIPTION.md").read_text().strip()
    targets = re.findall(r"\]\((.*?)\)", shown)
    assert targets and all(path.startswith("https://") for path in targets)
    extras = {*metadata.get_all("Provides-Extra")}
    assert {*re.findall(r"keras_lengen\[(.*?)\]", shown)} <= extras


@pytest.mark.process
def test_the_source_archive_has_all_that_the_trainers_need(built):
    with tarfile.open(built / f"{NAME}.tar.gz") as archive:
        files = [file.name for file in archive.getmembers() if file.isfile()]
    names = {name.removeprefix(f"{NAME}/") for name in files}
    described = {name for name in names if ".egg-info/" in name}
    folders = ("benchmarks/published", "colab", "datasets", "trainers")
    listed = run("git", "ls-files", *folders).stdout
    assert names - described == library() | {
        *listed.splitlines(),
        "CHANGELOG.md",
        "DESCRIPTION.md",
        "LICENSE",
        "MANIFEST.in",
        "PKG-INFO",
        "README.md",
        "pyproject.toml",
        "setup.cfg",
    }


@pytest.fixture(scope="module")
def target(wheel, tmp_path_factory):
    """A directory in which the wheel is installed."""
    target = tmp_path_factory.mktemp("target")
    install = ("install", "--no-deps", "--no-index", "--target", target, wheel)
    run(sys.executable, "-m", "pip", *install)
    return target


@pytest.mark.process
@pytest.mark.parametrize("backend", ["tensorflow", "jax"])
def test_the_example_runs_on_the_installed_wheel(backend, target, tmp_path):
    packages = {sysconfig.get_path(name) for name in ("purelib", "platlib")}
    before = "" if backend == "tensorflow" else WITHOUT_TENSORFLOW
    done = run(
        *(sys.executable, "-I", "-S", "-c", before + PROGRAM),
        *(target, *packages, EXAMPLES[0]),
        cwd=tmp_path,
        env={**os.environ, "KERAS_BACKEND": backend, "JAX_PLATFORMS": "cpu"},
    )
    assert f"{keras_lengen.__version__} {backend}" in done.stdout


@pytest.mark.process
def test_a_type_checker_sees_the_installed_library(target, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        f"from keras_lengen.layers import {', '.join(layers.__all__)}\n"
        "reveal_type(RoPE())\n"
        "YaRN(scaling_factor='2')\n"
    )
    command = ("-m", "mypy", "--config-file=", program.name)
    variables = {"PYTHONPATH": str(target)}
    done = run_python(*command, cwd=tmp_path, status=1, **variables)
    found = done.stdout.splitlines()
    expected = [
        'Revealed type is "keras_lengen.layers.encodings.rope.RoPE"',
        'Missing named argument "original_length"',
        'has incompatible type "str"; expected "float | None"',
        "Found 2 errors ",
    ]
    assert len(found) == len(expected), found
    for line, part in zip(found, expected, strict=True):
        assert part in line
