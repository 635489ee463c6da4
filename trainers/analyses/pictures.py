"""Pictures of what a model reads and of where it looks."""

import numpy as np

from trainers.records.files import replacing


def draw_pictures(path, columns, titles):
    """Draws images of several sizes beside the attention to their pixels.

    Args:
        path: `pathlib.Path` of the PNG file.
        columns: Non-empty list of dicts with `"images"` and `"attention"`,
            `(B, H, W)`, and `"classes"` and `"found"`, int `(B,)`. The same B
            images in each.
        titles: List of str, one for each column.

    Returns:
        bool, `False` if matplotlib is not installed.
    """
    try:
        from matplotlib import figure
    except ImportError:
        return False
    rows = len(columns[0]["images"])
    size = (2.6 * len(columns), 1.4 * rows + 0.5)
    plot = figure.Figure(figsize=size, layout="constrained")
    grid = plot.subplots(rows, 2 * len(columns), squeeze=False)
    for number, (column, title) in enumerate(zip(columns, titles, strict=True)):
        pairs = grid[:, 2 * number : 2 * number + 2]
        for row, (left, right) in enumerate(pairs):
            image, attention = column["images"][row], column["attention"][row]
            gray = {"cmap": "gray", "vmin": 0, "vmax": 255}
            left.imshow(image, **gray)
            right.imshow(image, **gray)
            # The brightest pixel is the one that gets most attention.
            right.imshow(attention, cmap="inferno", vmin=0, alpha=0.7)
            heading, color = _describe(column, row)
            left.set_title(heading, fontsize=8, color=color)
            if row == 0:
                left.set_title(f"{title}\n{heading}", fontsize=8, color=color)
                right.set_title("attention\n", fontsize=8)
    for axes in np.ravel(grid):
        axes.set(xticks=[], yticks=[])
    with replacing(path) as file:
        plot.savefig(file, format="png", dpi=120)
    return True


def _describe(column, row):
    """Returns the class of an image, the one found, and a color."""
    right, found = column["classes"][row], column["found"][row]
    if right == found:
        return f"class {right}", "black"
    return f"class {right}, found {found}", "#D55E00"
