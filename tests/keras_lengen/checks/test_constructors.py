"""Constructors that follow from the declarations in a class body."""

import inspect
from typing import Literal

import keras
import pytest

from keras_lengen.checks.arguments import Integer, Number, OrDefault
from keras_lengen.checks.constructors import WithArguments, argument


class Window(WithArguments, keras.layers.Layer):
    size: int = argument(Integer(most=9), kw_only=False)
    shape_: str | None = argument(
        OrDefault(Number()), default=None, alias="shape"
    )
    kind: Literal["past", "both"] | bool | None = argument(default="past")


class Wide(Window):
    size: int = argument(default=8)
    gated: bool = argument(default=False)

    def __post_init__(self):
        super().__post_init__()
        self.doubled = 2 * self.size


class Own(Wide):
    """A class with a constructor of its own."""

    slope = Number(least=0)

    def __init__(self, *, slope=0.5, **kwargs):
        super().__init__(**kwargs)
        self.slope = slope


def test_signatures_have_all_arguments():
    assert str(inspect.signature(Window)).startswith(
        "(size: int, *, shape: str | None = None, kind: "
    )
    assert [*inspect.signature(Own).parameters] == [
        *("slope", "size", "gated", "shape", "kind", "kwargs")
    ]
    # Callable objects have the signature of their call.
    assert "size" not in inspect.signature(Window(2).call).parameters
    assert not hasattr(Window(2), "__signature__")


def test_arguments_are_assigned_and_kept():
    assert (Window(3, name="w").size, Window(3).shape_, Wide().size) == (
        *(3, None, 8),
    )
    layer = Own.from_config(
        Own(slope=2, size=4, kind=None, shape=3).get_config()
    )
    assert (layer.slope, layer.doubled, layer.kind, layer.shape_) == (
        *(2, 8, None, 3),
    )


def declare_number():
    class Number(Window):
        length: int = argument()


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: Window(), "Window: missing a required argument: 'size'"),
        (lambda: Window(2, 3), "Window: too many positional arguments"),
        (lambda: Window(2, size=3), "multiple values for argument 'size'"),
        (lambda: Window(10), "size must be an integer from 1 to 9; got 10"),
        (lambda: Window(2, shape="x"), "shape must be a finite number"),
        (lambda: Wide(kind="future"), '"past", "both", True, False or None'),
        (lambda: Own(gatd=True), "no argument 'gatd'. Did you mean gated?"),
        (declare_number, "an argument of type <class 'int'> needs a declar"),
    ],
)
def test_bad_arguments(make, error):
    with pytest.raises((TypeError, ValueError, RuntimeError)) as raised:
        make()
    assert error in f"{raised.value} {raised.value.__cause__}"
