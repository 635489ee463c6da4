import json

from benchmarks.faults.tally import Tally


def test_faults_runs_and_failures(run, tmp_path, capsys):
    tally = Tally({"sigkill": 2, "worker": 1})
    tally.add("sigkill", "training", "killed")
    tally.add("sigkill", "saving", "killed")
    tally.add_run(run, None)
    tally.add("worker", "training", "worker 0 killed")
    log = tmp_path / "log"
    log.write_text("another worker was lost\nanother worker was lost\n")
    tally.add_restarts([log])
    run.logs.append(log)
    tally.add_run(run, "the workers hang")

    assert tally.runs == 2
    assert tally.faults == 3
    assert tally.kinds["sigkill"] == {
        "faults": 2,
        "runs": 1,
        "passed": 1,
        "moments": {"training": 1, "saving": 1},
        "endings": {"killed": 2},
    }
    assert tally.kinds["worker"]["passed"] == 0
    assert tally.kinds["worker"]["endings"] == {
        "worker 0 killed": 1,
        "the other restarted itself": 2,
    }
    (failure,) = tally.failures
    assert failure["faults"] == ["worker"]
    assert failure["problem"] == "the workers hang"
    assert "3/3 faults in 2 runs, 1 failures" in capsys.readouterr().out


def test_a_tally_goes_on_from_its_record(run):
    planned = {"sigkill": 3, "worker": 1}
    first = Tally(planned)
    first.add("sigkill", "training", "killed")
    first.add_run(run, None)
    record = {**json.loads(json.dumps(first.record)), "seconds": 60.0}
    second = Tally(planned, record)
    assert second.left == {"sigkill": 2, "worker": 1}
    second.add("sigkill", "training", "killed")
    second.add("worker", "training", "worker 0 killed")
    second.add_run(run, None)
    assert second.left == {"sigkill": 1}
    record = second.record
    assert (record["faults"], record["planned"], record["runs"]) == (3, 4, 2)
    assert record["kinds"]["sigkill"]["endings"] == {"killed": 2}
    assert record["kinds"]["sigkill"]["passed"] == 2
    assert record["seconds"] > 60


def test_a_kind_that_is_not_run_is_not_left():
    tally = Tally({"disk": 2, "sigkill": 1})
    tally.skip("disk", "no root")
    assert tally.left == {"sigkill": 1}
    assert tally.record["not_run"] == {"disk": "no root"}
