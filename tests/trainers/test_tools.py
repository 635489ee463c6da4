"""Commands on runs refuse mistakes in one line, with status 2."""

import pytest

from tests.shell import run_python

NO_RUN = "a is not the working directory of a run"
NO_RESULTS = "a has no results.json: is it a run, and has it finished?"


@pytest.mark.process
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["evaluate", "a"], NO_RUN),
        (["compare", "a", "b"], NO_RESULTS),
        (["finetune", "--encoding=ALiBi", "a"], NO_RUN),
        (["report", "a", "b"], NO_RUN),
    ],
)
def test_a_mistake_of_a_command_that_has_begun(
    arguments, message, nursery, tmp_path
):
    directory, log = tmp_path / "directory", tmp_path / "log"
    directory.mkdir()
    name, *rest = arguments
    process = nursery.start(
        rest, log, module=f"trainers.{name}", directory=str(directory)
    )
    assert process.wait() == 2, process.output
    (line,) = process.output.splitlines()
    assert line.startswith("error: ") and message in line
    assert not list(directory.iterdir())


@pytest.mark.process
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["finetune", "--encoding=ALiBi"], "RUN is missing: see --help."),
        (["sweep"], "--grid is missing: plain_and_randomized,"),
        (["compare"], "RUN... is missing: see --help."),
        (["report"], "expected either --grid or RUN..."),
    ],
)
def test_a_mistake_of_a_command(arguments, message, tmp_path):
    name, *rest = arguments
    done = run_python("-m", f"trainers.{name}", *rest, cwd=tmp_path)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ") and message in line
    assert not list(tmp_path.iterdir())
