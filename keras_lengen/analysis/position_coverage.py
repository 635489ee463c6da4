"""Which positions training shows, against what a test length asks for."""

import collections
import dataclasses
import itertools
import os
import pathlib
import warnings

import numpy as np

from keras_lengen.arguments import (
    check_instance,
    check_integer,
    check_number,
)
from keras_lengen.layers.encodings.sinusoidal_encoding import (
    check_even,
    check_max_wavelength,
    frequencies,
)
from keras_lengen.layers.positions.base import PositionSampler

LARGEST_TABLE = 2**24
"""Number of intervals that are counted in."""


# Arrays do not compare to one truth value.
@dataclasses.dataclass(frozen=True, eq=False)
class Coverage:
    """How often training and test show each value of a quantity.

    Attributes:
        quantity: Name of the quantity.
        edges: Bounds of `V` equal intervals of values, float64 `(V + 1,)`.
        train_counts: How often the drawn training sequences show a value in
            each interval, int64 `(V,)`, or `(P, V)` for `P` feature pairs.
        test_counts: The same of the test sequences.
    """

    quantity: str
    edges: np.ndarray
    train_counts: np.ndarray
    test_counts: np.ndarray

    @property
    def unseen(self):
        """Where the test length asks for what training never showed: bool."""
        return (self.test_counts > 0) & (self.train_counts == 0)

    @property
    def unseen_share(self):
        """Share of the test's counts that is unseen, float64 `()` or `(P,)`."""
        counts = self.test_counts
        return (counts * self.unseen).sum(axis=-1) / counts.sum(axis=-1)


def position_coverage(
    sampler, *, train_lengths, test_length, draws=1000, resolution=1.0
):
    """Positions that training shows and that a test length asks for.

    They are the rows of the table of `LearnedEncoding`, and what the absolute
    encodings read.

    Args:
        sampler: `PositionSampler`, called as in training and as in evaluation;
            its random state moves on.
        train_lengths: Trained lengths, in tokens, drawn in turn.
        test_length: Length of the test, in tokens.
        draws: How many sequences to draw for training, and for the test,
            where the sampler draws; where it does not, one for each length.
        resolution: Width of the intervals to count in, in positions.

    Returns:
        `Coverage`. Sequences are without padding.

    Raises:
        ValueError: If an argument is out of range, or the sampler does not
            return one number per token.

    Warns:
        UserWarning: If the test length asks for intervals that training never
            showed; of a sampler that draws, if they are more than twice what so
            many draws miss by chance, and than a thousandth.

    Example:

    >>> from keras_lengen.analysis import position_coverage
    >>> from keras_lengen.layers import RandomizedPositions
    >>> sampler = RandomizedPositions(max_position=50, seed=0)
    >>> coverage = position_coverage(
    ...     sampler, train_lengths=[5, 10], test_length=50, draws=200)
    >>> coverage.edges[[0, -1]].tolist(), coverage.unseen_share.item()
    ([0.0, 50.0], 0.0)
    """
    train, test = _samples(sampler, train_lengths, test_length, draws)
    coverage = _line_coverage(
        "position", lambda positions: positions, train, test, resolution
    )
    return _checked(coverage, sampler, train_lengths, test_length)


def distance_coverage(
    sampler, *, train_lengths, test_length, draws=1000, resolution=1.0
):
    """Distances between tokens that training shows and a test length asks for.

    Absolute differences of the positions of all pairs of tokens, each pair
    once, a token with itself included: what relative encodings and biases
    read.

    Args:
        sampler: `PositionSampler`, called as in training and as in evaluation;
            its random state moves on.
        train_lengths: Trained lengths, in tokens, drawn in turn.
        test_length: Length of the test, in tokens.
        draws: How many sequences to draw for training, and for the test,
            where the sampler draws; where it does not, one for each length.
        resolution: Width of the intervals to count in, in positions.

    Returns:
        `Coverage`. Sequences are without padding.

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
    train, test = _samples(sampler, train_lengths, test_length, draws)
    coverage = _line_coverage("distance", _distances, train, test, resolution)
    return _checked(coverage, sampler, train_lengths, test_length)


def phase_coverage(
    sampler,
    *,
    width,
    train_lengths,
    test_length,
    max_wavelength=10000,
    draws=1000,
    num_phases=16,
):
    """Phases of `RoPE` that training shows and that a test length asks for.

    A feature pair `m` turns a key against a query by
    `distance * max_wavelength ** (-2 * m / width)`, of which scores see the
    rest after division by a full turn. Slow pairs make a fraction of a turn in
    a short sequence, and go on in a longer one.

    Args:
        sampler: `PositionSampler`, called as in training and as in evaluation;
            its random state moves on.
        width: Rotated features of a head, even; they are `P = width / 2`
            pairs, fastest first.
        train_lengths: Trained lengths, in tokens, drawn in turn.
        test_length: Length of the test, in tokens.
        max_wavelength: Base of the geometric series of frequencies.
        draws: How many sequences to draw for training, and for the test,
            where the sampler draws; where it does not, one for each length.
        num_phases: Intervals of a turn.

    Returns:
        `Coverage` of `V = num_phases` intervals in radians, 0 to `2 * pi`, with
        counts by pair. Sequences are without padding.

    Raises:
        ValueError: As `position_coverage`.

    Warns:
        UserWarning: As `position_coverage`, if any pair is outside.

    Example:

    >>> from keras_lengen.analysis import phase_coverage
    >>> from keras_lengen.layers import OrdinalPositions
    >>> coverage = phase_coverage(
    ...     OrdinalPositions(), width=4, train_lengths=[20], test_length=20)
    >>> (coverage.train_counts > 0).sum(axis=-1).tolist()
    [16, 1]
    """
    max_wavelength = check_max_wavelength(max_wavelength)
    width = check_integer("width", width, what="the rotated features of a head")
    check_even(width, "width")
    num_phases = check_integer(
        "num_phases", num_phases, what="the intervals of a turn"
    )
    rates = frequencies(width, max_wavelength).astype("float64")
    turn = 2 * np.pi

    def counts(samples):
        total = np.zeros((len(rates), num_phases), "int64")
        for positions in samples:
            # Equal distances have equal phases: many pairs, few distances.
            distances, pairs = np.unique(
                _distances(positions), return_counts=True
            )
            phases = np.outer(rates, distances) % turn
            places = np.minimum(phases * num_phases / turn, num_phases - 1)
            for pair, row in enumerate(places.astype("int64")):
                np.add.at(total[pair], row, pairs)
        return total

    train, test = _samples(sampler, train_lengths, test_length, draws)
    coverage = Coverage(
        "phase",
        np.linspace(0, turn, num_phases + 1),
        counts(train),
        counts(test),
    )
    return _checked(coverage, sampler, train_lengths, test_length)


def plot_coverage(path, coverage, *, title):
    """Draws what training shows against what a test length asks for.

    Of one quantity, the shares of both, with the unseen intervals shaded; of
    the phases of feature pairs, a map of what is shown, asked for and unseen.

    Args:
        path: PNG file to write.
        coverage: `Coverage`.
        title: Title of the plot.

    Returns:
        The path.

    Raises:
        ImportError: If matplotlib is not installed.
        ValueError: If `path` or `title` is no text, or `coverage` no
            `Coverage`.
    """
    _check_plot(path, coverage, title)
    try:
        from matplotlib import figure
    except ImportError as error:
        raise ImportError(
            "plot_coverage draws with matplotlib, which is not installed: "
            "pip install 'keras_lengen[plots]'."
        ) from error
    picture = figure.Figure(figsize=(7, 4.5), layout="constrained")
    axes = picture.subplots()
    draw = _draw_map if coverage.train_counts.ndim == 2 else _draw_line
    draw(axes, coverage)
    axes.set_title(title)
    path = pathlib.Path(path)
    beside = path.with_suffix(".partial.png")
    picture.savefig(beside, dpi=120)
    os.replace(beside, path)
    return path


def _samples(sampler, train_lengths, test_length, draws):
    """Positions of every sequence of training, and of the test."""
    check_instance(
        "sampler",
        sampler,
        PositionSampler,
        example="RandomizedPositions(max_position=2048)",
        optional=False,
    )
    if sampler.pairs:
        raise ValueError(
            f"sampler={type(sampler).__name__} gives every token a row and a "
            "column: pass the samplers of its axes one at a time."
        )
    train_lengths = _check_lengths(train_lengths)
    test_length = check_integer(
        "test_length", test_length, what="the tokens of the test sequence"
    )
    draws = check_integer(
        "draws", draws, what="the number of sequences to draw"
    )
    if not sampler.draws:
        draws = 1
    drawn = max(draws, len(train_lengths))
    in_turn = itertools.islice(itertools.cycle(train_lengths), drawn)
    train = [
        positions
        for length, count in collections.Counter(in_turn).items()
        for positions in _draw(sampler, length, count, training=True)
    ]
    return train, _draw(sampler, test_length, draws, training=False)


def _draw(sampler, length, count, training):
    """Positions of `count` sequences, float64 `(length,)` each."""
    inputs = np.zeros((count, length), "float32")
    positions = sampler(inputs, training=training)
    if len(positions.shape) == 2:
        return list(np.asarray(positions, "float64"))
    # One draw for a whole batch, so as many batches.
    others = (sampler(inputs, training=training) for _ in range(count - 1))
    return [np.asarray(each, "float64") for each in (positions, *others)]


def _distances(positions):
    first, second = np.triu_indices(len(positions))
    return np.abs(positions[second] - positions[first])


def _line_coverage(quantity, numbers_of, train, test, resolution):
    resolution = check_number(
        "resolution",
        resolution,
        above=0,
        what="the width of the intervals in positions",
    )

    def histogram(positions):
        # A number that rounding put just below an interval belongs to it.
        numbers = numbers_of(positions)
        if np.ptp(numbers) / resolution > LARGEST_TABLE:
            raise ValueError(
                f"resolution={resolution} makes more than {LARGEST_TABLE} "
                f"intervals of {quantity}s up to {np.max(numbers)}: raise it."
            )
        places = np.floor(numbers / resolution + 1e-3)
        first = int(places.min())
        return first, np.bincount(places.astype("int64") - first)

    # One sequence at a time, as its pairs are many.
    train, test = ([histogram(each) for each in part] for part in (train, test))
    first = min(start for start, _ in (*train, *test))
    last = max(start + len(counts) for start, counts in (*train, *test))

    def total(histograms):
        result = np.zeros(last - first, "int64")
        for start, counts in histograms:
            result[start - first :][: len(counts)] += counts
        return result

    edges = np.arange(first, last + 1) * float(resolution)
    return Coverage(quantity, edges, total(train), total(test))


def _checked(coverage, sampler, train_lengths, test_length):
    """The coverage, after a warning where the test length is outside."""
    outside = coverage.unseen_share > 0
    if sampler.draws:
        # Finitely many draws miss values that more of them would show.
        outside = coverage.unseen_share > 2 * _missed(coverage) + 0.001
    if np.any(outside):
        where = ""
        if outside.ndim:
            pairs = ", ".join(map(str, np.flatnonzero(outside)))
            where = f" in the worst of the feature pairs {pairs}"
        warnings.warn(
            f"a test length of {test_length} is outside of what "
            f"{type(sampler).__name__} shows in training at lengths up to "
            f"{max(train_lengths)}: {np.max(coverage.unseen_share):.1%} of its "
            f"{coverage.quantity}s{where} are unseen. Train on longer "
            "sequences, or with a sampler that shows them, such as "
            "RandomizedPositions.",
            stacklevel=3,
        )
    return coverage


def _missed(coverage):
    """Share of the test's counts that as many random draws would not show."""
    shares = coverage.test_counts / coverage.test_counts.sum(-1, keepdims=True)
    drawn = coverage.train_counts.sum(-1, keepdims=True)
    return (shares * (1 - shares) ** drawn).sum(-1)


def _check_lengths(train_lengths):
    """Returns trained lengths as a list, or raises `ValueError`."""
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
            "train_lengths must be a list of one trained length or more; got "
            f"{train_lengths!r}."
        )
    return [
        check_integer("train_lengths", length, what="each of them in tokens")
        for length in lengths
    ]


def _check_plot(path, coverage, title):
    check_instance(
        "coverage",
        coverage,
        Coverage,
        example="position_coverage(...)",
        optional=False,
    )
    if not isinstance(path, str | os.PathLike) or not pathlib.Path(path).name:
        raise ValueError(f"path must be that of a PNG file; got {path!r}.")
    if not isinstance(title, str):
        raise ValueError(f"title must be a text; got {title!r}.")


# Distinguishable without red and green.
_TRAIN, _BOTH, _UNSEEN = "#9ECAE1", "#0072B2", "#E69F00"


def _draw_line(axes, coverage):
    for label, counts, color in (
        ("shown in training", coverage.train_counts, _BOTH),
        ("asked for by the test", coverage.test_counts, "0.3"),
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
        label=f"unseen: {coverage.unseen_share:.2%} of the test",
    )
    axes.set(
        xlabel=coverage.quantity,
        xlim=coverage.edges[[0, -1]],
        ylabel="share of all",
        # Every token is at distance 0 from itself: no other is so frequent.
        yscale="log",
    )
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=3)


def _draw_map(axes, coverage):
    from matplotlib import colors, patches

    kinds = {
        "neither": "white",
        "shown in training alone": _TRAIN,
        "shown and asked for": _BOTH,
        "asked for, never shown": _UNSEEN,
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
        ylabel="feature pair, fastest first",
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
