"""Outputs of every second of the first subjects on JAX, in compiled chunks.

KERAS_BACKEND=jax \
    python -m tests.keras_lengen.layers.attention.jax_outputs out.npz
"""

import sys

import numpy as np

from tests.keras_lengen.layers.attention.subjects import (
    FIRST,
    POSITIONS,
    STATES,
    is_causal,
    make,
)

NAMES = FIRST[::2]
# The last tokens are padding, which has the number of the last of all.
REAL = np.arange(9) < np.array([[7], [9]])


def main(path):
    import jax

    outputs = {}
    for name in NAMES:
        layer = make(name, chunk_size=4)
        causal = is_causal(layer, name)

        @jax.jit
        def attend(states, mask, layer=layer, causal=causal):
            return layer(
                *(states, states),
                positions=POSITIONS,
                value_mask=mask,
                use_causal_mask=causal,
            )

        outputs[name] = np.asarray(attend(STATES, REAL))
    np.savez(path, **outputs)


if __name__ == "__main__":
    main(*sys.argv[1:])
