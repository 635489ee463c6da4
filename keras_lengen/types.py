"""Types that the signatures of several modules share.

Keras has no type information, so tensors are `Any` for type checkers. The names
tell readers and editors what an argument or a result is.
"""

from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

Tensor: TypeAlias = Any
"""Tensor of the backend, variable, or symbolic tensor of Keras."""

TensorLike: TypeAlias = Any
"""What Keras converts to a tensor: a tensor, an array, a number, or a list."""

Tensors = TypeVar("Tensors")
"""A tensor, or a structure of tensors and `None`."""

Positions: TypeAlias = Any
"""Tensor of positions, or a `PositionPair` from or for a grid."""

PositionPair: TypeAlias = tuple[Tensor, Tensor]
"""Positions of the rows and of the columns."""

Size: TypeAlias = int | Tensor
"""Size of an axis: an int, or a scalar tensor if a run decides it."""

Shape: TypeAlias = tuple[int | None, ...]
"""Static shape, with `None` for sizes that are not known yet."""

InputShape: TypeAlias = tuple[Any, ...]
"""The same of features, whose number is known: an int."""

Array: TypeAlias = npt.NDArray[Any]
"""NumPy array of any dtype."""

FloatArray: TypeAlias = npt.NDArray[np.float64]
"""NumPy array of float64."""

BoolArray: TypeAlias = npt.NDArray[np.bool_]
"""NumPy array of bool."""

IntArray: TypeAlias = npt.NDArray[np.int64]
"""NumPy array of int64."""

ArrayLike: TypeAlias = npt.ArrayLike
"""What NumPy converts to an array: an array, a number, or nested lists."""
