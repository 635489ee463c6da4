"""Comparison of rotary encodings with those of other libraries."""

import numpy as np

POSITIONS = np.array([0, 1, 2, 3, 10, 100, 1000, 2047, 5000])


def unit_vectors(width, positions=POSITIONS):
    """Every feature by itself, `(1, T, D, D)`: a head for each.

    Rotated, they are sines and cosines, in whatever layout.
    """
    vectors = np.eye(width, dtype="float32")
    return np.tile(vectors, (1, len(positions), 1, 1))


def assert_same_turns(found, expected, positions=POSITIONS):
    """Compares rotated `unit_vectors`, the second of them at position 1."""
    found, expected = np.asarray(found), np.asarray(expected)
    # Rates are float32, so that an angle may err by a share of itself: the
    # position times what the angle, or here its sine, is at position 1.
    angles = np.maximum(positions, 1)[:, None, None] * np.abs(expected[:, 1:2])
    wrong = np.argwhere(np.abs(found - expected) > 1e-6 * angles)
    assert not len(wrong), (
        f"{len(wrong)} numbers differ, of which the first, at position "
        f"{positions[wrong[0][1]]}, is {found[tuple(wrong[0])]} and not "
        f"{expected[tuple(wrong[0])]}"
    )
