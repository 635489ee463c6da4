import pytest

from datasets.text_tasks import TEXT_TASKS, TextTaskError, examples
from tests.datasets.text_tasks.row import Row

ROWS = {
    "pcfg": Row(
        golden=(("copy A1", "A1"), "Solve: copy A1[SEP] ", "A1"), solver=None
    )
}

LINES = {
    "train.src": ["copy copy A1", *(f"reverse A{n} B2" for n in range(10))],
    "train.tgt": ["A1", *(f"B2 A{n}" for n in range(10))],
    "test.src": ["copy append copy C3 , D4", "copy copy copy A1 B2 C3"],
    "test.tgt": ["C3 D4", "A1 B2 C3"],
}


@pytest.fixture
def open_task(tmp_path):
    def write(folder=".", lines=LINES):
        (tmp_path / folder).mkdir(exist_ok=True)
        for name in lines:
            (tmp_path / folder / name).write_text("\n".join(lines[name]))
        return TEXT_TASKS["pcfg"](directory=str(tmp_path / folder))

    return write


def test_files(open_task):
    task = open_task()
    training = examples.training_examples(task, [1, 2], size=0)
    # The only problem of its length is left for validation.
    assert training.counts == (9, 0)
    left = [examples.validation_examples(training, length) for length in (1, 2)]
    found = [training.write(training.problem(n)) for n in range(9)]
    found += [validation.write(validation.problem(0)) for validation in left]
    lines = zip(LINES["train.src"], LINES["train.tgt"], strict=True)
    assert sorted(found) == sorted(
        (f"Solve: {command}[SEP] ", answer) for command, answer in lines
    )
    # The longest prompt and the longest answer, each of another problem.
    ((prompt, answer),) = examples.length_examples(task, 3).longest()
    assert prompt == f"Solve: {LINES['test.src'][0]}[SEP] "
    assert answer == LINES["test.tgt"][1]


def test_the_digest_tells_problems_apart_and_not_places(open_task):
    digest = open_task().digest
    assert open_task("moved").digest == digest != b""
    assert open_task(lines={**LINES, "test.tgt": ["A2", "A1"]}).digest != digest


def test_missing_and_wrong_files(open_task, tmp_path):
    def refuse(message):
        task = TEXT_TASKS["pcfg"](directory=str(tmp_path))
        with pytest.raises(TextTaskError, match=message):
            task.count((1,))

    open_task(lines={**LINES, "test.tgt": ["A1"]})
    refuse(r"test.src in .* has 2 lines and test.tgt 1: get both from https")
    (tmp_path / "test.tgt").write_bytes(b"\xff\xfe\xff")
    refuse(r"cannot read .*test.tgt \(it is not text\): clone https")
    (tmp_path / "train.src").unlink()
    refuse(r"train.src \(No such file.*\): clone https.* by --data_dir")
