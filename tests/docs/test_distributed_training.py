"""The guide to distributed training agrees with the trainers."""

import ast
import functools
import json
import re

import pytest
import tensorflow as tf

from tests.checkout import ROOT
from tests.docs.test_pages import TEXTS, check_flags, find_blocks, parse
from tests.shell import run, with_commands, write_command
from trainers.devices import tensorflow_strategy

GUIDE = TEXTS["docs/guides/distributed_training.md"]
# A command's flags end at a quote that a shell around it has opened.
COMMANDS = re.findall(
    r"python -m trainers\.\w+(?: --\w+=(?:'[^']*'|\"[^\"]*\"|[^\s`'\"])+)+",
    re.sub(r" *\\\n\s*", " ", GUIDE),
)
(SLURM,) = (text for text in find_blocks(GUIDE, "bash") if "#SBATCH" in text)
(KUBERNETES,) = find_blocks(GUIDE, "yaml")
MESSAGES = re.findall(
    r"^\| `([^`]+)`[^|]*\| ?([\d, ]*) \|",
    GUIDE.partition("## Error messages")[2].partition("Other programs")[0],
    re.MULTILINE,
)
STATUSES = {
    **dict.fromkeys(("ConfigError", "CorpusError", "ImageError"), "2"),
    "TrainingError": "1",
}


@functools.cache
def texts():
    """All texts of trainers and data sets, with … for values, and statuses."""
    found = {}
    for path in (
        *ROOT.glob("trainers/**/*.py"),
        *ROOT.glob("datasets/**/*.py"),
    ):
        for node in ast.walk(ast.parse(path.read_text())):
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


def in_shell(script, path, shell="bash", **variables):
    """Lines that a shell script prints, with commands of `path` first."""
    done = run(shell, "-c", script, env=with_commands(path, **variables))
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
        write_command(tmp_path / name, script)
    return tmp_path


@pytest.fixture
def workers(monkeypatch):
    """A function that reads a TF_CONFIG as the trainers do."""
    made, module = object(), tensorflow_strategy
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


@pytest.mark.parametrize("command", COMMANDS)
def test_flags_are_valid(command):
    check_flags(*parse(command))


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
