import pytest

from benchmarks.faults import report as module
from benchmarks.faults.report import CODE, Report, digest_code
from benchmarks.faults.tally import Tally

COMMAND = "python -m benchmarks.fault_drill --faults=2"


@pytest.fixture
def written(run, tmp_path):
    """A report of one fault of two."""
    tally = Tally({"sigkill": 2})
    tally.add("sigkill", "training", "killed")
    tally.add_run(run, None)
    path = tmp_path / "results" / "report.json"
    Report(path, COMMAND).write(tally)
    return path


def test_a_report_is_where_the_next_tally_begins(written):
    record = Report(written, COMMAND).read()
    assert record["command"] == COMMAND
    assert Tally({"sigkill": 2}, record).left == {"sigkill": 1}
    assert Report(written.with_name("other"), COMMAND).read() is None


@pytest.mark.parametrize("name", ["command", "code", "versions"])
def test_a_report_of_another_drill_is_refused(written, monkeypatch, name):
    if name == "code":
        monkeypatch.setattr(module, "digest_code", lambda root: "0")
    if name == "versions":
        monkeypatch.setattr(module, "versions", dict)
    command = COMMAND.replace("=2", "=20") if name == "command" else COMMAND
    with pytest.raises(SystemExit, match=f"of a drill with another {name}"):
        Report(written, command).read()


def test_every_file_of_code_is_in_the_digest(tmp_path):
    found = set()
    for pattern in CODE:
        file = tmp_path / pattern.replace("**", "deep").replace("*", "code")
        file.parent.mkdir(parents=True, exist_ok=True)
        for content in ("a = 1", "a = 2"):
            file.write_text(content)
            found.add(digest_code(tmp_path))
    assert len(found) == 2 * len(CODE)
