"""The guide to sweeps agrees with the command."""

import os
import pathlib
import re
import shlex
import subprocess
import typing

import pytest

from trainers.options.fields import resolve
from trainers.sweeps.grids import GRIDS
from trainers.sweeps.options import SweepConfig, parse_shard, split_flags

ROOT = pathlib.Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "guides" / "sweeps.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", GUIDE, re.DOTALL | re.M)
(SLURM,) = (text for _, text in BLOCKS if "#SBATCH" in text)
(KUBERNETES,) = (text for kind, text in BLOCKS if kind == "yaml")
COMMANDS = re.findall(
    r"python -m trainers\.sweep((?: --\w+=(?:\"[^\"]*\"|[^\s`\"&])+)*)",
    re.sub(r" *\\\n\s*", " ", GUIDE),
)
VARIABLES = {
    "SLURM_ARRAY_JOB_ID": "17",
    "SLURM_ARRAY_TASK_ID": "5",
    "SLURM_ARRAY_TASK_COUNT": "64",
    "JOB_COMPLETION_INDEX": "7",
    "HOME": "/home/me",
}


def expand(text):
    """Puts the values of variables into a text, as a shell does."""
    return re.sub(r"\$(\w+)", lambda found: VARIABLES[found[1]], text)


def make_config(flags):
    types = typing.get_type_hints(SweepConfig)
    pairs = (flag[2:].partition("=") for flag in shlex.split(expand(flags)))
    given = {name: types[name](value) for name, _, value in pairs}
    return resolve(SweepConfig, {}, given)


@pytest.mark.parametrize("flags", [flags for flags in COMMANDS if flags])
def test_flags_of_commands(flags):
    config = make_config(flags)
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


def run_slurm(tmp_path, python, *, is_stopped=False):
    """Runs the script with other commands; returns status, lines, calls."""
    for name, text in {
        "python": python,
        "scontrol": f'echo "$@" > {tmp_path}/requeued',
    }.items():
        path = tmp_path / name
        path.write_text(f"#!/bin/bash\n{text}\n")
        path.chmod(0o755)
    (tmp_path / "sweep.sh").write_text(SLURM)
    environment = {**os.environ, **VARIABLES}
    environment["PATH"] = f"{tmp_path}:{environment['PATH']}"
    script = subprocess.Popen(
        ["bash", tmp_path / "sweep.sh"],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    lines = [script.stdout.readline()]
    if is_stopped:
        script.terminate()
    lines += script.communicate(timeout=60)[0].splitlines()
    requeued = tmp_path / "requeued"
    calls = requeued.read_text().split() if requeued.exists() else []
    return script.returncode, lines, calls


def test_slurm_gives_each_task_its_shard(tmp_path):
    status, (line,), calls = run_slurm(tmp_path, 'echo "$@"; exit 1')
    assert (status, calls) == (1, [])
    words = line.split()
    assert words[:2] == ["-m", "trainers.sweep"]
    config = make_config(shlex.join(words[2:]))
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
    done = subprocess.run(
        # Instead of the command, prints it.
        [*shell, script.replace("exec", "exec echo")],
        env={**os.environ, **VARIABLES},
        capture_output=True,
        text=True,
        check=True,
    )
    words = done.stdout.split()
    assert words[:3] == ["python", "-m", "trainers.sweep"]
    config = make_config(shlex.join(words[3:]))
    assert parse_shard(config.shard) == (7, spec["completions"])
    mounted = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert str(pathlib.Path(config.root).parent) in mounted
    policy = spec["podFailurePolicy"]["rules"]
    assert policy[0]["onExitCodes"]["containerName"] == container["name"]
