"""Files that hosting sites and tools read agree with the rest."""

import re
import tomllib

import pytest

from tests.checkout import ROOT, SETUP

yaml = pytest.importorskip("yaml")

CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def read(path):
    return yaml.safe_load((ROOT / path).read_text())


def requirements(extra=None):
    """What the library or one of its extras requires, a list of lines."""
    section, name = "options.extras_require", extra
    if extra is None:
        section, name = "options", "install_requires"
    lines = SETUP[section][name].splitlines()
    return [line for line in lines if line and not line.startswith("#")]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_run_commands_that_are_documented(path):
    documented = (ROOT / "README.md").read_text() + CONTRIBUTING
    documented += (ROOT / ".ci" / "run").read_text()
    ran = [
        line
        for job in read(path)["jobs"].values()
        for step in job["steps"]
        for line in step.get("run", "").splitlines()
    ]
    assert ran
    assert [line for line in ran if line not in documented] == []


def test_pre_commit_has_the_versions_of_the_setup():
    repositories = read(".pre-commit-config.yaml")["repos"]
    assert len(repositories) == 2
    for repository in repositories:
        name = repository["repo"].rpartition("/")[2]
        name = name.removeprefix("mirrors-").removesuffix("-pre-commit")
        version = repository["rev"].removeprefix("v")
        assert f"{name}=={version}" in requirements("test")
    hooks = [hook for each in repositories for hook in each["hooks"]]
    (mypy,) = (hook for hook in hooks if hook["id"] == "mypy")
    # It checks types with what the library requires.
    assert mypy["additional_dependencies"] == requirements()


def test_the_oldest_versions_are_those_of_the_setup_and_of_the_guide():
    text = (ROOT / ".ci" / "oldest.txt").read_text()
    oldest = dict(re.findall(r"^([\w-]+)==(.*)", text, re.M))
    floors = [
        line.split(">=")
        for extra in (None, "tensorflow", "test", "retrofit")
        for line in requirements(extra)
        if line.partition(">=")[0] in oldest
    ]
    assert {name for name, _ in floors} == oldest.keys()
    for name, floor in floors:
        assert oldest[name] in (floor, f"{floor}.0"), name
    guide = (ROOT / "docs" / "start" / "install.md").read_text()
    for name in ("keras", "tensorflow", "jax", "numpy", "keras-hub"):
        assert f"`{name}` | {oldest[name]} |" in guide


def test_every_marker_has_a_line_in_the_guide():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    markers = project["tool"]["pytest"]["ini_options"]["markers"]
    assert markers
    for marker in markers:
        name = marker.partition(":")[0]
        line = rf"^python -m pytest -m {name} +# "
        assert re.search(line, CONTRIBUTING, re.MULTILINE), name
