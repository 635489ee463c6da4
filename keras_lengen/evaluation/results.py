"""Results of an evaluation at many lengths."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from keras_lengen.checks.arguments import Number
from keras_lengen.evaluation.intervals import Estimate
from keras_lengen.evaluation.plot import draw_lengths


class LengthResults:
    """Metrics at many lengths, each with a confidence interval.

    `results["accuracy"]` is a dict from lengths, increasing, to `Estimate`s:
    the value, and the ends of its 95% interval. The interval is that of
    randomly chosen examples, for one trained model; it is `nan` if there are
    fewer than two examples, or metrics whose states are no sums.
    `print(results)` shows a table.

    Attributes:
        metrics: Dict from names, `loss` among them, to such dicts.
        examples: Dict from lengths to numbers of examples.
        trained: Trained lengths, increasing; empty: not known.
        lower_is_better: Names of metrics that are better when lower.
    """

    def __init__(
        self,
        metrics: Mapping[str, Mapping[int, Estimate]],
        examples: Mapping[int, int],
        trained: Sequence[int] = (),
        lower_is_better: Sequence[str] = ("loss",),
    ) -> None:
        self.metrics = {name: dict(found) for name, found in metrics.items()}
        self.examples = dict(examples)
        self.trained = tuple(trained)
        self.lower_is_better = tuple(lower_is_better)

    def __getitem__(self, metric: str) -> dict[int, Estimate]:
        if metric not in self.metrics:
            raise KeyError(
                f"no metric {metric!r}; there are {', '.join(self.metrics)}."
            )
        return self.metrics[metric]

    def __str__(self) -> str:
        header = ("length", "examples", *self.metrics)
        rows = [
            (
                f"{length}{'*' if length in self.trained else ''}",
                str(count),
                *(_describe(found[length]) for found in self.metrics.values()),
            )
            for length, count in self.examples.items()
        ]
        widths = [
            max(map(len, column)) for column in zip(header, *rows, strict=True)
        ]
        lines = (
            "  ".join(map(str.rjust, row, widths)) for row in (header, *rows)
        )
        note = "\n* trained; in brackets: 95% intervals" if self.trained else ""
        return "\n".join(lines) + note

    def rows(self) -> list[dict[str, Any]]:
        """Returns one dict for each metric and length, for a data frame."""
        return [
            {
                "length": length,
                "metric": name,
                **estimate._asdict(),
                "examples": self.examples[length],
                "trained": length in self.trained,
            }
            for name, found in self.metrics.items()
            for length, estimate in found.items()
        ]

    def logs(self) -> dict[str, float]:
        """Returns values by names like `length_160_accuracy`."""
        return {
            f"length_{length}_{name}": estimate.value
            for name, found in self.metrics.items()
            for length, estimate in found.items()
        }

    def usable_length(
        self, share: float = 0.9, metric: str | None = None
    ) -> int:
        """Returns the longest length up to which the model remains usable.

        Up to there, at every measured length, the metric is at least `share` of
        its mean at trained lengths; a metric that is better when lower is at
        most its mean divided by `share`. A model that has learned nothing keeps
        its metric at every length: compare the metric with a floor, too.

        Args:
            share: float, above 0, at most 1.
            metric: Name of the metric; `None`: the first one besides the loss
                or, if there is none, the loss.

        Returns:
            int. A measured length; 0 if not even the shortest is usable.

        Raises:
            ValueError: If no trained length was measured.
        """
        share = Number(above=0, most=1).check("share", share)
        name = self.choose_metric(metric)
        values = {n: estimate.value for n, estimate in self[name].items()}
        known = [value for n, value in values.items() if n in self.trained]
        if not known:
            raise ValueError(
                "a usable length needs the metric at a trained length: give "
                "`trained`, and measure one of these lengths; measured were "
                f"{sorted(values)}, trained {_describe_lengths(self.trained)}."
            )
        mean = math.fsum(known) / len(known)
        usable = 0
        for length, value in values.items():
            if name in self.lower_is_better:
                is_usable = value <= mean + abs(mean) * (1 / share - 1)
            else:
                is_usable = value >= mean - abs(mean) * (1 - share)
            if not is_usable:
                break
            usable = length
        return usable

    def plot(
        self,
        metric: str | None = None,
        *,
        floor: float | Mapping[int, float] | None = None,
        label: str | None = None,
        axes: Any = None,
    ) -> Any:
        """Draws a metric against length; trained lengths are shaded.

        Args:
            metric: Name of the metric; `None`: see `usable_length`.
            floor: float, or dict from lengths to floats. What a trivial
                predictor reaches, drawn as a dashed line.
            label: Name of the curve in the legend; `None`: none.
            axes: `matplotlib.axes.Axes` to draw into, with other curves or
                none; `None`: those of a new figure.

        Returns:
            The `matplotlib.axes.Axes`.

        Raises:
            ImportError: If matplotlib is not installed.
        """
        name = self.choose_metric(metric)
        return draw_lengths(
            self[name],
            trained=self.trained,
            ylabel=name.replace("_", " "),
            floor=floor,
            label=label,
            axes=axes,
        )

    def choose_metric(self, metric: str | None = None) -> str:
        """Returns the name of a metric: the given one, or the main one."""
        if metric is not None:
            self[metric]
            return metric
        return next((name for name in self.metrics if name != "loss"), "loss")


def _describe(estimate: Estimate) -> str:
    value, low, high = estimate
    if math.isnan(low):
        return f"{value:.4g}"
    return f"{value:.4g} [{low:.4g}, {high:.4g}]"


def _describe_lengths(lengths: Sequence[int]) -> str:
    if not lengths:
        return "not given"
    if len(lengths) > 5:
        return f"{lengths[0]} to {lengths[-1]}"
    return ", ".join(map(str, lengths))
