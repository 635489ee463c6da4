import itertools
import json
import math

import pytest

from datasets.tasks import TASKS
from keras_lengen.layers import ENCODINGS, SAMPLERS
from keras_lengen.layers.encodings.randomized import FixedSampler
from tests.products import mark_slow, product
from tests.trainers.toy import run_toy, toy_config, train_losses
from trainers.algorithmic import EXPERIMENT
from trainers.errors import ConfigError
from trainers.options.fields import resolve
from trainers.options.layers import with_max_position

FOR_ENCODERS = [
    name for name, encoding in ENCODINGS.items() if not encoding.causal_only
]
PAIRS = list(itertools.product(TASKS, FOR_ENCODERS))
# One encoding of each kind, with tasks whose outputs differ: one token, a
# string, many strings. The other pairs are left to the slow tests: all of them
# take an hour.
QUICK = [
    ("even_pairs", "NoPE"),
    ("binary_addition", "SinusoidalEncoding"),
    ("repeat_copy", "RandomizedSinusoidalEncoding"),
    ("stack_manipulation", "RandomizedRoPE"),
    ("mqar", "RelativeEncoding"),
    ("words_s5", "FIRE"),
]


def marked_slow(pairs, quick):
    return [
        pytest.param(*pair, marks=[] if pair in quick else pytest.mark.slow)
        for pair in pairs
    ]


@pytest.mark.parametrize(
    ("task", "encoding"),
    product(
        marked_slow(PAIRS, QUICK),
        lambda task, encoding: encoding == "RandomizedSinusoidalEncoding",
    ),
)
def test_every_task_with_every_encoding(tmp_path, task, encoding):
    results = run_toy(
        tmp_path,
        task=task,
        encoding=encoding,
        steps=1,
        train_length="3",
        test_lengths="5",
    )
    assert 0 <= results["final"]["score"] <= 1


def test_an_encoding_for_causal_models(tmp_path):
    for sampler in ("", *SAMPLERS):
        with pytest.raises(ConfigError, match="XPos is for causal attention"):
            run_toy(tmp_path, encoding="XPos", sampler=sampler)


@pytest.mark.product
@pytest.mark.parametrize(
    ("task", "method"),
    [
        ("reverse_string", {"encoding": "CoPE"}),
        ("two_back", {"encoding": "NoPE", "attention": "PaTHAttention"}),
    ],
)
def test_a_decoder(tmp_path, task, method):
    results = run_toy(
        tmp_path,
        **{"task": task, "model": "decoder", **method},
        attention_weights="softmax" if "attention" in method else "entmax",
    )
    assert 0 <= results["final"]["score"] <= 1


@pytest.mark.product
def test_another_attention(tmp_path):
    attention = {"attention": "GeometricAttention"}
    results = run_toy(tmp_path / "a", encoding="NoPE", **attention)
    assert 0 <= results["final"]["score"] <= 1
    with pytest.raises(ConfigError, match="no use for encoding=RoPE"):
        run_toy(tmp_path / "b", encoding="RoPE", **attention)


def assert_one_step(path, **changes):
    """Trains for a step and evaluates, in as short a run as can be."""
    results = run_toy(
        path, steps=1, train_length="3", test_lengths="5", **changes
    )
    losses = results["final"]["loss_by_length"].values()
    assert len(losses) == 2
    assert all(math.isfinite(loss) for loss in losses)


TAKE_SAMPLERS = [
    name
    for name in FOR_ENCODERS
    if not issubclass(ENCODINGS[name], FixedSampler)
    and not ENCODINGS[name].counts_tokens
]
REFUSED = {
    ("LearnedEncoding", sampler)
    for sampler in (
        "ContinuousPositions",
        "InterpolatedPositions",
        "WarpedPositions",
        "AugmentedPositions",
    )
}
COMBINATIONS = [
    pair
    for pair in itertools.product(TAKE_SAMPLERS, SAMPLERS)
    if pair not in {*REFUSED, ("FIRE", "AugmentedPositions")}
]
# Augmented positions may be negative and fractions, unlike those of presets.
QUICK_COMBINATIONS = [
    (encoding, sampler)
    for encoding, sampler in COMBINATIONS
    if encoding == "RoPE"
] + [
    ("ALiBi", "AugmentedPositions"),
    ("LearnedEncoding", "RandomizedPositions"),
]


@pytest.mark.parametrize(
    ("encoding", "sampler"),
    product(
        marked_slow(COMBINATIONS, QUICK_COMBINATIONS),
        [("ALiBi", "AugmentedPositions")],
    ),
)
def test_every_encoding_with_every_sampler(tmp_path, encoding, sampler):
    assert_one_step(tmp_path, encoding=encoding, sampler=sampler)


@pytest.mark.parametrize(("encoding", "sampler"), sorted(REFUSED))
def test_no_table_of_fractions(tmp_path, encoding, sampler):
    with pytest.raises(ConfigError, match="gives fractions"):
        run_toy(tmp_path, encoding=encoding, sampler=sampler)


@pytest.mark.product
@pytest.mark.parametrize(
    "part", ["RoPE", "ALiBi", "LearnedEncoding(max_position=9)"]
)
def test_rows_and_columns(tmp_path, part):
    rows = "RandomizedPositions(max_position=9)"
    assert_one_step(
        tmp_path,
        encoding=f"AxialEncoding(row={part}, column={part})",
        sampler=f"GridPositions(width=5, row={rows})",
    )


PROTOCOL = {
    "unordered": {"encoding": "RandomizedRoPE(ordered=False)"},
    "a draw for every example": {
        "encoding": "RandomizedRoPE(resample='example')"
    },
    "a draw for every layer": {"draw": "layer"},
    "positions evenly spread in evaluation": {
        "encoding": "RandomizedRoPE(evaluation='even')"
    },
    "ordinal positions in evaluation": {
        "encoding": "RandomizedRoPE(evaluation='ordinal')"
    },
    "a wider range": {"max_position": 64},
    "only the longest": {"curriculum": "Fixed"},
    "longer and longer": {"curriculum": "RegularIncrease(every=1)"},
    "rarely the short ones": {"curriculum": "ReverseExponential(tau=4.0)"},
}


@pytest.fixture(scope="module")
def protocol_losses(tmp_path_factory):
    def losses(**changes):
        path = tmp_path_factory.mktemp("run")
        default = {"encoding": "RandomizedRoPE", "steps": 4, "num_layers": 2}
        return run_toy(path, **{**default, **changes})["final"][
            "loss_by_length"
        ]

    default = losses()
    return lambda **changes: (losses(**changes), default)


@pytest.mark.product
@pytest.mark.parametrize(
    "setting",
    mark_slow(
        PROTOCOL,
        [
            *("unordered", "positions evenly spread in evaluation"),
            *("a wider range", "only the longest", "rarely the short ones"),
        ],
    ),
)
def test_settings_of_the_protocol(protocol_losses, setting):
    losses, default = protocol_losses(**PROTOCOL[setting])
    assert losses != default


@pytest.mark.product
@pytest.mark.parametrize(
    "encoding", ["RandomizedRelativeEncoding", "RandomizedALiBi"]
)
def test_both_kinds_of_distances(tmp_path, encoding):
    losses = [
        run_toy(
            tmp_path / distances,
            encoding=f"{encoding}(distances='{distances}')",
        )["final"]["loss_by_length"]
        for distances in ("positions", "sampled")
    ]
    assert losses[0] != losses[1]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Directory and results of a run."""
    path = tmp_path_factory.mktemp("run")
    return path, run_toy(path, evaluate_every=1)


def test_a_run_leaves_what_it_promises(run):
    path, results = run
    assert {found.name for found in path.iterdir()} == {
        "checkpoints",
        "config.json",
        "length_generalization.png",
        "metrics.csv",
        "results.json",
        "run.lock",
        "tensorboard",
    }
    assert json.loads((path / "results.json").read_text()) == results
    lengths = ["1", "2", "3", "5", "6"]
    for metric in ("accuracy", "exact_match", "loss", "floor"):
        by_length = results.get("final", {}).get(f"{metric}_by_length")
        by_length = by_length or results[f"{metric}_by_length"]
        assert list(by_length) == lengths
    accuracies = results["final"]["accuracy_by_length"]
    score = (accuracies["5"] + accuracies["6"]) / 2
    assert results["final"]["score"] == pytest.approx(score)
    assert results["final"]["step"] == 2
    assert results["best"]["score"] >= results["final"]["score"]
    assert results["train"]["steps"] == 2


@pytest.mark.product
def test_equal_seeds_give_equal_runs(tmp_path):
    arguments = {"encoding": "RandomizedRoPE", "steps_per_loop": 1, "steps": 3}
    runs = [run_toy(tmp_path / name, **arguments) for name in "ab"]
    other = run_toy(tmp_path / "c", **arguments, seed=1)
    assert runs[0]["final"] == runs[1]["final"] != other["final"]
    losses = [train_losses(tmp_path / name) for name in "abc"]
    assert losses[0] == losses[1] != losses[2]


def test_a_finished_run_is_not_repeated(run, capsys):
    path, results = run
    before = (path / "metrics.csv").read_text()
    assert run_toy(path, evaluate_every=1) == results
    assert "already finished" in capsys.readouterr().out
    assert (path / "metrics.csv").read_text() == before


def test_another_configuration_needs_another_directory(run):
    path, _ = run
    with pytest.raises(
        ConfigError, match=r"--learning_rate was 0\.001, is 0\.5"
    ):
        run_toy(path, evaluate_every=1, learning_rate=0.5)


@pytest.mark.product
def test_the_demonstration_trains_both_variants(tmp_path):
    changes = {
        "task": "even_pairs",
        "steps": 1,
        "num_layers": 1,
        "batch_size": 8,
        "train_length": "1-3",
        "test_lengths": "5",
        "evaluation_examples": 10,
        "buckets": 1,
        "workdir": str(tmp_path),
    }
    EXPERIMENT.main(resolve(EXPERIMENT.config, EXPERIMENT.presets, changes))
    assert (tmp_path / "length_generalization.png").stat().st_size > 10_000
    for variant in ("RoPE", "RandomizedRoPE"):
        assert (tmp_path / variant / "results.json").exists()


@pytest.mark.product
def test_a_bfloat16_run(tmp_path):
    results = run_toy(tmp_path, precision="mixed_bfloat16")
    assert 0 <= results["final"]["score"] <= 1


def test_positions_reach_beyond_the_longest_sequence_by_default():
    config = toy_config(encoding="RandomizedALiBi", max_position=0)
    # 2 * 6 tokens and a quarter more.
    assert with_max_position(config).max_position == 16


def test_a_call_may_ask_for_too_few_positions(tmp_path):
    with pytest.raises(ConfigError, match="12 tokens, but RandomizedALiBi"):
        run_toy(tmp_path, encoding="RandomizedALiBi(max_position=10)")
