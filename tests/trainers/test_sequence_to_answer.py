import numpy as np
import pytest
import tensorflow as tf

from tests.trainers.toy import run_toy, toy_config
from trainers import evaluate
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
    ],
    ids=["addition", "steps", "list", "endless"],
)
def test_a_run(tmp_path, changes):
    results = run_toy(tmp_path, trainer="sequence_to_answer", **changes)
    final = results["final"]
    assert results["score_metric"] == "exact_match"
    lengths = final["exact_match_by_length"].keys()
    for name in (
        *("token_accuracy", "loss", "exact_match_low", "exact_match_high"),
        *("generated_exact_match", "unreadable", "unfinished"),
    ):
        assert final[f"{name}_by_length"].keys() == lengths
    groups = final["generated_exact_match_by_group"]
    if changes.get("task") == "addition":
        assert {"1x1", "2x1"} <= groups.keys()


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
    assert config.warmup_steps == 0.06 * config.steps


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
            "LEGO has 26 variables; got length 27",
        ),
        ({"task": "pcfg", "data_dir": "/no"}, r"cannot read /no/train.src"),
        ({"encoding": "LearnedEncoding", "max_position": 14}, "14"),
    ],
)
def test_what_cannot_work_is_refused(changes, message, tmp_path):
    with pytest.raises(ConfigError, match=message) as caught:
        EXPERIMENT.train(toy_config("sequence_to_answer", **changes), tmp_path)
    assert "\n" not in str(caught.value)
