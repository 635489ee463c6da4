"""Commands on runs refuse mistakes in one line, with status 2."""

import pytest

from tests.products import mark_slow
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
        "--files must be one of published, any; got 'mine'.",
    ),
    "evaluate a flag": (["trainers.evaluate", "a", "--steps=3"], "'steps'"),
    "export": (
        ["trainers.export", "a", "--format=onnx"],
        "--format must be one of keras, saved_model; got 'onnx'.",
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
SLOW = [
    *("evaluate two", "evaluate nothing", "evaluate a flag"),
    *("finetune nothing", "compare nothing", "report nothing"),
]
"""Other mistakes of the same commands."""


@pytest.mark.process
@pytest.mark.parametrize("name", mark_slow(MISTAKES, SLOW))
def test_mistake(name, tmp_path):
    arguments, message = MISTAKES[name]
    done = run_python("-m", *arguments, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ")
    assert message in line
    assert not list(tmp_path.iterdir())
