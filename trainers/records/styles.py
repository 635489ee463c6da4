"""Colors, dashes and markers of curves, by the names of methods."""

import dataclasses
import re
import zlib

BLUE, GREEN, ORANGE = "#0072B2", "#009E73", "#E69F00"
PINK, RED, SKY = "#CC79A7", "#D55E00", "#56B4E9"
COLORS = (RED, BLUE, GREEN, PINK, ORANGE, SKY)
"""Distinguishable without red and green (Okabe and Ito, 2008)."""

MARKERS = ("circle", "square", "triangle-up", "diamond", "triangle-down")
"""Markers of the curves of one color, in this order."""

GRAY = "#888888"
"""Color of floors, visible on white and on black."""

FLOOR_DASHES = ((1, 3), (6, 3, 1, 3))
"""Lengths in pixels of the lines and gaps of floors; no method has them."""

RANDOMIZED = "Randomized"
"""What the name of a randomized form begins with."""

PLAIN = (
    *("ALiBi", "FIRE", "LearnedEncoding", "LogKERPLE", "PowerKERPLE"),
    *("RelativeEncoding", "RoPE", "Sandwich", "SinusoidalEncoding", "YaRN"),
)
"""Encodings that have a randomized form."""

CHOSEN = {
    BLUE: ("BAM", "CoPE", "LogKERPLE", "RelativeEncoding", "original"),
    GREEN: (
        *("ALiBi", "DAPE", "SelectiveRoPE", "StickBreakingAttention"),
        "positions",
    ),
    ORANGE: (
        *("ASEntmax", "FIRE", "PaTHAttention", "SinusoidalEncoding"),
        "position interpolation",
    ),
    PINK: (
        *("AxialEncoding", "CoupledPositions", "NAPE", "T5Bias"),
        *("Self-Extend", "more training", "scalable softmax"),
    ),
    RED: ("RoPE", "YaRN"),
    SKY: ("LearnedEncoding", "NoPE", "ReRoPE"),
}
"""Methods that stand in one picture have different colors."""

ALIASES = {
    "PaTH": "PaTHAttention",
    "YaRN": "YaRN",
    "axial": "AxialEncoding",
    "coupled": "CoupledPositions",
    "stick-breaking": "StickBreakingAttention",
}
"""Methods, by the first word of other names for them."""


@dataclasses.dataclass(frozen=True)
class Style:
    """How a curve is drawn.

    Attributes:
        color: str, such as `"#D55E00"`.
        dash: Tuple of int, lengths in pixels of lines and gaps; empty: solid.
        marker: str, one of `MARKERS`, or `"stroke"` for none.
    """

    color: str
    dash: tuple = ()
    marker: str = "stroke"


def choose_styles(names):
    """Returns the `Style` of each method of a picture, a dict.

    A name always has the same color. A randomized form has the color of its
    encoding, which is dashed. Markers tell curves of the same color apart.

    Args:
        names: Iterable of str, such as `"RandomizedRoPE"`, or
            `"RoPE, learning_rate=0.01"`.

    Example:

    >>> styles = choose_styles(["RoPE", "RandomizedRoPE", "NoPE"])
    >>> styles["RoPE"]
    Style(color='#D55E00', dash=(6, 3), marker='circle')
    >>> styles["RandomizedRoPE"]
    Style(color='#D55E00', dash=(), marker='square')
    """
    styles: dict[str, Style] = {}
    used: dict[str, int] = {}
    for name in names:
        color, dash = _choose_line(name)
        index = used[color] = used.get(color, -1) + 1
        styles[name] = Style(color, dash, MARKERS[index % len(MARKERS)])
    return styles


def choose_floor_styles(names):
    """Returns the `Style` of each floor of a picture, a dict."""
    return {
        name: Style(GRAY, FLOOR_DASHES[index % len(FLOOR_DASHES)])
        for index, name in enumerate(names)
    }


def _choose_line(name):
    """Returns the color of a method, and its dash."""
    is_randomized = RANDOMIZED in name or name.endswith(", randomized")
    method = re.sub("randomized ?", "", name, count=1, flags=re.IGNORECASE)
    method = re.split(r"[,(]", method)[0]
    method = ALIASES.get(method.split(" ")[0], method)
    is_plain = method in PLAIN and not is_randomized
    dash = (6, 3) if is_plain or name.endswith(", plain") else ()
    for color, methods in CHOSEN.items():
        if method in methods:
            return color, dash
    return COLORS[zlib.crc32(method.encode()) % len(COLORS)], dash
