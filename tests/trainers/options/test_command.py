"""Mistakes on the command line: one clear line, exit status 2."""

import sys

import pytest
import tensorflow as tf

from datasets.text.corpus import Corpus, Part
from trainers.options.command import errors_as_statuses

pytestmark = pytest.mark.process

MISTAKES = {
    "unknown task": (["--task=revers_string"], "Did you mean reverse_string"),
    "unknown encoding": (["--encoding=Rope"], "Did you mean RoPE"),
    "unknown sampler": (
        ["--encoding=RoPE", "--sampler=Randomized"],
        "Did you mean RandomizedPositions",
    ),
    "short table": (
        ["--encoding=RandomizedRoPE", "--max_position=10"],
        "RandomizedRoPE has max_position=10",
    ),
    "short learned table": (
        ["--encoding=LearnedEncoding", "--max_position=10"],
        "LearnedEncoding has max_position=10",
    ),
    "a table of fractions": (
        ["--encoding=LearnedEncoding", "--sampler=InterpolatedPositions"],
        "gives fractions, but LearnedEncoding needs integers",
    ),
    "unknown encoding of rows": (
        ["--encoding=AxialEncoding(row=Rope())"],
        "Did you mean RoPE",
    ),
    "odd width": (
        ["--encoding=RoPE", "--model_dim=24", "--num_heads=8"],
        "of 3, is 3: choose an even number",
    ),
    "indivisible width": (
        ["--encoding=RoPE", "--model_dim=63"],
        "num_heads=8 does not divide",
    ),
    "negative steps": (["--steps=-1"], "--steps must be at least 1"),
    "unwritable workdir": (
        ["--encoding=RoPE", "--workdir=/dev/null/x"],
        "cannot write to --workdir=/dev/null/x",
    ),
    "strategy that cannot be had": (
        ["--encoding=RoPE", "--strategy=mirrored"],
        "needs at least two devices",
    ),
    "not a number": (["--steps=many"], "--steps"),
    "unknown flag": (["--step=3"], "no flag --step. Did you mean --steps?"),
    "flag of absl": (["--log_dir=x"], "Did you mean --workdir?"),
    "stray argument": (["reverse_string"], "unexpected argument"),
    "a path that is no text": (
        ["--encoding=RoPE", "--workdir=\udcff"],
        "--workdir must be text in UTF-8; got",
    ),
    "an argument that is no text": (["\udcff"], "must be text in UTF-8"),
    "flags without end": (
        ["--flagfile=/dev/zero"],
        "--flagfile=/dev/zero: it is not a regular file",
    ),
    "flags without end behind a flag": (
        ["--seed=1", "--flagfile", "/dev/zero"],
        "--flagfile=/dev/zero: it is not a regular file",
    ),
    "a file that is no text": (
        [f"--flagfile={sys.executable}"],
        "it is not text",
    ),
    "no file of flags": (["--flagfile=none"], "No such file or directory"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake(nursery, tmp_path, name):
    arguments, message = MISTAKES[name]
    process = nursery.start(arguments, tmp_path / "log")
    status, output = process.wait(), process.output
    assert status == 2, output
    assert message in output
    assert len(output.splitlines()) == 1


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            lambda path: path.write_bytes(bytes(5)),
            " ends after 5 bytes, and had 9 when it was opened: restore it.",
        ),
        (
            lambda path: path.unlink(),
            " any more (No such file or directory): restore it.",
        ),
    ],
)
def test_a_text_that_changed_during_training(tmp_path, capsys, damage, message):
    path = tmp_path / "text"
    path.write_bytes(bytes(9))
    corpus = Corpus([Part(path, 0, 9)])
    windows = tf.data.Dataset.range(9).map(
        lambda start: corpus.read_windows(start[None], 4)
    )
    damage(path)
    with pytest.raises(SystemExit) as ended, errors_as_statuses():
        list(windows)
    assert ended.value.code == 1
    written = capsys.readouterr().err
    assert f"{path}{message}" in written
    assert written.endswith(" Then run the same command again to resume.\n")
    assert len(written.splitlines()) == 1
