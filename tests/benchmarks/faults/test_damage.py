import random

import numpy as np

from benchmarks.faults.damage import damage_checkpoint
from tests.benchmarks.faults.toy import EndedProcess, save


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
