"""A callback that measures a model at many lengths while it trains."""

from collections.abc import Iterable
from typing import Any

import keras

from keras_lengen.checks.arguments import Integer
from keras_lengen.evaluation.evaluate import (
    evaluate_by_length,
    read_lengths,
    read_trained,
)
from keras_lengen.evaluation.results import LengthResults


class LengthSweep(keras.callbacks.Callback):
    """Measures the compiled loss and metrics at many lengths during `fit`.

    At the end of epochs it calls `evaluate_by_length` and adds the values to
    the logs, by names like `length_160_accuracy`: `History`, `CSVLogger`,
    `TensorBoard`, `EarlyStopping` and the callbacks of other packages see them
    there, if they stand behind it in the list of callbacks.

    Args:
        data: The examples: see `evaluate_by_length`.
        lengths: int or ints, at least 1; `None`: all that `data` has.
        trained: Lengths that the model is trained on: the longest one, or all
            of them. The results refer to them.
        every: int, at least 1. Number of epochs between two measurements.
            The first and the last epoch are always measured.
        batch_size: int, at least 1. Maximum number of examples of a batch.
        padding_value: float. Number that inputs are padded with.

    Attributes:
        results: The last `LengthResults`; `None` before the first.
        history: Dict from epochs, counted from 0, to `LengthResults`.

    Raises:
        ValueError: If an argument is invalid. When the first epoch ends, for
            the reasons that `evaluate_by_length` lists.

    Example:

    >>> import keras
    >>> import numpy as np
    >>> from keras_lengen.evaluation import LengthSweep
    >>> def sample(length):
    ...     bits = np.random.default_rng(length).integers(0, 2, (64, length))
    ...     return bits, bits[:, -1]
    >>> model = keras.Sequential(
    ...     [keras.layers.Embedding(2, 8), keras.layers.LSTM(8),
    ...      keras.layers.Dense(1)])
    >>> model.compile(
    ...     "adam", keras.losses.BinaryCrossentropy(from_logits=True),
    ...     metrics=["accuracy"])
    >>> sweep = LengthSweep(sample, lengths=[8, 16, 32], trained=8)
    >>> history = model.fit(*sample(8), callbacks=[sweep], verbose=0)
    >>> "length_32_accuracy" in history.history
    True
    >>> sweep.results.usable_length() in (8, 16, 32)
    True
    """

    def __init__(
        self,
        data: Any,
        lengths: Iterable[int] | int | None = None,
        *,
        trained: Iterable[int] | int | None = None,
        every: int = 1,
        batch_size: int = 32,
        padding_value: float = 0,
    ) -> None:
        super().__init__()
        self.data = data
        self.lengths = (
            None if lengths is None else read_lengths("lengths", lengths)
        )
        self.trained = None if trained is None else read_trained(trained)
        self.every = Integer().check("every", every)
        self.batch_size = Integer().check("batch_size", batch_size)
        self.padding_value = padding_value
        self.history: dict[int, LengthResults] = {}

    @property
    def results(self) -> LengthResults | None:
        """The last results."""
        return self.history[max(self.history)] if self.history else None

    def usable_length(
        self, share: float = 0.9, metric: str | None = None
    ) -> int:
        """Returns `LengthResults.usable_length` of the last results."""
        return self._last().usable_length(share, metric)

    def plot(self, metric: str | None = None, **kwargs: Any) -> Any:
        """Draws the last results: see `LengthResults.plot`."""
        return self._last().plot(metric, **kwargs)

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        self.history.clear()

    def on_epoch_end(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        # The first, because `CSVLogger` takes its columns from it.
        is_due = not self.history or (epoch + 1) % self.every == 0
        if is_due or epoch + 1 == self.params["epochs"]:
            self._measure(epoch)
            if logs is not None:
                logs.update(self.history[epoch].logs())

    def _measure(self, epoch: int) -> None:
        self.history[epoch] = evaluate_by_length(
            self.model,
            self.data,
            self.lengths,
            trained=self.trained,
            batch_size=self.batch_size,
            padding_value=self.padding_value,
        )

    def _last(self) -> LengthResults:
        if self.results is None:
            raise ValueError("nothing is measured yet: `fit` the model first.")
        return self.results
