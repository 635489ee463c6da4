"""Tests of what is refused, each a table of cases."""

import functools
import inspect

import pytest

from tests.keras_lengen.bad_inputs import find_message


def refuses(*rows):
    """Returns a decorator of a test in which every row raises `ValueError`.

    A row has values of the test's first arguments, and a regular expression
    for the message, which must be one line.
    """

    def decorate(test):
        signature = inspect.signature(test)
        own = [*signature.parameters.values()]
        names = [each.name for each in own[: len(rows[0]) - 1]]
        message = inspect.Parameter("message", inspect.Parameter.KEYWORD_ONLY)

        @functools.wraps(test)
        def refused(message, **arguments):
            with pytest.raises(ValueError, match=message) as error:
                test(**arguments)
            assert "\n" not in find_message(error.value)

        refused.__signature__ = signature.replace(parameters=[*own, message])
        return pytest.mark.parametrize([*names, "message"], rows)(refused)

    return decorate
