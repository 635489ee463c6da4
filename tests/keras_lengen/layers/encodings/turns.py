"""What rotary encodings make of simple vectors."""

import math

import numpy as np


def rotated(features, position, layout, rotary_width, max_wavelength=10000):
    """One vector, by the definition of `RoPE`."""
    result = list(features)
    for pair in range(rotary_width // 2):
        angle = position / max_wavelength ** (2 * pair / rotary_width)
        if layout == "interleaved":
            first, second = 2 * pair, 2 * pair + 1
        else:
            first, second = pair, pair + rotary_width // 2
        x, y = features[first], features[second]
        result[first] = x * math.cos(angle) - y * math.sin(angle)
        result[second] = y * math.cos(angle) + x * math.sin(angle)
    return result


def measure_rates(encoding, width, **arguments):
    """Measures the angle per position of every pair, layout interleaved."""
    turned = _turn_first_features(encoding, width, **arguments)
    return np.arctan2(turned[:, 1], turned[:, 0])


def measure_magnitude(encoding, width, **arguments):
    """Measures by what rotation multiplies the length of every pair."""
    return np.hypot(*_turn_first_features(encoding, width, **arguments).T)


def _turn_first_features(encoding, width, **arguments):
    """Rotates the first feature of every pair at position 1: `(R / 2, 2)`."""
    first = np.tile(np.array([1, 0], "float32"), width // 2)
    query = first.reshape(1, 1, 1, width)
    turned = encoding(query, positions=np.array([1]), **arguments)
    return np.reshape(turned, (-1, 2)).astype("float64")
