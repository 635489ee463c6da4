import fractions

import keras
import numpy as np
import pytest

from keras_lengen.checks import arguments
from keras_lengen.layers import (
    ALiBi,
    MultiHeadAttention,
    OrdinalPositions,
    RandomizedPositions,
    RoPE,
)
from keras_lengen.layers.positions import PositionSampler

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize("value", [2, np.int32(2), np.uint8(2)])
def test_an_integer_is_returned_as_pythons(value):
    checked = arguments.check_integer("size", value, most=2)
    assert checked == 2
    assert type(checked) is int


@pytest.mark.parametrize(
    "value",
    [0, -1, 2.0, True, np.bool_(True), NAN, "2", None, [2], np.array(2), 1j],
    ids=repr,
)
def test_no_positive_integer(value):
    with pytest.raises(ValueError, match=r"^size must be a positive integer"):
        arguments.check_integer("size", value)


@pytest.mark.parametrize(
    ("limits", "wanted"),
    [
        ({}, "a positive integer"),
        ({"optional": True}, "a positive integer, or None"),
        ({"least": 0}, "an integer of at least 0"),
        ({"least": 4, "most": 9}, "an integer from 4 to 9"),
        ({"least": None}, "an integer"),
        ({"what": "the tokens"}, "a positive integer, the tokens"),
    ],
)
def test_a_message_says_what_was_expected_and_what_came(limits, wanted):
    with pytest.raises(ValueError) as raised:
        arguments.check_integer("size", "x", **limits)
    assert str(raised.value) == f"size must be {wanted}; got 'x'."


@pytest.mark.parametrize(
    "value", [1, 2.5, np.float32(2.5), fractions.Fraction(5, 2), 10**30]
)
def test_a_number_is_returned_as_pythons(value):
    checked = arguments.check_number("rate", value, least=1)
    assert checked == pytest.approx(value)
    # A tensor of the backends holds no integer of more than 32 bits.
    assert type(checked) is (int if value == 1 else float)


@pytest.mark.parametrize(
    "value",
    [0.5, 4, NAN, np.float32(NAN), INF, -INF, 10**400, True, "2", None, [2]],
    ids=repr,
)
def test_no_number(value):
    with pytest.raises(
        ValueError, match=r"^rate must be a finite number above"
    ):
        arguments.check_number("rate", value, above=0.5, most=3)


@pytest.mark.parametrize("value", [1e39, -1e39, 10**300, 1e-46, 5e-324])
def test_no_number_of_float32(value):
    with pytest.raises(
        ValueError,
        match=r"rate must be 0 or a number from 1.2e-38 to",
    ):
        arguments.check_number("rate", value)


def test_a_number_is_rounded_to_float32_before_it_is_compared():
    with pytest.raises(ValueError, match=r"above 1; got 1\.0000000001"):
        arguments.check_number("rate", 1 + 1e-10, above=1)
    with pytest.raises(ValueError, match=r"below 1; got 0\.9999999999"):
        arguments.check_share("rate", 1 - 1e-10)


def test_no_integer_of_more_than_32_bits():
    assert arguments.check_integer("size", 2**31 - 1) == 2**31 - 1
    with pytest.raises(ValueError, match=r"1 to 2147483647; got 2147483648"):
        arguments.check_integer("size", 2**31)


def test_bounds_of_numbers():
    assert arguments.check_number("rate", 3, above=0, most=3) == 3
    assert arguments.check_number("rate", 0, least=0) == 0
    assert arguments.check_number("rate", None, optional=True) is None


@pytest.mark.parametrize("value", [1, 1.0, -0.1, NAN, "x", True])
def test_no_share(value):
    with pytest.raises(ValueError, match=r"^dropout must be"):
        arguments.check_share("dropout", value)


def test_shares():
    assert arguments.check_share("dropout", 0) == 0
    assert arguments.check_share("dropout", 0.99) == 0.99
    assert arguments.check_share("dropout", None, optional=True) is None


@pytest.mark.parametrize("value", [1, 0, "True", None, np.ones(2, bool)])
def test_no_flag(value):
    with pytest.raises(ValueError, match=r"^flag must be True or False; got"):
        arguments.check_boolean("flag", value)


@pytest.mark.parametrize("value", ["c", 1, 0, None, ["a"], np.array(["a"])])
def test_no_choice(value):
    with pytest.raises(ValueError, match=r'^mode must be "a", True or False'):
        arguments.check_choice("mode", value, ("a", True, False))


def test_choices():
    for choice in ("a", True, None):
        choices = ("a", True, None)
        assert arguments.check_choice("mode", choice, choices) is choice


@pytest.mark.parametrize("value", [-1, 2**31, 2.0, True, "x"])
def test_no_seed(value):
    with pytest.raises(ValueError, match=r"^seed must be an integer from 0"):
        arguments.check_seed(value)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("x", "got 'x'"),
        (RoPE(), "got a RoPE"),
        (RandomizedPositions, r"got the class .*: call it, RandomizedPos"),
        (None, "got None"),
    ],
)
def test_no_instance(value, message):
    with pytest.raises(ValueError, match=f"^sampler must be .*{message}"):
        arguments.check_instance(
            "sampler",
            value,
            PositionSampler,
            example="OrdinalPositions()",
            optional=False,
        )


@pytest.mark.parametrize("value", [RoPE, RoPE(), "x", MultiHeadAttention(1, 2)])
def test_no_subclass(value):
    with pytest.raises(ValueError, match=r"^attention must be MultiHead"):
        arguments.check_subclass("attention", value, MultiHeadAttention)


@pytest.mark.parametrize(
    "value",
    ["rely", RoPE, RoPE(), OrdinalPositions(), 3, {}, keras.layers.ReLU],
)
def test_no_activation(value):
    with pytest.raises(ValueError, match=r"^activation must be an activation"):
        arguments.check_activation("activation", value)


def test_activations():
    function = keras.activations.relu
    layer = keras.layers.LeakyReLU()
    assert arguments.check_activation("activation", "relu") is function
    assert arguments.check_activation("activation", function) is function
    assert arguments.check_activation("activation", layer) is layer


@pytest.mark.parametrize("value", ["zeroes", RoPE, ALiBi(), 3, {}, np.ones(2)])
def test_no_initializer(value):
    with pytest.raises(
        ValueError, match=r"^initializer must be an init.*, or N"
    ):
        arguments.check_initializer("initializer", value)


def test_initializers():
    zeros = arguments.check_initializer("initializer", "zeros")
    assert isinstance(zeros, keras.initializers.Zeros)
    assert arguments.check_initializer("initializer", zeros) is zeros
    assert arguments.check_initializer("initializer", None) is None
    with pytest.raises(ValueError, match="got None"):
        arguments.check_initializer("initializer", None, optional=False)


@pytest.mark.parametrize("value", [None, "x", 3, RoPE, RoPE()])
def test_no_function(value):
    with pytest.raises(ValueError, match=r"^raw_attention must be a function"):
        arguments.check_callable("raw_attention", value)


@pytest.mark.parametrize(
    ("value", "limits", "message"),
    [
        ("x", {}, "got 'x'"),
        (["x"], {}, r"got \['x'\]"),
        ([True], {}, r"got \[True\]"),
        ([1, None], {}, r"got \[1, None\]"),
        ([[1], [2, 3]], {}, r"got \[\[1\], \[2, 3\]\]"),
        ([1, NAN], {}, "got nan"),
        ([1, -INF], {}, "got -inf"),
        ([1, -9], {"most": 8}, "up to 8 in size, of any shape; got -9"),
        ([[1]], {"axes": 1, "shape": "(T,)"}, r"\(T,\); got shape \(1, 1\)"),
        (3, {"axes": 1}, r"got shape \(\)"),
    ],
)
def test_no_numbers(value, limits, message):
    with pytest.raises(ValueError, match=f"^numbers must be .*{message}"):
        arguments.check_numbers("numbers", value, **limits)


def test_numbers():
    for value in (2, [2], np.ones((2, 0), "int8"), keras.ops.ones(3)):
        checked = arguments.check_numbers("numbers", value)
        assert checked.dtype == "float64"
        np.testing.assert_array_equal(checked, value)


def test_long_values_are_cut_short():
    text = arguments.described(np.arange(1000).tolist())
    assert len(text) == 80
    assert text.endswith("...")


def test_unknown_keys():
    arguments.check_keys(["width"], ["width", "height"], "Grid")
    with pytest.raises(
        ValueError, match=r"Grid must not .*'widht': did you mean w"
    ):
        arguments.check_keys(["widht"], ["width", "height"], "Grid")
    with pytest.raises(ValueError, match=r"'x'. It may have height, width"):
        arguments.check_keys(["x"], ["width", "height"], "Grid")
