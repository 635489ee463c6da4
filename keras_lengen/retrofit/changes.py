"""Changes of the layers of a model that can be undone."""

from collections.abc import Callable
from typing import Any

import keras

MARK = "_keras_lengen_parts"
"""Attribute of a changed layer: the layers that its changes use."""


class Changes:
    """Replaces methods of single layers, and puts the class's own ones back."""

    def __init__(self) -> None:
        self._replaced: list[tuple[Any, str]] = []
        self._frozen: list[tuple[Any, bool]] = []

    def replace(
        self, owner: Any, name: str, function: Callable[..., Any]
    ) -> None:
        """Replaces a method of one object."""
        setattr(owner, name, function)
        self._replaced.append((owner, name))

    def attach(self, owner: Any, parts: list[keras.layers.Layer]) -> None:
        """Lets a layer own others, so that their variables are its own.

        Training with JAX, and optimizers, find variables through the layers.
        """
        tracker = owner._tracker
        # A built layer takes no new variables.
        locked, tracker.locked = tracker.locked, False
        setattr(owner, MARK, parts)
        tracker.locked = locked
        self._replaced.append((owner, MARK))

    def freeze(self, variable: Any) -> None:
        """Keeps a variable that is not used from being trained."""
        self._frozen.append((variable, variable.trainable))
        variable.trainable = False

    def undo(self) -> None:
        """Removes everything that was replaced and attached, and unfreezes."""
        for owner, name in reversed(self._replaced):
            if name == MARK:
                for part in getattr(owner, MARK):
                    owner._tracker.untrack(part)
            delattr(owner, name)
        for variable, trainable in self._frozen:
            variable.trainable = trainable
        self._replaced.clear()
        self._frozen.clear()
