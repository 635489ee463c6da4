"""The command: a short drill, and flags that it refuses."""

import json
import sys
import types

import pytest

from benchmarks import fault_drill
from benchmarks.fault_drill import KINDS, parse_arguments
from benchmarks.faults.report import Report
from benchmarks.faults.run import Failure
from benchmarks.faults.tally import Tally
from tests.shell import run_python


@pytest.mark.slow
def test_drill(tmp_path):
    report = tmp_path / "report.json"
    run_python(
        *("-m", "benchmarks.fault_drill", f"--faults={5 * len(KINDS)}"),
        *(f"--kinds={','.join(KINDS)}", "--most=5", f"--output={report}"),
    )
    found = json.loads(report.read_text())
    assert not found["failures"]
    # Without root there is no file system to fill, and no claim about it.
    assert set(found["not_run"]) <= {"disk"}
    assert set(found["kinds"]) | set(found["not_run"]) == set(KINDS)
    for tally in found["kinds"].values():
        assert tally["faults"] == sum(tally["moments"].values()) == 5
        assert tally["passed"] == tally["runs"] >= 1
    assert found["faults"] == 5 * len(found["kinds"])


def test_wrong_flags_are_refused(monkeypatch, capsys):
    for flag, message in (
        ("--kinds=fire", "--kinds takes sigkill, sigterm, sigint"),
        ("--faults=0", "--faults and --most must be at least 1"),
        ("--most=0", "--faults and --most must be at least 1"),
    ):
        monkeypatch.setattr(sys, "argv", ["fault_drill", flag])
        with pytest.raises(SystemExit) as error:
            parse_arguments()
        assert error.value.code == 2
        assert message in capsys.readouterr().err


class StandIn:
    """Stands in for a run that every fault hits, and that takes a minute."""

    minutes = 0

    def __init__(self, path, logs, reference, rng):
        self.path = path
        self.logs = []
        assert reference == "the reference"

    def check_end(self):
        StandIn.minutes += 1


def test_a_drill_goes_on_where_it_was_stopped(tmp_path, monkeypatch):
    planned = {"sigkill": 5, "worker": 2}

    def disturb(run, kinds, tally):
        while kinds:
            tally.add(kinds.pop(), "training", "killed")
        if run.path.name == "run-1":
            raise Failure("lost")

    subject = (lambda root: "the reference", StandIn, disturb)
    subjects = dict.fromkeys(fault_drill.SUBJECTS, subject)
    monkeypatch.setattr(fault_drill, "SUBJECTS", subjects)
    report = Report(tmp_path / "report.json", "drill")

    def go_on(minutes):
        tally = Tally(planned, report.read())
        flags = {"seed": 0, "most": 2, "minutes": minutes, "root": tmp_path}
        fault_drill.drill(tally, report, **flags)
        return report.read()

    clock = types.SimpleNamespace(monotonic=lambda: 60.0 * StandIn.minutes)
    monkeypatch.setattr(fault_drill, "time", clock)
    stopped = go_on(minutes=0.5)
    assert stopped["runs"] == 1
    assert 0 < stopped["faults"] < stopped["planned"] == 7
    whole = go_on(minutes=60)
    assert whole["faults"] == 7
    assert whole["kinds"]["worker"]["faults"] == 2
    assert [failure["run"] for failure in whole["failures"]] == ["run-1"]
    assert go_on(minutes=60)["runs"] == whole["runs"]
