"""The end of a sweep whose runs have failed."""

import pytest

from tests.trainers.sweeps.files import open_root
from trainers.errors import TrainingError
from trainers.sweeps.execution import report_failures


def test_failures_are_reported(tmp_path, capsys):
    root = open_root(tmp_path)
    lines = [f"line {n}" for n in range(9)]
    with pytest.raises(TrainingError, match="1 runs failed"):
        report_failures(root, {"run": lines})
    out = capsys.readouterr().out
    assert f"{tmp_path}/runs/run.log" in out
    assert "line 4" in out and "line 3" not in out


def test_the_machine_is_suspected_where_the_sweep_gave_up(tmp_path, capsys):
    with pytest.raises(TrainingError, match="such as a full disk"):
        report_failures(open_root(tmp_path), {"run": ["x"]}, True)
    assert f"{tmp_path}/runs/run.log" in capsys.readouterr().out
