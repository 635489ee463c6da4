"""Models that are trained on labelled sequences of files."""

import functools
import json
import shutil

import numpy as np
import pytest
from keras import ops

from tests.trainers.toy import (
    EXAMPLES,
    build_toy,
    draw,
    make_examples,
    run_toy,
    toy_config,
)
from trainers import evaluate, export, generate
from trainers.errors import ConfigError, OtherDataError

TRAINER = "examples"
LENGTHS = {"train_length": "3", "test_lengths": "4,6"}


def path_of(kind):
    make_examples(EXAMPLES)
    return str(EXAMPLES / f"{kind}.jsonl")


@pytest.mark.parametrize(
    ("kind", "prompt", "lines"),
    [
        ("label", "abca", ("0\t0.", "1\t0.")),
        pytest.param(
            *("tags", "a b", ("a\t", "b\t")), marks=pytest.mark.product
        ),
        pytest.param("answer", "ab", ("ab -> ",), marks=pytest.mark.product),
    ],
)
def test_a_run_of_each_kind(tmp_path, capsys, kind, prompt, lines):
    results = run_toy(tmp_path, trainer=TRAINER, data=path_of(kind))
    assert results["config"]["kind"] == kind
    assert results["config"]["train_length"] == "1,2,3"
    assert results["config"]["test_lengths"] == "4,5,6"
    metric = "exact_match" if kind == "answer" else "accuracy"
    for name in (metric, f"{metric}_low", "loss"):
        by_length = results["final"][f"{name}_by_length"]
        assert {"4", "5", "6"} <= by_length.keys() <= {*"123456"}
    assert results["floor_by_length"].keys() == by_length.keys()
    assert ("generated_score" in results["final"]) == (kind == "answer")
    assert results["data"]["kind"] == kind
    assert (tmp_path / "length_generalization.png").exists()
    config = evaluate.EvaluateConfig(test_lengths="4,6")
    evaluate.main(config, str(tmp_path))
    (path,) = (tmp_path / "evaluations").glob("*.json")
    found = json.loads(path.read_text())["final"][f"{metric}_by_length"]
    assert found.keys() >= {"4", "6"}
    capsys.readouterr()
    generate.main(generate.GenerateConfig(prompt=prompt), str(tmp_path))
    written = capsys.readouterr().out.splitlines()
    assert any(line.startswith(lines) for line in written), written
    with pytest.raises(ConfigError, match="--prompt is empty"):
        generate.main(generate.GenerateConfig(), str(tmp_path))
    export.main(export.ExportConfig(), str(tmp_path))
    with np.load(tmp_path / "export" / "model.keras_example.npz") as example:
        assert {*"abc"} <= {*example["tokens"]}
        assert ("classes" in example) == (kind != "answer")


@pytest.mark.parametrize("kind", ["label", "tags"])
def test_metrics_are_counted_by_hand(kind):
    _, _, problem = build_toy(TRAINER, data=path_of(kind), **LENGTHS)
    problem.prepare()
    batch = draw(problem, 6, 6)
    batch = {name: values.numpy() for name, values in batch.items()}
    batch["used"] = np.arange(6) < 4
    outputs = np.random.default_rng(0).normal(size=(*batch["targets"].shape, 3))
    found = problem.measure(ops.convert_to_numpy(problem.sums(outputs, batch)))
    rows = [
        (outputs[row, batch["scored"][row]], batch["targets"][row, place])
        for row, place in enumerate(batch["scored"])
        if batch["used"][row]
    ]
    hits = [np.argmax(logits, axis=-1) == targets for logits, targets in rows]
    losses = [
        np.log(np.exp(logits).sum(axis=-1))
        - np.take_along_axis(logits, targets[:, None], axis=-1)[:, 0]
        for logits, targets in rows
    ]
    assert found["accuracy"] == pytest.approx(np.concatenate(hits).mean())
    assert found["exact_match"] == pytest.approx(np.mean([*map(np.all, hits)]))
    assert found["loss"] == pytest.approx(np.concatenate(losses).mean(), 1e-5)
    assert found["accuracy_low"] <= found["accuracy"] <= found["accuracy_high"]


def test_answers_are_judged():
    _, _, problem = build_toy(TRAINER, data=path_of("answer"), **LENGTHS)
    problem.prepare()
    assert problem.describe_length(6) == "5-6"
    answer = problem.vocabulary.tokenize(problem.answer(6, 0))
    assert problem.answer(6, 0).endswith("!")
    for written, verdict in (
        ([*answer, problem.end_token, 5], "right"),
        ([*answer[:-1], problem.end_token], "wrong"),
        (answer, "unfinished"),
    ):
        assert problem.judge(6, 0, np.array(written)) == (verdict, "5-6")
    assert problem.seen_share(6, 9) == 0


@pytest.mark.product
def test_a_file_that_changed_is_refused_and_one_that_moved_is_found(tmp_path):
    path = tmp_path / "own.jsonl"
    shutil.copy(path_of("label"), path)
    run = functools.partial(
        run_toy,
        tmp_path / "run",
        trainer=TRAINER,
        data=str(path),
        data_dir=str(tmp_path / "moved"),
        **LENGTHS,
    )
    results = run()
    (tmp_path / "moved").mkdir(exist_ok=True)
    path.rename(tmp_path / "moved" / "own.jsonl")
    assert run() == results
    with (tmp_path / "moved" / "own.jsonl").open("a") as file:
        file.write('{"input": "abc", "target": 1}\n')
    with pytest.raises(OtherDataError, match="contains a run on other data"):
        run()


def test_a_function_of_ones_own_gives_the_examples(tmp_path):
    path = tmp_path / "own_examples.py"
    path.write_text(
        "def read():\n"
        "    for number in range(60):\n"
        "        text = 'ab' * (number % 5 + 1) + 'cd'[number % 2]\n"
        "        yield {'text': text, 'label': number % 2}\n"
    )
    _, _, problem = build_toy(TRAINER, data=f"{path}:read")
    problem.prepare()
    assert problem.title == "own_examples.py_read"
    assert problem.examples.classes == ("0", "1")
    for name in ("write", ""):
        with pytest.raises(ConfigError, match=f"has no '{name}'"):
            toy_config(TRAINER, data=f"{path}:{name}")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"data": ""}, "--data is missing: name a file of examples"),
        ({"data": "none.csv"}, "cannot read .*none.csv: No such file"),
        ({"data": "n" * 999}, "cannot read .*nnn: File name too long"),
        ({"input": "text"}, "there is no column 'text' of --input"),
        ({"train_length": "0"}, "--train_length takes lengths"),
        ({"kind": "answer", "model": "encoder"}, "writes no answers"),
        ({"data": "http://host/a.csv"}, "--data takes a file: download http"),
    ],
)
def test_flags_that_cannot_work(flags, message):
    with pytest.raises(ConfigError, match=message):
        toy_config(TRAINER, **{"data": path_of("label"), **flags})
