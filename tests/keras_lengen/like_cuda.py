"""A pytest plugin that makes PyTorch's CPU refuse what a GPU refuses.

A tensor of a GPU cannot become an array of NumPy unless it is moved to the CPU
first, which `keras.ops.convert_to_numpy` does. Tests may read results.
"""

import sys

import pytest


@pytest.fixture(autouse=True)
def _like_cuda(monkeypatch):
    # Not above: doctests of this module are collected without PyTorch too.
    import torch

    for name in ("__array__", "numpy"):
        monkeypatch.setattr(
            torch.Tensor, name, _refuse_library(getattr(torch.Tensor, name))
        )


def _refuse_library(convert):
    def refuse(self, *args, **kwargs):
        if kwargs.get("force"):
            return convert(self, *args, **kwargs)
        for name, function in _list_callers():
            if function == "convert_to_numpy" or name.startswith("tests."):
                break
            if name.startswith("keras_lengen."):
                raise TypeError("a tensor of a GPU cannot be an array of NumPy")
        return convert(self, *args, **kwargs)

    return refuse


def _list_callers():
    """Lists module and function of the callers, the nearest first."""
    frame = sys._getframe(2)
    while frame is not None:
        yield frame.f_globals.get("__name__", ""), frame.f_code.co_name
        frame = frame.f_back
