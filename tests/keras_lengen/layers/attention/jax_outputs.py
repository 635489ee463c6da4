"""Outputs of the first subjects on JAX, in chunks and compiled.

KERAS_BACKEND=jax \
    python -m tests.keras_lengen.layers.attention.jax_outputs in.npz out.npz
"""

import json
import sys

import numpy as np

from tests.keras_lengen.layers.attention.subjects import (
    FIRST,
    POSITIONS,
    STATES,
    copy,
    is_causal,
    make,
)

# The last tokens are padding, which has the number of the last of all.
REAL = np.arange(9) < np.array([[7], [9]])


def main(weights_path, outputs_path):
    import jax

    weights, outputs = np.load(weights_path), {}
    for name in FIRST:
        layer = copy(make(name), chunk_size=4)
        layer.set_weights(
            [
                weights[json.dumps([name, index])]
                for index in range(len(layer.weights))
            ]
        )
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
    np.savez(outputs_path, **outputs)


if __name__ == "__main__":
    main(*sys.argv[1:])
