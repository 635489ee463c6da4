import json

import pytest

from benchmarks.faults.run import Failure
from benchmarks.faults.second_start import start_second
from tests.benchmarks.faults.toy import LOG, EndedProcess

ENDED = "7: already finished, see results.json\n"


@pytest.fixture
def start(run, monkeypatch):
    """Starts a second process that ends, beside a first one."""
    run.path.mkdir()
    (run.path / "run.lock").write_text(json.dumps({"process": 7}))
    used = f"error: {run.path} is in use by "

    def start(first, second):
        statuses = iter([None, *first])
        process = EndedProcess(None)
        monkeypatch.setattr(
            process, "wait", lambda seconds=None: next(statuses)
        )
        status, output = second
        ended = EndedProcess(status, output.replace("USED ", used))
        monkeypatch.setattr(run, "start_second", lambda: ended)
        return start_second(run, process)

    return start


def test_a_second_start_is_refused(start):
    refused = (2, "USED process 7 on here, which")
    assert start([None], refused) == "refused: in use by the first"
    assert start([0], refused) == "refused: in use by the first"


def test_the_first_has_just_finished(start):
    assert start([0, 0], (0, ENDED)) == "already finished"
    leaving = (2, "USED another process: wait")
    assert start([None, 0], leaving) == "refused: the first was finishing"


def test_the_first_never_holds_the_lock(run):
    assert start_second(run, EndedProcess(0)) is None


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([None, None], (0, LOG)),
        ([None, 1], (0, ENDED)),
        ([None, 1], (2, "USED another process: wait")),
        ([None], (2, "USED process 8 on here")),
        ([None], (1, "USED process 7 on here")),
        ([None], (2, "USED process 7 on here\nTraceback (most")),
        ([None], (None, LOG)),
    ],
)
def test_a_second_start_that_ends_in_another_way(start, first, second):
    with pytest.raises(Failure, match=f"status {second[0]} of a second"):
        start(first, second)


def test_a_first_process_that_was_disturbed(start):
    with pytest.raises(Failure, match="exit status 1 of the first"):
        start([1], (2, "USED process 7 on here"))
