import json
import shutil
import types

import numpy as np
import pytest

from tests.shell import run_python
from tests.trainers.toy import EACH_STEP, final_weights, make_parts, toy_config
from trainers import enwik8, finetune
from trainers.algorithmic import EXPERIMENT
from trainers.enwik8 import Enwik8Config
from trainers.errors import ConfigError, TrainingError
from trainers.finetune import find_operand, make_config_class
from trainers.options.fields import resolve
from trainers.records.initial_weights import read_initial_weights
from trainers.records.opened_run import open_run

BLOCK = "model/transformer_encoder/block/attention"


def write_run(path, **flags):
    """Writes a run whose weights and optimizer have random values."""
    config = toy_config(train_length="3", test_lengths="5", **flags)
    _, checkpoints = make_parts(path, config)
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
    """A run that went on from it."""
    path = tmp_path_factory.mktemp("finetuned")
    finetune_toy(source, path, **EACH_STEP)
    return path


@pytest.mark.product
def test_it_begins_with_the_weights_and_a_new_optimizer(source, tmp_path):
    # Two steps that change hardly any bit of a weight.
    flags = {"encoding": "RandomizedRoPE", "learning_rate": 1e-10}
    finetune_toy(source, tmp_path, **flags)
    before, after = final_weights(source), final_weights(tmp_path)
    for name in before:
        if name.startswith("model/"):
            np.testing.assert_allclose(after[name], before[name], atol=1e-9)
    assert after["optimizer/adam/iteration"] == 2
    config = json.loads((tmp_path / "results.json").read_text())["config"]
    begun = f"{source}/checkpoints/checkpoint-2.npz"
    assert config["initialize_from"] == begun
    assert config["encoding"] == "RandomizedRoPE"
    assert config["model_dim"] == 8


@pytest.mark.product
def test_a_resumed_run_reads_the_source_only_if_it_must(
    source, finished, tmp_path, monkeypatch, capsys
):
    copied, path = tmp_path / "source", tmp_path / "parts"
    shutil.copytree(source, copied)

    def fail(losses, step, *_):
        if step >= 1:
            raise TrainingError("stop")

    with monkeypatch.context() as patch:
        patch.setattr("trainers.engine.loop._check_finite", fail)
        with pytest.raises(TrainingError, match="stop"):
            finetune_toy(copied, path, **EACH_STEP)
    assert "  begins with" in capsys.readouterr().out
    # Read again, this would be refused.
    (copied / "checkpoints" / "checkpoint-2.npz").write_bytes(b"")
    finetune_toy(copied, path, **EACH_STEP)
    assert "  begins with" not in capsys.readouterr().out
    weights, others = final_weights(finished), final_weights(path)
    # The paths of their sources differ.
    del weights["digest"], others["digest"]
    np.testing.assert_equal(weights, others)


PARAMETERS = [f"randomized_log_kerple/{name}" for name in "ap"]
TABLE = ["t5_bias/table"]


@pytest.mark.product
@pytest.mark.parametrize(
    ("before", "after", "new", "left_out"),
    [
        ("FIRE", "RandomizedFIRE", [], []),
        ("RandomizedLogKERPLE", "ALiBi", [], PARAMETERS),
        ("T5Bias", "T5Bias(num_buckets=16)", TABLE, TABLE),
    ],
)
def test_new_and_left_out(tmp_path, before, after, new, left_out):
    checkpoint = write_run(tmp_path / "a", encoding=before)
    config = toy_config(encoding=after, seed=1)
    model, checkpoints = make_parts(tmp_path / "b", config)
    begin = checkpoints.copy()
    found = read_initial_weights(open_run(str(checkpoint)), config, model)
    assert found.new == [f"{BLOCK}/{name}" for name in new]
    assert found.left_out == [f"{BLOCK}/{name}" for name in left_out]
    assert len(found.loaded) + len(new) == len(model.weights)

    _, checkpoints = make_parts(tmp_path / "b", config, initial=found.loaded)
    assert checkpoints.restore() == (0, 0.0)
    with np.load(checkpoint) as stored:
        for name, values in checkpoints.copy().items():
            wanted = begin[name]
            if name.startswith("model/") and name not in found.new:
                plain = name.replace("/randomized_", "/")
                wanted = stored[name if name in stored.files else plain]
            np.testing.assert_array_equal(values, wanted, err_msg=name)


@pytest.mark.product
def test_a_new_factor_of_scores_changes_little(tmp_path):
    checkpoint = write_run(tmp_path / "a")
    factors, models = {}, {}
    for name in ("none", "head", "adaptive", "log_length"):
        config, path = toy_config(score_factor=name, seed=1), tmp_path / name
        model, _ = make_parts(path, config)
        found = read_initial_weights(open_run(str(checkpoint)), config, model)
        models[name], begun = make_parts(path, config, initial=found.values)
        begun.restore()
        factors[name] = begun.copy().get(f"{BLOCK}/score_factor")
    assert not factors["adaptive"].any()
    # Both strings of reverse_string have up to three symbols.
    keys = np.arange(1, 2 * 3 + 1)
    mean = np.mean([factors["log_length"] * np.log(n) for n in keys])
    assert mean == pytest.approx(1, rel=1e-5)
    # At trained lengths, the model computes what it computed before.
    inputs = {"token_ids": np.array([[0, 1, 1, 2, 2, 2]])}
    before, after = models["none"](inputs), models["head"](inputs)
    np.testing.assert_allclose(after, before, rtol=1e-5)


def test_another_model_is_refused(source, tmp_path):
    for flags, message in (
        ({"model_dim": 16}, r"shape \(3, 8\) there and has shape \(3, 16\)"),
        ({"num_layers": 2}, "is missing there and .*--num_layers was 1"),
        ({"num_heads": 4}, "has --num_heads=2, .* cannot change; got 4"),
    ):
        with pytest.raises(ConfigError, match=message):
            finetune_toy(source, tmp_path / "new", **flags)
    opened = types.SimpleNamespace(config=Enwik8Config(), path="a")
    message = r"a has --normalization=pre, .* change; got post"
    with pytest.raises(ConfigError, match=message):
        config = Enwik8Config(normalization="post")
        read_initial_weights(opened, config, model=None)
    config = toy_config("enwik8", initialize_from=str(source))
    with pytest.raises(ConfigError, match=r"is a run of trainers\.algorithm"):
        enwik8.EXPERIMENT.train(config, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_the_same_command_resumes_where_the_source_trained_on(source, tmp_path):
    opened = open_run(str(source))
    first, best = (
        str(source / "checkpoints" / f"{kind}-1.npz")
        for kind in ("checkpoint", "best")
    )
    for began, found in ((first, first), (best, str(opened.checkpoint))):
        config = {"initialize_from": began}
        record = {"trainer": "", "digest": "", "config": config}
        (tmp_path / "config.json").write_text(json.dumps(record))
        assert finetune.find_source(opened, str(source), tmp_path) == found
    assert finetune.find_source(opened, best, tmp_path) == best


def test_a_directory_that_only_the_run_needed_is_left_out(
    tmp_path, monkeypatch
):
    asked = []
    monkeypatch.setattr(
        type(EXPERIMENT), "main", lambda self, config: asked.append(config)
    )
    run = tmp_path / "run"
    _, checkpoints = make_parts(run, toy_config("enwik8"), "enwik8")
    with checkpoints:
        checkpoints.save(2, 0.0)
    flags = {"encoding": "ALiBi", "dataset": "python_source"}
    finetune_toy(run, tmp_path / "other", **flags)
    assert [config.data_dir for config in asked] == ["data"]
    with pytest.raises(ConfigError, match="--data_dir has no effect with"):
        finetune_toy(run, "", data_dir="x", **flags)


def test_the_run_is_found_among_flags():
    for arguments, wanted in (
        (["--steps=3", "RUN"], "RUN"),
        (["--steps", "3", "RUN"], "RUN"),
        (["--norandom_flip", "RUN"], "RUN"),
        (["--encoding=ALiBi", "--", "RUN"], "RUN"),
        (["--steps=3"], None),
        ([], None),
    ):
        assert find_operand(["program", *arguments], {"random_flip"}) == wanted


@pytest.mark.process
def test_the_command(source, tmp_path):
    command = ["-m", "trainers.finetune", "--steps", "1", source]
    command += ["--encoding=ALiBi", "--test_lengths=5"]
    done = run_python(*command, cwd=tmp_path)
    assert "  begins with" in done.stdout
    path = "runs/reverse_string/ALiBi-from-RoPE"
    assert (tmp_path / path / "results.json").exists()
