"""Activations of a model at several lengths, in one plane."""

import numpy as np

from keras_lengen.analysis import block_activations, fit_activation_plane
from trainers.analyses.loaded import find_counted, read
from trainers.errors import ConfigError
from trainers.records.files import replacing
from trainers.records.markdown import table
from trainers.records.plot import save_figure
from trainers.records.workdir import write_json

POINTS = 5000
"""Most activations of a length that are compared; others are left out."""


def write_activations(loaded, lengths, examples):
    """Writes and draws the activations of blocks, and prints how many differ.

    The plane and the region of each block are fitted to some sequences of the
    longest trained length. As many others of that length show which share lies
    outside without any change of length.

    Args:
        loaded: The `Loaded` run.
        lengths: Tuple of int, further lengths, besides the longest trained one.
        examples: int. Number of sequences of each length.
    """
    problem, model = loaded.problem, loaded.model
    longest = problem.longest_trained
    both = find_activations(model, problem, longest, 2 * examples)
    found = {longest: {n: values[examples:] for n, values in both.items()}}
    for length in sorted({*lengths} - {longest}):
        found[length] = find_activations(model, problem, length, examples)
    try:
        planes = {
            name: fit_activation_plane(_join(values[:examples]))
            for name, values in both.items()
        }
    except ValueError as error:
        raise ConfigError(
            f"cannot draw the activations of {loaded.path}: {error}"
        ) from None
    vectors = {
        length: {name: _join(values) for name, values in blocks.items()}
        for length, blocks in found.items()
    }
    shares = {
        name: {
            str(length): plane.share_outside(blocks[name])
            for length, blocks in vectors.items()
        }
        for name, plane in planes.items()
    }
    points = {
        length: {name: planes[name].project(v) for name, v in blocks.items()}
        for length, blocks in vectors.items()
    }
    path = loaded.path / "activations.npz"
    _write_arrays(path, planes, points)
    write_json(
        path.with_suffix(".json"),
        {
            "checkpoint": str(loaded.opened.checkpoint),
            "examples": examples,
            "trained_length": longest,
            "layers": [
                {
                    "layer": name,
                    "explained": plane.explained.round(4).tolist(),
                    "share_outside_by_length": shares[name],
                }
                for name, plane in planes.items()
            ],
        },
    )
    head = ("outside the trained region", *map(problem.describe_length, found))
    rows = [
        (name, *(f"{share:.1%}" for share in by_length.values()))
        for name, by_length in shares.items()
    ]
    print(table(head, rows))
    print(f"activations: {path}")
    _draw(path.with_suffix(".png"), problem, planes, points, shares)


def find_activations(model, problem, length, examples):
    """Returns what the blocks of a model return for sequences of a length.

    Args:
        model: The model.
        problem: Its `Problem`.
        length: int. Length of the sequences.
        examples: int. Number of sequences.

    Returns:
        Dict from names of blocks to a list of float arrays `(n, M)`, one for
        each sequence, without padding. Blocks that read another sequence, such
        as those of a decoder, are missing.
    """
    batch = read(problem, length, examples)
    found = block_activations(model, problem.inputs(batch))
    tokens = max(values.shape[1] for values in found.values())
    counted = find_counted(problem, batch, length, (examples, tokens))
    return {
        name: [
            of_one[used] for of_one, used in zip(values, counted, strict=True)
        ]
        for name, values in found.items()
        if values.shape[1] == tokens
    }


def _write_arrays(path, planes, points):
    arrays = {}
    for name, plane in planes.items():
        arrays |= {
            f"{name}/mean": plane.mean,
            f"{name}/directions": plane.directions,
            f"{name}/fitted": plane.points,
            f"{name}/radius": plane.radius,
        }
        for length, blocks in points.items():
            arrays[f"{name}/length_{length}"] = blocks[name]
    with replacing(path) as file:
        np.savez_compressed(file, **arrays)


def _draw(path, problem, planes, points, shares):
    """Draws lengths below each other, and blocks in a row."""
    try:
        from matplotlib import figure
    except ImportError:
        print("no picture: matplotlib is not installed (extra: plots)")
        return
    size = (2.6 * len(planes) + 0.4, 2.6 * len(points) + 0.5)
    plot = figure.Figure(figsize=size, layout="constrained")
    grid = plot.subplots(
        len(points), len(planes), squeeze=False, sharex="col", sharey="col"
    )
    for row, (length, blocks) in zip(grid, points.items(), strict=True):
        described = problem.describe_length(length)
        for number, (axes, (name, plane)) in enumerate(
            zip(row, planes.items(), strict=True)
        ):
            scatter = {"s": 4, "lw": 0}
            axes.scatter(
                *plane.points.T, color="0.4", label="trained", **scatter
            )
            axes.scatter(
                *blocks[name].T,
                color="#D55E00",
                alpha=0.6,
                label="of this row",
                **scatter,
            )
            _draw_region(axes, plane)
            outside = shares[name][str(length)]
            axes.set_title(
                f"block {number + 1}, {outside:.1%} outside", fontsize=8
            )
            axes.tick_params(labelsize=6)
        others = ", others" * (length == problem.longest_trained)
        row[0].set_ylabel(
            f"{problem.length_name} {described}{others}", fontsize=8
        )
    handles, labels = grid[0, 0].get_legend_handles_labels()
    plot.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=2,
        fontsize=8,
        markerscale=2,
        title="activations of sequences; shaded: the trained region",
        title_fontsize=8,
    )
    with replacing(path) as file:
        save_figure(plot, file)
    print(f"picture: {path}")


def _draw_region(axes, plane):
    low, high = plane.points.min(axis=0), plane.points.max(axis=0)
    columns, rows = (
        np.linspace(start - plane.radius, end + plane.radius, 200)
        for start, end in zip(low, high, strict=True)
    )
    distances = plane.measure_distance(np.stack(np.meshgrid(columns, rows), -1))
    levels = [-1, plane.radius]
    axes.contourf(columns, rows, distances, levels, colors=["0.88"], zorder=0)


def _join(values):
    """Returns the activations of several sequences, evenly thinned."""
    vectors = np.concatenate(values)
    return vectors[:: -(-len(vectors) // POINTS)]
