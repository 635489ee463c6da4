"""A model whose training goes on with another encoding."""

import contextlib
import io
import json
import os
import shutil
import types

import numpy as np
import pytest

import trainers
from tests.shell import run_python
from tests.trainers import toy_experiment
from tests.trainers.toy import TOY, final_weights, toy_config
from trainers import compare, enwik8, evaluate, finetune
from trainers.algorithmic import EXPERIMENT
from trainers.engine.backend import make_strategy
from trainers.enwik8 import Enwik8Config
from trainers.errors import ConfigError, TrainingError
from trainers.finetune import find_operand, make_config_class
from trainers.options.fields import TrainerConfig, resolve
from trainers.options.help import make_help
from trainers.records.checkpoints import Checkpoints
from trainers.records.initial_weights import read_initial_weights
from trainers.records.opened_run import open_run
from trainers.records.workdir import Workdir

CHANGES = {
    "encoding": "RandomizedRoPE",
    "checkpoint_every": 1,
    "steps_per_loop": 1,
}
LENGTHS = {"train_length": "3", "test_lengths": "5"}
BLOCK = "model/transformer_encoder/block/attention"


def make_parts(path, config, experiment=EXPERIMENT, **more):
    """Makes a run without training: a model and its checkpoints."""
    strategy = make_strategy("one_device")
    model, optimizer, _ = experiment.make_parts(config, strategy)
    with Workdir(path, config, experiment.name) as workdir:
        parts = {"model": model, "optimizer": optimizer, "strategy": strategy}
        parts.update(digest=workdir.digest, steps=config.steps, **more)
        return model, Checkpoints(path, **parts)


def write_run(path, **flags):
    """Writes a run whose weights and optimizer have random values."""
    _, checkpoints = make_parts(path, toy_config(**LENGTHS, **flags))
    generator = np.random.default_rng(0)
    state = checkpoints.copy()
    checkpoints.copy = lambda: {
        name: generator.uniform(size=values.shape).astype(values.dtype)
        if values.dtype == np.float32
        else values + 2
        for name, values in state.items()
    }
    with checkpoints:
        checkpoints.save(2, 0.0)
    return path / "checkpoints" / "checkpoint-2.npz"


def finetune_toy(text, path, **flags):
    """Fine-tunes in this process."""
    config_class = make_config_class(open_run(str(text)).config)
    flags = {**flags, "workdir": str(path)}
    finetune.main(resolve(config_class, {}, flags), str(text))


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """The directory of a run with RoPE."""
    path = tmp_path_factory.mktemp("source")
    write_run(path)
    return path


@pytest.fixture(scope="module")
def finished(source, tmp_path_factory):
    """A run that went on from it, its state at step 0, and its output."""
    path = tmp_path_factory.mktemp("finetuned")
    output, states = io.StringIO(), []
    restore = Checkpoints.restore

    def restore_and_copy(self):
        found = restore(self)
        states.append(self.copy())
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoints, "restore", restore_and_copy)
        with contextlib.redirect_stdout(output):
            finetune_toy(source, path, **CHANGES)
    (state,) = states
    return path, state, output.getvalue()


@pytest.mark.product
def test_it_begins_with_the_weights_and_a_new_optimizer(source, finished):
    _, state, output = finished
    trained = final_weights(source)
    weights = {name for name in state if name.startswith("model/")}
    assert weights == {name for name in trained if name.startswith("model/")}
    for name in weights:
        np.testing.assert_array_equal(state[name], trained[name], err_msg=name)
    moments = [
        name for name in state if name.endswith(("momentum", "velocity"))
    ]
    assert len(moments) == 2 * len(weights)
    for name in (*moments, "optimizer/adam/iteration"):
        assert trained[name].any() and not state[name].any()
    count = sum(state[name].size for name in weights)
    line = (
        f"  begins with {source}/checkpoints/checkpoint-2.npz: {len(weights)} "
        f"weights ({count:,} parameters) loaded\n"
    )
    assert output.count(line) == 1
    assert "left out" not in output and "new," not in output


@pytest.mark.product
def test_results_say_where_it_began(source, finished):
    path, _, _ = finished
    results = json.loads((path / "results.json").read_text())
    record = json.loads((path / "config.json").read_text())
    for config in (results["config"], record["config"]):
        found = config["initialize_from"]
        assert found == f"{source}/checkpoints/checkpoint-2.npz"
        assert config["encoding"] == "RandomizedRoPE"
        assert config["model_dim"] == TOY["model_dim"]


@pytest.mark.product
def test_it_is_a_run_for_the_tools(source, finished, tmp_path, capsys):
    path, _, _ = finished
    evaluate.main(
        resolve(evaluate.EvaluateConfig, {}, {"evaluation": "even"}), str(path)
    )
    assert "| length | results.json | this evaluation |" in (
        capsys.readouterr().out
    )
    config = resolve(compare.CompareConfig, {}, {"output": str(tmp_path)})
    (again,) = path.glob("evaluations/*.json")
    compare.main(config, str(path), str(again))
    assert "| `RandomizedRoPE" in capsys.readouterr().out
    finetune_toy(source, path, **CHANGES)
    assert "already finished" in capsys.readouterr().out


def stop(monkeypatch, where, start, step=0):
    """Starts a run that ends in a function, after so many steps."""

    def fail(*arguments, **_):
        if not step or arguments[1] >= step:
            raise TrainingError("stop")

    with monkeypatch.context() as patch:
        patch.setattr(where, fail)
        with pytest.raises(TrainingError, match="stop"):
            start()


@pytest.mark.product
def test_a_resumed_run_reads_the_source_only_if_it_must(
    source, finished, tmp_path, monkeypatch, capsys
):
    copied, path = tmp_path / "source", tmp_path / "parts"
    shutil.copytree(source, copied)

    def start():
        finetune_toy(copied, path, **CHANGES)

    stop(monkeypatch, "trainers.experiment.train", start)
    assert not list(path.glob("checkpoints/*"))
    stop(monkeypatch, "trainers.engine.loop._check_finite", start, step=1)
    assert capsys.readouterr().out.count("  begins with") == 2
    # Read again, this would be refused.
    (copied / "checkpoints" / "checkpoint-2.npz").write_bytes(b"")
    start()
    assert "  begins with" not in capsys.readouterr().out
    whole, resumed = finished[0], path
    weights, others = final_weights(whole), final_weights(resumed)
    # The paths of their sources differ.
    assert (weights.pop("digest") != others.pop("digest")).any()
    assert weights.keys() == others.keys()
    for name, values in weights.items():
        np.testing.assert_array_equal(values, others[name], err_msg=name)


LISTED = {
    "RoPE to ALiBi": ("RoPE", "ALiBi", [], []),
    "RoPE to T5Bias": ("RoPE", "T5Bias", ["t5_bias/table"], []),
    "RoPE to LogKERPLE": (
        "RoPE",
        "LogKERPLE",
        ["log_kerple/a", "log_kerple/p"],
        [],
    ),
    "LogKERPLE to RoPE": (
        "LogKERPLE",
        "RoPE",
        [],
        ["log_kerple/a", "log_kerple/p"],
    ),
    "FIRE to its randomized form": ("FIRE", "RandomizedFIRE", [], []),
    "a randomized form to ALiBi": (
        "RandomizedLogKERPLE",
        "ALiBi",
        [],
        ["randomized_log_kerple/a", "randomized_log_kerple/p"],
    ),
    "a smaller table": (
        "T5Bias",
        "T5Bias(num_buckets=16)",
        ["t5_bias/table"],
        ["t5_bias/table"],
    ),
}


@pytest.mark.parametrize("name", LISTED)
def test_new_and_left_out(tmp_path, name):
    before, after, new, left_out = LISTED[name]
    checkpoint = write_run(tmp_path / "a", encoding=before)
    config = toy_config(encoding=after, seed=1)
    model, checkpoints = make_parts(tmp_path / "b", config)
    begin = checkpoints.copy()
    found = read_initial_weights(open_run(str(checkpoint)), config, model)
    assert found.new == [f"{BLOCK}/{name}" for name in new]
    assert found.left_out == [f"{BLOCK}/{name}" for name in left_out]
    assert len(found.loaded) + len(new) == len(model.weights)
    text = found.describe()
    assert str(checkpoint) in text
    for title, names in (("new, ", found.new), ("left out", found.left_out)):
        assert (title in text) == bool(names)
        assert all(name in text for name in names)

    _, checkpoints = make_parts(tmp_path / "b", config, initial=found.loaded)
    assert checkpoints.restore() == (0, 0.0)
    with np.load(checkpoint) as stored:
        for name, values in checkpoints.copy().items():
            other = name
            if name.startswith("model/") and name not in found.new:
                if name not in stored.files:
                    other = name.replace("/randomized_", "/")
                wanted = stored[other]
            else:
                wanted = begin[name]
            np.testing.assert_array_equal(values, wanted, err_msg=name)


def average_factor(factor, tokens):
    """The mean of a factor over the numbers of keys 1, 2, ..., `tokens`."""
    return np.mean([factor * np.log(n) for n in range(1, tokens + 1)])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("none", "head"),
        ("none", "log_length"),
        ("none", "adaptive"),
        ("none", "evaluation_log_length"),
        ("head", "log_length"),
        ("log_length", "none"),
        ("log_length", "log_length"),
    ],
)
def test_a_new_factor_of_scores_changes_little(tmp_path, before, after):
    checkpoint = write_run(tmp_path / "a", score_factor=before)
    config = toy_config(score_factor=after, seed=1)
    model, _ = make_parts(tmp_path / "b", config)
    found = read_initial_weights(open_run(str(checkpoint)), config, model)
    weights = [f"{BLOCK}/score_factor"]
    learned = ("head", "log_length", "adaptive")
    assert found.new == weights * (after in learned and before != after)
    assert found.left_out == weights * (before in learned and before != after)
    parts = make_parts(tmp_path / "b", config, initial=found.values)
    model, checkpoints = parts
    assert checkpoints.restore() == (0, 0.0)
    tokens = 2 * 3  # Both strings of reverse_string have up to three symbols.
    if found.new and after == "log_length":
        begun = checkpoints.copy()[weights[0]]
        np.testing.assert_allclose(average_factor(begun, tokens), 1, rtol=1e-5)
    elif after == "adaptive":
        begun = checkpoints.copy()[weights[0]]
        np.testing.assert_array_equal(begun, np.zeros_like(begun))
    elif before == "none":
        # At trained lengths, the model computes what it computed before.
        other = make_parts(tmp_path / "c", toy_config(seed=1))[0]
        other.set_weights(
            [w for w in model.weights if w.name != "score_factor"]
        )
        ids = np.array([[0, 1, 1, 2, 2, 2]])
        np.testing.assert_allclose(
            *(np.asarray(each({"token_ids": ids})) for each in (model, other)),
            rtol=1e-5,
        )
        longer = {"token_ids": np.tile(ids, 3)}
        same = np.allclose(model(longer), other(longer), rtol=1e-5)
        assert same == (after == "head")


REFUSED = {
    "a width": (
        {"model_dim": 16},
        r"embeddings has shape \(3, 8\) there and has shape \(3, 16\) here; "
        r"only the encoding and --score_factor may differ "
        r"\(--model_dim was 8, is 16\)\.",
    ),
    "more layers": (
        {"num_layers": 2},
        r"block_0/\S+ is missing there and has shape .*--num_layers was 1",
    ),
    "heads": ({"num_heads": 4}, "has --num_heads=2, .* cannot change; got 4"),
    "a vocabulary": (
        {"task": "modular_arithmetic"},
        r"embeddings has shape \(3, 8\) there .*--task was 'reverse_string'",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_another_model_is_refused(source, tmp_path, name):
    flags, message = REFUSED[name]
    with pytest.raises(ConfigError, match=message):
        finetune_toy(source, tmp_path / "new", **flags)
    assert not (tmp_path / "new").exists()


def test_another_normalization_is_refused():
    before, after = (Enwik8Config(normalization=n) for n in ("pre", "post"))
    opened = types.SimpleNamespace(config=before, path="a")
    with pytest.raises(
        ConfigError, match=r"a has --normalization=pre, .* change; got post"
    ):
        read_initial_weights(opened, after, model=None)


def test_fewer_layers_are_refused(tmp_path):
    write_run(tmp_path / "a", num_layers=2)
    with pytest.raises(ConfigError, match="--num_layers was 2, is 1"):
        finetune_toy(tmp_path / "a", tmp_path / "b", num_layers=1)


def test_a_damaged_checkpoint_is_refused(source, tmp_path):
    shutil.copytree(source, tmp_path / "a")
    checkpoint = tmp_path / "a" / "checkpoints" / "checkpoint-2.npz"
    checkpoint.write_bytes(checkpoint.read_bytes()[:-100])
    with pytest.raises(ConfigError, match=r"checkpoint-2\.npz is damaged"):
        finetune_toy(tmp_path / "a", tmp_path / "b")
    assert not (tmp_path / "b").exists()


def test_another_trainer_is_refused(source, tmp_path, monkeypatch):
    monkeypatch.setitem(
        trainers.EXPERIMENTS, "copy", "tests.trainers.toy_experiment"
    )
    experiment = toy_experiment.EXPERIMENT
    flags = {"encoding": "RoPE", "strategy": "one_device"}
    config = experiment.config(**flags, initialize_from=str(source))
    with pytest.raises(
        ConfigError, match=r"is a run of trainers\.algorithmic: choose one of "
    ):
        experiment.train(config, tmp_path / "new")
    with pytest.raises(ConfigError, match="nothing is not the working direct"):
        EXPERIMENT.train(
            toy_config(initialize_from="nothing"), tmp_path / "new"
        )
    assert not (tmp_path / "new").exists()


def test_the_same_command_resumes_where_the_source_trained_on(source, tmp_path):
    shutil.copytree(source, tmp_path / "a")
    opened = open_run(str(tmp_path / "a"))
    first = f"{tmp_path}/a/checkpoints/checkpoint-1.npz"
    (tmp_path / "b").mkdir()

    def find(began):
        record = {"trainer": "", "digest": "", "config": began}
        (tmp_path / "b" / "config.json").write_text(json.dumps(record))
        return finetune.find_source(opened, f"{tmp_path}/a", tmp_path / "b")

    assert find({"initialize_from": first}) == first
    assert find({}) == str(opened.checkpoint)
    best = first.replace("checkpoint-1", "best-1")
    assert find({"initialize_from": best}) == str(opened.checkpoint)
    assert finetune.find_source(opened, best, tmp_path / "b") == best


@pytest.mark.parametrize(
    ("flags", "name"),
    [
        ({"encoding": "ALiBi(asymmetry=0.5)"}, "ALiBi"),
        (
            {
                "encoding": "YaRN",
                "sampler": "SkippedPositions",
                "score_factor": "head",
            },
            "SkippedPositions-YaRN-head",
        ),
    ],
)
def test_the_directory_is_named_after_both_runs(
    flags, name, source, monkeypatch
):
    trained = []
    monkeypatch.setattr(
        type(EXPERIMENT), "main", lambda self, config: trained.append(config)
    )
    config_class = make_config_class(open_run(str(source)).config)
    finetune.main(resolve(config_class, {}, flags), str(source))
    assert trained[0].workdir == os.path.join(
        *("runs", "reverse_string", f"{name}-from-RoPE")
    )


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["RUN", "--steps=3"], "RUN"),
        (["--steps=3", "RUN"], "RUN"),
        (["--steps", "3", "RUN"], "RUN"),
        (["--encoding=ALiBi", "--", "RUN"], "RUN"),
        (["--steps=3"], None),
        (["--help"], None),
        (["--"], None),
        ([], None),
    ],
)
def test_the_run_is_found_among_flags(arguments, wanted):
    assert find_operand(["program", *arguments]) == wanted


def test_help_shows_the_values_of_the_run(source):
    config_class = make_config_class(open_run(str(source)).config)
    text = make_help(config_class, {}, about=finetune.__doc__)
    assert "\n  --model_dim=8\n" in text and "\n  --encoding=RoPE\n" in text
    assert "--preset" not in text and "--initialize_from" not in text
    assert text.startswith("Continues the training of a model")
    assert "python -m trainers.finetune RUN --help" in text
    text = make_help(make_config_class(TrainerConfig()), {})
    assert "RandomizedRoPE" in text


@pytest.mark.process
def test_the_command(source, tmp_path):
    command = ["-m", "trainers.finetune", "--steps", "1", source]
    command += ["--encoding=ALiBi", "--test_lengths=5"]

    def start(*more):
        return run_python(*command, *more, cwd=tmp_path)

    first, again = start(), start()
    assert not first.returncode, first.stderr
    assert "  begins with" in first.stdout
    path = "runs/reverse_string/ALiBi-from-RoPE"
    assert (tmp_path / path / "results.json").exists()
    assert again.stdout.endswith(
        f"{path}: already finished, see results.json\n"
    )
    wrong = start("--model_dim=16", "--workdir=wrong")
    assert wrong.returncode == 2
    (line,) = wrong.stderr.splitlines()
    assert line.startswith("error: ") and "does not fit this model" in line
    assert not (tmp_path / "wrong").exists()


def test_a_directory_that_only_the_run_needed_is_left_out(
    tmp_path, monkeypatch
):
    trained = []
    experiment = enwik8.EXPERIMENT
    _, checkpoints = make_parts(
        tmp_path / "run", toy_config("enwik8"), experiment
    )
    with checkpoints:
        checkpoints.save(2, 0.0)
    monkeypatch.setattr(
        type(experiment), "main", lambda self, config: trained.append(config)
    )
    flags = {"encoding": "ALiBi", "dataset": "python_source"}
    finetune_toy(tmp_path / "run", tmp_path / "other", **flags)
    (config,) = trained
    assert config.data_dir == "data"
    with pytest.raises(ConfigError, match="--data_dir has no effect with"):
        finetune_toy(
            tmp_path / "run", tmp_path / "other", data_dir="x", **flags
        )
