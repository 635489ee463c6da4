"""Compiles layers with fused attention for each kind of TPU, on JAX.

KERAS_BACKEND=jax TPU_SKIP_MDS_QUERY=1 \
    python -m tests.keras_lengen.layers.attention.fused_on_tpus
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import topologies
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from keras_lengen import layers

SLICES = ("v4:2x2x1", "v5e:2x2", "v5p:2x2x1", "v6e:2x2")
CASES = {
    "none": {"encoding": layers.NoPE()},
    "one parameter": {"encoding": layers.ALiBi(), "sliding_window": 64},
    "many parameters": {"encoding": layers.T5Bias(), "num_key_value_heads": 2},
    "features": {"encoding": layers.Sandwich(), "logit_soft_cap": 20.0},
    "network": {"encoding": layers.RandomizedFIRE(max_position=2048)},
}
HEADS, WIDTH = 8, 64


def compile_gradient(topology, tokens, options):
    """Returns the compiled program of the gradient of a layer, as text."""
    described = topologies.get_topology_desc(
        platform="tpu", topology_name=topology
    )
    mesh = Mesh(np.array(described.devices[:1]), ("batch",))
    layer = layers.MultiHeadAttention(
        HEADS, WIDTH, fused=True, dropout=0.1, dtype="mixed_bfloat16", **options
    )
    shape = (2, tokens, HEADS * WIDTH)
    layer.build(shape, shape)

    def describe(array):
        return jax.ShapeDtypeStruct(
            array.shape,
            array.dtype,
            sharding=NamedSharding(mesh, PartitionSpec()),
        )

    weights, others = (
        [describe(variable.value) for variable in variables]
        for variables in (
            layer.trainable_variables,
            layer.non_trainable_variables,
        )
    )

    def compute(weights, others, inputs):
        output, _ = layer.stateless_call(
            *(weights, others, inputs, inputs),
            use_causal_mask=True,
            training=True,
        )
        return jnp.sum(output.astype("float32") ** 2)

    with jax.set_mesh(mesh):
        lowered = jax.jit(jax.grad(compute)).lower(
            weights, others, describe(np.zeros(shape, "float32"))
        )
        return lowered.compile().as_text()


def main():
    for topology in SLICES:
        for name, options in CASES.items():
            for tokens in (41, 1024):
                text = compile_gradient(topology, tokens, options)
                kernels = text.count('custom_call_target="tpu_custom_call"')
                print(f"{topology}, {name}, {tokens} tokens: {kernels} kernels")


if __name__ == "__main__":
    main()
