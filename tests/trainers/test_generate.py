"""A prompt is continued with the tokens of greatest probability, or draws."""

import re

import numpy as np
import pytest

from keras_lengen.models import TransformerDecoder
from tests.trainers.toy import run_toy, toy_config
from trainers import generate
from trainers.engine.backend import make_strategy
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


def load(path, config=None):
    """The model and the problem of a run."""
    opened = open_run(str(path))
    model, _, problem = opened.experiment.make_parts(
        config or opened.config, make_strategy("one_device")
    )
    load_weights(model, opened.checkpoint, opened.digest)
    return model, problem


@pytest.mark.product
def test_the_most_likely_bytes(finished, continue_text):
    found = continue_text(evaluation="even")
    config = toy_config("enwik8", encoding="RandomizedRoPE(evaluation='even')")
    model, problem = load(finished("enwik8")[0], config)
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


def test_a_prompt_of_a_file(tmp_path):
    path = tmp_path / "prompt"
    path.write_bytes("naïve".encode())
    flags = {"prompt_file": str(path)}
    found = generate.read_prompt(generate.GenerateConfig(**flags))
    assert found == "naïve"


def test_what_cannot_be_continued(finished, tmp_path):
    path = tmp_path / "long"
    # Nothing is stored for most of it.
    with path.open("wb") as file:
        file.truncate(2**40)
    for flags, message in (
        ({"prompt": "a", "prompt_file": "b"}, "not both"),
        ({"top_p": 0.9}, "--top_p has no effect without"),
        ({"seed": 3}, "--seed has no effect without"),
        ({}, "algorithmic, which has no text"),
    ):
        with pytest.raises(ConfigError, match=message):
            generate_from(finished()[0], **flags)
    for file, message in (
        (f"{path}?", "cannot read --prompt_file"),
        ("/dev/zero", "it is not a regular file"),
        (str(path), "has more than 67,108,864 bytes"),
    ):
        with pytest.raises(ConfigError, match=message):
            generate.read_prompt(generate.GenerateConfig(prompt_file=file))


@pytest.mark.product
def test_an_answer(finished, continue_text):
    path, _ = finished("sequence_to_answer")
    flags = {"evaluation": "ordinal", "max_new_tokens": 12}
    encoding = "RandomizedRoPE(evaluation='ordinal')"
    config = toy_config("sequence_to_answer", encoding=encoding)
    model, problem = load(path, config)
    prompt = problem.prompt(5, 0)
    expected = list(prompt)
    for _ in range(12):
        logits = np.asarray(model(np.array([expected], np.int32)))
        expected.append(int(logits[0, -1].argmax()))
        if expected[-1] == problem.end_token:
            break
    text, answered = (
        " ".join(problem.vocabulary.detokenize(tokens))
        for tokens in (prompt, expected)
    )
    found = continue_text(path, prompt=text, **flags)
    assert found.decode() == answered + "\n"
    assert len(answered) > len(text)
    for wrong in ("", "1 + hippopotamus"):
        message = rf"{re.escape(wrong)}' is not a problem"
        with pytest.raises(ConfigError, match=message):
            continue_text(path, prompt=wrong)


@pytest.mark.product
def test_a_sum_as_people_type_it(tmp_path, continue_text, monkeypatch):
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
    prompt, *described = typed.decode().splitlines()
    assert prompt.startswith("$ ^ 0 7 + ^ 1 9 =")
    words = prompt.partition("= ")[2].split()
    if all(word.isdigit() for word in words) and words:
        (line,) = described
        total = int("".join(reversed(words)))
        assert line.startswith(f"7 + 19 = {total} (")
    else:
        assert not described

    # An answer has room by default.
    asked = []

    def stream(model, ids, max_new_tokens, **given):
        asked.append((ids.shape[1], max_new_tokens))
        return iter(())

    monkeypatch.setattr(TransformerDecoder, "stream", stream)
    for digits, new_tokens in ((3, 200), (500, 1005)):
        text = f"{'9' * digits} + 1"
        continue_text(tmp_path, prompt=text, max_new_tokens=0)
        assert asked.pop() == (2 * digits + 5, new_tokens)
