"""Commands on runs refuse mistakes in one line, with status 2."""

import pytest

from tests.shell import run_python

MISTAKES = {
    "evaluate": (["trainers.evaluate"], "RUN is missing: see --help."),
    "evaluate two": (
        ["trainers.evaluate", "a", "b"],
        "expected one RUN; got a",
    ),
    "evaluate nothing": (
        ["trainers.evaluate", "a"],
        "a is not the working directory of a run",
    ),
    "evaluate data in a bucket": (
        ["trainers.evaluate", "a", "--data_dir=gs://bucket"],
        "--data_dir is a path of a file system; got 'gs://bucket'",
    ),
    "compare a long path": (["trainers.compare", "a" * 300], "name too long"),
    "other files": (
        ["trainers.wikitext103", "--files=mine"],
        "--files cannot be 'mine'. It must be one of published, any.",
    ),
    "evaluate a flag": (
        ["trainers.evaluate", "a", "--steps=3"],
        "there is no flag --steps. --help lists all flags.",
    ),
    "export": (
        ["trainers.export", "a", "--format=onnx"],
        "--format cannot be 'onnx'. It must be one of keras, saved_model.",
    ),
    "finetune": (
        ["trainers.finetune", "--encoding=ALiBi"],
        "RUN is missing: see --help.",
    ),
    "finetune nothing": (
        ["trainers.finetune", "--encoding=ALiBi", "a"],
        "a is not the working directory of a run",
    ),
    "sweep": (["trainers.sweep"], "--grid is missing: plain_and_randomized,"),
    "compare": (["trainers.compare"], "RUN... is missing: see --help."),
    "compare nothing": (
        ["trainers.compare", "a", "b"],
        "a has no results.json: is it a run, and has it finished?",
    ),
    "report": (["trainers.report"], "expected either --grid or RUN..."),
    "report nothing": (
        ["trainers.report", "a", "b"],
        "a is not the working directory of a run.",
    ),
}
FORKED = (
    *("evaluate two", "evaluate nothing", "evaluate a flag"),
    *("evaluate data in a bucket", "compare nothing", "compare a long path"),
    *("finetune nothing", "report nothing"),
)
"""Other mistakes of the same commands, which need no process of their own."""


@pytest.mark.process
@pytest.mark.parametrize("name", MISTAKES)
def test_mistake(name, nursery, tmp_path):
    (module, *arguments), message = MISTAKES[name]
    directory, log = tmp_path / "directory", tmp_path / "log"
    directory.mkdir()
    if name in FORKED:
        process = nursery.start(
            arguments, log, module=module, directory=str(directory)
        )
        status, output = process.wait(), process.output
    else:
        done = run_python("-m", module, *arguments, cwd=directory)
        status, output = done.returncode, done.stderr
    assert status == 2, output
    (line,) = output.splitlines()
    assert line.startswith("error: ")
    assert message in line
    assert not list(directory.iterdir())
