import random

import numpy as np

from benchmarks.faults.damage import append_nul_bytes, damage_checkpoint
from benchmarks.faults.run_files import read_metrics
from tests.benchmarks.faults.toy import EndedProcess, save, write_metrics


def test_the_newest_checkpoint_is_damaged_in_two_ways(run):
    found = set()
    for seed in range(10):
        run.rng = random.Random(seed)
        older, newest = (save(run.path, step, step) for step in (4, 12))
        before = [file.read_bytes() for file in (older, newest)]
        how = damage_checkpoint(run, EndedProcess(-9))
        assert older.read_bytes() == before[0]
        after = newest.read_bytes()
        assert run.is_damaged(newest)
        if how == "cut short":
            assert before[1].startswith(after)
            assert len(after) < len(before[1])
        else:
            assert how == "a byte changed"
            changed = np.frombuffer(after, "u1") != np.frombuffer(
                before[1], "u1"
            )
            assert changed.sum() == 1
        found.add(how)
    assert len(found) == 2


def test_there_is_nothing_to_damage(run):
    assert damage_checkpoint(run, EndedProcess(-9)) is None
    file = save(run.path, 4, 4)
    (run.path / "results.json").write_text("{}")
    assert damage_checkpoint(run, EndedProcess(0)) is None
    assert not run.is_damaged(file)


def append_in_many_ways(run, *steps):
    """Damages the metrics of these steps; returns `{how: steps left}`."""
    found = {}
    for seed in range(20):
        run.rng = random.Random(seed)
        write_metrics(run.path, *steps)
        before = (run.path / "metrics.csv").read_bytes()
        how = append_nul_bytes(run, EndedProcess(-9))
        after = (run.path / "metrics.csv").read_bytes()
        assert after.endswith(b"\0")
        assert before.startswith(after.rstrip(b"\0"))
        found[how] = [int(row[0]) for row in read_metrics(run.path)]
    return found


def test_metrics_end_with_nul_bytes(run):
    save(run.path, 4, 4)
    assert append_in_many_ways(run, 2, 4, 6) == {
        "NUL bytes appended": [2, 4, 6],
        "the last line cut, NUL bytes appended": [2, 4],
    }


def test_lines_before_a_checkpoint_are_not_cut(run):
    save(run.path, 4, 4)
    assert append_in_many_ways(run, 2, 4) == {"NUL bytes appended": [2, 4]}


def test_no_metrics_and_those_of_a_finished_run_stay(run):
    assert append_nul_bytes(run, EndedProcess(-9)) is None
    write_metrics(run.path, 4)
    (run.path / "results.json").write_text("{}")
    assert append_nul_bytes(run, EndedProcess(0)) is None
    assert b"\0" not in (run.path / "metrics.csv").read_bytes()
