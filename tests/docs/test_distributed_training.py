"""The guide to distributed training agrees with the trainers."""

import ast
import functools
import importlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import typing

import pytest
import tensorflow as tf

from trainers.algorithmic import EXPERIMENT
from trainers.devices import tensorflow_strategy
from trainers.options.fields import resolve

ROOT = pathlib.Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "guides" / "distributed_training.md").read_text()
# A command's flags end at a quote that a shell around it has opened.
COMMANDS = re.findall(
    r"python -m (trainers\.\w+)((?: --\w+=(?:'[^']*'|\"[^\"]*\"|[^\s`'\"])+)*)",
    re.sub(r" *\\\n\s*", " ", GUIDE),
)
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", GUIDE, re.DOTALL)
(SLURM,) = (text for _, text in BLOCKS if "#SBATCH" in text)
(KUBERNETES,) = (text for kind, text in BLOCKS if kind == "yaml")
MESSAGES = re.findall(
    r"^\| `([^`]+)`[^|]*\| ?([\d, ]*) \|",
    GUIDE.partition("## Error messages")[2].partition("Other programs")[0],
    re.MULTILINE,
)
STATUSES = {
    "ConfigError": "2",
    "CorpusError": "2",
    "ImageError": "2",
    "TrainingError": "1",
}


@functools.cache
def texts():
    """All texts of trainers and data sets, with … for values, and statuses."""
    found = {}
    for path in [
        *(ROOT / "trainers").rglob("*.py"),
        *(ROOT / "datasets").rglob("*.py"),
    ]:
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            found.setdefault(template(node), "")
            name = getattr(getattr(node, "func", None), "id", None)
            if name in STATUSES and node.args:
                found[template(node.args[0])] = STATUSES[name]
    return found


def template(node):
    if isinstance(node, ast.JoinedStr):
        return "".join(map(template, node.values))
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return "…"


def accepted(flags, config, presets):
    types = typing.get_type_hints(config)
    given = {}
    for flag in shlex.split(flags):
        name, _, value = flag.removeprefix("--").partition("=")
        given[name] = types[name](value)
    return resolve(config, presets, given)


def in_shell(script, path, shell="bash", **variables):
    """Lines that a shell script prints, with commands of `path` first."""
    search = f"{path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [shell, "-c", script],
        env={"PATH": search, "HOME": str(path), **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    assert not done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def commands(tmp_path):
    """A directory of stand-ins for the commands of a cluster."""
    for name, script in {
        "scontrol": 'test "$1 $2 $3" = "show hostnames node[1-2]"'
        " && printf 'node1\\nnode2\\n'",
        "srun": "while [[ $1 == --* ]]; do shift; done\n"
        'for rank in 0 1; do SLURM_PROCID=$rank "$@"; done',
        "python": 'echo "$TF_CONFIG"',
    }.items():
        command = tmp_path / name
        command.write_text(f"#!/bin/bash\n{script}\n")
        command.chmod(0o755)
    return tmp_path


@pytest.fixture
def workers(monkeypatch):
    """A function that reads a TF_CONFIG as the trainers do."""
    made = object()
    module = tensorflow_strategy
    monkeypatch.setattr(module, "wait_for", lambda others, own: None)
    monkeypatch.setattr(module, "TensorFlowStrategy", lambda made: made)
    monkeypatch.setattr(
        tf.distribute, "MultiWorkerMirroredStrategy", lambda: made
    )

    def read(text):
        monkeypatch.setenv("TF_CONFIG", text)
        assert module.make_strategy("multi_worker") is made
        config = json.loads(text)
        return config["cluster"]["worker"], config["task"]["index"]

    yield read
    module._make_multi_worker.cache_clear()


@pytest.mark.parametrize("flags", [f for m, f in COMMANDS if "algo" in m])
def test_flags_are_valid(flags):
    accepted(flags, EXPERIMENT.config, EXPERIMENT.presets)


def test_flags_of_other_commands_are_valid():
    others = {m: f for m, f in COMMANDS if m != "trainers.algorithmic" and f}
    assert others
    for name, flags in others.items():
        if not (ROOT / f"{name.replace('.', '/')}.py").exists():
            pytest.skip(f"{name} is not there")
        module = importlib.import_module(name)
        accepted(flags, module.TpuCompileConfig, module.PRESETS)


@pytest.mark.parametrize(("message", "status"), MESSAGES)
def test_messages_are_those_of_the_trainers(message, status):
    pattern = ".*".join(map(re.escape, message.split("…")))
    found = {texts()[text] for text in texts() if re.search(pattern, text)}
    assert found
    assert status in found or found == {""}


def test_slurm(commands, workers):
    lines = in_shell(
        SLURM, commands, SLURM_JOB_ID="12345", SLURM_JOB_NODELIST="node[1-2]"
    )
    addresses = ["node1:22345", "node2:22345"]
    assert [workers(text) for text in lines] == [(addresses, 0), (addresses, 1)]


def test_kubernetes(commands, workers):
    service, job = KUBERNETES.split("---\n")

    def field(text, name):
        return re.search(rf"^ *(?:- )?{name}: *(.+)$", text, re.MULTILINE)[1]

    script = re.search(r"- \|\n((?: {14,}.*\n)+)", job)[1]
    count, name = int(field(job, "completions")), field(job, "name")
    assert field(job, "parallelism") == str(count)
    assert field(job, "subdomain") == field(service, "name")
    assert field(service, "batch.kubernetes.io/job-name") == name
    addresses = [f"{name}-{i}.{field(job, 'subdomain')}:2222" for i in (0, 1)]
    for index in range(count):
        lines = in_shell(
            script, commands, shell="sh", JOB_COMPLETION_INDEX=str(index)
        )
        assert [workers(text) for text in lines] == [(addresses, index)]
