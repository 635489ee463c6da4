"""PCFG: problems from files."""

import shutil

import pytest

from datasets.text_tasks import TEXT_TASKS, TextTaskError, base
from datasets.text_tasks.examples import (
    length_examples,
    training_examples,
    validation_examples,
)
from tests.datasets.text_tasks.row import Row

ROWS = {
    "pcfg": Row(
        golden=(
            ("append A1 , B2", "A1 B2"),
            "Solve: append A1 , B2[SEP] ",
            "A1 B2",
        ),
        paper=(("append A1 , B2", "A1 B2"), "append A1 , B2[SEP] ", "A1 B2"),
        solver=None,
    )
}

LINES = {
    "train.src": [f"reverse A{n} B2" for n in range(1, 11)],
    "train.tgt": [f"B2 A{n}" for n in range(1, 11)],
    "test.src": [
        "append swap_first_last C3 D4 , remove_first E5 , F6 G20",
        "copy copy copy A1 B2 C3 D4 E5",
    ],
    "test.tgt": ["D4 C3 F6 G20", "A1 B2 C3 D4 E5"],
}


@pytest.fixture
def folder(tmp_path):
    for name, lines in LINES.items():
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    return tmp_path


def test_files(folder):
    task = TEXT_TASKS["pcfg"](directory=str(folder))
    training = training_examples(task, [1, 2], size=0)
    assert len(training) == 9
    validation = validation_examples(training, 1)
    found = [training.write(training.problem(n)) for n in range(9)]
    found.append(validation.write(validation.problem(0)))
    assert sorted(found) == sorted(
        (f"Solve: {command}[SEP] ", answer)
        for command, answer in zip(
            LINES["train.src"], LINES["train.tgt"], strict=True
        )
    )
    ((prompt, answer),) = length_examples(task, 3).longest()
    words = base.split_words(prompt + answer)
    assert set(words) <= set(task.words)
    # The longest prompt and the longest answer, each of another problem.
    assert words[2:5] == ["append", "swap_first_last", "C3"]
    assert answer == LINES["test.tgt"][1]


def test_a_length_with_one_problem_leaves_it_for_validation(folder):
    path = folder / "train.src"
    path.write_text(path.read_text().replace("reverse A1 ", "copy copy A1 "))
    task = TEXT_TASKS["pcfg"](directory=str(folder))
    training = training_examples(task, [1, 2], size=0)
    assert training.counts == (8, 0)
    assert validation_examples(training, 2).available == 1


def test_the_digest_tells_problems_apart_and_not_places(folder, tmp_path):
    def digest(path):
        return TEXT_TASKS["pcfg"](directory=str(path)).digest

    first = digest(folder)
    moved = tmp_path / "moved"
    shutil.copytree(folder, moved)
    assert digest(moved) == first != b""
    path = moved / "test.tgt"
    path.write_text(path.read_text().replace("A1", "A2"))
    assert digest(moved) != first
    assert TEXT_TASKS["copy"]().digest == b""


def test_missing_and_wrong_files(folder):
    def refuse(message):
        task = TEXT_TASKS["pcfg"](directory=str(folder))
        with pytest.raises(TextTaskError, match=message):
            task.count((1,))

    (folder / "test.tgt").write_text("A1\n")
    refuse(r"test.src in .* has 2 lines and test.tgt 1: get both from https")
    (folder / "test.tgt").write_bytes(b"\xff\xfe\xff")
    refuse(r"cannot read .*test.tgt \(it is not text\): clone https")
    (folder / "train.src").unlink()
    refuse(r"train.src \(No such file.*\): clone https.* by --data_dir")
