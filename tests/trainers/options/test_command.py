import pytest
import tensorflow as tf

from datasets.text.corpus import Corpus, Part
from tests.trainers.workers import Started
from trainers.options.command import errors_as_statuses


@pytest.mark.process
@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("algorithmic --encoding=AxialEncoding(row=Rope())", "Did you mean"),
        ("algorithmic --encoding=RoPE --model_dim=24", "is 3: choose an even"),
        ("algorithmic --encoding=RoPE --model_dim=63", "heads=8 does not divi"),
        ("algorithmic --encoding=RoPE --workdir=/dev/null/x", "cannot write"),
        ("algorithmic --help=Foo", "--help knows no flag, preset or"),
        ("evaluate a", "a is not the working directory of a run"),
        ("finetune --encoding=ALiBi", "RUN is missing: see --help."),
    ],
)
def test_mistakes(tmp_path, command, message):
    directory = tmp_path / "directory"
    directory.mkdir()
    name, *flags = command.split()
    where = {"module": f"trainers.{name}", "directory": str(directory)}
    process = Started(flags, tmp_path / "log", **where)
    assert process.wait() == 2, process.output
    (line,) = process.output.splitlines()
    assert line.startswith("error: ") and message in line
    assert not list(directory.iterdir())


def test_a_text_that_changed_during_training(tmp_path, capsys):
    path = tmp_path / "text"
    path.write_bytes(bytes(9))
    corpus = Corpus([Part(path, 0, 9)])
    # One window: threads that write tracebacks parse source, during which
    # Python 3.11.7 cannot parse source elsewhere, as the next tests do.
    windows = tf.data.Dataset.range(5, 6).map(
        lambda start: corpus.read_windows(start[None], 4)
    )
    path.write_bytes(bytes(5))
    with pytest.raises(SystemExit) as ended, errors_as_statuses():
        list(windows)
    assert ended.value.code == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{path} ends after 5 bytes, and had 9" in line
