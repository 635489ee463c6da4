import functools

import numpy as np
import pytest
import tensorflow as tf

from tests.datasets.images.awkward import encode_gray
from tests.trainers.toy import build_toy, draw, run_toy, toy_config
from trainers.errors import ConfigError
from trainers.imagenet import EXPERIMENT
from trainers.tpu.compiler import Topology
from trainers.tpu.tensorflow_programs import trace

AXIAL = {
    "encoding": "AxialEncoding(row=RoPE, column=RoPE)",
    "sampler": "GridPositions(row=RandomizedPositions(max_position=16), "
    "column=RandomizedPositions(max_position=16))",
    "model_dim": 16,
}
make_parts = functools.partial(build_toy, "imagenet")


@pytest.mark.product
@pytest.mark.parametrize(
    "changes",
    [
        {
            "encoding": "RelativeEncoding",
            "train_size": "3x3,4x4",
            "delimiter": "own",
        },
        {**AXIAL, "architecture": "encoder", "random_crop": 1},
    ],
    ids=["two sizes", "axial"],
)
def test_a_run(tmp_path, changes):
    results = run_toy(tmp_path, trainer="imagenet", **changes)
    losses = results["final"]["loss_by_length"]
    assert {"12", "25"} <= losses.keys()
    assert np.isfinite([*losses.values()]).all()
    assert results["floor_by_length"]["12"] == pytest.approx(0.1, abs=0.05)


@pytest.mark.product
def test_weights_without_a_gradient_compile_for_tpus():
    """A decoder of one token does not need the bias of its attention."""
    config = toy_config("imagenet", encoding="T5Bias(share_layers=False)")
    (length,) = config.trained_lengths
    tokens = config.total_length(length)
    function, _, trained = trace(
        EXPERIMENT, config, "train", tokens, Topology("v5e:1x1")
    )
    assert function.structured_outputs.shape == ()
    assert trained > 0


def test_evaluation_sees_the_same_images_at_several_sizes():
    _, _, problem = make_parts()
    store = problem.stores["test"]
    for length, size in {12: (3, 3), 25: (5, 4)}.items():
        batch = draw(problem, length, 7, padded=length)
        images = problem.lay_out(batch["token_ids"], length)
        for image, label in zip(images, batch["targets"].numpy(), strict=True):
            same = (store.images[size] == image).all(axis=(1, 2))
            assert store.labels[same].tolist() == [label]


def test_the_decoder_reads_a_start_token():
    model, _, problem = make_parts()
    tokens = tf.constant([[1, 2, 0], [3, 4, 0]])
    inputs = problem.inputs({"token_ids": tokens})
    assert inputs["target_ids"].numpy().tolist() == [[0], [0]]
    assert model(inputs).shape[-1] == 10


@pytest.mark.product
def test_classes_of_a_folder(tmp_path):
    for name in "abc":
        directory = tmp_path / "images" / name
        directory.mkdir(parents=True)
        for number in range(40):
            content = encode_gray(number)
            (directory / f"{number}.png").write_bytes(content)
    folder = {
        "dataset": "folder",
        "data_dir": str(tmp_path / "images"),
        "cache_dir": str(tmp_path / "cache"),
    }
    model, _, problem = make_parts(**folder)
    assert model.output_size == 3
    problem.prepare()
    assert not problem.note
    (tmp_path / "images" / "a" / "bad.png").write_bytes(b"")
    for wrong, message in (
        ({}, r"cannot be decoded, .*bad\.png"),
        ({"invalid_images": "skip", "num_classes": 2}, "from 0 to 2, but"),
    ):
        with pytest.raises(ConfigError, match=message):
            make_parts(**folder, **wrong)[2].prepare()
    _, _, problem = make_parts(**folder, invalid_images="skip")
    problem.prepare()
    assert problem.note.startswith("1 image(s) could not be decoded: ")


def test_what_cannot_work():
    for changes, message in (
        ({"dataset": "folder", "data_dir": "none"}, "--data_dir=none is none"),
        ({**AXIAL, "sampler": "GridPositions(width=4)"}, "sees 7 rows of 4"),
        ({"train_size": "3x3,4x4", "buckets": 1}, "would pad images of 2 siz"),
        ({"data_dir": "x"}, "--data_dir has no effect with --dataset=digits"),
    ):
        with pytest.raises(ConfigError, match=message):
            make_parts(**changes)[2].prepare()
