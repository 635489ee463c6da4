"""A prompt is continued with the tokens of greatest probability, or draws."""

import numpy as np
import pytest

from tests.trainers.toy import build_toy, run_toy
from trainers import generate
from trainers.errors import ConfigError
from trainers.options.fields import resolve
from trainers.records.checkpoints import load_weights
from trainers.records.opened_run import open_run


def generate_from(run, **flags):
    config = resolve(generate.GenerateConfig, {}, flags)
    generate.main(config, str(run))


@pytest.fixture
def continue_text(finished, capsysbinary):
    """A function that continues a text by a run, by default one of text."""

    def run(path=None, **flags):
        path = path or finished("enwik8")[0]
        capsysbinary.readouterr()
        flags = {"prompt": "import ", "max_new_tokens": 3, **flags}
        generate_from(path, **flags)
        return capsysbinary.readouterr().out

    return run


@pytest.mark.product
def test_the_most_likely_bytes(finished, continue_text):
    found = continue_text(evaluation="even")
    opened = open_run(str(finished("enwik8")[0]))
    encoding = "RandomizedRoPE(evaluation='even')"
    model, _, problem = build_toy("enwik8", encoding=encoding)
    load_weights(model, opened.checkpoint, opened.digest)
    vocabulary = problem.splits["train"].vocabulary
    expected = [vocabulary.begin, *b"import "]
    # Positions are those of the prompt and the new bytes together.
    total = len(expected) + 3
    for length in range(len(expected), total):
        padded = np.zeros((1, total), np.int32)
        padded[0, :length] = expected
        logits = np.asarray(model({"token_ids": padded}))
        expected.append(int(logits[0, length - 1].argmax()))
    assert found.decode() == vocabulary.detokenize(expected[1:]) + "\n"


@pytest.mark.product
def test_drawn_bytes_follow_the_seed(continue_text):
    flags = {"temperature": 1.0, "top_p": 0.9, "max_new_tokens": 30}
    first, again, other = (
        continue_text(seed=seed, **flags) for seed in (1, 1, 2)
    )
    assert first == again != other
    assert first.startswith(b"import ")
    with pytest.raises(ConfigError, match="max_position"):
        continue_text(max_new_tokens=100)


def read_prompt(path):
    config = generate.GenerateConfig(prompt_file=str(path))
    return generate.read_prompt(config)


def test_a_prompt_of_a_file(tmp_path):
    path = tmp_path / "prompt"
    path.write_bytes("naïve".encode())
    assert read_prompt(path) == "naïve"
    # Nothing is stored for most of it.
    with path.open("wb") as file:
        file.truncate(2**40)
    for wrong, message in (
        (f"{path}?", "cannot read --prompt_file"),
        ("/dev/zero", "it is not a regular file"),
        (path, "has more than 67,108,864 bytes"),
    ):
        with pytest.raises(ConfigError, match=message):
            read_prompt(wrong)


def test_what_cannot_be_continued(finished):
    for flags, message in (
        ({"prompt": "a", "prompt_file": "b"}, "not both"),
        ({"top_p": 0.9}, "--top_p has no effect without"),
        ({"seed": 3}, "--seed has no effect without"),
        ({}, "algorithmic, which has no text"),
    ):
        with pytest.raises(ConfigError, match=message):
            generate_from(finished()[0], **flags)


@pytest.mark.product
def test_a_sum_as_people_type_it(tmp_path, continue_text):
    run_toy(
        tmp_path,
        trainer="sequence_to_answer",
        task="marked_addition",
        encoding="ClippedBias",
        sampler="CoupledPositions",
        train_length="1,2",
        test_lengths="3",
        generated_examples=0,
        steps=1,
    )
    typed, written = (
        continue_text(tmp_path, prompt=text)
        for text in ("7 + 19", "$ ^ 0 7 + ^ 1 9 = ")
    )
    assert typed == written
    assert typed.startswith(b"$ ^ 0 7 + ^ 1 9 =")
    for wrong in ("", "1 hippopotamus"):
        with pytest.raises(ConfigError, match=f"{wrong}' is not a problem"):
            continue_text(tmp_path, prompt=wrong)
