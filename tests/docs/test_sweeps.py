"""The guide to sweeps agrees with the command."""

import pathlib
import re

import pytest

from tests.docs.test_pages import TEXTS, find_blocks, make_config, parse
from tests.shell import run, with_commands, write_command
from trainers import sweep
from trainers.sweeps.grids import GRIDS
from trainers.sweeps.options import parse_shard, split_flags

GUIDE = TEXTS["docs/guides/sweeps.md"]
(SLURM,) = (text for text in find_blocks(GUIDE, "bash") if "#SBATCH" in text)
(KUBERNETES,) = find_blocks(GUIDE, "yaml")
COMMANDS = re.findall(
    r"python -m trainers\.sweep(?: --\w+=(?:\"[^\"]*\"|[^\s`\"&])+)+",
    re.sub(r" *\\\n\s*", " ", GUIDE),
)
VARIABLES = {
    "SLURM_ARRAY_JOB_ID": "17",
    "SLURM_ARRAY_TASK_ID": "5",
    "SLURM_ARRAY_TASK_COUNT": "64",
    "JOB_COMPLETION_INDEX": "7",
    "HOME": "/home/me",
}


def read(command):
    """Reads the flags of a command, with the values of variables."""
    text = re.sub(r"\$(\w+)", lambda found: VARIABLES[found[1]], command)
    return make_config(sweep, parse(text)[1])


@pytest.mark.parametrize("command", COMMANDS)
def test_flags_of_commands(command):
    config = read(command)
    # The rest of the line was no flag.
    split_flags(config.flags)


def test_every_grid_is_in_the_table():
    rows = re.findall(r"^\| (.*) \| .* \| (.*) \|$", GUIDE, re.M)
    named = {n: row for row, how in rows for n in re.findall(r"`(\w+)`", how)}
    assert {*named} == {*GRIDS}
    for name, make in GRIDS.items():
        place = re.match(r"[^:]*, (Table|Figure) [^:]*(?=:)", make.__doc__)
        if place:
            assert place[0] in [row for row, _ in rows], name


def test_slurm_gives_each_task_its_shard(tmp_path):
    write_command(tmp_path / "python", 'echo "$@"; exit 1')
    write_command(tmp_path / "scontrol", f"touch {tmp_path}/requeued")
    environment = with_commands(tmp_path, **VARIABLES)
    done = run("bash", "-c", SLURM, env=environment, status=1)
    assert not (tmp_path / "requeued").exists()
    (line,) = done.stdout.splitlines()
    assert line.startswith("-m trainers.sweep ")
    config = read(f"python {line}")
    assert parse_shard(config.shard) == (5, 64)
    assert config.root == "/home/me/runs/table_1"
    array = re.search(r"#SBATCH --array=0-(\d+)", SLURM)
    assert int(array[1]) + 1 == int(VARIABLES["SLURM_ARRAY_TASK_COUNT"])


def test_kubernetes_gives_each_pod_its_shard():
    yaml = pytest.importorskip("yaml")
    job = yaml.safe_load(KUBERNETES)
    spec = job["spec"]
    assert spec["completionMode"] == "Indexed"
    (container,) = spec["template"]["spec"]["containers"]
    shell, (script,) = container["command"], container["args"]
    # Instead of the command, prints it.
    command = (*shell, script.replace("exec", "exec echo"))
    done = run(*command, env=with_commands(**VARIABLES))
    assert done.stdout.startswith("python -m trainers.sweep ")
    config = read(done.stdout)
    assert parse_shard(config.shard) == (7, spec["completions"])
    mounted = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert str(pathlib.Path(config.root).parent) in mounted
    policy = spec["podFailurePolicy"]["rules"]
    assert policy[0]["onExitCodes"]["containerName"] == container["name"]
