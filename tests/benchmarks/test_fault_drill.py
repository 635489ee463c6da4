"""The command: a short drill, and flags that it refuses."""

import json
import subprocess
import sys

import pytest

from benchmarks.fault_drill import parse_arguments

QUICK = ("sigkill", "sigterm", "sigint", "truncate", "disk")


@pytest.mark.parametrize(
    ("kinds", "faults"),
    [
        pytest.param(QUICK, 10, marks=pytest.mark.process, id="short"),
        pytest.param((*QUICK, "worker"), 60, marks=pytest.mark.slow, id="long"),
    ],
)
def test_drill(tmp_path, kinds, faults):
    report = tmp_path / "report.json"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "benchmarks.fault_drill"),
            *(f"--faults={faults}", f"--kinds={','.join(kinds)}"),
            *("--most=5", f"--output={report}"),
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(report.read_text())
    assert not found["failures"]
    # Without root there is no file system to fill, and no claim about it.
    assert set(found["not_run"]) <= {"disk"}
    assert set(found["kinds"]) | set(found["not_run"]) == set(kinds)
    share = faults // len(kinds)
    for tally in found["kinds"].values():
        assert tally["faults"] == sum(tally["moments"].values()) == share
        assert tally["passed"] == tally["runs"] >= 1
    assert found["faults"] == share * len(found["kinds"])


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--kinds=fire", "--kinds takes sigkill, sigterm, sigint"),
        ("--faults=0", "--faults and --most must be at least 1"),
        ("--most=0", "--faults and --most must be at least 1"),
    ],
)
def test_wrong_flags_are_refused(flag, message, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["fault_drill", flag])
    with pytest.raises(SystemExit) as error:
        parse_arguments()
    assert error.value.code == 2
    assert message in capsys.readouterr().err


def test_faults_are_shared_among_the_kinds(monkeypatch):
    flags = ["--faults=5", "--kinds=sigkill,disk,worker"]
    monkeypatch.setattr(sys, "argv", ["fault_drill", *flags])
    _, planned = parse_arguments()
    assert planned == {"sigkill": 2, "disk": 2, "worker": 1}
