"""Declarations of arguments, and what follows from them."""

import keras
import numpy as np
import pytest

from keras_lengen.checks.arguments import (
    Activation,
    Boolean,
    Choice,
    Constraint,
    Function,
    Initializer,
    Instance,
    Integer,
    Number,
    Numbers,
    OneOrMore,
    Optional,
    OrDefault,
    Regularizer,
    Seed,
    Tuple,
    check_keys,
)
from keras_lengen.layers import (
    ENCODINGS,
    ALiBi,
    OrdinalPositions,
    RandomizedPositions,
    RoPE,
    SelfExtend,
)
from keras_lengen.layers.positions import PositionSampler
from keras_lengen.models import TransformerEncoder, presets
from tests.keras_lengen.bad_inputs import INF, NAN, SIZES

SAMPLER = Instance(PositionSampler, "OrdinalPositions()")
RELU, LEAKY = keras.activations.relu, keras.layers.LeakyReLU()
ZEROS = keras.initializers.Zeros()
ORDINAL = OrdinalPositions()


@pytest.mark.parametrize(
    ("argument", "value", "expected"),
    [
        (Integer(most=2), np.int32(2), 2),
        (Integer(-2, 3), -2, -2),
        (Integer(None), -(2**60), -(2**60)),
        # Tensors have 32 bits, but for explicit bounds.
        (Integer(most=2**40), 2**40, 2**40),
        *((Number(1), value, 2.5) for value in (np.float32(2.5), 2.5)),
        # A tensor of the backends holds no integer of more than 32 bits.
        (Number(1), 2**31 - 1, 2**31 - 1),
        (Number(1), 2**31, 2.0**31),
        *((Number(), value, value) for value in (0.0, -3e38)),
        *((Number(0.25, 1.5), value, value) for value in (0.25, 1.5)),
        (Number(above=0.25, below=1.5), 1, 1),
        # A right number keeps its digits.
        (Number(above=1), 1 + 1e-6, 1 + 1e-6),
        (Boolean(), False, False),
        *((Choice("a", True, None), each, each) for each in ("a", True, None)),
        *((Optional(Integer()), value, value) for value in (None, 3)),
        *((Seed(), seed, seed) for seed in (None, 0, 2**31 - 1)),
        *((Activation(), each, RELU) for each in ("relu", RELU)),
        (Activation(), LEAKY, LEAKY),
        (Initializer(), ZEROS, ZEROS),
        (Function(), max, max),
        (SAMPLER, ORDINAL, ORDINAL),
        (Tuple(Integer()), [np.int8(1), 2], (1, 2)),
        (Tuple(Integer(), empty=True), [], ()),
        (OneOrMore(Integer()), np.int8(3), 3),
        (OneOrMore(Integer()), [1, 2], (1, 2)),
    ],
)
def test_a_right_value_is_returned_as_pythons(argument, value, expected):
    checked = argument.check("size", value)
    assert argument.admits(value)
    assert checked == expected
    assert type(checked) is type(expected)


def test_other_right_values():
    for declaration, name, cls in (
        (Regularizer(), "l2", keras.regularizers.L2),
        (Constraint(), "max_norm", keras.constraints.MaxNorm),
    ):
        assert isinstance(declaration.check("name", name), cls)
    absent = Instance(PositionSampler, "x", absent=OrdinalPositions)
    assert isinstance(absent.check("sampler", None), OrdinalPositions)
    assert OrDefault(Integer(example=2)).examples == (2,)
    for value in (2, [2], np.ones((2, 0), "int8"), keras.ops.ones(3)):
        checked = Numbers(most=2).check("numbers", value)
        assert checked.dtype == "float64"
        np.testing.assert_array_equal(checked, value)


HALF = Number(above=0.5, most=3)
BELOW = Number(above=0.25, below=1.5)
OPTIONAL = Optional(Integer(what="the tokens"))
MANY = "a tuple of one or more values, each a positive integer"
FLOAT32 = "0 or a number from 1.2e-38 to 3.4e+38 in size"


@pytest.mark.parametrize(
    ("argument", "value", "words"),
    [
        *(
            (Integer(), value, f"a positive integer; got {value!r}")
            for value in (0, 2.0, True, np.bool_(True), None, np.array(2))
        ),
        (Integer(), "x" * 99, f"a positive integer; got '{'x' * 76}...."),
        (Integer(0), -1, "an integer of at least 0; got -1"),
        *((Integer(-2, 3), value, "from -2 to 3; got") for value in (-3, 4)),
        (Integer(what="the tokens"), 0, "a positive integer, the tokens; got"),
        (Integer(), 2**31, "an integer from 1 to 2147483647; got"),
        *(
            (HALF, value, "a finite number above 0.5 and at most 3; got")
            for value in (0.5, 4, np.float32(NAN), -INF, 10**400, True, 1j)
        ),
        *((BELOW, value, "above 0.25 and below") for value in (0.25, 1.5)),
        *((Number(1, 2), value, "number from 1 to 2;") for value in (0.9, 2.1)),
        *((Number(), value, FLOAT32) for value in (-1e39, 10**300, 1e-46)),
        # They are rounded to float32 before they are compared.
        (Number(above=1), 1 + 1e-10, "a finite number above 1; got"),
        (Number(below=1), 1 - 1e-10, "a number below 1; got"),
        *((Boolean(), value, "True or False; got") for value in (1, None)),
        (Choice("a", True), 1, '"a" or True; got'),
        (OPTIONAL, 0, "a positive integer, or None, the tokens; got 0"),
        # The inner declaration may say more of a value.
        (Optional(Integer()), 2**31, "to 2147483647, or None; got"),
        (Seed(), -1, "an integer from 0 to 2147483647, or None; got -1"),
        (SAMPLER, RoPE(), "Sampler such as OrdinalPositions(); got a RoPE."),
        (SAMPLER, RandomizedPositions, "call it, RandomizedPositions(...)."),
        *(
            (Activation(), value, 'activation of Keras such as "relu"')
            for value in ("rely", RoPE(), 3, keras.layers.ReLU)
        ),
        *((Initializer(), value, "initializer") for value in ("x", None)),
        *((Regularizer(), value, "regularizer") for value in (RoPE, None)),
        *((Constraint(), value, "constraint") for value in (ALiBi(), None)),
        *((Function(), value, "a function; got") for value in (3, RoPE())),
        (Numbers(), [True], "finite numbers, of any shape; got [True]"),
        (Numbers(), [[1], [2, 3]], "got [[1], [2, 3]]."),
        (Numbers(), [1, -INF], "got -inf."),
        (Numbers(most=8), [-9], "up to 8 in size, of any shape; got -9.0"),
        (Numbers("(T,)", axes=1), [[1]], "numbers, (T,); got shape (1, 1)."),
        *((Tuple(Integer()), value, f"{MANY}; got") for value in (3, (), "12")),
        (Tuple(Integer(what="an id")), (1, -2), f"{MANY}, an id; got -2."),
        (Tuple(Integer()), [2**31], "2147483647; got 2147483648."),
        (Tuple(Boolean(), empty=True), [1], "any number of values, each True"),
        (OneOrMore(Integer()), 0, "integer, or a tuple of one or more; got 0."),
        (OneOrMore(Integer()), (1, -2), "got -2."),
    ],
    ids=str,
)
def test_a_wrong_value_is_refused(argument, value, words):
    assert not argument.admits(value)
    with pytest.raises(ValueError, match=r"^size must be ") as raised:
        argument.check("size", value)
    assert words in str(raised.value)
    # Users see no exception but this one.
    assert raised.value.__suppress_context__


def test_an_attribute_holds_what_was_assigned():
    encoding, other = SelfExtend(window=np.int8(4)), SelfExtend()
    assert (encoding.window, type(encoding.window)) == (4, int)
    with pytest.raises(ValueError, match=r"^window must be .*; got 0\."):
        encoding.window = 0
    assert encoding.window == 4 != other.window
    # A configuration may hold objects.
    config = {**other.get_config(), "sampler": ORDINAL}
    assert SelfExtend.from_config(config).sampler is ORDINAL


def test_an_unknown_name_has_the_nearest_one():
    same = ("hidden_size", "model_dim")
    for wrong, nearest in (("n_head", "num_heads"), same):
        message = rf"'{wrong}'\. Did you mean {nearest}\? It takes "
        with pytest.raises(ValueError, match=message):
            TransformerEncoder(**SIZES, **{wrong: 1})
    keys = ["width", "height"]
    with pytest.raises(ValueError, match=r"Grid must not .*: did you mean w"):
        check_keys(["widht"], keys, "Grid")
    with pytest.raises(ValueError, match=r"'x'. It may have height, width"):
        check_keys(["x"], keys, "Grid")
    with pytest.raises(KeyError, match=r"Did you mean gpt2\? The names are "):
        presets["gpt-2"]
    with pytest.raises(KeyError, match=r"there is no encoding 3\. The names"):
        ENCODINGS[3]
