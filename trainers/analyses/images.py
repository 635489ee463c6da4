"""Images as a model reads them, and the pixels that it attends to."""

import numpy as np
from keras import ops

from keras_lengen.analysis import attention_weights
from keras_lengen.models import EncoderDecoder
from trainers.analyses.loaded import read, take
from trainers.analyses.pictures import draw_pictures
from trainers.errors import TrainingError


def draw(loaded, examples):
    """Draws the images of a run."""
    problem = loaded.problem
    columns = [
        look(loaded.model, problem, length, examples)
        for length in problem.lengths
    ]
    shapes = (column["images"].shape[1:] for column in columns)
    titles = [f"{height} x {width}" for height, width in shapes]
    path = loaded.opened.path / "images.png"
    if not draw_pictures(path, columns, titles):
        raise TrainingError(
            "matplotlib, which draws, is not installed (extra: plots)."
        )
    print(f"plot: {path}")


def look(model, problem, length, examples):
    """Returns what a model reads and attends to at a length.

    Args:
        model: The model.
        problem: Its `Problem`.
        length: int. Length of the sequences.
        examples: int. Number of images.

    Returns:
        Dict of NumPy arrays: `"images"` and `"attention"`, `(B, H, W)`;
        `"classes"` and `"found"`, int `(B,)`.
    """
    batch = read(problem, length, examples)
    name = "cross_attention"
    if not isinstance(model, EncoderDecoder):
        name = model.blocks[-1].attention_layer.path
    inputs, attention, classes = problem.inputs(batch), [], []
    # One image at a time: the weights of many would not fit in memory.
    for number in range(examples):
        found, outputs = attention_weights(
            model, take(inputs, number), name=name, return_outputs=True
        )
        weights = np.mean(list(found.values()), axis=0)
        attention.append(weights.mean(axis=(1, 2))[0])
        classes.append(int(ops.argmax(problem.logits(outputs)[0])))
    return {
        "images": problem.lay_out(batch["token_ids"], length),
        "attention": problem.lay_out(np.stack(attention), length),
        "classes": np.asarray(batch["targets"]),
        "found": np.array(classes),
    }
