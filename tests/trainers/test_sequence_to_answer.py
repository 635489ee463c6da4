import numpy as np
import pytest
import tensorflow as tf

from keras_lengen.layers import NoPE
from tests.trainers.toy import run_toy, toy_config
from trainers import evaluate
from trainers.answers import problem as answers
from trainers.engine.backend import make_strategy
from trainers.errors import ConfigError
from trainers.options.fields import resolve
from trainers.sequence_to_answer import EXPERIMENT


def make_parts(**changes):
    config = toy_config("sequence_to_answer", **changes)
    return EXPERIMENT.make_parts(config, make_strategy("one_device"))


@pytest.mark.product
@pytest.mark.parametrize(
    "changes",
    [
        {"task": "addition", "train_length": "1,2", "test_lengths": "3"},
        {"scratchpad": "computation,output"},
        {"task": "scan", "train_length": "1-3", "test_lengths": "4"},
        {"task": "reverse", "template": "paper", "train_examples": 0},
        {
            "task": "aligned_parity",
            "train_length": "1-3",
            "test_lengths": "4",
            "encoding": "ClippedBias",
            "sampler": "CoupledPositions",
            "score_factor": "log_length",
        },
        {
            "task": "marked_addition",
            "train_length": "1,2",
            "test_lengths": "4",
            "structured": 0.5,
            "kinds": "nines,equal",
        },
        {
            "task": "parity",
            "train_length": "1-3",
            "test_lengths": "4",
            "loops": "length",
            "evaluated_loops": "settled",
        },
    ],
    ids=["addition", "steps", "list", "endless", "coupled", "kinds", "looped"],
)
def test_a_run(tmp_path, changes):
    results = run_toy(tmp_path, trainer="sequence_to_answer", **changes)
    final = results["final"]
    assert results["score_metric"] == "exact_match"
    lengths = final["exact_match_by_length"].keys()
    for name in (
        *("token_accuracy", "loss", "exact_match_low", "exact_match_high"),
        *("generated_exact_match", "unreadable", "unfinished", "answers"),
    ):
        assert final[f"{name}_by_length"].keys() == lengths
    assert results["floor_by_length"].keys() == lengths
    answers = final["answers_by_group"]
    assert final["generated_exact_match_by_group"].keys() == answers.keys()
    if changes.get("task") == "addition":
        # Every pair of numbers of digits, with as many answers each.
        assert len(answers) == 3**2
        assert answers["3x1"] == answers["1x3"] == answers["3x3"] > 0
    for kind in results.get("kinds", ()):
        for metric in ("exact_match", "generated_exact_match"):
            assert final[f"{metric}_{kind}_by_length"].keys() == lengths
    assert ("kinds" in results) == ("kinds" in changes)
    seen = final.get("seen_in_training_by_length", {}).keys()
    assert not seen if "train_examples" in changes else seen and seen < lengths


@pytest.mark.product
def test_an_evaluation_writes_answers_again(tmp_path, capsys):
    run_toy(tmp_path, trainer="sequence_to_answer")
    config = evaluate.EvaluateConfig(test_lengths="7", generated_examples=3)
    evaluate.main(config, str(tmp_path))
    (path,) = (tmp_path / "evaluations").glob("*.json")
    assert "generated_examples=3" in path.name
    assert '"generated_exact_match_by_length": {' in path.read_text()


def test_written_answers_match_where_every_token_is_the_most_likely():
    model, _, problem = make_parts(
        task="copy", generated_examples=12, test_lengths="4", encoding="NoPE"
    )
    length, count = 4, 12
    batch = problem.evaluation_batch(
        index=tf.constant(0),
        batch_size=count,
        length=tf.constant(length),
        padded_length=problem.tokens(length),
    )
    outputs = model(problem.inputs(batch), training=False)
    best = np.argmax(outputs, axis=-1)
    written = list(problem._write(model, length, count))
    for row in range(count):
        start = batch["prompt_lengths"][row].numpy() - 1
        # The first token follows the prompt in both.
        assert written[row][0] == best[row, start]
    # A model that continues every prompt with its answer is right.
    for row, target in enumerate(batch["targets"].numpy()):
        answer = target[batch["scored"][row].numpy()]
        assert problem.judge(length, row, answer) == ("right", "4")
        assert problem.judge(length, row, answer[:-1])[0] == "unfinished"
        other = answer.copy()
        other[0] = answer[0] % 50 + 3
        assert problem.judge(length, row, other)[0] in ("wrong", "unreadable")


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
    batch = problem.evaluation_batch(
        index=tf.constant(0),
        batch_size=15,
        length=tf.constant(5),
        padded_length=problem.tokens(5),
    )
    kinds = batch["kinds"].numpy()
    assert kinds.tolist() == [0, 1, 2] * 5
    for index in range(15):
        name = problem.name_kind(5, index)
        assert name == problem.kinds[kinds[index]]
        first, second = problem.evaluated[5].problem(index)
        assert name != "equal" or first == second
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


@pytest.mark.parametrize("loops", ["length", "7"])
def test_blocks_are_repeated_as_flags_say(loops):
    model, _, problem = make_parts(
        task="parity",
        train_length="2-3",
        test_lengths="5",
        loops=loops,
        evaluated_loops="settled",
    )
    of_length = loops == "length"
    assert model.loops == (3 if of_length else 7)
    (batch,) = problem.training_batches(
        padded_length=problem.tokens(3),
        first_step=0,
        last_step=1,
        context=tf.distribute.InputContext(),
    )
    inputs = problem.inputs(batch)
    tokens = batch["lengths"].numpy()
    expected = np.where(tokens == tokens.min(), 2, 3) if of_length else 7
    np.testing.assert_array_equal(inputs["loops"], expected)
    most = 5 if of_length else 7
    evaluated = problem.inputs({**batch, "used": batch["lengths"] > 0})
    assert evaluated["loops"] == most
    settled, _ = model.settle(
        {**inputs, "loops": None}, most, scored=batch["scored"]
    )
    np.testing.assert_allclose(model(evaluated), settled, atol=1e-5)


class Scripted:
    """Stands in for a model: writes the right answer, or what is scripted."""

    def __init__(self, problem, script):
        self.problem, self.script = problem, script
        self.variables = self.weights = ()
        self.encoding = NoPE()
        self.calls = []

    def generate(self, inputs, max_new_tokens, *, end_token):
        self.calls.append((inputs["token_ids"].shape, max_new_tokens))
        rows = []
        for ids, length in zip(
            inputs["token_ids"], inputs["lengths"], strict=True
        ):
            prompt = ids[:length].tolist()
            answer = self.script(prompt)
            rows.append(
                (answer + [end_token] * max_new_tokens)[:max_new_tokens]
            )
        return np.array(rows)


@pytest.mark.product
def test_what_written_answers_count_as():
    _, _, problem = make_parts(
        task="reverse",
        train_length="2-4",
        test_lengths="6",
        encoding="NoPE",
        generated_examples=130,
    )
    tokenize, prompts = problem.vocabulary.tokenize, {}
    for length in problem.lengths:
        for index in range(problem.fit_count(length, 130)):
            key = tuple(problem.prompt(length, index))
            prompts[key] = (length, index)

    def script(prompt):
        length, index = prompts[tuple(prompt)]
        right = tokenize(problem.answer(length, index))
        if length < 6:
            return right
        # Of the longest ones, one in ten each is wrong, empty and endless.
        return {0: right[:-1], 1: [], 2: right * 20}.get(index % 10, right)

    model = Scripted(problem, script)
    progress = []
    found = problem.measure_model(model, lambda *given: progress.append(given))
    by_length = {
        name: found[f"{name}_by_length"]
        for name in ("generated_exact_match", "unreadable", "unfinished")
    }
    assert by_length["generated_exact_match"]["6"] == pytest.approx(0.7)
    assert by_length["generated_exact_match"]["4"] == 1
    assert by_length["unreadable"]["6"] == 13
    assert by_length["unfinished"]["6"] == 13
    assert found["answers_by_length"] == dict.fromkeys("2346", 130)
    assert found["answers_by_group"] == dict.fromkeys("2346", 130)
    assert found["generated_score"] == pytest.approx(0.7)
    assert found["generated_mean"] == pytest.approx((3 + 0.7) / 4)
    wrong, empty, endless = found["mistakes"]
    assert "kind" not in wrong
    assert [m["length"] for m in found["mistakes"]] == [6, 6, 6]
    assert wrong["prompt"].split() == problem.vocabulary.detokenize(
        problem.prompt(6, 0)
    )
    assert wrong["answer"].startswith(wrong["written"])
    assert empty["written"] == ""
    assert endless["verdict"] == "unfinished"
    # A second, partly filled batch has the shape of the first.
    assert model.calls[0] == model.calls[1]
    assert {fraction for n, fraction in progress if n == 6} == {128 / 130, 1}


@pytest.mark.product
def test_written_answers_of_kinds_count_apart():
    _, _, problem = make_parts(
        task="marked_addition",
        train_length="1",
        test_lengths="4",
        kinds="equal,nines",
        generated_examples=6,
    )
    tokenize = problem.vocabulary.tokenize
    right = {
        tuple(problem.prompt(length, index)): tokenize(
            problem.answer(length, index)
        )
        for length in (1, 4)
        for index in range(6)
    }
    nines = tokenize("$ ^ 9 9 9 9 + ^ 9 9 9 9 = ")

    def script(prompt):
        answer = right[tuple(prompt)]
        return answer[:-1] if prompt == nines else answer

    found = problem.measure_model(Scripted(problem, script), lambda *_: None)
    written = "generated_exact_match"
    assert found[f"{written}_equal_by_length"] == {"1": 1, "4": 1}
    wrong = [m for m in found["mistakes"] if m["length"] == 4]
    assert wrong and {m["kind"] for m in wrong} == {"nines"}
    assert found[f"{written}_nines_by_length"] == {
        "1": 1,
        "4": pytest.approx(1 - len(wrong) / 3),
    }
    assert found[f"{written}_by_length"]["4"] == 1 - len(wrong) / 6


def test_long_prompts_are_answered_a_few_at_a_time(monkeypatch):
    _, _, problem = make_parts(task="reverse", test_lengths="6")
    width, _ = problem.config.written_sizes(6, exact=False)
    monkeypatch.setattr(answers, "PAIRS", 3 * width**2)
    model = Scripted(problem, lambda prompt: [])
    assert len(list(problem._write(model, 6, 10))) == 10
    assert [rows for (rows, _), _ in model.calls] == [3] * 4


def test_few_programs_write_answers_of_many_lengths():
    config = toy_config(
        "sequence_to_answer", train_length="1-30", test_lengths="31-90"
    )
    shared = [
        config.written_sizes(n, exact=False) for n in config.evaluated_lengths
    ]
    exact = [
        config.written_sizes(n, exact=True) for n in config.evaluated_lengths
    ]
    assert len(set(shared)) <= 10 and len(set(exact)) == 90
    for (width, answer), (least_width, least_answer) in zip(
        shared, exact, strict=True
    ):
        assert width >= least_width and answer >= least_answer
    assert max(map(sum, shared)) == max(map(sum, exact))


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
    batch = problem.evaluation_batch(
        index=tf.constant(1),
        batch_size=4,
        length=tf.constant(5),
        padded_length=problem.tokens(5),
    )
    for row in range(4):
        prompt = problem.prompt(5, 4 + row)
        ids = batch["token_ids"][row].numpy()
        assert ids[: len(prompt)].tolist() == prompt
        scored = batch["scored"][row].numpy()
        assert scored.argmax() == len(prompt) - 1
        assert batch["targets"][row].numpy()[scored][-1] == problem.end_token
    assert batch["lengths"].numpy().max() <= problem.tokens(5)


def test_the_paper_preset():
    config = resolve(
        EXPERIMENT.config,
        EXPERIMENT.presets,
        {"preset": "paper", "encoding": "NoPE", "task": "sort"},
    )
    assert config.trained_lengths == (4, 5, 6, 7, 8)
    assert config.evaluated_lengths[-1] == 16
    published = {
        **{"num_layers": 12, "num_heads": 12, "model_dim": 768},
        **{"learning_rate": 3e-5, "weight_decay": 0.05, "batch_size": 64},
        **{"steps": 40_000, "warmup_steps": 2400, "train_examples": 100_000},
        "learning_rate_schedule": "Polynomial(end=1e-7)",
    }
    for name, value in published.items():
        assert getattr(config, name) == value, name


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scratchpad": "output,carry"}, r"fields of .*; got 'carry'"),
        ({"scratchpad": ""}, "--scratchpad takes none, all or"),
        ({"task": "copy", "scratchpad": "all"}, "task=copy has no steps"),
        ({"task": "copy_replace", "template": "paper"}, "templates code; got"),
        ({"task": "scan", "test_lengths": "49"}, "no problem of length 49"),
        (
            {"task": "lego", "test_lengths": "27"},
            "LEGO needs lengths from 2 to 26, its variables; got 27",
        ),
        (
            {"task": "lego", "train_length": "1-3", "test_lengths": "4"},
            "from 2 to 26, its variables; got 1",
        ),
        (
            {"task": "sort", "scratchpad": "output,variable"},
            "the steps of --task=sort have no variable: leave it out of ",
        ),
        ({"loops": "0"}, "--loops takes `length` or a number from 1 to 9999"),
        ({"evaluated_loops": "settled"}, "give --loops=length or a number ab"),
        ({"structured": 0.5}, "summation has no structured problems: leave"),
        ({"kinds": "all"}, "summation has no kinds of problems: leave"),
        (
            {"task": "aligned_copy", "kinds": "uniform,nines"},
            "kinds of --task=aligned_copy, which are uniform, .*; got 'nines'",
        ),
        ({"task": "aligned_copy", "kinds": ""}, "--kinds takes .*; got ''"),
        ({"data_dir": "x"}, "no effect with --task=summation, which reads no"),
        ({"task": "pcfg", "data_dir": "/no"}, r"cannot read /no/train.src"),
        ({"encoding": "LearnedEncoding", "max_position": 14}, "14"),
    ],
)
def test_what_cannot_work_is_refused(changes, message, tmp_path):
    with pytest.raises(ConfigError, match=message) as caught:
        EXPERIMENT.train(toy_config("sequence_to_answer", **changes), tmp_path)
    assert "\n" not in str(caught.value)


def test_files_without_problems(tmp_path):
    for name in ("train.src", "train.tgt", "test.src", "test.tgt"):
        (tmp_path / name).touch()
    changes = {"task": "pcfg", "data_dir": str(tmp_path)}
    with pytest.raises(ConfigError, match="train_length=published: pcfg has"):
        toy_config("sequence_to_answer", train_length="published", **changes)
