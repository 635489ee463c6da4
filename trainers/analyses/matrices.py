"""Attention matrices of a model at several lengths."""

import numpy as np

from keras_lengen.analysis import attention_maximum
from trainers.analyses.attention import find_layers
from trainers.analyses.loaded import find_counted, read, take
from trainers.errors import ConfigError
from trainers.records.files import replacing
from trainers.records.plot import save_figure


def write_matrices(loaded, lengths, examples):
    """Writes and draws how strongly tokens attend to each other.

    Args:
        loaded: The `Loaded` run.
        lengths: Tuple of int, further lengths, besides the longest trained one.
        examples: int. Number of sequences of each length.
    """
    problem = loaded.problem
    lengths = sorted({problem.longest_trained, *lengths})
    found = {
        length: find_matrices(loaded.model, problem, length, examples)
        for length in lengths
    }
    if not any(layers for layers, _ in found.values()):
        raise ConfigError(f"{loaded.path} has no layer of self-attention.")
    path = loaded.path / "attention_matrices.npz"
    with replacing(path) as file:
        np.savez_compressed(
            file,
            **{
                f"{layer}/length_{length}": weights
                for length, (layers, _) in found.items()
                for layer, weights in layers.items()
            },
        )
    print(f"attention matrices: {path}")
    _draw(path.with_suffix(".png"), problem, found)


def find_matrices(model, problem, length, examples):
    """Returns the maximum over heads of the weights of every layer.

    Args:
        model: The model.
        problem: Its `Problem`.
        length: int. Length of the sequences.
        examples: int. Number of sequences.

    Returns:
        Dict from names of layers to float arrays `(B, T, T)`, and bool
        `(B, T)`, which tokens are no padding.
    """
    batch = read(problem, length, examples)
    inputs = problem.inputs(batch)
    found: dict = {}
    # One sequence at a time: the weights of many would not fit in memory.
    for number in range(examples):
        layers = find_layers(model, take(inputs, number))
        for name, weights in layers.items():
            found.setdefault(name, []).append(attention_maximum(weights)[0])
    layers = {name: np.stack(weights) for name, weights in found.items()}
    shape = next((w.shape[:2] for w in layers.values()), (examples, 0))
    return layers, find_counted(problem, batch, length, shape)


def _draw(path, problem, found):
    """Draws the first sequence: lengths below each other, layers in a row."""
    try:
        from matplotlib import figure
    except ImportError:
        print("no picture: matplotlib is not installed (extra: plots)")
        return
    names = list(next(iter(found.values()))[0])
    size = (2.4 * len(names) + 0.6, 2.6 * len(found) + 0.4)
    plot = figure.Figure(figsize=size, layout="constrained")
    grid = plot.subplots(len(found), len(names), squeeze=False)
    for row, (length, (layers, counted)) in zip(
        grid, found.items(), strict=True
    ):
        tokens = counted[0].sum()
        for number, (axes, weights) in enumerate(
            zip(row, layers.values(), strict=True)
        ):
            shown = weights[0, :tokens, :tokens]
            image = axes.imshow(shown, cmap="viridis", vmin=0)
            # Weights of longer sequences are smaller.
            bar = plot.colorbar(image, ax=axes)
            bar.ax.tick_params(labelsize=6)
            axes.set_title(f"block {number + 1}", fontsize=8)
            axes.tick_params(labelsize=6)
            axes.locator_params(integer=True)
        described = problem.describe_length(length)
        trained = " (trained)" * (length in problem.trained_lengths)
        row[0].set_ylabel(
            f"{problem.length_name} {described}{trained}\nquery", fontsize=8
        )
    for axes in grid[-1]:
        axes.set_xlabel("key", fontsize=8)
    plot.suptitle("attention weight, maximum over heads", fontsize=9)
    with replacing(path) as file:
        save_figure(plot, file)
    print(f"picture: {path}")
