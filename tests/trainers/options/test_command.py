import pytest
import tensorflow as tf

from datasets.text.corpus import Corpus, Part
from tests.shell import run_python
from trainers.options.command import errors_as_statuses


@pytest.mark.process
@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--encoding=AxialEncoding(row=Rope())"], "Did you mean RoPE"),
        (
            ["--encoding=RandomizedRoPE", "--max_position=10"],
            "RandomizedRoPE has max_position=10",
        ),
        (["--encoding=RoPE", "--model_dim=24"], "is 3: choose an even number"),
        (["--encoding=RoPE", "--model_dim=63"], "num_heads=8 does not divide"),
        (["--encoding=RoPE", "--workdir=/dev/null/x"], "cannot write to --wor"),
        (["--help=Foo"], "--help knows no flag, preset or"),
    ],
)
def test_mistakes(nursery, tmp_path, flags, message):
    process = nursery.start(flags, tmp_path / "log")
    status, output = process.wait(), process.output
    assert status == 2, output
    (line,) = output.splitlines()
    assert line.startswith("error: ") and message in line


@pytest.mark.process
def test_a_backend_that_cannot_train():
    flags = ["--encoding=RoPE"]
    done = run_python(
        "-m", "trainers.algorithmic", *flags, KERAS_BACKEND="numpy"
    )
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ") and "TensorFlow and JAX" in line


def test_a_text_that_changed_during_training(tmp_path, capsys):
    path = tmp_path / "text"
    path.write_bytes(bytes(9))
    corpus = Corpus([Part(path, 0, 9)])
    windows = tf.data.Dataset.range(9).map(
        lambda start: corpus.read_windows(start[None], 4)
    )
    path.write_bytes(bytes(5))
    with pytest.raises(SystemExit) as ended, errors_as_statuses():
        list(windows)
    assert ended.value.code == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{path} ends after 5 bytes, and had 9" in line
