"""Chooses one layer of each kind for the default run."""

import pytest


def list_kinds(variants, make, base):
    """Parameters of which the default run has one of each kind.

    Layers with equal attributes take the same road through all other layers.

    Args:
        variants: Names of layers.
        make: Makes the layer of a name.
        base: Their base class, whose attributes say what a layer may promise.

    Returns:
        A list of `pytest.param`; all but the first of a kind are marked
        `product`.
    """
    promises = [
        name
        for name, value in vars(base).items()
        if not name.startswith("_")
        and isinstance(value, bool | int | tuple | type(None))
    ]
    known, parameters = set(), []
    for variant in variants:
        layer = make(variant)
        kind = tuple(getattr(layer, name) for name in promises)
        marks = [pytest.mark.product] if kind in known else []
        known.add(kind)
        parameters.append(pytest.param(variant, marks=marks))
    return parameters
