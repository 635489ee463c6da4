"""The command: a short drill, and flags that it refuses."""

import json
import subprocess
import sys

import pytest

QUICK = ("sigkill", "sigterm", "sigint", "truncate", "disk")


def start_drill(*flags):
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.fault_drill", *flags],
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize(
    ("kinds", "faults"),
    [
        pytest.param(QUICK, 10, id="short"),
        pytest.param((*QUICK, "worker"), 60, marks=pytest.mark.slow, id="long"),
    ],
)
def test_drill(tmp_path, kinds, faults):
    report = tmp_path / "report.json"
    done = start_drill(
        *(f"--faults={faults}", f"--kinds={','.join(kinds)}"),
        *("--most=5", f"--output={report}"),
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
def test_wrong_flags_are_refused(flag, message):
    done = start_drill(flag)
    assert done.returncode == 2
    assert message in done.stderr
