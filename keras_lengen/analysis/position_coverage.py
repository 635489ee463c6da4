"""Coverage of a test length's positions, distances and phases by training."""

import collections
import dataclasses
import itertools
import os
import pathlib
import warnings
from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from keras_lengen.checks.arguments import (
    Instance,
    Integer,
    Number,
)
from keras_lengen.layers.encodings.sinusoidal_encoding import (
    MaxWavelength,
    check_even,
    frequencies,
)
from keras_lengen.layers.positions.base import PositionSampler
from keras_lengen.types import BoolArray, FloatArray, IntArray

LARGEST_TABLE = 2**24
"""Largest number of intervals in which values are counted."""


# eq=False, because comparing arrays does not give a single truth value.
@dataclasses.dataclass(frozen=True, eq=False)
class Coverage:
    """How often values of a quantity occur in training and in a test.

    Attributes:
        quantity: str. Name of the quantity, such as `"distance"`.
        edges: float64 `(V + 1,)`. Bounds of `V` intervals of equal width.
        train_counts: int64 `(V,)`, or `(P, V)` for `P` feature pairs. Number
            of values in each interval in the sampled training sequences.
        test_counts: The same numbers for the test sequences.
    """

    quantity: str
    edges: FloatArray
    train_counts: IntArray
    test_counts: IntArray

    @property
    def unseen(self) -> BoolArray:
        """Intervals with test values but no training values: bool."""
        return (self.test_counts > 0) & (self.train_counts == 0)

    @property
    def unseen_share(self) -> FloatArray:
        """Fraction of test values in unseen intervals: float64 `()`, `(P,)`."""
        counts = self.test_counts
        return (counts * self.unseen).sum(axis=-1) / counts.sum(axis=-1)


def position_coverage(
    sampler: PositionSampler,
    *,
    train_lengths: Collection[int],
    test_length: int,
    draws: int = 1000,
    resolution: float = 1.0,
) -> Coverage:
    """Counts the positions in training and at a test length.

    Positions are the inputs of absolute encodings; for `LearnedEncoding`, they
    are the rows of its table.

    Args:
        sampler: `PositionSampler`. It is called as in training and as in
            evaluation, which advances its random state.
        train_lengths: Non-empty list of int. Training lengths, in tokens,
            used in turn.
        test_length: int, at least 1. Test length, in tokens.
        draws: int, at least 1. Number of sequences to draw for training, and
            for the test. If the sampler is deterministic, each length is
            counted once instead.
        resolution: float, above 0. Width of the intervals in which positions
            are counted, in positions.

    Returns:
        `Coverage` of sequences without padding.

    Raises:
        ValueError: If an argument is out of range, or the sampler does not
            return one number per token.

    Warns:
        UserWarning: If test values lie in intervals without training values.
            For a sampler that draws: if the fraction of these values exceeds
            twice the fraction expected by chance plus 0.001.

    Example:

    >>> from keras_lengen.analysis import position_coverage
    >>> from keras_lengen.layers import RandomizedPositions
    >>> sampler = RandomizedPositions(max_position=50, seed=0)
    >>> coverage = position_coverage(
    ...     sampler, train_lengths=[5, 10], test_length=50, draws=200)
    >>> coverage.edges[[0, -1]].tolist(), coverage.unseen_share.item()
    ([0.0, 50.0], 0.0)
    """
    train, test = _draw_sequences(sampler, train_lengths, test_length, draws)
    coverage = _count_values(
        "position", lambda positions: positions, train, test, resolution
    )
    return _warn_if_unseen(coverage, sampler, train_lengths, test_length)


def distance_coverage(
    sampler: PositionSampler,
    *,
    train_lengths: Collection[int],
    test_length: int,
    draws: int = 1000,
    resolution: float = 1.0,
) -> Coverage:
    """Counts the distances between tokens in training and at a test length.

    Distances are the absolute differences of the positions of all pairs of
    tokens; each pair, including a token with itself, counts once. They are the
    inputs of relative encodings and biases.

    Args:
        sampler: `PositionSampler`. It is called as in training and as in
            evaluation, which advances its random state.
        train_lengths: Non-empty list of int. Training lengths, in tokens,
            used in turn.
        test_length: int, at least 1. Test length, in tokens.
        draws: int, at least 1. Number of sequences to draw for training, and
            for the test. If the sampler is deterministic, each length is
            counted once instead.
        resolution: float, above 0. Width of the intervals in which distances
            are counted, in positions.

    Returns:
        `Coverage` of sequences without padding.

    Raises:
        ValueError: As `position_coverage`.

    Warns:
        UserWarning: As `position_coverage`.

    Example:

    >>> from keras_lengen.analysis import distance_coverage
    >>> from keras_lengen.layers import InterpolatedPositions
    >>> coverage = distance_coverage(
    ...     InterpolatedPositions(train_length=2),
    ...     train_lengths=[2], test_length=4)
    >>> coverage.train_counts.tolist(), coverage.test_counts.tolist()
    ([2, 1], [7, 3])
    """
    train, test = _draw_sequences(sampler, train_lengths, test_length, draws)
    coverage = _count_values(
        "distance", _compute_distances, train, test, resolution
    )
    return _warn_if_unseen(coverage, sampler, train_lengths, test_length)


def phase_coverage(
    sampler: PositionSampler,
    *,
    width: int,
    train_lengths: Collection[int],
    test_length: int,
    max_wavelength: float = 10000,
    draws: int = 1000,
    num_phases: int = 16,
) -> Coverage:
    """Counts the phases of `RoPE` in training and at a test length.

    Feature pair `m` is rotated by
    `distance * max_wavelength ** (-2 * m / width)` radians between query and
    key, and scores depend on this angle modulo a full turn. In short sequences
    the pairs of low frequency make only a fraction of a turn, so longer
    sequences have phases that training does not cover.

    Args:
        sampler: `PositionSampler`. It is called as in training and as in
            evaluation, which advances its random state.
        width: int, even. Number of rotated features of a head; they form
            `P = width / 2` pairs, in order of decreasing frequency.
        train_lengths: Non-empty list of int. Training lengths, in tokens,
            used in turn.
        test_length: int, at least 1. Test length, in tokens.
        max_wavelength: float, above 1. Base of the geometric series of
            frequencies.
        draws: int, at least 1. Number of sequences to draw for training, and
            for the test. If the sampler is deterministic, each length is
            counted once instead.
        num_phases: int, at least 1. Number of intervals of a full turn.

    Returns:
        `Coverage` of sequences without padding, with `V = num_phases`
        intervals from 0 to `2 * pi` radians and counts for each pair.

    Raises:
        ValueError: As `position_coverage`.

    Warns:
        UserWarning: As `position_coverage`, if this holds for any pair.

    Example:

    >>> from keras_lengen.analysis import phase_coverage
    >>> from keras_lengen.layers import OrdinalPositions
    >>> coverage = phase_coverage(
    ...     OrdinalPositions(), width=4, train_lengths=[20], test_length=20)
    >>> (coverage.train_counts > 0).sum(axis=-1).tolist()
    [16, 1]
    """
    max_wavelength = MaxWavelength().check("max_wavelength", max_wavelength)
    width = Integer(what="the rotated features of a head").check("width", width)
    check_even(width, "width")
    num_phases = Integer(what="the intervals of a turn").check(
        "num_phases", num_phases
    )
    rates = frequencies(width, max_wavelength).astype("float64")
    turn = 2 * np.pi

    def count_phases(samples: list[FloatArray]) -> IntArray:
        total = np.zeros((len(rates), num_phases), "int64")
        for positions in samples:
            # Equal distances have equal phases, and there are fewer distances
            # than pairs of tokens.
            distances, pairs = np.unique(
                _compute_distances(positions), return_counts=True
            )
            phases = np.outer(rates, distances) % turn
            places = np.minimum(phases * num_phases / turn, num_phases - 1)
            for pair, row in enumerate(places.astype("int64")):
                np.add.at(total[pair], row, pairs)
        return total

    train, test = _draw_sequences(sampler, train_lengths, test_length, draws)
    coverage = Coverage(
        "phase",
        np.linspace(0, turn, num_phases + 1),
        count_phases(train),
        count_phases(test),
    )
    return _warn_if_unseen(coverage, sampler, train_lengths, test_length)


def plot_coverage(
    path: str | os.PathLike[str], coverage: Coverage, *, title: str
) -> pathlib.Path:
    """Plots which values of a test length training covers.

    For positions and distances, the plot shows the relative frequencies in
    training and test and shades unseen intervals. For phases, it is a map of
    feature pairs and phases, which shows which of them occur in training and in
    the test.

    Args:
        path: str or path. PNG file to write.
        coverage: `Coverage`.
        title: str. Title of the plot.

    Returns:
        `pathlib.Path` of the file.

    Raises:
        ImportError: If matplotlib is not installed.
        ValueError: If `path` is not the path of a file in a folder that
            exists, `title` is not a string, or `coverage` is not a `Coverage`.
    """
    _check_plot(path, coverage, title)
    try:
        from matplotlib import figure
    except ImportError as error:
        raise ImportError(
            "plot_coverage needs matplotlib, which is not installed: "
            "pip install 'keras_lengen[plots]'."
        ) from error
    picture = figure.Figure(figsize=(7, 4.5), layout="constrained")
    axes = picture.subplots()
    draw = _draw_map if coverage.train_counts.ndim == 2 else _draw_line
    draw(axes, coverage)
    axes.set_title(title)
    path = pathlib.Path(path)
    partial = path.with_suffix(".partial.png")
    picture.savefig(partial, dpi=120)
    os.replace(partial, path)
    return path


def _draw_sequences(
    sampler: PositionSampler,
    train_lengths: Collection[int],
    test_length: int,
    draws: int,
) -> tuple[list[FloatArray], list[FloatArray]]:
    """Samples the positions of all training and all test sequences.

    Returns:
        Two lists of float64 `(length,)`, one array for each sequence.
    """
    Instance(PositionSampler, "RandomizedPositions(max_position=2048)").check(
        "sampler", sampler
    )
    if sampler.position_axes == 2:
        raise ValueError(
            f"sampler={type(sampler).__name__} samples a row and a column for "
            "each token: pass the samplers of its axes one at a time."
        )
    if sampler.reads_tokens:
        raise ValueError(
            f"sampler={type(sampler).__name__} reads token ids, so that its "
            "positions do not follow from a length: choose another sampler, "
            "such as RandomizedPositions."
        )
    train_lengths = _check_lengths(train_lengths)
    test_length = Integer(what="the tokens of the test sequence").check(
        "test_length", test_length
    )
    draws = Integer(what="the number of sequences to draw").check(
        "draws", draws
    )
    if not sampler.is_random:
        draws = 1
    drawn = max(draws, len(train_lengths))
    in_turn = itertools.islice(itertools.cycle(train_lengths), drawn)
    train = [
        positions
        for length, count in collections.Counter(in_turn).items()
        for positions in _draw_batch(sampler, length, count, training=True)
    ]
    return train, _draw_batch(sampler, test_length, draws, training=False)


def _draw_batch(
    sampler: PositionSampler, length: int, count: int, training: bool
) -> list[FloatArray]:
    """Samples the positions of `count` sequences, float64 `(length,)` each."""
    inputs = np.zeros((count, length), "float32")
    positions = sampler(inputs, training=training)
    if len(positions.shape) == 2:
        return list(np.asarray(positions, "float64"))
    # The sampler draws once for each batch, so each sequence is a batch.
    others = (sampler(inputs, training=training) for _ in range(count - 1))
    return [np.asarray(each, "float64") for each in (positions, *others)]


def _compute_distances(positions: FloatArray) -> FloatArray:
    first, second = np.triu_indices(len(positions))
    return np.abs(positions[second] - positions[first])


def _count_values(
    quantity: str,
    compute_numbers: Callable[[FloatArray], FloatArray],
    train: list[FloatArray],
    test: list[FloatArray],
    resolution: float,
) -> Coverage:
    """Returns the `Coverage` of the numbers computed from positions."""
    resolution = Number(
        above=0, what="the width of the intervals in positions"
    ).check("resolution", resolution)

    def count(positions: FloatArray) -> tuple[int, IntArray]:
        numbers = compute_numbers(positions)
        if np.ptp(numbers) / resolution > LARGEST_TABLE:
            raise ValueError(
                f"resolution={resolution} makes more than {LARGEST_TABLE} "
                f"intervals of {quantity}s up to {np.max(numbers)}: raise it."
            )
        # A number that rounding put just below an edge counts as above it.
        places = np.floor(numbers / resolution + 1e-3)
        first = int(places.min())
        return first, np.bincount(places.astype("int64") - first)

    # One sequence at a time, because a sequence has many pairs.
    trained, tested = ([count(each) for each in part] for part in (train, test))
    first = min(start for start, _ in (*trained, *tested))
    last = max(start + len(counts) for start, counts in (*trained, *tested))

    def add_up(histograms: list[tuple[int, IntArray]]) -> IntArray:
        result = np.zeros(last - first, "int64")
        for start, counts in histograms:
            result[start - first :][: len(counts)] += counts
        return result

    edges = np.arange(first, last + 1) * np.float64(resolution)
    return Coverage(quantity, edges, add_up(trained), add_up(tested))


def _warn_if_unseen(
    coverage: Coverage,
    sampler: PositionSampler,
    train_lengths: Collection[int],
    test_length: int,
) -> Coverage:
    """Returns the coverage; warns if test values are unseen in training."""
    outside = coverage.unseen_share > 0
    if sampler.is_random:
        # A finite number of draws misses some values by chance.
        outside = (
            coverage.unseen_share > 2 * _estimate_missed_share(coverage) + 0.001
        )
    if np.any(outside):
        where = ""
        if outside.ndim:
            pairs = ", ".join(map(str, np.flatnonzero(outside)))
            where = f" in the worst of the feature pairs {pairs}"
        warnings.warn(
            f"a test length of {test_length} is outside of what "
            f"{type(sampler).__name__} covers in training at lengths up to "
            f"{max(train_lengths)}: {np.max(coverage.unseen_share):.1%} of its "
            f"{coverage.quantity}s{where} are unseen. Train on longer "
            "sequences, or with a sampler that covers them, such as "
            "RandomizedPositions.",
            stacklevel=3,
        )
    return coverage


def _estimate_missed_share(coverage: Coverage) -> FloatArray:
    """Estimates the fraction of test values that training misses by chance.

    It is the expected fraction if training values had the distribution of the
    test values.
    """
    shares = coverage.test_counts / coverage.test_counts.sum(-1, keepdims=True)
    drawn = coverage.train_counts.sum(-1, keepdims=True)
    return (shares * (1 - shares) ** drawn).sum(-1)


def _check_lengths(train_lengths: Any) -> list[int]:
    """Returns training lengths as a list, or raises `ValueError`."""
    try:
        lengths = (
            []
            if isinstance(train_lengths, str | bytes)
            else list(train_lengths)
        )
    except TypeError:
        lengths = []
    if not lengths:
        raise ValueError(
            "train_lengths must be a list of one or more lengths; got "
            f"{train_lengths!r}."
        )
    each = Integer(what="each a number of tokens")
    return [each.check("train_lengths", length) for length in lengths]


def _check_plot(path: Any, coverage: Any, title: Any) -> None:
    Instance(Coverage, "position_coverage(...)").check("coverage", coverage)
    named = isinstance(path, str | os.PathLike) and "\0" not in str(path)
    if not named or not pathlib.Path(path).name or pathlib.Path(path).is_dir():
        raise ValueError(f"path must be the path of a file; got {path!r}.")
    folder = pathlib.Path(path).parent
    if not folder.is_dir():
        raise ValueError(
            f"path must be in a folder that exists; got {str(path)!r}: make "
            f"the folder {str(folder)!r} first."
        )
    if not isinstance(title, str):
        raise ValueError(f"title must be a string; got {title!r}.")


# Colors that people with red-green color blindness can tell apart.
_TRAIN, _BOTH, _UNSEEN = "#9ECAE1", "#0072B2", "#E69F00"


def _draw_line(axes: Any, coverage: Coverage) -> None:
    for label, counts, color in (
        ("seen in training", coverage.train_counts, _BOTH),
        ("needed by the test", coverage.test_counts, "0.3"),
    ):
        shares = counts / counts.sum()
        axes.stairs(shares, coverage.edges, color=color, lw=2, label=label)
    axes.bar(
        coverage.edges[:-1],
        coverage.unseen.astype("float64"),
        width=coverage.edges[1] - coverage.edges[0],
        align="edge",
        transform=axes.get_xaxis_transform(),
        color=_UNSEEN,
        alpha=0.4,
        label=f"unseen: {coverage.unseen_share:.2%} of the test values",
    )
    axes.set(
        xlabel=coverage.quantity,
        xlim=coverage.edges[[0, -1]],
        ylabel="relative frequency",
        # Distance 0, of each token to itself, is far more frequent than others.
        yscale="log",
    )
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=3)


def _draw_map(axes: Any, coverage: Coverage) -> None:
    from matplotlib import colors, patches

    kinds = {
        "neither": "white",
        "seen in training only": _TRAIN,
        "seen in training, needed by the test": _BOTH,
        "needed by the test, unseen": _UNSEEN,
    }
    shown = coverage.train_counts > 0
    kind = np.where(coverage.test_counts > 0, np.where(shown, 2, 3), shown)
    pairs = np.arange(len(kind) + 1) - 0.5
    axes.pcolormesh(
        coverage.edges,
        pairs,
        kind,
        cmap=colors.ListedColormap(list(kinds.values())),
        vmin=-0.5,
        vmax=3.5,
        edgecolors="0.85",
        lw=0.3,
    )
    axes.set(
        xlabel="phase in radians",
        ylabel="feature pair, highest frequency first",
        ylim=pairs[[-1, 0]],
    )
    axes.legend(
        handles=[
            patches.Patch(facecolor=color, edgecolor="0.5", label=label)
            for label, color in kinds.items()
        ],
        loc="upper center",
        bbox_to_anchor=(0.5, -0.15),
        ncols=2,
    )
