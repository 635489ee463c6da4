"""Readers of positions, lengths, masks, ids: eager and in programs."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_lengen.checks.guards import INVALID_POSITION
from keras_lengen.checks.inputs import (
    as_signed,
    check_rank,
    check_tensors,
    is_pair,
    read_index,
    read_lengths,
    read_mask,
    read_positions,
    read_reference_length,
    read_segment_ids,
    read_token_ids,
)
from keras_lengen.models.looped_decoder import _read_loops
from tests.keras_lengen.bad_inputs import (
    BATCH,
    HOWS,
    IDS,
    MASK,
    NOT_NUMBERS,
    SILENT,
    TOKENS,
    WRONG,
    WRONG_AT_RUN,
    compiled,
    find_fault,
    integers,
)

INPUTS = np.zeros((BATCH, TOKENS, 3), "float32")
OF_INPUTS = np.ones((BATCH, 1), "float32")


def read_features(value):
    check_tensors(features=value)
    check_rank("features", value, (3,), "(B, T, M)")


READERS = {
    "positions": lambda value: read_positions(value, INPUTS),
    "lengths": lambda value: read_lengths(value, INPUTS, name="lengths"),
    "reference_length": lambda value: read_reference_length(value, INPUTS),
    "mask": lambda value: read_mask(value, INPUTS, name="mask")[1],
    "segment_ids": lambda value: read_segment_ids(value, INPUTS)[1],
    "token_ids": lambda value: read_token_ids("token_ids", value, 7),
    "index": lambda value: read_index("index", value),
    "loops": lambda value: _read_loops(value, IDS),
    "features": read_features,
}
"""By the name that messages must have, what must be void in a program."""

RIGHT = {
    "positions": [
        integers(TOKENS) - 2**24,
        # What a guard has marked stays as it is.
        np.full(TOKENS, INVALID_POSITION, "int32"),
        integers(TOKENS, dtype="uint8"),
        (IDS * 1.5).astype("float32"),
        IDS,
    ],
    "lengths": [
        *(np.array(0), np.array([2, 3], "uint8")),
        *(np.array(6, "int32"), np.array([0, 6], "int64")),
    ],
    "reference_length": [
        *(np.array([3, 4]), np.array(0.5, "float32")),
        np.array([6, 7.5], "float32"),
    ],
    "mask": [np.tri(2, 6, dtype="uint8"), MASK.astype("int32"), MASK],
    "segment_ids": [np.tri(2, 6, dtype="uint8"), -IDS],
    "token_ids": [IDS.astype("uint8"), IDS + 1, IDS, IDS.astype("int64")],
    "index": [np.array(0), np.array(2**24), np.array(3, "int32")],
    "loops": [np.array(1), np.array([1, 2**31 - 1]), np.array([2, 9], "int32")],
}
"""Programs that are given wrong values are compiled for the last two."""


@pytest.mark.parametrize(
    ("kind", "message", "value"),
    [(kind, *row) for kind in READERS for row in WRONG[kind]],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_wrong_values_raise(kind, message, value):
    with pytest.raises(ValueError, match=f"^{kind} .*{message}"):
        READERS[kind](value)


@pytest.mark.parametrize("kind", READERS)
def test_what_holds_no_numbers_is_refused(kind):
    for value in NOT_NUMBERS:
        with pytest.raises(ValueError, match=f"^{kind} must be .*; got"):
            READERS[kind](value)


CALLED = {
    **READERS,
    "mask": lambda value: read_mask(value, INPUTS)[0],
    "segment_ids": lambda value: read_segment_ids(value, INPUTS)[0],
}
DTYPES = {
    **dict.fromkeys(["lengths", "token_ids", "loops"], "int32"),
    **{"reference_length": "float32", "mask": "bool"},
}


@pytest.mark.parametrize("kind", RIGHT)
@pytest.mark.parametrize("how", HOWS)
def test_right_values_are_read(kind, how):
    for value in RIGHT[kind] if how == "eager" else RIGHT[kind][-1:]:
        found = compiled(CALLED[kind], {"value": value}, how)(value=value)
        np.testing.assert_array_equal(found, value)
        dtype = getattr(found, "dtype", "int32")
        assert keras.backend.standardize_dtype(dtype) == DTYPES.get(kind, dtype)
        if how == "eager" and kind != "index":
            listed = CALLED[kind](value.tolist())
            np.testing.assert_array_equal(listed, value)


@pytest.mark.parametrize("kind", RIGHT)
@pytest.mark.parametrize("how", HOWS[1:])
def test_wrong_values_of_programs(kind, how):
    faults = []
    for right in RIGHT[kind][-2:]:
        run = compiled(READERS[kind], {"value": right}, how)
        for value in WRONG_AT_RUN[kind](right):
            if how == "jit" and value.itemsize == 8:
                continue  # JAX takes the lower 32 bits.
            fault = find_fault(lambda run=run, v=value: run(value=v), kind, how)
            if fault:
                faults.append((value, fault))
    assert not faults


@pytest.mark.skipif("graph" not in HOWS, reason="needs TensorFlow")
def test_no_regular_tensors_of_numbers():
    import tensorflow as tf

    ids = tf.constant(IDS)
    for value, kind in (
        (tf.RaggedTensor.from_tensor(ids), "RaggedTensor: pad it"),
        (tf.sparse.from_dense(ids), "SparseTensor: make it dense"),
        (tf.zeros(ids.shape, "complex64"), "complex64 of shape"),
        (keras.Input((None,), ragged=True), "RaggedTensor: pad it"),
        (keras.Input((None,), sparse=True), "SparseTensor: make it dense"),
        (keras.Input((None,), dtype="string"), "string of shape"),
    ):
        for name, read in READERS.items():
            message = f"^{name} must be .*; got .*{kind}"
            if name != "index":
                with pytest.raises(ValueError, match=message):
                    read(value)


@pytest.mark.skipif("jit" in HOWS, reason="JAX has only 32 bits")
def test_signed_integers_are_the_same_ones():
    largest = ops.convert_to_tensor(np.array(2**32 - 1, "uint32"))
    assert int(as_signed(largest)) == 2**32 - 1


def test_pairs():
    assert is_pair([np.ones(3), [0, 1]])
    assert not is_pair(np.ones((2, 3)))
    assert not is_pair([0, 1])
    assert not is_pair(([0], [0], [0]))
    rows, columns = read_positions(([*range(TOKENS)], IDS[:1]), INPUTS)
    # One row of positions is that of all examples.
    assert rows.shape == columns.shape == (TOKENS,)
    with pytest.raises(ValueError, match=r"^places must be .* got 3 for 6"):
        read_positions((IDS, [1, 2, 3]), INPUTS, name="places")


def test_nothing_is_read_from_nothing():
    assert read_lengths(None, INPUTS) is None
    assert read_segment_ids(None, INPUTS) == (None, INPUTS)
    assert read_mask(MASK, OF_INPUTS, inputs=INPUTS)[1] is OF_INPUTS


@pytest.mark.parametrize("how", SILENT)
def test_one_wrong_example_does_not_mark_the_others(how):
    for kind, right, wrong in (
        ("lengths", np.array([2, 3], "int32"), np.array([2, 7], "int32")),
        ("token_ids", IDS, np.concatenate([IDS[:1], IDS[1:] + 2])),
        ("positions", IDS, np.concatenate([IDS[:1], IDS[1:] - 2**25])),
    ):
        run = compiled(CALLED[kind], {"value": right}, how)
        first, second = np.asarray(run(value=wrong))
        np.testing.assert_array_equal(first, wrong[0])
        assert np.all(second == INVALID_POSITION)


def test_symbols_are_checked_by_their_shapes():
    symbol = keras.KerasTensor((None, None, 3))
    lengths = keras.KerasTensor((None,), dtype="int32")
    assert read_lengths(lengths, symbol) is lengths
    assert read_reference_length(lengths, symbol) is lengths
    ids = keras.KerasTensor((None, None), dtype="int32")
    assert read_positions(ids, symbol) is ids
    assert read_token_ids("token_ids", ids, 4) is ids
    assert read_mask(ids, symbol) == (ids, symbol)
    index = keras.KerasTensor((), dtype="int32")
    assert read_index("index", index) is index
    for wrong in (lengths, keras.KerasTensor(())):
        with pytest.raises(ValueError, match=r"^index must be an integer from"):
            read_index("index", wrong)
    with pytest.raises(ValueError, match="positions must have shape"):
        read_positions(symbol, symbol)
