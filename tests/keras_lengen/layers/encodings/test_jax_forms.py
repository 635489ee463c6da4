"""Forms that are cheaper on TPUs; `test_backends.py` runs this on JAX."""

import functools

import keras
import numpy as np
import pytest

from keras_lengen.layers import RoPE, XPos
from keras_lengen.layers.attention.entmax import entmax
from keras_lengen.layers.encodings import cope, rope

if keras.backend.backend() != "jax":
    pytest.skip("these forms are for JAX", allow_module_level=True)

RANDOM = np.random.default_rng(0)


def compare(monkeypatch, function, *arguments):
    """Compares values and gradients with those of the other backends' form."""
    import jax
    import jax.numpy as jnp

    def differentiate():
        outputs, back = jax.vjp(function, *arguments)
        weights = jax.tree.map(
            lambda each: jnp.cos(jnp.arange(each.size)).reshape(each.shape),
            outputs,
        )
        return jax.tree.leaves((outputs, back(weights)))

    found = differentiate()
    monkeypatch.setattr(keras.backend, "backend", lambda: "tensorflow")
    expected = differentiate()
    monkeypatch.undo()
    assert len(found) > 1
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-6)


def draw(*shape):
    return RANDOM.normal(size=shape).astype("float32")


@pytest.mark.parametrize("positions", [np.arange(5), [[0, 2, 3, 7, 9]] * 2])
@pytest.mark.parametrize(
    "encoding",
    [
        RoPE(),
        RoPE(layout="halves"),
        RoPE(rotary_fraction=0.5),
        RoPE(rotary_fraction=0.5, layout="halves"),
        XPos(),
    ],
    ids=["pairs", "halves", "some pairs", "some halves", "XPos"],
)
def test_rotation_with_all_heads_in_one_axis(monkeypatch, encoding, positions):
    turn = functools.partial(encoding, positions=np.array(positions))
    compare(monkeypatch, turn, draw(2, 5, 3, 8), draw(2, 5, 3, 8))


@pytest.mark.parametrize("layout", ["interleaved", "halves"])
def test_swaps_in_bfloat16_are_exact(monkeypatch, layout):
    import jax.numpy as jnp

    encoding = RoPE(rotary_fraction=0.5, layout=layout)
    features = jnp.array(draw(2, 5, 24), "bfloat16")
    found = encoding._swap_flat(features, 3, 4)
    monkeypatch.setattr(rope, "WIDEST_SWAP", 0)
    expected = encoding._swap_flat(features, 3, 4)
    turned = np.arange(24) % 8 < 4
    assert np.array_equal(found[..., turned], expected[..., turned])
    assert not np.array_equal(found[..., turned], features[..., turned])


def test_sums_and_interpolation_of_cope(monkeypatch):
    gates = RANDOM.uniform(size=(2, 3, 4, 5)).astype("float32")
    compare(monkeypatch, cope._sum_later, gates)
    # Every other one is whole.
    positions = RANDOM.integers(9, size=(2, 3, 4, 6)).astype("float32") / 2
    compare(monkeypatch, cope._interpolate, draw(2, 3, 4, 5), positions)


def test_the_gradient_of_entmax():
    """`s * (g - m)`, where `m` is the mean of `g` weighted by `s`."""
    import jax

    scores, upstream = 2 * draw(1, 2, 3, 9), draw(1, 2, 3, 9)
    weights, back = jax.vjp(jax.jit(entmax), scores)
    np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=1e-5)
    roots = np.sqrt(weights)
    mean = (roots * upstream).sum(axis=-1, keepdims=True)
    mean = mean / roots.sum(axis=-1, keepdims=True)
    (found,) = back(upstream)
    np.testing.assert_allclose(found, roots * (upstream - mean), atol=2e-6)
