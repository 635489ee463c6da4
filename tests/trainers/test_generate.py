"""A prompt is continued with the tokens of greatest probability, or draws."""

import dataclasses
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


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("run")
    run_toy(path, trainer="enwik8", encoding="RandomizedRoPE")
    return str(path)


def continue_text(capsysbinary, run, **flags):
    flags = {"prompt": "import ", "max_new_tokens": 9, **flags}
    capsysbinary.readouterr()
    generate.main(resolve(generate.GenerateConfig, {}, flags), run)
    return capsysbinary.readouterr().out


def test_the_most_likely_bytes(run, capsysbinary):
    found = continue_text(capsysbinary, run, evaluation="even")
    opened = open_run(run)
    config = toy_config("enwik8", encoding="RandomizedRoPE(evaluation='even')")
    model, _, problem = opened.experiment.make_parts(
        config, make_strategy("one_device")
    )
    load_weights(model, opened.checkpoint, opened.digest)
    vocabulary = problem.splits["train"].vocabulary
    expected = [vocabulary.begin, *b"import "]
    # Positions are those of the prompt and the new bytes together.
    total = len(expected) + 9
    for length in range(len(expected), total):
        padded = np.zeros((1, total), np.int32)
        padded[0, :length] = expected
        logits = np.asarray(model({"token_ids": padded}))
        expected.append(int(logits[0, length - 1].argmax()))
    text = vocabulary.detokenize(expected[1:])
    assert found.decode() == text + "\n"


@pytest.mark.product
def test_drawn_bytes_follow_the_seed(run, capsysbinary):
    flags = {"temperature": 1.0, "top_p": 0.9, "max_new_tokens": 30}
    first, again, other = (
        continue_text(capsysbinary, run, seed=seed, **flags)
        for seed in (1, 1, 2)
    )
    assert first == again != other
    assert first.startswith(b"import ")


def test_a_prompt_of_a_file(run, capsysbinary, tmp_path):
    path = tmp_path / "prompt"
    path.write_bytes("naïve".encode())
    flags = {"prompt": "", "prompt_file": str(path)}
    found = continue_text(capsysbinary, run, **flags)
    assert found.decode().startswith("naïve")


def test_what_cannot_be_continued(run, tmp_path):
    flags = {"prompt_file": str(tmp_path / "none")}
    config = resolve(generate.GenerateConfig, {}, flags)
    with pytest.raises(ConfigError, match="cannot read --prompt_file"):
        generate.main(config, run)
    with pytest.raises(ConfigError, match="not both"):
        dataclasses.replace(config, prompt="a").validate()
    with pytest.raises(ConfigError, match="--top_p has no effect without"):
        dataclasses.replace(config, top_p=0.9).validate()
    with pytest.raises(ConfigError, match="--seed has no effect without"):
        dataclasses.replace(config, seed=3).validate()
    long = dataclasses.replace(config, prompt_file="", max_new_tokens=100)
    with pytest.raises(ConfigError, match="max_position"):
        generate.main(long, run)
    run_toy(tmp_path / "run", steps=1)
    with pytest.raises(ConfigError, match="algorithmic, which has no text"):
        generate.main(config, str(tmp_path / "run"))


@pytest.mark.product
def test_an_answer(tmp_path, capsysbinary):
    path = str(tmp_path / "answers")
    run_toy(path, trainer="sequence_to_answer", encoding="ALiBi", steps=1)
    opened = open_run(path)
    model, _, problem = opened.experiment.make_parts(
        opened.config, make_strategy("one_device")
    )
    load_weights(model, opened.checkpoint, opened.digest)
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
    flags = {"prompt": text, "max_new_tokens": 12}
    found = continue_text(capsysbinary, path, **flags)
    assert found.decode() == answered + "\n"
    assert len(answered) > len(text)
    for wrong in ("", "1 + hippopotamus"):
        with pytest.raises(
            ConfigError, match=rf"{re.escape(wrong)}' is not a problem"
        ):
            continue_text(capsysbinary, path, prompt=wrong)


@pytest.fixture(scope="module")
def sums(tmp_path_factory):
    path = tmp_path_factory.mktemp("sums")
    run_toy(
        path,
        trainer="sequence_to_answer",
        task="marked_addition",
        encoding="ClippedBias",
        sampler="CoupledPositions",
        train_length="1,2",
        test_lengths="3",
        generated_examples=0,
        steps=1,
    )
    return str(path)


@pytest.mark.product
def test_a_sum_as_people_type_it(sums, capsysbinary):
    typed, written = (
        continue_text(capsysbinary, sums, prompt=text, max_new_tokens=3)
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


@pytest.mark.product
def test_an_answer_has_room_by_default(sums, capsysbinary, monkeypatch):
    asked = []

    def stream(model, ids, max_new_tokens, **given):
        asked.append((ids.shape[1], max_new_tokens))
        return iter(())

    monkeypatch.setattr(TransformerDecoder, "stream", stream)
    for digits, new_tokens in ((3, 200), (500, 1005)):
        text = f"{'9' * digits} + 1"
        continue_text(capsysbinary, sums, prompt=text, max_new_tokens=0)
        assert asked.pop() == (2 * digits + 5, new_tokens)


def test_a_prompt_file_without_end(tmp_path):
    # Nothing is stored for most of it.
    with (tmp_path / "long").open("wb") as file:
        file.truncate(2**40)
    for path, message in (
        ("/dev/zero", "it is not a regular file"),
        (tmp_path / "long", "has more than 67,108,864 bytes"),
    ):
        flags = {"prompt_file": str(path)}
        config = resolve(generate.GenerateConfig, {}, flags)
        with pytest.raises(ConfigError, match=message):
            generate.read_prompt(config)
