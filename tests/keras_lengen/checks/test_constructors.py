"""Constructors that follow from the declarations in a class body."""

import inspect
import re
from typing import Literal

import keras
import pytest

from keras_lengen.checks.arguments import Integer, Number, OrDefault
from keras_lengen.checks.constructors import WithArguments, argument


class Window(WithArguments, keras.layers.Layer):
    size: int = argument(Integer(most=9), kw_only=False)
    shape_: float | None = argument(
        OrDefault(Number()), default=None, alias="shape"
    )
    kind: Literal["past", "both"] | bool | None = argument(default="past")


class Wide(Window):
    size: int = argument(default=8)
    gated: "bool" = argument(default=False)
    steps = argument(Integer(most=9), default=7)


def test_signatures_and_configurations_have_all_arguments():
    assert str(inspect.signature(Window)).startswith(
        "(size: int, *, shape: float | None = None, kind: "
    )
    names = ["size", "gated", "steps", "shape", "kind"]
    assert [*inspect.signature(Wide).parameters] == [*names, "kwargs"]
    # Callable objects have the signature of their call.
    assert not hasattr(Window(3, name="w"), "__signature__")
    given = {"size": 2, "gated": True, "steps": 3, "shape": 4, "kind": None}
    config = Wide.from_config(Wide(**given).get_config()).get_config()
    assert {name: config[name] for name in names} == given
    assert (Wide().size, Wide().shape_, Wide().steps) == (8, None, 7)


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (Window, "Window: missing a required argument: 'size'"),
        (lambda: Wide(2, 3), "Wide: too many positional arguments"),
        (lambda: Window(2, size=3), "multiple values for argument 'size'"),
        (lambda: Wide(steps=10), "steps must be an integer from 1 to 9"),
        (lambda: Window(2, shape="x"), "shape must be a finite number"),
        (lambda: Wide(kind="future"), '"past", "both", True, False or None'),
        (lambda: Wide(gatd=True), "no argument 'gatd'. Did you mean gated?"),
    ],
)
def test_bad_arguments(make, error):
    with pytest.raises((TypeError, ValueError), match=re.escape(error)):
        make()
