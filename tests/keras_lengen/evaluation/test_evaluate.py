"""Losses and metrics by length, against plain NumPy and `evaluate`."""

import keras
import numpy as np
import pytest

from keras_lengen.evaluation import Estimate, LengthResults, evaluate_by_length
from keras_lengen.evaluation.evaluate import CORRELATIONS
from keras_lengen.layers import RoPE
from tests.keras_lengen.models.small import encoder
from tests.refusals import refuses

LENGTHS = [3, 5, 12, 40]
COUNT = 50
LOSS = keras.losses.SparseCategoricalCrossentropy


def sample(length):
    """Tokens from 1, and the parity of the second ones."""
    ids = np.random.default_rng(length).integers(1, 3, (COUNT, length))
    return ids, ids.sum(axis=1) % 2


def sample_tags(length):
    """A dict of inputs, a tag for each token, and a weight for each."""
    ids, _ = sample(length)
    generator = np.random.default_rng(length)
    features = generator.normal(size=(COUNT, 2)).astype("float32")
    weights = generator.uniform(size=ids.shape).astype("float32")
    return {"ids": ids, "features": features}, ids % 2, weights


def averaging(width=None, reduce=None):
    tokens = keras.Input((width,), dtype="int32")
    x = keras.layers.Embedding(3, 4, mask_zero=True)(tokens)
    x = (reduce or keras.layers.GlobalAveragePooling1D())(x)
    return keras.Model(tokens, keras.layers.Dense(2)(x))


def tagger():
    """Reads two inputs, and its tags depend on the number of tokens."""
    ids = keras.Input((None,), dtype="int32", name="ids")
    features = keras.Input((2,), name="features")
    x = keras.layers.Embedding(3, 4)(ids)
    mean = keras.layers.GlobalAveragePooling1D(keepdims=True)(x)
    more = keras.layers.Dense(4)(features)[:, None]
    outputs = keras.layers.Dense(2)(keras.layers.Add()([x, mean, more]))
    return keras.Model({"ids": ids, "features": features}, outputs)


def attending():
    return encoder(RoPE(), output_size=2)


def compile_model(model, **options):
    keras.utils.set_random_seed(0)
    options = {"metrics": ["accuracy"], **options}
    model.compile(loss=LOSS(from_logits=True), **options)
    return model


def find_expected(model, examples):
    """Loss and accuracy of examples without padding, in float64."""
    inputs, targets, *weights = examples
    logits = np.float64(model.predict(inputs, verbose=0))
    chances = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    losses = -np.take_along_axis(chances, targets[..., None], -1)[..., 0]
    right = logits.argmax(-1) == targets
    loss = np.mean(losses * weights[0]) if weights else np.mean(losses)
    return loss, np.mean(right)


CASES = {
    "recurrent": (lambda: averaging(reduce=keras.layers.LSTM(4)), sample),
    "two inputs and weights": (tagger, sample_tags),
    "of this library": (
        attending,
        lambda length: (sample(length)[0], sample(length)[0] % 2),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_values_are_those_of_each_length_alone(name):
    make, data = CASES[name]
    model = compile_model(make())
    results = evaluate_by_length(model, data, LENGTHS, batch_size=16)
    assert results.examples == dict.fromkeys(LENGTHS, COUNT)
    for length in LENGTHS:
        loss, accuracy = find_expected(model, data(length))
        assert results["loss"][length].value == pytest.approx(loss, rel=1e-4)
        assert results["accuracy"][length].value == pytest.approx(accuracy)


def pad(length):
    ids, targets = sample(length)
    return np.pad(ids, [(0, 0), (0, max(LENGTHS) - length)]), targets


def in_batches():
    """Batches of 20 examples of all lengths."""
    ids, targets = map(np.concatenate, zip(*map(pad, LENGTHS), strict=True))
    return [
        (ids[start : start + 20], targets[start : start + 20])
        for start in range(0, len(ids), 20)
    ]


class Batches(keras.utils.PyDataset):
    def __len__(self):
        return len(in_batches())

    def __getitem__(self, index):
        return in_batches()[index]


def as_dataset():
    import tensorflow as tf

    return tf.data.Dataset.from_generator(
        in_batches,
        output_signature=tuple(
            tf.TensorSpec(shape, "int64") for shape in ((None, None), (None,))
        ),
    )


FORMS = {
    "dict": lambda: {length: sample(length) for length in [7, *LENGTHS]},
    "datasets": lambda: {
        length: [sample(length), sample(length)] for length in LENGTHS
    },
    "arrays": lambda: tuple(
        map(np.concatenate, zip(*map(pad, LENGTHS), strict=True))
    ),
    "batches": in_batches,
    "PyDataset": Batches,
    "tf.data": as_dataset,
}


@pytest.fixture(scope="module")
def model():
    return compile_model(averaging())


@pytest.fixture(scope="module")
def results(model):
    return evaluate_by_length(model, sample, LENGTHS)


@pytest.mark.parametrize("form", FORMS)
def test_data_may_have_many_forms(form, model, results):
    found = evaluate_by_length(model, FORMS[form](), LENGTHS)
    for length in LENGTHS:
        expected = results["loss"][length].value
        assert found["loss"][length].value == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("name", ["lengths", "padding_mask"])
def test_inputs_may_say_their_lengths(name):
    """Where 0 is a token like others."""
    model = compile_model(attending())
    lengths = np.array([3, 5, 5, 12] * 5)
    ids = np.random.default_rng(0).integers(0, 3, (20, 12))
    mask = np.arange(12) < lengths[:, None]
    said = {"lengths": lengths, "padding_mask": mask}[name]
    data = {"token_ids": ids, name: said}, ids % 2
    found = evaluate_by_length(model, data)
    assert found.examples == {3: 5, 5: 10, 12: 5}
    logits = model.predict(data[0], verbose=0)
    right = logits.argmax(-1) == data[1]
    for length in (3, 5, 12):
        expected = right[lengths == length, :length].mean()
        assert found["accuracy"][length].value == pytest.approx(expected)


def test_lengths_of_padded_examples_are_the_ends_of_groups(model):
    data = FORMS["arrays"]()
    found = evaluate_by_length(model, data, [5, 40])
    assert found.examples == {5: 2 * COUNT, 40: 2 * COUNT}


def test_many_lengths_are_padded_to_few_widths(model):
    widths = set()
    predict = model.call

    def call(inputs, *args, **kwargs):
        widths.add(inputs.shape[1])
        return predict(inputs, *args, **kwargs)

    model.call = call
    model.make_test_function(force=True)
    try:
        found = evaluate_by_length(model, sample, range(4, 41, 3))
    finally:
        model.call = predict
        model.make_test_function(force=True)
    assert list(found.examples) == [*range(4, 41, 3)]
    # 40, 20, 10, 5 and 4, and one length that is tried without padding.
    assert len(widths) <= 6


def test_a_model_of_a_fixed_length_gets_its_length():
    fixed, free = compile_model(averaging(40)), compile_model(averaging())
    free.set_weights(fixed.get_weights())
    found, expected = (
        evaluate_by_length(each, sample, LENGTHS) for each in (fixed, free)
    )
    for length in LENGTHS:
        assert found["loss"][length].value == pytest.approx(
            expected["loss"][length].value, rel=1e-4
        )
    with pytest.raises(ValueError, match=r"of 40 tokens, .* have 41: build"):
        evaluate_by_length(fixed, sample, [3, 41])


def test_intervals_of_losses_have_two_equal_sides(results):
    """And those of shares end at 0 and 1."""
    for value, low, high in results["loss"].values():
        assert low < value < high
        assert value - low == pytest.approx(high - value)
    for value, low, high in results["accuracy"].values():
        assert 0 <= low < value < high <= 1


@pytest.mark.parametrize("metric", CORRELATIONS)
def test_correlations_are_no_shares(metric):
    x = np.random.default_rng(0).normal(size=(40, 5)).astype("float32")
    model = keras.Sequential([keras.layers.Identity()])
    model.compile(loss="mse", metrics=[metric(name="metric")])
    y = 0.6 * x[::-1] + x
    found = evaluate_by_length(model, {5: (x, y)})["metric"][5]
    assert 0 < found.value < 1
    assert found.value - found.low == pytest.approx(found.high - found.value)


def test_the_usable_length():
    measured = {
        "loss": {1: 1.0, 2: 1.0, 8: 1.1, 16: 1.2, 32: 1.0},
        "accuracy": {1: 0.9, 2: 1.0, 8: 0.86, 16: 0.8, 32: 1.0},
    }
    metrics = {
        name: {n: Estimate(v, v, v) for n, v in values.items()}
        for name, values in measured.items()
    }
    examples = dict.fromkeys(metrics["loss"], 9)
    found = LengthResults(metrics, examples, trained=[1, 2])
    # 0.9 of 0.95 is 0.855; a loss may be 1 / 0.9.
    assert found.usable_length() == found.usable_length(metric="loss") == 8
    assert found.usable_length(0.5) == 32
    assert found.usable_length(1.0) == 0
    with pytest.raises(KeyError, match="no metric 'mae'; there are loss, acc"):
        found.usable_length(metric="mae")
    unknown = LengthResults(found.metrics, found.examples)
    with pytest.raises(ValueError, match=r"give `trained`, .* not given"):
        unknown.usable_length()
    with pytest.raises(ValueError, match=r"share must be .* got 0"):
        found.usable_length(0)


def test_results_are_a_table_and_rows(results):
    trained = LengthResults(results.metrics, results.examples, trained=[3])
    lines = str(trained).splitlines()
    assert lines[0].split() == ["length", "examples", "loss", "accuracy"]
    assert [line.split()[:2] for line in lines[1:5]] == [
        ["3*", "50"],
        *([str(length), "50"] for length in LENGTHS[1:]),
    ]
    rows = trained.rows()
    assert len(rows) == 2 * len(LENGTHS)
    assert rows[0] == {
        **{"length": 3, "metric": "loss", "examples": 50, "trained": True},
        **results["loss"][3]._asdict(),
    }


@refuses(
    (sample, None, "lengths must be given if data is a function"),
    (sample, [], "lengths must have at least one length; got"),
    (sample, 0, "lengths must be a positive integer, a length in tokens"),
    ({3: sample(3)}, [3, 4], r"no examples of length 4; its lengths are \[3\]"),
    (pad(5), [3, 4], "no examples for length 3; .* from 5 to 5"),
    (None, [3], "data must be a tuple .*; got None"),
    (5, [3], "data must be a tuple .* got int"),
    (lambda n: [], [3], "data of length 3 has no examples"),
    (
        lambda n: [sample(3), (sample(3)[0][:, :, None], sample(3)[1])],
        [3],
        "batches of data of length 3 must have the same structure",
    ),
    ((np.ones(9), np.ones(9)), None, r"behind that of the examples: \(N, T\)"),
)
def test_wrong_data_raise(data, lengths, model):
    evaluate_by_length(model, data, lengths)


def test_models_that_cannot_be_measured():
    with pytest.raises(ValueError, match=r"call `model.compile"):
        evaluate_by_length(averaging(), sample, [3])
    with pytest.raises(ValueError, match=r"model must be .* got a Dense"):
        evaluate_by_length(keras.layers.Dense(2), sample, [3])
