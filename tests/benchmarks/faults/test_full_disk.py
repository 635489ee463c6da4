import pytest

from benchmarks.faults import full_disk
from benchmarks.faults.run import Failure
from tests.benchmarks.faults.toy import LOG, EndedProcess

ERROR = "error: cannot write /run/checkpoints/checkpoint-12.partial: "
FULL = f"{ERROR}No space left on device; start again.\n"


@pytest.fixture
def fill(run, monkeypatch):
    """Ends a process on a disk that is said to be full."""
    run.path.mkdir()
    # Nobody writes until a real file system is full.
    monkeypatch.setattr(full_disk, "bytes", lambda count: b"", raising=False)

    def fill(status, output):
        how = full_disk.fill_disk(run, EndedProcess(status, output))
        assert not (run.path.parent / "ballast").exists()
        return how

    return fill


def test_a_run_that_names_the_file(fill):
    said = "said that it cannot write checkpoint-N.partial"
    assert fill(1, LOG + FULL) == said
    assert fill(2, FULL) == said
    assert fill(0, LOG) == "ran to its end"


def test_a_run_that_names_its_directory(fill):
    refused = "error: cannot write to --workdir=/run: No space left on device."
    assert fill(2, refused) == "said that it cannot write --workdir"


@pytest.mark.parametrize(
    ("status", "output"),
    [
        (2, LOG + FULL),
        (1, FULL),
        (1, LOG),
        (1, LOG + 2 * FULL),
        (1, f"{LOG}{ERROR}Permission denied\n"),
        (1, f"{LOG}Traceback (most recent call last):\n{FULL}"),
        (None, LOG + FULL),
    ],
)
def test_a_run_that_ends_in_another_way(fill, status, output):
    with pytest.raises(Failure, match=f"exit status {status} on a full disk"):
        fill(status, output)
