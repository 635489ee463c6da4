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
)
from keras_lengen.layers.positions import PositionSampler
from keras_lengen.models import presets
from tests.keras_lengen.bad_inputs_constructors import CLASSES

NAN, INF = float("nan"), float("inf")
SAMPLER = Instance(PositionSampler, "OrdinalPositions()")


def refusal(argument, value):
    """What a declaration says of a wrong value."""
    with pytest.raises(ValueError) as raised:
        argument.check("size", value)
    # Users see no exception but this one.
    assert raised.value.__suppress_context__
    return str(raised.value)


@pytest.mark.parametrize("value", [2, np.int32(2), np.uint8(2)])
def test_an_integer_is_returned_as_pythons(value):
    checked = Integer(most=2).check("size", value)
    assert checked == 2
    assert type(checked) is int


@pytest.mark.parametrize(
    "value",
    [0, -1, 2.0, True, np.bool_(True), NAN, "2", None, [2], np.array(2), 1j],
    ids=repr,
)
def test_no_positive_integer(value):
    assert not Integer().admits(value)
    message = f"size must be a positive integer; got {value!r}."
    assert refusal(Integer(), value) == message


def test_bounds_of_integers():
    integer = Integer(-2, 3)
    admitted = [value for value in range(-9, 9) if integer.admits(value)]
    assert admitted == [-2, -1, 0, 1, 2, 3]
    assert Integer(None).admits(-(2**60))
    # Tensors have 32 bits.
    assert Integer().check("size", 2**31 - 1) == 2**31 - 1
    message = "size must be an integer from 1 to 2147483647; got 2147483648."
    assert refusal(Integer(), 2**31) == message


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


@pytest.mark.parametrize(
    "value", [1, 2.5, np.float32(2.5), fractions.Fraction(5, 2), 10**30]
)
def test_a_number_is_returned_as_pythons(value):
    checked = Number(1).check("rate", value)
    assert checked == pytest.approx(value)
    # A tensor of the backends holds no integer of more than 32 bits.
    assert type(checked) is (int if value == 1 else float)


@pytest.mark.parametrize(
    "value",
    [0.5, 4, NAN, np.float32(NAN), INF, -INF, 10**400, True, "2", None, [2]],
    ids=repr,
)
def test_no_number(value):
    message = refusal(Number(most=3, above=0.5), value)
    assert message.startswith("size must be a finite number above 0.5 and at ")
    assert message.endswith(f"; got {described(value)}.")


@pytest.mark.parametrize("value", [1e39, -1e39, 10**300, 1e-46, 5e-324])
def test_no_number_of_float32(value):
    message = refusal(Number(), value)
    assert message.startswith("size must be 0 or a number from 1.2e-38 to 3.4e")


def test_a_number_is_rounded_to_float32_before_it_is_compared():
    message = refusal(Number(above=1), 1 + 1e-10)
    assert message.endswith("above 1; got 1.0000000001.")
    message = refusal(Number(below=1), 1 - 1e-10)
    assert message.endswith("below 1; got 0.9999999999.")
    # A right number keeps its digits.
    assert Number(above=1).check("rate", 1 + 1e-6) == 1 + 1e-6


def test_bounds_of_numbers():
    values = (0, 0.25, 1, 1.5, 2)
    for number, admitted in (
        (Number(0.25, 1.5), [0.25, 1, 1.5]),
        (Number(above=0.25, below=1.5), [1]),
        (Number(most=1, above=0), [0.25, 1]),
        (Number(0, below=1), [0, 0.25]),
    ):
        assert [each for each in values if number.admits(each)] == admitted


@pytest.mark.parametrize("value", [1, 0, "True", None, np.ones(2, bool)])
def test_no_boolean(value):
    assert not Boolean().admits(value)


def test_booleans():
    assert Boolean().check("flag", True) is True
    assert Boolean().check("flag", False) is False
    assert Boolean().examples == (True, False)


@pytest.mark.parametrize("value", ["c", 1, 0, None, ["a"], np.array(["a"])])
def test_no_choice(value):
    assert not Choice("a", True, False).admits(value)


def test_choices():
    choices = ("a", True, None)
    for choice in choices:
        assert Choice(*choices).check("mode", choice) is choice
    assert Choice(*choices).examples == choices


def test_an_optional_argument():
    argument = Optional(Integer(most=3, example=2, variant=True))
    assert argument.check("size", None) is None
    assert argument.check("size", np.int32(3)) == 3
    assert argument.examples == (2, None)
    assert argument.variant
    assert refusal(argument, 4) == (
        "size must be an integer from 1 to 3, or None; got 4."
    )
    # The inner declaration may say more of a value.
    assert refusal(Optional(Integer()), 2**31) == (
        "size must be an integer from 1 to 2147483647, or None; got 2147483648."
    )


@pytest.mark.parametrize("value", [-1, 2**31, 2.0, True, "x"])
def test_no_seed(value):
    assert not Seed().admits(value)


def test_seeds():
    assert Seed().check("seed", 2**31 - 1) == 2**31 - 1
    assert Seed().check("seed", 0) == 0
    assert Seed().check("seed", None) is None


@pytest.mark.parametrize(
    ("value", "got"),
    [
        ("x", "'x'"),
        (RoPE(), "a RoPE"),
        (
            RandomizedPositions,
            "the class RandomizedPositions: call it, RandomizedPositions(...)",
        ),
        (RoPE, repr(RoPE)),
        (None, "None"),
    ],
)
def test_no_instance(value, got):
    assert refusal(SAMPLER, value).endswith(f"; got {got}.")


@pytest.mark.parametrize("value", [RoPE, RoPE(), "x", MultiHeadAttention(1, 2)])
def test_no_subclass(value):
    assert not Subclass(MultiHeadAttention).admits(value)


@pytest.mark.parametrize(
    "value",
    ["rely", RoPE, RoPE(), OrdinalPositions(), 3, {}, keras.layers.ReLU],
)
def test_no_activation(value):
    assert refusal(Activation(), value).startswith("size must be an activation")


def test_activations():
    function = keras.activations.relu
    layer = keras.layers.LeakyReLU()
    assert Activation().check("activation", "relu") is function
    assert Activation().check("activation", function) is function
    assert Activation().check("activation", layer) is layer


@pytest.mark.parametrize(
    "value", ["zeroes", RoPE, ALiBi(), 3, {}, np.ones(2), None]
)
def test_no_initializer(value):
    assert refusal(Initializer(), value).startswith("size must be an init")


def test_initializers():
    zeros = Initializer().check("initializer", "zeros")
    assert isinstance(zeros, keras.initializers.Zeros)
    assert Initializer().check("initializer", zeros) is zeros
    assert Optional(Initializer()).check("initializer", None) is None


@pytest.mark.parametrize("value", [None, "x", 3, RoPE, RoPE()])
def test_no_function(value):
    assert not Function().admits(value)


def test_functions():
    assert Function().check("raw_attention", max) is max


@pytest.mark.parametrize(
    ("value", "limits", "message"),
    [
        ("x", {}, "got 'x'."),
        (["x"], {}, "got ['x']."),
        ([True], {}, "got [True]."),
        ([1, None], {}, "got [1, None]."),
        ([[1], [2, 3]], {}, "got [[1], [2, 3]]."),
        ([1, NAN], {}, "got nan."),
        ([1, -INF], {}, "got -inf."),
        ([1, -9], {"most": 8}, "up to 8 in size, of any shape; got -9.0."),
        ([[1]], {"axes": 1, "shape": "(T,)"}, "(T,); got shape (1, 1)."),
        (3, {"axes": 1}, "got shape ()."),
    ],
)
def test_no_numbers(value, limits, message):
    assert refusal(Numbers(**limits), value).endswith(message)


def test_numbers():
    for value in (2, [2], np.ones((2, 0), "int8"), keras.ops.ones(3)):
        checked = Numbers(most=2).check("numbers", value)
        assert checked.dtype == "float64"
        np.testing.assert_array_equal(checked, value)


@pytest.mark.parametrize(
    ("value", "got"),
    [("12", "'12'"), (3, "3"), ((), "()"), ((1, -2), "-2"), ([["x"]], "['x']")],
)
def test_no_tuple(value, got):
    assert refusal(Tuple(Integer()), value) == (
        "size must be a tuple of one or more values, each a positive integer; "
        f"got {got}."
    )


def test_tuples():
    for value in ((1, 2), [np.int8(1), 2], range(1, 3)):
        checked = Tuple(Integer()).check("ids", value)
        assert checked == (1, 2)
        assert set(map(type, checked)) == {int}
    assert Tuple(Integer(), empty=True).check("ids", []) == ()
    # The inner declaration may say more of a value.
    assert refusal(Tuple(Integer()), [2**31]).endswith(
        "each an integer from 1 to 2147483647; got 2147483648."
    )


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


def test_an_unknown_argument_of_every_class():
    for cls, right in CLASSES.values():
        with pytest.raises(
            ValueError, match=r"^\w+ has no argument 'lenght'\."
        ):
            cls(**right, lenght=1)


@pytest.mark.parametrize(
    ("name", "wrong", "nearest"),
    [
        ("RandomizedRoPE", "max_positions", "max_position"),
        ("RoPE", "theta", "max_wavelength"),
        ("TransformerBlock", "n_head", "num_heads"),
        ("TransformerEncoder", "d_model", "model_dim"),
    ],
)
def test_an_unknown_argument_has_the_nearest_one(name, wrong, nearest):
    cls, right = CLASSES[name]
    with pytest.raises(
        ValueError, match=rf"'{wrong}'\. Did you mean {nearest}\? It takes "
    ):
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
