"""Commands in processes: one clear line for a mistake, and its status."""

import pytest
import tensorflow as tf

from datasets.text.corpus import Corpus, Part
from tests.shell import run_python
from tests.trainers.toy import SMALLEST
from trainers.options.command import errors_as_statuses

RUN = [f"--{name}={value}" for name, value in SMALLEST.items()]
MISTAKES = {
    "a flag": (["--task=revers_string"], "Did you mean reverse_string"),
    "a call": (["--encoding=RoPE(width=3)"], "no argument 'width'"),
    "a short table": (
        ["--encoding=RandomizedRoPE", "--max_position=10"],
        "RandomizedRoPE has max_position=10",
    ),
    "an odd width": (
        ["--encoding=RoPE", "--model_dim=24", "--num_heads=8"],
        "of 3, is 3: choose an even number",
    ),
    "an unwritable workdir": (
        [*RUN, "--workdir=/dev/null/x"],
        "cannot write to --workdir=/dev/null/x",
    ),
    "a strategy that cannot be had": (
        ["--encoding=RoPE", "--strategy=mirrored"],
        "needs at least two devices",
    ),
    "a path that is no text": ([*RUN, "--workdir=\udcff"], "UTF-8; got"),
    "help for nothing": (["--help=Foo"], "--help knows no flag, preset or"),
}


@pytest.mark.process
@pytest.mark.parametrize("name", MISTAKES)
def test_mistake(nursery, tmp_path, name):
    arguments, message = MISTAKES[name]
    process = nursery.start(arguments, tmp_path / "log")
    status, output = process.wait(), process.output
    assert status == 2, output
    (line,) = output.splitlines()
    assert line.startswith("error: ") and len(line) < 1200
    assert message in line


@pytest.mark.process
@pytest.mark.parametrize(
    ("module", "arguments", "variables", "message"),
    [
        ("algorithmic", RUN, {"KERAS_BACKEND": "foo"}, "Keras is set to foo"),
        ("algorithmic", RUN, {"KERAS_BACKEND": "numpy"}, "TensorFlow and JAX"),
        ("tpu_compile", ["--topology=v5e:0x0"], {}, "--topology must be a"),
    ],
)
def test_a_fresh_process(module, arguments, variables, message):
    done = run_python("-m", f"trainers.{module}", *arguments, **variables)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ") and message in line


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
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{path}{message}" in line
    assert line.endswith(" Then run the same command again to resume.")
