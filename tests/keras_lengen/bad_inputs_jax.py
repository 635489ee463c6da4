"""A part of the bad inputs on the backend JAX, eager and in its programs.

KERAS_BACKEND=jax python -m tests.keras_lengen.bad_inputs_jax faults.json
"""

import json
import pathlib
import sys

import jax
import keras

from tests.keras_lengen import bad_inputs_layers, bad_inputs_models
from tests.keras_lengen.bad_inputs import described, faults, is_void
from tests.keras_lengen.bad_inputs_programs import PROGRAMS

CALLS = {**bad_inputs_layers.CALLS, **bad_inputs_models.CALLS}
EAGER = (
    "NoPE",
    "SinusoidalEncoding",
    "LearnedEncoding",
    "RandomizedRoPE",
    "T5Bias",
    "AxialEncoding of rotation",
    "RandomizedPositions",
    "MultiHeadAttention",
    "TransformerBlock",
    "TransformerEncoder",
    "EncoderDecoder",
    "TransformerDecoder.generate",
)
COMPILED = (
    "ALiBi-sampled in attention",
    "RelativeEncoding-sampled in attention",
    "ShawEncoding in attention",
    "PowerKERPLE in attention",
    "T5Bias in attention",
    "FIRE in attention",
    "LearnedEncoding in attention",
    "RandomizedRoPE of few positions",
    "RandomizedPositions",
    "WarpedPositions",
    "caches",
    "TransformerBlock",
    "TransformerEncoder",
    "target",
)


def program(call):
    """A call's function, compiled for each set of shapes."""
    arrays = call.arrays
    others = {
        name: value for name, value in call.right.items() if name not in arrays
    }

    @jax.jit
    def compiled(arrays):
        # Random states that change in a program must not leave it.
        with keras.StatelessScope():
            return call.function(**arrays, **others)

    return lambda **arguments: compiled(
        {name: arguments[name] for name in arrays}
    )


def eager_faults():
    found, count = [], 0
    for name in EAGER:
        for call in CALLS[name]():
            call.function(**call.right)
            cases = list(call.cases())
            count += len(cases)
            found += faults(cases)
    return found, count


def compiled_faults():
    found, count = [], 0
    for name in COMPILED:
        for call in PROGRAMS[name]():
            # Outside of the program, which must not make weights.
            call.function(**call.right)
            run = program(call)
            for changed, _, value in call.changes():
                if getattr(value, "dtype", None) == "int64":
                    continue  # JAX takes the lower 32 bits of them.
                count += 1
                try:
                    result = run(**{**call.right, changed: value})
                except ValueError:
                    continue
                if not is_void(result):
                    found.append(
                        f"{call.subject}({changed}={described(value)})"
                    )
    return found, count


def main(path):
    eager, eager_count = eager_faults()
    compiled, compiled_count = compiled_faults()
    pathlib.Path(path).write_text(
        json.dumps(
            {"faults": eager + compiled, "count": eager_count + compiled_count}
        )
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
