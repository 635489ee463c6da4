"""Models that write answers: batches, counts by hand, and whole runs."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from keras_lengen.layers import NoPE
from tests.trainers.toy import build_toy, draw, run_toy, toy_config
from trainers import evaluate
from trainers.answers import problem as answers
from trainers.errors import ConfigError
from trainers.sequence_to_answer import EXPERIMENT

TRAINER = "sequence_to_answer"
make_parts = functools.partial(build_toy, TRAINER)


@pytest.mark.product
def test_a_run_of_pairs_of_lengths(tmp_path):
    results = run_toy(
        tmp_path,
        trainer=TRAINER,
        task="addition",
        train_length="1",
        test_lengths="2",
    )
    final = results["final"]
    lengths = final["exact_match_by_length"].keys()
    # Every pair of numbers of digits, with as many answers each.
    answers = final["answers_by_group"]
    assert len(answers) == 2**2
    assert answers["2x1"] == answers["1x2"] == answers["2x2"] > 0
    seen = final["seen_in_training_by_length"].keys()
    assert seen and seen < lengths
    config = evaluate.EvaluateConfig(test_lengths="2", generated_examples=3)
    evaluate.main(config, str(tmp_path))
    (path,) = (tmp_path / "evaluations").glob("*.json")
    assert "generated_examples=3" in path.name
    assert '"generated_exact_match_by_length": {' in path.read_text()


@pytest.mark.product
def test_written_answers_match_where_every_token_is_the_most_likely():
    model, _, problem = make_parts(
        task="copy", generated_examples=12, test_lengths="4", encoding="NoPE"
    )
    batch = draw(problem, 4, 12)
    outputs = model(problem.inputs(batch), training=False)
    best = np.argmax(outputs, axis=-1)
    written = problem._write(model, 4, 12)
    starts = batch["prompt_lengths"].numpy() - 1
    # The first token follows the prompt in both.
    for row, tokens in enumerate(written):
        assert tokens[0] == best[row, starts[row]]


def test_kinds_are_counted_apart():
    _, _, problem = make_parts(
        task="marked_addition",
        train_length="1-3",
        test_lengths="5",
        kinds="nines,round,equal",
        evaluation_examples=10,
    )
    # In the order of the task, each as often.
    assert problem.kinds == ("round", "equal", "nines")
    count = problem.evaluation_examples(5)
    assert count == 12
    batch = draw(problem, 5, 15)
    kinds = batch["kinds"].numpy()
    assert kinds.tolist() == [0, 1, 2] * 5
    assert [problem.name_kind(5, n) for n in (0, 1, 2)] == [*problem.kinds]
    first, second = problem.evaluated[5].problem(1)
    assert first == second
    # The first of each three, and the last, are wrong; three fill up.
    wrong = (kinds == 0) | (np.arange(15) == 11)
    tokens = np.where(wrong[:, None], 0, batch["targets"].numpy())
    outputs = np.eye(problem.vocabulary.size, dtype=np.float32)[tokens]
    batch["used"] = tf.range(15) < count
    sums = np.asarray(problem.sums(tf.constant(outputs), batch), np.float64)
    found = problem.measure(sums)
    assert found["exact_match"] == pytest.approx(7 / 12)
    of_kinds = [found[f"exact_match_{kind}"] for kind in problem.kinds]
    assert of_kinds == pytest.approx([0, 1, 3 / 4])
    # A record that lacks its last metric is not whole.
    assert list(found)[-1] == problem.metrics[-1].name


@pytest.mark.product
def test_blocks_are_repeated_as_flags_say():
    model, _, problem = make_parts(
        task="parity",
        train_length="2-3",
        test_lengths="5",
        loops="length",
        evaluated_loops="until_confident",
        batch_size=4,
    )
    assert model.loops == 3
    (batch,) = problem.training_batches(
        padded_length=problem.tokens(3),
        first_step=0,
        last_step=1,
        context=tf.distribute.InputContext(),
    )
    inputs = problem.inputs(batch)
    tokens = batch["lengths"].numpy()
    expected = np.where(tokens == tokens.min(), 2, 3)
    np.testing.assert_array_equal(inputs["loops"], expected)
    evaluated = problem.inputs({**batch, "used": batch["lengths"] > 0})
    assert evaluated["loops"] == 5
    settled, _ = model.settle(
        {**inputs, "loops": None}, 5, scored=batch["scored"]
    )
    np.testing.assert_allclose(model(evaluated), settled, atol=1e-5)


class Scripted:
    """Stands in for a model: writes what is scripted for a prompt."""

    def __init__(self, script):
        self.script = script
        self.variables = self.weights = ()
        self.encoding = NoPE()
        self.calls = []

    def generate(self, inputs, max_new_tokens, *, end_token):
        self.calls.append((inputs["token_ids"].shape, max_new_tokens))
        filling = [end_token] * max_new_tokens
        prompts = zip(inputs["token_ids"], inputs["lengths"], strict=True)
        rows = [self.script(ids[:length].tolist()) for ids, length in prompts]
        return np.array([(row + filling)[:max_new_tokens] for row in rows])


@pytest.mark.product
def test_what_written_answers_count_as():
    _, _, problem = make_parts(
        task="reverse",
        train_length="2-4",
        test_lengths="6",
        encoding="NoPE",
        generated_examples=130,
    )
    places = {
        tuple(problem.prompt(length, index)): (length, index)
        for length in problem.lengths
        for index in range(130)
    }

    def script(prompt):
        length, index = places[tuple(prompt)]
        answer = problem.answer(length, index)
        right = problem.vocabulary.tokenize(answer)
        if length < 6:
            return right
        # Of the longest ones, one in ten each is wrong, empty and endless.
        return {0: right[:-1], 1: [], 2: right * 20}.get(index % 10, right)

    model, progress = Scripted(script), []
    found = problem.measure_model(model, lambda *given: progress.append(given))
    assert found["generated_exact_match_by_length"] == {
        **{"2": 1, "3": 1, "4": 1},
        "6": pytest.approx(0.7),
    }
    assert found["unreadable_by_length"]["6"] == 13
    assert found["unfinished_by_length"]["6"] == 13
    assert found["answers_by_length"] == dict.fromkeys("2346", 130)
    assert found["generated_score"] == pytest.approx(0.7)
    assert found["generated_mean"] == pytest.approx((3 + 0.7) / 4)
    wrong, empty, endless = found["mistakes"]
    assert wrong["answer"].startswith(wrong["written"])
    assert empty["written"] == ""
    assert endless["verdict"] == "unfinished"
    # A second, partly filled batch has the shape of the first.
    assert model.calls[0] == model.calls[1]
    assert {fraction for n, fraction in progress if n == 6} == {128 / 130, 1}


def test_long_prompts_are_answered_a_few_at_a_time(monkeypatch):
    _, _, problem = make_parts(task="reverse", test_lengths="6")
    width, _ = problem.written_sizes(6, exact=False)
    monkeypatch.setattr(answers, "PAIRS", 3 * width**2)
    model = Scripted(lambda prompt: [])
    assert len(list(problem._write(model, 6, 10))) == 10
    assert [rows for (rows, _), _ in model.calls] == [3] * 4


def test_the_most_frequent_answer_is_the_floor():
    _, _, problem = make_parts(
        task="parity",
        train_length="3-4",
        test_lengths="5",
        evaluation_examples=200,
    )
    floors = problem.floors()["floor"]
    assert all(0.5 <= share < 0.65 for share in floors.values())


def test_prompts_end_where_scored_tokens_begin():
    _, _, problem = make_parts(task="addition", scratchpad="all")
    batch = draw(problem, 5, 4, index=1)
    for row in range(4):
        prompt = problem.prompt(5, 4 + row)
        ids = batch["token_ids"][row].numpy()
        assert ids[: len(prompt)].tolist() == prompt
        scored = batch["scored"][row].numpy()
        assert scored.argmax() == len(prompt) - 1
        assert batch["targets"][row].numpy()[scored][-1] == problem.end_token
    assert batch["lengths"].numpy().max() <= problem.tokens(5)


def test_what_cannot_work_is_refused(tmp_path):
    for changes, message in (
        ({"scratchpad": "output,carry"}, r"fields of .*; got 'carry'"),
        ({"scratchpad": ""}, "--scratchpad takes none, all or"),
        ({"task": "copy", "scratchpad": "all"}, "task=copy has no steps"),
        ({"task": "copy_replace", "template": "paper"}, "templates code; got"),
        ({"task": "scan", "test_lengths": "49"}, "no problem of length 49"),
        ({"task": "lego", "test_lengths": "27"}, "lengths from 2 to 26, .*27"),
        ({"task": "sort", "scratchpad": "output,variable"}, "no variable: rem"),
        ({"loops": "0"}, "--loops takes `length` or a number from 1 to 9999"),
        ({"evaluated_loops": "until_confident"}, "give --loops=length or"),
        ({"structured": 0.5}, "summation has no structured problems: rem"),
        ({"kinds": "all"}, "summation has no kinds of problems: remove"),
        ({"task": "aligned_copy", "kinds": "uniform,nines"}, "got 'nines'"),
        ({"data_dir": "x"}, "no effect with --task=summation, which reads no"),
        ({"task": "pcfg", "data_dir": "/no"}, r"cannot read /no/train.src"),
    ):
        with pytest.raises(ConfigError, match=message):
            EXPERIMENT.train(toy_config(TRAINER, **changes), tmp_path)


def test_files_without_problems(tmp_path):
    for name in ("train.src", "train.tgt", "test.src", "test.tgt"):
        (tmp_path / name).touch()
    changes = {"task": "pcfg", "data_dir": str(tmp_path)}
    with pytest.raises(ConfigError, match="train_length=published: pcfg has"):
        toy_config(TRAINER, train_length="published", **changes)
