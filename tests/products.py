"""Marks most rows of a table `product`, so that the default run has a few.

`.ci/run` runs all of them.
"""

import pytest


def product(values, keep):
    """Parameters that are marked `product` unless the default run keeps them.

    Args:
        values: Values for `pytest.mark.parametrize`: one value or a tuple of
            values a case, or `pytest.param`.
        keep: The cases of the default run: some of `values`, or a function
            that is called with the values of a case.

    Returns:
        A list of `pytest.param`.
    """
    cases = [as_param(value) for value in values]
    if not callable(keep):
        kept = [as_param(value).values for value in keep]
        for case in kept:
            if case not in [case.values for case in cases]:
                raise ValueError(f"{case} is to be kept, but is not a case.")
        return product(cases, lambda *values: values in kept)
    return [
        case
        if keep(*case.values)
        else pytest.param(
            *case.values, id=case.id, marks=[*case.marks, pytest.mark.product]
        )
        for case in cases
    ]


def mark_slow(values, names):
    """Marks the cases `slow` in which one of some names occurs.

    Args:
        values: As for `product`.
        names: Names of encodings or samplers.

    Returns:
        A list of `pytest.param`.
    """
    return [
        pytest.param(
            *case.values, id=case.id, marks=[*case.marks, pytest.mark.slow]
        )
        if any(isinstance(v, str) and v in names for v in case.values)
        else case
        for case in map(as_param, values)
    ]


def as_param(value):
    if hasattr(value, "values") and hasattr(value, "marks"):
        return value
    return pytest.param(*value if isinstance(value, tuple) else (value,))
