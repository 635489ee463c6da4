import numpy as np
import pytest
import tensorflow as tf

from datasets.tasks import TASKS
from datasets.tasks.batches import assemble
from keras_lengen.checks.arguments import constructor_arguments
from keras_lengen.layers import ENCODINGS
from tests.products import product
from tests.trainers.engine.small import small_model
from tests.trainers.toy import run_toy, toy_config, train_losses
from trainers.algorithmic import TaskProblem
from trainers.devices.tensorflow_strategy import make_strategy
from trainers.engine.draws import set_seeds
from trainers.engine.tensorflow_step import TensorFlowTrainingStep, take_part
from trainers.experiment import make_optimizer


@pytest.mark.product
@pytest.mark.parametrize("encoding", ["RoPE", "RelativeEncoding"])
def test_mirrored_gives_the_losses_of_one_device(tmp_path, encoding):
    losses = {}
    for strategy in ("one_device", "mirrored"):
        run_toy(
            tmp_path / strategy,
            strategy=strategy,
            encoding=encoding,
            dropout=0.0,
            steps=10,
            steps_per_loop=1,
            train_length="3",
            test_lengths="5",
            learning_rate=1e-4,
        )
        losses[strategy] = train_losses(tmp_path / strategy)
    assert len(losses["mirrored"]) == 10
    np.testing.assert_allclose(
        losses["mirrored"], losses["one_device"], rtol=2e-5
    )


STRATEGIES = product(["one_device", "mirrored"], ["one_device"])


@pytest.mark.product
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_parts_of_a_batch_add_up_to_the_whole(tmp_path, strategy):
    losses = []
    for parts in (1, 4):
        path = tmp_path / str(parts)
        run_toy(
            path,
            strategy=strategy,
            encoding="ALiBi",
            dropout=0.0,
            steps=5,
            steps_per_loop=1,
            train_length="3",
            test_lengths="5",
            gradient_accumulation_steps=parts,
        )
        losses.append(train_losses(path))
    assert len(set(losses[0])) == 5
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-5)


def test_a_part_is_a_slice_of_what_has_examples():
    batch = {
        "token_ids": tf.reshape(tf.range(12), (6, 2)),
        "lengths": tf.constant(2),
    }
    assert take_part(batch, tf.constant(1), 3)[
        "token_ids"
    ].numpy().tolist() == [
        [4, 5],
        [6, 7],
    ]
    assert take_part(batch, tf.constant(1), 3)["lengths"] == 2


@pytest.mark.product
@pytest.mark.parametrize("strategy", ["one_device", "mirrored"])
def test_float16_trains_beside_float32(tmp_path, strategy):
    losses = {}
    for precision in ("float32", "mixed_float16"):
        run_toy(
            tmp_path / precision,
            strategy=strategy,
            precision=precision,
            dropout=0.0,
            steps=30,
            steps_per_loop=30,
            train_length="3",
        )
        (losses[precision],) = train_losses(tmp_path / precision)
    assert losses["mixed_float16"] == pytest.approx(losses["float32"], abs=0.02)


@pytest.mark.parametrize(
    "strategy", product(["one_device", "mirrored"], keep=["one_device"])
)
def test_a_gradient_that_overflows_skips_the_step(strategy):
    strategy = make_strategy(strategy)
    config = toy_config(precision="mixed_float16", learning_rate=0.1)
    with strategy.scope():
        model = small_model()
        optimizer = make_optimizer(config, model)
    problem = TaskProblem(config)
    problem.loss = lambda outputs, batch: (
        tf.reduce_sum(outputs * batch["factor"]),
        tf.constant(1.0),
    )
    step = TensorFlowTrainingStep(
        model=model,
        optimizer=optimizer,
        problem=problem,
        strategy=strategy,
        buckets=(6,),
        seed=0,
        clip_norm=1.0,
        compiled=False,
    )
    batch = {
        "token_ids": tf.zeros((2, 6), tf.int32),
        "lengths": tf.constant(6),
    }

    @tf.function
    def update(factor):
        def on_replica():
            scaled = {**batch, "factor": tf.identity(factor)}
            step.update(scaled, tf.constant(0, tf.int64))

        strategy.distribution.run(on_replica)

    head = model.head.kernel
    before, scale = head.numpy(), optimizer.dynamic_scale.numpy()
    update(tf.constant(float("inf")))
    np.testing.assert_array_equal(head.numpy(), before)
    assert optimizer.dynamic_scale.numpy() == scale / 2
    update(tf.constant(1.0))
    assert np.isfinite(head.numpy()).all() and (head.numpy() != before).any()


@pytest.mark.product
@pytest.mark.parametrize("compile_", ["true", "false"])
def test_mirrored_runs_compiled_or_not(tmp_path, compile_):
    changes = {"strategy": "mirrored", "compile": compile_, "buckets": 2}
    results = run_toy(tmp_path, encoding="RandomizedRoPE", **changes)
    assert np.isfinite(list(results["final"]["loss_by_length"].values())).all()


PROBLEM = TaskProblem(toy_config())


def gradients_of(model, batch):
    tf.distribute.OneDeviceStrategy("CPU:0").run(lambda: set_seeds(model, 5))
    with tf.GradientTape() as tape:
        logits = model(PROBLEM.inputs(batch), training=True)
        total, count = PROBLEM.loss(logits, batch)
        loss = total / count
    hits = tf.argmax(logits, -1, tf.int32) == batch["targets"]
    accuracy = tf.reduce_mean(tf.cast(hits[batch["scored"]], tf.float32))
    gradients = tape.gradient(loss, model.trainable_variables)
    return loss, accuracy, [tf.convert_to_tensor(part) for part in gradients]


FOR_ENCODERS = [
    name for name, encoding in ENCODINGS.items() if not encoding.causal_only
]
RESAMPLED = [name for name in ENCODINGS if name.startswith("Randomized")]


@pytest.mark.parametrize(
    ("name", "arguments"),
    product(
        [(name, {}) for name in FOR_ENCODERS]
        + [(name, {"resample": "example"}) for name in RESAMPLED],
        [
            ("SinusoidalEncoding", {}),
            ("WarpedRoPE", {}),
            ("T5Bias", {}),
            ("RandomizedALiBi", {"resample": "example"}),
        ],
    ),
)
def test_padding_changes_nothing(name, arguments):
    needed = {"max_position": 64, "train_length": 10, "original_length": 4}
    for argument in constructor_arguments(ENCODINGS[name]).keys() & needed:
        arguments = {argument: needed[argument], **arguments}
    task = TASKS["reverse_string"]
    model = small_model(ENCODINGS[name](**arguments))
    sample = task.sample((0, 1), 4, 5)
    exact = gradients_of(model, assemble(task, sample, 10))
    padded = gradients_of(model, assemble(task, sample, 16))
    np.testing.assert_allclose(padded[0], exact[0], rtol=1e-5)
    assert padded[1] == exact[1]
    for one, other in zip(padded[2], exact[2], strict=True):
        # Sums of other lengths round differently: 1.1e-6 was measured.
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_cut_shortens_what_has_tokens():
    task = TASKS["reverse_string"]
    sample = task.sample((0, 1), 4, 5)
    wide = PROBLEM.cut(assemble(task, sample, 16), 12)
    exact = assemble(task, sample, 12)
    for name, values in exact.items():
        np.testing.assert_array_equal(wide[name], values)
