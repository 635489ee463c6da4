"""Mutants of a toy project, and the committed ones of this one."""

import ast
import time

import pytest

from benchmarks.mutants.__main__ import find_killers, try_all
from benchmarks.mutants.mutant import Mutant, read_mutants
from benchmarks.mutants.suite import Suite
from tests.checkout import ROOT, make_repository

SOURCE = '''LIMIT = 3


def add(a, b):
    """Adds.

    >>> add(0, 1)
    1
    """
    return a + b


def is_small(a):
    return a < LIMIT
'''
TESTS = """import subprocess
import sys

from trainers import toy


def test_add():
    assert toy.add(1, 1) == 2


def test_small_in_a_process():
    program = "from trainers import toy; assert toy.is_small(2)"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_that_fails():
    assert toy.add(1, 1) == 3
"""
DOCTEST = "trainers/toy.py::trainers.toy.add"
CHANGES = [
    ("a + b", "a - b"),
    ("a + b", "a * b + (a == 0)"),
    ("a < LIMIT", "a > LIMIT"),
    ("a < LIMIT", "a <= LIMIT"),
    ("LIMIT = 3", "LIMIT = 1"),
]
PATH = "trainers/toy.py"
MUTANTS = [
    Mutant("toy", f"{old} -> {new}", PATH, SOURCE.index(old), old, new)
    for old, new in CHANGES
]


@pytest.fixture
def suite(tmp_path):
    project = tmp_path / "project"
    for path, text in {
        "trainers/__init__.py": "",
        "trainers/toy.py": SOURCE,
        "tests/test_toy.py": TESTS,
        "pyproject.toml": "[tool.pytest.ini_options]\naddopts = "
        "'--doctest-modules'\nmarkers = ['slow', 'gpu', 'tpu_compile']\n",
    }.items():
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_text(text)
    (project / "benchmarks").symlink_to(ROOT / "benchmarks")
    make_repository(project)
    return Suite(tmp_path / "root", checkout=str(project))


@pytest.mark.process
def test_a_suite_kills_what_its_tests_notice(suite):
    pytest.importorskip("pytest_cov")
    assert not suite.record(until=time.time() - 1)
    assert suite.record(until=time.time() + 600)
    done = {MUTANTS[1].name: {"killed_by": "earlier"}}
    tried = dict(done)
    try_all(suite, MUTANTS, tried, lambda: None, time.time() + 600)
    killers = [tried[mutant.name]["killed_by"] for mutant in MUTANTS]
    in_process = "tests/test_toy.py::test_small_in_a_process"
    assert killers[0] in ("tests/test_toy.py::test_add", DOCTEST)
    assert killers[1:] == ["earlier", in_process, None, in_process]
    again, known = {}, find_killers(tried)
    try_all(suite, MUTANTS, again, lambda: None, time.time() + 600, known)
    assert sorted(again) == sorted(MUTANTS[n].name for n in (0, 2, 4))
    assert (suite.clone() / "trainers" / "toy.py").read_text() == SOURCE


@pytest.mark.product
def test_mutants_of_this_project_are_programs():
    mutants = read_mutants(ROOT)
    assert len({mutant.name for mutant in mutants}) == len(mutants) > 180
    for mutant in mutants:
        text = (ROOT / mutant.path).read_text()
        mutated = ast.parse(mutant.mutate(text))
        assert ast.dump(mutated) != ast.dump(ast.parse(text)), mutant.name


def test_an_unknown_area_is_refused():
    with pytest.raises(ValueError, match="no area x; the areas are attention"):
        read_mutants(ROOT, ["x"])
