"""Commands on runs refuse mistakes in one line, with status 2."""

import pytest


@pytest.mark.process
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["evaluate", "a"], "a is not the working directory of a run"),
        (["finetune", "--encoding=ALiBi"], "RUN is missing: see --help."),
        (["sweep"], "--grid is missing: plain_and_randomized,"),
        (["compare"], "RUN... is missing: see --help."),
    ],
)
def test_a_mistake_of_a_command(arguments, message, nursery, tmp_path):
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
