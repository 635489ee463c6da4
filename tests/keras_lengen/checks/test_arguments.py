"""Declarations of arguments, and what follows from them."""

import fractions
import json

import keras
import numpy as np
import pytest

from keras_lengen.checks.arguments import (
    Activation,
    Argument,
    Boolean,
    Choice,
    Constraint,
    Function,
    Initializer,
    Instance,
    Integer,
    Mistake,
    Number,
    Numbers,
    OneOrMore,
    Optional,
    OrDefault,
    Regularizer,
    Seed,
    Subclass,
    Tuple,
    WithArguments,
    check_keys,
    constructor_arguments,
    described,
)
from keras_lengen.layers import (
    ATTENTIONS,
    ENCODINGS,
    SAMPLERS,
    ALiBi,
    ForgettingAttention,
    MultiHeadAttention,
    OrdinalPositions,
    RandomizedPositions,
    RoPE,
    TransformerBlock,
)
from keras_lengen.layers.positions import PositionSampler
from keras_lengen.models import TransformerEncoder, presets
from tests.keras_lengen.bad_inputs import SIZES

NAN, INF = float("nan"), float("inf")
SAMPLER = Instance(PositionSampler, "OrdinalPositions()")


RELU, LEAKY = keras.activations.relu, keras.layers.LeakyReLU()
ZEROS = keras.initializers.Zeros()
ORDINAL = OrdinalPositions()


def refusal(argument, value):
    """What a declaration says of a wrong value."""
    assert not argument.admits(value)
    with pytest.raises(ValueError) as raised:
        argument.check("size", value)
    # Users see no exception but this one.
    assert raised.value.__suppress_context__
    return str(raised.value)


@pytest.mark.parametrize(
    ("argument", "value", "expected"),
    [
        *((Integer(most=2), value, 2) for value in (2, np.int32(2))),
        *((Integer(-2, 3), value, value) for value in range(-2, 4)),
        (Integer(None), -(2**60), -(2**60)),
        # Tensors have 32 bits, but for explicit bounds.
        (Integer(), 2**31 - 1, 2**31 - 1),
        (Integer(most=2**40), 2**40, 2**40),
        (Number(1), 1, 1),
        *((Number(1), value, 2.5) for value in (2.5, np.float32(2.5))),
        (Number(1), fractions.Fraction(5, 2), 2.5),
        (Number(1), np.int8(1), 1),
        # A tensor of the backends holds no integer of more than 32 bits.
        (Number(1), 2**31 - 1, 2**31 - 1),
        (Number(1), 2**31, 2.0**31),
        (Number(), 0.0, 0.0),
        (Number(), -3e38, -3e38),
        (Number(0.25, 1.5), 0.25, 0.25),
        (Number(0.25, 1.5), 1.5, 1.5),
        (Number(above=0.25, below=1.5), 1, 1),
        (Number(0, below=1), 0, 0),
        (Number(most=1, above=0), 1, 1),
        # A right number keeps its digits.
        (Number(above=1), 1 + 1e-6, 1 + 1e-6),
        (Boolean(), True, True),
        (Boolean(), False, False),
        *((Choice("a", True, None), each, each) for each in ("a", True, None)),
        (Optional(Integer(most=3)), None, None),
        (Optional(Integer(most=3)), np.int32(3), 3),
        *((Seed(), seed, seed) for seed in (None, 0, 2**31 - 1)),
        (Activation(), "relu", RELU),
        (Activation(), RELU, RELU),
        (Activation(), LEAKY, LEAKY),
        (Initializer(), ZEROS, ZEROS),
        (Optional(Initializer()), None, None),
        (Function(), max, max),
        (SAMPLER, ORDINAL, ORDINAL),
        (
            Subclass(MultiHeadAttention),
            ForgettingAttention,
            ForgettingAttention,
        ),
        *(
            (Tuple(Integer()), each, (1, 2))
            for each in ((1, 2), [np.int8(1), 2])
        ),
        (Tuple(Integer()), range(1, 3), (1, 2)),
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
    if isinstance(checked, tuple):
        assert [*map(type, checked)] == [*map(type, expected)]


def test_other_right_values():
    for declaration, name, cls in (
        (Initializer(), "zeros", keras.initializers.Zeros),
        (Regularizer(), "l2", keras.regularizers.L2),
        (Constraint(), "max_norm", keras.constraints.MaxNorm),
    ):
        assert isinstance(declaration.check("name", name), cls)
    absent = Instance(PositionSampler, "x", absent=OrdinalPositions)
    assert isinstance(absent.check("sampler", None), OrdinalPositions)
    assert absent.describe().endswith(", or None")
    for value in (2, [2], np.ones((2, 0), "int8"), keras.ops.ones(3)):
        checked = Numbers(most=2).check("numbers", value)
        assert checked.dtype == "float64"
        np.testing.assert_array_equal(checked, value)


def test_examples():
    argument = Optional(Integer(most=3, example=2, variant=True))
    assert (argument.examples, argument.variant) == ((2, None), True)
    assert OrDefault(Integer(example=2)).examples == (2,)
    assert Boolean().examples == (True, False)
    assert Choice("a", None).examples == ("a", None)
    assert Seed().examples == (3, None)


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        (Integer(), "a positive integer"),
        (Integer(0), "an integer of at least 0"),
        (Integer(4, 9), "an integer from 4 to 9"),
        (Integer(None), "an integer"),
        (Integer(None, 9), "an integer at most 9"),
        (Integer(what="the tokens"), "a positive integer, the tokens"),
        (Number(), "a finite number"),
        (Number(1, 2), "a finite number from 1 to 2"),
        (Number(0, below=1), "a number of at least 0 and below 1"),
        (Number(above=0, most=9), "a finite number above 0 and at most 9"),
        (Number(what="in tokens"), "a finite number, in tokens"),
        (Boolean(), "True or False"),
        (Choice("a", "b", True), '"a", "b" or True'),
        (Optional(Integer()), "a positive integer, or None"),
        (
            Optional(Integer(what="the tokens")),
            "a positive integer, or None, the tokens",
        ),
        (Seed(), "an integer from 0 to 2147483647, or None"),
        (SAMPLER, "a PositionSampler such as OrdinalPositions()"),
        (
            Subclass(MultiHeadAttention),
            "MultiHeadAttention or a subclass of it",
        ),
        (
            Activation(),
            'an activation of Keras such as "relu", or a function',
        ),
        (Initializer(), 'an initializer of Keras such as "glorot_uniform"'),
        (Regularizer(), 'a regularizer of Keras such as "l2"'),
        (Constraint(), 'a constraint of Keras such as "max_norm"'),
        (Function(), "a function"),
        (Numbers("(T,)", most=8), "finite numbers up to 8 in size, (T,)"),
        (
            OneOrMore(Integer()),
            "a positive integer, or a tuple of one or more",
        ),
        (Tuple(Boolean()), "a tuple of one or more values, each True or False"),
        (
            Tuple(Integer(what="an id"), empty=True),
            "a tuple of any number of values, each a positive integer, an id",
        ),
    ],
    ids=str,
)
def test_a_message_says_what_was_expected_and_what_came(argument, words):
    assert refusal(argument, {"x"}) == f"size must be {words}; got {{'x'}}."


NOTHING_LIKE_IT = ["x", [2], 1j, {}]


@pytest.mark.parametrize(
    ("argument", "expected", "values"),
    [
        (
            Integer(),
            "must be a positive integer",
            [0, -1, 2.0, True, np.bool_(True), NAN, None, np.array(2)],
        ),
        (Integer(-2, 3), "from -2 to 3", [-3, 4]),
        (Integer(), "must be an integer from 1 to 2147483647", [2**31]),
        (
            Number(most=3, above=0.5),
            "must be a finite number above 0.5 and at most 3",
            [0.5, 4, NAN, np.float32(NAN), INF, -INF, 10**400, True, None],
        ),
        (Number(0.25, 1.5), "from 0.25 to 1.5", [0, 0.2, 2]),
        (Number(above=0.25, below=1.5), "above 0.25 and below", [0.25, 1.5]),
        (
            Number(),
            "must be 0 or a number from 1.2e-38 to 3.4e+38 in size",
            [1e39, -1e39, 10**300, 1e-46, 5e-324],
        ),
        # They are rounded to float32 before they are compared.
        (Number(above=1), "above 1", [1 + 1e-10]),
        (Number(below=1), "below 1", [1 - 1e-10]),
        (Boolean(), "must be True or False", [1, 0, None, np.ones(2, bool)]),
        (
            Choice("a", True, False),
            'must be "a", True or False',
            [1, 0, None, ["a"], np.array(["a"])],
        ),
        (Optional(Integer(most=3)), "from 1 to 3, or None", [4]),
        # The inner declaration may say more of a value.
        (Optional(Integer()), "to 2147483647, or None", [2**31]),
        (Seed(), "must be an integer from 0 to", [-1, 2**31, 2.0, True]),
        (SAMPLER, "must be a PositionSampler such", [RoPE(), RoPE, None]),
        (Subclass(MultiHeadAttention), "must be Multi", [RoPE, None]),
        (
            Activation(),
            "must be an activation",
            ["rely", RoPE, RoPE(), ORDINAL, 3, keras.layers.ReLU],
        ),
        *(
            (kind(), "must be a", [RoPE, ALiBi(), 3, np.ones(2), None])
            for kind in (Initializer, Regularizer, Constraint)
        ),
        (Function(), "must be a function", [None, 3, RoPE, RoPE()]),
        (
            Tuple(Integer()),
            "must be a tuple of one or more values, each a positive integer",
            [3, (), "12"],
        ),
        (OneOrMore(Integer()), "integer, or a tuple of one or more", [0, "1"]),
    ],
    ids=str,
)
def test_a_wrong_value_is_refused(argument, expected, values):
    others = NOTHING_LIKE_IT if isinstance(argument, Integer | Number) else []
    for value in [*values, *(others if "must be a " in expected else [])]:
        message = refusal(argument, value)
        assert message.startswith("size must be ")
        assert expected in message
        known = isinstance(value, type | keras.layers.Layer)
        assert known or message.endswith(f"; got {described(value)}.")


@pytest.mark.parametrize(
    ("argument", "value", "got"),
    [
        (SAMPLER, RoPE(), "a RoPE"),
        (
            SAMPLER,
            RandomizedPositions,
            "the class RandomizedPositions: call it, RandomizedPositions(...)",
        ),
        (SAMPLER, RoPE, repr(RoPE)),
        (
            Subclass(MultiHeadAttention),
            MultiHeadAttention(1, 2),
            "an object: pass the class, MultiHeadAttention, itself",
        ),
        (Subclass(RoPE), "RoPE", "'RoPE': pass the class, not its name"),
        (Numbers(), "x", "'x'"),
        (Numbers(), [True], "[True]"),
        (Numbers(), [1, None], "[1, None]"),
        (Numbers(), [[1], [2, 3]], "[[1], [2, 3]]"),
        (Numbers(), [1, NAN], "nan"),
        (Numbers(), [1, -INF], "-inf"),
        (Numbers(most=8), [1, -9], "-9.0"),
        (Numbers("(T,)", axes=1), [[1]], "shape (1, 1)"),
        (Numbers(axes=1), 3, "shape ()"),
        (Tuple(Integer()), (1, -2), "-2"),
        (Tuple(Integer()), [["x"]], "['x']"),
        (Tuple(Integer()), [2**31], "2147483648"),
        (OneOrMore(SAMPLER), RoPE(), "a RoPE"),
        (OneOrMore(Integer()), (1, -2), "-2"),
    ],
    ids=str,
)
def test_a_message_says_what_is_wrong_with_a_value(argument, value, got):
    assert refusal(argument, value).endswith(f"; got {got}.")


def test_a_mistake_may_be_a_sentence():
    class Even(Integer):
        def convert(self, value):
            if super().convert(value) % 2:
                raise Mistake(sentence=f"={value} is odd: add 1.")
            return value

    assert refusal(Even(), 3) == "size=3 is odd: add 1."
    assert refusal(Optional(Even()), 3) == "size=3 is odd: add 1."
    assert Even().check("size", 4) == 4


class Grid(WithArguments, keras.layers.Layer):
    """Declares an argument of each kind that a configuration changes."""

    width = Integer(most=9, example=3)
    height = Optional(Integer(most=9))
    sampler = Optional(SAMPLER)
    attention = Subclass(MultiHeadAttention)
    activation = Activation()
    initializer = Initializer()
    ids = Tuple(Integer())

    def __init__(
        self,
        *,
        width=2,
        height=None,
        sampler=None,
        attention=MultiHeadAttention,
        activation="relu",
        initializer="zeros",
        ids=(1,),
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.width = width
        self.height = height
        self.sampler = sampler
        self.attention = attention
        self.activation = activation
        self.initializer = initializer
        self.ids = ids


def test_an_attribute_holds_what_was_assigned():
    grid, other = Grid(width=np.int8(4)), Grid()
    assert (grid.width, other.width) == (4, 2)
    assert type(grid.width) is int
    assert isinstance(grid.initializer, keras.initializers.Zeros)
    with pytest.raises(ValueError, match=r"^width must .* 1 to 9; got 10\."):
        grid.width = 10
    assert grid.width == 4
    assert Grid.width.example == 3


def test_an_attribute_that_nobody_assigned_is_missing():
    class Empty(WithArguments):
        width = Integer()

    assert not hasattr(Empty(), "width")
    with pytest.raises(AttributeError, match="width"):
        Empty().width  # noqa: B018


def test_declarations_are_inherited_and_replaced():
    class Wide(Grid):
        width = Integer(most=99)
        depth = Integer()

        def __init__(self, *, depth=1, **kwargs):
            super().__init__(**kwargs)
            self.depth = depth

    assert [*Wide.arguments()] == [*Grid.arguments(), "depth"]
    assert Wide.arguments()["width"].most == 99
    assert Grid.arguments()["width"].most == 9
    assert Wide(width=50).get_config()["width"] == 50
    assert set(Wide.arguments()) == set(constructor_arguments(Wide))


CHANGES = {
    "width": 5,
    "height": 3,
    "sampler": RandomizedPositions(max_position=7),
    "attention": ForgettingAttention,
    "activation": "gelu",
    "initializer": "ones",
    "ids": (4, 5),
}


@pytest.mark.parametrize("changes", [{}, CHANGES], ids=["default", "changed"])
def test_a_configuration_rebuilds_an_object(changes):
    grid = Grid(**changes, name="grid")
    config = grid.get_config()
    assert config["name"] == "grid"
    assert set(config) >= set(Grid.arguments())
    again = Grid.from_config(json.loads(json.dumps(config)))
    assert json.dumps(again.get_config()) == json.dumps(config)
    for name in ("width", "height", "attention", "activation", "ids"):
        assert getattr(again, name) == getattr(grid, name)
    assert type(again.sampler) is type(grid.sampler)
    assert type(again.initializer) is type(grid.initializer)


def test_a_configuration_may_hold_objects():
    config = {**Grid().get_config(), **CHANGES}
    grid = Grid.from_config(config)
    assert grid.sampler is CHANGES["sampler"]
    assert grid.attention is ForgettingAttention


def test_a_configuration_names_what_it_describes():
    config = Grid(**CHANGES).get_config()
    assert config["attention"] == "keras_lengen>ForgettingAttention"
    assert config["activation"] == "gelu"
    assert config["sampler"]["config"]["max_position"] == 7


def test_a_subclass_of_arguments_implements_two_methods():
    with pytest.raises(NotImplementedError):
        Argument().convert(1)
    with pytest.raises(NotImplementedError):
        Argument().describe()


def test_long_values_are_cut_short():
    text = described(np.arange(1000).tolist())
    assert len(text) == 80
    assert text.endswith("...")


def test_unknown_keys():
    check_keys(["width"], ["width", "height"], "Grid")
    with pytest.raises(
        ValueError, match=r"Grid must not .*'widht': did you mean w"
    ):
        check_keys(["widht"], ["width", "height"], "Grid")
    with pytest.raises(ValueError, match=r"'x'. It may have height, width"):
        check_keys(["x"], ["width", "height"], "Grid")


@pytest.mark.parametrize(
    ("cls", "right", "wrong", "nearest"),
    [
        (ENCODINGS["RandomizedRoPE"], {}, "max_positions", "max_position"),
        (RoPE, {}, "theta", "max_wavelength"),
        (TransformerBlock, {"num_heads": 2}, "n_head", "num_heads"),
        (TransformerEncoder, SIZES, "d_model", "model_dim"),
    ],
)
def test_an_unknown_argument_has_the_nearest_one(cls, right, wrong, nearest):
    message = rf"'{wrong}'\. Did you mean {nearest}\? It takes "
    with pytest.raises(ValueError, match=message):
        cls(**right, **{wrong: 1})


@pytest.mark.parametrize(
    ("objects", "wrong", "nearest"),
    [
        (presets, "gpt-2", " Did you mean gpt2?"),
        (presets, "base", ""),
        (ENCODINGS, "rope", " Did you mean RoPE?"),
        (SAMPLERS, "RandomPositions", " Did you mean RandomizedPositions?"),
        (ATTENTIONS, 3, ""),
    ],
)
def test_an_unknown_name_of_a_public_dict(objects, wrong, nearest):
    with pytest.raises(KeyError) as error:
        objects[wrong]
    names = ", ".join(objects)
    (text,) = error.value.args
    assert text.endswith(f" {wrong!r}.{nearest} The names are {names}.")
