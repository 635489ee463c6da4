"""Draws the pictures of the reference page."""

import io

import keras
import numpy as np
from keras import ops

from docs.examples import MODEL_WIDTH, build, get_call, make
from keras_lengen import layers
from keras_lengen.layers.positions.placing import sample_positions

HEADS, WIDTH = 4, 8
ROTARY_WIDTH = 64
"""Number of rotated features of the single head."""
REACH = 64
"""Number of tokens on either side of a query."""
LONG = 4 * REACH
SEED = 1


def find_picture(name):
    """Returns the function that draws a class, or `None` if none does."""
    special = {
        "AxialEncoding": draw_grid,
        "CoPE": draw_counts,
        "GeometricAttention": draw_nearest,
        "StickBreakingAttention": draw_nearest,
        "ForgettingAttention": draw_nearest,
        "PaTHAttention": draw_paths,
        "MultiHeadAttention": None,
        "NoPE": draw_no_positions,
        "SelectiveRoPE": draw_turns,
    }
    if name in special:
        return special[name]
    cls = getattr(layers, name)
    if name in layers.TOKEN_SAMPLERS:
        return draw_sum
    if issubclass(cls, layers.PositionSampler):
        return draw_positions
    return {
        "bias": draw_bias,
        "rotation": draw_rotation,
        "embeddings": draw_rows,
    }[cls.stage]


def draw(name, path):
    """Draws the example of a class and writes the picture to a PNG file."""
    from matplotlib import figure
    from PIL import Image

    keras.utils.set_random_seed(SEED)
    plot = figure.Figure(figsize=(8, 3.2), layout="constrained")
    find_picture(name)(plot, make(name))
    plot.suptitle(get_call(name), fontsize="medium", family="monospace")
    for axes in plot.axes:
        axes.spines[["top", "right"]].set_visible(False)
    image = io.BytesIO()
    plot.savefig(image, dpi=90)
    # A palette of few colors keeps the file small.
    image = Image.open(image).convert("RGB")
    image.quantize(96, dither=Image.Dither.NONE).save(path, optimize=True)


def draw_bias(plot, encoding):
    """Bias against the distance from query to key, one line for each head.

    The query is random and the keys are zero, so only the part that depends on
    positions is left. Weights have their initial values.
    """
    tokens = 2 * REACH + 1
    build(encoding, heads=HEADS, width=WIDTH)
    query = np.random.default_rng(SEED).normal(size=(1, tokens, HEADS, WIDTH))
    query = ops.convert_to_tensor(query, "float32")

    def lines(**kwargs):
        result = encoding(query, ops.zeros_like(query), training=True, **kwargs)
        return np.asarray(result)[0, :, REACH]

    if encoding.sampler.is_random:
        panels = {"one draw": lines(), "another draw": lines()}
    else:
        panels = {"bidirectional": lines()}
        causal = lines(causal=True)[:, : REACH + 1]
        if np.array_equal(causal, panels["bidirectional"][:, : REACH + 1]):
            panels = {"bidirectional; causal is the left half": lines()}
        else:
            panels["causal"] = causal
    for axes, (title, heads) in _make_panels(plot, panels):
        for head, line in enumerate(heads):
            axes.plot(
                np.arange(-REACH, line.size - REACH),
                line,
                color=_choose_shade(head, HEADS),
                label=f"head {head + 1}",
            )
        axes.set(title=title, xlabel="key minus query, in tokens")
    plot.axes[0].set_ylabel("bias")
    extents = np.abs(next(iter(panels.values()))).max(-1)
    if extents.max() > 10 * np.median(extents):
        plot.axes[0].set_yscale("symlog")
    plot.legend(
        *plot.axes[0].get_legend_handles_labels(), loc="outside right center"
    )


def draw_rotation(plot, encoding):
    """Product of a rotated query and key, both all ones, against distance.

    Left: the mean over the features of a head of width 64, with that of `RoPE`
    as a dashed line. Right: the mean of each pair of features, highest
    frequency first.
    """
    build(encoding, heads=1, width=ROTARY_WIDTH)
    draws = 3 if encoding.sampler.is_random else 1
    products = [_compute_products(encoding) for _ in range(draws)]
    distances = np.arange(-LONG, 1)
    left, right = plot.subplots(1, 2)
    for index, product in enumerate(products):
        label = f"draw {index + 1}" if draws > 1 else type(encoding).__name__
        left.plot(
            distances,
            product.mean(0),
            color=_choose_shade(index, draws),
            label=label,
        )
    if type(encoding) is not layers.RoPE:
        plain = layers.RoPE()
        mean = _compute_products(plain).mean(0)
        left.plot(distances, mean, "--", color="0.6", label="RoPE", zorder=1)
    left.set(
        title="mean over features",
        xlabel="key minus query, in tokens",
        ylabel="product",
    )
    left.legend(loc="upper left")
    _draw_heat_map(
        plot, right, products[0], (distances[0], 0), left.get_xlabel()
    )
    right.set(
        title="by pair" + (", draw 1" if draws > 1 else ""), ylabel="pair"
    )


def draw_rows(plot, encoding):
    """Values added to the embeddings, one column for each token."""
    tokens = 2 * REACH
    build(encoding)
    zeros = ops.zeros((1, tokens, MODEL_WIDTH))
    drawn = encoding.sampler.is_random
    titles = ["one draw", "another draw"] if drawn else ["every token"]
    results = [np.asarray(encoding(zeros, training=True))[0] for _ in titles]
    panels = dict(zip(titles, results, strict=True))
    for axes, (title, result) in _make_panels(plot, panels):
        _draw_heat_map(plot, axes, result.T, (0, tokens), "token")
        axes.set(title=title)
    plot.axes[0].set_ylabel("feature")


def draw_positions(plot, sampler):
    """Positions against the index of the token.

    Left: in training, for 64 tokens. Right: in evaluation, for 128 tokens. If
    draws differ, there is one line for each of six draws.
    """
    draws = 6 if sampler.is_random else 1
    modes = {"training": REACH, "evaluation": 2 * REACH}
    for axes, (title, tokens) in _make_panels(plot, modes):
        inputs = ops.zeros((1, tokens))
        for index in range(draws):
            drawn = sampler(inputs, training=title == "training")
            lines = keras.tree.flatten(drawn)
            for line, style in zip(lines, ("-", ":"), strict=False):
                line = np.asarray(line).reshape(-1)
                axes.plot(line, style, color=_choose_shade(index, draws))
        if len(lines) > 1:
            axes.legend(["rows", "columns"], loc="upper left")
        axes.set(title=title, xlabel="index of the token", xlim=(0, 2 * REACH))
    plot.axes[0].set_ylabel("position")


def draw_sum(plot, sampler):
    """Positions of the tokens of a sum.

    Left: in training, one line for each of three draws. Right: in evaluation.
    The ids of digits are 0 to 9, that of the plus sign is 10 and that of the
    equals sign 11.
    """
    text = "653+049=2070"
    ids = [["0123456789+=".index(each) for each in text]]
    modes = {"training": 3, "evaluation": 1}
    for axes, (title, draws) in _make_panels(plot, modes):
        for index in range(draws):
            positions = sampler(np.array(ids), training=title == "training")
            axes.plot(
                np.asarray(positions)[0],
                marker=".",
                color=_choose_shade(index, draws),
            )
        axes.set(title=title, xlabel="token")
        axes.set_xticks(range(len(text)), text)
    plot.axes[0].set_ylabel("position")


def draw_counts(plot, encoding):
    """Position of each key as the last query counts it, one line for each head.

    Queries and keys are random. The table makes the bias equal the position.
    """
    generator = np.random.default_rng(SEED)
    query, key = generator.normal(size=(2, 1, REACH, HEADS, WIDTH))
    query[..., 0], key[..., 0] = WIDTH**0.5, 0
    build(encoding, heads=HEADS, width=WIDTH)
    table = np.zeros(encoding.table.shape)
    table[0] = np.arange(encoding.num_positions)
    encoding.table.assign(table)
    query, key = (ops.convert_to_tensor(x, "float32") for x in (query, key))
    axes = plot.subplots()
    for head, line in enumerate(np.asarray(encoding(query, key))[0, :, -1]):
        axes.plot(
            np.arange(REACH) - REACH + 1,
            line,
            color=_choose_shade(head, HEADS),
            label=f"head {head + 1}",
        )
    axes.set(xlabel="key minus query, in tokens", ylabel="position")
    plot.legend(*axes.get_legend_handles_labels(), loc="outside right center")


def draw_turns(plot, encoding):
    """Angle of the first pair of features, one line for each head.

    Tokens are random, and weights are those of a new encoding.
    """
    generator = np.random.default_rng(SEED)
    tokens = generator.normal(size=(1, REACH, HEADS * WIDTH))
    build(encoding, heads=HEADS, width=WIDTH)
    query = np.ones((1, REACH, HEADS, WIDTH), "float32")
    query[..., WIDTH // 2 :] = 0
    steps = encoding.angle_increments(ops.convert_to_tensor(tokens, "float32"))
    turned, _ = encoding.rotate_by(
        *[ops.convert_to_tensor(query)] * 2,
        steps,
        ops.arange(REACH, dtype="int32"),
    )
    turned = np.asarray(turned)[0]
    angles = np.unwrap(
        np.arctan2(turned[..., WIDTH // 2], turned[..., 0]), axis=0
    )
    axes = plot.subplots()
    for head, line in enumerate(angles.T):
        axes.plot(
            line, color=_choose_shade(head, HEADS), label=f"head {head + 1}"
        )
    axes.set(xlabel="index of the token", ylabel="angle, in radians")
    plot.legend(*axes.get_legend_handles_labels(), loc="outside right center")


def draw_no_positions(plot, encoding):
    """Attention weight of the first token without an encoding.

    All tokens are equal. With a causal mask, the weight of the first token
    still depends on the index of the query.
    """
    x = ops.ones((1, LONG, 8))
    attention = layers.MultiHeadAttention(1, 8, encoding=encoding)
    axes = plot.subplots()
    for causal, style in ((True, "-"), (False, "--")):
        _, weights = attention(
            x, x, use_causal_mask=causal, return_attention_scores=True
        )
        axes.plot(
            np.asarray(weights)[0, 0, :, 0],
            style,
            color=_choose_shade(0, 1),
            label="causal" if causal else "bidirectional",
        )
    axes.set(xlabel="index of the query", ylabel="weight of the first token")
    axes.set_yscale("log")
    axes.legend(loc="upper right")


def draw_nearest(plot, attention):
    """Attention weights of a query for equal keys, one line for each head.

    Weights of the layer have their initial values. Nearer keys get larger
    weights, and left and right may differ.
    """
    tokens = 17
    x = np.random.default_rng(SEED).normal(size=(1, 1, MODEL_WIDTH))
    _draw_weights(plot, attention, np.repeat(x, tokens, axis=1))


def draw_paths(plot, attention):
    """Attention weights of a query for equal keys, one line for each head.

    Queries and keys are all ones. The tokens are random, and those between a
    key and the query multiply it by their matrices. Weights of the layer have
    their initial values.
    """
    tokens = 33
    x = np.random.default_rng(SEED).normal(size=(1, tokens, MODEL_WIDTH))
    attention.build(x.shape, x.shape)
    for dense in (attention.query_dense, attention.key_dense):
        dense.kernel.assign(ops.zeros_like(dense.kernel))
        dense.bias.assign(ops.ones_like(dense.bias))
    _draw_weights(plot, attention, x)


def _draw_weights(plot, attention, x):
    tokens, x = x.shape[1], ops.convert_to_tensor(x, "float32")
    _, weights = attention(
        x,
        x,
        use_causal_mask=attention.causal_only,
        return_attention_scores=True,
    )
    axes = plot.subplots()
    for head, line in enumerate(np.asarray(weights)[0, :, tokens // 2]):
        axes.plot(
            np.arange(tokens) - tokens // 2,
            line,
            marker=".",
            color=_choose_shade(head, attention.num_heads),
            label=f"head {head + 1}",
        )
    axes.set(xlabel="key minus query, in tokens", ylabel="weight")
    plot.legend(*axes.get_legend_handles_labels(), loc="outside right center")


def draw_grid(plot, encoding):
    """Bias of the token in the middle of an image, on the grid of its keys.

    Left: a head for the rows. Right: a head for the columns.
    """
    width = encoding.sampler.width
    tokens = width * width
    query = ops.zeros((1, tokens, HEADS, WIDTH))
    middle = width // 2 * width + width // 2
    biases = np.asarray(encoding(query))[0, :, middle]
    heads = {"a head for the rows": 0, "a head for the columns": HEADS // 2}
    for axes, (title, head) in _make_panels(plot, heads):
        image = axes.imshow(biases[head].reshape(width, width))
        axes.set(title=title, xlabel="column of the key")
    plot.axes[0].set_ylabel("row of the key")
    plot.colorbar(image, ax=plot.axes, label="bias")


def _make_panels(plot, panels):
    """Pairs each item of a dict with its own axes; all axes share a scale."""
    axes = plot.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    return zip(axes, panels.items(), strict=True)


def _draw_heat_map(plot, axes, values, extent, label):
    top = np.abs(values).max()
    image = axes.imshow(
        values,
        aspect="auto",
        cmap="RdBu_r",
        vmin=-top,
        vmax=top,
        interpolation="nearest",
        extent=(*extent, len(values), 0),
    )
    axes.set_xlabel(label)
    plot.colorbar(image, ax=axes)


def _compute_products(encoding):
    """Computes products of the last query with all keys: `(pairs, tokens)`."""
    ones = ops.ones((1, LONG + 1, 1, ROTARY_WIDTH))
    positions = sample_positions(encoding.sampler, ones, training=True)
    rotated = encoding(ones, ones, positions=positions)
    # Every pair becomes a head, with the other rotations of it if there are
    # any: (1, tokens, pairs, 2 * rotations).
    query, key = (
        ops.concatenate(
            [
                ops.reshape(part, (1, LONG + 1, -1, 2))
                for part in ops.split(each, encoding.num_rotations, axis=-1)
            ],
            axis=-1,
        )
        for each in rotated
    )
    last = positions[..., -1:]
    products = encoding.multiply(query[:, -1:], key, last, positions)
    return np.asarray(products)[0, :, 0] / 2


def _choose_shade(index, count):
    from matplotlib import colormaps

    return colormaps["viridis"](index / max(count, 1) * 0.9)
